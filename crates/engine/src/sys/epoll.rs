//! epoll and eventfd.

use super::{check, check_len, made};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// A kernel event as epoll reports it: the event bits, and the 64 bits passed at registration.
pub(crate) type RawEvent = libc::epoll_event;

pub(crate) const EMPTY_EVENT: RawEvent = RawEvent { events: 0, u64: 0 };

pub(crate) fn create() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed; the descriptor is new.
    unsafe { made(libc::epoll_create1(libc::EPOLL_CLOEXEC)) }
}

/// Changes a registration; `operation` is one of `EPOLL_CTL_ADD`, `EPOLL_CTL_MOD`, `EPOLL_CTL_DEL`.
pub(crate) fn control(
    epoll: BorrowedFd<'_>,
    operation: libc::c_int,
    fd: BorrowedFd<'_>,
    events: u32,
    data: u64,
) -> io::Result<()> {
    let mut event = RawEvent { events, u64: data };
    // SAFETY: `event` lives on this stack over the call; both descriptors are open (borrowed).
    check(unsafe { libc::epoll_ctl(epoll.as_raw_fd(), operation, fd.as_raw_fd(), &mut event) })?;
    Ok(())
}

/// Waits for events; `timeout_ms` of 0 returns at once, -1 waits without limit. A signal counts as
/// no event.
pub(crate) fn wait(
    epoll: BorrowedFd<'_>,
    events: &mut [RawEvent],
    timeout_ms: libc::c_int,
) -> io::Result<usize> {
    let room = libc::c_int::try_from(events.len()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the kernel writes at most `room` entries, and the slice has that many.
    let outcome = check(unsafe {
        libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), room, timeout_ms)
    });
    match outcome {
        Ok(count) => Ok(usize::try_from(count).unwrap_or(0)),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
        Err(error) => Err(error),
    }
}

pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointer is passed; the descriptor is new.
    unsafe { made(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK)) }
}

/// Adds one to an eventfd. A counter that is already full is readable, which suffices.
pub(crate) fn eventfd_signal(fd: BorrowedFd<'_>) -> io::Result<()> {
    let one = 1u64.to_ne_bytes();
    // SAFETY: the kernel reads 8 bytes from an array of 8 bytes.
    let outcome = check_len(unsafe { libc::write(fd.as_raw_fd(), one.as_ptr().cast(), 8) });
    ignore_would_block(outcome)
}

/// Resets an eventfd to zero.
pub(crate) fn eventfd_drain(fd: BorrowedFd<'_>) -> io::Result<()> {
    let mut count = [0u8; 8];
    // SAFETY: the kernel writes 8 bytes into an array of 8 bytes.
    let outcome = check_len(unsafe { libc::read(fd.as_raw_fd(), count.as_mut_ptr().cast(), 8) });
    ignore_would_block(outcome)
}

fn ignore_would_block(outcome: io::Result<usize>) -> io::Result<()> {
    match outcome {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
        Err(error) => Err(error),
    }
}
