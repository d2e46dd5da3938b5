//! Flags of open files.

use super::check;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Makes the reads and writes of a file wait that was opened with `O_NONBLOCK`.
pub(crate) fn wait(file: BorrowedFd<'_>) -> io::Result<()> {
    let fd = file.as_raw_fd();
    // SAFETY: the call takes integers alone, and the borrowed descriptor is open.
    let flags = check(unsafe { libc::fcntl(fd, libc::F_GETFL) })?;
    // SAFETY: as above.
    check(unsafe { libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_NONBLOCK) })?;
    Ok(())
}
