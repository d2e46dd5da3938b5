use super::*;
use crate::poll::{Interest, Poller, Token};
use std::io::{self, IoSlice, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
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
