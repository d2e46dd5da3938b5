//! The conversion of events to records.

use super::lost::{Lost, Why};
use super::schema::Schema;
use super::trust::Trust;
use super::wire::{self, Header, NoRoom, Statistic, Tick, flag};
use super::{ToDbn, codes, definition};
use crate::book::{Book, BookConfig, BookKind, Level, Side};
use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{Lookup, Name, SecurityId};
use crate::price::Price;
use crate::state;
use std::borrow::Cow;
use std::mem;
use std::ops::Range;

/// The value of an unknown size.
const NO_SIZE: u32 = u32::MAX;

/// The destination of records, and the fields of their message.
pub(super) struct To<'a> {
    pub(super) table: &'a dyn Lookup,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) ts_recv: u64,
    pub(super) sequence: u32,
    /// The number of records in front of those that the event itself becomes.
    pub(super) written: u64,
}

impl To<'_> {
    /// Returns the time of arrival and a flag. If the time is unknown, it is the exchange's time,
    /// and the flag is set.
    const fn received(&self, event: &Event) -> (u64, u8) {
        match self.ts_recv {
            0 | Event::NO_TIME => (event.ts_event, flag::BAD_TS_RECV),
            time => (time, 0),
        }
    }
}

/// The side, price and size of an order before an event.
type Before = Option<(Side, Price, i64)>;

/// The records of books that an instrument has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BookRecord {
    Mbo,
    Levels(u8),
}

impl ToDbn {
    pub(super) fn record(&mut self, event: &Event, to: &mut To<'_>) {
        let schemas = self.config.schemas;
        if !event.kind.is_of_book()
            && event.flags.has(Flags::LAST)
            && self.books.get(event.instrument).is_some()
        {
            // The book must be in order after the last event of a message.
            self.apply(event);
        }
        match event.kind {
            Kind::Level | Kind::Order if schemas.has_books() => self.change(event, to),
            Kind::Clear if schemas.has_books() => self.clear(event, to),
            Kind::State => self.state(event, to),
            Kind::Trade => self.trade(event, to),
            Kind::Definition if schemas.has(Schema::Definition) => self.definition(event, to),
            Kind::Status if schemas.has(Schema::Status) => self.status(event, false, to),
            Kind::Statistic if schemas.has(Schema::Statistics) => self.statistic(event, to),
            _ => self.counts.other_schemas += 1,
        }
    }

    /// Records the state of the instrument's books after the events so far.
    pub(super) fn see(&mut self, event: &Event, table: &dyn Lookup) {
        self.make_room(event.instrument, table);
        let gaps = self.gaps;
        if let Some(trust) = self.trust(event) {
            trust.see(event, gaps);
            trust.source = Some(event.source);
            // A definition may have a symbol.
            let is_defined = event.kind == Kind::Definition;
            trust.is_named &= !is_defined;
            trust.is_closed &= !is_defined;
        }
    }

    /// Creates the states of all instruments of the table, if this one has none.
    fn make_room(&mut self, instrument: InstrumentId, table: &dyn Lookup) {
        let place = instrument.0 as usize;
        if place >= self.trust.len() && instrument.0 < table.bound() {
            let len = table.bound() as usize;
            self.trust.resize(len, Trust::new(self.is_lost));
        }
    }

    fn trust(&mut self, event: &Event) -> Option<&mut Trust> {
        self.trust.get_mut(event.instrument.0 as usize)
    }

    fn lose(&mut self, event: &Event, field: &'static str, why: Why) {
        let is_size = |why: &Why| matches!(why, Why::Range(_));
        if is_size(&why) && self.lost.iter().any(|lost| is_size(&lost.why)) {
            // The size of the event, and that of its level.
            return;
        }
        self.counts.lost += 1;
        self.lost.push(Lost {
            number: event.number,
            kind: event.kind,
            instrument: event.instrument,
            field,
            why,
        });
    }

    /// Records that a record of the book cannot be written, so that the following ones lack their
    /// base.
    fn lose_change(&mut self, event: &Event, field: &'static str, why: Why) {
        self.lose(event, field, why);
        if let Some(trust) = self.trust(event) {
            trust.lose();
        }
    }

    const fn header(event: &Event) -> Header {
        Header {
            source: event.source,
            instrument: event.instrument.0,
            ts_event: wire::known_time(event.ts_event, event.ts_recv),
        }
    }

