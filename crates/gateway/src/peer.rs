//! A connection with its session.

use crate::hole::{Hole, Holes, Missing, NEWS};
use crate::notice::{Notice, PeerEnd};
use crate::registry::{Claim, Numbers};
use crate::seats::Seat;
use crate::versions::{self, Versions};
use fanfare_engine::tcp::{Connection, SendError};
use fanfare_fix::session::{MessageStore, NoResendStore, Now, SECOND, Session};
use std::io::IoSlice;
use std::net::SocketAddr;

/// A connection with its session.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    /// Boxed: it is long, and those of the others are walked over.
    pub(crate) live: Box<Live>,
    /// Given back when the connection has ended.
    pub(crate) _seat: Seat,
}

/// A session on a connection.
pub(crate) struct Live {
    pub(crate) session: Session<NoResendStore>,
    pub(crate) claim: Claim,
    /// The place among [`versions::VERSIONS`] of what it sends, once it is logged on.
    pub(crate) version: Option<usize>,
    /// Messages for this session since it logged on: those delivered, and those left out.
    pub(crate) offered: u64,
    /// Those left out because it did not read.
    pub(crate) left_out: u64,
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

impl Live {
    pub(crate) fn new(session: Session<NoResendStore>, claim: Claim) -> Self {
        Self {
            session,
            claim,
            version: None,
            offered: 0,
            left_out: 0,
            holes: None,
            unreported: 0,
            next_report: 0,
        }
    }

    /// The session is logged on: what it sends is of this version from now on.
    pub(crate) fn begins(&mut self, versions: &Versions) {
        if self.version.is_none() {
            let version = self.claim.id().version;
            let place = versions::of_session(version, self.session.peer_appl_ver_id());
            versions.logged_on(place);
            self.version = Some(place);
        }
    }

    /// Whether a message for these versions is for this session.
    pub(crate) fn takes(&self, versions: u32) -> bool {
        versions == versions::ALL || self.version.is_some_and(|v| versions >> v & 1 == 1)
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
    pub(crate) fn tell_holes(
        &mut self,
        now: Now,
        connection: &mut Connection,
        limit: usize,
    ) -> Result<(), PeerEnd> {
        let Some(holes) = &mut self.holes else {
            return Ok(());
        };
        let is_slow = holes.of(Missing::SlowConsumer).is_some();
        let room = if is_slow { limit / 2 } else { limit };
        if connection.queued() + NEWS_ROOM * holes.len() > room {
            return Ok(());
        }
        let session = &mut self.session;
        let version = session.config().id.version;
        holes.drain(|hole| {
            let sent = session.send(now, NEWS, |body| hole.body(version, body));
            sent.is_ok()
        });
        if holes.is_empty() {
            self.holes = None;
        }
        self.transmit(now, connection)
    }

    /// The notice of messages left out, if one is due.
    pub(crate) fn report(&mut self, now: Now, peer: SocketAddr) -> Option<Notice> {
        if self.unreported == 0 || now.mono < self.next_report {
            return None;
        }
        self.next_report = now.mono + REPORTS;
        Some(Notice::LeftOut {
            session: self.claim.id().clone(),
            peer,
            count: std::mem::take(&mut self.unreported),
        })
    }

    /// Keeps the session's numbers for the next time it logs on.
    pub(crate) fn keep_numbers(&mut self) {
        let store = self.session.store();
        self.claim.numbers = Numbers {
            sender: store.next_sender(),
            target: store.next_target(),
        };
    }

    /// Hands what the session has to say to the connection.
    pub(crate) fn transmit(
        &mut self,
        now: Now,
        connection: &mut Connection,
    ) -> Result<(), PeerEnd> {
        loop {
            let bytes = self.session.poll_transmit();
            if !bytes.is_empty() {
                let len = bytes.len();
                match connection.send(&[IoSlice::new(bytes)]) {
                    Ok(_) => self.session.transmitted(len),
                    Err(SendError::Io(e)) => return Err(PeerEnd::Broken(e.to_string())),
                    Err(SendError::Overflow(full)) => {
                        return Err(PeerEnd::SlowConsumer {
                            queued: full.queued,
                        });
                    }
                }
            } else if self.session.poll_timeout() == Some(0) {
                self.session.handle_timeout(now);
            } else {
                return Ok(());
            }
        }
    }
}
