//! The conversion of events to records of all schemas that are wanted.

use super::batch::Batch;
use super::control::{SymbolType, mapping};
use super::intervals::Intervals;
use super::schema::{LiveSchema, LiveSchemas};
use super::seen::Views;
use super::withheld::Withheld;
use crate::Values;
use crate::book::{BookConfig, ConfigError};
use crate::dbn::convert::symbol;
use crate::dbn::wire::known_time;
use crate::dbn::{DbnConfig, DbnCounts, Schema, Schemas, ToDbn, codes};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::instruments::Lookup;
use crate::state;
use crate::watermark::Watermark;
use std::cell::Cell;

/// The byte of a record that has the action of a trade or a change of a level.
const ACTION: usize = 28;

/// An encoder of events to records, each once for all clients.
///
/// It keeps the book, the state and the last trade of each instrument, so that a schema can be
/// added at any time. Allocates for new instruments, for schemas that were not wanted before, and
/// in batches beyond their capacity.
#[derive(Debug)]
pub struct Encoder {
    views: Views,
    /// The number of the first instrument of each feed, from source 1 on, if they are known.
    bases: Vec<u32>,
    intervals: Intervals,
    /// The converters by index in [`Schema::ALL`].
    converters: [Option<Box<ToDbn>>; Schema::ALL.len()],
    wanted: LiveSchemas,
    values: Values,
    config: DbnConfig,
    /// The time of the last event.
    time: u64,
    /// The lost values of converters that are no longer needed.
    lost: u64,
    /// The orders that snapshots lack.
    lost_orders: Cell<u64>,
    withheld: Withheld,
}

impl Encoder {
    /// Creates an encoder for feeds whose books are of these kinds, in the order of
    /// [`Event::source`], from 1.
    ///
    /// # Errors
    /// Returns an error if `config` has books beyond the limits of [`BookConfig`].
    pub fn new(books: Vec<BookConfig>, config: DbnConfig) -> Result<Self, ConfigError> {
        // A configuration that is checked here does not fail later.
        ToDbn::new(config)?;
        let other = BookConfig::by_level(config.depth.into())?;
        Ok(Self {
            views: Views::new(books, other),
            bases: Vec::new(),
            intervals: Intervals::default(),
            converters: Default::default(),
            wanted: LiveSchemas::NONE,
            values: Values::default(),
            config: DbnConfig {
                names: false,
                ..config
            },
            time: 0,
            lost: 0,
            lost_orders: Cell::new(0),
            withheld: Withheld::default(),
        })
    }

    /// Sets the number of the first instrument of each feed: see [`ToDbn::with_bases`].
    #[must_use]
    pub fn with_bases(mut self, bases: Vec<u32>) -> Self {
        self.set_bases(bases);
        self
    }

    /// Sets the numbers of [`Self::with_bases`] from now on.
    pub fn set_bases(&mut self, bases: Vec<u32>) {
        for converter in self.converters.iter_mut().flatten() {
            converter.set_bases(bases.clone());
        }
        self.bases = bases;
    }

    /// Returns the schemas that are written.
    pub const fn wanted(&self) -> LiveSchemas {
        self.wanted
    }

    /// Sets the schemas that are written from now on. The books of an added schema are those of the
    /// plant.
    pub fn want(&mut self, wanted: LiveSchemas, table: &dyn Lookup) {
        self.wanted = wanted;
        self.intervals.want(wanted);
        let mut needed = [false; Schema::ALL.len()];
        for schema in wanted.iter().filter_map(LiveSchema::made_of) {
            let place = Schema::ALL.iter().position(|own| *own == schema);
            if let Some(needed) = place.and_then(|at| needed.get_mut(at)) {
                *needed = true;
            }
        }
        for (at, (schema, is_needed)) in Schema::ALL.into_iter().zip(needed).enumerate() {
            let is_there = self.converters.get(at).is_some_and(Option::is_some);
            if is_needed == is_there {
                continue;
            }
            let made = is_needed.then(|| self.seeded(schema, table)).flatten();
            if let Some(place) = self.converters.get_mut(at) {
                let before = std::mem::replace(place, made);
                self.lost += before.map_or(0, |own| own.counts().lost);
            }
        }
    }

    /// Returns a converter of a schema that knows no book.
    fn converter(&self, schema: Schema) -> Option<ToDbn> {
        let config = DbnConfig {
            schemas: Schemas::new(&[schema])?,
            ..self.config
        };
        let books = self.views.configs().to_vec();
        let converter = ToDbn::new(config).ok()?.with_books(books);
        Some(converter.with_bases(self.bases.clone()))
    }

