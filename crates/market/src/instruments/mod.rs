//! The table of instruments: their names, numbers and definitions.
//!
//! ```
//! use fanfare_market::instruments::{Definition, IdSource, Instruments, Name, SecurityId};
//!
//! let mut table = Instruments::new(1_000_000);
//! let name = Name {
//!     symbol: b"RIU3",
//!     id: SecurityId::Number(49_634_118),
//!     source: IdSource::parse(b"8").unwrap(),
//! };
//! let defined = table.define(&Definition { name, currency: b"RUB", ..Definition::default() })?;
//! assert_eq!(table.by_symbol(b"RIU3"), Some(defined.instrument));
//! assert_eq!(table.by_id(name.id, name.source), Some(defined.instrument));
//! assert_eq!(table.get(defined.instrument).unwrap().definition.currency, b"RUB");
//! # Ok::<(), fanfare_market::instruments::Refused>(())
//! ```

mod column;
mod definition;
mod directory;
mod file;
mod index;
mod packed;
mod record;
mod texts;

pub(crate) use column::{Column, Columns};
pub use definition::{Definition, IdSource, Instrument, Name, SecurityId};
pub use directory::Directory;

use crate::event::InstrumentId;
use column::completed;
use core::fmt;
use index::{Index, Keys};
use record::{Record, Records};
use std::collections::{BTreeMap, BTreeSet};
use texts::Texts;

/// The longest text of a definition, in bytes.
pub const MAX_TEXT: usize = 4096;

/// The instruments of a plant. The number of an instrument is its index, from 0, and never changes.
///
/// Looking up does not allocate. Adding allocates in large pieces, and an instrument takes about
/// 150 bytes and those of its texts. One of which a feed sends parts of its definition takes about
/// 170 bytes more. Instruments beyond the limit are refused and counted.
#[derive(Debug)]
pub struct Instruments {
    records: Records,
    texts: Texts,
    by_symbol: Index,
    by_id: Index,
    keys: Keys,
    /// The instruments with the symbol of another one, which alone is found by it: the hash of the
    /// symbol, and the number.
    hidden: BTreeSet<(u32, u32)>,
    /// The places in the channel of the values of each instrument whose last definition was a part.
    parts: BTreeMap<u32, Box<[u64; Columns::COUNT]>>,
    limit: usize,
    refused: u64,
    /// The last status of the trading session, and its place in the channel.
    session: Option<u16>,
    session_at: u64,
    /// The longest time from the creation of a snapshot to its arrival, in nanoseconds.
    snapshot_age: u64,
    room: Vec<u8>,
}

const SECOND: u64 = 1_000_000_000;

/// The place of a message in its channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its number, as extended by the arbiter. Without a number it is behind the last message so
    /// far.
    pub(crate) sequence: u64,
    /// Whether it has a number. Otherwise it may be of an earlier time: what it only repeats is of
    /// the place that is known.
    pub(crate) is_numbered: bool,
}

/// A look-up of instruments by their numbers.
pub trait Lookup {
    /// Returns the instrument of this number, if there is one. Allocates nothing.
    fn instrument(&self, number: InstrumentId) -> Option<Instrument<'_>>;

    /// Returns a number above those of all instruments.
    fn bound(&self) -> u32;
}

/// The result of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defined {
    /// The instrument.
    pub instrument: InstrumentId,
    /// Whether the definition changes anything.
    pub change: Change,
    /// The number of the instrument's definitions, from 1.
    pub revision: u32,
}

/// Whether a definition changes anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// The instrument was not defined before, or was closed since.
    New,
    /// The instrument was defined differently.
    Changed,
    /// The instrument was defined equally.
    Same,
}

/// The reason why an instrument was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The limit of instruments is reached.
    Full,
    /// The instrument has neither symbol nor SecurityID.
    NoName,
    /// A text has more than [`MAX_TEXT`] bytes.
    TooLong,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Full => f.write_str("the table of instruments is full"),
            Self::NoName => f.write_str("the instrument has neither Symbol(55) nor SecurityID(48)"),
            Self::TooLong => write!(f, "a text has more than {MAX_TEXT} bytes"),
        }
    }
}

impl core::error::Error for Refused {}

