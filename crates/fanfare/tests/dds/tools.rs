//! `fanfare dds ls`, `echo`, `ping` and `pong`, and `publish` beside them.

use crate::common::{Folder, Running, done, eventually, fanfare, groups, said, sending};
use crate::feed;
use fanfare_dds::fast::{Mapping, TypeOptions};
use fanfare_dds::types::{Kind, StructType};
use fanfare_dds::{Domain, DomainConfig, Qos};
use fanfare_fast::Program;
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::{fs, thread};

fn on(domain: u32, args: &[&str]) -> Command {
    let mut command = fanfare(&[&["dds"], args].concat());
    command.args(["--domain", &crate::domain(domain)]);
    command
}

fn pong(domain: u32) -> Running {
    let mut pong = Running::start(&mut on(domain, &["pong"]));
    pong.tells("answering");
    pong
}

#[test]
fn the_type_of_fix_messages_is_printed_for_other_languages() {
    let said = done(&mut fanfare(&["dds", "idl", "--fix"]));
    let members: Vec<_> = said.out.lines().map(str::trim).collect();
    let at = |line: &str| members.iter().position(|member| *member == line);
    let line = |line: &str| at(line).unwrap_or_else(|| panic!("no {line:?} in {}", said.out));
    assert!(line("struct FixMessage {") < line("@key string Symbol;"));
    assert!(line("sequence<octet> Body;") < line("unsigned long long Order;"));
    assert_eq!(members[line("unsigned long long MissingLast;") + 1], "};");
    let rust = done(&mut fanfare(&["dds", "idl", "--fix", "--rust"]));
    assert!(rust.out.contains("FixMessage"), "{}", rust.out);
}

#[test]
fn ping_gets_its_samples_back_and_ls_sees_pong() {
    let pong = pong(20);
    for size in ["0", "64", "100000"] {
        let mut ping = on(
            20,
            &["ping", "--count", "200", "--warm-up", "20", "--size", size],
        );
        let figures = done(ping.args(["--timeout", "60", "--json"])).json();
        assert_eq!(figures["figures"]["received"], 200, "{figures}");
        assert_eq!(figures["figures"]["wrong"], 0, "{figures}");
        assert!(figures["figures"]["roundtrip_p50_us"].as_f64().unwrap() > 0.0);
    }
    let mut seen = Value::Null;
    let mut reader = None;
    eventually("pong, and its reader", || {
        seen = done(&mut on(20, &["ls", "--json"])).json();
        let endpoints = seen["endpoints"].as_array().unwrap();
        reader = endpoints.iter().find(|e| e["side"] == "reader").cloned();
        reader.is_some()
    });
    assert_eq!(seen["figures"]["participants"], 1, "{seen}");
    let reader = reader.unwrap();
    assert_eq!(
        (&reader["topic"], &reader["type"], &reader["reliable"]),
        (&"FanfarePing".into(), &"Fanfare::Ping".into(), &true.into())
    );
    pong.interrupt();
    let told = pong.end().succeeded().err;
    assert!(told.contains("660 samples came, 0 could not"), "{told}");
}

#[test]
fn ls_marks_a_topic_whose_writer_and_reader_do_not_match() {
    let id = crate::domain(53).parse().unwrap();
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let t = StructType::new("Test::Odd").key("id", Kind::UInt32);
    let open = |name: &str, offered: &Qos| {
        let topic = domain.topic(name, &t, &Qos::default()).unwrap();
        let writer = topic.writer(offered).open().unwrap();
        (writer, topic.reader(&Qos::reliable()).open().unwrap())
    };
    let _odd = open("Odd", &Qos::best_effort());
    let _even = open("Even", &Qos::last_value());
    eventually("both topics", || {
        let seen = done(&mut on(53, &["ls", "--json"])).json();
        let topics = seen["topics"].as_array().unwrap();
        let misfits = |name: &str| {
            let topic = topics.iter().find(|topic| topic["topic"] == name)?;
            let is_whole = topic["writers"] == 1 && topic["readers"] == 1;
            is_whole.then(|| topic["misfits"].clone())
        };
        let all = ["Odd", "Even"].map(misfits);
        all == [Some(json!(["reliability"])), Some(json!([]))]
    });
    let told = done(&mut on(53, &["ls"])).out;
    let line = "topic Odd: Test::Odd (no match in reliability), 1 writing, 1 reading";
    assert!(told.contains(line), "{told}");
    let line = "topic Even: Test::Odd, 1 writing, 1 reading";
    assert!(told.contains(line), "{told}");
}

