//! Tests of requests for an instrument that two feeds have.

use super::super::Service;
use super::super::bodies::BodyId;
use super::super::class::Part;
use super::super::contract::Contract;
use super::super::feeds::Feeds;
use super::super::list::{Filter, LOOKED_AT, List};
use super::super::share::Share;
use super::super::tests::{
    EVERYTHING, VERSION, in_state, is_queued, join_served, log_on, service, snapshot, take, trade,
};
use super::*;
use crate::market::ring::EventRing;
use crate::test_log;
use fanfare_fix::codec::{Decoder, SendingTime, SessionHeader, SharedBody, SharedFrame};
use fanfare_history::FeedInfo;
use fanfare_market::book::BookConfig;
use fanfare_market::instruments::{Definition, IdSource, Instrument, Name, SecurityId};
use fanfare_market::{Event, Kind};
use fanfare_wire::{Precision, UtcTimestamp};

/// Returns the service with the feeds `one` and `two`, whose numbers 0 and 10 have the same name,
/// the ring from which it reads, and a session.
fn of_two_feeds() -> (EventRing, Service, u32) {
    let book = BookConfig::by_price(8).unwrap();
    let (mut ring, mut service) = service(book);
    service.core.feeds = feeds([book, book]);
    define(&mut ring, &mut service, b"RIU3");
    let session = log_on(&mut service);
    (ring, service, session)
}

/// Returns the feeds `one` and `two`, with these books.
fn feeds([one, two]: [BookConfig; 2]) -> Feeds {
    let feed = |name: &str, base, book| FeedInfo {
        name: name.to_owned(),
        base,
        book,
    };
    Feeds::new(&[feed("one", 0, one), feed("two", 10, two)])
}

/// Defines the instrument 10 by this symbol.
fn define(ring: &mut EventRing, service: &mut Service, symbol: &[u8]) {
    let definition = Definition::named(Name::of_symbol(symbol));
    ring.put_instrument(&test_log::known(10, definition));
    take(ring, service, &mut [in_state(State::Live)]);
    let Service { events, core, .. } = service;
    let added = events.take_added();
    core.grow(&added, events.directory());
}

