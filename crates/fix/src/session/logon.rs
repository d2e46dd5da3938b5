//! Logon(A): the first message of both sides, and the reset of a live session.

use super::admin::FORGOTTEN;
use super::config::{SECOND, asks_for_new_password};
use super::event::{
    DisconnectReason, Event, LogonFault, NEW_PASSWORD, SendError, WRONG_CREDENTIALS,
};
use super::identity::{ApplVerId, Version};
use super::ids;
use super::incoming_header;
use super::now::Now;
use super::outbound::WriteResult;
use super::outgoing_header::Others;
use super::store::{MessageStore, OurReset, StoreError};
use super::timers::NEVER;
use super::validate::{Fault, RejectReason};
use super::{Role, Session, State};
use crate::codec::{FieldWriter, Message};
use crate::{msg_type, tag};

/// The part of a Logon(A) that is needed between its checks and the logon.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingLogon {
    seq: u64,
    poss_dup: bool,
    heart_bt_int: u32,
    /// Whether the Logon(A) has ResetSeqNumFlag(141)=Y.
    reset: bool,
    /// The value of NextExpectedMsgSeqNum(789).
    next_expected: Option<u64>,
    appl_ver: Option<ApplVerId>,
}

impl<S: MessageStore> Session<S> {
    /// Accepts the Logon(A) of `Event::LogonRequested`. Does nothing if no Logon(A) waits.
    pub fn accept_logon(&mut self, now: Now) {
        if self.state == State::AwaitingDecision
            && let Some(logon) = self.pending_logon.take()
        {
            self.complete_logon(now, logon);
        }
    }

    /// Refuses the Logon(A) of `Event::LogonRequested`. The counterparty receives a Logout(5) with
    /// `text`. Beyond one a second, and ten at once, the connection is closed without a Logout(5),
    /// which would use up a number and fill the store. Does nothing if no Logon(A) waits.
    pub fn refuse_logon(&mut self, now: Now, text: &str) {
        if self.state == State::AwaitingDecision {
            self.final_logout(now, text.as_bytes(), DisconnectReason::LogonRefused);
        }
    }

    /// Sets whether the Logout(5) that refuses a Logon(A) has MsgSeqNum(34) 0, and uses up no
    /// number, while the next number is 1. By default it has the next number.
    ///
    /// This is for a session that a refusal removes, or that begins at 1 with its next connection.
    /// A counterparty that has counted a Logout(5) with number 1 expects 2, and refuses the next
    /// Logon(A), which has 1.
    pub fn refuse_unnumbered(&mut self, unnumbered: bool) {
        self.refuses_unnumbered = unnumbered;
    }

    /// Resets both directions of a live session to 1: sends a Logon(A) with ResetSeqNumFlag(141)=Y,
    /// which the counterparty answers with the same. Messages that it sent before it received the
    /// Logon(A) are still received under their old numbers. If the answer does not come before the
    /// connection ends, the next Logon(A) asks again, also from another process if the store is on
    /// a medium. Does nothing unless the session is logged on, and in FIX.4.0.
    ///
    /// # Errors
    /// Returns `ResendInProgress` during a resend, while messages wait for their rate, and while
    /// messages of the counterparty are missing, as the reset would discard what waits and what is
    /// missing, and the errors of the store and of the Logon(A), which end the session. Returns
    /// `NotLoggedOn` if the Logon(A) exceeds `Config::answer_limit`.
    pub fn reset_sequence(&mut self, now: Now) -> Result<(), SendError> {
        self.reset_live(now, false)
    }

    /// Resets both directions of a live session as `reset_sequence` does, also while messages of
    /// the counterparty are missing. Those are not requested again, and the received ones behind
    /// them are discarded: see `Event::HeldDiscarded`. It helps where the counterparty has lost
    /// what is missing.
    ///
    /// # Errors
    /// See [`Session::reset_sequence`].
    pub fn reset_despite_gap(&mut self, now: Now) -> Result<(), SendError> {
        self.reset_live(now, true)
    }

