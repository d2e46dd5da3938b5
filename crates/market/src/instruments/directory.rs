//! A table of instruments for readers of events, kept by the plant's numbers, and searchable by
//! symbol, by prefix and by ID.

use super::definition::{IdSource, Instrument, Name, SecurityId};
use super::{Instruments, Lookup};
use crate::event::InstrumentId;
use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;

/// Instruments by the plant's numbers.
///
/// It accepts the output of [`Instrument::write`] in any order and any number of times. The last
/// one of a number is valid. Its memory is that of the instruments and about 200 bytes for each.
/// Looking up does not allocate.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    by_number: HashMap<u32, Box<[u8]>>,
    /// The symbols, each with its instruments in the order of their numbers. Several feeds may have
    /// the same symbol.
    by_symbol: BTreeMap<Box<[u8]>, Vec<u32>>,
    by_id: HashMap<Box<[u8]>, Vec<u32>>,
    /// The sources of all IDs so far.
    sources: Vec<IdSource>,
    /// A number above all others.
    bound: u32,
}

/// Writes SecurityID(48) and SecurityIDSource(22) as the bytes of a key. Returns false without an
/// ID.
fn key_of_id(id: SecurityId<'_>, source: IdSource, out: &mut Vec<u8>) -> bool {
    out.clear();
    match id {
        SecurityId::None => return false,
        SecurityId::Number(number) => {
            out.push(0);
            out.extend(number.to_le_bytes());
        }
        SecurityId::Text(text) => {
            out.push(1);
            out.extend(text);
        }
    }
    // No source has a zero byte before a character.
    out.push(0);
    out.extend(source.as_bytes());
    true
}

impl Directory {
    /// Creates an empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of instruments.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Returns the instruments in the form of [`Instrument::write`], in the order of their numbers.
    /// Allocates for the time of the call.
    pub fn iter(&self) -> impl Iterator<Item = (InstrumentId, &[u8])> {
        let mut all: Vec<_> = self.by_number.iter().collect();
        all.sort_unstable_by_key(|(number, _)| **number);
        all.into_iter()
            .map(|(number, bytes)| (InstrumentId(*number), &**bytes))
    }

