//! The folder of a journal: its name, the names of its files, and its lock.

use super::error::OpenError;
use super::in_use;
use crate::private;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

/// Returns the folder under `base` for a session: its identity, with `%XX` for characters that a
/// file name cannot hold.
#[must_use]
pub fn folder_for(base: &Path, identity: &str) -> PathBuf {
    let mut name = String::with_capacity(identity.len());
    for (i, byte) in identity.bytes().enumerate() {
        match byte {
            b'.' if i == 0 => name.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'=' | b'+' => {
                name.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            _ => drop(write!(name, "%{byte:02X}")),
        }
    }
    base.join(name)
}

pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}.journal"))
}

/// Writes the names of the files in a folder to the disk.
pub(super) fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Writes the name of a folder, and the names in it, to the disk, where the system permits it.
pub(super) fn sync_with_name(folder: &Path) -> io::Result<()> {
    let folders = [Some(folder), parent_of(folder)].into_iter().flatten();
    folders
        .map(sync_folder)
        .try_for_each(|synced| match synced {
            // This user may not open the folder above, or the file system cannot sync folders.
            Err(error) if is_unable(&error) => Ok(()),
            synced => synced,
        })
}

fn is_unable(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(error.kind(), PermissionDenied | InvalidInput | Unsupported)
}

/// Returns the folder that has the name of this one.
fn parent_of(folder: &Path) -> Option<&Path> {
    let parent = folder.parent()?;
    Some(match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    })
}

/// Returns the folders that have a new entry once `folder`, and those above it that are missing,
/// are made.
pub(super) fn parents_of_missing(folder: &Path) -> Vec<PathBuf> {
    let missing = folder.ancestors().take_while(|folder| !folder.exists());
    let parents = missing.filter_map(parent_of);
    parents.map(Path::to_owned).collect()
}

/// Returns the segment files of a folder with their numbers, ascending.
pub(super) fn segment_files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, OpenError> {
    let io_error = |source| OpenError::io(folder, source);
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).map_err(io_error)? {
        let path = file.map_err(io_error)?.path();
        let stem = path
            .extension()
            .is_some_and(|e| e == "journal")
            .then(|| path.file_stem());
        let number = stem.flatten().and_then(|stem| stem.to_str()?.parse().ok());
        files.extend(number.map(|number| (number, path)));
    }
    files.sort();
    Ok(files)
}

/// The lock of a folder, held until this is dropped.
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Unlocks explicitly. Closing the file is not enough: a process that another thread has just
    /// forked, and that has not called exec yet, has the same file open.
    fn drop(&mut self) {
        // If unlocking fails, the file is closed all the same.
        let _ = self.0.unlock();
    }
}

/// Locks a folder, which is made if it does not exist. Also returns whether other users had rights
/// on it or on a file in it; these rights are removed.
pub(super) fn lock(folder: &Path) -> Result<(Lock, bool), OpenError> {
    let io_error = |source| OpenError::io(folder, source);
    private::create_folder(folder).map_err(io_error)?;
    let mut closed = private::close_to_others(folder).map_err(io_error)?;
    let path = folder.join("lock");
    for (_, file) in segment_files(folder)? {
        closed |= private::close_to_others(&file).map_err(io_error)?;
    }
    if path.exists() {
        closed |= private::close_to_others(&path).map_err(io_error)?;
    }
    let mut lock = lock_file(&path)?;
    if lock.is_none() && in_use::is_held_by_stranger(folder) {
        lock = in_use::replace(folder).map_err(io_error)?;
    }
    match lock {
        Some(lock) => Ok((Lock(lock), closed)),
        None => Err(OpenError::InUse {
            path: folder.to_owned(),
        }),
    }
}

/// Opens the lock file and locks it; `None` if it is locked already.
pub(super) fn lock_file(path: &Path) -> Result<Option<File>, OpenError> {
    let io_error = |source| OpenError::io(path, source);
    let mut options = private::file_options();
    options.write(true).create(true).truncate(false);
    let lock = options.open(path).map_err(io_error)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(source)) => Err(io_error(source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_folder_has_its_name_in_the_one_above() {
        let base = std::env::temp_dir();
        assert!(parents_of_missing(&base).is_empty());
        let name = format!("fanfare-missing-{}", std::process::id());
        let missing = base.join(&name);
        let parents = parents_of_missing(&missing.join("session"));
        assert_eq!(parents, [missing, base]);
        assert_eq!(parents_of_missing(Path::new(&name)), [PathBuf::from(".")]);
    }
}
