//! The receive path: bytes in, one event at a time out, with every check in its order.

use super::config::Config;
use super::event::{AppMessage, DisconnectReason, Event};
use super::incoming_header::{self, Header, same};
use super::now::Now;
use super::store::MessageStore;
use super::unreadable::{fault_of, is_marked_again};
use super::validate::{Context, Fault, RejectReason, Validator};
use super::{Session, State};
use crate::codec::{
    DecodeError, Decoder, FrameFinder, Garbled, Message, Next, Sought, announced_len,
};
use crate::{msg_type, tag};
use std::sync::Arc;

/// The tags of length fields, each with that of its data field.
type Pairs = Box<[(u32, u32)]>;

/// The memory for decoding, which all sessions of a thread share.
#[derive(Debug, Default)]
pub struct Scratch {
    pub(super) decoder: Decoder,
    /// The data fields that `decoder` knows: see [`Config::data_fields`].
    data_fields: Pairs,
    /// The decoders of other data fields.
    others: Vec<(Pairs, Decoder)>,
    /// The message that has waited after a gap and is handled now.
    held: Vec<u8>,
    /// The dictionary checks of the session that was handled last. Events borrow their groups.
    validator: Option<Arc<dyn Validator>>,
}

impl Scratch {
    /// Returns a scratch for messages of up to `max_message` bytes. Larger ones count as garbled.
    pub fn new(max_message: usize) -> Self {
        let finder = FrameFinder::new(max_message);
        Self {
            decoder: Decoder::with(finder, Default::default()),
            data_fields: Pairs::default(),
            others: Vec::new(),
            held: Vec::new(),
            validator: None,
        }
    }

    /// Selects a session's dictionary checks and the decoder of its data fields, unless they are
    /// selected already.
    #[inline]
    fn adopt(&mut self, config: &Config) {
        let is_same = match (&self.validator, &config.validator) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => Arc::ptr_eq(ours, theirs),
            _ => false,
        };
        if !is_same {
            self.validator.clone_from(&config.validator);
        }
        self.know(&config.data_fields);
    }

    /// Selects the decoder of these data fields.
    #[inline]
    pub(super) fn know(&mut self, data_fields: &[(u32, u32)]) {
        if *self.data_fields != *data_fields {
            self.change_decoder(data_fields);
        }
    }

    /// Selects the decoder of other data fields. It is made the first time and kept, so that
    /// sessions that take turns allocate nothing.
    #[cold]
    fn change_decoder(&mut self, data_fields: &[(u32, u32)]) {
        let mut others = self.others.iter();
        let known = others.position(|(own, _)| **own == *data_fields);
        let (own, decoder) = match known {
            Some(at) => self.others.swap_remove(at),
            None => {
                let decoder = Decoder::knowing(self.decoder.finder(), data_fields);
                (data_fields.into(), decoder)
            }
        };
        let own = std::mem::replace(&mut self.data_fields, own);
        let decoder = std::mem::replace(&mut self.decoder, decoder);
        self.others.push((own, decoder));
    }

    /// Returns whether the held message becomes an event, which then borrows `held`.
    fn holds_event(&mut self) -> bool {
        let Ok(message) = self.decoder.decode(&self.held) else {
            return false;
        };
        let msg_type = message.msg_type();
        let is_told = matches!(msg_type, msg_type::REJECT | msg_type::LOGOUT);
        is_told || !msg_type::is_session(msg_type)
    }

    /// Returns the decoder of the standard's data fields, for `peek_logon` and for use by the
    /// caller.
    pub fn decoder(&mut self) -> &mut Decoder {
        self.know(&[]);
        &mut self.decoder
    }

    /// Returns the decoder of the data fields of a session with this configuration.
    pub fn decoder_of(&mut self, config: &Config) -> &mut Decoder {
        self.know(&config.data_fields);
        &mut self.decoder
    }
}

