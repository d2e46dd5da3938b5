//! Tests of snapshots in place of changes, and of what follows when an instrument has another name.

use super::super::Service;
use super::super::bodies::Bodies;
use super::super::class::Part;
use super::super::spec::Spec;
use super::super::tests::{
    EVERYTHING, VERSION, clear, in_state, is_queued, join_served, level, log_on, order, service,
    snapshot, take, trade,
};
use super::*;
use crate::market::ring::EventRing;
use crate::test_log::known;
use fanfare_feed::recovery::{Lack, State};
use fanfare_market::Action;
use fanfare_market::book::BookConfig;
use fanfare_market::event::entry;
use fanfare_market::instruments::{Definition, Name};

/// Defines the instrument by this symbol, with the first of these events, and processes them.
/// Returns the bodies that they make.
fn define(
    ring: &mut EventRing,
    service: &mut Service,
    symbol: &[u8],
    events: &[Event],
) -> Vec<String> {
    ring.put_instrument(&known(0, Definition::named(Name::of_symbol(symbol))));
    let defined = Event {
        kind: Kind::Definition,
        flags: Flags::LAST,
        ..clear()
    };
    take(ring, service, &mut [&[defined][..], events].concat())
}

/// Returns the service with a live book, a session with a subscription that has it, and the ring.
fn served(book: BookConfig, first: Event, spec: Spec) -> (EventRing, Service) {
    let (mut ring, mut service) = service(book);
    let session = log_on(&mut service);
    let begins = [clear(), first, in_state(State::Live)];
    define(&mut ring, &mut service, b"RIU3", &begins);
    join_served(&mut service, session, spec);
    (ring, service)
}

#[test]
fn a_renamed_instrument_goes_on_with_a_snapshot_by_its_new_name() {
    let book = BookConfig::by_price(8).unwrap();
    let (mut ring, mut service) = served(book, level(3), EVERYTHING);
    let again = define(&mut ring, &mut service, b"RIU3", &[level(4)]).concat();
    assert!(again.contains("|55=RIU3|"), "{again}");
    assert!(!is_queued(&service), "it has the same name");
    let renamed = define(&mut ring, &mut service, b"RIZ3", &[level(5)]);
    assert_eq!(renamed, [""; 0], "its readers have no book of this name");
    assert!(is_queued(&service));
    let snapshot = snapshot(&mut service);
    assert!(
        snapshot.starts_with("55=RIZ3|") && snapshot.contains("|271=5|"),
        "{snapshot}"
    );
}

#[test]
fn the_first_definition_behind_a_subscription_brings_no_second_snapshot() {
    let book = BookConfig::by_price(8).unwrap();
    let (mut ring, mut service) = service(book);
    let session = log_on(&mut service);
    let mut begins = [clear(), level(3), in_state(State::Live)];
    take(&mut ring, &mut service, &mut begins);
    join_served(&mut service, session, EVERYTHING);
    let changed = define(&mut ring, &mut service, b"RIU3", &[level(4)]).concat();
    assert!(changed.contains("|55=RIU3|"), "{changed}");
    assert!(!is_queued(&service), "it has the same name");
}

/// Snapshots in place of changes.
const SNAPSHOTS: Spec = Spec {
    snapshots: true,
    ..EVERYTHING
};

/// Returns a trade within a message, whose size is its number.
fn trade_of(action: Action, id: u64) -> Event {
    Event {
        action,
        id,
        size: 10 + id.cast_signed(),
        ..trade()
    }
}

/// Returns the sizes of the trades of a body.
fn trades_in(text: &str) -> Vec<i64> {
    let entries = text.split("|269=").skip(1);
    let trades = entries.filter(|entry| entry.starts_with("2|"));
    let size = |entry: &str| {
        let (_, rest) = entry.split_once("|271=")?;
        rest.split('|').next()?.parse().ok()
    };
    trades.map(|entry| size(entry).unwrap()).collect()
}

/// Returns the body of this turn, with `|` for SOH.
fn body_of(core: &Core, id: BodyId) -> String {
    let (_, body) = core.bodies.get(id).unwrap();
    String::from_utf8_lossy(body.fields()).replace('\x01', "|")
}

