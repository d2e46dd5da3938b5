//! Sessions inside TLS, and certificates that are not accepted.

use super::*;
use crate::tcp::Received;
use crate::tls::{Identity, TlsClient, TlsError, TlsServer, TlsStream, out_of_time};
use std::io::{self, IoSlice};
use std::path::Path;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("testdata/tls")
        .join(name)
}

fn identity(name: &str) -> Identity {
    let of = |extension| file(&format!("{name}.{extension}"));
    Identity {
        certificates: of("pem"),
        key: of("key"),
    }
}

fn server(name: &str, client_roots: bool) -> TlsServer {
    let roots = file("root.pem");
    TlsServer::new(&identity(name), client_roots.then_some(roots.as_path())).unwrap()
}

fn client(name: &str, own: Option<&str>) -> TlsClient {
    let own = own.map(identity);
    TlsClient::new(&file("root.pem"), name, own.as_ref()).unwrap()
}

/// Connects the two. Returns the notes of each.
fn meet(server: TlsServer, client: Option<TlsClient>) -> (Vec<String>, Vec<String>) {
    meet_as("BUY", &ClientNames::Any, server, client)
}

/// Connects the two with this CompID, for a session that accepts these certificates.
fn meet_as(
    name: &str,
    names: &ClientNames,
    server: TlsServer,
    client: Option<TlsClient>,
) -> (Vec<String>, Vec<String>) {
    let mut world = World::new();
    let mut settings = Acceptor::new(LOOPBACK)
        .session(config("SELL", name))
        .tls(server);
    settings.sessions[0].names = names.clone();
    let (mut sell, address) = acceptor(settings);
    let mut settings = Initiator::new(config(name, "SELL"), vec![address]);
    if let Some(client) = client {
        settings = settings.tls(client);
    }
    let mut buy = initiating(settings);
    world.run(&mut [&mut buy, &mut sell]);
    if buy.hosted[0].session.is_logged_on() {
        order(&mut buy, world.now, "secret");
        world.run(&mut [&mut buy, &mut sell]);
        log_out(&mut buy, world.now);
        world.run(&mut [&mut buy, &mut sell]);
    }
    (lines(&mut buy), lines(&mut sell))
}

#[test]
fn orders_are_answered_inside_tls() {
    for client in [
        client("exchange.test", None),
        client("127.0.0.1", Some("client")),
    ] {
        let (buy, sell) = meet(server("server", false), Some(client));
        assert_eq!(
            buy[..3],
            ["SELL: logged on", "SELL: 8 secret", "SELL: logged out"]
        );
        let expected = [
            "BUY: logged on",
            "BUY: D secret",
            "BUY: the counterparty logged out",
        ];
        assert_eq!(sell[..3], expected);
    }
}

#[test]
fn a_handler_that_takes_little_receives_all_of_every_record() {
    let mut world = World::new();
    // So many that the kernel is asked which one is ready.
    let names = ["BUY", "A", "B"];
    let port = Acceptor::new(LOOPBACK).tls(server("server", false));
    let session = |port: Acceptor, name: &&str| port.session(config("SELL", name));
    let (mut sell, address) = acceptor(names.iter().fold(port, session));
    let tls = client("exchange.test", None);
    let buyer = |name: &&str| Initiator::new(config(name, "SELL"), vec![address]);
    let buyers = names.iter().map(|name| buyer(name).tls(tls.clone()));
    let mut buyers: Vec<_> = buyers.map(initiating).collect();
    for buy in &mut buyers {
        world.run(&mut [buy, &mut sell]);
    }
    assert_eq!(lines(&mut sell).len(), 3);
    let buy = &mut buyers[0];
    let mut peers = handler_peers(buy, world.now);
    let mut peer = peers.get(SessionKey(0)).unwrap();
    let text = "x".repeat(400);
    for _ in 0..150 {
        peer.send(b"D", |body| {
            body.str(11, &text);
        })
        .unwrap();
    }
    buy.flush_touched(world.now);
    sell.handler().room = Some(1000);
    while sell.handler().lines.is_empty() {
        buy.do_work(world.now).unwrap();
        sell.do_work(world.now).unwrap();
    }
    sell.handler().room = Some(0);
    sell.do_work(world.now).unwrap();
    let sleeps = sell.next_timer().unwrap() - world.now.mono;
    assert!(
        sleeps <= 100_000_000,
        "it sleeps over the rest: {sleeps} ns"
    );
    sell.handler().room = Some(1000);
    world.run(&mut [buy, &mut sell]);
    let received = lines(&mut sell);
    assert!(received.iter().all(|line| line.starts_with("BUY: D x")));
    assert_eq!(received.len(), 150);
}

