//! Definitions of instruments, of all versions.

use super::bytes::Bytes;
use crate::dbn::wire::SYMBOL;
use crate::instruments::{Definition, Name, SecurityId};

/// The positions of the fields of a version, in bytes.
struct Layout {
    strike: usize,
    raw_id: usize,
    /// The bytes of `raw_instrument_id`.
    raw_id_bytes: usize,
    depth: usize,
    segment: usize,
    year: usize,
    currency: usize,
    raw_symbol: usize,
    symbol: usize,
    exchange: usize,
    cfi: usize,
    security_type: usize,
    underlying: usize,
    month: usize,
}

const V1: Layout = Layout {
    strike: 328,
    raw_id: 120,
    raw_id_bytes: 4,
    depth: 128,
    segment: 132,
    year: 180,
    currency: 186,
    raw_symbol: 200,
    symbol: super::metadata::SYMBOL_V1,
    exchange: 243,
    cfi: 255,
    security_type: 262,
    underlying: 300,
    month: 350,
};

const V2: Layout = Layout {
    strike: 112,
    raw_id: 128,
    depth: 136,
    segment: 140,
    symbol: SYMBOL,
    exchange: 292,
    cfi: 304,
    security_type: 311,
    underlying: 349,
    month: 383,
    ..V1
};

const V3: Layout = Layout {
    strike: 104,
    raw_id: 112,
    raw_id_bytes: 8,
    depth: 148,
    segment: 152,
    year: 214,
    currency: 224,
    raw_symbol: 238,
    symbol: SYMBOL,
    exchange: 330,
    cfi: 346,
    security_type: 353,
    underlying: 391,
    month: 494,
};

/// Returns the layout of a version.
const fn layout(version: u8) -> Layout {
    match version {
        1 => V1,
        2 => V2,
        _ => V3,
    }
}

/// Returns `security_update_action`, which is in front of the month of maturity: `A` adds an
/// instrument, and `D` ends it.
pub(super) fn action(record: Bytes<'_>, version: u8) -> u8 {
    record.u8(layout(version).month - 1)
}

/// Parses a definition. `room` is a buffer for texts that are made of numbers.
pub(super) fn read<'a>(record: Bytes<'a>, version: u8, room: &'a mut Vec<u8>) -> Definition<'a> {
    let at = layout(version);
    let id = match at.raw_id_bytes {
        4 => record.u32(at.raw_id).into(),
        _ => record.u64(at.raw_id),
    };
    let date = maturity(record, &at);
    room.extend_from_slice(date.as_bytes());
    let segment = record.u32(at.segment);
    if segment != u32::MAX {
        room.extend_from_slice(segment.to_string().as_bytes());
    }
    let (maturity_month, segment) = room.split_at(date.len());
    Definition {
        name: Name {
            symbol: record.text(at.raw_symbol, at.symbol),
            id: match id {
                // The undefined values of all versions.
                0 | 0x7fff_ffff | 0xffff_ffff | u64::MAX => SecurityId::None,
                id => SecurityId::Number(id),
            },
            ..Name::default()
        },
        security_type: record.text(at.security_type, 7),
        cfi: record.text(at.cfi, 7),
        currency: record.text(at.currency, 4),
        market: record.text(at.exchange, 5),
        segment,
        underlying: record.text(at.underlying, 21),
        maturity_month,
        tick: record.price(24),
        multiplier: record.price(if version < 3 { 88 } else { 80 }),
        strike: record.price(at.strike),
        low_limit: record.price(64),
        high_limit: record.price(56),
        maturity: record.u64(40),
        depth: match record.u32(at.depth).cast_signed() {
            i32::MAX => 0,
            depth => u16::try_from(depth).unwrap_or(0),
        },
        ..Definition::default()
    }
}

/// Returns MaturityMonthYear(200): year and month, with the day or the week if present.
fn maturity(record: Bytes<'_>, at: &Layout) -> String {
    let year = record.u16(at.year);
    let [month, day, week] = [0, 1, 2].map(|part| record.u8(at.month + part));
    if year == u16::MAX || !(1..=12).contains(&month) {
        return String::new();
    }
    let mut text = format!("{year:04}{month:02}");
    match (day, week) {
        (1..=31, _) => text += &format!("{day:02}"),
        (_, 1..=5) => text += &format!("w{week}"),
        _ => {}
    }
    text
}
