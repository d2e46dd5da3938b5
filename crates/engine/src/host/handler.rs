//! The application's side of a host.

use super::handle::Undone;
use super::hosted::Hosted;
use super::log::LogTrouble;
use super::peer::{Peer, SessionKey};
use super::refusal::Refusal;
use crate::journal::Recovery;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{
    AppMessage, DisconnectReason, Event, KeptMessage, Now, Resend, SessionId,
};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;

/// The application. All calls are made on the host's thread, one at a time; none may block.
///
/// A call that panics ends its session with a Logout, and no other session: see
/// [`on_panic`](Self::on_panic). The handler is called again in the state that the panic left.
pub trait Handler: Send {
    /// Handles an application message. Messages come in order, each number once. A message counts
    /// as received when this returns, also if its answer was refused because a logout is under way:
    /// see [`Session::send`](fanfare_fix::session::Session::send). If the store fails in a send,
    /// the message comes again after the next logon, so that it may be handled twice.
    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>);

    /// Returns the number of bytes of messages that the handler can take now. No more is read in
    /// this duty cycle: further bytes remain in the kernel, or in memory if they belong to a TLS
    /// record that has been read. A counterparty whose bytes are left there does not count as
    /// silent, and a gap is not requested again. SendingTime(52) of a message that was left there
    /// may be older than `Config::max_latency` by as long as bytes were left. A port is served
    /// while this is at least [`Port::longest_turn`](super::Port::longest_turn), 320 KiB by
    /// default.
    fn room(&mut self) -> usize {
        usize::MAX
    }

    /// Decides on a Logon (only with `Config::ask_logon`), by its Username(553) and Password(554).
    /// The Logout to a refused Logon has the next MsgSeqNum(34) of the session, or 0 if the session
    /// was made for the Logon and has not begun.
    fn on_logon_request(&mut self, peer: &mut Peer<'_>, logon: &Message<'_>) -> Verdict {
        let _ = (peer, logon);
        Verdict::Accept
    }

    /// Handles repairs of a session's journal that were made when it was opened: an incomplete last
    /// record was cut off, other users had access to its files, or records are lost and the loss
    /// was accepted. Called when the session is hosted, before all other calls for it. The text of
    /// `recovery` is meant for the operator.
    fn on_recovery(&mut self, id: &SessionId, recovery: &Recovery) {
        let _ = (id, recovery);
    }

    /// Handles the end of a logon: both Logons are exchanged, and messages may be sent.
    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let _ = peer;
    }

    /// Handles the end of a session's connection. An initiator reconnects.
    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        let _ = (peer, reason);
    }

    /// Handles the failure of a session's connection; `on_disconnect` follows. A failure of TLS has
    /// an error of the kind `InvalidData`; the default implementation calls `on_refused` for it.
    fn on_broken(&mut self, peer: &mut Peer<'_>, error: &io::Error) {
        if let (io::ErrorKind::InvalidData, Some(address)) = (error.kind(), peer.address()) {
            let (kind, error) = (error.kind(), error.to_string());
            self.on_refused(address, &Refusal::Transport { kind, error });
        }
    }

    /// Handles any other event: gaps, resends, rejects, garbled bytes.
    fn on_event(&mut self, peer: &mut Peer<'_>, event: &Event<'_>) {
        let _ = (peer, event);
    }

    /// Decides on a kept message that the counterparty has requested again, before it is sent again
    /// with PossDupFlag(43)=Y: an application that does not repeat stale orders returns
    /// [`Resend::Fill`] for them. Neighbouring messages that are not sent, those of the session
    /// layer among them, become one SequenceReset(4) with GapFillFlag(123)=Y. `key` is the key of
    /// the session. Called in the order of MsgSeqNum(34), once for each time that a message is to
    /// be sent again, also for messages that were accepted while the session had no connection and
    /// are sent for the first time; not for the types of `Config::gap_filled_types`. The default
    /// implementation sends all messages, and costs nothing.
    fn on_resend(&mut self, key: SessionKey, message: &mut KeptMessage<'_>) -> Resend {
        let _ = (key, message);
        Resend::Send
    }

    /// Decides on a Logon that matches the [`Wildcard`](super::Wildcard) with this tag. `session`
    /// would be made for it; nothing has been made or opened yet. If this refuses, nothing is, and
    /// the counterparty receives a Logout that is in no store. Otherwise `on_made` follows.
    fn on_stranger(&mut self, session: &SessionId, tag: usize, logon: &Message<'_>) -> Verdict {
        let _ = (session, tag, logon);
        Verdict::Accept
    }

    /// Handles a session that was made for a Logon, by the [`Wildcard`](super::Wildcard) with this
    /// tag. `on_logon_request` and `on_logon` follow, or `on_disconnect`.
    fn on_made(&mut self, session: &SessionId, tag: usize) {
        let _ = (session, tag);
    }

    /// Handles the removal of a session: by a [`HostHandle`](super::HostHandle), because the Logon
    /// it was made for was refused, or because another such session takes its place. Its
    /// [`SessionKey`] is reused.
    fn on_removed(&mut self, session: &SessionId) {
        let _ = session;
    }

    /// Handles a request of a [`SessionHandle`](super::SessionHandle) that the host took and cannot
    /// do. Nothing of it has happened; it may be kept and made again.
    fn on_undone(&mut self, undone: &Undone<'_>) {
        let _ = undone;
    }

    /// Handles a connection that was refused, or could not be made.
    fn on_refused(&mut self, address: SocketAddr, why: &Refusal) {
        let _ = (address, why);
    }

    /// Handles a connection of an initiator's `session` to one of its hosts that could not be made;
    /// another attempt follows. `address` is unspecified if no name of a host has an address. The
    /// default implementation calls `on_refused`.
    fn on_unconnected(&mut self, session: &SessionId, address: SocketAddr, why: &Refusal) {
        let _ = session;
        self.on_refused(address, why);
    }

    /// Handles a panic of a call of this handler, with its `message`. `session` is the session of
    /// the call, and for [`on_turn`](Self::on_turn) the one that the call took last. If it has a
    /// connection, it is logged out, and `on_disconnect` follows. The message of the call does not
    /// count as received.
    fn on_panic(&mut self, session: Option<&SessionId>, message: &str) {
        let _ = (session, message);
    }

    /// Handles a change in the state of the message log (see
    /// [`Host::log_to`](super::Host::log_to)). Called within a tenth of a second, with few sessions
    /// within about a millisecond.
    fn on_log(&mut self, trouble: &LogTrouble) {
        let _ = trouble;
    }

    /// Returns whether [`on_turn`](Self::on_turn) has messages to send already. `on_turn` is then
    /// called before the connections are read and once more after: reading takes system calls, for
    /// which those messages would wait. Called once each duty cycle; must be quick.
    fn is_due(&self) -> bool {
        false
    }

    /// Sends messages that no received message causes. Called once each duty cycle, and twice where
    /// it [is due](Self::is_due). Returns an amount of work, 0 if there was none.
    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        let _ = peers;
        0
    }

    /// Handles the stop of the host, before all sessions that are logged on are logged out.
    /// Sessions logged out by this call have the Text(58) of its choice.
    fn on_close(&mut self, peers: &mut Peers<'_>) {
        let _ = peers;
    }

    /// Returns the monotonic time at which [`on_turn`](Self::on_turn) has work, if that is known. A
    /// host that sleeps wakes up for it.
    fn next_turn(&self) -> Option<u64> {
        None
    }
}

