//! The samples that the subscribing side receives, and their counts.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::DoneToken;
use crate::Sample;
use crate::fast::TemplateType;

/// Most publishers that are counted apart, including those that have left; further ones are counted
/// together.
const MOST: usize = 1_024;

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
    publishers: Mutex<BTreeMap<u128, Arc<OfPublisher>>>,
    /// The counts of the publishers beyond the limit, and of writers whose publisher is not known.
    others: Arc<OfPublisher>,
}

/// The counts of one publisher.
#[derive(Debug, Default)]
pub(super) struct OfPublisher {
    received: AtomicU64,
    announced: AtomicU64,
}

impl Counts {
    /// Returns the counts of a publisher, by a number that no other has.
    fn of(&self, publisher: u128) -> Arc<OfPublisher> {
        let all = self.publishers.lock();
        let mut all = all.unwrap_or_else(PoisonError::into_inner);
        if all.len() >= MOST && !all.contains_key(&publisher) {
            return Arc::clone(&self.others);
        }
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
        all.values().chain([&self.others]).map(lost).sum()
    }
}

/// The counts of publishers by their writers, for one receive thread.
#[derive(Debug)]
pub(super) struct Publishers {
    counts: Arc<Counts>,
    /// At most as many as publishers are counted apart.
    writers: BTreeMap<u64, Arc<OfPublisher>>,
}

impl Publishers {
    pub(super) const fn new(counts: Arc<Counts>) -> Self {
        Self {
            counts,
            writers: BTreeMap::new(),
        }
    }

    /// Returns the counts of a writer's publisher. `find` returns the number of the publisher of a
    /// new writer, unless the writer is gone.
    #[inline]
    pub(super) fn of(
        &mut self,
        writer: u64,
        find: impl FnOnce() -> Option<u128>,
    ) -> &Arc<OfPublisher> {
        // Beyond the limit writers are looked up again.
        if self.writers.len() >= MOST && !self.writers.contains_key(&writer) {
            self.writers.clear();
        }
        match self.writers.entry(writer) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => match find() {
                Some(publisher) => new.insert(self.counts.of(publisher)),
                None => &self.counts.others,
            },
        }
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

    #[test]
    fn the_writers_of_a_publisher_are_counted_together() {
        let counts = Arc::new(Counts::default());
        let mut publishers = Publishers::new(Arc::clone(&counts));
        for (writer, publisher) in [(7, 1), (8, 2), (9, 1)] {
            let of = Arc::clone(publishers.of(writer, || Some(publisher)));
            assert!(Arc::ptr_eq(&of, &counts.of(publisher)));
            // A known writer is not looked up.
            assert!(Arc::ptr_eq(&of, publishers.of(writer, || None)));
        }
        // One that is gone is looked up again.
        assert!(Arc::ptr_eq(&counts.others, publishers.of(10, || None)));
        assert!(Arc::ptr_eq(&counts.of(3), publishers.of(10, || Some(3))));
    }

    #[test]
    fn publishers_beyond_the_limit_are_counted_together() {
        let counts = Arc::new(Counts::default());
        let mut publishers = Publishers::new(Arc::clone(&counts));
        let most = MOST as u64;
        for writer in 0..most + 2 {
            counts.sample(publishers.of(writer, || Some(writer.into())));
        }
        assert!(publishers.writers.len() <= MOST);
        assert_eq!(counts.publishers.lock().unwrap().len(), MOST);
        let last = most - 1;
        counts.announce(publishers.of(last, || Some(last.into())), 2);
        assert_eq!(counts.lost(), 1);
        // The samples of the two beyond the limit are those that one of them announces.
        counts.announce(publishers.of(most, || Some(most.into())), 2);
        assert_eq!(counts.lost(), 1);
        // On another topic, the first of them is beyond the limit, too.
        let mut elsewhere = Publishers::new(Arc::clone(&counts));
        counts.announce(elsewhere.of(most, || Some(most.into())), 3);
        assert_eq!(counts.lost(), 4);
    }
}
