//! The conversion of records of DBN, versions 1 to 3, to events.
//!
//! An event has the fields of its record, and no others. [`FromDbn`] follows the levels and orders
//! of each instrument, because a record has the levels after a change, and the size that was
//! cancelled, whereas events have the change, and the remaining size. A book begins with a Clear,
//! as that of a plant does: one of levels with its first record, one of orders with the first that
//! is a clear or of a snapshot.

mod book;
mod bytes;
mod dated;
mod definition;
mod metadata;

use self::book::{OfBook, Seen};
use self::bytes::Bytes;
use super::codes;
use super::wire::{flag, rtype};
use crate::book::BookKind;
use crate::event::{Action, Event, Flags, InstrumentId, Kind, entry};
use crate::instruments::{Change, Instruments, Name, Refused, SecurityId};
use crate::price::Price;
use crate::state;
use core::fmt;
use dated::{ByDay, Dated};
use fanfare_feed::recovery::{Lack, State};
use metadata::Metadata;
use std::collections::HashMap;

/// The newest version that is read.
pub const NEWEST: u8 = super::wire::VERSION;

/// The bytes of the header of a record.
const HEADER: usize = 16;

/// A fault of a stream of DBN, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromDbnError {
    /// The byte, from 0, at which the metadata or the record begins.
    pub at: u64,
    /// The fault.
    pub why: Wrong,
}

/// A fault of a stream of DBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    /// The stream does not begin with `DBN`.
    NotDbn,
    /// The version is not supported.
    Version(u8),
    /// The metadata are invalid, for this reason.
    Metadata(&'static str),
    /// A record has fewer bytes than its header or its kind: the kind, the bytes, and the least of
    /// its kind.
    Short(u8, usize, usize),
    /// The stream ends within the metadata or a record, of which it has this many bytes.
    Cut(usize),
    /// The table of instruments refuses another one.
    Instrument(Refused),
}

impl fmt::Display for FromDbnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {}: ", self.at)?;
        match self.why {
            Wrong::NotDbn => {
                f.write_str("not DBN: the file does not begin with `DBN` and a version")
            }
            Wrong::Version(version) => {
                write!(
                    f,
                    "unsupported version {version} of DBN, expected 1 to {NEWEST}"
                )
            }
            Wrong::Metadata(why) => write!(f, "the metadata are damaged: {why}"),
            Wrong::Short(kind, has, least) => write!(
                f,
                "the record is damaged: type 0x{kind:02x} needs at least {least} bytes, found {has}"
            ),
            Wrong::Cut(has) => write!(
                f,
                "the file is truncated: {has} bytes of an incomplete record or header at the end"
            ),
            Wrong::Instrument(why) => write!(f, "an instrument is refused: {why}"),
        }
    }
}

impl core::error::Error for FromDbnError {}

/// The counts of what was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FromDbnCounts {
    /// Records of all kinds.
    pub records: u64,
    /// Bars, which are made of trades.
    pub bars: u64,
    /// Messages of the gateway that recorded the stream, such as errors and notices.
    pub messages: u64,
    /// Imbalances of auctions, consolidated quotes, and records of unknown kinds.
    pub other: u64,
    /// Statuses and values that no event can express.
    pub unknown: u64,
}

impl FromDbnCounts {
    /// Returns the counts of records that became no events, with their kinds.
    pub const fn left_out(&self) -> [(&'static str, u64); 4] {
        [
            ("bars", self.bars),
            ("messages of a gateway", self.messages),
            ("records of other kinds", self.other),
            ("statuses or values that no event has", self.unknown),
        ]
    }
}

/// A converter of a stream of DBN to events. See the module's text.
///
/// Instruments are numbered in the order of their appearance. Allocates for instruments, levels and
/// orders.
#[derive(Debug)]
pub struct FromDbn {
    source: u16,
    metadata: Option<Metadata>,
    /// The position of the next record.
    at: u64,
    /// The instruments by `instrument_id`.
    numbers: HashMap<u32, InstrumentId>,
    /// The instruments of each day, for numbers that stand for several.
    days: ByDay,
    seen: Vec<Seen>,
    /// The last event, which is held back because a record without a change may end its message.
    held: Option<Event>,
    /// The events of the last record.
    new: Vec<Event>,
    out: Vec<Event>,
    next: u64,
    counts: FromDbnCounts,
}

/// The header of a record, and the fields that most records have.
#[derive(Clone, Copy)]
struct Head {
    rtype: u8,
    instrument: u32,
    ts_event: u64,
}

impl FromDbn {
    /// Creates a converter of a stream from its beginning, as the feed `source` of the plant.
    pub fn new(source: u16) -> Self {
        Self {
            source,
            metadata: None,
            at: 0,
            numbers: HashMap::new(),
            days: ByDay::default(),
            seen: Vec::new(),
            held: None,
            new: Vec::new(),
            out: Vec::new(),
            next: 1,
            counts: FromDbnCounts::default(),
        }
    }

