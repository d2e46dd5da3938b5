//! `crates/bus/examples/quotes.rs` reads what `fanfare dds publish` publishes.

#[path = "../../../bus/examples/quotes.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod example;

use crate::common::{Running, done, fanfare, groups};
use crate::{domain, feed};
use serde_json::Value;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[test]
fn a_rust_structure_holds_what_the_publisher_decoded() {
    let (file, domain, [group, _]) = (feed("simple", 400), domain(50), groups());
    let publish = ["dds", "publish", "simple", "--no-echo", "--wait", "0"];
    let mut publish = fanfare(&publish);
    publish.args(["--domain", &domain, "--multicast", &group]);
    let mut publisher = Running::start(&mut publish);
    publisher.tells("receiving");
    let (told, matched) = mpsc::channel();
    let reading = thread::spawn(move || {
        let mut quotes = Vec::new();
        let on_status = move |_| _ = told.send(());
        let done = example::subscribe(domain.parse().unwrap(), on_status, |quote| {
            let (number, price) = (quote.SequenceNumber, quote.Price);
            quotes.push([number, price, quote.SecurityId.into()]);
            quotes.len() < 100
        });
        done.unwrap();
        quotes
    });
    matched.recv_timeout(Duration::from_secs(60)).unwrap();
    let (address, port) = group.split_once(':').unwrap();
    done(fanfare(&["fast", "multicast", "-a", address, "-p", port, "-f"]).arg(&file));
    let quotes = reading.join().unwrap();
    let decode = [
        "fast",
        "decode",
        "-t",
        "builtin:simple",
        "--format",
        "json",
        "-f",
    ];
    let mut expected = done(fanfare(&decode).arg(&file)).json_lines();
    expected.retain(|message| message["template"] == "Quote");
    assert_eq!(expected.len(), 100);
    for (quote, message) in quotes.iter().zip(expected) {
        let fields = ["SequenceNumber", "Price", "SecurityId"].map(|name| &message["fields"][name]);
        assert_eq!(&quote.map(Value::from).each_ref(), &fields);
    }
    publisher.end().succeeded();
}
