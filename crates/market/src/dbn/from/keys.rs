//! The instruments of a stream by `publisher_id` and `instrument_id`, and their names.

use super::Wrong;
use super::dated::{ByDay, Dated, Times};
use super::metadata::Named;
use crate::event::InstrumentId;
use crate::instruments::{
    Defined, Definition, IdSource, Instrument, Instruments, Name, Refused, SecurityId,
};
use std::collections::{BTreeSet, HashMap, HashSet};

/// The `publisher_id` and the `instrument_id` of a record.
pub(super) type Key = (u16, u32);

/// The most instruments of one symbol in the metadata.
const MOST_OF_SYMBOL: usize = 256;

/// The publisher of symbols that are those of all publishers.
const ALL: u16 = 0;

/// The key that has an instrument, or had it before the plant was restarted.
#[derive(Clone, Copy, Debug)]
struct Owner {
    key: Key,
    is_open: bool,
    /// Whether the key has had a record. Otherwise it only has a symbol for all publishers.
    is_heard: bool,
}

/// The keys so far, each with an instrument of its own.
#[derive(Debug, Default)]
pub(super) struct Keys {
    numbers: HashMap<Key, InstrumentId>,
    publishers: BTreeSet<u16>,
    /// The instrument whose symbol an `instrument_id` has with every publisher: by the metadata, on
    /// the day of the last record, or by a symbol for all publishers.
    named: HashMap<u32, InstrumentId>,
    /// The numbers that an instrument of the metadata has there, at different times.
    in_metadata: HashMap<InstrumentId, HashSet<u32>>,
    /// The symbols of each day, for numbers that stand for several instruments.
    days: ByDay,
    owners: Vec<Option<Owner>>,
}

impl Keys {
    /// Returns the instrument of a key that is known.
    pub(super) fn get(&self, key: Key) -> Option<InstrumentId> {
        self.numbers.get(&key).copied()
    }

    /// Returns the known keys that have the symbol of a record with this key: this key, or without
    /// a publisher its number with each of them.
    pub(super) fn named_by(&self, key: Key) -> Vec<Key> {
        let all = self.publishers.iter().map(|publisher| (*publisher, key.1));
        all.filter(|own| key.0 == ALL || own.0 == key.0)
            .filter(|own| self.numbers.contains_key(own))
            .collect()
    }

    /// Adds the instruments of the metadata. A symbol is one instrument, unless several numbers
    /// have it at a time.
    pub(super) fn begin(
        &mut self,
        table: &mut Instruments,
        symbols: &[Named],
    ) -> Result<(), Wrong> {
        let mut times: HashMap<InstrumentId, Times> = HashMap::new();
        let mut all = Vec::new();
        for named in symbols.iter().filter(|named| !named.symbol.is_empty()) {
            let (number, from, to) = (named.number, named.from, named.to);
            let may_be = |own: &InstrumentId| {
                let times = times.get(own);
                times.is_none_or(|times| times.may_have(number, from, to))
            };
            let own = table.of_symbol(&named.symbol).find(may_be);
            let instrument = match own {
                Some(own) => own,
                None => {
                    if table.of_symbol(&named.symbol).count() >= MOST_OF_SYMBOL {
                        return Err(Wrong::Metadata("a symbol is that of too many instruments"));
                    }
                    let added = add(table, (ALL, number), &named.symbol);
                    added.map_err(Wrong::Instrument)?
                }
            };
            times.entry(instrument).or_default().add(number, from, to);
            self.in_metadata
                .entry(instrument)
                .or_default()
                .insert(number);
            self.named.insert(named.number, instrument);
            all.push(Dated {
                number: named.number,
                instrument,
                from: named.from,
                to: named.to,
            });
        }
        self.days = ByDay::new(all);
        Ok(())
    }

    /// Takes the symbols of the day of a record.
    pub(super) fn pass_to(&mut self, time: u64) {
        for id in self.days.apply(time, &mut self.named) {
            for publisher in &self.publishers {
                let key = (*publisher, id);
                if let Some(number) = self.numbers.remove(&key) {
                    release(&mut self.owners, key, number);
                }
            }
        }
    }

    /// Forgets all keys, because the plant was restarted and its numbers may be those of other
    /// instruments. Those are found again by their symbols.
    pub(super) fn restart(&mut self) {
        self.numbers.clear();
        self.named.clear();
        self.in_metadata.clear();
        for owner in self.owners.iter_mut().flatten() {
            owner.is_open = false;
        }
    }

    /// Returns the instrument of a key. One without a symbol is called after its number.
    pub(super) fn find_or_add(
        &mut self,
        table: &mut Instruments,
        key: Key,
    ) -> Result<InstrumentId, Refused> {
        if let Some(number) = self.get(key) {
            return Ok(number);
        }
        let number = match self.named.get(&key.1).copied() {
            None => self.unnamed(table, key)?,
            Some(named) if self.is_free(named, key) => named,
            Some(named) => {
                let symbol = symbol_of(table, named).to_vec();
                self.of_symbol(table, key, &symbol)?
            }
        };
        self.claim(key, number);
        Ok(number)
    }

