//! Misbehaving peers affect only themselves.

use crate::client::{Client, frame, message, value};
use crate::{ended, eventually, start, stop};
use fanfare_fix::session::{FieldTooLong, SessionId, Version};
use fanfare_gateway::{Gateway, MessageTrouble, Notice, PeerEnd, Refusal};

/// A consumer and a producer that must be unaffected.
struct Bystanders {
    consumer: Client,
    producer: Client,
    sent: u64,
}

impl Bystanders {
    fn join(gateway: &Gateway) -> Self {
        let consumer = Client::log_on(gateway.consumers(), "GOOD");
        let producer = Client::log_on(gateway.producers(), "GOODP");
        Self {
            consumer,
            producer,
            sent: 0,
        }
    }

    fn assert_served(&mut self) {
        self.sent += 1;
        self.producer
            .send("W", &format!("20001=G-{}|55=A|", self.sent));
        let message = self
            .consumer
            .receive()
            .expect("the bystander is still connected");
        assert_eq!(
            value(&message, 20001),
            Some(format!("G-{}", self.sent).as_str())
        );
    }
}

/// Returns the session of a counterparty.
fn session(name: &str) -> SessionId {
    SessionId::new(Version::Fix44, "PLANT", name)
}

fn refused(gateway: &Gateway, why: Refusal) {
    ended(
        gateway,
        |notice| matches!(notice, Notice::Ended { end: PeerEnd::Refused(r), .. } if *r == why),
    );
}

#[test]
fn first_bytes_that_are_no_logon_close_the_connection_without_an_answer() {
    let gateway = start(|config| config.limits.message_bytes = 4096);
    let mut good = Bystanders::join(&gateway);
    let bad_sum = String::from_utf8(message("X", 1, "A", "98=0|108=30|")).unwrap();
    let bad_sum = bad_sum[..bad_sum.len() - 4].to_owned() + "999\x01";
    let long = FieldTooLong {
        tag: 49,
        len: 3000,
        limit: 64,
    };
    let cases: [(&[u8], Refusal); 10] = [
        (
            b"GET / HTTP/1.1\r\n\r\n8=FIX.4.4\x019=x\x01",
            Refusal::Garbled,
        ),
        (b"8=FIX.4.4\x019=-5\x0135=A\x0110=000\x01", Refusal::Garbled),
        (
            b"8=FIX.4.4\x019=1000000000000000000\x0135=A\x0110=000\x01",
            Refusal::Garbled,
        ),
        (bad_sum.as_bytes(), Refusal::Garbled),
        (
            &message("X", 1, "A", "98=0|108=30|no field|"),
            Refusal::Garbled,
        ),
        (
            &frame(&format!("35=A|58={}|", "y".repeat(9000))),
            Refusal::LongLogon(4096),
        ),
        (
            &frame("35=0|49=X|56=PLANT|34=1|52=20260101-00:00:00|"),
            Refusal::NotLogon,
        ),
        (
            &frame("35=A|49=X|34=1|52=20260101-00:00:00|98=0|108=30|"),
            Refusal::NotLogon,
        ),
        (
            &frame("35=A|56=PLANT|34=1|52=20260101-00:00:00|98=0|108=30|"),
            Refusal::NotLogon,
        ),
        (
            &frame(&format!("35=A|49={}|56=PLANT|34=1|", "X".repeat(3000))),
            Refusal::TooLong(long),
        ),
    ];
    for (bytes, why) in cases {
        for port in [gateway.consumers(), gateway.producers()] {
            let mut client = Client::connect(port, "X");
            client.send_raw(bytes);
            client.assert_closed_silently();
            refused(&gateway, why.clone());
        }
    }
    good.assert_served();
    stop(gateway);
}

#[test]
fn endless_bytes_without_a_message_end_the_connection() {
    let gateway = start(|config| config.limits.message_bytes = 4096);
    let mut good = Bystanders::join(&gateway);
    let mut client = Client::connect(gateway.consumers(), "X");
    for _ in 0..1000 {
        client.send_raw(&[b'x'; 1000]);
    }
    assert_eq!(client.receive(), None);
    good.assert_served();
    stop(gateway);
}

#[test]
fn garbage_within_a_session_is_skipped() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut producer = Client::log_on(gateway.producers(), "X");
    producer.send_raw(b"8=FIX.4.4\x019=5\x0135=0\x0110=000\x01");
    producer.send_raw(b"garbage between two messages");
    producer.send("W", "20001=X-1|55=A|");
    assert_eq!(value(&good.consumer.receive().unwrap(), 20001), Some("X-1"));
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_second_connection_for_a_live_session_is_closed_without_data() {
    let gateway = start(|_| {});
    let mut first = Client::log_on(gateway.consumers(), "C");
    let mut second = Client::connect(gateway.consumers(), "C");
    second.send("A", "98=0|108=30|141=Y|");
    second.assert_closed_silently();
    refused(&gateway, Refusal::AlreadyConnected(session("C")));
    let mut producer = Client::log_on(gateway.producers(), "P");
    producer.send("W", "20001=P-1|55=A|");
    assert_eq!(
        value(&first.receive().unwrap(), 34),
        Some("2"),
        "the first goes on"
    );
    stop(gateway);
}