/// Calls `then` with a MarketDataRequest(V) of these fields.
pub(crate) fn with_request<T>(fields: &str, then: impl FnOnce(&Message<'_>) -> T) -> T {
    let text = fields.replace('|', "\x01");
    let header = SessionHeader::new(b"FIX.4.4", b"C", b"P").unwrap();
    let time = SendingTime::new(UtcTimestamp::from_nanos(0), Precision::Millis);
    let mut frame = SharedFrame::new(4096);
    let body = SharedBody::new(b"V", text.as_bytes()).unwrap();
    frame.load(&body).unwrap();
    let mut decoder = Decoder::new();
    let message = decoder.decode(frame.patch(&header, 2, &time)).unwrap();
    then(&message)
}

/// Requests instruments by the fields from Symbol(55) on.
fn ask(service: &mut Service, session: u32, id: &str, named: &str) -> Result<(), Fault> {
    let fields = format!("262={id}|263=1|264=1|265=1|267=1|269=0|146=1|{named}");
    request(service, session, &fields)
}

/// Requests orders of instruments by the fields from Symbol(55) on.
fn ask_orders(service: &mut Service, session: u32, id: &str, named: &str) -> Result<(), Fault> {
    let fields = format!("262={id}|263=1|264=0|265=1|266=N|267=1|269=0|146=1|{named}");
    request(service, session, &fields)
}

/// Makes a request of these fields.
fn request(service: &mut Service, session: u32, fields: &str) -> Result<(), Fault> {
    let Service { events, core, .. } = service;
    with_request(fields, |message| {
        core.market_data(session, message, events.directory())
    })?;
    core.grow(&[], events.directory());
    Ok(())
}

/// Returns the instruments of a subscription.
fn instruments(service: &Service, session: u32, number: u32) -> Vec<u32> {
    let core = &service.core;
    let client = core.client(session).unwrap();
    let places = client.get(number).unwrap().places.iter();
    let classes = places.map(|place| core.classes.get(place.class).unwrap());
    classes.map(|class| class.instrument.0).collect()
}

/// Returns a body with `|` for SOH.
fn text(core: &Core, body: BodyId) -> String {
    let (_, body) = core.bodies.get(body).unwrap();
    String::from_utf8_lossy(body.fields()).replace('\x01', "|")
}

#[test]
fn an_instrument_of_several_feeds_is_requested_with_its_feed() {
    let (_, mut service, session) = of_two_feeds();
    let refused = |text: &str| Err::<(), _>(Fault::refused(reason::UNKNOWN_SYMBOL, text));
    assert_eq!(
        ask(&mut service, session, "a", "55=RIU3|"),
        refused("RIU3 is in the feeds one, two: Feed(20014) must name one")
    );
    assert_eq!(
        ask(&mut service, session, "a", "55=RIU3|20014=three|"),
        refused("unknown Feed(20014) three")
    );
    assert_eq!(
        ask(&mut service, session, "a", "55=RIU3|20014=two|"),
        Ok(())
    );
    assert_eq!(instruments(&service, session, 0), [10]);
    let Service { events, core, .. } = &mut service;
    let body = core.snapshot(0, VERSION, events.directory()).unwrap();
    let snapshot = text(core, body);
    assert!(snapshot.starts_with("20014=two|55=RIU3|"), "{snapshot}");
    let news = Untold::State(InstrumentId(0));
    let body = core.news(news, VERSION, events.directory()).unwrap();
    let news = text(core, body);
    assert!(news.starts_with("20014=one|148="), "{news}");
    let own = core.client_mut(session).unwrap().get_mut(0).unwrap();
    own.trades.push(Event {
        instrument: InstrumentId(10),
        ..trade()
    });
    let part = Part {
        subscription: 0,
        entry: 0,
    };
    let held = core.held(session, part, InstrumentId(10), 0, events.directory());
    let trades = text(core, held.unwrap().body);
    assert!(trades.starts_with("20014=two|268=1|"), "{trades}");
}

#[test]
fn the_status_of_a_session_names_its_feed_if_there_are_several() {
    let (_, mut service, _) = of_two_feeds();
    let Service { events, core, .. } = &mut service;
    core.session_status(&Event {
        instrument: InstrumentId::ALL,
        kind: Kind::Status,
        id: 2,
        source: 2,
        ..Event::EMPTY
    });
    let status = |core: &mut Core| {
        let news = core.news(Untold::Session(2), VERSION, events.directory());
        text(core, news.unwrap())
    };
    assert_eq!(status(core), "20014=two|336=1|340=2|");
    core.feeds = Feeds::default();
    assert_eq!(status(core), "336=1|340=2|");
}

#[test]
fn an_instrument_whose_namesake_is_renamed_has_its_feed_while_it_is_subscribed() {
    let (mut ring, mut service, session) = of_two_feeds();
    for (number, feed) in (0..).zip(["one", "two"]) {
        let named = format!("55=RIU3|20014={feed}|");
        ask(&mut service, session, feed, &named).unwrap();
        assert_eq!(instruments(&service, session, number).len(), 1);
    }
    define(&mut ring, &mut service, b"RIZ3");
    let Service { events, core, .. } = &mut service;
    let snapshot = |core: &mut Core, class| {
        core.snapshots.clear();
        let body = core.snapshot(class, VERSION, events.directory()).unwrap();
        text(core, body)
    };
    for (number, begin) in [(0, "20014=one|55=RIU3|"), (1, "20014=two|55=RIZ3|")] {
        let snapshot = snapshot(core, number);
        assert!(snapshot.starts_with(begin), "{snapshot}");
    }
    core.stop(session, 0);
    core.stop(session, 1);
    ask(&mut service, session, "again", "55=RIU3|").unwrap();
    let Service { events, core, .. } = &mut service;
    let own = core.client(session).unwrap();
    let own = own.get(own.find(262, b"again").unwrap()).unwrap();
    let class = own.places[0].class;
    core.snapshots.clear();
    let body = core.snapshot(class, VERSION, events.directory()).unwrap();
    let snapshot = text(core, body);
    assert!(snapshot.starts_with("55=RIU3|"), "{snapshot}");
}

#[test]
fn a_subscription_begins_anew_when_another_feed_has_the_name_of_its_instrument() {
    let (mut ring, mut service, session) = of_two_feeds();
    define(&mut ring, &mut service, b"RIZ3");
    ask(&mut service, session, "a", "55=RIU3|").unwrap();
    assert!(snapshot(&mut service).starts_with("55=RIU3|"));
    let core = &mut service.core;
    let link = &mut core.classes.get_mut(0).unwrap().links[0];
    (link.is_behind, link.is_queued) = (false, false);
    core.client_mut(session).unwrap().behind.clear();
    define(&mut ring, &mut service, b"RIU3");
    assert!(is_queued(&service));
    let client = service.core.client(session).unwrap();
    assert_eq!(client.behind.len(), 1);
    let snapshot = snapshot(&mut service);
    assert!(snapshot.starts_with("20014=one|55=RIU3|"), "{snapshot}");
}

#[test]
fn a_subscription_with_updates_has_the_statuses_that_are_known_with_its_snapshots() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    for (number, status) in [(1, 2), (2, 0)] {
        ring.put_instrument(&Instrument {
            status,
            ..test_log::known(number, test_log::named("RIZ3"))
        });
    }
    let halted = Event {
        instrument: InstrumentId(0),
        kind: Kind::Status,
        id: 2,
        source: 1,
        ..Event::EMPTY
    };
    take(
        &mut ring,
        &mut service,
        &mut [halted, in_state(State::Live)],
    );
    let session = log_on(&mut service);
    let statuses = |service: &Service| -> Vec<_> {
        let core = &service.core;
        let classes = (0..).map_while(|class| core.classes.get(class));
        let owing = classes.filter(|class| class.links.iter().any(|link| link.owes_status));
        owing.map(|class| class.instrument.0).collect()
    };
    let once = "262=o|263=0|264=1|265=1|267=1|269=0|146=1|55=*|";
    request(&mut service, session, once).unwrap();
    assert_eq!(statuses(&service), [0; 0]);
    ask(&mut service, session, "a", "55=*|").unwrap();
    assert_eq!(statuses(&service), [0, 1]);
    // A change that is sent is not sent again.
    take(&mut ring, &mut service, &mut [Event { id: 17, ..halted }]);
    assert_eq!(statuses(&service), [1]);
}

