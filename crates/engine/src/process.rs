//! Child processes: starting them, reading their output, and ending them.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read};
use std::process::{Child, ChildStdin, Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::sys::process;

/// Most bytes kept of one stream until they are read. The rest stays in the pipe, and the process
/// blocks when that is full.
const MOST: usize = 64 << 20;
/// The longest line; a longer one is cut.
const LONGEST: u64 = 16 << 20;
/// The interval at which the end of a process is polled.
const LOOK: Duration = Duration::from_millis(5);

/// An output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// stdout.
    Out,
    /// stderr.
    Err,
}

/// The reason why no line is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Missing {
    /// No line has arrived within the limit.
    #[error("no line within the time limit")]
    Late,
    /// The process has closed the stream: as a rule it has ended.
    #[error("the stream has ended")]
    Ended,
}

/// A child process. Dropping it kills a process that still runs, so that it does not outlive its
/// owner, even if that panics.
///
/// Each piped stream is read by a thread of its own from the start, so that the process never
/// blocks on its output; 64 MiB of each are kept.
#[derive(Debug)]
pub struct Process {
    child: Child,
    kept: Arc<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    lines: Mutex<[Lines; 2]>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Lines {
    waiting: VecDeque<String>,
    bytes: usize,
    is_open: bool,
}

impl Process {
    /// Starts a process. The command determines which streams are piped.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        Ok(Self::watch(command.spawn()?))
    }

    /// Starts a process as [`start`](Self::start) does, which the kernel ends (SIGTERM) if the
    /// calling thread ends, also if this process is killed.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start_tied(command: &mut Command) -> io::Result<Self> {
        process::tie(command);
        Self::start(command)
    }

    /// Takes over a running process, with the streams that have not been taken from it.
    #[must_use]
    pub fn watch(mut child: Child) -> Self {
        let kept = Arc::<Kept>::default();
        if let Some(stream) = child.stdout.take() {
            kept.collect(Stream::Out, stream);
        }
        if let Some(stream) = child.stderr.take() {
            kept.collect(Stream::Err, stream);
        }
        Self { child, kept }
    }

    /// Returns the number of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns its stdin, if that is piped; dropping it closes the stream.
    pub const fn stdin(&mut self) -> &mut Option<ChildStdin> {
        &mut self.child.stdin
    }

    /// Returns the next line of that stream, or of any, with its end. Bytes that are no UTF-8 are
    /// replaced.
    ///
    /// # Errors
    /// No line arrives within `limit`, or at all.
    pub fn next_line(
        &mut self,
        from: Option<Stream>,
        limit: Duration,
    ) -> Result<(Stream, String), Missing> {
        let until = Instant::now() + limit;
        let streams = [Stream::Out, Stream::Err].into_iter();
        let streams = streams.filter(|stream| from.is_none_or(|from| from == *stream));
        let mut lines = self.kept.lock();
        loop {
            for stream in streams.clone() {
                if let Some(line) = lines[stream as usize].take() {
                    self.kept.changed.notify_all();
                    return Ok((stream, line));
                }
            }
            if !streams.clone().any(|stream| lines[stream as usize].is_open) {
                return Err(Missing::Ended);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Missing::Late);
            }
            let waited = self.kept.changed.wait_timeout(lines, left);
            lines = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Waits for a line that `wanted` accepts and passes it without its end; earlier lines are
    /// dropped.
    ///
    /// # Errors
    /// Those of [`next_line`](Self::next_line).
    pub fn wait_line<T>(
        &mut self,
        from: Option<Stream>,
        limit: Duration,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, Missing> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (_, line) = self.next_line(from, left)?;
            if let Some(found) = wanted(line.trim_end()) {
                return Ok(found);
            }
        }
    }

    /// Returns all lines until the stream ends.
    ///
    /// # Errors
    /// The stream does not end within `limit`.
    pub fn rest(&mut self, from: Stream, limit: Duration) -> Result<String, Missing> {
        let (until, mut text) = (Instant::now() + limit, String::new());
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next_line(Some(from), left) {
                Ok((_, line)) => text += &line,
                Err(Missing::Ended) => return Ok(text),
                Err(Missing::Late) => return Err(Missing::Late),
            }
        }
    }

    /// Waits for the process to end; `None` if that takes longer than `limit`.
    ///
    /// # Errors
    /// The kernel does not report the status.
    pub fn wait(&mut self, limit: Duration) -> io::Result<Option<ExitStatus>> {
        let until = Instant::now() + limit;
        loop {
            let status = self.child.try_wait()?;
            if status.is_some() || Instant::now() >= until {
                return Ok(status);
            }
            thread::sleep(LOOK);
        }
    }

    /// Sends SIGTERM, and kills the process if it has not ended within `patience`.
    ///
    /// # Errors
    /// The kernel does not report the status.
    pub fn end(&mut self, patience: Duration) -> io::Result<ExitStatus> {
        // The process may be gone.
        let _ = process::signal(self.id(), libc::SIGTERM);
        match self.wait(patience)? {
            Some(status) => Ok(status),
            None => self.kill(),
        }
    }

    /// Kills the process.
    ///
    /// # Errors
    /// The kernel does not report the status.
    pub fn kill(&mut self) -> io::Result<ExitStatus> {
        self.child.kill()?;
        self.child.wait()
    }

    /// Sends SIGINT, as Ctrl-C does.
    ///
    /// # Errors
    /// The process is gone.
    pub fn interrupt(&self) -> io::Result<()> {
        process::signal(self.id(), libc::SIGINT)
    }

    /// Returns whether the process has a handler for SIGINT, or has ended; `true` where that is
    /// unknown. A process that has hardly begun would die of the signal silently.
    #[must_use]
    pub fn catches_interrupts(&self) -> bool {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.id()));
        let status = status.unwrap_or_default();
        let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        let has_ended = line("State:").is_some_and(|state| state.trim().starts_with('Z'));
        let caught = line("SigCgt:").and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
        // Signal 2 is bit 1.
        has_ended || caught.is_none_or(|set| set & 2 != 0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.kill();
        }
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, [Lines; 2]> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the lines of `stream`, on a thread of its own, until it ends.
    fn collect(self: &Arc<Self>, stream: Stream, from: impl Read + Send + 'static) {
        self.lock()[stream as usize].is_open = true;
        let kept = Arc::downgrade(self);
        thread::spawn(move || {
            let (mut reader, mut line) = (BufReader::new(from), Vec::new());
            loop {
                line.clear();
                let read = reader.by_ref().take(LONGEST).read_until(b'\n', &mut line);
                let is_over = !read.is_ok_and(|count| count > 0);
                let mut line = (!is_over).then(|| String::from_utf8_lossy(&line).into_owned());
                // Until a line is taken, or the reader is gone.
                while let Some(kept) = kept.upgrade() {
                    if kept.put(stream, &mut line) {
                        break;
                    }
                }
                if is_over || kept.strong_count() == 0 {
                    return;
                }
            }
        });
    }

    /// Stores a line, or the end of the stream; returns `false` if the buffer remained full.
    fn put(&self, stream: Stream, line: &mut Option<String>) -> bool {
        let mut lines = self.lock();
        if line.is_some() && lines[stream as usize].bytes > MOST {
            drop(self.changed.wait_timeout(lines, Duration::from_secs(1)));
            return false;
        }
        let lines = &mut lines[stream as usize];
        match line.take() {
            Some(line) => {
                lines.bytes += line.len();
                lines.waiting.push_back(line);
            }
            None => lines.is_open = false,
        }
        self.changed.notify_all();
        true
    }
}