#[test]
fn ls_marks_a_topic_with_two_types_of_one_name() {
    let id = crate::domain(54).parse().unwrap();
    let old = StructType::new("Test::Twice").member("id", Kind::UInt32);
    let new = old.clone().member("added", Kind::UInt64);
    let config = DomainConfig::new(id);
    let open = |writes: &StructType, reads: &StructType, name: &str| {
        let [here, there] = [writes, reads].map(|t| {
            let domain = Domain::open(&config).unwrap();
            domain.topic(name, t, &Qos::default()).unwrap()
        });
        let writer = here.writer(&Qos::reliable()).open().unwrap();
        (writer, there.reader(&Qos::reliable()).open().unwrap())
    };
    let _odd = open(&old, &new, "Odd");
    let _even = open(&new, &new, "Even");
    eventually("both topics", || {
        let seen = done(&mut on(54, &["ls", "--json"])).json();
        let topics = seen["topics"].as_array().unwrap();
        let differ = |name: &str| {
            let topic = topics.iter().find(|topic| topic["topic"] == name)?;
            let is_whole = topic["writers"] == 1 && topic["readers"] == 1;
            is_whole.then(|| topic["types_differ"].clone())
        };
        ["Odd", "Even"].map(differ) == [Some(json!(true)), Some(json!(false))]
    });
    let told = done(&mut on(54, &["ls"])).out;
    let line = "topic Odd: Test::Twice (types differ), 1 writing, 1 reading";
    assert!(told.contains(line), "{told}");
    let line = "topic Even: Test::Twice, 1 writing, 1 reading";
    assert!(told.contains(line), "{told}");
}

#[test]
fn a_subscriber_says_that_a_publisher_has_other_topics() {
    let mut subscriber = on(66, &["subscribe", "complex", "--no-echo", "--keyed"]);
    let mut subscriber = Running::start(&mut subscriber);
    subscriber.tells("Finished subscribing");
    let file = feed("complex", 300);
    let file = file.to_str().unwrap();
    let mut publisher = on(66, &["publish", "complex", "--no-echo", "-f", file]);
    let publisher = Running::start(&mut publisher);
    subscriber.tells("a publisher is there, and not for all topics");
    publisher.interrupt();
    subscriber.interrupt();
    assert_eq!((publisher.end().code, subscriber.end().code), (1, 1));
}

#[test]
fn policies_that_do_not_fit_are_told_and_no_pong_is_an_error() {
    let _pong = pong(21);
    let mut ping = on(21, &["ping", "--best-effort", "--wait", "60"]);
    let mut ping = Running::start(&mut ping);
    ping.tells("reliability does not fit");
    ping.interrupt();
    let interrupted = ping.end();
    assert_eq!(interrupted.code, 1, "{}", interrupted.err);
    assert!(
        interrupted
            .err
            .contains("interrupted before the first pong")
    );
    let said = said(&mut on(28, &["ping", "--wait", "0.5"]));
    let told = said.err;
    assert_eq!(said.code, 1, "{told}");
    assert!(told.contains("no pong in domain"), "{told}");
}

/// `echo` prints samples of a topic that is known only from its writer's announcement.
#[test]
fn echo_prints_the_samples_of_a_topic_it_has_never_heard_of() {
    let _pong = pong(22);
    let endless = ["ping", "--count", "100000000", "--size", "3"];
    let _ping = Running::start(&mut on(22, &endless));
    let echo = ["echo", "FanfarePing", "--count", "50", "--wait", "60"];
    let lines = done(&mut on(22, &echo)).json_lines();
    assert_eq!(lines.len(), 50);
    for pair in lines.windows(2) {
        let [first, second] = [0, 1].map(|i| &pair[i]["sample"]);
        assert_eq!(pair[0]["topic"], "FanfarePing");
        assert_eq!(first["payload"]["hex"], "000102");
        assert_eq!(first["sender"], second["sender"]);
        let number = |v: &Value| v["number"].as_u64().unwrap();
        assert_eq!(number(first) + 1, number(second));
    }
}

#[test]
fn a_topic_that_nobody_writes_is_an_error_that_names_those_there_are() {
    let _pong = pong(23);
    eventually("the topics of pong", || {
        let said = said(&mut on(23, &["echo", "Nothing", "--wait", "2"]));
        let told = said.err;
        assert_eq!(said.code, 1, "{told}");
        assert!(told.contains("nobody writes topic \"Nothing\""), "{told}");
        told.contains("FanfarePing, FanfarePong")
    });
}

