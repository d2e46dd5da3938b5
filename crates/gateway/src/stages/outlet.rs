//! The stages after a ring, on the thread that reads it.

use super::{Mark, StagePlan};
use fanfare_engine::clock::monotonic;
use fanfare_engine::counters::Histogram;

/// The most messages of a turn that are measured to the end.
const MOST: usize = 256;

/// The end of an outlet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Connections.
    Socket,
    /// Writers of DDS.
    Dds,
    /// The log on disk.
    Log,
}

/// The measurement of marked messages from one or more rings. Allocates nothing.
pub(crate) struct OutletStages {
    ring: Histogram,
    end: Histogram,
    total: Histogram,
    /// The messages that were read and are not done: the times of arrival and of reading.
    under_way: Vec<(u64, u64)>,
}

impl OutletStages {
    pub(super) fn new(plan: StagePlan<'_>, of: &str, end: End) -> Self {
        let (stage, what, total) = match end {
            End::Socket => (
                "socket",
                "from the ring to the last write of the turn to a connection",
                "from arrival to the last write of the turn to a connection",
            ),
            End::Dds => (
                "dds",
                "from the ring until the turn's samples are written to DDS",
                "from arrival until the turn's samples are written to DDS",
            ),
            End::Log => (
                "log",
                "from the ring until the turn's events are in the log",
                "from arrival until the turn's events are in the log",
            ),
        };
        let ring = "from the ring's writer to the turn that reads it";
        Self {
            ring: plan.histogram(of, "ring", ring),
            end: plan.histogram(of, stage, what),
            total: plan.histogram(of, "total", total),
            under_way: Vec::with_capacity(MOST),
        }
    }

    /// Records that a marked message was read in the turn that began at `now`.
    #[inline]
    pub(crate) fn take(&mut self, mark: Mark, now: u64) {
        // On a thread that is the writer's too, the turn began before it was written.
        let taken = now.max(mark.written);
        self.ring.record(taken - mark.written);
        if self.under_way.len() < MOST {
            self.under_way.push((mark.arrived, taken));
        }
    }

    /// Ends the turn. `is_sent` is set if something reached the end of the outlet.
    #[inline]
    pub(crate) fn end(&mut self, is_sent: bool) {
        if !self.under_way.is_empty() {
            self.measure(is_sent);
        }
    }

    fn measure(&mut self, is_sent: bool) {
        if is_sent {
            let now = monotonic();
            for &(arrived, taken) in &self.under_way {
                self.end.record(now.saturating_sub(taken));
                self.total.record(now.saturating_sub(arrived));
            }
        }
        self.under_way.clear();
    }
}
