//! The session's own messages, received, except Logon(A).

use super::config::{Config, SECOND};
use super::event::{DisconnectReason, Event};
use super::inbound::SeqCheck;
use super::incoming_header::{self, Header};
use super::now::Now;
use super::store::MessageStore;
use super::timers::NEVER;
use super::validate::RejectReason;
use super::{Session, State};
use crate::codec::Message;
use crate::{msg_type, tag};

impl<S: MessageStore> Session<S> {
    /// Begins the logout. The session ends when the counterparty answers, or
    /// `Config::logout_timeout` after the Logout(5) was transmitted. `text` may be empty. Before
    /// the logon it ends at once.
    pub fn logout(&mut self, now: Now, text: &str) {
        self.confirm(now);
        match self.state {
            State::LoggedOn => self.start_logout(now, text.as_bytes(), None),
            State::AwaitingLogon | State::AwaitingDecision => {
                self.end(now, DisconnectReason::Closed);
            }
            State::Idle | State::LoggingOut | State::Ended => {}
        }
    }

    /// Sends a Logout(5) and waits for the answer. `why` is the reason if the application did not
    /// request it. Does nothing if the session is not logged on.
    pub(super) fn start_logout(&mut self, now: Now, text: &[u8], why: Option<DisconnectReason>) {
        if self.state != State::LoggedOn {
            return;
        }
        let is_behind = self.waiting().is_some();
        self.send_logout(now, text);
        if self.is_connected() {
            self.state = State::LoggingOut;
            self.closing = why;
            self.timers.gap = NEVER;
            self.parting = Parting {
                waiting: self.waiting().filter(|_| is_behind),
                periods: Config::LOGOUT_PERIODS,
            };
            self.wait_for_logout(now);
        }
    }

    /// Returns the count of bytes transmitted so far if something waits for transmission.
    fn waiting(&self) -> Option<u64> {
        let waits = self.store.unsent_len() > 0 || self.replay.is_some();
        waits.then_some(self.transmitted)
    }

    /// Waits for the end of the logout from now on.
    fn wait_for_logout(&mut self, now: Now) {
        self.parting.periods = self.parting.periods.saturating_sub(1);
        // It stands behind what waits for the rate.
        let backlog = self.pace_backlog();
        let wait = self.config.logout_timeout.saturating_add(backlog);
        self.timers.logout = now.mono.saturating_add(wait);
    }

    /// Makes the wait for the answer to the Logout(5) begin once that has been transmitted.
    #[cold]
    pub(super) fn logout_progressed(&mut self) {
        if self.parting.waiting.is_some() && self.waiting().is_none() {
            self.timers.logout = 0;
        }
    }

