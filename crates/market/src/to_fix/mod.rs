//! The conversion of market events and instruments to FIX: the bodies of W, X, d, y, f and h, for
//! each version.
//!
//! ```
//! use fanfare_fix::codec::FieldWriter;
//! use fanfare_fix::dict::Version;
//! use fanfare_market::event::{Event, Kind, entry};
//! use fanfare_market::instruments::{Instruments, Name};
//! use fanfare_market::{Price, ToFix};
//!
//! let mut table = Instruments::new(10);
//! let instrument = table.see(&Name::of_symbol(b"RIU3"))?;
//! let bid = Event {
//!     instrument,
//!     kind: Kind::Level,
//!     entry: entry::BID,
//!     level: 1,
//!     price: Price::from_units(133_310_000_000_000),
//!     size: 7,
//!     ..Event::EMPTY
//! };
//! let (mut room, to_fix) = ([0; 256], ToFix::new(Version::Fix44));
//! let mut out = FieldWriter::new(&mut room);
//! to_fix.changes(&table, b"r1", &[bid], &mut out)?;
//! let text = String::from_utf8(out.written()?.to_vec())?.replace('\x01', "|");
//! assert_eq!(text, "262=r1|268=1|279=0|269=0|55=RIU3|270=133310|271=7|290=1|");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod definitions;
mod entries;

pub use definitions::Request;

use crate::instruments::{IdSource, Name, SecurityId};
use core::fmt;
use entries::Entries;
use fanfare_fix::codec::FieldWriter;
use fanfare_fix::dict::{Dictionary, Layout, Version};
use std::sync::Arc;

/// The reason why a value cannot be expressed in a version of FIX. The partial body must be
/// discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The version does not have the message.
    NoMessage,
    /// The version does not have this value of the field.
    Value {
        /// The field.
        tag: u32,
    },
    /// The version requires this field, and its value is not known.
    Missing {
        /// The field.
        tag: u32,
    },
    /// Events of this kind cannot be entries.
    Kind,
    /// A snapshot has several instruments.
    Mixed,
    /// The instrument does not exist.
    Instrument,
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMessage => f.write_str("this version of FIX has no such message"),
            Self::Value { tag } => write!(f, "this version of FIX has no such value of {tag}"),
            Self::Missing { tag } => write!(f, "this version of FIX requires {tag}"),
            Self::Kind => f.write_str("events of this kind have no entry in market data messages"),
            Self::Mixed => f.write_str("a snapshot has one instrument"),
            Self::Instrument => f.write_str("no such instrument"),
        }
    }
}

impl core::error::Error for WriteError {}

/// A writer of bodies of market data messages that pass the validation of a version.
///
/// The properties of a version are looked up on creation, and writing changes and snapshots does
/// not allocate. Fields that a version does not have are left out (RptSeq(83) before FIX.5.0, and
/// MDPriceLevel(1023), which is MDEntryPositionNo(290) there). Values that it does not have are
/// errors. Times are truncated to milliseconds before FIX.5.0SP2. Text with the separator of FIX
/// fields, and a buffer that is too small, are errors of the writer.
#[derive(Debug)]
pub struct ToFix {
    dictionary: Arc<Dictionary>,
    changes: Option<Entries>,
    snapshot: Option<Entries>,
}

impl ToFix {
    /// Creates a writer for messages of this version.
    pub fn new(version: Version) -> Self {
        Self::with(Dictionary::built_in(version))
    }

    /// Creates a writer for messages of a dictionary.
    pub fn with(dictionary: Arc<Dictionary>) -> Self {
        Self {
            changes: Entries::of(&dictionary, b"X"),
            snapshot: Entries::of(&dictionary, b"W"),
            dictionary,
        }
    }

    fn body(&self, msg_type: &[u8]) -> Result<Layout<'_>, WriteError> {
        self.dictionary.body(msg_type).ok_or(WriteError::NoMessage)
    }
}

/// Writes Symbol(55), or `[N/A]` if unknown, SecurityID(48) and SecurityIDSource(22).
fn names(name: &Name<'_>, has: impl Fn(u32) -> bool, out: &mut FieldWriter<'_>) {
    for tag in [55, 48, 22] {
        if has(tag) {
            one_name(name, tag, out);
        }
    }
}

fn one_name(name: &Name<'_>, tag: u32, out: &mut FieldWriter<'_>) {
    match (tag, name.id) {
        (55, _) if name.symbol.is_empty() => _ = out.field(55, b"[N/A]"),
        (55, _) => _ = out.field(55, name.symbol),
        (48, SecurityId::Number(number)) => _ = out.u64(48, number),
        (48, SecurityId::Text(text)) => _ = out.field(48, text),
        (22, SecurityId::Number(_) | SecurityId::Text(_)) if name.source != IdSource::NONE => {
            _ = out.field(22, name.source.as_bytes());
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
