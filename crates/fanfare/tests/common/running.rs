//! A process that runs during its test.

use super::Said;
use fanfare_engine::process::{Process, Stream};
use std::io::{BufReader, Write};
use std::process::{ChildStdin, ChildStdout, Command};
use std::time::{Duration, Instant};

/// The longest wait for a process of these tests.
const LIMIT: Duration = Duration::from_secs(120);

/// A child that does not outlive its test.
pub(crate) struct Running(Process);

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        Self(Process::start(command).unwrap())
    }

    /// Starts one whose stdout the test reads itself: unread output fills the pipe, and blocks the
    /// process.
    pub(crate) fn start_unread(command: &mut Command) -> (Self, BufReader<ChildStdout>) {
        let mut child = command.spawn().unwrap();
        let unread = BufReader::new(child.stdout.take().unwrap());
        (Self(Process::watch(child)), unread)
    }

    pub(crate) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits for a line on stdout that contains `what`, and returns it.
    pub(crate) fn prints(&mut self, what: &str) -> String {
        self.wait(what, Stream::Out, Stream::Err)
    }

    /// Waits for a line on stderr that contains `what`, and returns it.
    pub(crate) fn tells(&mut self, what: &str) -> String {
        self.wait(what, Stream::Err, Stream::Out)
    }

    /// Waits for a line on stdout or stderr that `wanted` accepts.
    pub(crate) fn says(&mut self, wanted: impl Fn(&str) -> bool, what: &str) {
        let found = |line: &str| wanted(line).then_some(());
        let found = self.0.wait_line(None, LIMIT, found);
        found.unwrap_or_else(|missing| panic!("no {what:?}: {missing}"));
    }

    /// Returns its stdin, which must be piped.
    pub(crate) fn stdin(&mut self) -> ChildStdin {
        self.0.stdin().take().unwrap()
    }

    /// Writes a text to its stdin, which must be piped, and closes it.
    pub(crate) fn reads(&mut self, text: impl Into<Vec<u8>>) {
        let (mut stdin, text) = (self.stdin(), text.into());
        // A process that fails to start does not read.
        std::thread::spawn(move || drop(stdin.write_all(&text)));
    }

    /// Sends SIGINT to the process and to all of its group, as Ctrl-C on a terminal does, once the
    /// process has a handler: before that it ends without a report, like any program.
    pub(crate) fn interrupt(&self) {
        let until = Instant::now() + LIMIT;
        while !self.0.catches_interrupts() {
            assert!(Instant::now() < until, "it does not catch Ctrl-C");
            std::thread::sleep(Duration::from_millis(2));
        }
        self.signal("INT");
    }

    /// Sends a signal to the process and to all of its group.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} -{}", self.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.unwrap().success());
    }

    /// Kills the process, like a failure of its machine.
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
    }

    /// Waits for its end, within the limit. Returns the output after the last line that was waited
    /// for.
    pub(crate) fn end(self) -> Said {
        self.end_within(LIMIT)
    }

    /// Waits for its end as [`Self::end`], within a limit of its own.
    pub(crate) fn end_within(mut self, limit: Duration) -> Said {
        let [out, err] = [Stream::Out, Stream::Err].map(|stream| self.rest(stream, limit));
        let status = self.0.wait(limit).unwrap();
        let status = status.unwrap_or_else(|| panic!("it does not end"));
        let code = status.code().unwrap_or(-1);
        Said { code, out, err }
    }

    fn wait(&mut self, what: &str, stream: Stream, other: Stream) -> String {
        let wanted = |line: &str| line.contains(what).then(|| line.to_owned());
        let found = self.0.wait_line(Some(stream), LIMIT, wanted);
        found.unwrap_or_else(|missing| {
            let rest = self.rest(other, LIMIT);
            panic!("no {what:?}: {missing}: {rest}")
        })
    }

    fn rest(&mut self, stream: Stream, limit: Duration) -> String {
        let rest = self.0.rest(stream, limit);
        rest.unwrap_or_else(|missing| panic!("{stream:?}: {missing}"))
    }
}