    /// Returns whether the logout has taken too long. A wait begins anew when the Logout(5) has
    /// been transmitted, and while what stands before it makes progress.
    pub(super) fn is_logout_over(&mut self, now: Now) -> bool {
        if now.mono < self.timers.logout {
            return false;
        }
        let waiting = self.waiting();
        let before = std::mem::replace(&mut self.parting.waiting, waiting);
        let goes_on = match (before, waiting) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(before), Some(waiting)) => before != waiting && self.parting.periods > 0,
        };
        if goes_on {
            self.wait_for_logout(now);
        }
        !goes_on
    }

    /// Sends a Logout(5) before everything that was to be sent again, and ends the session.
    pub(super) fn final_logout(&mut self, now: Now, text: &[u8], reason: DisconnectReason) {
        self.drop_replay();
        let is_stranger = self.is_stranger();
        if !is_stranger || self.may_turn_away(now) {
            match is_stranger && self.refuses_unnumbered && self.store.next_sender() == 1 {
                true => self.send_unnumbered_logout(now, text),
                false => self.send_logout(now, text),
            }
        }
        self.end(now, reason);
    }

    /// Handles a message of the session layer that has passed the checks of the message alone.
    pub(super) fn session_message<'a>(
        &mut self,
        now: Now,
        message: Message<'a>,
        header: &Header<'a>,
        held: bool,
    ) -> Option<Event<'a>> {
        let msg_type = message.msg_type();
        let seq_check = match msg_type {
            msg_type::LOGON | msg_type::LOGOUT | msg_type::RESEND_REQUEST => SeqCheck::Any,
            msg_type::SEQUENCE_RESET if !is_gap_fill(&message) => SeqCheck::Any,
            _ => SeqCheck::Expected,
        };
        if msg_type == msg_type::LOGON && !self.may_log_on_again(&message) {
            self.end(now, DisconnectReason::UnexpectedLogon);
            return None;
        }
        if !self.verify(now, &message, header, seq_check, held) {
            return None;
        }
        match msg_type {
            msg_type::LOGON => self.logon_again(now, &message),
            msg_type::LOGOUT => return self.peer_logout(now, message, header.seq),
            msg_type::RESEND_REQUEST => self.resend_request(now, &message, header.seq),
            msg_type::SEQUENCE_RESET => self.sequence_reset(now, &message),
            msg_type::TEST_REQUEST => self.answer_test(now, &message),
            msg_type::HEARTBEAT => self.take_heartbeat(now, &message),
            msg_type::REJECT => {
                self.unconfirmed = true;
                return Some(Event::RejectReceived(message));
            }
            _ => self.consume_if_connected(now),
        }
        None
    }

    fn answer_test(&mut self, now: Now, message: &Message<'_>) {
        let id = message.get(tag::TEST_REQ_ID);
        if id.is_some_and(|id| id.len() > self.config.max_test_req_id) {
            let tag = Some(tag::TEST_REQ_ID);
            return self.send_reject(now, message, RejectReason::ValueIncorrect, tag);
        }
        // Its answer counts it as processed.
        self.consume(now);
        if self.is_connected() {
            self.send_heartbeat(now, id);
        }
    }

    fn take_heartbeat(&mut self, now: Now, message: &Message<'_>) {
        if let Some(id) = message.get(tag::TEST_REQ_ID) {
            self.round_trip.answered(id, now.mono);
        }
        self.consume_if_connected(now);
    }

    fn consume_if_connected(&mut self, now: Now) {
        if self.is_connected() {
            self.consume(now);
        }
    }

    /// Answers a Logout(5) with any number, and ends the session.
    pub(super) fn peer_logout<'a>(
        &mut self,
        now: Now,
        message: Message<'a>,
        seq: u64,
    ) -> Option<Event<'a>> {
        let is_cut = self.store.unsent_len() > self.behind;
        self.is_cut_short = self.replay.is_some() || is_cut;
        if seq == self.store.next_target() {
            self.consume(now);
        }
        if self.state == State::LoggingOut {
            let reason = self.closing.unwrap_or(DisconnectReason::LogoutComplete);
            self.end(now, reason);
        } else {
            self.final_logout(now, b"", DisconnectReason::LogoutByPeer);
        }
        Some(Event::LogoutReceived(message))
    }

    fn sequence_reset(&mut self, now: Now, message: &Message<'_>) {
        // Checked before: it is there.
        let Ok(to) = incoming_header::seq_num(message, tag::NEW_SEQ_NO) else {
            return;
        };
        let from = self.store.next_target();
        if to < from || to > MAX_SEQ_NUM {
            return self.send_reject(now, message, RejectReason::ValueIncorrect, None);
        }
        if to > from {
            self.notice(Event::SequenceReset { from, to });
            self.set_next_target(now, to);
            self.gap_filled(now);
        }
    }

    /// Answers a ResendRequest(2) at once, whatever its number. The number counts as received if it
    /// was expected.
    fn resend_request(&mut self, now: Now, message: &Message<'_>, seq: u64) {
        let (Ok(begin), Ok(end)) = (
            incoming_header::seq_num(message, tag::BEGIN_SEQ_NO),
            incoming_header::seq_num(message, tag::END_SEQ_NO),
        ) else {
            return;
        };
        let last = self.store.next_sender() - 1;
        if begin == 0 || begin > last {
            let tag = Some(tag::BEGIN_SEQ_NO);
            return self.send_reject(now, message, RejectReason::ValueIncorrect, tag);
        }
        let open = self.config.id.version.is_open_end(end) || end > last;
        if !open && end < begin {
            let tag = Some(tag::END_SEQ_NO);
            return self.send_reject(now, message, RejectReason::ValueIncorrect, tag);
        }
        if self.is_repeated_too_often(now, begin) {
            let reason = DisconnectReason::TooManyResendRequests;
            return self.final_logout(now, b"Too many ResendRequests", reason);
        }
        let end = if open { last } else { end };
        self.notice(Event::ResendRequested { begin, end });
        self.start_replay(now, begin, end);
        if self.is_connected() && seq == self.store.next_target() {
            self.consume(now);
        }
    }

    fn is_repeated_too_often(&mut self, now: Now, begin: u64) -> bool {
        let limit = self.config.repeated_resend_limit;
        self.repeated.note(now.mono, begin);
        limit > 0 && self.repeated.count > limit
    }
}

/// The wait for the transmission of a Logout(5).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Parting {
    /// The count of bytes transmitted up to the last look; `None` once the Logout(5) is among them,
    /// and if nothing stood before it.
    waiting: Option<u64>,
    /// How many more times the wait may begin anew.
    periods: u32,
}

/// The BeginSeqNo(7) of the last ResendRequest(2), and the number of requests in a row that had it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Repeated {
    begin: u64,
    count: u32,
    /// The time at which the last request that counts was received.
    at: u64,
}

/// The time after the last request, in nanoseconds, within which another one may have been sent
/// before the answer arrived. Such a request does not count.
const ANSWER_TIME: u64 = SECOND;
/// The time after the last request, in nanoseconds, after which another one begins a new count.
pub(super) const FORGOTTEN: u64 = 60 * SECOND;

impl Repeated {
    fn note(&mut self, now: u64, begin: u64) {
        let since = now.saturating_sub(self.at);
        if self.begin != begin || since > FORGOTTEN {
            (self.begin, self.count, self.at) = (begin, 1, now);
        } else if since >= ANSWER_TIME {
            (self.count, self.at) = (self.count.saturating_add(1), now);
        }
    }
}

/// The highest MsgSeqNum(34) that can be set. No session ever counts so far, and incrementing it
/// cannot overflow.
pub const MAX_SEQ_NUM: u64 = 1 << 60;

/// Returns whether GapFillFlag(123) is Y.
pub(super) fn is_gap_fill(message: &Message<'_>) -> bool {
    message.get(tag::GAP_FILL_FLAG) == Some(b"Y")
}
