//! Tests of live DBN with PyPI's databento, unmodified.

use crate::common::gateway::port;
use crate::common::{Folder, Running, done, fanfare, groups, sending};
use crate::stock::KEY;
use crate::{feed, written};
use fanfare_peers::{or_skip, python};
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

fn databento() -> Option<std::path::PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-databento");
    let found = python(&home, "databento==0.87.0", "databento");
    or_skip(found).unwrap_or_else(|absent| panic!("{absent}"))
}

/// Waits for a line of the client that contains `what`.
fn says(client: &mut Running, what: &str) -> Value {
    serde_json::from_str(&client.prints(what)).unwrap()
}

/// Returns the trades of a file of events, in the client's format, and the volume.
fn traded(events: &str) -> (Vec<Value>, i64) {
    let events = events
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trades: Vec<Value> = events.filter(|event| event["kind"] == "trade").collect();
    let volume = trades
        .iter()
        .map(|event| event["size"].as_i64().unwrap())
        .sum();
    let trade = |event: &Value| {
        let (whole, rest) = match event["price"].as_str().unwrap().split_once('.') {
            Some(parts) => parts,
            None => (event["price"].as_str().unwrap(), ""),
        };
        let price = format!("{whole}{rest:0<9}").parse::<i64>().unwrap();
        json!([
            event["instrument"],
            event["ts_recv"],
            price,
            event["size"],
            event["rpt_seq"]
        ])
    };
    (trades.iter().map(trade).collect(), volume)
}

#[test]
fn stock_clients_receive_what_the_plant_says() {
    let Some(python) = databento() else {
        return;
    };
    let [line, snapshots] = groups();
    let folder = Folder::new("market-dbn-live");
    let key = folder.with("user.key", format!("{KEY}\n"));
    let [events, log, socket] = ["events.jsonl", "log", "ctl"].map(|name| folder.file(name));
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let config = folder.with(
        "gateway.toml",
        format!(
            "control = \"{socket}\"\nevents = \"{events}\"\n[producers]\nport = 0\nopen = true\n\
             [consumers]\nport = 0\n[history]\nfolder = \"{log}\"\n[dbn]\nport = 0\n\
             [[user]]\nname = \"u\"\ndbn_key_file = \"{key}\"\ninstruments = [\"*\"]\n\
             sessions_at_a_time = 3\n[[feed]]\ntemplates = \"builtin:spectra\"\n\
             lines = [\"{line}\"]\nmapping = \"builtin:spectra\"\n[feed.book]\n\
             starts_empty = false\n[feed.snapshot]\nlines = [\"{snapshots}\"]\n"
        ),
    );
    let mut gateway = Running::start(&mut fanfare(&["gateway", &config]));
    let port = port(&gateway.prints("Listening for DBN (FANFARE) on 127.0.0.1:"));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/market/dbn_live.py");
    let mut command = Command::new(python);
    let chapter = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/dbn.md");
    command.arg("-B").arg(script).args([&port, KEY, chapter]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut client = Running::start(command.stderr(Stdio::piped()));
    let wrong = says(&mut client, "wrong_key");
    assert!(
        wrong["wrong_key"]
            .as_str()
            .unwrap()
            .contains("authentication failed"),
        "{wrong}"
    );
    let unknown = says(&mut client, "unknown");
    assert_eq!(unknown["unknown"][0][1], 4, "{unknown}");
    says(&mut client, "ready");
    let changes = folder.path().join("changes.dat");
    fs::rename(feed(&folder, "spectra", &["--trades", "20"]), &changes).unwrap();
    let shown = feed(&folder, "spectra", &["--trades", "20", "--snapshots"]);
    let sent = [(&changes, &line), (&shown, &snapshots)].map(|(file, group)| {
        let said = done(sending(file, group).args(["-s", "100", "--json"]));
        said.figures()["packets"].as_u64().unwrap()
    });
    gateway.tells("11 live");
    let (trades, volume) = traded(&written(&socket, &events, sent.into_iter().sum()));
    judge(&mut client, &trades, volume);
    says(&mut client, "again");
    assert_eq!(says(&mut client, "recipe")["recipe"], json!(trades));
    client.end().succeeded();
    gateway.interrupt();
    gateway.end().succeeded();
}

/// Compares the client's messages with the trades.
fn judge(client: &mut Running, trades: &[Value], volume: i64) {
    let mut stdin = client.stdin();
    writeln!(stdin, "{} {volume}", trades.len()).unwrap();
    let said = says(client, "\"trades\"");
    for kind in ["trades", "timed", "tbbo"] {
        assert_eq!(said[kind].as_array().unwrap().len(), trades.len(), "{kind}");
        assert_eq!(said[kind], json!(trades), "{kind}");
    }
    assert_eq!(
        (&said["late"], &said["volume"]),
        (&json!(0), &json!(volume))
    );
    assert_eq!(said["errors"], json!([]));
    assert!(said["mbp10"].as_u64() > said["mbp1"].as_u64());
    assert!(said["quotes"].as_u64() > Some(0));
    assert_eq!(said["symbols"].as_object().unwrap().len(), 11);
}