    /// Begins a record. The first one of an instrument follows its symbol.
    fn begin(&mut self, event: &Event, to: &mut To<'_>) {
        self.counts.records += 1;
        if !self.config.names || self.trust(event).is_none_or(|trust| trust.is_named) {
            return;
        }
        let Some(known) = to.table.instrument(event.instrument) else {
            return;
        };
        if let Some(trust) = self.trust(event) {
            trust.is_named = true;
        }
        let symbol = symbol(&known.definition.name);
        if symbol.is_empty() {
            return;
        }
        let start = to.out.len();
        if wire::symbol_mapping(Self::header(event), &symbol, to.out).0 {
            self.counts.records += 1;
        } else {
            to.out.truncate(start);
            self.lose(event, "stype_out_symbol", Why::Text);
        }
    }

    /// Returns the fields that records of books and trades share.
    fn tick(&mut self, event: &Event, action: u8, to: &To<'_>) -> Tick {
        let (ts_recv, flags) = to.received(event);
        Tick {
            header: Self::header(event),
            price: event.price,
            size: 0,
            flags: flags | event.flags.bits(),
            action,
            side: codes::side(event.entry),
            ts_recv,
            sequence: to.sequence,
        }
    }

    /// Returns the fields of a record of a book, whose flags show whether the book may be wrong.
    fn book_tick(&mut self, event: &Event, action: u8, to: &To<'_>) -> Tick {
        let mut tick = self.tick(event, action, to);
        let is_last = event.flags.has(Flags::LAST);
        let is_doubtful = self.trust(event).is_none_or(|trust| {
            trust.is_open = !is_last;
            trust.is_doubtful()
        });
        if is_doubtful {
            tick.flags |= flag::MAYBE_BAD_BOOK;
            self.counts.doubtful += 1;
        }
        tick
    }

    /// Returns the kind of an instrument's records of books, or `None` if it has none, or its book
    /// is not known.
    fn book_record(&self, event: &Event) -> Option<BookRecord> {
        let schemas = self.config.schemas;
        let levels = schemas.levels();
        let book = self.books.get(event.instrument).map(Book::kind);
        // A book begins with a Clear and a State, in front of the change that creates it.
        let book = book.or_else(|| self.feed(event).map(|config| config.kind()));
        match (book, schemas.has(Schema::Mbo), levels) {
            (_, true, 0) => Some(BookRecord::Mbo),
            (Some(BookKind::Orders), true, _) => Some(BookRecord::Mbo),
            (None, true, _) | (_, false, 0) => None,
            (_, _, levels) => Some(BookRecord::Levels(levels)),
        }
    }

    /// Converts a change of a level or an order.
    fn change(&mut self, event: &Event, to: &mut To<'_>) {
        let by_order = event.kind == Kind::Order && self.config.schemas.has(Schema::Mbo);
        let levels = self.config.schemas.levels();
        if !by_order && levels == 0 {
            self.counts.other_schemas += 1;
            return;
        }
        let book = self.books.get(event.instrument);
        let before = book.and_then(|book| book.order(event.id));
        let before = before.filter(|_| event.kind == Kind::Order);
        let has_book = self.has_book(event, to.table);
        // Only a deletion needs the order before the event.
        let needs_book = event.action == Action::Delete && event.size == Event::NO_SIZE;
        if !has_book && (!by_order || needs_book) {
            let is_known = to.table.instrument(event.instrument).is_some();
            let why = if is_known { Why::NoBook } else { Why::Unknown };
            return self.lose_change(event, "book", why);
        }
        if has_book {
            self.clear_late(event, to);
            self.apply(event);
        }
        match by_order {
            true => self.order(event, before, to),
            false => self.levels(event, before, levels, to),
        }
    }

    fn apply(&mut self, event: &Event) {
        if self.books.apply(event).is_err() {
            self.counts.faults += 1;
            if let Some(trust) = self.trust(event) {
                trust.lose();
            }
        }
    }

    /// Creates the book of an instrument for a level or an order that is to come, if it has none.
    /// The records with which it begins then have its kind, even if the books of the feed are
    /// unknown.
    pub fn open_book(&mut self, change: &Event, table: &dyn Lookup) {
        if self.config.schemas.has_books() {
            self.has_book(change, table);
        }
    }

    /// Creates the book of an instrument, if it has none and memory allows. Returns whether it has
    /// one.
    fn has_book(&mut self, event: &Event, table: &dyn Lookup) -> bool {
        if self.books.get(event.instrument).is_some() {
            return true;
        }
        let Some(known) = table.instrument(event.instrument) else {
            return false;
        };
        if let Some(config) = self.of_feed(event) {
            return self.books.open(event.instrument, &config).is_ok();
        }
        let config = match (event.kind, event.level, known.definition.depth) {
            (Kind::Order, _, _) => self.by_order,
            (_, 0, _) => self.by_price,
            (_, _, 0) => self.numbered,
            (_, _, depth) => BookConfig::by_level(depth.into()).unwrap_or(self.numbered),
        };
        if self.memory >= self.config.most_memory {
            return false;
        }
        let Ok(book) = self.books.open(event.instrument, &config) else {
            return false;
        };
        self.memory += book.memory();
        true
    }

