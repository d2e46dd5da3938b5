//! Handlers that take nothing for a while.

use super::*;

fn run(world: &mut World, sell: &mut Host<Diary>, buyers: &mut [Host<Diary>]) {
    let mut hosts: Vec<_> = buyers.iter_mut().chain([sell]).collect();
    world.run(&mut hosts);
}

#[test]
fn a_counterparty_whose_messages_are_left_unread_is_not_silent() {
    // One is read directly, several are watched.
    for names in [&["BUY"][..], &["BUY", "A", "B"]] {
        let mut world = World::new();
        let (mut sell, address) = seller(names);
        let buyers = names.iter().map(|name| initiator(name, &[address]));
        let mut buyers: Vec<_> = buyers.collect();
        run(&mut world, &mut sell, &mut buyers);
        assert_eq!(lines(&mut sell).len(), names.len());
        // A TestRequest is under way when the handler takes no more.
        world.wait(37);
        world.run(&mut [&mut sell]);
        sell.handler().room = Some(0);
        order(&mut buyers[0], world.now, "one");
        // Longer than a message may be on its way.
        for _ in 0..20 {
            world.wait(10);
            run(&mut world, &mut sell, &mut buyers);
        }
        assert_eq!(lines(&mut sell), [""; 0]);
        sell.handler().room = None;
        run(&mut world, &mut sell, &mut buyers);
        assert_eq!(lines(&mut sell), ["BUY: D one"]);
        assert_eq!(lines(&mut buyers[0]), ["SELL: logged on", "SELL: 8 one"]);
        for host in buyers.iter().chain([&sell]) {
            assert!(
                host.hosted
                    .iter()
                    .all(|hosted| hosted.session.is_logged_on())
            );
        }
        // Once everything is read, the age of a message counts again.
        order(&mut buyers[0], world.now, "two");
        let link = sell.hosted[0].link.as_ref().unwrap();
        let until = std::time::Instant::now() + Duration::from_secs(60);
        while !link.connection.transport.has_unread() {
            assert!(
                std::time::Instant::now() < until,
                "the order does not arrive"
            );
            std::thread::yield_now();
        }
        world.wait(130);
        world.run(&mut [&mut sell]);
        run(&mut world, &mut sell, &mut buyers);
        let reason = format!("BUY: {}", DisconnectReason::SendingTime);
        let said = lines(&mut sell);
        assert!(said.contains(&reason), "{said:?}");
        assert!(!said.contains(&"BUY: D two".to_owned()), "{said:?}");
    }
}

#[test]
fn a_counterparty_that_sends_nothing_is_silent_while_another_one_is_left_unread() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY", "A"]);
    let mut buyers = ["BUY", "A"].map(|name| initiator(name, &[address]));
    run(&mut world, &mut sell, &mut buyers);
    assert_eq!(lines(&mut sell).len(), 2);
    sell.handler().room = Some(0);
    let [buy, _hung] = &mut buyers;
    order(buy, world.now, "one");
    for _ in 0..8 {
        world.wait(10);
        world.run(&mut [buy, &mut sell]);
    }
    let reason = DisconnectReason::HeartbeatTimeout;
    assert_eq!(lines(&mut sell), [format!("A: {reason}")]);
    assert!(sell.hosted[0].session.is_logged_on());
}
