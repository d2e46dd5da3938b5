//! The recent values of all counters, second by second, from which rates are computed.

use fanfare_engine::counters::Counters;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

/// The samples that are kept. Rates are computed from the first and the last.
const KEPT: usize = 4;

/// The values by owner and name. Counters of the same name and owner are one.
pub(super) type Sample = HashMap<(String, String), u64>;

/// Reads all counters.
pub(super) fn sample(counters: &Counters) -> Sample {
    let all = counters.sums().into_iter();
    all.map(|sum| ((sum.of, sum.name), sum.value)).collect()
}

/// Returns a value of a sample, or 0 if it is absent.
pub(super) fn value(of: &Sample, owner: &str, name: &str) -> u64 {
    let key = (owner.to_owned(), name.to_owned());
    of.get(&key).copied().unwrap_or(0)
}

/// Returns the sum of all values of a name.
fn total(of: &Sample, name: &str) -> u64 {
    let named = of.iter().filter(|((_, own), _)| own == name);
    named.map(|(_, value)| *value).sum()
}

/// The samples of the last seconds, the oldest first.
#[derive(Default)]
pub(super) struct Samples(VecDeque<(Instant, Sample)>);

impl Samples {
    /// Takes a sample now.
    pub(super) fn take(&mut self, now: Instant, counters: &Counters) {
        if self.0.len() >= KEPT {
            self.0.pop_front();
        }
        self.0.push_back((now, sample(counters)));
        self.0.make_contiguous();
    }

    pub(super) fn all(&self) -> &[(Instant, Sample)] {
        self.0.as_slices().0
    }

    /// Returns the growth of a count per second, or `None` before the second sample.
    pub(super) fn rate(&self, owner: &str, name: &str) -> Option<f64> {
        self.per_second(|sample| value(sample, owner, name))
    }

    /// Returns the growth of the sum of all counts of a name per second.
    pub(super) fn rate_of(&self, name: &str) -> Option<f64> {
        self.per_second(|sample| total(sample, name))
    }

    fn per_second(&self, value: impl Fn(&Sample) -> u64) -> Option<f64> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let seconds = last.0.duration_since(first.0).as_secs_f64();
        let grown = value(&last.1).saturating_sub(value(&first.1));
        // Tenths are precise enough for display.
        (seconds > 0.0).then(|| (grown as f64 / seconds * 10.0).round() / 10.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::counters::Kind;
    use std::time::Duration;

    #[test]
    fn rates_are_of_the_last_seconds() {
        let counters = Counters::new();
        let add = |of| counters.add_of(of, "packets", Kind::Count, "");
        let (a, b) = (add("A"), add("B"));
        let (mut samples, start) = (Samples::default(), Instant::now());
        samples.take(start, &counters);
        assert_eq!(samples.rate("A", "packets"), None);
        for second in 1..=9 {
            a.increment(if second < 6 { 1_000 } else { 10 });
            b.increment(5);
            samples.take(start + Duration::from_secs(second), &counters);
        }
        assert_eq!(samples.all().len(), KEPT);
        assert_eq!(samples.rate("A", "packets"), Some(10.0));
        assert_eq!(samples.rate_of("packets"), Some(15.0));
        assert_eq!(samples.rate("C", "packets"), Some(0.0));
    }
}