    /// Returns true if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.by_number.is_empty()
    }

    /// Returns an instrument in the form of [`Instrument::write`], if it is known.
    #[must_use]
    pub fn bytes(&self, number: InstrumentId) -> Option<&[u8]> {
        Some(self.by_number.get(&number.0)?)
    }

    /// Removes an instrument, if it is known. [`Lookup::bound`] and [`Self::sources`] stay as they
    /// are.
    pub fn remove(&mut self, number: InstrumentId) {
        let removed = self.by_number.remove(&number.0);
        if let Some(old) = removed.as_deref().and_then(Instrument::read) {
            self.leave(number.0, &old.definition.name, &mut Vec::new());
        }
    }

    /// Adds or replaces an instrument in the form of [`Instrument::write`]. Returns its number, and
    /// whether it is new or has another name, or `None` if the bytes are invalid. Allocates.
    pub fn take(&mut self, bytes: &[u8]) -> Option<(InstrumentId, bool)> {
        let new = Instrument::read(bytes)?;
        let number = new.instrument.0;
        self.bound = self.bound.max(number.saturating_add(1));
        let mut room = Vec::new();
        let before = self.by_number.insert(number, bytes.into());
        if let Some(old) = before.as_deref().and_then(Instrument::read) {
            if old.definition.name == new.definition.name {
                return Some((new.instrument, false));
            }
            self.leave(number, &old.definition.name, &mut room);
        }
        let name = &new.definition.name;
        let of_symbol = self.by_symbol.entry(name.symbol.into());
        insert(of_symbol.or_default(), number);
        if key_of_id(name.id, name.source, &mut room) {
            insert(
                self.by_id.entry(room.as_slice().into()).or_default(),
                number,
            );
            if !self.sources.contains(&name.source) {
                self.sources.push(name.source);
            }
        }
        Some((new.instrument, true))
    }

    fn leave(&mut self, number: u32, name: &Name<'_>, room: &mut Vec<u8>) {
        if let Some(all) = self.by_symbol.get_mut(name.symbol) {
            all.retain(|own| *own != number);
            if all.is_empty() {
                self.by_symbol.remove(name.symbol);
            }
        }
        if key_of_id(name.id, name.source, room)
            && let Some(all) = self.by_id.get_mut(room.as_slice())
        {
            all.retain(|own| *own != number);
            if all.is_empty() {
                self.by_id.remove(room.as_slice());
            }
        }
    }

    /// Returns the instruments of this Symbol(55), in the order of their numbers.
    pub fn of_symbol(&self, symbol: &[u8]) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let found = self.by_symbol.get(symbol).into_iter().flatten();
        found.map(|number| InstrumentId(*number))
    }

    /// Returns the instruments with this SecurityID(48) from this source, in the order of their
    /// numbers. Allocates for the time of the call.
    pub fn of_id(
        &self,
        id: SecurityId<'_>,
        source: IdSource,
    ) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let mut key = Vec::new();
        let found = match key_of_id(id, source, &mut key) {
            true => self.by_id.get(key.as_slice()),
            false => None,
        };
        found.into_iter().flatten().copied().map(InstrumentId)
    }

    /// Returns the sources that IDs have had so far, for a search of an ID from any source.
    #[must_use]
    pub fn sources(&self) -> &[IdSource] {
        &self.sources
    }

    /// Returns the first symbol after `last`, if there is one, that begins with `prefix`, and its
    /// instruments. Instruments without a symbol have an empty one.
    pub fn next_symbol<'a>(
        &'a self,
        last: Option<&[u8]>,
        prefix: &[u8],
    ) -> Option<(&'a [u8], impl Iterator<Item = InstrumentId> + use<'a>)> {
        let from = match last {
            Some(last) if last >= prefix => Bound::Excluded(last),
            _ => Bound::Included(prefix),
        };
        let mut begun = self.by_symbol.range::<[u8], _>((from, Bound::Unbounded));
        let (symbol, numbers) = begun.next()?;
        let numbers = numbers.iter().map(|number| InstrumentId(*number));
        symbol.starts_with(prefix).then_some((symbol, numbers))
    }

    /// Returns the instrument after `last` in the order of symbols and, of one symbol, of numbers,
    /// with its symbol. Instruments without a symbol have an empty one.
    #[must_use]
    pub fn next_instrument(
        &self,
        last: Option<(&[u8], InstrumentId)>,
    ) -> Option<(&[u8], InstrumentId)> {
        if let Some((symbol, number)) = last
            && let Some((symbol, numbers)) = self.by_symbol.get_key_value(symbol)
        {
            let after = numbers.partition_point(|own| *own <= number.0);
            if let Some(next) = numbers.get(after) {
                return Some((&**symbol, InstrumentId(*next)));
            }
        }
        let (symbol, mut numbers) = self.next_symbol(last.map(|(symbol, _)| symbol), b"")?;
        Some((symbol, numbers.next()?))
    }
}

fn insert(all: &mut Vec<u32>, number: u32) {
    if let Err(place) = all.binary_search(&number) {
        all.insert(place, number);
    }
}

impl Lookup for Directory {
    fn instrument(&self, number: InstrumentId) -> Option<Instrument<'_>> {
        Instrument::read(self.by_number.get(&number.0)?)
    }

    fn bound(&self) -> u32 {
        self.bound
    }
}

