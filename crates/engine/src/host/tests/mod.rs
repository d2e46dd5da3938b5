//! Hosts connected to each other over loopback sockets, under virtual time.

mod admission;
mod callers;
mod credentials;
mod endings;
mod greetings;
mod handles;
mod hooks;
mod hours;
mod logs;
mod panics;
mod received;
mod resends;
mod room;
mod settings;
mod steer;
mod sub_ids;
mod templates;
#[cfg(feature = "tls")]
mod tls;
mod unconnected;

use super::*;
use crate::agent::Agent;
use crate::journal;
use crate::poll::{Interest, Token};
use fanfare_fix::codec::Message;
use fanfare_fix::session::{
    AppMessage, Config, DisconnectReason, KeptMessage, MessageStore, Now, Resend, SECOND,
    SessionId, Version,
};
use fanfare_wire::UtcTimestamp;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::Duration;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const START: i64 = 1_770_000_000_000_000_000;

/// A handler that notes events, and responds to each order if configured to.
#[derive(Default)]
struct Diary {
    lines: Vec<String>,
    answers: bool,
    password: Option<&'static [u8]>,
    /// The ClOrdID of an order that makes it panic; `bomb_in_turn` makes `on_turn` panic.
    bomb: Option<&'static str>,
    bomb_in_turn: bool,
    /// Whether it closes the first session in its next turn.
    closes_in_turn: bool,
    /// Whether it checks the password before a session is made.
    asks_strangers: bool,
    /// A message to send in `on_turn`, whose calls are noted until it is sent.
    due: Option<&'static str>,
    /// The bytes that it takes at once, if these are limited.
    room: Option<usize>,
    /// Whether it logs out each session that has logged on.
    logs_out: bool,
    /// The ClOrdIDs of orders that it does not send again, if it notes and decides on resends.
    stale: Option<Vec<&'static str>>,
}

impl Diary {
    fn answering() -> Self {
        Self {
            answers: true,
            ..Self::default()
        }
    }

    fn note(&mut self, peer: &Peer<'_>, what: &str) {
        let id = peer.id();
        let sub = id.sub.as_ref().map(|sub| format!("/{}", sub.target));
        let sub = sub.unwrap_or_default();
        self.lines.push(format!("{}{sub}: {what}", id.target));
    }
}

impl Handler for Diary {
    fn room(&mut self) -> usize {
        self.room.unwrap_or(usize::MAX)
    }

    fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
        let id = String::from_utf8_lossy(message.message.get(11).unwrap_or(b"?")).into_owned();
        let dup = if message.poss_dup { " again" } else { "" };
        let kind = char::from(message.message.msg_type()[0]);
        assert!(self.bomb != Some(&*id), "over {id}");
        self.note(peer, &format!("{kind} {id}{dup}"));
        if self.answers {
            peer.send(b"8", |body| {
                body.str(11, &id);
            })
            .unwrap();
        }
    }

    fn on_resend(&mut self, _: SessionKey, message: &mut KeptMessage<'_>) -> Resend {
        let Some(stale) = &self.stale else {
            return Resend::Send;
        };
        let message = message.message().unwrap();
        let id = String::from_utf8_lossy(message.get(11).unwrap_or(b"?")).into_owned();
        let is_stale = stale.contains(&&*id);
        self.lines.push(format!("resend {id}"));
        assert!(self.bomb != Some(&*id), "over {id}");
        match is_stale {
            true => Resend::Fill,
            false => Resend::Send,
        }
    }

    fn on_logon_request(&mut self, _: &mut Peer<'_>, logon: &Message<'_>) -> Verdict {
        if logon.get(554) == self.password {
            return Verdict::Accept;
        }
        Verdict::Refuse("wrong password".to_owned())
    }

    fn on_logon(&mut self, peer: &mut Peer<'_>) {
        self.note(peer, "logged on");
        if self.logs_out {
            peer.logout("not now");
        }
    }

    fn on_disconnect(&mut self, peer: &mut Peer<'_>, reason: DisconnectReason) {
        self.note(peer, &reason.to_string());
    }

    fn on_stranger(&mut self, _: &SessionId, _: usize, logon: &Message<'_>) -> Verdict {
        match self.asks_strangers && logon.get(554) != self.password {
            true => Verdict::Refuse("a stranger".to_owned()),
            false => Verdict::Accept,
        }
    }

    fn on_removed(&mut self, session: &SessionId) {
        self.lines.push(format!("removed {session}"));
    }

    fn on_undone(&mut self, undone: &Undone<'_>) {
        let body = match undone.request {
            Request::Send { body, .. } => String::from_utf8_lossy(body).replace('\x01', "|"),
            other => format!("{other:?}"),
        };
        self.lines.push(format!("{undone}: {body}"));
    }

    fn on_refused(&mut self, _: SocketAddr, why: &Refusal) {
        self.lines.push(why.to_string());
    }

    fn on_unconnected(&mut self, session: &SessionId, address: SocketAddr, why: &Refusal) {
        self.lines.push(format!("{session} to {address}: {why}"));
    }

    fn on_panic(&mut self, session: Option<&SessionId>, message: &str) {
        let session = session.map_or("nobody", |id| &id.target);
        self.lines.push(format!("{session}: panic {message}"));
    }

    fn on_log(&mut self, trouble: &LogTrouble) {
        self.lines.push(trouble.to_string());
    }

    fn is_due(&self) -> bool {
        self.due.is_some()
    }

    fn on_turn(&mut self, peers: &mut Peers<'_>) -> usize {
        if let (Some(id), Some(mut peer)) = (self.due.take(), peers.get(SessionKey(0))) {
            self.lines.push(format!("sent {id}"));
            peer.send(b"8", |body| {
                body.str(11, id);
            })
            .unwrap();
            return 1;
        }
        if std::mem::take(&mut self.bomb_in_turn) {
            peers.get(SessionKey(0));
            panic!("in its turn");
        }
        if std::mem::take(&mut self.closes_in_turn)
            && let Some(mut peer) = peers.get(SessionKey(0))
        {
            peer.close();
        }
        0
    }
}

