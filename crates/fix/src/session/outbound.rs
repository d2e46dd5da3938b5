//! The send path: headers, the session's own messages, and those of the application.

use std::hint::black_box;
use std::ops::Range;

use fanfare_wire::fields::SOH;

use super::config::Config;
use super::event::{DisconnectReason, SendError};
use super::hook::{AdminHook, AdminMessage};
use super::inbound::{Scratch, decode};
use super::now::Now;
use super::outgoing_header::{Fixed, Head, OutField};
use super::store::{Again, Entry, Kind, MessageStore, StoreError};
use super::{Session, State};
use crate::codec::{
    EncodeError, Encoder, FieldWriter, Next, SendingTime, SessionHeader, SharedBody, SharedFrame,
    Sought,
};
use crate::{msg_type, tag};

/// The MsgSeqNum(34) of the message written, or the reason why it was not written.
pub(super) type WriteResult = Result<u64, SendError>;

/// The room for one of the session's own messages without its variable parts, in bytes.
pub(super) const ADMIN_ROOM: usize = 384;

/// The room for the text of SendingTime(52), in bytes.
const TIME_ROOM: usize = 32;

impl<S: MessageStore> Session<S> {
    /// Sends an application message. `body` writes the fields after the standard header, and none
    /// that the session writes into the header, such as SendingTime(52): it is not checked, and the
    /// counterparty rejects a message that has such a field twice.
    ///
    /// Returns the MsgSeqNum(34) of the message. While a resend is under way the message waits for
    /// its end, unless the store keeps no messages. After the session's own Logout(5) the message
    /// is kept, and sent when the counterparty requests it after the next logon. If the store keeps
    /// no messages, or the next logon starts at 1 again, the call then returns `NotLoggedOn`, and a
    /// received message that caused it counts as received all the same.
    ///
    /// # Errors
    /// See [`SendError`]. In case of an error nothing is sent and no number is used. A failure of
    /// the store ends the session. The message that the application handles then does not count as
    /// received: it comes again after the next logon.
    #[inline]
    pub fn send(
        &mut self,
        now: Now,
        msg_type: &[u8],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<u64, SendError> {
        self.send_with(now, msg_type, &[], body)
    }

    /// Sends an application message with more fields of the standard header, such as PossResend(97)
    /// or those of a reversed route. The fields must be in ascending order of tags, and take
    /// precedence over those of the configuration. A data field, SecureData(91) or XmlData(213),
    /// must follow its own length field, which has to be right.
    ///
    /// # Errors
    /// See [`Session::send`].
    pub fn send_with(
        &mut self,
        now: Now,
        msg_type: &[u8],
        header: &[(u32, &[u8])],
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<u64, SendError> {
        if self.state != State::LoggedOn && !self.may_queue(now) {
            return Err(SendError::NotLoggedOn);
        }
        if msg_type::is_session(msg_type) {
            return Err(SendError::AdminMessage);
        }
        self.pace_send(now)?;
        let room = self.config.max_send;
        let written = self.write(now, msg_type, Kind::App, header, room, body);
        match &written {
            Ok(_) => self.pace_sent(now),
            Err(error) => {
                self.pace_undone();
                self.store_failed(now, error);
            }
        }
        written
    }

    /// Makes this session's message from a frame that holds a shared body, keeps it if the store
    /// keeps messages, and returns it. The caller writes it after everything that `poll_transmit`
    /// returns.
    ///
    /// # Errors
    /// Returns `NotLoggedOn` if the session is not logged on, `ResendInProgress` if the message
    /// would overtake a resend, `Throttled` if it would have to wait, `Encode` if the session's
    /// header is too long for this path, and the errors of the store. In case of an error nothing
    /// is sent and no number is used.
    #[inline]
    pub fn send_shared<'f>(
        &mut self,
        now: Now,
        frame: &'f mut SharedFrame,
        time: &SendingTime,
    ) -> Result<&'f [u8], SendError> {
        let seq = self.shared_seq(now)?;
        let header = self.shared_header.as_ref().ok_or(HEADER_TOO_LONG)?;
        let message = frame.patch(header, seq, time);
        self.record_shared(now, message)?;
        Ok(message)
    }

