//! Connections that have not logged on.

use super::*;

pub(super) fn framed(body: &str) -> String {
    let text = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
    let sum = text.bytes().fold(0, u8::wrapping_add);
    format!("{text}10={sum:03}\x01")
}

/// Returns a message of BUY to SELL; `more` are the fields behind the header, with `|` for SOH.
pub(super) fn of_buy(kind: &str, seq: u32, more: &str) -> String {
    let body = format!("35={kind}|34={seq}|49=BUY|52=20260202-02:40:00|56=SELL|{more}");
    framed(&body.replace('|', "\x01"))
}

#[test]
fn a_logon_may_come_byte_by_byte_but_is_not_longer_than_it_may_be() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    let mut caller = TcpStream::connect(address).unwrap();
    caller.set_nodelay(true).unwrap();
    let body = "35=A\x0134=1\x0149=BUY\x0152=20260202-02:40:00\x0156=SELL\x0198=0\x01108=30\x01";
    for byte in framed(body).bytes() {
        caller.write_all(&[byte]).unwrap();
        world.run(&mut [&mut sell]);
    }
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
    let long = "p".repeat(8192);
    for front in [
        "8=FIX.4.4\x019=60000\x0135=A\x01".to_owned(),
        format!("8=FIX.4.4\x01{}", "x".repeat(8193)),
        // A whole Logon, in one read.
        framed(&format!("{body}554={long}\x01")),
    ] {
        let mut caller = TcpStream::connect(address).unwrap();
        caller.write_all(front.as_bytes()).unwrap();
        world.run(&mut [&mut sell]);
        assert_eq!(
            lines(&mut sell),
            ["first message is longer than 8192 bytes"]
        );
    }
}

#[test]
fn of_one_address_only_so_many_wait_and_the_oldest_goes() {
    let mut world = World::new();
    let settings = Acceptor {
        options: PortOptions {
            max_without_logon_per_address: 2,
            ..PortOptions::new()
        },
        ..Acceptor::new(LOOPBACK).session(config("SELL", "BUY"))
    };
    let (mut sell, address) = acceptor(settings);
    let callers: Vec<TcpStream> = (0..5)
        .map(|_| {
            let caller = TcpStream::connect(address).unwrap();
            world.run(&mut [&mut sell]);
            caller
        })
        .collect();
    let why = "too many connections of this address without a logon";
    assert_eq!(lines(&mut sell), [why; 3]);
    let is_open = |mut caller: &TcpStream| {
        caller.set_nonblocking(true).unwrap();
        caller
            .read(&mut [0])
            .is_err_and(|e| e.kind() == std::io::ErrorKind::WouldBlock)
    };
    let open: Vec<bool> = callers.iter().map(is_open).collect();
    assert_eq!(open, [false, false, false, true, true]);
    // A connection of another address is accepted, and so is a Logon of this one.
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut buy), ["SELL: logged on"]);
}

#[test]
fn a_turn_looks_at_few_strangers_and_all_sessions() {
    let (mut world, mut buy, mut sell, address) = pair();
    let mut others: Vec<TcpStream> = (0..100)
        .map(|_| TcpStream::connect(address).unwrap())
        .collect();
    world.run(&mut [&mut buy, &mut sell]);
    lines(&mut sell);
    // Each of them sends bytes that end it.
    for other in &mut others {
        other
            .write_all(b"8=FIX.4.4\x019=5\x0135=0\x0110=163\x01")
            .unwrap();
    }
    order(&mut buy, world.now, "mine");
    sell.before_sleep();
    let mut turns = 0;
    let mut refused = 0;
    while refused < others.len() {
        world.now.mono += 200_000;
        sell.do_work(world.now).unwrap();
        let said = lines(&mut sell);
        let now = said
            .iter()
            .filter(|line| line.contains("not a Logon"))
            .count();
        assert!(now <= 2 * port::STEPS, "{now} in one turn");
        refused += now;
        turns += 1;
        assert!(turns < 10_000);
    }
    assert!(turns >= 5);
}
