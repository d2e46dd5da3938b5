//! The events of a market: faults, trades that a snapshot contains, resets, silence.
#![allow(clippy::unwrap_used, clippy::panic)]

mod readers;

use fanfare_feed::recovery::{Lack, Numbering, RecoveryConfig, State};
use fanfare_market::event::entry;
use fanfare_market::{
    Action, BookConfig, Event, Flags, InstrumentId, Kind, Market, MarketConfig, Price, Side, View,
    state,
};

const RIU3: InstrumentId = InstrumentId(3);

fn market(numbering: Numbering) -> Market {
    let config = MarketConfig {
        book: BookConfig::by_level(5).unwrap(),
        recovery: RecoveryConfig {
            most_instruments: 10,
            ..RecoveryConfig::new(numbering)
        },
        source: 7,
        has_natural_refresh: false,
    };
    Market::new(config, 100)
}

fn level(rpt_seq: u32, entry: u8, level: u16, price: i64) -> Event {
    Event {
        kind: Kind::Level,
        instrument: RIU3,
        rpt_seq,
        entry,
        level,
        price: Price::from_units(price),
        size: 1,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

fn trade(rpt_seq: u32, price: i64) -> Event {
    Event {
        kind: Kind::Trade,
        level: 0,
        ..level(rpt_seq, entry::TRADE, 0, price)
    }
}

fn snapshot(rpt_seq: u32, price: i64) -> [Event; 2] {
    let flags = Flags::SNAPSHOT;
    let clear = Event {
        flags,
        instrument: RIU3,
        rpt_seq,
        ..Event::EMPTY
    };
    let bid = Event {
        flags: flags.with(Flags::LAST),
        ..level(rpt_seq, entry::BID, 1, price)
    };
    [clear, bid]
}

fn statistic(rpt_seq: u32, entry: u8, price: i64) -> Event {
    Event {
        kind: Kind::Statistic,
        ..level(rpt_seq, entry, 0, price)
    }
}

/// Events in a short form, each numbered from 100 without a gap.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn add(&mut self, event: &Event) {
        assert_eq!(event.number, 100 + self.0.len() as u64);
        assert_eq!((event.source, event.instrument), (7, RIU3));
        self.0.push(match event.kind {
            Kind::State => state::of_event(event).unwrap().to_string(),
            kind => format!("{kind:?} {} {}", event.rpt_seq, event.price.units()),
        });
    }
}

fn changes(market: &mut Market, log: &mut Log, sequence: u64, events: &[Event]) {
    market.changes(0, sequence, events, &mut |event| log.add(event));
}

fn restore(market: &mut Market, log: &mut Log, last: u32, events: &[Event]) {
    market.snapshot((0, 0), Some(last), events, &mut |event| log.add(event));
}

#[test]
fn trades_that_a_snapshot_contains_are_passed_on_and_its_levels_are_not() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 50, &[level(7, entry::BID, 1, 70)]);
    changes(&mut market, &mut log, 51, &[trade(8, 71)]);
    changes(&mut market, &mut log, 52, &[level(9, entry::OFFER, 1, 90)]);
    restore(&mut market, &mut log, 51, &snapshot(8, 65));
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "recovering: RptSeq 1 to 6 are missing",
            "Clear 8 9223372036854775807",
            "Level 8 65",
            "Trade 8 71",
            "Level 9 90",
            "live",
        ]
    );
    assert_eq!(market.stats().left_out, 1);
    let book = market.book(RIU3).unwrap();
    let best = Side::BOTH.map(|side| book.best(side).unwrap().price.units());
    assert_eq!(best, [65, 90]);
}

#[test]
fn statistics_that_wait_are_passed_on_if_the_snapshot_has_none_of_their_type() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 50, &[level(7, entry::BID, 1, 70)]);
    changes(&mut market, &mut log, 51, &[statistic(8, b'4', 71)]);
    changes(&mut market, &mut log, 52, &[statistic(9, b'7', 72)]);
    let opening = Event {
        flags: Flags::SNAPSHOT,
        ..statistic(9, b'4', 80)
    };
    let [clear, bid] = snapshot(9, 65);
    restore(&mut market, &mut log, 52, &[clear, opening, bid]);
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "recovering: RptSeq 1 to 6 are missing",
            "Clear 9 9223372036854775807",
            "Statistic 9 80",
            "Level 9 65",
            "Statistic 9 72",
            "live",
        ]
    );
    assert_eq!(market.stats().left_out, 2);
    // One that comes again later may be older than the last one.
    market.gap(0, 53..54, &mut |event| log.add(event));
    changes(&mut market, &mut log, 54, &[level(10, entry::OFFER, 1, 90)]);
    changes(&mut market, &mut log, 53, &[statistic(9, b'7', 72)]);
    assert_eq!(market.stats().left_out, 3);
}

