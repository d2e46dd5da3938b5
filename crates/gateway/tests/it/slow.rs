//! Consumers that do not keep up.

use crate::client::{Client, value};
use crate::{ended, eventually, start, stop};
use fanfare_gateway::{Config, Gateway, Notice, PeerEnd, SlowPolicy};

/// More than any socket buffers: 4 MiB.
const MESSAGES: u64 = 4000;

fn with_policy(policy: SlowPolicy) -> Gateway {
    start(|config: &mut Config| {
        config.slow_consumer.policy = policy;
        config.slow_consumer.queue_bytes = 100_000;
    })
}

/// One consumer reads everything while another reads nothing; gives the one that did not read.
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

#[test]
fn policy_drop_counts_what_it_leaves_out_and_its_numbers_have_no_gap() {
    let gateway = with_policy(SlowPolicy::Drop);
    let mut slow = overload(&gateway);
    // The slow one's last message is counted before or after the other's is read.
    eventually("the last count", || {
        gateway.count("deliveries") + gateway.count("dropped") == 2 * MESSAGES
    });
    let dropped = gateway.count("dropped");
    assert!(dropped > 0 && dropped < MESSAGES, "{dropped} dropped");
    let (mut got, mut last) = (0, None);
    while got < MESSAGES - dropped {
        let message = slow.receive().expect("the slow one stays connected");
        got += 1;
        assert_eq!(value(&message, 34), Some((got + 1).to_string().as_str()));
        let n: u64 = value(&message, 20001).unwrap()[2..].parse().unwrap();
        assert!(last.is_none_or(|last| n > last), "in order");
        last = Some(n);
    }
    stop(gateway);
}
