//! The listening socket, and its file.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
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
        // Longer ones cannot be reached.
        SocketAddr::from_pathname(path)?;
        check_vacant(path)?;
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".{}", std::process::id()));
        let folder = PathBuf::from(beside);
        // Left behind by a process of the same number.
        clear(&folder);
        // Nobody else reaches the socket in it before the socket has its rights.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let placed = place(&folder, path);
        clear(&folder);
        let (listener, inode) = placed?;
        Ok(Self {
            listener,
            path: path.to_owned(),
            inode,
        })
    }

    /// Returns the listener of connections.
    #[must_use]
    pub const fn listener(&self) -> &UnixListener {
        &self.listener
    }
}

/// The name of a socket before it is moved to its path.
const NAME: &str = "s";

/// Listens in the folder, and moves the file to `path`. Returns the inode of the file, too.
fn place(folder: &Path, path: &Path) -> io::Result<(UnixListener, u64)> {
    let listener = bind(folder)?;
    let inside = folder.join(NAME);
    fs::set_permissions(&inside, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    let inode = fs::metadata(&inside)?.ino();
    fs::rename(&inside, path)?;
    Ok((listener, inode))
}

/// Listens in the folder, also where the path there is too long for a socket.
fn bind(folder: &Path) -> io::Result<UnixListener> {
    match UnixListener::bind(folder.join(NAME)) {
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            let folder = File::open(folder)?;
            UnixListener::bind(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()))
        }
        bound => bound,
    }
}

/// Removes a folder in which a socket was made, or the file that earlier versions made in its
/// place.
fn clear(folder: &Path) {
    // Also a link of another user, which would lead elsewhere.
    let _ = fs::remove_file(folder);
    let _ = fs::remove_file(folder.join(NAME));
    let _ = fs::remove_dir(folder);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_is_made_in_a_folder_of_its_own_of_which_nothing_is_left() {
        let base = std::env::temp_dir().join(format!("fanfare-socket-{}", std::process::id()));
        fs::create_dir_all(&base).unwrap();
        let path = base.join("c.sock");
        // As if a process of this number had been killed meanwhile.
        let left = base.join(format!("c.sock.{}", std::process::id()));
        fs::create_dir(&left).unwrap();
        fs::write(left.join(NAME), "").unwrap();
        let socket = Socket::listen(&path).unwrap();
        let names = || {
            let files = fs::read_dir(&base).unwrap();
            files.map(|file| file.unwrap().file_name())
        };
        assert_eq!(names().collect::<Vec<_>>(), ["c.sock"]);
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        UnixStream::connect(&path).unwrap();
        let why = Socket::listen(&path).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::AddrInUse);
        drop(socket);
        // As an earlier version left it.
        fs::write(&left, "").unwrap();
        drop(Socket::listen(&path).unwrap());
        assert_eq!(names().count(), 0);
        // The longest path, and one beyond it.
        let own = base.as_os_str().len() + "/".len();
        let path = base.join("x".repeat(107 - own));
        let socket = Socket::listen(&path).unwrap();
        UnixStream::connect(&path).unwrap();
        drop(socket);
        let why = Socket::listen(&base.join("x".repeat(108 - own))).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::InvalidInput);
        assert_eq!(names().count(), 0);
        fs::remove_dir_all(&base).unwrap();
    }
}
