//! Tests of `[[feed]]` with a mapping: the events of a feed, its snapshots and its replay.

use crate::book::{changes, datagram, day, entry, send, snapshot};
use crate::common::gateway::Gateway;
use crate::common::{Folder, Said, eventually, fanfare, groups, nobody, run};
use fanfare_engine::agent;
use fanfare_engine::host::{Acceptor, Handler, Host, Peer};
use fanfare_engine::idle::Idle;
use fanfare_engine::stop::Stop;
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
use fanfare_instruments::pcap::{LinkType, Writer};
use fanfare_market::mapping::SPECTRA;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;

/// Writes the templates of a feed whose replay logs on and out in FAST.
fn templates(folder: &Folder) -> String {
    let spectra = fanfare_fast::builtin::find("builtin:spectra").unwrap();
    let session = r#"
        <template name="Logon" id="901">
          <string name="MessageType" id="35"><constant value="A"/></string>
        </template>
        <template name="Logout" id="905">
          <string name="MessageType" id="35"><constant value="5"/></string>
        </template>
        </templates>"#;
    folder.with("templates.xml", spectra.replace("</templates>", session))
}

/// Writes messages as a file of packets, one each.
fn packets(folder: &Folder, name: &str, lines: &[String]) -> String {
    let from = folder.with(&format!("{name}.jsonl"), lines.join("\n"));
    let (to, templates) = (folder.file(name), templates(folder));
    let args = ["fast", "encode", "-t", &templates, "-f", &from, "-o", &to];
    run(&args).succeeded();
    to
}

/// Writes the configuration of a gateway with one feed, whose market events go to `events.jsonl`.
fn config(folder: &Folder, group: &str, more: &str) -> String {
    let (templates, events) = (templates(folder), folder.file("events.jsonl"));
    let text = format!(
        "events = \"{events}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n[[feed]]\n\
         templates = \"{templates}\"\nlines = [\"{group}\"]\nmapping = \"builtin:spectra\"\n{more}"
    );
    folder.with("gateway.toml", text)
}

/// Returns the events of the file, whose numbers have no gaps.
fn events(folder: &Folder) -> Vec<Value> {
    let text = fs::read_to_string(folder.file("events.jsonl")).unwrap();
    let events: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for (at, event) in events.iter().enumerate() {
        assert_eq!(event["number"], at as u64 + 1, "{event}");
        assert_eq!(event["symbol"], "RIU3", "{event}");
    }
    events
}

