//! The last bytes of sessions that have ended.

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
