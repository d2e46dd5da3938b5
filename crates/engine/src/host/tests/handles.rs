//! Use of sessions and hosts from other threads.

use super::*;
use crate::agent::run;
use crate::idle::Idle;
use crate::stop::Stop;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

fn buy_to_sell() -> SessionId {
    SessionId::new(Version::Fix44, "BUY", "SELL")
}

fn handle_of(host: &Host<Diary>) -> SessionHandle {
    host.handle().session(&buy_to_sell()).unwrap()
}

fn send(handle: &mut SessionHandle, id: &str) -> Result<Ticket, HandleError> {
    handle.send(b"D", |body| {
        body.str(11, id);
    })
}

#[test]
fn orders_of_a_handle_arrive_in_order_and_survive_a_reconnection() {
    let (mut world, mut buy, mut sell, _) = pair();
    let mut handle = handle_of(&buy);
    assert_eq!(handle.id(), &buy_to_sell());
    let tickets: Vec<_> = ["one", "two"]
        .iter()
        .map(|id| send(&mut handle, id).unwrap())
        .collect();
    assert_eq!((tickets[0].request, tickets[1].request), (0, 1));
    world.run(&mut [&mut buy, &mut sell]);
    let expected = ["BUY: logged on", "BUY: D one", "BUY: D two"];
    assert_eq!(lines(&mut sell), expected);
    assert_eq!(
        lines(&mut buy),
        ["SELL: logged on", "SELL: 8 one", "SELL: 8 two"]
    );
    handle.log_out("so long").unwrap();
    // It waits in the store for the next logon.
    send(&mut handle, "three").unwrap();
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut buy), ["SELL: logged out"]);
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    send(&mut handle, "four").unwrap();
    world.run(&mut [&mut buy, &mut sell]);
    handle.disconnect().unwrap();
    world.run(&mut [&mut buy, &mut sell]);
    let expected = [
        "BUY: the counterparty logged out",
        "BUY: logged on",
        "BUY: D three again",
        "BUY: D four",
        "BUY: connection lost",
    ];
    assert_eq!(lines(&mut sell), expected);
    let said = lines(&mut buy);
    assert_eq!(said.last().unwrap(), "SELL: closed by the application");
}

#[test]
fn numbers_are_set_with_and_without_a_connection() {
    let (mut world, mut buy, mut sell, _) = pair();
    let mut handle = handle_of(&buy);
    for wrong in [0, u64::MAX] {
        let error = handle.set_next_sender(wrong).unwrap_err();
        assert_eq!(error, HandleError::Number(wrong));
    }
    handle.disconnect().unwrap();
    handle.set_next_sender(40).unwrap();
    handle.set_next_target(30).unwrap();
    buy.do_work(world.now).unwrap();
    let numbers = |host: &Host<Diary>| {
        let store = host.hosted[0].session.store();
        (store.next_sender(), store.next_target())
    };
    assert_eq!(numbers(&buy), (40, 30));
    let id = SessionId::new(Version::Fix44, "SELL", "BUY");
    let mut other = sell.handle().session(&id).unwrap();
    world.run(&mut [&mut sell]);
    other.set_next_sender(30).unwrap();
    other.set_next_target(40).unwrap();
    world.run(&mut [&mut sell]);
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!((numbers(&buy), numbers(&sell)), ((41, 31), (31, 41)));
    // While logged on, the counterparty receives the skipped numbers as a gap fill.
    handle.set_next_sender(50).unwrap();
    send(&mut handle, "x").unwrap();
    world.run(&mut [&mut buy, &mut sell]);
    assert!(lines(&mut sell).contains(&"BUY: D x".to_owned()));
    assert_eq!(numbers(&sell).1, numbers(&buy).0);
}

#[test]
fn what_cannot_be_sent_is_an_error_at_once() {
    let (mut world, mut buy, mut sell, _) = pair();
    let mut handle = handle_of(&buy);
    assert_eq!(handle.send(b"A", |_| {}), Err(HandleError::AdminMessage));
    for bad in [&b""[..], b"D\x01", &[b'x'; 300]] {
        let error = handle.send(bad, |_| {}).unwrap_err();
        assert!(matches!(error, HandleError::Encode(_)), "{error}");
    }
    let error = send(&mut handle, "").unwrap_err();
    assert_eq!(error.to_string(), "cannot encode: tag 11 has no value");
    let error = send(&mut handle, &"x".repeat(17 << 10)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot encode: the message does not fit into the buffer"
    );
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut sell), ["BUY: logged on"]);
}

