//! The samples that the subscribing side receives, and their counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::DoneToken;
use crate::Sample;
use crate::fast::TemplateType;

/// A sample that a subscriber received.
#[derive(Debug, Clone, Copy)]
pub struct Received<'a> {
    /// The type of the template.
    pub template: &'a TemplateType,
    /// The topic on which it arrived.
    pub topic: &'a str,
    /// The sample.
    pub sample: Sample<'a>,
}

/// Counts of received samples and tokens.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) received: AtomicU64,
    pub(super) echo_failed: AtomicU64,
    /// The total that the tokens announced, the most that one announced, and the number of tokens.
    pub(super) announced: AtomicU64,
    pub(super) most: AtomicU64,
    pub(super) tokens: AtomicU64,
    publishers: Mutex<BTreeMap<u64, Arc<OfPublisher>>>,
}

/// The counts of one publisher.
#[derive(Debug, Default)]
pub(super) struct OfPublisher {
    received: AtomicU64,
    announced: AtomicU64,
}

impl Counts {
    /// Returns the counts of a publisher.
    pub(super) fn of(&self, publisher: u64) -> Arc<OfPublisher> {
        let all = self.publishers.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(all.entry(publisher).or_default())
    }

    /// Counts a sample of a publisher.
    #[inline]
    pub(super) fn sample(&self, of: &OfPublisher) {
        of.received.fetch_add(1, Ordering::Release);
        self.received.fetch_add(1, Ordering::Release);
    }

    /// Counts a token; other bytes are ignored.
    pub(super) fn token(&self, of: &OfPublisher, sample: &Sample<'_>) {
        if let Ok(token) = sample.value::<DoneToken>() {
            self.announce(of, token.samples);
        }
    }

    fn announce(&self, of: &OfPublisher, samples: u64) {
        of.announced.fetch_add(samples, Ordering::Release);
        self.announced.fetch_add(samples, Ordering::Release);
        self.most.fetch_max(samples, Ordering::Release);
        self.tokens.fetch_add(1, Ordering::Release);
    }

    /// Returns the number of samples that were announced and have not been received. Samples of one
    /// publisher do not replace those of another.
    pub(super) fn lost(&self) -> u64 {
        let all = self.publishers.lock();
        let all = all.unwrap_or_else(PoisonError::into_inner);
        let lost = |of: &Arc<OfPublisher>| {
            let announced = of.announced.load(Ordering::Acquire);
            announced.saturating_sub(of.received.load(Ordering::Acquire))
        };
        all.values().map(lost).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_that_nobody_announced_do_not_replace_lost_ones() {
        let counts = Counts::default();
        let (dead, alive) = (counts.of(1), counts.of(2));
        (0..5).for_each(|_| counts.sample(&dead));
        (0..3).for_each(|_| counts.sample(&alive));
        assert_eq!(counts.lost(), 0);
        counts.announce(&alive, 7);
        assert_eq!(counts.lost(), 4);
        assert_eq!(counts.received.load(Ordering::Relaxed), 8);
        (0..4).for_each(|_| counts.sample(&counts.of(2)));
        assert_eq!(counts.lost(), 0);
    }
}
