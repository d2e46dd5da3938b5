//! Tests of what follows when an instrument has another name.

use super::super::Service;
use super::super::spec::Spec;
use super::super::tests::{
    EVERYTHING, clear, in_state, is_queued, join_served, level, log_on, order, picture, service,
    take,
};
use super::*;
use crate::market::ring::EventRing;
use fanfare_feed::recovery::State;
use fanfare_market::Action;
use fanfare_market::book::BookConfig;
use fanfare_market::event::entry;
use fanfare_market::instruments::{Definition, Instrument, Name};

/// Defines the instrument by this symbol, with the first of these events, and processes them.
/// Returns the bodies that they make.
fn define(
    ring: &mut EventRing,
    service: &mut Service,
    symbol: &[u8],
    events: &[Event],
) -> Vec<String> {
    ring.put_instrument(&Instrument {
        instrument: InstrumentId(0),
        definition: Definition {
            name: Name {
                symbol,
                ..Name::default()
            },
            ..Definition::default()
        },
        revision: 1,
        status: 0,
    });
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
    let picture = picture(&mut service);
    assert!(
        picture.starts_with("55=RIZ3|") && picture.contains("|271=5|"),
        "{picture}"
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
