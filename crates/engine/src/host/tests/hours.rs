//! The times at which initiators connect, and the sleep of their hosts.

use super::*;
use fanfare_fix::session::{FixedOffset, Schedule, TimeOfDay, Window};
use std::sync::Arc;

#[test]
fn a_host_sleeps_until_the_next_attempt_is_due() {
    let mut world = World::new();
    // No process listens on this address of the loopback network at that port.
    let dead = SocketAddr::from(([127, 0, 0, 78], 1));
    let mut buy = initiator("BUY", &[dead]);
    world.run(&mut [&mut buy]);
    assert!(lines(&mut buy)[0].contains("refused"));
    // The first back-off takes at least half a second.
    assert!(buy.next_timer().unwrap() > world.now.mono + SECOND / 4);
    world.wait(1);
    world.run(&mut [&mut buy]);
    assert!(lines(&mut buy)[0].contains("refused"));
}

#[test]
fn outside_its_hours_an_initiator_looks_once_a_second() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    // The test begins at 02:40.
    let at = |text| TimeOfDay::parse(text).unwrap();
    let window = Window::daily(at("02:41"), at("02:39"));
    let schedule = Schedule::new(vec![window], Arc::new(FixedOffset(0))).unwrap();
    let session = Config {
        schedule: Some(Arc::new(schedule)),
        ..config("BUY", "SELL")
    };
    let mut buy = initiating(Initiator::new(session, vec![address]));
    for _ in 0..2 {
        world.run(&mut [&mut buy, &mut sell]);
        assert!(buy.next_timer().unwrap() > world.now.mono + SECOND / 4);
        assert_eq!(lines(&mut buy), [""; 0]);
        world.wait(30);
    }
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut buy), ["SELL: logged on"]);
}
