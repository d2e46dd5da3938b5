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

/// Turns the `-1 and errno` of a system call into a `Result`.
fn check(outcome: libc::c_int) -> io::Result<libc::c_int> {
    if outcome < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(outcome)
    }
}

/// The same for calls that return a length.
fn check_len(outcome: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::last_os_error())
}