impl Lookup for Instruments {
    fn instrument(&self, number: InstrumentId) -> Option<Instrument<'_>> {
        self.get(number)
    }

    fn bound(&self) -> u32 {
        self.len() as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::Definition;

    fn bytes(number: u32, symbol: &[u8], id: u64) -> Vec<u8> {
        let name = Name {
            symbol,
            id: SecurityId::Number(id),
            source: IdSource::parse(b"8").unwrap(),
        };
        let instrument = Instrument {
            instrument: InstrumentId(number),
            definition: Definition::named(name),
            revision: 1,
            status: 17,
        };
        let mut out = Vec::new();
        instrument.write(&mut out);
        out
    }

    fn numbers(found: impl Iterator<Item = InstrumentId>) -> Vec<u32> {
        found.map(|id| id.0).collect()
    }

    #[test]
    fn instruments_are_found_by_their_last_names() {
        let mut all = Directory::new();
        for (number, symbol, id) in [(7, "SIU3", 1), (2, "SI", 2), (90, "RIU3", 3)] {
            let taken = all.take(&bytes(number, symbol.as_bytes(), id));
            assert_eq!(taken, Some((InstrumentId(number), true)));
        }
        assert_eq!(all.take(b"none"), None);
        let next = |last: Option<&[u8]>, prefix: &[u8]| {
            let (symbol, found) = all.next_symbol(last, prefix)?;
            Some((symbol.to_vec(), numbers(found)))
        };
        assert_eq!(next(Some(b"RIU3"), b""), Some((b"SI".to_vec(), vec![2])));
        assert_eq!(next(None, b"SI"), Some((b"SI".to_vec(), vec![2])));
        assert_eq!(next(Some(b"SI"), b"SI"), Some((b"SIU3".to_vec(), vec![7])));
        assert_eq!(next(Some(b"SIU3"), b"SI"), None);
        assert_eq!(next(Some(b""), b"T"), None);
        assert_eq!(numbers(all.of_symbol(b"RIU3")), [90]);
        let source = IdSource::parse(b"8").unwrap();
        assert_eq!(all.sources(), [source]);
        assert_eq!(numbers(all.of_id(SecurityId::Number(1), source)), [7]);
        assert_eq!(
            numbers(all.of_id(SecurityId::Number(1), IdSource::NONE)),
            [0; 0]
        );
        let renamed = bytes(7, b"RIU3", 9);
        assert_eq!(all.take(&renamed), Some((InstrumentId(7), true)));
        assert_eq!(all.take(&renamed), Some((InstrumentId(7), false)));
        assert_eq!(
            numbers(all.of_symbol(b"RIU3")),
            [7, 90],
            "two feeds have it"
        );
        assert_eq!(numbers(all.of_symbol(b"SIU3")), [0; 0]);
        assert_eq!(numbers(all.of_id(SecurityId::Number(1), source)), [0; 0]);
        assert_eq!(all.len(), 3);
        let mut last = None;
        for (symbol, number) in [("RIU3", 7), ("RIU3", 90), ("SI", 2)] {
            last = all.next_instrument(last);
            assert_eq!(last, Some((symbol.as_bytes(), InstrumentId(number))));
        }
        assert_eq!(all.next_instrument(last), None);
        let renamed = Some((&b"RIU2"[..], InstrumentId(8)));
        let first = Some((&b"RIU3"[..], InstrumentId(7)));
        assert_eq!(all.next_instrument(renamed), first);
        all.remove(InstrumentId(90));
        all.remove(InstrumentId(91));
        assert_eq!(numbers(all.of_symbol(b"RIU3")), [7]);
        assert_eq!(numbers(all.of_id(SecurityId::Number(3), source)), [0; 0]);
        assert_eq!(all.bytes(InstrumentId(90)), None);
        let kept = bytes(7, b"RIU3", 9);
        assert_eq!(all.bytes(InstrumentId(7)), Some(&*kept));
        assert_eq!(all.len(), 2);
        let known = all.instrument(InstrumentId(7)).unwrap();
        assert_eq!(known.definition.name.symbol, b"RIU3");
        assert_eq!(known.status, 17);
    }
}