#[test]
fn a_full_ring_is_an_error_and_nothing_that_it_took_is_lost() {
    let (mut world, mut buy, mut sell, _) = pair();
    let small = buy.handle().session_with_ring(&buy_to_sell(), 1);
    let mut handle = small.unwrap();
    for _ in 0..3 {
        let mut taken = 0;
        let error = loop {
            match send(&mut handle, &format!("order {taken}")) {
                Ok(_) => taken += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error, HandleError::Full);
        assert!(taken > 10, "{taken}");
        lines(&mut sell);
        world.run(&mut [&mut buy, &mut sell]);
        let expected: Vec<_> = (0..taken).map(|i| format!("BUY: D order {i}")).collect();
        let said = lines(&mut sell);
        assert_eq!(said[said.len() - taken..], expected);
    }
}

#[test]
fn a_session_that_is_removed_tells_what_waited_and_its_place_is_used_again() {
    let (mut world, mut buy, mut sell, address) = pair();
    let (hosts, id) = (buy.handle(), buy_to_sell());
    let mut handle = handle_of(&buy);
    send(&mut handle, "in time").unwrap();
    let mut removed = hosts.remove(&id);
    assert!(removed.poll().is_none());
    world.run(&mut [&mut buy, &mut sell]);
    removed.wait().unwrap();
    let said = lines(&mut buy).join(", ");
    let expected = "SELL: logged on, SELL: 8 in time, SELL: logged out, \
                    removed FIX.4.4:BUY->SELL";
    assert_eq!(said, expected);
    assert_eq!(send(&mut handle, "x"), Err(HandleError::Gone));
    assert!(
        handler_peers(&mut buy, world.now)
            .get(SessionKey(0))
            .is_none()
    );
    assert!(hosts.session(&id).is_err());
    let unknown = hosts.remove(&id);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(matches!(unknown.wait(), Err(HostError::Unknown(_))));

    let again = hosts.initiate(Initiator::new(config("BUY", "SELL"), vec![address]));
    let mut stale = handle.clone();
    world.run(&mut [&mut buy, &mut sell]);
    // The counterparty expects higher numbers than a new store has.
    assert_eq!(again.wait().unwrap(), SessionKey(0));
    assert_eq!(send(&mut stale, "x"), Err(HandleError::Gone));
    let said = lines(&mut sell);
    assert!(said.iter().any(|line| line.contains("too low")), "{said:?}");
    let twice = hosts.initiate(Initiator::new(config("BUY", "SELL"), vec![address]));
    world.run(&mut [&mut buy, &mut sell]);
    assert!(matches!(twice.wait(), Err(HostError::Duplicate(_))));
}

#[test]
fn a_handle_of_a_session_that_is_gone_in_this_turn_is_answered_all_the_same() {
    let mut world = World::new();
    let mut buy = initiator("BUY", &[LOOPBACK]);
    let mut handle = handle_of(&buy);
    let removed = buy.handle().remove(&buy_to_sell());
    // It has no connection, so it is gone when the host reaches the later commands.
    for number in 0..100 {
        send(&mut handle, &number.to_string()).unwrap();
    }
    world.run(&mut [&mut buy]);
    removed.wait().unwrap();
    let said = lines(&mut buy);
    let told: Vec<_> = said
        .iter()
        .filter(|line| line.starts_with("request"))
        .collect();
    assert_eq!(told.len(), 100);
    for (number, line) in told.iter().enumerate() {
        let request = format!("request 1/{number} of FIX.4.4:BUY->SELL: ");
        assert!(line.starts_with(&request) && line.ends_with(&format!(": 11={number}|")));
    }
    assert!(told[0].contains("not logged on") && told[99].contains("the session was removed"));
}

#[test]
fn a_port_that_is_closed_takes_its_sessions_along() {
    let (mut world, mut buy, mut sell, address) = pair();
    let hosts = sell.handle();
    let session = AcceptorSession::new(config("SELL", "OTHER"), StoreKind::default());
    let other = hosts.accept(address, session.clone());
    let nowhere = hosts.accept(SocketAddr::from(([127, 0, 0, 1], 1)), session);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(other.wait().unwrap(), SessionKey(1));
    assert!(matches!(nowhere.wait(), Err(HostError::NoPort(_))));
    let mut other = initiator("OTHER", &[address]);
    let silent = TcpStream::connect(address).unwrap();
    world.run(&mut [&mut buy, &mut other, &mut sell]);
    let closed = hosts.close_port(address);
    world.run(&mut [&mut buy, &mut other, &mut sell]);
    closed.wait().unwrap();
    assert_eq!(rest(silent), b"");
    let said = lines(&mut sell);
    for line in [
        "the port is closed",
        "removed FIX.4.4:SELL->BUY",
        "removed FIX.4.4:SELL->OTHER",
    ] {
        assert!(said.contains(&line.to_owned()), "{line}: {said:?}");
    }
    assert!(TcpStream::connect(address).is_err());
    let again = hosts.listen(Acceptor::new(address).session(config("SELL", "OTHER")));
    world.run(&mut [&mut sell]);
    assert_eq!(again.wait().unwrap(), address);
}

#[test]
fn a_host_that_ends_sends_what_waits_and_takes_no_more() {
    let now = crate::clock::Clock::new().read();
    let mut world = World { now };
    let (mut sell, address) = seller(&["BUY"]);
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    let hosts = buy.handle();
    let (mut handle, mut idle) = (handle_of(&buy), handle_of(&buy));
    send(&mut handle, "last").unwrap();
    let pending = hosts.remove(&SessionId::new(Version::Fix44, "NO", "ONE"));
    let stop = Stop::new();
    let stopped = stop.clone();
    let other = std::thread::spawn(move || {
        while !stopped.is_raised() {
            world.run(&mut [&mut sell]);
        }
        lines(&mut sell)
    });
    buy.on_close(now);
    stop.raise();
    let said = other.join().unwrap();
    let expected = [
        "BUY: logged on",
        "BUY: D last",
        "BUY: the counterparty logged out",
    ];
    assert_eq!(said[..3], expected);
    for handle in [&mut handle, &mut idle] {
        assert_eq!(send(handle, "x"), Err(HandleError::Gone));
    }
    assert_eq!(send(&mut handle.clone(), "x"), Err(HandleError::Gone));
    assert!(matches!(pending.wait(), Err(HostError::Ended)));
    let after = hosts.remove(&buy_to_sell());
    assert!(matches!(after.wait(), Err(HostError::Ended)));
    assert!(matches!(
        hosts.session(&buy_to_sell()),
        Err(HostError::Ended)
    ));
    drop(buy);
    assert_eq!(send(&mut idle, "x"), Err(HandleError::Gone));
}

#[test]
fn what_a_host_has_not_done_when_it_ends_is_an_error() {
    let (sell, address) = seller(&["BUY"]);
    let hosts = sell.handle();
    let id = SessionId::new(Version::Fix44, "SELL", "BUY");
    let (removed, closed) = (hosts.remove(&id), hosts.close_port(address));
    drop(sell);
    assert!(matches!(removed.wait(), Err(HostError::Ended)));
    assert!(matches!(closed.wait(), Err(HostError::Ended)));
}

#[test]
fn an_answer_that_is_there_is_taken_on_the_hosts_own_thread_too() {
    let mut world = World::new();
    let mut buy = initiator("BUY", &[LOOPBACK]);
    buy.on_start(world.now).unwrap();
    let (hosts, long) = (buy.handle(), Duration::from_secs(60));
    let refused = hosts.page(0).wait_for(long);
    assert!(matches!(refused, Err(HostError::OwnThread)));
    let (first, second) = (hosts.page(0), hosts.page(0));
    world.run(&mut [&mut buy]);
    for page in [first.wait_for(long), second.wait()] {
        assert_eq!(page.unwrap().sessions.len(), 1);
    }
}

/// A handler that counts the messages of each sender, checks their order, and reports removed
/// sessions.
#[derive(Clone, Default)]
struct Tally(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    next: HashMap<u64, u64>,
    total: u64,
    up: i64,
    removed: u64,
    undone: u64,
    own_thread: Option<HostHandle>,
    refused_to_wait: bool,
}

impl Handler for Tally {
    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        let mut counts = self.0.lock().unwrap();
        let (sender, number) = (message.message.u64(109).unwrap(), message.message.u64(11));
        let next = counts.next.entry(sender).or_default();
        assert_eq!(number, Ok(*next), "of {sender}");
        *next += 1;
        counts.total += 1;
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        let mut counts = self.0.lock().unwrap();
        counts.up += 1;
        if let Some(hosts) = counts.own_thread.take() {
            let answer = hosts.remove(peer.id()).wait();
            counts.refused_to_wait = matches!(answer, Err(HostError::OwnThread));
        }
    }

    fn on_disconnect(&mut self, _: &mut Peer<'_>, _: DisconnectReason) {
        self.0.lock().unwrap().up -= 1;
    }

    fn on_removed(&mut self, _: &SessionId) {
        self.0.lock().unwrap().removed += 1;
    }

    fn on_undone(&mut self, _: &Undone<'_>) {
        self.0.lock().unwrap().undone += 1;
    }
}

