//! What the stages took lately, for operators.

use super::STAGE;
use fanfare_engine::clock::monotonic;
use fanfare_engine::counters::{Counters, Windowed, Windows};
use fanfare_engine::stop::Stop;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

/// How long the thread that reads the histograms each second sleeps.
const SLEEP: Duration = Duration::from_millis(100);

/// The stages over the last 10 s, the last minute and all the time, from any thread. Clones are the
/// same.
#[derive(Clone)]
pub(crate) struct Stages(Arc<Inner>);

struct Inner {
    windows: Mutex<Windows>,
    is_on: bool,
    started: Once,
    stop: Stop,
}

impl Stages {
    /// Those of a gateway that runs until `stop`.
    pub(crate) fn new(counters: Counters, is_on: bool, stop: Stop) -> Self {
        Self(Arc::new(Inner {
            windows: Mutex::new(Windows::new(counters)),
            is_on,
            started: Once::new(),
            stop,
        }))
    }

    /// Begins to make a reading each second, on a thread of its own, unless it has begun.
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
            // Without a thread there are no windows: all values are said to be of the last seconds.
            let _ = std::thread::Builder::new()
                .name("stages".to_owned())
                .spawn(watch);
        });
    }

    /// All stages as of now.
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
