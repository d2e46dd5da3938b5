//! CDR, the bytes of a sample: writing, reading, walking along a type, printing.
//!
//! What is written is XCDR1, little endian, for `@final` types (DDSI-RTPS 10.2, XTypes 1.3 7.4.1):
//! four bytes of header, then each member at a multiple of its size counted from behind the
//! header. What is read may be either version and either byte order.

mod pen;
mod print;
mod read;
mod typed;
mod walk;
mod write;

use std::fmt;

pub(crate) use pen::Pen;
pub use print::{print_json, to_json};
pub use read::CdrReader;
pub use typed::CdrType;
pub(crate) use walk::walk_key;
pub use walk::{Value, Visitor, check, integer_member, walk};
pub use write::{CdrBuffer, Count};

/// Bytes of the header in front of each sample.
pub const HEADER: usize = 4;

/// Bytes that are no sample, and where that shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CdrError {
    /// Offset from the start of the sample, header included.
    pub offset: usize,
    /// What is wrong there.
    pub why: CdrFault,
}

/// What is wrong with a sample's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CdrFault {
    /// They end in the middle.
    Short,
    /// The header names no representation that is read here.
    Representation(u16),
    /// A string without its final NUL, or with one inside.
    BadString,
    /// A boolean that is neither 0 nor 1.
    BadBool(u8),
    /// A length over the bound of the type, or over what the bytes left could hold.
    BadLength(u32),
    /// A member with an identifier that the type does not have, and that must be understood.
    UnknownMember(u32),
    /// Nested too deep.
    TooDeep,
    /// More bytes behind the last member than padding explains.
    TrailingBytes(usize),
    /// While writing: the sample is longer than the buffer.
    Full,
}

impl fmt::Display for CdrError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = self.offset;
        match self.why {
            CdrFault::Short => write!(f, "ends too early, at byte {at}"),
            CdrFault::Representation(id) => write!(f, "unknown data representation {id:#06x}"),
            CdrFault::BadString => write!(f, "string without its NUL at byte {at}"),
            CdrFault::BadBool(b) => write!(f, "boolean {b} at byte {at}"),
            CdrFault::BadLength(n) => write!(f, "length {n} at byte {at} is too large"),
            CdrFault::UnknownMember(id) => write!(f, "unknown member {id} at byte {at}"),
            CdrFault::TooDeep => write!(f, "nested too deep at byte {at}"),
            CdrFault::TrailingBytes(n) => write!(f, "{n} bytes too many, from byte {at}"),
            CdrFault::Full => write!(f, "longer than its buffer of {at} bytes"),
        }
    }
}

impl std::error::Error for CdrError {}