    /// Returns the instrument of a key that a record names for the first time. A symbol of certain
    /// days may be that of another number before these days.
    pub(super) fn name(
        &mut self,
        table: &mut Instruments,
        key: Key,
        (symbol, is_dated): (&[u8], bool),
    ) -> Result<InstrumentId, Refused> {
        let named = self.named.get(&key.1).copied();
        let named = named.filter(|own| symbol_of(table, *own) == symbol);
        let number = match named.filter(|own| self.is_free(*own, key)) {
            Some(number) => number,
            None if is_dated => self.moved(table, key, symbol)?,
            None => self.of_symbol(table, key, symbol)?,
        };
        if key.0 != ALL {
            self.claim(key, number);
            return Ok(number);
        }
        // It is that of the publisher which has the first record.
        self.own(key, number, false);
        let before = self.named.insert(key.1, number);
        if let Some(before) = before.filter(|before| *before != number) {
            release(&mut self.owners, key, before);
        }
        Ok(number)
    }

    /// Changes the symbol of the instrument of a known key, which stays the same instrument. A
    /// symbol of certain days is that of another one. Returns the definition if the instrument has
    /// another symbol now.
    pub(super) fn rename(
        &mut self,
        table: &mut Instruments,
        key: Key,
        (symbol, is_dated): (&[u8], bool),
    ) -> Result<Option<Defined>, Refused> {
        let Some(known) = self.get(key).and_then(|number| table.get(number)) else {
            return Ok(None);
        };
        let (number, before) = (known.instrument, known.definition.name.symbol);
        if before == symbol {
            return Ok(None);
        }
        if is_dated && !before.is_empty() {
            let other = self.moved(table, key, symbol);
            let other = other.inspect_err(|_| self.forget(key))?;
            self.claim(key, other);
            return Ok(None);
        }
        let mut bytes = Vec::new();
        known.write(&mut bytes);
        let Some(known) = Instrument::read(&bytes) else {
            return Ok(None);
        };
        let mut definition = known.definition;
        definition.name.symbol = symbol;
        define(table, key, number, &definition).map(Some)
    }

    /// Forgets the instrument of a key, whose records are of another one that cannot be added.
    fn forget(&mut self, key: Key) {
        if let Some(number) = self.numbers.remove(&key) {
            release(&mut self.owners, key, number);
            self.named.retain(|id, own| *id != key.1 || *own != number);
        }
    }

    /// Names a number after the instrument that a publisher has for it, if the key is that of all
    /// publishers: those that come later have its symbol.
    pub(super) fn name_all(&mut self, key: Key) {
        let known = self.named_by(key);
        let known = known.into_iter().find_map(|own| self.get(own));
        if let Some(number) = known.filter(|_| key.0 == ALL) {
            self.named.insert(key.1, number);
        }
    }