    /// Returns a converter of a schema that knows all books, or which instruments have ended.
    fn seeded(&self, schema: Schema, table: &dyn Lookup) -> Option<Box<ToDbn>> {
        let mut converter = self.converter(schema)?;
        let mut unused = Vec::new();
        let is_lost = self.views.has_lost_others();
        if is_lost {
            converter.lose_all();
        }
        let has_books = matches!(schema, Schema::Mbo | Schema::Mbp1 | Schema::Mbp10);
        for instrument in self.views.numbers() {
            let seen = self.views.seen(instrument);
            let has_lost = seen.is_some_and(|seen| seen.is_lost);
            let mut write = |event: &Event| {
                converter.write(event, 0, table, &mut unused);
                unused.clear();
            };
            if has_books {
                if is_lost && !has_lost {
                    // It was shown since, if only as an empty book.
                    write(&Event {
                        instrument,
                        source: seen.map_or(0, |seen| seen.source),
                        ..Event::EMPTY
                    });
                }
                self.views.snapshot(instrument, &mut write);
            } else if schema == Schema::Definition
                && let Some(end) = self.views.state(instrument).filter(state::closes)
            {
                write(&end);
            }
            if has_lost {
                converter.lose_book(instrument);
            }
        }
        Some(Box::new(converter))
    }

    /// Applies an earlier event without writing a record.
    pub fn seed(&mut self, event: &Event) {
        self.values.take(event);
        if event.instrument != InstrumentId::ALL {
            self.views.take(event);
        }
    }

    /// Records, after [`Self::seed`], that the book of an instrument may be wrong until it is shown
    /// again, or with [`InstrumentId::ALL`] those of all instruments without an event so far.
    pub fn seed_lost(&mut self, instrument: InstrumentId) {
        self.views.lose(instrument);
    }

    /// Appends the records of an event, after the symbol of an instrument that is new. A trade, a
    /// status or a value that a snapshot shows again has none.
    #[inline]
    pub fn event(&mut self, event: &Event, table: &dyn Lookup, batch: &mut Batch) {
        let time = event.arrival();
        if let Some(time) = time {
            self.time = time;
            let (at, views) = (event.instrument, &self.views);
            self.lost += self.intervals.prepare(at, time, views, batch) as u64;
        }
        let is_again = self.values.take(event);
        if event.instrument == InstrumentId::ALL {
            if !is_again {
                self.convert(event, table, batch);
            }
            return;
        }
        self.views.take(event);
        let is_named = self
            .views
            .seen(event.instrument)
            .is_some_and(|seen| seen.is_named);
        if !is_named || event.kind == Kind::Definition {
            self.name(event, table, batch);
        }
        if let Some(time) = time {
            self.intervals.take(event, time);
        }
        if !is_again {
            self.convert(event, table, batch);
        }
    }

    #[inline]
    fn convert(&mut self, event: &Event, table: &dyn Lookup, batch: &mut Batch) {
        let wanted = self.wanted;
        for (converter, schema) in self.converters.iter_mut().zip(Schema::ALL) {
            let Some(converter) = converter else {
                continue;
            };
            if !is_about(schema, event) {
                continue;
            }
            let start = batch.bytes.len();
            converter.write(event, 0, table, &mut batch.bytes);
            let is_written = batch.bytes.len() > start;
            if is_written {
                tag(schema, start, event, wanted, batch);
            }
            if !self.withheld.is_empty() {
                self.withheld.forget(schema, event, is_written);
            }
            if !converter.lost().is_empty() {
                let to = (schema, of(schema, event).and(wanted));
                let what = (event, converter.lost());
                self.withheld.tell(to, what, table, batch);
            }
        }
    }

    #[cold]
    fn name(&mut self, event: &Event, table: &dyn Lookup, batch: &mut Batch) {
        let by = SymbolType::InstrumentId;
        if self.write_name(
            event.instrument,
            by,
            known_time(event.ts_event, event.ts_recv),
            table,
            &mut batch.bytes,
        ) {
            batch.tag(event.instrument, LiveSchemas::ALL, 0);
            if let Some(seen) = self.views.seen_mut(event.instrument) {
                seen.is_named = true;
            }
        }
    }