    /// Returns the books of an event's feed, if they are known.
    fn feed(&self, event: &Event) -> Option<BookConfig> {
        let place = usize::from(event.source).checked_sub(1)?;
        self.feeds.get(place).copied()
    }

    /// Returns the books of an event's feed, if they are known and have events of its kind.
    fn of_feed(&self, event: &Event) -> Option<BookConfig> {
        let by_order = event.kind == Kind::Order;
        let config = self.feed(event);
        config.filter(|config| (config.kind() == BookKind::Orders) == by_order)
    }

    /// Converts a change of an order to records by order.
    fn order(&mut self, event: &Event, before: Before, to: &mut To<'_>) {
        let (action, known) = match event.action {
            Action::New => (b'A', None),
            Action::Change => (b'M', before),
            Action::Delete => (b'C', before),
            Action::Fill => (b'F', before),
            _ => (b'N', before),
        };
        // A deletion cancels the rest of the order, whose size may differ from the one in the
        // message.
        let all = known.filter(|_| event.action == Action::Delete);
        let size = match (all, event.size) {
            (Some((_, _, size)), _) => Ok(size),
            (None, Event::NO_SIZE) => Err(known.map(|(_, _, size)| size)),
            (None, size) => Ok(size),
        };
        let size = match size {
            Ok(size) | Err(Some(size)) => wire::unsigned("size", size.into()),
            Err(None) => Ok(NO_SIZE),
        };
        let size = match size {
            Ok(size) => size,
            Err(NoRoom { field, value }) => {
                return self.lose_change(event, field, Why::Range(value));
            }
        };
        self.begin(event, to);
        let mut tick = Tick {
            size,
            ..self.book_tick(event, action, to)
        };
        if let Some((side, price, _)) = known {
            tick.side = codes::side(side.entry());
            if !tick.price.is_defined() {
                tick.price = price;
            }
        }
        if event.action == Action::Fill {
            // The fill does not change the book, but the cancellation after it does.
            let fill = Tick {
                flags: tick.flags & !flag::LAST,
                ..tick
            };
            wire::mbo(&fill, event.id, to.out);
            self.counts.records += 1;
            tick.action = b'C';
        }
        wire::mbo(&tick, event.id, to.out);
    }

    /// Converts a change of the levels of a book.
    fn levels(&mut self, event: &Event, before: Before, levels: u8, to: &mut To<'_>) {
        let depth = self.depth(event, before);
        if depth >= usize::from(levels) {
            self.counts.too_deep += 1;
            return;
        }
        let action = match event.action {
            Action::New => b'A',
            Action::Change | Action::Overlay => b'M',
            _ => b'C',
        };
        let size = match event.size {
            Event::NO_SIZE => Ok(before.map_or(event.size, |(_, _, size)| size)),
            size => Ok(size),
        };
        let size = size.and_then(|size| match size {
            Event::NO_SIZE => Ok(NO_SIZE),
            size => wire::unsigned("size", size.into()),
        });
        let (side, price) = match before {
            Some((side, price, _)) if !event.price.is_defined() => (Some(side), price),
            Some((side, _, _)) => (Some(side), event.price),
            None => (Side::of_entry(event.entry), event.price),
        };
        let side = side.map_or(b'N', |side| codes::side(side.entry()));
        match size {
            Ok(size) => {
                let part = (action, side, price, size, depth as u8);
                self.with_levels(event, part, levels, to);
            }
            Err(NoRoom { field, value }) => self.lose(event, field, Why::Range(value)),
        }
    }

    /// Writes a record with the levels of the book, unless one of them cannot be represented.
    fn with_levels(
        &mut self,
        event: &Event,
        (action, side, price, size, depth): (u8, u8, Price, u32, u8),
        levels: u8,
        to: &mut To<'_>,
    ) {
        let (start, records, doubtful) = (to.out.len(), self.counts.records, self.counts.doubtful);
        let was_named = self.trust(event).is_some_and(|trust| trust.is_named);
        self.begin(event, to);
        let tick = Tick {
            side,
            price,
            size,
            ..self.book_tick(event, action, to)
        };
        wire::trade(&tick, levels, depth, to.out);
        let book = self.books.get(event.instrument);
        if let Err(NoRoom { field, value }) = wire::levels(book, levels, to.out) {
            to.out.truncate(start);
            (self.counts.records, self.counts.doubtful) = (records, doubtful);
            if let Some(trust) = self.trust(event) {
                trust.is_named = was_named;
            }
            self.lose(event, field, Why::Range(value));
        }
    }

