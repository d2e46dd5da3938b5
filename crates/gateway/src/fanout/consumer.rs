//! The state that a worker keeps of one consumer: the messages it takes, and those it has missed.

use crate::fanout::hole::{Hole, Holes, Missing, NEWS};
use crate::fanout::versions::{self, Versions};
use crate::notice::{Notice, PeerEnd};
use fanfare_engine::host::Peer;
use fanfare_fix::session::{Now, SECOND};

/// The session of a consumer that is logged on.
pub(crate) struct Consumer {
    /// The index of its version in [`versions::VERSIONS`].
    pub(crate) version: usize,
    /// Messages for this session since its Logon, delivered or dropped.
    pub(crate) offered: u64,
    /// Messages dropped because the consumer did not read.
    pub(crate) left_out: u64,
    /// The reason for which the worker ends the session, if it does.
    pub(crate) end: Option<PeerEnd>,
    /// Whether the session has requested market data, and so takes no messages addressed to all.
    pub(crate) has_asked: bool,
    /// Whether the user may not see everything, and so takes no messages addressed to all.
    pub(crate) is_limited: bool,
    /// Whether the session takes messages addressed to all. Its version counts as in use then.
    pub(crate) is_of_all: bool,
    /// The unreported holes before the next message.
    holes: Option<Box<Holes>>,
    /// Whether the worker lists the session among those with unreported holes.
    is_listed: bool,
    /// The dropped messages that were not reported yet, and the earliest time of the next report.
    unreported: u64,
    next_report: u64,
}

/// The most bytes of a News(B) about missing messages.
pub(crate) const NEWS_ROOM: usize = 1024;

/// The interval of reports of dropped messages for a session: the first is reported at once, later
/// ones as sums.
const REPORTS: u64 = 10 * SECOND;

impl Consumer {
    /// Creates the state of a session that has just logged on.
    pub(crate) fn new(peer: &mut Peer<'_>) -> Self {
        let (version, default) = (peer.id().version, peer.session().peer_appl_ver_id());
        let version = versions::of_session(version, default);
        Self {
            version,
            offered: 0,
            left_out: 0,
            end: None,
            has_asked: false,
            is_limited: false,
            is_of_all: false,
            holes: None,
            is_listed: false,
            unreported: 0,
            next_report: 0,
        }
    }

    /// Sets whether the session takes messages addressed to all. The sources write such messages
    /// only for versions in use.
    pub(crate) fn belongs_to_all(&mut self, belongs: bool, versions: &Versions) {
        match (self.is_of_all, belongs) {
            (false, true) => versions.logged_on(self.version),
            (true, false) => versions.ended(self.version),
            _ => {}
        }
        self.is_of_all = belongs;
    }

    /// Returns whether a message for these versions is for this session.
    pub(crate) fn takes(&self, versions: u32) -> bool {
        versions == versions::ALL || versions >> self.version & 1 == 1
    }

    /// Returns whether messages before the next one are missing and unreported.
    pub(crate) fn has_holes(&self) -> bool {
        self.holes.is_some()
    }

    /// Returns whether the worker has to list the session, because it has unreported holes. Returns
    /// `true` only once until [`stays_listed`](Self::stays_listed) returns `false`, because holes
    /// may be reported and others follow while the session is listed.
    pub(crate) fn enters_list(&mut self) -> bool {
        self.has_holes() && !std::mem::replace(&mut self.is_listed, true)
    }

    /// Returns whether a listed session still has unreported holes.
    pub(crate) fn stays_listed(&mut self) -> bool {
        self.is_listed = self.has_holes();
        self.is_listed
    }

    /// Records that `count` messages did not fit into the queue.
    #[cold]
    pub(crate) fn leave_out(&mut self, now: Now, count: u64) {
        if count == 0 {
            return;
        }
        let first = self.offered + 1;
        self.offered += count;
        self.left_out += count;
        self.unreported += count;
        self.miss(&Hole {
            first,
            last: self.offered,
            ..Hole::new(Missing::SlowConsumer, count, now.utc.nanos())
        });
    }

    /// Records that messages after the last one delivered are missing.
    pub(crate) fn miss(&mut self, hole: &Hole) {
        self.holes.get_or_insert_default().add(hole);
    }

    /// Sends a News(B) for each hole, as far as they fit into a queue of `limit` bytes. Once
    /// messages have been dropped, half of the queue must be free. Otherwise a consumer that is
    /// always a little too slow would receive a News(B) for each message dropped. Returns whether
    /// any was sent.
    pub(crate) fn send_holes(&mut self, peer: &mut Peer<'_>, limit: usize) -> bool {
        let Some(holes) = &mut self.holes else {
            return false;
        };
        let is_slow = holes.of(Missing::SlowConsumer).is_some();
        let room = if is_slow { limit / 2 } else { limit };
        let version = peer.id().version;
        let mut has_sent = false;
        holes.drain(|hole| {
            let fits = peer.queued() + NEWS_ROOM <= room;
            let is_sent = fits && peer.send(NEWS, |body| hole.body(version, body)).is_ok();
            has_sent |= is_sent;
            is_sent
        });
        if holes.is_empty() {
            self.holes = None;
        }
        has_sent
    }

    /// Returns the notice of dropped messages, if one is due.
    pub(crate) fn report(&mut self, peer: &Peer<'_>) -> Option<Notice> {
        let now = peer.now();
        if self.unreported == 0 || now.mono < self.next_report {
            return None;
        }
        self.next_report = now.mono + REPORTS;
        Some(Notice::LeftOut {
            session: peer.id().clone(),
            peer: peer.address()?,
            count: std::mem::take(&mut self.unreported),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_listed_once_while_holes_are_reported_and_others_follow() {
        let mut consumer = Consumer {
            version: 0,
            offered: 0,
            left_out: 0,
            end: None,
            has_asked: false,
            is_limited: false,
            is_of_all: true,
            holes: None,
            is_listed: false,
            unreported: 0,
            next_report: 0,
        };
        let hole = Hole::new(Missing::FeedGap, 1, 0);
        assert!(!consumer.enters_list());
        consumer.miss(&hole);
        assert!(consumer.enters_list() && !consumer.enters_list());
        consumer.holes = None;
        consumer.miss(&hole);
        assert!(!consumer.enters_list() && consumer.stays_listed());
        consumer.holes = None;
        assert!(!consumer.stays_listed());
        consumer.miss(&hole);
        assert!(consumer.enters_list());
    }
}
