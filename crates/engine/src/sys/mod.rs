//! The only `unsafe` code of this crate: system calls that std does not have, and memory that two
//! threads share. Each function here has a safe signature and upholds its own invariants.

pub(crate) mod cut;
pub(crate) mod epoll;
pub(crate) mod file;
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

/// Turns the outcome of a system call that makes a descriptor into a `Result`.
///
/// # Safety
/// The kernel has just returned the descriptor, and no other value owns it.
unsafe fn made(outcome: libc::c_int) -> io::Result<OwnedFd> {
    let fd = check(outcome)?;
    // SAFETY: as the caller promises.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Turns the outcome of a system call that returns a length into a `Result`.
fn check_len(outcome: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::last_os_error())
}
