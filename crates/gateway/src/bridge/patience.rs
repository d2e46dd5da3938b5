//! The time that writers to DDS wait for subscribers, which is never longer than a stop may take.

use crate::notice::{Notice, Notices, Outlet, Why};
use fanfare_dds::{Error, ReturnCode};
use fanfare_engine::stop::Stop;
use std::time::{Duration, Instant};

/// The longest wait of one call of a writer, and so the longest time until it notices a raised
/// stop.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// The time that a stop waits for subscribers.
const FAREWELL: Duration = Duration::from_millis(400);

/// The interval between two notices of messages dropped by one outlet.
const AGAIN: Duration = Duration::from_secs(1);

/// A limit on the time that writes wait for a subscriber that does not acknowledge: in slices, up
/// to the configured time, and after a stop for less.
pub(crate) struct Patience {
    /// The slices that a write waits.
    slices: u32,
    stop: Stop,
    /// The deadline of the last samples, once the stop was noticed.
    until: Option<Instant>,
    /// The writers whose subscribers have not acknowledged in time since the stop.
    hanging: Vec<u64>,
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<T> {
    Done(T),
    /// A subscriber did not acknowledge in time.
    InVain,
    /// The stop was raised first.
    Stopped,
}

impl Patience {
    /// Creates a limit of `wait_ms` for a write while the gateway runs, in calls of [`slice`] each.
    pub(crate) fn new(wait_ms: u64, stop: Stop) -> Self {
        let slices = Duration::from_millis(wait_ms)
            .as_nanos()
            .div_ceil(SLICE.as_nanos());
        Self {
            slices: u32::try_from(slices).unwrap_or(u32::MAX).max(1),
            stop,
            until: None,
            hanging: Vec::new(),
        }
    }

