//! The handler of the acceptor: checks and counts orders.

use std::net::SocketAddr;
use std::sync::Arc;

use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Handler, Peer, Peers, Refusal};
use fanfare_fix::msg_type;
use fanfare_fix::session::{AppMessage, DisconnectReason};

use super::board::Board;
use super::orders::Orders;

/// The counts of a receiving side; all but `received` and the times should be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Orders received and parsed, each with the number that was next in its session.
    pub received: u64,
    /// Orders among them whose fields are not those of their line, or beyond those expected.
    pub wrong: u64,
    /// Expected orders that have not come.
    pub lost: u64,
    /// The monotonic nanoseconds at which the first and the last order had been parsed.
    pub span: Option<(u64, u64)>,
}

impl Tally {
    /// Adds the counts of another thread.
    pub(super) fn add(&mut self, other: Self) {
        self.received += other.received;
        self.wrong += other.wrong;
        self.lost += other.lost;
        self.span = match (self.span, other.span) {
            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
            (a, b) => a.or(b),
        };
    }

    /// Returns orders per second from the first to the last; NaN for fewer than two.
    #[must_use]
    pub fn rate(&self) -> f64 {
        match self.span {
            Some((first, last)) if last > first => {
                self.received as f64 * 1e9 / (last - first) as f64
            }
            _ => f64::NAN,
        }
    }

    /// Returns whether every order came, once, in order and unchanged.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.wrong == 0 && self.lost == 0
    }
}

/// The receiver of the orders of one thread's sessions.
pub(super) struct Receiver {
    orders: Arc<Orders>,
    board: Arc<Board>,
    clock: Clock,
    /// The orders expected of each session.
    messages: u64,
    /// Orders received, by session.
    counts: Vec<u64>,
    tally: Tally,
    expected: u64,
    /// The part of `tally.received` that is not on the board yet.
    fresh: u64,
}

impl Receiver {
    pub(super) fn new(
        orders: Arc<Orders>,
        board: Arc<Board>,
        messages: u64,
        sessions: usize,
    ) -> Self {
        Self {
            orders,
            board,
            clock: Clock::new(),
            messages,
            counts: vec![0; sessions],
            tally: Tally::default(),
            expected: messages * sessions as u64,
            fresh: 0,
        }
    }

    /// Returns the counts so far.
    pub(super) fn tally(&self) -> Tally {
        let each = self.counts.iter();
        let lost = each.map(|&count| self.messages.saturating_sub(count)).sum();
        Tally { lost, ..self.tally }
    }
}

impl Handler for Receiver {
    /// Checks an order. The session delivers each MsgSeqNum(34) once and in order; the line
    /// verifies the order of sending.
    #[inline]
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let order = &message.message;
        let Some(count) = self.counts.get_mut(peer.key().index()) else {
            return;
        };
        let right = order.msg_type() == msg_type::NEW_ORDER_SINGLE
            && order.body() == self.orders.body(*count)
            && *count < self.messages
            && !message.poss_resend;
        *count += 1;
        self.tally.wrong += u64::from(!right);
        self.tally.received += 1;
        self.fresh += 1;
        // The clock is read twice per run.
        if self.tally.received == 1 || self.tally.received == self.expected {
            let now = self.clock.read().mono;
            let (first, _) = *self.tally.span.get_or_insert((now, now));
            self.tally.span = Some((first, now));
        }
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if self.fresh > 0 {
            self.board.add(std::mem::take(&mut self.fresh));
            // In a run that ends early the last duty cycle counts.
            if self.tally.received < self.expected
                && let Some(span) = &mut self.tally.span
            {
                span.1 = peers.now().mono.max(span.0);
            }
        }
        0
    }

    fn on_logon(&mut self, _peer: &mut Peer<'_>) {
        self.board.log_on();
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        let count = self.counts.get(peer.key().index()).copied().unwrap_or(0);
        if count < self.messages {
            let (id, of) = (peer.id().clone(), self.messages);
            self.board
                .trouble(|| format!("session {id}: {reason} after {count} of {of} orders"));
        }
        self.board.end();
    }

    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        self.board.trouble(|| format!("{address}: {why}"));
    }
}
