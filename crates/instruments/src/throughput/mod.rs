//! Throughput over many sessions: N acceptors in one process, N initiators in another, with every
//! message persisted by the initiator.
//!
//! Orders come from a flat [file](Orders). Each session sends the same number of them, as fast as
//! its counterparty reads; the acceptor checks that every one came, in order, with the fields of
//! its line. Throughput is the number of orders over all sessions divided by the time from the
//! first one received and parsed to the last one.
//!
//! The sessions of a process are distributed over its threads; session `i` is hosted by thread `i %
//! threads` on both sides. Each thread of the acceptor has a port of its own.

mod acceptor;
mod board;
mod initiator;
mod orders;
mod persisted;
mod receiver;
mod sender;
mod summary;
#[cfg(test)]
mod tests;

use std::io;
use std::thread;
use std::time::Duration;

use fanfare_engine::agent::{AgentError, run};
use fanfare_engine::host::{Handler, Host, HostError};
use fanfare_engine::idle::Idle;
use fanfare_engine::stop::Stop;
use fanfare_fix::session::{Config, SECOND, SessionId, Version};

pub use acceptor::{AcceptorOptions, Acceptors};
pub use initiator::{InitiatorOptions, Initiators, Sent};
pub use orders::{MAX_LINE, MAX_ORDERS, Orders, OrdersError};
pub use persisted::{holds, persisted, segment_bytes};
pub use receiver::Tally;
pub use summary::{MOST_RUNS, Outcome, Plan, Row, Summary};

/// The most sessions of one process.
pub const MAX_SESSIONS: usize = 10_000;
/// The most orders of one session.
pub const MAX_MESSAGES: u64 = 100_000_000;
/// The most threads that host sessions; with the main thread and the one that prepares segments no
/// process has more than 20.
pub const MAX_THREADS: usize = 18;

/// The idle strategy of a thread without input or writable sockets: a receiver that has caught up
/// sleeps until there is a batch, rather than for each message.
const IDLE: Idle = Idle::BackOff;

/// The sleep of the main thread between two checks.
const LOOK: Duration = Duration::from_millis(5);

/// The error of a measurement of throughput.
#[derive(Debug, thiserror::Error)]
pub enum ThroughputError {
    /// A session cannot be hosted: its store or its port.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A host failed.
    #[error("{0}")]
    Agent(AgentError),
    /// A socket or limit of the system failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The system allows fewer open files than the sessions need.
    #[error("{sessions} sessions need {needed} open files, the limit is {limit} (ulimit -n)")]
    OpenFiles {
        /// The number of sessions.
        sessions: usize,
        /// The number of descriptors that they need.
        needed: u64,
        /// The current limit.
        limit: u64,
    },
}

/// The CompID of the receiving side.
const ACCEPTOR: &str = "SELL";

/// Returns the configuration of session `index` on one side: FIX.4.4, HeartBtInt 30 s, numbers from
/// 1 with each logon.
fn config(index: usize, initiates: bool) -> Config {
    let initiator = format!("BUY-{}", index + 1);
    let (us, them) = if initiates {
        (initiator.as_str(), ACCEPTOR)
    } else {
        (ACCEPTOR, initiator.as_str())
    };
    let mut config = Config::new(SessionId::new(Version::Fix44, us, them));
    config.reset_on_logon = true;
    config.max_send = MAX_LINE + 512;
    // Messages in the sockets are received before the Logout.
    config.logout_timeout = 10 * SECOND;
    config
}

/// Runs each host on a thread of its own while none of them ends and `goes_on`, which is called
/// every few milliseconds, returns true; then stops all.
fn run_while<H: Handler + Send>(
    hosts: &mut [Host<H>],
    mut goes_on: impl FnMut() -> bool,
) -> Result<(), ThroughputError> {
    let stop = Stop::new();
    let outcome: Result<Vec<()>, AgentError> = thread::scope(|scope| {
        let threads: Vec<_> = hosts
            .iter_mut()
            .map(|host| {
                let stop = stop.clone();
                scope.spawn(move || run(host, IDLE, &stop))
            })
            .collect();
        while goes_on() && !threads.iter().any(|thread| thread.is_finished()) {
            thread::sleep(LOOK);
        }
        stop.raise();
        let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
        joined
            .map(|ended| ended.unwrap_or_else(|_| Err("a thread panicked".into())))
            .collect()
    });
    outcome.map_err(ThroughputError::Agent)?;
    Ok(())
}

/// Raises the limit of open files to the need of this many sessions.
fn open_files(sessions: usize, each: u64) -> Result<(), ThroughputError> {
    let needed = sessions as u64 * each + 64;
    let limit = fanfare_engine::limits::raise_open_files(needed)?;
    if limit < needed {
        return Err(ThroughputError::OpenFiles {
            sessions,
            needed,
            limit,
        });
    }
    Ok(())
}