    /// Writes through `attempt`. `id` identifies the writer.
    ///
    /// # Errors
    /// Returns the errors of the writer. A subscriber that does not acknowledge is not an error.
    pub(crate) fn write<T>(
        &mut self,
        id: u64,
        mut attempt: impl FnMut() -> Result<T, Error>,
    ) -> Result<Written<T>, Error> {
        let mut waited = 0;
        while waited < self.slices {
            if self.stop.is_raised() {
                return self.part(id, attempt);
            }
            match attempt() {
                Ok(done) => return Ok(Written::Done(done)),
                Err(error) if in_vain(&error) => waited += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(Written::InVain)
    }

    /// Writes after the stop. No writer times out twice, and all of them together wait no longer
    /// than [`FAREWELL`].
    fn part<T>(
        &mut self,
        id: u64,
        mut attempt: impl FnMut() -> Result<T, Error>,
    ) -> Result<Written<T>, Error> {
        let until = *self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
        if self.hanging.contains(&id) || Instant::now() >= until {
            return Ok(Written::Stopped);
        }
        match attempt() {
            Ok(done) => Ok(Written::Done(done)),
            Err(error) if in_vain(&error) => {
                self.hanging.push(id);
                Ok(Written::Stopped)
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the time left for acknowledgements after the stop, or zero if a subscriber hangs.
    pub(crate) fn left(&mut self) -> Duration {
        let until = *self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
        match self.hanging.is_empty() {
            true => until.saturating_duration_since(Instant::now()),
            false => Duration::ZERO,
        }
    }
}

/// Returns the longest wait of one call of a writer.
pub(crate) fn slice(wait_ms: u64) -> Duration {
    SLICE.min(Duration::from_millis(wait_ms))
}

fn in_vain(error: &Error) -> bool {
    matches!(
        error,
        Error::Dds {
            code: ReturnCode::Timeout | ReturnCode::OutOfResources,
            ..
        }
    )
}

/// The notices of the messages that an outlet dropped: the first at once, then sums once a second.
pub(crate) struct Omissions {
    outlet: Outlet,
    notices: Notices,
    /// The unreported messages, by reason.
    untold: [u64; 2],
    told: Option<Instant>,
}

impl Omissions {
    pub(crate) fn new(outlet: Outlet, notices: Notices) -> Self {
        Self {
            outlet,
            notices,
            untold: [0; 2],
            told: None,
        }
    }

    /// Counts messages that were dropped.
    pub(crate) fn add(&mut self, why: Why, count: u64) {
        if let Some(untold) = self.untold.get_mut(why as usize) {
            *untold += count;
        }
        self.look();
    }

    /// Sends the notices that are due.
    pub(crate) fn look(&mut self) {
        if self.untold == [0; 2] || self.told.is_some_and(|told| told.elapsed() < AGAIN) {
            return;
        }
        self.told = Some(Instant::now());
        for (why, untold) in [Why::Unacknowledged, Why::Overrun]
            .into_iter()
            .zip(&mut self.untold)
        {
            let count = std::mem::take(untold);
            if count > 0 {
                let outlet = self.outlet;
                self.notices
                    .send(Notice::Unpublished { outlet, count, why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::channel;

    fn full() -> Error {
        Error::Dds {
            action: "write".to_owned(),
            code: ReturnCode::Timeout,
            detail: String::new(),
        }
    }

    #[test]
    fn a_write_waits_as_often_as_its_time_has_slices() {
        let mut patience = Patience::new(120, Stop::new());
        let mut tries = 0;
        let mut attempt = |after| {
            tries = 0;
            patience.write(1, || {
                tries += 1;
                if tries > after {
                    Ok(tries)
                } else {
                    Err(full())
                }
            })
        };
        assert_eq!(attempt(0).unwrap(), Written::Done(1));
        assert_eq!(attempt(2).unwrap(), Written::Done(3));
        assert_eq!(attempt(3).unwrap(), Written::InVain);
        assert_eq!(tries, 3);
    }

    #[test]
    fn no_time_is_one_try() {
        let mut patience = Patience::new(0, Stop::new());
        assert_eq!(slice(0), Duration::ZERO);
        assert_eq!(patience.write(1, || Ok(1)).unwrap(), Written::Done(1));
        let written = patience.write::<()>(1, || Err(full()));
        assert_eq!(written.unwrap(), Written::InVain);
    }

    #[test]
    fn after_a_stop_nobody_is_waited_for_twice_and_the_others_get_theirs() {
        let stop = Stop::new();
        let mut patience = Patience::new(10_000, stop.clone());
        let mut tries = 0;
        let mut hang = |patience: &mut Patience| {
            let written = patience.write::<()>(1, || {
                tries += 1;
                // The stop is raised while the write waits.
                stop.raise();
                Err(full())
            });
            (written.unwrap(), tries)
        };
        assert_eq!(hang(&mut patience), (Written::Stopped, 2));
        assert_eq!(hang(&mut patience), (Written::Stopped, 2));
        assert_eq!(patience.write(2, || Ok(())).unwrap(), Written::Done(()));
        assert_eq!(patience.left(), Duration::ZERO);
        patience.until = Some(Instant::now());
        assert_eq!(patience.write(2, || Ok(())).unwrap(), Written::Stopped);
    }

    #[test]
    fn other_errors_are_errors() {
        let mut patience = Patience::new(100, Stop::new());
        let other = || Err::<(), _>(Error::ListenerPanicked("T".to_owned()));
        assert!(patience.write(1, other).is_err());
    }

    #[test]
    fn what_is_left_out_is_told_at_once_and_then_in_sums() {
        let (notices, received) = channel();
        let mut omissions = Omissions::new(Outlet::Dds, notices);
        for _ in 0..10 {
            omissions.add(Why::Overrun, 3);
            omissions.add(Why::Unacknowledged, 1);
        }
        let told = |what: &str| {
            let all: Vec<_> = received.iter().map(|n| n.to_string()).collect();
            assert_eq!(
                all,
                what.split(';')
                    .filter(|l| !l.is_empty())
                    .collect::<Vec<_>>()
            );
        };
        told("dds: 3 messages left out: overwritten before they could be published");
        omissions.look();
        told("");
        omissions.told = Instant::now().checked_sub(AGAIN);
        omissions.look();
        told(
            "dds: 10 messages left out: a subscriber does not acknowledge;\
             dds: 27 messages left out: overwritten before they could be published",
        );
    }
}
