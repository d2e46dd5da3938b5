//! Ports of the application's own, sessions for one connection, and messages shared by many
//! sessions.

use super::*;
use crate::outbound::OutboundError;
use fanfare_fix::codec::{SendingTime, SharedBody, SharedFrame};
use fanfare_fix::session::MemoryStore;

/// Runs a port beside a host, and the other hosts, until none has work.
fn run(world: &mut World, port: &mut Port, hosts: &mut [&mut Host<Diary>]) -> Vec<PortEvent> {
    let mut events = Vec::new();
    for _ in 0..20 {
        world.run(hosts);
        port.turn(world.now).unwrap();
        events.extend(std::iter::from_fn(|| port.poll_event()));
    }
    events
}

fn admission(incoming: &Incoming, sender: u64) -> Admission {
    let mut store = MemoryStore::without_resends(1 << 16);
    store.set_next_sender(sender).unwrap();
    let config = Config::new(incoming.id().clone());
    Admission::new(config, Store::Own(Box::new(store)))
}

/// Returns the Logons among the events of a port.
fn logons(events: Vec<PortEvent>) -> Vec<Incoming> {
    let logons = events.into_iter().map(|event| match event {
        PortEvent::Logon(incoming) => incoming,
        other => panic!("{other:?}"),
    });
    logons.collect()
}

/// Returns a host with sessions for one connection, its port, and the hosts of their
/// counterparties.
fn fan(world: &mut World, names: &[&str]) -> (Host<Diary>, Port, Vec<Host<Diary>>) {
    let mut port = Port::bind(LOOPBACK, PortOptions::new()).unwrap();
    let mut buyers: Vec<_> = names
        .iter()
        .map(|name| initiator(name, &[port.address()]))
        .collect();
    let mut sell = Host::new(Diary::default()).unwrap();
    let mut hosts: Vec<_> = buyers.iter_mut().collect();
    for incoming in logons(run(world, &mut port, &mut hosts)) {
        let admission = admission(&incoming, 1);
        sell.admit(world.now, incoming, admission).unwrap();
    }
    let mut hosts: Vec<_> = buyers.iter_mut().chain([&mut sell]).collect();
    world.run(&mut hosts);
    (sell, port, buyers)
}

#[test]
fn a_session_for_one_connection_has_the_numbers_of_its_store_and_leaves_nothing() {
    let mut world = World::new();
    let mut port = Port::bind(LOOPBACK, PortOptions::new()).unwrap();
    let mut sell = Host::new(Diary::answering()).unwrap();
    let mut buy = initiator("BUY", &[port.address()]);
    let mut came = logons(run(&mut world, &mut port, &mut [&mut buy]));
    let incoming = came.pop().unwrap();
    assert_eq!(incoming.id().to_string(), "FIX.4.4:SELL->BUY");
    let admission = admission(&incoming, 7);
    let handle = sell.handle();
    let mut pending = handle.admit(incoming, admission);
    assert!(pending.poll().is_none());
    world.run(&mut [&mut buy, &mut sell]);
    let key = pending.poll().unwrap().unwrap();
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
    // The Logon had number 7 where 1 was expected.
    assert!(lines(&mut buy).iter().any(|line| line == "SELL: logged on"));
    let number = |host: &mut Host<Diary>| host.hosted[key.0].session.store().next_sender();
    assert!(number(&mut sell) > 7);
    log_out(&mut buy, world.now);
    world.run(&mut [&mut buy, &mut sell]);
    let left = lines(&mut sell);
    assert_eq!(left.last().unwrap(), "removed FIX.4.4:SELL->BUY");
    assert!(sell.hosted[key.0].is_vacant && sell.remote.key(&id()).is_none());
}

fn id() -> SessionId {
    SessionId::new(Version::Fix44, "SELL", "BUY")
}

#[test]
fn a_second_session_of_the_same_name_is_not_admitted() {
    let mut world = World::new();
    let (mut sell, mut port, mut buyers) = fan(&mut world, &["BUY"]);
    let mut other = initiator("BUY", &[port.address()]);
    let mut hosts: Vec<_> = buyers.iter_mut().chain([&mut other]).collect();
    let incoming = logons(run(&mut world, &mut port, &mut hosts))
        .pop()
        .unwrap();
    let admission = admission(&incoming, 1);
    let refused = sell.admit(world.now, incoming, admission).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "session FIX.4.4:SELL->BUY exists already"
    );
}

/// Sends a shared order to all sessions, as one message and as parts. Returns how many sessions
/// took it, and how many bytes wait.
fn share(host: &mut Host<Diary>, now: Now, fields: &[u8]) -> (usize, Vec<usize>) {
    let body = SharedBody::new(b"D", fields).unwrap();
    let mut frame = SharedFrame::new(fields.len());
    frame.load(&body).unwrap();
    let mut out = vec![0; fields.len() + 512];
    let mut peers = handler_peers(host, now);
    let (mut done, mut queued) = (0, Vec::new());
    for mut peer in peers.logged_on() {
        let time = SendingTime::new(now.utc, peer.config().precision);
        let written = if done % 2 == 0 {
            let message = peer.send_shared(&mut frame, &time).unwrap();
            peer.write(message)
        } else {
            let len = peer.send_shared_into(&body, &time, &mut out).unwrap();
            peer.write(&out[..len])
        };
        match written {
            Ok(_) => done += 1,
            Err(OutboundError::Overflow(_)) => {}
            Err(error) => panic!("{error}"),
        }
        queued.push(peer.queued());
    }
    host.flush_touched(now);
    (done, queued)
}

