//! The handler of the initiator: sends orders as fast as the sessions accept them.

use std::net::SocketAddr;
use std::sync::Arc;

use fanfare_engine::host::{Handler, Peer, Peers, Refusal, SessionKey, Store};
use fanfare_fix::msg_type;
use fanfare_fix::session::{AppMessage, DisconnectReason, SendError, StoreError};

use super::board::Board;
use super::orders::Orders;

/// The bytes written to one session in one duty cycle: one send to the socket, short enough for the
/// bytes to be still in the cache when the kernel takes them.
const BATCH_BYTES: usize = 64 << 10;

/// The sender of the orders of one thread's sessions.
pub(super) struct Sender {
    orders: Arc<Orders>,
    board: Arc<Board>,
    /// The number of sessions of all threads: nothing is sent before all are logged on.
    all: usize,
    messages: u64,
    sessions: Vec<Outgoing>,
    /// The index of the next session.
    cursor: usize,
    /// Sessions with orders left to send, or sent and not yet taken by the kernel.
    left: usize,
    stalls: u64,
}

#[derive(Clone, Copy)]
struct Outgoing {
    key: SessionKey,
    sent: u64,
    done: bool,
}

impl Sender {
    pub(super) fn new(orders: Arc<Orders>, board: Arc<Board>, messages: u64, all: usize) -> Self {
        Self {
            orders,
            board,
            all,
            messages,
            sessions: Vec::new(),
            cursor: 0,
            left: 0,
            stalls: 0,
        }
    }

    pub(super) fn add(&mut self, key: SessionKey) {
        let (sent, done) = (0, false);
        self.sessions.push(Outgoing { key, sent, done });
        self.left += 1;
    }

    /// Returns the number of orders passed to the sessions.
    pub(super) fn sent(&self) -> u64 {
        self.sessions.iter().map(|session| session.sent).sum()
    }

    /// Returns the number of times that the next segment of a journal was not ready when it was
    /// needed.
    pub(super) const fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Sends one batch of one session. Returns `None` if it has nothing to send or accepts no more.
    fn batch(&mut self, index: usize, peers: &mut Peers<'_>) -> Option<usize> {
        let outgoing = self.sessions.get_mut(index)?;
        if outgoing.done || peers.unsent(outgoing.key) > 0 {
            return None;
        }
        if outgoing.sent == self.messages {
            outgoing.done = true;
            if let Store::Journal(journal) = peers.get(outgoing.key)?.session().store() {
                self.stalls += journal.stalls();
            }
            self.left -= 1;
            if self.left == 0 {
                self.board.finish();
            }
            return None;
        }
        let mut peer = peers.get(outgoing.key)?;
        let (before, mut bytes) = (outgoing.sent, 0);
        while outgoing.sent < self.messages && bytes < BATCH_BYTES {
            let order = self.orders.body(outgoing.sent);
            let sent = peer.send(msg_type::NEW_ORDER_SINGLE, |fields| {
                // The line was validated when it was read.
                fields.raw(order);
            });
            match sent {
                Ok(_) => outgoing.sent += 1,
                Err(SendError::Store(StoreError::Full)) => break,
                Err(error) => {
                    let (id, number) = (peer.id().clone(), outgoing.sent + 1);
                    self.board
                        .trouble(|| format!("session {id}, order {number}: {error}"));
                    break;
                }
            }
            bytes += order.len() + HEADER;
        }
        let count = outgoing.sent - before;
        self.board.add(count);
        (count > 0).then_some(count as usize)
    }
}

/// The approximate bytes of header and trailer.
const HEADER: usize = 75;

impl Handler for Sender {
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if self.left == 0 || self.board.logged_on() < self.all {
            return 0;
        }
        for _ in 0..self.sessions.len() {
            let index = self.cursor;
            self.cursor = (index + 1) % self.sessions.len().max(1);
            if let Some(work) = self.batch(index, peers) {
                return work;
            }
        }
        0
    }

    fn on_message(&mut self, _peer: &mut Peer<'_>, _message: &AppMessage<'_>) {}

    fn on_logon(&mut self, _peer: &mut Peer<'_>) {
        self.board.log_on();
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        self.board.end();
        let key = peer.key();
        let Some(outgoing) = self.sessions.iter().find(|session| session.key == key) else {
            return;
        };
        if !outgoing.done {
            let (id, sent, of) = (peer.id().clone(), outgoing.sent, self.messages);
            self.board
                .trouble(|| format!("session {id}: {reason} after {sent} of {of} orders"));
        }
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        self.board.trouble(|| format!("{address}: {why}"));
    }
}
