//! Files and folders for the owner alone: stores and logs hold what was sent and received.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// What others may do with a file or folder.
const OTHERS: u32 = 0o077;

/// Makes a folder, and those above it, with mode 0700. Existing folders do not change.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Options that make a file with mode 0600.
pub(crate) fn file_options() -> OpenOptions {
    let mut options = File::options();
    options.mode(0o600);
    options
}

/// Takes the rights on a file or folder away from others; returns whether they had any. If that
/// cannot be done (another owner, a file system without rights), they keep them.
pub(crate) fn close_to_others(path: &Path) -> io::Result<bool> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & OTHERS == 0 {
        return Ok(false);
    }
    let closed = fs::Permissions::from_mode(mode & 0o7777 & !OTHERS);
    let set = fs::set_permissions(path, closed);
    Ok(set.is_ok())
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
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(close_to_others(&file).unwrap());
        assert_eq!(mode(&file), 0o600);
        fs::remove_dir_all(&base).unwrap();
    }
}
