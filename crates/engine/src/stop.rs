//! Requests to the process, as seen by all threads: to stop, and to reload.

use crate::sys::process;
use std::io;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

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

/// A request to read files again, and to open logs again at their paths. Clones share the requests,
/// and each notes by itself which ones it has seen: each part of a program that reloads something
/// has a clone and polls it.
///
/// ```
/// use fanfare_engine::stop::Reload;
/// let mut certificates = Reload::new();
/// let mut log = certificates.clone();
/// certificates.request();
/// assert!(certificates.is_due() && !certificates.is_due());
/// assert!(log.is_due());
/// ```
#[derive(Debug, Clone, Default)]
pub struct Reload {
    requests: Arc<AtomicU32>,
    on_hangup: bool,
    seen: u32,
}

impl Reload {
    /// Creates one that only [`request`](Self::request) makes due.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates one that SIGHUP makes due, too. From the first call on, no signal ends the process
    /// by default except SIGINT, SIGTERM, SIGKILL, and those for faults of the program: a service
    /// outlives its terminal, and a stray SIGUSR1 or timer. Catch the first two with
    /// [`Stop::on_interrupt`].
    ///
    /// # Errors
    /// The handlers cannot be installed.
    pub fn on_hangup() -> io::Result<Self> {
        process::catch_hangups()?;
        process::outlive_signals()?;
        Ok(Self {
            requests: Arc::default(),
            on_hangup: true,
            seen: process::hangups(),
        })
    }

    /// Makes it due, for all clones.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Release);
    }

    /// Whether there was a request since the last call; several count once. Costs two loads.
    #[must_use]
    pub fn is_due(&mut self) -> bool {
        let mut asked = self.requests.load(Ordering::Acquire);
        if self.on_hangup {
            asked = asked.wrapping_add(process::hangups());
        }
        std::mem::replace(&mut self.seen, asked) != asked
    }
}

/// Makes writes beyond the limit of a file's size (`ulimit -f`) fail with an error, as on a full
/// disk. By default SIGXFSZ ends the process.
///
/// # Errors
/// The handler cannot be installed.
pub fn outlive_file_limit() -> io::Result<()> {
    process::outlive_file_limit()
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

/// Stops another process where it is (SIGSTOP), or lets it go on (SIGCONT).
///
/// # Errors
/// There is no such process, or it belongs to somebody else.
pub fn halt(process: u32, halted: bool) -> io::Result<()> {
    process::signal(process, if halted { libc::SIGSTOP } else { libc::SIGCONT })
}
