//! Checks that nothing is allocated after warm-up by books of each kind, including reading them,
//! and by records of DBN.
#![allow(clippy::unwrap_used)]

use fanfare_counting::allocations;
use fanfare_market::dbn::{DbnConfig, Schema, Schemas, ToDbn};
use fanfare_market::event::{Action, Event, Flags, InstrumentId, Kind};
use fanfare_market::instruments::Name;
use fanfare_market::{Book, BookConfig, Books, Instruments, Price, Side};

/// Returns a random event, which is valid in most cases.
fn event(random: &mut fastrand::Rng, kind: Kind) -> Event {
    let actions = [Action::New, Action::Change, Action::Delete, Action::Fill];
    let side = Side::BOTH[random.usize(..2)];
    let worse = random.i64(..300);
    Event {
        kind: if random.u32(..5_000) == 0 {
            Kind::Clear
        } else {
            kind
        },
        instrument: InstrumentId(random.u32(..4)),
        action: actions[random.usize(..if kind == Kind::Order { 4 } else { 3 })],
        entry: side.entry(),
        price: Price::from_units(if side == Side::Bid { -worse } else { worse }),
        size: random.i64(1..100),
        id: random.u64(..5_000),
        level: random.u16(1..60) % random.u16(1..60),
        flags: if random.bool() {
            Flags::LAST
        } else {
            Flags::NONE
        },
        ..Event::EMPTY
    }
}

fn churn(books: &mut Books, random: &mut fastrand::Rng, kind: Kind) -> (u64, i64) {
    let (mut applied, mut sum) = (0, 0);
    for _ in 0..50_000 {
        let event = event(random, kind);
        applied += u64::from(books.apply(&event).is_ok());
        let Some(book) = books.get(event.instrument) else {
            continue;
        };
        for side in Side::BOTH {
            for level in book.depth(side).take(5) {
                let queue = book.queue(side, level.price);
                sum += level.size + queue.map(|order| order.size).sum::<i64>();
            }
        }
        if event.id == 0 {
            sum = sum.wrapping_add_unsigned(book.checksum());
        }
    }
    (applied, sum)
}

#[test]
fn books_allocate_nothing_once_they_have_data() {
    let kinds = [
        (BookConfig::by_level(50), Kind::Level),
        (BookConfig::by_price(250), Kind::Level),
        (BookConfig::by_order(250, 4_000), Kind::Order),
    ];
    for (config, kind) in kinds {
        let mut books = Books::new(config.unwrap(), 4);
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..100 {
            // Whether refused or not, it creates the book.
            let _ = books.apply(&event(&mut random, kind));
        }
        let memory = books.memory();
        let mut result = (0, 0);
        let count = allocations(|| result = churn(&mut books, &mut random, kind));
        assert_eq!(count, 0, "{kind:?}");
        assert!(result.0 > 2_000 && result.1 != 0, "{kind:?}: {result:?}");
        assert_eq!(books.memory(), memory);
    }
}

/// Returns the bytes of a book besides itself, as counted by the allocator.
fn memory(config: BookConfig) -> usize {
    let before = fanfare_counting::live_bytes_here();
    let book = Book::new(&config);
    let live = fanfare_counting::live_bytes_here() - before;
    assert_eq!(live, (book.memory() - size_of_val(&book)) as i64);
    assert!(size_of_val(&book) < 450, "{}", size_of_val(&book));
    live as usize
}

#[test]
fn memory_is_what_the_documentation_says() {
    let window = |levels: usize| levels + levels / 2 + 8;
    let table = |most: usize| 5 * (16 * most).div_ceil(7).next_power_of_two() + 16;
    for levels in [8, 20, 100, 1_000] {
        let most = levels as u32;
        let ranks = 32 * window(levels) + 2 * table(levels);
        let by_level = memory(BookConfig::by_level(most).unwrap());
        assert_eq!(by_level, 48 * window(levels));
        let by_price = memory(BookConfig::by_price(most).unwrap());
        assert_eq!(by_price, 48 * levels + ranks);
        for orders in [8, 28_672, 30_000] {
            let by_order = memory(BookConfig::by_order(most, orders as u32).unwrap());
            assert_eq!(by_order, 64 * levels + ranks + 32 * orders + table(orders));
        }
    }
}

#[test]
fn records_of_dbn_allocate_nothing_once_their_books_have_data() {
    let mut table = Instruments::new(4);
    for symbol in [b"A", b"B", b"C", b"D"] {
        let name = Name::of_symbol(symbol);
        table.see(&name).unwrap();
    }
    for (schema, kind) in [(Schema::Mbp10, Kind::Level), (Schema::Mbo, Kind::Order)] {
        let config = DbnConfig {
            depth: 50,
            ..DbnConfig::new(Schemas::new(&[schema]).unwrap())
        };
        let mut to_dbn = ToDbn::new(config).unwrap();
        let mut random = fastrand::Rng::with_seed(1);
        let mut out = Vec::with_capacity(1_000);
        let mut churn = || {
            for _ in 0..50_000 {
                out.clear();
                to_dbn.write(&event(&mut random, kind), 1, &table, &mut out);
                assert!(to_dbn.lost().is_empty());
            }
        };
        churn();
        assert_eq!(allocations(churn), 0, "{schema}");
    }
}
