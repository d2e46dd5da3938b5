//! Sessions that end, and their last bytes.

use super::greetings::of_buy;
use super::*;

/// Sends orders to a buyer that does not read, until some of them wait. Returns their number.
fn orders_that_wait(world: &World, sell: &mut Host<Diary>) -> usize {
    let text = "x".repeat(10_000);
    for sent in 1..10_000 {
        order(sell, world.now, &text);
        if sell.hosted[0].unsent() > 0 {
            return sent;
        }
    }
    panic!("the kernel takes everything");
}

/// Checks that a buyer that logs out before it reads gets everything that was sent, and the Logout
/// in answer to its own.
pub(super) fn a_slow_buyer_logs_out(mut world: World, mut buy: Host<Diary>, mut sell: Host<Diary>) {
    let sent = orders_that_wait(&world, &mut sell);
    log_out(&mut buy, world.now);
    world.run(&mut [&mut sell]);
    assert!(sell.hosted[0].link.is_none());
    world.run(&mut [&mut buy, &mut sell]);
    let said = lines(&mut buy);
    let received = said.iter().filter(|line| line.contains(": D x")).count();
    assert_eq!(received, sent);
    assert!(said.contains(&"SELL: logged out".to_owned()));
}

#[test]
fn a_session_that_has_ended_sends_what_waits() {
    let (world, buy, sell, _) = pair();
    a_slow_buyer_logs_out(world, buy, sell);
}

#[test]
fn a_session_that_its_handler_closes_in_its_turn_loses_its_connection() {
    let (mut world, mut buy, mut sell, _) = pair();
    // The handler returns that it has done no work.
    sell.handler().closes_in_turn = true;
    world.run(&mut [&mut buy, &mut sell]);
    assert!(lines(&mut sell).contains(&"BUY: closed by the application".to_owned()));
    assert!(sell.hosted[0].link.is_none());
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(sell.hosted[0].session.is_logged_on());
    let (open, ports) = (sell.slots.len(), sell.ports.len());
    assert_eq!(open, ports + 1, "one connection");
}

#[test]
fn a_handler_touches_only_what_it_changes() {
    let (world, _buy, mut sell, _) = pair();
    let mut peers = handler_peers(&mut sell, world.now);
    let mut peer = peers.get(SessionKey(0)).unwrap();
    assert!(peer.is_logged_on() && peer.make_room().is_ok());
    assert!(peers.logged_on().all(|peer| peer.queued() == 0));
    assert!(!peers.touched.get());
    peers.logged_on().for_each(|mut peer| peer.close());
    assert!(peers.touched.get() && sell.hosted[0].touched);
}

#[test]
fn a_host_that_stops_accepts_no_logon() {
    // In real time, because `on_close` continues with that.
    let now = crate::clock::Clock::new().read();
    let mut world = World { now };
    let session = |name: &str| Config {
        logout_timeout: SECOND / 10,
        ..config("SELL", name)
    };
    let port = Acceptor::new(LOOPBACK).session(session("A"));
    let (mut sell, address) = acceptor(port.session(session("B")));
    let mut a = initiator("A", &[address]);
    world.run(&mut [&mut a, &mut sell]);
    let mut b = initiator("B", &[address]);
    while b.hosted[0].link.is_none() {
        world.now.mono += 1_000_000;
        b.do_work(world.now).unwrap();
    }
    // The Logon of B has arrived, and A does not answer its Logout.
    sell.on_close(world.now);
    let said = lines(&mut sell);
    assert!(!said.contains(&"B: logged on".to_owned()), "{said:?}");
    world.run(&mut [&mut b]);
    assert!(lines(&mut b).contains(&"SELL: connection lost".to_owned()));
}

#[test]
fn a_client_that_sends_no_more_gets_what_waits() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    let mut caller = TcpStream::connect(address).unwrap();
    let logon = of_buy("A", 1, "98=0|108=30|");
    caller.write_all(logon.as_bytes()).unwrap();
    world.run(&mut [&mut sell]);
    let sent = orders_that_wait(&world, &mut sell);
    caller.write_all(of_buy("5", 2, "").as_bytes()).unwrap();
    caller.shutdown(std::net::Shutdown::Write).unwrap();
    caller.set_nonblocking(true).unwrap();
    let (mut all, mut room) = (Vec::new(), vec![0; 1 << 20]);
    // The time stands still, so that the client may take as long as it does.
    loop {
        sell.do_work(world.now).unwrap();
        if sell.hosted[0].link.is_some() {
            continue;
        }
        match caller.read(&mut room) {
            Ok(0) => break,
            Ok(count) => all.extend_from_slice(&room[..count]),
            Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock),
        }
    }
    let all = String::from_utf8(all).unwrap();
    assert_eq!(all.matches("\x0135=D\x01").count(), sent);
    let (_, last) = all.rsplit_once("8=FIX.4.4\x01").unwrap();
    assert!(last.contains("\x0135=5\x01"), "{last}");
    world.run(&mut [&mut sell]);
    let (open, ports) = (sell.slots.len(), sell.ports.len());
    assert_eq!(open, ports, "the connection is closed");
}
