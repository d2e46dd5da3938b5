//! The life of a connection: its beginning, its timers, and its end.

use fanfare_wire::UtcTimestamp;

use super::admin::{MAX_SEQ_NUM, Repeated};
use super::config::SECOND;
use super::event::{DisconnectReason, Event, SendError};
use super::logon::Resets;
use super::now::Now;
use super::resend::send_all;
use super::round_trip::RoundTrip;
use super::store::{MessageStore, StoreError};
use super::timers::{NEVER, Timers};
use super::{Role, Session, State};
use crate::codec::Sought;

/// The most events that wait for `poll_event`, more than one call can produce.
const MAX_NOTICES: usize = 32;

/// The longest time between two checks of the schedule, so that a jump of the wall clock is
/// noticed.
const SCHEDULE_CHECK: u64 = 30 * SECOND;

impl<S: MessageStore> Session<S> {
    /// Begins a connection. An initiator writes its Logon(A). An acceptor waits for a Logon(A) for
    /// as long as `Config::logon_timeout`. A session that has ended may be connected again at once,
    /// before its old connection is closed.
    ///
    /// The session ends at once outside its schedule, and when the store fails.
    pub fn connected(&mut self, now: Now) {
        if self.is_connected() {
            return;
        }
        self.store.drop_unsent();
        self.state = State::AwaitingLogon;
        self.timers = Timers {
            logon: now.mono.saturating_add(self.config.logon_timeout),
            last_sent: now.mono,
            last_received: now.mono,
            heard: now.mono,
            ..Timers::IDLE
        };
        self.round_trip = RoundTrip::default();
        self.sought = Sought::default();
        self.resets = Resets::default();
        self.behind = 0;
        self.is_cut_short = false;
        self.resets_at_end = false;
        if !self.is_open(now.utc) {
            return self.end(now, DisconnectReason::OutsideSchedule);
        }
        if self.is_new_session(now.utc) && self.store_reset(now).is_err() {
            return;
        }
        self.resets_at_end = self.store.next_sender() == 1 && self.store.next_target() == 1;
        self.plan_schedule_check(now);
        if self.role == Role::Initiator {
            self.send_first_logon(now);
        }
    }

    /// Ends the connection, whichever side closed it. Bytes that were not transmitted are dropped,
    /// and the counterparty requests their messages after the next logon. `poll_event` returns
    /// `Event::Disconnect`, unless the session had ended before.
    pub fn disconnected(&mut self, now: Now) {
        self.confirm(now);
        if self.is_connected() {
            let reason = self.closing.unwrap_or(DisconnectReason::ConnectionLost);
            self.end(now, reason);
        }
        self.state = State::Idle;
        self.store.drop_unsent();
    }

    /// Ends the session without a logout, for example at the end of the program.
    pub fn close(&mut self, now: Now) {
        self.confirm(now);
        if self.is_connected() {
            self.end(now, DisconnectReason::Closed);
        }
    }

    /// Ends the session at once for `reason`, with `text` in the Logout(5), because the application
    /// failed to handle the last event. The message of that event does not count as received, and
    /// comes again after the next logon.
    pub fn abandon(&mut self, now: Now, text: &str, reason: DisconnectReason) {
        self.unconfirmed = false;
        match self.state {
            State::LoggedOn | State::LoggingOut => self.final_logout(now, text.as_bytes(), reason),
            State::AwaitingDecision => self.refuse_logon(now, text),
            _ => self.end(now, reason),
        }
    }

    /// Sets the MsgSeqNum(34) of the next message sent to `seq`. A value outside 1 to
    /// [`MAX_SEQ_NUM`] becomes the nearest one inside. The counterparty of a session that is logged
    /// on requests the messages that it then misses, and logs out if the number is lower than it
    /// expects. Without a connection, an unanswered reset of the session is not requested again.
    ///
    /// # Errors
    /// Returns `ResendInProgress` during a resend, as the messages after it have their numbers, and
    /// the errors of the store. A store that fails ends the session.
    pub fn change_next_sender(&mut self, now: Now, seq: u64) -> Result<(), SendError> {
        if self.replay.is_some() {
            return Err(SendError::ResendInProgress);
        }
        let seq = seq.clamp(1, MAX_SEQ_NUM);
        let changed = self.store.set_next_sender(seq);
        changed
            .and_then(|()| self.forget_our_reset(now))
            .map_err(SendError::Store)
            .inspect_err(|error| self.store_failed(now, error))?;
        self.discard_unsent(seq);
        Ok(())
    }

