//! `fanfare throughput` from outside: two real processes on loopback.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod bad_input;
mod places;
mod whole;

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No process of these tests runs longer.
const LIMIT: Duration = Duration::from_secs(60);

fn fanfare(args: &[&str]) -> Command {
    with_program(Command::new(env!("CARGO_BIN_EXE_fanfare")), args)
}

fn with_program(mut command: Command, args: &[&str]) -> Command {
    command
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs to the end.
fn run(args: &[&str]) -> Output {
    Running(fanfare(args).spawn().unwrap()).end()
}

/// That exit status, and what it said on stderr.
fn told(args: &[&str], status: i32) -> String {
    let output = run(args);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {told}");
    assert!(!told.contains("panicked"), "{told}");
    told
}

/// The JSON object on stdout.
fn json(output: &Output) -> serde_json::Value {
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"))
}

fn figure(of: &serde_json::Value, name: &str) -> f64 {
    of["figures"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("no figure {name} in {of}"))
}

/// A file of this test run alone.
fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn file(name: &str, content: &str) -> String {
    let path = scratch(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A child that does not outlive its test.
struct Running(Child);

impl Running {
    /// An acceptor, and the port that it listens on.
    fn acceptor(args: &[&str]) -> (Self, String) {
        let all = [&["throughput", "acceptor", "--port", "0"], args].concat();
        let mut child = fanfare(&all).spawn().unwrap();
        let mut line = String::new();
        // Unbuffered behind the line: the rest is read at the end.
        let err = child.stderr.as_mut().unwrap();
        BufReader::with_capacity(1, err)
            .read_line(&mut line)
            .unwrap();
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        assert!(line.starts_with("listening on ") && port != "0", "{line}");
        (Self(child), port)
    }

    fn interrupt(&self) {
        fanfare_engine::stop::interrupt(self.0.id()).unwrap();
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits for its end, not for ever.
    fn end(mut self) -> Output {
        let until = Instant::now() + LIMIT;
        let mut out = self.0.stdout.take().unwrap();
        let mut err = self.0.stderr.take().unwrap();
        let reading = std::thread::spawn(move || {
            let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
            let errors = std::thread::spawn(move || {
                err.read_to_end(&mut stderr).unwrap();
                stderr
            });
            out.read_to_end(&mut stdout).unwrap();
            (stdout, errors.join().unwrap())
        });
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let (stdout, stderr) = reading.join().unwrap();
        Output {
            status,
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
