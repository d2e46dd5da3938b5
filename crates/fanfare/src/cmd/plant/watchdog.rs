//! The watch over the threads of a gateway, for its log and for a service manager.

use crate::supervisor;
use fanfare_engine::clock::Clock;
use fanfare_gateway::Gateway;
use std::time::Duration;

/// The length of a turn from which its thread counts as stuck. A turn that waits for a disk takes
/// 10 s at most, one that waits for subscribers of DDS half a minute.
const STUCK: Duration = Duration::from_secs(60);

/// The looks in a row that have to find a thread stuck: one may come first after the whole process
/// was stopped.
const LOOKS: u32 = 5;

/// The watch over the threads that serve sessions and feeds.
pub(super) struct Watchdog {
    clock: Clock,
    /// The looks in a row that have found a thread stuck.
    looks: u32,
    /// How often the service manager wants to know that all is well, in nanoseconds.
    interval: Option<u64>,
    /// The time at which it is told again.
    due: u64,
}

impl Watchdog {
    /// Reports to the service manager that the gateway serves, and begins the watch.
    pub(super) fn begin(gateway: &Gateway) -> Self {
        let (producers, consumers) = (gateway.producers(), gateway.consumers());
        supervisor::ready(&format!("serving {producers} and {consumers}"));
        Self::new(supervisor::watchdog())
    }

    fn new(interval: Option<Duration>) -> Self {
        let nanos = |interval: Duration| u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        Self {
            clock: Clock::new(),
            looks: 0,
            interval: interval.map(nanos),
            due: 0,
        }
    }

    /// Logs a thread that is stuck. While none is, the service manager is told that all is well, if
    /// it wants to know.
    pub(super) fn look(&mut self, gateway: &Gateway) {
        let now = self.clock.read().mono;
        if let Some(what) = self.judge(gateway.slowest(now)) {
            tracing::warn!(target: "program", "{what}");
        }
        if self.is_due(now) {
            supervisor::alive();
        }
    }

    /// Returns what is to be logged.
    fn judge(&mut self, slowest: Option<(&str, Duration)>) -> Option<String> {
        let was_stuck = self.looks >= LOOKS;
        match slowest.filter(|(_, since)| *since >= STUCK) {
            Some((name, since)) => {
                self.looks = self.looks.saturating_add(1);
                let seconds = since.as_secs();
                let what = || format!("thread {name} is stuck: it has been busy for {seconds} s");
                (self.looks == LOOKS).then(what)
            }
            None => {
                self.looks = 0;
                was_stuck.then(|| "no thread is stuck any more".to_owned())
            }
        }
    }

    /// Returns whether the service manager is to be told now that all is well.
    fn is_due(&mut self, now: u64) -> bool {
        let Some(interval) = self.interval else {
            return false;
        };
        let is_due = self.looks < LOOKS && now >= self.due;
        if is_due {
            self.due = now.saturating_add(interval);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stuck_thread_is_logged_once_and_nobody_is_told_that_all_is_well() {
        let mut watchdog = Watchdog::new(Some(Duration::from_nanos(10)));
        let stuck = Some(("worker0", STUCK));
        let busy = Some(("worker0", STUCK - Duration::from_nanos(1)));
        assert_eq!(watchdog.judge(busy), None);
        assert_eq!(
            [0, 9, 10, 11].map(|now| watchdog.is_due(now)),
            [true, false, true, false]
        );
        // As after the process was stopped.
        for _ in 1..LOOKS {
            assert_eq!(watchdog.judge(stuck), None);
        }
        assert_eq!(watchdog.judge(None), None);
        assert!(watchdog.is_due(20));
        for _ in 1..LOOKS {
            assert_eq!(watchdog.judge(stuck), None);
        }
        let told = "thread worker0 is stuck: it has been busy for 60 s";
        assert_eq!(watchdog.judge(stuck).as_deref(), Some(told));
        assert_eq!(watchdog.judge(stuck), None);
        assert!(!watchdog.is_due(100));
        let told = "no thread is stuck any more";
        assert_eq!(watchdog.judge(busy).as_deref(), Some(told));
        assert!(watchdog.is_due(100));
    }

    #[test]
    fn without_a_service_manager_nobody_is_told() {
        let mut watchdog = Watchdog::new(None);
        assert!(!watchdog.is_due(u64::MAX));
    }
}