/// Returns kinds and RptSeq of events.
fn kinds(events: &[Value]) -> String {
    let words = events.iter().map(|event| {
        let kind = event["kind"].as_str().unwrap();
        match (kind, event["rpt_seq"].as_u64()) {
            ("state", _) => format!("state{}", event["id"]),
            (_, Some(rpt_seq)) => format!("{kind}{rpt_seq}"),
            _ => kind.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

fn has(said: &Said, line: &str) {
    assert!(said.out.contains(line), "no {line:?}: {}", said.out);
}

#[test]
fn a_gateway_keeps_the_books_of_a_feed() {
    let [group, snapshots] = groups();
    let folder = Folder::new("market-gateway");
    let more = format!("[feed.snapshot]\nlines = [\"{snapshots}\"]\n");
    let config = config(&folder, &group, &more);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    // The first message is on no line.
    let mut lines = day();
    lines.remove(0);
    send(&packets(&folder, "feed", &lines), &group);
    gateway.tells("of 1 instrument, 0 live, 1 recovering");
    let whole = [entry(0, "0", 0, 1, 100, 5), entry(0, "1", 0, 1, 102, 7)];
    let snapshot = packets(&folder, "snapshots", &[snapshot(2, 1, &whole)]);
    send(&snapshot, &snapshots);
    gateway.tells("of 1 instrument, 1 live");
    let said = gateway.stop();
    let all = events(&folder);
    let expected = "clear state2 clear2 level2 level2 level3 level4 level5 state1";
    assert_eq!(kinds(&all), expected);
    has(
        &said,
        "market: 9 events of 1 instrument; 1 live, 0 recovering",
    );
    has(&said, "events: 9 events written");
}

#[test]
fn the_first_request_for_a_book_has_all_that_came_before_it() {
    let [group, _] = groups();
    let folder = Folder::new("market-first-book");
    let socket = folder.file("ctl");
    let text = fs::read_to_string(config(&folder, &group, "")).unwrap();
    let config = folder.with("control.toml", format!("control = \"{socket}\"\n{text}"));
    let gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    send(&packets(&folder, "feed", &day()), &group);
    // The file shows the end of the feed without a request to the gateway.
    eventually("all events", || {
        let text = fs::read_to_string(folder.file("events.jsonl"));
        text.is_ok_and(|text| text.contains("\"rpt_seq\":5,"))
    });
    let ctl = ["ctl", "--socket", &socket, "--json", "books", "RIU3"];
    let said = run(&ctl).succeeded().json();
    assert_eq!(said["live"], true);
    let book = &said["books"][0];
    assert_eq!(
        (&book["state"], &book["rpt_seq"]),
        (&json!("live"), &json!(5))
    );
    assert_eq!(book["bids"], json!([{ "price": "101", "size": 1 }]));
    assert_eq!(book["offers"], json!([{ "price": "102", "size": 9 }]));
    gateway.stop();
}

#[test]
fn the_stages_of_a_feed_are_measured_from_the_kernel_to_the_log() {
    let [group, _] = groups();
    let folder = Folder::new("market-stages");
    let (log, socket) = (folder.file("log"), folder.file("ctl"));
    let more = format!("channel = \"north\"\n[history]\nfolder = \"{log}\"\n");
    let text = fs::read_to_string(config(&folder, &group, &more)).unwrap();
    let config = folder.with("stages.toml", format!("control = \"{socket}\"\n{text}"));
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    gateway.prints("Listening for operators");
    send(&packets(&folder, "feed", &day()), &group);
    let mut stages = Vec::new();
    let count = |stages: &[Value], of: &str, name: &str| {
        let mut all = stages.iter();
        let found = all.find(|one| one["of"] == of && one["stage"] == name);
        found.unwrap()["windows"]["all"]["count"].as_u64().unwrap()
    };
    eventually("a measured message is in the log", || {
        let ctl = ["ctl", "--socket", &socket, "stages", "--json"];
        let said = run(&ctl).succeeded().json();
        stages = said.as_array().unwrap().clone();
        count(&stages, "log", "total") > 0
    });
    for (of, name) in [
        ("feed north", "arrival"),
        ("feed north", "decode"),
        ("feed north", "event"),
        ("log", "ring"),
        ("log", "log"),
    ] {
        assert!(count(&stages, of, name) > 0, "{of} {name}");
    }
    assert_eq!(
        count(&stages, "worker0 market", "socket"),
        0,
        "nobody asked"
    );
    gateway.stop();
}

/// Writes a capture of two lines, of which the second is later by a millisecond and the first lacks
/// a message.
fn capture(folder: &Folder) -> String {
    let messages = day().into_iter().enumerate();
    let mut all: Vec<_> = messages
        .flat_map(|(at, message)| {
            let packet = fs::read(packets(folder, "one", &[message])).unwrap();
            let time = 1_700_000_000_000_000_000 + at as u64 * 100_000;
            let first = (at != 1).then(|| (time, datagram(133, &packet[4..])));
            let second = (time + 1_000_000, datagram(134, &packet[4..]));
            first.into_iter().chain([second])
        })
        .collect();
    all.sort_by_key(|(time, _)| *time);
    let mut writer = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    for (time, ip) in all {
        writer.packet(time, &ip, ip.len() as u32).unwrap();
    }
    folder.with("lines.pcap", writer.into_inner())
}

/// A gateway with two lines and a log of its own.
struct Plant<'a> {
    folder: &'a Folder,
    name: &'a str,
    lines: [String; 2],
}

impl<'a> Plant<'a> {
    fn new(folder: &'a Folder, name: &'a str) -> Self {
        let lines = groups();
        Self {
            folder,
            name,
            lines,
        }
    }

    /// Returns its input, from the raw log.
    fn raw(&self) -> String {
        self.folder.file(&format!("{}/raw", self.name))
    }

    /// Returns its events, without the times of arrival, after a replay of the datagrams that were
    /// sent to these lines.
    fn replayed(&self, what: &str, sent_to: [&str; 2], speed: &str) -> Vec<Value> {
        let log = self.folder.file(self.name);
        let [a, b] = &self.lines;
        // A delay of the sender between two datagrams costs no message.
        let more = format!("gap_timeout_ms = 1000\n[history]\nfolder = \"{log}\"\n[history.raw]\n");
        let config = config(self.folder, &format!("{a}\", \"{b}"), &more);
        let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
        let [first, second] = [0, 1].map(|at| format!("{}={}", sent_to[at], self.lines[at]));
        let args = [
            "replay", what, "--speed", speed, "--line", &first, "--line", &second,
        ];
        run(&args).succeeded();
        gateway.tells("of 1 instrument, 1 live");
        let said = gateway.stop();
        has(&said, "1 live, 0 recovering");
        let mut all = events(self.folder);
        let cat = run(&["history", "cat", &log, "--json"]).succeeded();
        assert_eq!(cat.json_lines(), all);
        fs::remove_file(self.folder.file("events.jsonl")).unwrap();
        for event in &mut all {
            event.as_object_mut().unwrap().remove("ts_recv");
        }
        all
    }
}

#[test]
fn what_is_replayed_gives_the_same_events_with_the_same_numbers() {
    let folder = Folder::new("market-again");
    let capture = capture(&folder);
    let captured = ["224.1.2.133:13014", "224.1.2.134:13014"];
    let plant = Plant::new(&folder, "plant");
    let at_speed = plant.replayed(&capture, captured, "1");
    assert!(
        kinds(&at_speed).ends_with("level1 level2 state1 level3 level4 level5"),
        "{at_speed:?}"
    );
    let again = Plant::new(&folder, "again");
    assert_eq!(again.replayed(&capture, captured, "max"), at_speed);
    // The input of the first plant, from its raw log: at its speed, and that copy at full speed.
    let lines = plant.lines.each_ref().map(String::as_str);
    let copy = Plant::new(&folder, "copy");
    assert_eq!(copy.replayed(&plant.raw(), lines, "1"), at_speed);
    let lines = copy.lines.each_ref().map(String::as_str);
    let last = Plant::new(&folder, "last");
    assert_eq!(last.replayed(&copy.raw(), lines, "max"), at_speed);
}

/// Reads a FIX message, with `|` for SOH.
fn read(stream: &mut TcpStream) -> String {
    let (mut text, mut byte) = (String::new(), [0]);
    while !text.contains("|10=") || !text.ends_with('|') {
        assert_eq!(stream.read(&mut byte).unwrap(), 1, "{text}");
        text.push(if byte[0] == 1 { '|' } else { byte[0] as char });
    }
    text
}

/// Starts a replay service for one request. Returns its address, and the request at its end.
fn service(logon: String, answer: String) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        read(&mut stream);
        stream.write_all(&fs::read(logon).unwrap()).unwrap();
        let request = read(&mut stream);
        stream.write_all(&fs::read(answer).unwrap()).unwrap();
        // The client logs out and closes.
        stream.read_to_end(&mut Vec::new()).unwrap();
        request
    });
    (address, serving)
}

