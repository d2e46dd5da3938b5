//! The fan-out commands, end to end: the real binary, loopback, ports that the kernel picks.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

mod bad_input;
mod whole;

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};

fn fanfare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfare"));
    command
        .args(args)
        .env("FANFARE_PARENT", std::process::id().to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs to the end.
fn run(args: &[&str]) -> Output {
    fanfare(args).output().unwrap()
}

/// Exit status 1 and one sentence on stderr, which is given.
fn fails(args: &[&str]) -> String {
    let output = run(args);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{args:?}: {told}");
    assert!(told.starts_with("fanfare: "), "{args:?}: {told}");
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

/// A child that does not outlive its test.
struct Running(Child);

impl Running {
    fn interrupt(mut self) -> Output {
        fanfare_engine::stop::interrupt(self.0.id()).unwrap();
        let child = std::mem::replace(&mut self.0, fanfare(&["--version"]).spawn().unwrap());
        child.wait_with_output().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
