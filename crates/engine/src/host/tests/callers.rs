//! Callers of a port: sessions that share it, strangers, connections without a Logon.

use super::*;

#[test]
fn many_sessions_share_a_port_and_strangers_get_nothing() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["A", "B", "C"]);
    let mut buyers = ["A", "B", "C", "X"].map(|name| initiator(name, &[address]));
    for _ in 0..3 {
        let [a, b, c, x] = &mut buyers;
        world.run(&mut [a, b, c, x, &mut sell]);
    }
    let mut said = lines(&mut sell);
    said.sort();
    let expected = ["A: logged on", "B: logged on", "C: logged on"];
    assert_eq!(said[..3], expected);
    assert!(
        said[3..]
            .iter()
            .all(|line| line == "no session FIX.4.4:SELL->X"),
        "{said:?}"
    );
    assert!(!said[3..].is_empty());
    for buyer in &mut buyers[..3] {
        order(buyer, world.now, "o");
    }
    let [a, b, c, _] = &mut buyers;
    world.run(&mut [a, b, c, &mut sell]);
    for buyer in &mut buyers[..3] {
        assert_eq!(lines(buyer), ["SELL: logged on", "SELL: 8 o"]);
    }
    assert!(
        lines(&mut buyers[3])
            .iter()
            .all(|line| line == "SELL: connection lost")
    );
}

#[test]
fn a_second_connection_for_a_live_session_is_closed_and_the_first_goes_on() {
    let (mut world, mut first, mut sell, address) = pair();
    let mut second = initiator("BUY", &[address]);
    world.run(&mut [&mut second, &mut sell]);
    assert_eq!(lines(&mut second), ["SELL: connection lost"]);
    assert!(lines(&mut sell).contains(&"session FIX.4.4:SELL->BUY has a connection".to_owned()));
    order(&mut first, world.now, "still here");
    world.run(&mut [&mut first, &mut sell]);
    assert_eq!(lines(&mut first), ["SELL: logged on", "SELL: 8 still here"]);
}

#[test]
fn anybody_is_let_in_up_to_the_limit() {
    let mut world = World::new();
    let settings =
        Acceptor::new(LOOPBACK).anybody(config("-", "-"), StoreKind::NoResend(1 << 16), 2);
    let (mut sell, address) = acceptor(settings);
    let mut buyers = ["P", "Q", "R"].map(|name| initiator(name, &[address]));
    for buyer in &mut buyers {
        world.run(&mut [buyer, &mut sell]);
    }
    let said = lines(&mut sell);
    assert_eq!(
        said[..3],
        [
            "P: logged on",
            "Q: logged on",
            "the limit of 2 sessions made for Logons is reached"
        ]
    );
}

#[test]
fn a_stranger_with_a_long_name_leaves_nothing_behind() {
    let mut world = World::new();
    let settings =
        Acceptor::new(LOOPBACK).anybody(config("-", "-"), StoreKind::NoResend(1 << 16), 2);
    let (mut sell, address) = acceptor(settings);
    let long = "P".repeat(6000);
    let mut buyer = initiator(&long, &[address]);
    world.run(&mut [&mut buyer, &mut sell]);
    let why = "SenderCompID(49) has 6000 bytes, more than 64";
    assert_eq!(lines(&mut sell)[..1], [why]);
    assert!(sell.hosted.is_empty());
    // A session named in the settings may have such a name.
    let (mut sell, address) = seller(&[&long]);
    let mut buyer = initiator(&long, &[address]);
    world.run(&mut [&mut buyer, &mut sell]);
    assert_eq!(lines(&mut buyer), ["SELL: logged on"]);
}

#[test]
fn a_connection_that_says_nothing_or_nonsense_is_closed_without_a_word() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    let silent = TcpStream::connect(address).unwrap();
    let mut nonsense = TcpStream::connect(address).unwrap();
    nonsense
        .write_all(b"GET / HTTP/1.0\r\n\r\n8=FIX.4.4\x019=5\x0135=0\x0110=000\x01")
        .unwrap();
    world.run(&mut [&mut sell]);
    assert_eq!(lines(&mut sell), ["first bytes are not a FIX message"]);
    assert_eq!(rest(nonsense), b"");
    world.wait(9);
    world.run(&mut [&mut sell]);
    assert_eq!(lines(&mut sell), [""; 0]);
    world.wait(2);
    world.run(&mut [&mut sell]);
    assert_eq!(lines(&mut sell), ["no Logon in time"]);
    assert_eq!(rest(silent), b"");
}

#[test]
fn callers_beyond_the_limit_or_off_the_list_are_turned_away() {
    let mut world = World::new();
    let settings = Acceptor {
        options: PortOptions {
            max_without_logon: 2,
            ..PortOptions::new()
        },
        ..Acceptor::new(LOOPBACK)
    };
    let (mut sell, address) = acceptor(settings);
    let mut turned_away = Vec::new();
    for _ in 0..4 {
        turned_away.push(TcpStream::connect(address).unwrap());
        world.run(&mut [&mut sell]);
        world.wait(1);
    }
    let why = "too many connections without a logon";
    assert_eq!(lines(&mut sell), [why; 2]);
    let stay = turned_away.split_off(2);
    for silent in turned_away {
        assert_eq!(rest(silent), b"");
    }
    world.wait(8);
    world.run(&mut [&mut sell]);
    assert_eq!(lines(&mut sell), ["no Logon in time"], "the third");
    drop(stay);
    let networks = vec!["10.0.0.0/8".parse().unwrap()];
    let (mut sell, address) = acceptor(Acceptor::new(LOOPBACK).allow(networks));
    let caller = TcpStream::connect(address).unwrap();
    world.run(&mut [&mut sell]);
    assert_eq!(lines(&mut sell), ["address not on the allow list"]);
    assert_eq!(rest(caller), b"");
}