#[test]
fn an_update_that_is_a_snapshot_has_each_of_its_trades() {
    let book = BookConfig::by_price(8).unwrap();
    for interval in [0, 1_000] {
        let spec = Spec {
            interval,
            ..SNAPSHOTS
        };
        let (mut ring, mut service) = served(book, level(3), spec);
        let mut sent = |events: &mut [Event]| {
            let sent = take(&mut ring, &mut service, events);
            let Service { events, core, .. } = &mut service;
            if interval != 0 {
                assert_eq!(sent, [""; 0]);
                core.now = core.classes.next_due().unwrap();
                core.flush_due(events.directory());
            }
            assert!(core.bodies.get(1).is_none(), "one W, and no X");
            let text = body_of(core, 0);
            assert!(text.starts_with("55=RIU3|"), "{text}");
            let last = core.snapshot(0, VERSION, events.directory()).unwrap();
            (trades_in(&text), trades_in(&body_of(core, last)))
        };
        let changed = Event {
            size: 99,
            ..trade_of(Action::Change, 3)
        };
        let mut events = [
            trade_of(Action::New, 1),
            trade_of(Action::New, 2),
            trade_of(Action::New, 3),
            trade_of(Action::Delete, 2),
            changed,
            level(4),
        ];
        // The snapshot of one who joins has the last one alone.
        assert_eq!(sent(&mut events), (vec![11, 99], vec![99]));
        assert_eq!(sent(&mut [level(5)]), (vec![99], vec![99]));
        let mut cancelled = [trade_of(Action::Delete, 3), level(6)];
        assert_eq!(sent(&mut cancelled), (vec![], vec![]));
    }
}

/// Returns the service with a session whose updates are snapshots, the ring, and its part.
fn joined() -> (EventRing, Service, u32, Part) {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let mut begins = [clear(), level(3), in_state(State::Live)];
    take(&mut ring, &mut service, &mut begins);
    let subscription = join_served(&mut service, session, SNAPSHOTS);
    let part = Part {
        subscription,
        entry: 0,
    };
    (ring, service, session, part)
}

#[test]
fn the_snapshot_of_a_client_that_was_behind_has_the_trades_since_then() {
    let (mut ring, mut service, session, part) = joined();
    service.core.classes.get_mut(0).unwrap().links[0].is_behind = true;
    for id in [1_u64, 2, 3] {
        let mut update = [trade_of(Action::New, id), level(id.cast_signed())];
        assert_eq!(take(&mut ring, &mut service, &mut update), [""; 0]);
    }
    let mut cancelled = [trade_of(Action::Delete, 2), level(9)];
    take(&mut ring, &mut service, &mut cancelled);
    let Service { events, core, .. } = &mut service;
    let directory = events.directory();
    let body = core.snapshot_of_held(session, part, 0, directory).unwrap();
    assert_eq!(trades_in(&body_of(core, body)), [11, 13]);
    let held = core.held(session, part, InstrumentId(0), 0, directory);
    assert!(held.is_none(), "no X has them");
    let others = core.snapshot(0, VERSION, directory).unwrap();
    assert_eq!(trades_in(&body_of(core, others)), [13]);
}

#[test]
fn the_snapshot_behind_a_skipped_one_has_its_trades() {
    let (mut ring, mut service, session, part) = joined();
    let mut update = [trade_of(Action::New, 1), trade_of(Action::New, 2), level(4)];
    assert_eq!(take(&mut ring, &mut service, &mut update).len(), 1);
    let Service { events, core, .. } = &mut service;
    core.skip(Place { class: 0, link: 0 }, 0);
    let body = core.snapshot_of_held(session, part, 0, events.directory());
    assert_eq!(trades_in(&body_of(core, body.unwrap())), [11, 12]);
}

#[test]
fn the_trades_of_an_update_that_is_skipped_precede_those_kept_in_the_same_turn() {
    let (mut ring, mut service, session, part) = joined();
    let last = Event {
        flags: Flags::LAST,
        ..trade_of(Action::New, 2)
    };
    let mut turn = [
        trade_of(Action::New, 1),
        level(4),
        in_state(State::Recovering(Lack::Snapshot)),
        last,
        clear(),
        level(5),
        in_state(State::Live),
    ];
    let sent = take(&mut ring, &mut service, &mut turn);
    assert_eq!(sent.first().map(|text| trades_in(text)), Some(vec![11]));
    let Service { events, core, .. } = &mut service;
    core.skip(Place { class: 0, link: 0 }, 0);
    let body = core.snapshot_of_held(session, part, 0, events.directory());
    assert_eq!(trades_in(&body_of(core, body.unwrap())), [11, 12]);
}

