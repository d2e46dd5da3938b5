//! The time that writers to DDS wait for subscribers, which is never longer than a stop may take.

use fanfare_dds::{Error, ReturnCode};
use fanfare_engine::stop::Stop;
use std::time::{Duration, Instant};

/// The longest wait of one call of a writer, and so the longest time until it notices a raised
/// stop.
const SLICE: Duration = Duration::from_millis(50);

/// The time that a stop waits for subscribers.
const FAREWELL: Duration = Duration::from_millis(400);

/// A limit on the time that writes wait for a subscriber that does not acknowledge: in slices, up
/// to the configured time, and after a stop for less.
pub(crate) struct AckWait {
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

impl AckWait {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn full() -> Error {
        Error::Dds {
            action: "write".to_owned(),
            code: ReturnCode::Timeout,
            detail: String::new(),
        }
    }

    #[test]
    fn a_write_waits_as_often_as_its_time_has_slices() {
        let mut wait = AckWait::new(120, Stop::new());
        let mut tries = 0;
        let mut attempt = |after| {
            tries = 0;
            wait.write(1, || {
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
        let mut wait = AckWait::new(0, Stop::new());
        assert_eq!(slice(0), Duration::ZERO);
        assert_eq!(wait.write(1, || Ok(1)).unwrap(), Written::Done(1));
        let written = wait.write::<()>(1, || Err(full()));
        assert_eq!(written.unwrap(), Written::InVain);
    }

    #[test]
    fn after_a_stop_nobody_is_waited_for_twice_and_the_others_get_theirs() {
        let stop = Stop::new();
        let mut wait = AckWait::new(10_000, stop.clone());
        let mut tries = 0;
        let mut hang = |wait: &mut AckWait| {
            let written = wait.write::<()>(1, || {
                tries += 1;
                // The stop is raised while the write waits.
                stop.raise();
                Err(full())
            });
            (written.unwrap(), tries)
        };
        assert_eq!(hang(&mut wait), (Written::Stopped, 2));
        assert_eq!(hang(&mut wait), (Written::Stopped, 2));
        assert_eq!(wait.write(2, || Ok(())).unwrap(), Written::Done(()));
        assert_eq!(wait.left(), Duration::ZERO);
        wait.until = Some(Instant::now());
        assert_eq!(wait.write(2, || Ok(())).unwrap(), Written::Stopped);
    }

    #[test]
    fn other_errors_are_errors() {
        let mut wait = AckWait::new(100, Stop::new());
        let other = || Err::<(), _>(Error::ListenerPanicked("T".to_owned()));
        assert!(wait.write(1, other).is_err());
    }
}
