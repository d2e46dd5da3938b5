//! What a worker keeps of one consumer: which messages are for it, and what it has missed.

use crate::hole::{Hole, Holes, Missing, NEWS};
use crate::notice::{Notice, PeerEnd};
use crate::versions::{self, Versions};
use fanfare_engine::host::Peer;
use fanfare_fix::session::{Now, SECOND};

/// A consumer's session that is logged on.
pub(crate) struct Consumer {
    /// The place among [`versions::VERSIONS`] of what it sends.
    pub(crate) version: usize,
    /// Messages for this session since it logged on: those delivered, and those left out.
    pub(crate) offered: u64,
    /// Those left out because it did not read.
    pub(crate) left_out: u64,
    /// Why it is to end, if the worker ends it.
    pub(crate) end: Option<PeerEnd>,
    /// Whether it has asked for market data: what is for all is not for it.
    pub(crate) has_asked: bool,
    /// Whether anything is hidden from it: what is for all is not for it.
    pub(crate) is_limited: bool,
    /// Whether it gets what is for all; its version is in use then.
    pub(crate) is_of_all: bool,
    /// What is missing in front of the next message, and it has not been told yet.
    holes: Option<Box<Holes>>,
    /// How many of those left out have had no notice, and when the next one may be sent.
    unreported: u64,
    next_report: u64,
}

/// Room that a News(B) about missing messages takes at most.
const NEWS_ROOM: usize = 1024;

/// How often it is said that messages are left out for a session: the first at once, then sums.
const REPORTS: u64 = 10 * SECOND;

impl Consumer {
    /// One that has just logged on.
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
            unreported: 0,
            next_report: 0,
        }
    }

    /// What is for all is for this session or not, from now on: the sources write it for versions
    /// that are in use.
    pub(crate) fn belongs_to_all(&mut self, belongs: bool, versions: &Versions) {
        match (self.is_of_all, belongs) {
            (false, true) => versions.logged_on(self.version),
            (true, false) => versions.ended(self.version),
            _ => {}
        }
        self.is_of_all = belongs;
    }

    /// Whether a message for these versions is for this session.
    pub(crate) fn takes(&self, versions: u32) -> bool {
        versions == versions::ALL || versions >> self.version & 1 == 1
    }

    /// Whether messages are missing in front of the next one, and it has not been told.
    pub(crate) fn has_holes(&self) -> bool {
        self.holes.is_some()
    }

    /// Notes that `count` messages found no room.
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

    /// Notes that messages are missing behind the last one delivered.
    pub(crate) fn miss(&mut self, hole: &Hole) {
        self.holes.get_or_insert_default().add(hole);
    }

    /// Sends a News(B) for what is missing, if there is room. Once messages have been left out,
    /// half of the queue of `limit` bytes must be free: otherwise a consumer that is always a
    /// little too slow would get a News(B) for each message that it does not get.
    pub(crate) fn send_holes(&mut self, peer: &mut Peer<'_>, limit: usize) {
        let Some(holes) = &mut self.holes else {
            return;
        };
        let is_slow = holes.of(Missing::SlowConsumer).is_some();
        let room = if is_slow { limit / 2 } else { limit };
        if peer.queued() + NEWS_ROOM * holes.len() > room {
            return;
        }
        let version = peer.id().version;
        holes.drain(|hole| {
            let sent = peer.send(NEWS, |body| hole.body(version, body));
            sent.is_ok()
        });
        if holes.is_empty() {
            self.holes = None;
        }
    }

    /// The notice of messages left out, if one is due.
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
