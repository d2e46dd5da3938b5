//! Tests of messages that need no session.

use super::class::{Link, Spec};
use super::*;
use crate::market::ring::EventRing;
use fanfare_engine::poll::Waker;
use fanfare_market::event::entry;
use fanfare_market::instruments::{Definition, Instrument, Name};
use fanfare_market::{Action, Flags, Kind, Price, state};

const VERSION: usize = crate::versions::COUNT - 1;

/// The service, and a ring from which it reads.
fn service(book: BookConfig) -> (EventRing, Service) {
    let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
    let config = ServiceConfig {
        books: vec![book],
        users: UserBook::new(UserSet::default()),
        audit: Audit::default(),
        queue_bytes: 1 << 20,
    };
    let reader = ring.reader(Waker::detached().unwrap()).unwrap();
    let mut service = Service::new(config, reader);
    service.core.writers.open(VERSION);
    ring.put_instrument(&Instrument {
        instrument: InstrumentId(0),
        definition: Definition {
            name: Name {
                symbol: b"RIU3",
                ..Name::default()
            },
            ..Definition::default()
        },
        revision: 1,
        status: 0,
    });
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
        missed: 0,
    };
    let core = &mut service.core;
    core.classes
        .join(&mut core.view, InstrumentId(0), spec, link);
}

/// Processes events, and returns the bodies that they make, with `|` for SOH.
fn take(ring: &mut EventRing, service: &mut Service, events: &mut [Event]) -> Vec<String> {
    ring.put(events);
    let Service { events, core, .. } = service;
    core.bodies.clear();
    while events.read(64, |delivery| {
        if let Delivery::Event(event, directory) = delivery {
            core.event(event, directory);
        }
    }) > 0
    {}
    let bodies = (0..).map_while(|id| core.bodies.get(id));
    let text = bodies.map(|(_, body)| String::from_utf8_lossy(body.fields()).replace('\x01', "|"));
    text.collect()
}

fn live() -> Event {
    Event {
        source: 1,
        ..state::to_event(fanfare_feed::recovery::State::Live)
    }
}

fn order(action: Action, id: u64, entry: u8, size: i64) -> Event {
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
        depth: 0,
        entries: [entry::BID, entry::OFFER].into_iter().collect(),
        by_order: true,
        pictures: false,
        interval: 0,
        checksum_every: 0,
    };
    let clear = Event {
        source: 1,
        ..Event::EMPTY
    };
    take(&mut ring, &mut service, &mut [clear, live()]);
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
    let spec = Spec {
        depth: 0,
        entries: EntryTypes::ALL,
        by_order: false,
        pictures: false,
        interval: 0,
        checksum_every: 0,
    };
    subscribe(&mut service, spec);
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
