//! A child process, its connection and its reports.

use super::child::{ADDRESS, DURABILITY, FOLDER, REPORT};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

/// A running child. Dropping it kills the child.
pub(crate) struct Victim {
    child: Child,
    reports: Receiver<Vec<u8>>,
    reader: Option<JoinHandle<()>>,
    unread: Vec<u8>,
    /// Everything that it wrote to the pipe, in case it fails by itself.
    all: Vec<u8>,
    pub(crate) stream: Option<TcpStream>,
}

/// A report of the `child`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    pub(crate) what: u8,
    pub(crate) seq: u64,
    pub(crate) crc: u32,
}

impl Victim {
    pub(crate) fn start(folder: &Path, listener: &TcpListener, durability: &str) -> Self {
        let address = listener.local_addr().unwrap().to_string();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["child::child", "--exact", "--nocapture", "--test-threads=1"])
            .env(FOLDER, folder)
            .env(ADDRESS, address)
            .env(DURABILITY, durability)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut pipe = child.stderr.take().unwrap();
        let (sender, reports) = channel();
        let reader = std::thread::spawn(move || {
            let mut room = vec![0; 16 << 10];
            while let Ok(count @ 1..) = pipe.read(&mut room) {
                if sender.send(room[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            reports,
            reader: Some(reader),
            unread: Vec::new(),
            all: Vec::new(),
            stream: None,
        }
    }

    /// Checks that it still runs; it ends only when it is killed.
    pub(crate) fn check(&mut self) {
        if let Some(status) = self.child.try_wait().unwrap() {
            self.wait_for_reports();
            let last = self.all.len().saturating_sub(2_000);
            let said = String::from_utf8_lossy(&self.all[last..]);
            panic!("the child ended with {status}: {said}");
        }
    }

    /// Kills the process with SIGKILL. The bytes that it wrote to the pipe and the socket remain.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.wait_for_reports();
    }

    fn wait_for_reports(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.join().unwrap();
        }
        self.take_parts();
    }

    fn take_parts(&mut self) {
        while let Ok(part) = self.reports.try_recv() {
            self.all.extend_from_slice(&part);
            self.unread.extend(part);
        }
    }

    /// Returns the reports received since the last call.
    pub(crate) fn reports(&mut self) -> Vec<Report> {
        self.take_parts();
        let whole = self.unread.len() / REPORT * REPORT;
        let bytes: Vec<u8> = self.unread.drain(..whole).collect();
        let report = |bytes: &[u8]| Report {
            what: bytes[0],
            seq: u64::from_le_bytes(bytes[1..9].try_into().unwrap()),
            crc: u32::from_le_bytes(bytes[9..].try_into().unwrap()),
        };
        bytes.chunks_exact(REPORT).map(report).collect()
    }

    /// Accepts its connection if it has one by now. Returns whether it has.
    pub(crate) fn accept(&mut self, listener: &TcpListener) -> bool {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true).unwrap();
                stream.set_nodelay(true).unwrap();
                self.stream = Some(stream);
                true
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// Appends the bytes that have arrived; returns their number.
    pub(crate) fn read(&mut self, into: &mut Vec<u8>) -> usize {
        let Some(stream) = &mut self.stream else {
            return 0;
        };
        let mut room = [0; 16 << 10];
        match stream.read(&mut room) {
            Ok(count) => {
                into.extend_from_slice(&room[..count]);
                count
            }
            // A reset: the killed process had not read everything.
            Err(_) => 0,
        }
    }

    /// Writes bytes; errors of a process that is gone are ignored.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        if let Some(stream) = &mut self.stream {
            let _ = stream.write_all(bytes);
        }
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
