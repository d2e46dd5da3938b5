//! The values that no event can represent.

use super::document::Does;
use super::outcome::Outcome;
use crate::event::InstrumentId;
use crate::price::PriceError;
use core::fmt;
use fanfare_wire::Decimal;

/// A value of a message that cannot be represented. All events of its instrument in this message
/// are withheld, so that followers of the instrument treat it as a lost message. The events of
/// other instruments are passed on, and so are all definitions, which the table has already.
///
/// [`FastMapper::describe`](super::FastMapper::describe) returns the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError {
    /// The number of the message among those that are mapped.
    pub(super) plan: u16,
    /// The purpose of the message.
    pub(super) does: Does,
    /// MsgSeqNum(34) of the message, if it can be read.
    pub(super) number: Option<u64>,
    /// The cell of the field, or `Ref::END` for none.
    pub(super) cell: u8,
    /// The index of the entry, from 0, or `None` outside of entries.
    pub entry: Option<u32>,
    /// The instrument, or `None` if it is unknown, or if any instrument of the message is affected.
    pub instrument: Option<InstrumentId>,
    /// The fault.
    pub why: Why,
}

impl MapError {
    /// Returns the purpose and MsgSeqNum(34) of the message, by which
    /// [`Fragments::pass`](crate::Fragments::pass) knows that none is missing.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        Outcome::numbered(self.does, self.number)
    }

    /// Returns the error with another number of the message.
    pub(crate) const fn numbered(mut self, number: Option<u64>) -> Self {
        self.number = number;
        self
    }

    /// Returns whether a book may lack a change because of it.
    pub(crate) const fn is_of_book(&self) -> bool {
        matches!(self.does, Does::Changes | Does::Snapshot)
    }
}

/// A value that cannot be represented: its cell, and the reason.
pub(super) type Flaw = (u8, Why);

/// The fault of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The value is not a price.
    Price(PriceError),
    /// The value is not a number.
    NoNumber,
    /// The value is negative.
    Negative,
    /// The value is larger than 2^63 - 2.
    Large(u64),
    /// The value exceeds the range of the event's field.
    Above {
        /// The value.
        value: u64,
        /// The greatest value allowed.
        most: u64,
    },
    /// A size that does not fit.
    SizeRange(Decimal),
    /// A size that is not a whole number.
    Fraction(Decimal),
    /// The level is 0, and levels count from 1.
    LevelZero,
    /// The value is not one ASCII character.
    NoChar,
    /// The value is not `Y`, `N`, 1 or 0.
    NoFlag,
    /// The value is not a time of the format that the mapping names.
    Time,
    /// MDUpdateAction(279) is not from 0 to 5.
    Action,
    /// SecurityIDSource(22) has more than four characters.
    LongSource,
    /// A text of a definition is too long.
    LongText,
    /// The number of entries of the message differs from its count.
    Count {
        /// The count in the message.
        says: u64,
        /// The number of its entries.
        has: u64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Price(error) => error.fmt(f),
            Self::NoNumber => f.write_str("the value is not a whole number, or too large"),
            Self::Negative => f.write_str("the value is below zero"),
            Self::Large(value) => write!(f, "{value} is out of range"),
            Self::Above { value, most } => write!(f, "{value} is above {most}"),
            Self::SizeRange(value) => write!(f, "the size {value} is out of range"),
            Self::Fraction(value) => write!(f, "the size {value} is not a whole number"),
            Self::LevelZero => f.write_str("the level is 0: levels are counted from 1"),
            Self::NoChar => f.write_str("the value is not one ASCII character"),
            Self::NoFlag => f.write_str("the value is not Y, N, 1 or 0"),
            Self::Time => {
                f.write_str("the value is not a time in the format that the mapping names")
            }
            Self::Action => f.write_str("the value is not an action from 0 to 5"),
            Self::LongSource => f.write_str("the value has more than four characters"),
            Self::LongText => f.write_str("the value is too long for a definition"),
            Self::Count { says, has } => write!(f, "the count is {says}, found {has} entries"),
        }
    }
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(entry) = self.entry {
            write!(f, "entry {entry}: ")?;
        }
        self.why.fmt(f)
    }
}

impl core::error::Error for MapError {}
