//! Administrative messages with fields of the application.

use super::*;
use fanfare_fix::session::AdminHook;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A handler that checks the signature of each Logon: text and number.
#[derive(Default)]
struct Checks {
    seen: Vec<String>,
    ups: usize,
}

impl Handler for Checks {
    fn on_message(&mut self, _: &mut Peer<'_>, _: &AppMessage<'_>) {}

    fn on_logon_request(&mut self, _: &mut Peer<'_>, logon: &Message<'_>) -> Verdict {
        let text = |tag| String::from_utf8_lossy(logon.get(tag).unwrap_or_default()).into_owned();
        assert_eq!(text(96), format!("{} {} signed", text(52), text(34)));
        self.seen.push(text(96));
        Verdict::Accept
    }

    fn on_logon(&mut self, _: &mut Peer<'_>) {
        self.ups += 1;
    }
}

fn run<H: Handler>(world: &mut World, buy: &mut Host<Diary>, sell: &mut Host<H>) {
    for _ in 0..300 {
        world.now.mono += 1_000_000;
        buy.do_work(world.now).unwrap();
        sell.do_work(world.now).unwrap();
        std::thread::yield_now();
    }
}

#[test]
fn each_logon_of_an_initiator_is_signed_anew() {
    let asking = Config {
        ask_logon: true,
        ..config("SELL", "BUY")
    };
    let mut sell = Host::new(Checks::default()).unwrap();
    let address = sell
        .listen(Acceptor::new(LOOPBACK).session(asking))
        .unwrap();
    let mut session = config("BUY", "SELL");
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    session.admin_hook = Some(AdminHook::new(move |message, out| {
        if message.msg_type == b"A" {
            counted.fetch_add(1, Ordering::Relaxed);
            let time = String::from_utf8_lossy(message.sending_time);
            let signed = format!("{time} {} signed", message.seq);
            out.data(95, 96, signed.as_bytes());
        }
    }));
    let mut buy = initiating(Initiator::new(session, vec![address]));
    let mut world = World::new();
    for round in 1..=3 {
        run(&mut world, &mut buy, &mut sell);
        assert_eq!(sell.handler().ups, round);
        let mut handle = buy
            .handle()
            .session(&buy.hosted[0].session.config().id)
            .unwrap();
        handle.disconnect().unwrap();
        run(&mut world, &mut buy, &mut sell);
        world.wait(3);
    }
    let seen = &mut sell.handler().seen;
    seen.dedup();
    assert_eq!((seen.len(), calls.load(Ordering::Relaxed)), (3, 3));
}

#[test]
fn a_hook_that_panics_ends_its_session_and_no_other() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY", "GOOD"]);
    let mut session = config("BUY", "SELL");
    session.admin_hook = Some(AdminHook::new(|_, _| panic!("no key")));
    let mut buy = initiating(Initiator::new(session, vec![address]));
    let good = Initiator::new(config("GOOD", "SELL"), vec![address]);
    buy.initiate(good).unwrap();
    world.run(&mut [&mut buy, &mut sell]);
    let mut said = lines(&mut buy);
    said.sort();
    let expected = "SELL: cannot encode a message of the session: 0 is not a valid tag";
    assert!(said[0].starts_with(expected), "{said:?}");
    assert_eq!(said.last().unwrap(), "SELL: logged on");
}