#[test]
fn late_values_without_a_number_do_not_follow_newer_ones() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    market.expect_late();
    changes(&mut market, &mut log, 1, &[statistic(0, b'4', 70)]);
    market.gap(0, 2..3, &mut |event| log.add(event));
    changes(&mut market, &mut log, 3, &[statistic(0, b'4', 72)]);
    let late = [statistic(0, b'4', 71), statistic(0, b'7', 60), trade(0, 61)];
    changes(&mut market, &mut log, 2, &late);
    market.replayed(2..3, &mut |event| log.add(event));
    assert_eq!(
        log.0,
        [
            "Statistic 0 70",
            "Statistic 0 72",
            "Statistic 0 60",
            "Trade 0 61",
        ]
    );
    assert_eq!(market.stats().left_out, 1);
}

#[test]
fn a_snapshot_with_a_fault_is_never_told_as_live() {
    let mut market = market(Numbering::Instrument);
    let [clear, bid] = snapshot(8, 65);
    let offer = Event {
        flags: Flags::SNAPSHOT.with(Flags::LAST),
        ..level(8, entry::OFFER, 1, 60)
    };
    let bid = Event {
        flags: Flags::SNAPSHOT,
        ..bid
    };
    for last in [50, 51] {
        let mut log = Vec::new();
        market.see(last.into(), &mut |event| panic!("{event:?}"));
        market.snapshot((0, 0), Some(last), &[clear, bid, offer], &mut |event| {
            log.push(match event.kind {
                Kind::State => state::of_event(event).unwrap().to_string(),
                kind => format!("{kind:?} {}", event.rpt_seq),
            });
        });
        let recovering = "recovering: a snapshot is missing, after a fault";
        let expected = ["Clear 8", "Level 8", "Level 8", "Clear 0", recovering];
        assert_eq!(log, expected);
    }
    market.snapshot((0, 0), Some(51), &snapshot(8, 65), &mut |_| {});
    assert_eq!(market.state(RIU3), Some(State::Live));
}

#[test]
fn a_book_is_cleared_once_for_all_faults_of_a_message() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    let [clear, bid] = snapshot(8, 65);
    let mut events = vec![clear, bid];
    // The book has 5 levels.
    events.extend((6..=10).map(|level| Event { level, ..bid }));
    events.extend([statistic(8, b'4', 60), level(8, entry::BID, 2, 64)]);
    market.see(50, &mut |event| panic!("{event:?}"));
    restore(&mut market, &mut log, 50, &events);
    let expected = [
        "Clear 8 9223372036854775807",
        "Level 8 65",
        "Statistic 8 60",
        "Clear 0 9223372036854775807",
        "recovering: a snapshot is missing, after a fault",
    ];
    assert_eq!(log.0, expected);
    assert_eq!((market.stats().faults, market.stats().left_out), (1, 5));
    log.0.clear();
    // Nor may a snapshot that lacks changes without RptSeq(83) restore it.
    let unnumbered = [1, 2, 3].map(|at| level(0, entry::BID, at, 70));
    market.changes(0, 51, &unnumbered, &mut |_| {});
    market.snapshot((0, 0), Some(50), &snapshot(8, 65), &mut |_| {});
    assert_ne!(market.state(RIU3), Some(State::Live));
    assert_eq!(market.recovery_stats().faults, 2);
}

