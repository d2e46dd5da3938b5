//! The counts and notices of the sessions of one host.

use crate::counts::SessionCounts;
use crate::notice::{Limit, MessageTrouble, Notice, Notices, PeerEnd, Rejection};
use crate::ports::registry::{Numbers, Registry};
use crate::ports::seats::{Records, Seats};
use crate::users::roster::Served;
use fanfare_engine::host::{LogTrouble, Peer, Peers, SessionKey};
use fanfare_fix::codec::Message;
use fanfare_fix::msg_type;
use fanfare_fix::session::{AppMessage, DisconnectReason, Event, MessageStore, SessionId};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The reporter of a host's sessions, which counts them, sends notices, and stores their sequence
/// numbers.
pub(crate) struct Reports {
    counts: SessionCounts,
    notices: Notices,
    registry: Registry,
    rejects: Limit,
    troubles: Limit,
    logged_on: u64,
    seats: Seats,
    /// The last session whose connection has failed, and the error.
    broken: Option<(SessionKey, PeerEnd)>,
}

impl Reports {
    pub(crate) fn new(
        counts: SessionCounts,
        notices: Notices,
        registry: Registry,
        records: Records,
    ) -> Self {
        Self {
            counts,
            notices,
            registry,
            rejects: Limit::default(),
            troubles: Limit::default(),
            logged_on: 0,
            seats: Seats::new(records),
            broken: None,
        }
    }

    pub(crate) fn send(&self, notice: Notice) {
        self.notices.send(notice);
    }

    pub(crate) fn logged_on(&mut self, peer: &Peer<'_>) {
        // The key may belong to another session, which has ended.
        self.broken = None;
        self.logged_on += 1;
        self.counts.connections.set(self.logged_on);
        self.counts.logons.increment(1);
        self.seats.logged_on(peer);
        if let Some(address) = peer.address() {
            self.notices.send(Notice::LoggedOn {
                session: peer.id().clone(),
                peer: address,
            });
        }
    }

    /// Records that the connection of a session has failed. [`ended`](Self::ended) follows.
    pub(crate) fn broken(&mut self, peer: &Peer<'_>, error: &io::Error) {
        self.broken = Some((peer.key(), PeerEnd::Broken(error.to_string())));
    }

    /// Records that a session has ended, because of `end` if it is set, and of `reason` otherwise.
    /// `left_out` counts the messages that it did not receive, if it was logged on.
    pub(crate) fn ended(
        &mut self,
        peer: &mut Peer<'_>,
        reason: DisconnectReason,
        end: Option<PeerEnd>,
        left_out: Option<u64>,
    ) {
        if left_out.is_some() {
            self.logged_on -= 1;
            self.counts.connections.set(self.logged_on);
            self.counts.ended.increment(1);
        } else {
            self.counts.failed.increment(1);
        }
        let session = peer.session();
        let store = session.store();
        let numbers = Numbers {
            reset: session.is_reset_open(),
            ..Numbers::new(store.next_sender(), store.next_target())
        };
        self.registry.keep(peer.id(), numbers);
        let broken = self.broken.take().filter(|(key, _)| *key == peer.key());
        let end = end.or(broken.map(|(_, end)| end));
        let end = end.unwrap_or(PeerEnd::Session(reason));
        self.seats.ended(peer, &end);
        self.notices.send(Notice::Ended {
            session: Some(peer.id().clone()),
            peer: peer.address().unwrap_or(NOWHERE),
            end,
            left_out: left_out.unwrap_or(0),
        });
    }

    /// Samples the state of the sessions for operators, once a turn. `served` returns the agent's
    /// state of a session.
    pub(crate) fn look(&mut self, peers: &mut Peers<'_>, served: impl Fn(SessionKey) -> Served) {
        self.seats.look(peers, served);
    }

    /// Reports a BusinessMessageReject(j) of a message that the gateway sent.
    pub(crate) fn message(&mut self, peer: &Peer<'_>, message: &AppMessage<'_>) {
        if message.message.msg_type() == msg_type::BUSINESS_MESSAGE_REJECT {
            self.rejected(peer, &message.message);
        }
    }

    /// Reports a Reject(3) of a message that the gateway sent, and trouble with messages.
    pub(crate) fn event(&mut self, peer: &Peer<'_>, event: &Event<'_>) {
        if let Event::RejectReceived(message) = event {
            self.rejected(peer, message);
        }
        if let Some(what) = MessageTrouble::of(event)
            && self.troubles.lets(peer.now().utc.nanos())
        {
            self.notices.send(Notice::Messages {
                session: peer.id().clone(),
                what,
                untold: self.troubles.untold(),
            });
        }
    }

    /// Reports a change in the state of the message log.
    pub(crate) fn log(&self, trouble: &LogTrouble) {
        self.notices.send(Notice::Log(trouble.clone()));
    }

    /// Reports a panic in a handler.
    pub(crate) fn panicked(&self, session: Option<&SessionId>, message: &str) {
        self.notices.send(Notice::Panicked {
            session: session.cloned(),
            message: message.to_owned(),
        });
    }

    fn rejected(&mut self, peer: &Peer<'_>, message: &Message<'_>) {
        self.counts.rejects.increment(1);
        if self.rejects.lets(peer.now().utc.nanos()) {
            self.notices.send(Notice::Rejected {
                session: peer.id().clone(),
                reject: Rejection::of(message),
                untold: self.rejects.untold(),
            });
        }
    }
}

/// The address of a connection that has ended.
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
