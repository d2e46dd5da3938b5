//! The layouts of DBN version 3: metadata and records, little-endian, without padding.

use super::publisher_id;
use crate::book::{Book, Side};
use crate::price::Price;

/// The version of the layouts.
pub(super) const VERSION: u8 = 3;
/// The bytes of a symbol, including the NUL.
pub(super) const SYMBOL: usize = 71;
/// The bytes of the name of a dataset.
pub(super) const DATASET: usize = 16;
/// The code of no schema, for records of several.
const NO_SCHEMA: u16 = u16::MAX;
/// The code of no symbology.
const NO_STYPE: u8 = u8::MAX;
/// The symbologies: the numbers of instruments, and their symbols.
const BY_NUMBER: u8 = 0;
const BY_SYMBOL: u8 = 1;
/// The value of an unknown time.
const NO_TIME: u64 = u64::MAX;
/// The bytes of the metadata after magic and length: fixed fields, and five empty lists of symbols.
const METADATA: u32 = 100 + 5 * 4;
/// The reserved bytes of the metadata.
const RESERVED: usize = 53;

/// The `rtype` of records. That of trades and levels is the number of levels.
pub(super) mod rtype {
    pub(in crate::dbn) const STATUS: u8 = 0x12;
    pub(in crate::dbn) const DEFINITION: u8 = 0x13;
    pub(in crate::dbn) const ERROR: u8 = 0x15;
    pub(in crate::dbn) const SYMBOL_MAPPING: u8 = 0x16;
    pub(in crate::dbn) const SYSTEM: u8 = 0x17;
    pub(in crate::dbn) const STATISTICS: u8 = 0x18;
    pub(in crate::dbn) const MBO: u8 = 0xa0;
}

/// The bits of `flags`.
pub(super) mod flag {
    pub(in crate::dbn) const LAST: u8 = 0x80;
    pub(in crate::dbn) const BAD_TS_RECV: u8 = 0x08;
    pub(in crate::dbn) const MAYBE_BAD_BOOK: u8 = 0x04;
}

/// The header of each record.
#[derive(Clone, Copy)]
pub(super) struct Header {
    /// The number of the feed, or 0 for none.
    pub(super) source: u16,
    pub(super) instrument: u32,
    pub(super) ts_event: u64,
}

/// Returns the exchange's time, or the time of arrival if it is unknown: stock clients take no time
/// that is undefined.
pub(super) const fn known_time(ts_event: u64, ts_recv: u64) -> u64 {
    match (ts_event, ts_recv) {
        (NO_TIME, 1..) => ts_recv,
        _ => ts_event,
    }
}

/// The fields that records of books and trades share.
#[derive(Clone, Copy)]
pub(super) struct Tick {
    pub(super) header: Header,
    pub(super) price: Price,
    pub(super) size: u32,
    pub(super) flags: u8,
    pub(super) action: u8,
    pub(super) side: u8,
    pub(super) ts_recv: u64,
    pub(super) sequence: u32,
}

/// A writer that appends numbers and texts in the form of DBN.
pub(super) trait Put {
    fn bytes(&mut self, bytes: &[u8]);

    fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_le_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_le_bytes());
    }

    fn i32(&mut self, value: i32) {
        self.bytes(&value.to_le_bytes());
    }

    fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    fn price(&mut self, price: Price) {
        self.i64(price.units());
    }

    fn zeros(&mut self, count: usize);

    /// Writes a text in `room` bytes, followed by at least one NUL. A text that does not fit is
    /// left empty.
    fn text(&mut self, text: &[u8], room: usize) -> Fits {
        let fits = text.len() < room && !text.contains(&0) && str::from_utf8(text).is_ok();
        let text = if fits { text } else { b"" };
        self.bytes(text);
        self.zeros(room - text.len());
        Fits(fits)
    }

    /// Writes the header of a record that is `bytes` long.
    fn header(&mut self, bytes: usize, rtype: u8, header: Header) {
        self.u8((bytes / 4) as u8);
        self.u8(rtype);
        self.u16(publisher_id(header.source));
        self.u32(header.instrument);
        self.u64(header.ts_event);
    }
}

/// Whether a text fitted.
#[must_use]
pub(super) struct Fits(pub(super) bool);