/// The options are those of README.md.
#[test]
fn echo_reads_one_topic_of_a_publisher_that_does_not_wait() {
    let [group, _] = groups();
    let publish = ["publish", "simple", "--multicast", &group];
    let publish = [&publish[..], &["--no-echo", "--wait", "0"]].concat();
    let mut publisher = Running::start(&mut on(29, &publish));
    publisher.tells("receiving");
    // A feed that goes on for longer than the discovery of the topic.
    let folder = Folder::new("slow-feed");
    let file = folder.file("feed.dat");
    let generate = ["fast", "generate", "simple", "-n", "20000", "-p", "1"];
    done(fanfare(&generate).args(["-o", &file]));
    let _feed = Running::start(sending(&file, &group).args(["-s", "10000"]));
    let echo = ["echo", "Quote", "--count", "3", "--wait", "60"];
    let lines = done(&mut on(29, &echo)).json_lines();
    assert_eq!(lines.len(), 3);
    assert!(lines.iter().all(|line| line["topic"] == "Quote"));
    publisher.interrupt();
    publisher.end().succeeded();
}

#[test]
fn a_publisher_tells_how_many_topics_have_no_subscriber() {
    let file = feed("simple", 400).into_os_string().into_string().unwrap();
    let id = crate::domain(35).parse().unwrap();
    let mapping = Mapping::new(Arc::new(Program::simple()), &TypeOptions::default()).unwrap();
    let (quote, qos) = (mapping.by_name("Quote").unwrap(), Qos::reliable());
    let domain = Domain::open(&DomainConfig::new(id)).unwrap();
    let topic = domain.topic("Quote", &quote.sample, &qos).unwrap();
    let _reader = topic.reader(&qos).open().unwrap();
    eventually("a match", || {
        let publish = ["publish", "simple", "--wait", "2", "-f", &file];
        let said = said(&mut on(35, &publish));
        assert_eq!(said.code, 1, "{}", said.err);
        let why = "no subscriber within 2 s for 8 of the 9 topics";
        said.err.contains(why) && said.err.contains("--wait 0 publishes without")
    });
}

#[test]
fn a_feed_comes_from_a_fifo_or_from_stdin() {
    let folder = Folder::new("fifo");
    let fifo = folder.file("feed.dat");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let bytes = fs::read(feed("simple", 400)).unwrap();
    let publish = |file: &str| {
        let options = ["--no-echo", "--wait", "0", "--json", "-f", file];
        on(36, &[&["publish", "simple"], &options[..]].concat())
    };
    let writer = thread::spawn({
        let (fifo, bytes) = (fifo.clone(), bytes.clone());
        move || fs::write(fifo, bytes)
    });
    let published = done(&mut publish(&fifo)).figures();
    assert_eq!(published["samples"], 400, "{published}");
    writer.join().unwrap().unwrap();
    let mut publisher = Running::start(publish("-").stdin(Stdio::piped()));
    publisher.reads(bytes);
    let published = publisher.end().succeeded().figures();
    assert_eq!(published["samples"], 400, "{published}");
}

/// A wait of a second for each of the echoes would take hours.
#[test]
fn echoes_of_nobody_are_not_waited_for() {
    let file = feed("simple", 20_000).into_os_string();
    let file = file.to_str().unwrap();
    for transport in ["udp", "shm"] {
        let publish = ["publish", "simple", "--wait", "0", "--json", "-f", file];
        let said = said(on(39, &publish).args(["--transport", transport]));
        assert_eq!(said.code, 1, "{}", said.err);
        assert_eq!(said.figures()["samples"], 20_000, "{}", said.out);
        let missing = "20000 of 20000 echoes did not come";
        assert!(said.err.contains(missing), "{}", said.err);
    }
}

/// Returns the first of two consecutive domains, which are exclusive to this test.
fn two_domains() -> String {
    let mut held = Vec::new();
    loop {
        let next = fanfare_peers::domain();
        if held.contains(&(next - 1)) {
            return (next - 1).to_string();
        }
        held.push(next);
    }
}

#[test]
fn an_interrupted_bench_reports_what_it_has() {
    let args = ["bench", "dds", "--json", "--domain", &two_domains()];
    let long = ["--rounds", "1000", "--round-trips", "60000"];
    let mut bench = Running::start(&mut fanfare(&[&args[..], &long].concat()));
    bench.tells("round trips: 1000 rounds");
    bench.interrupt();
    let said = bench.end();
    assert_eq!(said.code, 1, "{}", said.err);
    let end = "interrupted: these are the figures so far";
    assert!(said.err.contains(end), "{}", said.err);
    assert_eq!(said.json()["ok"], false);
}
