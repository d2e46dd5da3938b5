//! Tests of the message log of `fix acceptor`, and of its output without a reader.

use crate::common::{Folder, fanfare, nobody, run};
use crate::operation::{logon, settings};
use crate::server::{Peer, Server};
use fanfare_peers::fix::framed;
use std::io::Write;

fn order(seq: usize, text: &str) -> String {
    let header = format!("35=D|34={seq}|49=TW|52=20261121-10:00:00|56=ISLD|");
    let body = "11=o|21=1|40=1|54=1|55=IBM|60=20261121-10:00:00|58=";
    framed("FIX.4.4", &format!("{header}{body}{text}|"))
}

/// Returns a counterparty that is logged on.
fn peer(server: &Server) -> Peer {
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
    peer
}

#[test]
fn a_burst_is_all_in_the_log_and_in_the_store() {
    const ORDERS: usize = 12_000;
    let folder = Folder::new("burst");
    let lines = format!(
        "FileLogPath={0}/log\nFileStorePath={0}/store\nKeepReceived=Y\n",
        folder.path().display()
    );
    let server = Server::start("burst", &settings(&lines));
    let mut reader = peer(&server);
    let mut writer = reader.clone();
    let text = "x".repeat(1000);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // The orders are sent in few calls, as fast as possible.
            for first in (0..ORDERS).step_by(500) {
                let orders = (first..first + 500).map(|index| order(index + 2, &text));
                writer.send(&orders.collect::<String>()).unwrap();
            }
        });
        for _ in 0..ORDERS {
            assert!(reader.receive().unwrap().unwrap().contains("|35=D|"));
        }
    });
    server.running.interrupt();
    assert!(reader.receive().unwrap().unwrap().contains("|35=5|"));
    drop((reader, writer));
    let said = server.running.end().succeeded();
    assert_eq!(said.err, "");
    let log = String::from_utf8(folder.read("log/messages.log")).unwrap();
    for direction in [" in  8=", " out 8="] {
        let logged = log.lines().filter(|line| line.contains(direction));
        let logged = logged.filter(|line| line.contains("|35=D|"));
        assert_eq!(logged.count(), ORDERS, "{direction}");
    }
    let store = folder.path().join("store");
    let exported = run(&["store", "export", store.to_str().unwrap()])
        .succeeded()
        .out;
    for direction in ["out 8=", "in  8="] {
        let kept = exported.lines().filter(|line| line.starts_with(direction));
        let kept = kept.filter(|line| line.contains("|35=D|"));
        assert_eq!(kept.count(), ORDERS, "{direction}");
    }
}

#[test]
fn a_kill_loses_nothing_that_was_answered() {
    let folder = Folder::new("killed");
    let store = folder.path().join("store");
    let lines = format!("FileStorePath={}\nKeepReceived=Y\n", store.display());
    let mut server = Server::start("killed", &settings(&lines));
    let mut peer = peer(&server);
    (2..=501).for_each(|seq| peer.send(&order(seq, "y")).unwrap());
    for _ in 0..200 {
        assert!(peer.receive().unwrap().unwrap().contains("|35=D|"));
    }
    server.running.kill();
    let exported = run(&["store", "export", store.to_str().unwrap()])
        .succeeded()
        .out;
    let kept: Vec<&str> = exported
        .lines()
        .filter(|line| line.starts_with("in  8="))
        .collect();
    assert!(kept.len() >= 200, "{}", kept.len());
    for (index, line) in kept.iter().enumerate() {
        assert!(line.contains(&format!("|34={}|", index + 2)), "{line}");
    }
}

#[test]
fn stderr_and_stdout_that_nobody_reads_hold_no_session_up() {
    let folder = Folder::new("unread");
    // The test chooses the port: the output that would name it is not read.
    let address = nobody();
    let text = settings("").replace("Port=0", &format!("Port={}", address.port()));
    let path = folder.with("settings.cfg", text);
    let mut command = fanfare(&["fix", "acceptor", "--config", &path]);
    // A full pipe: one thread fills it, and stays in the write until the reader is gone.
    let (reader, mut writer) = std::io::pipe().unwrap();
    let stderr = writer.try_clone().unwrap();
    std::thread::spawn(move || while writer.write_all(&[b'x'; 4096]).is_ok() {});
    std::thread::sleep(std::time::Duration::from_millis(500));
    let mut child = command.stderr(stderr).spawn().unwrap();
    drop(command);
    let mut peer = loop {
        if let Some(peer) = Peer::try_connect(address) {
            break peer;
        }
        std::thread::yield_now();
    };
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
    // These cause lines on stderr, and far more than a pipe holds on stdout.
    for _ in 0..50 {
        let mut stranger = Peer::connect(address);
        stranger.send(&framed("FIX.4.4", "35=0|34=1|")).unwrap();
        assert!(!matches!(stranger.receive(), Ok(Some(_))));
    }
    for seq in 2..3002 {
        peer.send(&order(seq, "z")).unwrap();
    }
    let test = "35=1|34=3002|49=TW|52=20261121-10:00:00|56=ISLD|112=still there|";
    peer.send(&framed("FIX.4.4", test)).unwrap();
    let beat = peer.receive().unwrap().unwrap();
    assert!(beat.contains("|35=0|"), "{beat}");
    // The process ends although its output is not read.
    let id = child.id().to_string();
    let kill = std::process::Command::new("kill")
        .args(["-TERM", &id])
        .status();
    assert!(kill.unwrap().success());
    assert!(peer.receive().unwrap().unwrap().contains("|35=5|"));
    drop(peer);
    let status = child.wait().unwrap();
    assert!(status.success(), "{status}");
    drop(reader);
}