#[test]
fn instruments_that_a_user_may_see_later_join_what_goes_on() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    for (number, symbol) in [(1, "SIU3"), (2, "SIZ3")] {
        ring.put_bytes(&test_log::instrument(number, test_log::named(symbol)));
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let client = service.core.client_mut(session).unwrap();
    client.grant = Arc::new(Grant::seeing(b"R*"));
    ask(&mut service, session, "all", "55=*|").unwrap();
    let names: Names = [Pattern::parse(b"SIZ3")].into_iter().collect();
    let mut own = Subscription::new(lead(262, b"list"), EVERYTHING, Contract::Cut, true, &[]);
    own.lists = vec![Arc::new(names)];
    let Service { events, core, .. } = &mut service;
    let client = core.client_mut(session).unwrap();
    let list = client.add(own);
    let grant = Arc::new(Grant::everything());
    client.grant = Arc::clone(&grant);
    for _ in 0..2 {
        for number in [0, list] {
            core.look_again(session, number);
        }
        core.grow(&[], events.directory());
        assert!(core.growing.is_empty());
    }
    assert_eq!(instruments(&service, session, 0), [0, 1, 2]);
    assert_eq!(instruments(&service, session, list), [2]);
}

#[test]
fn a_look_at_a_list_takes_its_share_of_each_turn_and_new_instruments_nothing_of_it() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let symbol = |number: u32| format!("S{number:03}");
    for number in 1..200 {
        let bytes = test_log::instrument(number, test_log::named(&symbol(number)));
        ring.put_bytes(&bytes);
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let names = (1..250).map(|number| Pattern::Symbol(symbol(number).into_bytes().into()));
    let names: Names = names.collect();
    let mut own = Subscription::new(lead(262, b"list"), EVERYTHING, Contract::Cut, true, &[]);
    own.lists = vec![Arc::new(names)];
    let number = service.core.client_mut(session).unwrap().add(own);
    service.core.with_patterns.insert((session, number));
    service.core.share.growth = 10;
    service.core.look_again(session, number);
    service.events.take_added();
    // One joins before the look reaches it, and is there once.
    let late = test_log::instrument(240, test_log::named(&symbol(240)));
    let (mut added, mut turns) = (Vec::new(), 0);
    while !service.core.growing.is_empty() {
        let Service { events, core, .. } = &mut service;
        let before = core.client(session).unwrap().parts;
        core.grow(&added, events.directory());
        let after = core.client(session).unwrap().parts;
        assert!(after - before <= 10 + added.len(), "{before} {after}");
        turns += 1;
        if turns == 2 {
            ring.put_bytes(&late);
            take(&mut ring, &mut service, &mut [in_state(State::Live)]);
        }
        added = service.events.take_added();
    }
    assert!(turns >= 20, "{turns}");
    let expected: Vec<_> = (1..200).chain([240]).collect();
    let mut all = instruments(&service, session, number);
    all.sort_unstable();
    assert_eq!(all, expected);
}

