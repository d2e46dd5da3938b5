//! Tests of `fanfare gateway`: FAST lines in, FIX consumers and DDS subscribers out, from one file.

use crate::common::gateway::Gateway;
use crate::common::{
    Folder, Running, done, eventually, fails, fanfare, figure, groups, receive, run, sending,
};
use crate::{domain, feed};
use fanfare_fix::codec::{Frame, FrameFinder};
use fanfare_peers::fix::{framed, wire};
use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::Path;
use std::time::Duration;

/// Writes the example of the documentation into the folder, with ports and a domain of this run.
fn configuration(folder: &Folder, domain: &str, groups: &[String; 2]) -> String {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gateway.toml");
    let text = fs::read_to_string(example).unwrap();
    let text = text
        .replace("port = 3000", "port = 0")
        .replace("port = 3001", "port = 0")
        .replace("224.1.2.133:13014", &groups[0])
        .replace("224.1.2.134:13014", &groups[1])
        .replace("domain = 0", &format!("domain = {domain}"))
        .lines()
        .filter(|line| !line.starts_with("capture"))
        .collect::<Vec<_>>()
        .join("\n");
    folder.with("gateway.toml", text)
}

/// A FIX consumer on a plain socket.
struct Consumer {
    stream: TcpStream,
    bytes: Vec<u8>,
}

impl Consumer {
    fn log_on(port: &str) -> Self {
        let stream = TcpStream::connect(format!("127.0.0.1:{port}")).unwrap();
        let patience = Some(Duration::from_secs(60));
        stream.set_read_timeout(patience).unwrap();
        let mut consumer = Self {
            stream,
            bytes: Vec::new(),
        };
        let time = fanfare_engine::clock::Clock::new().read().utc;
        let time = time.text(fanfare_wire::Precision::Millis);
        let fields = format!("35=A|49=C|56=PLANT|34=1|52={time}|98=0|108=60|");
        let logon = wire(&framed("FIX.4.4", &fields));
        consumer.stream.write_all(&logon).unwrap();
        assert!(consumer.receive().contains("35=A|"));
        consumer
    }

    /// Returns the next message with `|` for SOH.
    fn receive(&mut self) -> String {
        let finder = FrameFinder::new(1 << 16);
        loop {
            if let Frame::Message { start, end } = finder.find(&self.bytes) {
                let text = String::from_utf8_lossy(&self.bytes[start..end]).replace('\x01', "|");
                self.bytes.drain(..end);
                return text;
            }
            let mut chunk = [0; 4096];
            let n = receive(&mut self.stream, &mut chunk).unwrap();
            assert!(n > 0, "the gateway closed the connection");
            self.bytes.extend_from_slice(&chunk[..n]);
        }
    }
}

/// Returns MsgType(35), and the fields of FIX.4.4 as in the template.
fn content(message: &str) -> String {
    let kept = [
        "35=", "268=", "279=", "48=", "22=", "270=", "146=", "55=", "131=",
    ];
    let fields = message.split_inclusive('|');
    fields
        .filter(|field| kept.iter().any(|tag| field.starts_with(tag)))
        .collect()
}

/// Sorts the fields: the two compared messages may have theirs in different orders, as the gateway
/// writes those of an entry in the order of the dictionary.
fn sorted(content: String) -> Vec<String> {
    let mut fields: Vec<String> = content.split_inclusive('|').map(str::to_owned).collect();
    fields.sort();
    fields
}

/// Returns the output of `fast decode` for the same file.
fn decoded(file: &Path) -> Vec<String> {
    let decode = [
        "fast",
        "decode",
        "-t",
        "builtin:complex",
        "--format",
        "fix",
        "-f",
    ];
    let text = done(fanfare(&decode).arg(file)).out.replace('\x01', "|");
    let messages = text.lines().filter(|line| !line.contains("|35=99|"));
    // FIX.4.4 requires the identifier, which the feed does not have: the number of the message.
    let identified = |line: &str| match line.split_once("|146=") {
        Some((front, behind)) if !front.contains("|131=") => {
            let number = front.split_once("|34=").unwrap().1;
            let number = number.split('|').next().unwrap();
            format!("{front}|131={number}|146={behind}")
        }
        _ => line.to_owned(),
    };
    messages.map(|line| content(&identified(line))).collect()
}

