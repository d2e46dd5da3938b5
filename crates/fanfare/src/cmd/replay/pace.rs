//! The times at which replayed datagrams are due.

use fanfare_engine::stop::Stop;
use fanfare_instruments::histogram::Histogram;
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

/// The most by which a sleep ends late: the rest of a wait is spent awake.
const SLACK: Duration = Duration::from_micros(70);
/// The interval at which Ctrl-C is polled.
const NAP: Duration = Duration::from_millis(100);

/// The speed as a multiple of the original.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Speed {
    Times(f64),
    Max,
}

impl FromStr for Speed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse::<f64>()) {
            ("max", _) => Ok(Self::Max),
            (_, Ok(times)) if times.is_finite() && times > 0.0 => Ok(Self::Times(times)),
            _ => Err("must be `max` or a number above 0".to_owned()),
        }
    }
}

/// The clock of a replay.
pub(super) struct Pace {
    speed: Speed,
    /// A time of the files, and the moment when it was due.
    begun: Option<(u64, Instant)>,
    late: Histogram,
}

impl Pace {
    pub(super) fn new(speed: Speed) -> Self {
        Self {
            speed,
            begun: None,
            late: Histogram::new(),
        }
    }

    /// Starts another pass with the next datagram.
    pub(super) fn begin_again(&mut self) {
        self.begun = None;
    }

    /// Returns when a datagram of this time is due, if that is in the future; otherwise the
    /// datagram counts as sent.
    pub(super) fn is_early(&mut self, time: Option<u64>) -> Option<Instant> {
        let (Speed::Times(speed), Some(time)) = (self.speed, time) else {
            return None;
        };
        let now = Instant::now();
        let (first, begun) = *self.begun.get_or_insert((time, now));
        let after = time.saturating_sub(first) as f64 / speed / 1e9;
        // A time beyond the range of the clock is never due.
        let after = Duration::try_from_secs_f64(after).unwrap_or(Duration::MAX);
        let due = begun
            .checked_add(after)
            .unwrap_or(now + Duration::from_secs(u32::MAX.into()));
        if due > now {
            return Some(due);
        }
        let late = now.duration_since(due).as_nanos();
        self.late.record(u64::try_from(late).unwrap_or(u64::MAX));
        None
    }

    /// Returns the delays of datagrams after their due times, ns.
    pub(super) fn late(&self) -> &Histogram {
        &self.late
    }
}

/// Waits until a moment. Returns false after Ctrl-C.
pub(super) fn wait(until: Instant, stop: &Stop) -> bool {
    while !stop.is_raised() {
        let Some(left) = until.checked_duration_since(Instant::now()) else {
            return true;
        };
        if left > SLACK {
            thread::sleep((left - SLACK).min(NAP));
        } else {
            std::hint::spin_loop();
        }
    }
    false
}

/// Returns the whole hours of a pause, or `None` if it is shorter than one.
pub(super) fn hours(pause: Duration) -> Option<u64> {
    Some(pause.as_secs() / 3_600).filter(|hours| *hours > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_counted_in_whole_hours() {
        let pauses = [3_599, 3_600, 7_300].map(Duration::from_secs);
        assert_eq!(pauses.map(hours), [None, Some(1), Some(2)]);
    }

    #[test]
    fn a_speed_is_a_number_above_zero() {
        assert_eq!("0.5".parse(), Ok(Speed::Times(0.5)));
        assert_eq!("max".parse(), Ok(Speed::Max));
        for wrong in ["", "0", "-1", "inf", "NaN", "fast"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_run_from_the_first_datagram_on() {
        let mut pace = Pace::new(Speed::Times(10.0));
        let second = 1_000_000_000;
        assert_eq!(pace.is_early(None), None);
        assert_eq!(pace.is_early(Some(5 * second)), None);
        let begun = pace.begun.unwrap().1;
        let due = pace.is_early(Some(105 * second)).unwrap();
        assert_eq!(due - begun, Duration::from_secs(10));
        // A datagram captured out of order does not wait.
        assert_eq!(pace.is_early(Some(second)), None);
        assert!(pace.is_early(Some(u64::MAX)).is_some());
        pace.begin_again();
        assert_eq!(pace.is_early(Some(u64::MAX)), None);
        assert_eq!(Pace::new(Speed::Max).is_early(Some(second)), None);
    }
}
