//! Handlers that panic.

use super::greetings::framed;
use super::*;

/// Returns a seller with buyers A and B, logged on.
fn two() -> (World, Host<Diary>, Host<Diary>, Host<Diary>) {
    let mut world = World::new();
    let (mut sell, address) = seller(&["A", "B"]);
    let mut a = initiator("A", &[address]);
    let mut b = initiator("B", &[address]);
    world.run(&mut [&mut a, &mut b, &mut sell]);
    lines(&mut sell);
    (world, a, b, sell)
}

#[test]
fn a_panic_over_a_message_ends_its_session_alone_and_the_message_comes_again() {
    let (mut world, mut a, mut b, mut sell) = two();
    sell.handler().bomb = Some("bomb");
    for id in ["one", "bomb", "two"] {
        order(&mut a, world.now, id);
    }
    order(&mut b, world.now, "other");
    world.run(&mut [&mut a, &mut b, &mut sell]);
    order(&mut b, world.now, "later");
    world.run(&mut [&mut a, &mut b, &mut sell]);
    let mut said = lines(&mut sell);
    let of_b: Vec<String> = said.extract_if(.., |line| line.starts_with("B:")).collect();
    assert_eq!(of_b, ["B: D other", "B: D later"]);
    assert_eq!(
        said,
        [
            "A: D one",
            "A: panic over bomb",
            "A: the application panicked"
        ]
    );
    assert_eq!(sell.panics(), 1);
    assert_eq!(
        lines(&mut b),
        ["SELL: logged on", "SELL: 8 other", "SELL: 8 later"]
    );
    assert!(lines(&mut a).contains(&"SELL: the counterparty logged out".to_owned()));
    sell.handler().bomb = None;
    world.wait(5);
    world.run(&mut [&mut a, &mut b, &mut sell]);
    assert_eq!(
        lines(&mut sell),
        ["A: logged on", "A: D bomb again", "A: D two again"]
    );
}

#[test]
fn a_panic_in_the_handlers_own_turn_ends_the_session_that_it_took() {
    let (mut world, mut a, mut b, mut sell) = two();
    sell.handler().bomb_in_turn = true;
    world.run(&mut [&mut a, &mut b, &mut sell]);
    let said = lines(&mut sell);
    assert_eq!(said[0], "A: panic in its turn");
    assert_eq!(said[1], "A: the application panicked");
    assert!(sell.hosted[1].session.is_logged_on());
    order(&mut b, world.now, "on");
    world.run(&mut [&mut a, &mut b, &mut sell]);
    assert_eq!(lines(&mut sell).last().unwrap(), "B: D on");
    assert_eq!(sell.panics(), 1);
}

#[test]
fn the_counterparty_gets_a_logout_with_a_reason() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["A"]);
    sell.handler().bomb = Some("bomb");
    let mut caller = TcpStream::connect(address).unwrap();
    let names = "49=A\x0152=20260202-02:40:00\x0156=SELL\x01";
    let logon = format!("35=A\x0134=1\x01{names}98=0\x01108=30\x01");
    let order = format!("35=D\x0134=2\x01{names}11=bomb\x01");
    for body in [logon, order] {
        caller.write_all(framed(&body).as_bytes()).unwrap();
        world.run(&mut [&mut sell]);
    }
    let said = String::from_utf8(rest(caller)).unwrap();
    assert!(said.contains("\x0135=5\x01"), "{said}");
    assert!(said.contains("\x0158=internal error\x01"), "{said}");
    assert_eq!(sell.panics(), 1);
}
