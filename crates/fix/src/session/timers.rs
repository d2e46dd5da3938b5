//! The times at which a session has to be called.

use super::config::{Config, SECOND};

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

    /// Returns when a TestRequest(1) is due: see [`Config::test_request_percent`].
    pub(super) fn test_request(&self, config: &Config) -> u64 {
        match self.test_open {
            true => NEVER,
            false => self.silent_for(config.test_request_percent),
        }
    }

    /// Returns when the counterparty counts as gone: see [`Config::gone_percent`].
    pub(super) fn silence(&self, config: &Config) -> u64 {
        self.silent_for(config.gone_percent)
    }

    /// Returns when the counterparty will have been silent for this part of the interval.
    fn silent_for(&self, percent: u32) -> u64 {
        if self.interval == 0 {
            return NEVER;
        }
        let silence = self.interval.saturating_mul(percent.into()) / 100;
        self.heard.saturating_add(silence)
    }

    /// Returns the earliest of the deadlines that apply in any state.
    pub(super) fn next(&self) -> u64 {
        self.logon.min(self.logout).min(self.gap).min(self.schedule)
    }

    /// Returns the earliest of the deadlines while logged on.
    pub(super) fn next_logged_on(&self, config: &Config) -> u64 {
        self.next()
            .min(self.heartbeat())
            .min(self.test_request(config))
            .min(self.silence(config))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::{SessionId, Version};

    #[test]
    fn silence_counts_in_parts_of_the_interval() {
        let mut config = Config::new(SessionId::new(Version::Fix44, "A", "B"));
        let mut timers = Timers {
            interval: 10 * SECOND,
            heard: SECOND,
            last_sent: SECOND,
            ..Timers::IDLE
        };
        assert_eq!(timers.test_request(&config), 13 * SECOND);
        assert_eq!(timers.silence(&config), 25 * SECOND);
        (config.test_request_percent, config.gone_percent) = (50, 75);
        assert_eq!(timers.next_logged_on(&config), 6 * SECOND);
        timers.test_open = true;
        assert_eq!(timers.test_request(&config), NEVER);
        assert_eq!(timers.next_logged_on(&config), 8 * SECOND + SECOND / 2);
        timers.interval = 0;
        assert_eq!(timers.next_logged_on(&config), NEVER);
    }
}
