//! Tests of what is sent of a book that was lost or is recovering: its trades, its state, its
//! snapshot.

use super::*;

#[test]
fn trades_beyond_the_capacity_of_a_recovery_are_announced_after_it() {
    for (is_served, expected) in [(true, (1_024, 476)), (false, (0, 0))] {
        let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
        let session = log_on(&mut service);
        let number = match is_served {
            true => join_served(&mut service, session, EVERYTHING),
            // Its first snapshot has the last trade.
            false => join(&mut service, session, EVERYTHING),
        };
        take(&mut ring, &mut service, &mut [trade(); 1_500]);
        let mut ends = [level(3), in_state(State::Live)];
        take(&mut ring, &mut service, &mut ends);
        assert_eq!(held(&mut service, session, number), expected);
    }
}

#[test]
fn trades_of_a_recovery_come_before_its_snapshot() {
    for interval in [0, 1_000] {
        let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
        let session = log_on(&mut service);
        take(&mut ring, &mut service, &mut [in_state(State::Live)]);
        let spec = Spec {
            interval,
            ..EVERYTHING
        };
        let number = join_served(&mut service, session, spec);
        let late = Event {
            flags: Flags::LAST,
            ..trade()
        };
        let lacks = in_state(State::Recovering(Lack::Snapshot));
        take(&mut ring, &mut service, &mut [lacks, late]);
        assert_eq!(held(&mut service, session, number), (0, 0));
        let mut ends = [clear(), level(3), in_state(State::Live)];
        take(&mut ring, &mut service, &mut ends);
        assert_eq!(held(&mut service, session, number), (1, 0));
        assert!(is_queued(&service));
        let Core { view, classes, .. } = &mut service.core;
        let (seen, class) = (view.get(InstrumentId(0)), classes.get_mut(0));
        let (mut room, mut out) = (Vec::new(), Vec::new());
        let update = class
            .unwrap()
            .update(seen.unwrap(), &level(4), &mut room, &mut out);
        assert_eq!(update, None, "the class holds nothing");
    }
}

#[test]
fn trades_of_an_update_that_is_too_long_come_before_the_snapshot() {
    let (mut ring, mut service) = service_with(BookConfig::by_price(8).unwrap(), 8_192);
    let session = log_on(&mut service);
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let number = join_served(&mut service, session, EVERYTHING);
    let long = Event {
        id: u64::MAX,
        ..trade()
    };
    let sent = take(&mut ring, &mut service, &mut [long; 100]);
    assert_eq!(sent, [""; 0]);
    assert_eq!(held(&mut service, session, number), (100, 0));
    assert!(is_queued(&service));
    let Service { events, core, .. } = &mut service;
    let part = Part {
        subscription: number,
        entry: 0,
    };
    let mut sent = Vec::new();
    while let Some(next) = core.held(session, part, InstrumentId(0), 0, events.directory()) {
        core.sent_held(session, part, &next);
        sent.push(next.trades);
    }
    assert_eq!(sent.iter().sum::<usize>(), 100, "{sent:?}");
    assert!(!sent.contains(&0), "none is left out: {sent:?}");
}

#[test]
fn a_trade_that_fits_into_no_message_is_announced_before_the_snapshot() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    let number = join_served(&mut service, session, EVERYTHING);
    let Service { events, core, .. } = &mut service;
    let client = core.client_mut(session).unwrap();
    client.get_mut(number).unwrap().trades.push(Event {
        id: u64::MAX,
        size: i64::MAX,
        price: Price::from_units(999_999_999_999_999_999),
        ts_event: 1,
        ..trade()
    });
    let part = Part {
        subscription: number,
        entry: 0,
    };
    // The News(B) fits.
    core.bodies = Bodies::new(100);
    let next = core.held(session, part, InstrumentId(0), 0, events.directory());
    assert_eq!(next.unwrap().trades, 0);
    assert_eq!(held(&mut service, session, number), (0, 1));
}

#[test]
fn a_snapshot_has_no_trade_that_the_next_update_brings() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let last = Event {
        flags: Flags::LAST,
        ..trade()
    };
    let mut begins = [in_state(State::Live), clear(), level(3), last];
    take(&mut ring, &mut service, &mut begins);
    let spec = Spec {
        interval: 1_000,
        ..EVERYTHING
    };
    subscribe(&mut service, spec);
    let mut has_trade = |events: &mut [Event]| {
        take(&mut ring, &mut service, events);
        let Service { events, core, .. } = &mut service;
        core.snapshots.clear();
        let body = core.snapshot(0, VERSION, events.directory()).unwrap();
        let (_, body) = core.bodies.get(body).unwrap();
        String::from_utf8_lossy(body.fields()).contains("269=2\x01")
    };
    assert!(has_trade(&mut []));
    assert!(!has_trade(&mut [last]), "the next update has it");
}