    /// Returns the events of the last call of [`Self::read`] or [`Self::finish`], with numbers from
    /// 1 on.
    pub fn events(&self) -> &[Event] {
        &self.out
    }

    /// Returns the kind of an instrument's book, once a record of it was read.
    pub fn book_kind(&self, instrument: InstrumentId) -> Option<BookKind> {
        self.seen.get(instrument.0 as usize)?.kind
    }

    /// Returns the counters of what was read so far.
    pub const fn counts(&self) -> FromDbnCounts {
        self.counts
    }

    /// Returns the position of the next record, or of the metadata, in bytes from the beginning.
    pub const fn position(&self) -> u64 {
        self.at
    }

    /// Returns the version of the stream, once its metadata have been read.
    pub fn version(&self) -> Option<u8> {
        self.metadata.as_ref().map(|metadata| metadata.version)
    }

    /// Parses the metadata, or one record, and returns its length in bytes, or `None` if it is
    /// incomplete. Instruments are added to `table`, which must be the same for all calls.
    ///
    /// # Errors
    /// Returns a [`FromDbnError`], after which nothing more can be read. The last event before it
    /// is available.
    pub fn read(
        &mut self,
        table: &mut Instruments,
        bytes: &[u8],
    ) -> Result<Option<usize>, FromDbnError> {
        self.out.clear();
        let at = self.at;
        let read = match self.metadata {
            None => self.begin(table, bytes),
            Some(_) => self.record(table, bytes),
        };
        match read {
            Ok(read) => {
                self.at += read.unwrap_or(0) as u64;
                Ok(read)
            }
            Err(why) => {
                self.pass_held();
                Err(FromDbnError { at, why })
            }
        }
    }

    /// Ends the stream, of which `rest` was not read.
    ///
    /// # Errors
    /// Returns [`Wrong::Cut`]. The events so far are available.
    pub fn finish(&mut self, rest: &[u8]) -> Result<(), FromDbnError> {
        self.out.clear();
        self.pass_held();
        match (rest, &self.metadata) {
            ([], Some(_)) => Ok(()),
            _ => Err(FromDbnError {
                at: self.at,
                why: Wrong::Cut(rest.len()),
            }),
        }
    }

    fn begin(&mut self, table: &mut Instruments, bytes: &[u8]) -> Result<Option<usize>, Wrong> {
        let Some((metadata, len)) = Metadata::read(bytes)? else {
            return Ok(None);
        };
        let mut all = Vec::new();
        for named in &metadata.symbols {
            self.name(table, named.number, &named.symbol)?;
            let instrument = self.numbers.get(&named.number);
            all.extend(instrument.map(|instrument| Dated {
                number: named.number,
                instrument: *instrument,
                from: named.from,
                to: named.to,
            }));
        }
        self.days = ByDay::new(all);
        self.metadata = Some(metadata);
        Ok(Some(len))
    }

    fn record(&mut self, table: &mut Instruments, bytes: &[u8]) -> Result<Option<usize>, Wrong> {
        let Some((len, kind)) = bytes.first().zip(bytes.get(1)) else {
            return Ok(None);
        };
        let len = usize::from(*len) * 4;
        if len < HEADER {
            return Err(Wrong::Short(*kind, len, HEADER));
        }
        let Some(record) = bytes.get(..len) else {
            return Ok(None);
        };
        let record = Bytes(record);
        let least = least(*kind, self.version().unwrap_or(NEWEST));
        if len < least {
            return Err(Wrong::Short(*kind, len, least));
        }
        self.counts.records += 1;
        let head = Head {
            rtype: *kind,
            instrument: record.u32(4),
            ts_event: record.u64(8),
        };
        self.days.apply(time(head, record), &mut self.numbers);
        self.new.clear();
        self.take(table, head, record)?;
        self.pass(head, record);
        Ok(Some(len))
    }

