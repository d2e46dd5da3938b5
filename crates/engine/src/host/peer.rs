//! A session, as the application uses it.

use super::connection::Connection;
use super::store::Store;
use crate::outbound::{OutboundError, Overflow};
use fanfare_fix::codec::{FieldWriter, SendingTime, SharedBody, SharedFrame};
use fanfare_fix::session::{Config, MessageStore, Now, SendError, Session, SessionId};
use std::cell::Cell;
use std::io;
use std::net::SocketAddr;

/// The key of a session of a host. A key stays valid until the session is removed: see
/// [`Handler::on_removed`](super::Handler::on_removed).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(pub(super) usize);

impl SessionKey {
    /// Returns the session's index in the host: 0 for the first one hosted.
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
    pub(super) touched: Touched<'a>,
    /// Whether all bytes are copied to a message log, which may hold them up.
    pub(super) is_logged: bool,
}

impl Peer<'_> {
    /// Returns the identity of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.session.config().id
    }

    /// Returns the session's key in this host.
    #[must_use]
    pub fn key(&self) -> SessionKey {
        self.key
    }

    /// Returns the time of this duty cycle.
    #[must_use]
    pub fn now(&self) -> Now {
        self.now
    }

    /// Returns whether messages may be sent.
    #[must_use]
    pub fn is_logged_on(&self) -> bool {
        self.session.is_logged_on()
    }

    /// Returns the configuration of the session.
    #[must_use]
    pub fn config(&self) -> &Config {
        self.session.config()
    }

    /// Returns the next MsgSeqNum(34) of each direction: the one to be sent, and the one expected.
    #[must_use]
    pub fn next_numbers(&self) -> (u64, u64) {
        let store = self.session.store();
        (store.next_sender(), store.next_target())
    }

    /// Returns the counterparty's address; `None` without a connection.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        Some(self.connection.as_ref()?.transport.peer())
    }

    /// Returns the number of bytes that wait for the counterparty to read. Messages shared by
    /// sessions may take up to [`queue_bytes`](super::Admission::queue_bytes), besides the capacity
    /// of the session's store.
    #[must_use]
    pub fn queued(&self) -> usize {
        let queue = self.connection.as_ref().map_or(0, |own| own.queued());
        queue + self.session.store().unsent_len()
    }

    /// Returns two numbers of bytes of messages that sessions share: those of this connection that
    /// had to wait for the counterparty so far, and those that wait now. The oldest byte that waits
    /// is at the offset of the difference.
    #[must_use]
    pub fn waited(&self) -> (u64, usize) {
        let connection = self.connection.as_ref();
        connection.map_or((0, 0), |own| (own.passed(), own.queued()))
    }

    /// Lets the kernel take about `bytes` of what it cannot send yet, instead of some megabytes,
    /// and TLS 64 KiB more. The rest waits in the queue, where the caller knows of it
    /// ([`queued`](Self::queued)) and may send something newer. Without a connection, or if the
    /// system refuses, nothing changes.
    pub fn limit_unsent(&mut self, bytes: i32) {
        if let Some(connection) = self.connection.as_deref_mut() {
            // A kernel without the option sends as before.
            connection.transport.limit_unsent(bytes).ok();
        }
    }

    /// Returns whether a resend is under way, during which no message with a shared body is sent.
    #[must_use]
    pub fn is_resending(&self) -> bool {
        self.session.is_resending()
    }

    /// Returns whether messages were not transmitted when the counterparty logged out: see
    /// [`Session::is_cut_short`].
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.session.is_cut_short()
    }

    /// Returns the number of bytes of the session that were transmitted: see
    /// [`Session::bytes_transmitted`].
    #[must_use]
    pub fn bytes_transmitted(&self) -> u64 {
        self.session.bytes_transmitted()
    }

    /// Returns when the last whole message arrived, monotonic, in nanoseconds: see
    /// [`Session::last_received`].
    #[must_use]
    pub fn last_received(&self) -> u64 {
        self.session.last_received()
    }

    /// Returns the response time of the last TestRequest(1), in nanoseconds: see
    /// [`Session::round_trip`].
    #[must_use]
    pub fn round_trip(&self) -> Option<u64> {
        self.session.round_trip()
    }

    /// Sends an application message; `body` writes the fields after the standard header. The
    /// message is written to the socket at the end of this duty cycle. Returns its MsgSeqNum(34).
    ///
    /// # Errors
    /// See [`SendError`]: nothing was sent and no number used.
    pub fn send(
        &mut self,
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<u64, SendError> {
        self.touched.set();
        self.session.send(self.now, msg_type, body)
    }

    /// Makes this session's message from a frame whose body is shared by many sessions, for
    /// [`write`](Self::write): see [`Session::send_shared`].
    ///
    /// # Errors
    /// Those of [`Session::send_shared`]: no number was used.
    #[inline]
    pub fn send_shared<'f>(
        &mut self,
        frame: &'f mut SharedFrame,
        time: &SendingTime,
    ) -> Result<&'f [u8], SendError> {
        let sent = self.session.send_shared(self.now, frame, time);
        sent.inspect_err(|_| self.touched.set())
    }

    /// Writes the message at the front of `out` and returns its length: see
    /// [`Session::send_shared_into`].
    ///
    /// # Errors
    /// Those of [`Session::send_shared_into`]: no number was used.
    #[inline]
    pub fn send_shared_into(
        &mut self,
        body: &SharedBody<'_>,
        time: &SendingTime,
        out: &mut [u8],
    ) -> Result<usize, SendError> {
        let sent = self.session.send_shared_into(self.now, body, time, out);
        sent.inspect_err(|_| self.touched.set())
    }

    /// Writes encoded messages that have their numbers after everything that the session has
    /// written. The bytes that the connection takes at once go out in one send; the rest is queued.
    /// Behind a queue that is not empty, everything is queued. Returns whether everything went out.
    /// A store that waits for the disk does so first.
    ///
    /// # Errors
    /// The outbound queue would exceed its limit: nothing was written. Or the session has no
    /// connection, its store failed, or the connection failed: the session is to be
    /// [closed](Session::close).
    pub fn write(&mut self, messages: &[u8]) -> Result<bool, OutboundError> {
        let Some(connection) = self.connection.as_deref_mut() else {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        };
        sync(self.session, self.now).inspect_err(|_| self.touched.set())?;
        if self.session.store().unsent_len() > 0 {
            flush_into(self.session, connection)?;
        }
        if self.is_logged {
            self.touched.set();
            connection.queue(messages)?;
            return Ok(false);
        }
        let all = connection.send(messages)?;
        if !all {
            self.touched.set();
        }
        Ok(all)
    }

    /// Moves the session's bytes to the connection's outbound queue, from which they are sent: the
    /// store may have capacity for less than the messages of a duty cycle.
    ///
    /// # Errors
    /// The outbound queue would exceed its limit, the session has no connection, or its store
    /// failed.
    pub fn make_room(&mut self) -> Result<(), OutboundError> {
        let Some(connection) = self.connection.as_deref_mut() else {
            return Err(io::Error::from(io::ErrorKind::NotConnected).into());
        };
        sync(self.session, self.now).inspect_err(|_| self.touched.set())?;
        if self.session.store().unsent_len() > 0 {
            self.touched.set();
            flush_into(self.session, connection)?;
        }
        Ok(())
    }

    /// Begins the logout; `on_disconnect` follows.
    pub fn logout(&mut self, text: &str) {
        self.touched.set();
        self.session.logout(self.now, text);
    }

    /// Ends the connection without a logout; `on_disconnect` follows.
    pub fn close(&mut self) {
        self.touched.set();
        self.session.close(self.now);
    }

    /// Returns the session itself.
    pub fn session(&mut self) -> &mut Session<Store> {
        self.touched.set();
        self.session
    }
}

/// The note that bytes of a session may wait to be written, or that it may have ended.
pub(super) struct Touched<'a> {
    pub(super) own: &'a mut bool,
    /// The note of all sessions together, in a call that may take several of them. `None` in the
    /// session's own duty cycle, which writes its bytes in any case.
    pub(super) any: Option<&'a Cell<bool>>,
}

impl Touched<'_> {
    #[inline]
    fn set(&mut self) {
        *self.own = true;
        if let Some(any) = self.any {
            any.set(true);
        }
    }
}

/// Puts on the disk what the session's store holds back until then.
#[inline]
fn sync(session: &mut Session<Store>, now: Now) -> io::Result<()> {
    let was_connected = session.is_connected();
    session.sync(now);
    match was_connected && !session.is_connected() {
        true => Err(io::ErrorKind::NotConnected.into()),
        false => Ok(()),
    }
}

/// Moves the bytes of a session to the outbound queue.
#[cold]
fn flush_into(session: &mut Session<Store>, connection: &mut Connection) -> Result<(), Overflow> {
    loop {
        let unsent = session.poll_transmit();
        if unsent.is_empty() {
            return Ok(());
        }
        let len = unsent.len();
        connection.queue(unsent)?;
        session.transmitted(len);
    }
}