#[test]
fn looks_go_on_while_there_are_many_new_instruments() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    for number in 1..100 {
        let bytes = test_log::instrument(number, test_log::named(&format!("S{number}")));
        ring.put_bytes(&bytes);
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let added = service.events.take_added();
    service.core.share.growth = 10;
    ask(&mut service, session, "r", "55=S*|").unwrap();
    let before = instruments(&service, session, 0).len();
    let Service { events, core, .. } = &mut service;
    core.grow(&added, events.directory());
    assert_eq!(instruments(&service, session, 0).len(), before + 10);
}

#[test]
fn a_new_request_is_looked_up_before_those_that_look_again() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    for number in 1..100 {
        let bytes = test_log::instrument(number, test_log::named(&format!("S{number}")));
        ring.put_bytes(&bytes);
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    service.events.take_added();
    let session = log_on(&mut service);
    let other = log_on(&mut service);
    let mut own = Subscription::new(lead(262, b"again"), EVERYTHING, Contract::Cut, true, &[]);
    own.patterns = vec![Pattern::parse(b"S*")];
    let number = service.core.client_mut(other).unwrap().add(own);
    service.core.look_again(other, number);
    service.core.share.growth = 10;
    ask(&mut service, session, "r", "55=S*|").unwrap();
    assert_eq!(instruments(&service, session, 0).len(), 10);
    assert_eq!(instruments(&service, other, number), [0; 0]);
}

#[test]
fn a_renamed_instrument_is_kept_only_by_those_who_may_see_its_new_name() {
    let (mut ring, mut service, session) = of_two_feeds();
    ask(&mut service, session, "a", "55=RIU3|20014=two|").unwrap();
    define(&mut ring, &mut service, b"RIZ3");
    let Service { events, core, .. } = &mut service;
    let hidden = |core: &Core| core.hidden(&[InstrumentId(10)], events.directory());
    assert!(hidden(core).is_empty());
    core.client_mut(session).unwrap().grant = Arc::new(Grant::nothing());
    assert_eq!(hidden(core), [(session, 0)]);
}

#[test]
fn a_request_beyond_the_limit_is_refused_by_its_id_or_rejected_without_one() {
    let refused = with_request("262=r|263=2|", beyond_limit);
    assert_eq!(refused, Fault::refused(reason::BANDWIDTH, TOO_MANY));
    let rejected = with_request("263=2|", beyond_limit);
    let missing = Fault::Reject(RejectReason::RequiredTagMissing, 262);
    assert_eq!(rejected, missing);
}

#[test]
fn a_prefix_has_the_instruments_of_the_feed_that_is_named_or_of_all() {
    let (_, mut service, session) = of_two_feeds();
    let requests = [
        ("55=*|", &[0, 10][..]),
        ("55=R*|20014=one|", &[0][..]),
        ("55=*|20014=two|", &[10][..]),
    ];
    for (number, (named, expected)) in (0..).zip(requests) {
        ask(&mut service, session, &format!("{number}"), named).unwrap();
        assert_eq!(instruments(&service, session, number), expected, "{named}");
    }
}

/// Returns a book of levels, and one of orders.
fn books() -> [BookConfig; 2] {
    [
        BookConfig::by_price(8).unwrap(),
        BookConfig::by_order(8, 8).unwrap(),
    ]
}

#[test]
fn orders_are_requested_of_feeds_that_have_them_before_there_is_a_book() {
    let (_, mut service, session) = of_two_feeds();
    let [levels, orders] = books();
    let refused = |text: &str| Err(Fault::refused(reason::AGGREGATED, text));
    service.core.feeds = feeds([levels, orders]);
    let requests = [
        ("55=RIU3|20014=one|", refused(OF_LEVELS)),
        ("55=RIU3|20014=two|", Ok(())),
        ("55=*|", refused(MAY_HAVE_LEVELS)),
        ("55=R*|20014=one|", refused(MAY_HAVE_LEVELS)),
        ("55=R*|20014=two|", Ok(())),
    ];
    for (id, (named, expected)) in (0..).zip(requests) {
        let done = ask_orders(&mut service, session, &format!("{id}"), named);
        assert_eq!(done, expected, "{named}");
    }
    for number in [0, 1] {
        assert_eq!(instruments(&service, session, number), [10]);
    }
}

