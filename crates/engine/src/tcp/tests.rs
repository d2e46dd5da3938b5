use super::*;
use crate::poll::{Interest, Poller, Token};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const SECOND: u64 = 1_000_000_000;

fn backoff() -> Backoff {
    Backoff::new(Duration::from_secs(1), Duration::from_secs(60), 7)
}

/// Returns our side of a connection, and a plain blocking peer.
fn pair() -> (Stream, TcpStream) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (Stream::new(listener.accept().unwrap().0).unwrap(), peer)
}

fn wait_readable(stream: &Stream) {
    let mut poller = Poller::new(1).unwrap();
    poller.add(stream, Token(0), Interest::Read).unwrap();
    // A signal also ends the wait, as when a stopped process continues.
    while poller.poll(None).unwrap() == 0 {}
}

#[test]
fn a_listener_gives_streams_and_then_nobody() {
    let mut listener = Listener::bind(LOOPBACK).unwrap();
    assert!(matches!(listener.accept().unwrap(), Accepted::Nobody));
    let mut peer = TcpStream::connect(listener.address().unwrap()).unwrap();
    let Accepted::Stream(stream) = listener.accept().unwrap() else {
        panic!("nobody there")
    };
    assert_eq!(stream.peer(), peer.local_addr().unwrap());
    assert_eq!(
        stream
            .send(&[IoSlice::new(b"8="), IoSlice::new(b"FIX")])
            .unwrap(),
        5
    );
    let mut got = [0; 5];
    peer.read_exact(&mut got).unwrap();
    assert_eq!(&got, b"8=FIX");
    let mut buffer = [0; 16];
    assert_eq!(stream.receive(&mut buffer).unwrap(), Received::Nothing);
}

