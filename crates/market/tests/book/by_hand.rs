//! The effects of updates according to FIX, each written out.

use fanfare_market::book::{BookKind, Priority};
use fanfare_market::event::{Action, Event, Flags, Kind, entry};
use fanfare_market::{Book, BookConfig, Fault, Price, Side};

fn level(action: Action, level: u16, price: i64, size: i64) -> Event {
    Event {
        kind: Kind::Level,
        action,
        entry: entry::BID,
        level,
        price: Price::from_units(price),
        size,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

fn order(action: Action, id: u64, price: i64, size: i64) -> Event {
    Event {
        kind: Kind::Order,
        id,
        ..level(action, 0, price, size)
    }
}

fn bids(book: &Book) -> Vec<(i64, i64)> {
    let bids = book.depth(Side::Bid);
    bids.map(|level| (level.price.units(), level.size))
        .collect()
}

fn queue(book: &Book, price: i64) -> Vec<(u64, i64)> {
    let queue = book.queue(Side::Bid, Price::from_units(price));
    queue.map(|order| (order.id, order.size)).collect()
}

/// Returns five levels: 10 x 1, 9 x 2, 8 x 3, 7 x 4, 6 x 5.
fn five() -> Book {
    let mut book = Book::new(&BookConfig::by_level(5).unwrap());
    for number in 1..=5 {
        let price = 11 - i64::from(number);
        let new = level(Action::New, number, price, number.into());
        book.apply(&new).unwrap();
    }
    book
}

#[test]
fn a_new_level_moves_the_others_and_the_last_falls_out() {
    let mut book = five();
    // Better than all, so that each moves down.
    book.apply(&level(Action::New, 1, 11, 9)).unwrap();
    assert_eq!(bids(&book), [(11, 9), (10, 1), (9, 2), (8, 3), (7, 4)]);
    book.apply(&level(Action::New, 5, 7, 8)).unwrap();
    assert_eq!(bids(&book), [(11, 9), (10, 1), (9, 2), (8, 3), (7, 8)]);
    book.apply(&level(Action::Delete, 2, 0, 0)).unwrap();
    assert_eq!(bids(&book), [(11, 9), (9, 2), (8, 3), (7, 8)]);
}

#[test]
fn levels_are_deleted_through_and_from_a_number() {
    let mut book = five();
    book.apply(&level(Action::DeleteThru, 2, 0, 0)).unwrap();
    assert_eq!(bids(&book), [(8, 3), (7, 4), (6, 5)]);
    book.apply(&level(Action::DeleteFrom, 2, 0, 0)).unwrap();
    assert_eq!(bids(&book), [(8, 3)]);
    let gone = book.apply(&level(Action::DeleteFrom, 2, 0, 0));
    assert_eq!(gone, Err(Fault::NotThere));
    book.apply(&level(Action::DeleteThru, 1, 0, 0)).unwrap();
    assert!(book.is_empty());
}

#[test]
fn an_overlay_and_a_change_move_nothing() {
    let mut book = five();
    book.apply(&level(Action::Overlay, 3, 9, 7)).unwrap();
    book.apply(&level(Action::Change, 1, 10, 6)).unwrap();
    assert_eq!(bids(&book), [(10, 6), (9, 2), (9, 7), (7, 4), (6, 5)]);
}

#[test]
fn numbers_that_cannot_be_leave_the_book_as_it_was() {
    let mut book = five();
    book.apply(&level(Action::DeleteFrom, 3, 0, 0)).unwrap();
    let impossible = [
        (level(Action::New, 0, 5, 1), Fault::Level),
        (level(Action::New, 6, 5, 1), Fault::Level),
        (level(Action::Delete, 200, 5, 1), Fault::Level),
        (level(Action::New, 4, 5, 1), Fault::Hole),
        (level(Action::Change, 3, 5, 1), Fault::NotThere),
        (level(Action::Overlay, 3, 5, 1), Fault::NotThere),
        (level(Action::New, 1, i64::MAX, 1), Fault::Price),
        (level(Action::New, 1, 11, -1), Fault::Size),
        (level(Action::New, 1, 11, Event::NO_SIZE), Fault::Size),
        (level(Action::Fill, 1, 11, 1), Fault::Action),
        (
            Event {
                entry: entry::TRADE,
                ..level(Action::New, 1, 11, 1)
            },
            Fault::Side,
        ),
    ];
    let before = book.checksum();
    for (event, fault) in impossible {
        let mut book = book.clone();
        assert!(!book.is_doubtful());
        assert_eq!(book.apply(&event), Err(fault), "{event:?}");
        assert!(book.is_doubtful());
        assert_eq!((book.faults().count(fault), book.faults().total()), (1, 1));
        assert_eq!(book.checksum(), before);
        let clear = Event {
            kind: Kind::Clear,
            ..Event::EMPTY
        };
        book.apply(&clear).unwrap();
        assert!(!book.is_doubtful() && book.is_empty());
        assert_eq!(book.faults().total(), 1, "what was found stays counted");
    }
}

#[test]
fn within_a_message_a_book_may_be_crossed_and_out_of_order() {
    let offer = |action, number, price| Event {
        entry: entry::OFFER,
        ..level(action, number, price, 1)
    };
    let more = |event| Event {
        flags: Flags::NONE,
        ..event
    };
    let mut book = five();
    book.apply(&more(offer(Action::New, 1, 9))).unwrap();
    assert!(book.is_crossed());
    book.apply(&more(level(Action::DeleteThru, 2, 0, 0)))
        .unwrap();
    book.apply(&more(level(Action::Change, 2, 9, 1))).unwrap();
    book.apply(&level(Action::Delete, 1, 0, 0)).unwrap();
    assert_eq!(bids(&book), [(9, 1), (6, 5)]);
    assert!(!book.is_doubtful(), "9 against 9 is locked, not crossed");

    let crossing = level(Action::New, 1, 10, 1);
    assert_eq!(book.clone().apply(&crossing), Err(Fault::Crossed));
    let disorder = level(Action::Change, 2, 10, 1);
    assert_eq!(book.clone().apply(&disorder), Err(Fault::Disorder));
    book.apply(&more(disorder)).unwrap();
    let trade = Event {
        kind: Kind::Trade,
        ..disorder
    };
    let found = book.apply(&trade);
    assert_eq!(found, Err(Fault::Disorder), "whatever ends the message");

    let config = BookConfig::by_price(5).unwrap().may_cross(true);
    let mut book = Book::new(&config);
    book.apply(&offer(Action::New, 0, 9)).unwrap();
    book.apply(&crossing).unwrap();
    assert!(book.is_crossed() && !book.is_doubtful());
}

#[test]
fn levels_by_price_are_set_and_taken_away() {
    let mut book = Book::new(&BookConfig::by_price(3).unwrap());
    for price in [5, 7, 6] {
        book.apply(&level(Action::New, 0, price, 1)).unwrap();
    }
    book.apply(&level(Action::New, 200, 6, 8)).unwrap();
    assert_eq!(bids(&book), [(7, 1), (6, 8), (5, 1)]);
    let full = book.apply(&level(Action::Change, 0, 4, 1));
    assert_eq!(full, Err(Fault::Full));
    book.apply(&level(Action::Delete, 0, 7, 0)).unwrap();
    book.apply(&level(Action::Change, 0, 4, 2)).unwrap();
    assert_eq!(bids(&book), [(6, 8), (5, 1), (4, 2)]);
    let gone = book.apply(&level(Action::Delete, 0, 7, 0));
    assert_eq!(gone, Err(Fault::NotThere));
    let thru = book.apply(&level(Action::DeleteThru, 1, 6, 0));
    assert_eq!(thru, Err(Fault::Action));
}

#[test]
fn orders_keep_their_places_as_the_venue_says() {
    let after = |priority| {
        let config = BookConfig::by_order(4, 8).unwrap().priority(priority);
        let mut book = Book::new(&config);
        for id in 1..=4 {
            book.apply(&order(Action::New, id, 10, 5)).unwrap();
        }
        book.apply(&order(Action::Change, 1, 10, 4)).unwrap();
        book.apply(&order(Action::Change, 2, 10, 6)).unwrap();
        book.apply(&order(Action::Change, 3, 10, 5)).unwrap();
        queue(&book, 10)
            .into_iter()
            .map(|order| order.0)
            .collect::<Vec<_>>()
    };
    let (increase_keeps, decrease_loses) = (true, true);
    assert_eq!(after(Priority::default()), [1, 3, 4, 2]);
    let keeping = Priority {
        increase_keeps,
        ..Priority::default()
    };
    assert_eq!(after(keeping), [1, 2, 3, 4]);
    let losing = Priority {
        decrease_loses,
        ..Priority::default()
    };
    assert_eq!(after(losing), [3, 4, 1, 2]);
}

#[test]
fn orders_move_trade_and_go() {
    let mut book = Book::new(&BookConfig::by_order(2, 4).unwrap());
    for (id, price) in [(1, 10), (2, 10), (3, 9)] {
        book.apply(&order(Action::New, id, price, 5)).unwrap();
    }
    assert_eq!(bids(&book), [(10, 10), (9, 5)]);
    book.apply(&order(Action::Fill, 1, i64::MAX, 2)).unwrap();
    assert_eq!(queue(&book, 10), [(1, 3), (2, 5)]);
    book.apply(&order(Action::Fill, 1, i64::MAX, 3)).unwrap();
    assert_eq!(queue(&book, 10), [(2, 5)]);
    // The limit of both sides is two levels, and the last order of one may still open another.
    book.apply(&order(Action::Change, 2, 8, 5)).unwrap();
    book.apply(&order(Action::Change, 3, 8, 1)).unwrap();
    assert_eq!(bids(&book), [(8, 6)]);
    assert_eq!(queue(&book, 8), [(2, 5), (3, 1)]);
    assert_eq!(book.order(3), Some((Side::Bid, Price::from_units(8), 1)));
    book.apply(&order(Action::Delete, 2, i64::MAX, 0)).unwrap();
    assert_eq!((book.orders(), queue(&book, 8)), (1, vec![(3, 1)]));
    assert_eq!(book.kind(), BookKind::Orders);
}

#[test]
fn a_change_of_an_order_without_price_or_size_leaves_it_as_it_was() {
    let mut book = Book::new(&BookConfig::by_order(2, 4).unwrap());
    for id in [1, 2] {
        book.apply(&order(Action::New, id, 10, 5)).unwrap();
    }
    let (no_price, no_size) = (i64::MAX, Event::NO_SIZE);
    book.apply(&order(Action::Change, 1, no_price, 4)).unwrap();
    assert_eq!(queue(&book, 10), [(1, 4), (2, 5)]);
    book.apply(&order(Action::Change, 1, 9, no_size)).unwrap();
    assert_eq!(queue(&book, 10), [(2, 5)]);
    assert_eq!(queue(&book, 9), [(1, 4)]);
    let same = order(Action::Change, 2, no_price, no_size);
    book.apply(&same).unwrap();
    assert_eq!(queue(&book, 10), [(2, 5)]);
}

#[test]
fn orders_that_cannot_be_leave_the_book_as_it_was() {
    let mut book = Book::new(&BookConfig::by_order(2, 3).unwrap());
    for (id, price) in [(1, 10), (2, 10), (3, 9)] {
        book.apply(&order(Action::New, id, price, 5)).unwrap();
    }
    let on_offer = |event| Event {
        entry: entry::OFFER,
        ..event
    };
    let impossible = [
        (order(Action::New, 1, 10, 5), Fault::DuplicateOrder),
        (order(Action::New, 4, 10, 5), Fault::Full),
        (order(Action::Change, 1, 8, 5), Fault::Full),
        (order(Action::Change, 4, 10, 5), Fault::UnknownOrder),
        (order(Action::Delete, 4, 10, 5), Fault::UnknownOrder),
        (order(Action::Fill, 4, 10, 5), Fault::UnknownOrder),
        (order(Action::Fill, 1, 10, 6), Fault::Size),
        (order(Action::Fill, 1, 10, 0), Fault::Size),
        (order(Action::Change, 1, 10, 0), Fault::Size),
        (order(Action::Change, 1, 10, i64::MAX - 1), Fault::Size),
        (order(Action::Change, 3, 10, i64::MAX - 1), Fault::Size),
        (order(Action::New, 4, i64::MAX, 1), Fault::Price),
        (order(Action::New, 4, 10, i64::MAX), Fault::Size),
        (on_offer(order(Action::Delete, 1, 10, 5)), Fault::Side),
        (on_offer(order(Action::Change, 1, 10, 5)), Fault::Side),
        (order(Action::Overlay, 1, 10, 5), Fault::Action),
        (order(Action::DeleteThru, 1, 10, 5), Fault::Action),
    ];
    for (event, fault) in impossible {
        let mut other = book.clone();
        assert_eq!(other.apply(&event), Err(fault), "{event:?}");
        assert!(other.is_doubtful() && other == book);
        assert_eq!(other.checksum(), book.checksum());
    }
}

#[test]
fn checksums_tell_queues_apart() {
    let mut books = [[1, 2], [2, 1]].map(|ids| {
        let mut book = Book::new(&BookConfig::by_order(2, 4).unwrap());
        for id in ids {
            book.apply(&order(Action::New, id, 10, 5)).unwrap();
        }
        book
    });
    assert!(books[0] != books[1]);
    assert_ne!(books[0].checksum(), books[1].checksum());
    // Pinned, because plants of several versions compare them.
    assert_eq!(books[0].checksum(), 13_254_311_745_233_059_589);
    books[1].clear();
    assert_eq!(books[1].checksum(), 9_808_874_869_469_701_221);
}

#[test]
fn limits_that_no_book_can_have_are_refused() {
    assert!(BookConfig::by_level(0).is_err());
    assert!(BookConfig::by_price(65_536).is_err());
    let error = BookConfig::by_order(10, 1 << 25).unwrap_err();
    assert_eq!(error.to_string(), "a book must have 1 to 16777216 orders");
}

#[test]
fn a_book_that_may_have_very_many_orders_grows_with_them() {
    let all_at_once = Book::new(&BookConfig::by_order(10, 100_000).unwrap()).memory();
    let mut book = Book::new(&BookConfig::by_order(10, 1_000_000).unwrap());
    let at_first = book.memory();
    assert!(4 * at_first < all_at_once, "{at_first} of {all_at_once}");
    for id in 1..=120_000 {
        book.apply(&order(Action::New, id, 10, 1)).unwrap();
    }
    assert_eq!(bids(&book), [(10, 120_000)]);
    assert!(book.memory() > all_at_once);
    for id in (1..=120_000).filter(|id| id % 1_000 != 0) {
        book.apply(&order(Action::Delete, id, 10, 1)).unwrap();
    }
    let left: Vec<_> = (1..=120).map(|number| (1_000 * number, 1)).collect();
    assert_eq!(queue(&book, 10), left);
}
