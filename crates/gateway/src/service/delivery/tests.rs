//! Tests of what a session that is behind is sent, and in which order.

use super::super::Service;
use super::super::subscribe::tests::with_request;
use super::super::tests::{in_state, log_on, order, service, take};
use super::*;
use fanfare_feed::recovery::State;
use fanfare_market::book::BookConfig;
use fanfare_market::{Action, Event, InstrumentId, Kind};

/// Returns a trading status of the instrument.
fn status(id: u64) -> Event {
    Event {
        kind: Kind::Status,
        ..order(Action::New, id, 0, 0)
    }
}

/// Requests snapshots and updates. Returns the first part, as it is taken to be served.
fn request(service: &mut Service, session: u32) -> Late {
    let Service { events, core, .. } = service;
    let fields = "262=r|263=1|264=1|265=1|267=1|269=0|146=1|55=RIU3|";
    with_request(fields, |message| {
        core.market_data(session, message, events.directory())
    })
    .unwrap();
    let client = core.client_mut(session).unwrap();
    let part = client.behind.pop_front().unwrap();
    core.unqueue(session, part).unwrap()
}

/// Returns the texts of the next messages of a part, with `|` for SOH, and records them as sent.
fn next(service: &mut Service, late: Late) -> Vec<String> {
    let Service { events, core, .. } = service;
    let next = core.next_of_part(late, 0, events.directory());
    let Some(Next::Snapshot(before, snapshot)) = next else {
        panic!("no snapshot");
    };
    core.served(late);
    let ids = before.into_iter().chain([snapshot]);
    let bodies = ids.map(|id| core.bodies.get(id).unwrap());
    let texts = bodies.map(|(body, shared)| {
        let text = String::from_utf8_lossy(shared.fields()).replace('\x01', "|");
        assert_eq!(body.has_request(), !text.contains("|326="), "{text}");
        text
    });
    texts.collect()
}

#[test]
fn the_trading_status_comes_with_the_first_snapshot_unless_it_was_told_before() {
    for is_told in [false, true] {
        let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
        let mut begins = [status(2), in_state(State::Live)];
        take(&mut ring, &mut service, &mut begins);
        let session = log_on(&mut service);
        let late = request(&mut service, session);
        let client = service.core.client(session).unwrap();
        assert!(client.untold.is_empty(), "nothing precedes the snapshots");
        if is_told {
            let told = take(&mut ring, &mut service, &mut [status(17)]);
            assert_eq!(told, ["55=RIU3|326=17|"]);
        }
        let first = next(&mut service, late);
        let (snapshot, before) = first.split_last().unwrap();
        assert!(snapshot.starts_with("55=RIU3|"), "{snapshot}");
        let expected: &[&str] = if is_told { &[] } else { &["55=RIU3|326=2|"] };
        assert_eq!(before, expected);
        assert_eq!(next(&mut service, late).len(), 1, "it is told once");
    }
}

#[test]
fn what_is_still_to_be_told_ends_with_the_last_subscription() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let mut begins = [status(2), in_state(State::Live)];
    take(&mut ring, &mut service, &mut begins);
    let session = log_on(&mut service);
    request(&mut service, session);
    let other = log_on(&mut service);
    request(&mut service, other);
    let told = |service: &mut Service| {
        let Service { events, core, .. } = service;
        let of = InstrumentId(0);
        [Untold::State(of), Untold::Status(of)]
            .map(|untold| core.untold(session, untold, events.directory()).is_some())
    };
    assert_eq!(told(&mut service), [true; 2]);
    service.core.stop(session, 0);
    assert_eq!(told(&mut service), [false; 2]);
}

#[test]
fn a_subscription_that_ends_before_its_parts_are_removed_is_told_nothing() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    request(&mut service, session);
    assert!(service.core.has_link(session, InstrumentId(0)));
    service.core.share.ends = 0;
    service.core.end_slice();
    service.core.stop(session, 0);
    assert_eq!(service.core.classes.get(0).unwrap().links.len(), 1);
    assert!(!service.core.has_link(session, InstrumentId(0)));
}

#[test]
fn items_that_are_dropped_take_their_share_of_a_turn() {
    let (_ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    let Service { events, core, .. } = &mut service;
    let client = core.client_mut(session).unwrap();
    client
        .untold
        .extend((0..10).map(|number| Untold::State(InstrumentId(number))));
    for (looks, left, rest) in [(4, 6, 0), (100, 0, 94)] {
        let mut share = Share {
            looks,
            ..Share::WHOLE
        };
        let next = core.next_untold(session, events.directory(), &mut share);
        assert_eq!(next, None);
        assert_eq!(core.client(session).unwrap().untold.len(), left);
        assert_eq!(share.looks, rest);
        assert_eq!(core.has_untold(session), left > 0);
    }
}

#[test]
fn a_list_waits_behind_its_message_for_the_snapshots_of_its_session() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let late = request(&mut service, session);
    for (has_listed, is_behind, waits) in [
        (false, false, false),
        (true, false, false),
        (false, true, false),
        (true, true, true),
    ] {
        let client = service.core.client_mut(session).unwrap();
        client.has_listed = has_listed;
        client.behind.clear();
        client.behind.extend(is_behind.then_some(late.part));
        assert_eq!(service.core.list_waits(session), waits);
    }
}
