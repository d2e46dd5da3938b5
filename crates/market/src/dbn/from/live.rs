//! A source that is followed over several streams, such as the connections to a live gateway.

use super::{FromDbn, of_state, state_of};
use crate::event::{Event, Flags, InstrumentId};

impl FromDbn {
    /// Leaves out the trades in records of books from now on, because the stream has records of
    /// trades besides.
    pub const fn take_trades_apart(&mut self) {
        self.has_trades_apart = true;
    }

    /// Begins with another stream of the same source, which has metadata of its own. Its numbers
    /// may be those of other instruments, which are found again by their symbols. With
    /// `keeps_books`, its records continue the books of the stream before, none of which is stated
    /// to be complete before [`Self::tell_states`]; otherwise each book begins anew.
    pub fn begin_again(&mut self, keeps_books: bool) {
        self.metadata = None;
        self.at = 0;
        self.naming = None;
        self.keys.restart();
        self.catches_up = keeps_books;
        for seen in &mut self.seen {
            match keeps_books {
                true => seen.is_of_before = seen.is_whole.is_some(),
                false => seen.forget(),
            }
        }
    }

    /// Passes on the event that is held back if it ends its message. With `is_quiet`, nothing more
    /// of its message is expected, and it ends it in any case.
    pub fn pass_on(&mut self, is_quiet: bool) {
        self.out.clear();
        if let Some(held) = &mut self.held
            && is_quiet
        {
            held.flags = held.flags.with(Flags::LAST);
        }
        if !self.has_open_message() {
            self.pass_held();
        }
    }

    /// Returns whether an event is held back that does not end its message.
    pub fn has_open_message(&self) -> bool {
        self.held.is_some_and(|held| !held.flags.has(Flags::LAST))
    }

    /// Makes events that state again whether the books are complete, behind the event that is held
    /// back. Books without a record, and those of instruments that have ended, have none. Neither,
    /// unless `is_past_whole`, do books that have no record of this stream: a later one states it.
    pub fn tell_states(&mut self, is_past_whole: bool) {
        self.pass_on(true);
        self.catches_up = false;
        for (number, seen) in (0..).zip(&mut self.seen) {
            seen.is_of_before &= !is_past_whole;
            let is_told = !seen.is_closed && !seen.is_of_before;
            let Some(is_whole) = seen.is_whole.filter(|_| is_told) else {
                continue;
            };
            let base = Event {
                instrument: InstrumentId(number),
                source: self.source,
                flags: Flags::LAST,
                ..Event::EMPTY
            };
            self.new.push(of_state(state_of(is_whole), base));
        }
        self.pass_new();
    }
}

#[cfg(test)]
mod tests {
    use crate::dbn::{DbnConfig, FromDbn, Schema, Schemas, ToDbn};
    use crate::event::{Action, Event, Flags, InstrumentId, Kind, entry};
    use crate::instruments::{Definition, Instruments, Name};
    use crate::price::Price;
    use crate::state::code;
    use std::collections::BTreeMap;

    /// Returns an event of an instrument that ends its message.
    fn event(number: u32, kind: Kind, price: i64, size: i64) -> Event {
        Event {
            kind,
            instrument: InstrumentId(number),
            price: Price::from_units(price),
            size,
            entry: if kind == Kind::Level { entry::BID } else { 0 },
            action: Action::New,
            flags: Flags::LAST,
            ts_event: 7,
            ts_recv: 8,
            source: 1,
            ..Event::EMPTY
        }
    }

    /// Returns a stream of events of two instruments, which it has in this order.
    fn stream(symbols: [&str; 2], all: &[Event]) -> Vec<u8> {
        let schemas = Schemas::new(&[Schema::Mbp10, Schema::Trades]).unwrap();
        let mut to_dbn = ToDbn::new(DbnConfig::new(schemas)).unwrap();
        let (mut table, mut bytes) = (Instruments::new(2), Vec::new());
        for symbol in symbols {
            let name = Name::of_symbol(symbol.as_bytes());
            table.define(&Definition::named(name)).unwrap();
        }
        to_dbn.metadata("TEST", 0, &mut bytes);
        for event in all {
            to_dbn.write(event, 0, &table, &mut bytes);
        }
        bytes
    }

    /// Reads a stream. Returns the symbol, kind, price and size of each event.
    fn read(
        from: &mut FromDbn,
        table: &mut Instruments,
        mut bytes: &[u8],
    ) -> Vec<(String, Kind, Event)> {
        let mut events = Vec::new();
        while let Some(len) = from.read(table, bytes).unwrap() {
            bytes = &bytes[len..];
            events.extend_from_slice(from.events());
        }
        assert!(bytes.is_empty());
        from.pass_on(false);
        events.extend_from_slice(from.events());
        named(table, &events)
    }

    fn named(table: &Instruments, events: &[Event]) -> Vec<(String, Kind, Event)> {
        let name = |event: &Event| {
            let symbol = table.get(event.instrument).unwrap().definition.name.symbol;
            String::from_utf8(symbol.to_vec()).unwrap()
        };
        let all = events.iter();
        all.map(|event| (name(event), event.kind, *event)).collect()
    }

    /// Returns the symbol, kind and state of each event.
    fn states(table: &Instruments, from: &FromDbn) -> Vec<(String, Kind, u64)> {
        let all = named(table, from.events()).into_iter();
        all.map(|(name, kind, event)| (name, kind, event.id))
            .collect()
    }