/// The result of one call of `handle_bytes`.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// The number of bytes at the front that are done with, once the event is.
    pub consumed: usize,
    /// The event, if there is one.
    pub event: Option<Event<'a>>,
}

impl Step<'_> {
    /// Returns a step without an event.
    const fn of(consumed: usize) -> Self {
        let event = None;
        Self { consumed, event }
    }

    /// Returns whether nothing was consumed and there is no event. More bytes are then needed.
    pub fn is_idle(&self) -> bool {
        self.consumed == 0 && self.event.is_none()
    }
}

/// The way in which MsgSeqNum(34) of a message is checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SeqCheck {
    /// The number must be the expected one.
    Expected,
    /// The number does not matter.
    Any,
}

/// Returns an event about a message that cannot be read, as it borrows none.
const fn without_message(event: Event<'_>) -> Option<Event<'static>> {
    match event {
        Event::Garbled(why) => Some(Event::Garbled(why)),
        Event::Unreadable { seq, why } => Some(Event::Unreadable { seq, why }),
        _ => None,
    }
}

/// Decodes the next message. The function is not inlined, as [`Session::rehearse`] is about this
/// very code.
#[inline(never)]
pub(super) fn decode<'a>(
    decoder: &'a mut Decoder,
    bytes: &'a [u8],
    sought: &mut Sought,
) -> Next<'a> {
    decoder.next_further(bytes, sought)
}