    /// Defines the instrument of a key. With `adds` the definition is of a new instrument: one that
    /// is defined by another symbol is not the same.
    pub(super) fn define(
        &mut self,
        table: &mut Instruments,
        key: Key,
        definition: &Definition<'_>,
        adds: bool,
    ) -> Result<Defined, Refused> {
        let symbol = definition.name.symbol;
        let is_other = |known: &Instrument<'_>| {
            let before = known.definition.name.symbol;
            let are_named = !before.is_empty() && !symbol.is_empty();
            adds && known.revision > 0 && are_named && before != symbol
        };
        let known = self.get(key).and_then(|number| table.get(number));
        let known = known.filter(|known| !is_other(known));
        let number = match known.map(|known| known.instrument) {
            Some(number) => number,
            None if symbol.is_empty() => self.find_or_add(table, key)?,
            None => self.name(table, key, (symbol, false))?,
        };
        self.claim(key, number);
        define(table, key, number, definition)
    }

    fn owner(&self, number: InstrumentId) -> Option<Owner> {
        self.owners.get(number.0 as usize).copied().flatten()
    }

    /// Returns whether a key may have this instrument. One of the metadata is for the numbers that
    /// it has there, of which a publisher may use all, such as another one each day.
    fn is_free(&self, number: InstrumentId, key: Key) -> bool {
        let numbers = self.in_metadata.get(&number);
        if numbers.is_some_and(|all| !all.contains(&key.1)) {
            return false;
        }
        self.owner(number).is_none_or(|owner| {
            let is_of_all = owner.key == (ALL, key.1) && !owner.is_heard;
            let is_own = owner.key == key || numbers.is_some() && owner.key.0 == key.0;
            !owner.is_open || is_of_all || is_own
        })
    }

    fn claim(&mut self, key: Key, number: InstrumentId) {
        self.publishers.insert(key.0);
        if let Some(old) = self.numbers.insert(key, number)
            && old != number
        {
            release(&mut self.owners, key, old);
        }
        self.own(key, number, true);
    }

    fn own(&mut self, key: Key, number: InstrumentId, is_heard: bool) {
        let place = number.0 as usize;
        if place >= self.owners.len() {
            self.owners.resize(place + 1, None);
        }
        if let Some(owner) = self.owners.get_mut(place) {
            *owner = Some(Owner {
                key,
                is_open: true,
                is_heard,
            });
        }
    }

    /// Returns an instrument of this symbol that the key may have, or a new one.
    fn of_symbol(
        &self,
        table: &mut Instruments,
        key: Key,
        symbol: &[u8],
    ) -> Result<InstrumentId, Refused> {
        match self.free(table, key, symbol) {
            Some(number) => Ok(number),
            None => add(table, key, symbol),
        }
    }

    /// Returns an instrument of this symbol that the key may have: first one that it had, or its
    /// publisher.
    fn free(&self, table: &Instruments, key: Key, symbol: &[u8]) -> Option<InstrumentId> {
        let all = table.of_symbol(symbol);
        let free = all.filter(|number| self.is_free(*number, key));
        free.min_by_key(|number| match self.owner(*number) {
            Some(owner) if owner.key == key => 0,
            Some(owner) if owner.key.0 == key.0 => 1,
            _ => 2,
        })
    }

    /// Returns the instrument of a symbol that a key has from a day on. It may be that of another
    /// number of the publisher until then, which loses it.
    fn moved(
        &mut self,
        table: &mut Instruments,
        key: Key,
        symbol: &[u8],
    ) -> Result<InstrumentId, Refused> {
        if let Some(number) = self.free(table, key, symbol) {
            return Ok(number);
        }
        let is_of_publisher = |number: &InstrumentId| {
            let owner = self.owner(*number).map(|owner| owner.key.0);
            !self.in_metadata.contains_key(number)
                && owner.is_some_and(|of| of == key.0 || of == ALL || key.0 == ALL)
        };
        let Some(number) = table.of_symbol(symbol).find(is_of_publisher) else {
            return add(table, key, symbol);
        };
        if let Some(Owner { key: (_, id), .. }) = self.owner(number) {
            for publisher in &self.publishers {
                let before = (*publisher, id);
                if self.get(before) == Some(number) {
                    self.numbers.remove(&before);
                }
            }
            if self.named.get(&id) == Some(&number) {
                self.named.remove(&id);
            }
        }
        Ok(number)
    }

    /// Returns the instrument of a key without a symbol, whose name is its number.
    fn unnamed(&self, table: &mut Instruments, key: Key) -> Result<InstrumentId, Refused> {
        let text = text_of(key);
        let number = SecurityId::Number(key.1.into());
        let mut name = Name::default();
        for id in [number, SecurityId::Text(text.as_bytes())] {
            name.id = id;
            let Some(other) = table.by_id(id, IdSource::NONE) else {
                break;
            };
            if symbol_of(table, other).is_empty() && self.is_free(other, key) {
                return Ok(other);
            }
        }
        table.add(&Definition::named(name))
    }
}

/// Releases the instrument of a key that has another one from now on.
fn release(owners: &mut [Option<Owner>], key: Key, number: InstrumentId) {
    if let Some(Some(owner)) = owners.get_mut(number.0 as usize)
        && owner.key == key
    {
        owner.is_open = false;
    }
}

/// Returns the SecurityID(48) of an instrument that its symbol does not tell apart from others.
fn text_of((publisher, id): Key) -> String {
    format!("{publisher}:{id}")
}

fn symbol_of(table: &Instruments, number: InstrumentId) -> &[u8] {
    let known = table.get(number);
    known
        .map(|known| known.definition.name.symbol)
        .unwrap_or_default()
}

/// Adds an instrument, which an ID tells apart from others of its symbol.
fn add(table: &mut Instruments, key: Key, symbol: &[u8]) -> Result<InstrumentId, Refused> {
    let text = text_of(key);
    let id = match table.by_symbol(symbol) {
        Some(_) => SecurityId::Text(text.as_bytes()),
        None => SecurityId::None,
    };
    let name = Name {
        symbol,
        id,
        ..Name::default()
    };
    table.add(&Definition::named(name))
}

/// Defines an instrument. If another one has its symbol and its ID, it has an ID of its own.
fn define(
    table: &mut Instruments,
    key: Key,
    number: InstrumentId,
    definition: &Definition<'_>,
) -> Result<Defined, Refused> {
    let text = text_of(key);
    let mut definition = *definition;
    if is_taken(table, number, &definition.name) {
        definition.name.id = SecurityId::Text(text.as_bytes());
        definition.name.source = IdSource::NONE;
    }
    table.define_at(number, &definition)
}

/// Returns whether another instrument has the name that a definition has or leaves as it is.
fn is_taken(table: &Instruments, number: InstrumentId, name: &Name<'_>) -> bool {
    let Some(known) = table.get(number) else {
        return false;
    };
    let before = known.definition.name;
    let symbol = match name.symbol {
        b"" => before.symbol,
        symbol => symbol,
    };
    let id = match name.id {
        SecurityId::None => before.id,
        id => id,
    };
    let is_new = symbol != before.symbol;
    !symbol.is_empty()
        && table
            .of_symbol(symbol)
            .filter(|other| *other != number)
            .any(|other| {
                let other = table.get(other).map(|other| other.definition.name.id);
                other == Some(id) || is_new && id == SecurityId::None
            })
}
