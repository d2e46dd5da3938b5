//! Tests of the rights of DBN clients, from the first record to a reload, and of operators'
//! commands; over a feed that is a file of DBN.

use crate::common::gateway::port;
use crate::common::log::{events, write};
use crate::common::{Folder, Running, done, eventually, fanfare, groups, run, sending};
use crate::stock::{ERROR, KEY, MAPPING, Stock, data, of, program};
use crate::{feed, lines};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Writes a file of DBN with the levels and trades of a minute: of ALFA, BETA and GAMMA.
fn minute(folder: &Folder) -> String {
    let (log, file) = (folder.file("source"), folder.file("minute.dbn"));
    write(Path::new(&log), &events(60));
    run(&["history", "export", &log, "--format", "dbn", "-o", &file]).succeeded();
    file
}

/// A gateway with users whose feed repeats the minute, at sixty times its speed.
struct Plant {
    folder: Folder,
    gateway: Running,
    port: String,
    socket: String,
}

impl Plant {
    fn start(users: &str) -> Self {
        let folder = Folder::new("dbn-rights");
        for (name, key) in [("desk.key", KEY), ("other.key", OTHER)] {
            let key = folder.with(name, format!("{key}\n"));
            fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        }
        let file = minute(&folder);
        let (socket, audit) = (folder.file("s"), folder.file("audit.jsonl"));
        let (log, users_file) = (folder.file("log"), folder.file("users.toml"));
        let config = format!(
            "control = \"{socket}\"\naudit = \"{audit}\"\nusers = \"{users_file}\"\n\
             [producers]\nport = 0\n[consumers]\nport = 0\n[dbn]\nport = 0\nheartbeat_s = 1\n\
             [history]\nfolder = \"{log}\"\n[[feed]]\nchannel = \"minute\"\n\
             dbn = {{ file = \"{file}\", speed = 60, loop = true }}\n"
        );
        let config = folder.with("gateway.toml", config);
        write_users(&folder, users);
        let mut gateway = Running::start(&mut fanfare(&["gateway", &config]));
        let port = port(&gateway.prints("Listening for DBN (FANFARE) on 127.0.0.1:"));
        gateway.prints("Listening for operators");
        Self {
            folder,
            gateway,
            port,
            socket,
        }
    }

    fn ctl(&self, args: &[&str]) -> Value {
        let all = [&["ctl", "--socket", &*self.socket, "--json"], args].concat();
        run(&all).succeeded().json()
    }

    fn reload(&self, users: &str) {
        write_users(&self.folder, users);
        self.ctl(&["config", "reload"]);
    }

    /// Returns the lines of the audit file of DBN clients, and of one event.
    fn audit(&self, event: &str) -> Vec<Value> {
        let text = String::from_utf8(self.folder.read("audit.jsonl")).unwrap();
        let all = lines(&text[..text.rfind('\n').map_or(0, |end| end + 1)]).into_iter();
        let of_dbn = all.filter(|line| line["port"] == "dbn" && line["event"] == event);
        of_dbn.collect()
    }
}

const OTHER: &str = "db-zyxwvutsrqponmlkjihgfedcba987";

fn write_users(folder: &Folder, users: &str) {
    let path = folder.path().display().to_string();
    folder.with("users.toml", users.replace("DIR", &path));
}

/// Returns a user with the first key and rights to these instruments.
fn desk(instruments: &str) -> String {
    format!(
        "[[user]]\nname = \"desk\"\ndbn_key_file = \"DIR/desk.key\"\n\
         instruments = [{instruments}]\nsessions_at_a_time = 4\n"
    )
}

/// Returns the names of the instruments with records among `client`.
fn seen(client: &[Value]) -> BTreeSet<String> {
    let numbers: BTreeSet<u64> = data(client)
        .into_iter()
        .map(|record| record["hd"]["instrument_id"].as_u64().unwrap())
        .collect();
    let named = of(client, MAPPING).into_iter();
    let names: Vec<(u64, &str)> = named
        .map(|record| {
            let number = record["hd"]["instrument_id"].as_u64().unwrap();
            (number, record["stype_out_symbol"].as_str().unwrap())
        })
        .collect();
    let name = |number: &u64| {
        let found = names.iter().find(|(own, _)| own == number);
        found.map_or("?", |(_, name)| *name).to_owned()
    };
    numbers.iter().map(name).collect()
}

