//! The recent latencies of the stages, for operators.

use super::STAGE;
use fanfare_engine::clock::monotonic;
use fanfare_engine::counters::{Counters, Windowed, Windows};
use fanfare_engine::stop::Stop;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// The sleep of the thread that reads the histograms each second.
const SLEEP: Duration = Duration::from_millis(100);

/// The stages over the last 10 s, the last minute and in total, for any thread. Clones share them.
#[derive(Clone)]
pub(crate) struct Stages(Arc<Inner>);

struct Inner {
    windows: Mutex<Windows>,
    is_on: bool,
    started: Once,
    stop: Stop,
}

impl Stages {
    /// Creates the stages of a gateway that runs until `stop`.
    pub(crate) fn new(counters: Counters, is_on: bool, stop: Stop) -> Self {
        Self(Arc::new(Inner {
            windows: Mutex::new(Windows::new(counters)),
            is_on,
            started: Once::new(),
            stop,
        }))
    }

    /// Starts to take a reading each second, on a thread of its own, unless started.
    pub(crate) fn watch(&self) {
        if !self.0.is_on {
            return;
        }
        self.0.started.call_once(|| {
            self.0.lock().turn(monotonic());
            let inner = Arc::downgrade(&self.0);
            let watch = move || {
                while let Some(inner) = inner.upgrade()
                    && !inner.stop.is_raised()
                {
                    inner.lock().turn(monotonic());
                    drop(inner);
                    std::thread::sleep(SLEEP);
                }
            };
            // Without a thread there are no windows, and all values count as recent.
            let _ = std::thread::Builder::new()
                .name("stages".to_owned())
                .spawn(watch);
        });
    }

    /// Returns all stages as of now.
    pub(crate) fn read(&self) -> Vec<Windowed> {
        self.watch();
        let mut all = self.0.lock().read(monotonic());
        all.retain_mut(|one| match one.name.strip_prefix(STAGE) {
            Some(stage) => {
                one.name = stage.to_owned();
                true
            }
            None => false,
        });
        all
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Windows> {
        self.windows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
