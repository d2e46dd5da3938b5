//! Other runs of this binary, started and watched by a command that needs several processes.

use anyhow::{Context, Result, anyhow, bail};
use fanfare_engine::stop::{Stop, end_with_parent};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// Lines of stderr that are kept for the error message of a child that failed.
const LAST_WORDS: usize = 5;

/// Who starts this binary as a part of itself puts its own process number here: then no kill,
/// of whatever kind, leaves the part behind.
pub(crate) const PARENT: &str = "FANFARE_PARENT";

/// Ties this process to the life of the one named in [`PARENT`], if that is what started it;
/// `false` when it is named but gone.
pub(crate) fn parent_is_alive() -> bool {
    let parent = std::env::var(PARENT).ok();
    match parent.and_then(|number| number.parse().ok()) {
        // Where the kernel cannot tie them, the part runs as any other.
        Some(parent) => end_with_parent(parent).unwrap_or(true),
        None => true,
    }
}

/// How often it is looked whether Ctrl-C was pressed.
const LOOK: Duration = Duration::from_millis(50);

/// How long a child may take until it catches Ctrl-C.
const BEGINS: Duration = Duration::from_secs(10);

/// A child process whose lines arrive as it prints them. Dropped while it runs, it is killed: no
/// process outlives the command that started it.
pub(crate) struct Fanfare {
    name: String,
    child: Child,
    lines: Receiver<Line>,
    /// All of stdout so far.
    output: String,
    last_words: VecDeque<String>,
    /// Ctrl-C: the child is told once.
    stop: Stop,
    /// Since when it should be told.
    asked: Option<Instant>,
    told: bool,
}

enum Line {
    Out(String),
    Err(String),
}

impl Fanfare {
    /// Starts this same binary with `args`. Its stdin is empty. When `stop` is raised while
    /// somebody waits for it, it is interrupted.
    pub(crate) fn start(args: &[&str], stop: &Stop) -> Result<Self> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        let name = format!("fanfare {}", args.join(" "));
        let mut child = Command::new(program)
            .args(args)
            .env(PARENT, std::process::id().to_string())
            // Ctrl-C of a terminal reaches this process alone, which passes it on in its order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start `{name}`"))?;
        let (sender, lines) = mpsc::channel();
        if let Some(out) = child.stdout.take() {
            forward(out, sender.clone(), Line::Out);
        }
        if let Some(err) = child.stderr.take() {
            forward(err, sender, Line::Err);
        }
        Ok(Self {
            name,
            child,
            lines,
            output: String::new(),
            last_words: VecDeque::new(),
            stop: stop.clone(),
            asked: None,
            told: false,
        })
    }

    /// Waits for a line of stdout or stderr that `wanted` takes.
    pub(crate) fn wait_line<T>(
        &mut self,
        limit: Duration,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next_line(left) {
                Ok(text) => {
                    if let Some(found) = wanted(&text) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    bail!("`{}` did not get ready in {} s", self.name, limit.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.ended_early()),
            }
        }
    }

    /// Waits for its end and gives all that it printed on stdout.
    ///
    /// # Errors
    /// It ended with another status than 0, or did not end within `limit` (then it is killed).
    pub(crate) fn finish(mut self, limit: Duration) -> Result<String> {
        let status = self.end(limit)?;
        if status.success() {
            Ok(std::mem::take(&mut self.output))
        } else {
            Err(self.failed(status))
        }
    }

    /// As `finish`, for a command whose figures say what is wrong: any status will do as long as
    /// it printed something.
    pub(crate) fn finish_any(mut self, limit: Duration) -> Result<String> {
        let status = self.end(limit)?;
        if self.output.is_empty() {
            return Err(self.failed(status));
        }
        Ok(std::mem::take(&mut self.output))
    }

    /// As `finish_any`; gives its last words on stderr too.
    pub(crate) fn finish_telling(mut self, limit: Duration) -> Result<(String, String)> {
        let status = self.end(limit)?;
        if self.output.is_empty() {
            return Err(self.failed(status));
        }
        let words: Vec<&str> = self.last_words.iter().map(String::as_str).collect();
        let words = words.join(" / ");
        Ok((std::mem::take(&mut self.output), words))
    }

    fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next_line(left) {
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => {
                    bail!("`{}` did not end in {} s", self.name, limit.as_secs())
                }
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.child.wait().context("cannot wait for a child process")
    }

    /// Asks it to end, as Ctrl-C does.
    pub(crate) fn interrupt(&self) -> Result<()> {
        fanfare_engine::stop::interrupt(self.child.id())
            .with_context(|| format!("cannot interrupt `{}`", self.name))
    }

    fn next_line(&mut self, wait: Duration) -> Result<String, RecvTimeoutError> {
        let until = Instant::now() + wait;
        let line = loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left.min(LOOK)) {
                Err(RecvTimeoutError::Timeout) if !left.is_zero() => self.pass_interrupt_on(),
                other => break other?,
            }
        };
        match line {
            Line::Out(text) => {
                self.output.push_str(&text);
                self.output.push('\n');
                Ok(text)
            }
            Line::Err(text) => {
                if self.last_words.len() == LAST_WORDS {
                    self.last_words.pop_front();
                }
                self.last_words.push_back(text.clone());
                Ok(text)
            }
        }
    }

    fn pass_interrupt_on(&mut self) {
        if self.told || !self.stop.is_raised() {
            return;
        }
        let since = *self.asked.get_or_insert_with(Instant::now);
        // One that has hardly begun would die of it without a report.
        if catches_interrupts(self.child.id()) || since.elapsed() >= BEGINS {
            self.told = true;
            // It may have ended already: then there is nobody to tell.
            let _ = self.interrupt();
        }
    }

    fn ended_early(&mut self) -> anyhow::Error {
        match self.child.wait() {
            Ok(status) => self.failed(status),
            Err(e) => anyhow!("cannot wait for `{}`: {e}", self.name),
        }
    }

    fn failed(&self, status: ExitStatus) -> anyhow::Error {
        let words: Vec<&str> = self.last_words.iter().map(String::as_str).collect();
        anyhow!("`{}` ended with {status}: {}", self.name, words.join(" / "))
    }
}

impl Drop for Fanfare {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Whether a process has a handler for SIGINT; true of one of which nothing is known.
fn catches_interrupts(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"));
    let status = status.unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    // Signal 2 is bit 1.
    caught.is_none_or(|set| set & 2 != 0)
}

/// The object that a child printed with `--json`.
pub(crate) fn json(text: &str) -> Result<Value> {
    serde_json::from_str(text.trim()).context("a child process printed no JSON object")
}

/// A figure of that object.
pub(crate) fn figure(of: &Value, name: &str) -> Result<f64> {
    let value = of
        .pointer(&format!("/figures/{name}"))
        .and_then(Value::as_f64);
    value.with_context(|| format!("a child process printed no figure `{name}`"))
}

/// Sends each line of `from` on, until its end. A line that is no UTF-8 is made readable.
fn forward(from: impl Read + Send + 'static, to: mpsc::Sender<Line>, wrap: fn(String) -> Line) {
    thread::spawn(move || {
        let mut reader = BufReader::new(from);
        let mut bytes = Vec::new();
        while reader.read_until(b'\n', &mut bytes).is_ok_and(|n| n > 0) {
            let text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
            bytes.clear();
            if to.send(wrap(text)).is_err() {
                return;
            }
        }
    });
}
