//! Tests of a gateway with a market from an operator's point of view: over HTTP, checked by
//! third-party tools.

use crate::common::gateway::port;
use crate::common::{Folder, Running, done, eventually, fanfare, groups, run, sending};
use fanfare_peers::{or_skip, python};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// A gateway with a feed of two lines, a log, a console without a token and a Unix socket.
struct Plant {
    folder: Folder,
    server: Running,
    console: String,
    consumers: String,
    groups: [String; 2],
    snapshots: String,
}

impl Plant {
    fn start(test: &str, more: &str) -> Self {
        let [snapshots, _] = groups();
        let (folder, groups) = (Folder::new(test), groups());
        let [a, b] = &groups;
        let text = format!(
            "[producers]\nport = 0\n[consumers]\nport = 0\n\
             [console]\nport = 0\nconnections = 8\nsocket = \"{}\"\n{more}\n\
             [[feed]]\nchannel = \"day\"\ntemplates = \"builtin:spectra\"\n\
             lines = [\"{a}\", \"{b}\"]\nmapping = \"builtin:spectra\"\ngap_timeout_ms = 1000\n\
             [feed.book]\nstarts_empty = false\n[feed.snapshot]\nlines = [\"{snapshots}\"]\n",
            folder.file("console.sock"),
        );
        let file = folder.with("gateway.toml", text);
        let mut server = Running::start(&mut fanfare(&["gateway", &file]));
        let consumers = port(&server.prints("Listening for consumers on 127.0.0.1:"));
        let console = port(&server.prints("Console at http://127.0.0.1:"));
        Self {
            folder,
            server,
            console,
            consumers,
            groups,
            snapshots,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.console)).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        stream
    }

    /// Returns the status and the response of a path.
    fn get(&self, path: &str) -> (u16, Value) {
        ask(self.connect(), path)
    }

    fn result(&self, path: &str) -> Value {
        let (status, answer) = self.get(path);
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Sends a generated feed on both lines, of which A drops some packets, and its snapshots.
    fn feed(&self) {
        let file = self.folder.file("feed.dat");
        let make = [
            "fast", "generate", "spectra", "-n", PACKETS, "--trades", "20",
        ];
        let make = |more: &[&str]| {
            run(&[&make[..], &["-o", &file], more].concat()).succeeded();
        };
        let send = |group: &str, more: &[&str]| {
            done(sending(&file, group).args(["-s", "100"]).args(more));
        };
        let [a, b] = &self.groups;
        make(&[]);
        send(a, &["--second", b, "--loss-a", "0.1"]);
        make(&["--snapshots"]);
        send(&self.snapshots, &[]);
        eventually("all books are whole", || {
            self.result("/api/v1/status")["feeds"][0]["live"] == 11
        });
    }

    fn stop(self) {
        self.server.interrupt();
        self.server.end().succeeded();
    }
}

fn ask(mut stream: impl Read + Write, path: &str) -> (u16, Value) {
    let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
    (status.unwrap(), serde_json::from_str(body).unwrap())
}

/// Packets of the feed with numbers, and the total.
const PACKETS: &str = "300";
const ALL: u64 = 301;

const HISTORY: &str = "[history]\nfolder = \"LOG\"\n";

fn history(folder: &str) -> String {
    HISTORY.replace("LOG", folder)
}

/// Returns Python with the third-party checkers.
fn judges() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-openapi");
    let packages = "openapi-spec-validator==0.9.0 jsonschema==4.26.0";
    let found = python(&home, packages, "openapi_spec_validator");
    or_skip(found).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn all_answers_are_what_the_openapi_document_says() {
    let Some(python) = judges() else {
        return;
    };
    let log = Folder::new("seen-log");
    let plant = Plant::start("seen-judged", &history(&log.file("log")));
    plant.feed();
    let mut subscriber = subscriber(&plant);
    let document = plant.result("/api/v1/openapi.json");
    eventually("all events are read", || {
        let [status, log] = ["status", "log"].map(|of| plant.result(&format!("/api/v1/{of}")));
        let number = status["events"]["next"].as_u64().unwrap();
        let seen = plant.result("/api/v1/instruments")["total"] != 0;
        number > 150 && log["next"] == number && seen
    });
    let id = plant.result("/api/v1/instruments")["instruments"][0]["security_id"].clone();
    let book = format!("/api/v1/books?symbol={}", id.as_str().unwrap());
    let then = format!("{book}&at=100");
    let mut lines = vec![document.to_string()];
    for path in document["paths"].as_object().unwrap().keys() {
        let asked: Vec<&str> = match &**path {
            "/api/v1/changes" => continue,
            "/api/v1/books" => vec![&book, &then],
            path => vec![path],
        };
        if document["paths"][path]["get"].is_null() {
            continue;
        }
        for asked in asked {
            lines.push(json!([path, plant.result(asked)]).to_string());
        }
    }
    assert!(lines.len() > 12, "{}", lines.len());
    let judge = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/market/judge.py");
    let mut judge = Command::new(python)
        .args(["-B", judge])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = judge.stdin.take().unwrap();
    stdin.write_all(lines.join("\n").as_bytes()).unwrap();
    drop(stdin);
    let said = judge.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    assert_eq!(said, format!("judged {}\n", lines.len() - 1));
    subscriber.kill();
    plant.stop();
}

