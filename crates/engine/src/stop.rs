//! The wish to stop, as seen by all threads.

use crate::sys::process;
use std::io;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A flag that many threads look at and anyone can raise. Cheap to clone; clones are the same
/// flag.
///
/// ```
/// use fanfare_engine::stop::Stop;
/// let stop = Stop::new();
/// let seen_elsewhere = stop.clone();
/// stop.raise();
/// assert!(seen_elsewhere.is_raised());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Stop {
    raised: Arc<AtomicBool>,
    on_interrupt: bool,
}

impl Stop {
    /// A flag that only [`raise`](Self::raise) raises.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A flag that Ctrl-C (SIGINT) and SIGTERM raise too. From the first call on they no longer
    /// end the process by themselves; the third one does, in case a shutdown hangs.
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn on_interrupt() -> io::Result<Self> {
        process::catch_interrupts()?;
        Ok(Self {
            raised: Arc::default(),
            on_interrupt: true,
        })
    }

    /// Asks everybody to stop.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Release);
    }

    /// True once somebody asked.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire) || (self.on_interrupt && process::interrupts() > 0)
    }
}

/// Has this process told to end (SIGTERM) when the thread that started it is gone, however that
/// came, if process `parent` is the one that did. `false` when there is no such process any more.
///
/// # Errors
/// The kernel cannot do it.
pub fn end_with_parent(parent: u32) -> io::Result<bool> {
    if parent_id() == parent {
        process::end_with_parent()?;
    }
    // It may have died before the kernel knew of the wish.
    Ok(parent_id() == parent || process::exists(parent))
}

/// Asks another process to end, as Ctrl-C in its terminal does (SIGINT).
///
/// # Errors
/// There is no such process, or it belongs to somebody else.
pub fn interrupt(process: u32) -> io::Result<()> {
    process::interrupt(process)
}

/// Stops another process where it is (SIGSTOP), or lets it go on (SIGCONT).
///
/// # Errors
/// As [`interrupt`].
pub fn halt(process: u32, halted: bool) -> io::Result<()> {
    process::halt(process, halted)
}