#[test]
fn a_shared_message_reaches_all_behind_what_each_has_written_itself() {
    let mut world = World::new();
    let (mut sell, _port, mut buyers) = fan(&mut world, &["BUY1", "BUY2", "BUY3"]);
    for key in 0..3 {
        let mut peers = handler_peers(&mut sell, world.now);
        let mut peer = peers.get(SessionKey(key)).unwrap();
        peer.send(b"D", |order| {
            order.str(11, "own");
        })
        .unwrap();
    }
    assert_eq!(share(&mut sell, world.now, b"11=shared\x01").0, 3);
    let mut hosts: Vec<_> = buyers.iter_mut().chain([&mut sell]).collect();
    world.run(&mut hosts);
    for buyer in &mut buyers {
        let lines = lines(buyer);
        let said = &lines[lines.len() - 2..];
        assert_eq!(said, ["SELL: D own", "SELL: D shared"]);
    }
}

#[test]
fn a_shared_message_stays_behind_what_waits_for_the_disk() {
    let name = format!("fanfare-shared-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let options = journal::Options {
        durability: journal::Durability::Every,
        segment_bytes: 64 << 10,
        ..journal::Options::default()
    };
    let store = StoreKind::Journal(folder.clone(), options);
    let port = Acceptor::new(LOOPBACK).session_with(config("SELL", "BUY"), store);
    let (mut sell, address) = acceptor(port);
    let mut world = World::new();
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    for id in ["one", "two"] {
        let mut peers = handler_peers(&mut sell, world.now);
        let mut peer = peers.get(SessionKey(0)).unwrap();
        let sent = peer.send(b"D", |order| {
            order.str(11, id);
        });
        sent.unwrap();
        if id == "two" {
            peer.make_room().unwrap();
            assert_eq!(peer.session.store().unsent_len(), 0);
        }
        assert_eq!(share(&mut sell, world.now, b"11=shared\x01").0, 1);
    }
    world.run(&mut [&mut buy, &mut sell]);
    let said = lines(&mut buy);
    let expected = ["D one", "D shared", "D two", "D shared"].map(|what| format!("SELL: {what}"));
    assert_eq!(said[1..], expected);
    // Nothing was missing on the way, which would have been asked for.
    assert_eq!(buy.hosted[0].session.store().next_sender(), 2);
    drop(sell);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_waits_for_a_counterparty_that_does_not_read_is_bounded_and_arrives_in_order() {
    let mut world = World::new();
    let (mut sell, _port, mut buyers) = fan(&mut world, &["BUY1", "BUY2"]);
    let text = "x".repeat(60_000);
    let (mut sent, mut refused) = (0, 0);
    // The second buyer reads; the first one does not run.
    while refused < 3 {
        let fields = format!("11={sent}\x0158={text}\x01");
        let (done, queued) = share(&mut sell, world.now, fields.as_bytes());
        assert!(queued.iter().all(|&bytes| bytes <= connection::QUEUE_BYTES));
        (sent, refused) = (sent + 1, refused + 2 - done);
        world.run(&mut [&mut sell, &mut buyers[1]]);
    }
    let mut hosts: Vec<_> = buyers.iter_mut().chain([&mut sell]).collect();
    world.run(&mut hosts);
    let orders = |host: &mut Host<Diary>| {
        let mut lines = lines(host);
        lines.retain(|line| line.starts_with("SELL: D "));
        lines
    };
    let all = orders(&mut buyers[1]);
    assert_eq!(all.len(), sent);
    // The first one has those that fitted, in order, and no part of another.
    let some = orders(&mut buyers[0]);
    assert_eq!(some.len(), sent - refused);
    assert_eq!(some, all[..some.len()]);
}

#[test]
fn with_a_message_log_shared_messages_are_in_it_too() {
    let mut world = World::new();
    let (mut sell, _port, mut buyers) = fan(&mut world, &["BUY1", "BUY2"]);
    let name = format!("fanfare-log-shared-{}", std::process::id());
    let path = std::env::temp_dir().join(name);
    let counters = crate::counters::Counters::new();
    let (tap, mut log) = MessageLog::open(&path, LogOptions::default(), &counters).unwrap();
    sell.log_to(tap);
    assert_eq!(share(&mut sell, world.now, b"11=shared\x01").0, 2);
    let mut hosts: Vec<_> = buyers.iter_mut().chain([&mut sell]).collect();
    world.run(&mut hosts);
    for buyer in &mut buyers {
        assert_eq!(lines(buyer).last().unwrap(), "SELL: D shared");
    }
    log.on_close(world.now);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(text.matches("|11=shared|").count(), 2, "{text}");
}