    /// Returns the first level that an event changes, from 0.
    fn depth(&self, event: &Event, before: Before) -> usize {
        if event.action == Action::DeleteThru {
            return 0;
        }
        let book = self.books.get(event.instrument);
        // Other books ignore the number.
        let is_numbered = book.is_some_and(|book| book.kind() == BookKind::Levels);
        if event.level != 0 && event.kind == Kind::Level && is_numbered {
            return usize::from(event.level - 1);
        }
        let side = before.map_or(Side::of_entry(event.entry), |(side, _, _)| Some(side));
        let (Some(side), Some(book)) = (side, book) else {
            return 0;
        };
        let rank = |price: Price| {
            let is_better = |level: &Level| match side {
                Side::Bid => level.price > price,
                Side::Offer => level.price < price,
            };
            book.depth(side).take_while(is_better).count()
        };
        let old = before.map(|(_, price, _)| rank(price));
        let new = event.price.is_defined().then(|| rank(event.price));
        old.into_iter().chain(new).min().unwrap_or(0)
    }

    /// Converts a cleared book.
    fn clear(&mut self, event: &Event, to: &mut To<'_>) {
        // An instrument without a book has nothing to clear.
        let _ = self.books.apply(event);
        let is_noted = self.note(event, b'R', to);
        if !is_noted {
            self.counts.other_schemas += 1;
        }
        if let Some(trust) = self.trust(event) {
            trust.owes_clear = !is_noted;
        }
    }

    /// Writes in front of the first change of a book that it was cleared, if its kind was not known
    /// then. The record has the times of the change.
    fn clear_late(&mut self, change: &Event, to: &mut To<'_>) {
        let owed = self.trust(change).map(|trust| &mut trust.owes_clear);
        if !owed.is_some_and(mem::take) {
            return;
        }
        let clear = Event {
            kind: Kind::Clear,
            flags: change.flags.without(Flags::LAST),
            ..*change
        };
        if self.note(&clear, b'R', to) {
            // It was counted when it came.
            self.counts.other_schemas -= 1;
            // The change has yet to become one, or to end the message without.
            to.written = self.counts.records;
        }
    }

    /// Converts a change of the state, which may be the end of the instrument.
    fn state(&mut self, event: &Event, to: &mut To<'_>) {
        let schemas = self.config.schemas;
        let is_closed = state::closes(event);
        let was_closed = self
            .trust(event)
            .is_none_or(|trust| mem::replace(&mut trust.is_closed, is_closed));
        let ends = is_closed && !was_closed && schemas.has(Schema::Definition);
        if ends {
            // It comes first, so that readers know of the end when the book becomes doubtful.
            self.definition(event, to);
        }
        let is_noted = schemas.has_books() && self.note(event, b'N', to);
        if !ends && !is_noted {
            self.counts.other_schemas += 1;
        }
    }

    /// Writes a record that changes no level. Returns false if the instrument has no records of
    /// books.
    pub(super) fn note(&mut self, event: &Event, action: u8, to: &mut To<'_>) -> bool {
        match self.book_record(event) {
            None => return false,
            Some(BookRecord::Levels(levels)) => {
                let part = (action, b'N', Price::UNDEFINED, 0, 0);
                self.with_levels(event, part, levels, to);
            }
            Some(BookRecord::Mbo) => {
                self.begin(event, to);
                let tick = Tick {
                    side: b'N',
                    price: Price::UNDEFINED,
                    ..self.book_tick(event, action, to)
                };
                wire::mbo(&tick, 0, to.out);
            }
        }
        true
    }

    /// Ends a message whose last event became no record by a record without a change.
    pub(super) fn close(&mut self, event: &Event, to: &mut To<'_>) {
        if self.trust(event).is_some_and(|trust| trust.is_open) {
            self.note(event, b'N', to);
        }
    }

