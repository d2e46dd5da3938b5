//! A process that runs beside its test.

use super::Said;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// No process of these tests is waited for longer.
const LIMIT: Duration = Duration::from_secs(120);

/// A child that does not outlive its test.
pub(crate) struct Running {
    child: Child,
    out: Lines,
    err: Lines,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command.spawn().unwrap();
        let out = Lines::of(child.stdout.take());
        let err = Lines::of(child.stderr.take());
        Self { child, out, err }
    }

    /// One whose stdout the test reads itself: what it does not read fills the pipe, and stops
    /// the process.
    pub(crate) fn start_unread(command: &mut Command) -> (Self, BufReader<ChildStdout>) {
        let mut child = command.spawn().unwrap();
        let unread = BufReader::new(child.stdout.take().unwrap());
        let out = Lines::of(None::<ChildStdout>);
        let err = Lines::of(child.stderr.take());
        (Self { child, out, err }, unread)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for a line on stdout with this in it, and gives it.
    pub(crate) fn prints(&mut self, what: &str) -> String {
        self.out.wait(what, &mut self.err)
    }

    /// Waits for a line on stderr with this in it, and gives it.
    pub(crate) fn tells(&mut self, what: &str) -> String {
        self.err.wait(what, &mut self.out)
    }

    /// Its stdin, which must be piped.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    /// What it reads on stdin, which must be piped, and then the end.
    pub(crate) fn reads(&mut self, text: impl Into<Vec<u8>>) {
        let (mut stdin, text) = (self.stdin(), text.into());
        // One that cannot start does not read.
        std::thread::spawn(move || drop(stdin.write_all(&text)));
    }

    /// Ctrl-C as a terminal gives it, to the process and to all of its group, but not before the
    /// process catches it: until then it ends without a word, as any program does.
    pub(crate) fn interrupt(&self) {
        let until = Instant::now() + LIMIT;
        while !self.catches_interrupts() {
            assert!(Instant::now() < until, "it does not catch Ctrl-C");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.signal("INT");
    }

    /// Whether it has a handler for SIGINT, or has ended.
    fn catches_interrupts(&self) -> bool {
        let path = format!("/proc/{}/status", self.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let has_ended = line("State:").is_some_and(|state| state.trim().starts_with('Z'));
        let caught = line("SigCgt:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        has_ended || caught.is_some_and(|set| set & 2 != 0)
    }

    /// A signal to the process and to all of its group.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} -{}", self.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.unwrap().success());
    }

    /// As if its machine had gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end, not for ever; what it said that was not waited for.
    pub(crate) fn end(mut self) -> Said {
        let (out, err) = (self.out.rest(), self.err.rest());
        let code = self.status().code().unwrap_or(-1);
        Said { code, out, err }
    }

    fn status(&mut self) -> ExitStatus {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(Instant::now() < until, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A stream, read by a thread so that its pipe never fills.
struct Lines(Receiver<String>);

impl Lines {
    fn of(stream: Option<impl Read + Send + 'static>) -> Self {
        let (send, receive) = channel();
        let read = move |stream| {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while stream.read_until(b'\n', &mut line).is_ok_and(|n| n > 0)
                && send.send(String::from_utf8_lossy(&line).into()).is_ok()
            {
                line.clear();
            }
        };
        if let Some(stream) = stream {
            std::thread::spawn(move || read(stream));
        }
        Self(receive)
    }

    /// The next line with its end; none at the end of the stream.
    fn next(&mut self, until: Instant) -> Option<String> {
        let left = until.saturating_duration_since(Instant::now());
        match self.0.recv_timeout(left) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it says nothing, and does not end"),
        }
    }

    fn wait(&mut self, what: &str, other: &mut Self) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            match self.next(until) {
                Some(line) if line.contains(what) => return line.trim_end().to_owned(),
                Some(_) => {}
                None => panic!("it ended without {what:?}: {}", other.rest()),
            }
        }
    }

    fn rest(&mut self) -> String {
        let until = Instant::now() + LIMIT;
        std::iter::from_fn(|| self.next(until)).collect()
    }
}
