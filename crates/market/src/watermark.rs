//! Watermarks: times that the feeds have passed, and steps of the clock between them.

/// A watermark that is further below an earlier one shows that the clock was set back.
const BACK: u64 = 1_000_000_000;

/// Events that are further above a watermark show that a clock was ahead: either this host's,
/// between two watermarks, or the clock of another gateway, which stamped the events.
const AHEAD: u64 = 3_600_000_000_000;

/// A time at which or after which every later event of a trade arrived, unless the recovery of its
/// instrument has delayed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermark {
    /// Nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// The course of the clock since the watermark before.
    pub clock: ClockCourse,
}

/// The course of the clock up to a [`Watermark`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockCourse {
    /// Not known: versions up to 0.3.0 wrote the watermark. Its readers judge by its time, as
    /// [`ClockSteps`] does.
    Unknown,
    /// The clock has gone on, or no event has come since it was set back. With events, the time is
    /// not below that of the watermark before.
    Forward,
    /// The clock was set back to the time of the watermark from about this time, which is above it.
    /// Intervals in progress end.
    SetBack(u64),
}

impl Watermark {
    /// The bytes of a watermark.
    pub const SIZE: usize = 16;

    /// Returns a watermark of which the course of the clock is not known.
    pub const fn unknown(time: u64) -> Self {
        let clock = ClockCourse::Unknown;
        Self { time, clock }
    }

    /// Returns the watermark as bytes: its time, and that from which the clock was set back, 0 if
    /// it was not, or `u64::MAX` if that is not known. Versions up to 0.3.0 read the time alone.
    pub const fn to_bytes(self) -> [u8; Self::SIZE] {
        let from = match self.clock {
            ClockCourse::Unknown => u64::MAX,
            ClockCourse::Forward => 0,
            ClockCourse::SetBack(from) => from,
        };
        let words = (from as u128) << 64 | self.time as u128;
        words.to_le_bytes()
    }

    /// Returns the watermark that [`Self::to_bytes`] or a version up to 0.3.0 wrote, or `None` if
    /// the bytes are incomplete.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (time, rest) = bytes.split_first_chunk()?;
        let from = rest.first_chunk().map(|from| u64::from_le_bytes(*from));
        Some(Self {
            time: u64::from_le_bytes(*time),
            clock: match from {
                None | Some(u64::MAX) => ClockCourse::Unknown,
                Some(0) => ClockCourse::Forward,
                Some(from) => ClockCourse::SetBack(from),
            },
        })
    }
}

/// Recognises a clock that was set back, by the watermarks and by the times of the events between
/// them. Allocates nothing.
#[derive(Debug, Default)]
pub struct ClockSteps {
    /// The latest watermark since the last step back, or the last one as long as no event follows.
    mark: u64,
    /// The latest event since the last step back, or 0 before the first one.
    latest: u64,
}

impl ClockSteps {
    /// Notes an event of this time, in nanoseconds since 1970.
    #[inline]
    pub const fn event(&mut self, time: u64) {
        if time > self.latest {
            self.latest = time;
        }
    }

    /// Forgets all times, as at a restart of the plant.
    pub const fn begin_again(&mut self) {
        (self.mark, self.latest) = (0, 0);
    }

    /// Returns whether a watermark of this time shows that the clock was set back: there are events
    /// since the last such step, and it is more than a second below an earlier watermark, or it is
    /// the first one of an hour and more than an hour below an event. Not at each watermark of the
    /// hour: the clock of another gateway may stay ahead.
    pub const fn is_back(&self, time: u64) -> bool {
        let is_first = time / AHEAD != self.mark / AHEAD;
        let is_below = time < self.mark.saturating_sub(BACK)
            || is_first && time < self.latest.saturating_sub(AHEAD);
        time > 0 && self.latest != 0 && is_below
    }

    /// Notes a watermark, with which the clock was set back or not.
    pub const fn take(&mut self, time: u64, is_back: bool) {
        if is_back {
            self.latest = 0;
        }
        // Without an event, nothing is in progress that a step back could end.
        if self.latest == 0 || time > self.mark {
            self.mark = time;
        }
    }

    /// Notes a watermark of the system's clock. Returns the one to be written: its time does not
    /// fall as long as the clock is not set back. At most one of them after each event is a step
    /// back, however often the clock jumps.
    pub const fn judge(&mut self, time: u64) -> Watermark {
        let from = if self.mark > self.latest {
            self.mark
        } else {
            self.latest
        };
        let is_back = self.is_back(time);
        self.take(time, is_back);
        Watermark {
            time: self.mark,
            clock: if is_back {
                ClockCourse::SetBack(from)
            } else {
                ClockCourse::Forward
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_step_back_is_judged_once_however_the_clock_jumps() {
        let mut steps = ClockSteps::default();
        let mut judge = |event: u64, second: u64| {
            if event > 0 {
                steps.event(event * SECOND);
            }
            let mark = steps.judge(second * SECOND);
            let from = match mark.clock {
                ClockCourse::SetBack(from) => from / SECOND,
                ClockCourse::Forward => 0,
                ClockCourse::Unknown => panic!("it is judged"),
            };
            (mark.time / SECOND, from)
        };
        // Nothing is in progress.
        assert_eq!([judge(0, 9_000), judge(0, 100)], [(9_000, 0), (100, 0)]);
        // A step of a second is none, and the time does not fall.
        let jitter = [judge(101, 102), judge(0, 101), judge(0, 103)];
        assert_eq!(jitter, [(102, 0), (102, 0), (103, 0)]);
        // Only the first one of several steps has something to end.
        let steps_back = [judge(0, 50), judge(0, 10), judge(0, 500), judge(0, 20)];
        assert_eq!(steps_back, [(50, 103), (10, 0), (500, 0), (20, 0)]);
        // Events are a day ahead, and the first watermark of the next hour shows it.
        let ahead = [judge(90_000, 21), judge(0, 3_599), judge(0, 3_600)];
        assert_eq!(ahead, [(21, 0), (3_599, 0), (3_600, 90_000)]);
        assert_eq!(judge(90_000, 3_601), (3_601, 0));
    }

    #[test]
    fn the_watermark_of_an_earlier_version_has_no_course() {
        let bytes = 7_u64.to_le_bytes();
        assert_eq!(Watermark::from_bytes(&bytes), Some(Watermark::unknown(7)));
        assert_eq!(Watermark::from_bytes(&bytes[..7]), None);
    }

    proptest! {
        #[test]
        fn bytes_and_watermarks_are_the_same(time: u64, from in 1..u64::MAX, kind in 0_u8..3) {
            let clock = match kind {
                0 => ClockCourse::Unknown,
                1 => ClockCourse::Forward,
                _ => ClockCourse::SetBack(from),
            };
            let mark = Watermark { time, clock };
            let bytes = mark.to_bytes();
            prop_assert_eq!(Watermark::from_bytes(&bytes), Some(mark));
            prop_assert!(bytes.starts_with(&time.to_le_bytes()));
        }
    }
}