    fn trade(&mut self, event: &Event, to: &mut To<'_>) {
        let is_alone = self.config.schemas.has(Schema::Trades);
        let record = self.book_record(event).filter(|_| !is_alone);
        if !is_alone && record.is_none() {
            self.counts.other_schemas += 1;
            return;
        }
        if event.action != Action::New {
            return self.lose(event, "action", Why::Trade);
        }
        let size = match event.size {
            Event::NO_SIZE => NO_SIZE,
            size => match wire::unsigned("size", size.into()) {
                Ok(size) => size,
                Err(NoRoom { field, value }) => return self.lose(event, field, Why::Range(value)),
            },
        };
        if let Some(BookRecord::Levels(levels)) = record {
            let part = (b'T', b'N', event.price, size, 0);
            return self.with_levels(event, part, levels, to);
        }
        self.begin(event, to);
        if record == Some(BookRecord::Mbo) {
            let tick = Tick {
                size,
                ..self.book_tick(event, b'T', to)
            };
            return wire::mbo(&tick, event.id, to.out);
        }
        let tick = Tick {
            size,
            ..self.tick(event, b'T', to)
        };
        wire::trade(&tick, 0, 0, to.out);
    }

    /// Writes the definition of an instrument, or that it has ended.
    pub(super) fn definition(&mut self, event: &Event, to: &mut To<'_>) {
        let Some(known) = to.table.instrument(event.instrument) else {
            return self.lose(event, "raw_symbol", Why::Text);
        };
        self.begin(event, to);
        let (ts_recv, _) = to.received(event);
        let action = match event.kind {
            Kind::State => b'D',
            _ if known.revision > 1 => b'M',
            _ => b'A',
        };
        let mut fields = Vec::new();
        definition::write(
            Self::header(event),
            ts_recv,
            (&known.definition, action),
            &mut |field| fields.push(field),
            to.out,
        );
        for field in fields {
            self.lose(event, field, Why::Text);
        }
    }

    pub(super) fn status(&mut self, event: &Event, is_of_session: bool, to: &mut To<'_>) {
        match codes::status(event.id, is_of_session) {
            Some(action) => self.status_record(event, action, to),
            None => self.lose(event, "action", Why::Status(event.id)),
        }
    }

    fn status_record(&mut self, event: &Event, action: u16, to: &mut To<'_>) {
        self.begin(event, to);
        let (ts_recv, _) = to.received(event);
        let action = (action, codes::is_trading(action));
        wire::status(Self::header(event), ts_recv, action, to.out);
    }

    /// Returns the numbers that the instruments of a feed have, as far as they are known.
    fn numbers_of(&self, source: u16, bound: u32) -> Range<u32> {
        let place = usize::from(source).checked_sub(1);
        let base = |at: usize| self.bases.get(at).copied();
        match place.and_then(base) {
            None => 0..bound,
            Some(first) => {
                let end = base(usize::from(source)).unwrap_or(bound);
                first..end.min(bound)
            }
        }
    }

    /// Converts the status of a feed's session to a status of each of its instruments.
    pub(super) fn status_of_all(&mut self, event: &Event, to: &mut To<'_>) {
        if event.kind != Kind::Status || !self.config.schemas.has(Schema::Status) {
            self.counts.other_schemas += 1;
            return;
        }
        let Some(action) = codes::status(event.id, true) else {
            return self.lose(event, "action", Why::Status(event.id));
        };
        for number in self.numbers_of(event.source, to.table.bound()) {
            let event = Event {
                instrument: InstrumentId(number),
                ..*event
            };
            let is_other = |trust: &mut Trust| trust.source.is_some_and(|own| own != event.source);
            if to.table.instrument(event.instrument).is_none()
                || self.trust(&event).is_some_and(is_other)
            {
                continue;
            }
            // The record does not set the feed of the instrument: without the numbers of the feeds,
            // it may be of another one.
            self.make_room(event.instrument, to.table);
            self.status_record(&event, action, to);
        }
    }

    fn statistic(&mut self, event: &Event, to: &mut To<'_>) {
        self.begin(event, to);
        let (ts_recv, _) = to.received(event);
        let (stat_type, stat_flags) = codes::statistic(event.entry, event.price.is_defined());
        let of = Statistic {
            price: event.price,
            quantity: event.size,
            sequence: to.sequence,
            stat_type,
            stat_flags,
            is_deleted: event.action == Action::Delete,
        };
        wire::statistic(Self::header(event), ts_recv, &of, to.out);
    }
}

/// Returns the name of an instrument: its symbol, or its SecurityID(48).
pub(super) fn symbol<'a>(name: &Name<'a>) -> Cow<'a, [u8]> {
    match (name.symbol, name.id) {
        (b"", SecurityId::Number(number)) => number.to_string().into_bytes().into(),
        (b"", SecurityId::Text(text)) => text.into(),
        (symbol, _) => symbol.into(),
    }
}