#[test]
fn trades_alone_of_messages_before_a_new_beginning_are_passed_on() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 50, &[level(1, entry::BID, 1, 70)]);
    changes(&mut market, &mut log, 51, &[level(2, entry::BID, 1, 71)]);
    market.gap(0, 52..54, &mut |event| log.add(event));
    changes(&mut market, &mut log, 54, &[level(1, entry::BID, 1, 72)]);
    restore(&mut market, &mut log, 54, &snapshot(2, 73));
    assert_eq!(market.state(RIU3), Some(State::Live));
    let (mut log, before) = (Vec::new(), market.stats());
    let unnumbered = level(0, entry::BID, 2, 76);
    let late = [level(3, entry::BID, 1, 74), unnumbered, trade(4, 75)];
    for (sequence, event) in [52, 52, 53].into_iter().zip(late) {
        market.changes(0, sequence, &[event], &mut |event| {
            log.push((event.kind, event.price.units()));
        });
    }
    assert_eq!(log, [(Kind::Trade, 75)]);
    let book = market.book(RIU3).unwrap();
    let best = book.best(Side::Bid).map(|level| level.price.units());
    assert_eq!((market.state(RIU3), best), (Some(State::Live), Some(73)));
    let left_out = market.stats().left_out - before.left_out;
    assert_eq!((market.stats().unnumbered, left_out), (0, 2));
}

#[test]
fn trades_that_wait_when_the_channel_begins_anew_are_passed_on() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 50, &[level(7, entry::BID, 1, 70)]);
    changes(&mut market, &mut log, 51, &[trade(8, 71)]);
    market.reset(0, 1 << 32, &mut |event| log.add(event));
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "recovering: RptSeq 1 to 6 are missing",
            "Trade 8 71",
            "Clear 0 9223372036854775807",
            "recovering: a snapshot is missing",
        ]
    );
    let (stats, recovery) = (market.stats(), market.recovery_stats());
    assert_eq!((stats.left_out, recovery.dropped), (1, 2));
}

#[test]
fn trades_that_wait_when_the_feed_ends_are_passed_on() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 50, &[level(7, entry::BID, 1, 70)]);
    changes(&mut market, &mut log, 51, &[trade(8, 71)]);
    changes(&mut market, &mut log, 52, &[first(trade(9, 72))]);
    for _ in 0..2 {
        market.finish(10, &mut |event| {
            assert!(event.flags.has(Flags::LAST));
            log.add(event);
        });
    }
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "recovering: RptSeq 1 to 6 are missing",
            "Trade 8 71",
            "Trade 9 72",
        ]
    );
    let (stats, recovery) = (market.stats(), market.recovery_stats());
    assert_eq!((stats.left_out, recovery.dropped), (1, 3));
    assert_eq!(recovery.held, 0);
}

#[test]
fn a_book_that_is_crossed_is_cleared_and_recovers_with_a_snapshot() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 1, &[level(1, entry::BID, 1, 70)]);
    changes(&mut market, &mut log, 2, &[level(2, entry::OFFER, 1, 60)]);
    assert_eq!(
        market.state(RIU3),
        Some(State::Recovering(Lack::SnapshotAfterFault))
    );
    assert!(market.book(RIU3).unwrap().is_empty());
    changes(&mut market, &mut log, 3, &[level(3, entry::OFFER, 1, 80)]);
    restore(&mut market, &mut log, 2, &snapshot(2, 70));
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "Level 1 70",
            "live",
            "Level 2 60",
            "Clear 0 9223372036854775807",
            "recovering: a snapshot is missing, after a fault",
            "Clear 2 9223372036854775807",
            "Level 2 70",
            "Level 3 80",
            "live",
        ]
    );
    assert_eq!(market.stats().faults, 1);
}

/// The last event of a message, of a kind that does not change a book.
fn beside(kind: Kind, rpt_seq: u32) -> Event {
    Event {
        kind,
        ..trade(rpt_seq, 72)
    }
}

/// The end of the instrument, which is the last event of its message.
fn closed() -> Event {
    Event {
        instrument: RIU3,
        flags: Flags::LAST,
        ..state::to_event(State::Closed)
    }
}

/// A change that is not the last event of its message.
fn first(change: Event) -> Event {
    Event {
        flags: Flags::NONE,
        ..change
    }
}

