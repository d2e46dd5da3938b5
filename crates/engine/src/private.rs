//! Files and folders with rights for their owner alone: stores and logs hold messages.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The rights of other users on a file or folder.
const OTHERS: u32 = 0o077;

/// Makes a folder with mode 0700, and those above it. Existing folders do not change.
///
/// # Errors
/// The system's, where a folder cannot be made.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Returns options that make a file with mode 0600.
#[must_use]
pub fn file_options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// Removes the rights of other users on a file or folder; returns whether they had any. If that
/// fails (another owner, a file system without rights), they keep them.
pub(crate) fn close_to_others(path: &Path) -> io::Result<bool> {
    let closed = without_others(&fs::metadata(path)?);
    Ok(closed.is_some_and(|closed| fs::set_permissions(path, closed).is_ok()))
}

/// Removes the rights of other users on an open file, whatever its name is by now. If that fails,
/// they keep them.
///
/// # Errors
/// The system's, where the rights cannot be read.
pub fn close_file_to_others(file: &File) -> io::Result<()> {
    if let Some(closed) = without_others(&file.metadata()?) {
        let _ = file.set_permissions(closed);
    }
    Ok(())
}

/// Returns the permissions without the rights of other users; `None` if they have none.
fn without_others(of: &Metadata) -> Option<Permissions> {
    let mode = of.permissions().mode();
    (mode & OTHERS != 0).then(|| Permissions::from_mode(mode & 0o7777 & !OTHERS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_the_owners_and_what_was_open_is_closed() {
        let base = std::env::temp_dir().join(format!("fanfare-private-{}", std::process::id()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = base.join("inner");
        create_folder(&folder).unwrap();
        assert_eq!((mode(&base), mode(&folder)), (0o700, 0o700));
        let file = folder.join("file");
        file_options().write(true).create(true).open(&file).unwrap();
        assert_eq!(mode(&file), 0o600);
        assert!(!close_to_others(&file).unwrap());
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(close_to_others(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let (open, renamed) = (File::open(&file).unwrap(), folder.join("renamed"));
        fs::rename(&file, &renamed).unwrap();
        close_file_to_others(&open).unwrap();
        assert_eq!(mode(&renamed), 0o600);
        fs::remove_dir_all(&base).unwrap();
    }
}
