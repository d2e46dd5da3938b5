//! The conversion of definitions of instruments to DBN's.

use super::wire::{Header, Put, SYMBOL, rtype};
use crate::instruments::{Definition, SecurityId};
use crate::price::Price;

/// The value of an unknown price, and of fields that Fanfare's instruments do not have.
const NO_PRICE: Price = Price::UNDEFINED;
const NO_I32: i32 = i32::MAX;
const NO_U32: u32 = u32::MAX;

/// Appends the definition of an instrument, with its `security_update_action`. `lost` is called
/// with each field whose value DBN cannot represent, which is then empty.
pub(super) fn write(
    header: Header,
    ts_recv: u64,
    (of, action): (&Definition<'_>, u8),
    lost: &mut impl FnMut(&'static str),
    out: &mut Vec<u8>,
) {
    out.header(520, rtype::DEFINITION, header);
    out.u64(ts_recv);
    out.price(of.tick);
    // display_factor
    out.price(NO_PRICE);
    // expiration, activation
    out.u64(of.maturity);
    out.u64(u64::MAX);
    out.price(of.high_limit);
    out.price(of.low_limit);
    // max_price_variation
    out.price(NO_PRICE);
    // unit_of_measure_qty
    out.price(of.multiplier);
    // min_price_increment_amount, price_ratio
    out.price(NO_PRICE);
    out.price(NO_PRICE);
    out.price(of.strike);
    out.u64(match of.name.id {
        SecurityId::Number(number) => number,
        _ => 0,
    });
    // leg_price, leg_delta
    out.price(NO_PRICE);
    out.price(NO_PRICE);
    numbers(of, lost, out);
    texts(of, lost, out);
    marks(of, action, out);
}

/// Writes the fields of 32 and 16 bits.
fn numbers(of: &Definition<'_>, lost: &mut impl FnMut(&'static str), out: &mut Vec<u8>) {
    // inst_attrib_value, underlying_id, market_depth_implied
    out.i32(NO_I32);
    out.u32(0);
    out.i32(NO_I32);
    out.i32(match of.depth {
        0 => NO_I32,
        depth => depth.into(),
    });
    out.u32(segment(of.segment).unwrap_or_else(|| {
        lost("market_segment_id");
        NO_U32
    }));
    // max_trade_vol, min_lot_size, _block, _round_lot, min_trade_vol
    out.u32(NO_U32);
    (0..3).for_each(|_| out.i32(NO_I32));
    out.u32(NO_U32);
    // contract_multiplier, decay_quantity, original_contract_size
    (0..3).for_each(|_| out.i32(NO_I32));
    // leg_instrument_id, four parts of ratios, leg_underlying_id
    out.zeros(6 * 4);
    // appl_id, maturity_year, decay_start_date, channel_id, leg_count, leg_index
    out.u16(i16::MAX.cast_unsigned());
    out.u16(maturity(of).0);
    out.u16(u16::MAX);
    out.u16(u16::MAX);
    out.u16(0);
    out.u16(0);
}

/// Returns MarketSegmentID(1300) if it is a number, and `None` otherwise.
fn segment(text: &[u8]) -> Option<u32> {
    match text {
        b"" => Some(NO_U32),
        text => str::from_utf8(text).ok()?.parse().ok(),
    }
}

/// Returns year and month of MaturityMonthYear(200), and day and week (`w1` to `w5`) if present.
fn maturity(of: &Definition<'_>) -> (u16, u8, u8, u8) {
    const NONE: (u16, u8, u8, u8) = (u16::MAX, u8::MAX, u8::MAX, u8::MAX);
    let text = str::from_utf8(of.maturity_month).unwrap_or_default();
    let part = |at: core::ops::Range<usize>| text.get(at)?.parse::<u16>().ok();
    let (Some(year), Some(month)) = (part(0..4), part(4..6)) else {
        return NONE;
    };
    let small = |part: Option<u16>| part.map_or(0, |part| part as u8);
    let week = text.get(6..7) == Some("w");
    let (day, week) = match week {
        true => (0, small(part(7..8))),
        false => (small(part(6..8)), 0),
    };
    (year, month as u8, day, week)
}

fn texts(of: &Definition<'_>, lost: &mut impl FnMut(&'static str), out: &mut Vec<u8>) {
    let texts: [(&'static str, &[u8], usize); 13] = [
        ("currency", of.currency, 4),
        ("settl_currency", b"", 4),
        ("secsubtype", b"", 6),
        ("raw_symbol", of.name.symbol, SYMBOL),
        ("group", b"", 21),
        ("exchange", of.market, 5),
        ("asset", b"", 11),
        ("cfi", of.cfi, 7),
        ("security_type", of.security_type, 7),
        ("unit_of_measure", b"", 31),
        ("underlying", of.underlying, 21),
        ("strike_price_currency", b"", 4),
        ("leg_raw_symbol", b"", SYMBOL),
    ];
    for (field, text, room) in texts {
        let fits = out.text(text, room);
        if !fits.0 {
            lost(field);
        }
    }
}

/// Writes the fields of one character or byte.
fn marks(of: &Definition<'_>, action: u8, out: &mut Vec<u8>) {
    let (_, month, day, week) = maturity(of);
    out.u8(class(of));
    // match_algorithm: undefined
    out.u8(b' ');
    // main_fraction, price_display_format, sub_fraction, underlying_product
    (0..4).for_each(|_| out.u8(u8::MAX));
    out.u8(action);
    out.u8(month);
    out.u8(day);
    out.u8(week);
    // user_defined_instrument
    out.u8(b'N');
    // contract_multiplier_unit, flow_schedule_type
    out.u8(i8::MAX.cast_unsigned());
    out.u8(i8::MAX.cast_unsigned());
    // tick_rule, leg_instrument_class, leg_side
    out.u8(u8::MAX);
    out.u8(0);
    out.u8(b'N');
    out.zeros(17);
}

/// Returns `instrument_class` by CFICode(461) (ISO 10962), or by SecurityType(167), or 0 if neither
/// is known.
fn class(of: &Definition<'_>) -> u8 {
    match (of.cfi, of.security_type) {
        ([b'E', ..], _) => b'K',
        ([b'D', ..], _) => b'B',
        ([b'F', ..], _) => b'F',
        ([b'O', b'C', ..], _) => b'C',
        ([b'O', b'P', ..], _) => b'P',
        ([b'I', b'F', ..], _) => b'X',
        ([b'I', b'T', ..], _) => b'Y',
        ([b'T', b'I', ..], _) => b'I',
        (_, b"FUT") => b'F',
        (_, b"CS" | b"PS" | b"ETF") => b'K',
        (_, b"FXSPOT") => b'X',
        (_, b"INDEX") => b'I',
        _ => 0,
    }
}
