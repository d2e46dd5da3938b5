//! The reasons why snapshots are not read although their values can be.

use crate::event::InstrumentId;
use crate::instruments::Instruments;
use core::fmt::{self, Write as _};

/// A snapshot that was not read, and the reason. Values that cannot be represented are a
/// [`MapError`](crate::mapping::MapError) instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotFault {
    /// The instrument, or `None` if it is unknown.
    pub instrument: Option<InstrumentId>,
    /// MsgSeqNum(34) of the message, or of the first one of a snapshot of several.
    pub number: Option<u64>,
    /// The fault.
    pub why: SnapshotWhy,
}

/// The fault of a snapshot that was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotWhy {
    /// A message of the channel of changes has no MsgSeqNum(34).
    NoNumber,
    /// Nothing shows that the snapshot begins with the first of its fragments that arrived.
    NoBeginning,
    /// A message is missing among its fragments.
    Gap,
    /// A snapshot among its fragments could not be read, or names no known instrument.
    Unread,
    /// A fragment is missing, repeated, or of another moment.
    NotNext,
    /// Another snapshot begins before its last fragment.
    Unfinished,
    /// It has more than this number of events.
    TooLarge(usize),
    /// The incomplete snapshots have more than this number of events, and it is the oldest.
    NoRoom(usize),
    /// The mapping was replaced before its last fragment.
    Remapped,
}

impl SnapshotFault {
    /// Formats the fault, with the name of its instrument.
    pub(crate) fn describe(&self, table: &Instruments) -> String {
        let mut text = "snapshot".to_owned();
        if let Some(number) = self.number {
            let _ = write!(text, ", MsgSeqNum(34) {number}");
        }
        let known = self.instrument.and_then(|instrument| table.get(instrument));
        if let Some(known) = known {
            let _ = write!(text, ": instrument {}", known.definition.name);
        }
        let _ = write!(text, ": {}", self.why);
        text
    }
}

impl fmt::Display for SnapshotWhy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoNumber => "it has no MsgSeqNum(34), and so no place among the changes",
            Self::NoBeginning => {
                "its first fragment is missing, or nothing marks this fragment as the first"
            }
            Self::Gap => "a message before its last fragment is missing",
            Self::Unread => {
                "a snapshot before its last fragment could not be read, or names no known \
                 instrument"
            }
            Self::NotNext => "a fragment is missing, repeated, or of another moment",
            Self::Unfinished => "another snapshot begins before its last fragment",
            Self::TooLarge(most) => return write!(f, "it has more than {most} events"),
            Self::NoRoom(most) => {
                return write!(f, "incomplete snapshots have more than {most} events");
            }
            Self::Remapped => "the mapping was replaced before its last fragment",
        })
    }
}