/// Some hosts and one clock that only advances on request.
struct World {
    now: Now,
}

impl World {
    fn new() -> Self {
        Self {
            now: Now {
                mono: SECOND,
                utc: UtcTimestamp::from_nanos(START),
            },
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.now.mono += seconds * SECOND;
        let utc = self.now.utc.nanos() + (seconds * SECOND) as i64;
        self.now.utc = UtcTimestamp::from_nanos(utc);
    }

    /// Runs each host until the loopback is quiet for a while. The time advances a little, so that
    /// timers are checked.
    fn run(&mut self, hosts: &mut [&mut Host<Diary>]) {
        let mut idle = 0;
        while idle < 3 * 64 {
            self.now.mono += 200_000;
            let mut work = 0;
            for host in hosts.iter_mut() {
                work += host.do_work(self.now).unwrap();
            }
            idle = if work == 0 { idle + 1 } else { 0 };
            if idle % 16 == 15 {
                // Bytes on loopback arrive at once, except on a busy machine; a closed socket needs
                // a moment.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

fn config(sender: &str, target: &str) -> Config {
    Config::new(SessionId::new(Version::Fix44, sender, target))
}

fn acceptor(settings: Acceptor) -> (Host<Diary>, SocketAddr) {
    let mut host = Host::new(Diary::answering()).unwrap();
    let address = host.listen(settings).unwrap();
    (host, address)
}

/// Returns an acceptor with a session for each of these buyers.
fn seller(buyers: &[&str]) -> (Host<Diary>, SocketAddr) {
    let port = Acceptor::new(LOOPBACK);
    let session = |port: Acceptor, name: &&str| port.session(config("SELL", name));
    acceptor(buyers.iter().fold(port, session))
}

fn initiator(sender: &str, hosts: &[SocketAddr]) -> Host<Diary> {
    initiating(Initiator::new(config(sender, "SELL"), hosts.to_vec()))
}

/// Returns an initiator whose Logon has this password.
fn with_password(password: &str, address: SocketAddr) -> Host<Diary> {
    let mut session = config("BUY", "SELL");
    session.logon_fields = vec![(554, password.as_bytes().into())];
    initiating(Initiator::new(session, vec![address]))
}

fn initiating(settings: Initiator) -> Host<Diary> {
    let mut host = Host::new(Diary::default()).unwrap();
    host.initiate(settings).unwrap();
    host
}

/// Returns an initiator and an acceptor that have logged on, and the address of the latter.
fn pair() -> (World, Host<Diary>, Host<Diary>, SocketAddr) {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    (world, buy, sell, address)
}

fn order(host: &mut Host<Diary>, now: Now, id: &str) {
    let mut peers = handler_peers(host, now);
    let mut peer = peers.get(SessionKey(0)).unwrap();
    peer.send(b"D", |body| {
        body.str(11, id);
    })
    .unwrap();
    host.flush_touched(now);
}

fn log_out(host: &mut Host<Diary>, now: Now) {
    let mut peers = handler_peers(host, now);
    peers.get(SessionKey(0)).unwrap().logout("done");
    host.flush_touched(now);
}

fn handler_peers(host: &mut Host<Diary>, now: Now) -> Peers<'_> {
    Peers {
        now,
        is_logged: host.bench.log.is_some(),
        hosted: &mut host.hosted,
        last: None,
        touched: Cell::new(false),
    }
}

fn lines(host: &mut Host<Diary>) -> Vec<String> {
    std::mem::take(&mut host.handler().lines)
}

#[test]
fn orders_are_answered_and_a_logout_ends_it() {
    let (mut world, mut buy, mut sell, _) = pair();
    order(&mut buy, world.now, "one");
    order(&mut buy, world.now, "two");
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(
        lines(&mut sell),
        ["BUY: logged on", "BUY: D one", "BUY: D two"]
    );
    assert_eq!(
        lines(&mut buy),
        ["SELL: logged on", "SELL: 8 one", "SELL: 8 two"]
    );
    log_out(&mut buy, world.now);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut sell)[..1], ["BUY: the counterparty logged out"]);
    assert_eq!(lines(&mut buy)[..1], ["SELL: logged out"]);
}

#[test]
fn what_is_due_is_sent_before_connections_are_read() {
    for buyers in [&["BUY"][..], &["BUY", "A", "B"]] {
        let mut world = World::new();
        let (mut sell, address) = seller(buyers);
        let mut all: Vec<_> = buyers
            .iter()
            .map(|name| initiator(name, &[address]))
            .collect();
        for buy in &mut all {
            world.run(&mut [buy, &mut sell]);
        }
        lines(&mut sell);
        order(&mut all[0], world.now, "one");
        sell.handler().due = Some("two");
        assert!(sell.do_work(world.now).unwrap() >= 2);
        assert_eq!(lines(&mut sell), ["sent two", "BUY: D one"]);
        world.run(&mut [&mut all[0], &mut sell]);
        assert_eq!(lines(&mut all[0])[1..], ["SELL: 8 two", "SELL: 8 one"]);
    }
}

/// Returns whether the host's descriptor is readable.
fn is_reported(host: &Host<Diary>) -> bool {
    let mut outer = crate::poll::Poller::new(1).unwrap();
    outer.add(&host.poller, Token(0), Interest::Read).unwrap();
    outer.poll(Some(Duration::ZERO)).unwrap() > 0
}

#[test]
fn the_only_connection_is_watched_from_the_first_sleep_on() {
    let (mut world, mut buy, mut sell, _) = pair();
    order(&mut buy, world.now, "one");
    assert!(!is_reported(&sell), "read each turn, not watched");
    sell.before_sleep();
    assert!(is_reported(&sell));
    world.run(&mut [&mut buy, &mut sell]);
    assert!(!is_reported(&sell));
    order(&mut buy, world.now, "two");
    assert!(is_reported(&sell));
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut sell)[1..], ["BUY: D one", "BUY: D two"]);
}

