//! Tests that need no connection.

mod recovery;

use super::class::{Link, Part};
use super::client::{Of, Out, Subscription, Untold, lead};
use super::spec::Spec;
use super::*;
use crate::market::ring::EventRing;
use crate::test_log::{known, named};
use crate::users::{Names, UserSet};
use fanfare_engine::host::{Handler, Host, Initiator};
use fanfare_engine::poll::Waker;
use fanfare_feed::recovery::{Lack, State};
use fanfare_fix::session::{self, SessionId, Version};
use fanfare_market::event::entry;
use fanfare_market::{Action, Flags, Kind, Price, state};

pub(super) const VERSION: usize = crate::fanout::versions::COUNT - 1;

/// Each change of everything.
pub(super) const EVERYTHING: Spec = Spec {
    depth: 0,
    entries: EntryTypes::ALL,
    by_order: false,
    snapshots: false,
    interval: 0,
    checksum_every: 0,
};

/// The service, and a ring from which it reads.
pub(super) fn service(book: BookConfig) -> (EventRing, Service) {
    service_with(book, 1 << 20)
}

/// The service whose sessions have queues of this many bytes, and a ring from which it reads.
fn service_with(book: BookConfig, queue_bytes: usize) -> (EventRing, Service) {
    let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
    let config = ServiceConfig {
        books: vec![book],
        feeds: Vec::new(),
        users: UserBook::new(UserSet::default()),
        audit: Audit::default(),
        queue_bytes,
    };
    let reader = ring.reader(Waker::detached().unwrap()).unwrap();
    let mut service = Service::new(config, reader);
    service.core.writers.open(VERSION);
    ring.put_instrument(&known(0, named("RIU3")));
    (ring, service)
}

/// Adds a subscription of a session that is not behind.
fn subscribe(service: &mut Service, spec: Spec) {
    let link = Link {
        session: 0,
        subscription: 0,
        entry: 0,
        version: VERSION as u8,
        is_behind: false,
        is_queued: false,
        is_served: true,
        owes_status: false,
        missed: 0,
    };
    let core = &mut service.core;
    core.classes
        .join(&mut core.view, InstrumentId(0), spec, link);
}

/// A handler of nothing, whose host has the key of a session.
struct Nobody;

impl Handler for Nobody {
    fn on_message(&mut self, _: &mut Peer<'_>, _: &AppMessage<'_>) {}
}

/// Adds a session that may see everything. Returns its index.
pub(super) fn log_on(service: &mut Service) -> u32 {
    let config = session::Config::new(SessionId::new(Version::Fix44, "C", "PLANT"));
    let mut host = Host::new(Nobody).unwrap();
    let key = host.initiate(Initiator::new(config, Vec::new())).unwrap();
    let client = Client::new(key, VERSION, Arc::new(Grant::everything()));
    let clients = &mut service.core.clients;
    clients.push(Some(Box::new(client)));
    clients.len() as u32 - 1
}

/// Subscribes a session to the instrument. Returns the subscription.
fn join(service: &mut Service, session: u32, spec: Spec) -> u32 {
    let named = [InstrumentId(0)];
    let own = Subscription::new(lead(262, b"r"), spec, Contract::Cut, true, &named);
    let Service { events, core, .. } = service;
    let number = core.client_mut(session).unwrap().add(own);
    core.join(session, number, InstrumentId(0), events.directory());
    number
}

/// Subscribes a session to the instrument, as one that has its first snapshot and has nothing to
/// catch up with. Returns the subscription.
pub(super) fn join_served(service: &mut Service, session: u32, spec: Spec) -> u32 {
    let number = join(service, session, spec);
    let core = &mut service.core;
    let link = &mut core.classes.get_mut(0).unwrap().links[0];
    (link.is_behind, link.is_queued, link.is_served) = (false, false, true);
    link.owes_status = false;
    core.waiting.clear();
    let client = core.client_mut(session).unwrap();
    client.is_waiting = false;
    client.behind.clear();
    client.untold.clear();
    number
}

/// Returns the number of trades that a subscription holds, and of those that it does not.
fn held(service: &mut Service, session: u32, number: u32) -> (usize, u64) {
    let client = service.core.client_mut(session).unwrap();
    let own = client.get(number).unwrap();
    (own.trades.len(), own.trades_left_out)
}

/// Returns whether the first subscription is queued for a snapshot.
pub(super) fn is_queued(service: &Service) -> bool {
    service.core.classes.get(0).unwrap().links[0].is_queued
}

/// Returns the snapshot of the first class, with `|` for SOH.
pub(super) fn snapshot(service: &mut Service) -> String {
    let Service { events, core, .. } = service;
    let body = core.snapshot(0, VERSION, events.directory()).unwrap();
    let (_, body) = core.bodies.get(body).unwrap();
    String::from_utf8_lossy(body.fields()).replace('\x01', "|")
}