impl Instruments {
    /// Creates an empty table for at most `limit` instruments, and never more than 2^32 - 2.
    pub fn new(limit: usize) -> Self {
        Self {
            records: Records::default(),
            texts: Texts::default(),
            by_symbol: Index::default(),
            by_id: Index::default(),
            keys: Keys::new(),
            hidden: BTreeSet::new(),
            parts: BTreeMap::new(),
            limit: limit.min(u32::MAX as usize - 1),
            refused: 0,
            session: None,
            session_at: 0,
            snapshot_age: 0,
            room: Vec::new(),
        }
    }

    /// Returns the number of instruments.
    pub const fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns true if there is none.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the most instruments that the table takes.
    pub const fn limit(&self) -> usize {
        self.limit
    }

    /// Returns how often an instrument was refused because the table was full.
    pub const fn refused(&self) -> u64 {
        self.refused
    }

    /// Returns the instrument of this number.
    pub fn get(&self, instrument: InstrumentId) -> Option<Instrument<'_>> {
        let record = self.records.get(instrument.0)?;
        Some(Instrument {
            instrument,
            definition: record.definition(&self.texts),
            revision: record.revision,
            status: record.status,
        })
    }

    /// Returns all instruments, by their numbers.
    pub fn iter(&self) -> impl Iterator<Item = Instrument<'_>> {
        (0..self.len() as u32).filter_map(|number| self.get(InstrumentId(number)))
    }

    /// Returns the instrument of this symbol, the first one if several have it.
    pub fn by_symbol(&self, symbol: &[u8]) -> Option<InstrumentId> {
        let hash = self.keys.of_text(symbol, 0);
        let found = self.by_symbol.find(hash, |place| {
            let record = self.records.get(place);
            record.is_some_and(|record| record.symbol(&self.texts) == symbol)
        });
        found.map(InstrumentId)
    }

    /// Returns all instruments of this symbol, the one of [`Self::by_symbol`] first.
    pub(crate) fn of_symbol<'a>(
        &'a self,
        symbol: &'a [u8],
    ) -> impl Iterator<Item = InstrumentId> + use<'a> {
        let hash = self.keys.of_text(symbol, 0);
        let others = self.hidden.range((hash, 0)..=(hash, u32::MAX));
        let others = others.filter(move |(_, place)| {
            let record = self.records.get(*place);
            record.is_some_and(|record| record.symbol(&self.texts) == symbol)
        });
        let first = self.by_symbol(symbol).into_iter();
        first.chain(others.map(|(_, place)| InstrumentId(*place)))
    }

    /// Returns the instrument with this SecurityID from this source.
    #[inline]
    pub fn by_id(&self, id: SecurityId<'_>, source: IdSource) -> Option<InstrumentId> {
        let hash = hash_of_id(self.keys, id, source)?;
        let found = self.by_id.find(hash, |place| {
            let record = self.records.get(place);
            record.is_some_and(|record| record.has_id(id, source, &self.texts))
        });
        found.map(InstrumentId)
    }

    /// Returns the instrument of this name: by its ID, or by its symbol if it has no ID, or if no
    /// instrument has this ID and the instrument of the symbol has none.
    #[inline]
    pub fn find(&self, name: &Name<'_>) -> Option<InstrumentId> {
        if name.id != SecurityId::None {
            let found = self.by_id(name.id, name.source);
            return found.or_else(|| self.without_id(name.symbol));
        }
        match name.symbol {
            b"" => None,
            symbol => self.by_symbol(symbol),
        }
    }

    /// Returns the instrument of this symbol whose ID is not known.
    #[cold]
    fn without_id(&self, symbol: &[u8]) -> Option<InstrumentId> {
        let found = self.by_symbol(symbol).filter(|_| !symbol.is_empty())?;
        let record = self.records.get(found.0)?;
        (record.id(&self.texts) == SecurityId::None).then_some(found)
    }

    /// Returns the instrument of this name, which is added if it is new.
    ///
    /// # Errors
    ///
    /// Returns a [`Refused`] if nothing was added.
    pub fn see(&mut self, name: &Name<'_>) -> Result<InstrumentId, Refused> {
        match self.find(name) {
            Some(found) => Ok(found),
            None => self.add(&Definition::named(*name)),
        }
    }

    /// Defines an instrument, or replaces its definition. Values that the definition does not have
    /// are unknown from then on, except for the name.
    ///
    /// # Errors
    ///
    /// Returns a [`Refused`] if the table is unchanged.
    pub fn define(&mut self, definition: &Definition<'_>) -> Result<Defined, Refused> {
        self.define_part(definition, Columns::ALL)
    }

    /// Defines an instrument, or changes the values of its definition that are in `has`. The others
    /// stay as they are.
    pub(crate) fn define_part(
        &mut self,
        definition: &Definition<'_>,
        has: Columns,
    ) -> Result<Defined, Refused> {
        match self.find(&definition.name) {
            Some(found) => self.replace(found, false, (definition, has)),
            None => {
                let added = self.add(definition)?;
                self.replace(added, true, (definition, has))
            }
        }
    }

    /// Defines the instrument of this number as [`Self::define`] does, whatever its name is. An ID
    /// of the definition replaces another one.
    pub(crate) fn define_at(
        &mut self,
        instrument: InstrumentId,
        definition: &Definition<'_>,
    ) -> Result<Defined, Refused> {
        self.replace(instrument, false, (definition, Columns::ALL))
    }

    fn replace(
        &mut self,
        instrument: InstrumentId,
        is_new: bool,
        (definition, has): (&Definition<'_>, Columns),
    ) -> Result<Defined, Refused> {
        let Some(old) = self.records.get(instrument.0).copied() else {
            return Err(Refused::Full);
        };
        let before = old.definition(&self.texts);
        let after = completed(definition, has, &before);
        check(&after)?;
        let is_same = after == before;
        let change = match is_same {
            _ if old.revision == 0 || old.is_closed => Change::New,
            true => Change::Same,
            false => Change::Changed,
        };
        let mut record = old;
        if !is_new && !is_same {
            let names = Names::between(self.keys, &before.name, &after.name);
            record = Record::new(&after, old.texts);
            (record.revision, record.status) = (old.revision, old.status);
            (record.defined_at, record.status_at) = (old.defined_at, old.status_at);
            (record.defined_status, record.closed_at) = (old.defined_status, old.closed_at);
            record::write_texts(&after, &mut self.room);
            self.rename(instrument.0, &names, definition);
            record.texts = self.texts.replace(old.texts, &self.room);
        }
        if change != Change::Same {
            record.revision = record.revision.saturating_add(1);
        }
        if change == Change::New {
            record.defined_status = 0;
        }
        record.is_closed = false;
        let revision = record.revision;
        self.records.set(instrument.0, record);
        self.tidy_up();
        Ok(Defined {
            instrument,
            change,
            revision,
        })
    }

    /// Sets whether an instrument is no longer traded, so that its next definition is new even if
    /// it equals the last one.
    pub fn set_closed(&mut self, instrument: InstrumentId, is_closed: bool) {
        if let Some(mut record) = self.records.get(instrument.0).copied() {
            record.is_closed = is_closed;
            self.records.set(instrument.0, record);
        }
    }

    /// Closes an instrument, as [`Self::set_closed`] does, by a message of this place that arrived
    /// at `ts_recv`.
    pub(crate) fn close_at(&mut self, instrument: InstrumentId, place: Place, ts_recv: u64) {
        if let Some(mut record) = self.records.get(instrument.0).copied() {
            if !record.is_closed {
                let seconds = u32::try_from(ts_recv.div_ceil(SECOND)).unwrap_or(u32::MAX);
                record.closed_at = match place.is_numbered {
                    true => seconds.max(1),
                    false => 0,
                };
            }
            record.is_closed = true;
            self.records.set(instrument.0, record);
        }
    }

    /// Sets the longest time from the creation of a snapshot to its arrival, in nanoseconds:
    /// definitions that repeat what is known may be as old.
    pub(crate) const fn set_snapshot_age(&mut self, snapshot_age: u64) {
        self.snapshot_age = snapshot_age;
    }

    /// Returns whether a definition that arrives at `ts_recv`, with these values and this status,
    /// may be of the time before its instrument was closed: it has no number, and repeats the last
    /// one.
    pub(crate) fn may_precede_end(
        &self,
        instrument: InstrumentId,
        (definition, has, status): (&Definition<'_>, Columns, Option<u16>),
        (place, ts_recv): (Place, u64),
    ) -> bool {
        let Some(record) = self.records.get(instrument.0) else {
            return false;
        };
        if place.is_numbered || !record.is_closed || record.closed_at == 0 {
            return false;
        }
        let since = ts_recv.abs_diff(u64::from(record.closed_at) * SECOND);
        let before = record.definition(&self.texts);
        since < self.snapshot_age
            && status.is_none_or(|status| status == record.defined_status)
            && completed(definition, has, &before) == before
    }

    /// Sets SecurityTradingStatus(326). Returns true if it has changed.
    pub fn set_status(&mut self, instrument: InstrumentId, status: u16) -> bool {
        let Some(mut record) = self.records.get(instrument.0).copied() else {
            return false;
        };
        let before = std::mem::replace(&mut record.status, status);
        self.records.set(instrument.0, record);
        before != status
    }

    /// Sets a status as of this place in the channel: SecurityTradingStatus(326) of an instrument,
    /// or that of all by the trading session, which the table does not have. Returns whether it has
    /// changed, or `None` if that of a later place is set.
    pub(crate) fn set_status_at(
        &mut self,
        instrument: InstrumentId,
        status: u16,
        place: Place,
    ) -> Option<bool> {
        if instrument == InstrumentId::ALL {
            if place.sequence < self.session_at {
                return None;
            }
            if self.session.replace(status) != Some(status) || place.is_numbered {
                self.session_at = place.sequence;
            }
            return Some(true);
        }
        let Some(mut record) = self.records.get(instrument.0).copied() else {
            return Some(false);
        };
        if place.sequence < record.status_at {
            return None;
        }
        let has_changed = std::mem::replace(&mut record.status, status) != status;
        if has_changed || place.is_numbered {
            record.status_at = place.sequence;
        }
        self.records.set(instrument.0, record);
        Some(has_changed)
    }

    /// Sets the status in a definition, as [`Self::set_status_at`] does. One without a number that
    /// has the status of the last definition changes nothing, as it may be older than a status
    /// since.
    pub(crate) fn set_defined_status_at(
        &mut self,
        instrument: InstrumentId,
        status: u16,
        place: Place,
    ) -> Option<bool> {
        let mut record = self.records.get(instrument.0).copied()?;
        let is_known = record.defined_status == status;
        if record.defined_at <= place.sequence {
            record.defined_status = status;
            self.records.set(instrument.0, record);
        }
        match is_known && !place.is_numbered {
            true => Some(false),
            false => self.set_status_at(instrument, status, place),
        }
    }

    /// Records that values of the definition of an instrument are of this place in the channel.
    pub(crate) fn set_defined_at(&mut self, instrument: InstrumentId, has: Columns, place: Place) {
        let Some(mut record) = self.records.get(instrument.0).copied() else {
            return;
        };
        let before = record.defined_at;
        if has == Columns::ALL {
            self.parts.remove(&instrument.0);
            record.defined_at = place.sequence;
        } else {
            let new = || Box::new([before; Columns::COUNT]);
            let places = self.parts.entry(instrument.0).or_insert_with(new);
            has.set_places(place.sequence, places);
            record.defined_at = before.max(place.sequence);
        }
        self.records.set(instrument.0, record);
    }

    /// Returns those values of a definition of this place in the channel that no later definition
    /// has: all of them unless it is late, and none if a later one was whole.
    pub(crate) fn due(&self, instrument: InstrumentId, has: Columns, place: Place) -> Columns {
        let record = self.records.get(instrument.0);
        if record.is_none_or(|record| record.defined_at <= place.sequence) {
            return has;
        }
        match self.parts.get(&instrument.0) {
            Some(places) => has.not_behind(place.sequence, places),
            None => Columns::NONE,
        }
    }

    /// Adds an instrument, also if another one has its name.
    pub(crate) fn add(&mut self, definition: &Definition<'_>) -> Result<InstrumentId, Refused> {
        check(definition)?;
        if self.len() >= self.limit {
            self.refused += 1;
            return Err(Refused::Full);
        }
        let number = self.len() as u32;
        record::write_texts(definition, &mut self.room);
        let span = self.texts.push(&self.room);
        self.records.push(Record::new(definition, span));
        self.enter(number, &definition.name);
        Ok(InstrumentId(number))
    }

    /// Indexes an instrument by its symbol and its ID.
    fn enter(&mut self, number: u32, name: &Name<'_>) {
        if !name.symbol.is_empty() {
            let hash = self.keys.of_text(name.symbol, 0);
            if self.by_symbol(name.symbol).is_some() {
                self.hidden.insert((hash, number));
            } else {
                self.by_symbol.insert(hash, number);
            }
        }
        if let Some(hash) = hash_of_id(self.keys, name.id, name.source) {
            self.by_id.insert(hash, number);
        }
    }

    /// Replaces the indexed names of an instrument, whose record still has the old ones.
    fn rename(&mut self, number: u32, names: &Names, definition: &Definition<'_>) {
        if let Some(hash) = names.old_symbol {
            if self.by_symbol.remove(hash, number) {
                self.uncover(number, hash);
            } else {
                self.hidden.remove(&(hash, number));
            }
        }
        if let Some(hash) = names.old_id {
            self.by_id.remove(hash, number);
        }
        let mut added = definition.name;
        if !names.has_new_symbol {
            added.symbol = b"";
        }
        if !names.has_new_id {
            added.id = SecurityId::None;
        }
        self.enter(number, &added);
    }

    /// Indexes the first other instrument that has the symbol which this one is about to lose, by
    /// its hash.
    fn uncover(&mut self, number: u32, hash: u32) {
        let symbol_of = |place: u32| {
            let record = self.records.get(place);
            record.map(|record| record.symbol(&self.texts))
        };
        let symbol = symbol_of(number);
        let mut others = self.hidden.range((hash, 0)..=(hash, u32::MAX));
        let other = others.find(|(_, place)| symbol_of(*place) == symbol);
        if let Some(other) = other.copied() {
            self.hidden.remove(&other);
            self.by_symbol.insert(hash, other.1);
        }
    }

    /// Compacts the texts if most of their memory is wasted.
    fn tidy_up(&mut self) {
        if !self.texts.is_wasteful() {
            return;
        }
        let mut texts = Texts::default();
        for number in 0..self.len() as u32 {
            if let Some(mut record) = self.records.get(number).copied() {
                record.texts = texts.push(self.texts.get(record.texts));
                self.records.set(number, record);
            }
        }
        self.texts = texts;
    }
}

#[inline]
fn hash_of_id(keys: Keys, id: SecurityId<'_>, source: IdSource) -> Option<u32> {
    match id {
        SecurityId::None => None,
        SecurityId::Number(number) => Some(keys.of_number(number, source.bits())),
        SecurityId::Text(text) => Some(keys.of_text(text, source.bits())),
    }
}

/// The changes of the names of an instrument that is redefined.
struct Names {
    /// The hash of the symbol that it had and no longer has.
    old_symbol: Option<u32>,
    has_new_symbol: bool,
    /// The hash of the ID that it had and no longer has.
    old_id: Option<u32>,
    has_new_id: bool,
}

impl Names {
    fn between(keys: Keys, before: &Name<'_>, after: &Name<'_>) -> Self {
        let has_new_symbol = before.symbol != after.symbol;
        let had_symbol = has_new_symbol && !before.symbol.is_empty();
        let has_new_id = (before.id, before.source) != (after.id, after.source);
        let old_id = hash_of_id(keys, before.id, before.source);
        Self {
            old_symbol: had_symbol.then(|| keys.of_text(before.symbol, 0)),
            has_new_symbol,
            old_id: old_id.filter(|_| has_new_id),
            has_new_id,
        }
    }
}

fn check(definition: &Definition<'_>) -> Result<(), Refused> {
    if definition.name.is_empty() {
        return Err(Refused::NoName);
    }
    match definition.texts().iter().all(|text| text.len() <= MAX_TEXT) {
        true => Ok(()),
        false => Err(Refused::TooLong),
    }
}

#[cfg(test)]
mod tests;
