//! An instrument in the form of the table: numbers in a record, texts elsewhere.

use super::definition::{Definition, IdSource, Name, SecurityId, TEXTS};
use super::texts::{Span, Texts};
use crate::price::Price;

/// The records of a piece. The table grows by pieces, so that no record moves.
const PIECE: usize = 4096;

/// A definition without its texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    /// SecurityID(48), if it is a number.
    number: u64,
    tick: Price,
    multiplier: Price,
    strike: Price,
    low_limit: Price,
    high_limit: Price,
    maturity: u64,
    /// The places in the channel of the last definition, and of the last status.
    pub(super) defined_at: u64,
    pub(super) status_at: u64,
    pub(super) texts: Span,
    pub(super) revision: u32,
    /// When it was closed, in seconds since 1970, rounded up; 0 if the place of that is not known.
    pub(super) closed_at: u32,
    source: IdSource,
    pub(super) status: u16,
    /// The status in the last definition, 0 if none had one.
    pub(super) defined_status: u16,
    depth: u16,
    book_type: u8,
    has_number: bool,
    /// Whether it is no longer traded.
    pub(super) is_closed: bool,
}

const _: () = assert!(size_of::<Record>() <= 104);

impl Record {
    pub(super) const fn new(of: &Definition<'_>, texts: Span) -> Self {
        let number = match of.name.id {
            SecurityId::Number(number) => Some(number),
            _ => None,
        };
        Self {
            number: match number {
                Some(number) => number,
                None => 0,
            },
            has_number: number.is_some(),
            tick: of.tick,
            multiplier: of.multiplier,
            strike: of.strike,
            low_limit: of.low_limit,
            high_limit: of.high_limit,
            maturity: of.maturity,
            defined_at: 0,
            status_at: 0,
            texts,
            revision: 0,
            closed_at: 0,
            source: of.name.source,
            status: 0,
            defined_status: 0,
            depth: of.depth,
            book_type: of.book_type,
            is_closed: false,
        }
    }

    #[inline]
    pub(super) fn has_id(&self, id: SecurityId<'_>, source: IdSource, texts: &Texts) -> bool {
        if self.source != source {
            return false;
        }
        match id {
            SecurityId::Number(number) => self.has_number && self.number == number,
            id => self.id(texts) == id,
        }
    }

    pub(super) fn id<'t>(&self, texts: &'t Texts) -> SecurityId<'t> {
        if self.has_number {
            return SecurityId::Number(self.number);
        }
        match Parts(texts.get(self.texts)).nth(1) {
            None | Some(b"") => SecurityId::None,
            Some(text) => SecurityId::Text(text),
        }
    }

    pub(super) fn symbol<'t>(&self, texts: &'t Texts) -> &'t [u8] {
        Parts(texts.get(self.texts)).next().unwrap_or_default()
    }

    pub(super) fn definition<'t>(&self, texts: &'t Texts) -> Definition<'t> {
        let mut parts = Parts(texts.get(self.texts));
        let mut next = || parts.next().unwrap_or_default();
        let symbol = next();
        let _ = next();
        Definition {
            name: Name {
                symbol,
                id: self.id(texts),
                source: self.source,
            },
            description: next(),
            security_type: next(),
            cfi: next(),
            currency: next(),
            market: next(),
            segment: next(),
            underlying: next(),
            maturity_month: next(),
            tick: self.tick,
            multiplier: self.multiplier,
            strike: self.strike,
            low_limit: self.low_limit,
            high_limit: self.high_limit,
            maturity: self.maturity,
            depth: self.depth,
            book_type: self.book_type,
        }
    }
}

/// The marker of a length of 255 or more, which two bytes follow.
const LONG: u8 = u8::MAX;

/// Writes the texts of a definition, each preceded by its length. Empty ones at the end are left
/// out.
pub(super) fn write_texts(of: &Definition<'_>, out: &mut Vec<u8>) {
    out.clear();
    let texts: [&[u8]; TEXTS] = of.texts();
    let count = texts.iter().rposition(|text| !text.is_empty());
    for text in texts.iter().take(count.map_or(0, |last| last + 1)) {
        match u8::try_from(text.len()) {
            Ok(len) if len < LONG => out.push(len),
            _ => {
                out.push(LONG);
                out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            }
        }
        out.extend_from_slice(text);
    }
}

/// The texts in the form of [`write_texts`].
pub(super) struct Parts<'t>(pub(super) &'t [u8]);

impl<'t> Iterator for Parts<'t> {
    type Item = &'t [u8];

    #[inline]
    fn next(&mut self) -> Option<&'t [u8]> {
        let (&len, mut rest) = self.0.split_first()?;
        let mut len = usize::from(len);
        if len == usize::from(LONG) {
            let (bytes, behind) = rest.split_first_chunk::<2>()?;
            len = u16::from_le_bytes(*bytes).into();
            rest = behind;
        }
        let (text, rest) = rest.split_at_checked(len)?;
        self.0 = rest;
        Some(text)
    }
}

/// Records in pieces.
#[derive(Debug, Default)]
pub(super) struct Records {
    pieces: Vec<Vec<Record>>,
    len: usize,
}

impl Records {
    pub(super) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, number: u32) -> Option<&Record> {
        let number = number as usize;
        self.pieces.get(number / PIECE)?.get(number % PIECE)
    }

    pub(super) fn set(&mut self, number: u32, record: Record) {
        let number = number as usize;
        let piece = self.pieces.get_mut(number / PIECE);
        if let Some(place) = piece.and_then(|piece| piece.get_mut(number % PIECE)) {
            *place = record;
        }
    }

    pub(super) fn push(&mut self, record: Record) {
        if self.len.is_multiple_of(PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push(record);
            self.len += 1;
        }
    }
}