impl Lines {
    fn take(&mut self) -> Option<String> {
        let line = self.waiting.pop_front()?;
        self.bytes -= line.len();
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn shell(script: &str) -> Process {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::piped());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Process::start(&mut command).unwrap()
    }

    #[test]
    fn lines_of_one_stream_wait_while_the_other_is_read() {
        let mut process = shell("echo one; echo two >&2; echo three; exit 3");
        let found = process.wait_line(Some(Stream::Err), LIMIT, |line| Some(line.to_owned()));
        assert_eq!(found.as_deref(), Ok("two"));
        let found = process.wait_line(None, LIMIT, |line| (line == "three").then_some(()));
        assert_eq!(found, Ok(()));
        assert_eq!(process.rest(Stream::Out, LIMIT).as_deref(), Ok(""));
        assert_eq!(process.next_line(None, LIMIT), Err(Missing::Ended));
        assert_eq!(process.wait(LIMIT).unwrap().unwrap().code(), Some(3));
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_nothing_of_it_is_lost() {
        let size = 2 * MOST + 17;
        let mut process = shell(&format!("yes $(printf %0999d 0) | head -c {size}"));
        // The process cannot end before its output is read.
        assert_eq!(process.wait(Duration::from_millis(300)).unwrap(), None);
        let kept = process.kept.lock()[Stream::Out as usize].bytes;
        assert!(kept <= MOST + 1000, "{kept}");
        assert_eq!(process.rest(Stream::Out, LIMIT).unwrap().len(), size);
    }

    #[test]
    fn one_that_does_not_want_to_end_is_killed() {
        use std::os::unix::process::ExitStatusExt;
        let mut process = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done");
        let ready = process.wait_line(None, LIMIT, |line| (line == "ready").then_some(()));
        assert_eq!(ready, Ok(()));
        let status = process.end(Duration::from_millis(50)).unwrap();
        assert_eq!(status.signal(), Some(9));
        let mut process = shell("read line");
        assert_eq!(process.end(LIMIT).unwrap().signal(), Some(15));
    }

    #[test]
    fn a_panic_leaves_none_behind() {
        let (send, number) = std::sync::mpsc::channel();
        let watched = thread::spawn(move || {
            let process = shell("read line");
            send.send(process.id()).unwrap();
            panic!("as a test that fails");
        });
        let number = number.recv().unwrap();
        assert!(watched.join().is_err());
        assert!(!process::exists(number));
    }
}