#[test]
fn a_reader_sees_no_book_that_is_crossed_or_in_disorder() {
    let crossing = first(level(2, entry::OFFER, 1, 60));
    let disordered = first(level(2, entry::BID, 2, 71));
    let lost = State::Recovering(Lack::SnapshotAfterFault);
    for (faulty, state) in [
        (&[level(2, entry::OFFER, 1, 60)][..], lost),
        (&[disordered, trade(3, 72)], lost),
        (&[disordered, trade(0, 72)], lost),
        (&[crossing, trade(0, 72)], lost),
        (&[crossing, beside(Kind::Statistic, 0)], lost),
        (&[crossing, beside(Kind::Status, 0)], lost),
        (&[crossing, beside(Kind::Status, 3)], lost),
        (&[crossing, beside(Kind::Definition, 0)], lost),
        (&[crossing, closed()], State::Closed),
    ] {
        let mut market = market(Numbering::Instrument);
        let books = vec![BookConfig::by_level(5).unwrap(); 7];
        let mut view: View = View::new(books);
        let (mut seen, mut kinds) = (Vec::new(), Vec::new());
        let mut send = |event: &Event| {
            view.apply(event);
            kinds.push(event.kind);
            let own = view.get(RIU3).unwrap();
            if event.flags.has(Flags::LAST) && event.kind != Kind::State {
                let best = |side| {
                    let book = own.book.as_ref()?;
                    Some(book.depth(side).map(|level| level.price.units()).collect())
                };
                let sides: [Vec<i64>; 2] = Side::BOTH.map(|side| best(side).unwrap_or_default());
                seen.push((event.kind, sides));
            }
        };
        market.changes(0, 1, &[level(1, entry::BID, 1, 70)], &mut send);
        market.changes(0, 2, faulty, &mut send);
        let (empty, bid) = ([vec![], vec![]], [vec![70], vec![]]);
        let expected = [
            (Kind::Clear, empty.clone()),
            (Kind::Level, bid),
            (Kind::Clear, empty),
        ];
        assert_eq!(seen, expected, "{faulty:?}");
        // All of the message is passed on, and the clear of the book behind it.
        let mut passed_on = vec![Kind::Clear, Kind::Level, Kind::State];
        passed_on.extend(faulty.iter().map(|event| event.kind));
        passed_on.push(Kind::Clear);
        passed_on.extend((state == lost).then_some(Kind::State));
        assert_eq!(kinds, passed_on);
        assert_eq!(view.get(RIU3).unwrap().state, state);
        assert_eq!(market.state(RIU3), Some(state));
        assert_eq!(market.stats().faults, 1);
    }
}

#[test]
fn after_a_fault_no_event_ends_the_message_in_front_of_the_clear() {
    let gone = Event {
        action: Action::Delete,
        ..first(level(2, entry::BID, 3, 70))
    };
    let unnumbered = first(level(0, entry::BID, 1, 71));
    for faulty in [gone, unnumbered] {
        for last in [trade(3, 72), trade(0, 72), beside(Kind::Status, 0)] {
            let mut market = market(Numbering::Instrument);
            market.changes(0, 1, &[level(1, entry::BID, 1, 70)], &mut |_| {});
            let mut ends = Vec::new();
            // The number after that of the faulty change, or the next one.
            let rpt_seq = match (last.rpt_seq, faulty.rpt_seq) {
                (0, _) => 0,
                (_, before) => before.max(1) + 1,
            };
            market.changes(0, 2, &[faulty, Event { rpt_seq, ..last }], &mut |event| {
                ends.push((event.kind, event.flags.has(Flags::LAST)));
            });
            let after = [(Kind::Clear, true), (Kind::State, true)];
            assert_eq!(ends, [&[(last.kind, false)][..], &after].concat());
        }
    }
}

#[test]
fn an_event_beside_a_book_in_order_ends_its_message() {
    for kind in [Kind::Trade, Kind::Statistic, Kind::Status] {
        let mut market = market(Numbering::Instrument);
        market.changes(0, 1, &[level(1, entry::BID, 1, 70)], &mut |_| {});
        let mut ends = Vec::new();
        // It is crossed within the message alone.
        let changes = [
            first(level(2, entry::OFFER, 1, 60)),
            Event {
                action: Action::Change,
                ..first(level(3, entry::BID, 1, 50))
            },
            beside(kind, 0),
        ];
        market.changes(0, 2, &changes, &mut |event| {
            ends.push((event.kind, event.flags.has(Flags::LAST)));
        });
        let level = (Kind::Level, false);
        assert_eq!(ends, [level, level, (kind, true)]);
        assert_eq!(market.state(RIU3), Some(State::Live));
        assert_eq!(market.stats().faults, 0);
        let book = market.book(RIU3).unwrap();
        assert_eq!(book.rpt_seq(), 3, "that of its last change");
        assert!(!book.is_doubtful());
    }
}

