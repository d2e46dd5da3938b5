//! The features of the two ports: TLS, certificates, networks, SubIDs, message logs, and sessions
//! that are added and removed.

use crate::client::{Client, value};
use crate::{ended, eventually, start, stop};
use fanfare_engine::agent::Crew;
use fanfare_engine::host::{Handler, Host, Initiator, LogTrouble, Peer, Refusal};
use fanfare_engine::idle::Idle;
use fanfare_engine::stop::Stop;
use fanfare_engine::tls::{Identity, TlsClient};
use fanfare_fix::session::{self, AppMessage, DisconnectReason, SessionId, Version};
use fanfare_gateway::{Config, Gateway, Notice, Pair, PeerEnd, PortTls};
use fanfare_peers::Scratch;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

pub(crate) fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../engine/testdata/tls")
        .join(name)
}

/// The observations of a counterparty over TLS.
pub(crate) enum Seen {
    LoggedOn,
    Message(String),
    Ended(DisconnectReason),
    Refused,
}

struct Trader(Sender<Seen>);

impl Handler for Trader {
    fn on_message(&mut self, _: &mut Peer<'_>, message: &AppMessage<'_>) {
        let bytes = message.message.bytes();
        let text = String::from_utf8_lossy(bytes).replace('\x01', "|");
        let _ = self.0.send(Seen::Message(text));
    }

    fn on_logon(&mut self, _: &mut Peer<'_>) {
        let _ = self.0.send(Seen::LoggedOn);
    }

    fn on_disconnect(&mut self, _: &mut Peer<'_>, reason: DisconnectReason) {
        let _ = self.0.send(Seen::Ended(reason));
    }

    fn on_refused(&mut self, _: SocketAddr, _: &Refusal) {
        let _ = self.0.send(Seen::Refused);
    }
}

/// A consumer over TLS on a thread of its own.
pub(crate) struct TlsConsumer {
    seen: Receiver<Seen>,
    crew: Crew,
}

impl TlsConsumer {
    pub(crate) fn connect(to: SocketAddr, name: &str, certificate: Option<&str>) -> Self {
        let own = certificate.map(|name| Identity {
            certificates: file(&format!("{name}.pem")),
            key: file(&format!("{name}.key")),
        });
        let tls = TlsClient::new(&file("root.pem"), "exchange.test", own.as_ref()).unwrap();
        let session = session::Config::new(SessionId::new(Version::Fix44, name, "PLANT"));
        let (sender, seen) = channel();
        let mut host = Host::new(Trader(sender)).unwrap();
        host.initiate(Initiator::new(session, vec![to]).tls(tls))
            .unwrap();
        let mut crew = Crew::new(Stop::new());
        crew.spawn(host, Idle::BackOff, None).unwrap();
        Self { seen, crew }
    }

    pub(crate) fn next(&self) -> Seen {
        self.seen
            .recv_timeout(std::time::Duration::from_secs(60))
            .expect("nothing seen in a minute")
    }

    pub(crate) fn close(self) {
        self.crew.stop().raise();
        self.crew.join().unwrap();
    }
}

fn encrypted(change: impl FnOnce(&mut PortTls)) -> Gateway {
    let mut tls = PortTls {
        certificate: file("server.pem"),
        key: file("server.key"),
        client_ca: Some(file("root.pem")),
        check_client_name: true,
    };
    change(&mut tls);
    start(|config| config.consumers.tls = Some(tls))
}

/// More than a connection accepts at once, so that the queue is used too.
const MESSAGES: usize = 3000;

#[test]
fn consumers_with_a_certificate_get_every_message_over_tls() {
    let gateway = encrypted(|_| {});
    let trader = TlsConsumer::connect(gateway.consumers(), "trader.test", Some("client"));
    assert!(matches!(trader.next(), Seen::LoggedOn));
    let mut producer = Client::log_on(gateway.producers(), "P");
    let text = "x".repeat(700);
    for number in 0..MESSAGES {
        producer.send("B", &format!("20001=P-{number}|58={text}|"));
    }
    for number in 0..MESSAGES {
        let Seen::Message(message) = trader.next() else {
            panic!("the session ended before message {number}");
        };
        assert_eq!(value(&message, 34), Some((number + 2).to_string().as_str()));
        assert_eq!(value(&message, 20001), Some(format!("P-{number}").as_str()));
    }
    assert_eq!(
        gateway.count("dropped") + gateway.count("slow_consumers"),
        0
    );
    stop(gateway);
    let logged_out = |seen| matches!(seen, Seen::Ended(DisconnectReason::LogoutByPeer));
    assert!(logged_out(trader.next()));
    trader.close();
}

