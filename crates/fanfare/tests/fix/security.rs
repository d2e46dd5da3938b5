//! Tests of settings that require more security than is available, and of foreign certificates.

use crate::common::{Folder, Running, fails, fanfare};
use crate::operation::{client, logon, refusal, settings, trade_as};
use crate::server::{Peer, Server};
use crate::{certificate, server_files};
use fanfare_peers::fix::framed;
use std::io::ErrorKind;
use std::net::TcpListener;

/// Messages that would be sent in plain text, with the password, are not sent.
#[test]
fn an_initiator_that_is_to_encrypt_and_cannot_connects_to_nobody() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let folder = Folder::new("plain-text");
    for lines in [
        "SSLEnable=Y\n",
        "UseSSL=Y\nSocketKeyStore=keys.jks\nSocketKeyStorePassword=hunter2\n",
        "SocketTrustStore=trust.p12\n",
        "CLIENT_CERTIFICATE_FILE=c.pem\nCLIENT_CERTIFICATE_KEY_FILE=c.key\n",
        "SocketServerName=exchange.test\n",
        "StartTLS=Y\n",
    ] {
        let text = format!(
            "[DEFAULT]\nConnectionType=initiator\nSocketConnectHost=127.0.0.1\n\
             SocketConnectPort={port}\nHeartBtInt=30\nSenderCompID=TW\nTargetCompID=ISLD\n\
             Username=me\nPassword=hunter2\n[SESSION]\nBeginString=FIX.4.4\n{lines}"
        );
        let path = folder.with("settings.cfg", text);
        let said = fails(&["fix", "initiator", "--config", &path]);
        assert!(said.contains("settings.cfg: line "), "{said}");
        assert!(said.contains("CERTIFICATION_AUTHORITIES_FILE") || lines.starts_with("Start"));
        assert!(
            !said.contains("hunter2") && said.lines().count() == 1,
            "{said}"
        );
    }
    listener.set_nonblocking(true).unwrap();
    let nobody = listener.accept().unwrap_err();
    assert_eq!(nobody.kind(), ErrorKind::WouldBlock);
}

#[test]
fn an_acceptor_that_is_to_have_what_there_is_not_does_not_start() {
    for (lines, expected) in [
        (
            "SSLEnable=Y\n",
            "line 8: SSLEnable is not supported: SERVER_CERTIFICATE_FILE and",
        ),
        ("SocketUseSSL=Y\n", "needs a SERVER_CERTIFICATE_FILE"),
        (
            "NeedClientAuth=Y\n",
            "NeedClientAuth=Y: needs a SERVER_CERTIFICATE_FILE",
        ),
        (
            "SocketKeyStore=k\n",
            "key stores are not read; name PEM files",
        ),
        (
            "JdbcURL=jdbc:x\n",
            "messages are kept in files (FileStorePath) or in memory",
        ),
        ("MongoStoreConnection=m\n", "messages are kept in files"),
        (
            "DataDictionary=absent.xml\n",
            "DataDictionary=absent.xml: no such file",
        ),
        ("DataDictionary=absent.xml\n", "settings.cfg: session FIX"),
        ("TargetSubID=*\n", "a section with AcceptorTemplate=Y"),
    ] {
        let said = refusal("asked-for", lines, &[]);
        assert!(said.contains(expected), "{lines}: {said}");
    }
}

#[test]
fn sessions_of_a_port_that_differ_in_their_certificates_do_not_start() {
    let key = format!(
        "SERVER_CERTIFICATE_FILE={}\nSERVER_CERTIFICATE_KEY_FILE={}\n",
        certificate("server.pem"),
        certificate("server.key")
    );
    let strict = format!(
        "[SESSION]\nBeginString=FIX.4.2\nNeedClientAuth=Y\nCERTIFICATION_AUTHORITIES_FILE={}\n",
        certificate("root.pem")
    );
    let text = settings(&key) + &strict;
    let path = Folder::new("mixed-demands");
    let path = path.with("settings.cfg", text);
    let said = fails(&["fix", "acceptor", "--config", &path]);
    assert!(
        said.contains("need the same certificate files and NeedClientAuth"),
        "{said}"
    );
}

