//! The values of the fields that a mapping uses.

use super::fault::Why;
use crate::instruments::{IdSource, SecurityId};
use crate::price::Price;
use fanfare_wire::{Decimal, int};

/// The number of cells of an entry, which is also that of the message's cells after them.
pub(super) const LEVEL: usize = 64;

/// The position of a value: the first of these cells that has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ref(pub(super) [u8; Self::MOST]);

impl Ref {
    /// The most cells of a reference.
    pub(super) const MOST: usize = 6;
    /// No cell.
    pub(super) const END: u8 = u8::MAX;
    /// A value that is never present.
    pub(super) const NONE: Self = Self([Self::END; Self::MOST]);

    pub(super) const fn is_none(self) -> bool {
        self.0[0] == Self::END
    }
}

/// A value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Raw {
    Unsigned(u64),
    Signed(i64),
    Decimal(Decimal),
    /// A text of up to eight bytes, and its length.
    Short([u8; 8], u8),
    /// The beginning and the end of a longer text.
    Long(u32, u32),
}

/// A table of values, with a buffer for texts longer than eight bytes.
#[derive(Debug)]
pub(super) struct Cells {
    present: u128,
    /// The cells that keep their largest value instead of the first.
    pub(super) largest: u128,
    cells: Box<[Raw; 2 * LEVEL]>,
    pub(super) texts: Vec<u8>,
    /// The length of the texts of the message's own fields.
    own: usize,
}

impl Cells {
    pub(super) fn new() -> Self {
        Self {
            present: 0,
            largest: 0,
            cells: Box::new([Raw::Unsigned(0); 2 * LEVEL]),
            texts: Vec::new(),
            own: 0,
        }
    }

    /// Begins a message.
    #[inline]
    pub(super) fn clear(&mut self, largest: u128) {
        self.present = 0;
        self.largest = largest;
        self.texts.clear();
        self.own = 0;
    }

    /// Begins the entries.
    pub(super) fn keep_texts(&mut self) {
        self.own = self.texts.len();
    }

    /// Begins an entry.
    #[inline]
    pub(super) fn clear_entry(&mut self) {
        self.present &= !u128::from(u64::MAX);
        self.texts.truncate(self.own);
    }

    /// Sets a cell to its first value, or to the largest one if it is such a cell.
    #[inline(always)]
    pub(super) fn set(&mut self, cell: u8, value: Raw) {
        let (at, bit) = (usize::from(cell) % (2 * LEVEL), 1 << (cell & 127));
        if self.present & bit != 0 && !self.is_larger(at, bit, value) {
            return;
        }
        self.present |= bit;
        self.cells[at] = value;
    }

    #[cold]
    fn is_larger(&self, at: usize, bit: u128, value: Raw) -> bool {
        let number = |raw: Raw| raw.whole(&self.texts).unwrap_or(0);
        self.largest & bit != 0 && number(value) > number(self.cells[at])
    }

    #[inline(always)]
    pub(super) fn set_text(&mut self, cell: u8, text: &[u8]) {
        let mut short = [0; 8];
        if let [byte] = text {
            short[0] = *byte;
            return self.set(cell, Raw::Short(short, 1));
        }
        match short.get_mut(..text.len()) {
            Some(to) => {
                to.copy_from_slice(text);
                self.set(cell, Raw::Short(short, text.len() as u8));
            }
            None => self.set_long(cell, text),
        }
    }

    #[inline(never)]
    fn set_long(&mut self, cell: u8, text: &[u8]) {
        let begin = self.texts.len() as u32;
        self.texts.extend_from_slice(text);
        self.set(cell, Raw::Long(begin, self.texts.len() as u32));
    }

    /// Returns the value of the first cell that has one, and the cell.
    #[inline(always)]
    pub(super) fn find(&self, field: Ref) -> Option<(u8, &Raw)> {
        for cell in field.0 {
            if cell == Ref::END {
                return None;
            }
            if self.present >> (cell & 127) & 1 != 0 {
                return Some((cell, &self.cells[usize::from(cell) % (2 * LEVEL)]));
            }
        }
        None
    }

    #[inline(always)]
    pub(super) fn has(&self, field: Ref) -> bool {
        self.find(field).is_some()
    }
}

/// The buffer for the digits of a number.
pub(super) type Room = [u8; 24];

