//! The application's side of a host.

use super::handle::Undone;
use super::link::Hosted;
use super::log::LogTrouble;
use super::names::CertificateNames;
use super::store::Store;
use crate::journal::Recovery;
use fanfare_fix::codec::{FieldWriter, Message};
use fanfare_fix::session::{
    AppMessage, DisconnectReason, Event, FieldTooLong, MessageStore, Now, SendError, Session,
    SessionId,
};
use fanfare_wire::text::Escaped;
use std::fmt;
use std::net::SocketAddr;

/// The application. All calls come on the host's thread, one at a time; none may wait.
///
/// A call that panics ends its session, with a Logout, and no other session: see
/// [`on_panic`](Self::on_panic). The handler is used again in the state that the panic left.
pub trait Handler: Send {
    /// An application message, in order, each number once. It counts as received when this
    /// returns.
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>);

    /// A Logon asks to be let in (only with `Config::ask_logon`): look at Username(553),
    /// Password(554).
    fn on_logon_request(&mut self, peer: &mut Peer<'_>, logon: &Message<'_>) -> Verdict {
        let _ = (peer, logon);
        Verdict::Accept
    }

    /// The journal of a session was opened and was not in order: an incomplete last record was cut
    /// off, other users had access to its files, or records are lost and the loss was accepted.
    /// Called when the session is hosted, before all other calls for it. The text of `recovery` is
    /// for the operator.
    fn on_recovery(&mut self, id: &SessionId, recovery: &Recovery) {
        let _ = (id, recovery);
    }

    /// Both Logons are exchanged: messages may be sent.
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }

    /// The session is over, for this reason; an initiator will connect again.
    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        let _ = (peer, reason);
    }

    /// Anything else that happened: gaps, resends, rejects, garbled bytes.
    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        let _ = (peer, event);
    }

    /// A Logon fits the [`Wildcard`](super::Wildcard) with this tag, and `session` would be made
    /// for it. Nothing has been made or opened yet. If this refuses, nothing is: the counterparty
    /// gets a Logout, which is in no store. Otherwise `on_made` follows.
    fn on_stranger(&mut self, session: &SessionId, tag: usize, logon: &Message<'_>) -> Verdict {
        let _ = (session, tag, logon);
        Verdict::Accept
    }

    /// A session was made for a Logon, by the [`Wildcard`](super::Wildcard) with this tag.
    /// `on_logon_request` and `on_logon` follow, or `on_disconnect`.
    fn on_made(&mut self, session: &SessionId, tag: usize) {
        let _ = (session, tag);
    }

    /// A session is removed: at the wish of a [`HostHandle`](super::HostHandle), or because it was
    /// made for a Logon which was refused, or another such session takes its place. Its
    /// [`SessionKey`] is used again.
    fn on_removed(&mut self, session: &SessionId) {
        let _ = session;
    }

    /// The host took a request of a [`SessionHandle`](super::SessionHandle) and cannot do it:
    /// nothing of it has happened. The request may be kept and made again.
    fn on_undone(&mut self, undone: &Undone<'_>) {
        let _ = undone;
    }

    /// A connection was turned away, or could not be made.
    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        let _ = (address, why);
    }

    /// A call of this handler panicked with `message`. `session` is the session of the call, and
    /// for [`on_turn`](Self::on_turn) the one that the call took last. It is logged out, and
    /// `on_disconnect` follows. The message that the call was for does not count as received.
    fn on_panic(&mut self, session: Option<&SessionId>, message: &str) {
        let _ = (session, message);
    }

    /// The state of the message log has changed (see [`Host::log_to`](super::Host::log_to)). Called
    /// within about a millisecond.
    fn on_log(&mut self, trouble: &LogTrouble) {
        let _ = trouble;
    }

    /// Called once each duty cycle, to send what does not answer a message. Returns an amount of
    /// work, 0 if there was none.
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let _ = peers;
        0
    }

    /// The monotonic time at which [`on_turn`](Self::on_turn) has something to do, if that is
    /// known: a host that sleeps wakes up for it.
    fn next_turn(&self) -> Option<u64> {
        None
    }
}

/// The decision about a Logon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Let in.
    Accept,
    /// Turned away with a Logout that has this Text(58).
    Refuse(String),
}

