//! QuickFIX's own acceptance definitions against `fix acceptor --echo`; `make conformance` fetches
//! them and says where they are.
//!
//! | line | meaning |
//! |---|---|
//! | `I8=…`, `E8=…` | sends this message; expects one with these fields in this order |
//! | `iCONNECT`, `iDISCONNECT` | opens, closes a connection |
//! | `eDISCONNECT` | the server closes without another byte |
//! | `I2,…` | the same on connection 2 |
//!
//! `<TIME>` and `<TIME-120>` stand for times. A message without BodyLength or CheckSum gets them.
//! Expected times and sums are compared by their form only.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

#[expect(dead_code, reason = "some of it is for the tests beside this one")]
#[path = "../fix/server.rs"]
mod server;

use server::{Peer, Server, check_sum};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where the sources of QuickFIX are unpacked.
const SOURCES: &str = "QUICKFIX_SOURCES";

/// How the server is set up for each folder of definitions: by files, or with what is built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Setup {
    /// QuickFIX's dictionaries and a store on disk.
    Files,
    /// Built-in tables and a store in memory.
    BuiltIn,
}

#[test]
fn quickfix_definitions() {
    let sources =
        std::env::var_os(SOURCES).unwrap_or_else(|| panic!("no {SOURCES}: make conformance"));
    let sources = PathBuf::from(sources);
    let folders = listed(&sources.join("test/definitions/server"));
    let folders: Vec<_> = folders
        .into_iter()
        .filter(|path| path.is_dir() && !path.ends_with("future"))
        .collect();
    assert!(folders.len() >= 8, "folders of definitions are missing");
    let failures: usize = std::thread::scope(|scope| {
        let each = |setup| folders.iter().map(move |folder| (setup, folder));
        let runs: Vec<_> = each(Setup::Files)
            .chain(each(Setup::BuiltIn))
            .map(|(setup, folder)| {
                let sources = &sources;
                scope.spawn(move || run_folder(setup, sources, folder))
            })
            .collect();
        runs.into_iter().map(|run| run.join().unwrap()).sum()
    });
    assert!(failures == 0, "{failures} definitions failed");
}

/// All definitions of a folder, one after the other; how many failed.
fn run_folder(setup: Setup, sources: &Path, folder: &Path) -> usize {
    let name = folder.file_name().unwrap().to_string_lossy().into_owned();
    let test = format!("definitions-{name}-{setup:?}");
    let server = Server::start(&test, &settings(setup, sources, &test));
    let mut files = listed(folder);
    files.retain(|path| path.extension().is_some_and(|extension| extension == "def"));
    assert!(files.len() >= 50, "definitions of {name} are missing");
    let mut failures = 0;
    for path in &files {
        let text = String::from_utf8_lossy(&std::fs::read(path).unwrap()).into_owned();
        if let Err(why) = run(&text, &server) {
            failures += 1;
            eprintln!("{name}, {setup:?}, {}: {why}", path.display());
        }
    }
    let (all, passed) = (files.len(), files.len() - failures);
    eprintln!("{name}, {setup:?}: {passed} of {all} passed");
    failures
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|why| panic!("{folder:?}: {why}"));
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn settings(setup: Setup, sources: &Path, test: &str) -> String {
    let mut text = "[DEFAULT]\nConnectionType=acceptor\nSocketAcceptAddress=127.0.0.1\n\
        SocketAcceptPort=0\nSocketReuseAddress=Y\nStartTime=00:00:00\nEndTime=00:00:00\n\
        SenderCompID=ISLD\nTargetCompID=TW\nResetOnLogon=Y\n"
        .to_owned();
    let store = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if setup == Setup::Files {
        text += &format!("FileStorePath={}\n", store.display());
    }
    let file = |key: &str, name: &str| match setup {
        Setup::Files => format!("{key}={}/spec/{name}.xml\n", sources.display()),
        Setup::BuiltIn => String::new(),
    };
    for minor in 0..=4 {
        text += &format!("[SESSION]\nBeginString=FIX.4.{minor}\n");
        text += &file("DataDictionary", &format!("FIX4{minor}"));
    }
    text += "[SESSION]\nBeginString=FIXT.1.1\nDefaultApplVerID=FIX.5.0\n";
    text += &file("TransportDataDictionary", "FIXT11");
    text += &file("AppDataDictionary", "FIX50");
    text += &file("AppDataDictionary.FIX.5.0SP1", "FIX50SP1");
    text + &file("AppDataDictionary.FIX.5.0SP2", "FIX50SP2")
}

/// Runs a definition; what failed in which line.
fn run(text: &str, server: &Server) -> Result<(), String> {
    let mut peers: HashMap<&str, Peer> = HashMap::new();
    for (number, line) in (1..).zip(text.lines()) {
        let Some(action) = line.get(..1).filter(|action| *action != "#") else {
            continue;
        };
        let rest = line.get(1..).unwrap_or_default();
        let (id, rest) = match rest.split_once(',') {
            Some((id, rest)) if id.len() == 1 && id != "8" => (id, rest),
            _ => ("1", rest),
        };
        step(&mut peers, server, (action, id, rest))
            .map_err(|why| format!("line {number}: {why}"))?;
    }
    Ok(())
}

fn step<'a>(
    peers: &mut HashMap<&'a str, Peer>,
    server: &Server,
    (action, id, rest): (&str, &'a str, &str),
) -> Result<(), String> {
    let text = whole(&timed(&rest.replace('\x01', "|")));
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

/// `<TIME>` and `<TIME+n>`, `<TIME-n>` replaced.
fn timed(text: &str) -> String {
    let mut parts = text.split("<TIME");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (offset, rest) = part.split_once('>').unwrap_or(("", part));
        out += &time(offset.parse().unwrap_or(0));
        out += rest;
    }
    out
}

/// The time so many seconds from now.
fn time(offset: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seconds = now.as_secs() as i64 + offset;
    let stamp = fanfare_wire::UtcTimestamp::from_nanos(seconds * 1_000_000_000);
    let mut room = [0; 32];
    let len = stamp.write(fanfare_wire::Precision::Seconds, &mut room);
    String::from_utf8_lossy(&room[..len]).into_owned()
}

/// A message with the BodyLength and CheckSum that it leaves out; what is no message as it is.
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

/// The same fields in the same order.
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

/// `YYYYMMDD-HH:MM:SS`, with or without a fraction.
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
