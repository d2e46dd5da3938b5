//! The lock of a ring's file, for the one process that uses it.

use crate::private;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The file of a ring, locked until this is dropped or its process ends. A file that does not exist
/// yet is locked once a ring is [made](super::Broadcast::in_locked) in it.
#[derive(Debug)]
pub struct RingLock {
    path: PathBuf,
    file: Option<File>,
}

impl RingLock {
    /// Locks the file of a ring, from before what it has is [rescued](super::rescue()).
    ///
    /// # Errors
    /// The file is in use as a ring, by this process or another one (`ResourceBusy`), or it cannot
    /// be opened for reading and writing.
    pub fn take(path: &Path) -> io::Result<Self> {
        loop {
            let mut options = OpenOptions::new();
            // NFS locks only files that are open for writing. A pipe of that name must not hold up
            // the start.
            options
                .read(true)
                .write(true)
                .custom_flags(libc::O_NONBLOCK);
            let file = match options.open(path) {
                Ok(file) => Some(file),
                Err(error) if error.kind() == io::ErrorKind::NotFound => None,
                Err(error) => return Err(error),
            };
            let of = Self {
                path: path.to_owned(),
                file,
            };
            of.file.as_ref().map_or(Ok(()), lock)?;
            if of.has_its_name()? {
                return Ok(of);
            }
        }
    }

    /// Returns the file of the ring.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the path still leads to the locked file. The previous holder of the lock may
    /// have replaced the file before it released the lock.
    fn has_its_name(&self) -> io::Result<bool> {
        let place = |of: fs::Metadata| (of.dev(), of.ino());
        let own = self.file.as_ref().map(File::metadata).transpose()?;
        match fs::metadata(&self.path) {
            Ok(named) => Ok(own.map(place) == Some(place(named))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(own.is_none()),
            Err(error) => Err(error),
        }
    }

    /// Removes the locked file, makes and locks an empty one of its name, and calls `make` with
    /// it. If that fails, there is no file.
    pub(super) fn replace<T>(
        &mut self,
        make: impl FnOnce(&File) -> io::Result<T>,
    ) -> io::Result<T> {
        // Without a locked file, one of the name is another owner's.
        if self.file.is_some() {
            self.remove()?;
        }
        // In a folder that all users may write to, an existing file may be another user's.
        let mut options = private::file_options();
        options.read(true).write(true).create_new(true);
        let file = options.open(&self.path)?;
        // Before it is made: nobody else may take a part of a ring, and replace it.
        lock(&file)?;
        let made = make(self.file.insert(file));
        if made.is_err() {
            // The first error is the one to return.
            let _ = self.remove();
        }
        made
    }

    /// Removes the locked file, and closes it: one without a name keeps its memory as long as it is
    /// open.
    fn remove(&mut self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.unlock();
        self.file = None;
        Ok(())
    }

    /// Unlocks explicitly. Closing the file is not enough: a child that another thread is starting
    /// has it open, too, until it calls exec.
    fn unlock(&self) {
        // The process's end unlocks it in any case.
        let _ = self.file.as_ref().map(File::unlock);
    }
}

impl Drop for RingLock {
    fn drop(&mut self) {
        self.unlock();
    }
}

/// Locks an open file of a ring.
fn lock(file: &File) -> io::Result<()> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(io::Error::new(
            io::ErrorKind::ResourceBusy,
            "the file is in use as a ring, by this process or another one: each ring needs a file \
             of its own",
        )),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{Broadcast, Rescued, rescue};

    fn path(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().canonicalize().unwrap();
        folder.join(format!("fanfare-ring-{name}-{}", std::process::id()))
    }

    /// Returns how many files this process has open that had this name, and have none now.
    fn open_without_name(path: &Path) -> usize {
        let gone = PathBuf::from(format!("{} (deleted)", path.display()));
        let open = fs::read_dir("/proc/self/fd").unwrap();
        let links = open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok());
        links.filter(|link| *link == gone).count()
    }

    #[test]
    fn the_memory_of_the_ring_before_is_free_when_the_next_one_is_made() {
        let path = path("memory");
        let probe = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(open_without_name(&path), 1, "the count works");
        drop(probe);
        let mut lock = RingLock::take(&path).unwrap();
        drop(Broadcast::in_locked(&mut lock, 4096, 1).unwrap());
        drop(lock);
        let mut lock = RingLock::take(&path).unwrap();
        let refused = lock.replace(|file| {
            assert_eq!(
                open_without_name(&path),
                0,
                "the ring before has its memory"
            );
            assert_eq!(file.metadata().unwrap().len(), 0);
            let busy = RingLock::take(&path).unwrap_err();
            assert_eq!(busy.kind(), io::ErrorKind::ResourceBusy, "{busy}");
            Err::<(), _>(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(!path.exists(), "a ring that was not made leaves a file");
        assert_eq!(open_without_name(&path), 0);
        // There is room at the next attempt.
        drop(Broadcast::in_locked(&mut lock, 4096, 1).unwrap());
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_ring_is_locked_by_a_file_that_is_open_for_writing() {
        let path = path("writing");
        drop(Broadcast::in_file(&path, 4096, 1).unwrap());
        let lock = RingLock::take(&path).unwrap();
        let file = lock.file.as_ref().unwrap();
        // The system refuses this for a file that is open for reading.
        file.set_len(file.metadata().unwrap().len()).unwrap();
        drop(lock);
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_ring_that_is_in_use_is_not_taken_and_one_that_was_left_is() {
        let path = path("lock");
        let busy = || RingLock::take(&path).unwrap_err().kind();
        let mut first = RingLock::take(&path).unwrap();
        assert!(!path.exists(), "nothing is made before the ring");
        let mut ring = Broadcast::in_locked(&mut first, 4096, 1).unwrap();
        assert_eq!(busy(), io::ErrorKind::ResourceBusy);
        ring.push(1, b"left").unwrap();
        // The lock ends with its owner, whatever readers of the ring there still are.
        let reader = ring.subscribe();
        drop((ring, first));
        let mut second = RingLock::take(&path).unwrap();
        assert_eq!(busy(), io::ErrorKind::ResourceBusy);
        assert_eq!(rescue(&path, |_, _| {}).unwrap().0, Rescued::All);
        // The new file is locked, too, and the old one has no name.
        let ring = Broadcast::in_locked(&mut second, 4096, 1).unwrap();
        assert_eq!(busy(), io::ErrorKind::ResourceBusy);
        drop((ring, second, reader));
        // A second ring of that name is refused, not made in place of the first, which keeps it.
        let mut late = RingLock {
            path: path.clone(),
            file: None,
        };
        let held = RingLock::take(&path).unwrap();
        let refused = Broadcast::in_locked(&mut late, 4096, 1).map(drop);
        assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(held.has_its_name().unwrap(), "it was removed");
        drop(held);
        fs::remove_file(&path).unwrap();
    }
}
