//! The watch over the threads of a gateway, for its log and for a service manager.
//!
//! The main thread watches those that serve sessions and feeds. A thread of its own watches the
//! main thread, without which the service manager is not told either.

use crate::supervisor;
use anyhow::{Context, Result};
use fanfare_engine::clock::Clock;
use fanfare_gateway::Gateway;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// The length of a turn from which its thread counts as stuck. A turn that waits for a disk takes
/// 10 s at most, one that waits for subscribers of DDS half a minute.
const STUCK: Duration = Duration::from_secs(60);

/// The looks in a row that have to find a thread stuck: one may come first after the whole process
/// was stopped.
const LOOKS: u32 = 5;

/// The time between two looks at the main thread.
const LOOK_AT_MAIN: Duration = Duration::from_secs(1);

/// The watch over the threads that serve sessions and feeds, and over the one that has it.
pub(super) struct Watchdog {
    clock: Clock,
    verdict: Verdict,
    main: MainWatch,
    /// How often the service manager wants to know that all is well, in nanoseconds.
    interval: Option<u64>,
    /// The time at which it is told again.
    due: u64,
}

impl Watchdog {
    /// Reports to the service manager that the gateway serves, and begins the watch.
    ///
    /// # Errors
    /// The thread that watches this one cannot be started.
    pub(super) fn begin(gateway: &Gateway) -> Result<Self> {
        let main = MainWatch::begin(LOOK_AT_MAIN, STUCK, warn)?;
        let (producers, consumers) = (gateway.producers(), gateway.consumers());
        supervisor::ready(&format!("serving {producers} and {consumers}"));
        Ok(Self::new(main, supervisor::watchdog()))
    }

    fn new(main: MainWatch, interval: Option<Duration>) -> Self {
        Self {
            clock: Clock::new(),
            verdict: Verdict::new(STUCK),
            main,
            interval: interval.map(nanos),
            due: 0,
        }
    }

    /// Logs a thread that is stuck. While none is, the service manager is told that all is well, if
    /// it wants to know.
    pub(super) fn look(&mut self, gateway: &Gateway) {
        let now = self.clock.read().mono;
        self.main.looked(now);
        if let Some(what) = self.verdict.on(gateway.slowest(now)) {
            warn(&what);
        }
        if self.is_due(now) {
            supervisor::alive();
        }
    }

    /// Returns whether the service manager is to be told now that all is well.
    fn is_due(&mut self, now: u64) -> bool {
        let Some(interval) = self.interval else {
            return false;
        };
        let is_due = !self.verdict.is_stuck() && now >= self.due;
        if is_due {
            self.due = now.saturating_add(interval);
        }
        is_due
    }
}

/// The judgement over the slowest of some threads.
struct Verdict {
    /// The length of a turn from which its thread counts as stuck.
    stuck: Duration,
    /// The looks in a row that have found a thread stuck.
    looks: u32,
}

impl Verdict {
    const fn new(stuck: Duration) -> Self {
        Self { stuck, looks: 0 }
    }

    const fn is_stuck(&self) -> bool {
        self.looks >= LOOKS
    }

