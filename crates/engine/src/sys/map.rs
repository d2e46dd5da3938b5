//! Files as memory.

use super::check;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;

/// A file mapped shared: what is written here is in the file at once, also if the process is
/// killed the next moment.
///
/// The file must not be made shorter while it is mapped: touching a page beyond its end raises
/// SIGBUS. The journal locks its folder for that reason.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
}

// SAFETY: the mapping is plain memory; `&Mapping` only reads, `&mut Mapping` is exclusive.
unsafe impl Send for Mapping {}
// SAFETY: as above; shared access never writes.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `len` bytes of a file that has at least as many.
    pub(crate) fn new(file: &File, len: usize, writable: bool) -> io::Result<Self> {
        if len == 0 || file.metadata()?.len() < len as u64 {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "file shorter than its map",
            ));
        }
        Self::map(len, writable, libc::MAP_SHARED, file.as_raw_fd())
    }

    /// A private copy of the first `len` bytes of a file that another process may be writing.
    pub(crate) fn copy(file: &File, len: usize) -> io::Result<Self> {
        use std::os::unix::fs::FileExt;
        let mut copy = Self::map(len, true, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1)?;
        file.read_exact_at(copy.bytes_mut(), 0)?;
        Ok(copy)
    }

    fn map(len: usize, writable: bool, flags: libc::c_int, fd: libc::c_int) -> io::Result<Self> {
        let protection = if writable {
            libc::PROT_READ | libc::PROT_WRITE
        } else {
            libc::PROT_READ
        };
        // SAFETY: the kernel chooses the address, so no memory of ours is replaced; the result
        // is checked.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, fd, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self {
            start,
            len,
            writable,
        })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes until drop; writing needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes to change; empty if the file was mapped for reading.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = if self.writable { self.len } else { 0 };
        // SAFETY: the mapping is `len` writable bytes until drop, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Makes all pages present and writable now, so that no write waits for one later.
    pub(crate) fn prefault(&mut self) -> io::Result<()> {
        // SAFETY: the range is our own mapping; the advice changes no byte.
        let advised = unsafe {
            libc::madvise(
                self.start.as_ptr().cast(),
                self.len,
                libc::MADV_POPULATE_WRITE,
            )
        };
        match check(advised) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                // A kernel before 5.14: write each page's first byte back to it.
                for byte in self.bytes_mut().iter_mut().step_by(4096) {
                    *byte = std::hint::black_box(*byte);
                }
                Ok(())
            }
            outcome => outcome.map(|_| ()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is the range that mmap gave, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Gives the file `len` bytes on the disk, zeros where there was nothing, or fails (disk full)
/// without a hole: later writes to the map cannot fail for want of space.
pub(crate) fn allocate(file: &File, len: u64) -> io::Result<()> {
    let len_signed = libc::off_t::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
    // SAFETY: no pointer is passed; the result is checked.
    match check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, len_signed) }) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            write_zeros(file, file.metadata()?.len(), len)
        }
        outcome => outcome.map(|_| ()),
    }
}

/// Puts zeros into all pages of a new file. It costs a quarter of what it costs to have the pages
/// made one by one by touching them.
pub(crate) fn zero(file: &File, len: u64) -> io::Result<()> {
    write_zeros(file, 0, len)
}

fn write_zeros(file: &File, mut at: u64, len: u64) -> io::Result<()> {
    use std::os::unix::fs::FileExt;
    let zeros = [0u8; 1 << 16];
    while at < len {
        let count = (len - at).min(zeros.len() as u64) as usize;
        file.write_all_at(zeros.get(..count).unwrap_or(&zeros), at)?;
        at += count as u64;
    }
    Ok(())
}