#[test]
fn a_book_that_waits_within_a_message_is_not_checked() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 1, &[level(1, entry::BID, 1, 70)]);
    let part = [
        first(level(2, entry::OFFER, 1, 60)),
        first(level(4, entry::OFFER, 2, 80)),
        beside(Kind::Status, 0),
    ];
    changes(&mut market, &mut log, 2, &part);
    let waits = State::Recovering(Lack::Changes(3, 3));
    assert_eq!(market.state(RIU3), Some(waits));
    assert!(market.book(RIU3).unwrap().is_crossed());
    // The rest of the packet.
    let bid = Event {
        action: Action::Change,
        ..level(3, entry::BID, 1, 50)
    };
    changes(&mut market, &mut log, 2, &[bid]);
    assert_eq!(market.state(RIU3), Some(State::Live));
    assert_eq!(market.book(RIU3).unwrap().depth(Side::Offer).len(), 2);
    assert_eq!(market.stats().faults, 0);
}

#[test]
fn a_book_that_becomes_complete_is_told_so_behind_all_changes_of_the_message() {
    let deleted = Event {
        action: Action::Delete,
        ..first(level(2, entry::BID, 1, 70))
    };
    let bid = first(level(3, entry::BID, 1, 71));
    let lacking = "recovering: changes may have been lost below MsgSeqNum 3";
    for (changes_of_three, expected) in [
        // Part by part, it would be seen without a bid.
        (
            &[deleted, bid, level(4, entry::OFFER, 1, 80)][..],
            &["Level 2 70", "Level 3 71", "Level 4 80", "live"][..],
        ),
        // It lacks a change again.
        (
            &[deleted, level(4, entry::OFFER, 1, 80)],
            &["Level 2 70", "recovering: RptSeq 3 is missing"],
        ),
        // It is crossed.
        (
            &[deleted, bid, level(4, entry::OFFER, 1, 60)],
            &[
                "Level 2 70",
                "Level 3 71",
                "Level 4 60",
                "Clear 0 9223372036854775807",
                "recovering: a snapshot is missing, after a fault",
            ],
        ),
        // It is no longer traded.
        (&[deleted, closed()], &["Level 2 70", "closed"]),
    ] {
        let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
        let begins = [first(level(1, entry::BID, 1, 70)), trade(0, 70)];
        changes(&mut market, &mut log, 1, &begins);
        market.gap(0, 2..3, &mut |event| log.add(event));
        let begun = [
            "Clear 0 9223372036854775807",
            "Level 1 70",
            "Trade 0 70",
            "live",
            lacking,
        ];
        assert_eq!(log.0, begun);
        changes(&mut market, &mut log, 3, changes_of_three);
        assert_eq!(log.0[begun.len()..], *expected);
    }
}

#[test]
fn what_a_book_refuses_is_not_passed_on_and_trades_behind_it_are() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    let delete = Event {
        action: Action::Delete,
        flags: Flags::NONE,
        ..level(1, entry::BID, 1, 70)
    };
    let events = [delete, trade(2, 71), level(3, entry::BID, 1, 72)];
    changes(&mut market, &mut log, 1, &events);
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "Trade 2 71",
            "Clear 0 9223372036854775807",
            "recovering: a snapshot is missing, after a fault",
        ]
    );
}

#[test]
fn levels_without_numbers_in_a_feed_that_has_them_are_a_fault() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 1, &[level(1, entry::BID, 1, 70)]);
    changes(
        &mut market,
        &mut log,
        2,
        &[trade(0, 70), level(0, entry::BID, 1, 71)],
    );
    assert_eq!(market.stats().unnumbered, 1);
    assert_eq!(
        market.state(RIU3),
        Some(State::Recovering(Lack::SnapshotAfterFault))
    );
    assert!(log.0.contains(&"Trade 0 70".into()));
    restore(&mut market, &mut log, 1, &snapshot(1, 70));
    assert_ne!(market.state(RIU3), Some(State::Live), "lacks the level");
    restore(&mut market, &mut log, 2, &snapshot(1, 71));
    assert_eq!(market.state(RIU3), Some(State::Live));
}