#[test]
fn connections_are_watched_while_there_are_many() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["A", "B", "C"]);
    let mut buyers = ["A", "B", "C"].map(|name| initiator(name, &[address]));
    let watched = |sell: &Host<Diary>| {
        let links = sell.hosted.iter().filter_map(|hosted| hosted.link.as_ref());
        links.filter(|link| link.is_watched()).count()
    };
    let [a, b, c] = &mut buyers;
    world.run(&mut [a, b, &mut sell]);
    assert_eq!(watched(&sell), 0);
    world.run(&mut [a, b, c, &mut sell]);
    assert_eq!(watched(&sell), 3);
    log_out(b, world.now);
    for buyer in [a, c] {
        world.run(&mut [b, &mut sell]);
        order(buyer, world.now, "o");
        world.run(&mut [buyer, b, &mut sell]);
        assert_eq!(lines(buyer), ["SELL: logged on", "SELL: 8 o"]);
    }
}

#[test]
fn a_lone_connection_that_did_not_read_gets_everything() {
    let (mut world, mut buy, mut sell, _) = pair();
    // More than the kernel takes while the peer does not read.
    let text = "x".repeat(10_000);
    let mut sent = 0;
    while !buy.hosted[0].link.as_ref().unwrap().is_watched() {
        order(&mut buy, world.now, &text);
        buy.do_work(world.now).unwrap();
        sent += 1;
        assert!(sent < 10_000, "the kernel takes everything");
    }
    world.run(&mut [&mut buy, &mut sell]);
    let received = lines(&mut sell)
        .iter()
        .filter(|l| l.contains(": D x"))
        .count();
    assert_eq!(received, sent);
    assert!(!buy.hosted[0].link.as_ref().unwrap().is_watched());
}