/// Why a connection came to nothing before there was a session on it.
#[derive(Debug)]
pub enum Refusal {
    /// The address is not on the allow list.
    NotAllowed,
    /// As many connections as allowed have not logged on yet.
    TooManyGreetings,
    /// As many connections of this address as allowed have not logged on yet.
    TooManyFromAddress,
    /// The process has no descriptor left.
    NoDescriptors,
    /// The port is closed, and the connection has not logged on.
    PortClosed,
    /// No Logon within the time for it.
    Silent,
    /// The first message was no Logon, or no message.
    NotLogon,
    /// The first message is longer than this many bytes.
    LongLogon(usize),
    /// The Logon has a CompID, SubID or LocationID that is longer than it may be.
    TooLong(FieldTooLong),
    /// No such session here.
    UnknownSession(SessionId),
    /// The session has a connection already; that one goes on.
    AlreadyConnected(SessionId),
    /// There are as many sessions made for Logons as there may be.
    TooManySessions(usize),
    /// The application refused to make this session, for this reason.
    Stranger(SessionId, String),
    /// The client's certificate is not for this session.
    Certificate {
        /// The session that the Logon asks for.
        session: SessionId,
        /// The names in the certificate.
        names: CertificateNames,
    },
    /// The session's store cannot be opened.
    Store(String),
    /// The transport failed, or an outgoing connection was refused.
    Transport(std::io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAllowed => f.write_str("address not on the allow list"),
            Self::TooManyGreetings => f.write_str("too many connections without a logon"),
            Self::TooManyFromAddress => {
                f.write_str("too many connections of this address without a logon")
            }
            Self::NoDescriptors => f.write_str("no descriptors left"),
            Self::PortClosed => f.write_str("the port is closed"),
            Self::Silent => f.write_str("no Logon in time"),
            Self::LongLogon(most) => write!(f, "first message is longer than {most} bytes"),
            Self::NotLogon => f.write_str("first message is not a Logon"),
            Self::TooLong(field) => field.fmt(f),
            Self::UnknownSession(id) => write!(f, "no session {id}"),
            Self::AlreadyConnected(id) => write!(f, "session {id} has a connection"),
            Self::TooManySessions(most) => {
                write!(f, "the limit of {most} sessions made for Logons is reached")
            }
            Self::Stranger(id, why) => write!(f, "no session {id}: {}", Escaped::text(why)),
            Self::Certificate { session, names } => {
                write!(f, "the certificate of {names} is not for session {session}")
            }
            Self::Store(why) => write!(f, "{}", Escaped::text(why)),
            // An error of TLS may quote the peer's certificate.
            Self::Transport(error) => write!(f, "{}", Escaped::text(&error.to_string())),
        }
    }
}

/// Which session of a host. Stays valid until the session is removed: see
/// [`Handler::on_removed`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub(super) usize);

impl SessionKey {
    /// Its place among the sessions of the host: 0 for the first one hosted.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// One session, as the handler may use it.
pub struct Peer<'a> {
    pub(super) key: SessionKey,
    pub(super) now: Now,
    pub(super) session: &'a mut Session<Store>,
}

impl Peer<'_> {
    /// Who talks to whom.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.session.config().id
    }

    /// The session's place in this host.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// The time of this duty cycle.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Whether messages may be sent.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.session.is_logged_on()
    }

    /// Sends an application message; `body` writes the fields behind the standard header. It
    /// goes to the socket at the end of this turn. Gives its MsgSeqNum(34).
    ///
    /// # Errors
    /// See [`SendError`]: nothing was sent and no number used.
    pub fn send(
        &mut self,
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<u64, SendError> {
        self.session.send(self.now, msg_type, body)
    }

    /// Begins the logout; `on_disconnect` follows.
    pub fn logout(&mut self, text: &str) {
        self.session.logout(self.now, text);
    }

    /// The session itself, for all it can do.
    pub fn session(&mut self) -> &mut Session<Store> {
        self.session
    }
}

/// All sessions of a host.
pub struct Peers<'a> {
    pub(super) now: Now,
    pub(super) hosted: &'a mut [Hosted],
    /// The session that was taken last.
    pub(super) last: Option<SessionKey>,
}

impl Peers<'_> {
    /// The time of this duty cycle.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Bytes of a session that the kernel has not taken yet: 0 if there is room for more.
    #[must_use]
    pub fn unsent(&self, key: SessionKey) -> usize {
        let hosted = self.hosted.get(key.0);
        hosted.map_or(0, |hosted| hosted.session.store().unsent().len())
    }

    /// One session; `None` if it was removed.
    pub fn get(&mut self, key: SessionKey) -> Option<Peer<'_>> {
        let now = self.now;
        let hosted = self.hosted.get_mut(key.0)?;
        if hosted.is_vacant {
            return None;
        }
        hosted.touched = true;
        self.last = Some(key);
        Some(Peer {
            key,
            now,
            session: &mut hosted.session,
        })
    }

    /// The sessions that are logged on.
    pub fn logged_on(&mut self) -> impl Iterator<Item = Peer<'_>> {
        let (now, last) = (self.now, &mut self.last);
        let all = self.hosted.iter_mut().enumerate();
        all.filter(|(_, hosted)| hosted.session.is_logged_on())
            .map(move |(i, hosted)| {
                hosted.touched = true;
                *last = Some(SessionKey(i));
                Peer {
                    key: SessionKey(i),
                    now,
                    session: &mut hosted.session,
                }
            })
    }
}
