//! The loop around an agent.

use super::pulse::Pulse;
use super::{Agent, AgentError};
use crate::clock::Clock;
use crate::idle::{Idle, Idler, Step};
use crate::poll::{Interest, Poller, Token};
use crate::stop::Stop;
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The longest sleep: after it a raised [`Stop`] is noticed.
const NOTICE_STOP: Duration = Duration::from_millis(50);

/// Runs an agent on the calling thread until `stop` is raised or it fails.
///
/// # Errors
/// The agent's own error. The agent is closed then, if it had started.
pub fn run(agent: &mut dyn Agent, idle: Idle, stop: &Stop) -> Result<(), AgentError> {
    run_with(agent, idle, stop, &Pulse::default())
}

/// Runs an agent as [`run`] does, with a pulse that beats at each turn, and therefore every 50 ms
/// at least.
pub(super) fn run_with(
    agent: &mut dyn Agent,
    idle: Idle,
    stop: &Stop,
    pulse: &Pulse,
) -> Result<(), AgentError> {
    let mut clock = Clock::new();
    agent.on_start(clock.read())?;
    let outcome = cycle(agent, idle, stop, &mut clock, pulse);
    agent.on_close(clock.read());
    outcome
}

fn cycle(
    agent: &mut dyn Agent,
    idle: Idle,
    stop: &Stop,
    clock: &mut Clock,
    pulse: &Pulse,
) -> Result<(), AgentError> {
    let mut idler = Idler::new(idle);
    let mut sleeper = match idle {
        Idle::Wait(_) => Some(Poller::new(1)?),
        _ => None,
    };
    if let Some(poller) = &sleeper {
        watch(agent, poller)?;
    }
    while !stop.is_raised() {
        let now = clock.read();
        pulse.beat(now.mono);
        let work = agent.do_work(now)?;
        match (idler.step(work), &mut sleeper) {
            (Step::Wait(longest), Some(poller)) => sleep(agent, poller, longest, clock)?,
            (Step::Sleep(time), _) => std::thread::sleep(time.min(NOTICE_STOP)),
            (step, _) => step.take(),
        }
    }
    Ok(())
}

/// Registers the agent's descriptors; each of them ends the sleep.
fn watch(agent: &dyn Agent, poller: &Poller) -> Result<(), AgentError> {
    let mut descriptors: Vec<BorrowedFd<'_>> = Vec::new();
    agent.wait_for(&mut descriptors);
    for fd in descriptors {
        poller.add(fd, Token(0), Interest::Read)?;
    }
    Ok(())
}

/// Sleeps until a descriptor is ready or the next timer is due, for at most `longest`.
fn sleep(
    agent: &mut dyn Agent,
    poller: &mut Poller,
    longest: Duration,
    clock: &mut Clock,
) -> Result<(), AgentError> {
    agent.before_sleep();
    let now = clock.read();
    if agent.do_work(now)? == 0 {
        let timer = agent
            .next_timer()
            .map_or(u64::MAX, |at| at.saturating_sub(now.mono));
        let time = longest.min(NOTICE_STOP).min(Duration::from_nanos(timer));
        poller.poll(Some(time))?;
    }
    agent.after_sleep();
    Ok(())
}
