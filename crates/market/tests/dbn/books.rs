//! Books that an obvious reader builds from the records, compared with those built from the events.

use crate::{Stream, event, schemas, table};
use dbn::{BidAskPair, MboMsg, Mbp1Msg, Mbp10Msg};
use fanfare_market::dbn::Schema;
use fanfare_market::event::entry;
use fanfare_market::{Action, Book, BookConfig, Event, Flags, InstrumentId, Kind, Price, Side};
use fastrand::Rng;
use std::collections::BTreeMap;

fn seeds() -> u64 {
    let wanted = std::env::var("FANFARE_SEEDS").ok();
    wanted.map_or(100, |text| text.parse().unwrap())
}

const INSTRUMENTS: u32 = 3;

fn config(kind: usize) -> BookConfig {
    match kind {
        0 => BookConfig::by_level(5),
        1 => BookConfig::by_price(1_000),
        _ => BookConfig::by_order(1_000, 10_000),
    }
    .unwrap()
}

/// A source of random events of one kind of book, many of them invalid.
struct Source {
    rng: Rng,
    kind: usize,
    rpt_seq: [u32; INSTRUMENTS as usize],
}

impl Source {
    fn next(&mut self) -> Event {
        let instrument = self.rng.u32(0..INSTRUMENTS);
        let last = &mut self.rpt_seq[instrument as usize];
        *last += if self.rng.u8(0..200) == 0 { 2 } else { 1 };
        let is_bid = self.rng.bool();
        let level = self.rng.u16(1..=5);
        // Numbered levels are mostly in order, others mostly on their side.
        let far = match self.kind {
            0 => 10 * i64::from(level) + self.rng.i64(0..10),
            _ => self.rng.i64(0..30),
        };
        let mut made = Event {
            kind: if self.kind == 2 {
                Kind::Order
            } else {
                Kind::Level
            },
            instrument: InstrumentId(instrument),
            entry: if is_bid { entry::BID } else { entry::OFFER },
            level: if self.kind == 0 { level } else { 0 },
            price: Price::from_units(if is_bid { 1_000 - far } else { 1_001 + far }),
            size: self.rng.i64(1..100),
            id: self.rng.u64(1..30),
            flags: if self.rng.u8(0..3) > 0 {
                Flags::LAST
            } else {
                Flags::NONE
            },
            ..event(*last)
        };
        made.action = match (self.rng.u8(0..12), self.kind) {
            (0..5, _) => Action::New,
            (5..8, _) => Action::Change,
            (8..10, _) => Action::Delete,
            (10, 0) => [Action::DeleteThru, Action::DeleteFrom][self.rng.usize(0..2)],
            (_, 0) => Action::Overlay,
            (_, 2) => Action::Fill,
            _ => Action::Delete,
        };
        if made.action == Action::Delete && self.kind != 1 && self.rng.bool() {
            (made.price, made.size) = (Price::UNDEFINED, Event::NO_SIZE);
        }
        match self.rng.u8(0..100) {
            0..6 => (made.kind, made.action) = (Kind::Trade, Action::New),
            6..18 => {
                made.kind = Kind::Clear;
                made.flags = Flags::SNAPSHOT;
            }
            _ => {}
        }
        made
    }
}

/// Returns the expected levels of a record.
fn levels(book: Option<&Book>, count: usize) -> Vec<BidAskPair> {
    let side = |side| {
        let all = book.map(|book| book.depth(side).collect::<Vec<_>>());
        all.unwrap_or_default()
    };
    let (bids, offers) = (side(Side::Bid), side(Side::Offer));
    let mut pairs = vec![BidAskPair::default(); count];
    for (at, pair) in pairs.iter_mut().enumerate() {
        if let Some(bid) = bids.get(at) {
            pair.bid_px = bid.price.units();
            (pair.bid_sz, pair.bid_ct) = (bid.size as u32, bid.orders as u32);
        }
        if let Some(offer) = offers.get(at) {
            pair.ask_px = offer.price.units();
            (pair.ask_sz, pair.ask_ct) = (offer.size as u32, offer.orders as u32);
        }
    }
    pairs
}

/// The books of the events, and whether their readers can know that they are complete.
struct Truth {
    books: Vec<Option<Book>>,
    is_whole: Vec<Option<bool>>,
    last: Vec<u32>,
}

impl Truth {
    fn new() -> Self {
        let count = INSTRUMENTS as usize;
        Self {
            books: vec![None; count],
            is_whole: vec![None; count],
            last: vec![0; count],
        }
    }

    fn apply(&mut self, kind: usize, event: &Event) {
        let at = event.instrument.0 as usize;
        let is_next = event.rpt_seq == self.last[at] + 1;
        self.last[at] = event.rpt_seq;
        let was_whole = self.is_whole[at].unwrap_or(event.rpt_seq == 1);
        let mut is_whole = is_next && was_whole;
        if self.books[at].is_none() && matches!(event.kind, Kind::Level | Kind::Order) {
            self.books[at] = Some(Book::new(&config(kind)));
        }
        if event.kind == Kind::Clear {
            is_whole = true;
        }
        if let Some(book) = &mut self.books[at] {
            is_whole &= book.apply(event).is_ok();
        }
        self.is_whole[at] = Some(is_whole);
    }
}

