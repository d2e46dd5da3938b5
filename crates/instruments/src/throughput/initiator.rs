//! The side that sends orders.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfare_engine::host::{Host, Initiator, StoreKind};
use fanfare_engine::stop::Stop;

use super::board::Board;
use super::orders::Orders;
use super::sender::Sender;
use super::{ThroughputError, config, open_files, run_while};

/// The options of the initiators.
#[derive(Debug, Clone)]
pub struct InitiatorOptions {
    /// Sessions.
    pub sessions: usize,
    /// Orders of each.
    pub messages: u64,
    /// The orders to send.
    pub orders: Arc<Orders>,
    /// The acceptor's addresses; session `i` connects to `i % addresses.len()`.
    pub addresses: Vec<SocketAddr>,
    /// The store of each session.
    pub store: StoreKind,
    /// Threads that host sessions.
    pub threads: usize,
}

/// Initiators that are ready to connect.
pub struct Initiators {
    hosts: Vec<Host<Sender>>,
    board: Arc<Board>,
}

/// The results of the initiators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// Orders passed to the sessions, and persisted if the sessions have a store.
    pub orders: u64,
    /// The number of times that sending waited for the next segment of a journal.
    pub stalls: u64,
    /// Whether all orders were sent, and the kernel took them.
    pub complete: bool,
    /// The first failure, if there was one.
    pub trouble: Option<String>,
}

/// The time limit for all logons.
const LOGON: Duration = Duration::from_secs(30);
/// Descriptors of a session: its socket, and the lock and two segments of its journal.
const FILES: u64 = 4;

impl Initiators {
    /// Opens the stores, which takes a moment: journals prepare their segments.
    ///
    /// # Errors
    /// A store cannot be opened, or too few files may be open.
    pub fn open(options: &InitiatorOptions) -> Result<Self, ThroughputError> {
        open_files(options.sessions, FILES)?;
        let board = Arc::new(Board::default());
        let threads = options.threads.clamp(1, options.sessions.max(1));
        let mut hosts = Vec::new();
        for thread in 0..threads {
            let (orders, board) = (options.orders.clone(), board.clone());
            let sender = Sender::new(orders, board, options.messages, options.sessions);
            let mut host = Host::new(sender)?;
            for index in (thread..options.sessions).step_by(threads) {
                let at = index % options.addresses.len().max(1);
                let address = options.addresses.get(at).copied().into_iter().collect();
                let initiator = Initiator::new(config(index, true), address);
                let key = host.initiate(initiator.store(options.store.clone()))?;
                host.handler().add(key);
            }
            hosts.push(host);
        }
        Ok(Self { hosts, board })
    }

    /// Connects, sends once all sessions are logged on, and logs out. Ends early if a session ends,
    /// or `stop` is raised.
    ///
    /// # Errors
    /// A thread failed, or not all sessions were logged on in 30 s.
    pub fn run(self, stop: &Stop) -> Result<Sent, ThroughputError> {
        let Self { mut hosts, board } = self;
        let (all, began) = (hosts.len(), Instant::now());
        run_while(&mut hosts, || {
            if board.messages() == 0 && began.elapsed() > LOGON {
                board.trouble(|| format!("{} sessions logged on in 30 s", board.logged_on()));
            }
            !stop.is_raised() && board.done() < all && board.first_trouble().is_none()
        })?;
        let orders = hosts.iter_mut().map(|host| host.handler().sent()).sum();
        let stalls = hosts.iter_mut().map(|host| host.handler().stalls()).sum();
        Ok(Sent {
            orders,
            stalls,
            complete: board.done() == all,
            trouble: board.first_trouble(),
        })
    }
}
