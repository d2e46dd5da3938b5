//! CDR, the encoding of samples: writing, reading, walking along a type, printing.
//!
//! Samples are written as XCDR1, little endian, for `@final` types (DDSI-RTPS 10.2, XTypes 1.3
//! 7.4.1): four bytes of header, then each member at a multiple of its size counted from the end of
//! the header. Either version and either byte order can be read.

mod pen;
mod print;
mod read;
mod tables;
mod typed;
mod walk;
mod write;

use std::fmt;

pub(crate) use pen::Pen;
pub use print::{LONGEST_JSON, print_json, to_json};
pub use read::CdrReader;
pub use typed::CdrType;
pub(crate) use walk::walk_key;
pub use walk::{Value, Visitor, check, integer_member, walk};
pub use write::{CdrBuffer, Count};

/// Bytes of the header in front of each sample.
pub const HEADER: usize = 4;

/// The error of bytes that are no sample, with the place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CdrError {
    /// Offset from the start of the sample, header included.
    pub offset: usize,
    /// The fault.
    pub why: CdrFault,
}

/// A fault in a sample's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CdrFault {
    /// The bytes end in the middle of a member.
    Short,
    /// The header names a representation that is not supported.
    Representation(u16),
    /// A string lacks its final NUL, or has one inside.
    BadString,
    /// A boolean is neither 0 nor 1.
    BadBool(u8),
    /// A length exceeds the bound of the type, or the bytes left.
    BadLength(u32),
    /// A member that must be understood has an identifier that the type does not have.
    UnknownMember(u32),
    /// The types are nested too deep.
    TooDeep,
    /// More members take no bytes than a sample of this length may have.
    TooManyEmpty,
    /// More bytes follow the last member than padding explains.
    TrailingBytes(usize),
    /// The sample is longer than the buffer to write it to.
    Full,
    /// The visitor is full: the JSON of the sample is longer than [`LONGEST_JSON`].
    TooLong,
}

impl fmt::Display for CdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match self.why {
            CdrFault::Short => write!(f, "truncated at byte {at}"),
            CdrFault::Representation(id) => write!(f, "unknown data representation {id:#06x}"),
            CdrFault::BadString => write!(f, "string without its NUL at byte {at}"),
            CdrFault::BadBool(b) => write!(f, "invalid boolean {b} at byte {at}"),
            CdrFault::BadLength(n) => write!(f, "length {n} at byte {at} is too large"),
            CdrFault::UnknownMember(id) => write!(f, "unknown member {id} at byte {at}"),
            CdrFault::TooDeep => write!(f, "nested too deeply at byte {at}"),
            CdrFault::TooManyEmpty => {
                write!(f, "too many members without bytes before byte {at}")
            }
            CdrFault::TrailingBytes(n) => write!(f, "{n} trailing bytes from byte {at} on"),
            CdrFault::Full => write!(f, "longer than the buffer of {at} bytes"),
            CdrFault::TooLong => {
                let most = LONGEST_JSON >> 20;
                write!(
                    f,
                    "too long to print: {most} MiB of JSON end before byte {at}"
                )
            }
        }
    }
}

impl std::error::Error for CdrError {}
