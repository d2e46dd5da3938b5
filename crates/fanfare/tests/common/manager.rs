//! A service manager that a program tells how it is.

use super::Folder;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::time::Duration;

/// The socket of a service manager.
pub(crate) struct Manager {
    socket: UnixDatagram,
    path: String,
}

impl Manager {
    /// Opens the socket in this folder.
    pub(crate) fn new(folder: &Folder) -> Self {
        let path = folder.file("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        let patience = Some(Duration::from_secs(60));
        socket.set_read_timeout(patience).unwrap();
        Self { socket, path }
    }

    /// Returns the value of NOTIFY_SOCKET.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// Returns the next datagram.
    pub(crate) fn told(&self) -> String {
        let mut room = [0; 1024];
        loop {
            match self.socket.recv(&mut room) {
                Ok(length) => return String::from_utf8(room[..length].to_vec()).unwrap(),
                // A read with a time-out is not restarted after the process was stopped and
                // continued.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => panic!("nothing is told: {error}"),
            }
        }
    }

    /// Checks that the next datagram says that a reload begins, and when.
    pub(crate) fn is_told_of_a_reload(&self) {
        let told = self.told();
        let time = told.strip_prefix("RELOADING=1\nMONOTONIC_USEC=");
        let time = time.unwrap_or_else(|| panic!("{told}"));
        assert!(time.trim_end().parse::<u64>().is_ok(), "{told}");
    }
}
