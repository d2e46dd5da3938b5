//! The encoding of an instrument, for readers of a ring with a table of their own.

use super::definition::{Definition, IdSource, Instrument, Name, SecurityId};
use super::record::{Parts, write_texts};
use crate::event::InstrumentId;
use crate::price::Price;
use core::ops::Range;

/// The bytes before the texts.
const FIXED: usize = 80;

/// The place of the mark in these bytes.
const MARK: Range<usize> = 12..16;

impl Instrument<'_> {
    /// Encodes the instrument into `out`, which is emptied first. Allocates only beyond the
    /// capacity of `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let of = &self.definition;
        write_texts(of, out);
        let texts = out.len();
        out.resize(texts + FIXED, 0);
        out.rotate_right(FIXED);
        let number = match of.name.id {
            SecurityId::Number(number) => Some(number),
            _ => None,
        };
        let small = u64::from(self.status)
            | u64::from(of.depth) << 16
            | u64::from(of.book_type) << 32
            | u64::from(number.is_some()) << 40;
        let half = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        let words = [
            half(self.instrument.0, self.revision),
            of.name.source.bits().into(),
            small,
            number.unwrap_or_default(),
            of.tick.units().cast_unsigned(),
            of.multiplier.units().cast_unsigned(),
            of.strike.units().cast_unsigned(),
            of.low_limit.units().cast_unsigned(),
            of.high_limit.units().cast_unsigned(),
            of.maturity,
        ];
        let (places, _) = out.as_chunks_mut::<8>();
        for (place, word) in places.iter_mut().zip(words) {
            *place = word.to_le_bytes();
        }
    }

    /// Sets the mark of an encoded instrument: a number for the reader of the bytes, 0 at first,
    /// which is no part of the instrument.
    pub(crate) fn set_mark(bytes: &mut [u8], mark: u32) {
        if let Some(place) = bytes.get_mut(MARK) {
            place.copy_from_slice(&mark.to_le_bytes());
        }
    }

    /// Returns the mark of an encoded instrument, or 0 if the bytes are invalid.
    pub(crate) fn mark(bytes: &[u8]) -> u32 {
        let mark = bytes.get(MARK).and_then(|mark| mark.try_into().ok());
        mark.map_or(0, u32::from_le_bytes)
    }
}

impl<'a> Instrument<'a> {
    /// Returns the instrument that [`Instrument::write`] wrote, or `None` if the bytes are invalid.
    /// Allocates nothing.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let (fixed, texts) = bytes.split_at_checked(FIXED)?;
        let (words, _) = fixed.as_chunks::<8>();
        let word = |at: usize| words.get(at).map(|word| u64::from_le_bytes(*word));
        let price = |at: usize| Some(Price::from_units(word(at)?.cast_signed()));
        let (numbers, small) = (word(0)?, word(2)?);
        let mut parts = Parts(texts);
        let mut next = || parts.next().unwrap_or_default();
        let (symbol, id) = (next(), next());
        let id = match (small >> 40 & 1 == 1, id) {
            (true, _) => SecurityId::Number(word(3)?),
            (false, b"") => SecurityId::None,
            (false, text) => SecurityId::Text(text),
        };
        let name = Name {
            symbol,
            id,
            source: IdSource::of_bits(word(1)? as u32),
        };
        let definition = Definition {
            name,
            description: next(),
            security_type: next(),
            cfi: next(),
            currency: next(),
            market: next(),
            segment: next(),
            underlying: next(),
            maturity_month: next(),
            tick: price(4)?,
            multiplier: price(5)?,
            strike: price(6)?,
            low_limit: price(7)?,
            high_limit: price(8)?,
            maturity: word(9)?,
            depth: (small >> 16) as u16,
            book_type: (small >> 32) as u8,
        };
        Some(Self {
            instrument: InstrumentId(numbers as u32),
            definition,
            revision: (numbers >> 32) as u32,
            status: small as u16,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all_of_it<'a>(id: SecurityId<'a>, long: &'a [u8]) -> Instrument<'a> {
        let name = Name {
            symbol: b"RIU3",
            id,
            source: IdSource::parse(b"8").unwrap(),
        };
        Instrument {
            instrument: InstrumentId(7),
            definition: Definition {
                name,
                description: long,
                currency: b"RUB",
                maturity_month: b"202309",
                tick: Price::from_units(10_000_000_000),
                low_limit: Price::from_units(-1),
                maturity: 1_694_732_400_000_000_000,
                depth: 5,
                book_type: 2,
                ..Definition::default()
            },
            revision: 3,
            status: 17,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let long = vec![b'x'; 4000];
        let mut bytes = vec![1, 2, 3];
        for id in [
            SecurityId::None,
            SecurityId::Number(0),
            SecurityId::Text(b"XS1"),
        ] {
            let instrument = all_of_it(id, &long);
            instrument.write(&mut bytes);
            assert_eq!(Instrument::mark(&bytes), 0);
            for mark in [u32::MAX, 7] {
                Instrument::set_mark(&mut bytes, mark);
                assert_eq!(Instrument::mark(&bytes), mark);
                assert_eq!(Instrument::read(&bytes), Some(instrument));
            }
        }
    }

    #[test]
    fn anything_else_is_read_without_harm() {
        let mut bytes = Vec::new();
        all_of_it(SecurityId::Number(1), b"text").write(&mut bytes);
        for len in 0..bytes.len() {
            let read = Instrument::read(&bytes[..len]);
            assert_eq!(read.is_some(), len >= FIXED);
            let mut short = bytes[..len].to_vec();
            Instrument::set_mark(&mut short, 7);
            assert!(matches!(Instrument::mark(&short), 0 | 7));
        }
        assert!(Instrument::read(&[0xff; 300]).is_some());
    }
}