#[test]
fn a_gateway_asks_the_replay_for_what_is_missing() {
    let [group, _] = groups();
    let folder = Folder::new("market-replay");
    let mut lines = day();
    let feed = packets(&folder, "feed", &[lines[0].clone(), lines.remove(2)]);
    let of = |name: &str| format!("{{\"template\":\"{name}\",\"fields\":{{}}}}");
    let logon = packets(&folder, "logon", &[of("Logon")]);
    let answer = packets(&folder, "answer", &[lines.remove(1), of("Logout")]);
    let (address, asked) = service(logon, answer);
    let more = format!(
        "[feed.replay]\naddress = \"{address}\"\nsender = \"US\"\ntarget = \"REPLAY\"\n\
         appl_id = \"OLR\"\n"
    );
    let config = config(&folder, &group, &more);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    send(&feed, &group);
    let asked = asked.join().unwrap();
    assert!(asked.contains("|1182=2|1183=2|"), "{asked}");
    assert!(asked.contains("|1180=OLR|"), "{asked}");
    gateway.tells("of 1 instrument, 1 live");
    let said = gateway.stop();
    let all = kinds(&events(&folder));
    assert!(all.ends_with("level3 level4 level5 state1"), "{all}");
    has(&said, "1 replay request, 0 messages given up");
}

