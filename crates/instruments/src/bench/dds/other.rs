//! The process at the other side, as this one sees it.

use std::io::{self, Write};
use std::time::Duration;

use fanfare_engine::process::Process;
use fanfare_engine::stop::halt;
use fanfare_gateway::SlowPolicy;

use super::DdsBench;
use crate::bench::BenchError;

/// What the other process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The C program answers.
    RawPong,
    /// Ours answers.
    Pong,
    /// The C program receives.
    RawSink,
    /// Ours receives.
    Sink,
    /// Answers through shared memory.
    ShmPong,
    /// Answers, with the policies of the comparison with a reader that stops.
    PolicyPong,
    /// Reads what is written to that, and may be stopped.
    Beside,
}

impl End {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::RawPong,
        Self::Pong,
        Self::RawSink,
        Self::Sink,
        Self::ShmPong,
        Self::PolicyPong,
        Self::Beside,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::RawPong => "raw-pong",
            Self::Pong => "pong",
            Self::RawSink => "raw-sink",
            Self::Sink => "sink",
            Self::ShmPong => "shm-pong",
            Self::PolicyPong => "policy-pong",
            Self::Beside => "beside",
        }
    }
}

/// What another process is to be.
#[derive(Debug, Clone, Copy)]
pub struct Other {
    /// What it does.
    pub end: End,
    /// In this domain.
    pub domain: u32,
    /// On this processor, if there is one to choose.
    pub cpu: Option<usize>,
    /// What becomes of a reader that stops.
    pub policy: SlowPolicy,
}

/// Starts a process that calls [`serve`](super::serve), with its stdin and stdout piped.
pub type Start = dyn Fn(&Other) -> io::Result<Process> + Sync;

/// How long the other process may take to answer.
const LIMIT: Duration = Duration::from_secs(60);

/// The other process. It ends when this end of its pipe closes.
pub(super) struct Child {
    process: Process,
}

impl DdsBench<'_> {
    /// Starts the other process.
    pub(super) fn child(&self, end: End, domain: u32) -> Result<Child, BenchError> {
        self.child_on(self.processors.there, end, domain)
    }

    /// Starts it on that processor.
    pub(super) fn child_on(
        &self,
        cpu: Option<usize>,
        end: End,
        domain: u32,
    ) -> Result<Child, BenchError> {
        self.child_as(&Other {
            end,
            domain,
            cpu,
            policy: SlowPolicy::Drop,
        })
    }

    /// Starts one, and waits until it is open.
    pub(super) fn child_as(&self, other: &Other) -> Result<Child, BenchError> {
        let process = (self.start)(other)?;
        let mut child = Child { process };
        child.ask()?;
        Ok(child)
    }
}

impl Child {
    /// Asks the sink for its count and its nanoseconds; a reader beside for its count and how
    /// many it missed.
    pub(super) fn ask(&mut self) -> Result<(u64, u64), BenchError> {
        let answer = self.line().map_err(|error| {
            BenchError::Missing(format!("the other process does not answer: {error}"))
        })?;
        let numbers = answer.trim().split_once(' ');
        let numbers = numbers.and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
        numbers.ok_or_else(|| {
            BenchError::Missing(format!("the other process answers `{}`", answer.trim()))
        })
    }

    fn line(&mut self) -> io::Result<String> {
        if let Some(pipe) = self.process.stdin() {
            pipe.write_all(b"\n")?;
        }
        let line = self.process.next_line(None, LIMIT);
        line.map(|(_, line)| line).map_err(io::Error::other)
    }

    /// Stops the process where it is, or lets it go on.
    pub(super) fn halt(&self, halted: bool) -> io::Result<()> {
        halt(self.process.id(), halted)
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.halt(false);
        drop(self.process.stdin().take());
        let _ = self.process.wait(LIMIT);
    }
}
