//! The definition of an instrument, borrowed from a message, a file or the table.

use crate::event::{Event, InstrumentId};
use crate::price::Price;
use core::fmt;
use fanfare_wire::int;
use fanfare_wire::text::readable;
use std::borrow::Cow;

/// SecurityID(48). Digits without a leading zero are a number, however they were sent, so that
/// FAST's integers and FIX's texts are equal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SecurityId<'a> {
    /// No ID.
    #[default]
    None,
    /// A number.
    Number(u64),
    /// Any other text, which is not empty.
    Text(&'a [u8]),
}

impl<'a> SecurityId<'a> {
    /// Returns the ID with this text, or [`SecurityId::None`] for an empty one.
    #[inline]
    pub fn parse(text: &'a [u8]) -> Self {
        let is_canonical = text.first() != Some(&b'0') || text.len() == 1;
        match int::parse_u64(text).filter(|_| is_canonical) {
            Some(number) => Self::Number(number),
            None if text.is_empty() => Self::None,
            None => Self::Text(text),
        }
    }

    /// Returns the text as it was sent, empty if there is no ID. Allocates for a number.
    pub fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            Self::None => Cow::Borrowed(b""),
            Self::Number(number) => Cow::Owned(number.to_string().into_bytes()),
            Self::Text(text) => Cow::Borrowed(text),
        }
    }
}

impl fmt::Display for SecurityId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(&readable(text)),
        }
    }
}

/// SecurityIDSource(22): up to four characters, as in `8` (exchange) or `4` (ISIN).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct IdSource([u8; 4]);

impl IdSource {
    /// No source.
    pub const NONE: Self = Self([0; 4]);

    /// Returns the source of this text, or `None` for more than four bytes.
    #[inline]
    pub fn parse(text: &[u8]) -> Option<Self> {
        let mut bytes = [0; 4];
        bytes.get_mut(..text.len())?.copy_from_slice(text);
        Some(Self(bytes))
    }

    /// Returns the characters.
    pub fn as_bytes(&self) -> &[u8] {
        let len = self.0.iter().position(|byte| *byte == 0).unwrap_or(4);
        self.0.get(..len).unwrap_or_default()
    }

    pub(super) const fn bits(self) -> u32 {
        u32::from_le_bytes(self.0)
    }

    pub(super) const fn of_bits(bits: u32) -> Self {
        Self(bits.to_le_bytes())
    }
}

impl fmt::Display for IdSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&readable(self.as_bytes()))
    }
}

/// The name of an instrument: at least one of symbol and ID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Name<'a> {
    /// Symbol(55), or empty if there is none.
    pub symbol: &'a [u8],
    /// SecurityID(48).
    pub id: SecurityId<'a>,
    /// SecurityIDSource(22).
    pub source: IdSource,
}

impl<'a> Name<'a> {
    /// Returns the name of an instrument that has only this symbol.
    pub const fn of_symbol(symbol: &'a [u8]) -> Self {
        Self {
            symbol,
            id: SecurityId::None,
            source: IdSource::NONE,
        }
    }

    /// Returns true if it has neither symbol nor ID.
    pub const fn is_empty(&self) -> bool {
        self.symbol.is_empty() && matches!(self.id, SecurityId::None)
    }
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&readable(self.symbol))?;
        if self.id == SecurityId::None {
            return Ok(());
        }
        let space = if self.symbol.is_empty() { "" } else { " " };
        write!(f, "{space}{}", self.id)?;
        match self.source {
            IdSource::NONE => Ok(()),
            source => write!(f, "/{source}"),
        }
    }
}

/// The number of texts of a definition, in the order in which the table keeps them.
pub(super) const TEXTS: usize = 10;

/// The definition of an instrument. Empty texts and undefined prices are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    /// Symbol, SecurityID and SecurityIDSource.
    pub name: Name<'a>,
    /// SecurityDesc(107), UTF-8.
    pub description: &'a [u8],
    /// SecurityType(167).
    pub security_type: &'a [u8],
    /// CFICode(461).
    pub cfi: &'a [u8],
    /// Currency(15).
    pub currency: &'a [u8],
    /// MarketID(1301) or SecurityExchange(207).
    pub market: &'a [u8],
    /// MarketSegmentID(1300).
    pub segment: &'a [u8],
    /// UnderlyingSymbol(311).
    pub underlying: &'a [u8],
    /// MaturityMonthYear(200) as sent.
    pub maturity_month: &'a [u8],
    /// MinPriceIncrement(969).
    pub tick: Price,
    /// ContractMultiplier(231).
    pub multiplier: Price,
    /// StrikePrice(202).
    pub strike: Price,
    /// LowLimitPrice(1148).
    pub low_limit: Price,
    /// HighLimitPrice(1149).
    pub high_limit: Price,
    /// MaturityDate(541) with MaturityTime(1079), in nanoseconds since 1970-01-01 UTC, or
    /// [`Event::NO_TIME`] if unknown.
    pub maturity: u64,
    /// MarketDepth(264) of the book, or 0 if unknown.
    pub depth: u16,
    /// MDBookType(1021): 1 top of book, 2 by price, 3 by order, or 0 if unknown.
    pub book_type: u8,
}

impl Default for Definition<'_> {
    fn default() -> Self {
        Self {
            name: Name::default(),
            description: b"",
            security_type: b"",
            cfi: b"",
            currency: b"",
            market: b"",
            segment: b"",
            underlying: b"",
            maturity_month: b"",
            tick: Price::UNDEFINED,
            multiplier: Price::UNDEFINED,
            strike: Price::UNDEFINED,
            low_limit: Price::UNDEFINED,
            high_limit: Price::UNDEFINED,
            maturity: Event::NO_TIME,
            depth: 0,
            book_type: 0,
        }
    }
}

impl<'a> Definition<'a> {
    /// Returns the definition of an instrument of which nothing is known but its name.
    pub fn named(name: Name<'a>) -> Self {
        Self {
            name,
            ..Self::default()
        }
    }

    /// Returns the texts, the symbol first and a text ID second.
    pub(super) const fn texts(&self) -> [&'a [u8]; TEXTS] {
        let id = match self.name.id {
            SecurityId::Text(text) => text,
            _ => b"",
        };
        [
            self.name.symbol,
            id,
            self.description,
            self.security_type,
            self.cfi,
            self.currency,
            self.market,
            self.segment,
            self.underlying,
            self.maturity_month,
        ]
    }
}

/// An instrument of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instrument<'a> {
    /// The plant's number.
    pub instrument: InstrumentId,
    /// Its definition, or the name alone if it was never defined.
    pub definition: Definition<'a>,
    /// The number of its definitions, or 0 if it was never defined.
    pub revision: u32,
    /// SecurityTradingStatus(326), or 0 if unknown.
    pub status: u16,
}