/// Reads from the peer until it closes.
fn rest(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .unwrap();
    let _ = stream.read_to_end(&mut all);
    all
}

#[test]
fn a_wrong_password_is_refused_by_name() {
    let mut world = World::new();
    let asking = Config {
        ask_logon: true,
        ..config("SELL", "BUY")
    };
    let (mut sell, address) = acceptor(Acceptor::new(LOOPBACK).session(asking));
    sell.handler().password = Some(b"right");
    let mut buy = with_password("wrong", address);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(
        lines(&mut sell)[..1],
        ["BUY: the application refused the Logon"]
    );
    assert_eq!(
        lines(&mut buy)[..1],
        ["SELL: the counterparty refused our Logon"]
    );
    sell.handler().password = Some(b"wrong");
    world.wait(5);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(lines(&mut buy).contains(&"SELL: logged on".to_owned()));
}

#[test]
fn the_message_log_has_every_message_and_no_password() {
    let path = std::env::temp_dir().join(format!("fanfare-messages-{}", std::process::id()));
    let counters = crate::counters::Counters::new();
    let (tap, mut log) = MessageLog::open(&path, LogOptions::default(), &counters).unwrap();
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    sell.log_to(tap);
    let mut buy = with_password("hush", address);
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "one");
    world.run(&mut [&mut buy, &mut sell]);
    log.on_close(world.now);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let shape = |line: &str| {
        let kind = line
            .split("|35=")
            .nth(1)
            .and_then(|rest| rest.chars().next());
        format!("{} {}", line.split(' ').nth(2).unwrap(), kind.unwrap())
    };
    assert_eq!(
        text.lines().map(shape).collect::<Vec<_>>(),
        ["in A", "out A", "in D", "out 8"]
    );
    assert!(
        text.lines()
            .all(|line| line.contains(" FIX.4.4:SELL->BUY ")),
        "{text}"
    );
    assert!(
        text.contains("|554=***|") && !text.contains("hush"),
        "{text}"
    );
}

#[test]
fn an_initiator_fails_over_to_the_next_host() {
    let mut world = World::new();
    let (mut sell, address) = seller(&["BUY"]);
    // No process listens on this address of the loopback network at that port.
    let dead = SocketAddr::from(([127, 0, 0, 78], address.port()));
    let mut buy = initiator("BUY", &[dead, address]);
    world.run(&mut [&mut buy, &mut sell]);
    assert!(lines(&mut buy)[0].contains("refused"));
    world.wait(2);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut buy), ["SELL: logged on"]);
}

#[test]
fn a_stopped_host_logs_out_its_sessions() {
    // In real time, because `on_close` continues with that.
    let now = crate::clock::Clock::new().read();
    let mut world = World { now };
    let (mut sell, address) = seller(&["A", "B"]);
    let (mut a, mut b) = (initiator("A", &[address]), initiator("B", &[address]));
    world.run(&mut [&mut a, &mut b, &mut sell]);
    let stop = crate::stop::Stop::new();
    let stopped = stop.clone();
    let others = std::thread::spawn(move || {
        while !stopped.is_raised() {
            world.run(&mut [&mut a, &mut b]);
        }
        [lines(&mut a), lines(&mut b)]
    });
    sell.on_close(now);
    stop.raise();
    for said in others.join().unwrap() {
        assert_eq!(
            said[..2],
            ["SELL: logged on", "SELL: the counterparty logged out"]
        );
    }
    assert!(lines(&mut sell).contains(&"A: logged out".to_owned()));
}

struct Base(PathBuf);

