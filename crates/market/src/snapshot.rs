//! A book as events, for readers that lost some, or that join late.

use crate::book::{Book, BookKind, Level, Side};
use crate::event::{Action, Event, Flags, InstrumentId, Kind, entry};

/// Calls `send` with the events that make a cleared book of the same kind equal to this one: the
/// levels of bids, then those of offers, the best first, or their orders, the one that trades first
/// in front. Allocates nothing.
pub(crate) fn entries(book: &Book, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
    for (side, entry) in [(Side::Bid, entry::BID), (Side::Offer, entry::OFFER)] {
        for (at, level) in book.depth(side).enumerate() {
            let event = Event {
                instrument,
                action: Action::New,
                entry,
                flags: Flags::SNAPSHOT,
                price: level.price,
                ..Event::EMPTY
            };
            match book.kind() {
                BookKind::Orders => orders(book, side, &event, send),
                kind => send(&Event {
                    level: match kind {
                        BookKind::Levels => at as u16 + 1,
                        _ => 0,
                    },
                    ..of_level(&event, &level)
                }),
            }
        }
    }
}

/// Calls `send` with a snapshot of a book: a Clear and, with its RptSeq(83), feed and time of
/// arrival, the events of [`entries`]. The last one has [`Flags::LAST`]. Allocates nothing.
pub(crate) fn of_book(clear: &Event, book: Option<&Book>, send: &mut impl FnMut(&Event)) {
    let mut last = *clear;
    if let Some(book) = book {
        entries(book, clear.instrument, &mut |event| {
            send(&last);
            last = Event {
                rpt_seq: clear.rpt_seq,
                source: clear.source,
                ts_recv: clear.ts_recv,
                ..*event
            };
        });
    }
    last.flags = last.flags.with(Flags::LAST);
    send(&last);
}

fn of_level(event: &Event, level: &Level) -> Event {
    Event {
        kind: Kind::Level,
        size: level.size,
        id: level.orders,
        ..*event
    }
}

fn orders(book: &Book, side: Side, event: &Event, send: &mut impl FnMut(&Event)) {
    for order in book.queue(side, event.price) {
        send(&Event {
            kind: Kind::Order,
            size: order.size,
            id: order.id,
            ..*event
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::BookConfig;
    use crate::price::Price;

    fn event(kind: Kind, id: u64, entry: u8, price: i64, size: i64) -> Event {
        Event {
            kind,
            id,
            entry,
            size,
            price: Price::from_units(price),
            ..Event::EMPTY
        }
    }

    fn again(config: &BookConfig, events: &[Event]) {
        let (mut book, mut copy) = (Book::new(config), Book::new(config));
        for event in events {
            book.apply(event).unwrap();
        }
        entries(&book, InstrumentId(0), &mut |event| {
            assert!(event.flags.has(Flags::SNAPSHOT));
            copy.apply(event).unwrap();
        });
        assert!(!book.is_empty());
        assert_eq!(book, copy);
    }

    #[test]
    fn a_book_made_of_its_events_is_equal() {
        let sides = [
            (2, entry::BID, 99),
            (1, entry::BID, 100),
            (1, entry::OFFER, 101),
        ];
        let levels =
            sides.map(|(orders, entry, price)| event(Kind::Level, orders, entry, price, 7));
        again(&BookConfig::by_price(4).unwrap(), &levels);
        let orders = [(1, 100), (2, 100), (3, 99)];
        let orders = orders.map(|(id, price)| event(Kind::Order, id, entry::BID, price, 5));
        again(&BookConfig::by_order(4, 8).unwrap(), &orders);
        let numbered = [(1, 100), (2, 99)].map(|(level, price)| Event {
            level,
            ..event(Kind::Level, 3, entry::BID, price, 5)
        });
        again(&BookConfig::by_level(4).unwrap(), &numbered);
    }
}