#[test]
fn the_newest_trades_beyond_the_capacity_are_in_the_snapshot() {
    let (mut ring, mut service, session, part) = joined();
    let other = Event {
        instrument: InstrumentId(1),
        ..trade_of(Action::New, 9)
    };
    let client = service.core.client_mut(session).unwrap();
    let own = client.get_mut(part.subscription).unwrap();
    own.hold_trades(&[other; 1_023]);
    service.core.classes.get_mut(0).unwrap().links[0].is_behind = true;
    for id in [1_u64, 2] {
        let mut update = [trade_of(Action::New, id), level(id.cast_signed())];
        take(&mut ring, &mut service, &mut update);
    }
    let Service { events, core, .. } = &mut service;
    let directory = events.directory();
    let body = core.snapshot_of_held(session, part, 0, directory).unwrap();
    assert_eq!(trades_in(&body_of(core, body)), [11, 12]);
    let held = core.held(session, part, InstrumentId(0), 0, directory);
    let text = body_of(core, held.unwrap().body);
    assert!(text.contains(" count=512"), "{text}");
}

#[test]
fn trades_that_do_not_fit_into_a_snapshot_are_announced() {
    let (mut ring, mut service, session, part) = joined();
    service.core.bodies = Bodies::new(4_096);
    let trades = (1..=200).map(|id| trade_of(Action::New, id));
    let mut update: Vec<_> = trades.chain([level(4)]).collect();
    assert_eq!(take(&mut ring, &mut service, &mut update), [""; 0]);
    assert!(is_queued(&service));
    let Service { events, core, .. } = &mut service;
    let directory = events.directory();
    let body = core.snapshot_of_held(session, part, 0, directory).unwrap();
    let sent = trades_in(&body_of(core, body));
    assert!(!sent.is_empty() && sent.len() < 200, "{sent:?}");
    assert_eq!(sent.last(), Some(&210), "the newest ones");
    let held = core.held(session, part, InstrumentId(0), 0, directory);
    let text = body_of(core, held.unwrap().body);
    let count = 200 - sent.len();
    assert!(
        text.contains("|58=missing=trades ") && text.contains(&format!(" count={count}")),
        "{text}"
    );
}

#[test]
fn orders_that_wait_when_an_instrument_is_renamed_are_in_the_snapshot_alone() {
    let book = BookConfig::by_order(8, 8).unwrap();
    let added = |id| order(Action::New, id, entry::BID, 3);
    let spec = Spec {
        by_order: true,
        interval: 1_000,
        ..EVERYTHING
    };
    for (symbol, is_renamed) in [(b"RIU3", false), (b"RIZ3", true)] {
        let (mut ring, mut service) = served(book, added(1), spec);
        take(&mut ring, &mut service, &mut [added(2)]);
        define(&mut ring, &mut service, symbol, &[added(3)]);
        let Service { events, core, .. } = &mut service;
        core.bodies.clear();
        core.now = core.classes.next_due().unwrap();
        core.flush_due(events.directory());
        assert_eq!(core.bodies.get(0).is_none(), is_renamed);
        assert_eq!(is_queued(&service), is_renamed);
    }
}

#[test]
fn a_snapshot_in_place_of_changes_has_the_numbers_of_all_of_them() {
    let book = BookConfig::by_price(8).unwrap();
    let (mut ring, mut service) = served(book, level(3), SNAPSHOTS);
    let rpt_seq = |service: &Service| service.core.classes.get(0).unwrap().rpt_seq;
    let before = rpt_seq(&service);
    take(&mut ring, &mut service, &mut [trade(), level(4)]);
    let last = rpt_seq(&service);
    assert!(last > before + 1, "it has a trade and a level");
    let (body, _) = service.core.bodies.get(0).unwrap();
    // Where it is skipped, the announcement begins with the first.
    assert_eq!(body.numbers, (before + 1, last));
}
