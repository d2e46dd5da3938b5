//! Tests of the client against a small plant in an obvious implementation.

use std::collections::BTreeMap;
use std::fmt::Write;

use fanfare_fix::codec::Decoder;
use fanfare_market::event::{Action, Event, Flags, Kind};
use fanfare_market::{Book, BookConfig, Price, Side};
use proptest::prelude::*;

use super::{Subscriber, Terms, Updates};

/// Levels of a side, the best first.
type Rows = Vec<(i64, i64, u64)>;

/// A book of one instrument, and the messages about it for one subscription.
struct Plant {
    begin_string: &'static str,
    terms: Terms,
    sides: [BTreeMap<i64, (i64, u64)>; 2],
    shown: [Rows; 2],
    number: u64,
    changes: u32,
}

impl Plant {
    fn new(begin_string: &'static str, terms: Terms) -> Self {
        Self {
            begin_string,
            terms,
            sides: Default::default(),
            shown: Default::default(),
            number: 0,
            changes: 0,
        }
    }

    fn set(&mut self, side: Side, price: i64, size: i64) {
        let levels = &mut self.sides[side as usize];
        match size {
            0 => _ = levels.remove(&price),
            _ => _ = levels.insert(price, (size, size.unsigned_abs() % 3)),
        }
    }

    fn top(&self, side: Side) -> Rows {
        let levels = self.sides[side as usize].iter();
        let mut rows: Rows = levels.map(|(p, (s, o))| (*p, *s, *o)).collect();
        if side == Side::Bid {
            rows.reverse();
        }
        rows.truncate(match self.terms.depth {
            0 => usize::MAX,
            depth => depth as usize,
        });
        rows
    }

    /// Returns the same checksum as the market's own book.
    fn checksum(&self) -> u64 {
        let mut book = Book::new(&BookConfig::by_price(64).unwrap().may_cross(true));
        for side in Side::BOTH {
            for (price, size, orders) in self.top(side) {
                let level = Event {
                    kind: Kind::Level,
                    action: Action::New,
                    entry: side.entry(),
                    price: Price::from_units(price * 500_000_000),
                    size,
                    id: orders,
                    flags: Flags::LAST,
                    ..Event::EMPTY
                };
                book.apply(&level).unwrap();
            }
        }
        book.checksum()
    }

    fn has_numbers(&self) -> bool {
        self.begin_string == "FIXT.1.1"
    }

    fn entry(&self, side: Side, at: usize, row: (i64, i64, u64)) -> String {
        let position = if self.has_numbers() { 1023 } else { 290 };
        let sign = if row.0 < 0 { "-" } else { "" };
        let (whole, half) = (row.0.abs() / 2, row.0.abs() % 2 * 5);
        let mut text = format!("269={}|270={sign}{whole}.{half}|", char::from(side.entry()));
        write!(text, "271={}|{position}={}|", row.1, at + 1).unwrap();
        if row.2 > 0 {
            write!(text, "346={}|", row.2).unwrap();
        }
        text
    }

    fn snapshot(&mut self) -> String {
        self.shown = Side::BOTH.map(|side| self.top(side));
        let mut entries = Vec::new();
        for (side, rows) in Side::BOTH.into_iter().zip(&self.shown) {
            for (at, row) in rows.iter().enumerate() {
                entries.push(self.entry(side, at, *row));
            }
        }
        if entries.is_empty() {
            entries.push("269=J|".to_owned());
        }
        let number = match self.has_numbers() {
            true => format!("83={}|", self.number),
            false => String::new(),
        };
        let all: String = entries.iter().map(|e| format!("{e}{number}")).collect();
        let count = entries.len();
        let sum = self.sum(true);
        self.message(&format!("35=W|262=r1|55=RIU3|268={count}|{all}{sum}"))
    }

