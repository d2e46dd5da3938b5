//! Memory shared by processes: a file in memory, mapped as words, with locks that end with the
//! process that holds them.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::copy;

/// Bytes of a page; parts of a file are mapped from multiples of it.
pub(crate) const PAGE: usize = 4096;

/// A file that other processes map too.
#[derive(Debug)]
pub(crate) struct SharedFile(File);

impl SharedFile {
    /// Makes a file of `bytes` zeros that only this user may open. Its memory is allocated at once:
    /// a full file system is an error here and not a signal later.
    pub(crate) fn create(path: &Path, bytes: usize) -> io::Result<Self> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        let len = libc::off_t::try_from(bytes).map_err(io::Error::other)?;
        // SAFETY: the descriptor is open; the call touches nothing but the file.
        let code = unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, len) };
        match code {
            0 => Ok(Self(file)),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Opens a file that another process made.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let options = options.read(true).write(true);
        options.custom_flags(libc::O_NOFOLLOW).open(path).map(Self)
    }

    /// Returns its length in bytes.
    pub(crate) fn len(&self) -> io::Result<usize> {
        usize::try_from(self.0.metadata()?.len()).map_err(io::Error::other)
    }

    /// Returns whether the file at `path` is this one.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let (own, there) = (self.0.metadata(), fs::symlink_metadata(path));
        let name = |file: &Metadata| (file.dev(), file.ino());
        matches!((own, there), (Ok(own), Ok(there)) if name(&own) == name(&there))
    }

    /// Takes the lock of a byte (which need not exist) unless it is held already. The lock ends
    /// with this object or this process, however that ends.
    pub(crate) fn try_lock(&self, byte: u32) -> io::Result<bool> {
        let mut lock = lock_of(byte);
        match self.control(libc::F_OFD_SETLK, &mut lock) {
            Ok(()) => Ok(true),
            Err(e) if e.raw_os_error() == Some(libc::EAGAIN) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Returns whether another object, of this process or another, has the lock of a byte.
    pub(crate) fn is_locked(&self, byte: u32) -> io::Result<bool> {
        let mut lock = lock_of(byte);
        self.control(libc::F_OFD_GETLK, &mut lock)?;
        Ok(i32::from(lock.l_type) != libc::F_UNLCK)
    }

    /// Releases a lock.
    pub(crate) fn unlock(&self, byte: u32) -> io::Result<()> {
        let mut lock = lock_of(byte);
        lock.l_type = libc::F_UNLCK as libc::c_short;
        self.control(libc::F_OFD_SETLK, &mut lock)
    }

    fn control(&self, command: libc::c_int, lock: &mut libc::flock) -> io::Result<()> {
        let lock: *mut libc::flock = lock;
        // SAFETY: the descriptor is open, and both commands take a valid `flock`, which the
        // borrow keeps alive during the call.
        match unsafe { libc::fcntl(self.0.as_raw_fd(), command, lock) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }
}

fn lock_of(byte: u32) -> libc::flock {
    // SAFETY: all zero is a valid `flock`: integers only.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = libc::F_WRLCK as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = libc::off_t::from(byte);
    lock.l_len = 1;
    lock
}

/// A part of a file as words that this process may write. Other processes may change them at any
/// time, so all access is atomic.
#[derive(Debug)]
pub(crate) struct Words(Mapping);

impl Words {
    /// Maps `len` words from the byte `offset` on, a multiple of [`PAGE`].
    pub(crate) fn map(file: &SharedFile, offset: usize, len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        Mapping::new(file, offset, len, protection).map(Self)
    }

    #[inline(always)]
    pub(crate) const fn get(&self) -> &[AtomicU64] {
        self.0.words()
    }

    /// Stores bytes from the word `place` on, without ordering; returns `false` and stores nothing
    /// if they go beyond the end.
    #[inline(always)]
    pub(crate) fn store(&self, place: usize, bytes: &[u8]) -> bool {
        let to = self.0.range(place, bytes.len());
        to.map(|to| copy::store(to, bytes)).is_some()
    }

    /// Fetches the cache lines of up to `len` words from the word `place` on, for stores to come.
    #[inline(always)]
    pub(crate) fn prefetch(&self, place: usize, len: usize) {
        let words = self.get().get(place..).unwrap_or_default();
        copy::prefetch(&words[..len.min(words.len())]);
    }
}

/// A part of a file as words that this process only reads.
#[derive(Debug)]
pub(crate) struct ReadOnly(Mapping);

impl ReadOnly {
    /// Maps `len` words from the byte `offset` on, a multiple of [`PAGE`].
    pub(crate) fn map(file: &SharedFile, offset: usize, len: usize) -> io::Result<Self> {
        Mapping::new(file, offset, len, libc::PROT_READ).map(Self)
    }

    /// Returns the words at these places, each loaded when the iterator reaches it, without
    /// ordering; empty if a place is beyond the end.
    #[inline(always)]
    pub(crate) fn load(&self, places: Range<usize>) -> impl ExactSizeIterator<Item = u64> {
        let words = self.0.words().get(places).unwrap_or_default();
        words.iter().map(|word| word.load(Ordering::Relaxed))
    }

    /// Returns the word at this place, or 0 beyond the end. What other processes stored before they
    /// stored it with release is visible afterwards.
    #[inline(always)]
    pub(crate) fn acquire(&self, place: usize) -> u64 {
        let word = self.0.words().get(place);
        let value = word.map_or(0, |word| word.load(Ordering::Relaxed));
        fence(Ordering::Acquire);
        value
    }

    /// Copies the bytes from the word `place` on, without ordering; returns `false` and copies
    /// nothing if they go beyond the end.
    #[inline(always)]
    pub(crate) fn copy(&self, place: usize, to: &mut [u8]) -> bool {
        let from = self.0.range(place, to.len());
        from.map(|from| copy::load(from, to)).is_some()
    }
}

#[derive(Debug)]
struct Mapping {
    first: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: the mapping is not tied to a thread, and its words are atomic.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(
        file: &SharedFile,
        offset: usize,
        len: usize,
        protection: libc::c_int,
    ) -> io::Result<Self> {
        let bytes = len.checked_mul(8).ok_or(io::ErrorKind::InvalidInput)?;
        let end = offset
            .checked_add(bytes)
            .ok_or(io::ErrorKind::InvalidInput)?;
        if len == 0 || end > file.len()? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let from = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: a new mapping at an address that the kernel picks; nothing else is affected.
        // The pages lie inside the file, which this crate never shortens.
        let at = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                protection,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.0.as_raw_fd(),
                from,
            )
        };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let first = NonNull::new(at.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { first, len })
    }

    /// Returns the words that hold `bytes` bytes from the word `place` on; `None` if they are not
    /// all mapped.
    #[inline(always)]
    fn range(&self, place: usize, bytes: usize) -> Option<&[AtomicU64]> {
        self.words().get(place..)?.get(..bytes.div_ceil(8))
    }

    #[inline(always)]
    const fn words(&self) -> &[AtomicU64] {
        // SAFETY: `first` points to `len` mapped words, page-aligned, until `self` is dropped.
        // Any bits are an `AtomicU64`, and all access, here and in the other processes, is atomic.
        // `ReadOnly` only loads with `Relaxed`, which is allowed on read-only memory.
        unsafe { std::slice::from_raw_parts(self.first.as_ptr(), self.len) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: exactly what `map` got, unmapped once, with no borrow of it left.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.len * 8) };
    }
}

/// Returns whether an error comes from a lack of descriptors, memory or locks, which may end.
pub(crate) fn is_shortage(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN | libc::ENOLCK | libc::EINTR
        )
    )
}

/// Returns this process's effective user.
pub(crate) fn user() -> u32 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::geteuid() }
}