    /// Makes this session's message from a shared body as `send_shared` does, writes it to the
    /// front of `out`, and returns its length.
    ///
    /// # Errors
    /// See [`Session::send_shared`]. Returns `Encode` also if `out` is too short.
    #[inline]
    pub fn send_shared_into(
        &mut self,
        now: Now,
        body: &SharedBody<'_>,
        time: &SendingTime,
        out: &mut [u8],
    ) -> Result<usize, SendError> {
        let seq = self.shared_seq(now)?;
        let header = self.shared_header.as_ref().ok_or(HEADER_TOO_LONG)?;
        let len = header
            .write(out, seq, time, body)
            .map_err(SendError::Encode)?;
        self.record_shared(now, out.get(..len).unwrap_or_default())?;
        Ok(len)
    }

    #[inline]
    fn shared_seq(&self, now: Now) -> Result<u64, SendError> {
        match (self.state, &self.replay) {
            (State::LoggedOn, None) => {
                self.pace_shared(now)?;
                Ok(self.store.next_sender())
            }
            (State::LoggedOn, Some(_)) => Err(SendError::ResendInProgress),
            _ => Err(SendError::NotLoggedOn),
        }
    }

    #[inline]
    fn record_shared(&mut self, now: Now, message: &[u8]) -> Result<(), SendError> {
        if let Err(error) = self.store.record(message) {
            let error = SendError::Store(error);
            self.store_failed(now, &error);
            return Err(error);
        }
        self.pace_sent(now);
        self.timers.last_sent = now.mono;
        Ok(())
    }

    /// Ends the session, unless the store only lacks room for the message. A message that the
    /// application handles does not count as received, as its answer may be what was not kept.
    pub(super) fn store_failed(&mut self, now: Now, error: &SendError) {
        if let SendError::Store(error) = *error
            && !matches!(error, StoreError::Full | StoreError::TooLong)
        {
            self.unconfirmed = false;
            self.end_of_store(now, error);
        }
    }

    /// Ends the session because of a fault of the store. If the disk is full, the store has a
    /// little room left for a Logout(5) with that reason.
    fn end_of_store(&mut self, now: Now, error: StoreError) {
        let reason = DisconnectReason::Store(error);
        if error == StoreError::DiskFull && self.state == State::LoggedOn {
            // Once: if even that finds no room, it ends here too.
            self.state = State::LoggingOut;
            return self.final_logout(now, reason.to_string().as_bytes(), reason);
        }
        self.end(now, reason);
    }

    /// Sends a TestRequest(1). The counterparty answers with a Heartbeat(0) with this
    /// TestReqID(112).
    ///
    /// # Errors
    /// See [`Session::send`].
    pub fn test_request(&mut self, now: Now, test_req_id: &[u8]) -> Result<u64, SendError> {
        if self.state != State::LoggedOn {
            return Err(SendError::NotLoggedOn);
        }
        self.write_test_request(now, test_req_id)
            .inspect_err(|error| self.store_failed(now, error))
    }

    /// Returns whether a message may be kept for the next logon. It may not if the next logon
    /// starts at 1 again, if the store keeps no messages, or while there is a connection, unless a
    /// logout is under way: what crosses that was often caused by a message that was received.
    fn may_queue(&self, now: Now) -> bool {
        let config = &self.config;
        let is_time = match self.state {
            State::LoggingOut => true,
            _ => config.queue_offline && !self.is_connected(),
        };
        let resets = config.reset_on_logon || config.reset_on_logout || config.reset_on_disconnect;
        let schedule = config.schedule.as_ref();
        let is_closed = schedule.is_some_and(|schedule| !schedule.is_open(now.utc));
        let resets = resets || is_closed || self.is_new_session(now.utc) || self.is_reset_open();
        is_time && !resets && self.store.keeps()
    }

