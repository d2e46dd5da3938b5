//! Requests to the process, seen by all threads: to stop, and to reload.

use crate::sys::process;
use std::io;
use std::os::unix::process::parent_id;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// A flag that any thread can raise and read. All clones are the same flag; cloning is cheap.
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
    /// Makes a flag that only [`raise`](Self::raise) raises.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a flag that Ctrl-C (SIGINT) and SIGTERM raise too. From the first call on they no
    /// longer end the process by themselves, except for the third one, in case a shutdown hangs.
    /// SIGHUP, the end of the terminal, raises it as well, unless it is ignored (nohup) or a
    /// [`Reload`] takes it.
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

    /// Raises the flag.
    pub fn raise(&self) {
        self.raised.store(true, Ordering::Release);
    }

    /// Returns whether the flag is raised.
    #[must_use]
    pub fn is_raised(&self) -> bool {
        self.raised.load(Ordering::Acquire) || (self.on_interrupt && process::interrupts() > 0)
    }
}

/// A request to reload files, and to reopen logs at their paths. Clones share the requests, and
/// each notes by itself which ones it has seen: each part of a program that reloads something polls
/// its own clone.
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
    /// Makes one that only [`request`](Self::request) makes due.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes one that SIGHUP makes due, too; the signal raises no [`Stop`] any more. From the first
    /// call on, no signal ends the process by default except SIGINT, SIGTERM, SIGKILL, and those
    /// for faults of the program: a service outlives its terminal, and a stray SIGUSR1 or timer.
    /// [`Stop::on_interrupt`] catches the first two.
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

    /// Makes all clones due.
    pub fn request(&self) {
        self.requests.fetch_add(1, Ordering::Release);
    }

    /// Returns whether there was a request since the last call; several count once. Costs two
    /// loads.
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

/// Makes the kernel send SIGTERM to this process when the thread that started it ends, if process
/// `parent` is its parent. Returns `false` if that process no longer exists.
///
/// # Errors
/// The kernel does not support it.
pub fn end_with_parent(parent: u32) -> io::Result<bool> {
    if parent_id() == parent {
        process::end_with_parent()?;
    }
    // The parent may have died before the request reached the kernel.
    Ok(parent_id() == parent || process::exists(parent))
}

/// Stops another process (SIGSTOP), or continues it (SIGCONT).
///
/// # Errors
/// The process does not exist, or belongs to another user.
pub fn halt(process: u32, halted: bool) -> io::Result<()> {
    process::signal(process, if halted { libc::SIGSTOP } else { libc::SIGCONT })
}
