//! What the end-to-end tests share: the binary started, watched, and ended with its test.
#![allow(dead_code, reason = "each test program uses a part")]

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// No process of these tests runs longer.
const LIMIT: Duration = Duration::from_secs(60);

/// The binary, its streams piped; it ends with this test however that ends.
pub(crate) fn fanfare(args: &[&str]) -> Command {
    with_program(Command::new(env!("CARGO_BIN_EXE_fanfare")), args)
}

/// The same for a program that starts the binary.
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

/// Runs to the end.
pub(crate) fn run(args: &[&str]) -> Output {
    Running(fanfare(args).spawn().unwrap()).end()
}

/// That exit status, and what it said on stderr, which is no panic.
pub(crate) fn told(args: &[&str], status: i32) -> String {
    let output = run(args);
    let told = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(status), "{args:?}: {told}");
    assert!(!told.contains("panicked"), "{told}");
    told
}

/// Exit status 1 and one sentence on stderr, which is given.
pub(crate) fn fails(args: &[&str]) -> String {
    let told = told(args, 1);
    assert!(told.starts_with("fanfare: "), "{args:?}: {told}");
    told
}

/// The JSON object on stdout.
pub(crate) fn json(output: &Output) -> serde_json::Value {
    let told = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {told}"))
}

pub(crate) fn figure(of: &serde_json::Value, name: &str) -> f64 {
    of["figures"][name]
        .as_f64()
        .unwrap_or_else(|| panic!("no figure {name} in {of}"))
}

/// A file of this test run alone.
pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(std::process::id().to_string());
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// The path of such a file with this content.
pub(crate) fn file(name: &str, content: impl AsRef<[u8]>) -> String {
    let path = scratch(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A child that does not outlive its test.
pub(crate) struct Running(pub(crate) Child);

impl Running {
    /// Ctrl-C as a terminal gives it: to the process and to all of its group.
    pub(crate) fn interrupt(&self) {
        let kill = format!("kill -INT -{}", self.0.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.unwrap().success());
    }

    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits for its end, not for ever; what it said on the streams that nobody took.
    pub(crate) fn end(mut self) -> Output {
        let until = Instant::now() + LIMIT;
        let out = all_of(self.0.stdout.take());
        let err = all_of(self.0.stderr.take());
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let (stdout, stderr) = (out.join().unwrap(), err.join().unwrap());
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

/// Reads a stream in a thread of its own, so that its pipe never fills.
fn all_of(stream: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        if let Some(mut stream) = stream {
            stream.read_to_end(&mut all).unwrap();
        }
        all
    })
}
