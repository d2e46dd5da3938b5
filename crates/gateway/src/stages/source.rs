//! The stages of a source, on its thread.

use super::StagePlan;
use fanfare_engine::clock::monotonic;
use fanfare_engine::counters::Histogram;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;

/// The greatest age of a packet at the beginning of the turn that is believed. A packet may be
/// delayed by the one before it, or by a thread that was held up.
const OLDEST: u64 = 60_000_000_000;
/// The messages of a turn that are tried, because a reset or a heartbeat writes to no ring.
pub(super) const TRIED: u8 = 4;

/// The measurement of one message of each turn of a source: the first of its first four that is
/// written to a ring. Allocates nothing.
pub(crate) struct SourceStages {
    /// From the kernel's stamp to the turn, if there is a stamp.
    arrival: Option<Histogram>,
    decode: Histogram,
    /// To the ring of the workers.
    fix: Option<Histogram>,
    /// To the ring of market events.
    event: Option<Histogram>,
    now: Now,
    /// The messages of this turn that may still be measured.
    left: u8,
    /// The end of the message's last stage.
    last: u64,
}

impl SourceStages {
    pub(super) fn new_feed(plan: StagePlan<'_>, of: &str, has_market: bool) -> Self {
        let arrival = "from the kernel's time of a datagram to the turn that reads it, including \
                       the wait for a missing packet before it";
        let decode = "from the start of a turn to its first message, arbitrated and decoded";
        let fix = "from the decoded message to its FIX messages in the ring of the workers";
        let event = "from the end of the previous stage to the market events in their ring";
        let histogram = |stage, what| plan.histogram(of, stage, what);
        Self {
            arrival: Some(histogram("arrival", arrival)),
            fix: Some(histogram("fix", fix)),
            event: has_market.then(|| histogram("event", event)),
            ..Self::unmeasured(histogram("decode", decode))
        }
    }

    pub(super) fn new_unstamped(plan: StagePlan<'_>, of: &str) -> Self {
        let decode = "from the start of a turn until its first message, decoded, is in its ring";
        Self::unmeasured(plan.histogram(of, "decode", decode))
    }

    fn unmeasured(decode: Histogram) -> Self {
        Self {
            arrival: None,
            decode,
            fix: None,
            event: None,
            now: Now {
                mono: 0,
                utc: UtcTimestamp::from_nanos(0),
            },
            left: TRIED,
            last: 0,
        }
    }

    /// Continues or begins the turn that began at `now`.
    #[inline]
    pub(crate) const fn turn(&mut self, now: Now) {
        if now.mono != self.now.mono {
            self.now = now;
            self.left = TRIED;
        }
    }

    /// Records that a message was decoded, which the kernel received at this time of UTC. If it is
    /// measured, returns its time of arrival for its mark.
    #[inline]
    pub(crate) fn decoded(&mut self, received: u64) -> Option<u64> {
        if self.left == 0 {
            return None;
        }
        let is_first = self.left == TRIED;
        self.left -= 1;
        let now = self.now;
        self.last = monotonic();
        let age = now.utc.nanos().unsigned_abs().wrapping_sub(received) as i64;
        // A packet that arrived after the turn had begun is younger than that.
        let arrived = now.mono.saturating_add_signed(age.wrapping_neg());
        let is_known = arrived <= self.last && age < OLDEST as i64;
        let arrived = if is_known { arrived } else { now.mono };
        if !is_first {
            return Some(arrived);
        }
        if let (Some(arrival), true) = (&self.arrival, is_known) {
            arrival.record(now.mono.saturating_sub(arrived));
        }
        self.decode
            .record(self.last.saturating_sub(now.mono.max(arrived)));
        Some(arrived)
    }

    /// Prepares a message without a stamp of the kernel, which is about to be written in the turn
    /// that began at `now`. Returns its time of arrival if it is measured, as the first of the
    /// turn.
    #[inline]
    pub(crate) const fn unstamped_message(&mut self, now: Now) -> Option<u64> {
        self.turn(now);
        if self.left == 0 {
            return None;
        }
        self.left = 0;
        self.last = self.now.mono;
        Some(self.now.mono)
    }

    /// Records when the message was written to the ring of its source, if it was. Used by sources
    /// without a stamp.
    #[inline]
    pub(crate) fn end_decode(&self, written: Option<u64>) {
        if let Some(written) = written {
            self.decode.record(written.saturating_sub(self.last));
        }
    }

    /// Records when the message was written to the ring of the workers, if it was.
    #[inline]
    pub(crate) fn end_fix(&mut self, written: Option<u64>) {
        if let (Some(written), Some(stage)) = (written, &self.fix) {
            stage.record(written.saturating_sub(self.last));
            self.last = written;
            self.left = 0;
        }
    }

    /// Records when its events were written to their ring, if they were.
    #[inline]
    pub(crate) fn end_event(&mut self, written: Option<u64>) {
        if let (Some(written), Some(stage)) = (written, &self.event) {
            stage.record(written.saturating_sub(self.last));
            self.last = written;
            self.left = 0;
        }
    }
}
