//! Resends whose messages the handler decides on.

use super::*;

/// Returns a pair whose buyer has sent the orders one, two and three. The second one came through a
/// handle. The seller forgets all of them.
fn forgetful(store: StoreKind) -> (World, Host<Diary>, Host<Diary>) {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    let settings = Initiator::new(config("BUY", "SELL"), vec![address]).store(store);
    let mut buy = initiating(settings);
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "one");
    let id = buy.hosted[0].session.config().id.clone();
    let mut handle = buy.handle().session(&id).unwrap();
    let sent = handle.send(b"D", |body| {
        body.str(11, "two");
    });
    sent.unwrap();
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "three");
    world.run(&mut [&mut buy, &mut sell]);
    let session = &mut sell.hosted[0].session;
    session.change_next_target(world.now, 2).unwrap();
    lines(&mut sell);
    lines(&mut buy);
    (world, buy, sell)
}

fn resent(host: &mut Host<Diary>) -> Vec<String> {
    let mut said = lines(host);
    said.retain(|line| line.starts_with("resend "));
    said
}

#[test]
fn the_handler_decides_on_each_message_of_a_resend() {
    let (_base, journals) = journals("decisions");
    for store in [StoreKind::default(), journals] {
        let (mut world, mut buy, mut sell) = forgetful(store);
        buy.handler().stale = Some(vec!["two"]);
        order(&mut buy, world.now, "four");
        world.run(&mut [&mut buy, &mut sell]);
        assert_eq!(
            resent(&mut buy),
            ["resend one", "resend two", "resend three", "resend four"]
        );
        assert_eq!(
            lines(&mut sell),
            ["BUY: D one again", "BUY: D three again", "BUY: D four"]
        );
        // The numbers of both sides agree.
        order(&mut buy, world.now, "five");
        world.run(&mut [&mut buy, &mut sell]);
        assert_eq!(lines(&mut sell), ["BUY: D five"]);
        assert_eq!(resent(&mut buy), [""; 0]);
    }
}

#[test]
fn a_handler_that_does_not_decide_sends_everything_again() {
    let (mut world, mut buy, mut sell) = forgetful(StoreKind::default());
    order(&mut buy, world.now, "four");
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(
        lines(&mut sell),
        [
            "BUY: D one again",
            "BUY: D two again",
            "BUY: D three again",
            "BUY: D four"
        ]
    );
}

#[test]
fn a_panic_over_a_resend_ends_the_session_and_the_message_is_asked_about_again() {
    let (mut world, mut buy, mut sell) = forgetful(StoreKind::default());
    buy.handler().stale = Some(vec!["three"]);
    buy.handler().bomb = Some("two");
    order(&mut buy, world.now, "four");
    world.run(&mut [&mut buy, &mut sell]);
    let mut said = lines(&mut buy);
    said.retain(|line| !line.starts_with("SELL: 8 "));
    assert_eq!(
        said,
        [
            "resend one",
            "resend two",
            "SELL: panic over two",
            "SELL: the application panicked"
        ]
    );
    assert_eq!(buy.panics(), 1);
    assert_eq!(lines(&mut sell)[0], "BUY: D one again");
    buy.handler().bomb = None;
    world.wait(5);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(
        resent(&mut buy),
        ["resend two", "resend three", "resend four"]
    );
    let said = lines(&mut sell);
    let of_orders: Vec<_> = said.iter().filter(|line| line.contains(": D ")).collect();
    assert_eq!(of_orders, ["BUY: D two again", "BUY: D four again"]);
}
