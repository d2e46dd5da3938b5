//! Tests of `fanfare fix acceptor` in operation: TLS, logs, stops, and stores that it cannot use.

use crate::common::manager::Manager;
use crate::common::{Folder, Running, fanfare, said, with_program};
use crate::server::{Peer, Server};
use crate::{certificate, server_files};
use fanfare_engine::agent::Agent;
use fanfare_engine::clock::Clock;
use fanfare_engine::host::{Handler, Host, Initiator, Peer as Hosted, Refusal};
use fanfare_engine::journal::{Journal, Options, folder_for};
use fanfare_engine::tls::{Identity, TlsClient};
use fanfare_fix::session::{
    AppMessage, Config, DisconnectReason, MessageStore, SessionId, Version,
};
use fanfare_peers::fix::framed;
use fanfare_wire::UtcTimestamp;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const SESSION: &str = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
    SocketAcceptPort=0\nSenderCompID=ISLD\nTargetCompID=TW\nCheckLatency=N\n";

pub(crate) fn settings(lines: &str) -> String {
    format!("{SESSION}{lines}[SESSION]\nBeginString=FIX.4.4\n")
}

pub(crate) fn logon(fields: &str) -> String {
    let header = "35=A|34=1|49=TW|52=20261121-10:00:00|56=ISLD|98=0|108=30|";
    framed("FIX.4.4", &format!("{header}{fields}"))
}

/// Returns its error when it cannot start; `before` precedes it on the command line.
pub(crate) fn refusal(test: &str, lines: &str, before: &[&str]) -> String {
    let folder = Folder::new(test);
    let path = folder.with("settings.cfg", settings(lines));
    let binary = env!("CARGO_BIN_EXE_fanfare");
    let all = [before, &[binary, "fix", "acceptor", "--config", &path]].concat();
    let refused = said(&mut with_program(Command::new(all[0]), &all[1..]));
    let said = refused.err;
    assert_eq!(refused.code, 1, "{said}");
    assert_eq!(said.lines().count(), 1, "one sentence: {said}");
    said
}

/// A client that notes whether it has logged on.
#[derive(Default)]
struct Trader {
    in_for: Option<bool>,
    why: String,
}

impl Handler for Trader {
    fn on_message(&mut self, _: &mut Hosted<'_>, _: &AppMessage<'_>) {}

    fn on_logon(&mut self, _: &mut Hosted<'_>) {
        self.in_for = Some(true);
    }

    fn on_disconnect(&mut self, _: &mut Hosted<'_>, reason: DisconnectReason) {
        self.in_for.get_or_insert(false);
        self.why += &reason.to_string();
    }

    fn on_refused(&mut self, _: SocketAddr, why: &Refusal) {
        self.why += &why.to_string();
    }
}

/// Connects with TLS. Returns whether it logs on, and the log.
fn trade(address: SocketAddr, tls: TlsClient) -> (bool, String) {
    trade_as("TW", address, tls)
}

