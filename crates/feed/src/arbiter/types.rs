//! The input and the output of an [`Arbiter`](super::Arbiter).

use crate::hold::Ticket;
use crate::line::Line;
use std::fmt;

/// Limits and time-outs, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArbiterConfig {
    /// Most units that wait for a missing one; one more declares the gap at once.
    pub hold_back: usize,
    /// Bytes allocated in advance for each unit that waits; a longer one enlarges its slot once.
    pub unit_bytes: usize,
    /// The longest unit taken, in bytes; longer ones are refused.
    pub max_unit_bytes: usize,
    /// How long a gap may stay open before it is declared, counted from the first unit beyond it.
    pub gap_timeout: u64,
    /// How much longer it may stay open for recovery, after [`Event::Recover`]; 0 for no recovery.
    pub recovery_timeout: u64,
    /// The most sequence numbers that a unit may be ahead without a second unit that confirms the
    /// jump, so that one garbled number does not derail the feed.
    pub max_jump: u32,
    /// The silence of the new numbers, after a reset, up to which old ones are refused.
    pub stale_timeout: u64,
    /// The silence of all lines after which repeated numbers may be a restart, not duplicates; 0
    /// for never.
    pub restart_timeout: u64,
    /// Ranges kept in [`Missing`](crate::Missing).
    pub missing_ranges: usize,
    /// The first sequence number.
    pub start: Start,
}

impl Default for ArbiterConfig {
    fn default() -> Self {
        Self {
            hold_back: 1024,
            unit_bytes: 1536,
            max_unit_bytes: 65_535,
            gap_timeout: 50_000_000,
            recovery_timeout: 0,
            max_jump: 65_536,
            stale_timeout: 1_000_000_000,
            restart_timeout: 1_000_000_000,
            missing_ranges: 1024,
            start: Start::First { wait: 0 },
        }
    }
}

/// The first sequence number to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The lowest that arrives within `wait` ns after the first unit, as lines do not start
    /// together. The same holds for the first unit after a reset.
    First {
        /// The time to wait in ns; 0 takes the first unit.
        wait: u64,
    },
    /// This number; a missing one before the first unit is a gap.
    At(u32),
}

/// A packet or a message with its place in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its first sequence number.
    pub sequence: u32,
    /// The number of sequence numbers that it takes: 1 where packets are numbered, the number of
    /// messages where messages are.
    pub count: u32,
    /// Its bytes, opaque to the arbiter.
    pub bytes: &'a [u8],
}

/// The verdict on a unit that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The unit is in order. Its bytes are not copied and are to be used now, without the first
    /// `skip` sequence numbers, which were delivered before.
    Deliver {
        /// The number of sequence numbers to leave out.
        skip: u32,
    },
    /// The unit waits for missing units before it.
    Held,
    /// The whole unit was received before.
    Duplicate,
    /// The unit was declared missing: `filled` of its sequence numbers are no longer missing, but
    /// the stream has passed them.
    Late {
        /// The number of sequence numbers that were missing.
        filled: u32,
    },
    /// The unit is too far from all known numbers; it is kept, and used if the next such unit
    /// agrees.
    Suspect,
    /// The unit cannot be used.
    Refused(Refusal),
}

/// The reason why a unit cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The unit has no sequence number, or more than 65,536.
    Count,
    /// The unit has more bytes than [`ArbiterConfig::max_unit_bytes`].
    TooLong,
    /// The hold-back is full because events were not taken.
    Full,
    /// The number is from before the start or the last restart, or of a line that is far behind;
    /// the newest run goes on.
    Stale,
    /// The number of a message does not follow those before it in the packet. Only the messages in
    /// front of it are delivered. See [`ChannelConfig`](crate::ChannelConfig).
    Order,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "no sequence number, or more than 65,536",
            Self::TooLong => "longer than the limit of a packet",
            Self::Full => "too many packets are held back",
            Self::Stale => "numbered far before the other lines, or from before the last restart",
            Self::Order => "the number of a message does not follow those before it in the packet",
        })
    }
}

/// The result of [`Arbiter::poll_event`](super::Arbiter::poll_event).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A unit that waited is now in order.
    Unit(Delivery<'a>),
    /// These numbers did not arrive in time; the stream continues after them.
    Gap(Gap),
    /// These numbers are missing; until the recovery time-out they can still arrive by any line, or
    /// be skipped by [`Arbiter::resume`](super::Arbiter::resume).
    Recover(Gap),
    /// The sequence restarts.
    Reset {
        /// The number that would have been next.
        expected: u32,
        /// The number that is next.
        next: u32,
    },
}

/// A unit that waited and is now in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The line that brought it.
    pub line: Line,
    /// Its first sequence number.
    pub sequence: u32,
    /// The number of sequence numbers that it takes.
    pub count: u32,
    /// The number of sequence numbers at its start to leave out.
    pub skip: u32,
    /// The time at which it was received in ns, by its line's stamp.
    pub received: u64,
    /// The value of [`Arbiter::ticket`](super::Arbiter::ticket) when it was received, if that call
    /// was for this unit alone.
    pub ticket: Ticket,
    /// Its bytes, until the next call.
    pub bytes: &'a [u8],
}

/// A range of missing sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first missing number.
    pub first: u32,
    /// The count of missing numbers.
    pub count: u32,
}

impl Gap {
    /// Returns the last missing number.
    pub const fn last(&self) -> u32 {
        self.first.wrapping_add(self.count).wrapping_sub(1)
    }
}

/// Sums over all lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArbiterStats {
    /// The number of gaps declared.
    pub gaps: u64,
    /// The count of sequence numbers in them.
    pub missing: u64,
    /// The number of sequence resets.
    pub resets: u64,
    /// The most units that ever waited at once.
    pub held_max: usize,
}
