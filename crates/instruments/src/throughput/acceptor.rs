//! The side that receives orders.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fanfare_engine::host::{Acceptor, Host, StoreKind};
use fanfare_engine::stop::Stop;

use super::board::Board;
use super::orders::Orders;
use super::receiver::{Receiver, Tally};
use super::{ThroughputError, config, open_files, run_while};

/// The options of the acceptors.
#[derive(Debug, Clone)]
pub struct AcceptorOptions {
    /// Sessions.
    pub sessions: usize,
    /// Orders of each.
    pub messages: u64,
    /// The orders that are expected.
    pub orders: Arc<Orders>,
    /// The address to listen on.
    pub address: IpAddr,
    /// The port of the first thread, followed by those of the others; 0: the system chooses each.
    pub port: u16,
    /// Threads that host sessions.
    pub threads: usize,
}

/// Acceptors that listen.
pub struct Acceptors {
    hosts: Vec<Host<Receiver>>,
    addresses: Vec<SocketAddr>,
    board: Arc<Board>,
    sessions: usize,
}

/// The time without any connection after which the run ends.
const ALONE: Duration = Duration::from_secs(1);

impl Acceptors {
    /// Listens, with one port for each thread.
    ///
    /// # Errors
    /// A port is in use, or too few files may be open.
    pub fn listen(options: &AcceptorOptions) -> Result<Self, ThroughputError> {
        open_files(options.sessions, 1)?;
        let board = Arc::new(Board::default());
        let threads = options.threads.clamp(1, options.sessions.max(1));
        let (mut hosts, mut addresses) = (Vec::new(), Vec::new());
        for thread in 0..threads {
            let indices = (thread..options.sessions).step_by(threads);
            let (orders, board) = (options.orders.clone(), board.clone());
            let mut host = Host::new(Receiver::new(
                orders,
                board,
                options.messages,
                indices.len(),
            ))?;
            let port = match options.port {
                0 => 0,
                first => first.saturating_add(thread as u16),
            };
            let mut acceptor = Acceptor::new(SocketAddr::new(options.address, port));
            let port = &mut acceptor.options;
            port.max_without_logon = options.sessions.max(port.max_without_logon);
            port.max_without_logon_per_address = port.max_without_logon;
            for index in indices {
                // The acceptor sends the session's own messages only.
                let store = StoreKind::NoResend(64 << 10);
                acceptor = acceptor.session_with(config(index, false), store);
            }
            addresses.push(host.listen(acceptor)?);
            hosts.push(host);
        }
        Ok(Self {
            hosts,
            addresses,
            board,
            sessions: options.sessions,
        })
    }

    /// Returns the addresses it listens on, one for each thread.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Receives until all sessions have ended, or all that had connected have left, or `stop` is
    /// raised. Returns the totals, and the first failure.
    ///
    /// # Errors
    /// A thread failed.
    pub fn run(self, stop: &Stop) -> Result<(Tally, Option<String>), ThroughputError> {
        let Self {
            mut hosts,
            board,
            sessions,
            ..
        } = self;
        let mut alone = None;
        run_while(&mut hosts, || {
            !stop.is_raised() && board.ended() < sessions && !is_over(&board, &mut alone)
        })?;
        let mut tally = Tally::default();
        for host in &mut hosts {
            tally.add(host.handler().tally());
        }
        Ok((tally, board.first_trouble()))
    }
}

/// Returns whether all sessions that had connected have left.
fn is_over(board: &Board, alone: &mut Option<Instant>) -> bool {
    let came = board.logged_on();
    if came == 0 || board.ended() < came {
        *alone = None;
        return false;
    }
    alone.get_or_insert_with(Instant::now).elapsed() > ALONE
}