/// Processes events, and returns the bodies that they make, with `|` for SOH.
pub(super) fn take(
    ring: &mut EventRing,
    service: &mut Service,
    events: &mut [Event],
) -> Vec<String> {
    ring.put(events);
    let Service { events, core, .. } = service;
    core.bodies.clear();
    while events.read(64, |delivery| match delivery {
        Delivery::Event(event, directory) => core.event(event, directory),
        Delivery::End(directory) => core.end_of_message(directory),
        other => panic!("{other:?}"),
    }) > 0
    {}
    let bodies = (0..).map_while(|id| core.bodies.get(id));
    let text = bodies.map(|(_, body)| String::from_utf8_lossy(body.fields()).replace('\x01', "|"));
    text.collect()
}

fn live() -> Event {
    Event {
        source: 1,
        ..state::to_event(State::Live)
    }
}

pub(super) fn in_state(state: State) -> Event {
    Event {
        flags: Flags::LAST,
        source: 1,
        ..state::to_event(state)
    }
}

pub(super) fn level(size: i64) -> Event {
    Event {
        kind: Kind::Level,
        ..order(Action::New, 0, entry::BID, size)
    }
}

pub(super) fn clear() -> Event {
    Event {
        source: 1,
        ..Event::EMPTY
    }
}

/// A trade within a message.
pub(super) fn trade() -> Event {
    Event {
        kind: Kind::Trade,
        flags: Flags::NONE,
        ..order(Action::New, 0, entry::TRADE, 1)
    }
}

pub(super) fn order(action: Action, id: u64, entry: u8, size: i64) -> Event {
    Event {
        kind: Kind::Order,
        instrument: InstrumentId(0),
        source: 1,
        action,
        id,
        entry,
        price: Price::from_units(7),
        size,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

#[test]
fn a_change_of_an_order_without_a_side_has_the_side_of_the_order() {
    let (mut ring, mut service) = service(BookConfig::by_order(8, 8).unwrap());
    let spec = Spec {
        entries: [entry::BID, entry::OFFER].into_iter().collect(),
        by_order: true,
        ..EVERYTHING
    };
    take(&mut ring, &mut service, &mut [clear(), live()]);
    subscribe(&mut service, spec);
    let mut text = |event| take(&mut ring, &mut service, &mut [event]).concat();
    let added = text(order(Action::New, 5, entry::OFFER, 3));
    assert!(added.contains("279=0|269=1|278=5|"), "{added}");
    let changed = text(order(Action::Change, 5, 0, 2));
    assert!(changed.contains("279=1|269=1|278=5|"), "{changed}");
    assert!(changed.contains("|271=2|"), "{changed}");
    let deleted = text(order(Action::Delete, 5, 0, 0));
    assert!(deleted.contains("279=2|269=1|278=5|"), "{deleted}");
    assert_eq!(
        text(order(Action::Delete, 5, 0, 0)),
        "",
        "it is not in the book"
    );
}

/// Returns a book of this many orders, as it is shown to readers that lost it.
fn shown(orders: u64) -> Vec<Event> {
    let clear = Event {
        flags: Flags::SNAPSHOT,
        ..clear()
    };
    let orders = (1..=orders).map(|id| Event {
        price: Price::from_units(id.cast_signed()),
        flags: Flags::SNAPSHOT,
        ..order(Action::New, id, entry::BID, 3)
    });
    let mut all: Vec<_> = std::iter::once(clear).chain(orders).collect();
    if let Some(last) = all.last_mut() {
        last.flags = Flags::SNAPSHOT.with(Flags::LAST);
    }
    all.push(Event {
        flags: Flags::LAST,
        ..live()
    });
    all
}

#[test]
fn a_long_book_of_orders_that_is_shown_again_changes_no_level() {
    let (mut ring, mut service) = service(BookConfig::by_order(512, 512).unwrap());
    take(&mut ring, &mut service, &mut shown(300));
    subscribe(&mut service, EVERYTHING);
    let mut again = |orders| take(&mut ring, &mut service, &mut shown(orders));
    assert_eq!(again(300), [""; 0]);
    let changed = again(299).concat();
    assert!(
        changed.contains("268=1|") && changed.contains("279=2|269=0|"),
        "{changed}"
    );
}

#[test]
fn values_that_are_shown_again_are_known_unless_they_are_news() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let status = |id| Event {
        kind: Kind::Status,
        ..order(Action::New, id, 0, 0)
    };
    let value = |size| Event {
        kind: Kind::Statistic,
        ..order(Action::New, 0, b'4', size)
    };
    take(&mut ring, &mut service, &mut [status(17), value(3)]);
    let core = &mut service.core;
    let again = |event| Event {
        flags: Flags::SNAPSHOT,
        number: 9,
        ..event
    };
    assert!(core.has_value(&again(status(17))) && core.has_value(&again(value(3))));
    assert!(!core.has_value(&again(status(2))) && !core.has_value(&again(value(4))));
    subscribe(&mut service, EVERYTHING);
    service.core.view.apply(&live());
    let last = |event| Event {
        flags: Flags::SNAPSHOT.with(Flags::LAST),
        ..event
    };
    let mut sent = |event| take(&mut ring, &mut service, &mut [last(event)]).len();
    assert_eq!(sent(value(3)), 0);
    assert_eq!(sent(value(4)), 1);
    let core = &mut service.core;
    core.view.lose_all();
    assert!(core.has_value(&again(status(17))), "subscribers have it");
    assert!(!core.has_value(&again(value(3))), "the snapshot needs it");
}

#[test]
fn a_state_is_told_to_those_that_know_another_one() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let text = |state| format!("|58=state={state}|");
    let mut tell = |service: &mut Service, state| {
        take(&mut ring, service, &mut [clear(), in_state(state)]).concat()
    };
    tell(&mut service, State::Live);
    let first = join(&mut service, session, EVERYTHING);
    assert!(tell(&mut service, State::Stale).contains(&text("stale")));
    service.core.stop(session, first);
    assert_eq!(tell(&mut service, State::Live), "");
    let second = join(&mut service, session, EVERYTHING);
    assert!(tell(&mut service, State::Stale).contains(&text("stale")));
    assert!(tell(&mut service, State::Live).contains(&text("live")));
    service.core.stop(session, second);
    // Another one joins after a loss, and is told that the book is recovering.
    service.core.lose_all();
    service.core.client_mut(session).unwrap().untold.clear();
    join(&mut service, session, EVERYTHING);
    let untold = &mut service.core.client_mut(session).unwrap().untold;
    assert_eq!(untold.pop_first(), Some(Untold::State(InstrumentId(0))));
    assert!(tell(&mut service, State::Live).contains(&text("live")));
}

