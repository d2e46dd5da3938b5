//! How long writers to DDS wait for subscribers: never longer than a stop may take.

use crate::notice::{Notice, Notices, Outlet, Why};
use fanfare_dds::{Error, ReturnCode};
use fanfare_engine::stop::Stop;
use std::time::{Duration, Instant};

/// The longest wait of one call of a writer, and the longest time until it sees a raised stop.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// How long a stop waits for subscribers.
const FAREWELL: Duration = Duration::from_millis(400);

/// The time between two notices of messages left out by one outlet.
const AGAIN: Duration = Duration::from_secs(1);

/// Lets writes wait for a subscriber that does not acknowledge: in slices, up to the configured
/// time, and after a stop for less.
pub(crate) struct Patience {
    /// Slices that a write waits.
    slices: u32,
    stop: Stop,
    /// When the last samples go out, once the stop was seen.
    until: Option<Instant>,
    /// Writers that have waited in vain for their subscribers since the stop.
    hanging: Vec<u64>,
}

/// What became of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written<T> {
    Done(T),
    /// A subscriber did not acknowledge in time.
    InVain,
    /// The stop came first.
    Stopped,
}

impl Patience {
    /// A write waits for at most `wait_ms` while the gateway runs, in calls of [`slice`] each.
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

    /// Writes by way of `attempt`; `id` is the writer's.
    ///
    /// # Errors
    /// Those of the writer. A subscriber that does not acknowledge is no error.
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

    /// Writes after the stop: no writer waits in vain twice, and all of them together no longer
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

    /// The time left for acknowledgements after the stop; zero if a subscriber hangs.
    pub(crate) fn left(&mut self) -> Duration {
        let until = *self.until.get_or_insert_with(|| Instant::now() + FAREWELL);
        match self.hanging.is_empty() {
            true => until.saturating_duration_since(Instant::now()),
            false => Duration::ZERO,
        }
    }
}

/// The longest wait of one call of a writer.
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

/// Notices of the messages that an outlet left out: the first at once, then sums once a second.
pub(crate) struct Omissions {
    outlet: Outlet,
    notices: Notices,
    /// Messages without a notice, by reason.
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

    /// Counts messages that were left out.
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
                // The stop comes while the write waits.
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