#[test]
fn a_feed_on_lossy_lines_reaches_fix_consumers_and_dds_subscribers() {
    let file = feed("complex", 400);
    let expected = decoded(&file);
    assert_eq!(expected.len(), 400);
    let (groups, domain) = (groups(), domain(27));
    let folder = Folder::new("plant");
    let config = configuration(&folder, &domain, &groups);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let subscribe = [
        "dds",
        "subscribe",
        "complex",
        "--keyed",
        "--no-echo",
        "--json",
    ];
    let mut subscriber = Running::start(fanfare(&subscribe).args(["--domain", &domain]));
    subscriber.tells("Finished subscribing");
    gateway.tells("every topic of the feed has a subscriber");
    let mut consumer = Consumer::log_on(&gateway.consumers);
    let losses = ["--second", &groups[1], "--loss-a", "0.2"];
    done(sending(&file, &groups[0]).args(losses).args(["-s", "50"]));
    for wanted in expected {
        let message = consumer.receive();
        let [got, wanted] = [content(&message), wanted].map(sorted);
        assert_eq!(got, wanted);
    }
    let received = subscriber.end().succeeded().json();
    assert_eq!(figure(&received, "samples"), 560.0, "{received}");
    assert_eq!(figure(&received, "lost"), 0.0, "{received}");
    let told = gateway.stop().out;
    for line in [
        "feed: 401 messages",
        "1 end",
        "0 messages unfit",
        "0 messages rejected",
        "feed: 560 samples published, 0 unsent",
        "0 messages missing",
        "0 unread at the stop",
        "0 not taken before the stop; 0 samples overwritten",
    ] {
        assert!(told.contains(line), "{told}");
    }
}

/// One of two gateways with the same line is killed; a subscriber to both gets each message once,
/// and none is missing.
#[test]
fn a_gateway_that_is_killed_beside_another_costs_no_message() {
    let file = feed("complex", 3_000);
    let wanted = decoded(&file)
        .iter()
        .filter(|m| m.contains("35=X|"))
        .count();
    let ([group, _], domain) = (groups(), domain(30));
    let folder = Folder::new("killed");
    let text = format!(
        "[producers]\nport = 0\n[consumers]\nport = 0\n[feed]\ntemplates = \"builtin:complex\"\n\
         lines = [\"{group}\"]\n[dds.publish]\ndomain = {domain}\nmsg_types = [\"X\"]\n\
         wait_ms = 10000\n"
    );
    let config = folder.with("gateway.toml", text);
    let [mut first, mut second] =
        [(); 2].map(|()| Gateway::start(&mut fanfare(&["gateway", &config])));
    let mut bridge = fanfare(&["dds", "bridge", "--no-publish", "--msg-types", "X"]);
    bridge.args(["--producer-port", "0", "--consumer-port", "0"]);
    let mut third = Gateway::start(bridge.args(["--domain", &domain]));
    for gateway in [&mut first, &mut second] {
        gateway.tells("DDS topic Fix_X: matched with 1 (+1)");
    }
    third.tells("DDS topic Fix_X: matched with 2 (+1)");
    let mut consumer = Consumer::log_on(&third.consumers);
    let sender = Running::start(sending(&file, &group).args(["-s", "500"]));
    (0..500).for_each(|_| assert!(consumer.receive().contains("|35=X|")));
    first.kill();
    (500..wanted).for_each(|_| assert!(consumer.receive().contains("|35=X|")));
    sender.end().succeeded();
    second.stop();
    let told = third.stop().out;
    let line = format!("dds: {wanted} taken, 0 missing, 0 own, 0 seen before");
    assert!(told.contains(&line), "{told}");
}

