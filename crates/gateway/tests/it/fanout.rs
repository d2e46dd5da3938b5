//! The gateway as seen by a well-behaved counterparty.

use crate::client::{Client, value};
use crate::{ended, eventually, start, stop};
use fanfare_engine::stop::Stop;
use fanfare_fix::session::{SessionId, Version};
use fanfare_gateway::{Config, Gateway, Notice, PeerEnd, Refusal, StartError, Threads};

/// Checks that each marked message reaches each consumer once, in order, with the consumer's own
/// numbers.
fn fans_out(change: impl FnOnce(&mut Config)) {
    let gateway = start(change);
    let mut consumers: Vec<Client> = (0..5)
        .map(|i| Client::log_on(gateway.consumers(), &format!("C{i}")))
        .collect();
    let mut producer = Client::log_on(gateway.producers(), "P");
    for i in 0..100 {
        let mark = if i % 2 == 0 {
            format!("20001=P-{i}|")
        } else {
            String::new()
        };
        producer.send("W", &format!("55=EURUSD|{mark}268=1|269=0|270=1.{i}|"));
    }
    for (c, consumer) in consumers.iter_mut().enumerate() {
        for n in 0..50u64 {
            let message = consumer.receive().unwrap();
            let field = |tag| value(&message, tag).unwrap_or_default().to_owned();
            assert_eq!(field(20001), format!("P-{}", 2 * n), "{message}");
            assert_eq!(
                (field(35), field(49), field(56)),
                ("W".into(), "PLANT".into(), format!("C{c}"))
            );
            assert_eq!(field(34), (n + 2).to_string(), "{message}");
            assert!(
                message.contains("|55=EURUSD|20001="),
                "the body as it came: {message}"
            );
        }
    }
    eventually("the last message", || gateway.count("received") == 100);
    eventually("the last count", || gateway.count("deliveries") == 250);
    assert_eq!(gateway.count("marked"), 50);
    stop(gateway);
}

#[test]
fn on_one_thread() {
    fans_out(|_| {});
}

#[test]
fn on_four_threads_with_three_workers() {
    fans_out(|config| {
        config.workers = 3;
        config.threads = Threads::Dedicated;
    });
}

#[test]
fn spinning() {
    fans_out(|config| config.idle = fanfare_gateway::Idle::Spin);
}

#[test]
fn a_body_too_long_for_one_packet_arrives_whole() {
    let gateway = start(|_| {});
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut producer = Client::log_on(gateway.producers(), "P");
    let text = "x".repeat(50_000);
    producer.send("B", &format!("20001=P-1|58={text}|"));
    assert_eq!(value(&consumer.receive().unwrap(), 58), Some(text.as_str()));
    stop(gateway);
}

#[test]
fn a_consumer_that_comes_late_gets_what_comes_after() {
    let gateway = start(|_| {});
    let mut producer = Client::log_on(gateway.producers(), "P");
    // An empty mark is none.
    producer.send("W", "20001=|55=A|");
    producer.send("W", "20001=P-1|55=A|");
    eventually("the first", || gateway.count("marked") == 1);
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    producer.send("W", "20001=P-2|55=A|");
    assert_eq!(value(&consumer.receive().unwrap(), 20001), Some("P-2"));
    eventually("the second", || gateway.count("marked") == 2);
    stop(gateway);
}

#[test]
fn a_session_may_log_on_again_at_once_and_goes_on_with_its_numbers() {
    let gateway = start(|_| {});
    let mut first = Client::log_on(gateway.consumers(), "C");
    first.send("5", "");
    assert!(first.receive().unwrap().contains("|35=5|"));
    assert_eq!(first.receive(), None);
    let mut again = Client::connect(gateway.consumers(), "C");
    again.send_numbered(3, "A", "98=0|108=30|");
    let logon = again.receive().unwrap();
    assert_eq!(
        (value(&logon, 35), value(&logon, 34)),
        (Some("A"), Some("3")),
        "{logon}"
    );
    stop(gateway);
}

#[test]
fn stopping_logs_every_session_out() {
    let gateway = start(|_| {});
    let mut consumer = Client::log_on(gateway.consumers(), "C");
    let mut producer = Client::log_on(gateway.producers(), "P");
    gateway.stop().raise();
    for client in [&mut consumer, &mut producer] {
        let logout = client.receive().unwrap();
        assert!(
            logout.contains("|35=5|") && logout.contains("58=shutting down"),
            "{logout}"
        );
        client.send("5", "");
        assert_eq!(client.receive(), None);
    }
    gateway.join().unwrap();
}

#[test]
fn a_list_of_sessions_keeps_others_out() {
    let text = "[consumers]\nport = 0\nsessions = [{ sender = \"C\", target = \"PLANT\" }]\n\
                [producers]\nport = 0\n";
    let gateway = Gateway::start(&Config::from_toml(text).unwrap(), Stop::new()).unwrap();
    Client::log_on(gateway.consumers(), "C");
    let mut other = Client::connect(gateway.consumers(), "D");
    other.send("A", "98=0|108=30|");
    other.assert_closed_silently();
    ended(&gateway, |notice| {
        let session = SessionId::new(Version::Fix44, "PLANT", "D");
        let unknown = PeerEnd::Refused(Refusal::UnknownSession(session));
        matches!(notice, Notice::Ended { end, .. } if *end == unknown)
    });
    stop(gateway);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = start(|_| {});
    let mut config = Config::default();
    config.producers.port = 0;
    config.consumers.port = taken.consumers().port();
    let Err(StartError::Port(error)) = Gateway::start(&config, Stop::new()).map(drop) else {
        panic!("two gateways on one port");
    };
    assert!(
        error.to_string().contains(&taken.consumers().to_string()),
        "{error}"
    );
    stop(taken);
}
