//! The records of the sessions of one port besides counters: the roster and the audit file.

use crate::notice::PeerEnd;
use crate::notice::audit::Audit;
use crate::ports::lag::Lag;
use crate::users::PortName;
use crate::users::roster::{Reading, Roster, Seat, Served};
use fanfare_engine::host::{Peer, Peers, SessionKey};
use fanfare_fix::session::{DisconnectReason, SessionId};
use std::fmt::Display;
use std::net::SocketAddr;
use std::sync::Arc;

/// The roster and the audit file of one port, for any thread. Clones share them.
#[derive(Clone)]
pub(crate) struct Records {
    pub(crate) port: PortName,
    pub(crate) roster: Roster,
    pub(crate) audit: Audit,
}

impl Records {
    /// Records that a Logon was refused. `user` is empty if the session has no user.
    pub(crate) fn refused(
        &self,
        session: &SessionId,
        user: &str,
        peer: SocketAddr,
        why: &dyn Display,
    ) {
        self.audit
            .refused(self.port.name(), session, user, peer, why);
    }
}

/// The interval at which the sessions of a host are sampled, in nanoseconds, and how many are
/// sampled in one turn, so that no message is delayed.
const INTERVAL: u64 = 250_000_000;
const OF_TURN: usize = 256;

/// The places of one host's sessions on the roster.
pub(crate) struct Seats {
    records: Records,
    /// The places, indexed by session.
    seats: Vec<Option<Taken>>,
    /// The next session to be sampled, and when.
    cursor: usize,
    due: u64,
}

/// The place of a session that is logged on.
struct Taken {
    key: SessionKey,
    seat: Arc<Seat>,
    lag: Lag,
}

impl Seats {
    pub(crate) const fn new(records: Records) -> Self {
        Self {
            records,
            seats: Vec::new(),
            cursor: 0,
            due: 0,
        }
    }

    /// Records that a session has logged on.
    pub(crate) fn logged_on(&mut self, peer: &Peer<'_>) {
        let Records {
            port,
            roster,
            audit,
        } = &self.records;
        let Some(seat) = roster.seat(*port, peer.id()) else {
            return;
        };
        let mut lag = Lag::default();
        seat.set(reading(peer, &mut lag, Served::default()));
        audit.logon(port.name(), &seat.id, &seat.user, seat.peer);
        let (key, index) = (peer.key(), peer.key().index());
        if self.seats.len() <= index {
            self.seats.resize_with(index + 1, || None);
        }
        if let Some(place) = self.seats.get_mut(index) {
            *place = Some(Taken { key, seat, lag });
        }
    }

    /// Records that a session has ended, or that its Logon(A) was refused if it was not logged on.
    pub(crate) fn ended(&mut self, peer: &Peer<'_>, why: &PeerEnd) {
        let place = self.seats.get_mut(peer.key().index());
        let Records {
            port,
            roster,
            audit,
        } = &self.records;
        if let Some(Taken { seat, .. }) = place.and_then(Option::take) {
            if *why == PeerEnd::Session(DisconnectReason::LogoutTimeout) {
                seat.note_no_answer();
            }
            audit.ended(port.name(), &seat.id, &seat.user, seat.peer, why);
        } else if let Some(seat) = roster.seat(*port, peer.id()) {
            audit.refused(port.name(), &seat.id, &seat.user, seat.peer, why);
        }
    }

    /// Samples the state of some of the sessions, if it is due. `served` returns the agent's state
    /// of a session.
    #[inline]
    pub(crate) fn look(&mut self, peers: &mut Peers<'_>, served: impl Fn(SessionKey) -> Served) {
        if peers.now().mono >= self.due {
            self.note(peers, served);
        }
    }

    fn note(&mut self, peers: &mut Peers<'_>, served: impl Fn(SessionKey) -> Served) {
        let places = self.seats.iter_mut().skip(self.cursor).take(OF_TURN);
        for Taken { key, seat, lag } in places.flatten() {
            if let Some(peer) = peers.get(*key) {
                seat.set(reading(&peer, lag, served(*key)));
            }
        }
        self.cursor += OF_TURN;
        if self.cursor >= self.seats.len() {
            self.cursor = 0;
            self.due = peers.now().mono + INTERVAL;
        }
    }
}

fn reading(peer: &Peer<'_>, lag: &mut Lag, served: Served) -> Reading {
    let (next_sender, next_target) = peer.next_numbers();
    let (now, (passed, waits)) = (peer.now(), peer.waited());
    let silence = now.mono.saturating_sub(peer.last_received());
    Reading {
        last_heard: now.utc.nanos().unsigned_abs().saturating_sub(silence),
        round_trip: peer.round_trip(),
        lag: lag.look(now.mono, passed, waits as u64),
        served,
        next_sender,
        next_target,
        queued: peer.queued() as u64,
        is_logged_on: peer.is_logged_on(),
    }
}
