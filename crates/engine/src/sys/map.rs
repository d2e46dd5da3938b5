//! Memory-mapped files.

use super::check;
use super::cut::Watch;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU64;

/// The smallest size of a page; larger ones are multiples of it.
const PAGE: usize = 4096;

/// A file mapped shared: bytes written here are in the file at once, even if the process is killed
/// the next moment.
///
/// If the file is made shorter while it is mapped, its lost pages read as zeros, bytes written to
/// them are lost, and [`is_broken`](Self::is_broken) returns true once one of them was accessed.
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
    writable: bool,
    /// The watch of a map of a file, dropped before the map.
    watch: Option<Watch>,
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
        let mut map = Self::map(len, writable, libc::MAP_SHARED, file.as_raw_fd())?;
        map.watch = Some(Watch::new(map.start.as_ptr() as usize, len)?);
        Ok(map)
    }

    /// Makes a private copy of the first `len` bytes of a file that another process may be writing.
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
            watch: None,
        })
    }

    /// Returns whether a page was missing in the file when it was accessed.
    pub(crate) fn is_broken(&self) -> bool {
        self.watch.as_ref().is_some_and(Watch::is_broken)
    }

    /// Returns the number of bytes mapped.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping is `len` readable bytes until drop; writing needs `&mut self`.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// Returns the bytes, to be changed; empty if the file was mapped for reading.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        let len = if self.writable { self.len } else { 0 };
        // SAFETY: the mapping is `len` writable bytes until drop, and `&mut self` is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), len) }
    }

    /// Makes the pages of `range` present and writable now, so that no later write waits for one.
    /// The part of the range outside the map is ignored.
    pub(crate) fn prefault(&mut self, range: Range<usize>) -> io::Result<()> {
        let (from, to) = (range.start / PAGE * PAGE, range.end.min(self.len));
        if from >= to {
            return Ok(());
        }
        // SAFETY: the range lies in our own mapping, at the start of a page; the advice changes no
        // byte.
        let advised = unsafe {
            let start = self.start.as_ptr().add(from).cast();
            libc::madvise(start, to - from, libc::MADV_POPULATE_WRITE)
        };
        match check(advised) {
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                // Before Linux 5.14, writes each page's first byte back to it.
                let pages = self.bytes_mut().get_mut(from..to).unwrap_or(&mut []);
                for byte in pages.iter_mut().step_by(PAGE) {
                    *byte = std::hint::black_box(*byte);
                }
                Ok(())
            }
            outcome => outcome.map(|_| ()),
        }
    }

    /// Returns how many bytes are mapped into this process, by `/proc`.
    #[cfg(test)]
    pub(crate) fn resident(&self) -> usize {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap_or_default();
        let start = format!("{:x}-", self.start.as_ptr() as usize);
        let mut lines = maps.lines().skip_while(|line| !line.starts_with(&start));
        let rss = lines.find_map(|line| line.strip_prefix("Rss:"));
        let digits = rss.and_then(|rss| rss.split_whitespace().next()?.parse().ok());
        digits.map_or(usize::MAX, |kib: usize| kib << 10)
    }

    /// Releases the memory of all pages, which are read from the file at the next access.
    pub(crate) fn release(&mut self) {
        if self.watch.is_none() {
            return;
        }
        // SAFETY: the range is our own map of a file, shared: what was written is the file's, and
        // comes back from there. Advice that is not taken changes nothing.
        unsafe { libc::madvise(self.start.as_ptr().cast(), self.len, libc::MADV_DONTNEED) };
    }
}

/// A file as atomic words, for one process that writes and the one that follows it.
pub(crate) struct Words(Mapping);

impl Words {
    /// Maps an empty file that is open for both. It has `len` bytes then, a multiple of 8, all of
    /// them zero and allocated.
    pub(crate) fn of_new(file: &File, len: usize) -> io::Result<Self> {
        allocate(file, len as u64)?;
        let mut map = Mapping::new(file, len, true)?;
        map.prefault(0..len)?;
        Ok(Self(map))
    }

    /// Returns the words.
    pub(crate) fn get(&self) -> &[AtomicU64] {
        let len = self.0.len() / size_of::<AtomicU64>();
        // SAFETY: the mapping begins at a page, so it is aligned, and has `len` words that are
        // readable and writable until drop. All access to them is by atomics, through this slice:
        // `Words` has no other method that reaches them.
        unsafe { std::slice::from_raw_parts(self.0.start.as_ptr().cast(), len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The watch must not outlive the map, as the address is reused.
        self.watch = None;
        // SAFETY: this is the range that mmap gave, and no borrow of it outlives `self`.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// Allocates `len` bytes for the file, zeros where it had none, or fails (disk full) without a
/// hole: later writes to the map cannot fail for lack of space.
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

/// Writes zeros into all pages of a new file. This takes a quarter of the time of making the pages
/// one by one at their first access.
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

/// Exchanges the names of two files or folders of one file system, atomically.
pub(crate) fn exchange(one: &Path, other: &Path) -> io::Result<()> {
    let name = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (one, other) = (name(one)?, name(other)?);
    let (here, flags) = (libc::AT_FDCWD, libc::RENAME_EXCHANGE);
    // SAFETY: both are strings that end with 0 and outlive the call; the result is checked.
    let code = unsafe { libc::renameat2(here, one.as_ptr(), here, other.as_ptr(), flags) };
    check(code)?;
    Ok(())
}