fn set(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn rights_hold_in_present_and_past_and_end_with_a_reload() {
    let Some(program) = program() else {
        return;
    };
    let plant = Plant::start(&desk("\"ALFA\", \"GAMMA\""));
    let place = (&*program, &plant.folder);
    let both = ["mbp-10 ALL_SYMBOLS", "trades ALL_SYMBOLS start=0"];
    let client = Stock::subscribed(place, "desk", &plant.port, &[], &both);
    client.says("Replay of trades data completed");
    let has = |count: usize, client: &Stock| {
        eventually("records", || data(&client.so_far()).len() >= count);
    };
    has(60, &client);
    assert_eq!(seen(&client.so_far()), set(&["ALFA", "GAMMA"]));
    let denied = Stock::subscribed(place, "denied", &plant.port, &[], &["mbp-1 BETA start=0"]);
    let told = denied.end();
    assert_eq!(of(&told, ERROR)[0]["err"], "mbp-1: unknown symbols: BETA");
    assert!(data(&told).is_empty());
    let wrong = Stock::start(place, "wrong", &plant.port, &[&format!("key={OTHER}")]);
    wrong.says("authentication failed");
    // Fewer instruments: an error, and none of their records after it.
    plant.reload(&desk("\"GAMMA\""));
    client.says("1 instruments: no longer permitted");
    has(data(&client.so_far()).len() + 40, &client);
    let all = client.so_far();
    let error = all.iter().position(|line| line["hd"]["rtype"] == ERROR);
    let (before, after) = all.split_at(error.unwrap());
    let names: Vec<Value> = of(before, MAPPING).into_iter().cloned().collect();
    assert_eq!(seen(&[&names, after].concat()), set(&["GAMMA"]));
    // Another user in place of this one.
    let other = desk("\"*\"").replace("desk", "other");
    plant.reload(&other);
    client.says("closed");
    let end = client.end();
    let last = of(&end, ERROR).pop().unwrap().clone();
    assert_eq!(
        (&last["code"], &last["err"]),
        (&2.into(), &"no longer permitted".into())
    );
    judge_audit(&plant);
    plant.gateway.interrupt();
    plant.gateway.end().succeeded();
}

fn judge_audit(plant: &Plant) {
    eventually("the ends of both sessions", || {
        plant.audit("end").len() >= 3
    });
    let logons = plant.audit("logon");
    assert_eq!(logons.len(), 2);
    assert!(
        logons
            .iter()
            .all(|line| line["user"] == "desk" && line["peer"].is_string())
    );
    assert_eq!(
        plant.audit("refusal")[0]["why"],
        "wrong key, or not allowed from this address"
    );
    let requests = plant.audit("request");
    let has = |what: &str| {
        let found = requests
            .iter()
            .filter(|line| line["what"].as_str().unwrap().contains(what));
        found.count()
    };
    assert_eq!(
        (
            has("schema=mbp-10|"),
            has("schema=trades|"),
            has("symbols=BETA|")
        ),
        (1, 1, 1)
    );
}

#[test]
fn operators_see_and_end_clients_of_dbn() {
    let Some(program) = program() else {
        return;
    };
    let plant = Plant::start(&desk("\"*\""));
    let place = (&*program, &plant.folder);
    let start = |name: &str| {
        let subscriptions = ["trades ALL_SYMBOLS", "mbp-1 BETA"];
        Stock::subscribed(place, name, &plant.port, &[], &subscriptions)
    };
    let (first, second) = (start("first"), start("second"));
    // This client has authenticated only.
    let third = Stock::start(place, "third", &plant.port, &[]);
    third.says("session");
    eventually("three sessions", || {
        let sessions = plant.ctl(&["sessions", "--port", "dbn"]);
        let sessions = &sessions["sessions"];
        sessions.as_array().unwrap().len() == 3
            && sessions[0]["schemas"] == Value::from(vec!["mbp-1", "trades"])
    });
    let sessions = plant.ctl(&["sessions", "--user", "desk"]);
    let logged_on = ["1", "2", "3"].map(|number| {
        let all = sessions["sessions"].as_array().unwrap().iter();
        let mut own = all.filter(|session| session["session"] == number);
        own.next().unwrap()["logged_on"].clone()
    });
    assert_eq!(logged_on, [true, true, false]);
    assert_eq!(plant.ctl(&["users"])[0]["sessions"], 3);
    let none = plant.ctl(&["sessions", "desk"]);
    assert_eq!(none["total"], 0);
    let ended = plant.ctl(&[
        "sessions",
        "logout",
        "1",
        "--port",
        "dbn",
        "--text",
        "until tomorrow",
    ]);
    assert_eq!(
        (&ended["sessions"], &ended["forced"]),
        (&1.into(), &0.into())
    );
    first.says("closed");
    let told = first.end();
    assert_eq!(of(&told, ERROR).pop().unwrap()["err"], "until tomorrow");
    let ended = plant.ctl(&["sessions", "disconnect", "--user", "desk", "--port", "dbn"]);
    assert_eq!(ended["sessions"], 2);
    second.says("closed");
    assert!(of(&second.end(), ERROR).is_empty());
    // The audit file is written after the commands return.
    let expected = ["disconnected by an operator", "logged out by an operator"];
    eventually("the ends are audited", || {
        let ends = plant.audit("end");
        let why = ends.iter().map(|line| line["why"].as_str().unwrap());
        why.collect::<BTreeSet<_>>() == BTreeSet::from(expected)
    });
    plant.gateway.interrupt();
    plant.gateway.end().succeeded();
}

/// Returns an event without the fields that the plant sets.
fn plain(mut event: Value) -> Value {
    let object = event.as_object_mut().unwrap();
    for key in ["number", "instrument", "feed", "ts_recv"] {
        object.remove(key);
    }
    event
}

/// Sends a feed and its snapshots.
fn send_feed(folder: &Folder, groups: [&str; 2]) {
    let changes = folder.path().join("changes.dat");
    fs::rename(feed(folder, "spectra", &[]), &changes).unwrap();
    let shown = feed(folder, "spectra", &["--snapshots"]);
    for (file, group) in [&changes, &shown].into_iter().zip(groups) {
        done(sending(file, group).args(["-s", "100"]));
    }
}

#[test]
fn a_file_of_dbn_is_a_feed_beside_a_live_one() {
    let folder = Folder::new("dbn-file-feed");
    let file = minute(&folder);
    let [line, snapshots] = groups();
    let (events, log) = (folder.file("events.jsonl"), folder.file("log"));
    let config = folder.with(
        "gateway.toml",
        format!(
            "events = \"{events}\"\n[producers]\nport = 0\n[consumers]\nport = 0\n\
             [history]\nfolder = \"{log}\"\n[[feed]]\ntemplates = \"builtin:spectra\"\n\
             lines = [\"{line}\"]\nmapping = \"builtin:spectra\"\n[feed.book]\n\
             starts_empty = false\n[feed.snapshot]\nlines = [\"{snapshots}\"]\n[[feed]]\n\
             dbn = {{ file = \"{file}\", speed = \"max\" }}\n"
        ),
    );
    let mut gateway = Running::start(&mut fanfare(&["gateway", &config]));
    gateway.prints("Listening for consumers");
    gateway.tells("feed minute.dbn: the file has ended, ");
    send_feed(&folder, [&line, &snapshots]);
    let written = run(&["market", "events", "--dbn", &file]).succeeded();
    let expected: Vec<Value> = lines(&written.out).into_iter().map(plain).collect();
    assert!(expected.len() > 75);
    let mut said = Vec::new();
    eventually("events of both feeds", || {
        let text = fs::read_to_string(&events).unwrap();
        said = lines(&text[..text.rfind('\n').map_or(0, |end| end + 1)]);
        said.len() > expected.len() + 100
    });
    gateway.interrupt();
    gateway.end().succeeded();
    for (event, number) in said.iter().zip(1..) {
        assert_eq!(event["number"], number);
    }
    let of_file = said.iter().filter(|event| event["symbol"].is_string());
    let of_file: Vec<Value> = of_file.cloned().map(plain).collect();
    assert_eq!(of_file, expected);
    // Each book begins with a Clear.
    let clears = of_file.iter().filter(|event| event["kind"] == "clear");
    assert_eq!(clears.count(), 3);
    // Instruments of the second feed follow the numbers of the first one.
    let book = run(&["history", "book", &log, "--symbol", "BETA", "--json"])
        .succeeded()
        .json();
    assert!(!book["bids"].as_array().unwrap().is_empty(), "{book}");
}

#[test]
fn a_feed_that_is_no_file_of_dbn_is_refused() {
    let folder = Folder::new("dbn-file-feed-wrong");
    for (wrong, why) in [
        ("dbn = \"none.dbn\"", "none.dbn"),
        (
            "dbn = \"a\"\nlines = [\"239.1.1.1:1\"]",
            "must be the only key of its feed, except for `channel`",
        ),
        ("dbn = { file = \"a\", pace = 2 }", "unknown field `pace`"),
        (
            "channel = \"x\"",
            "a feed needs `templates` and `lines`, a file as `dbn`, or a session as `fix`",
        ),
    ] {
        let front = "[producers]\nport = 0\n[consumers]\nport = 0\n[[feed]]\n";
        let config = folder.with("wrong.toml", format!("{front}{wrong}\n"));
        let said = run(&["gateway", &config]);
        assert!(
            said.code != 0 && said.err.contains(why),
            "{wrong}: {}",
            said.err
        );
    }
}
