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
mod runner;

pub use composite::{Composite, spread};
pub use crew::{Crew, CrewError};
pub use runner::run;

#[cfg(doc)]
use crate::idle::Idle;
use crate::poll::Waker;
use fanfare_fix::session::Now;
use std::os::fd::{AsFd, BorrowedFd};

/// Why an agent cannot go on.
pub type AgentError = Box<dyn std::error::Error + Send + Sync>;

/// Something that works in small steps. Lives on one thread at a time.
pub trait Agent: Send {
    /// Its role, for thread names and messages.
    fn name(&self) -> &str;

    /// Called once, on the thread that will call [`do_work`](Self::do_work).
    ///
    /// # Errors
    /// Ends the run before it began; [`on_close`](Self::on_close) is not called.
    fn on_start(&mut self, now: Now) -> Result<(), AgentError> {
        let _ = now;
        Ok(())
    }

    /// Does what there is to do now, without waiting, and gives an amount: 0 means that nothing
    /// was to do and the thread may idle. `now` was read for this duty cycle.
    ///
    /// # Errors
    /// Ends the run of the whole crew.
    fn do_work(&mut self, now: Now) -> Result<usize, AgentError>;

    /// Called once at the end of a run that had started, also after an error.
    fn on_close(&mut self, now: Now) {
        let _ = now;
    }

    /// What other threads wake the agent with, if it has nothing else to wait for.
    fn waker(&self) -> Option<&Waker> {
        None
    }

    /// Adds the descriptors that [`Idle::Wait`] polls; each is readable when there is work. By
    /// default, adds the descriptor of the [`waker`](Self::waker). The descriptors must not change
    /// between start and close. An agent without any is called at least every [`Idle::Wait`] time.
    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend(self.waker().map(Waker::as_fd));
    }

    /// The monotonic time at which there will be work without any descriptor becoming ready.
    fn next_timer(&self) -> Option<u64> {
        None
    }

    /// The thread is about to sleep ([`Idle::Wait`]): arms the [`waker`](Self::waker). `do_work` is
    /// called once more before it does.
    fn before_sleep(&mut self) {
        if let Some(waker) = self.waker() {
            waker.prepare_sleep();
        }
    }

    /// The thread has slept.
    fn after_sleep(&mut self) {
        if let Some(waker) = self.waker() {
            waker.awake();
        }
    }
}

#[cfg(test)]
mod tests;
