//! The conversion of records of DBN, versions 1 to 3, to events.
//!
//! An event has the fields of its record, and no others. [`FromDbn`] follows the levels and orders
//! of each instrument, because a record has the levels after a change, and the size that was
//! cancelled, whereas events have the change, and the remaining size. A book begins with a Clear,
//! as that of a plant does: one of levels with its first record, one of orders with the first that
//! is a clear or of a snapshot.
//!
//! An instrument is what has one `publisher_id` and one `instrument_id`. A new symbol renames it,
//! and its book stays; only a symbol of certain days is that of another instrument, which may have
//! had another number until then. Several that have one symbol are told apart by SecurityID(48).

mod book;
mod bytes;
mod dated;
mod definition;
mod error;
mod keys;
mod live;
mod metadata;

use self::book::{OfBook, Seen};
use self::bytes::Bytes;
use super::codes;
use super::wire::{flag, rtype};
use crate::book::BookKind;
use crate::event::{Action, Event, Flags, InstrumentId, Kind, entry};
use crate::instruments::{Change, Instruments};
use crate::price::Price;
use crate::state;
pub use error::{FromDbnError, Wrong};
use fanfare_feed::recovery::{Lack, State};
use keys::{Key, Keys};
use metadata::Metadata;

/// The newest version that is read.
pub const NEWEST: u8 = super::wire::VERSION;

/// The bytes of the header of a record.
const HEADER: usize = 16;

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
    keys: Keys,
    /// The symbol of the last record, if it renames an instrument.
    naming: Option<Naming>,
    seen: Vec<Seen>,
    /// The last event, which is held back because a record without a change may end its message.
    held: Option<Event>,
    /// The events of the last record.
    new: Vec<Event>,
    out: Vec<Event>,
    next: u64,
    counts: FromDbnCounts,
    /// Whether trades are in records of their own, and those in records of books are left out.
    has_trades_apart: bool,
    /// Whether the past since the stream before has not come completely.
    catches_up: bool,
}

/// The header of a record, and the fields that most records have.
#[derive(Clone, Copy)]
struct Head {
    rtype: u8,
    key: Key,
    ts_event: u64,
}

/// A symbol that renames an instrument, unless the next record is its definition, which does so
/// itself.
#[derive(Debug)]
struct Naming {
    key: Key,
    symbol: Vec<u8>,
    ts_event: u64,
    /// Whether the symbol is that of certain days.
    is_dated: bool,
}

