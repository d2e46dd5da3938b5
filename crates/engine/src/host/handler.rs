//! The application's side of a host.

use super::handle::Undone;
use super::hosted::Hosted;
use super::log::LogTrouble;
use super::peer::{Peer, SessionKey};
use super::refusal::Refusal;
use crate::journal::Recovery;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{AppMessage, DisconnectReason, Event, Now, SessionId};
use std::io;
use std::net::SocketAddr;

/// The application. All calls come on the host's thread, one at a time; none may wait.
///
/// A call that panics ends its session, with a Logout, and no other session: see
/// [`on_panic`](Self::on_panic). The handler is used again in the state that the panic left.
pub trait Handler: Send {
    /// An application message, in order, each number once. It counts as received when this
    /// returns.
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>);

    /// The most bytes whose messages can be taken now. No more is read in this turn, and the kernel
    /// holds what comes. A port is served while this is at least
    /// [`Port::longest_turn`](super::Port::longest_turn), 320 KiB by default.
    fn room(&mut self) -> usize {
        usize::MAX
    }

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

    /// The connection of a session has failed: `on_disconnect` follows. If TLS failed, the error is
    /// of the kind `InvalidData`; unless this is implemented, `on_refused` is called for it.
    fn on_broken(&mut self, peer: &mut Peer<'_>, error: &io::Error) {
        if let (io::ErrorKind::InvalidData, Some(address)) = (error.kind(), peer.address()) {
            let (kind, error) = (error.kind(), error.to_string());
            self.on_refused(address, &Refusal::Transport { kind, error });
        }
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
    /// within a tenth of a second, and with few sessions within about a millisecond.
    fn on_log(&mut self, trouble: &LogTrouble) {
        let _ = trouble;
    }

    /// Returns whether [`on_turn`](Self::on_turn) has messages to send already. It is called in
    /// front of the connections then, and once more behind them: reading them takes system calls,
    /// for which those messages would wait. Called once each duty cycle; it must be quick.
    fn is_due(&self) -> bool {
        false
    }

    /// Called once each duty cycle, and twice where it [is due](Self::is_due), to send what does
    /// not answer a message. Returns an amount of work, 0 if there was none.
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let _ = peers;
        0
    }

    /// The host is stopped: all sessions that are logged on are about to be logged out. Those that
    /// this logs out itself have the Text(58) of its choice.
    fn on_close(&mut self, peers: &mut Peers<'_>) {
        let _ = peers;
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

/// All sessions of a host.
pub struct Peers<'a> {
    pub(super) now: Now,
    pub(super) hosted: &'a mut [Hosted],
    /// The session that was taken last.
    pub(super) last: Option<SessionKey>,
    pub(super) is_logged: bool,
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
        hosted.map_or(0, Hosted::unsent)
    }

    /// One session; `None` if it was removed.
    pub fn get(&mut self, key: SessionKey) -> Option<Peer<'_>> {
        let hosted = self.hosted.get_mut(key.0)?;
        if hosted.is_vacant {
            return None;
        }
        self.last = Some(key);
        Some(hosted.peer(key, self.now, self.is_logged))
    }

    /// The sessions that are logged on.
    pub fn logged_on(&mut self) -> impl Iterator<Item = Peer<'_>> {
        let (now, last, is_logged) = (self.now, &mut self.last, self.is_logged);
        let all = self.hosted.iter_mut().enumerate();
        all.filter(|(_, hosted)| hosted.session.is_logged_on())
            .map(move |(index, hosted)| {
                let key = SessionKey(index);
                *last = Some(key);
                hosted.peer(key, now, is_logged)
            })
    }
}
