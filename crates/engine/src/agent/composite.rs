//! Several agents on one thread.

use super::{Agent, AgentError};
use fanfare_fix::session::Now;
use std::os::fd::BorrowedFd;

/// Agents that take turns on one thread. The first error of one ends all of them.
pub struct Composite {
    name: String,
    agents: Vec<Box<dyn Agent>>,
    started: usize,
}

impl Composite {
    /// Groups `agents` under a name made of theirs.
    #[must_use]
    pub fn new(agents: Vec<Box<dyn Agent>>) -> Self {
        let names: Vec<&str> = agents.iter().map(|agent| agent.name()).collect();
        Self {
            name: names.join("+"),
            agents,
            started: 0,
        }
    }
}

/// Divides agents over at most `threads` threads, in order and evenly: the same agents run on
/// one thread, on two, or each on its own. No group is empty.
#[must_use]
pub fn spread(agents: Vec<Box<dyn Agent>>, threads: usize) -> Vec<Composite> {
    let groups = threads.clamp(1, agents.len().max(1));
    let count = agents.len();
    let mut agents = agents.into_iter();
    (0..groups)
        .map(|i| (i + 1) * count / groups - i * count / groups)
        .filter(|&share| share > 0)
        .map(|share| Composite::new(agents.by_ref().take(share).collect()))
        .collect()
}

impl Agent for Composite {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_start(&mut self, now: Now) -> Result<(), AgentError> {
        for agent in &mut self.agents {
            if let Err(error) = agent.on_start(now) {
                self.on_close(now);
                return Err(error);
            }
            self.started += 1;
        }
        Ok(())
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let mut work = 0;
        for agent in &mut self.agents {
            work += agent.do_work(now)?;
        }
        Ok(work)
    }

    /// Closes the agents that have started, in reverse order.
    fn on_close(&mut self, now: Now) {
        let started = std::mem::take(&mut self.started);
        self.agents
            .iter_mut()
            .take(started)
            .rev()
            .for_each(|agent| agent.on_close(now));
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        self.agents
            .iter()
            .for_each(|agent| agent.wait_for(descriptors));
    }

    fn next_timer(&self) -> Option<u64> {
        self.agents
            .iter()
            .filter_map(|agent| agent.next_timer())
            .min()
    }

    fn before_sleep(&mut self) {
        self.agents
            .iter_mut()
            .for_each(|agent| agent.before_sleep());
    }

    fn after_sleep(&mut self) {
        self.agents.iter_mut().for_each(|agent| agent.after_sleep());
    }
}