#[test]
fn trades_of_a_book_of_orders_that_is_cleared_come_before_the_snapshot() {
    let within = Event {
        flags: Flags::NONE,
        ..order(Action::New, 5, entry::BID, 3)
    };
    let cleared = Event {
        flags: Flags::LAST,
        ..clear()
    };
    // More changes than are held leave room for trades.
    for (orders, last) in [(1, cleared), (1_000, trade())] {
        let (mut ring, mut service) = service(BookConfig::by_order(8, 8).unwrap());
        let session = log_on(&mut service);
        take(&mut ring, &mut service, &mut [in_state(State::Live)]);
        let spec = Spec {
            by_order: true,
            ..EVERYTHING
        };
        let number = join_served(&mut service, session, spec);
        let mut events = vec![within; orders];
        events.extend([trade(); 100]);
        events.push(last);
        assert_eq!(take(&mut ring, &mut service, &mut events), [""; 0]);
        let trades = events.iter().filter(|event| event.kind == Kind::Trade);
        let expected = (trades.count(), 0);
        assert_eq!(held(&mut service, session, number), expected, "{orders}");
        assert!(is_queued(&service));
    }
}

#[test]
fn a_restart_is_told_and_so_is_the_book_after_it() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    join_served(&mut service, session, EVERYTHING);
    ring.put_restart(1);
    let Service { events, core, .. } = &mut service;
    core.read(events, 0, &mut None);
    let state = Untold::State(InstrumentId(0));
    let client = core.client_mut(session).unwrap();
    assert_eq!(std::mem::take(&mut client.untold), BTreeSet::from([state]));
    assert_eq!(core.waiting, [session]);
    let told = core.news(state, VERSION, events.directory()).unwrap();
    let (_, body) = core.bodies.get(told).unwrap();
    let told = String::from_utf8_lossy(body.fields()).into_owned();
    assert!(
        told.contains("58=state=recovering lacks=snapshot"),
        "{told}"
    );
    let told = take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    assert!(told.concat().contains("|58=state=live|"), "{told:?}");
    assert!(is_queued(&service));
}

#[test]
fn an_instrument_whose_state_precedes_its_lost_book_comes_back() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    for state in [State::Live, State::Stale] {
        take(&mut ring, &mut service, &mut [in_state(State::Live)]);
        let number = join_served(&mut service, session, EVERYTHING);
        service.core.lose_all();
        take(&mut ring, &mut service, &mut [in_state(state)]);
        assert!(!is_queued(&service), "its book is not known");
        let mut shown = [clear(), level(3), in_state(state)];
        take(&mut ring, &mut service, &mut shown);
        assert!(is_queued(&service), "{state:?}");
        service.core.stop(session, number);
    }
}

#[test]
fn a_lost_book_whose_state_came_before_comes_back_when_it_is_shown() {
    for (by_order, interval) in [(false, 0), (false, 1_000), (true, 0), (true, 1_000)] {
        let (book, shown) = match by_order {
            true => (
                BookConfig::by_order(8, 8),
                order(Action::New, 5, entry::BID, 3),
            ),
            false => (BookConfig::by_price(8), level(3)),
        };
        let (mut ring, mut service) = service(book.unwrap());
        let session = log_on(&mut service);
        take(&mut ring, &mut service, &mut [in_state(State::Live)]);
        let spec = Spec {
            by_order,
            interval,
            ..EVERYTHING
        };
        join_served(&mut service, session, spec);
        service.core.lose_all();
        let told = take(&mut ring, &mut service, &mut [in_state(State::Live)]).concat();
        assert!(told.contains("|58=state=recovering "), "{told}");
        // No state follows the book.
        let told = take(&mut ring, &mut service, &mut [clear(), shown]);
        assert!(told.concat().contains("|58=state=live|"), "{told:?}");
        assert_eq!(told.len(), 1, "no change precedes the snapshot");
        let Service { events, core, .. } = &mut service;
        let is_due = interval != 0;
        let class = core.classes.get(0).unwrap();
        assert_eq!((class.is_due, class.is_cleared), (is_due, is_due));
        if let Some(due) = core.classes.next_due() {
            core.now = due;
            core.flush_due(events.directory());
        }
        assert!(is_queued(&service));
        let text = snapshot(&mut service);
        assert!(
            text.contains("|268=1|") && text.contains("|271=3|"),
            "{text}"
        );
    }
}

#[test]
fn a_book_that_comes_back_without_subscribers_is_no_news_to_the_next_one() {
    let (mut ring, mut service) = service(BookConfig::by_price(8).unwrap());
    let session = log_on(&mut service);
    take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    service.core.lose_all();
    let mut back = [in_state(State::Live), clear(), level(3)];
    take(&mut ring, &mut service, &mut back);
    join_served(&mut service, session, EVERYTHING);
    let told = take(&mut ring, &mut service, &mut [in_state(State::Live)]);
    assert_eq!(told, [""; 0]);
    assert!(!is_queued(&service), "it has its snapshot");
}
