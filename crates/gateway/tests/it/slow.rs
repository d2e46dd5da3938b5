//! Consumers that do not keep up.

use crate::client::{Client, value};
use crate::{ended, eventually, start, stop};
use fanfare_gateway::{Config, Gateway, Notice, PeerEnd, SlowPolicy};

/// More than any socket buffers hold: 4 MiB.
const MESSAGES: u64 = 4000;

fn with_policy(policy: SlowPolicy) -> Gateway {
    start(|config: &mut Config| {
        config.slow_consumer.policy = policy;
        config.slow_consumer.queue_bytes = 100_000;
    })
}

/// Runs one consumer that reads everything and another that reads nothing. Returns the latter.
fn overload(gateway: &Gateway) -> Client {
    let slow = Client::log_on(gateway.consumers(), "SLOW");
    let mut fast = Client::log_on(gateway.consumers(), "FAST");
    let mut producer = Client::log_on(gateway.producers(), "P");
    let text = "x".repeat(1000);
    for i in 0..MESSAGES {
        producer.send("B", &format!("20001=P-{i}|58={text}|"));
        let message = fast.receive().expect("the other consumer goes on");
        assert_eq!(value(&message, 20001), Some(format!("P-{i}").as_str()));
    }
    slow
}

#[test]
fn policy_disconnect_ends_the_slow_one_with_a_reason() {
    let gateway = with_policy(SlowPolicy::Disconnect);
    let mut slow = overload(&gateway);
    ended(&gateway, |notice| {
        matches!(notice, Notice::Ended { end: PeerEnd::SlowConsumer { .. }, session: Some(s), .. }
            if &*s.target == "SLOW")
    });
    assert_eq!(gateway.count("slow_consumers"), 1);
    while slow.receive().is_some() {}
    stop(gateway);
}

/// A message to the slow consumer: of the producer, or about missing messages.
enum Got {
    Message(u64),
    Missing { count: u64, first: u64, last: u64 },
}

fn got(message: &str) -> Got {
    if let Some(mark) = value(message, 20001) {
        return Got::Message(mark[2..].parse().unwrap());
    }
    assert_eq!(value(message, 35), Some("B"), "{message}");
    assert_eq!(value(message, 148), Some("Messages missing"), "{message}");
    assert_eq!(value(message, 33), Some("1"), "{message}");
    let text = value(message, 58).unwrap();
    let word = |name: &str| {
        let word = text.split(' ').find_map(|word| word.strip_prefix(name));
        word.unwrap_or_else(|| panic!("{name} {text}"))
    };
    assert_eq!(word("missing="), "slow-consumer", "{text}");
    assert!(word("from=") <= word("to="), "{text}");
    let number = |name: &str| word(name).parse().unwrap();
    Got::Missing {
        count: number("count="),
        first: number("first="),
        last: number("last="),
    }
}

/// Checks that the messages received and those reported missing are all messages sent, in order.
#[test]
fn policy_drop_tells_the_consumer_what_it_leaves_out_and_where() {
    let gateway = with_policy(SlowPolicy::Drop);
    let mut slow = overload(&gateway);
    // The slow one's last message is counted before or after the other's is read.
    eventually("the last count", || {
        gateway.count("deliveries") + gateway.count("dropped") == 2 * MESSAGES
    });
    let dropped = gateway.count("dropped");
    assert!(dropped > 0 && dropped < MESSAGES, "{dropped} dropped");
    let mut told = Vec::new();
    eventually("a notice", || {
        told.extend(gateway.notices());
        let of_slow = |notice: &Notice| match notice {
            Notice::LeftOut { session, count, .. } => &*session.target == "SLOW" && *count > 0,
            _ => false,
        };
        told.iter().any(of_slow)
    });
    let (mut next, mut missing, mut seq) = (0, 0, 2);
    while next < MESSAGES {
        let message = slow.receive().expect("the slow one stays connected");
        assert_eq!(value(&message, 34), Some(seq.to_string().as_str()));
        seq += 1;
        match got(&message) {
            Got::Message(number) => {
                assert_eq!(number, next, "a hole that nobody told of");
                next += 1;
            }
            Got::Missing { count, first, last } => {
                assert_eq!((first, last + 1), (next + 1, first + count));
                next = last;
                missing += count;
            }
        }
    }
    assert_eq!(missing, dropped);
    // The next message arrives again, complete and at once.
    let mut producer = Client::log_on(gateway.producers(), "P2");
    producer.send("B", &format!("20001=P-{MESSAGES}|58=x|"));
    assert!(matches!(
        got(&slow.receive().unwrap()),
        Got::Message(MESSAGES)
    ));
    slow.send("5", "");
    let mut sum = 0;
    eventually("the sum", || {
        told.extend(gateway.notices());
        let ended = told.iter().find_map(|notice| match notice {
            Notice::Ended {
                session: Some(session),
                left_out,
                ..
            } => (&*session.target == "SLOW").then_some(*left_out),
            _ => None,
        });
        sum = ended.unwrap_or(0);
        ended.is_some()
    });
    assert_eq!(sum, dropped);
    stop(gateway);
}
