//! Runs the acceptance definitions of QuickFIX, and those of QuickFIX/n, against
//! `fix acceptor --echo`. `make conformance` fetches them and sets the variables with their paths.
//!
//! | line | meaning |
//! |---|---|
//! | `I8=…`, `E8=…` | sends this message; expects one with these fields in this order |
//! | `iCONNECT`, `iDISCONNECT` | opens, closes a connection |
//! | `eDISCONNECT` | the server closes without another byte |
//! | `I2,…` | the same on connection 2 |
//! | `sleep(0.2)` | waits |
//!
//! `<TIME>` and `<TIME-120>` stand for times. A message without BodyLength or CheckSum gets them.
//! Expected times and sums are compared by their form only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[path = "../common/mod.rs"]
mod common;
#[expect(dead_code, reason = "some of it is for the tests beside this one")]
#[path = "../fix/server.rs"]
mod server;
mod suites;

use fanfare_peers::fix::check_sum;
use server::{Peer, Server};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// All definitions of a folder, run against a server with these settings.
struct Suite {
    name: String,
    folder: PathBuf,
    settings: String,
    /// Whether the unit of `<TIME+1>` is a day; otherwise it is a second.
    in_days: bool,
    /// The least number of definitions.
    least: usize,
    /// The suffixes of the names of definitions with expectations other than QuickFIX's, and the
    /// difference.
    others: &'static [(&'static str, &'static str)],
}

#[test]
fn quickfix_definitions() {
    run_all(&suites::quickfix());
}

#[test]
fn quickfix_n_definitions() {
    run_all(&suites::quickfix_n());
}

fn run_all(suites: &[Suite]) {
    let failures: usize = std::thread::scope(|scope| {
        let each = suites.iter().map(|suite| scope.spawn(|| run_suite(suite)));
        let runs: Vec<_> = each.collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    assert!(failures == 0, "{failures} definitions failed");
}

/// Runs all definitions of a folder in sequence. Returns the number of failures.
fn run_suite(suite: &Suite) -> usize {
    let name = &suite.name;
    let server = Server::start(&format!("definitions-{name}"), &suite.settings);
    let mut files = listed(&suite.folder);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "def"));
    assert!(
        files.len() >= suite.least,
        "definitions of {name} are missing"
    );
    let (mut failures, mut others) = (0, 0);
    for path in &files {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        let result = run(&text, &server, suite.in_days);
        let stem = path.with_extension("");
        let other = suite.others.iter().find(|(end, _)| stem.ends_with(end));
        match (result, other) {
            (Ok(()), None) => {}
            (Err(_), Some(_)) => others += 1,
            (Ok(()), Some((_, what))) => {
                failures += 1;
                eprintln!("{name}, {}: passed, in spite of: {what}", path.display());
            }
            (Err(why), None) => {
                failures += 1;
                eprintln!("{name}, {}: {why}", path.display());
            }
        }
    }
    let (all, passed) = (files.len() - others, files.len() - others - failures);
    eprintln!("{name}: {passed} of {all} passed, {others} ask for something else");
    failures
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|why| panic!("{folder:?}: {why}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Runs a definition. The error names the failed line.
fn run(text: &str, server: &Server, in_days: bool) -> Result<(), String> {
    let unit = if in_days { 86_400 } else { 1 };
    let mut peers: HashMap<&str, Peer> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(action) = line.get(..1).filter(|action| *action != "#") else {
            continue;
        };
        if let Some(seconds) = line.strip_prefix("sleep(") {
            sleep(seconds).ok_or_else(|| format!("line {number}: {line} is no pause"))?;
            continue;
        }
        let rest = line.get(1..).unwrap_or_default();
        let (id, rest) = match rest.split_once(',') {
            Some((id, rest)) if id.len() == 1 && id != "8" => (id, rest),
            _ => ("1", rest),
        };
        let rest = timed(&rest.replace('\x01', "|"), unit);
        step(&mut peers, server, (action, id, &rest))
            .map_err(|why| format!("line {number}: {why}"))?;
    }
    Ok(())
}

fn step<'a>(
    peers: &mut HashMap<&'a str, Peer>,
    server: &Server,
    (action, id, rest): (&str, &'a str, &str),
) -> Result<(), String> {
    let text = whole(rest);
    match (action, text.as_str()) {
        ("i", "CONNECT") => {
            peers.insert(id, Peer::connect(server.address));
            return Ok(());
        }
        ("i", "DISCONNECT") => {
            peers.remove(id);
            return Ok(());
        }
        _ => {}
    }
    let peer = peers.get_mut(id).ok_or("there is no connection")?;
    match (action, text.as_str()) {
        ("I", message) => peer.send(message),
        ("E", expected) => {
            let message = peer.receive()?.ok_or("closed")?;
            compare(expected, &message).map_err(|why| format!("{why}: {message} came"))
        }
        ("e", "DISCONNECT") => match peer.receive()? {
            None => Ok(()),
            Some(message) => Err(format!("{message} came, expected was the end")),
        },
        _ => Err(format!("{action}{rest} is nothing known")),
    }
}

/// Sleeps this many seconds, a few at most.
fn sleep(seconds: &str) -> Option<()> {
    let seconds: f64 = seconds.strip_suffix(')')?.parse().ok()?;
    let pause = Duration::try_from_secs_f64(seconds.min(5.0)).ok()?;
    std::thread::sleep(pause);
    Some(())
}

/// Replaces `<TIME>` and `<TIME+n>`, `<TIME-n>`, n in units of this many seconds.
fn timed(text: &str, unit: i64) -> String {
    let mut parts = text.split("<TIME");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (offset, rest) = part.split_once('>').unwrap_or(("", part));
        out += &time(offset.parse().unwrap_or(0) * unit);
        out += rest;
    }
    out
}