#[test]
fn a_change_in_a_message_without_a_number_is_in_snapshots_of_later_messages() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 1, &[level(1, entry::BID, 1, 70)]);
    market.fault_without_number(RIU3, &mut |event| log.add(event));
    restore(&mut market, &mut log, 1, &snapshot(2, 71));
    assert_ne!(market.state(RIU3), Some(State::Live));
    restore(&mut market, &mut log, 2, &snapshot(2, 71));
    assert_eq!(market.state(RIU3), Some(State::Live));
}

#[test]
fn a_snapshot_without_its_number_is_not_taken_for_an_empty_book() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 50, &[]);
    restore(&mut market, &mut log, 50, &snapshot(0, 70));
    assert_ne!(market.state(RIU3), Some(State::Live));
    assert_eq!(market.recovery_stats().snapshots_unusable, 1);
    // An empty book may precede the first change.
    restore(&mut market, &mut log, 50, &snapshot(0, 70)[..1]);
    assert_eq!(market.state(RIU3), Some(State::Live));
}

#[test]
fn a_gap_a_silence_and_a_reset_are_told() {
    let (mut market, mut log) = (market(Numbering::Instrument), Log::default());
    changes(&mut market, &mut log, 1, &[level(1, entry::BID, 1, 70)]);
    market.gap(0, 2..4, &mut |event| log.add(event));
    changes(&mut market, &mut log, 4, &[level(2, entry::BID, 1, 71)]);
    market.silence(true, &mut |event| log.add(event));
    market.silence(false, &mut |event| log.add(event));
    market.reset(0, 1 << 32, &mut |event| log.add(event));
    assert_eq!(
        log.0,
        [
            "Clear 0 9223372036854775807",
            "Level 1 70",
            "live",
            "recovering: changes may have been lost below MsgSeqNum 4",
            "Level 2 71",
            "live",
            "stale",
            "live",
            "Clear 0 9223372036854775807",
            "recovering: a snapshot is missing",
        ]
    );
}

#[test]
fn without_numbers_of_instruments_snapshots_say_what_they_contain() {
    let (mut market, mut log) = (market(Numbering::Channel), Log::default());
    changes(&mut market, &mut log, 50, &[level(0, entry::OFFER, 1, 80)]);
    restore(&mut market, &mut log, 49, &snapshot(0, 70));
    changes(&mut market, &mut log, 51, &[level(0, entry::OFFER, 2, 90)]);
    assert_eq!(
        log.0,
        [
            "recovering: a snapshot is missing",
            "Clear 0 9223372036854775807",
            "Level 0 70",
            "Level 0 80",
            "live",
            "Level 0 90",
        ]
    );
    assert_eq!(market.book(RIU3).unwrap().depth(Side::Offer).len(), 2);
}

#[test]
fn a_book_is_ahead_until_the_messages_that_its_snapshot_contains_have_arrived() {
    let (mut market, mut log) = (market(Numbering::Channel), Log::default());
    assert!(!market.is_ahead(RIU3));
    changes(&mut market, &mut log, 50, &[level(0, entry::OFFER, 1, 80)]);
    restore(&mut market, &mut log, 52, &snapshot(0, 70));
    for sequence in [51, 52] {
        assert!(market.is_ahead(RIU3));
        let change = level(0, entry::OFFER, 1, 81);
        changes(&mut market, &mut log, sequence, &[change]);
    }
    assert!(!market.is_ahead(RIU3));
    assert!(
        market
            .book(RIU3)
            .unwrap()
            .depth(Side::Offer)
            .next()
            .is_none()
    );
}

#[test]
fn instruments_beyond_the_limit_are_counted() {
    let mut market = market(Numbering::Instrument);
    let beyond = Event {
        instrument: InstrumentId(10),
        ..level(1, entry::BID, 1, 70)
    };
    market.changes(0, 1, &[beyond], &mut |event| panic!("{event:?}"));
    assert_eq!(market.stats().refused, 1);
}