    #[test]
    fn another_stream_continues_the_books_of_the_one_before() {
        let live = |number| Event {
            id: code::LIVE,
            ..event(number, Kind::State, 0, 0)
        };
        let level = |number, price, size| event(number, Kind::Level, price, size);
        let begin = [0, 1].map(|number| event(number, Kind::Clear, 0, 0));
        let all = [
            begin[0],
            live(0),
            level(0, 5, 50),
            begin[1],
            live(1),
            level(1, 6, 60),
        ];
        let (mut from, mut table) = (FromDbn::new(1), Instruments::new(2));
        read(&mut from, &mut table, &stream(["A", "B"], &all));
        from.tell_states(true);
        let live_of = |name: &str| (name.to_owned(), Kind::State, code::LIVE);
        assert_eq!(states(&table, &from), [live_of("A"), live_of("B")]);

        // The numbers are those of the other instruments now. The book of B has one more level.
        let more = [live(0), level(0, 6, 60), level(0, 4, 40)];
        let bytes = stream(["B", "A"], &more);
        from.begin_again(true);
        let again = read(&mut from, &mut table, &bytes);
        // The first record of a stream may be that of an empty book: readers are not told to clear.
        let mut book = BTreeMap::from([(Price::from_units(6), 60)]);
        for (name, kind, event) in &again {
            assert!(*kind != Kind::Clear && name == "B", "{name}: {event:?}");
            match (kind, event.action) {
                (Kind::Level, Action::Delete) => _ = book.remove(&event.price),
                (Kind::Level, _) => _ = book.insert(event.price, event.size),
                _ => {}
            }
        }
        let expected = [(6, 60), (4, 40)].map(|(price, size)| (Price::from_units(price), size));
        assert_eq!(book, BTreeMap::from(expected));

        let is_state = |(_, kind, _): &(_, Kind, _)| *kind == Kind::State;
        assert!(!again.iter().any(is_state), "the past is not whole");
        // Of the book of A no record has come, which may be missing.
        from.tell_states(false);
        assert_eq!(states(&table, &from), [live_of("B")]);
        let later = stream(["B", "A"], &[live(1), level(1, 5, 51)]);
        from.begin_again(true);
        from.tell_states(false);
        assert_eq!(states(&table, &from), []);
        let later = read(&mut from, &mut table, &later);
        assert_eq!(later.iter().filter(|event| is_state(event)).count(), 1);
        from.tell_states(true);
        assert_eq!(states(&table, &from), [live_of("A"), live_of("B")]);

        from.begin_again(false);
        from.tell_states(true);
        assert!(from.events().is_empty(), "nothing is known of the books");
        let anew = read(&mut from, &mut table, &bytes);
        let kinds: Vec<_> = anew
            .iter()
            .map(|(name, kind, _)| (&**name, *kind))
            .collect();
        assert!(kinds.contains(&("B", Kind::Clear)), "{kinds:?}");
        assert!(kinds.contains(&("B", Kind::State)), "{kinds:?}");
    }

    #[test]
    fn the_last_event_of_a_message_is_not_held_back() {
        let trade = |flags| Event {
            flags,
            ..event(0, Kind::Trade, 5, 1)
        };
        let (mut from, mut table) = (FromDbn::new(1), Instruments::new(2));
        let bytes = stream(["A", "B"], &[trade(Flags::LAST)]);
        assert_eq!(read(&mut from, &mut table, &bytes).len(), 1);

        from.begin_again(true);
        let bytes = stream(["A", "B"], &[trade(Flags::NONE)]);
        assert!(read(&mut from, &mut table, &bytes).is_empty());
        assert!(from.has_open_message());
        from.pass_on(true);
        let flags: Vec<_> = from.events().iter().map(|event| event.flags).collect();
        assert_eq!(flags, [Flags::LAST]);
        assert!(!from.has_open_message());
    }

    #[test]
    fn trades_apart_come_once() {
        let (mut from, mut table) = (FromDbn::new(1), Instruments::new(2));
        let trades = |from: &mut FromDbn, table: &mut Instruments, bytes: &[u8]| {
            let all = read(from, table, bytes);
            all.iter()
                .filter(|(_, kind, _)| *kind == Kind::Trade)
                .count()
        };
        let all = [
            event(0, Kind::Clear, 0, 0),
            event(0, Kind::Level, 5, 50),
            event(0, Kind::Trade, 5, 1),
        ];
        let of_books = |schema| {
            let schemas = Schemas::new(&[schema]).unwrap();
            let mut to_dbn = ToDbn::new(DbnConfig::new(schemas)).unwrap();
            let (mut table, mut bytes) = (Instruments::new(1), Vec::new());
            table
                .define(&Definition::named(Name::of_symbol(b"A")))
                .unwrap();
            to_dbn.metadata("TEST", 0, &mut bytes);
            for event in &all {
                to_dbn.write(event, 0, &table, &mut bytes);
            }
            bytes
        };
        let (books, apart) = (of_books(Schema::Mbp10), of_books(Schema::Trades));
        assert_eq!(trades(&mut from, &mut table, &books), 1);
        from.take_trades_apart();
        from.begin_again(false);
        assert_eq!(trades(&mut from, &mut table, &books), 0);
        from.begin_again(true);
        assert_eq!(trades(&mut from, &mut table, &apart), 1);
    }
}