impl<S: MessageStore> Session<S> {
    /// Handles at most one message of the received bytes, and returns the number of bytes consumed
    /// and an event. Call it again with the bytes after those until the step is idle. Then keep the
    /// rest, read more, and call it with both: bytes that have been searched are not searched
    /// again.
    ///
    /// An event's message borrows `scratch` and `bytes`, not the session, which may be called while
    /// the event is in use. The message counts as received with the next call.
    #[inline]
    pub fn handle_bytes<'a>(
        &mut self,
        now: Now,
        scratch: &'a mut Scratch,
        bytes: &'a [u8],
    ) -> Step<'a> {
        self.confirm(now);
        scratch.adopt(&self.config);
        if let Some(event) = self.notices.pop_front() {
            return Step {
                consumed: 0,
                event: Some(event),
            };
        }
        while self.gap.is_some()
            && let Some(held) = self.take_held()
        {
            scratch.held = held;
            if scratch.holds_event() {
                // The event is the held message, or its fault.
                let event = self.process_held(now, scratch);
                let event = event.or_else(|| self.poll_event());
                return Step { consumed: 0, event };
            }
            // No event borrows the message, so that the next one may take its place.
            let event = self.process_held(now, scratch).and_then(without_message);
            let event = event.or_else(|| self.poll_event());
            if event.is_some() {
                return Step { consumed: 0, event };
            }
        }
        match self.state {
            State::Idle | State::Ended => return Step::of(bytes.len()),
            State::AwaitingDecision => return Step::of(0),
            _ => {}
        }
        if bytes.is_empty() {
            return Step::of(0);
        }
        match decode(&mut scratch.decoder, bytes, &mut self.sought) {
            Next::Message { message, end, .. } => {
                self.timers.last_received = now.mono;
                self.timers.hear(now.mono);
                let event = self.process(now, message, scratch.validator.as_deref(), false);
                Step {
                    consumed: end,
                    event: event.or_else(|| self.poll_event()),
                }
            }
            Next::Partial { skipped, .. } => Step::of(skipped),
            Next::Garbled { skipped, why, end } => {
                if why == Garbled::TooLong {
                    self.end_too_long(now, bytes.get(skipped..end).unwrap_or_default());
                }
                self.garbled(now, DecodeError::Garbled(why), end)
            }
            Next::Malformed {
                skipped,
                error,
                end,
            } => {
                let frame = bytes.get(skipped..end).unwrap_or_default();
                self.malformed(now, frame, error, end)
            }
        }
    }

    fn process_held<'a>(&mut self, now: Now, scratch: &'a mut Scratch) -> Option<Event<'a>> {
        let seq = self.store.next_target();
        let event = match scratch.decoder.decode(&scratch.held) {
            Ok(message) => self.process(now, message, scratch.validator.as_deref(), true),
            // It was decoded before it was held.
            Err(_) => None,
        };
        if !self.unconfirmed && self.store.next_target() == seq {
            // It was refused and its number not used up: that is missing again.
            self.continue_gap(now, seq);
        }
        event
    }

    /// Skips bytes that are no message. Before the logon they end the connection.
    #[cold]
    fn garbled(&mut self, now: Now, why: DecodeError, end: usize) -> Step<'static> {
        if self.state == State::AwaitingLogon {
            self.end(now, DisconnectReason::GarbledBeforeLogon(why));
            return Step {
                consumed: end,
                event: self.poll_event(),
            };
        }
        Step {
            consumed: end,
            event: Some(Event::Garbled(why)),
        }
    }

    /// Handles a message whose frame is right and whose fields are broken: see
    /// [`Session::unreadable`].
    #[cold]
    fn malformed(
        &mut self,
        now: Now,
        frame: &[u8],
        error: DecodeError,
        end: usize,
    ) -> Step<'static> {
        if self.state == State::AwaitingLogon {
            return self.garbled(now, error, end);
        }
        // One that is not the last straw is rejected for its fault.
        let over_rate = self.is_one_too_many(now, || is_marked_again(frame));
        if over_rate && self.end_over_rate(now) {
            return Step {
                consumed: end,
                event: self.poll_event(),
            };
        }
        let event = self.unreadable(now, frame, error, fault_of(frame, error));
        Step {
            consumed: end,
            event: Some(event),
        }
    }

    /// Logs the counterparty out because of a message that is too long, of which `start` is as much
    /// as is read. A message that is skipped is requested again, and would be as long. Does nothing
    /// if the bytes announce no such length.
    #[cold]
    fn end_too_long(&mut self, now: Now, start: &[u8]) {
        let limit = start.len();
        if self.state == State::LoggedOn
            && let Some(len) = announced_len(start)
            && len > limit
        {
            let reason = DisconnectReason::MessageTooLong { len, limit };
            self.final_logout(now, reason.to_string().as_bytes(), reason);
        }
    }

    /// Handles one message. `held` says that it waited after a gap, and passed its checks then.
    /// `validator` is that of the session, borrowed for as long as the event.
    #[inline]
    fn process<'a>(
        &mut self,
        now: Now,
        message: Message<'a>,
        validator: Option<&'a dyn Validator>,
        held: bool,
    ) -> Option<Event<'a>> {
        if self.state == State::AwaitingLogon {
            return self.first_message(now, message);
        }
        let begin_string = self.config.id.version.begin_string();
        if !same(message.begin_string(), begin_string.as_bytes()) {
            return self.wrong_begin_string(now, message);
        }
        let over_rate = !held && self.is_over_rate(now, &message);
        if over_rate && self.end_over_rate(now) {
            return None;
        }
        let header = match self.check(&message) {
            Ok(header) => header,
            Err(fault) => return self.faulty(now, &message, fault),
        };
        if msg_type::is_session(header.msg_type) {
            return self.session_message(now, message, &header, held);
        }
        if !self.verify(now, &message, &header, SeqCheck::Expected, held) {
            return None;
        }
        if over_rate {
            self.reject_over_rate(now, &message, header.seq);
            return None;
        }
        self.unconfirmed = true;
        let context = self.context();
        let groups = validator.and_then(|validator| validator.groups(&message, &context));
        Some(Event::App(AppMessage {
            message: groups.map_or(message, |groups| message.with_groups(groups)),
            seq: header.seq,
            poss_dup: header.poss_dup,
            poss_resend: header.poss_resend,
        }))
    }

    /// Returns the state that dictionary checks of received messages need.
    fn context(&self) -> Context {
        Context {
            default_appl_ver_id: self.peer_appl_ver,
        }
    }

    /// Checks the message alone, first by the dictionary, then for what the session needs.
    #[inline(never)]
    pub(super) fn check<'a>(&mut self, message: &Message<'a>) -> Result<Header<'a>, Fault> {
        if let Some(validator) = &self.config.validator {
            validator.check(message, &self.context())?;
        }
        let (id, limit) = (&self.config.id, self.header_field_limit);
        let header = Header::read(message, id, limit, &mut self.last_header)?;
        incoming_header::check_session_fields(message, header.msg_type)?;
        Ok(header)
    }

    /// Answers a message with a fault.
    #[cold]
    fn faulty<'a>(&mut self, now: Now, message: &Message<'_>, fault: Fault) -> Option<Event<'a>> {
        if fault.breaks_the_frame() {
            let why = DecodeError::Garbled(Garbled::BrokenFields);
            let is_rejected = fault.reason == RejectReason::InvalidTagNumber;
            let fault = is_rejected.then_some(fault);
            return Some(self.unreadable(now, message.bytes(), why, fault));
        }
        let missing = incoming_header::missing_comp_id(message);
        let fault = missing.map_or(fault, |tag| incoming_header::comp_id_fault(message, tag));
        self.answer_fault(now, message, fault);
        if missing.is_some() && message.msg_type() == msg_type::LOGON {
            self.end(now, DisconnectReason::UnexpectedLogon);
        }
        None
    }

    #[cold]
    fn wrong_begin_string<'a>(&mut self, now: Now, message: Message<'a>) -> Option<Event<'a>> {
        let seq = message.u64(tag::MSG_SEQ_NUM).ok();
        if message.msg_type() == msg_type::LOGOUT {
            return self.peer_logout(now, message, seq.unwrap_or(0));
        }
        self.start_logout(
            now,
            b"Incorrect BeginString",
            Some(DisconnectReason::BeginString),
        );
        if self.is_connected() && seq == Some(self.store.next_target()) {
            self.consume(now);
        }
        None
    }

    /// Checks the message against the session, in the order that counterparties know:
    /// SendingTime(52), CompIDs, MsgSeqNum(34). Returns false if the message has been dealt with.
    #[inline]
    pub(super) fn verify(
        &mut self,
        now: Now,
        message: &Message<'_>,
        header: &Header<'_>,
        seq_check: SeqCheck,
        held: bool,
    ) -> bool {
        if !held {
            if !self.is_good_time(now, header) {
                self.send_reject(now, message, RejectReason::SendingTime, None);
                self.start_logout(now, b"", Some(DisconnectReason::SendingTime));
                return false;
            }
            if !self.is_our_comp_id(header) {
                self.send_reject(now, message, RejectReason::CompId, None);
                self.start_logout(now, b"", Some(DisconnectReason::CompId));
                return false;
            }
        }
        let expected = self.store.next_target();
        if header.seq == expected || seq_check == SeqCheck::Any {
            return true;
        }
        if header.seq > expected {
            self.too_high(now, header.seq, Some(message), true);
        } else {
            self.too_low(now, message, header, expected);
        }
        false
    }

    #[inline]
    pub(super) fn is_good_time(&self, now: Now, header: &Header<'_>) -> bool {
        let distance = now.utc.nanos().abs_diff(header.sending_time.nanos());
        !self.config.check_latency
            || distance <= self.config.max_latency
            || self.unread_for > 0 && self.was_in_time(now, header)
    }

    /// Returns whether SendingTime(52) was recent when the message may have arrived, before it was
    /// left unread.
    #[cold]
    fn was_in_time(&self, now: Now, header: &Header<'_>) -> bool {
        let age = now.utc.nanos().checked_sub(header.sending_time.nanos());
        let age = age.and_then(|age| u64::try_from(age).ok());
        let most = self.config.max_latency.saturating_add(self.unread_for);
        age.is_some_and(|age| age <= most)
    }

    #[inline]
    pub(super) fn is_our_comp_id(&self, header: &Header<'_>) -> bool {
        !self.config.check_comp_id || header.is_ours
    }

    /// Handles a message with a number below the expected one. It ends the session, unless the
    /// message says that it is a duplicate.
    #[cold]
    fn too_low(&mut self, now: Now, message: &Message<'_>, header: &Header<'_>, expected: u64) {
        if !header.poss_dup {
            return self.end_too_low(now, expected, header.seq);
        }
        if message.msg_type() == msg_type::SEQUENCE_RESET {
            return;
        }
        let Some(original) = header.orig_sending_time else {
            if !self.config.requires_orig_sending_time {
                return;
            }
            let tag = Some(tag::ORIG_SENDING_TIME);
            return self.send_reject(now, message, RejectReason::RequiredTagMissing, tag);
        };
        match fanfare_wire::UtcTimestamp::parse(original) {
            Some(original) if original <= header.sending_time => {}
            Some(_) => {
                self.send_reject(now, message, RejectReason::SendingTime, None);
                self.start_logout(now, b"", Some(DisconnectReason::SendingTime));
            }
            None => {
                let tag = Some(tag::ORIG_SENDING_TIME);
                self.send_reject(now, message, RejectReason::DataFormat, tag);
            }
        }
    }

    /// Sends a Logout(5) because a number is too low, and ends the session without waiting for an
    /// answer.
    #[cold]
    pub(super) fn end_too_low(&mut self, now: Now, expected: u64, received: u64) {
        let reason = DisconnectReason::MsgSeqNumTooLow { expected, received };
        self.final_logout(now, reason.to_string().as_bytes(), reason);
    }
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::*;
    use crate::codec::Encoder;
    use fanfare_wire::UtcTimestamp;

    /// Returns a message to this side with this MsgType(35), MsgSeqNum(34) and body.
    fn message(msg_type: &str, seq: u64, body: &str) -> Vec<u8> {
        let mut room = [0; 256];
        let mut encoder = Encoder::new(&mut room, b"FIX.4.4", msg_type.as_bytes());
        let header = format!("34={seq}|49=THEM|52=20260202-02:40:00|56=US|");
        encoder.raw((header + body).replace('|', "\x01").as_bytes());
        let range = encoder.finish().unwrap();
        room[range].to_vec()
    }

    const NOW: Now = Now {
        mono: 0,
        utc: UtcTimestamp::from_nanos(1_770_000_000_000_000_000),
    };

    fn connected(data_fields: &[(u32, u32)]) -> Session<MemoryStore> {
        let config = Config {
            data_fields: data_fields.to_vec(),
            ..Config::new(SessionId::new(Version::Fix44, "US", "THEM"))
        };
        let mut session = Session::acceptor(config, MemoryStore::default());
        session.connected(NOW);
        session
    }

    /// Returns the events of all bytes, in words.
    fn told(session: &mut Session<MemoryStore>, scratch: &mut Scratch, bytes: &[u8]) -> String {
        let (mut told, mut at) = (Vec::new(), 0);
        loop {
            let step = session.handle_bytes(NOW, scratch, &bytes[at..]);
            at += step.consumed;
            if step.consumed == 0 && step.event.is_none() {
                assert_eq!(at, bytes.len());
                return told.join(", ");
            }
            told.extend(step.event.map(|event| match event {
                Event::App(app) => format!("app {}", app.seq),
                Event::RejectReceived(_) => "reject".to_owned(),
                Event::LoggedOn { .. } => "logged on".to_owned(),
                Event::Garbled(_) => "garbled".to_owned(),
                Event::Unreadable { seq, .. } => format!("unreadable {seq}"),
                other => format!("{other:?}"),
            }));
        }
    }

    #[test]
    fn each_session_has_the_data_fields_of_its_counterparty() {
        let mut scratch = Scratch::default();
        let mut sessions = [&[(5010, 5011)][..], &[], &[(5010, 5012)]].map(connected);
        for session in &mut sessions {
            let logon = message("A", 1, "98=0|108=30|");
            assert_eq!(told(session, &mut scratch, &logon), "logged on");
        }
        for _ in 0..3 {
            for (session, data) in sessions.iter_mut().zip([5011, 96, 5012]) {
                let length = if data == 96 { 95 } else { 5010 };
                let seq = session.store().next_target();
                let reject = "reason: InvalidTagNumber, tag: None";
                let reject = format!("unreadable {seq}, RejectSent {{ ref_seq: {seq}, {reject} }}");
                for (data, expected) in [(data, format!("app {seq}")), (5013, reject)] {
                    // Behind the separator in the value there is no `=`.
                    let text = format!("{length}=3|{data}=a|b|11=1|");
                    let bytes = message("D", seq, &text);
                    assert_eq!(told(session, &mut scratch, &bytes), expected, "{text}");
                }
            }
        }
        let forged = message("D", 5, "5010=6|5011=a|11=x|11=y|");
        let ids = sessions.each_mut().map(|session| {
            let step = session.handle_bytes(NOW, &mut scratch, &forged);
            match step.event {
                Some(Event::App(app)) => app.message.char(11).unwrap(),
                other => panic!("{other:?}"),
            }
        });
        assert_eq!(ids, *b"yxx");
        assert_eq!(scratch.others.len(), 2);
        let mut decoder = scratch.decoder().clone();
        assert!(decoder.decode(&message("D", 5, "95=3|96=a|b|")).is_ok());
        assert!(
            decoder
                .decode(&message("D", 5, "5010=3|5011=a|b|"))
                .is_err()
        );
    }

    #[test]
    fn a_number_that_is_set_may_be_that_of_a_broken_message_once_more() {
        let (mut session, mut scratch) = (connected(&[]), Scratch::default());
        let logon = message("A", 1, "98=0|108=30|");
        assert_eq!(told(&mut session, &mut scratch, &logon), "logged on");
        let broken = message("4", 2, "36=9|354=3|355=abcdef|");
        let mut ends = |session: &mut Session<MemoryStore>| {
            let told = told(session, &mut scratch, &broken);
            assert!(told.starts_with("unreadable 2"), "{told}");
            told.contains("Disconnect")
        };
        assert!(!ends(&mut session));
        session.change_next_target(NOW, 2).unwrap();
        assert!(!ends(&mut session));
        assert!(ends(&mut session));
    }

    #[test]
    fn what_was_searched_of_a_garbled_stretch_is_not_searched_again() {
        let (mut session, mut scratch) = (connected(&[]), Scratch::default());
        let logon = message("A", 1, "98=0|108=30|");
        assert_eq!(told(&mut session, &mut scratch, &logon), "logged on");
        let wire = |text: &str| text.replace('|', "\x01").into_bytes();
        let text = format!("8=FIX.4.4|9=5|{}", "x".repeat(300));
        let mut is_idle = |text: &str| {
            let bytes = wire(text);
            session.handle_bytes(NOW, &mut scratch, &bytes).is_idle()
        };
        assert!(is_idle(&text));
        // An end that would be found, if it were looked for.
        let other = text.replacen("xxxxxxxx", "|10=000|", 1);
        assert!(is_idle(&format!("{other}x")));
        let whole = wire(&format!("{text}x|10=000|"));
        assert_eq!(told(&mut session, &mut scratch, &whole), "garbled");
        assert_eq!(
            told(&mut session, &mut scratch, &message("D", 2, "11=2|")),
            "app 2"
        );
        // It is forgotten with the connection.
        let step = session.handle_bytes(NOW, &mut scratch, &whole[..200]);
        assert!(step.is_idle());
        session.disconnected(NOW);
        session.connected(NOW);
        let short = wire("8=FIX.4.4|9=5|35=A|10=000|");
        let told = told(&mut session, &mut scratch, &short);
        assert!(told.contains("GarbledBeforeLogon"), "{told}");
    }

    #[test]
    fn a_message_that_is_too_long_ends_the_session_and_other_bytes_do_not() {
        let (mut session, mut scratch) = (connected(&[]), Scratch::new(200));
        let logon = message("A", 1, "98=0|108=30|");
        assert_eq!(told(&mut session, &mut scratch, &logon), "logged on");
        let text = "x".repeat(140);
        for skipped in ["9=100|35=D|58=", "9=x|35=D|58=", "9=999999|35=D|10=000|"] {
            let bytes = format!("8=FIX.4.4|{skipped}{text}{text}").replace('|', "\x01");
            let told = told(&mut session, &mut scratch, bytes.as_bytes());
            assert_eq!(told, "garbled", "{skipped}");
            assert!(session.is_logged_on());
        }
        let long = message("D", 2, &format!("58={text}|"));
        let told = told(&mut session, &mut scratch, &long);
        let len = long.len();
        let end = format!("Disconnect(MessageTooLong {{ len: {len}, limit: 200 }})");
        assert_eq!(told, format!("garbled, {end}"));
        let sent = String::from_utf8_lossy(session.poll_transmit()).replace('\x01', "|");
        let reason = format!("a message of {len} bytes is longer than the limit of 200 bytes");
        assert!(sent.contains("|35=5|"), "{sent}");
        assert!(sent.contains(&format!("|58={reason}|")), "{sent}");
        assert_eq!(session.store().next_target(), 2);
    }

    #[test]
    fn messages_that_waited_behind_a_gap_are_told_as_others_are() {
        let mut session = connected(&[]);
        let early = [
            message("A", 1, "98=0|108=30|"),
            message("0", 3, ""),
            message("1", 4, "112=x|"),
            message("D", 5, "11=5|"),
            message("0", 6, ""),
            message("3", 7, "45=1|"),
            message("0", 8, ""),
            message("D", 9, "11=9|"),
            message("D", 2, "11=2|"),
            message("D", 10, "11=10|"),
        ]
        .concat();
        let expected = "logged on, GapDetected { begin: 2, end: 2 }, app 2, app 5, reject, \
                        app 9, GapClosed { next: 10 }, app 10";
        let told = told(&mut session, &mut Scratch::default(), &early);
        assert_eq!(told, expected);
        assert_eq!(session.store().next_target(), 11);
    }

    #[test]
    fn a_full_queue_behind_a_gap_is_told_once_and_what_it_dropped_is_requested() {
        let config = Config {
            gap_queue: Limits {
                messages: 2,
                bytes: 1 << 20,
            },
            closed_resend_interval: true,
            ..Config::new(SessionId::new(Version::Fix44, "US", "THEM"))
        };
        let mut session = Session::acceptor(config, MemoryStore::default());
        session.connected(NOW);
        let early = [
            message("A", 1, "98=0|108=30|"),
            message("D", 3, "11=3|"),
            message("D", 4, "11=4|"),
            message("D", 5, "11=5|"),
            message("D", 6, "11=6|"),
            message("D", 2, "11=2|"),
        ]
        .concat();
        let mut scratch = Scratch::default();
        let expected = "logged on, GapDetected { begin: 2, end: 2 }, QueueFull { seq: 5 }, app 2, \
                        app 3, app 4, GapDetected { begin: 5, end: 6 }";
        assert_eq!(told(&mut session, &mut scratch, &early), expected);
        let sent = String::from_utf8_lossy(session.poll_transmit()).replace('\x01', "|");
        assert!(sent.contains("|7=5|16=6|"), "{sent}");
        let rest = [message("D", 5, "11=5|"), message("D", 6, "11=6|")].concat();
        let expected = "app 5, app 6, GapClosed { next: 7 }";
        assert_eq!(told(&mut session, &mut scratch, &rest), expected);
    }
}