#[test]
fn a_taken_port_is_named() {
    let first = Listener::bind(LOOPBACK).unwrap();
    let address = first.address().unwrap();
    let error = Listener::bind(address).unwrap_err();
    assert_eq!(error.source.kind(), io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

/// Reads once, when bytes have arrived, and returns those that are not parsed yet.
fn read(stream: &Stream, inbox: &mut Inbox, buffer: &mut [u8]) -> io::Result<(Received, Vec<u8>)> {
    wait_readable(stream);
    let (received, bytes) = inbox.fill(buffer, |room| stream.receive(room))?;
    Ok((received, bytes.to_vec()))
}

#[test]
fn an_incomplete_message_is_kept_in_front_of_the_next_bytes() {
    let (stream, mut peer) = pair();
    let (mut inbox, mut buffer) = (Inbox::new(), [0; 64]);
    let mut lines: Vec<Vec<u8>> = Vec::new();
    for part in [&b"one\ntw"[..], b"o", b"\nthree\n"] {
        peer.write_all(part).unwrap();
        let (_, bytes) = read(&stream, &mut inbox, &mut buffer).unwrap();
        let end = bytes.iter().rposition(|&b| b == b'\n');
        let (whole, rest) = bytes.split_at(end.map_or(0, |at| at + 1));
        lines.extend(whole.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec));
        inbox.keep(rest);
        assert_eq!(inbox.len(), rest.len());
    }
    assert_eq!(lines, [&b"one\n"[..], b"two\n", b"three\n"]);
    drop(peer);
    let closed = read(&stream, &mut inbox, &mut buffer).unwrap();
    assert_eq!(closed, (Received::Closed, Vec::new()));
}

#[test]
fn a_message_longer_than_the_buffer_is_an_error() {
    let (stream, mut peer) = pair();
    let (mut inbox, mut buffer) = (Inbox::new(), [0; 16]);
    peer.write_all(&[b'x'; 64]).unwrap();
    let (received, bytes) = read(&stream, &mut inbox, &mut buffer).unwrap();
    assert_eq!(received, Received::Bytes(16));
    inbox.keep(&bytes);
    let error = read(&stream, &mut inbox, &mut buffer).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

/// Polls until the attempt has an outcome, while the virtual time stands still.
fn outcome(connector: &mut Connector, now: u64) -> Attempt {
    loop {
        match connector.poll(now) {
            Attempt::Wait(_) => std::thread::yield_now(),
            outcome => return outcome,
        }
    }
}

#[test]
fn a_connector_tries_host_after_host_and_backs_off() {
    // No other test listens on this address, so the freed port is not taken.
    let elsewhere = SocketAddr::from(([127, 0, 0, 77], 0));
    let free = Listener::bind(elsewhere).unwrap().address().unwrap();
    let mut listener = Listener::bind(LOOPBACK).unwrap();
    let good = listener.address().unwrap();
    let mut connector = Connector::new(vec![free, good], backoff(), Duration::from_secs(5));
    let Attempt::Failed {
        to,
        error,
        retry_at,
    } = outcome(&mut connector, SECOND)
    else {
        panic!("nobody listens there")
    };
    assert_eq!((to, error.kind()), (free, io::ErrorKind::ConnectionRefused));
    assert!((SECOND + SECOND / 2..=2 * SECOND).contains(&retry_at));
    assert_eq!(connector.due(), retry_at);
    assert!(matches!(connector.poll(retry_at - 1), Attempt::Wait(at) if at == retry_at));
    let Attempt::Connected(stream) = outcome(&mut connector, retry_at) else {
        panic!("refused")
    };
    assert_eq!(stream.peer(), good);
    assert!(matches!(listener.accept().unwrap(), Accepted::Stream(_)));
    assert_eq!(connector.due(), u64::MAX);
    assert!(matches!(connector.poll(u64::MAX), Attempt::Wait(u64::MAX)));
    let again = connector.lost(9 * SECOND);
    assert!(
        (10 * SECOND..=11 * SECOND).contains(&again),
        "the second wait is longer"
    );
    connector.succeeded();
    assert!(connector.lost(0) <= SECOND);
    connector.defer(5 * SECOND);
    let waits = connector.poll(5 * SECOND - 1);
    assert!(matches!(waits, Attempt::Wait(at) if at == 5 * SECOND));
}

#[test]
fn a_connector_without_hosts_is_never_due() {
    let mut connector = Connector::new(Vec::new(), backoff(), Duration::from_secs(5));
    connector.hurry();
    assert_eq!(connector.due(), u64::MAX);
    assert!(matches!(connector.poll(SECOND), Attempt::Wait(u64::MAX)));
    connector.defer(2 * SECOND);
    assert_eq!(connector.due(), u64::MAX);
}

#[test]
fn an_attempt_without_an_answer_times_out() {
    // A full backlog drops further connections, so the connector receives no response.
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    crate::sys::socket::set_backlog(&listener, 0).unwrap();
    let _fillers: Vec<Connector> = (0..4)
        .map(|_| {
            let mut filler = Connector::new(vec![address], backoff(), Duration::from_secs(900));
            filler.poll(0);
            filler
        })
        .collect();
    let mut connector = Connector::new(vec![address], backoff(), Duration::from_secs(3));
    assert!(matches!(connector.poll(0), Attempt::Wait(at) if at == 3 * SECOND));
    let Attempt::Failed { error, .. } = connector.poll(3 * SECOND) else {
        panic!("connected")
    };
    assert_eq!(error.kind(), io::ErrorKind::TimedOut);
}

/// Returns an address at which nobody listens. No other test listens on this IP address.
fn nobody(last: u8) -> SocketAddr {
    let elsewhere = SocketAddr::from(([127, 0, 0, last], 0));
    Listener::bind(elsewhere).unwrap().address().unwrap()
}

/// Polls until the attempt has failed. Returns its host, its error and the time of the next.
fn failure(connector: &mut Connector, now: u64) -> (SocketAddr, io::Error, u64) {
    match outcome(connector, now) {
        Attempt::Failed {
            to,
            error,
            retry_at,
        } => (to, error, retry_at),
        other => panic!("{other:?}"),
    }
}

/// Polls until the connection is established. Returns its host.
fn connection(connector: &mut Connector, now: u64) -> Stream {
    match outcome(connector, now) {
        Attempt::Connected(stream) => stream,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_first_host_is_next_after_a_good_connection_unless_they_take_turns() {
    let listeners = [(); 2].map(|()| Listener::bind(LOOPBACK).unwrap());
    let [first, second] = [0, 1].map(|n: usize| listeners[n].address().unwrap());
    for (order, next) in [
        (HostOrder::Priority, first),
        (HostOrder::RoundRobin, second),
    ] {
        let hosts = vec![first, second];
        let mut connector = Connector::new(hosts, backoff(), Duration::from_secs(5));
        connector = connector.in_order(order);
        assert_eq!(connection(&mut connector, 0).peer(), first);
        connector.succeeded();
        let retry_at = connector.lost(0);
        let stream = connection(&mut connector, retry_at);
        assert_eq!(stream.peer(), next, "{order:?}");
        // This connection is not good: the host refuses the Logon.
        let retry_at = connector.lost(retry_at);
        let stream = connection(&mut connector, retry_at);
        let other = if next == first { second } else { first };
        assert_eq!(stream.peer(), other, "{order:?}");
    }
}

#[test]
fn a_connection_comes_from_the_address_and_port_that_are_set() {
    let mut listener = Listener::bind(LOOPBACK).unwrap();
    let good = listener.address().unwrap();
    let port = nobody(79).port();
    for local in [
        SocketAddr::from(([127, 0, 0, 79], 0)),
        SocketAddr::from(([127, 0, 0, 79], port)),
    ] {
        let connector = Connector::new(vec![good], backoff(), Duration::from_secs(5));
        let mut connector = connector.bound_to(local);
        let _stream = connection(&mut connector, 0);
        let Accepted::Stream(peer) = listener.accept().unwrap() else {
            panic!("nobody there")
        };
        assert_eq!(peer.peer().ip(), local.ip());
        assert!(local.port() == 0 || peer.peer() == local);
    }
    // An address of documentation, which no machine has.
    let foreign = SocketAddr::from(([192, 0, 2, 1], 0));
    let connector = Connector::new(vec![good], backoff(), Duration::from_secs(5));
    let (to, error, _) = failure(&mut connector.bound_to(foreign), 0);
    assert_eq!(to, good);
    let error = error.to_string();
    let expected = "cannot connect from 192.0.2.1:0: ";
    assert!(error.starts_with(expected), "{error}");
}

/// Returns a host by name that had this address.
fn named(address: SocketAddr) -> NamedHost {
    NamedHost {
        name: "exchange.test".to_owned(),
        port: address.port(),
        addresses: vec![address],
    }
}

#[test]
fn hosts_are_looked_up_again_before_each_further_attempt() {
    let listener = Listener::bind(LOOPBACK).unwrap();
    let (old, new) = (nobody(80), listener.address().unwrap());
    let lookup = Lookup::by(vec![named(old)], move |name, port| {
        assert_eq!((name, port), ("exchange.test", old.port()));
        Ok(vec![new])
    });
    let connector = Connector::new(vec![old], backoff(), Duration::from_secs(5));
    let mut connector = connector.looking_up(lookup);
    let (to, _, retry_at) = failure(&mut connector, 0);
    assert_eq!(to, old);
    assert_eq!(connection(&mut connector, retry_at).peer(), new);
    assert_eq!(connector.name_of(new), Some("exchange.test"));
    assert_eq!(connector.name_of(old), None);
}

#[test]
fn a_host_that_is_not_found_keeps_its_addresses_and_the_reason_is_told() {
    let old = nobody(81);
    let lookup = Lookup::by(vec![named(old)], |_, _| {
        Err(io::Error::other("no such host"))
    });
    let connector = Connector::new(vec![old], backoff(), Duration::from_secs(5));
    let mut connector = connector.looking_up(lookup);
    let (_, error, retry_at) = failure(&mut connector, 0);
    assert!(!error.to_string().contains("no such host"), "{error}");
    let (to, error, _) = failure(&mut connector, retry_at);
    assert_eq!(to, old);
    let error = error.to_string();
    assert!(error.ends_with("; exchange.test: no such host"), "{error}");
}

#[test]
fn a_host_that_is_not_found_at_first_is_looked_up_until_it_is() {
    let listener = Listener::bind(LOOPBACK).unwrap();
    let good = listener.address().unwrap();
    let host = NamedHost {
        addresses: Vec::new(),
        ..named(good)
    };
    let count = std::sync::atomic::AtomicUsize::new(0);
    let lookup = Lookup::by(vec![host], move |_, _| {
        match count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) {
            0 => Err(io::Error::other("no such host")),
            1 => Ok(Vec::new()),
            _ => Ok(vec![good]),
        }
    });
    let connector = Connector::new(Vec::new(), backoff(), Duration::from_secs(5));
    assert_eq!(connector.due(), u64::MAX, "there is nothing to look up");
    let mut connector = connector.looking_up(lookup);
    assert_eq!(connector.due(), 0);
    let (to, error, retry_at) = failure(&mut connector, 0);
    assert!(to.ip().is_unspecified() && to.port() == good.port());
    let error = error.to_string();
    assert!(error.ends_with("; exchange.test: no such host"), "{error}");
    assert_eq!(connector.due(), retry_at);
    let (_, error, retry_at) = failure(&mut connector, retry_at);
    assert_eq!(error.to_string(), "no host has an address");
    assert_eq!(connection(&mut connector, retry_at).peer(), good);
}

#[test]
fn a_lookup_delays_an_attempt_by_its_timeout_at_most() {
    let listener = Listener::bind(LOOPBACK).unwrap();
    let good = listener.address().unwrap();
    // The lookup ends with the test.
    let (_end, waits) = std::sync::mpsc::channel::<()>();
    let waits = std::sync::Mutex::new(waits);
    let lookup = Lookup::by(vec![named(good)], move |_, _| {
        assert!(waits.lock().unwrap().recv().is_err());
        Ok(Vec::new())
    });
    let connector = Connector::new(vec![good], backoff(), Duration::from_secs(3));
    let mut connector = connector.looking_up(lookup);
    drop(connection(&mut connector, 0));
    let retry_at = connector.lost(0);
    let until = retry_at + 3 * SECOND;
    assert!(matches!(connector.poll(retry_at), Attempt::Wait(at) if at == until));
    assert_eq!(connector.due(), 0);
    assert!(matches!(connector.poll(until - 1), Attempt::Wait(at) if at == until));
    assert_eq!(connection(&mut connector, until).peer(), good);
}

#[test]
fn a_deferred_first_attempt_looks_its_hosts_up() {
    let listener = Listener::bind(LOOPBACK).unwrap();
    let (old, new) = (nobody(82), listener.address().unwrap());
    let lookup = Lookup::by(vec![named(old)], move |_, _| Ok(vec![new]));
    let connector = Connector::new(vec![old], backoff(), Duration::from_secs(5));
    let mut connector = connector.looking_up(lookup);
    connector.defer(SECOND);
    assert_eq!(connection(&mut connector, SECOND).peer(), new);
}

#[test]
fn addresses_of_the_other_family_are_not_tried_from_a_set_address() {
    let old = nobody(83);
    let found = vec![SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 1)), old];
    let lookup = Lookup::by(vec![named(old)], move |_, _| Ok(found.clone()));
    let connector = Connector::new(vec![old], backoff(), Duration::from_secs(5));
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut connector = connector.looking_up(lookup).bound_to(local);
    let (mut to, _, mut retry_at) = failure(&mut connector, 0);
    for _ in 0..3 {
        assert_eq!(to, old);
        (to, _, retry_at) = failure(&mut connector, retry_at);
    }
}

/// Returns how many bytes the kernel takes for a peer that does not read.
fn taken(limit: Option<i32>) -> usize {
    let (stream, _peer) = pair();
    if let Some(bytes) = limit {
        stream.limit_unsent(bytes).unwrap();
    }
    let chunk = [b'x'; 1024];
    let mut taken = 0;
    // The loopback interface hands bytes over within the call.
    while let Ok(count @ 1..) = stream.send(&[IoSlice::new(&chunk)]) {
        taken += count;
    }
    taken
}

#[test]
fn the_kernel_takes_little_for_a_peer_that_does_not_read_if_it_is_limited() {
    let (limited, unlimited) = (taken(Some(16 << 10)), taken(None));
    assert!(limited < unlimited / 2, "{limited} of {unlimited} bytes");
}

/// Returns the values of SO_SNDBUF, SO_RCVBUF, IP_TOS and SO_KEEPALIVE of a stream. The kernel
/// doubles the sizes.
fn options_of(stream: &Stream) -> [i32; 4] {
    [
        (libc::SOL_SOCKET, libc::SO_SNDBUF),
        (libc::SOL_SOCKET, libc::SO_RCVBUF),
        (libc::IPPROTO_IP, libc::IP_TOS),
        (libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    ]
    .map(|(level, name)| {
        let mut value = 0;
        crate::sys::socket::get_option(stream.as_fd(), level, name, &mut value).unwrap();
        value
    })
}

#[test]
fn both_ends_of_a_connection_have_the_options_that_are_set() {
    let options = SocketOptions {
        send_buffer: Some(20_000),
        receive_buffer: Some(30_000),
        traffic_class: Some(0xb8),
        keep_alive: true,
    };
    let mut listener = Listener::bind(LOOPBACK).unwrap();
    listener.set_options(&options).unwrap();
    let hosts = vec![listener.address().unwrap()];
    let connector = Connector::new(hosts, backoff(), Duration::from_secs(5));
    let stream = connection(&mut connector.with_options(options), 0);
    let Accepted::Stream(peer) = listener.accept().unwrap() else {
        panic!("nobody there")
    };
    for stream in [stream, peer] {
        assert_eq!(options_of(&stream), [40_000, 60_000, 0xb8, 1]);
    }
    let (plain, _peer) = pair();
    assert_eq!(options_of(&plain)[2..], [0, 0]);
}

#[test]
fn connections_of_ipv4_to_a_listener_of_ipv6_have_the_traffic_class() {
    let everywhere = SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0));
    let mut listener = Listener::bind(everywhere).unwrap();
    let options = SocketOptions {
        traffic_class: Some(0xb8),
        ..SocketOptions::new()
    };
    listener.set_options(&options).unwrap();
    let port = listener.address().unwrap().port();
    let _peer = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    let Accepted::Stream(stream) = listener.accept().unwrap() else {
        panic!("nobody there")
    };
    assert_eq!(options_of(&stream)[2], 0xb8);
}
