//! Tests of the end of subscriptions, by the number of parts that are ended.

use super::super::client::{Of, lead};
use super::super::contract::Contract;
use super::super::entry_types::EntryTypes;
use super::super::share::Share;
use super::super::spec::Spec;
use super::super::tests::{VERSION, in_state, log_on, service, take};
use super::*;
use crate::users::grant::Grant;
use fanfare_feed::recovery::State;
use fanfare_market::book::BookConfig;
use fanfare_market::event::entry;
use fanfare_market::instruments::Directory;
use fanfare_market::{Action, Event, Flags, InstrumentId, Kind, Price};
use proptest::prelude::*;
use std::sync::Arc;

/// The parts of a slice, as numbers of instruments.
const PARTS: u32 = SLICE as u32;

fn book() -> BookConfig {
    BookConfig::by_price(8).unwrap()
}

fn spec(depth: u16) -> Spec {
    Spec {
        depth,
        entries: EntryTypes::ALL,
        by_order: false,
        snapshots: false,
        interval: 0,
        checksum_every: 0,
    }
}

/// Subscribes a session to instruments. Returns the subscription.
fn subscribe(
    core: &mut Core,
    session: u32,
    id: &str,
    depth: u16,
    instruments: impl IntoIterator<Item = u32>,
) -> u32 {
    let lead = lead(262, id.as_bytes());
    let own = Subscription::new(lead, spec(depth), Contract::Skip, true, &[]);
    let number = core.client_mut(session).unwrap().add(own);
    for instrument in instruments {
        let instrument = InstrumentId(instrument);
        core.join(session, number, instrument, &Directory::new());
    }
    number
}

/// Ends a session, and adds another one in its place.
fn replace(core: &mut Core, session: u32) {
    let key = core.client(session).unwrap().key;
    core.end(session);
    assert!(core.client(session).is_none());
    let next = Client::new(key, VERSION, Arc::new(Grant::everything()));
    core.log_on(session, Box::new(next));
}

/// Returns the number of links of all classes.
fn links(core: &Core) -> usize {
    let all = core.view.numbers().filter_map(|id| core.view.get(id));
    let classes = all.flat_map(|seen| seen.own.classes.iter());
    let classes = classes.filter_map(|number| core.classes.get(number));
    classes.map(|class| class.links.len()).sum()
}

/// Marks all links of the first class as having their snapshots.
fn serve(core: &mut Core) {
    let class = core.classes.get_mut(0).unwrap();
    let links = class.links.iter_mut();
    links.for_each(|link| link.is_behind = false);
}

