//! Arbitrary bytes as operations on a book and on its oracle, which must agree after each of them.
//! Shared by the property tests and the fuzz target `book`.

#[path = "oracle.rs"]
pub(crate) mod oracle;

use fanfare_market::book::{BookKind, Priority};
use fanfare_market::event::{Action, Event, Flags, Kind};
use fanfare_market::{Book, BookConfig, Fault, Price, Side};
use oracle::{Limits, Oracle};

/// Applies the operations in the bytes of `next`, and checks everything after each. Returns how
/// many there were, and how many the book accepted.
///
/// # Panics
///
/// Panics if book and oracle disagree.
pub(crate) fn run(mut next: impl FnMut() -> Option<u8>) -> (u64, u64) {
    let Some(limits) = limits(&mut next) else {
        return (0, 0);
    };
    let config = config(limits);
    let (mut book, mut oracle) = (Book::new(&config), Oracle::new(limits));
    let memory = book.memory();
    let (mut done, mut applied, mut faults) = (0, 0, 0);
    while let Some(event) = event(limits, &mut next) {
        let expected = oracle.apply(&event);
        assert_eq!(book.apply(&event), expected, "{event:?} {book:?}");
        assert_eq!(book.is_doubtful(), oracle.is_doubtful);
        assert_eq!(book.rpt_seq(), event.rpt_seq);
        compare(&book, &oracle);
        done += 1;
        applied += u64::from(matches!(
            expected,
            Ok(()) | Err(Fault::Crossed | Fault::Disorder)
        ));
        faults += u64::from(expected.is_err());
        if done % 64 == 0 {
            rebuild(&book, &oracle, &config);
        }
    }
    rebuild(&book, &oracle, &config);
    assert_eq!(book.memory(), memory);
    assert_eq!(book.faults().total(), faults);
    (done, applied)
}

fn config(limits: Limits) -> BookConfig {
    let (levels, orders) = (limits.levels as u32, limits.orders as u32);
    match limits.kind {
        BookKind::Levels => BookConfig::by_level(levels),
        BookKind::Prices => BookConfig::by_price(levels),
        BookKind::Orders => BookConfig::by_order(levels, orders),
    }
    .unwrap()
    .may_cross(limits.may_cross)
    .priority(limits.priority)
}

fn limits(next: &mut impl FnMut() -> Option<u8>) -> Option<Limits> {
    let (bits, levels, orders) = (next()?, next()?, next()?);
    Some(Limits {
        kind: match bits % 3 {
            0 => BookKind::Levels,
            1 => BookKind::Prices,
            _ => BookKind::Orders,
        },
        levels: usize::from(levels % 48) + 1,
        orders: usize::from(orders % 224) + 1,
        may_cross: bits & 16 != 0,
        priority: Priority {
            increase_keeps: bits & 32 != 0,
            decrease_loses: bits & 64 != 0,
        },
    })
}

/// Returns an event, in most cases one that is valid for the book.
fn event(limits: Limits, next: &mut impl FnMut() -> Option<u8>) -> Option<Event> {
    let kind = limits.kind;
    let (what, action, marks) = (next()?, next()?, next()?);
    let (price, size, which) = (next()?, next()?, next()?);
    let own = match kind {
        BookKind::Orders => Kind::Order,
        _ => Kind::Level,
    };
    let mut flags = Flags::NONE;
    if marks & 2 != 0 {
        flags = flags.with(Flags::LAST);
    }
    if marks & 4 != 0 {
        flags = flags.with(Flags::SNAPSHOT);
    }
    Some(Event {
        kind: match (what, which) {
            (255, 0..8) => Kind::Clear,
            (254, _) => Kind::Trade,
            (253, _) => Kind::Order,
            (252, _) => Kind::Level,
            _ => own,
        },
        action: match action {
            0..96 => Action::New,
            96..150 => Action::Change,
            150..215 => Action::Delete,
            215..244 if kind == BookKind::Orders => Action::Fill,
            215..244 => Action::Overlay,
            244..248 => Action::DeleteThru,
            248..252 => Action::DeleteFrom,
            252..254 => Action::Fill,
            _ => Action::Overlay,
        },
        entry: match marks >> 3 {
            0 => 0,
            1 => b'2',
            // Orders are identified by their numbers.
            2..26 if kind == BookKind::Orders && action >= 96 => 0,
            _ if marks & 1 == 0 => b'0',
            _ => b'1',
        },
        flags,
        price: match price {
            255 => Price::UNDEFINED,
            254 if marks & 1 == 0 => Price::from_units(i64::MIN),
            254 => Price::from_units(i64::MAX - 1),
            253 => Price::from_units(i64::from(which) - 128),
            _ => likely_price(limits, price, marks, which),
        },
        size: match size {
            255 => Event::NO_SIZE,
            254 => -1,
            253 if which < 16 => i64::MAX - 1,
            252 => i64::MIN,
            _ => i64::from(size % 16),
        },
        level: match which {
            0..240 => number(which),
            _ => u16::from(which) << 8 | u16::from(which),
        },
        id: u64::from(which) % (limits.orders as u64 + 8),
        rpt_seq: u32::from(what),
        ..Event::EMPTY
    })
}

/// Returns low numbers more often than others.
fn number(which: u8) -> u16 {
    u16::from(if which < 140 { which % 6 } else { which % 48 })
}

/// Returns a price that is rarely across the other side's, and rarely out of order for a numbered
/// level.
fn likely_price(limits: Limits, price: u8, marks: u8, which: u8) -> Price {
    let worse = match limits.kind {
        BookKind::Levels if price < 240 => 2 * i64::from(number(which)) + i64::from(price % 3),
        _ => i64::from(price) % (limits.levels as i64 + 4),
    };
    Price::from_units(if marks & 1 == 0 { -worse } else { worse - 1 })
}

/// Compares everything that can be read.
fn compare(book: &Book, oracle: &Oracle) {
    for side in Side::BOTH {
        let expected = oracle.depth(side);
        assert_eq!(book.depth(side).len(), expected.len());
        assert_eq!(book.best(side), expected.first().copied());
        assert!(book.depth(side).eq(expected.iter().copied()), "{side:?}");
        for level in &expected {
            let queue = oracle.queue(side, level.price);
            assert!(book.queue(side, level.price).eq(queue));
        }
    }
    assert_eq!(book.orders(), oracle.orders().len());
}

/// Checks that a book built from the oracle's contents is equal, and has the same checksum.
fn rebuild(book: &Book, oracle: &Oracle, config: &BookConfig) {
    let mut other = Book::new(config);
    for side in Side::BOTH {
        for (level, number) in oracle.depth(side).into_iter().zip(1..) {
            let new = Event {
                kind: Kind::Level,
                entry: side.entry(),
                price: level.price,
                size: level.size,
                id: level.orders,
                level: number,
                ..Event::EMPTY
            };
            if config.kind() != BookKind::Orders {
                assert_eq!(other.apply(&new), Ok(()));
            }
            for order in oracle.queue(side, level.price) {
                let new = Event {
                    kind: Kind::Order,
                    id: order.id,
                    size: order.size,
                    ..new
                };
                assert_eq!(other.apply(&new), Ok(()));
            }
        }
    }
    assert!(*book == other, "{book:?} {other:?}");
    assert_eq!(book.checksum(), other.checksum());
    for (&id, &order) in oracle.orders() {
        assert_eq!(book.order(id), Some(order));
    }
}