    /// Returns the changes since the last message.
    fn changes(&mut self) -> Option<String> {
        let mut entries = Vec::new();
        for side in Side::BOTH {
            let (old, new) = (self.shown[side as usize].clone(), self.top(side));
            let has = |rows: &Rows, price| rows.iter().any(|row| row.0 == price);
            for (at, row) in old.iter().enumerate().rev() {
                if !has(&new, row.0) {
                    entries.push(format!("279=2|{}", self.entry(side, at, *row)));
                }
            }
            for (at, row) in new.iter().enumerate() {
                if !has(&old, row.0) {
                    entries.push(format!("279=0|{}", self.entry(side, at, *row)));
                }
            }
            for (at, row) in new.iter().enumerate() {
                if has(&old, row.0) && !old.contains(row) {
                    entries.push(format!("279=1|{}", self.entry(side, at, *row)));
                }
            }
            self.shown[side as usize] = new;
        }
        if entries.is_empty() {
            return None;
        }
        let mut all = String::new();
        for entry in &entries {
            self.number += 1;
            all += entry;
            all += "55=RIU3|";
            if self.has_numbers() {
                write!(all, "83={}|", self.number).unwrap();
            }
        }
        self.changes += 1;
        let sum = self.sum(false);
        Some(self.message(&format!("35=X|262=r1|268={}|{all}{sum}", entries.len())))
    }

    fn sum(&self, is_snapshot: bool) -> String {
        let every = self.terms.checksum_every;
        match every > 0 && (is_snapshot || self.changes.is_multiple_of(every)) {
            true => format!("20013={:016x}|", self.checksum()),
            false => String::new(),
        }
    }

    fn skipped(&self, count: u64, first: u64, last: u64) -> String {
        self.news(&format!(
            "148=Messages missing|146=1|55=RIU3|33=1|\
             58=missing=slow-consumer request=r1 count={count} first={first} last={last}|"
        ))
    }

    fn state(&self, state: &str) -> String {
        self.news(&format!(
            "148=Instrument state|146=1|55=RIU3|33=1|58=state={state} lack=snapshot|"
        ))
    }

    fn news(&self, body: &str) -> String {
        self.message(&format!("35=B|{body}"))
    }

    fn message(&self, body: &str) -> String {
        let text = format!("8={}|9={}|{body}", self.begin_string, body.len());
        let text = text.replace('|', "\x01");
        let sum = text.bytes().fold(0, u8::wrapping_add);
        format!("{text}10={sum:03}\x01")
    }
}

fn take(subscriber: &mut Subscriber, message: &str) {
    subscriber.take(&Decoder::new().decode(message.as_bytes()).unwrap());
}

/// Returns a subscriber of these terms that has its first snapshot, of two bids and an offer.
fn joined(begin_string: &'static str, terms: Terms) -> (Plant, Subscriber) {
    let (mut plant, mut subscriber) = (Plant::new(begin_string, terms), Subscriber::new());
    plant.set(Side::Bid, 99, 7);
    plant.set(Side::Bid, 98, 5);
    plant.set(Side::Offer, 101, 4);
    subscriber.subscribed(b"r1", &["RIU3"], terms);
    take(&mut subscriber, &plant.snapshot());
    assert_eq!(subscriber.first_fault(), None);
    (plant, subscriber)
}

fn terms() -> impl Strategy<Value = Terms> {
    (0_u32..6, 0_u32..4).prop_map(|(depth, checksum_every)| Terms {
        depth,
        checksum_every,
        ..Terms::default()
    })
}

/// Levels that are set between two messages: bid or offer, price, size.
type Step = Vec<(bool, i64, i64)>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let level = (any::<bool>(), 1_i64..12, 0_i64..5);
    prop::collection::vec(prop::collection::vec(level, 1..8), 1..40)
}

fn apply(plant: &mut Plant, step: &Step) {
    for (is_bid, distance, size) in step {
        match is_bid {
            true => plant.set(Side::Bid, -*distance, *size),
            false => plant.set(Side::Offer, *distance, *size),
        }
    }
}