#[test]
fn an_instrument_of_a_list_that_has_levels_does_not_join_a_request_for_orders() {
    let [levels, orders] = books();
    for (books, expected) in [([levels, orders], &[10][..]), ([orders, levels], &[])] {
        let (mut ring, mut service, session) = of_two_feeds();
        service.core.feeds = feeds(books);
        let names: Names = [Pattern::parse(b"RIZ3")].into_iter().collect();
        let spec = Spec {
            depth: 0,
            by_order: true,
            ..EVERYTHING
        };
        let mut own = Subscription::new(lead(262, b"r"), spec, Contract::Cut, true, &[]);
        own.lists = vec![Arc::new(names)];
        let number = service.core.client_mut(session).unwrap().add(own);
        service.core.with_patterns.insert((session, number));
        define(&mut ring, &mut service, b"RIZ3");
        assert_eq!(instruments(&service, session, number), expected);
    }
}

#[test]
fn a_list_has_the_feed_of_an_instrument_that_several_have() {
    let (_, mut service, _) = of_two_feeds();
    let Service { events, core, .. } = &mut service;
    let two = core.feeds.of_name(Some(b"two")).unwrap();
    let mut listed = |filter| {
        let (grant, mut looks) = (Grant::everything(), LOOKED_AT);
        let (directory, feeds) = (events.directory(), &core.feeds);
        let writer = core.writers.get(VERSION).unwrap();
        let mut list = List::new(b"r", false, filter);
        let bodies = &mut core.bodies;
        let found = list.encode(writer, bodies, &grant, directory, feeds, &mut looks);
        text(core, found.unwrap().0.unwrap())
    };
    let all = listed(Filter::default());
    let both = "|146=2|55=RIU3|58=feed=one|55=RIU3|58=feed=two|";
    assert!(all.ends_with(both), "{all}");
    let one = listed(Filter {
        feed: two,
        ..Filter::default()
    });
    assert!(one.ends_with("|146=1|55=RIU3|58=feed=two|"), "{one}");
}

#[test]
fn a_symbol_that_lasts_less_than_a_turn_ends_the_right_to_its_instrument() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let session = log_on(&mut service);
    let number = join_served(&mut service, session, EVERYTHING);
    let Service { events, core, .. } = &mut service;
    events.take_added();
    core.client_mut(session).unwrap().grant = Arc::new(Grant::seeing(b"R*"));
    for symbol in ["SIU3", "RIU3"] {
        ring.put_bytes(&test_log::instrument(0, test_log::named(symbol)));
        ring.put(&mut [trade()]);
    }
    for expected in [vec![(session, number)], Vec::new()] {
        assert!(core.read(events, 0, &mut None) > 0);
        let added = events.take_added();
        assert_eq!(added, [InstrumentId(0)]);
        assert_eq!(core.hidden(&added, events.directory()), expected);
    }
}

#[test]
fn an_id_beside_the_symbol_of_another_instrument_is_unknown() {
    let (mut ring, mut service, session) = of_two_feeds();
    for (number, symbol) in [(20_u32, b"AAA"), (21, b"BBB")] {
        let name = Name {
            symbol,
            id: SecurityId::Number(number.into()),
            source: IdSource::parse(b"8").unwrap(),
        };
        let definition = Definition::named(name);
        ring.put_bytes(&test_log::instrument(number, definition));
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let unknown = Fault::refused(reason::UNKNOWN_SYMBOL, "unknown instrument 21");
    let requests = [
        ("48=21|22=8|", Ok(())),
        ("55=BBB|48=21|22=8|", Ok(())),
        ("55=[N/A]|48=21|22=8|", Ok(())),
        ("55=AAA|48=21|22=8|", Err(unknown.clone())),
        ("55=*|48=21|22=8|", Err(unknown)),
    ];
    for (id, (named, expected)) in (0..).zip(requests) {
        let done = ask(&mut service, session, &format!("{id}"), named);
        assert_eq!(done, expected, "{named}");
    }
}

#[test]
fn fewer_instruments_are_looked_up_while_the_feeds_bring_messages() {
    let (mut ring, mut service, session) = of_two_feeds();
    for number in 20..120 {
        let symbol = format!("S{number}");
        ring.put_bytes(&test_log::instrument(number, test_log::named(&symbol)));
    }
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    service.core.share = Share::of_turn(1, false);
    ask(&mut service, session, "r", "55=S*|").unwrap();
    let found = instruments(&service, session, 0).len();
    assert_eq!(found, service.core.share.growth);
    service.core.share = Share::of_turn(0, false);
    let Service { events, core, .. } = &mut service;
    core.grow(&[], events.directory());
    assert_eq!(instruments(&service, session, 0).len(), 100);
}