    /// Appends the symbol of an instrument. Returns false if it has none that fits.
    pub fn write_name(
        &self,
        instrument: InstrumentId,
        by: SymbolType,
        ts_event: u64,
        table: &dyn Lookup,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(known) = table.instrument(instrument) else {
            return false;
        };
        let source = self.views.seen(instrument).map_or(0, |seen| seen.source);
        let symbol = symbol(&known.definition.name);
        mapping(by, (source, instrument), &symbol, ts_event, out)
    }

    /// Appends the orders of an instrument's book: an `R`, then an `A` for each, all marked as a
    /// snapshot. Returns the number of records, or 0 if the instrument has no book of orders. One
    /// whose size DBN cannot represent is left out and counted ([`Self::lost`]), and the others are
    /// marked MAYBE_BAD_BOOK.
    pub fn write_orders(&self, instrument: InstrumentId, out: &mut Vec<u8>) -> u64 {
        let (records, lost) = self.views.orders(instrument, out);
        self.lost_orders.set(self.lost_orders.get() + lost);
        records
    }

    /// Appends the definition of an instrument, which says if it has ended, or its last status,
    /// which may be that of its feed's trading session.
    pub fn write_known(
        &self,
        schema: LiveSchema,
        instrument: InstrumentId,
        now: u64,
        table: &dyn Lookup,
        out: &mut Vec<u8>,
    ) {
        let seen = self.views.seen(instrument);
        let known = match schema {
            LiveSchema::Definition => {
                let end = self.views.state(instrument).filter(state::closes);
                let known = end.unwrap_or(Event {
                    kind: Kind::Definition,
                    instrument,
                    source: seen.map_or(0, |seen| seen.source),
                    ..Event::EMPTY
                });
                let event = Event {
                    flags: Flags::SNAPSHOT,
                    ts_event: now,
                    ts_recv: now,
                    ..known
                };
                Some((event, false))
            }
            LiveSchema::Status => self.last_status(instrument),
            _ => None,
        };
        let Some(((event, is_of_session), schema)) = known.zip(schema.made_of()) else {
            return;
        };
        if let Some(mut converter) = self.converter(schema) {
            converter.write_known((&event, is_of_session), table, out);
        }
    }

    /// Returns the last status of an instrument, and whether it is that of its feed's trading
    /// session.
    fn last_status(&self, instrument: InstrumentId) -> Option<(Event, bool)> {
        let seen = self.views.seen(instrument);
        let own = seen.and_then(|seen| seen.status);
        let source = match self.bases.as_slice() {
            [] => seen.map(|seen| seen.source),
            bases => u16::try_from(bases.partition_point(|base| *base <= instrument.0)).ok(),
        };
        let session = source.and_then(|source| self.values.session(source));
        // One without a record has not become a status of the instrument.
        let session = session.filter(|session| codes::status(session.id, true).is_some());
        match (own, session) {
            (own, Some(session)) if own.is_none_or(|own| is_later(session, &own)) => {
                let event = Event {
                    instrument,
                    ..*session
                };
                Some((event, true))
            }
            (own, _) => own.map(|own| (own, false)),
        }
    }

    /// Appends the records of the intervals that end at `time` or before it, in nanoseconds since
    /// 1970, because every later event is of this time or after it. Without such watermarks, an
    /// interval ends at the first event that is a second later.
    ///
    /// A trade that comes after its interval has ended is in the bar of the next one, and a system
    /// record says so. With a watermark to which the clock was set back, all intervals end, and
    /// those of its time begin. One of an unknown course, or the first one behind a loss, is judged
    /// by its time, as [`ClockSteps`](crate::watermark::ClockSteps) does.
    pub fn watermark(&mut self, mark: Watermark, batch: &mut Batch) {
        self.lost += self.intervals.watermark(mark, &self.views, batch) as u64;
    }

    /// Ends the intervals that end at `time` or before it, as [`Self::watermark`] does: for a past
    /// that joins another stream of its events, up to what that has [`Self::ended`].
    pub fn end_intervals(&mut self, time: u64, batch: &mut Batch) {
        self.lost += self.intervals.advance(time, &self.views, batch) as u64;
    }

    /// Returns the time up to which intervals have ended since the last event, in nanoseconds since
    /// 1970: 0 without a watermark since then, or `u64::MAX` if no interval is in progress.
    pub const fn ended(&self) -> u64 {
        self.intervals.ended()
    }

    /// Records that events were lost, so that books may be wrong until they are shown again, also
    /// those of instruments without an event so far.
    pub fn lose_all(&mut self) {
        self.views.lose_all();
        self.intervals.lose();
        for converter in self.converters.iter_mut().flatten() {
            converter.lose_all();
        }
    }