proptest! {
    #[test]
    fn what_is_right_has_no_fault(
        terms in terms(),
        is_new in any::<bool>(),
        steps in steps(),
        gap_at in 0_usize..40,
    ) {
        let begin_string = if is_new { "FIXT.1.1" } else { "FIX.4.2" };
        let (mut plant, mut subscriber) = joined(begin_string, terms);
        for (at, step) in steps.iter().enumerate() {
            apply(&mut plant, step);
            let first = plant.number + 1;
            let Some(changes) = plant.changes() else { continue };
            if at == gap_at {
                let last = plant.number;
                take(&mut subscriber, &plant.skipped(last + 1 - first, first, last));
                take(&mut subscriber, &plant.snapshot());
            } else {
                take(&mut subscriber, &changes);
            }
            prop_assert_eq!(subscriber.first_fault(), None);
            let book = subscriber.book(b"r1", b"RIU3").unwrap();
            prop_assert!(book.is_live());
            prop_assert_eq!(book.checksum(), plant.checksum());
            if is_new {
                prop_assert_eq!(book.rpt_seq(), Some(plant.number));
            }
        }
        let counts = *subscriber.counts();
        if is_new {
            prop_assert_eq!(counts.entries + counts.skipped_entries, plant.number);
        }
        prop_assert!(terms.checksum_every == 0 || counts.checked > 0);
    }

    #[test]
    fn what_gets_lost_is_found(steps in steps(), lost in 0_usize..40) {
        let terms = Terms { checksum_every: 1, ..Terms::default() };
        let (mut plant, mut subscriber) = joined("FIX.4.4", terms);
        let (mut is_lost, mut is_followed) = (false, false);
        for (at, step) in steps.iter().enumerate() {
            apply(&mut plant, step);
            let before = plant.checksum();
            match plant.changes() {
                Some(_) if at == lost => is_lost = true,
                Some(changes) => {
                    // A loss may be undone by the messages that follow.
                    is_followed |= is_lost && before != subscriber
                        .book(b"r1", b"RIU3").unwrap().checksum();
                    take(&mut subscriber, &changes);
                }
                None => {}
            }
        }
        let book = subscriber.book(b"r1", b"RIU3").unwrap();
        let is_wrong = book.checksum() != plant.checksum();
        prop_assert!(!(is_wrong && is_followed) || subscriber.counts().faults > 0);
    }
}

/// Returns the fault that these messages cause.
fn fault(terms: Terms, messages: impl Fn(&mut Plant, &mut Subscriber) -> Vec<String>) -> String {
    let (mut plant, mut subscriber) = joined("FIXT.1.1", terms);
    for message in messages(&mut plant, &mut subscriber) {
        take(&mut subscriber, &message);
    }
    let told = subscriber.first_fault().map(str::to_owned);
    told.unwrap_or_else(|| panic!("no fault: {:?}", subscriber.counts()))
}

/// Returns the X that sets one bid.
fn bid(plant: &mut Plant, price: i64, size: i64) -> String {
    plant.set(Side::Bid, price, size);
    plant.changes().unwrap()
}

#[test]
fn numbers_have_no_holes() {
    let hole = fault(Terms::default(), |plant, _| {
        bid(plant, 97, 1);
        vec![bid(plant, 96, 1)]
    });
    assert_eq!(hole, "request r1, RIU3: entry 2 for 1");
    let snapshot = fault(Terms::default(), |plant, _| {
        bid(plant, 97, 1);
        bid(plant, 96, 1);
        vec![plant.snapshot()]
    });
    assert_eq!(
        snapshot,
        "request r1, RIU3: a snapshot of number 2 behind 0"
    );
}

