//! Sessions made for their Logons, and ports that use only their own sessions.

use super::greetings::of_buy;
use super::*;

/// Returns a wildcard for counterparties with this prefix.
fn wildcard(target: &str, store: StoreKind, max_sessions: usize) -> Wildcard {
    let mut wildcard = Wildcard::anybody(&config("-", "-"), store, max_sessions);
    wildcard.pattern.target = IdPattern::parse(target).unwrap();
    for template in &mut wildcard.templates {
        template.ask_logon = true;
    }
    wildcard
}

/// Returns an acceptor that requires this password, `None` for a Logon without one.
fn guarded(settings: Acceptor, password: Option<&'static [u8]>) -> (Host<Diary>, SocketAddr) {
    let (mut host, address) = acceptor(settings);
    host.handler().password = password;
    (host, address)
}

fn in_memory() -> StoreKind {
    StoreKind::NoResend(1 << 16)
}

/// Connects an initiator with this CompID, and logs it out if it was admitted.
fn call(world: &mut World, sell: &mut Host<Diary>, name: &str, address: SocketAddr) -> Host<Diary> {
    let mut session = config(name, "SELL");
    session.reset_on_logon = true;
    let mut buyer = initiating(Initiator::new(session, vec![address]));
    world.run(&mut [&mut buyer, sell]);
    buyer
}

fn leave(world: &mut World, sell: &mut Host<Diary>, mut buyer: Host<Diary>) {
    log_out(&mut buyer, world.now);
    world.run(&mut [&mut buyer, sell]);
}

#[test]
fn a_logon_finds_the_first_pattern_that_it_fits() {
    let mut world = World::new();
    let mut narrow = wildcard("DESK*", in_memory(), 5);
    narrow.tag = 7;
    narrow.templates.retain(|t| t.id.version == Version::Fix42);
    let settings = Acceptor::new(LOOPBACK)
        .session(config("SELL", "DESK1"))
        .wildcard(narrow)
        .wildcard(wildcard("T*", in_memory(), 5));
    let (mut sell, address) = guarded(settings, None);
    let mut buyers = Vec::new();
    for name in ["DESK1", "DESK2", "TRADER", "CLERK"] {
        buyers.push(call(&mut world, &mut sell, name, address));
    }
    let expected = [
        "DESK1: logged on",
        "no session FIX.4.4:SELL->DESK2",
        "TRADER: logged on",
        "no session FIX.4.4:SELL->CLERK",
    ];
    assert_eq!(lines(&mut sell), expected);
}

#[test]
fn one_more_takes_the_place_of_who_has_been_away_for_longest() {
    let mut world = World::new();
    let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", in_memory(), 2));
    let (mut sell, address) = guarded(settings, None);
    for name in ["A", "B"] {
        let buyer = call(&mut world, &mut sell, name, address);
        leave(&mut world, &mut sell, buyer);
    }
    let c = call(&mut world, &mut sell, "C", address);
    let b = call(&mut world, &mut sell, "B", address);
    let _d = call(&mut world, &mut sell, "D", address);
    let said = lines(&mut sell);
    let told = |what: &str| said.iter().filter(|line| *line == what).count();
    assert_eq!(told("removed FIX.4.4:SELL->A"), 1, "{said:?}");
    assert_eq!(told("removed FIX.4.4:SELL->B"), 0, "{said:?}");
    assert_eq!(told("B: logged on"), 2, "{said:?}");
    let last = said.last().map(String::as_str);
    let expected = "the limit of 2 sessions made for Logons is reached";
    assert_eq!(last, Some(expected));
    assert_eq!(sell.hosted.len(), 2, "places are used again");
    drop((b, c));
}

#[test]
fn a_session_that_an_operator_made_keeps_its_place() {
    let mut world = World::new();
    let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", in_memory(), 2));
    let (mut sell, address) = guarded(settings, None);
    let kept = SessionId::new(Version::Fix44, "SELL", "KEPT");
    let mut made = sell.handle().make(None, &kept);
    world.run(&mut [&mut sell]);
    assert_eq!(made.poll().unwrap().unwrap(), kept);
    for name in ["A", "B"] {
        let buyer = call(&mut world, &mut sell, name, address);
        leave(&mut world, &mut sell, buyer);
    }
    let _b = call(&mut world, &mut sell, "B", address);
    let _c = call(&mut world, &mut sell, "C", address);
    let said = lines(&mut sell);
    let removed = said.iter().filter(|line| line.starts_with("removed"));
    let removed: Vec<_> = removed.collect();
    assert_eq!(removed, ["removed FIX.4.4:SELL->A"]);
    let expected = "the limit of 2 sessions made for Logons is reached";
    assert_eq!(said.last().map(String::as_str), Some(expected));
    assert!(sell.remote.key(&kept).is_some());
}

