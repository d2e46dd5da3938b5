//! Tests that `crates/dds/examples/subscribe_quotes.rs` reads the samples of `fanfare dds publish`,
//! and those of `publish_quotes.rs`.

#[path = "../../../dds/examples/subscribe_quotes.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod example;
#[path = "../../../dds/examples/publish_quotes.rs"]
#[expect(dead_code, reason = "its main is not this program's")]
mod publisher;

use crate::common::{done, fanfare};
use crate::{Piecemeal, domain, feed};
use serde_json::Value;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

#[test]
fn a_rust_structure_holds_what_the_publisher_decoded() {
    let (file, domain) = (feed("simple", 60_000), domain(50));
    let publish = ["dds", "publish", "simple", "--no-echo", "--wait", "0"];
    let mut publish = fanfare(&publish);
    publish.args(["--domain", &domain, "-f", "/dev/stdin"]);
    let (publisher, mut messages) = Piecemeal::start(&mut publish, &file);
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
    // The reader has discovered the writer, but the writer may not have discovered the reader: the
    // first quotes may be lost. The file lasts for half a minute.
    while !reading.is_finished() {
        messages.some(1_000);
        thread::sleep(Duration::from_millis(50));
    }
    messages.rest();
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
    let first = |message: &Value| message["fields"]["SequenceNumber"] == quotes[0][0];
    let expected = &expected[expected.iter().position(first).unwrap()..][..100];
    assert_eq!(quotes.len(), 100);
    for (quote, message) in quotes.iter().zip(expected) {
        let fields = ["SequenceNumber", "Price", "SecurityId"].map(|name| &message["fields"][name]);
        assert_eq!(&quote.map(Value::from).each_ref(), &fields);
    }
    publisher.end().succeeded();
}

#[test]
fn a_rust_structure_is_read_from_the_one_that_wrote_it() {
    let domain: u32 = domain(51).parse().unwrap();
    let reading = thread::spawn(move || {
        let mut left = 20;
        let done = example::subscribe(
            domain,
            |_| {},
            |quote| {
                let number = quote.SequenceNumber;
                assert!((1..=20).contains(&number), "{quote:?}");
                assert_eq!(quote.Price, 2_500 + number % 7);
                left -= 1;
                left > 0
            },
        );
        done.unwrap();
    });
    // What is published before the two have found each other is not read.
    while !reading.is_finished() {
        publisher::publish(domain, 20, Duration::from_millis(5)).unwrap();
    }
    reading.join().unwrap();
}
