//! Operators' commands to a host.

use super::*;
use fanfare_fix::session::{MAX_SEQ_NUM, Role, SendError, State};

fn id(sender: &str, target: &str) -> SessionId {
    SessionId::new(Version::Fix44, sender, target)
}

/// Steers a session of `host`, and runs all hosts.
fn steer(
    world: &mut World,
    hosts: &mut [&mut Host<Diary>],
    id: &SessionId,
    wish: Steer,
) -> Result<(), HostError> {
    let handle = hosts.first().unwrap().handle();
    let mut pending = handle.steer(id, wish);
    world.run(hosts);
    pending.poll().expect("an answer")
}

fn page(world: &mut World, host: &mut Host<Diary>, from: usize) -> SessionPage {
    let mut pending = host.handle().page(from);
    world.run(&mut [host]);
    pending.poll().expect("an answer").unwrap()
}

fn numbers(host: &Host<Diary>, at: usize) -> (u64, u64) {
    let store = host.hosted[at].session.store();
    (store.next_sender(), store.next_target())
}

#[test]
fn sessions_are_described_a_page_in_a_turn() {
    let names: Vec<String> = (0..300).map(|i| format!("B{i}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut world = World::new();
    let (mut sell, address) = seller(&names);
    let mut buy = initiator("B7", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    world.wait(3);
    let first = page(&mut world, &mut sell, 0);
    assert_eq!((first.sessions.len(), first.next), (256, Some(256)));
    let second = page(&mut world, &mut sell, 256);
    assert_eq!((second.sessions.len(), second.next), (44, None));
    let seven = &first.sessions[7];
    assert_eq!(seven.id, id("SELL", "B7"));
    assert_eq!((seven.state, seven.role), (State::LoggedOn, Role::Acceptor));
    assert_eq!((seven.next_sender, seven.next_target), (2, 2));
    assert_eq!(seven.port, Some(address));
    assert_eq!(seven.silent.unwrap() / SECOND, 3);
    assert!(seven.peer.is_some() && !seven.is_stopped && !seven.is_made);
    let other = &first.sessions[8];
    assert_eq!(
        (other.state, other.peer, other.silent),
        (State::Idle, None, None)
    );
    assert!(page(&mut world, &mut sell, usize::MAX).sessions.is_empty());
}

#[test]
fn a_stopped_session_stays_out_until_it_is_started_on_either_side() {
    let (mut world, mut buy, mut sell, address) = pair();
    let (ours, theirs) = (id("SELL", "BUY"), id("BUY", "SELL"));
    let stop = || Steer::Stop("closed".to_owned());
    steer(&mut world, &mut [&mut sell, &mut buy], &ours, stop()).unwrap();
    assert!(lines(&mut buy).contains(&"SELL: the counterparty logged out".to_owned()));
    for _ in 0..5 {
        world.wait(40);
        world.run(&mut [&mut buy, &mut sell]);
    }
    let said = lines(&mut sell);
    assert!(
        said.contains(&"session FIX.4.4:SELL->BUY is stopped".to_owned()),
        "{said:?}"
    );
    assert!(!sell.hosted[0].session.is_connected());
    let twice = steer(&mut world, &mut [&mut sell], &ours, stop()).unwrap_err();
    assert_eq!(twice.to_string(), "session FIX.4.4:SELL->BUY is stopped");
    steer(&mut world, &mut [&mut sell], &ours, Steer::Start).unwrap();
    world.wait(40);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(sell.hosted[0].session.is_logged_on());
    // A stopped initiator does not connect, and a started one connects at once.
    steer(&mut world, &mut [&mut buy, &mut sell], &theirs, stop()).unwrap();
    world.wait(100);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(!sell.hosted[0].session.is_connected());
    let info = &page(&mut world, &mut buy, 0).sessions[0];
    assert!(info.is_stopped && info.port.is_none(), "{info:?} {address}");
    steer(
        &mut world,
        &mut [&mut buy, &mut sell],
        &theirs,
        Steer::Start,
    )
    .unwrap();
    assert!(sell.hosted[0].session.is_logged_on());
    let again = steer(&mut world, &mut [&mut buy], &theirs, Steer::Start).unwrap_err();
    assert_eq!(
        again.to_string(),
        "session FIX.4.4:BUY->SELL is not stopped"
    );
}

#[test]
fn a_reset_starts_both_sides_at_1_and_no_message_is_lost() {
    let (mut world, mut buy, mut sell, _) = pair();
    for i in 0..3 {
        order(&mut buy, world.now, &format!("before {i}"));
    }
    world.run(&mut [&mut buy, &mut sell]);
    steer(
        &mut world,
        &mut [&mut sell, &mut buy],
        &id("SELL", "BUY"),
        Steer::Reset { force: false },
    )
    .unwrap();
    assert!(buy.hosted[0].session.is_logged_on());
    assert_eq!((numbers(&sell, 0), numbers(&buy, 0)), ((2, 2), (2, 2)));
    order(&mut buy, world.now, "after");
    world.run(&mut [&mut buy, &mut sell]);
    let said = lines(&mut sell);
    let orders = said.iter().filter(|line| line.contains(": D "));
    let expected = ["before 0", "before 1", "before 2", "after"].map(|id| format!("BUY: D {id}"));
    assert!(orders.eq(&expected), "{said:?}");
    // Without a connection both sides reset their numbers.
    log_out(&mut buy, world.now);
    world.run(&mut [&mut buy, &mut sell]);
    for (host, id) in [
        (&mut sell, id("SELL", "BUY")),
        (&mut buy, id("BUY", "SELL")),
    ] {
        steer(
            &mut world,
            &mut [&mut *host],
            &id,
            Steer::Reset { force: false },
        )
        .unwrap();
        assert_eq!(numbers(host, 0), (1, 1));
    }
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!((numbers(&sell, 0), numbers(&buy, 0)), ((2, 2), (2, 2)));
}

#[test]
fn an_initiator_without_a_connection_asks_for_its_reset_in_the_next_logon() {
    let (mut world, mut buy, mut sell, _) = pair();
    order(&mut buy, world.now, "x");
    world.run(&mut [&mut buy, &mut sell]);
    log_out(&mut buy, world.now);
    world.run(&mut [&mut buy, &mut sell]);
    let wish = Steer::Reset { force: false };
    steer(&mut world, &mut [&mut buy], &id("BUY", "SELL"), wish).unwrap();
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(buy.hosted[0].session.is_logged_on());
    assert_eq!((numbers(&sell, 0), numbers(&buy, 0)), ((2, 2), (2, 2)));
}

#[test]
fn a_reset_that_discards_messages_has_to_be_forced() {
    let (mut world, mut buy, mut sell, _) = pair();
    let set = Steer::SetNumbers {
        sender: Some(50),
        target: None,
        force: false,
    };
    steer(&mut world, &mut [&mut buy], &id("BUY", "SELL"), set).unwrap();
    order(&mut buy, world.now, "x");
    buy.do_work(world.now).unwrap();
    world.run(&mut [&mut sell]);
    let ours = id("SELL", "BUY");
    let mut reset = |force| steer(&mut world, &mut [&mut sell], &ours, Steer::Reset { force });
    let error = reset(false).unwrap_err();
    assert!(matches!(error, HostError::Missing(_)), "{error}");
    reset(true).unwrap();
}

#[test]
fn numbers_are_changed_both_or_none() {
    let (mut world, mut buy, mut sell, _) = pair();
    let ours = id("SELL", "BUY");
    let set = |sender, target, force| Steer::SetNumbers {
        sender,
        target,
        force,
    };
    let mut ask = |wish| steer(&mut world, &mut [&mut sell, &mut buy], &ours, wish);
    for wrong in [0, MAX_SEQ_NUM + 1, u64::MAX] {
        let error = ask(set(Some(9), Some(wrong), true)).unwrap_err();
        assert!(
            matches!(error, HostError::Number(number) if number == wrong),
            "{error}"
        );
    }
    let error = ask(set(Some(1), Some(9), false)).unwrap_err();
    let told = "the next message of FIX.4.4:SELL->BUY has 2: its counterparty would take 1 as too \
                low and log out";
    assert_eq!(error.to_string(), told);
    ask(set(Some(50), Some(2), false)).unwrap();
    assert_eq!(numbers(&sell, 0), (50, 2));
    order(&mut buy, world.now, "x");
    world.run(&mut [&mut buy, &mut sell]);
    // The response had number 50, and the counterparty received a gap fill for those before.
    assert!(lines(&mut buy).contains(&"SELL: 8 x".to_owned()));
    assert_eq!(numbers(&buy, 0).1, numbers(&sell, 0).0);
}

#[test]
fn a_session_whose_store_fails_under_a_command_may_connect_again() {
    let (base, store) = journals("steer");
    let mut world = World::new();
    let port = Acceptor::new(LOOPBACK).session_with(config("SELL", "BUY"), store);
    let (mut sell, address) = acceptor(port);
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    // A lower number begins a file, which has no folder any more.
    std::fs::remove_dir_all(&base.0).unwrap();
    let wish = Steer::SetNumbers {
        sender: Some(1),
        target: None,
        force: true,
    };
    let ours = id("SELL", "BUY");
    let error = steer(&mut world, &mut [&mut sell, &mut buy], &ours, wish).unwrap_err();
    let is_of_store = matches!(error, HostError::Send(SendError::Store(_)));
    assert!(is_of_store && sell.hosted[0].link.is_none(), "{error}");
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(sell.hosted[0].session.is_logged_on());
}

#[test]
fn numbers_set_after_an_unanswered_reset_stay_on_either_side() {
    for is_buyer in [false, true] {
        let (mut world, mut buy, mut sell, _) = pair();
        let (buyer, seller) = (id("BUY", "SELL"), id("SELL", "BUY"));
        let (host, own) = match is_buyer {
            true => (&mut buy, &buyer),
            false => (&mut sell, &seller),
        };
        for wish in [Steer::Reset { force: false }, Steer::Disconnect] {
            steer(&mut world, &mut [&mut *host], own, wish).unwrap();
        }
        assert!(host.hosted[0].session.is_reset_open());
        world.run(&mut [&mut buy, &mut sell]);
        let set = |sender, target| Steer::SetNumbers {
            sender: Some(sender),
            target: Some(target),
            force: false,
        };
        steer(&mut world, &mut [&mut sell], &seller, set(500, 700)).unwrap();
        steer(&mut world, &mut [&mut buy], &buyer, set(700, 500)).unwrap();
        world.wait(2);
        world.run(&mut [&mut buy, &mut sell]);
        // A Logon with ResetSeqNumFlag would start both sides at 1.
        let both = (numbers(&sell, 0), numbers(&buy, 0));
        assert_eq!(both, ((501, 701), (701, 501)), "{is_buyer}");
    }
}

#[test]
fn what_is_not_there_is_said() {
    let (mut world, mut buy, mut sell, _) = pair();
    let nobody = id("SELL", "NOBODY");
    let error = steer(&mut world, &mut [&mut sell], &nobody, Steer::Disconnect).unwrap_err();
    assert!(matches!(error, HostError::Unknown(_)));
    let ours = id("SELL", "BUY");
    steer(
        &mut world,
        &mut [&mut sell, &mut buy],
        &ours,
        Steer::Disconnect,
    )
    .unwrap();
    assert!(lines(&mut sell).contains(&"BUY: closed by the application".to_owned()));
    for wish in [Steer::Disconnect, Steer::LogOut(String::new())] {
        let error = steer(&mut world, &mut [&mut sell], &ours, wish).unwrap_err();
        assert_eq!(
            error.to_string(),
            "session FIX.4.4:SELL->BUY has no connection"
        );
    }
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    let wish = Steer::LogOut("bye".to_owned());
    steer(&mut world, &mut [&mut sell, &mut buy], &ours, wish).unwrap();
    assert!(lines(&mut sell).contains(&"BUY: logged out".to_owned()));
}

#[test]
fn a_template_makes_a_session_at_an_operators_wish() {
    let mut world = World::new();
    let store = StoreKind::NoResend(1 << 16);
    let settings = Acceptor::new(LOOPBACK).anybody(config("-", "-"), store, 2);
    let (mut sell, address) = acceptor(settings);
    let wanted = id("SELL", "LATER");
    let mut make = |world: &mut World, port, id: &SessionId| {
        let mut pending = sell.handle().make(port, id);
        world.run(&mut [&mut sell]);
        pending.poll().expect("an answer")
    };
    make(&mut world, Some(address), &wanted).unwrap();
    assert!(matches!(
        make(&mut world, None, &wanted),
        Err(HostError::Duplicate(_))
    ));
    let nowhere = "127.0.0.1:1".parse().unwrap();
    let other = id("SELL", "OTHER");
    assert!(matches!(
        make(&mut world, Some(nowhere), &other),
        Err(HostError::NoPort(_))
    ));
    make(&mut world, None, &other).unwrap();
    let info = &page(&mut world, &mut sell, 0).sessions[0];
    assert!(info.is_made && info.id == wanted, "{info:?}");
    // Its numbers are set before it has ever logged on.
    let wish = Steer::SetNumbers {
        sender: Some(7),
        target: Some(1),
        force: false,
    };
    steer(&mut world, &mut [&mut sell], &wanted, wish).unwrap();
    let mut buy = initiator("LATER", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    // The counterparty requests the missing messages.
    assert_eq!(numbers(&sell, 0), (8, 3));
    let mut removed = sell.handle().remove(&other);
    world.run(&mut [&mut buy, &mut sell]);
    removed.poll().expect("an answer").unwrap();
    let told = "removed FIX.4.4:SELL->OTHER".to_owned();
    assert!(lines(&mut sell).contains(&told));
}

#[test]
fn a_session_that_is_made_has_the_qualifier_of_its_template() {
    let mut world = World::new();
    let mut wildcard = Wildcard::anybody(&config("-", "-"), StoreKind::NoResend(1 << 16), 2);
    wildcard.qualified = true;
    let (mut sell, _) = acceptor(Acceptor::new(LOOPBACK).wildcard(wildcard));
    let make = |world: &mut World, sell: &mut Host<Diary>| {
        let mut pending = sell.handle().make(None, &id("SELL", "A"));
        world.run(&mut [sell]);
        pending.poll().expect("an answer")
    };
    let made = make(&mut world, &mut sell).unwrap();
    assert_eq!(made.to_string(), "FIX.4.4:SELL->A:1");
    let second = make(&mut world, &mut sell).unwrap();
    assert_eq!(second.to_string(), "FIX.4.4:SELL->A:2");
    let third = make(&mut world, &mut sell);
    assert!(matches!(third, Err(HostError::Refused(_))), "{third:?}");
    let wish = Steer::SetNumbers {
        sender: Some(7),
        target: Some(1),
        force: false,
    };
    steer(&mut world, &mut [&mut sell], &made, wish).unwrap();
    assert_eq!(numbers(&sell, 0), (7, 1));
}

#[test]
fn the_answer_to_a_test_request_is_measured() {
    let (mut world, mut buy, mut sell, _) = pair();
    let ours = id("SELL", "BUY");
    let trip =
        |world: &mut World, host: &mut Host<Diary>| page(world, host, 0).sessions[0].round_trip;
    assert_eq!(trip(&mut world, &mut sell), None);
    steer(&mut world, &mut [&mut sell], &ours, Steer::TestRequest).unwrap();
    world.wait(3);
    world.run(&mut [&mut buy, &mut sell]);
    let took = trip(&mut world, &mut sell).expect("an answer");
    assert_eq!(took / SECOND, 3);
    log_out(&mut buy, world.now);
    world.run(&mut [&mut buy, &mut sell]);
    let refused = steer(&mut world, &mut [&mut sell], &ours, Steer::TestRequest).unwrap_err();
    assert!(matches!(refused, HostError::NotConnected(id) if id == ours));
}

#[test]
fn the_counterparty_of_a_stopped_session_gets_the_next_qualifier() {
    let mut world = World::new();
    let store = StoreKind::NoResend(1 << 16);
    let mut wildcard = Wildcard::anybody(&config("-", "-"), store, 5);
    wildcard.qualified = true;
    let (mut sell, address) = acceptor(Acceptor::new(LOOPBACK).wildcard(wildcard));
    let mut session = config("A", "SELL");
    session.reset_on_logon = true;
    let mut buy = initiating(Initiator::new(session, vec![address]));
    world.run(&mut [&mut buy, &mut sell]);
    let first = sell.hosted[0].session.config().id.clone();
    let mut turn = |wish, expected: [(&str, bool); 2]| {
        steer(&mut world, &mut [&mut sell, &mut buy], &first, wish).unwrap();
        world.wait(40);
        world.run(&mut [&mut buy, &mut sell]);
        let sessions = sell.hosted.iter().map(|hosted| &hosted.session);
        let sessions = sessions.map(|own| (own.config().id.to_string(), own.is_logged_on()));
        let expected = expected.map(|(id, is_up)| (id.to_owned(), is_up));
        assert_eq!(sessions.collect::<Vec<_>>(), expected);
    };
    let second_alone = [("FIX.4.4:SELL->A:1", false), ("FIX.4.4:SELL->A:2", true)];
    turn(Steer::Stop("closed".to_owned()), second_alone);
    turn(Steer::Start, second_alone);
}