/// Starts a client that subscribes to everything.
fn subscriber(plant: &Plant) -> Running {
    let args = ["fanout", "consumers", "127.0.0.1", "1", "0"];
    let more = ["--port", &plant.consumers, "--subscribe", "*"];
    let client = Running::start(&mut fanfare(&[&args[..], &more].concat()));
    eventually("the subscription is there", || {
        plant.result("/api/v1/subscriptions")["total"] == 1
    });
    let all = plant.result("/api/v1/subscriptions");
    let own = all["subscriptions"][0]["session"].as_str().unwrap();
    for (session, count) in [(own, 1), (&*format!("{own}0"), 0)] {
        let session = session.replace('>', "%3E");
        let found = plant.result(&format!("/api/v1/subscriptions?session={session}"));
        assert_eq!(found["total"], count, "{session}");
    }
    client
}

fn count(line: &Value, name: &str) -> u64 {
    line[name].as_u64().unwrap()
}

/// Returns the counts of a line's packets by outcome.
fn parts(line: &Value) -> [u64; 4] {
    ["first", "duplicate", "late", "refused"].map(|name| count(line, name))
}

#[test]
fn lines_instruments_and_books_are_those_of_the_feed() {
    let log = Folder::new("seen-books-log");
    let plant = Plant::start("seen-books", &history(&log.file("log")));
    plant.feed();
    eventually("all packets are counted", || {
        let feed = &plant.result("/api/v1/lines")["feeds"][0];
        // Packets that the arbiter holds back are in none of the counts yet. The last packet ends
        // the feed, and has no number.
        let is_over = |line: &Value| parts(line).iter().sum::<u64>() + 1 == count(line, "packets");
        let lines = feed["lines"].as_array().unwrap();
        lines[1]["packets"] == ALL && lines[0]["lost"] != 0 && lines.iter().all(is_over)
    });
    let lines = plant.result("/api/v1/lines");
    let feed = &lines["feeds"][0];
    let [a, b] = [&feed["lines"][0], &feed["lines"][1]];
    assert_eq!((&a["line"], &b["line"]), (&json!("A"), &json!("B")));
    assert_eq!(
        count(a, "packets") + count(a, "lost"),
        ALL,
        "the last one is never lost"
    );
    assert_eq!((count(b, "lost"), count(feed, "gaps")), (0, 0));
    assert!(count(feed, "messages") > 0 && count(feed, "events") > 0);
    assert!(count(b, "first") > 0, "what A has lost");
    let all = plant.result("/api/v1/instruments");
    let (mut rows, mut after) = (Vec::new(), String::new());
    loop {
        let mut part = plant.result(&format!("/api/v1/instruments?limit=3{after}"));
        rows.append(part["instruments"].as_array_mut().unwrap());
        match part["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    assert_eq!(all["instruments"], json!(rows));
    assert_eq!(all["total"], rows.len());
    // They have no symbols: their IDs take their place.
    let begins = &rows[0]["security_id"].as_str().unwrap()[..4];
    let found = plant.result(&format!("/api/v1/instruments?prefix={begins}"));
    let is_found = |row: &&Value| row["security_id"].as_str().unwrap().starts_with(begins);
    let expected: Vec<&Value> = rows.iter().filter(is_found).collect();
    assert!(expected.len() < rows.len());
    assert_eq!(found["instruments"], json!(expected));
    past(&plant, rows[0]["security_id"].as_str().unwrap());
    follow(&plant);
    over_the_socket(&plant);
    plant.stop();
}

/// Checks that the book at the last event equals the current book, and the output of the log's own
/// tool.
fn past(plant: &Plant, id: &str) {
    let next = plant.result("/api/v1/status")["events"]["next"]
        .as_u64()
        .unwrap();
    eventually("the log has everything", || {
        plant.result("/api/v1/log")["next"] == next
    });
    let book = format!("/api/v1/books?symbol={id}&depth=5");
    eventually("the view has everything", || {
        plant.result(&book)["number"] == next - 1
    });
    let now = plant.result(&book);
    assert_eq!(now["live"], true);
    let of_id = |id: &str| plant.get(&format!("{book}&security_id={id}")).0;
    assert_eq!([of_id(id), of_id("NONE")], [200, 404]);
    let at = |moment: &str| plant.result(&format!("/api/v1/books?symbol={id}&depth=5&at={moment}"));
    let last = at(&(next - 1).to_string());
    for name in ["bids", "offers", "state", "lacks", "values", "levels"] {
        assert_eq!(now["books"][0][name], last["books"][0][name], "{name}");
    }
    let folder = plant.result("/api/v1/log")["folder"]
        .as_str()
        .unwrap()
        .to_owned();
    let args = [
        "history", "book", &folder, "--symbol", id, "--depth", "5", "--json",
    ];
    let said = run(&[&args[..], &["--at", "150"]].concat())
        .succeeded()
        .json();
    let then = at("150");
    assert_eq!(then["number"], said["number"]);
    for name in ["bids", "offers", "state"] {
        assert_eq!(then["books"][0][name], said[name], "{name}");
    }
    for (at, status) in [
        ("never", 400),
        ("999999999", 409),
        ("--1", 400),
        ("-0.001", 200),
        ("%2B0.001", 200),
    ] {
        let path = format!("/api/v1/books?symbol={id}&at={at}");
        assert_eq!(plant.get(&path).0, status, "{at}");
    }
}

/// Checks that the states of instruments come as events, from the first one of the run on, also
/// after the number of an earlier run.
fn follow(plant: &Plant) {
    let mut stream = plant.connect();
    let head = "GET /api/v1/changes?kinds=instrument HTTP/1.1\r\nHost: localhost\r\n\
                Last-Event-ID: 0\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map_while(Result::ok);
    let data = lines.filter_map(|line| line.strip_prefix("data: ").map(str::to_owned));
    let mut data = data.map(|line| serde_json::from_str::<Value>(&line).unwrap());
    let hello = data.next().unwrap();
    // Numbers begin at the microseconds of the start.
    assert!(
        hello["first"].as_u64() > Some(1_700_000_000_000_000),
        "{hello}"
    );
    let first = data.next().unwrap();
    assert_eq!(
        (&first["state"], &first["before"]),
        (&json!("recovering"), &Value::Null)
    );
    assert_eq!(first["feed"], "day");
}

/// Checks that the Unix socket needs no token, and permits commands.
fn over_the_socket(plant: &Plant) {
    let path = plant.folder.file("console.sock");
    let mode = std::fs::metadata(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&mode.permissions());
    assert_eq!(mode & 0o777, 0o600);
    let (status, answer) = ask(UnixStream::connect(&path).unwrap(), "/api/v1/status");
    assert_eq!((status, &answer["history"]), (200, &json!(true)));
    let mut stream = UnixStream::connect(&path).unwrap();
    let head = "POST /api/v1/config/reload HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
                Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let path = "/api/v1/config/reload";
    assert_eq!(plant.get(path).0, 405);
}

#[test]
fn what_cannot_be_shown_is_refused_with_a_reason() {
    let plant = Plant::start("seen-refused", "");
    plant.feed();
    for (path, status, why) in [
        ("/api/v1/log", 409, "no [history]"),
        ("/api/v1/books?symbol=NONE", 404, "`NONE`"),
        ("/api/v1/books", 400, "needs `symbol`"),
        ("/api/v1/books?symbol=", 400, "`symbol` is missing"),
        (
            "/api/v1/books?symbol=A&at=1",
            409,
            "a past book needs a log",
        ),
        ("/api/v1/books?symbol=A&depth=0", 400, "between 1 and 1000"),
        ("/api/v1/books?symbol=A&depth=1e3", 400, "number"),
        (
            "/api/v1/instruments?limit=1000000000",
            400,
            "between 1 and 1000",
        ),
        ("/api/v1/instruments?after=x", 400, "`next`"),
        ("/api/v1/instruments?state=dead", 400, "live, recovering"),
        ("/api/v1/subscriptions?after=1.2", 400, "`next`"),
        ("/api/v1/notices?after=..", 400, "number"),
        ("/api/v1/changes?after=x", 400, "number"),
        ("/api/v1/changes?after=1&after=2", 400, "occurs twice"),
        ("/api/v1/changes?colour=red", 400, "`kinds`"),
        ("/api/v1/changes?kinds=lines", 400, "instruments, line,"),
        ("/api/v1/books/..%2f..%2fetc", 404, "no such path"),
    ] {
        let (got, answer) = plant.get(path);
        let text = answer["error"].as_str().unwrap_or_default();
        assert!(
            got == status && text.contains(why),
            "{path}: {got} {answer}"
        );
    }
    // Half of the connections may follow the changes, and others still get responses.
    let followers: Vec<_> = (0..4).map(|_| follower(&plant)).collect();
    assert_eq!(plant.get("/api/v1/changes").0, 503);
    assert_eq!(plant.get("/api/v1/status").0, 200);
    drop(followers);
    eventually("there is room for followers again", || {
        let mut stream = plant.connect();
        let head = "GET /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n";
        let sent = stream.write_all(head.as_bytes());
        let mut answer = [0; 12];
        sent.is_ok() && stream.read_exact(&mut answer).is_ok() && &answer == b"HTTP/1.1 200"
    });
    plant.stop();
}

/// Opens a connection that follows the changes, and reads the first event.
fn follower(plant: &Plant) -> BufReader<TcpStream> {
    let mut stream = plant.connect();
    let head = "GET /api/v1/changes HTTP/1.1\r\nHost: localhost\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    while !line.starts_with("event: hello") {
        line.clear();
        assert!(reader.read_line(&mut line).unwrap() > 0);
    }
    reader
}