#[test]
fn levels_are_where_they_are_said_to_be() {
    let checks = [
        ("290=1", "290=9", "a new level 9 where there are 2"),
        ("279=0", "279=2", "level 1 is at 49.5, not at 50.0"),
        ("279=0", "279=3", "`3` is no action"),
        ("271=3", "272=3", "has no size"),
        ("270=50.0", "270=1.0", "are not in order"),
        ("270=50.0", "270=49.5", "a level at 49.5 is there twice"),
    ];
    for (right, wrong, why) in checks {
        let (mut plant, mut subscriber) = joined("FIX.4.4", Terms::default());
        let text = bid(&mut plant, 100, 3).replace('\x01', "|");
        let body = text.split_once("|35=").unwrap().1;
        let body = format!("35={}", body.rsplit_once("10=").unwrap().0);
        assert!(body.contains(right), "{right}: {body}");
        let wrong = plant.message(&body.replace(right, wrong));
        take(&mut subscriber, &wrong);
        let told = format!("{:?}", subscriber.first_fault());
        assert!(
            told.contains(why) || told.contains(&why.replace(".0", "")),
            "{why}: {told}"
        );
        assert!(!subscriber.book(b"r1", b"RIU3").unwrap().is_live());
    }
}

#[test]
fn depth_is_what_was_asked_for() {
    let terms = Terms {
        depth: 2,
        ..Terms::default()
    };
    let deep = fault(terms, |plant, _| {
        plant.terms.depth = 3;
        vec![bid(plant, 97, 1)]
    });
    assert!(deep.contains("a new level 3 where there are 2"), "{deep}");
    let deep = fault(terms, |plant, _| {
        plant.terms.depth = 3;
        plant.set(Side::Bid, 97, 1);
        vec![plant.snapshot()]
    });
    assert!(deep.contains("3 levels where 2 were asked for"), "{deep}");
}

#[test]
fn checksums_are_there_and_right() {
    let every = Terms {
        checksum_every: 2,
        ..Terms::default()
    };
    let wrong = fault(every, |plant, _| {
        let one = bid(plant, 97, 1);
        plant.sides[0].insert(97, (2, 2));
        plant.shown[0][2] = (97, 2, 2);
        vec![one, bid(plant, 96, 1)]
    });
    assert!(wrong.contains("at number 2, the plant has"), "{wrong}");
    let none = fault(every, |plant, _| {
        plant.terms.checksum_every = 0;
        (90..96).map(|price| bid(plant, price, 1)).collect()
    });
    assert!(none.contains("a checksum was asked for"), "{none}");
}

#[test]
fn what_is_left_out_adds_up() {
    for (count, first, last) in [(1, 2, 2), (2, 1, 1), (0, 1, 0)] {
        let told = fault(Terms::default(), |plant, _| {
            bid(plant, 97, 1);
            vec![plant.skipped(count, first, last)]
        });
        assert!(
            told.contains("are said to be missing, 1 was next"),
            "{told}"
        );
    }
    let told = fault(Terms::default(), |plant, _| {
        bid(plant, 97, 1);
        vec![plant.skipped(1, 1, 1), bid(plant, 96, 1)]
    });
    assert!(told.contains("changes behind a gap"), "{told}");
    let told = fault(Terms::default(), |plant, _| {
        vec![plant.state("recovering"), bid(plant, 96, 1)]
    });
    assert!(told.contains("no snapshot, state `recovering`"), "{told}");
}

#[test]
fn an_instrument_that_recovers_comes_back_with_a_snapshot() {
    let (mut plant, mut subscriber) = joined("FIXT.1.1", Terms::default());
    take(&mut subscriber, &plant.state("recovering"));
    assert!(!subscriber.book(b"r1", b"RIU3").unwrap().is_live());
    plant.set(Side::Bid, 97, 1);
    take(&mut subscriber, &plant.state("live"));
    take(&mut subscriber, &plant.snapshot());
    let changes = bid(&mut plant, 96, 2);
    take(&mut subscriber, &changes);
    assert_eq!(subscriber.first_fault(), None);
    assert_eq!(subscriber.counts().states, 2);
}

/// An X with a trade that was held back.
const TRADE: &str = "35=X|262=r1|268=1|279=0|269=2|55=RIU3|270=49|271=1|";

