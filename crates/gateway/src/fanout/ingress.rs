//! The producers' sessions, whose marked messages are written to the ring.

use crate::FANOUT_ID;
use crate::counts::IngressCounts;
use crate::fanout::record;
use crate::fanout::source_rings::{Put, SourceRings};
use crate::fanout::stamp::Stamp;
use crate::fanout::worker::SHUTTING_DOWN;
use crate::history::RawInlet;
use crate::ports::reports::Reports;
use crate::stages::SourceStages;
use crate::users::roster::Served;
use fanfare_engine::host::{Handler, LogTrouble, Peer, Peers, SessionKey};
use fanfare_fix::codec::Message;
use fanfare_fix::session::{AppMessage, DisconnectReason, Event, Now, SessionId};
use fanfare_fix::tag;
use std::io;

/// The handler of the producers' sessions, which owns the writing end of their ring.
pub(crate) struct Ingress {
    source_rings: SourceRings,
    counts: IngressCounts,
    reports: Reports,
    /// Whether messages without the mark are fanned out.
    all: bool,
    /// The sizes in which reads are offered, of which the first that fits into the rings is used.
    reads: [usize; 2],
    logged_on: Vec<SessionKey>,
    /// A buffer for the body of a message whose mark is in its header.
    body: Vec<u8>,
    /// The writing end of the raw log, if configured.
    log: Option<RawInlet>,
    stages: Option<SourceStages>,
}

/// The most bytes of one read.
const READ: usize = 256 << 10;

impl Ingress {
    pub(crate) fn new(
        source_rings: SourceRings,
        counts: IngressCounts,
        reports: Reports,
        all: bool,
        message_bytes: usize,
        log: Option<RawInlet>,
        stages: Option<SourceStages>,
    ) -> Self {
        let least = 2 * message_bytes;
        Self {
            source_rings,
            counts,
            reports,
            all,
            reads: [READ.max(least), least],
            logged_on: Vec::new(),
            body: Vec::with_capacity(message_bytes),
            log,
            stages,
        }
    }

    fn take(&mut self, message: &Message<'_>, now: Now) {
        self.counts.received.increment(1);
        if !self.all && message.get(FANOUT_ID).is_none_or(<[u8]>::is_empty) {
            return;
        }
        let key = self
            .source_rings
            .wants_symbol()
            .then(|| message.get(tag::SYMBOL));
        let stamp = Stamp {
            ingress_nanos: now.utc.nanos(),
            symbol: key.flatten().unwrap_or_default(),
            ..Stamp::default()
        };
        let put = record::shared(message, &mut self.body).map(|body| {
            let stages = &mut self.stages;
            self.source_rings.put_measured(stages, now, &body, stamp)
        });
        match put {
            Some(Put::Done) => self.counts.marked.increment(1),
            _ => self.counts.unroutable.increment(1),
        }
    }
}

impl Handler for Ingress {
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        self.reports.message(peer, message);
        let now = peer.now();
        if let Some(log) = &mut self.log {
            log.message(message.message.bytes(), now.utc.nanos(), peer.address());
        }
        self.take(&message.message, now);
    }

    /// Returns the bytes that may be read now. The workers always drain the ring, even for slow
    /// consumers, so its free capacity recovers soon. A message takes no more there than on the
    /// wire, because its header is left out.
    fn room(&mut self) -> usize {
        let mut reads = self.reads.into_iter();
        reads
            .find(|&bytes| self.source_rings.has_room(bytes))
            .unwrap_or(0)
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        if self.logged_on.contains(&peer.key()) {
            // The numbers of the session were reset while it is logged on.
            return;
        }
        self.logged_on.push(peer.key());
        self.reports.logged_on(peer);
    }

    fn on_broken(&mut self, peer: &mut Peer<'_>, error: &io::Error) {
        self.reports.broken(peer, error);
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        let key = peer.key();
        let place = self.logged_on.iter().position(|&own| own == key);
        let was_logged_on = place.map(|place| self.logged_on.swap_remove(place));
        let left_out = was_logged_on.map(|_| 0);
        self.reports.ended(peer, reason, None, left_out);
    }

    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        self.reports.event(peer, event);
    }

    fn on_log(&mut self, trouble: &LogTrouble) {
        self.reports.log(trouble);
    }

    fn on_panic(&mut self, session: Option<&SessionId>, message: &str) {
        self.reports.panicked(session, message);
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        self.reports.look(peers, |_| Served::default());
        self.source_rings.wake();
        0
    }

    fn on_close(&mut self, peers: &mut Peers<'_>) {
        for mut peer in peers.logged_on() {
            peer.logout(SHUTTING_DOWN);
        }
    }
}
