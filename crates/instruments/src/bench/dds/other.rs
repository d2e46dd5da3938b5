//! The other process of the benchmark, as this process controls it.

use std::io::{self, Write};
use std::time::Duration;

use fanfare_engine::process::Process;
use fanfare_engine::stop::halt;
use fanfare_gateway::SlowPolicy;

use super::DdsBench;
use crate::bench::BenchError;

/// The roles of the other process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The C program sends samples back.
    RawPong,
    /// Fanfare sends samples back.
    Pong,
    /// The C program receives.
    RawSink,
    /// Fanfare receives.
    Sink,
    /// Sends samples back through shared memory.
    ShmPong,
    /// Sends samples back, with the policies of the comparison with a stopped reader.
    PolicyPong,
    /// Reads the samples of that comparison too, and may be stopped.
    Beside,
}

impl End {
    /// All roles.
    pub const ALL: [Self; 7] = [
        Self::RawPong,
        Self::Pong,
        Self::RawSink,
        Self::Sink,
        Self::ShmPong,
        Self::PolicyPong,
        Self::Beside,
    ];

    /// Returns the role's name on the command line.
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

/// The parameters of another process.
#[derive(Debug, Clone, Copy)]
pub struct Other {
    /// The role.
    pub end: End,
    /// The domain id.
    pub domain: u32,
    /// The processor, if there is one to choose.
    pub cpu: Option<usize>,
    /// The policy for a stopped reader.
    pub policy: SlowPolicy,
}

/// Starts a process that calls [`serve`](super::serve), with its stdin and stdout piped.
pub type Start = dyn Fn(&Other) -> io::Result<Process> + Sync;

/// The longest time to a response of the other process.
const LIMIT: Duration = Duration::from_secs(60);

/// The handle of the other process, which ends when this end of its pipe closes.
pub(super) struct Child {
    process: Process,
}

impl DdsBench<'_> {
    /// Starts the other process on its processor.
    pub(super) fn child(&self, end: End, domain: u32) -> Result<Child, BenchError> {
        self.child_on(self.processors.there, end, domain)
    }

    /// Starts it on the given processor.
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

    /// Starts a process, and waits until it is ready.
    pub(super) fn child_as(&self, other: &Other) -> Result<Child, BenchError> {
        let process = (self.start)(other)?;
        let mut child = Child { process };
        child.ask()?;
        Ok(child)
    }
}

impl Child {
    /// Requests the counts: of a sink, its samples and nanoseconds; of a second reader, its samples
    /// and the number it missed.
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

    /// Stops the process (SIGSTOP), or continues it.
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