    fn take(
        &mut self,
        table: &mut Instruments,
        head: Head,
        record: Bytes<'_>,
    ) -> Result<(), Wrong> {
        match head.rtype {
            rtype::MBO | 0x00 | 0x01 | 0x0a | 0xc3 | 0xc4 => {
                let instrument = self.instrument(table, head.instrument)?;
                self.tick(head, instrument, record);
            }
            rtype::STATUS => self.status(table, head, record)?,
            rtype::STATISTICS => self.statistic(table, head, record)?,
            rtype::DEFINITION => self.definition(table, head, record)?,
            rtype::SYMBOL_MAPPING => self.mapping(table, head, record)?,
            0x11 | 0x20..=0x24 => self.counts.bars += 1,
            rtype::ERROR | rtype::SYSTEM => self.counts.messages += 1,
            _ => self.counts.other += 1,
        }
        Ok(())
    }

    /// Passes on the event held back, and holds back the last new event.
    fn pass(&mut self, head: Head, record: Bytes<'_>) {
        let Some(last) = self.new.pop() else {
            let ends = tick_flags(head.rtype, record) & flag::LAST != 0;
            let number = self.numbers.get(&head.instrument);
            if let Some(held) = &mut self.held
                && ends
                && number == Some(&held.instrument)
            {
                held.flags = held.flags.with(Flags::LAST);
            }
            return;
        };
        self.pass_held();
        for mut event in std::mem::take(&mut self.new) {
            event.number = self.number();
            self.out.push(event);
        }
        self.held = Some(last);
    }

    fn pass_held(&mut self) {
        if let Some(mut held) = self.held.take() {
            held.number = self.number();
            self.out.push(held);
        }
    }