#[test]
fn a_certificate_of_another_trader_gets_nothing() {
    let folder = Folder::new("certificates");
    let named = server_files().replace("SocketClientCertificateNames=dns:trader.test\n", "");
    let own = "[SESSION]\nBeginString=FIX.4.4\nTargetCompID=trader.test\n";
    let text = settings(&named) + own;
    let path = folder.with("settings.cfg", text);
    let mut server = Running::start(&mut fanfare(&["fix", "acceptor", "--config", &path]));
    let line = server.prints("listening on ");
    let address = line.split([' ', ',']).nth(2).unwrap().parse().unwrap();
    let of = || client("exchange.test", Some("client"));
    let (is_in, why) = trade_as("TW", address, of());
    assert!(
        !is_in && !why.contains("TLS"),
        "closed without a word: {why}"
    );
    let told = server.tells("certificate");
    let expected = ": the certificate of cn:Fanfare test client, dns:trader.test is not for \
        session FIX.4.4:ISLD->TW";
    assert!(told.ends_with(expected), "{told}");
    let (is_in, why) = trade_as("trader.test", address, of());
    assert!(is_in, "{why}");
}

#[test]
fn without_an_address_only_this_machine_can_connect() {
    let folder = Folder::new("loopback");
    let text = settings("").replace("SocketAcceptAddress=127.0.0.1\n", "");
    let path = folder.with("settings.cfg", text);
    let mut server = Running::start(&mut fanfare(&["fix", "acceptor", "--config", &path]));
    let line = server.prints("listening on ");
    assert!(line.starts_with("listening on 127.0.0.1:"), "{line}");
    let told = server.tells("SocketAcceptAddress");
    let expected = "only this machine can connect: set SocketAcceptAddress=0.0.0.0 for others";
    assert!(
        told.ends_with(&format!(" WARN program: {expected}")),
        "{told}"
    );
}

#[test]
fn a_session_behind_tls_is_not_reached_through_a_plain_port() {
    let guarded = format!(
        "{}[SESSION]\nBeginString=FIX.4.2\nSocketAcceptAddress=127.0.0.2\n{}",
        settings(""),
        server_files()
    );
    let server = Server::start("two-ports", &guarded);
    let mut peer = Peer::connect(server.address);
    let theirs = "35=A|34=1|49=TW|52=20261121-10:00:00|56=ISLD|98=0|108=30|";
    peer.send(&framed("FIX.4.2", theirs)).unwrap();
    assert_eq!(peer.receive(), Ok(None), "closed without a word");
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
}

#[test]
fn a_port_bounds_what_comes_before_a_logon() {
    let lines = "MaxLogonLength=300\nMaxConnectionsNotLoggedOn=3\n\
        MaxConnectionsNotLoggedOnPerAddress=2\n";
    let mut server = Server::with("before-logon", &settings(lines), &[]);
    let long = format!("58={}|", "x".repeat(300));
    let mut stranger = Peer::connect(server.address);
    stranger.send(&logon(&long)).unwrap();
    server
        .running
        .tells("first message is longer than 300 bytes");
    assert_eq!(stranger.receive(), Ok(None));
    let mut silent: Vec<_> = (0..3).map(|_| Peer::connect(server.address)).collect();
    server
        .running
        .tells("too many connections of this address without a logon");
    assert_eq!(silent[0].receive(), Ok(None));
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
}

#[test]
fn a_crowd_that_does_not_log_on_has_few_lines() {
    let server = Server::with("crowd", &settings(""), &[]);
    for _ in 0..120 {
        let mut stranger = Peer::connect(server.address);
        stranger.send(&framed("FIX.4.4", "35=0|49=TW|")).unwrap();
        assert_eq!(stranger.receive(), Ok(None));
    }
    server.running.interrupt();
    let said = server.running.end().succeeded().err;
    let words = || {
        said.lines()
            .filter_map(|line| Some(line.split_once(" WARN session: ")?.1))
    };
    let lines = words().filter(|line| line.starts_with("127.0.0.1:"));
    let more = words().filter_map(|line| {
        let (count, last) = line
            .strip_prefix("and ")?
            .split_once(" more without a logon, ")?;
        assert!(last.starts_with("the last: 127.0.0.1:"), "{line}");
        count.parse::<usize>().ok()
    });
    let (lines, more): (usize, usize) = (lines.count(), more.sum());
    assert_eq!(lines + more, 120, "{said}");
    assert!(more > 0, "{said}");
}

