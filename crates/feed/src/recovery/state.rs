//! States of instruments, and the configuration and counters of a recovery.

use core::fmt;

/// Whether the book of an instrument can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// The book is complete, as of the last change that was applied.
    Live,
    /// The book is incomplete, and lacks this.
    Recovering(Lack),
    /// The book was complete when all lines fell silent.
    Stale,
    /// The instrument is no longer traded.
    Closed,
}

/// The part that a book lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Lack {
    /// A snapshot to begin with.
    Snapshot,
    /// A snapshot, since the book was found wrong or RptSeq(83) went back.
    SnapshotAfterFault,
    /// Changes with these RptSeq(83), from the first to the last.
    Changes(u64, u64),
    /// The certainty that the missing messages of the channel below this number had none of its
    /// changes.
    Certainty(u64),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Live => f.write_str("live"),
            Self::Recovering(lack) => write!(f, "recovering: {lack}"),
            Self::Stale => f.write_str("stale"),
            Self::Closed => f.write_str("closed"),
        }
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Snapshot => f.write_str("a snapshot is missing"),
            Self::SnapshotAfterFault => f.write_str("a snapshot is missing, after a fault"),
            Self::Changes(from, to) if from == to => write!(f, "RptSeq {from} is missing"),
            Self::Changes(from, to) => write!(f, "RptSeq {from} to {to} are missing"),
            Self::Certainty(u64::MAX) => f.write_str("nothing of the channel was heard"),
            Self::Certainty(end) => {
                write!(
                    f,
                    "changes may have been lost below MsgSeqNum {}",
                    *end as u32
                )
            }
        }
    }
}

/// The numbering of an instrument's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Numbering {
    /// RptSeq(83) of the instrument; snapshots may have LastMsgSeqNumProcessed(369) too.
    Instrument,
    /// Only MsgSeqNum(34) of the channel: snapshots have LastMsgSeqNumProcessed(369).
    Channel,
}

/// The configuration of a [`super::Recovery`].
#[derive(Debug, Clone)]
pub struct RecoveryConfig {
    /// The numbering of changes.
    pub numbering: Numbering,
    /// Whether books are empty, and complete, before RptSeq(83) 1.
    pub starts_empty: bool,
    /// Most instruments: their numbers are below this. Each takes 120 bytes.
    pub most_instruments: usize,
    /// Most waiting changes of all instruments together. Each takes 24 bytes and its item.
    pub most_held: usize,
    /// Most waiting changes of one instrument. At the limit they are dropped and counted, and only
    /// a later snapshot restores the instrument.
    pub most_held_each: u32,
    /// Most ranges of missing messages remembered; beyond, the oldest is dropped and cannot be
    /// replayed.
    pub most_gaps: usize,
    /// Most messages by which a snapshot may be ahead of the channel; beyond, it is from before a
    /// reset and not taken.
    pub most_ahead: u32,
    /// The longest time from the making of a snapshot to its arrival, in nanoseconds. For this long
    /// after a reset none is taken, as it may be from before. One without
    /// LastMsgSeqNumProcessed(369) that arrives this long after a gap contains the messages lost in
    /// it.
    pub snapshot_age: u64,
}

impl RecoveryConfig {
    /// Returns usual limits: 2^20 instruments and waiting changes, 4,096 of one instrument.
    pub const fn new(numbering: Numbering) -> Self {
        Self {
            numbering,
            starts_empty: true,
            most_instruments: 1 << 20,
            most_held: 1 << 20,
            most_held_each: 4_096,
            most_gaps: 1_024,
            most_ahead: 1 << 16,
            snapshot_age: 10_000_000_000,
        }
    }

    /// Returns whether an instrument has a book before any of its messages arrived.
    pub(super) fn begins_with_a_book(&self) -> bool {
        self.starts_empty && self.numbering == Numbering::Instrument
    }
}

/// The counters of a recovery.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecoveryStats {
    /// Changes applied.
    pub applied: u64,
    /// Changes that were part of a snapshot, or of messages before the book began anew.
    pub superseded: u64,
    /// Changes that wait now.
    pub held: u64,
    /// Changes that waited already when they were repeated.
    pub repeated: u64,
    /// Changes that waited, or were to wait, and were dropped: at a limit, at a reset, at the end
    /// of an instrument.
    pub dropped: u64,
    /// Changes for which the store was full.
    pub overflows: u64,
    /// RptSeq(83) that went back.
    pub jumped_back: u64,
    /// Books that were reported wrong.
    pub faults: u64,
    /// Snapshots that replaced books.
    pub snapshots_taken: u64,
    /// Snapshots not newer than the book, or older than the missing messages or than a change that
    /// was lost.
    pub snapshots_old: u64,
    /// Snapshots ahead of a live book, not taken yet.
    pub snapshots_ahead: u64,
    /// Snapshots without the required numbers, or from before a reset.
    pub snapshots_unusable: u64,
    /// The number of times that an instrument began to recover.
    pub recoveries: u64,
    /// The number of times that one became live again.
    pub recovered: u64,
    /// Changes and snapshots of instruments beyond the limit.
    pub refused: u64,
}

/// The reason why nothing was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// The number of the instrument is not below the configured limit.
    TooManyInstruments(usize),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyInstruments(most) => {
                write!(f, "more than {most} instruments, the configured limit")
            }
        }
    }
}

impl core::error::Error for Refused {}