/// The decision about a Logon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Accept the Logon.
    Accept,
    /// Respond with a Logout that has this Text(58).
    Refuse(String),
}

/// All sessions of a host.
pub struct Peers<'a> {
    pub(super) now: Now,
    pub(super) hosted: &'a mut [Hosted],
    /// The session that was taken last.
    pub(super) last: Option<SessionKey>,
    /// Whether any session was touched.
    pub(super) touched: Cell<bool>,
    pub(super) is_logged: bool,
}

impl Peers<'_> {
    /// Returns the time of this duty cycle.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Returns the number of bytes of a session that the kernel has not taken yet.
    #[must_use]
    pub fn unsent(&self, key: SessionKey) -> usize {
        let hosted = self.hosted.get(key.0);
        hosted.map_or(0, Hosted::unsent)
    }

    /// Returns one session; `None` if it was removed.
    pub fn get(&mut self, key: SessionKey) -> Option<Peer<'_>> {
        let hosted = self.hosted.get_mut(key.0)?;
        if hosted.is_vacant {
            return None;
        }
        self.last = Some(key);
        Some(hosted.peer(key, self.now, self.is_logged, Some(&self.touched)))
    }

    /// Returns the sessions that are logged on.
    pub fn logged_on(&mut self) -> impl Iterator<Item = Peer<'_>> {
        let (now, is_logged) = (self.now, self.is_logged);
        let (last, touched) = (&mut self.last, &self.touched);
        let all = self.hosted.iter_mut().enumerate();
        all.filter(|(_, hosted)| hosted.session.is_logged_on())
            .map(move |(index, hosted)| {
                let key = SessionKey(index);
                *last = Some(key);
                hosted.peer(key, now, is_logged, Some(touched))
            })
    }
}