    /// Sets the MsgSeqNum(34) of the next message expected to `seq`. A value outside 1 to
    /// [`MAX_SEQ_NUM`] becomes the nearest one inside. Messages that wait after a gap are received
    /// when their number comes. With a lower number than before they are requested again. Without a
    /// connection, an unanswered reset of the session is not requested again.
    ///
    /// # Errors
    /// Returns the errors of the store. A store that fails ends the session.
    pub fn change_next_target(&mut self, now: Now, seq: u64) -> Result<(), SendError> {
        self.confirm(now);
        let seq = seq.clamp(1, MAX_SEQ_NUM);
        // The number is expected anew.
        self.unreadable = 0;
        if seq < self.store.next_target() {
            self.gap = None;
            self.timers.gap = NEVER;
        }
        let closed = self.close_our_reset();
        let changed = closed.and_then(|()| self.store.set_next_target(seq));
        let changed = changed.and_then(|()| self.forget_our_reset(now));
        let changed = changed.map_err(SendError::Store);
        changed.inspect_err(|error| self.store_failed(now, error))?;
        if self.gap.is_some() {
            self.gap_advanced(now);
        }
        Ok(())
    }

    /// Returns the next event that came without bytes. Call it until it returns `None` after each
    /// call of `handle_timeout`, `connected`, `disconnected` or `logout`.
    pub fn poll_event(&mut self) -> Option<Event<'static>> {
        self.notices.pop_front()
    }

    /// Makes a store that waits for the disk write everything since the last call at once. Call it
    /// before `poll_transmit`. A store that fails ends the session. For other stores the call does
    /// nothing.
    #[inline]
    pub fn sync(&mut self, now: Now) {
        if let Err(error) = self.store.sync() {
            self.end(now, DisconnectReason::Store(error));
        }
    }

    /// Returns the bytes to write next, in order, or an empty slice. The bytes may come in several
    /// pieces: call it again when one is written.
    #[inline]
    pub fn poll_transmit(&self) -> &[u8] {
        self.store.unsent()
    }

    /// Removes the first `n` bytes of `poll_transmit`, which the caller has written.
    #[inline]
    pub fn transmitted(&mut self, n: usize) {
        self.store.sent(n);
        self.transmitted += n as u64;
        if self.state == State::LoggingOut {
            self.logout_progressed();
        }
    }

    /// Returns the time at which `handle_timeout` has to be called, in nanoseconds of the monotonic
    /// clock, or `None` if there is nothing to wait for. 0 means at once. With
    /// `Config::ask_resend`, `resend_part` has to be called as well.
    pub fn poll_timeout(&self) -> Option<u64> {
        let next = match self.state {
            State::Idle | State::Ended => NEVER,
            State::AwaitingLogon | State::AwaitingDecision | State::LoggingOut => {
                self.timers.next()
            }
            State::LoggedOn => self.timers.next_logged_on(&self.config),
        };
        let next = next.min(self.replay_due_at());
        (next != NEVER).then_some(next)
    }

    /// Returns whether `handle_timeout` is due at once, which is when `poll_timeout` returns 0.
    #[inline]
    pub fn is_due_at_once(&self) -> bool {
        self.replay_due_at() == 0
    }

    /// Handles all timers that are due at `now`, if any, and writes the next part of a resend,
    /// unless [`resend_part`](Self::resend_part) does.
    pub fn handle_timeout(&mut self, now: Now) {
        self.confirm(now);
        if !self.is_connected() {
            return;
        }
        if now.mono >= self.timers.logon {
            return self.end(now, DisconnectReason::LogonTimeout);
        }
        if self.is_logout_over(now) {
            let reason = self.closing.unwrap_or(DisconnectReason::LogoutTimeout);
            return self.end(now, reason);
        }
        if now.mono >= self.timers.schedule {
            self.check_schedule(now);
        }
        if now.mono >= self.replay_due_at() && !self.is_undecided() {
            self.replay_chunk(now, &mut send_all);
        }
        if self.state == State::LoggedOn {
            self.check_gap_timeout(now);
            self.check_heartbeat(now);
        }
    }

    fn check_heartbeat(&mut self, now: Now) {
        if now.mono >= self.timers.silence(&self.config) {
            let reason = DisconnectReason::HeartbeatTimeout;
            if self.config.logout_on_silence {
                self.final_logout(now, b"", reason);
            } else {
                self.end(now, reason);
            }
        } else if now.mono >= self.timers.test_request(&self.config) {
            self.timers.test_open = true;
            self.send_test_request(now, b"TEST");
        } else if now.mono >= self.timers.heartbeat() {
            self.send_heartbeat(now, None);
        }
    }

    fn check_schedule(&mut self, now: Now) {
        self.plan_schedule_check(now);
        let reason = match (self.is_open(now.utc), self.is_new_session(now.utc)) {
            (true, false) => return,
            (true, true) => DisconnectReason::NextHours,
            (false, _) => DisconnectReason::OutsideSchedule,
        };
        match self.state {
            State::LoggedOn => self.start_logout(now, b"", Some(reason)),
            State::LoggingOut => {}
            _ => self.end(now, reason),
        }
    }

    /// Sets the time of the next check of the schedule: its next change, but soon enough to notice
    /// a jump of the wall clock.
    fn plan_schedule_check(&mut self, now: Now) {
        let schedules = [&self.config.schedule, &self.config.logon_schedule];
        let wait = schedules
            .into_iter()
            .flatten()
            .map(|schedule| schedule.next_change(now.utc).nanos() - now.utc.nanos())
            .min();
        self.timers.schedule = match wait {
            Some(wait) => now
                .mono
                .saturating_add((wait.max(1) as u64).min(SCHEDULE_CHECK)),
            None => NEVER,
        };
    }

    /// Returns whether the numbers in the store belong to an earlier session of the schedule.
    pub(super) fn is_new_session(&self, utc: UtcTimestamp) -> bool {
        let schedule = self.config.schedule.as_ref();
        schedule.is_some_and(|schedule| schedule.is_new_session(self.store.created(), utc))
    }

    /// Counts the message that the application got with the last event as received. If the program
    /// had died while it handled the message, the message would come again.
    #[inline]
    pub(super) fn confirm(&mut self, now: Now) {
        if self.unconfirmed {
            self.unconfirmed = false;
            self.consume(now);
        }
    }

    /// Counts the message with the expected number as received.
    pub(super) fn consume(&mut self, now: Now) {
        let next = self.store.next_target() + 1;
        self.set_next_target(now, next);
    }

    /// Sets the expected number, and closes a gap that ends there.
    pub(super) fn set_next_target(&mut self, now: Now, next: u64) {
        if let Err(error) = self.store.set_next_target(next) {
            return self.end(now, DisconnectReason::Store(error));
        }
        if self.gap.is_some() {
            self.gap_advanced(now);
        }
    }

    /// Resets both numbers to 1, and forgets the gap and the resend.
    pub(super) fn store_reset(&mut self, now: Now) -> Result<(), StoreError> {
        self.discard_gap();
        self.drop_replay();
        self.begin_anew(now).inspect_err(|&error| {
            self.end(now, DisconnectReason::Store(error));
        })
    }

    /// Closes the gap, as the numbers begin anew, and reports the messages that waited after it.
    pub(super) fn discard_gap(&mut self) {
        self.timers.gap = NEVER;
        let messages = self.gap.take().map_or(0, |gap| gap.messages());
        if messages > 0 {
            self.notice(Event::HeldDiscarded { messages });
        }
    }

    /// Resets the store. A reset of the session that is over does not open again by that.
    fn begin_anew(&mut self, now: Now) -> Result<(), StoreError> {
        self.close_our_reset()?;
        self.store.reset(now.utc)?;
        self.unreadable = 0;
        self.discard_unsent(1);
        Ok(())
    }

    /// Reports the messages from number `seq` on that no connection has transmitted, as the store
    /// has forgotten them.
    fn discard_unsent(&mut self, seq: u64) {
        let messages = self.unsent.discard_from(seq);
        if messages > 0 {
            self.notice(Event::WaitingDiscarded { messages });
        }
    }

    /// Ends the session, and reports that to the application. The session can be connected again.
    pub(super) fn end(&mut self, now: Now, reason: DisconnectReason) {
        if !self.is_connected() {
            return;
        }
        let was_logout = matches!(
            reason,
            DisconnectReason::LogoutComplete
                | DisconnectReason::LogoutTimeout
                | DisconnectReason::LogoutByPeer
        );
        self.state = State::Ended;
        let confirmed = self.confirm_at_end();
        self.timers = Timers::IDLE;
        self.closing = None;
        self.pending_logon = None;
        self.peer_appl_ver = None;
        self.repeated = Repeated::default();
        self.drop_replay();
        // Anybody can send a Logon(A) that is refused: it must not discard messages.
        let parted = self.resets_at_end && self.config.reset_on_disconnect;
        let reset = parted || (was_logout && self.config.reset_on_logout);
        if reset {
            self.discard_gap();
        }
        // What waited after the gap comes again.
        self.gap = None;
        let reset = if reset { self.begin_anew(now) } else { Ok(()) };
        let reason = match confirmed.and(reset) {
            Ok(()) => reason,
            Err(error) => DisconnectReason::Store(error),
        };
        self.notices.push_back(Event::Disconnect(reason));
    }

    /// Counts a message as received as `confirm` does, where gaps no longer matter.
    fn confirm_at_end(&mut self) -> Result<(), StoreError> {
        if !self.unconfirmed {
            return Ok(());
        }
        self.unconfirmed = false;
        let next = self.store.next_target() + 1;
        self.store.set_next_target(next)
    }

    /// Queues an event for `poll_event`. The queue is bounded, as a caller may never take an event.
    pub(super) fn notice(&mut self, event: Event<'static>) {
        if self.notices.len() < MAX_NOTICES {
            self.notices.push_back(event);
        }
    }
}
