//! The producers' side: sessions in, marked messages into the ring.

use crate::FANOUT_ID;
use crate::counts::IngressCounts;
use crate::lobby::Lobby;
use crate::peers::{Peers, Sink};
use crate::record;
use crate::source_rings::{Put, SourceRings, Stamp};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_fix::codec::tags;
use fanfare_fix::session::{AppMessage, Now};
use std::os::fd::BorrowedFd;

/// Owns the producers' sessions and the writing end of their ring.
pub(crate) struct Ingress {
    lobby: Lobby,
    peers: Peers,
    route: Route,
}

struct Route {
    source_rings: SourceRings,
    counts: IngressCounts,
    /// Whether messages without the mark are fanned out too.
    all: bool,
    /// The time of this turn, nanoseconds since 1970.
    utc_nanos: i64,
}

impl Ingress {
    pub(crate) fn new(
        lobby: Lobby,
        peers: Peers,
        source_rings: SourceRings,
        counts: IngressCounts,
        all: bool,
    ) -> Self {
        Self {
            lobby,
            peers,
            route: Route {
                source_rings,
                counts,
                all,
                utc_nanos: 0,
            },
        }
    }

    /// Lets producers in that log on. What comes right behind a Logon needs room in the ring.
    fn welcome(&mut self, now: Now) -> std::io::Result<usize> {
        let Self {
            lobby,
            peers,
            route,
        } = self;
        if !route.has_room(lobby.longest_read()) {
            return Ok(0);
        }
        lobby.turn(now, |newcomer| peers.seat(now, newcomer, route))
    }
}

impl Agent for Ingress {
    fn name(&self) -> &str {
        "ingress"
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        self.route.utc_nanos = now.utc.nanos();
        let read = self.peers.turn(now, &mut self.route)?;
        let welcomed = self.welcome(now)?;
        self.route.source_rings.wake();
        Ok(read + welcomed)
    }

    fn on_close(&mut self, now: Now) {
        self.peers.say_goodbye(now);
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend([self.peers.descriptor(), self.lobby.descriptor()]);
    }

    fn after_sleep(&mut self) {
        self.lobby.look_now();
    }
}

impl Sink for Route {
    /// The workers always drain the ring (a slow consumer does not hold them up), so it has room
    /// again soon. A message takes no more there than on the wire: its header is left out.
    fn has_room(&mut self, bytes: usize) -> bool {
        self.source_rings.has_room(bytes)
    }

    fn take(&mut self, message: &AppMessage<'_>) {
        self.counts.received.increment(1);
        let message = &message.message;
        if !self.all && message.get(FANOUT_ID).is_none() {
            return;
        }
        let key = self
            .source_rings
            .wants_symbol()
            .then(|| message.get(tags::SYMBOL));
        let stamp = Stamp {
            ingress_nanos: self.utc_nanos,
            symbol: key.flatten().unwrap_or_default(),
            ..Stamp::default()
        };
        let body = record::shared(message);
        if body.is_some_and(|body| self.source_rings.put(&body, stamp) == Put::Done) {
            self.counts.marked.increment(1);
        } else {
            self.counts.unroutable.increment(1);
        }
    }
}
