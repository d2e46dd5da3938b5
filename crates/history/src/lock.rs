//! The lock of a log, for its only writer.

use crate::error::LogError;
use crate::folder;
use std::fs::{File, TryLockError};
use std::path::Path;

/// A log that is locked for writing, until this is dropped or its process ends.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Lock {
    pub(crate) fn take(folder: &Path) -> Result<Self, LogError> {
        let path = folder.join("lock");
        let file = folder::options().truncate(false).open(&path);
        let file = file.map_err(LogError::io(&path))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => Err(LogError::InUse(folder.to_owned())),
            Err(TryLockError::Error(source)) => Err(LogError::io(&path)(source)),
        }
    }
}

impl Drop for Lock {
    /// Unlocks explicitly. Closing the file is not enough: a child that another thread is starting
    /// has it open, too, until it calls exec.
    fn drop(&mut self) {
        // The process's end unlocks it in any case.
        let _ = self.0.unlock();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_free_while_a_child_has_its_lock_open() {
        let folder = std::env::temp_dir().join(format!("fanfare-lock-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let lock = Lock::take(&folder).unwrap();
        let of_child = lock.0.try_clone().unwrap();
        assert!(matches!(Lock::take(&folder), Err(LogError::InUse(_))));
        drop(lock);
        assert!(Lock::take(&folder).is_ok());
        drop(of_child);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
