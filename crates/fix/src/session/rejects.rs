//! Reject(3) and BusinessMessageReject(j) of messages that the session or the application refuses.

use super::event::{Event, SendError};
use super::identity::Version;
use super::now::Now;
use super::route::ReverseRoute;
use super::store::{Kind, MessageStore};
use super::validate::{BusinessReason, Fault, RejectReason};
use super::{Session, State};
use crate::codec::{FieldWriter, Message};
use crate::{msg_type, tag};

impl<S: MessageStore> Session<S> {
    /// Rejects an application message for its content with a Reject(3) whose Text(58) is `text`,
    /// which may be empty. The message keeps its number.
    ///
    /// # Errors
    /// See [`Session::send`].
    pub fn reject(
        &mut self,
        now: Now,
        message: &Message<'_>,
        reason: RejectReason,
        tag: Option<u32>,
        text: &str,
    ) -> Result<u64, SendError> {
        if !matches!(self.state, State::LoggedOn | State::LoggingOut) {
            return Err(SendError::NotLoggedOn);
        }
        self.write_reject(now, message, reason, tag.map(i64::from), text)
            .inspect_err(|error| self.store_failed(now, error))
    }

    /// Rejects an application message with BusinessMessageReject(j). Before FIX.4.2, which has no
    /// such message, it is rejected with Reject(3). `text` may be empty.
    ///
    /// # Errors
    /// See [`Session::send`].
    pub fn reject_business(
        &mut self,
        now: Now,
        message: &Message<'_>,
        reason: BusinessReason,
        text: &str,
    ) -> Result<u64, SendError> {
        if !self.config.id.version.has_reject_codes() {
            return self.reject(now, message, RejectReason::Other, None, text);
        }
        if !matches!(self.state, State::LoggedOn | State::LoggingOut) {
            return Err(SendError::NotLoggedOn);
        }
        self.write_business_reject(now, message, reason, text)
            .inspect_err(|error| self.store_failed(now, error))
    }

    /// Answers a faulty message with Reject(3): see [`Self::answer_fault`].
    pub(super) fn send_reject(
        &mut self,
        now: Now,
        message: &Message<'_>,
        reason: RejectReason,
        tag: Option<u32>,
    ) {
        self.answer_fault(now, message, Fault::new(reason, tag));
    }

    /// Answers a faulty message with BusinessMessageReject(j) if the fault and the version have it,
    /// and with Reject(3) otherwise. The message uses up its number if that was the expected one.
    #[cold]
    pub(super) fn answer_fault(&mut self, now: Now, message: &Message<'_>, fault: Fault) {
        let Fault { reason, tag, .. } = fault;
        let has_codes = self.config.id.version.has_reject_codes();
        let (reason, result) = match fault.business.filter(|_| has_codes) {
            Some(business) => {
                let text = match tag {
                    Some(tag) => format!("{} ({tag})", business.text()),
                    None => business.text().to_owned(),
                };
                let result = self.write_business_reject(now, message, business, &text);
                (RejectReason::Other, result)
            }
            None => {
                let result = self.write_reject(now, message, reason, tag, reason.text());
                (reason, result)
            }
        };
        self.check_admin(now, result);
        let ref_seq = ref_seq_num(message);
        self.notice(Event::RejectSent {
            ref_seq,
            reason,
            tag,
        });
        let counts = !matches!(
            message.msg_type(),
            msg_type::LOGON | msg_type::SEQUENCE_RESET
        );
        if counts && self.is_connected() && ref_seq == self.store.next_target() {
            self.consume(now);
        }
    }

    /// Returns the parts of a message that a reject repeats, up to a length: MsgType(35) and the
    /// route of the answer.
    fn rejected<'m>(&self, message: &Message<'m>) -> (&'m [u8], ReverseRoute<'m>) {
        let limit = self.header_field_limit;
        let msg_type = message.msg_type();
        let route = ReverseRoute::of(message, self.config.id.version).up_to(limit);
        (msg_type.get(..limit).unwrap_or(msg_type), route)
    }

    pub(super) fn write_reject(
        &mut self,
        now: Now,
        message: &Message<'_>,
        reason: RejectReason,
        tag: Option<i64>,
        text: &str,
    ) -> Result<u64, SendError> {
        let version = self.config.id.version;
        let (msg_type, route) = self.rejected(message);
        let variable = text.len() + msg_type.len() + route.room();
        let kind = msg_type::REJECT;
        self.write_admin(now, kind, route.fields(), variable, false, |body| {
            body.u64(tag::REF_SEQ_NUM, ref_seq_num(message));
            if !version.has_reject_codes() {
                match tag {
                    Some(tag) => put_text(body, format!("{text} ({tag})").trim_start()),
                    None => put_text(body, text),
                }
                return;
            }
            put_text(body, text);
            // A tag 0 is named only where it is what is wrong.
            let is_named = |tag: &i64| *tag != 0 || reason == RejectReason::InvalidTagNumber;
            if let Some(tag) = tag.filter(is_named) {
                body.i64(tag::REF_TAG_ID, tag);
            }
            if !msg_type.is_empty() {
                body.field(tag::REF_MSG_TYPE, msg_type);
            }
            // FIX.4.2 knows the reasons up to 11 only.
            if version > Version::Fix42 || reason.code() <= 11 {
                body.u64(tag::SESSION_REJECT_REASON, reason.code().into());
            }
        })
    }

    pub(super) fn write_business_reject(
        &mut self,
        now: Now,
        message: &Message<'_>,
        reason: BusinessReason,
        text: &str,
    ) -> Result<u64, SendError> {
        let version = self.config.id.version;
        let appl_ver = self.appl_ver();
        let (msg_type, route) = self.rejected(message);
        let room = self.admin_room(text.len() + msg_type.len() + route.room());
        let kind = msg_type::BUSINESS_MESSAGE_REJECT;
        self.write(now, kind, Kind::App, route.fields(), room, |body| {
            body.u64(tag::REF_SEQ_NUM, ref_seq_num(message));
            put_text(body, text);
            if !msg_type.is_empty() {
                body.field(tag::REF_MSG_TYPE, msg_type);
            }
            body.u64(tag::BUSINESS_REJECT_REASON, reason.code().into());
            if version == Version::Fixt11 {
                body.char(tag::DEFAULT_APPL_VER_ID, appl_ver.wire());
            }
        })
    }
}

/// Appends Text(58), if there is any text.
fn put_text(body: &mut FieldWriter<'_>, text: &str) {
    if !text.is_empty() {
        body.str(tag::TEXT, text);
    }
}

/// Returns MsgSeqNum(34) of a message, or 0 if that is missing or no number.
fn ref_seq_num(message: &Message<'_>) -> u64 {
    message.u64(tag::MSG_SEQ_NUM).unwrap_or(0)
}