/// Starts gateways with one line each, which publish samples of the feed's own types; each has a
/// subscriber to every topic. Operators reach them at the sockets `ctl0` and `ctl1`.
fn publishing(folder: &Folder, domain: &str, groups: [&str; 2]) -> [Gateway; 2] {
    [0, 1].map(|at| {
        let (socket, group) = (folder.file(&format!("ctl{at}")), groups[at]);
        let text = format!(
            "control = \"{socket}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n[feed]\n\
             templates = \"builtin:complex\"\nlines = [\"{group}\"]\n\
             [feed.publish]\ndomain = {domain}\nkeyed = true\nwait_ms = 10000\n"
        );
        let config = folder.with("gateway.toml", text);
        let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
        gateway.tells("every topic of the feed has a subscriber");
        gateway
    })
}

/// Starts a subscriber to these samples.
fn subscribing(domain: &str, options: &[&str]) -> Running {
    let subscribe = ["dds", "subscribe", "complex", "--keyed", "--no-echo"];
    let mut subscribe = fanfare(&subscribe);
    subscribe.args(["--json", "--domain", domain]).args(options);
    let mut subscriber = Running::start(&mut subscribe);
    subscriber.tells("Finished subscribing");
    subscriber
}

/// The first gateway's line loses packets, the second's none.
#[test]
fn samples_of_two_gateways_come_once_and_the_second_fills_the_gaps_of_the_first() {
    let (groups, domain) = (groups(), domain(31));
    let folder = Folder::new("once");
    let once = subscribing(&domain, &["--once", "--publishers", "2"]);
    let each = subscribing(&domain, &["--publishers", "2"]);
    let gateways = publishing(&folder, &domain, [&groups[0], &groups[1]]);
    let losses = ["--second", &groups[1], "--loss-a", "0.05"];
    let mut send = sending(feed("complex", 400), &groups[0]);
    done(send.args(losses).args(["-s", "200"]));
    let received = once.end().succeeded().json();
    assert_eq!(figure(&received, "samples"), 560.0, "{received}");
    assert_eq!(figure(&received, "lost"), 0.0, "{received}");
    let dropped = figure(&received, "from_another");
    // The seed decides which packets are lost.
    assert!(dropped > 400.0 && dropped < 560.0, "{received}");
    let received = each.end().succeeded().json();
    assert_eq!(figure(&received, "samples"), 560.0 + dropped, "{received}");
    let _ = gateways.map(Gateway::stop);
}

#[test]
fn a_gateway_that_is_killed_beside_another_costs_no_sample() {
    let ([group, _], domain) = (groups(), domain(32));
    let folder = Folder::new("once-killed");
    let mut once = subscribing(&domain, &["--once", "--format", "json"]);
    let [first, second] = publishing(&folder, &domain, [&group, &group]);
    let mut send = sending(feed("complex", 400), &group);
    let sender = Running::start(send.args(["-s", "20000"]));
    (0..50).for_each(|_| _ = once.prints("\"topic\""));
    sender.signal("STOP");
    // The samples so far may all be of the second.
    let socket = folder.file("ctl0");
    let ctl = ["ctl", "--socket", &socket, "counters", "--json"];
    eventually("a sample of the first", || {
        let counters = run(&ctl).succeeded().json();
        counters["samples"].as_u64() > Some(0)
    });
    first.kill();
    sender.signal("CONT");
    sender.end().succeeded();
    let said = once.end().succeeded();
    let figures = said.err.lines().last().unwrap();
    let received = serde_json::from_str(figures).unwrap();
    assert_eq!(figure(&received, "samples"), 560.0, "{received}");
    assert_eq!(figure(&received, "lost"), 0.0, "{received}");
    // The others were waited for.
    assert_eq!(said.out.lines().count(), 510);
    let dropped = figure(&received, "from_another");
    assert!(dropped > 0.0 && dropped < 560.0, "{received}");
    second.stop();
}

#[test]
fn a_configuration_with_a_mistake_is_refused_with_the_line() {
    let folder = Folder::new("mistake");
    let file = configuration(&folder, "0", &groups());
    let text = fs::read_to_string(&file).unwrap() + "\n[consumer]\nport = 1\n";
    let line = text.lines().count() - 1;
    fs::write(&file, text).unwrap();
    let told = fails(&["gateway", "--check", &file]);
    let place = format!("line {line}");
    assert!(told.contains(&place) && told.contains("consumer"), "{told}");
    assert!(told.contains("gateway.toml"), "{told}");
    let told = fails(&["gateway", "/nosuch.toml"]);
    assert!(told.contains("cannot read /nosuch.toml"), "{told}");
}

