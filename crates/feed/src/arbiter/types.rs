//! The input and the output of an [`Arbiter`](super::Arbiter).

use crate::hold::Ticket;
use crate::line::Line;
use std::fmt;

/// Limits and time-outs. Times are nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArbiterConfig {
    /// Units that may wait for a hole before them; one more declares the hole at once.
    pub hold_back: usize,
    /// Bytes allocated in front for each unit that waits; a longer one enlarges its slot once.
    pub unit_bytes: usize,
    /// The longest unit taken; longer ones are refused.
    pub max_unit_bytes: usize,
    /// How long a hole may stay open before it is declared, counted from the first unit beyond.
    pub gap_timeout: u64,
    /// How much longer it may stay open for recovery, after [`Event::Recover`]; 0: no recovery.
    pub recovery_timeout: u64,
    /// Sequence numbers that a unit may lie ahead without a second unit that confirms the jump:
    /// one garbled number must not throw the feed.
    pub max_jump: u32,
    /// After a reset: how long the new numbers may be silent until the old ones are heard again.
    pub stale_timeout: u64,
    /// How long all lines must be silent before numbers that come again can be a restart, not
    /// duplicates; 0: never.
    pub restart_timeout: u64,
    /// Ranges kept in [`Missing`](crate::Missing).
    pub missing_ranges: usize,
    /// Which sequence number is the first.
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

/// Which sequence number is the first to deliver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// The lowest that comes within `wait` ns after the first unit: lines do not start together.
    /// The same holds for the first unit after a reset.
    First {
        /// How long to wait, ns; 0 takes the first unit.
        wait: u64,
    },
    /// This one; what is missing before the first unit is a gap.
    At(u32),
}

/// A packet or a message with its place in the sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its first sequence number.
    pub sequence: u32,
    /// How many sequence numbers it takes: 1 where packets are numbered, the number of messages
    /// where messages are.
    pub count: u32,
    /// Its bytes, opaque to the arbiter.
    pub bytes: &'a [u8],
}

/// What becomes of a unit that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is in turn: use its bytes now (they are not copied), but for the first `skip`
    /// sequence numbers, which were delivered before.
    Deliver {
        /// Sequence numbers to leave out.
        skip: u32,
    },
    /// It waits for what is missing before it.
    Held,
    /// All of it was there before.
    Duplicate,
    /// It was declared missing: `filled` of its sequence numbers are not missing any more, but
    /// the stream has gone on.
    Late {
        /// Sequence numbers that were missing.
        filled: u32,
    },
    /// It lies too far from everything known; it is kept, and used if the next such unit agrees.
    Suspect,
    /// It cannot be used.
    Refused(Refusal),
}

/// Why a unit cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No sequence number at all, or more than 65,536 in one unit.
    Count,
    /// More bytes than [`ArbiterConfig::max_unit_bytes`].
    TooLong,
    /// The hold-back is full because events were not taken.
    Full,
    /// It is numbered as before the last reset, beyond what was delivered then.
    Stale,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Count => "no sequence number, or more than 65,536",
            Self::TooLong => "longer than packets may be",
            Self::Full => "too many packets wait",
            Self::Stale => "numbered as before the last reset",
        })
    }
}

/// The result of [`Arbiter::poll_event`](super::Arbiter::poll_event).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event<'a> {
    /// A unit that waited is in turn.
    Unit(Delivery<'a>),
    /// Nothing brought these in time; the stream goes on behind them.
    Gap(Gap),
    /// These are missing; they can still be brought (by any line, or by
    /// [`Arbiter::resume`](super::Arbiter::resume)) until the recovery time-out.
    Recover(Gap),
    /// The sequence starts again.
    Reset {
        /// The number that would have come next.
        expected: u32,
        /// The number that comes next.
        next: u32,
    },
}

/// A unit that waited and is in turn now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery<'a> {
    /// The line that brought it.
    pub line: Line,
    /// Its first sequence number.
    pub sequence: u32,
    /// How many sequence numbers it takes.
    pub count: u32,
    /// Sequence numbers at its start to leave out.
    pub skip: u32,
    /// When it was received, ns, by its line's stamp.
    pub received: u64,
    /// What [`Arbiter::ticket`](super::Arbiter::ticket) was when it was received, if that call was
    /// about this unit alone.
    pub ticket: Ticket,
    /// Its bytes, until the next call.
    pub bytes: &'a [u8],
}

/// A range of missing sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    /// The first that is missing.
    pub first: u32,
    /// How many are missing.
    pub count: u32,
}

impl Gap {
    /// Returns the last number that is missing.
    pub const fn last(&self) -> u32 {
        self.first.wrapping_add(self.count).wrapping_sub(1)
    }
}

/// Sums over all lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArbiterStats {
    /// Gaps declared.
    pub gaps: u64,
    /// Sequence numbers in them.
    pub missing: u64,
    /// Sequence resets.
    pub resets: u64,
    /// Most units that ever waited at once.
    pub held_max: usize,
}
