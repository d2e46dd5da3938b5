//! What a message was, and what was counted.

use super::document::Does;
use crate::event::InstrumentId;

/// What a message was. Its events are those of the mapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// What it does; `None` if the mapping does not name it.
    pub does: Option<Does>,
    /// MsgSeqNum(34).
    pub number: Option<u64>,
    /// When it was sent, in nanoseconds since 1970-01-01 UTC.
    pub sent: Option<u64>,
    /// NewSeqNo(36) of a SequenceReset.
    pub next: Option<u64>,
    /// What a snapshot is of.
    pub picture: Option<Picture>,
}

/// What a snapshot is of. Its book is that after the changes up to `rpt_seq` of the instrument,
/// or up to the message `last_processed` of the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picture {
    /// The instrument.
    pub instrument: InstrumentId,
    /// RptSeq(83), 0 if there is none.
    pub rpt_seq: u32,
    /// LastMsgSeqNumProcessed(369).
    pub last_processed: Option<u64>,
    /// TotNumReports(911): how many snapshots make up a cycle.
    pub total: Option<u32>,
    /// Which part of the picture the message has; `None` if it has all of it.
    pub fragment: Option<Fragment>,
}

/// Which part of a picture a message has. [`Fragments`](crate::Fragments) puts them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fragment {
    /// LastFragment(893): the picture ends with it.
    pub is_last: bool,
    /// RouteFirst(7944) of MOEX: the picture begins with it. `None` if the feed does not have the
    /// field.
    pub is_first: Option<bool>,
    /// Its number within the picture, from 1; `None` if the fragments have none.
    pub number: Option<u32>,
    /// [`Picture::rpt_seq`] is that of the message, and not the highest one of its entries.
    pub has_rpt_seq: bool,
}

impl Outcome {
    /// A message that the mapping does not name.
    pub(crate) const UNMAPPED: Self = Self {
        does: None,
        number: None,
        sent: None,
        next: None,
        picture: None,
    };

    pub(super) const fn of(does: Does) -> Self {
        Self {
            does: Some(does),
            ..Self::UNMAPPED
        }
    }
}

/// How many events there were, and what did not become one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Messages.
    pub messages: u64,
    /// Events.
    pub events: u64,
    /// Messages that the mapping does not name.
    pub unmapped: u64,
    /// Entries that no rule of the mapping fits.
    pub no_rule: u64,
    /// Entries that a rule of the mapping leaves out.
    pub ignored: u64,
    /// Entries, pictures and definitions that name no instrument.
    pub without_instrument: u64,
    /// Entries and pictures of instruments that were never defined, where the mapping does not
    /// add them.
    pub unknown_instrument: u64,
    /// Entries and definitions of instruments for which the table had no room.
    pub table_full: u64,
    /// Definitions that changed nothing.
    pub same_definition: u64,
    /// Values that cannot be represented.
    pub faults: u64,
    /// Events withheld because of them.
    pub withheld: u64,
}

impl Counts {
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
