//! The baseline: one thread, one send for each connection, no FIX.

use super::Receivers;
use super::rounds::Target;
use super::sessions::{pairs, send_all};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::clock::Clock;
use fanfare_engine::tcp::Stream;
use fanfare_fix::session::Now;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The handle that requests rounds of the baseline's agent.
pub(super) struct Raw {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// The number of rounds requested.
    asked: AtomicU64,
    /// The time at which the first send of the last round began, monotonic nanoseconds.
    began: AtomicU64,
}

impl Raw {
    /// Opens `count` loopback connections. The agent sends `message` to each once per round; it
    /// shares a thread with the compared program, so that both have the same processor and neither
    /// disturbs the other: in a round of the baseline only its sends run.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(super) fn new(count: usize) -> io::Result<(Self, RawAgent, Receivers)> {
        let (near, far) = pairs(count)?;
        let shared = Arc::new(Shared::default());
        let message = Arc::default();
        let agent = RawAgent {
            near,
            message,
            shared: shared.clone(),
            done: 0,
        };
        Ok((Self { shared }, agent, Receivers::new(far)?))
    }
}

impl Target for Raw {
    fn trigger(&mut self) -> io::Result<()> {
        self.shared.asked.fetch_add(1, Ordering::Release);
        Ok(())
    }

    fn began(&mut self) -> u64 {
        self.shared.began.load(Ordering::Acquire)
    }
}

/// The sending end of the baseline.
pub(super) struct RawAgent {
    near: Vec<Stream>,
    message: Arc<OnceLock<Vec<u8>>>,
    shared: Arc<Shared>,
    done: u64,
}

impl RawAgent {
    /// Returns the cell for the message to send, once it is known.
    pub(super) fn message(&self) -> Arc<OnceLock<Vec<u8>>> {
        self.message.clone()
    }
}

impl Agent for RawAgent {
    fn name(&self) -> &str {
        "raw"
    }

    fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
        if self.shared.asked.load(Ordering::Acquire) == self.done {
            return Ok(0);
        }
        let Some(message) = self.message.get() else {
            return Ok(0);
        };
        self.done += 1;
        let began = Clock::new().read().mono;
        self.shared.began.store(began, Ordering::Release);
        for stream in &self.near {
            send_all(stream, message)?;
        }
        Ok(1)
    }
}
