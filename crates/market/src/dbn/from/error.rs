//! The faults of a stream of DBN.

use crate::dbn::wire::VERSION;
use crate::instruments::Refused;
use core::fmt;

/// A fault of a stream of DBN, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromDbnError {
    /// The byte, from 0, at which the metadata or the record begins.
    pub at: u64,
    /// The fault.
    pub why: Wrong,
}

/// A fault of a stream of DBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The stream does not begin with `DBN`.
    NotDbn,
    /// The version is not supported.
    Version(u8),
    /// The metadata are invalid, for this reason.
    Metadata(&'static str),
    /// A record has fewer bytes than its header or its kind: the kind, the bytes, and the least of
    /// its kind.
    Short(u8, usize, usize),
    /// The stream ends within the metadata or a record, of which it has this many bytes.
    Cut(usize),
    /// The table of instruments refuses another one.
    Instrument(Refused),
}

impl fmt::Display for FromDbnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match self.why {
            Wrong::NotDbn => {
                f.write_str("not DBN: the file does not begin with `DBN` and a version")
            }
            Wrong::Version(version) => {
                write!(
                    f,
                    "unsupported version {version} of DBN, expected 1 to {VERSION}"
                )
            }
            Wrong::Metadata(why) => write!(f, "the metadata are damaged: {why}"),
            Wrong::Short(kind, has, least) => write!(
                f,
                "the record is damaged: type 0x{kind:02x} needs at least {least} bytes, found {has}"
            ),
            Wrong::Cut(has) => write!(
                f,
                "the file is truncated: {has} bytes of an incomplete record or header at the end"
            ),
            Wrong::Instrument(why) => write!(f, "an instrument is refused: {why}"),
        }
    }
}

impl core::error::Error for FromDbnError {}