#[test]
fn who_has_no_certificate_or_anothers_is_turned_away() {
    let gateway = encrypted(|_| {});
    // A certificate of another CompID.
    let other = TlsConsumer::connect(gateway.consumers(), "VICTIM", Some("client"));
    ended(&gateway, |notice| {
        let Notice::Ended { end, .. } = notice else {
            return false;
        };
        matches!(end, PeerEnd::Refused(Refusal::Certificate { session, .. })
            if &*session.target == "VICTIM")
    });
    assert!(matches!(other.next(), Seen::Ended(_)));
    other.close();
    // A certificate of another root, no certificate, and plain text: TLS refuses them.
    for certificate in [Some("outsider"), None] {
        let stranger = TlsConsumer::connect(gateway.consumers(), "trader.test", certificate);
        ended(&gateway, tls_failed);
        assert!(matches!(stranger.next(), Seen::Ended(_) | Seen::Refused));
        stranger.close();
    }
    let mut plain = Client::connect(gateway.consumers(), "C");
    plain.send("A", "98=0|108=0|141=Y|");
    assert!(plain.receive().is_none());
    ended(&gateway, tls_failed);
    assert_eq!(gateway.count("logons"), 0);
    stop(gateway);
}

fn tls_failed(notice: &Notice) -> bool {
    let Notice::Ended { end, .. } = notice else {
        return false;
    };
    matches!(end, PeerEnd::Refused(Refusal::Transport { error, .. }) if error.starts_with("TLS"))
}

#[test]
fn a_certificate_of_any_name_is_enough_if_the_configuration_says_so() {
    let gateway = encrypted(|tls| tls.check_client_name = false);
    let trader = TlsConsumer::connect(gateway.consumers(), "DESK", Some("client"));
    assert!(matches!(trader.next(), Seen::LoggedOn));
    trader.close();
    stop(gateway);
}

#[test]
fn certificates_that_cannot_be_used_are_named_before_a_port_is_opened() {
    let text = "[consumers.tls]\ncertificate = \"none.pem\"\nkey = \"none.key\"\n";
    let config = Config::from_toml(text).unwrap();
    let why = config.check_files().unwrap_err();
    let why = std::error::Error::source(&why).unwrap().to_string();
    assert!(why.contains("none.key"), "{why}");
    assert!(Gateway::start(&config, Stop::new()).is_err());
}

#[test]
fn a_processor_that_does_not_exist_is_named_before_a_port_is_opened() {
    let text = "pin = [100000]\n[producers]\nport = 0\n[consumers]\nport = 0\n";
    let config = Config::from_toml(text).unwrap();
    let started = Gateway::start(&config, Stop::new()).map(drop);
    for outcome in [config.check_files(), started] {
        let why = outcome.unwrap_err();
        let why = std::error::Error::source(&why).unwrap().to_string();
        assert!(why.starts_with("`pin` = 100000: "), "{why}");
    }
}

#[test]
fn only_the_networks_of_the_list_may_connect() {
    let text = "[consumers]\nport = 0\nallow = [\"10.0.0.0/8\"]\n[producers]\nport = 0\n";
    let gateway = Gateway::start(&Config::from_toml(text).unwrap(), Stop::new()).unwrap();
    Client::connect(gateway.consumers(), "C").assert_closed_silently();
    let not_allowed = PeerEnd::Refused(Refusal::NotAllowed);
    ended(
        &gateway,
        |notice| matches!(notice, Notice::Ended { end, .. } if *end == not_allowed),
    );
    Client::log_on(gateway.producers(), "P");
    stop(gateway);
    let why = Config::from_toml("[consumers]\nallow = [\"10.0.0.0/99\"]\n").unwrap_err();
    assert!(why.to_string().contains("10.0.0.0/99"), "{why}");
}

#[test]
fn sessions_of_one_comp_id_are_told_apart_by_their_sub_ids() {
    let gateway = start(|_| {});
    let mut desks: Vec<Client> = ["LONDON", "PARIS"]
        .iter()
        .map(|desk| {
            let mut client = Client::connect(gateway.consumers(), "BANK");
            client.header = format!("50={desk}|");
            client.send("A", "98=0|108=0|141=Y|");
            let answer = client.receive().unwrap();
            assert_eq!(value(&answer, 57), Some(*desk), "{answer}");
            client
        })
        .collect();
    let mut producer = Client::log_on(gateway.producers(), "P");
    producer.send("W", "20001=P-1|55=A|");
    for (client, desk) in desks.iter_mut().zip(["LONDON", "PARIS"]) {
        let message = client.receive().unwrap();
        assert_eq!(value(&message, 57), Some(desk), "{message}");
        assert_eq!(value(&message, 34), Some("2"));
    }
    stop(gateway);
}