#[test]
fn numbers_too_low_absent_or_zero_end_or_reject_only_that_session() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut low = Client::log_on(gateway.consumers(), "LOW");
    low.send_numbered(1, "0", "");
    let logout = low.receive().unwrap();
    assert!(
        logout.contains("MsgSeqNum too low, expecting 2 but received 1"),
        "{logout}"
    );
    assert_eq!(low.receive(), None);
    let mut zero = Client::log_on(gateway.consumers(), "ZERO");
    zero.send_numbered(0, "0", "");
    assert!(zero.receive().unwrap().contains("|35=5|"));
    let mut absent = Client::log_on(gateway.consumers(), "ABSENT");
    absent.send_raw(&frame("35=0|49=ABSENT|56=PLANT|52=20260101-00:00:00|"));
    let answer = absent.receive().expect("an answer");
    assert!(
        answer.contains("|35=5|") || answer.contains("|35=3|"),
        "{answer}"
    );
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_gap_is_asked_for_once() {
    let gateway = start(|_| {});
    let mut client = Client::log_on(gateway.producers(), "HIGH");
    client.send_numbered(5, "W", "20001=H-5|55=A|");
    client.send_numbered(6, "W", "20001=H-6|55=A|");
    let request = client.receive().unwrap();
    assert_eq!(
        (value(&request, 35), value(&request, 7)),
        (Some("2"), Some("2")),
        "{request}"
    );
    client.send_numbered(2, "4", "43=Y|122=20260101-00:00:00|123=Y|36=5|");
    eventually("the queued messages", || gateway.count("marked") == 2);
    stop(gateway);
}

#[test]
fn a_thousand_connections_that_say_nothing_are_closed_in_time_and_harm_nobody() {
    fanfare_engine::limits::raise_open_files(8192).unwrap();
    let gateway = start(|config| config.limits.logon_timeout_s = 3);
    let mut good = Bystanders::join(&gateway);
    let silent: Vec<Client> = (0..1000)
        .map(|_| Client::connect(gateway.consumers(), "S"))
        .collect();
    good.assert_served();
    for client in silent {
        client.assert_closed_silently();
    }
    refused(&gateway, Refusal::Silent);
    good.assert_served();
    eventually("the refusals", || gateway.count("refused") == 1000);
    stop(gateway);
}

/// Keeps the port full of silent connections, more than it accepts.
fn flood(to: std::net::SocketAddr, count: usize) -> Vec<Client> {
    (0..count).map(|_| Client::connect(to, "S")).collect()
}

#[test]
fn silent_connections_however_many_keep_nobody_out_of_either_port() {
    fanfare_engine::limits::raise_open_files(8192).unwrap();
    let gateway = start(|config| {
        config.producers.max_sessions = 60;
        config.consumers.max_sessions = 60;
        config.limits.not_logged_on = 40;
        config.limits.not_logged_on_per_address = 30;
        config.limits.logon_timeout_s = 3600;
    });
    let mut silent = flood(gateway.consumers(), 300);
    silent.extend(flood(gateway.producers(), 300));
    let mut good = Bystanders::join(&gateway);
    good.assert_served();
    refused(&gateway, Refusal::TooManyFromAddress);
    eventually("those turned away", || gateway.count("refused") >= 540);
    // 30 from one address at each port, one of which was replaced by the bystander.
    assert_eq!(gateway.count("waiting"), 58);
    // A session that is logged on is never ended because of connections that are not.
    silent.extend(flood(gateway.consumers(), 300));
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_port_full_of_silent_connections_gives_their_places_to_sessions() {
    fanfare_engine::limits::raise_open_files(8192).unwrap();
    let gateway = start(|config| {
        config.consumers.max_sessions = 20;
        config.limits.logon_timeout_s = 3600;
    });
    let mut good = Bystanders::join(&gateway);
    let _silent = flood(gateway.consumers(), 50);
    eventually("a full port", || gateway.count("waiting") == 19);
    let sessions: Vec<Client> = (0..19)
        .map(|i| Client::log_on(gateway.consumers(), &format!("C{i}")))
        .collect();
    assert_eq!(gateway.count("waiting"), 0);
    Client::connect(gateway.consumers(), "C99").assert_closed_silently();
    refused(&gateway, Refusal::TooManyConnections);
    good.assert_served();
    assert_eq!(sessions.len(), 19);
    stop(gateway);
}

#[test]
fn a_reload_changes_who_may_log_on_and_ends_no_session() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut config = fanfare_gateway::Config::default();
    config.consumers.sessions = vec![fanfare_gateway::Pair {
        sender: "NEW".to_owned(),
        target: "PLANT".to_owned(),
    }];
    config.workers = 2;
    let fixed = gateway.reload(&config).unwrap().fixed;
    assert!(fixed.contains(&"workers"), "{fixed:?}");
    eventually("the new rules", || {
        let mut stranger = Client::connect(gateway.consumers(), "OLD");
        stranger.send("A", "98=0|108=0|141=Y|");
        stranger.receive().is_none()
    });
    refused(&gateway, Refusal::UnknownSession(session("OLD")));
    Client::log_on(gateway.consumers(), "NEW");
    good.assert_served();
    config.workers = 0;
    assert!(gateway.reload(&config).is_err());
    stop(gateway);
}