#[test]
fn levels_are_those_of_the_book() {
    for (seed, kind) in (0..seeds()).flat_map(|seed| (0..3).map(move |kind| (seed, kind))) {
        let ten = seed % 2 == 0;
        let schema = if ten { Schema::Mbp10 } else { Schema::Mbp1 };
        let mut stream = Stream::new(schemas(&[schema]), table(INSTRUMENTS.into()));
        let mut source = Source {
            rng: Rng::with_seed(seed),
            kind,
            rpt_seq: [0; 3],
        };
        let mut truth = Truth::new();
        let count = if ten { 10 } else { 1 };
        // The levels of each instrument that a reader should have after each record.
        let mut expected = Vec::new();
        for _ in 0..300 {
            let event = source.next();
            let at = event.instrument.0 as usize;
            let before = levels(truth.books[at].as_ref(), count);
            truth.apply(kind, &event);
            let after = levels(truth.books[at].as_ref(), count);
            let named = stream.to_dbn.counts().records;
            let written = stream.write(&event);
            assert!(stream.to_dbn.lost().is_empty());
            assert!(written <= 2, "a symbol and a record");
            if written == 0 {
                assert_eq!(
                    before, after,
                    "seed {seed}: {event:?} changed what a reader sees"
                );
            } else {
                expected.push((event, after, truth.is_whole[at]));
            }
            assert!(stream.to_dbn.counts().records >= named);
        }
        let mut expected = expected.into_iter();
        let mut check = |pairs: &[BidAskPair], sequence: u32, flags: u8, action: u8| {
            let (event, levels, is_whole) = expected.next().unwrap();
            assert_eq!(sequence, event.rpt_seq, "seed {seed}");
            assert_eq!(pairs, levels, "seed {seed}, kind {kind}: {event:?}");
            let doubtful = flags & dbn::flags::MAYBE_BAD_BOOK != 0;
            assert_eq!(
                Some(!doubtful),
                is_whole,
                "seed {seed}, kind {kind}: {event:?}"
            );
            let is_last = flags & dbn::flags::LAST != 0;
            assert_eq!(is_last, event.flags.has(Flags::LAST));
            assert_eq!(action == b'T', event.kind == Kind::Trade && action != b'N');
        };
        stream.read(|record| {
            if let Some(mbp) = record.get::<Mbp10Msg>() {
                check(&mbp.levels, mbp.sequence, mbp.flags.raw(), mbp.action as u8);
            } else if let Some(mbp) = record.get::<Mbp1Msg>() {
                check(&mbp.levels, mbp.sequence, mbp.flags.raw(), mbp.action as u8);
            }
        });
        assert!(expected.next().is_none());
    }
}

/// A book as built by a reader of MBO.
#[derive(Default)]
struct Reader(BTreeMap<u64, (u8, i64, i64)>);

impl Reader {
    fn take(&mut self, mbo: &MboMsg) {
        let (price, size) = (mbo.price, i64::from(mbo.size));
        match mbo.action as u8 {
            b'R' => self.0.clear(),
            b'A' | b'M' => {
                self.0.insert(mbo.order_id, (mbo.side as u8, price, size));
            }
            b'C' => {
                if let Some(order) = self.0.get_mut(&mbo.order_id) {
                    order.2 -= size;
                    if order.2 <= 0 {
                        self.0.remove(&mbo.order_id);
                    }
                }
            }
            _ => {}
        }
    }
}

#[test]
fn orders_of_a_reader_are_those_of_the_book() {
    let mut whole = 0;
    for seed in 0..seeds() {
        let mut stream = Stream::new(schemas(&[Schema::Mbo]), table(INSTRUMENTS.into()));
        let mut source = Source {
            rng: Rng::with_seed(seed),
            kind: 2,
            rpt_seq: [0; 3],
        };
        let mut truth = Truth::new();
        let mut expected = Vec::new();
        for _ in 0..300 {
            let event = source.next();
            let at = event.instrument.0 as usize;
            truth.apply(2, &event);
            assert!(
                (1..=3).contains(&stream.write(&event)),
                "seed {seed}: {event:?}"
            );
            assert!(stream.to_dbn.lost().is_empty());
            let book = truth.books[at].as_ref();
            let orders: BTreeMap<_, _> = (1..30)
                .filter_map(|id| {
                    let (side, price, size) = book?.order(id)?;
                    let side = if side == Side::Bid { b'B' } else { b'A' };
                    Some((id, (side, price.units(), size)))
                })
                .collect();
            expected.push((event, orders, truth.is_whole[at] == Some(true)));
        }
        let mut readers: [Reader; INSTRUMENTS as usize] = Default::default();
        let mut records = Vec::new();
        stream.read(|record| records.extend(record.get::<MboMsg>().cloned()));
        let mut records = records.into_iter().peekable();
        for (event, orders, is_whole) in expected {
            let reader = &mut readers[event.instrument.0 as usize];
            let mut flags = 0;
            let of = |mbo: &MboMsg| {
                (mbo.hd.instrument_id, mbo.sequence) == (event.instrument.0, event.rpt_seq)
            };
            while let Some(mbo) = records.next_if(of) {
                reader.take(&mbo);
                flags = mbo.flags.raw();
            }
            let doubtful = flags & dbn::flags::MAYBE_BAD_BOOK != 0;
            assert_eq!(!doubtful, is_whole, "seed {seed}: {event:?}");
            if is_whole {
                whole += 1;
                assert_eq!(reader.0, orders, "seed {seed}: {event:?}");
            }
        }
        assert!(records.next().is_none());
    }
    assert!(
        whole > 1_000 * seeds() / 100,
        "{whole} books could be compared"
    );
}