#[test]
fn messages_of_all_sessions_are_logged_if_wanted() {
    let folder = Scratch::new("gateway-log");
    let text = format!("[message_log]\nfolder = \"{}\"\n", folder.display());
    let log = Config::from_toml(&text).unwrap().message_log;
    let gateway = start(|config| config.message_log = log);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut producer = Client::log_on(gateway.producers(), "P");
    for number in 0..500 {
        producer.send("W", &format!("20001=P-{number}|55=A|"));
        assert!(consumer.receive().is_some());
    }
    stop(gateway);
    let mode = std::fs::metadata(&*folder).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let (producers, consumers) = (read("producers.log"), read("worker0.log"));
    for number in [0, 250, 499] {
        let mark = format!("|20001=P-{number}|");
        for (log, direction) in [(&producers, " in  8="), (&consumers, " out 8=")] {
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(&mark)).collect();
            assert_eq!(lines.len(), 1, "{mark}");
            assert!(lines[0].contains(direction), "{}", lines[0]);
        }
    }
    // The log ends after the sessions.
    for log in [&producers, &consumers] {
        let last = log.lines().last().unwrap();
        assert!(last.contains("|58=shutting down|"), "{last}");
    }
}

#[test]
fn a_log_that_cannot_be_written_is_told_and_holds_up_nobody() {
    let folder = Scratch::new("gateway-full");
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.join("worker0.log")).unwrap();
    let text = format!("[message_log]\nfolder = \"{}\"\n", folder.display());
    let log = Config::from_toml(&text).unwrap().message_log;
    let gateway = start(|config| config.message_log = log);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut producer = Client::log_on(gateway.producers(), "P");
    for number in 0..100 {
        producer.send("W", &format!("20001=P-{number}|55=A|"));
        assert!(consumer.receive().is_some());
    }
    ended(&gateway, |notice| match notice {
        Notice::Log(LogTrouble::Disk(why)) => why.contains("worker0.log"),
        _ => false,
    });
    stop(gateway);
}

/// Adds and removes 64 sessions twice while messages flow. Each logs on and receives messages, and
/// those that are not removed miss nothing.
#[test]
fn sessions_are_added_and_removed_while_it_runs() {
    let pair = |name: &str| Pair {
        sender: name.to_owned(),
        target: "PLANT".to_owned(),
    };
    let gateway = start(|config| {
        config.workers = 2;
        config.consumers.sessions = vec![pair("STAYS")];
    });
    let mut stays = Client::log_on(gateway.consumers(), "STAYS");
    let mut producer = Client::log_on(gateway.producers(), "P");
    let port = gateway.consumer_port();
    let names: Vec<String> = (0..64).map(|i| format!("C{i}")).collect();
    let mut sent = 0;
    for _ in 0..2 {
        let mut early = Client::connect(gateway.consumers(), "C0");
        early.send("A", "98=0|108=0|141=Y|");
        early.assert_closed_silently();
        for name in &names {
            port.add_session(pair(name));
        }
        let mut clients: Vec<Client> = Vec::new();
        for name in &names {
            clients.push(Client::log_on(gateway.consumers(), name));
            producer.send("W", &format!("20001=P-{sent}|55=A|"));
            sent += 1;
        }
        eventually("the last message at all", || {
            gateway.count("marked") == sent
        });
        for (name, client) in names.iter().zip(&mut clients) {
            let got = client.receive().expect("a message");
            assert_eq!(value(&got, 35), Some("W"), "{name} {got}");
            let removed = std::thread::scope(|scope| {
                let removal = scope.spawn(|| port.remove_session(&pair(name)));
                while let Some(message) = client.receive() {
                    if value(&message, 35) == Some("5") {
                        client.send("5", "");
                    }
                }
                removal.join().unwrap()
            });
            assert!(removed.unwrap(), "{name}");
        }
        assert!(!port.remove_session(&pair("C0")).unwrap());
    }
    for number in 0..sent {
        let message = stays.receive().unwrap();
        assert_eq!(value(&message, 20001), Some(format!("P-{number}").as_str()));
    }
    // An empty list of the configuration admits every session, and one that has become empty admits
    // none.
    drop(stays);
    assert!(port.remove_session(&pair("STAYS")).unwrap());
    let mut stranger = Client::connect(gateway.consumers(), "C0");
    stranger.send("A", "98=0|108=0|141=Y|");
    stranger.assert_closed_silently();
    assert_eq!(gateway.count("logons"), 2 * 64 + 2);
    stop(gateway);
}

#[test]
fn a_reload_names_a_list_of_sessions_that_operators_have_changed() {
    let pair = |name: &str| Pair {
        sender: name.to_owned(),
        target: "PLANT".to_owned(),
    };
    let mut config = Config::default();
    let gateway = start(|own| {
        own.consumers.sessions = vec![pair("A")];
        config = own.clone();
    });
    let (handle, port) = (gateway.handle(), gateway.consumer_port());
    let keys = || handle.differences(&config).unwrap().keys;
    assert!(keys().is_empty());
    port.add_session(pair("B"));
    assert_eq!(keys(), ["consumers.sessions"]);
    let reloaded = gateway.reload(&config).unwrap();
    assert_eq!(reloaded.keys, ["consumers.sessions"]);
    assert!(keys().is_empty());
    for name in ["A", "B"] {
        // Only the first one is on the list again.
        assert_eq!(port.remove_session(&pair(name)).unwrap(), name == "A");
    }
    assert_eq!(keys(), ["consumers.sessions"]);
    stop(gateway);
}