pub(crate) fn trade_as(name: &str, address: SocketAddr, tls: TlsClient) -> (bool, String) {
    let mut host = Host::new(Trader::default()).unwrap();
    let session = Config::new(SessionId::new(Version::Fix44, name, "ISLD"));
    let initiator = Initiator::new(session, vec![address]).tls(tls);
    host.initiate(initiator).unwrap();
    let (mut clock, began) = (Clock::new(), Instant::now());
    loop {
        host.do_work(clock.read()).unwrap();
        let trader = host.handler();
        if let Some(in_for) = trader.in_for {
            return (in_for, trader.why.clone());
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{}", trader.why);
        std::thread::yield_now();
    }
}

/// Returns a client that expects a server of this name and has this certificate.
pub(crate) fn client(name: &str, own: Option<&str>) -> TlsClient {
    let own = own.map(|own| Identity {
        certificates: certificate(&format!("{own}.pem")).into(),
        key: certificate(&format!("{own}.key")).into(),
    });
    let roots = certificate("root.pem");
    TlsClient::new(Path::new(&roots), name, own.as_ref()).unwrap()
}

#[test]
fn sessions_inside_tls_with_certificates_on_both_sides() {
    let server = Server::start("tls", &settings(&server_files()));
    for own in [None, Some("outsider"), Some("expired")] {
        let (is_in, why) = trade(server.address, client("exchange.test", own));
        assert!(!is_in, "{own:?}: {why}");
    }
    let (is_in, why) = trade(server.address, client("other.test", Some("client")));
    assert!(!is_in && why.contains("not valid for name"), "{why}");
    let (is_in, why) = trade(server.address, client("exchange.test", Some("client")));
    assert!(is_in, "{why}");
}

#[test]
fn certificates_that_do_not_do_are_named() {
    let files = |certificate: &str, key: &str| {
        format!("SERVER_CERTIFICATE_FILE={certificate}\nSERVER_CERTIFICATE_KEY_FILE={key}\n")
    };
    let said = refusal("no-file", &files("absent.pem", "absent.key"), &[]);
    assert!(said.contains("absent."), "{said}");
    let mixed = files(&certificate("server.pem"), &certificate("client.key"));
    let said = refusal("mixed", &mixed, &[]);
    assert!(said.contains("server.pem: with the key "), "{said}");
    assert!(said.contains("client.key: "), "{said}");
}

#[test]
fn the_message_log_masks_passwords_and_an_interrupt_logs_everybody_out() {
    let logs = Folder::new("log");
    let lines = format!("FileLogPath={}\n", logs.path().display());
    let server = Server::start("log", &settings(&lines));
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("553=me|554=secret|")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
    server.running.interrupt();
    let logout = peer.receive().unwrap().unwrap();
    assert!(logout.contains("|35=5|"), "{logout}");
    let answer = "35=5|34=2|49=TW|52=20261121-10:00:00|56=ISLD|";
    peer.send(&framed("FIX.4.4", answer)).unwrap();
    assert_eq!(peer.receive().unwrap(), None, "closed");
    server.running.end().succeeded();
    let log = String::from_utf8(logs.read("messages.log")).unwrap();
    assert!(log.contains("|553=me|554=***|"), "{log}");
    assert!(
        !log.contains("secret") && log.contains(" out 8=FIX.4.4|"),
        "{log}"
    );
}

#[test]
fn only_an_interrupt_or_a_termination_ends_it_and_with_logouts() {
    for (end, signals) in [
        ("TERM", &["HUP", "USR1", "USR2", "PIPE", "ALRM"][..]),
        (
            "INT",
            &[
                "HUP", "QUIT", "VTALRM", "PROF", "IO", "XCPU", "XFSZ", "RTMIN+1",
            ],
        ),
    ] {
        let server = Server::start("signals", &settings(""));
        let mut peer = Peer::connect(server.address);
        peer.send(&logon("")).unwrap();
        assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
        signals
            .iter()
            .for_each(|signal| server.running.signal(signal));
        // The session still responds.
        let test = "35=1|34=2|49=TW|52=20261121-10:00:00|56=ISLD|112=still there|";
        peer.send(&framed("FIX.4.4", test)).unwrap();
        let beat = peer.receive().unwrap().unwrap();
        assert!(
            beat.contains("|35=0|") && beat.contains("|112=still there|"),
            "{beat}"
        );
        server.running.signal(end);
        let logout = peer.receive().unwrap().unwrap();
        assert!(logout.contains("|35=5|"), "{logout}");
        drop(peer);
        server.running.end().succeeded();
    }
}

#[test]
fn an_acceptor_tells_that_it_is_ready_reloads_and_stops() {
    let folder = Folder::new("notify");
    let path = folder.with("settings.cfg", settings(""));
    let manager = Manager::new(&folder);
    let mut command = fanfare(&["fix", "acceptor", "--quiet", "--config", &path]);
    let running = Running::start(command.env("NOTIFY_SOCKET", manager.path()));
    assert_eq!(manager.told(), "READY=1\nSTATUS=serving\n");
    running.signal("HUP");
    manager.is_told_of_a_reload();
    assert_eq!(manager.told(), "READY=1\nSTATUS=reloaded\n");
    running.interrupt();
    assert!(manager.told().starts_with("STOPPING=1\n"));
    running.end().succeeded();
}

#[test]
fn a_hangup_opens_the_log_again_and_reads_certificates_again() {
    let folder = Folder::new("hangup");
    let path = |name: &str| folder.path().join(name);
    let install = |name: &str| {
        for (extension, to) in [("pem", "own.pem"), ("key", "own.key")] {
            std::fs::copy(certificate(&format!("{name}.{extension}")), path(to)).unwrap();
        }
    };
    install("expired");
    let lines = format!(
        "FileLogPath={0}\nSERVER_CERTIFICATE_FILE={0}/own.pem\n\
         SERVER_CERTIFICATE_KEY_FILE={0}/own.key\n",
        folder.path().display()
    );
    let mut server = Server::start("hangup", &settings(&lines));
    let roots = certificate("root.pem");
    let client = || TlsClient::new(Path::new(&roots), "exchange.test", None).unwrap();
    let (is_in, why) = trade(server.address, client());
    assert!(!is_in && why.contains("expired"), "{why}");
    // A key that does not match: the previous pair stays, and the error is reported.
    std::fs::copy(certificate("server.pem"), path("own.pem")).unwrap();
    std::fs::rename(path("messages.log"), path("rotated.log")).unwrap();
    server.running.signal("HUP");
    let told = server.running.tells("stay in force");
    assert!(told.contains("own.pem: with the key "), "{told}");
    let (is_in, why) = trade(server.address, client());
    assert!(!is_in && why.contains("expired"), "{why}");
    install("server");
    server.running.signal("HUP");
    server
        .running
        .tells("certificates read, for new connections");
    let (is_in, why) = trade(server.address, client());
    assert!(is_in, "{why}");
    server.running.interrupt();
    server.running.end().succeeded();
    let log = String::from_utf8(folder.read("messages.log")).unwrap();
    assert!(log.contains("|35=A|"), "{log}");
    assert!(path("rotated.log").exists());
}

#[test]
fn nobody_steers_the_terminal_or_forges_a_line() {
    let logs = Folder::new("steer");
    let lines = format!("FileLogPath={}\n", logs.path().display());
    let mut server = Server::with("steer", &settings(&lines), &[]);
    let forged = "A\x1b[2J\nFIX.4.4:ISLD->TW: logged on \u{9b}\u{202e}\\";
    let shown = r"A\u{1b}[2J\nFIX.4.4:ISLD->TW: logged on \u{9b}\u{202e}\\";
    let mut stranger = Peer::connect(server.address);
    let text = logon("").replace("|49=TW|", &format!("|49={forged}|"));
    let fields = text
        .split_once("|35=")
        .unwrap()
        .1
        .rsplit_once("10=")
        .unwrap()
        .0;
    let text = framed("FIX.4.4", &format!("35={fields}"));
    stranger.send(&text).unwrap();
    let told = server.running.tells("no session ");
    assert!(
        told.trim_end()
            .ends_with(&format!("no session FIX.4.4:ISLD->{shown}")),
        "{told}"
    );
    assert_eq!(stranger.receive().unwrap(), None);
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
    let news = format!("35=B|34=2|49=TW|52=20261121-10:00:00|56=ISLD|148={forged}|33=1|58=x|");
    peer.send(&framed("FIX.4.4", &news)).unwrap();
    let printed = server.running.prints("35=B");
    assert!(
        printed.contains(&format!("|148={shown}|33=1|")),
        "{printed}"
    );
    server.running.interrupt();
    assert!(peer.receive().unwrap().unwrap().contains("|35=5|"));
    drop(peer);
    server.running.end().succeeded();
    let log = String::from_utf8(logs.read("messages.log")).unwrap();
    assert!(log.contains(&format!("|148={shown}|33=1|")), "{log}");
    assert!(
        log.chars().all(|char| char == '\n' || !char.is_control()),
        "{log:?}"
    );
}

#[test]
fn who_is_not_on_the_list_or_sends_too_fast_is_turned_away() {
    let elsewhere = settings("AllowedRemoteAddresses=10.0.0.0/8\n");
    let server = Server::start("list", &elsewhere);
    let mut peer = Peer::connect(server.address);
    // The connection may be closed before this arrives.
    let _ = peer.send(&logon(""));
    assert!(!matches!(peer.receive(), Ok(Some(_))));

    let limited = settings("ReceiveRateMessages=5\nReceiveRateInterval=60000\n");
    let server = Server::start("rate", &limited);
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
    for seq in 2..=7 {
        let beat = format!("35=0|34={seq}|49=TW|52=20261121-10:00:00|56=ISLD|");
        peer.send(&framed("FIX.4.4", &beat)).unwrap();
    }
    let logout = peer.receive().unwrap().unwrap();
    let text = "|58=more than 5 messages in 60000 ms|";
    assert!(
        logout.contains("|35=5|") && logout.contains(text),
        "{logout}"
    );
    assert_eq!(peer.receive().unwrap(), None);
}

/// Creates a store of this session in a folder, closed.
fn store(base: &Path, identity: &str) -> PathBuf {
    let folder = folder_for(base, identity);
    let now = UtcTimestamp::from_nanos(1_795_168_800_000_000_000);
    let options = Options {
        segment_bytes: 64 << 10,
        ..Options::default()
    };
    let (mut journal, _) = Journal::open(&folder, identity, options, now).unwrap();
    journal.record(b"a message").unwrap();
    journal.close().unwrap();
    folder
}

const IDENTITY: &str = "FIX.4.4:ISLD->TW";

fn kept_in(base: &Path) -> String {
    format!("FileStorePath={}\n", base.display())
}

#[test]
fn a_store_of_another_session_or_a_damaged_one_is_told() {
    let base = Folder::new("other-store");
    let other = store(base.path(), "FIX.4.4:ISLD->ELSE");
    let ours = folder_for(base.path(), IDENTITY);
    std::fs::rename(&other, &ours).unwrap();
    let said = refusal("other", &kept_in(base.path()), &[]);
    assert!(
        said.contains("belongs to session FIX.4.4:ISLD->ELSE, not to "),
        "{said}"
    );

    std::fs::remove_dir_all(&ours).unwrap();
    let file = store(base.path(), IDENTITY).join("0000000001.journal");
    let mut image = std::fs::read(&file).unwrap();
    image[20] ^= 1;
    std::fs::write(&file, &image).unwrap();
    let said = refusal("damaged", &kept_in(base.path()), &[]);
    assert!(said.contains("0000000001.journal is damaged"), "{said}");
}

#[test]
fn a_store_in_use_is_told() {
    let base = Folder::new("used-store");
    let now = UtcTimestamp::from_nanos(1_795_168_800_000_000_000);
    let folder = folder_for(base.path(), IDENTITY);
    let _open = Journal::open(&folder, IDENTITY, Options::default(), now).unwrap();
    let said = refusal("used", &kept_in(base.path()), &[]);
    assert!(
        said.contains(" is in use by another process or session"),
        "{said}"
    );
}

/// Returns a command that mounts a file system under `base` for its child, if that is permitted
/// here.
fn mounted(base: &Path, options: &str) -> Option<Vec<String>> {
    let mount = format!(
        "mount -t tmpfs -o {options} tmpfs {} && exec \"$@\"",
        base.display()
    );
    let words = ["unshare", "-rm", "sh", "-c", &mount, "sh"].map(str::to_owned);
    let mut probe = Command::new(&words[0]);
    let allowed = probe.args(&words[1..]).arg("true").output();
    if allowed.is_ok_and(|output| output.status.success()) {
        return Some(words.to_vec());
    }
    fanfare_peers::skipped(&"no file system can be mounted here");
    None
}

#[test]
fn a_full_disk_and_a_read_only_one_are_told() {
    for (test, options, expected) in [
        (
            "full",
            "size=20k",
            "the disk is full: cannot create journal file ",
        ),
        ("read-only", "ro", " is read-only"),
    ] {
        let base = Folder::new(&format!("{test}-store"));
        let Some(before) = mounted(base.path(), options) else {
            return;
        };
        let before: Vec<&str> = before.iter().map(String::as_str).collect();
        let said = refusal(test, &kept_in(base.path()), &before);
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_thousand_callers_that_say_nothing_keep_nobody_out() {
    let server = Server::start("silent", &settings("LogonTimeout=5\n"));
    // The limit is the number that this process may have open besides the other tests.
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap();
    let limit = limits
        .lines()
        .find(|line| line.starts_with("Max open files"));
    let limit = limit.and_then(|line| line.split_whitespace().nth(3)?.parse().ok());
    let count = limit.unwrap_or(1_024_usize).saturating_sub(400).min(1_100);
    assert!(count > 100, "this process may open hardly a file");
    let silent: Vec<_> = (0..count).map(|_| Peer::connect(server.address)).collect();
    let mut peer = Peer::connect(server.address);
    peer.send(&logon("")).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=A|"));
    for mut caller in silent {
        assert_eq!(caller.receive(), Ok(None), "closed without a word");
    }
    let test = framed(
        "FIX.4.4",
        "35=1|34=2|49=TW|52=20261121-10:00:00|56=ISLD|112=A|",
    );
    peer.send(&test).unwrap();
    assert!(peer.receive().unwrap().unwrap().contains("|35=0|34=2|"));
}