#[test]
fn a_client_shows_its_certificate_where_one_is_asked_for() {
    let (buy, _) = meet(
        server("server", true),
        Some(client("exchange.test", Some("client"))),
    );
    assert_eq!(buy[..2], ["SELL: logged on", "SELL: 8 secret"]);
    for own in [None, Some("outsider")] {
        let (buy, sell) = meet(server("server", true), Some(client("exchange.test", own)));
        assert!(sell[0].starts_with("TLS: ") && !buy.contains(&"SELL: logged on".to_owned()));
    }
}

#[test]
fn a_certificate_is_for_the_comp_id_that_it_names() {
    let meet = |name, names: &ClientNames, demands| {
        let client = client("exchange.test", Some("client"));
        meet_as(name, names, server("server", demands), Some(client)).1
    };
    let listed = |text: &str| ClientNames::Listed(vec![text.parse().unwrap()]);
    for (name, names) in [
        ("trader.test", ClientNames::CompId),
        ("Fanfare test client", ClientNames::CompId),
        ("BUY", listed("trader.test")),
        ("BUY", listed("cn:Fanfare test client")),
        ("BUY", ClientNames::Any),
    ] {
        let said = meet(name, &names, true);
        assert_eq!(said[0], format!("{name}: logged on"), "{names:?}");
    }
    let of = "the certificate of cn:Fanfare test client, dns:trader.test is not for session";
    for names in [ClientNames::CompId, listed("cn:trader.test"), listed("x")] {
        let said = meet("BUY", &names, true);
        assert_eq!(said[0], format!("{of} FIX.4.4:SELL->BUY"), "{names:?}");
        assert!(
            !said.iter().any(|line| line.contains("logged on")),
            "{said:?}"
        );
    }
    // A client shows no certificate where none is required, so a session with a list of names
    // refuses all.
    assert_eq!(
        meet("BUY", &ClientNames::CompId, false)[0],
        "BUY: logged on"
    );
    let said = meet("BUY", &listed("trader.test"), false);
    assert!(
        said[0].starts_with("the certificate of nobody is not for"),
        "{said:?}"
    );
}

#[test]
fn a_server_that_is_expired_or_somebody_else_is_not_talked_to() {
    let (buy, sell) = meet(
        server("expired", false),
        Some(client("exchange.test", None)),
    );
    assert!(
        buy[0].starts_with("TLS: ") && buy[0].contains("expired"),
        "{buy:?}"
    );
    assert!(sell[0].starts_with("TLS: "), "the alert arrives: {sell:?}");
    let (buy, _) = meet(server("server", false), Some(client("other.test", None)));
    assert!(buy[0].contains("not valid for name"), "{buy:?}");
    let (buy, _) = meet(
        server("outsider", false),
        Some(client("outsider.test", None)),
    );
    assert!(buy[0].contains("UnknownIssuer"), "{buy:?}");
}

#[test]
fn plain_text_at_a_tls_port_is_refused() {
    let (buy, sell) = meet(server("server", false), None);
    assert!(sell[0].starts_with("TLS: "), "{sell:?}");
    assert!(!buy.contains(&"SELL: logged on".to_owned()));
}

