//! The listening socket, and its file.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A listening Unix socket with rights for its owner alone. Dropping it removes its file.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    /// The inode of its file: another file at the path is left alone.
    inode: u64,
}

impl Socket {
    /// Listens at `path`, without waiting; the file has rights for its owner alone from the
    /// beginning. A socket without a listener is replaced.
    ///
    /// # Errors
    /// The path is another file, or a process listens there, or the system reports an error.
    pub fn listen(path: &Path) -> io::Result<Self> {
        check_vacant(path)?;
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let beside = PathBuf::from(beside);
        // Left behind by a process of the same number.
        let _ = fs::remove_file(&beside);
        let listener = UnixListener::bind(&beside)?;
        let placed = fs::set_permissions(&beside, fs::Permissions::from_mode(0o600))
            .and_then(|()| listener.set_nonblocking(true))
            .and_then(|()| fs::metadata(&beside))
            .and_then(|own| fs::rename(&beside, path).map(|()| own.ino()));
        match placed {
            Ok(inode) => Ok(Self {
                listener,
                path: path.to_owned(),
                inode,
            }),
            Err(error) => {
                let _ = fs::remove_file(&beside);
                Err(error)
            }
        }
    }

    /// Returns the listener of connections.
    #[must_use]
    pub const fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

/// Checks that there is no file, or a socket without a listener.
fn check_vacant(path: &Path) -> io::Result<()> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let in_use = |why: &str| Err(io::Error::new(io::ErrorKind::AddrInUse, why));
    if !found.file_type().is_socket() {
        return in_use("a file exists there that is not a socket");
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        Err(error) => Err(error),
        Ok(_) => in_use("another process listens on this socket"),
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let is_own = |found: &fs::Metadata| found.ino() == self.inode;
        if fs::symlink_metadata(&self.path).is_ok_and(|found| is_own(&found)) {
            let _ = fs::remove_file(&self.path);
        }
    }
}