impl Put for Vec<u8> {
    fn bytes(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn zeros(&mut self, count: usize) {
        self.resize(self.len() + count, 0);
    }
}

/// Writes the metadata of a stream of records of any schema, whose symbols are in records of their
/// own.
pub(super) fn metadata(dataset: &str, start: u64, ts_out: bool, out: &mut Vec<u8>) -> Fits {
    out.bytes(b"DBN");
    out.u8(VERSION);
    out.u32(METADATA);
    let fits = out.text(dataset.as_bytes(), DATASET);
    out.u16(NO_SCHEMA);
    out.u64(start);
    out.u64(NO_TIME);
    // No limit.
    out.u64(0);
    out.u8(NO_STYPE);
    out.u8(BY_NUMBER);
    out.u8(ts_out.into());
    out.u16(SYMBOL as u16);
    out.zeros(RESERVED);
    // Length of a schema definition, symbols, partial, not found, mappings.
    out.zeros(5 * 4);
    fits
}

/// Writes a record by order: a change of an order, a trade, or the end of a book.
pub(super) fn mbo(tick: &Tick, order: u64, out: &mut Vec<u8>) {
    out.header(56, rtype::MBO, tick.header);
    out.u64(order);
    out.price(tick.price);
    out.u32(tick.size);
    out.u8(tick.flags);
    // The channel.
    out.u8(0);
    out.u8(tick.action);
    out.u8(tick.side);
    times(tick, out);
}

/// Writes the times of receiving and sending, and the number.
fn times(tick: &Tick, out: &mut Vec<u8>) {
    out.u64(tick.ts_recv);
    // The time of sending is not known.
    out.i32(0);
    out.u32(tick.sequence);
}

/// Writes a trade, or the fields before the levels of a book.
pub(super) fn trade(tick: &Tick, levels: u8, depth: u8, out: &mut Vec<u8>) {
    out.header(48 + 32 * usize::from(levels), levels, tick.header);
    out.price(tick.price);
    out.u32(tick.size);
    out.u8(tick.action);
    out.u8(tick.side);
    out.u8(tick.flags);
    out.u8(depth);
    times(tick, out);
}

/// A value that a record of levels cannot represent.
pub(super) struct NoRoom {
    pub(super) field: &'static str,
    pub(super) value: i128,
}

/// Writes the best levels of a book, or empty ones without a book.
pub(super) fn levels(book: Option<&Book>, count: u8, out: &mut Vec<u8>) -> Result<(), NoRoom> {
    let mut sides = Side::BOTH.map(|side| book.map(|book| book.depth(side)));
    for _ in 0..count {
        let [bid, offer] = sides.each_mut().map(|side| side.as_mut()?.next());
        for level in [bid, offer] {
            out.price(level.map_or(Price::UNDEFINED, |level| level.price));
        }
        for (level, field) in [(bid, "bid_sz"), (offer, "ask_sz")] {
            let size = level.map_or(0, |level| level.size);
            out.u32(unsigned(field, size.into())?);
        }
        for (level, field) in [(bid, "bid_ct"), (offer, "ask_ct")] {
            let orders = level.map_or(0, |level| level.orders);
            out.u32(unsigned(field, orders.into())?);
        }
    }
    Ok(())
}

/// Returns a size or a number of orders, where the largest number stands for none.
pub(super) fn unsigned(field: &'static str, value: i128) -> Result<u32, NoRoom> {
    u32::try_from(value)
        .ok()
        .filter(|number| *number != u32::MAX)
        .ok_or(NoRoom { field, value })
}

/// Writes the record of an instrument's symbol.
pub(super) fn symbol_mapping(header: Header, symbol: &[u8], out: &mut Vec<u8>) -> Fits {
    mapping(header, false, symbol, out)
}

/// Writes the record of the symbol of an instrument that was requested by its symbol, or by its
/// number.
pub(super) fn mapping(header: Header, by_symbol: bool, symbol: &[u8], out: &mut Vec<u8>) -> Fits {
    out.header(176, rtype::SYMBOL_MAPPING, header);
    if by_symbol {
        out.u8(BY_SYMBOL);
        let Fits(_) = out.text(symbol, SYMBOL);
    } else {
        out.u8(BY_NUMBER);
        let number = header.instrument.to_string();
        let Fits(_) = out.text(number.as_bytes(), SYMBOL);
    }
    out.u8(BY_SYMBOL);
    let fits = out.text(symbol, SYMBOL);
    out.u64(NO_TIME);
    out.u64(NO_TIME);
    fits
}

/// The trades of an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bar {
    pub(super) open: Price,
    pub(super) high: Price,
    pub(super) low: Price,
    pub(super) close: Price,
    pub(super) volume: u64,
}

pub(super) fn bar(header: Header, rtype: u8, bar: &Bar, out: &mut Vec<u8>) {
    out.header(56, rtype, header);
    for price in [bar.open, bar.high, bar.low, bar.close] {
        out.price(price);
    }
    out.u64(bar.volume);
}

/// Writes the record of the best level at the end of an interval, and of the last trade.
pub(super) fn quote(
    tick: &Tick,
    rtype: u8,
    book: Option<&Book>,
    out: &mut Vec<u8>,
) -> Result<(), NoRoom> {
    out.header(80, rtype, tick.header);
    out.price(tick.price);
    out.u32(tick.size);
    out.u8(0);
    out.u8(tick.side);
    out.u8(tick.flags);
    out.u8(0);
    out.u64(tick.ts_recv);
    out.zeros(4);
    out.u32(tick.sequence);
    levels(book, 1, out)
}

/// Returns the flag of DBN for yes, no, or unknown.
const fn tristate(is: Option<bool>) -> u8 {
    match is {
        Some(true) => b'Y',
        Some(false) => b'N',
        None => b'~',
    }
}

/// Writes a trading status.
pub(super) fn status(
    header: Header,
    ts_recv: u64,
    (action, is_trading): (u16, Option<bool>),
    out: &mut Vec<u8>,
) {
    out.header(40, rtype::STATUS, header);
    out.u64(ts_recv);
    out.u16(action);
    // Reason and trading event are not known.
    out.u16(0);
    out.u16(0);
    out.u8(tristate(is_trading));
    out.u8(tristate(None));
    out.u8(tristate(None));
    out.zeros(7);
}

/// A value of the session.
pub(super) struct Statistic {
    pub(super) price: Price,
    pub(super) quantity: i64,
    pub(super) sequence: u32,
    pub(super) stat_type: u16,
    pub(super) stat_flags: u8,
    pub(super) is_deleted: bool,
}

pub(super) fn statistic(header: Header, ts_recv: u64, of: &Statistic, out: &mut Vec<u8>) {
    out.header(80, rtype::STATISTICS, header);
    out.u64(ts_recv);
    out.u64(NO_TIME);
    out.price(of.price);
    out.i64(of.quantity);
    out.u32(of.sequence);
    out.i32(0);
    out.u16(of.stat_type);
    // The channel.
    out.u16(0);
    out.u8(1 + u8::from(of.is_deleted));
    out.u8(of.stat_flags);
    out.zeros(18);
}