#[test]
fn files_that_do_not_do_are_named() {
    let missing = TlsClient::new(&file("nothing.pem"), "exchange.test", None).unwrap_err();
    assert!(missing.to_string().contains("nothing.pem"), "{missing}");
    let no_certificate = TlsClient::new(&file("server.key"), "exchange.test", None).unwrap_err();
    assert!(
        no_certificate.to_string().contains("holds no certificate"),
        "{no_certificate}"
    );
    let name = TlsClient::new(&file("root.pem"), "no name!", None).unwrap_err();
    assert!(matches!(name, TlsError::Name { .. }));
    let mixed = Identity {
        certificates: file("server.pem"),
        key: file("client.key"),
    };
    let mixed = TlsServer::new(&mixed, None).unwrap_err().to_string();
    assert!(
        mixed.contains("server.pem: with the key ") && mixed.contains("client.key: "),
        "{mixed}"
    );
    let no_key = Identity {
        certificates: file("server.pem"),
        key: file("server.pem"),
    };
    let no_key = TlsServer::new(&no_key, None).unwrap_err();
    assert!(
        no_key.to_string().contains("holds no private key"),
        "{no_key}"
    );
}

/// Returns the error of a server with this private key, in a file of this name.
fn error_of_key(name: &str, text: &str) -> String {
    let name = format!("fanfare-{name}-{}.key", std::process::id());
    let key = std::env::temp_dir().join(name);
    std::fs::write(&key, text).unwrap();
    let identity = Identity {
        certificates: file("server.pem"),
        key: key.clone(),
    };
    let error = TlsServer::new(&identity, None).unwrap_err().to_string();
    std::fs::remove_file(&key).unwrap();
    error
}

#[test]
fn an_encrypted_key_is_called_encrypted() {
    let old = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\
               DEK-Info: AES-128-CBC,00000000000000000000000000000000\n\nAAAA\n\
               -----END RSA PRIVATE KEY-----\n";
    let new = "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    for (name, text) in [("old", old), ("new", new)] {
        let error = error_of_key(name, text);
        assert!(error.contains("holds an encrypted private key"), "{error}");
    }
}

#[test]
fn a_certificate_that_is_refused_for_its_time_is_told() {
    const IN_2017: u64 = 1_500_000_000_000_000_000;
    const IN_2027: u64 = 1_800_000_000_000_000_000;
    let told = |name: &str, utc| out_of_time(&file(name), utc).unwrap_or_default();
    let expired = told("expired.pem", IN_2027);
    let end = "expired.pem: the certificate has expired at 2020-02-01T00:00:00Z";
    assert!(expired.ends_with(end), "{expired}");
    let early = told("server.pem", IN_2017);
    let begin = "server.pem: the certificate is not valid before 2020-01-01T00:00:00Z";
    assert!(early.ends_with(begin), "{early}");
    assert_eq!(told("server.pem", IN_2027), "");
    assert_eq!(told("server.key", IN_2027), "");
}

/// A key on the curve P-521, which the library does not have.
#[test]
fn a_key_of_another_kind_is_told_the_kinds() {
    let text = "-----BEGIN PRIVATE KEY-----\n\
               MIHuAgEAMBAGByqGSM49AgEGBSuBBAAjBIHWMIHTAgEBBEIBWYlXbV4WUo5PeQfb\n\
               I3tIzNhw5aHoXeJFLDgazaUYVefc/IblVEeThRfhNKaykW+sUYNbgRXOsSURX1uj\n\
               Fpm8fpahgYkDgYYABAGFY0kpGFae/gyWn09O9Nis5GjpS5eKfMdS5gqYB0eyjK+k\n\
               lhGFjj1tzIBOxHOWDX1YtxCUIPq8A1bbQmBHLnc49AAevXTq4KrIutV3S42c3IPc\n\
               B5ZLd+862AQOWE8zFApe02qEpIzdiT+V3wST5jzYHKf/ooBrQ7Hybb9rPaq6cCaK\n\
               SQ==\n\
               -----END PRIVATE KEY-----\n";
    let error = error_of_key("p521", text);
    assert!(error.contains(".key: holds a private key that"), "{error}");
    assert!(error.ends_with("P-256 or P-384, or Ed25519"), "{error}");
}