#[test]
fn what_strangers_leave_behind_is_bounded() {
    let gateway = start(|config| config.limits.remembered_sessions = 5);
    let mut good = Bystanders::join(&gateway);
    for i in 0..20 {
        Client::log_on(gateway.consumers(), &format!("S{i}"));
    }
    eventually("their ends", || gateway.count("ended") == 20);
    // The last session continues its numbers, the first one restarts them.
    let mut last = Client::connect(gateway.consumers(), "S19");
    last.send_numbered(2, "A", "98=0|108=0|");
    assert_eq!(value(&last.receive().unwrap(), 34), Some("2"));
    let mut first = Client::connect(gateway.consumers(), "S0");
    first.send("A", "98=0|108=0|");
    assert_eq!(value(&first.receive().unwrap(), 34), Some("1"));
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_logon_that_is_too_long_ends_the_connection_before_it_is_whole() {
    let gateway = start(|config| config.limits.logon_bytes = 1000);
    let mut good = Bystanders::join(&gateway);
    let mut long = Client::connect(gateway.consumers(), "LONG");
    let logon = message(
        "LONG",
        1,
        "A",
        &format!("98=0|108=0|58={}|", "x".repeat(3000)),
    );
    long.send_raw(&logon[..1500]);
    long.assert_closed_silently();
    refused(&gateway, Refusal::LongLogon(1000));
    good.assert_served();
    stop(gateway);
}

#[test]
fn what_comes_with_the_logon_in_one_packet_is_received() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut producer = Client::connect(gateway.producers(), "Q");
    let mut bytes = message("Q", 1, "A", "98=0|108=0|141=Y|");
    bytes.extend(message("Q", 2, "W", "20001=Q-1|55=A|"));
    let cut = message("Q", 3, "W", "20001=Q-2|55=A|");
    bytes.extend(&cut[..20]);
    producer.send_raw(&bytes);
    assert_eq!(value(&good.consumer.receive().unwrap(), 20001), Some("Q-1"));
    producer.send_raw(&cut[20..]);
    assert_eq!(value(&good.consumer.receive().unwrap(), 20001), Some("Q-2"));
    stop(gateway);
}

#[test]
fn more_connections_than_allowed_are_turned_away() {
    let gateway = start(|config| config.consumers.max_sessions = 2);
    let mut good = Bystanders::join(&gateway);
    let _second = Client::log_on(gateway.consumers(), "C2");
    let third = Client::connect(gateway.consumers(), "C3");
    third.assert_closed_silently();
    refused(&gateway, Refusal::TooManyConnections);
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_consumer_that_floods_harms_nobody() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut flooder = Client::log_on(gateway.consumers(), "FLOOD");
    for _ in 0..20_000 {
        flooder.send("B", "58=flood|");
    }
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_message_that_cannot_be_read_is_told_with_its_session_and_number() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut broken = Client::log_on(gateway.consumers(), "BROKEN");
    broken.send("B", "148=x|354=3|355=abcdef|");
    let reject = broken.receive().unwrap();
    assert_eq!(value(&reject, 35), Some("3"), "{reject}");
    ended(&gateway, |notice| {
        let Notice::Messages {
            session: of, what, ..
        } = notice
        else {
            return false;
        };
        assert!(matches!(what, MessageTrouble::Unreadable { seq: 2, .. }));
        *of == session("BROKEN")
    });
    good.assert_served();
    stop(gateway);
}

#[test]
fn a_connection_cut_in_the_middle_of_a_message_is_lost_and_no_more() {
    let gateway = start(|_| {});
    let mut good = Bystanders::join(&gateway);
    let mut cut = Client::log_on(gateway.producers(), "CUT");
    let whole = message("CUT", 2, "W", "20001=X-1|55=A|");
    cut.send_raw(&whole[..whole.len() - 3]);
    drop(cut);
    ended(&gateway, |notice| {
        matches!(
            notice,
            Notice::Ended {
                session: Some(_),
                ..
            }
        )
    });
    good.assert_served();
    stop(gateway);
}
