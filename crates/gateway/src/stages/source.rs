//! The stages of a source, on its thread.

use super::StagePlan;
use fanfare_engine::clock::monotonic;
use fanfare_engine::counters::Histogram;
use fanfare_fix::session::Now;
use fanfare_wire::UtcTimestamp;

/// A time of arrival is believed up to here before the turn: a packet that waited for the one in
/// front of it, or for a thread that was held up.
const OLDEST: u64 = 60_000_000_000;
/// Messages of a turn that are tried: of a reset or a heartbeat nothing comes to any ring.
pub(super) const TRIED: u8 = 4;

/// Measures one message of each turn of a source: the first of its first four that comes to a
/// ring. Allocates nothing.
pub(crate) struct SourceStages {
    /// From the kernel's stamp to the turn, where there is one.
    arrival: Option<Histogram>,
    decode: Histogram,
    /// To the ring of the workers.
    fix: Option<Histogram>,
    /// To the ring of market events.
    event: Option<Histogram>,
    now: Now,
    /// Messages of this turn that may still be measured.
    left: u8,
    /// When the last stage of the message ended.
    last: u64,
}

impl SourceStages {
    pub(super) fn new_feed(plan: StagePlan<'_>, of: &str, has_market: bool) -> Self {
        let arrival = "from the kernel's time of a datagram to the turn that takes it; a packet \
                       that waits for one in front of it waits here";
        let decode = "from the start of a turn to its first message, arbitrated and decoded";
        let fix = "from there until it is FIX in the ring of the workers";
        let event = "from there until its market events are in their ring";
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

    /// The turn that began at `now` goes on, or begins.
    #[inline]
    pub(crate) const fn turn(&mut self, now: Now) {
        if now.mono != self.now.mono {
            self.now = now;
            self.left = TRIED;
        }
    }

    /// A message was decoded, which the kernel received at this time of UTC. Returns when it
    /// arrived if it is measured: its mark has to go with it.
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
        // One that came after the turn had begun is younger than that.
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

    /// A message without a stamp of the kernel's is about to be written in the turn that began at
    /// `now`. Returns when it arrived if it is the first of the turn, which is measured.
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

    /// It was written at this time to the ring of its source, if it was. For sources without a
    /// stamp.
    #[inline]
    pub(crate) fn end_decode(&self, written: Option<u64>) {
        if let Some(written) = written {
            self.decode.record(written.saturating_sub(self.last));
        }
    }

    /// It was written at this time to the ring of the workers, if it was.
    #[inline]
    pub(crate) fn end_fix(&mut self, written: Option<u64>) {
        if let (Some(written), Some(stage)) = (written, &self.fix) {
            stage.record(written.saturating_sub(self.last));
            self.last = written;
            self.left = 0;
        }
    }

    /// Its events were written to their ring at this time, if they were.
    #[inline]
    pub(crate) fn end_event(&mut self, written: Option<u64>) {
        if let (Some(written), Some(stage)) = (written, &self.event) {
            stage.record(written.saturating_sub(self.last));
            self.last = written;
            self.left = 0;
        }
    }
}
