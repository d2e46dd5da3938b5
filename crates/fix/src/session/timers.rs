//! When the session has to be called.

/// A time that never comes.
pub(super) const NEVER: u64 = u64::MAX;

/// The deadlines of a session, in nanoseconds of the monotonic clock. A jump of the wall clock
/// moves none of them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// HeartBtInt(108) in nanoseconds; 0 switches heartbeats off.
    pub(super) interval: u64,
    /// When we last sent something, and last received a whole message.
    pub(super) last_sent: u64,
    pub(super) last_received: u64,
    /// A TestRequest of ours is open.
    pub(super) test_open: bool,
    pub(super) logon: u64,
    pub(super) logout: u64,
    /// When an open gap is asked for again.
    pub(super) gap: u64,
    /// When the schedule is looked at again.
    pub(super) schedule: u64,
}

impl Timers {
    pub(super) const IDLE: Self = Self {
        interval: 0,
        last_sent: 0,
        last_received: 0,
        test_open: false,
        logon: NEVER,
        logout: NEVER,
        gap: NEVER,
        schedule: NEVER,
    };

    /// Returns when a Heartbeat is due. None is sent while a TestRequest is open.
    pub(super) fn heartbeat(&self) -> u64 {
        if self.interval == 0 || self.test_open {
            return NEVER;
        }
        self.last_sent.saturating_add(self.interval)
    }

    /// Returns when a TestRequest is due: 1.2 intervals of silence.
    pub(super) fn test_request(&self) -> u64 {
        if self.interval == 0 || self.test_open {
            return NEVER;
        }
        self.last_received
            .saturating_add(self.interval.saturating_mul(6) / 5)
    }

    /// Returns when the counterparty counts as gone: 2.4 intervals of silence.
    pub(super) fn silence(&self) -> u64 {
        if self.interval == 0 {
            return NEVER;
        }
        self.last_received
            .saturating_add(self.interval.saturating_mul(12) / 5)
    }

    /// Returns the earliest of the deadlines that hold in any state.
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
