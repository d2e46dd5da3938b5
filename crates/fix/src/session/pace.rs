//! Limits on the number of messages that a session sends and receives in a stretch of time.

use super::config::{AnswerLimit, OverRate, Rate, SECOND};
use super::event::{DisconnectReason, Event, SendError};
use super::now::Now;
use super::resend::Replay;
use super::store::MessageStore;
use super::validate::{BusinessReason, RejectReason};
use super::{Role, Session, State};
use crate::codec::Message;
use crate::tag;

/// The times of the newest messages, as many as the rate allows in one interval.
#[derive(Debug)]
pub(super) struct RateWindow {
    times: Box<[u64]>,
    /// The index of the next time. Once all places are filled, the oldest time is there.
    at: usize,
    filled: usize,
    interval: u64,
}

impl RateWindow {
    pub(super) fn new(rate: Rate) -> Self {
        Self {
            times: vec![0; rate.messages.max(1) as usize].into(),
            at: 0,
            filled: 0,
            interval: rate.interval,
        }
    }

    /// Returns the time from which on one more message is admitted, or 0 if one is admitted at any
    /// time.
    pub(super) fn free_at(&self) -> u64 {
        if self.filled < self.times.len() {
            return 0;
        }
        let oldest = self.times.get(self.at).copied().unwrap_or(0);
        oldest.saturating_add(self.interval)
    }

    /// Records a message at `now`.
    pub(super) fn note(&mut self, now: u64) {
        if let Some(place) = self.times.get_mut(self.at) {
            *place = now;
        }
        self.at = (self.at + 1) % self.times.len().max(1);
        self.filled = (self.filled + 1).min(self.times.len());
    }

    /// Records a message at `now` if the rate admits it, and returns whether it does.
    fn admits(&mut self, now: u64) -> bool {
        let free = self.free_at() <= now;
        if free {
            self.note(now);
        }
        free
    }
}

/// The messages that the session has written by itself, as the times until which writing them takes
/// at the allowed rates of messages and of bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answers {
    messages: u64,
    bytes: u64,
}

impl Answers {
    /// Counts one more message, and returns whether it exceeds the limit.
    fn is_too_much(&mut self, now: u64, len: usize, limit: AnswerLimit) -> bool {
        let over = |until: u64, amount: u64, rate: u32| {
            let takes = amount.saturating_mul(SECOND) / u64::from(rate.max(1));
            until.max(now).saturating_add(takes)
        };
        self.messages = over(self.messages, 1, limit.messages);
        self.bytes = over(self.bytes, len as u64, limit.bytes);
        let burst = now.saturating_add(AnswerLimit::BURST * SECOND);
        self.messages.max(self.bytes) > burst
    }
}

/// The limit on Logout(5) messages to counterparties that have not logged on: one a second, and ten
/// at once. Each uses up a number of the session and a place in its store, and no password has been
/// checked yet.
const TURNED_AWAY: AnswerLimit = AnswerLimit {
    messages: 1,
    bytes: u32::MAX,
};

impl<S: MessageStore> Session<S> {
    /// Returns whether the session is an acceptor whose counterparty is connected and has not
    /// logged on.
    pub(super) fn is_stranger(&self) -> bool {
        let is_early = matches!(self.state, State::AwaitingLogon | State::AwaitingDecision);
        is_early && self.role == Role::Acceptor
    }

    /// Returns whether a counterparty that has not logged on gets a Logout(5), and counts that one.
    /// If not, the connection is closed without a Logout(5).
    pub(super) fn may_turn_away(&mut self, now: Now) -> bool {
        let mut turned_away = self.turned_away;
        if turned_away.is_too_much(now.mono, 0, TURNED_AWAY) {
            return false;
        }
        self.turned_away = turned_away;
        true
    }

    /// Counts the message that the session has just written by itself. Beyond the limit the session
    /// sends a Logout(5) and ends.
    pub(super) fn count_answer(&mut self, now: Now) {
        let Some(limit) = self.config.answer_limit else {
            return;
        };
        let is_too_much = self.answers.is_too_much(now.mono, self.written, limit);
        if is_too_much && self.state == State::LoggedOn {
            let reason = DisconnectReason::AnswerRate(limit);
            // The Logout counts too, without further effect.
            self.state = State::LoggingOut;
            self.final_logout(now, reason.to_string().as_bytes(), reason);
        }
    }

    /// Checks that one more application message may be sent, at once or after those that wait.
    /// After the first message that has to wait, all others wait too.
    #[inline]
    pub(super) fn pace_send(&mut self, now: Now) -> Result<(), SendError> {
        if self.send_window.is_none() || !self.is_logged_on() {
            return Ok(());
        }
        self.pace_limited(now)
    }