/// Writes a feed's configuration into the folder, with `rest` in `[feed]` besides its line.
fn with_feed(folder: &Folder, rest: &str) -> String {
    let text = format!(
        "[producers]\nport = 0\n[consumers]\nport = 0\n[feed]\nlines = [\"{}\"]\n{rest}\n",
        groups()[0]
    );
    folder.with("feed.toml", text)
}

#[test]
fn a_check_reads_the_files_that_a_feed_names() {
    let folder = Folder::new("files");
    let config = with_feed(&folder, "templates = \"/nosuch.xml\"");
    let told = fails(&["gateway", "--check", &config]);
    assert!(
        told.contains("cannot read templates `/nosuch.xml`: No such file"),
        "{told}"
    );
    let wrong = [
        ("templates = \"/dev/zero\"", "it is not a regular file"),
        (
            "templates = \"builtin:no\"",
            "unknown templates `builtin:no`: expected",
        ),
        (
            "templates = \"builtin:complex\"\n[feed.publish]\nkeyed = true\nkey = \"No\"\n\
             split = \"none\"",
            "no template has a field \"No\"",
        ),
    ];
    for (rest, why) in wrong {
        let told = fails(&["gateway", "--check", &with_feed(&folder, rest)]);
        assert!(told.contains(why), "{told}");
    }
    let rest = "templates = \"builtin:complex\"\ndictionaries = { \"FIX.4.4\" = \"/no.xml\" }";
    let told = fails(&["gateway", "--check", &with_feed(&folder, rest)]);
    assert!(
        told.contains("cannot read dictionary `/no.xml`: No such file"),
        "{told}"
    );
    let other = folder.with("other.xml", "<templates/>");
    let rest = rest.replace("/no.xml", &other);
    let told = fails(&["gateway", "--check", &with_feed(&folder, &rest)]);
    assert!(
        told.contains("dictionary `") && told.contains("other.xml"),
        "{told}"
    );
}

#[test]
fn templates_that_the_schema_does_not_have_are_taken_where_the_file_says_so() {
    let folder = Folder::new("lenient");
    let templates = folder.with(
        "templates.xml",
        "<templates>\n<template name=\"T\" id=\"1\" dictoinary=\"x\">\n\
         <uInt32 name=\"MsgSeqNum\" id=\"34\"/></template></templates>",
    );
    let strict = format!("templates = \"{templates}\"");
    let told = fails(&["gateway", "--check", &with_feed(&folder, &strict)]);
    assert!(
        told.contains("2:27") && told.contains("dictoinary"),
        "{told}"
    );
    let lenient = |key: &str| with_feed(&folder, &format!("{strict}\n{key} = true"));
    done(&mut fanfare(&["gateway", "--check", &lenient("lenient")]));
    let lenient = lenient("lenient_templates");
    done(&mut fanfare(&["gateway", "--check", &lenient]));
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &lenient]));
    gateway.tells("templates.xml: left out: ");
    gateway.stop();
}

#[test]
fn the_example_is_right() {
    let folder = Folder::new("example");
    let file = configuration(&folder, "0", &groups());
    done(&mut fanfare(&["gateway", "--check", &file]));
}

#[test]
fn every_example_and_the_packaged_file_are_right() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = fs::read_dir(tree.join("examples")).unwrap();
    let mut files: Vec<_> = examples.map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 6, "{files:?}");
    files.push(tree.join("packaging/deb/gateway.toml"));
    for file in files {
        let check = ["gateway", "--check", file.to_str().unwrap()];
        if file.ends_with("kafka.toml") && !cfg!(feature = "kafka") {
            // A mistake in the tables before would be told instead.
            assert!(fails(&check).contains("--features kafka"));
        } else {
            done(&mut fanfare(&check));
        }
    }
}
