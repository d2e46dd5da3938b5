//! Agents: the unit of work that a thread runs.
//!
//! An [`Agent`] does a little work each time it is called and never waits. Which thread calls
//! it, how many agents share a thread, and what the thread does in between ([`Idle`]) is
//! configuration: [`spread`] puts any number of agents on any number of threads, and a [`Crew`]
//! runs them, stops them together, and reports the first that failed.
//!
//! ```
//! use fanfare_engine::agent::{Agent, AgentError, Crew, spread};
//! use fanfare_engine::idle::Idle;
//! use fanfare_engine::stop::Stop;
//! use fanfare_fix::session::Now;
//!
//! struct Countdown(u32, Stop);
//!
//! impl Agent for Countdown {
//!     fn name(&self) -> &str {
//!         "countdown"
//!     }
//!     fn do_work(&mut self, _now: Now) -> Result<usize, AgentError> {
//!         match self.0.checked_sub(1) {
//!             Some(left) => self.0 = left,
//!             None => self.1.raise(),
//!         }
//!         Ok(1)
//!     }
//! }
//!
//! let stop = Stop::new();
//! let agents: Vec<Box<dyn Agent>> =
//!     (0..4).map(|i| Box::new(Countdown(i, stop.clone())) as Box<dyn Agent>).collect();
//! let mut crew = Crew::new(stop);
//! for group in spread(agents, 2) {
//!     crew.spawn(group, Idle::BackOff, None)?;
//! }
//! crew.join()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod composite;
mod crew;
mod pulse;
mod runner;

pub use composite::{Composite, spread};
pub use crew::{Crew, CrewError};
pub use runner::run;

#[cfg(doc)]
use crate::idle::Idle;
use crate::poll::Waker;
use fanfare_fix::session::Now;
use std::os::fd::{AsFd, BorrowedFd};

/// The reason why an agent cannot continue.
pub type AgentError = Box<dyn std::error::Error + Send + Sync>;

/// A unit of work done in small steps, on one thread at a time.
pub trait Agent: Send {
    /// Returns the agent's role, for thread names and messages.
    fn name(&self) -> &str;

    /// Prepares the agent; called once, on the thread that will call [`do_work`](Self::do_work).
    ///
    /// # Errors
    /// Ends the run before it began; [`on_close`](Self::on_close) is not called.
    fn on_start(&mut self, now: Now) -> Result<(), AgentError> {
        let _ = now;
        Ok(())
    }

    /// Does the work that is due, without waiting, and returns its amount. 0 means that nothing was
    /// due and the thread may idle. `now` is the time of this duty cycle.
    ///
    /// # Errors
    /// Ends the run of the whole crew.
    fn do_work(&mut self, now: Now) -> Result<usize, AgentError>;

    /// Closes the agent; called once at the end of a run that had started, also after an error.
    fn on_close(&mut self, now: Now) {
        let _ = now;
    }

    /// Returns the waker of other threads, if the agent waits for nothing else.
    fn waker(&self) -> Option<&Waker> {
        None
    }

    /// Adds the descriptors that [`Idle::Wait`] polls; each is readable when there is work. By
    /// default, adds the descriptor of the [`waker`](Self::waker). The descriptors must not change
    /// between start and close. An agent without any is called at least every [`Idle::Wait`] time.
    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.waker().map(Waker::as_fd));
    }

    /// Returns the monotonic time at which work is due without a descriptor becoming ready.
    fn next_timer(&self) -> Option<u64> {
        None
    }

    /// Arms the [`waker`](Self::waker) before the thread sleeps ([`Idle::Wait`]). `do_work` is
    /// called once more before the sleep.
    fn before_sleep(&mut self) {
        if let Some(waker) = self.waker() {
            waker.prepare_sleep();
        }
    }

    /// Disarms the waker after the sleep.
    fn after_sleep(&mut self) {
        if let Some(waker) = self.waker() {
            waker.awake();
        }
    }
}

#[cfg(test)]
mod tests;
