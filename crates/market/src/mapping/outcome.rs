//! The outcome of mapping a message, and counts.

use super::document::Does;
use crate::event::{Action, Event, InstrumentId, Kind};

/// The outcome of mapping a message. Its events are those of the mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The purpose of the message, or `None` if the mapping does not name it.
    pub does: Option<Does>,
    /// MsgSeqNum(34).
    pub number: Option<u64>,
    /// The time at which it was sent, in nanoseconds since 1970-01-01 UTC.
    pub sent: Option<u64>,
    /// NewSeqNo(36) of a SequenceReset.
    pub next: Option<u64>,
    /// The properties of a snapshot.
    pub snapshot: Option<Snapshot>,
}

/// The properties of a snapshot. Its book includes the changes up to `rpt_seq` of the instrument,
/// or up to the message `last_processed` of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The instrument.
    pub instrument: InstrumentId,
    /// RptSeq(83), or 0 if there is none.
    pub rpt_seq: u32,
    /// LastMsgSeqNumProcessed(369).
    pub last_processed: Option<u64>,
    /// TotNumReports(911): the number of snapshots of a cycle.
    pub total: Option<u32>,
    /// The part of the snapshot in the message, or `None` if it has all of it.
    pub fragment: Option<Fragment>,
}

/// The part of a snapshot in a message. [`Fragments`](crate::Fragments) assembles the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// LastFragment(893): whether the snapshot ends with it.
    pub is_last: bool,
    /// RouteFirst(7944) of MOEX: whether the snapshot begins with it. `None` if the feed does not
    /// have the field.
    pub is_first: Option<bool>,
    /// Its number within the snapshot, from 1, or `None` if the fragments have none.
    pub number: Option<u32>,
    /// Whether [`Snapshot::rpt_seq`] is in the message; it is else the highest one of its entries.
    pub has_rpt_seq: bool,
}

impl Outcome {
    /// The outcome of a message that the mapping does not name.
    pub(crate) const UNMAPPED: Self = Self {
        does: None,
        number: None,
        sent: None,
        next: None,
        snapshot: None,
    };

    pub(super) const fn of(does: Does) -> Self {
        Self::numbered(does, None)
    }

    pub(super) const fn numbered(does: Does, number: Option<u64>) -> Self {
        Self {
            does: Some(does),
            number,
            ..Self::UNMAPPED
        }
    }
}

/// The events of entries that become no event of the market. Statistics are never filled, so that
/// the two are not confused.
impl Event {
    /// Returns the RptSeq(83) of such an entry, which the changes after it follow. A market keeps
    /// it to itself.
    pub(crate) const fn bare_number(instrument: InstrumentId, rpt_seq: u32) -> Self {
        Self {
            instrument,
            rpt_seq,
            kind: Kind::Statistic,
            action: Action::Fill,
            ..Self::EMPTY
        }
    }

    /// Returns whether the event is only a number.
    #[inline(always)]
    pub(crate) const fn is_bare_number(&self) -> bool {
        matches!((self.kind, self.action), (Kind::Statistic, Action::Fill))
    }
}

/// The counts of events, and of entries that became none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages.
    pub messages: u64,
    /// Events.
    pub events: u64,
    /// Messages that the mapping does not name.
    pub unmapped: u64,
    /// Entries that match no rule of the mapping.
    pub no_rule: u64,
    /// Entries that a rule of the mapping ignores.
    pub ignored: u64,
    /// Entries, snapshots and definitions that name no instrument.
    pub without_instrument: u64,
    /// Entries and snapshots of instruments that were never defined, if the mapping does not add
    /// them, and the ends of unknown instruments.
    pub unknown_instrument: u64,
    /// Entries and definitions of instruments that the table refused.
    pub table_full: u64,
    /// Definitions that changed nothing, or that a later message had replaced.
    pub same_definition: u64,
    /// Values that cannot be represented.
    pub faults: u64,
    /// Events withheld because of faults.
    pub withheld: u64,
}

impl Counts {
    /// Returns the sums of the counters of two mappers.
    #[inline]
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            messages: self.messages + other.messages,
            events: self.events + other.events,
            unmapped: self.unmapped + other.unmapped,
            no_rule: self.no_rule + other.no_rule,
            ignored: self.ignored + other.ignored,
            without_instrument: self.without_instrument + other.without_instrument,
            unknown_instrument: self.unknown_instrument + other.unknown_instrument,
            table_full: self.table_full + other.table_full,
            same_definition: self.same_definition + other.same_definition,
            faults: self.faults + other.faults,
            withheld: self.withheld + other.withheld,
        }
    }

    /// Returns all counters with their names.
    pub const fn all(&self) -> [(&'static str, u64); 11] {
        [
            ("messages", self.messages),
            ("events", self.events),
            ("unmapped", self.unmapped),
            ("no_rule", self.no_rule),
            ("ignored", self.ignored),
            ("without_instrument", self.without_instrument),
            ("unknown_instrument", self.unknown_instrument),
            ("table_full", self.table_full),
            ("same_definition", self.same_definition),
            ("faults", self.faults),
            ("withheld", self.withheld),
        ]
    }
}