#[test]
fn the_state_of_a_book_that_is_not_live_is_told_first() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let lacks = State::Recovering(Lack::Snapshot);
    for state in [State::Live, State::Stale, State::Closed, lacks] {
        take(&mut ring, &mut service, &mut [in_state(state)]);
        let number = join(&mut service, session, EVERYTHING);
        let untold = &mut service.core.client_mut(session).unwrap().untold;
        let told = std::mem::take(untold).pop_first();
        let expected = (state != State::Live).then_some(Untold::State(InstrumentId(0)));
        assert_eq!(told, expected, "{state:?}");
        service.core.stop(session, number);
    }
}

#[test]
fn what_was_to_be_told_when_events_were_lost_is_told() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let status = Event {
        kind: Kind::Status,
        ..order(Action::New, 17, 0, 0)
    };
    let mut begins = [status, in_state(State::Live)];
    take(&mut ring, &mut service, &mut begins);
    join_served(&mut service, session, EVERYTHING);
    let Service { events, core, .. } = &mut service;
    core.lose_all();
    let mut news = |what| core.news(what, VERSION, events.directory());
    assert!(news(Untold::Status(InstrumentId(0))).is_some());
    assert!(news(Untold::State(InstrumentId(0))).is_some());
    // It was told that the book is recovering.
    let mut shown = [clear(), in_state(State::Live)];
    let told = take(&mut ring, &mut service, &mut shown).concat();
    assert!(told.contains("|58=state=live|"), "{told}");
}

#[test]
fn a_snapshot_that_waits_for_an_update_without_entries_is_queued() {
    let (mut ring, mut service) = service(BookConfig::by_order(8, 8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let spec = Spec {
        by_order: true,
        interval: 1_000,
        ..EVERYTHING
    };
    subscribe(&mut service, spec);
    service.core.classes.get_mut(0).unwrap().links[0].is_behind = true;
    let status = Event {
        kind: Kind::Status,
        ..order(Action::New, 17, 0, 0)
    };
    take(&mut ring, &mut service, &mut [status]);
    let Service { events, core, .. } = &mut service;
    core.now = core.classes.next_due().unwrap();
    core.flush_due(events.directory());
    assert!(core.classes.get_mut(0).unwrap().links[0].is_queued);
}

#[test]
fn no_update_of_a_class_that_has_ended_is_scheduled() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let spec = Spec {
        interval: 3_600_000,
        ..EVERYTHING
    };
    for size in 1..=1_000 {
        let number = join(&mut service, session, spec);
        assert_eq!(service.core.classes.next_due(), None);
        take(&mut ring, &mut service, &mut [level(size)]);
        assert!(service.core.classes.next_due().is_some());
        service.core.stop(session, number);
    }
    assert_eq!(service.core.classes.next_due(), None);
}

#[test]
fn events_lost_in_several_places_of_a_turn_are_one_range_with_their_count() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    for number in [3, 7] {
        ring.put_numbered(&[Event { number, ..level(1) }], false);
    }
    let Service { events, core, .. } = &mut service;
    let mut lost = None;
    core.read(events, 0, &mut lost);
    let hole = lost.unwrap();
    assert_eq!((hole.count, hole.first, hole.last), (5, 1, 6));
}