    /// Takes the thread that has been busy for longest, and returns what is to be logged.
    fn on(&mut self, slowest: Option<(&str, Duration)>) -> Option<String> {
        let was_stuck = self.is_stuck();
        match slowest.filter(|(_, since)| *since >= self.stuck) {
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
}

/// The watch over the main thread, by a thread of its own that ends with this value.
struct MainWatch {
    /// The monotonic time of the last sign of the main thread, in nanoseconds.
    seen: Arc<AtomicU64>,
    _end: Sender<()>,
}

impl MainWatch {
    /// Looks `every` so often, and calls `tell` if the main thread has shown no sign for `stuck`.
    fn begin(
        every: Duration,
        stuck: Duration,
        mut tell: impl FnMut(&str) + Send + 'static,
    ) -> Result<Self> {
        let mut clock = Clock::new();
        let seen = Arc::new(AtomicU64::new(clock.read().mono));
        let (end, ends) = channel::<()>();
        let sign = Arc::clone(&seen);
        let mut verdict = Verdict::new(stuck);
        let look = move || {
            while ends.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = clock.read().mono;
                let since = now.saturating_sub(sign.load(Ordering::Relaxed));
                let main = ("main", Duration::from_nanos(since));
                if let Some(what) = verdict.on(Some(main)) {
                    tell(&what);
                }
            }
        };
        let thread = std::thread::Builder::new().name("watchdog".to_owned());
        thread
            .spawn(look)
            .context("cannot start the watch over the main thread")?;
        Ok(Self { seen, _end: end })
    }

    /// Notes a sign of the main thread at `now`.
    fn looked(&self, now: u64) {
        self.seen.store(now, Ordering::Relaxed);
    }
}

fn nanos(interval: Duration) -> u64 {
    u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX)
}

fn warn(what: &str) {
    tracing::warn!(target: "program", "{what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::Receiver;

    const STEP: Duration = Duration::from_millis(1);

    fn watchdog(interval: Option<Duration>) -> Watchdog {
        let main = MainWatch::begin(Duration::from_secs(3600), STUCK, |_| {});
        Watchdog::new(main.unwrap(), interval)
    }

    #[test]
    fn a_stuck_thread_is_logged_once_and_nobody_is_told_that_all_is_well() {
        let mut watchdog = watchdog(Some(Duration::from_nanos(10)));
        let stuck = Some(("worker0", STUCK));
        let busy = Some(("worker0", STUCK - Duration::from_nanos(1)));
        assert_eq!(watchdog.verdict.on(busy), None);
        assert_eq!(
            [0, 9, 10, 11].map(|now| watchdog.is_due(now)),
            [true, false, true, false]
        );
        // As after the process was stopped.
        for _ in 1..LOOKS {
            assert_eq!(watchdog.verdict.on(stuck), None);
        }
        assert_eq!(watchdog.verdict.on(None), None);
        assert!(watchdog.is_due(20));
        for _ in 1..LOOKS {
            assert_eq!(watchdog.verdict.on(stuck), None);
        }
        let told = "thread worker0 is stuck: it has been busy for 60 s";
        assert_eq!(watchdog.verdict.on(stuck).as_deref(), Some(told));
        assert_eq!(watchdog.verdict.on(stuck), None);
        assert!(!watchdog.is_due(100));
        let told = "no thread is stuck any more";
        assert_eq!(watchdog.verdict.on(busy).as_deref(), Some(told));
        assert!(watchdog.is_due(100));
    }

    #[test]
    fn without_a_service_manager_nobody_is_told() {
        let mut watchdog = watchdog(None);
        assert!(!watchdog.is_due(u64::MAX));
    }

    /// Begins a watch that takes `stuck` without a sign for too long.
    fn watched(stuck: Duration) -> (MainWatch, Receiver<String>) {
        let (tell, told) = channel();
        let watch = MainWatch::begin(STEP, stuck, move |what| {
            let _ = tell.send(what.to_owned());
        });
        (watch.unwrap(), told)
    }

    #[test]
    fn a_main_thread_without_a_sign_is_told_by_another_one() {
        let (watch, told) = watched(STEP);
        let minute = Duration::from_secs(60);
        let what = told.recv_timeout(minute).unwrap();
        assert!(what.starts_with("thread main is stuck: it has been busy for "));
        // A sign of the far future is one at each look.
        watch.looked(u64::MAX);
        let what = told.recv_timeout(minute).unwrap();
        assert_eq!(what, "no thread is stuck any more");
    }

    #[test]
    fn the_watch_over_the_main_thread_ends_with_it() {
        let (watch, told) = watched(Duration::MAX);
        drop(watch);
        let ended = told.recv_timeout(Duration::from_secs(60));
        assert_eq!(ended, Err(RecvTimeoutError::Disconnected));
    }
}