#[test]
fn a_replay_that_is_not_there_is_named() {
    let [group, _] = groups();
    let folder = Folder::new("market-no-replay");
    let more = format!(
        "[feed.replay]\naddress = \"{}\"\nsender = \"US\"\ntarget = \"REPLAY\"\n\
         timeout_ms = 500\n",
        nobody()
    );
    let config = config(&folder, &group, &more);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let lines = [day().remove(0), day().remove(2)];
    send(&packets(&folder, "feed", &lines), &group);
    gateway.tells("replay: ");
    gateway.stop();
    assert!(kinds(&events(&folder)).ends_with("state2"));
}

#[test]
fn values_that_no_event_can_hold_are_named() {
    let [group, _] = groups();
    let folder = Folder::new("market-values");
    let config = config(&folder, &group, "");
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let mut huge = entry(0, "0", 1, 1, 100, 5);
    huge["MDEntryPx"]["exponent"] = 18.into();
    send(&packets(&folder, "feed", &[changes(1, &[huge])]), &group);
    gateway.tells("MDEntryPx");
    let said = gateway.stop();
    has(&said, "1 value refused");
    assert!(!kinds(&events(&folder)).contains("level"));
}

#[test]
fn snapshots_that_are_not_read_are_named() {
    let [group, snapshots] = groups();
    let folder = Folder::new("market-unread");
    // Each snapshot ends with its only message.
    let mapping = SPECTRA.replace("total = 911", "last-fragment = 911");
    let mapping = folder.with("mapping.toml", mapping);
    let more = format!("[feed.snapshot]\nlines = [\"{snapshots}\"]\n");
    let text = fs::read_to_string(config(&folder, &group, &more)).unwrap();
    let config = folder.with("unread.toml", text.replace("builtin:spectra", &mapping));
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    // It may be the end of a snapshot that began before.
    let first = snapshot(2, 1, &[entry(0, "0", 0, 1, 100, 5)]);
    send(&packets(&folder, "snapshots", &[first]), &snapshots);
    gateway.tells("snapshot, MsgSeqNum(34) 1: instrument RIU3");
    // An unknown template.
    let sender = Sender::open(&SenderConfig::new(snapshots.parse().unwrap())).unwrap();
    sender.send(&[0xc0, 0xff]).unwrap();
    gateway.tells("packet of the snapshots, line A: ");
    let said = gateway.stop();
    has(&said, "2 unreadable");
}

/// A replay service in FIX that responds to every request with message 2, whose price is no number.
struct Wrong;

