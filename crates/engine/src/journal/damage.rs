//! Damage found by inspecting a journal, and its place.

use std::fmt;
use std::path::{Path, PathBuf};

/// Records that are lost. A kill of the process does not cause this: it affects at most the record
/// being written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The file that held them.
    pub path: PathBuf,
    /// The index of the first one in its file, from 0.
    pub record: u32,
    /// MsgSeqNum(34) of the first one, or the next that a message would have had. With
    /// [`Lost::AllBefore`], MsgSeqNum(34) of the first message that is not lost.
    pub from: u64,
    /// Their number.
    pub lost: Lost,
    /// What happened to the file.
    pub what: String,
}

/// The number of lost records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lost {
    /// This many records, according to the table of entries.
    Records(u64),
    /// All records from that place on, at least this many: a part of the table is lost, too.
    AllBehind(u64),
    /// All records in front of the oldest file that is left.
    AllBefore,
}

impl Lost {
    /// Returns the number of records known to be lost.
    #[must_use]
    pub const fn at_least(self) -> u64 {
        match self {
            Self::Records(count) | Self::AllBehind(count) => count,
            Self::AllBefore => 0,
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, from, .. } = self;
        write!(f, "journal file {} {}: ", path.display(), self.what)?;
        match self.lost {
            Lost::Records(0) => f.write_str("no record is lost"),
            Lost::Records(1) => write!(f, "1 record is lost, MsgSeqNum {from}"),
            Lost::Records(n) => write!(f, "{n} records are lost, from MsgSeqNum {from} on"),
            Lost::AllBehind(0) => {
                write!(f, "any records from MsgSeqNum {from} on are lost")
            }
            Lost::AllBefore => write!(f, "all records in front of MsgSeqNum {from} are lost"),
            Lost::AllBehind(n) => write!(
                f,
                "all records from MsgSeqNum {from} on are lost, at least {n}"
            ),
        }
    }
}

/// One defect of a journal, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The offset of the record's entry in the table; 0 for a defect of the whole file.
    pub offset: u64,
    /// The index of the record in its file, from 0.
    pub record: Option<u32>,
    /// MsgSeqNum(34) that the record claims to have.
    pub seq: Option<u64>,
    /// Bytes that its message claims to have.
    pub bytes: u32,
    /// The defect.
    pub defect: Defect,
}

/// A kind of damage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Defect {
    /// The file cannot be read at all, for this reason.
    Unreadable(String),
    /// The file before this one, with this number, is missing.
    FileMissing(u64),
    /// The file belongs to another session than the one before it.
    OtherSession(String),
    /// The number expected next from the counterparty is unreadable.
    NextTarget,
    /// The file is shorter than it was made.
    CutShort {
        /// The number of bytes missing.
        bytes: u64,
    },
    /// The file after this one, with this number, is missing or empty.
    NextMissing(u64),
    /// The CRC does not match. Good records follow, or this record, or one in front of it, was
    /// known to be on the disk.
    Crc,
    /// Records at the very end are incomplete, torn by a kill or damaged. The next opening cuts off
    /// a single one, or, after a crash of the machine under
    /// [`Durability::Every`](super::Durability::Every), all of them.
    Tail {
        /// The number of records.
        records: u32,
    },
    /// Records are missing at the end of a full file; or, at the end of another one, records that
    /// were known to be on the disk.
    Missing {
        /// The number of records.
        records: u32,
    },
}

impl Damage {
    pub(super) fn of_file(path: &Path, defect: Defect) -> Self {
        Self {
            path: path.to_owned(),
            offset: 0,
            record: None,
            seq: None,
            bytes: 0,
            defect,
        }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Defect::Unreadable(why) = &self.defect {
            // The reason names the file.
            return f.write_str(why);
        }
        write!(f, "{}: ", self.path.display())?;
        if let Some(record) = self.record {
            write!(f, "record {record} at byte {}", self.offset)?;
            if let Some(seq) = self.seq {
                write!(f, ", MsgSeqNum {seq}")?;
            }
            f.write_str(": ")?;
        }
        self.defect.fmt(f)
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable(why) => f.write_str(why),
            Self::FileMissing(number) => write!(f, "file {number} before it is missing"),
            Self::OtherSession(found) => write!(f, "it belongs to another session, {found}"),
            Self::CutShort { bytes } => {
                write!(f, "it was cut short: {bytes} bytes at its end are missing")
            }
            Self::NextMissing(number) => write!(f, "file {number} after it is missing"),
            Self::NextTarget => f.write_str("the number expected next is unreadable"),
            Self::Crc => f.write_str("its CRC does not match"),
            Self::Tail { records: 1 } => {
                f.write_str("its CRC does not match; it is the last one, torn or damaged")
            }
            Self::Tail { records } => write!(
                f,
                "its CRC does not match, nor that of the {} behind it, to the end",
                records - 1
            ),
            Self::Missing { records } => {
                write!(f, "records missing from here on: {records}")
            }
        }
    }
}