    fn pace_limited(&mut self, now: Now) -> Result<(), SendError> {
        let (Some(window), Some(limit)) = (&self.send_window, &self.config.send_limit) else {
            return Ok(());
        };
        let until = window.free_at();
        if self.replay.is_none() && until <= now.mono {
            return Ok(());
        }
        let waiting = self.replay.as_ref().map_or(0, |replay| replay.waiting);
        if waiting >= limit.queue || !self.store.keeps() {
            return Err(SendError::Throttled { until });
        }
        if self.replay.is_none() {
            let next = self.store.next_sender();
            self.store.retain_from(Some(next));
            self.replay = Some(Box::new(Replay::of_new(next)));
        }
        Ok(())
    }

    /// Counts an application message that is transmitted at once. One that waits counts when its
    /// turn comes.
    #[inline]
    pub(super) fn pace_sent(&mut self, now: Now) {
        if let Some(window) = &mut self.send_window
            && self.replay.is_none()
            && self.state == State::LoggedOn
        {
            window.note(now.mono);
        }
    }

    /// Undoes `pace_send` for a message that was not written after all.
    pub(super) fn pace_undone(&mut self) {
        let next = self.store.next_sender();
        let replay = self.replay.as_ref();
        if replay.is_some_and(|replay| replay.is_empty(next)) {
            self.drop_replay();
        }
    }

    /// Checks that a message which the caller writes itself may be sent now, as it cannot wait.
    #[inline]
    pub(super) fn pace_shared(&self, now: Now) -> Result<(), SendError> {
        match self.paced_until() {
            until if until > now.mono => Err(SendError::Throttled { until }),
            _ => Ok(()),
        }
    }

    /// Returns when the next waiting message may be sent.
    pub(super) fn paced_until(&self) -> u64 {
        self.send_window.as_ref().map_or(0, RateWindow::free_at)
    }

    /// Returns how long it takes to send everything that waits for the rate, in nanoseconds.
    pub(super) fn pace_backlog(&self) -> u64 {
        let waiting = self.replay.as_ref().map_or(0, |replay| replay.waiting);
        let Some(limit) = self.config.send_limit.filter(|_| waiting > 0) else {
            return 0;
        };
        let stretches = waiting.div_ceil(limit.rate.messages.max(1) as usize) as u64;
        stretches.saturating_mul(limit.rate.interval)
    }

    /// Counts a received message, and returns whether it exceeds the rate. Messages that close a
    /// gap were requested, and do not count.
    #[inline]
    pub(super) fn is_over_rate(&mut self, now: Now, message: &Message<'_>) -> bool {
        self.is_one_too_many(now, || is_poss_dup(message))
    }

    /// Counts a message, unless it was asked for again, and returns whether it exceeds the rate.
    #[inline]
    pub(super) fn is_one_too_many(&mut self, now: Now, again: impl FnOnce() -> bool) -> bool {
        match &mut self.receive_window {
            None => false,
            Some(_) if self.gap.is_some() && again() => false,
            Some(window) => !window.admits(now.mono),
        }
    }

    /// Ends the session because of a message that exceeds the rate, if the configuration says so.
    /// Returns whether the session has ended.
    #[cold]
    pub(super) fn end_over_rate(&mut self, now: Now) -> bool {
        let limit = self.config.receive_limit;
        let Some(limit) = limit.filter(|limit| limit.action == OverRate::Disconnect) else {
            return false;
        };
        let reason = DisconnectReason::ReceiveRate(limit.rate);
        self.final_logout(now, reason.to_string().as_bytes(), reason);
        true
    }

    /// Rejects an application message that exceeds the rate. Its number counts as received.
    #[cold]
    pub(super) fn reject_over_rate(&mut self, now: Now, message: &Message<'_>, ref_seq: u64) {
        let text = self
            .config
            .receive_limit
            .map(|limit| limit.rate.to_string());
        let text = text.unwrap_or_default();
        let sent = if self.config.id.version.has_reject_codes() {
            self.write_business_reject(now, message, BusinessReason::Other, &text)
        } else {
            self.write_reject(now, message, RejectReason::Other, None, &text)
        };
        self.check_admin(now, sent);
        self.notice(Event::RejectSent {
            ref_seq,
            reason: RejectReason::Other,
            tag: None,
        });
        if self.is_connected() {
            self.consume(now);
        }
    }
}

fn is_poss_dup(message: &Message<'_>) -> bool {
    message.get(tag::POSS_DUP_FLAG) == Some(b"Y")
}