    /// Encodes one message with the next number in the store.
    pub(super) fn write(
        &mut self,
        now: Now,
        msg_type: &[u8],
        kind: Kind,
        extra: &[OutField<'_>],
        room: usize,
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<u64, SendError> {
        let seq = self.store.next_sender();
        let version = self.appl_ver();
        let is_late = kind == Kind::App && self.state == State::LoggingOut && self.may_queue(now);
        self.fixed.set_time(now.utc, self.config.precision);
        let (store, fixed, config) = (&mut self.store, &mut self.fixed, &self.config);
        let mut encoder = begin(store, fixed, config, msg_type, extra, room)?;
        body(&mut encoder);
        let range = match &mut self.checker {
            Some(checker) if kind == Kind::App => checker.finish(encoder, version)?,
            _ => finish(encoder)?,
        };
        let len = range.len();
        // While a resend is under way, everything new waits behind it, if the store keeps it.
        let is_free = self.replay.is_none() || !self.store.keeps();
        let transmit = is_free && self.is_connected() && !is_late;
        let entry = Entry { kind, transmit };
        self.store.commit(range, entry).map_err(SendError::Store)?;
        self.behind = match kind {
            Kind::App if transmit => 0,
            Kind::App => self.behind,
            Kind::Admin => self.behind + len,
        };
        if kind == Kind::App && !transmit {
            match &mut self.replay {
                Some(replay) => replay.waiting += 1,
                None => self.unsent.add(seq, seq, 1),
            }
        }
        self.has_written(now, len);
        Ok(seq)
    }

    /// Notes that a message of `len` bytes was written.
    #[inline]
    fn has_written(&mut self, now: Now, len: usize) {
        self.timers.last_sent = now.mono;
        self.written = len;
    }

    /// Performs the work for one received message and its answer without any effect. A caller may
    /// use it in idle time between messages, as system calls drive the code and data of the session
    /// out of the processor's caches and this call fetches them back. `last` is a message that was
    /// received, or empty. An unread part of it stays unread.
    ///
    /// The call takes about as long as receiving and sending one message.
    pub fn rehearse(&mut self, now: Now, scratch: &mut Scratch, last: &[u8]) {
        if self.state != State::LoggedOn {
            return;
        }
        scratch.know(&self.config.data_fields);
        let mut sought = Sought::default();
        if let Next::Message { message, .. } = decode(&mut scratch.decoder, last, &mut sought) {
            black_box(self.check(&message).is_ok());
        }
        let room = self.config.max_send;
        self.fixed.set_time(now.utc, self.config.precision);
        let (store, fixed, config) = (&mut self.store, &mut self.fixed, &self.config);
        if let Ok(mut encoder) = begin(store, fixed, config, msg_type::HEARTBEAT, &[], room) {
            encoder.raw(&USUAL_BODY);
            black_box(finish(encoder).is_ok());
        }
        self.store.prepare();
    }

    /// Writes a message of the session whose body has up to `variable` bytes, with the fields of
    /// the hook. A message with secrets of its own is `secret`, and so is each Logon(A) with a
    /// hook: see `write_secret`.
    pub(super) fn write_admin(
        &mut self,
        now: Now,
        msg_type: &[u8],
        extra: &[(u32, &[u8])],
        variable: usize,
        secret: bool,
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> WriteResult {
        let room = self.admin_room(variable);
        let Some(hooked) = self.hooked.clone() else {
            return match secret {
                true => self.write_secret(now, msg_type, room, body),
                false => self.write(now, msg_type, Kind::Admin, extra, room, body),
            };
        };
        self.fixed.set_time(now.utc, self.config.precision);
        let mut time = [0; TIME_ROOM];
        let text = self.fixed.time_text();
        let len = text.len().min(TIME_ROOM);
        time[..len].copy_from_slice(&text[..len]);
        let message = AdminMessage {
            id: &hooked.id,
            msg_type,
            seq: self.store.next_sender(),
            sending_time: &time[..len],
            now,
        };
        let room = room + AdminHook::ROOM;
        let body = |out: &mut FieldWriter<'_>| {
            body(out);
            hooked.hook.write(&message, out);
        };
        match secret || msg_type == msg_type::LOGON {
            true => self.write_secret(now, msg_type, room, body),
            false => self.write(now, msg_type, Kind::Admin, extra, room, body),
        }
    }

    /// Sends one of the session's own messages. If that fails, the session ends.
    pub(super) fn send_admin(
        &mut self,
        now: Now,
        msg_type: &[u8],
        variable: usize,
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) {
        let result = self.write_admin(now, msg_type, &[], variable, false, body);
        self.check_admin(now, result);
    }

    /// Returns the room for a message of the session whose body has up to `variable` bytes, in
    /// bytes.
    pub(super) fn admin_room(&self, variable: usize) -> usize {
        ADMIN_ROOM + self.header_room() + variable
    }

    /// Writes a message of the session that holds secrets. The store masks them in what it keeps.
    /// Must not be called while a resend is under way, as the message would overtake it.
    pub(super) fn write_secret(
        &mut self,
        now: Now,
        msg_type: &[u8],
        room: usize,
        body: impl FnOnce(&mut FieldWriter<'_>),
    ) -> Result<u64, SendError> {
        let (config, precision) = (&self.config, self.config.precision);
        self.fixed.set_time(now.utc, precision);
        let head = head_of(&self.store, config, &[]);
        let place = self.store.reserve_secret(room);
        let place = place.map_err(SendError::Store)?;
        let mut encoder = begin_in(place, &self.fixed, config, msg_type, &head);
        body(&mut encoder);
        let range = finish(encoder)?;
        let len = range.len();
        let committed = self.store.commit_secret(range);
        committed.map_err(SendError::Store)?;
        self.behind += len;
        self.has_written(now, len);
        Ok(head.seq)
    }

    pub(super) fn check_admin(&mut self, now: Now, result: Result<u64, SendError>) {
        match result {
            Err(SendError::Store(StoreError::Full)) => {
                self.end(now, DisconnectReason::TransmitFull);
            }
            Err(SendError::Encode(error)) => {
                self.end(now, DisconnectReason::AdminMessage(error));
            }
            Err(SendError::Store(error)) => self.end_of_store(now, error),
            Ok(_) => self.count_answer(now),
            Err(_) => {}
        }
    }

    /// Returns the room for the fields of the header that the configuration sets, in bytes.
    pub(super) fn header_room(&self) -> usize {
        let id = &self.config.id;
        let fields: usize = self
            .config
            .header_fields
            .iter()
            .map(|f| f.1.len() + 12)
            .sum();
        id.sender.len() + id.target.len() + fields
    }

    pub(super) fn send_heartbeat(&mut self, now: Now, test_req_id: Option<&[u8]>) {
        let variable = test_req_id.map_or(0, <[u8]>::len);
        self.send_admin(now, msg_type::HEARTBEAT, variable, |body| {
            match test_req_id {
                // An empty TestReqID(112) is returned unchanged.
                Some(b"") => body.raw(b"112=\x01"),
                Some(id) => body.field(tag::TEST_REQ_ID, id),
                None => body,
            };
        });
    }

    pub(super) fn send_test_request(&mut self, now: Now, test_req_id: &[u8]) {
        let result = self.write_test_request(now, test_req_id);
        self.check_admin(now, result);
    }

    fn write_test_request(&mut self, now: Now, test_req_id: &[u8]) -> WriteResult {
        let (kind, len) = (msg_type::TEST_REQUEST, test_req_id.len());
        let written = self.write_admin(now, kind, &[], len, false, |body| {
            body.field(tag::TEST_REQ_ID, test_req_id);
        })?;
        self.round_trip.asked(test_req_id, now.mono);
        Ok(written)
    }

    pub(super) fn send_resend_request(&mut self, now: Now, begin: u64, end: u64) {
        self.send_admin(now, msg_type::RESEND_REQUEST, 0, |body| {
            body.u64(tag::BEGIN_SEQ_NO, begin).u64(tag::END_SEQ_NO, end);
        });
    }

    pub(super) fn send_logout(&mut self, now: Now, text: &[u8]) {
        let body = |body: &mut FieldWriter<'_>| write_text(text, body);
        self.send_admin(now, msg_type::LOGOUT, text.len(), body);
    }

    /// Sends a Logout(5) with MsgSeqNum(34) 0, which uses up no number. If that fails, the session
    /// ends.
    pub(super) fn send_unnumbered_logout(&mut self, now: Now, text: &[u8]) {
        let result = self.write_unnumbered_logout(now, text);
        self.check_admin(now, result);
    }

    fn write_unnumbered_logout(&mut self, now: Now, text: &[u8]) -> WriteResult {
        let (config, seq) = (&self.config, 0);
        self.fixed.set_time(now.utc, config.precision);
        let head = Head {
            seq,
            ..head_of(&self.store, config, &[])
        };
        let mut room = vec![0_u8; self.admin_room(text.len()) + AdminHook::ROOM];
        let mut encoder = begin_in(&mut room, &self.fixed, config, msg_type::LOGOUT, &head);
        write_text(text, &mut encoder);
        if let Some(hooked) = &self.hooked {
            let message = AdminMessage {
                id: &hooked.id,
                msg_type: msg_type::LOGOUT,
                seq,
                sending_time: self.fixed.time_text(),
                now,
            };
            hooked.hook.write(&message, &mut encoder);
        }
        let range = finish(encoder)?;
        let len = range.len();
        let logout = Again {
            head: room.get(range).unwrap_or_default(),
            kept: None,
            tail: b"",
        };
        let written = self.store.transmit_again(&logout);
        written.map_err(SendError::Store)?;
        self.behind += len;
        self.has_written(now, len);
        Ok(seq)
    }
}

/// Writes the Text(58) of a Logout(5). One that cannot be sent is no reason not to log out.
fn write_text(text: &[u8], body: &mut FieldWriter<'_>) {
    if !text.is_empty() && !text.contains(&SOH) {
        body.field(tag::TEXT, text);
    }
}

/// Begins a message field by field.
#[inline(never)]
fn begin_anew<'s, S: MessageStore>(
    store: &'s mut S,
    fixed: &Fixed,
    config: &Config,
    msg_type: &[u8],
    extra: &[OutField<'_>],
    room: usize,
) -> Result<Encoder<'s>, SendError> {
    let head = head_of(store, config, extra);
    let place = store.reserve(room).map_err(SendError::Store)?;
    Ok(begin_in(place, fixed, config, msg_type, &head))
}

/// Returns the header of a message with the next number.
fn head_of<'a, S: MessageStore>(store: &S, config: &Config, extra: &'a [OutField<'a>]) -> Head<'a> {
    Head {
        seq: store.next_sender(),
        orig_time: None,
        last_processed: config.last_processed.then(|| store.next_target() - 1),
        extra,
    }
}

fn begin_in<'s>(
    place: &'s mut [u8],
    fixed: &Fixed,
    config: &Config,
    msg_type: &[u8],
    head: &Head<'_>,
) -> Encoder<'s> {
    let begin_string = config.id.version.begin_string().as_bytes();
    let mut encoder = Encoder::new(place, begin_string, msg_type);
    head.write(fixed, config, &mut encoder);
    encoder
}

/// Begins a message with the next number in the store. The time is set already. The function is not
/// inlined, as [`Session::rehearse`] is about this very code.
#[inline(never)]
fn begin<'s, S: MessageStore>(
    store: &'s mut S,
    fixed: &mut Fixed,
    config: &Config,
    msg_type: &[u8],
    extra: &[OutField<'_>],
    room: usize,
) -> Result<Encoder<'s>, SendError> {
    let seq = store.next_sender();
    let is_usual = extra.is_empty() && !config.last_processed;
    if is_usual && let Some(front) = fixed.front(msg_type, seq) {
        let place = store.reserve(room).map_err(SendError::Store)?;
        return Ok(Encoder::with_front(place, front));
    }
    let encoder = begin_anew(store, fixed, config, msg_type, extra, room)?;
    if is_usual {
        fixed.remember(&encoder, msg_type, seq);
    }
    Ok(encoder)
}

/// Finishes a message. The function is not inlined, as [`Session::rehearse`] is about this very
/// code.
#[inline(never)]
fn finish(encoder: Encoder<'_>) -> Result<Range<usize>, SendError> {
    encoder.finish().map_err(SendError::Encode)
}

/// The body of a message in a rehearsal.
const USUAL_BODY: [u8; 128] = [b'0'; 128];

const HEADER_TOO_LONG: SendError = SendError::Encode(EncodeError::BufferFull);

/// Returns the constant header of messages with a shared body, or `None` if it is too long for one.
pub(super) fn shared_header(config: &Config) -> Option<SessionHeader> {
    let id = &config.id;
    let mut fields: Vec<OutField<'_>> = vec![
        (tag::SENDER_COMP_ID, id.sender.as_bytes()),
        (tag::TARGET_COMP_ID, id.target.as_bytes()),
    ];
    fields.extend(
        config
            .header_fields
            .iter()
            .map(|(tag, value)| (*tag, &**value)),
    );
    SessionHeader::with_fields(id.version.begin_string().as_bytes(), &fields).ok()
}
