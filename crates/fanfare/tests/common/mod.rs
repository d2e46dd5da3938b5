//! The common part of the end-to-end tests: the binary is started, watched, and ended with its
//! test.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod gateway;
pub(crate) mod log;
pub(crate) mod manager;
pub(crate) mod relay;
mod running;

pub(crate) use running::Running;

use serde_json::Value;
use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, ErrorKind, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Returns a command of the binary, with piped streams; the process ends with this test in any
/// case.
pub(crate) fn fanfare(args: &[&str]) -> Command {
    with_program(Command::new(env!("CARGO_BIN_EXE_fanfare")), args)
}

/// Returns a command as [`fanfare`] does, in which SIGHUP has its default action, also if this
/// process ignores it, as under nohup.
pub(crate) fn fanfare_at_terminal(args: &[&str]) -> Command {
    let mut command = with_program(Command::new("env"), &["--default-signal=HUP"]);
    command.arg(env!("CARGO_BIN_EXE_fanfare")).args(args);
    command
}

/// Returns the same for a program that starts the binary.
pub(crate) fn with_program(mut command: Command, args: &[&str]) -> Command {
    command
        .args(args)
        .env("FANFARE_PARENT", std::process::id().to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Returns a command that sends a file of packets to a multicast group, `ADDRESS:PORT`.
pub(crate) fn sending(file: impl AsRef<OsStr>, group: &str) -> Command {
    let (address, port) = group.split_once(':').unwrap();
    let mut command = fanfare(&["fast", "multicast", "-a", address, "-p", port, "-f"]);
    command.arg(file);
    command
}

/// Runs the binary to its end.
pub(crate) fn run(args: &[&str]) -> Said {
    said(&mut fanfare(args))
}

/// Runs a command to its end.
pub(crate) fn said(command: &mut Command) -> Said {
    Running::start(command).end()
}

/// Runs a command to its end, and checks that it succeeds.
pub(crate) fn done(command: &mut Command) -> Said {
    said(command).succeeded()
}

/// Runs the binary, checks for this exit status, and returns its stderr, which is not a panic.
pub(crate) fn told(args: &[&str], status: i32) -> String {
    let said = run(args);
    assert_eq!(said.code, status, "{args:?}: {}", said.err);
    assert!(!said.err.contains("panicked"), "{}", said.err);
    said.err
}

/// Runs the binary, checks for exit status 1 and one sentence on stderr, and returns the sentence.
pub(crate) fn fails(args: &[&str]) -> String {
    let told = told(args, 1);
    assert!(told.starts_with("fanfare: "), "{args:?}: {told}");
    told
}

/// Waits until `holds`, for the effect of another process; fails after a minute.
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < until, "waited 60 s for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The output of a process that has ended, without the lines up to one that was waited for.
#[derive(Debug)]
pub(crate) struct Said {
    /// The exit status; -1 for a process that a signal ended.
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }

    /// Returns stdout as a JSON object.
    pub(crate) fn json(&self) -> Value {
        let parsed = serde_json::from_str(&self.out);
        parsed.unwrap_or_else(|e| panic!("{e}: {}{}", self.out, self.err))
    }

    /// Returns the lines of stdout as JSON values.
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parsed = self.out.lines().map(serde_json::from_str);
        parsed.collect::<Result<_, _>>().unwrap()
    }

    /// Returns the figures on the last line of stdout.
    pub(crate) fn figures(&self) -> Value {
        figures(&self.out)
    }
}

/// Returns the figures in a text whose last line is the JSON object.
pub(crate) fn figures(text: &str) -> Value {
    let line = text.lines().last().unwrap_or_default();
    let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {text}"));
    object["figures"].clone()
}

pub(crate) fn figure(of: &Value, name: &str) -> f64 {
    of["figures"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("no figure {name} in {of}"))
}

/// A folder of one test of this program, initially empty; removed if the test succeeds.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// Creates a folder. Two of one name are two folders: tests run at the same time.
    pub(crate) fn new(test: &str) -> Self {
        Self::in_parent(Path::new(env!("CARGO_TARGET_TMPDIR")), test)
    }

    /// Creates a folder as [`Self::new`], accessible to other users: a clone may be in a private
    /// folder.
    pub(crate) fn for_others(test: &str) -> Self {
        let test = format!("{test}-{}", std::process::id());
        Self::in_parent(&std::env::temp_dir(), &test)
    }

    fn in_parent(parent: &Path, test: &str) -> Self {
        static MADE: Mutex<BTreeMap<String, u32>> = Mutex::new(BTreeMap::new());
        let mut name = format!("{}-{test}", env!("CARGO_CRATE_NAME"));
        let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        let before = made.entry(name.clone()).or_insert(0);
        if *before > 0 {
            name += &format!("-again-{before}");
        }
        *before += 1;
        drop(made);
        let path = parent.join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of a file in it, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Writes a file in it with these contents, and returns its path.
    pub(crate) fn with(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), contents).unwrap();
        self.file(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Reads, and retries if this process is stopped for a while: that interrupts a read with a
/// time-out.
pub(crate) fn receive(from: &mut impl Read, room: &mut [u8]) -> io::Result<usize> {
    loop {
        match from.read(room) {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

/// Sockets that are kept until this program ends, so that no other socket gets their ports.
static KEPT: Mutex<Vec<Box<dyn Any + Send>>> = Mutex::new(Vec::new());

fn keep(socket: impl Any + Send) {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.push(Box::new(socket));
}

/// Returns an address without a listener, now or later, unless the test itself starts one there:
/// the port is taken by a connection whose listener is closed.
pub(crate) fn nobody() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    keep(TcpStream::connect(address).unwrap());
    keep(listener.accept().unwrap());
    address
}

/// Returns two multicast groups of one test, `ADDRESS:PORT`, on a port that is its own.
pub(crate) fn groups() -> [String; 2] {
    static NEXT: AtomicU8 = AtomicU8::new(0);
    let test = NEXT.fetch_add(1, Ordering::Relaxed);
    let mine = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = mine.local_addr().unwrap().port();
    keep(mine);
    ["78", "79"].map(|line| format!("239.255.{line}.{test}:{port}"))
}