/// Returns the time this many seconds from now.
fn time(offset: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seconds = now.as_secs() as i64 + offset;
    let time = fanfare_wire::UtcTimestamp::from_nanos(seconds * 1_000_000_000);
    time.text(fanfare_wire::Precision::Seconds).to_string()
}

/// Returns a message with the BodyLength and CheckSum that it lacks; other text is unchanged.
fn whole(text: &str) -> String {
    let Some((begin_string, rest)) = text.split_once('|').filter(|_| text.starts_with("8=")) else {
        return text.to_owned();
    };
    let (body, sum) = match rest.find("|10=") {
        Some(at) => rest.split_at(at),
        None => (rest, ""),
    };
    let length = match text.contains("|9=") {
        true => String::new(),
        false => format!("9={}|", body.len()),
    };
    let front = format!("{begin_string}|{length}{body}");
    match sum {
        "" => format!("{front}10={:03}|", check_sum(&front)),
        sum => front + sum,
    }
}

/// Checks for the same fields in the same order.
fn compare(expected: &str, message: &str) -> Result<(), String> {
    let expected: Vec<_> = expected.split_terminator('|').collect();
    let got: Vec<_> = message.split_terminator('|').collect();
    if expected.len() != got.len() {
        return Err(format!("{} fields, not {}", got.len(), expected.len()));
    }
    for (expected, got) in expected.into_iter().zip(got) {
        let same = match (expected.split_once('='), got.split_once('=')) {
            (Some((tag, _)), Some((same, value))) if tag == same => match tag {
                "10" => value.len() == 3,
                "42" | "52" | "60" | "122" => is_time(value),
                _ => expected == got,
            },
            _ => false,
        };
        if !same {
            return Err(format!("{got}, not {expected}"));
        }
    }
    Ok(())
}

/// Returns whether this is `YYYYMMDD-HH:MM:SS`, with or without a fraction.
fn is_time(value: &str) -> bool {
    let (time, fraction) = value.split_at(value.len().min(17));
    let form = time.bytes().zip(*b"00000000-00:00:00");
    time.len() == 17
        && form.into_iter().all(|(byte, form)| match form {
            b'0' => byte.is_ascii_digit(),
            mark => byte == mark,
        })
        && (fraction.is_empty() || fraction.starts_with('.'))
}
