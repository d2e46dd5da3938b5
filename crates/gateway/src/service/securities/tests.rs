//! Tests of requests for instruments, and for the status of the trading session.

use super::super::Service;
use super::super::feeds::Feeds;
use super::super::subscribe::tests::with_request;
use super::super::tests::{VERSION, in_state, log_on, service, take};
use super::*;
use crate::test_log;
use fanfare_feed::recovery::State;
use fanfare_history::FeedInfo;
use fanfare_market::book::BookConfig;

/// Returns the status of the session of a feed.
fn status(source: u16, id: u64) -> Event {
    Event {
        instrument: InstrumentId::ALL,
        kind: Kind::Status,
        id,
        source,
        ..Event::EMPTY
    }
}

/// Returns feeds of these names.
fn feeds(names: &[&str]) -> Feeds {
    let all = (0..).zip(names).map(|(at, name)| FeedInfo {
        name: (*name).to_owned(),
        base: at * 10,
        book: BookConfig::by_price(8).unwrap(),
    });
    Feeds::new(&all.collect::<Vec<_>>())
}

#[test]
fn each_feed_has_a_status_of_its_session_before_it_brings_one() {
    let (_, mut service) = service(BookConfig::by_price(8).unwrap());
    let core = &mut service.core;
    let statuses = |core: &Core, name: Option<&[u8]>| {
        let named = core.feeds.of_name(name).unwrap();
        let all = core.session_statuses(named).into_iter();
        all.map(|event| (event.source, event.id))
            .collect::<Vec<_>>()
    };
    core.feeds = feeds(&["one"]);
    assert_eq!(statuses(core, None), [(1, 0)]);
    core.feeds = feeds(&["one", "two", "three"]);
    assert_eq!(statuses(core, None), [(1, 0), (2, 0), (3, 0)]);
    core.session_status(&status(2, 3));
    assert_eq!(statuses(core, None), [(1, 0), (2, 3), (3, 0)]);
    assert_eq!(statuses(core, Some(b"two")), [(2, 3)]);
    assert_eq!(statuses(core, Some(b"three")), [(3, 0)]);
}

#[test]
fn a_request_for_the_session_of_a_feed_is_sent_the_changes_of_this_one() {
    let (_, mut service) = service(BookConfig::by_price(8).unwrap());
    let sessions = [log_on(&mut service), log_on(&mut service)];
    let core = &mut service.core;
    core.feeds = feeds(&["one", "two"]);
    for (session, name) in sessions.into_iter().zip([None, Some(&b"two"[..])]) {
        let named = core.feeds.of_name(name).unwrap();
        let client = core.client_mut(session).unwrap();
        client.session_requests.push(((*b"t").into(), named));
    }
    for source in [1, 2] {
        core.session_status(&status(source, 2));
    }
    let told = |core: &Core, session| -> Vec<_> {
        let client = core.client(session).unwrap();
        client.untold.iter().copied().collect()
    };
    let all = [Untold::Session(1), Untold::Session(2)];
    assert_eq!(told(core, sessions[0]), all);
    assert_eq!(told(core, sessions[1]), all[1..]);
}

#[test]
fn a_status_that_the_version_does_not_have_is_unknown() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let fix42 = 2;
    service.core.writers.open(fix42);
    let mut told = |version, what, id| {
        let Service { events, core, .. } = &mut service;
        let of_instrument = Event {
            instrument: InstrumentId(0),
            ..status(1, id)
        };
        core.view.open(InstrumentId(0)).own.status = Some(of_instrument);
        core.sessions = vec![status(1, id)];
        let body = core.news(what, version, events.directory())?;
        let (_, body) = core.bodies.get(body).unwrap();
        let text = String::from_utf8_lossy(body.fields()).replace('\x01', "|");
        Some(text)
    };
    let of = Untold::Status(InstrumentId(0));
    for (version, id, expected) in [
        (VERSION, 17, "17"),
        (VERSION, 103, "20"),
        (VERSION, 0, "20"),
        (fix42, 17, "17"),
        (fix42, 26, "20"),
    ] {
        let expected = format!("55=RIU3|326={expected}|");
        assert_eq!(told(version, of, id), Some(expected));
    }
    let of = Untold::Session(1);
    for (version, id, expected) in [
        (VERSION, 2, Some("2")),
        (VERSION, 99, Some("0")),
        (fix42, 2, Some("2")),
        (fix42, 99, None),
    ] {
        let expected = expected.map(|status| format!("336=1|340={status}|"));
        assert_eq!(told(version, of, id), expected);
    }
}

#[test]
fn a_list_takes_its_share_of_a_turn() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    for number in 1..1_000 {
        let symbol = format!("S{number}");
        ring.put_bytes(&test_log::instrument(number, test_log::named(&symbol)));
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let core = &mut service.core;
    let directory = service.events.directory();
    let mut pages = |mut share: Share| {
        let client = core.client_mut(session).unwrap();
        client.lists.clear();
        let list = List::new(b"r", false, Filter::default());
        client.lists.push_back(list);
        let mut pages = 0;
        while core.page(session, directory, &mut share).is_some() {
            pages += 1;
        }
        pages
    };
    // A page has 50 instruments.
    assert_eq!(pages(Share::WHOLE), 11);
    assert_eq!(pages(Share::of_turn(64, true)), 5);
    let none = Share {
        listed: 0,
        ..Share::WHOLE
    };
    assert_eq!(pages(none), 0);
}

#[test]
fn criteria_that_lists_do_not_have_are_recognized() {
    for (fields, expected) in [
        ("320=r|559=1|167=FUT|15=USD|200=202612|541=20261215|", true),
        (
            "320=r|559=0|55=A|202=5|107=d|20014=one|58=why|9999=own|",
            true,
        ),
        ("320=r|559=1|460=7|", false),
        ("320=r|559=1|336=1|", false),
    ] {
        let are_known = with_request(fields, are_criteria_known);
        assert_eq!(are_known, expected, "{fields}");
    }
}

#[test]
fn values_of_criteria_are_parsed() {
    let parse = |fields| with_request(fields, |message| filter(message, OfFeed::default()));
    let parsed = parse("541=20261215|202=5.0|15=USD|").unwrap();
    assert_eq!(parsed.maturity, Some(1_797_292_800_000_000_000));
    assert_eq!(parsed.strike, Some(Price::from_units(5_000_000_000)));
    assert_eq!(parsed.currency.as_deref(), Some(&b"USD"[..]));
    for (fields, tag) in [("541=2026|", 541), ("202=high|", 202)] {
        let fault = parse(fields).unwrap_err();
        assert_eq!(fault, Fault::Reject(RejectReason::DataFormat, tag));
    }
}
