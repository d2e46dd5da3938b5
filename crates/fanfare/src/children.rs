//! Child processes of this binary, for commands that need several processes.

use anyhow::{Context, Result, anyhow, bail};
use fanfare_engine::process::{Missing, Process, Stream};
use fanfare_engine::stop::{Stop, end_with_parent};
use fanfare_instruments::figures::Printed;
use std::collections::VecDeque;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Lines of stderr that are kept for the error message of a failed child.
const LAST_WORDS: usize = 5;

/// The variable with the process id of the parent that started this binary as part of itself: with
/// it, no kill of any kind leaves the child behind.
pub(crate) const PARENT: &str = "FANFARE_PARENT";

/// Ties this process to the life of its parent in [`PARENT`], if the variable is set. Returns
/// `false` if that parent is gone.
pub(crate) fn parent_is_alive() -> bool {
    let parent = std::env::var(PARENT).ok();
    match parent.and_then(|number| number.parse().ok()) {
        // If the kernel cannot tie them, the child runs untied.
        Some(parent) => end_with_parent(parent).unwrap_or(true),
        None => true,
    }
}

/// The interval at which Ctrl-C is polled.
const LOOK: Duration = Duration::from_millis(50);

/// The time limit for a child to install its handler of Ctrl-C.
const BEGINS: Duration = Duration::from_secs(10);

/// A child process of this binary. No child outlives the command that started it.
pub(crate) struct Fanfare {
    name: String,
    process: Process,
    /// All of stdout so far.
    output: String,
    last_words: VecDeque<String>,
    /// The stop signal of Ctrl-C; the child is interrupted once.
    stop: Stop,
    /// The time since when it should be interrupted.
    asked: Option<Instant>,
    told: bool,
}

/// Returns a command for this binary, as part of this process. Ctrl-C of a terminal does not reach
/// it.
pub(crate) fn this_binary() -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's own file")?;
    let mut command = Command::new(program);
    command
        .env(PARENT, std::process::id().to_string())
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    Ok(command)
}

impl Fanfare {
    /// Starts this binary with `args`, and an empty stdin. When `stop` is raised while the caller
    /// waits for the child, the child is interrupted.
    pub(crate) fn start(args: &[&str], stop: &Stop) -> Result<Self> {
        let name = format!("fanfare {}", args.join(" "));
        let mut command = this_binary()?;
        command.args(args).stderr(Stdio::piped());
        let process = Process::start(&mut command);
        Ok(Self {
            process: process.with_context(|| format!("cannot start `{name}`"))?,
            name,
            output: String::new(),
            last_words: VecDeque::new(),
            stop: stop.clone(),
            asked: None,
            told: false,
        })
    }

    /// Waits for a line of stdout or stderr that `wanted` accepts.
    pub(crate) fn wait_line<T>(
        &mut self,
        limit: Duration,
        mut wanted: impl FnMut(&str) -> Option<T>,
    ) -> Result<T> {
        let until = Instant::now() + limit;
        loop {
            match self.next_line(until) {
                Ok(text) => {
                    if let Some(found) = wanted(&text) {
                        return Ok(found);
                    }
                }
                Err(Missing::Late) => {
                    bail!("`{}` did not get ready in {} s", self.name, limit.as_secs())
                }
                Err(Missing::Ended) => {
                    let status = self.status(until)?;
                    return Err(self.failed(status));
                }
            }
        }
    }

    /// Waits for `count` lines that begin with `front`.
    pub(crate) fn wait_lines(&mut self, limit: Duration, front: &str, count: u32) -> Result<()> {
        let mut came = 0;
        self.wait_line(limit, |line| {
            came += u32::from(line.starts_with(front));
            (came == count).then_some(())
        })
    }

    /// Takes the output so far, without blocking. Returns the exit status, once it has ended.
    pub(crate) fn look(&mut self) -> Result<Option<ExitStatus>> {
        loop {
            match self.next_line(Instant::now()) {
                Ok(_) => {}
                Err(Missing::Late) => return Ok(None),
                Err(Missing::Ended) => return self.status(Instant::now()).map(Some),
            }
        }
    }

    /// Returns the error of a process that has ended too early.
    pub(crate) fn failed(&self, status: ExitStatus) -> anyhow::Error {
        anyhow!("`{}` ended with {status}: {}", self.name, self.last_words())
    }

    /// Waits for the end, and returns all of stdout.
    ///
    /// # Errors
    /// The exit status is not 0, or the process did not end within `limit` (then it is killed).
    pub(crate) fn finish(mut self, limit: Duration) -> Result<String> {
        let status = self.end(limit)?;
        if status.success() {
            Ok(self.output)
        } else {
            Err(self.failed(status))
        }
    }

    /// Waits like `finish`, for a command that prints figures with `--json`, which include its
    /// faults: any exit status is accepted if the figures were printed.
    pub(crate) fn figures(self, limit: Duration) -> Result<Printed> {
        self.figures_and_words(limit).map(|(figures, _)| figures)
    }

    /// Waits like `figures`. Also returns the end of its stderr.
    pub(crate) fn figures_and_words(mut self, limit: Duration) -> Result<(Printed, String)> {
        let status = self.end(limit)?;
        if self.output.is_empty() {
            return Err(self.failed(status));
        }
        let printed = Printed::parse(&self.output)
            .with_context(|| format!("`{}` printed no JSON object", self.name))?;
        Ok((printed, self.last_words()))
    }

    fn end(&mut self, limit: Duration) -> Result<ExitStatus> {
        let until = Instant::now() + limit;
        loop {
            match self.next_line(until) {
                Ok(_) => {}
                Err(Missing::Late) => {
                    bail!("`{}` did not end in {} s", self.name, limit.as_secs())
                }
                Err(Missing::Ended) => return self.status(until),
            }
        }
    }

    /// Returns the exit status of a process that has closed its streams.
    fn status(&mut self, until: Instant) -> Result<ExitStatus> {
        let left = until.saturating_duration_since(Instant::now());
        let status = self.process.wait(left.max(BEGINS));
        let status = status.with_context(|| format!("cannot wait for `{}`", self.name))?;
        status.with_context(|| format!("`{}` closed its streams and did not end", self.name))
    }

    /// Interrupts the process, as Ctrl-C does.
    pub(crate) fn interrupt(&self) -> Result<()> {
        let told = self.process.interrupt();
        told.with_context(|| format!("cannot interrupt `{}`", self.name))
    }

    fn next_line(&mut self, until: Instant) -> Result<String, Missing> {
        let (stream, line) = loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.process.next_line(None, left.min(LOOK)) {
                Err(Missing::Late) if !left.is_zero() => self.pass_interrupt_on(),
                other => break other?,
            }
        };
        let text = line.trim_end().to_owned();
        if stream == Stream::Out {
            self.output += &text;
            self.output.push('\n');
        } else {
            if self.last_words.len() == LAST_WORDS {
                self.last_words.pop_front();
            }
            self.last_words.push_back(text.clone());
        }
        Ok(text)
    }

    fn pass_interrupt_on(&mut self) {
        if self.told || !self.stop.is_raised() {
            return;
        }
        let since = *self.asked.get_or_insert_with(Instant::now);
        // Before it has a handler, the signal would kill it without a report.
        if self.process.catches_interrupts() || since.elapsed() >= BEGINS {
            self.told = true;
            // The process may have ended already.
            let _ = self.interrupt();
        }
    }

    fn last_words(&self) -> String {
        let words: Vec<&str> = self.last_words.iter().map(String::as_str).collect();
        words.join(" / ")
    }
}