impl Raw {
    /// Returns a text unchanged, or a number as digits.
    #[inline]
    pub(super) fn text<'a>(&'a self, texts: &'a [u8], room: &'a mut Room) -> &'a [u8] {
        let len = match self {
            Self::Short(bytes, len) => return bytes.get(..usize::from(*len)).unwrap_or_default(),
            Self::Long(begin, end) => {
                let text = texts.get(*begin as usize..*end as usize);
                return text.unwrap_or_default();
            }
            Self::Unsigned(value) => int::write_u64(*value, room),
            Self::Signed(value) => int::write_i64(*value, room),
            Self::Decimal(_) => 0,
        };
        room.get(..len).unwrap_or_default()
    }

    /// Returns the bytes of a text.
    #[inline]
    fn bytes<'a>(&'a self, texts: &'a [u8]) -> Option<&'a [u8]> {
        match self {
            Self::Short(bytes, len) => bytes.get(..usize::from(*len)),
            Self::Long(begin, end) => texts.get(*begin as usize..*end as usize),
            _ => None,
        }
    }

    /// Returns a whole number that is not negative.
    #[inline]
    pub(super) fn whole(&self, texts: &[u8]) -> Result<u64, Why> {
        match self {
            Self::Unsigned(value) => Ok(*value),
            Self::Signed(value) => u64::try_from(*value).map_err(|_| Why::Negative),
            Self::Decimal(_) => Err(Why::NoNumber),
            text => int::parse_u64(text.bytes(texts).unwrap_or_default()).ok_or(Why::NoNumber),
        }
    }

    /// Returns a whole number of at most `most`.
    #[inline]
    pub(super) fn at_most(&self, most: u64, texts: &[u8]) -> Result<u64, Why> {
        match self.whole(texts)? {
            value if value <= most => Ok(value),
            value => Err(Why::Above { value, most }),
        }
    }

    #[inline]
    fn decimal(&self, texts: &[u8]) -> Result<Decimal, Why> {
        match self {
            Self::Decimal(value) => Ok(*value),
            Self::Signed(value) => Ok(Decimal::new(*value, 0)),
            Self::Unsigned(value) => match i64::try_from(*value) {
                Ok(value) => Ok(Decimal::new(value, 0)),
                Err(_) => Err(Why::Large(*value)),
            },
            text => Decimal::parse(text.bytes(texts).unwrap_or_default()).ok_or(Why::NoNumber),
        }
    }

    #[inline]
    pub(super) fn price(&self, texts: &[u8]) -> Result<Price, Why> {
        Price::from_decimal(self.decimal(texts)?).map_err(Why::Price)
    }

    /// Returns a size in whole units.
    #[inline]
    pub(super) fn size(&self, texts: &[u8]) -> Result<i64, Why> {
        whole_size(self.decimal(texts)?)
    }

    /// Returns one character.
    #[inline]
    pub(super) fn char(&self, texts: &[u8]) -> Result<u8, Why> {
        match self {
            Self::Short([byte, ..], 1) if *byte < 128 => Ok(*byte),
            Self::Unsigned(digit @ 0..=9) => Ok(b'0' + *digit as u8),
            Self::Signed(digit @ 0..=9) => Ok(b'0' + *digit as u8),
            Self::Long(..) => match self.bytes(texts) {
                Some([byte]) if *byte < 128 => Ok(*byte),
                _ => Err(Why::NoChar),
            },
            _ => Err(Why::NoChar),
        }
    }

    #[inline]
    pub(super) fn security_id<'a>(&'a self, texts: &'a [u8]) -> Result<SecurityId<'a>, Why> {
        match self {
            Self::Unsigned(value) => Ok(SecurityId::Number(*value)),
            Self::Signed(value) => match u64::try_from(*value) {
                Ok(value) => Ok(SecurityId::Number(value)),
                Err(_) => Err(Why::Negative),
            },
            Self::Decimal(_) => Err(Why::NoNumber),
            text => Ok(SecurityId::parse(text.bytes(texts).unwrap_or_default())),
        }
    }

    #[inline]
    pub(super) fn id_source(&self, texts: &[u8]) -> Result<IdSource, Why> {
        let mut room = [0; 24];
        IdSource::parse(self.text(texts, &mut room)).ok_or(Why::LongSource)
    }

    /// Returns an identifying number. If `hashes`, a text that is not a number is hashed.
    #[inline]
    pub(super) fn number_of(&self, hashes: bool, texts: &[u8]) -> Result<u64, Why> {
        match self {
            Self::Unsigned(value) => Ok(*value),
            // Negative numbers keep their 64 bits.
            Self::Signed(value) => Ok(*value as u64),
            Self::Decimal(_) => Err(Why::NoNumber),
            text => number_of_text(text.bytes(texts).unwrap_or_default(), hashes),
        }
    }
}

/// Returns the number in a text, or its hash if `hashes`.
pub(super) fn number_of_text(text: &[u8], hashes: bool) -> Result<u64, Why> {
    match int::parse_u64(text) {
        Some(value) => Ok(value),
        None if hashes && !text.is_empty() => Ok(hash(text)),
        None => Err(Why::NoNumber),
    }
}

/// Returns a size in whole units.
#[inline(always)]
pub(super) fn whole_size(size: Decimal) -> Result<i64, Why> {
    let value = match size.exponent {
        0 => size.mantissa,
        exponent => whole_of(size.mantissa, exponent)?,
    };
    match value {
        i64::MAX => Err(Why::Large(value as u64)),
        value => Ok(value),
    }
}

/// Returns the FNV-1a with the highest bit set, which no feed's numbers reach.
fn hash(text: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    text.iter().fold(0xcbf2_9ce4_8422_2325, step) | 1 << 63
}

#[cold]
fn whole_of(mantissa: i64, exponent: i8) -> Result<i64, Why> {
    let value = Decimal::new(mantissa, exponent);
    if mantissa == 0 {
        return Ok(0);
    }
    let power = 10_i64.checked_pow(exponent.unsigned_abs().into());
    if exponent > 0 {
        let scaled = power.and_then(|power| mantissa.checked_mul(power));
        return scaled.ok_or(Why::SizeRange(value));
    }
    match power.filter(|power| mantissa % power == 0) {
        Some(power) => Ok(mantissa / power),
        None => Err(Why::Fraction(value)),
    }
}