/// Ctrl-C within the handshake, followed by the server's flight.
#[test]
fn a_wrong_certificate_may_come_after_the_end() {
    let listener = std::net::TcpListener::bind(LOOPBACK).unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let stream = |inner| crate::tcp::Stream::new(inner).unwrap();
    let mut buy = client("other.test", None).connect(stream(ours)).unwrap();
    let mut sell = server("server", false).accept(stream(theirs)).unwrap();
    assert!(buy.flush().unwrap());
    buy.finish().unwrap();
    let mut room = vec![0; 1 << 14];
    let error = loop {
        // It continues as long as it can, and its peer no longer sends.
        let _ = sell.receive(&mut room);
        if let Err(error) = buy.receive(&mut room) {
            break error;
        }
        std::thread::yield_now();
    };
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn what_comes_before_a_failure_is_received() {
    let listener = std::net::TcpListener::bind(LOOPBACK).unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (theirs, _) = listener.accept().unwrap();
    let stream = |inner| crate::tcp::Stream::new(inner).unwrap();
    let client = client("exchange.test", None);
    let mut buy = client.connect(stream(ours)).unwrap();
    let mut sell = server("server", false).accept(stream(theirs)).unwrap();
    let mut room = vec![0; 1 << 14];
    // Returns whether more is left behind what the server receives next.
    let mut next = |buy: &mut TlsStream| {
        loop {
            // An alert at last.
            let _ = buy.receive(&mut [0; 100]);
            match sell.receive(&mut room) {
                Ok(Received::Nothing) => std::thread::yield_now(),
                received => return received.map(|_| sell.has_pending()),
            }
        }
    };
    buy.send(&[IoSlice::new(b"hello")]).unwrap();
    assert!(!next(&mut buy).unwrap());
    buy.send(&[IoSlice::new(b"order")]).unwrap();
    let garbage = [IoSlice::new(b"no record of TLS")];
    buy.stream().send(&garbage).unwrap();
    // Both are there at once: the order, and the failure behind it.
    assert!(next(&mut buy).unwrap());
    let error = next(&mut buy).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidData);
}

#[test]
fn a_session_inside_tls_that_has_ended_sends_what_waits() {
    let mut world = World::new();
    let port = Acceptor::new(LOOPBACK).tls(server("server", false));
    let (mut sell, address) = acceptor(port.session(config("SELL", "BUY")));
    let settings = Initiator::new(config("BUY", "SELL"), vec![address]);
    let mut buy = initiating(settings.tls(client("exchange.test", None)));
    world.run(&mut [&mut buy, &mut sell]);
    endings::a_slow_buyer_logs_out(world, buy, sell);
}

#[test]
fn the_name_of_a_host_counts_whatever_address_it_has_now() {
    let at_old: fn(&mut TlsClient) = |client| {
        let old = SocketAddr::from(([192, 0, 2, 1], 9880));
        client.expect_at(old, "exchange.test").unwrap();
    };
    // No address was known.
    let anywhere: fn(&mut TlsClient) = TlsClient::expect_each_host;
    let first_alone: fn(&mut TlsClient) = |_| {};
    let refused = "not valid for name";
    for (expect, name, expected) in [
        (at_old, "exchange.test", "hello"),
        (at_old, "other.test", refused),
        (anywhere, "exchange.test", "hello"),
        (anywhere, "other.test", refused),
        (first_alone, "exchange.test", refused),
    ] {
        let listener = std::net::TcpListener::bind(LOOPBACK).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        let stream = |inner| crate::tcp::Stream::new(inner).unwrap();
        let mut client = client("first.test", None);
        expect(&mut client);
        let mut buy = client.connect_to(stream(ours), Some(name)).unwrap();
        let mut sell = server("server", false).accept(stream(theirs)).unwrap();
        buy.send(&[IoSlice::new(b"hello")]).unwrap();
        let mut room = vec![0; 1 << 14];
        let outcome = loop {
            if let Err(error) = buy.receive(&mut [0; 100]) {
                break error.to_string();
            }
            match sell.receive(&mut room) {
                Ok(Received::Bytes(_)) => break "hello".to_owned(),
                _ => std::thread::yield_now(),
            }
        };
        assert!(outcome.contains(expected), "{name}: {outcome}");
    }
}
