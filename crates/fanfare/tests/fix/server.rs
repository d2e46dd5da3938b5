//! The acceptor as a process of its own, and a counterparty on a plain socket.

use crate::common::{Folder, Running, fanfare, receive};
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// `fanfare fix acceptor --echo`, killed at the end of the test.
pub(crate) struct Server {
    pub(crate) running: Running,
    pub(crate) address: SocketAddr,
    _folder: Folder,
}

impl Server {
    /// Starts the acceptor with these settings and waits until it listens.
    pub(crate) fn start(test: &str, settings: &str) -> Self {
        Self::with(test, settings, &["--echo", "--quiet"])
    }

    /// Starts it with these options too.
    pub(crate) fn with(test: &str, settings: &str, options: &[&str]) -> Self {
        let folder = Folder::new(&format!("server-{test}"));
        let path = folder.with("settings.cfg", settings);
        let args = [&["fix", "acceptor", "--config", &path], options].concat();
        let mut running = Running::start(&mut fanfare(&args));
        let line = running.prints("listening on ");
        let address = line.split([' ', ',']).nth(2).unwrap_or_default();
        let address = address.parse().unwrap_or_else(|_| panic!("{line}"));
        Self {
            running,
            address,
            _folder: folder,
        }
    }
}

/// A connection to the server.
pub(crate) struct Peer {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Peer {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        Self::of(stream)
    }

    /// Connects to an address that may not have a listener yet.
    pub(crate) fn try_connect(address: SocketAddr) -> Option<Self> {
        TcpStream::connect(address).ok().map(Self::of)
    }

    /// Returns another handle of the same connection, with an empty buffer.
    pub(crate) fn clone(&self) -> Self {
        Self::of(self.stream.try_clone().unwrap())
    }

    /// Wraps a connection.
    pub(crate) fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let received = Vec::new();
        Self { stream, received }
    }

    /// Sends a text unchanged, except `|` for SOH.
    pub(crate) fn send(&mut self, text: &str) -> Result<(), String> {
        let bytes = text.replace('|', "\x01");
        let sent = self.stream.write_all(bytes.as_bytes());
        sent.map_err(|error| format!("cannot send: {error}"))
    }

    /// Returns the next message, `|` for SOH; `None` when the server has closed.
    pub(crate) fn receive(&mut self) -> Result<Option<String>, String> {
        loop {
            let text = String::from_utf8_lossy(&self.received).replace('\x01', "|");
            if let Some(at) = text.find("|10=").filter(|at| text.len() >= at + 8) {
                self.received.drain(..at + 8);
                return Ok(Some(text[..at + 8].to_owned()));
            }
            let mut room = [0; 4096];
            match receive(&mut self.stream, &mut room) {
                Ok(0) if text.is_empty() => return Ok(None),
                Ok(0) => return Err(format!("closed in the middle of {text}")),
                Ok(count) => self.received.extend_from_slice(&room[..count]),
                Err(error) => return Err(format!("nothing came: {error}")),
            }
        }
    }
}

/// Waits until the server has closed too: its session is then free for the next connection.
impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut self.stream, &mut std::io::sink());
    }
}