#[test]
fn strangers_leave_nothing_behind() {
    let mut world = World::new();
    let (base, store) = journals("made");
    let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", store, 2));
    let (mut sell, address) = guarded(settings, Some(b"secret"));
    for name in ["A", "B", "C", "D"] {
        let buyer = call(&mut world, &mut sell, name, address);
        drop(buyer);
        world.wait(3);
        world.run(&mut [&mut sell]);
    }
    let folders = || std::fs::read_dir(&base.0).map_or(0, Iterator::count);
    assert_eq!(folders(), 0);
    let said = lines(&mut sell);
    assert!(
        said.contains(&"removed FIX.4.4:SELL->D".to_owned()),
        "{said:?}"
    );
    assert!(
        !said.iter().any(|line| line.contains("logged on")),
        "{said:?}"
    );
    // A client that is admitted keeps the journal, and the place with it.
    for name in ["E", "F"] {
        let mut buyer = with_password_as(name, "secret", address);
        world.run(&mut [&mut buyer, &mut sell]);
        leave(&mut world, &mut sell, buyer);
    }
    let mut third = with_password_as("G", "secret", address);
    world.run(&mut [&mut third, &mut sell]);
    assert_eq!(folders(), 2);
    let mut again = with_password_as("E", "secret", address);
    world.run(&mut [&mut again, &mut sell]);
    let said = lines(&mut sell);
    assert_eq!(
        said.iter().filter(|line| *line == "E: logged on").count(),
        2
    );
    assert!(
        said.iter().any(|line| line.contains("the limit")),
        "{said:?}"
    );
}

/// Returns all files under a folder, with their contents.
fn files(folder: &std::path::Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => all.extend(files(&path)),
            false => all.push((path.clone(), std::fs::read(&path).unwrap())),
        }
    }
    all.sort();
    all
}

#[test]
fn a_stranger_who_is_refused_touches_no_store() {
    let mut world = World::new();
    let (base, store) = journals_of(StoreKind::BothWays, "asked");
    let listen = || {
        let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", store.clone(), 2));
        let (mut sell, address) = guarded(settings, Some(b"secret"));
        sell.handler().asks_strangers = true;
        (sell, address)
    };
    let (mut sell, address) = listen();
    let mut trader = with_password_as("TRADER", "secret", address);
    world.run(&mut [&mut trader, &mut sell]);
    leave(&mut world, &mut sell, trader);
    assert!(lines(&mut sell).contains(&"TRADER: logged on".to_owned()));
    drop(sell);
    let before = files(&base.0);
    assert!(!before.is_empty());
    // In another process the trader's session has to be made again.
    let (mut sell, address) = listen();
    for name in ["TRADER", "OTHER", "TRADER"] {
        let mut stranger = with_password_as(name, "guess", address);
        world.run(&mut [&mut stranger, &mut sell]);
        let said = lines(&mut stranger).join(" ");
        assert!(said.contains("refused our Logon"), "{said}");
        drop(stranger);
        world.run(&mut [&mut sell]);
    }
    let said = lines(&mut sell);
    assert_eq!(said[0], "no session FIX.4.4:SELL->TRADER: a stranger");
    assert!(sell.hosted.is_empty());
    assert!(files(&base.0) == before, "no file has changed");
    let mut trader = with_password_as("TRADER", "secret", address);
    world.run(&mut [&mut trader, &mut sell]);
    assert_eq!(lines(&mut sell), ["TRADER: logged on"]);
}

fn with_password_as(name: &str, password: &str, address: SocketAddr) -> Host<Diary> {
    let mut session = config(name, "SELL");
    session.reset_on_logon = true;
    session.logon_fields = vec![(554, password.as_bytes().into())];
    initiating(Initiator::new(session, vec![address]))
}

#[test]
fn with_qualifiers_the_same_comp_ids_have_a_session_for_each_connection() {
    let mut world = World::new();
    let mut qualified = wildcard("*", in_memory(), 5);
    qualified.qualified = true;
    let (mut sell, address) = guarded(Acceptor::new(LOOPBACK).wildcard(qualified), None);
    let first = call(&mut world, &mut sell, "A", address);
    let second = call(&mut world, &mut sell, "A", address);
    leave(&mut world, &mut sell, first);
    let _third = call(&mut world, &mut sell, "A", address);
    assert_eq!(sell.hosted.len(), 2, "the place that is free is taken");
    let ids = sell
        .hosted
        .iter()
        .map(|h| h.session.config().id.to_string());
    let ids: Vec<_> = ids.collect();
    assert_eq!(ids, ["FIX.4.4:SELL->A:1", "FIX.4.4:SELL->A:2"]);
    drop(second);
}