#[test]
fn trades_that_were_held_back_come_before_a_snapshot() {
    for state in ["recovering", "live"] {
        let (mut plant, mut subscriber) = joined("FIXT.1.1", Terms::default());
        take(&mut subscriber, &plant.state(state));
        take(&mut subscriber, &plant.message(TRADE));
        plant.number += 5;
        take(&mut subscriber, &plant.snapshot());
        let changes = bid(&mut plant, 96, 2);
        take(&mut subscriber, &changes);
        assert_eq!(subscriber.first_fault(), None, "{state}");
    }
    let told = fault(Terms::default(), |plant, _| {
        vec![plant.message(TRADE), bid(plant, 96, 2)]
    });
    assert!(told.contains("changes behind no snapshot"), "{told}");
}

#[test]
fn what_is_merged_has_holes_in_its_numbers() {
    let terms = Terms {
        conflated: true,
        ..Terms::default()
    };
    let (mut plant, mut subscriber) = joined("FIXT.1.1", terms);
    plant.number += 5;
    take(&mut subscriber, &bid(&mut plant, 97, 1));
    take(&mut subscriber, &plant.message(TRADE));
    let lost = "148=Messages missing|33=1|58=missing=trades request=r1 count=3 first=0 last=0|";
    take(&mut subscriber, &plant.news(lost));
    plant.number += 5;
    take(&mut subscriber, &plant.snapshot());
    assert_eq!(subscriber.first_fault(), None);
    assert_eq!(subscriber.counts().trades_left_out, 3);
    plant.number -= 2;
    take(&mut subscriber, &bid(&mut plant, 96, 1));
    let told = subscriber.first_fault().unwrap();
    assert_eq!(told, "request r1, RIU3: entry 10 for 12");
}

#[test]
fn a_subscription_that_was_stopped_is_silent() {
    let told = fault(Terms::default(), |plant, subscriber| {
        subscriber.stopped(b"r1");
        take(subscriber, &bid(plant, 97, 1));
        assert_eq!(
            (subscriber.counts().late, subscriber.first_fault()),
            (1, None)
        );
        let terms = Terms {
            updates: Updates::None,
            ..Terms::default()
        };
        subscriber.subscribed(b"r2", &["RIU3"], terms);
        let w = plant.message("35=W|262=r2|55=RIU3|268=1|269=J|");
        vec![w, bid(plant, 96, 1)]
    });
    assert_eq!(told, "request r1 was stopped, and goes on: X");
}

#[test]
fn a_state_answers_the_requests_for_its_instrument() {
    let requests = [
        ("r1", "RIU3"),
        ("r2", "RI*"),
        ("r3", "@futures"),
        ("r4", "SiU3"),
        ("r5", "S*"),
        ("r6", "RIU3"),
    ];
    let mut subscriber = Subscriber::new();
    for (id, name) in requests {
        subscriber.subscribed(id.as_bytes(), &[name], Terms::default());
    }
    subscriber.denied(b"r6");
    let plant = Plant::new("FIX.4.4", Terms::default());
    take(&mut subscriber, &plant.state("recovering"));
    let answered = requests.map(|(id, _)| subscriber.is_answered(id.as_bytes()));
    assert_eq!(answered, [true, true, true, false, false, false]);
}

#[test]
fn refusals_are_no_faults() {
    let (plant, mut subscriber) = joined("FIX.4.4", Terms::default());
    subscriber.subscribed(b"r2", &["NOWHERE"], Terms::default());
    assert!(!subscriber.is_answered(b"r2"));
    take(
        &mut subscriber,
        &plant.message("35=Y|262=r2|281=0|58=no such instrument|"),
    );
    take(&mut subscriber, &plant.message("35=j|45=3|372=x|380=3|"));
    assert!(subscriber.is_answered(b"r2"));
    let counts = *subscriber.counts();
    assert_eq!((counts.refused, counts.rejected, counts.faults), (1, 1, 0));
    let told = subscriber.first_refusal();
    assert_eq!(told, Some("request r2: 281=0 no such instrument"));
}