impl Handler for Wrong {
    fn on_message(&mut self, peer: &mut Peer<'_>, request: &AppMessage<'_>) {
        assert_eq!(request.message.msg_type(), b"BW");
        let change = "1181=2|1352=Y|268=1|279=0|269=0|48=49634118|22=8|55=RIU3|1023=1|270=1x|\
                      271=5|83=3|";
        for (msg_type, fields) in [
            ("BX", "1353=1|1348=0|"),
            ("X", change),
            ("BY", "1356=1|1426=3|"),
        ] {
            let fields = fields.replace('|', "\x01");
            let sent = peer.send(msg_type.as_bytes(), |out| {
                out.raw(fields.as_bytes());
            });
            sent.unwrap();
        }
    }
}

#[test]
fn values_of_a_replay_in_fix_that_no_event_can_hold_are_named() {
    let id = SessionId::new(Version::Fixt11, "REPLAY", "US");
    let port = Acceptor::new("127.0.0.1:0".parse().unwrap()).session(Config::new(id));
    let mut host = Host::new(Wrong).unwrap();
    let address = host.listen(port).unwrap();
    let stop = Stop::new();
    let raised = stop.clone();
    let serving = std::thread::spawn(move || {
        agent::run(&mut host, Idle::BackOff, &raised).unwrap();
    });
    let [group, _] = groups();
    let folder = Folder::new("market-replay-values");
    let more = format!(
        "[feed.replay]\naddress = \"{address}\"\nservice = \"fix\"\nsender = \"US\"\n\
         target = \"REPLAY\"\n"
    );
    let config = config(&folder, &group, &more);
    let mut gateway = Gateway::start(&mut fanfare(&["gateway", &config]));
    let lines = [day().remove(0), day().remove(2)];
    send(&packets(&folder, "feed", &lines), &group);
    // Those of the feed itself can be held.
    gateway.tells("MDEntryPx");
    gateway.stop();
    stop.raise();
    serving.join().unwrap();
}

#[test]
fn what_makes_no_market_is_refused_with_the_reason() {
    let folder = Folder::new("market-config");
    let wrong = folder.with("wrong.toml", "[messages.X]\nnothing = 1\n");
    let no_mapping = "mapping = \"builtin:none\"";
    let file = format!("mapping = \"{wrong}\"");
    let with_session = format!("{}\"", templates(&folder));
    let no_logon = "no template can have MsgType(35) `A`: the Logon(A) of a replay is in FAST";
    for (from, to, why) in [
        ("mapping = \"builtin:spectra\"", "", "needs `mapping`"),
        (
            "mapping = \"builtin:spectra\"",
            no_mapping,
            "unknown mapping `builtin:none`",
        ),
        ("mapping = \"builtin:spectra\"", &file, "wrong.toml"),
        ("depth = 5", "depth = 0", "feed.book.depth"),
        ("depth = 5", "dept = 5", "dept"),
        ("kind = \"levels\"", "kind = \"piles\"", "piles"),
        ("239.1.1.9:7", "127.0.0.1:7", "feed.snapshot.lines"),
        ("127.0.0.1:9", "nowhere", "line 16"),
        (&with_session, "builtin:spectra\"", no_logon),
    ] {
        let more = "[feed.book]\ndepth = 5\nkind = \"levels\"\n[feed.snapshot]\n\
                    lines = [\"239.1.1.9:7\"]\n[feed.replay]\naddress = \"127.0.0.1:9\"\n\
                    service = \"fast\"\nsender = \"US\"\ntarget = \"R\"\n";
        let path = config(&folder, "239.1.1.1:7", more);
        let text = fs::read_to_string(&path).unwrap();
        run(&["gateway", "--check", &path]).succeeded();
        let text = text.replace(from, to);
        fs::write(&path, text).unwrap();
        let said = run(&["gateway", "--check", &path]);
        assert_eq!(said.code, 1, "{why}: {}", said.err);
        assert!(said.err.contains(why), "{why}: {}", said.err);
    }
}