    /// Records a restart of the plant: every book is empty and recovering, and later events may be
    /// of another time. Symbols are written again, because numbers may be those of other
    /// instruments.
    pub fn restart(&mut self, table: &dyn Lookup, batch: &mut Batch) {
        // An earlier watermark behind the restart may have ended them already.
        let has_intervals = self.intervals.has_begun();
        let all: Vec<_> = self.views.numbers().collect();
        for instrument in all {
            let source = self.views.seen(instrument).map_or(0, |seen| seen.source);
            for event in state::forget_book(instrument, source, self.time) {
                self.event(&event, table, batch);
            }
        }
        match has_intervals {
            true => self.lost += self.intervals.begin_again(&self.views, batch) as u64,
            false => self.intervals.put_off(),
        }
        self.views.restart();
        for converter in self.converters.iter_mut().flatten() {
            converter.restart();
        }
    }

    /// Returns the time of the last event, or 0 before the first one.
    pub const fn time(&self) -> u64 {
        self.time
    }

    /// Returns the number of values so far that DBN cannot represent.
    pub fn lost(&self) -> u64 {
        let all = self.converters.iter().flatten();
        let all = all.map(|converter| converter.counts().lost);
        self.lost + self.lost_orders.get() + all.sum::<u64>()
    }

    /// Returns the counters of the converter of a schema, if it is written.
    pub fn counts(&self, schema: Schema) -> Option<DbnCounts> {
        let at = Schema::ALL.iter().position(|own| *own == schema)?;
        Some(self.converters.get(at)?.as_ref()?.counts())
    }
}

/// Returns whether a status is later than another one. One that was shown again has the number of
/// that moment, so that its time decides, if both have one.
const fn is_later(status: &Event, other: &Event) -> bool {
    let was_shown = status.flags.has(Flags::SNAPSHOT) || other.flags.has(Flags::SNAPSHOT);
    let has_times = status.ts_event != Event::NO_TIME && other.ts_event != Event::NO_TIME;
    if was_shown && has_times && status.ts_event != other.ts_event {
        return status.ts_event > other.ts_event;
    }
    status.number > other.number
}

/// Returns whether a schema may have records of an event.
#[inline]
const fn is_about(schema: Schema, event: &Event) -> bool {
    match schema {
        Schema::Mbo | Schema::Mbp1 | Schema::Mbp10 => true,
        Schema::Trades => matches!(event.kind, Kind::Trade),
        // A state may be the end of the instrument.
        Schema::Definition => matches!(event.kind, Kind::Definition | Kind::State),
        Schema::Status => matches!(event.kind, Kind::Status),
        Schema::Statistics => matches!(event.kind, Kind::Statistic),
    }
}

/// Tags the records of an event from byte `start` on, which are of this schema.
#[inline]
fn tag(schema: Schema, start: usize, event: &Event, wanted: LiveSchemas, batch: &mut Batch) {
    match schema {
        Schema::Mbp1 => batch.tag_all(start, 0, |record| {
            let mut schemas = LiveSchema::Mbp1.alone();
            if record.get(ACTION) == Some(&b'T') {
                schemas = schemas.with(LiveSchema::Tbbo.alone());
            }
            schemas.and(wanted)
        }),
        Schema::Statistics => {
            batch.tag_all(start, event.entry, |_| LiveSchema::Statistics.alone());
        }
        schema => {
            let schemas = same(schema).alone();
            batch.tag_all(start, 0, |_| schemas);
        }
    }
}

/// Returns the schemas of a live stream that would have the record of an event.
fn of(schema: Schema, event: &Event) -> LiveSchemas {
    match (schema, event.kind) {
        (Schema::Mbp1, Kind::Trade) => LiveSchema::Mbp1.alone().with(LiveSchema::Tbbo.alone()),
        _ => same(schema).alone(),
    }
}

/// Returns the schema of a live stream that has all records of this one.
const fn same(schema: Schema) -> LiveSchema {
    match schema {
        Schema::Mbo => LiveSchema::Mbo,
        Schema::Mbp1 => LiveSchema::Mbp1,
        Schema::Mbp10 => LiveSchema::Mbp10,
        Schema::Trades => LiveSchema::Trades,
        Schema::Definition => LiveSchema::Definition,
        Schema::Status => LiveSchema::Status,
        Schema::Statistics => LiveSchema::Statistics,
    }
}