    fn reset_live(&mut self, now: Now, despite_gap: bool) -> Result<(), SendError> {
        self.confirm(now);
        if self.state != State::LoggedOn || self.config.id.version == Version::Fix40 {
            return Ok(());
        }
        if self.replay.is_some() || (self.gap.is_some() && !despite_gap) {
            return Err(SendError::ResendInProgress);
        }
        let target = self.store.next_target();
        // Noted first, so that a kill in between leaves no new numbers without a reset to ask for.
        let noted = self.set_our_reset(now, OurReset::Asked);
        let reset = noted.and_then(|()| self.store_reset(now));
        reset.map_err(SendError::Store)?;
        let kept = self.store.set_next_target(target);
        kept.inspect_err(|&error| self.end(now, DisconnectReason::Store(error)))
            .map_err(SendError::Store)?;
        let heart_bt_int = (self.timers.interval / SECOND) as u32;
        let written = self.write_logon(now, heart_bt_int, true, 1);
        self.check_admin(now, written);
        written?;
        match self.is_logged_on() {
            true => Ok(()),
            false => Err(SendError::NotLoggedOn),
        }
    }

    /// Resets both directions to 1 without a connection. The next Logon(A) has MsgSeqNum(34) 1, and
    /// no earlier message is sent again. Does nothing while there is a connection.
    ///
    /// # Errors
    /// Returns the errors of the store.
    pub fn reset_idle(&mut self, now: Now) -> Result<(), StoreError> {
        match self.is_connected() {
            true => Ok(()),
            false => self.store_reset(now),
        }
    }

    /// Requests a reset at the next logon, with ResetSeqNumFlag(141)=Y, whatever the numbers are
    /// then. Does nothing while there is a connection, and in FIX.4.0.
    pub fn ask_reset(&mut self) {
        if !self.is_connected() && self.config.id.version > Version::Fix40 {
            self.our_reset = OurReset::Asked;
            // A store that fails does so again with the Logon.
            let _ = self.store.set_our_reset(OurReset::Asked);
        }
    }

    /// Sets the progress of the session's own reset, also in the store, where it outlives the
    /// process.
    fn set_our_reset(&mut self, now: Now, reset: OurReset) -> Result<(), StoreError> {
        if self.our_reset == reset {
            return Ok(());
        }
        self.our_reset = reset;
        self.store.set_our_reset(reset).inspect_err(|&error| {
            self.end(now, DisconnectReason::Store(error));
        })
    }

    /// Notes the end of the session's own reset if the first message of the counterparty after it
    /// has come. Numbers that begin again later do not open it again.
    pub(super) fn close_our_reset(&mut self) -> Result<(), StoreError> {
        if self.our_reset != OurReset::Begun || self.is_reset_open() {
            return Ok(());
        }
        self.our_reset = OurReset::None;
        self.store.set_our_reset(OurReset::None)
    }

    /// Notes the end of the session's own reset without a connection, as a number that was set
    /// replaces those of the reset. The number is stored first, so that a kill in between does not
    /// leave the numbers of the reset without a request for it.
    pub(super) fn forget_our_reset(&mut self, now: Now) -> Result<(), StoreError> {
        match self.is_connected() {
            true => Ok(()),
            false => self.set_our_reset(now, OurReset::None),
        }
    }

    /// Returns whether the counterparty has not answered a reset that the session requested. If the
    /// connection is lost, the next Logon(A) asks again.
    pub fn is_reset_open(&self) -> bool {
        match self.our_reset {
            OurReset::None => false,
            OurReset::Asked => true,
            OurReset::Begun => self.store.next_target() == 1,
        }
    }