#[test]
fn pending_items_end_with_the_right_to_them_and_with_their_subscription() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let number = join(&mut service, session, EVERYTHING);
    let Service { events, core, .. } = &mut service;
    let client = core.client_mut(session).unwrap();
    let of = InstrumentId(0);
    let ends = [Untold::TooMany(number), Untold::NoneFound(number)];
    client.untold = [Untold::State(of), Untold::Status(of)].into();
    client.untold.extend(ends);
    let part = Part {
        subscription: number,
        entry: 0,
    };
    client.outbox = [Of::Told(Untold::State(of)), Of::Part(part)]
        .map(|of| Out { body: 0, of })
        .into();
    client.set_grant(&Arc::new(Grant::everything()), events.directory());
    assert_eq!((client.untold.len(), client.outbox.len()), (4, 2));
    client.set_grant(&Arc::new(Grant::nothing()), events.directory());
    assert!(client.untold.iter().eq(&ends), "{:?}", client.untold);
    assert!(client.outbox.iter().map(|out| out.of).eq([Of::Part(part)]));
    core.stop(session, number);
    assert!(core.client_mut(session).unwrap().untold.is_empty());
}

#[test]
fn an_instrument_of_a_list_joins_when_it_is_defined() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let core = &mut service.core;
    for (id, symbol) in [(b"a", "RIU3"), (b"b", "SIU3")] {
        let names: Names = [Pattern::parse(symbol.as_bytes())].into_iter().collect();
        let mut own = Subscription::new(lead(262, id), EVERYTHING, Contract::Cut, true, &[]);
        own.lists = vec![Arc::new(names)];
        let number = core.client_mut(session).unwrap().add(own);
        core.with_patterns.insert((session, number));
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let Service { events, core, .. } = &mut service;
    let added = events.take_added();
    core.grow(&added, events.directory());
    let client = core.client_mut(session).unwrap();
    let parts = [0, 1].map(|number| client.get(number).unwrap().places.len());
    assert_eq!(parts, [1, 0]);
    assert_eq!(client.parts, 2, "one without instruments counts as one");
}

#[test]
fn a_request_for_the_status_of_the_session_is_sent_each_change() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let status = |id| Event {
        kind: Kind::Status,
        instrument: InstrumentId::ALL,
        ..order(Action::New, id, 0, 0)
    };
    take(&mut ring, &mut service, &mut [status(2)]);
    let client = service.core.client_mut(session).unwrap();
    assert!(client.untold.is_empty());
    let of = feeds::OfFeed::default();
    client.session_requests.push(((*b"t").into(), of));
    take(&mut ring, &mut service, &mut [status(3)]);
    let client = service.core.client_mut(session).unwrap();
    assert_eq!(client.untold.pop_first(), Some(Untold::Session(1)));
    let again = Event {
        ts_event: 9,
        ..status(3)
    };
    take(&mut ring, &mut service, &mut [again]);
    let client = service.core.client_mut(session).unwrap();
    assert!(client.untold.is_empty(), "the feed repeats it");
}

#[test]
fn a_status_that_the_feed_repeats_is_no_news() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    join_served(&mut service, session, EVERYTHING);
    let mut sent = |id, ts_event| {
        let status = Event {
            kind: Kind::Status,
            ts_event,
            ..order(Action::New, id, 0, 0)
        };
        take(&mut ring, &mut service, &mut [status]).len()
    };
    assert_eq!([sent(17, 1), sent(17, 2), sent(2, 3)], [1, 0, 1]);
}

#[test]
fn a_session_has_a_limited_number_of_requests_at_a_time() {
    let (_, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let client = service.core.client_mut(session).unwrap();
    let mut count = 0;
    while client.check_one_more(0).is_ok() {
        let id = lead(262, format!("{count}").as_bytes());
        let own = Subscription::new(id, EVERYTHING, Contract::Cut, true, &[]);
        client.add(own);
        count += 1;
    }
    assert!((1_000..100_000).contains(&count), "{count}");
    client.remove(0);
    assert_eq!(client.check_one_more(1), Ok(()));
}