#[test]
fn wrong_passwords_are_slowed_down_and_summed_up() {
    let server = Server::with("guesses", &settings("Username=me\nPassword=right\n"), &[]);
    let come = |password: &str| {
        let mut peer = Peer::connect(server.address);
        peer.send(&logon(&format!("553=me|554={password}|")))
            .unwrap();
        let answer = peer.receive().unwrap();
        (peer, answer)
    };
    let (mut refused, mut told) = (0, 0);
    for _ in 0..60 {
        let (_, answer) = come("guess");
        refused += 1;
        let Some(answer) = answer else {
            continue;
        };
        told += 1;
        let is_told = answer.contains("|58=Username or Password is wrong|");
        let is_next = answer.contains(&format!("|35=5|34={told}|"));
        assert!(is_told && is_next, "{answer}");
    }
    assert!(told > 0);
    // The right one is checked when the time is over, which other wrong ones do not prolong.
    let (peer, answer) = loop {
        let (peer, answer) = come("right");
        if let Some(answer) = answer {
            break (peer, answer);
        }
        refused += 1;
        assert!(refused < 2000, "no password is checked any more");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };
    let next = format!("|35=A|34={}|", told + 1);
    assert!(answer.contains(&next), "{answer}");
    server.running.interrupt();
    drop(peer);
    let said = server.running.end().succeeded().err;
    let words = said
        .lines()
        .filter_map(|line| Some(line.split_once(" WARN session: ")?.1));
    let count = words.map(|line| match line.strip_prefix("and ") {
        Some(more) => {
            let (count, last) = more.split_once(" more without a logon, ").unwrap();
            assert!(last.contains("FIX.4.4:ISLD->TW: "), "{line}");
            count.parse().unwrap()
        }
        None => {
            let is_wrong = line == "FIX.4.4:ISLD->TW: Username or Password is wrong";
            usize::from(is_wrong || line.starts_with("127.0.0.1:"))
        }
    });
    assert_eq!(count.sum::<usize>(), refused, "{said}");
    assert!(said.contains(" more without a logon, "), "{said}");
}

#[test]
fn the_number_of_a_logout_to_a_wrong_password_is_kept() {
    let base = Folder::new("told");
    let lines = format!(
        "FileStorePath={}\nUsername=me\nPassword=right\n",
        base.path().display()
    );
    for (password, expected) in [
        ("guess", "|35=5|34=1|"),
        ("guess", "|35=5|34=2|"),
        ("right", "|35=A|34=3|"),
    ] {
        let server = Server::start("told", &settings(&lines));
        let mut peer = Peer::connect(server.address);
        peer.send(&logon(&format!("553=me|554={password}|")))
            .unwrap();
        let answer = peer.receive().unwrap().unwrap();
        assert!(answer.contains(expected), "{answer}");
        server.running.interrupt();
        drop(peer);
        server.running.end().succeeded();
    }
}

#[test]
fn limits_of_a_port_are_refused_out_of_range_and_where_they_differ() {
    for (lines, expected) in [
        (
            "MaxLogonLength=255\n",
            "MaxLogonLength=255: must be between 256 and 65536",
        ),
        (
            "MaxConnectionsNotLoggedOn=0\n",
            "MaxConnectionsNotLoggedOn=0: must be between 1 and 100000",
        ),
        (
            "MaxConnectionsNotLoggedOn=5\nMaxConnectionsNotLoggedOnPerAddress=6\n",
            "MaxConnectionsNotLoggedOnPerAddress=6: must be between 1 and 5",
        ),
    ] {
        let said = refusal("port-limits", lines, &[]);
        assert!(said.contains(expected), "{lines}: {said}");
    }
    let folder = Folder::new("other-limits");
    let text = settings("") + "[SESSION]\nBeginString=FIX.4.2\nMaxLogonLength=300\n";
    let path = folder.with("settings.cfg", text);
    let said = fails(&["fix", "acceptor", "--config", &path]);
    assert!(said.contains("need the same MaxLogonLength"), "{said}");
}
