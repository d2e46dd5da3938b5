//! The times at which a session has to be called.

use super::config::SECOND;

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// The deadlines of a session, in nanoseconds of the monotonic clock. A jump of the wall clock does
/// not move them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// The HeartBtInt(108) in nanoseconds. 0 turns heartbeats off.
    pub(super) interval: u64,
    /// The times at which the session last sent something, and last received a whole message.
    pub(super) last_sent: u64,
    pub(super) last_received: u64,
    /// The time from which the silence of the counterparty counts, not before `last_received`.
    pub(super) heard: u64,
    /// Whether a TestRequest(1) of the session is unanswered.
    pub(super) test_open: bool,
    pub(super) logon: u64,
    pub(super) logout: u64,
    /// The time at which an open gap is requested again.
    pub(super) gap: u64,
    /// The time at which the schedule is checked again.
    pub(super) schedule: u64,
}

impl Timers {
    pub(super) const IDLE: Self = Self {
        interval: 0,
        last_sent: 0,
        last_received: 0,
        heard: 0,
        test_open: false,
        logon: NEVER,
        logout: NEVER,
        gap: NEVER,
        schedule: NEVER,
    };

    /// Counts the silence of the counterparty from `now` on.
    pub(super) fn hear(&mut self, now: u64) {
        self.heard = now;
        self.test_open = false;
    }

    /// Counts the silence of the counterparty from `now` on, and requests no gap again within a
    /// second.
    pub(super) fn excuse(&mut self, now: u64) {
        self.hear(now);
        if self.gap != NEVER {
            self.gap = self.gap.max(now.saturating_add(SECOND));
        }
    }

    /// Returns when a Heartbeat(0) is due. None is due while a TestRequest(1) is unanswered.
    pub(super) fn heartbeat(&self) -> u64 {
        if self.interval == 0 || self.test_open {
            return NEVER;
        }
        self.last_sent.saturating_add(self.interval)
    }

    /// Returns when a TestRequest(1) is due, after 1.2 intervals of silence.
    pub(super) fn test_request(&self) -> u64 {
        if self.interval == 0 || self.test_open {
            return NEVER;
        }
        self.heard
            .saturating_add(self.interval.saturating_mul(6) / 5)
    }

    /// Returns when the counterparty counts as gone, after 2.4 intervals of silence.
    pub(super) fn silence(&self) -> u64 {
        if self.interval == 0 {
            return NEVER;
        }
        self.heard
            .saturating_add(self.interval.saturating_mul(12) / 5)
    }

    /// Returns the earliest of the deadlines that apply in any state.
    pub(super) fn next(&self) -> u64 {
        self.logon.min(self.logout).min(self.gap).min(self.schedule)
    }

    /// Returns the earliest of the deadlines while logged on.
    pub(super) fn next_logged_on(&self) -> u64 {
        self.next()
            .min(self.heartbeat())
            .min(self.test_request())
            .min(self.silence())
    }
}
