//! The metadata at the start of a stream.

use super::bytes::Bytes;
use super::{NEWEST, Wrong};
use fanfare_wire::UtcTimestamp;

/// The bytes of a symbol of version 1, with its NUL.
pub(super) const SYMBOL_V1: usize = 22;
/// The bytes before the metadata: `DBN`, the version and the length.
const PREFIX: usize = 8;
/// The bytes of the fixed part.
const FIXED: usize = 100;
/// The longest metadata, which are those of a million symbols.
const MOST: usize = 256 << 20;
/// The codes of symbologies.
const BY_NUMBER: u8 = 0;
const BY_SYMBOL: u8 = 1;

/// The parts of the metadata that are kept.
#[derive(Debug)]
pub(super) struct Metadata {
    pub(super) version: u8,
    /// The symbols of each `instrument_id`, with their days.
    pub(super) symbols: Vec<Named>,
}

/// The symbol of an `instrument_id` from a day on, and before another one.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) number: u32,
    pub(super) symbol: Vec<u8>,
    /// The midnights that begin these days, in nanoseconds since 1970.
    pub(super) from: u64,
    pub(super) to: u64,
}

impl Metadata {
    /// Parses the metadata, and returns their length, or `None` if they are incomplete.
    pub(super) fn read(bytes: &[u8]) -> Result<Option<(Self, usize)>, Wrong> {
        let magic = bytes.get(..3).unwrap_or(bytes);
        if !b"DBN".starts_with(magic) {
            return Err(Wrong::NotDbn);
        }
        let Some(version) = bytes.get(3).copied() else {
            return Ok(None);
        };
        if !(1..=NEWEST).contains(&version) {
            return Err(Wrong::Version(version));
        }
        if bytes.len() < PREFIX {
            return Ok(None);
        }
        let len = Bytes(bytes).u32(4) as usize;
        if !(FIXED..=MOST).contains(&len) {
            return Err(Wrong::Metadata("the length is out of range"));
        }
        let Some(body) = bytes.get(PREFIX..PREFIX + len) else {
            return Ok(None);
        };
        let symbols = symbols(version, Bytes(body)).ok_or(Wrong::Metadata(
            "the lists of symbols exceed the length of the metadata",
        ))?;
        Ok(Some((Self { version, symbols }, PREFIX + len)))
    }
}

/// Returns the symbols of the mappings, in either direction.
fn symbols(version: u8, body: Bytes<'_>) -> Option<Vec<Named>> {
    // Version 1 has the number of records before the symbologies.
    let (stypes, room) = match version {
        1 => (50, SYMBOL_V1),
        _ => (42, usize::from(body.u16(45))),
    };
    let (stype_in, stype_out) = (body.u8(stypes), body.u8(stypes + 1));
    let mut rest = Lists(body.0.get(FIXED..)?);
    let definition = rest.count()?;
    rest.skip(definition)?;
    // Symbols that were requested, found in part, and not found.
    for _ in 0..3 {
        let count = rest.count()?;
        rest.skip(count.checked_mul(room)?)?;
    }
    let mut all = Vec::new();
    for _ in 0..rest.count()? {
        let from = rest.text(room)?;
        for _ in 0..rest.count()? {
            let days = Bytes(rest.skip(8)?);
            let to = rest.text(room)?;
            let pair = match (stype_in, stype_out) {
                (_, BY_NUMBER) => number(to).zip(Some(from)),
                (BY_NUMBER, BY_SYMBOL) => number(from).zip(Some(to)),
                _ => None,
            };
            all.extend(pair.map(|(number, symbol)| Named {
                number,
                symbol: symbol.to_vec(),
                from: midnight(days.u32(0)).unwrap_or(0),
                to: midnight(days.u32(4)).unwrap_or(u64::MAX),
            }));
        }
    }
    Some(all)
}

fn number(text: &[u8]) -> Option<u32> {
    str::from_utf8(text).ok()?.parse().ok()
}

/// Returns the beginning of a day that is written as YYYYMMDD, in nanoseconds since 1970.
fn midnight(day: u32) -> Option<u64> {
    let time = UtcTimestamp::midnight(day / 10_000, day / 100 % 100, day % 100)?;
    u64::try_from(time.nanos()).ok()
}

/// A sequence of lists.
struct Lists<'a>(&'a [u8]);

impl<'a> Lists<'a> {
    fn skip(&mut self, count: usize) -> Option<&'a [u8]> {
        let (skipped, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(skipped)
    }

    fn count(&mut self) -> Option<usize> {
        self.skip(4).map(|count| Bytes(count).u32(0) as usize)
    }

    fn text(&mut self, room: usize) -> Option<&'a [u8]> {
        self.skip(room).map(|text| Bytes(text).text(0, room))
    }
}