impl Drop for Base {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Returns journals in a folder of the test's own.
fn journals(test: &str) -> (Base, StoreKind) {
    journals_of(StoreKind::Journal, test)
}

/// Returns journals of this kind in a folder of the test's own.
fn journals_of(kind: fn(PathBuf, journal::Options) -> StoreKind, test: &str) -> (Base, StoreKind) {
    let name = format!("fanfare-host-{test}-{}", std::process::id());
    let base = Base(std::env::temp_dir().join(name));
    let options = journal::Options {
        segment_bytes: 1 << 16,
        ..journal::Options::default()
    };
    let store = kind(base.0.clone(), options);
    (base, store)
}

#[test]
fn with_journals_a_restart_loses_nothing() {
    let (_base, store) = journals("restart");
    let port = |listen| Acceptor::new(listen).session_with(config("SELL", "BUY"), store.clone());
    let mut world = World::new();
    // No other test listens on this address, so the port is not taken while it is free.
    let alone = SocketAddr::from(([127, 0, 0, 79], 0));
    let (mut sell, address) = acceptor(port(alone));
    let settings = Initiator::new(config("BUY", "SELL"), vec![address]).store(store.clone());
    let mut buy = initiating(settings);
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "one");
    world.run(&mut [&mut buy, &mut sell]);
    drop(sell); // as in a kill: no Logout, and no orderly close
    order(&mut buy, world.now, "two");
    world.run(&mut [&mut buy]);
    assert_eq!(
        lines(&mut buy)[..3],
        ["SELL: logged on", "SELL: 8 one", "SELL: connection lost"]
    );

    let (mut sell, _) = acceptor(port(address));
    world.wait(40);
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut sell), ["BUY: logged on", "BUY: D two again"]);
    assert!(lines(&mut buy).ends_with(&["SELL: logged on".to_owned(), "SELL: 8 two".to_owned()]));
    assert_eq!(sell.hosted[0].session.store().next_sender(), 6);
    let Err(error) = Host::new(Diary::default()).unwrap().listen(port(LOOPBACK)) else {
        panic!("the journal is in use")
    };
    assert!(error.to_string().contains("in use"), "{error}");
}

#[test]
fn a_reset_without_an_answer_is_asked_for_again_after_a_restart() {
    let (_base, store) = journals("reset");
    let port = |listen| Acceptor::new(listen).session_with(config("SELL", "BUY"), store.clone());
    let mut world = World::new();
    // No other test listens on this address, so the port is not taken while it is free.
    let alone = SocketAddr::from(([127, 0, 0, 80], 0));
    let (mut sell, address) = acceptor(port(alone));
    let mut buy = initiator("BUY", &[address]);
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "one");
    world.run(&mut [&mut buy, &mut sell]);
    let mut peers = handler_peers(&mut sell, world.now);
    let mut peer = peers.get(SessionKey(0)).unwrap();
    peer.session().reset_sequence(world.now).unwrap();
    drop(sell); // as in a kill, before the Logon is transmitted
    world.run(&mut [&mut buy]);
    lines(&mut buy);

    let (mut sell, _) = acceptor(port(address));
    world.wait(40);
    world.run(&mut [&mut buy, &mut sell]);
    order(&mut buy, world.now, "two");
    world.run(&mut [&mut buy, &mut sell]);
    assert_eq!(lines(&mut sell).last().unwrap(), "BUY: D two");
    let said = lines(&mut buy);
    let (last, before) = said.split_last().unwrap();
    assert_eq!(last, "SELL: 8 two");
    let logged_on = |line: &String| line == "SELL: logged on";
    assert!(before.iter().all(logged_on), "{said:?}");
}

#[test]
fn networks_contain_addresses() {
    let allows = |network: &str, address: &str| {
        let list = AllowList(vec![network.parse().unwrap()]);
        list.allows(address.parse().unwrap())
    };
    assert!(allows("10.1.0.0/16", "10.1.255.3") && !allows("10.1.0.0/16", "10.2.0.1"));
    assert!(allows("192.0.2.7", "192.0.2.7") && !allows("192.0.2.7", "192.0.2.8"));
    assert!(allows("0.0.0.0/0", "8.8.8.8") && !allows("0.0.0.0/0", "2001:db8::1"));
    assert!(allows("2001:db8::/32", "2001:db8::5") && !allows("2001:db8::/32", "2001:db9::5"));
    assert!(allows("10.0.0.0/8", "::ffff:10.0.0.1"));
    assert!(allows("::/0", "1.2.3.4") && AllowList::default().allows(LOOPBACK.ip()));
    for wrong in ["", "10", "10.0.0.0/33", "::/129", "10.0.0.0/-1", "host/8"] {
        assert!(wrong.parse::<Network>().is_err(), "{wrong}");
    }
}