impl Tally {
    fn get(&self, what: impl Fn(&Counts) -> i64) -> i64 {
        what(&self.0.lock().unwrap())
    }

    /// Waits until the condition holds, for at most a minute.
    fn wait(&self, wanted: i64, what: impl Fn(&Counts) -> i64) {
        let begun = Instant::now();
        while self.get(&what) != wanted {
            let value = self.get(&what);
            assert!(
                begun.elapsed().as_secs() < 60,
                "{value} instead of {wanted}"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// A host that runs on a thread of its own, and sleeps in the kernel.
struct Running {
    hosts: HostHandle,
    tally: Tally,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn begin() -> Self {
        let (tally, stop) = (Tally::default(), Stop::new());
        let mut host = Host::new(tally.clone()).unwrap();
        let (hosts, stopped) = (host.handle(), stop.clone());
        let thread = std::thread::spawn(move || {
            run(&mut host, Idle::Wait(Duration::from_secs(1)), &stopped).unwrap();
        });
        Self {
            hosts,
            tally,
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.raise();
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || std::thread::panicking());
    }
}

fn count(handle: &mut SessionHandle, sender: u64, number: u64) {
    loop {
        let sent = handle.send(b"D", |body| {
            body.u64(11, number).u64(109, sender);
        });
        match sent {
            Ok(_) => return,
            Err(HandleError::Full) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn handles_of_several_threads_lose_nothing_and_keep_their_order() {
    let (buy, sell) = (Running::begin(), Running::begin());
    let port = Acceptor::new(LOOPBACK).session(config("SELL", "BUY"));
    let address = sell.hosts.listen(port).wait().unwrap();
    let initiator = Initiator::new(config("BUY", "SELL"), vec![address]);
    buy.hosts.initiate(initiator).wait().unwrap();
    buy.tally.wait(1, |counts| counts.up);
    let handle = buy.hosts.session_with_ring(&buy_to_sell(), 1).unwrap();
    const EACH: u64 = 2_000;
    let threads: Vec<_> = (0..4)
        .map(|sender| {
            let mut handle = handle.clone();
            std::thread::spawn(move || (0..EACH).for_each(|n| count(&mut handle, sender, n)))
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    sell.tally
        .wait(4 * EACH as i64, |counts| counts.total as i64);
    assert_eq!(buy.tally.get(|counts| counts.undone as i64), 0);
    // The handles of the threads are dropped by now, and the host has freed their rings.
    drop(handle);
}

#[test]
fn sessions_are_added_and_removed_while_the_host_runs() {
    const SESSIONS: u64 = 64;
    let (buy, sell) = (Running::begin(), Running::begin());
    let address = sell.hosts.listen(Acceptor::new(LOOPBACK)).wait().unwrap();
    for round in 1..=2 {
        let mut handles = Vec::new();
        for number in 0..SESSIONS {
            let name = format!("BUY{number}");
            let session = AcceptorSession::new(config("SELL", &name), StoreKind::default());
            sell.hosts.accept(address, session).wait().unwrap();
            let session = config(&name, "SELL");
            let id = session.id.clone();
            let initiator = Initiator::new(session, vec![address]);
            let key = buy.hosts.initiate(initiator).wait().unwrap();
            assert!(key.index() < SESSIONS as usize, "places are used again");
            handles.push((buy.hosts.session(&id).unwrap(), number));
        }
        buy.tally.wait(SESSIONS as i64, |counts| counts.up);
        sell.tally.wait(SESSIONS as i64, |counts| counts.up);
        let before = (round - 1) * 10;
        for number in 0..10 {
            for (handle, sender) in &mut handles {
                count(handle, *sender, before + number);
            }
        }
        let total = (round * 10 * SESSIONS) as i64;
        sell.tally.wait(total, |counts| counts.total as i64);
        let removals: Vec<_> = handles
            .iter()
            .map(|(handle, _)| {
                let id = handle.id();
                let other = SessionId::new(Version::Fix44, &id.target, &id.sender);
                (buy.hosts.remove(id), sell.hosts.remove(&other))
            })
            .collect();
        for (here, there) in removals {
            here.wait().unwrap();
            there.wait().unwrap();
        }
        for tally in [&buy.tally, &sell.tally] {
            let removed = (round * SESSIONS) as i64;
            assert_eq!(tally.get(|counts| counts.removed as i64), removed);
            assert_eq!(tally.get(|counts| counts.up), 0);
        }
        for (mut handle, _) in handles {
            let begun = Instant::now();
            // The host closes the ring in its next duty cycle, and reports the requests before
            // that.
            while send(&mut handle, "x") != Err(HandleError::Gone) {
                assert!(begun.elapsed().as_secs() < 60);
            }
        }
    }
}

#[test]
fn a_handler_that_waits_for_its_own_host_gets_an_error() {
    let (buy, sell) = (Running::begin(), Running::begin());
    let port = Acceptor::new(LOOPBACK).session(config("SELL", "BUY"));
    let address = sell.hosts.listen(port).wait().unwrap();
    buy.tally.0.lock().unwrap().own_thread = Some(buy.hosts.clone());
    let initiator = Initiator::new(config("BUY", "SELL"), vec![address]);
    buy.hosts.initiate(initiator).wait().unwrap();
    // It is removed all the same.
    buy.tally.wait(1, |counts| counts.removed as i64);
    assert!(buy.tally.0.lock().unwrap().refused_to_wait);
}
