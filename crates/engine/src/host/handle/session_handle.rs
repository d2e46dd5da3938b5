//! Access to one session from any thread.

use super::{HandleError, Place, Request, Requests, Shared, Ticket, is_seq_num};
use crate::ring::{Producer, WriteError, spsc};
use fanfare_fix::codec::{EncodeError, FieldWriter};
use fanfare_fix::msg_type;
use fanfare_fix::session::SessionId;
use fanfare_wire::fields::SOH;
use std::fmt;
use std::sync::Arc;

/// One session of a [`Host`](super::super::Host), for use on any thread: see
/// [`HostHandle::session`](super::HostHandle::session). The handle remains valid while the session
/// disconnects and reconnects.
///
/// Each handle has a ring of its own, in which its requests wait for the host's next duty cycle;
/// the host executes them in order. Requests of different handles, clones included, have no order
/// between them. A full ring is an error at once. A request that the host takes and cannot do, such
/// as a message for a session that is not logged on, is reported to
/// [`Handler::on_undone`](super::super::Handler::on_undone). Nothing is lost silently.
///
/// Requests allocate nothing and take no lock. A host that sleeps in the kernel
/// ([`Idle::Wait`](crate::idle::Idle::Wait)) is woken.
pub struct SessionHandle {
    // Dropped first: the host sees that its writer is gone.
    post: Producer,
    bell: Bell,
    session: Arc<SessionId>,
    place: Place,
    handle: u32,
    ring_bytes: usize,
}

/// Wakes the host when its handle is dropped, so that the host frees the ring.
struct Bell(Arc<Shared>);

impl Drop for Bell {
    fn drop(&mut self) {
        self.0.ring();
    }
}

/// Bytes in front of the body of a message, for the length of MsgType(35).
const FRONT: usize = 1;

impl SessionHandle {
    /// Default size of a handle's ring, in bytes; sessions with long messages have a larger one.
    const RING_BYTES: usize = 256 << 10;

    /// Returns the size of the ring for a session whose messages have up to `max_send` bytes.
    pub(super) fn ring_bytes(max_send: usize) -> usize {
        Self::RING_BYTES.max(max_send.saturating_mul(8))
    }

    /// Makes a handle with a ring for the host. If the session has left this place, or the host has
    /// ended, the handle takes nothing.
    pub(super) fn new(
        shared: &Arc<Shared>,
        session: Arc<SessionId>,
        place: Place,
        ring_bytes: usize,
    ) -> Self {
        let (post, ring) = spsc(ring_bytes);
        let mut state = shared.lock();
        state.handles += 1;
        let handle = state.handles;
        if !state.ended {
            state.rings.push(Requests {
                ring,
                session: Arc::clone(&session),
                place,
                handle,
            });
        }
        drop(state);
        shared.announce();
        Self {
            post,
            bell: Bell(Arc::clone(shared)),
            session,
            place,
            handle,
            ring_bytes,
        }
    }

    /// Returns the identity of the session.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.session
    }

    /// Sends an application message; `body` writes the fields after the standard header, in place.
    /// MsgSeqNum(34) and SendingTime(52) are those of the duty cycle in which the host takes it.
    ///
    /// # Errors
    /// See [`HandleError`]; `body` is not called if the ring is full.
    #[inline]
    pub fn send(
        &mut self,
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<Ticket, HandleError> {
        if msg_type::is_session(msg_type) {
            return Err(HandleError::AdminMessage);
        }
        let tag = fanfare_fix::tag::MSG_TYPE;
        let bad = |error| Err(HandleError::Encode(error));
        if msg_type.is_empty() {
            return bad(EncodeError::Empty { tag });
        }
        if msg_type.contains(&SOH) {
            return bad(EncodeError::Separator { tag });
        }
        let Ok(len) = u8::try_from(msg_type.len()) else {
            return bad(EncodeError::BufferFull);
        };
        let front = FRONT + msg_type.len();
        // The ring holds several messages, as each is claimed at its longest.
        let longest = self.place.max_send.min(self.ring_bytes / 8);
        let room = self.post.claim(front + longest).map_err(refused)?;
        let Some((head, room)) = room.split_at_mut_checked(front) else {
            return Err(HandleError::Full);
        };
        if let Some((first, rest)) = head.split_first_mut() {
            *first = len;
            rest.copy_from_slice(msg_type);
        }
        let mut writer = FieldWriter::new(room);
        body(&mut writer);
        let written = writer.written().map_err(HandleError::Encode)?.len();
        self.publish(Request::SEND, front + written)
    }

    /// Begins the logout with this Text(58), which may be empty. An initiator reconnects after its
    /// back-off; [`remove`](super::HostHandle::remove) ends a session for good. Has no effect
    /// without a connection.
    ///
    /// # Errors
    /// See [`HandleError`].
    pub fn log_out(&mut self, text: &str) -> Result<Ticket, HandleError> {
        self.put(Request::LOG_OUT, text.as_bytes())
    }

    /// Ends the connection without a logout; an initiator reconnects. Has no effect without a
    /// connection.
    ///
    /// # Errors
    /// See [`HandleError`].
    pub fn disconnect(&mut self) -> Result<Ticket, HandleError> {
        self.put(Request::DISCONNECT, &[])
    }

    /// Sends the next message with MsgSeqNum(34) `seq`, from 1 to 2^60. The counterparty of a
    /// session that is logged on requests the skipped messages, and logs out if the number is lower
    /// than expected.
    ///
    /// # Errors
    /// See [`HandleError`].
    pub fn set_next_sender(&mut self, seq: u64) -> Result<Ticket, HandleError> {
        self.put_number(Request::NEXT_SENDER, seq)
    }

    /// Expects MsgSeqNum(34) `seq` next, from 1 to 2^60.
    ///
    /// # Errors
    /// See [`HandleError`].
    pub fn set_next_target(&mut self, seq: u64) -> Result<Ticket, HandleError> {
        self.put_number(Request::NEXT_TARGET, seq)
    }

    fn put_number(&mut self, kind: u32, seq: u64) -> Result<Ticket, HandleError> {
        if !is_seq_num(seq) {
            return Err(HandleError::Number(seq));
        }
        self.put(kind, &seq.to_le_bytes())
    }

    fn put(&mut self, kind: u32, bytes: &[u8]) -> Result<Ticket, HandleError> {
        let room = self.post.claim(bytes.len()).map_err(refused)?;
        room.copy_from_slice(bytes);
        self.publish(kind, bytes.len())
    }

    #[inline]
    fn publish(&mut self, kind: u32, len: usize) -> Result<Ticket, HandleError> {
        let request = self.post.publish(kind, len).map_err(refused)?;
        self.bell.0.ring();
        Ok(Ticket {
            handle: self.handle,
            request,
        })
    }
}

fn refused(error: WriteError) -> HandleError {
    match error {
        WriteError::Closed => HandleError::Gone,
        WriteError::TooLong { .. } => HandleError::Encode(EncodeError::BufferFull),
        // No kind is reserved.
        WriteError::Full | WriteError::ReservedKind => HandleError::Full,
    }
}

/// Makes a handle of the same session with a ring of its own. Takes a lock and allocates.
impl Clone for SessionHandle {
    fn clone(&self) -> Self {
        let session = Arc::clone(&self.session);
        Self::new(&self.bell.0, session, self.place, self.ring_bytes)
    }
}

impl fmt::Debug for SessionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("SessionHandle");
        shown.field("session", &self.session.to_string());
        shown.field("handle", &self.handle).finish_non_exhaustive()
    }
}