#[test]
fn a_session_is_reached_through_its_own_port_alone() {
    let mut world = World::new();
    let (mut sell, open) = acceptor(Acceptor::new(LOOPBACK).session(config("SELL", "OPEN")));
    let guarded = Acceptor::new(LOOPBACK).session(config("SELL", "GUARDED"));
    let inner = sell.listen(guarded).unwrap();
    let mut buyers = Vec::new();
    for (name, address) in [
        ("GUARDED", open),
        ("OPEN", inner),
        ("GUARDED", inner),
        ("OPEN", open),
    ] {
        buyers.push(call(&mut world, &mut sell, name, address));
    }
    let expected = [
        "no session FIX.4.4:SELL->GUARDED",
        "no session FIX.4.4:SELL->OPEN",
        "GUARDED: logged on",
        "OPEN: logged on",
    ];
    assert_eq!(lines(&mut sell), expected);
}

#[test]
fn a_client_that_logs_out_with_its_first_bytes_leaves_its_session() {
    let mut world = World::new();
    let (base, store) = journals_of(StoreKind::BothWays, "brief");
    let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", store, 2));
    let (mut sell, address) = guarded(settings, None);
    let logon = |seq| of_buy("A", seq, "98=0|108=30|");
    let all = [logon(1), of_buy("D", 2, "11=one|"), of_buy("5", 3, "")].concat();
    let mut caller = TcpStream::connect(address).unwrap();
    caller.write_all(all.as_bytes()).unwrap();
    world.run(&mut [&mut sell]);
    let expected = [
        "BUY: logged on",
        "BUY: D one",
        "BUY: the counterparty logged out",
    ];
    assert_eq!(lines(&mut sell), expected);
    let is_kept = |(path, bytes): &(PathBuf, Vec<u8>)| {
        let folder = path.parent().unwrap();
        folder.ends_with("received") && bytes.windows(8).any(|part| part == b"\x0111=one\x01")
    };
    assert!(files(&base.0).iter().any(is_kept));
    // The next Logon continues with the numbers.
    let mut caller = TcpStream::connect(address).unwrap();
    caller.write_all(logon(4).as_bytes()).unwrap();
    world.run(&mut [&mut sell]);
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
    let store = sell.hosted[0].session.store();
    assert_eq!((store.next_sender(), store.next_target()), (5, 5));
}

#[test]
fn a_client_that_the_handler_logs_out_at_once_leaves_its_session() {
    let mut world = World::new();
    let (base, store) = journals("sent-away");
    let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", store, 2));
    let (mut sell, address) = guarded(settings, None);
    sell.handler().logs_out = true;
    let _buyer = call(&mut world, &mut sell, "A", address);
    assert_eq!(lines(&mut sell), ["A: logged on", "A: logged out"]);
    assert!(!files(&base.0).is_empty());
}

#[test]
fn a_session_with_a_qualifier_begins_at_1_with_each_connection() {
    let mut world = World::new();
    let mut qualified = wildcard("*", in_memory(), 5);
    qualified.qualified = true;
    let (mut sell, address) = guarded(Acceptor::new(LOOPBACK).wildcard(qualified), Some(b"right"));
    for (with, begins) in [
        ("554=right|", "35=A|34=1|"),
        ("554=wrong|", "35=5|34=0|"),
        ("554=right|", "35=A|34=1|"),
    ] {
        let said = answer(&mut world, &mut sell, address, (1, with));
        assert!(said.contains(begins), "{with} {said}");
        assert_eq!(sell.hosted.len(), 1, "the place that is free is taken");
    }
}

/// Sends a Logon with this number and these fields, and returns the answer. The connection has
/// ended by then.
fn answer(
    world: &mut World,
    sell: &mut Host<Diary>,
    address: SocketAddr,
    (seq, with): (u32, &str),
) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    let logon = of_buy("A", seq, &format!("98=0|108=30|{with}"));
    stream.write_all(logon.as_bytes()).unwrap();
    world.run(&mut [&mut *sell]);
    let mut room = [0; 4096];
    let count = stream.read(&mut room).unwrap();
    drop(stream);
    world.run(&mut [&mut *sell]);
    String::from_utf8_lossy(&room[..count]).replace('\x01', "|")
}

#[test]
fn a_refusal_by_the_handler_uses_up_a_number_only_of_a_session_that_stays() {
    let (base, journal) = journals("unnumbered");
    for store in [in_memory(), journal] {
        let mut world = World::new();
        let settings = Acceptor::new(LOOPBACK).wildcard(wildcard("*", store, 5));
        let (mut sell, address) = guarded(settings, Some(b"right"));
        for (seq, with, begins) in [
            (1, "554=wrong|", "35=5|34=0|"),
            (1, "554=wrong|", "35=5|34=0|"),
            (1, "554=right|", "35=A|34=1|"),
            // The session has begun.
            (2, "554=wrong|", "35=5|34=2|"),
            (2, "554=right|", "35=A|34=3|"),
        ] {
            let said = answer(&mut world, &mut sell, address, (seq, with));
            assert!(said.contains(begins), "{with} {said}");
        }
    }
    drop(base);
}
