//! The one place of this crate that is `unsafe`: system calls that std has no name for, and
//! memory that two threads see. Each function here has a safe signature and keeps its own
//! promises; nothing outside `sys` needs to know how.

pub(crate) mod cut;
pub(crate) mod epoll;
pub(crate) mod gated;
pub(crate) mod map;
pub(crate) mod process;
pub(crate) mod socket;
pub(crate) mod time;
pub(crate) mod udp;

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

/// Turns the `-1 and errno` of a system call into a `Result`.
fn check(outcome: libc::c_int) -> io::Result<libc::c_int> {
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(outcome)
    }
}

/// The same for calls that make a descriptor.
///
/// # Safety
/// The kernel has just returned the descriptor, and nobody else owns it.
unsafe fn made(outcome: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(outcome)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// The same for calls that return a length.
fn check_len(outcome: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::last_os_error())
}