fn level(size: i64) -> Event {
    Event {
        kind: Kind::Level,
        instrument: InstrumentId(0),
        source: 1,
        action: Action::New,
        entry: entry::BID,
        price: Price::from_units(7),
        size,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

#[test]
fn a_turn_ends_a_limited_number_of_the_parts_of_a_session() {
    let (_, mut service) = service(book());
    let session = log_on(&mut service);
    let core = &mut service.core;
    for (at, id) in (0..).zip(["a", "b", "c"]) {
        subscribe(core, session, id, 1, at * PARTS..(at + 1) * PARTS);
    }
    subscribe(core, session, "d", 2, 0..7);
    assert_eq!(links(core), 3 * SLICE + 7);
    core.end(session);
    assert!(core.client(session).is_none());
    let mut left = vec![links(core)];
    while service.next_turn() == Some(0) {
        let work = service.core.end_slice();
        let now = links(&service.core);
        assert_eq!(left.last(), Some(&(now + work)));
        left.push(now);
    }
    assert_eq!(left, [2 * SLICE + 7, SLICE + 7, 7, 0]);
    assert_eq!(service.core.end_slice(), 0);
    assert!(service.core.ending.all.is_empty());
}

#[test]
fn fewer_parts_are_ended_while_the_feeds_bring_messages() {
    let (_, mut service) = service(book());
    let session = log_on(&mut service);
    let core = &mut service.core;
    subscribe(core, session, "a", 1, 0..2 * PARTS);
    // The end itself takes what is left of the turn before.
    core.end(session);
    assert_eq!(links(core), SLICE);
    core.share = Share::of_turn(1, false);
    let few = core.share.ends;
    assert!(few < SLICE);
    assert_eq!([core.end_slice(), core.end_slice()], [few; 2]);
    assert_eq!(links(core), SLICE - 2 * few);
}

#[test]
fn the_ends_of_a_turn_share_its_slice() {
    let (_, mut service) = service(book());
    let session = log_on(&mut service);
    let core = &mut service.core;
    let ids = ["a", "b", "c", "d"];
    let numbers = ids.map(|id| subscribe(core, session, id, 1, 0..PARTS));
    for number in numbers {
        core.stop(session, number);
    }
    assert_eq!(links(core), 3 * SLICE);
}

#[test]
fn subscriptions_without_parts_do_not_wait_for_a_slice() {
    let (_, mut service) = service(book());
    let session = log_on(&mut service);
    let core = &mut service.core;
    let parts = subscribe(core, session, "a", 1, 0..2 * PARTS);
    core.stop(session, parts);
    for _ in 0..1_000 {
        let number = subscribe(core, session, "b", 1, []);
        core.stop(session, number);
    }
    assert_eq!(core.ending.all.len(), 1);
    let client = core.client(session).unwrap();
    assert!(
        client.subscriptions.len() <= SLICE,
        "numbers are used again"
    );
}

#[test]
fn what_ends_counts_no_longer_and_is_no_more_than_a_session_may_have() {
    let (_, mut service) = service(book());
    let session = log_on(&mut service);
    let core = &mut service.core;
    let most = 3 * SLICE;
    core.client_mut(session).unwrap().grant = Arc::new(Grant {
        subscriptions: most,
        ..Grant::everything()
    });
    for _ in 0..4 {
        let client = core.client(session).unwrap();
        assert_eq!(client.check_one_more(most), Ok(()));
        let number = subscribe(core, session, "a", 1, 0..3 * PARTS);
        let client = core.client(session).unwrap();
        assert_eq!(client.parts, most);
        assert!(client.check_one_more(1).is_err());
        assert_eq!(links(core), most, "those that were ending have ended");
        core.stop(session, number);
        let client = core.client(session).unwrap();
        let subscriptions = client.served().subscriptions;
        assert_eq!((client.parts, subscriptions), (0, 0));
        assert_eq!(client.find(262, b"a"), None);
        assert!(links(core) > 0, "no turn has ended them");
    }
}

#[test]
fn a_session_that_is_ending_is_sent_nothing_and_neither_is_the_next_in_its_place() {
    let (mut ring, mut service) = service(book());
    let session = log_on(&mut service);
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    subscribe(&mut service.core, session, "a", 1, 0..2 * PARTS);
    serve(&mut service.core);
    assert_eq!(take(&mut ring, &mut service, &mut [level(1)]).len(), 1);
    replace(&mut service.core, session);
    // Those of the first instruments.
    assert_eq!(links(&service.core), SLICE);
    let mut events = [level(2), in_state(State::Stale)];
    assert_eq!(take(&mut ring, &mut service, &mut events), [""; 0]);
    service.core.restart();
    let mut events = [in_state(State::Live), level(3)];
    assert_eq!(take(&mut ring, &mut service, &mut events), [""; 0]);
    let core = &mut service.core;
    let client = core.client(session).unwrap();
    assert!(client.outbox.is_empty() && client.untold.is_empty() && client.behind.is_empty());
    assert!(core.touched.is_empty() && core.waiting.is_empty());

    let number = subscribe(core, session, "a", 1, 0..2);
    assert_eq!(number, 1, "0 is ending");
    serve(core);
    assert_eq!(take(&mut ring, &mut service, &mut [level(4)]).len(), 1);
    let core = &mut service.core;
    let outbox = core.client(session).unwrap().outbox.iter();
    let parts = outbox.map(|out| match out.of {
        Of::Part(part) => (part.subscription, part.entry),
        Of::Told(untold) => panic!("{untold:?}"),
    });
    assert!(parts.eq([(number, 0)]));
    while core.end_slice() > 0 {}
    assert_eq!(links(core), 2);
    core.stop(session, number);
    assert_eq!(links(core), 0);
    let again = ["b", "c"].map(|id| subscribe(core, session, id, 1, 0..1));
    assert_eq!(again, [1, 0], "both numbers are free");
}

#[test]
fn the_ends_of_subscriptions_go_through_what_is_behind_a_few_times() {
    const COUNT: usize = 1_000;
    let (_, mut service) = service(book());
    let session = log_on(&mut service);
    let core = &mut service.core;
    for id in 0..COUNT {
        subscribe(core, session, &format!("{id}"), 1, 0..1);
    }
    let behind = |core: &Core| core.client(session).unwrap().behind.len();
    let mut looks = 0;
    for number in 0..COUNT as u32 {
        let before = behind(core);
        core.stop(session, number);
        if behind(core) < before {
            looks += before;
        }
    }
    assert!(looks <= 2 * COUNT, "{looks}");
    assert_eq!((behind(core), links(core)), (0, 0));
}

/// A subscription as it should be: session, number, depth, instruments.
type Plain = (u32, u32, u16, Vec<u32>);

/// Checks that places and links refer to each other.
fn check_places(core: &Core, (session, number): Id, places: &[Place]) {
    for (entry, place) in (0..).zip(places) {
        let link = core.classes.link(*place).unwrap();
        let known = (link.session, link.subscription, link.entry);
        assert_eq!(known, (session, number, entry));
    }
}

fn check(core: &Core, plain: &[Plain]) {
    let mut count = 0;
    for (session, number, depth, instruments) in plain {
        let client = core.client(*session).unwrap();
        let own = client.get(*number).unwrap();
        check_places(core, (*session, *number), &own.places);
        let classes = own.places.iter();
        let classes = classes.map(|place| core.classes.get(place.class).unwrap());
        let classes = classes.map(|class| (class.instrument.0, class.spec.depth));
        assert!(classes.eq(instruments.iter().map(|instrument| (*instrument, *depth))));
        let queued = client.behind.iter();
        let queued = queued.filter(|part| part.subscription == *number);
        assert!(queued.map(|part| part.entry).eq(0..own.places.len() as u32));
        count += own.places.len();
    }
    for (&(session, number), places) in &core.ending.all {
        let client = core.client(session).unwrap();
        assert!(client.get(number).is_none());
        check_places(core, (session, number), places);
        count += places.len();
    }
    assert_eq!(links(core), count);
    for session in 0..2 {
        let own = plain.iter().filter(|own| own.0 == session);
        let parts: Vec<usize> = own.map(|own| own.3.len()).collect();
        let client = core.client(session).unwrap();
        assert_eq!(client.parts, parts.iter().sum::<usize>());
        assert_eq!(client.served().subscriptions, parts.len() as u64);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_that_are_ending_do_not_mix_with_others(
        steps in proptest::collection::vec(
            (0u32..2, 0u8..10, 1u16..40, 32u8..64, 0usize..5),
            1..120,
        ),
    ) {
        let (_, mut service) = service(book());
        let sessions = [log_on(&mut service), log_on(&mut service)];
        let core = &mut service.core;
        let mut plain: Vec<Plain> = Vec::new();
        for (id, (session, kind, depth, bits, room)) in steps.into_iter().enumerate() {
            core.ending.room = room;
            match kind {
                0 => {
                    replace(core, session);
                    plain.retain(|own| own.0 != session);
                }
                1 | 2 => {
                    if let Some(at) = plain.iter().position(|own| own.0 == session) {
                        let (_, number, ..) = plain.remove(at);
                        core.stop(session, number);
                    }
                }
                3 | 4 => prop_assert!(core.end_some() <= room),
                _ => {
                    let instruments = (0..6).filter(|at| bits >> at & 1 == 1);
                    let instruments: Vec<u32> = instruments.collect();
                    let all = instruments.iter().copied();
                    let number = subscribe(core, session, &format!("{id}"), depth, all);
                    plain.push((session, number, depth, instruments));
                }
            }
            check(core, &plain);
        }
        core.ending.room = usize::MAX;
        core.end_some();
        prop_assert!(core.ending.is_empty() && core.ending.all.is_empty());
        check(core, &plain);
        for session in sessions {
            core.end(session);
        }
        core.end_some();
        prop_assert_eq!(links(core), 0);
        let mut all = core.view.numbers().filter_map(|id| core.view.get(id));
        prop_assert!(all.all(|seen| seen.own.classes.is_empty()));
    }
}