    const fn number(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// Returns the instrument of this `instrument_id`, which is also its name if it has no other.
    fn instrument(&mut self, table: &mut Instruments, id: u32) -> Result<InstrumentId, Wrong> {
        if let Some(number) = self.numbers.get(&id) {
            return Ok(*number);
        }
        let name = Name {
            id: SecurityId::Number(id.into()),
            ..Name::default()
        };
        let number = table.see(&name).map_err(Wrong::Instrument)?;
        self.enter(id, number);
        Ok(number)
    }

    /// Names an instrument. A different name makes it another instrument.
    fn name(&mut self, table: &mut Instruments, id: u32, symbol: &[u8]) -> Result<(), Wrong> {
        if symbol.is_empty() {
            return Ok(());
        }
        let name = Name {
            symbol,
            ..Name::default()
        };
        let number = table.see(&name).map_err(Wrong::Instrument)?;
        self.enter(id, number);
        Ok(())
    }

    fn enter(&mut self, id: u32, number: InstrumentId) {
        self.numbers.insert(id, number);
        let place = number.0 as usize;
        if place >= self.seen.len() {
            self.seen.resize_with(place + 1, Seen::default);
        }
    }

    /// Returns an event of an instrument with the fields that all records have.
    fn event(&self, head: Head, instrument: InstrumentId, kind: Kind) -> Event {
        Event {
            ts_event: head.ts_event,
            instrument,
            kind,
            source: self.source,
            ..Event::EMPTY
        }
    }

    /// Converts a record of a book or a trade.
    fn tick(&mut self, head: Head, instrument: InstrumentId, record: Bytes<'_>) {
        let Some(tick) = Tick::read(head.rtype, record) else {
            return;
        };
        let base = Event {
            ts_recv: match tick.flags & flag::BAD_TS_RECV {
                0 => tick.ts_recv,
                _ => Event::NO_TIME,
            },
            rpt_seq: tick.sequence,
            flags: marks(tick.flags),
            ..self.event(head, instrument, Kind::Trade)
        };
        if head.rtype != 0 {
            self.clear(base, &tick, head.rtype);
            self.state(base, &tick);
        }
        if tick.action == b'T' {
            self.new.push(Event {
                price: tick.price,
                size: size(tick.size),
                id: tick.order,
                entry: entry::TRADE,
                ..base
            });
        }
        let Some(seen) = self.seen.get_mut(instrument.0 as usize) else {
            return;
        };
        let mut of_book = OfBook {
            base,
            tick: &tick,
            out: &mut self.new,
        };
        match head.rtype {
            rtype::MBO => {
                seen.kind = Some(BookKind::Orders);
                of_book.order(seen);
            }
            0 => {}
            _ => {
                seen.kind = Some(BookKind::Prices);
                of_book.levels(seen, record);
            }
        }
        // The last event of the record ends the message, if the record does.
        if let Some((_, before)) = self.new.split_last_mut() {
            for event in before {
                event.flags = event.flags.without(Flags::LAST);
            }
        }
    }

    /// Empties the book and appends a Clear, if the record is one or the book begins with it.
    fn clear(&mut self, base: Event, tick: &Tick, rtype: u8) {
        let Some(seen) = self.seen.get_mut(base.instrument.0 as usize) else {
            return;
        };
        // Orders have a beginning, and levels are all in each record.
        let begins = rtype != rtype::MBO || base.flags.has(Flags::SNAPSHOT);
        if tick.action == b'R' || (begins && !seen.has_begun) {
            seen.clear();
            seen.has_begun = true;
            self.new.push(Event {
                kind: Kind::Clear,
                ..base
            });
        }
    }

    /// Appends an event of the state if the reliability of the book has changed.
    fn state(&mut self, base: Event, tick: &Tick) {
        let Some(seen) = self.seen.get_mut(base.instrument.0 as usize) else {
            return;
        };
        let is_whole = seen.has_begun && tick.flags & flag::MAYBE_BAD_BOOK == 0;
        // Only a complete book shows that an instrument that has ended is traded again.
        if seen.is_closed && !is_whole {
            return;
        }
        if seen.is_whole.replace(is_whole) == Some(is_whole) {
            return;
        }
        seen.is_closed = false;
        self.new.push(match is_whole {
            true => of_state(State::Live, base),
            false => of_state(State::Recovering(Lack::Picture), base),
        });
    }

    fn status(
        &mut self,
        table: &mut Instruments,
        head: Head,
        record: Bytes<'_>,
    ) -> Result<(), Wrong> {
        let Some(code) = codes::status_of(record.u16(24)) else {
            self.counts.unknown += 1;
            return Ok(());
        };
        let instrument = self.instrument(table, head.instrument)?;
        table.set_status(instrument, code);
        let event = Event {
            ts_recv: record.u64(16),
            id: code.into(),
            flags: Flags::LAST,
            ..self.event(head, instrument, Kind::Status)
        };
        self.new.push(event);
        Ok(())
    }

    fn statistic(
        &mut self,
        table: &mut Instruments,
        head: Head,
        record: Bytes<'_>,
    ) -> Result<(), Wrong> {
        // From version 3 on the quantity has 64 bits.
        let is_wide = self.version().is_none_or(|version| version > 2);
        let (quantity, rest) = match is_wide {
            true => (record.i64(40), 48),
            false => match record.u32(40).cast_signed() {
                i32::MAX => (Event::NO_SIZE, 44),
                quantity => (quantity.into(), 44),
            },
        };
        let (stat_type, flags) = (record.u16(rest + 8), record.u8(rest + 13));
        let Some(entry) = codes::entry_of(stat_type, flags) else {
            self.counts.unknown += 1;
            return Ok(());
        };
        let instrument = self.instrument(table, head.instrument)?;
        let event = Event {
            ts_recv: record.u64(16),
            price: record.price(32),
            size: quantity,
            rpt_seq: record.u32(rest),
            entry,
            action: match record.u8(rest + 12) {
                2 => Action::Delete,
                _ => Action::New,
            },
            flags: Flags::LAST,
            ..self.event(head, instrument, Kind::Statistic)
        };
        self.new.push(event);
        Ok(())
    }

    fn definition(
        &mut self,
        table: &mut Instruments,
        head: Head,
        record: Bytes<'_>,
    ) -> Result<(), Wrong> {
        let version = self.version().unwrap_or(NEWEST);
        let mut room = Vec::new();
        let mut definition = definition::read(record, version, &mut room);
        if definition.name.symbol.is_empty() && definition.name.id == SecurityId::None {
            definition.name.id = SecurityId::Number(head.instrument.into());
        }
        let ends = definition::ends(record, version);
        if ends && let Some(known) = table.find(&definition.name) {
            // An end that is told again defines nothing.
            table.set_closed(known, false);
        }
        let defined = table.define(&definition).map_err(Wrong::Instrument)?;
        self.enter(head.instrument, defined.instrument);
        let event = Event {
            ts_recv: record.u64(16),
            id: defined.revision.into(),
            flags: Flags::LAST,
            ..self.event(head, defined.instrument, Kind::Definition)
        };
        let Some(seen) = self.seen.get_mut(defined.instrument.0 as usize) else {
            return Ok(());
        };
        let was_closed = std::mem::replace(&mut seen.is_closed, ends);
        let state = match (ends, was_closed) {
            (true, _) => State::Closed,
            (false, true) => State::Recovering(Lack::Picture),
            (false, false) => {
                self.new.push(event);
                return Ok(());
            }
        };
        // A record of the book of one that has ended is of an instrument that is traded again.
        seen.is_whole = (!ends).then_some(false);
        table.set_closed(defined.instrument, ends);
        if defined.change != Change::Same {
            self.new.push(Event {
                flags: Flags::NONE,
                ..event
            });
        }
        self.new.push(of_state(state, event));
        Ok(())
    }

    fn mapping(
        &mut self,
        table: &mut Instruments,
        head: Head,
        record: Bytes<'_>,
    ) -> Result<(), Wrong> {
        // In version 1 the symbols are adjacent, without their kinds.
        let symbol = match self.version() {
            Some(1) => record.text(38, metadata::SYMBOL_V1),
            _ => record.text(89, super::wire::SYMBOL),
        };
        self.name(table, head.instrument, symbol)
    }
}

/// Returns an event of a state with the instrument, times and flags of another one.
fn of_state(state: State, base: Event) -> Event {
    let told = state::to_event(state);
    Event {
        kind: told.kind,
        id: told.id,
        level: told.level,
        rpt_seq: 0,
        ..base
    }
}

/// The fields that records of books and trades share.
struct Tick {
    price: Price,
    size: u32,
    flags: u8,
    action: u8,
    side: u8,
    ts_recv: u64,
    sequence: u32,
    order: u64,
}

impl Tick {
    fn read(kind: u8, record: Bytes<'_>) -> Option<Self> {
        if kind == rtype::MBO {
            return Some(Self {
                order: record.u64(16),
                price: record.price(24),
                size: record.u32(32),
                flags: record.u8(36),
                action: record.u8(38),
                side: record.u8(39),
                ts_recv: record.u64(40),
                sequence: record.u32(52),
            });
        }
        // Every record of quotes repeats the last trade of an interval, which is not a new trade.
        let is_interval = kind >= 0xc0;
        Some(Self {
            order: 0,
            price: record.price(16),
            size: record.u32(24),
            action: if is_interval { b'N' } else { record.u8(28) },
            side: record.u8(29),
            flags: record.u8(30),
            ts_recv: record.u64(32),
            sequence: record.u32(44),
        })
    }
}

/// Returns the time of arrival of a record of an instrument, or that of its event if the arrival is
/// unknown. Returns [`Event::NO_TIME`] for other records.
fn time(head: Head, record: Bytes<'_>) -> u64 {
    let received = match head.rtype {
        rtype::MBO => record.u64(40),
        0x00 | 0x01 | 0x0a | 0xc3 | 0xc4 => record.u64(32),
        rtype::STATUS | rtype::STATISTICS | rtype::DEFINITION => record.u64(16),
        _ => return Event::NO_TIME,
    };
    match received {
        Event::NO_TIME => head.ts_event,
        time => time,
    }
}

/// Returns `flags` of a record of a book or a trade, or 0 for others.
fn tick_flags(kind: u8, record: Bytes<'_>) -> u8 {
    match kind {
        rtype::MBO => record.u8(36),
        0x00 | 0x01 | 0x0a | 0xc3 | 0xc4 => record.u8(30),
        _ => 0,
    }
}

/// Returns the marks of the events.
const fn marks(flags: u8) -> Flags {
    let mut marks = Flags::NONE;
    if flags & Flags::LAST.bits() != 0 {
        marks = marks.with(Flags::LAST);
    }
    if flags & Flags::SNAPSHOT.bits() != 0 {
        marks = marks.with(Flags::SNAPSHOT);
    }
    marks
}

/// Returns a size, where the largest number stands for none.
const fn size(size: u32) -> i64 {
    match size {
        u32::MAX => Event::NO_SIZE,
        size => size as i64,
    }
}

/// Returns the least length of a record in bytes.
const fn least(kind: u8, version: u8) -> usize {
    match (kind, version) {
        (0x00, _) => 48,
        (rtype::MBO, _) => 56,
        (0x01 | 0xc3 | 0xc4, _) => 80,
        (0x0a, _) => 368,
        (rtype::STATUS, _) => 40,
        (rtype::STATISTICS, 1 | 2) => 64,
        (rtype::STATISTICS, _) => 80,
        (rtype::DEFINITION, 1) => 360,
        (rtype::DEFINITION, 2) => 400,
        (rtype::DEFINITION, _) => 520,
        (rtype::SYMBOL_MAPPING, 1) => 80,
        (rtype::SYMBOL_MAPPING, _) => 176,
        _ => HEADER,
    }
}
