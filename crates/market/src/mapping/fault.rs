//! Values that no event can hold.

use crate::event::InstrumentId;
use crate::price::PriceError;
use core::fmt;
use fanfare_wire::Decimal;

/// A value of a message cannot be represented. The events of its instrument that this message has
/// are withheld, all of them: to followers of the instrument it is a message that was lost. The
/// events of other instruments are passed on.
///
/// [`FastMapper::describe`](super::FastMapper::describe) returns the names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapError {
    /// Number of the message among those that are mapped.
    pub(super) plan: u16,
    /// Cell of the field; `u8::MAX` for none.
    pub(super) cell: u8,
    /// Index of the entry, from 0; `None` if it is in none.
    pub entry: Option<u32>,
    /// The instrument, if it is known.
    pub instrument: Option<InstrumentId>,
    /// What is wrong.
    pub why: Why,
}

/// A value that cannot be represented: of which cell, and why.
pub(super) type Flaw = (u8, Why);

/// What is wrong with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is no price.
    Price(PriceError),
    /// It is no number.
    NoNumber,
    /// It is below zero.
    Negative,
    /// It is larger than 2^63 - 2.
    Large(u64),
    /// It is larger than the event has room for.
    Above {
        /// The value.
        value: u64,
        /// The largest possible one.
        most: u64,
    },
    /// A size that does not fit.
    SizeRange(Decimal),
    /// A size that is no whole number.
    Fraction(Decimal),
    /// A level 0: levels count from 1.
    LevelZero,
    /// It is not one ASCII character.
    NoChar,
    /// It is none of `Y`, `N`, 1 and 0.
    NoFlag,
    /// It is no time of the format that the mapping names.
    Time,
    /// MDUpdateAction(279) is none of 0 to 5.
    Action,
    /// SecurityIDSource(22) has more than four characters.
    LongSource,
    /// A text of a definition is too long.
    LongText,
    /// The message does not have as many entries as it says.
    Count {
        /// The number that it says.
        says: u64,
        /// What it has.
        has: u64,
    },
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Price(error) => error.fmt(f),
            Self::NoNumber => f.write_str("it is no whole number, or too large"),
            Self::Negative => f.write_str("it is below zero"),
            Self::Large(value) => write!(f, "{value} is out of range"),
            Self::Above { value, most } => write!(f, "{value} is above {most}"),
            Self::SizeRange(value) => write!(f, "the size {value} is out of range"),
            Self::Fraction(value) => write!(f, "the size {value} is no whole number"),
            Self::LevelZero => f.write_str("level 0: levels count from 1"),
            Self::NoChar => f.write_str("it is not one ASCII character"),
            Self::NoFlag => f.write_str("it is none of Y, N, 1 and 0"),
            Self::Time => f.write_str("it is no time of the format that the mapping names"),
            Self::Action => f.write_str("it is none of the actions 0 to 5"),
            Self::LongSource => f.write_str("it has more than four characters"),
            Self::LongText => f.write_str("it is too long for a definition"),
            Self::Count { says, has } => write!(f, "it says {says}, there are {has}"),
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
