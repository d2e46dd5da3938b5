//! One session, as the application may use it.

use super::connection::Connection;
use super::store::Store;
use crate::outbound::{OutboundError, Overflow};
use fanfare_fix::codec::{FieldWriter, SendingTime, SharedBody, SharedFrame, SharedParts};
use fanfare_fix::session::{Config, MessageStore, Now, SendError, Session, SessionId};
use std::io::{self, IoSlice};
use std::net::SocketAddr;

/// Which session of a host. Stays valid until the session is removed: see
/// [`Handler::on_removed`](super::Handler::on_removed).
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
    pub(super) connection: Option<&'a mut Connection>,
    /// Set if something may wait to be written.
    pub(super) touched: &'a mut bool,
    /// All bytes are copied to a message log, which may hold them up.
    pub(super) is_logged: bool,
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

    /// How the session is configured.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.session.config()
    }

    /// The next MsgSeqNum(34) of each direction: the one to be sent, and the one that is expected.
    #[must_use]
    pub fn next_numbers(&self) -> (u64, u64) {
        let store = self.session.store();
        (store.next_sender(), store.next_target())
    }

    /// Where the counterparty is; `None` without a connection.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        Some(self.connection.as_ref()?.transport.peer())
    }

    /// Bytes that wait for the counterparty to read. Up to
    /// [`queue_bytes`](super::Admission::queue_bytes) of messages that sessions share may wait, and
    /// what the session's store takes besides.
    #[must_use]
    pub fn queued(&self) -> usize {
        let queue = self.connection.as_ref().map_or(0, |own| own.queued());
        queue + self.session.store().unsent_len()
    }

    /// Bytes of this connection that had to wait for the counterparty so far, in the queue of
    /// messages that sessions share, and how many of them wait now. The oldest of these is the one
    /// behind the difference.
    #[must_use]
    pub fn waited(&self) -> (u64, usize) {
        let connection = self.connection.as_ref();
        connection.map_or((0, 0), |own| (own.passed(), own.queued()))
    }

    /// When the last whole message came, monotonic, in nanoseconds: see
    /// [`Session::last_received`].
    #[must_use]
    pub fn last_received(&self) -> u64 {
        self.session.last_received()
    }

    /// How long the last answer to a TestRequest(1) took, in nanoseconds: see
    /// [`Session::round_trip`].
    #[must_use]
    pub fn round_trip(&self) -> Option<u64> {
        self.session.round_trip()
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
        *self.touched = true;
        self.session.send(self.now, msg_type, body)
    }

    /// Makes this session's message from a frame that holds a body which many sessions share, for
    /// [`write`](Self::write): see [`Session::send_shared`].
    ///
    /// # Errors
    /// See there: no number was used.
    #[inline]
    pub fn send_shared<'f>(
        &mut self,
        frame: &'f mut SharedFrame,
        time: &SendingTime,
    ) -> Result<&'f [u8], SendError> {
        let sent = self.session.send_shared(self.now, frame, time);
        *self.touched |= sent.is_err();
        sent
    }

    /// The same for a gathering write: see [`Session::send_shared_parts`].
    ///
    /// # Errors
    /// See there: no number was used.
    #[inline]
    pub fn send_shared_parts(
        &mut self,
        body: &SharedBody<'_>,
        time: &SendingTime,
        parts: &mut SharedParts,
    ) -> Result<u64, SendError> {
        let sent = self.session.send_shared_parts(self.now, body, time, parts);
        *self.touched |= sent.is_err();
        sent
    }

    /// Writes encoded messages that have their numbers, given in parts, behind everything that the
    /// session has written. What the connection takes goes out at once, in one gathering write; the
    /// rest waits in its outbound queue, as all of it does behind what waits there already. Returns
    /// whether all of it went out.
    ///
    /// # Errors
    /// The outbound queue would pass its limit: nothing was written. Or the connection broke, or
    /// there is none: the session is to be [closed](Session::close).
    pub fn write(&mut self, parts: &[IoSlice<'_>]) -> Result<bool, OutboundError> {
        let Some(connection) = self.connection.as_deref_mut() else {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        };
        if self.session.store().unsent_len() > 0 {
            flush_into(self.session, connection)?;
        }
        if self.is_logged {
            *self.touched = true;
            connection.queue(parts)?;
            return Ok(false);
        }
        let all = connection.send(parts)?;
        *self.touched |= !all;
        Ok(all)
    }

    /// Moves what the session has written to the connection's outbound queue, where it goes out
    /// from: the store may have room for less than a turn's messages.
    ///
    /// # Errors
    /// The outbound queue would pass its limit, or there is no connection.
    pub fn make_room(&mut self) -> Result<(), OutboundError> {
        let Some(connection) = self.connection.as_deref_mut() else {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        };
        *self.touched = true;
        Ok(flush_into(self.session, connection)?)
    }

    /// Begins the logout; `on_disconnect` follows.
    pub fn logout(&mut self, text: &str) {
        *self.touched = true;
        self.session.logout(self.now, text);
    }

    /// Ends the connection without a logout; `on_disconnect` follows.
    pub fn close(&mut self) {
        *self.touched = true;
        self.session.close(self.now);
    }

    /// The session itself, for all it can do.
    pub fn session(&mut self) -> &mut Session<Store> {
        *self.touched = true;
        self.session
    }
}

/// Moves what a session has written into the outbound queue.
#[cold]
fn flush_into(session: &mut Session<Store>, connection: &mut Connection) -> Result<(), Overflow> {
    loop {
        let unsent = session.poll_transmit();
        if unsent.is_empty() {
            return Ok(());
        }
        let len = unsent.len();
        connection.queue(&[IoSlice::new(unsent)])?;
        session.transmitted(len);
    }
}
