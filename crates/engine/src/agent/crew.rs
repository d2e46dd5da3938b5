//! Threads that start and stop together.

use super::pulse::Pulse;
use super::runner::run_with;
use super::{Agent, AgentError};
use crate::cpu;
use crate::idle::Idle;
use crate::stop::Stop;
use std::io;
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;
use thiserror::Error;

/// The threads of a program, each running one agent. When one fails, or panics, all are
/// stopped. Dropping a crew stops it and waits for its threads.
pub struct Crew {
    stop: Stop,
    threads: Vec<Member>,
}

/// A thread, with the name and the pulse of its agent.
struct Member {
    name: String,
    thread: JoinHandle<Result<(), AgentError>>,
    pulse: Pulse,
}

/// The failure of an agent.
#[derive(Debug, Error)]
pub enum CrewError {
    /// The agent returned an error.
    #[error("{name}: {error}")]
    Failed {
        /// The agent's name.
        name: String,
        /// The error.
        error: AgentError,
    },
    /// The agent panicked, which is a bug.
    #[error("{name} panicked")]
    Panicked {
        /// The agent's name.
        name: String,
    },
}

impl Crew {
    /// Makes a crew without threads that ends when `stop` is raised.
    #[must_use]
    pub const fn new(stop: Stop) -> Self {
        Self {
            stop,
            threads: Vec::new(),
        }
    }

    /// Returns the number of threads.
    #[must_use]
    pub const fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Returns the flag that stops this crew.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Starts a thread for an agent, pinned to a CPU if one is given.
    ///
    /// # Errors
    /// The thread cannot be started. A CPU that does not exist ends the crew later, with an error
    /// of [`join`](Self::join).
    pub fn spawn(
        &mut self,
        mut agent: impl Agent + 'static,
        idle: Idle,
        cpu: Option<usize>,
    ) -> io::Result<()> {
        let name = agent.name().to_owned();
        let stop = self.stop.clone();
        let pulse = Pulse::default();
        let of_thread = pulse.clone();
        let body = move || {
            let stop = RaiseOnDrop(stop);
            if let Some(cpu) = cpu {
                cpu::pin_to(cpu)?;
            }
            run_with(&mut agent, idle, &stop.0, &of_thread)
        };
        // The kernel shows 15 bytes of a thread's name.
        let thread_name = name.chars().filter(char::is_ascii).take(15).collect();
        let thread = Builder::new().name(thread_name).spawn(body)?;
        self.threads.push(Member {
            name,
            thread,
            pulse,
        });
        Ok(())
    }

    /// Returns the name of the thread whose turn began longest ago, and how long ago that is at
    /// `now`, monotonic, in nanoseconds. A thread that goes on begins a turn every 50 ms at least.
    /// Threads that have not begun one, or have ended, do not count.
    #[must_use]
    pub fn slowest(&self, now: u64) -> Option<(&str, Duration)> {
        let running = self.threads.iter();
        let running = running.filter(|member| !member.thread.is_finished());
        let turns = running.filter_map(|member| Some((member.pulse.last()?, &*member.name)));
        let (began, name) = turns.min()?;
        Some((name, Duration::from_nanos(now.saturating_sub(began))))
    }

    /// Waits until all threads have ended. [`stop`](Self::stop) makes them end.
    ///
    /// # Errors
    /// The first failure, by order of spawning.
    pub fn join(mut self) -> Result<(), CrewError> {
        self.join_all()
    }

    /// Waits as [`join`](Self::join) does, as long as `goes_on` returns true, which is called
    /// every few milliseconds. Returns whether all threads have ended: the others, such as one
    /// in a write to a pipe that nothing reads, are left to the end of the process.
    ///
    /// # Errors
    /// The first failure, by order of spawning.
    pub fn join_while(mut self, mut goes_on: impl FnMut() -> bool) -> Result<bool, CrewError> {
        const PAUSE: Duration = Duration::from_millis(5);
        while !self
            .threads
            .iter()
            .all(|member| member.thread.is_finished())
        {
            if !goes_on() {
                self.threads.clear();
                return Ok(false);
            }
            thread::sleep(PAUSE);
        }
        self.join_all().map(|()| true)
    }

    fn join_all(&mut self) -> Result<(), CrewError> {
        let mut outcome = Ok(());
        for Member { name, thread, .. } in self.threads.drain(..) {
            let ended = match thread.join() {
                Ok(Ok(())) => Ok(()),
                Ok(Err(error)) => Err(CrewError::Failed { name, error }),
                Err(_) => Err(CrewError::Panicked { name }),
            };
            outcome = outcome.and(ended);
        }
        outcome
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.stop.raise();
            // A caller that drops a crew without joining it has no use for the result.
            let _ = self.join_all();
        }
    }
}

/// Raises the flag when its thread ends, by return or by panic.
struct RaiseOnDrop(Stop);

impl Drop for RaiseOnDrop {
    fn drop(&mut self) {
        self.0.raise();
    }
}