    /// Sends the Logon(A) of an initiator.
    pub(super) fn send_first_logon(&mut self, now: Now) {
        let config = &self.config;
        let resets = config.reset_on_logon || config.reset_on_logout || config.reset_on_disconnect;
        let unanswered = self.is_reset_open();
        if (config.reset_on_logon || unanswered) && self.store_reset(now).is_err() {
            return;
        }
        let fresh = self.store.next_sender() == 1 && self.store.next_target() == 1;
        let has_flag = self.config.id.version >= Version::Fix41;
        let asks = has_flag && fresh && (resets || unanswered);
        let reset = match asks {
            true => OurReset::Asked,
            false => OurReset::None,
        };
        if self.set_our_reset(now, reset).is_err() {
            return;
        }
        let next_expected = self.store.next_target();
        self.send_logon(now, self.config.heart_bt_int, asks, next_expected);
    }

    /// Sends a Logon(A). If that fails, the session ends.
    fn send_logon(&mut self, now: Now, heart_bt_int: u32, reset: bool, next_expected: u64) {
        let written = self.write_logon(now, heart_bt_int, reset, next_expected);
        self.check_admin(now, written);
    }

    fn write_logon(
        &mut self,
        now: Now,
        heart_bt_int: u32,
        reset: bool,
        next_expected: u64,
    ) -> WriteResult {
        // The fields are lent to the writer while the session writes.
        let fields = std::mem::take(&mut self.config.logon_fields);
        let variable = 64 + fields.iter().map(|field| field.1.len() + 24).sum::<usize>();
        let version = self.config.id.version;
        let appl_ver = self.appl_ver();
        let with_next_expected = self.config.next_expected;
        let body = |body: &mut FieldWriter<'_>| {
            let mut others = Others {
                config: &fields,
                extra: &[],
            };
            others.below(tag::ENCRYPT_METHOD, body);
            body.char(tag::ENCRYPT_METHOD, b'0');
            others.below(tag::HEART_BT_INT, body);
            body.u64(tag::HEART_BT_INT, heart_bt_int.into());
            if reset {
                others.below(tag::RESET_SEQ_NUM_FLAG, body);
                body.char(tag::RESET_SEQ_NUM_FLAG, b'Y');
            }
            if with_next_expected {
                others.below(tag::NEXT_EXPECTED_MSG_SEQ_NUM, body);
                body.u64(tag::NEXT_EXPECTED_MSG_SEQ_NUM, next_expected);
            }
            if version == Version::Fixt11 {
                others.below(tag::DEFAULT_APPL_VER_ID, body);
                body.char(tag::DEFAULT_APPL_VER_ID, appl_ver.wire());
            }
            others.below(u32::MAX, body);
        };
        // Only fields of the configuration can be secrets, and those of the hook.
        let secret = !fields.is_empty();
        let result = self.write_admin(now, msg_type::LOGON, &[], variable, secret, body);
        self.config.logon_fields = fields;
        result
    }

    /// Handles the first message of a connection. A message with a fault is not answered.
    pub(super) fn first_message<'a>(
        &mut self,
        now: Now,
        message: Message<'a>,
    ) -> Option<Event<'a>> {
        match (message.msg_type(), self.role) {
            (msg_type::LOGON, _) => {}
            (msg_type::LOGOUT | msg_type::REJECT, Role::Initiator) => {
                return self.refused(now, message);
            }
            _ => {
                self.end(now, DisconnectReason::FirstMessageNotLogon);
                return None;
            }
        }
        let logon = match self.check_logon(now, &message) {
            Ok(logon) => logon,
            Err(fault) => {
                self.end(now, DisconnectReason::BadLogon(fault));
                return None;
            }
        };
        self.resets_at_end |= self.role == Role::Initiator;
        // First, as a stranger is not told the numbers.
        if self.role == Role::Acceptor && !self.config.admits(&message) {
            let text = WRONG_CREDENTIALS.as_bytes();
            self.final_logout(now, text, DisconnectReason::WrongCredentials);
            return None;
        }
        let has_password = self.role == Role::Acceptor && self.config.credentials.is_some();
        if has_password && asks_for_new_password(&message) {
            self.final_logout(now, NEW_PASSWORD.as_bytes(), DisconnectReason::NewPassword);
            return None;
        }
        if !self.check_logon_numbers(now, &logon) {
            return None;
        }
        if self.config.ask_logon {
            self.pending_logon = Some(logon);
            self.state = State::AwaitingDecision;
            return Some(Event::LogonRequested(message));
        }
        self.complete_logon(now, logon);
        None
    }

    /// Handles a Logout(5) or a Reject(3) in answer to the session's Logon(A).
    fn refused<'a>(&mut self, now: Now, message: Message<'a>) -> Option<Event<'a>> {
        let header = match self.check(&message) {
            Ok(header) if self.is_our_comp_id(&header) => header,
            Ok(_) => {
                self.end(now, DisconnectReason::BadLogon(LogonFault::CompId));
                return None;
            }
            Err(fault) => {
                self.end(now, DisconnectReason::BadLogon(LogonFault::Field(fault)));
                return None;
            }
        };
        self.resets_at_end = true;
        if header.seq == self.store.next_target() {
            self.consume(now);
        }
        if message.msg_type() == msg_type::REJECT {
            return Some(Event::RejectReceived(message));
        }
        self.final_logout(now, b"", DisconnectReason::LogonRejected);
        Some(Event::LogoutReceived(message))
    }

    fn check_logon(&mut self, now: Now, message: &Message<'_>) -> Result<PendingLogon, LogonFault> {
        let version = self.config.id.version;
        if message.begin_string() != version.begin_string().as_bytes() {
            return Err(LogonFault::BeginString);
        }
        ids::check(message, self.header_field_limit).map_err(LogonFault::TooLong)?;
        let header = self.check(message).map_err(LogonFault::Field)?;
        if !self.is_good_time(now, &header) {
            return Err(LogonFault::SendingTime);
        }
        if !self.is_our_comp_id(&header) {
            return Err(LogonFault::CompId);
        }
        let bare = self.is_bare(message, tag::ENCRYPT_METHOD);
        if !bare && message.i64(tag::ENCRYPT_METHOD) != Ok(0) {
            return Err(LogonFault::EncryptMethod);
        }
        Ok(PendingLogon {
            seq: header.seq,
            poss_dup: header.poss_dup,
            heart_bt_int: self.check_heart_bt_int(message)?,
            reset: incoming_header::flag(message, tag::RESET_SEQ_NUM_FLAG)
                .map_err(LogonFault::Field)?,
            next_expected: message
                .opt_u64(tag::NEXT_EXPECTED_MSG_SEQ_NUM)
                .map_err(|_| {
                    let tag = Some(tag::NEXT_EXPECTED_MSG_SEQ_NUM);
                    LogonFault::Field(Fault::new(RejectReason::DataFormat, tag))
                })?,
            appl_ver: check_appl_ver(message, version)?,
        })
    }

    /// Returns whether a required field of a Logon(A) is absent and the configuration permits that.
    fn is_bare(&self, message: &Message<'_>, tag: u32) -> bool {
        self.config.bare_logon && message.get(tag).is_none()
    }

    fn check_heart_bt_int(&self, message: &Message<'_>) -> Result<u32, LogonFault> {
        if self.is_bare(message, tag::HEART_BT_INT) {
            return Ok(self.config.heart_bt_int);
        }
        let value = message
            .i64(tag::HEART_BT_INT)
            .map_err(|_| LogonFault::HeartBtInt)?;
        let value = u32::try_from(value).map_err(|_| LogonFault::HeartBtInt)?;
        let (least, most) = self.config.heart_bt_int_range;
        if self.role == Role::Acceptor && !(least..=most).contains(&value) {
            return Err(LogonFault::HeartBtInt);
        }
        Ok(value)
    }

    /// Returns whether the numbers of a Logon(A) let the session begin. If not, the message has
    /// been dealt with.
    fn check_logon_numbers(&mut self, now: Now, logon: &PendingLogon) -> bool {
        let resets = self.resets_with(logon);
        let expected = if resets { 1 } else { self.store.next_target() };
        if logon.seq < expected {
            if !logon.poss_dup {
                self.end_too_low(now, expected, logon.seq);
            }
            return false;
        }
        let next = if resets && self.role == Role::Acceptor {
            1
        } else {
            self.store.next_sender()
        };
        match logon.next_expected {
            // By numbers that the answer resets.
            Some(_) if self.asks_in_answer(logon) => true,
            Some(0) if self.config.next_expected => {
                let reason = DisconnectReason::NextExpectedZero;
                self.final_logout(now, reason.to_string().as_bytes(), reason);
                false
            }
            Some(received) if self.config.next_expected && received > next => {
                let reason = DisconnectReason::NextExpectedTooHigh { next, received };
                self.final_logout(now, reason.to_string().as_bytes(), reason);
                false
            }
            _ => true,
        }
    }

    /// Returns whether the numbers have to be reset to 1 because of this Logon(A).
    fn resets_with(&self, logon: &PendingLogon) -> bool {
        match self.role {
            Role::Acceptor => {
                let begins = logon.reset || self.config.reset_on_logon;
                begins || self.asks_in_answer(logon) || self.has_missed_reset(logon)
            }
            Role::Initiator => logon.reset && !self.is_reset_open(),
        }
    }

    /// Returns whether the answer to this Logon(A) has ResetSeqNumFlag(141)=Y though the Logon(A)
    /// does not. The numbers of the Logon(A) may be those from before the reset that the session
    /// requested, or those after it.
    fn asks_in_answer(&self, logon: &PendingLogon) -> bool {
        self.role == Role::Acceptor && !logon.reset && self.is_reset_open()
    }

    /// Returns whether the counterparty begins at 1, as both sides do after each connection, while
    /// the numbers of this side go on: its process died during the last connection.
    fn has_missed_reset(&self, logon: &PendingLogon) -> bool {
        let begins_anew = logon.seq == 1 && !logon.poss_dup;
        self.config.reset_on_disconnect && begins_anew && self.store.next_target() > 1
    }

    fn complete_logon(&mut self, now: Now, logon: PendingLogon) {
        let (resets, asks) = (self.resets_with(&logon), self.asks_in_answer(&logon));
        if resets && self.store_reset(now).is_err() {
            return;
        }
        let expected = self.store.next_target();
        let in_sequence = !asks && (logon.seq == expected || logon.reset);
        let last = self.store.next_sender() - 1;
        self.peer_appl_ver = logon.appl_ver;
        self.state = State::LoggedOn;
        self.resets_at_end = true;
        self.timers.logon = NEVER;
        let heart_bt_int = match self.role {
            Role::Acceptor => logon.heart_bt_int,
            Role::Initiator => self.config.heart_bt_int,
        };
        self.timers.interval = u64::from(heart_bt_int) * SECOND;
        if in_sequence {
            self.set_next_target(now, expected + 1);
        }
        if self.is_connected() && (self.role == Role::Acceptor || resets) {
            let next_expected = self.store.next_target();
            self.send_logon(now, heart_bt_int, logon.reset || asks, next_expected);
        }
        if !self.is_connected() {
            return;
        }
        // Ours asked for it, whether theirs repeats the flag or not.
        let reset = logon.reset || resets || self.our_reset == OurReset::Asked;
        let ours = match asks {
            true => OurReset::Begun,
            false => OurReset::None,
        };
        if self.set_our_reset(now, ours).is_err() {
            return;
        }
        self.notice(Event::LoggedOn {
            heart_bt_int,
            reset,
        });
        if !in_sequence && !asks {
            // A counterparty that sends NextExpectedMsgSeqNum(789) reads ours, too.
            let is_told = self.config.next_expected && logon.next_expected.is_some();
            self.too_high(now, logon.seq, None, !is_told);
        }
        self.resend_what_is_not_expected(now, &logon, last);
    }

    /// Sends again what the counterparty has not received by its NextExpectedMsgSeqNum(789),
    /// without a ResendRequest(2).
    fn resend_what_is_not_expected(&mut self, now: Now, logon: &PendingLogon, last: u64) {
        if let Some(begin) = logon.next_expected
            && self.config.next_expected
            && self.is_connected()
            && (1..=last).contains(&begin)
        {
            let end = self.store.next_sender() - 1;
            self.start_replay(now, begin, end);
        }
    }

    /// Returns whether a Logon(A) is accepted on a live session. Only one that resets the numbers
    /// is.
    pub(super) fn may_log_on_again(&self, message: &Message<'_>) -> bool {
        self.state == State::LoggedOn && message.get(tag::RESET_SEQ_NUM_FLAG) == Some(b"Y")
    }

    /// Handles a Logon(A) with ResetSeqNumFlag(141)=Y on a live session. Both directions start at 1
    /// again. A counterparty that takes each answer for a new request is logged out.
    pub(super) fn logon_again(&mut self, now: Now, message: &Message<'_>) {
        let Ok(heart_bt_int) = self.check_heart_bt_int(message) else {
            return self.end(now, DisconnectReason::BadLogon(LogonFault::HeartBtInt));
        };
        if let Ok(Some(theirs)) = check_appl_ver(message, self.config.id.version) {
            self.peer_appl_ver = Some(theirs);
        }
        let answer = !self.is_reset_open();
        if answer {
            // Any other message since the last Logon(A) has moved the expected number on.
            let is_first = self.store.next_target() != 2;
            if self.resets.note(now.mono, is_first) > MOST_RESETS {
                let reason = DisconnectReason::TooManyResets;
                return self.final_logout(now, reason.to_string().as_bytes(), reason);
            }
            if self.store_reset(now).is_err() {
                return;
            }
            self.timers.interval = u64::from(heart_bt_int) * SECOND;
        } else {
            // Ours started at 1 when we asked for it; what they sent before ends here.
            self.discard_gap();
        }
        self.set_next_target(now, 2);
        if self.set_our_reset(now, OurReset::None).is_err() {
            return;
        }
        if answer && self.is_connected() {
            self.send_logon(now, heart_bt_int, true, 2);
        }
        if self.is_connected() {
            self.notice(Event::LoggedOn {
                heart_bt_int,
                reset: true,
            });
        }
    }
}

/// The most resets of a live session by the counterparty with nothing but Logon(A) messages in
/// between.
const MOST_RESETS: u32 = 10;

/// The resets by the counterparty with nothing but Logon(A) messages in between.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Resets {
    count: u32,
    /// The time of the last one.
    at: u64,
}

impl Resets {
    /// Counts a reset, and returns the count. It begins again with a reset behind other messages,
    /// and with one more than a minute after the last.
    fn note(&mut self, now: u64, is_first: bool) -> u32 {
        let is_old = now.saturating_sub(self.at) > FORGOTTEN;
        self.count = match (is_first, is_old) {
            (true, _) => 0,
            (false, true) => 1,
            (false, false) => self.count.saturating_add(1),
        };
        self.at = now;
        self.count
    }
}

fn check_appl_ver(
    message: &Message<'_>,
    version: Version,
) -> Result<Option<ApplVerId>, LogonFault> {
    if version != Version::Fixt11 {
        return Ok(None);
    }
    let value = message
        .get(tag::DEFAULT_APPL_VER_ID)
        .ok_or(LogonFault::DefaultApplVerId)?;
    ApplVerId::parse(value)
        .map(Some)
        .ok_or(LogonFault::DefaultApplVerId)
}