impl FromDbn {
    /// Creates a converter of a stream from its beginning, as the feed `source` of the plant.
    pub fn new(source: u16) -> Self {
        Self {
            source,
            metadata: None,
            at: 0,
            keys: Keys::default(),
            naming: None,
            seen: Vec::new(),
            held: None,
            new: Vec::new(),
            out: Vec::new(),
            next: 1,
            counts: FromDbnCounts::default(),
            has_trades_apart: false,
            catches_up: false,
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
    /// incomplete. Returns 0 in front of a definition that may rename the instrument of the last
    /// event, which has the symbol before. Instruments are added to `table`, which must be the same
    /// for all calls.
    ///
    /// # Errors
    /// Returns a [`FromDbnError`], after which nothing more can be read, except that the record of
    /// [`Wrong::Instrument`] can be skipped. The last event before it is available.
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

    /// Ends the stream, of which `rest` was not read. `table` is that of all calls.
    ///
    /// # Errors
    /// Returns [`Wrong::Cut`], or [`Wrong::Instrument`] if the last record has a symbol that
    /// `table` refuses. The events so far are available.
    pub fn finish(&mut self, table: &mut Instruments, rest: &[u8]) -> Result<(), FromDbnError> {
        self.out.clear();
        self.new.clear();
        let named = self.rename(table, None, Event::NO_TIME);
        self.pass_held();
        self.held = self.new.pop();
        self.pass_new();
        self.pass_held();
        let outcome = match (rest, &self.metadata) {
            ([], Some(_)) => named,
            _ => Err(Wrong::Cut(rest.len())),
        };
        let at = self.at;
        outcome.map_err(|why| FromDbnError { at, why })
    }

    fn begin(&mut self, table: &mut Instruments, bytes: &[u8]) -> Result<Option<usize>, Wrong> {
        let Some((metadata, len)) = Metadata::read(bytes)? else {
            return Ok(None);
        };
        let symbols = &metadata.symbols;
        self.keys.begin(table, symbols)?;
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
        let mut head = Head {
            rtype: *kind,
            key: (record.u16(2), record.u32(4)),
            ts_event: record.u64(8),
        };
        if head.rtype == rtype::DEFINITION && self.has_held(head.key) {
            self.pass_held();
            return Ok(Some(0));
        }
        self.counts.records += 1;
        let time = time(head, record);
        if is_stand_in(head, record) {
            head.ts_event = Event::NO_TIME;
        }
        self.keys.pass_to(time);
        self.new.clear();
        let renamed = self.rename(table, Some(head), time);
        if !self.new.is_empty() {
            self.pass(head, record);
        }
        self.take(table, head, record)?;
        self.pass(head, record);
        // The record may be of another instrument than the one whose new name is refused.
        renamed.map(|()| Some(len))
    }

    fn take(
        &mut self,
        table: &mut Instruments,
        head: Head,
        record: Bytes<'_>,
    ) -> Result<(), Wrong> {
        match head.rtype {
            rtype::MBO | 0x00 | 0x01 | 0x0a | 0xc3 | 0xc4 => {
                let instrument = self.instrument(table, head.key)?;
                self.tick(head, instrument, record);
            }
            rtype::STATUS => self.status(table, head, record)?,
            rtype::STATISTICS => self.statistic(table, head, record)?,
            rtype::DEFINITION => self.definition(table, head, record)?,
            rtype::SYMBOL_MAPPING => self.mapping(table, head, record)?,
            0x11 | 0x20..=0x24 => self.counts.bars += 1,
            rtype::ERROR | rtype::SYSTEM => {
                self.counts.messages += 1;
                if head.rtype == rtype::SYSTEM && is_restart(record) {
                    self.keys.restart();
                }
            }
            _ => self.counts.other += 1,
        }
        Ok(())
    }

    /// Passes on the event held back, and holds back the last new event.
    fn pass(&mut self, head: Head, record: Bytes<'_>) {
        let Some(last) = self.new.pop() else {
            let ends = tick_flags(head.rtype, record) & flag::LAST != 0;
            let number = self.keys.get(head.key);
            if let Some(held) = &mut self.held
                && ends
                && number == Some(held.instrument)
            {
                held.flags = held.flags.with(Flags::LAST);
            }
            return;
        };
        self.pass_held();
        self.pass_new();
        self.held = Some(last);
    }

    fn pass_new(&mut self) {
        for mut event in std::mem::take(&mut self.new) {
            event.number = self.number();
            self.out.push(event);
        }
    }

    /// Returns whether the event held back is of an instrument that has the symbol of a record with
    /// this key.
    fn has_held(&self, key: Key) -> bool {
        let Some(held) = &self.held else {
            return false;
        };
        let named = self.keys.named_by(key);
        let mut instruments = named.into_iter().filter_map(|own| self.keys.get(own));
        instruments.any(|own| own == held.instrument)
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

    fn instrument(&mut self, table: &mut Instruments, key: Key) -> Result<InstrumentId, Wrong> {
        let number = self.keys.find_or_add(table, key);
        let number = number.map_err(Wrong::Instrument)?;
        self.enter(number);
        Ok(number)
    }

    fn enter(&mut self, number: InstrumentId) {
        let place = number.0 as usize;
        if place >= self.seen.len() {
            self.seen.resize_with(place + 1, Seen::default);
        }
    }

    /// Renames the instruments that the last record renames, with an event for each, as of the time
    /// of this record. At the end of the stream there is none.
    fn rename(
        &mut self,
        table: &mut Instruments,
        head: Option<Head>,
        ts_recv: u64,
    ) -> Result<(), Wrong> {
        let Some(naming) = self.naming.take() else {
            return Ok(());
        };
        let definition = head.filter(|head| head.rtype == rtype::DEFINITION);
        if definition.is_some_and(|head| head.key == naming.key) && !naming.is_dated {
            return Ok(());
        }
        let symbol = (&*naming.symbol, naming.is_dated);
        for key in self.keys.named_by(naming.key) {
            let renamed = self.keys.rename(table, key, symbol);
            if let Some(defined) = renamed.map_err(Wrong::Instrument)? {
                self.new.push(Event {
                    ts_event: naming.ts_event,
                    ts_recv,
                    id: defined.revision.into(),
                    instrument: defined.instrument,
                    kind: Kind::Definition,
                    source: self.source,
                    flags: Flags::LAST,
                    ..Event::EMPTY
                });
            }
        }
        if naming.is_dated {
            self.keys.name_all(naming.key);
        }
        Ok(())
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
        if tick.action == b'T' && (head.rtype == 0 || !self.has_trades_apart) {
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
        let was_of_before = std::mem::take(&mut seen.is_of_before);
        let is_same = seen.is_whole.replace(is_whole) == Some(is_whole);
        if is_same && !was_of_before {
            return;
        }
        seen.is_closed = false;
        if is_whole && self.catches_up {
            // `tell_states` says so once the past has come.
            return;
        }
        self.new.push(of_state(state_of(is_whole), base));
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
        let instrument = self.instrument(table, head.key)?;
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
        let instrument = self.instrument(table, head.key)?;
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
        let definition = definition::read(record, version, &mut room);
        let action = definition::action(record, version);
        let (adds, ends) = (action == b'A', action == b'D');
        if ends && let Some(known) = self.keys.get(head.key) {
            // An end that is told again defines nothing.
            table.set_closed(known, false);
        }
        let defined = self.keys.define(table, head.key, &definition, adds);
        let defined = defined.map_err(Wrong::Instrument)?;
        self.enter(defined.instrument);
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
            (false, true) => State::Recovering(Lack::Snapshot),
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
        let (symbol, days) = match self.version() {
            Some(1) => (record.text(38, metadata::SYMBOL_V1), 64),
            _ => (record.text(89, super::wire::SYMBOL), 160),
        };
        if symbol.is_empty() {
            return Ok(());
        }
        let is_dated = ![0, Event::NO_TIME].contains(&record.u64(days));
        if self.keys.named_by(head.key).is_empty() {
            let number = self.keys.name(table, head.key, (symbol, is_dated));
            self.enter(number.map_err(Wrong::Instrument)?);
            return Ok(());
        }
        if self.has_held(head.key) && self.held.is_some_and(|held| is_other(table, held, symbol)) {
            // The event is of the symbol until now.
            self.pass_held();
        }
        self.naming = Some(Naming {
            key: head.key,
            symbol: symbol.to_vec(),
            ts_event: head.ts_event,
            is_dated,
        });
        Ok(())
    }
}

/// Returns whether the instrument of an event has another symbol.
fn is_other(table: &Instruments, event: Event, symbol: &[u8]) -> bool {
    let known = table.get(event.instrument);
    known.is_some_and(|known| known.definition.name.symbol != symbol)
}

/// Returns whether a message of a gateway says that numbers may be those of other instruments.
fn is_restart(record: Bytes<'_>) -> bool {
    record.text(HEADER, super::RESTARTED.len() + 1) == super::RESTARTED.as_bytes()
}

/// Returns the state of an instrument whose book is complete or not.
const fn state_of(is_whole: bool) -> State {
    match is_whole {
        true => State::Live,
        false => State::Recovering(Lack::Snapshot),
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

/// Returns whether `ts_event` of a record of the plant is the time of arrival, because the
/// exchange's is unknown. In a record without flags, either may stand for the other.
fn is_stand_in(head: Head, record: Bytes<'_>) -> bool {
    let received = match head.rtype {
        rtype::MBO => record.u64(40),
        0x00 | 0x01 | 0x0a | 0xc3 | 0xc4 => record.u64(32),
        _ => return false,
    };
    let is_known = tick_flags(head.rtype, record) & flag::BAD_TS_RECV == 0;
    head.key.0 > super::PUBLISHERS && head.ts_event == received && is_known
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
