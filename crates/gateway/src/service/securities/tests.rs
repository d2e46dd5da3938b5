//! Tests of requests for the status of the trading session.

use super::super::feeds::Feeds;
use super::super::tests::{log_on, service};
use super::*;
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
