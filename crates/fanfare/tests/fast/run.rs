//! Starting the binary, and a folder for each test.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub(crate) fn fanfare(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_fanfare"));
    command.arg("fast").args(args).stdin(Stdio::null());
    command.env("FANFARE_PARENT", std::process::id().to_string());
    command
}

/// What a run that ended said.
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    fn new(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// The figures on stdout.
    pub(crate) fn figures(&self) -> Value {
        figures(&self.out)
    }

    pub(crate) fn succeeded(self) -> Self {
        assert_eq!(self.code, 0, "{}{}", self.out, self.err);
        self
    }
}

/// The figures in a text whose last line is the JSON object.
pub(crate) fn figures(text: &str) -> Value {
    let line = text.lines().last().unwrap_or_default();
    let object: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {text}"));
    object["figures"].clone()
}

/// Runs to the end.
pub(crate) fn run(args: &[&str]) -> Said {
    Said::new(fanfare(args).output().unwrap())
}

/// A run that goes on; killed if the test ends before it.
pub(crate) struct Running(Option<Child>);

impl Running {
    /// Starts, and waits for the lines of stderr that say it receives.
    pub(crate) fn receiving(args: &[&str], lines: usize) -> Self {
        let mut command = fanfare(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        let mut ready = 0;
        while ready < lines {
            line.clear();
            assert!(err.read_line(&mut line).unwrap() > 0, "ended early");
            ready += usize::from(line.starts_with("receiving"));
        }
        // The rest is read so that the pipe does not fill.
        std::thread::spawn(move || err.read_to_string(&mut String::new()));
        Self(Some(child))
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.as_ref().unwrap().id()
    }

    /// Waits for the end.
    pub(crate) fn said(mut self) -> Said {
        let child = self.0.take().unwrap();
        Said::new(child.wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A folder of this test's own, empty.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Self {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fast-{test}"));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The path of a file in it, as text.
    pub(crate) fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// A file in it with these contents.
    pub(crate) fn with(&self, name: &str, contents: impl AsRef<[u8]>) -> String {
        std::fs::write(self.0.join(name), contents).unwrap();
        self.file(name)
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.0.join(name)).unwrap()
    }
}
