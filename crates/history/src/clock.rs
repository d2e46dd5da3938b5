//! The time by which a keeper judges the age of events.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The longest lead of the system's clock over the time that has passed that is believed at once.
const LEAD: Duration = Duration::from_secs(3600);

/// The time after which a longer lead is believed.
const BELIEVED: Duration = Duration::from_secs(24 * 3600);

/// The system's clock, as far as it goes with the time that passes.
///
/// A clock that is set ahead by mistake, if only for seconds, would make everything old at once. So
/// it is believed when the keeper starts, and from then on up to an hour ahead of the time that has
/// passed since. A machine without a clock of its own is set ahead for good once it has a network,
/// and one that was suspended counts no time for that. So a lead is believed once it has lasted for
/// a day: the least one of that day.
#[derive(Debug)]
pub(crate) struct Clock {
    /// The time of the system at the start, in nanoseconds since 1970-01-01 UTC, with the leads
    /// that were believed since.
    start: u64,
    begun: Instant,
    lead: Option<Lead>,
}

/// A lead of the system's clock that is not believed yet.
#[derive(Debug, Clone, Copy)]
struct Lead {
    /// The time after the start at which it was found.
    since: Duration,
    /// The least one since, in nanoseconds beyond [`LEAD`].
    least: u64,
}

impl Clock {
    pub(crate) fn new() -> Self {
        Self {
            start: system_time(),
            begun: Instant::now(),
            lead: None,
        }
    }

    /// Returns the nanoseconds since 1970-01-01 UTC at which events are to be judged, and by how
    /// many nanoseconds the system's clock is ahead of it.
    pub(crate) fn now(&mut self) -> (u64, u64) {
        self.at(system_time(), self.begun.elapsed())
    }

    /// Returns the same at a time of the system, so long after the start.
    fn at(&mut self, system: u64, since: Duration) -> (u64, u64) {
        let most = self.start.saturating_add(nanos(since + LEAD));
        let ahead = system.saturating_sub(most);
        if ahead == 0 {
            self.lead = None;
            return (system, 0);
        }
        let found = Lead {
            since,
            least: ahead,
        };
        let lead = self.lead.get_or_insert(found);
        lead.least = lead.least.min(ahead);
        if since.saturating_sub(lead.since) < BELIEVED {
            return (most, ahead);
        }
        // From here on the clock may be an hour ahead of that again.
        let believed = lead.least.saturating_add(nanos(LEAD));
        self.start = self.start.saturating_add(believed);
        self.lead = None;
        self.at(system, since)
    }
}

#[cfg(test)]
impl Clock {
    /// Returns a clock of a keeper that has started now, when the system's clock was behind by so
    /// many nanoseconds: it has been set ahead by as many since.
    pub(crate) fn set_ahead(by: u64) -> Self {
        Self {
            start: system_time().saturating_sub(by),
            begun: Instant::now(),
            lead: None,
        }
    }
}

/// Returns the nanoseconds since 1970-01-01 UTC.
pub(crate) fn system_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, nanos)
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000_000_000;

    /// Returns what a clock that was started at hour `start` finds at an hour of the system's, so
    /// many hours later.
    fn hours(start: u64) -> impl FnMut(u64, u64) -> (u64, u64) {
        let mut clock = Clock {
            start: start * HOUR,
            begun: Instant::now(),
            lead: None,
        };
        move |system, since| {
            let (now, ahead) = clock.at(system * HOUR, Duration::from_nanos(since * HOUR));
            assert_eq!((now % HOUR, ahead % HOUR), (0, 0));
            (now / HOUR, ahead / HOUR)
        }
    }

    #[test]
    fn a_clock_is_believed_up_to_an_hour_ahead_of_the_time_that_passes() {
        let mut at = hours(1_000);
        assert_eq!(at(1_001, 0), (1_001, 0));
        assert_eq!(at(1_010, 10), (1_010, 0));
        // By 400 days, and back.
        assert_eq!(at(1_010 + 9_600, 10), (1_011, 9_599));
        assert_eq!(at(1_011, 11), (1_011, 0));
        // The time that was leapt over passes.
        assert_eq!(at(1_500, 499), (1_500, 0));
        // Set back.
        assert_eq!(at(900, 10), (900, 0));
    }

    #[test]
    fn a_lead_that_lasts_for_a_day_is_believed() {
        // From 1970, by half a century.
        const SET: u64 = 480_000;
        let mut at = hours(1);
        assert_eq!(at(3, 2), (3, 0));
        for since in 3..27 {
            assert_eq!(at(SET + since, since), (since + 2, SET - 2), "{since}");
        }
        for since in 27..100 {
            assert_eq!(at(SET + since, since), (SET + since, 0), "{since}");
        }
        // From there on it is doubted as before.
        assert_eq!(at(2 * SET + 100, 100), (SET + 101, SET - 1));
        // A machine that is suspended for a third of each day: what it slept is believed a day
        // late.
        let mut at = hours(1_000);
        let mut most = 0;
        for since in 0..1_000 {
            let (_, ahead) = at(1_000 + since + 8 * (since / 16), since);
            most = most.max(ahead);
        }
        assert!((8..32).contains(&most), "{most}");
    }

    #[test]
    fn no_more_than_the_least_lead_of_the_day_is_believed() {
        let mut at = hours(1_000);
        assert_eq!(at(1_100, 0), (1_001, 99));
        // Ahead by a year for the last hours.
        assert_eq!(at(10_023, 23), (1_024, 8_999));
        assert_eq!(at(10_024, 24), (1_125, 8_899));
        // A lead that ends in between begins anew.
        let mut at = hours(1_000);
        assert_eq!(at(9_000, 0).1, 7_999);
        assert_eq!(at(1_012, 12), (1_012, 0));
        assert_eq!(at(9_025, 25), (1_026, 7_999));
        assert_eq!(at(9_048, 48), (1_049, 7_999));
        assert_eq!(at(9_049, 49), (9_049, 0));
    }
}
