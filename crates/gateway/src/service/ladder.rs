//! The price levels as sent to the subscribers of a class, and the changes that turn them into
//! others.
//!
//! The changes are valid for clients that apply them by position and for those that apply them by
//! price: first the deletions, the worst level first, each with its position at that moment; then
//! the new and changed levels, the best first, each at its final position.

use fanfare_market::book::Level;
use fanfare_market::{Action, Book, Event, Flags, Kind, Side};

/// The levels of both sides, the best first.
#[derive(Debug)]
pub(crate) struct Ladder {
    sides: [Vec<Level>; 2],
}

/// The initial capacity for levels of a side.
const LEVELS: usize = 20;

impl Ladder {
    /// Creates an empty ladder of at most `depth` levels a side, or of any number if `depth` is 0.
    pub(crate) fn new(depth: u16) -> Self {
        let room = match usize::from(depth) {
            0 => LEVELS,
            depth => depth.min(LEVELS),
        };
        let side = || Vec::with_capacity(room);
        Self {
            sides: [side(), side()],
        }
    }

    /// Adopts the levels of a book on one side, at most `depth`, or all for 0, and writes the
    /// changes from the previous levels to `out`. `room` is emptied.
    pub(crate) fn update(
        &mut self,
        side: Side,
        book: Option<&Book>,
        depth: u16,
        room: &mut Vec<Level>,
        out: &mut Vec<Event>,
    ) {
        room.clear();
        let most = match depth {
            0 => usize::MAX,
            depth => depth.into(),
        };
        if let Some(book) = book {
            room.extend(book.depth(side).take(most));
        }
        let Some(old) = self.sides.get_mut(side as usize) else {
            return;
        };
        if old == room {
            return;
        }
        deletions(side, old, room, out);
        additions(side, old, room, out);
        old.clear();
        old.extend_from_slice(room);
    }

    /// Writes the levels of a side as entries of a snapshot.
    pub(crate) fn snapshot(&self, side: Side, out: &mut Vec<Event>) {
        let levels = self.side(side).iter().enumerate();
        out.extend(levels.map(|(place, level)| event(side, Action::New, level, number(place))));
    }

    /// Returns the levels of a side.
    pub(crate) fn side(&self, side: Side) -> &[Level] {
        self.sides.get(side as usize).map_or(&[], Vec::as_slice)
    }
}

fn is_better(side: Side, level: &Level, than: &Level) -> bool {
    match side {
        Side::Bid => level.price > than.price,
        Side::Offer => level.price < than.price,
    }
}

/// Writes the levels that are in `old` and not in `new`, the worst first.
fn deletions(side: Side, old: &[Level], new: &[Level], out: &mut Vec<Event>) {
    let mut staying = new.iter().rev().peekable();
    for (place, level) in old.iter().enumerate().rev() {
        while staying.next_if(|own| is_better(side, level, own)).is_some() {}
        if staying.next_if(|own| own.price == level.price).is_none() {
            out.push(event(side, Action::Delete, level, number(place)));
        }
    }
}

/// Writes the levels that are in `new` and not in `old`, or differ in size, the best first.
fn additions(side: Side, old: &[Level], new: &[Level], out: &mut Vec<Event>) {
    let mut before = old.iter().peekable();
    for (place, level) in new.iter().enumerate() {
        while before.next_if(|own| is_better(side, own, level)).is_some() {}
        let action = match before.next_if(|own| own.price == level.price) {
            Some(same) if same == level => continue,
            Some(_) => Action::Change,
            None => Action::New,
        };
        out.push(event(side, action, level, number(place)));
    }
}

/// Returns the MDPriceLevel(1023) of an index. Books have fewer levels than it has values.
fn number(place: usize) -> u16 {
    u16::try_from(place + 1).unwrap_or(u16::MAX)
}

fn event(side: Side, action: Action, level: &Level, number: u16) -> Event {
    Event {
        kind: Kind::Level,
        action,
        entry: side.entry(),
        price: level.price,
        size: level.size,
        id: level.orders,
        level: number,
        flags: Flags::NONE,
        ..Event::EMPTY
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::book::BookConfig;
    use fanfare_market::{InstrumentId, Price};
    use proptest::prelude::*;

    fn book(levels: &[(Side, i64, i64)]) -> Book {
        let mut book = Book::new(&BookConfig::by_price(64).unwrap());
        for &(side, price, size) in levels {
            book.apply(&Event {
                instrument: InstrumentId(0),
                kind: Kind::Level,
                entry: side.entry(),
                price: Price::from_units(price),
                size,
                ..Event::EMPTY
            })
            .unwrap();
        }
        book
    }

    fn changes(side: Side) -> impl Strategy<Value = Vec<(Side, i64, i64)>> {
        proptest::collection::vec((Just(side), 1i64..12, 1i64..4), 0..12)
    }

    /// Applies changes as a client does that goes by position alone, and as one that goes by price
    /// alone.
    fn follow(side: Side, events: &[Event], by_place: &mut Vec<Level>, by_price: &mut Vec<Level>) {
        for event in events {
            let level = Level {
                price: event.price,
                size: event.size,
                orders: event.id,
            };
            let place = usize::from(event.level) - 1;
            match event.action {
                Action::New => {
                    by_place.insert(place, level);
                    by_price.push(level);
                }
                Action::Change => {
                    assert_eq!(by_place[place].price, event.price);
                    by_place[place] = level;
                    let own = by_price.iter_mut().find(|own| own.price == event.price);
                    *own.unwrap() = level;
                }
                _ => {
                    assert_eq!(by_place.remove(place).price, event.price);
                    by_price.retain(|own| own.price != event.price);
                }
            }
        }
        by_price.sort_by(|a, b| match side {
            Side::Bid => b.price.cmp(&a.price),
            Side::Offer => a.price.cmp(&b.price),
        });
    }

    proptest! {
        #[test]
        fn clients_by_place_and_by_price_have_the_book(
            steps in proptest::collection::vec(changes(Side::Bid), 1..8),
            depth in 0u16..6,
            is_offer: bool,
        ) {
            let side = if is_offer { Side::Offer } else { Side::Bid };
            let mut ladder = Ladder::new(depth);
            let (mut by_place, mut by_price) = (Vec::new(), Vec::new());
            let (mut room, mut out) = (Vec::new(), Vec::new());
            for step in steps {
                let step = step.iter().map(|&(_, price, size)| (side, price, size));
                let step: Vec<_> = step.collect();
                let book = book(&step);
                out.clear();
                ladder.update(side, Some(&book), depth, &mut room, &mut out);
                follow(side, &out, &mut by_place, &mut by_price);
                let most = if depth == 0 { usize::MAX } else { depth.into() };
                let expected: Vec<_> = book.depth(side).take(most).collect();
                prop_assert_eq!(&by_place, &expected);
                prop_assert_eq!(&by_price, &expected);
                out.clear();
                ladder.update(side, Some(&book), depth, &mut room, &mut out);
                prop_assert!(out.is_empty());
                ladder.snapshot(side, &mut out);
                prop_assert_eq!(out.len(), expected.len());
            }
            ladder.update(side, None, depth, &mut room, &mut out);
            prop_assert!(ladder.side(side).is_empty());
        }
    }
}
