//! Tests of sections that are templates: sessions for any matching counterparty.

use crate::common::Folder;
use crate::server::{Peer, Server};
use fanfare_peers::fix::framed;
use std::time::Duration;

fn settings(lines: &str) -> String {
    format!(
        "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
         SocketAcceptPort=0\nCheckLatency=N\n{lines}"
    )
}

/// Logs on with this version and these CompIDs. Returns the response, if there is one.
fn come(server: &Server, version: &str, from: &str, to: &str, more: &str) -> (Peer, String) {
    let mut peer = Peer::connect(server.address);
    // SubIDs are in the header.
    let (sub, more) = more.split_once("//").unwrap_or(("", more));
    let header = format!("35=A|34=1|49={from}|{sub}52=20261121-10:00:00|56={to}|98=0|108=30|");
    peer.send(&framed(version, &format!("{header}{more}")))
        .unwrap();
    let answer = peer.receive().unwrap().unwrap_or_default();
    (peer, answer)
}

/// Logs on as soon as passwords are checked again after a wrong one, which is within a second.
/// Returns the first response.
fn come_later(server: &Server, from: &str, to: &str, more: &str) -> (Peer, String) {
    for _ in 0..500 {
        let (peer, answer) = come(server, "FIX.4.4", from, to, more);
        if !answer.is_empty() {
            return (peer, answer);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("no password is checked any more");
}

#[test]
fn whoever_fits_gets_a_session_and_has_to_know_the_password() {
    let folder = Folder::new("made");
    let lines = format!(
        "FileStorePath={}\n[SESSION]\nAcceptorTemplate=Y\nBeginString=FIX.4.4\n\
         SenderCompID=ISLD\nTargetCompID=DESK*\nTargetSubID=*\nMaxDynamicSessions=2\n\
         Username=me\nPassword=secret\n[SESSION]\nAcceptorTemplate=Y\nBeginString=*\n\
         SenderCompID=OPEN\n",
        folder.path().display()
    );
    let server = Server::start("made", &settings(&lines));
    let login = "553=me|554=secret|";
    let stores = || std::fs::read_dir(folder.path()).map_or(0, Iterator::count);
    let (_, refused) = come(&server, "FIX.4.4", "DESK1", "ISLD", "553=me|554=wrong|");
    assert!(
        refused.contains("|35=5|34=0|") && refused.contains("Username or Password"),
        "{refused}"
    );
    for (version, from, to) in [
        ("FIX.4.4", "CLERK", "ISLD"),
        ("FIX.4.2", "DESK1", "ISLD"),
        ("FIX.4.4", "DESK1", "OTHER"),
        ("FIX.4.4", "../../DESK1", "ISLD"),
    ] {
        let (_, answer) = come(&server, version, from, to, login);
        assert_eq!(answer, "", "{version} {from} {to}");
    }
    assert_eq!(stores(), 0, "strangers leave nothing behind");
    let (mut one, answer) = come_later(&server, "DESK1", "ISLD", &format!("50=T1|//{login}"));
    assert!(
        answer.contains("|35=A|") && answer.contains("|57=T1|"),
        "{answer}"
    );
    let (_two, answer) = come(
        &server,
        "FIX.4.4",
        "DESK1",
        "ISLD",
        &format!("50=T2|//{login}"),
    );
    assert!(answer.contains("|57=T2|"), "{answer}");
    let (_, answer) = come(
        &server,
        "FIX.4.4",
        "DESK1",
        "ISLD",
        &format!("50=T3|//{login}"),
    );
    assert_eq!(answer, "", "there are two");
    assert_eq!(stores(), 2);
    let order = "35=D|34=2|49=DESK1|50=T1|52=20261121-10:00:00|56=ISLD|11=o|21=1|38=1|40=1|54=1|\
        55=X|60=20261121-10:00:00|";
    one.send(&framed("FIX.4.4", order)).unwrap();
    let back = one.receive().unwrap().unwrap();
    assert!(back.contains("|35=D|") && back.contains("|11=o|"), "{back}");
    for (version, more) in [("FIX.4.0", ""), ("FIX.4.4", ""), ("FIXT.1.1", "1137=7|")] {
        let (_peer, answer) = come(&server, version, "ANYBODY", "OPEN", more);
        assert!(
            answer.contains("|35=A|") && answer.contains(more),
            "{version}: {answer}"
        );
    }
}

#[test]
fn the_default_section_alone_is_a_template_as_quickfix_go_has_it() {
    let server = Server::start("go", &settings("DynamicSessions=Y\nDynamicQualifier=Y\n"));
    let both: Vec<_> = (0..2)
        .map(|_| come(&server, "FIX.4.4", "TW", "ISLD", ""))
        .collect();
    for (_, answer) in &both {
        assert!(answer.contains("|35=A|34=1|49=ISLD|"), "{answer}");
    }
}
