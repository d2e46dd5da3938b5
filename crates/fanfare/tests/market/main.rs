//! End-to-end tests of `fanfare market`: mappings checked, feeds as events, instruments listed,
//! books followed.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

mod bad_input;
mod book;
mod capture;
#[path = "../common/mod.rs"]
mod common;
mod dbn;
mod dbn_bad_input;
mod dbn_live;
mod dbn_rights;
mod dbn_stock;
mod disk;
mod edges;
mod fix;
mod gateway;
mod history;
mod history_dbn;
mod history_export;
mod kills;
mod outputs;
mod replay;
mod seen;
mod stock;
#[cfg(feature = "top")]
mod top;

use common::{Folder, fails, fanfare, run, told};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the arguments of a command that reads a file of the feed `spectra`.
fn spectra<'a>(command: &[&'a str], file: &'a Path, more: &[&'a str]) -> Vec<&'a str> {
    let read = ["-t", "builtin:spectra", "-f", text(file)];
    [command, &read, more].concat()
}

fn lines(out: &str) -> Vec<Value> {
    out.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// Writes a generated feed into a file.
fn feed(folder: &Folder, kind: &str, more: &[&str]) -> PathBuf {
    let file = folder.path().join(format!("{kind}.dat"));
    let mut args = vec!["fast", "generate", kind, "-n", "300", "-o", text(&file)];
    args.extend(more);
    common::done(&mut fanfare(&args));
    file
}

/// Returns the file of a gateway's events, once it has those of `sent` datagrams, without any that
/// the kernel dropped.
fn written(socket: &str, events: &str, sent: u64) -> String {
    let mut text = String::new();
    common::eventually("the events of all datagrams", || {
        let ctl = ["ctl", "--socket", socket, "counters", "--json"];
        let counters = run(&ctl).succeeded().json();
        let count = |name: &str| -> u64 {
            let all = counters.as_object().unwrap().iter();
            let of_name = all.filter(|(label, _)| label.ends_with(name));
            of_name.map(|(_, count)| count.as_u64().unwrap()).sum()
        };
        text = fs::read_to_string(events).unwrap();
        let taken = count("_datagrams") + count("_snapshot_packets");
        taken + count("_kernel_drops") + count("_snapshot_drops") == sent
            && text.matches('\n').count() as u64 == count("_market_events")
    });
    text
}

#[test]
fn a_feed_is_printed_as_events() {
    let folder = Folder::new("market-events");
    let file = feed(&folder, "spectra", &["--trades", "20"]);
    let args = spectra(&["market", "events"], &file, &[]);
    let said = run(&args).succeeded();
    let events = lines(&said.out);
    // As many as the entries.
    let decode = spectra(&["fast", "decode"], &file, &["--format", "json"]);
    let messages = lines(&run(&decode).succeeded().out);
    let entries = messages
        .iter()
        .filter_map(|message| message["fields"]["MDEntries"].as_array());
    let entries: Vec<&Value> = entries.flatten().collect();
    assert!(events.len() > 300 && events.len() == entries.len());
    for (number, (event, entry)) in (1..).zip(events.iter().zip(&entries)) {
        assert_eq!(event["number"], number);
        assert_eq!(event["rpt_seq"], entry["RptSeq"]);
        assert_eq!(event["entry"], entry["MDEntryType"]);
        assert_eq!(event["size"], entry["MDEntrySize"]);
        assert_eq!(event["security_id"], entry["SecurityID"].to_string());
    }
    assert!(events.iter().any(|event| event["kind"] == "trade"));
    // Five events of one instrument.
    let id = events[0]["security_id"].as_str().unwrap();
    let some = ["--symbol", id, "--limit", "5", "--json"];
    let said = run(&[&args[..], &some].concat()).succeeded();
    let of_one = lines(&said.out);
    assert!(of_one.len() == 5 && of_one.iter().all(|event| event["security_id"] == id));
    let figures: Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    assert_eq!(figures["figures"]["written"], 5);
    assert_eq!(figures["ok"], true);
    // The same instruments, listed.
    let list = spectra(&["market", "instruments"], &file, &["--json"]);
    let listed = lines(&run(&list).succeeded().out);
    assert!(listed.iter().any(|known| known["security_id"] == id));
    assert_eq!(listed[0]["revision"], 0);
}

#[test]
fn a_mapping_that_does_not_fit_is_an_error_with_its_line() {
    let folder = Folder::new("market-check");
    let file = folder.path().join("venue.toml");
    let write = |template: &str, price: u32| {
        let text = format!(
            "[[message]]\ntemplate = {template}\ndoes = \"changes\"\nentries = 268\n\
             instrument = {{ id = 48 }}\n\n[[message.event]]\nkind = \"level\"\nprice = {price}\n"
        );
        fs::write(&file, text).unwrap();
        ["market", "check", text_of(&file), "-t", "builtin:spectra"]
    };
    let name = text_of(&file);
    let said = run(&write("74", 270)).succeeded();
    assert!(
        said.out
            .contains("MDEntryPx(270)                       level: price"),
        "{}",
        said.out
    );
    assert!(
        said.out
            .contains("Symbol(55)                           ignored"),
        "{}",
        said.out
    );
    let error = fails(&write("75000", 270));
    assert_eq!(
        error,
        format!("fanfare: {name}:1: message: no template 75000\n")
    );
    let error = fails(&write("74", 999));
    assert!(error.starts_with(&format!("fanfare: {name}:9: message.event.price: no field")));
    let error = fails(&write("74", 268));
    assert!(
        error.contains("is a group or a sequence, which cannot be a price"),
        "{error}"
    );
    let json = [
        "market",
        "check",
        "builtin:complex",
        "-t",
        "builtin:complex",
        "--json",
    ];
    let report: Value = serde_json::from_str(&run(&json).succeeded().out).unwrap();
    assert_eq!(report["messages"][0]["does"], "changes");
    let fix = run(&["market", "check", "builtin:fix", "--fix", "FIX.4.4"]).succeeded();
    assert!(
        fix.out.contains("MarketDataIncrementalRefresh(X): changes"),
        "{}",
        fix.out
    );
    fails(&["market", "check", "builtin:none", "-t", "builtin:spectra"]);
    told(&["market", "events", "-t", "builtin:spectra"], 2);
    told(&["market", "instruments"], 2);
    told(&["market", "check", "builtin:fix"], 2);
    told(&["market", "check", "builtin:fix", "--fix", "FIX.9"], 2);
}

fn text_of(path: &Path) -> &str {
    text(path)
}

#[test]
fn instruments_of_a_file_are_listed_and_known_to_a_feed() {
    let folder = Folder::new("market-instruments");
    let file = feed(&folder, "complex", &[]);
    let table = folder.path().join("table.csv");
    fs::write(&table, "id,source,symbol,tick\n7,9,SEVEN,0.5\n8,9,EIGHT,\n").unwrap();
    let listed = run(&["market", "instruments", text(&table), "--json"]).succeeded();
    let listed = lines(&listed.out);
    assert_eq!(listed.len(), 2);
    assert_eq!(
        (&listed[0]["symbol"], &listed[0]["tick"]),
        (&"SEVEN".into(), &"0.5".into())
    );
    let said = run(&["market", "instruments", text(&table)]).succeeded();
    assert!(
        said.out.contains("SEVEN") && said.out.contains("tick=0.5"),
        "{}",
        said.out
    );
    let error = fails(&["market", "instruments", text(&table), "--symbol", "NINE"]);
    assert!(error.contains("there is no instrument `NINE`"), "{error}");
    let said = run(&[
        "market",
        "events",
        "-t",
        "builtin:complex",
        "-f",
        text(&file),
        "--instruments",
        text(&table),
        "--symbol",
        "SEVEN",
    ]);
    let events = lines(&said.succeeded().out);
    assert!(!events.is_empty() && events.iter().all(|event| event["security_id"] == "7"));
    fs::write(&table, "id,tick\n7,x\n").unwrap();
    let error = fails(&["market", "instruments", text(&table)]);
    assert!(
        error.ends_with("table.csv:2: tick: `x` is not a number\n"),
        "{error}"
    );
}

#[test]
fn text_of_an_instrument_moves_no_cursor_and_forges_no_line() {
    let folder = Folder::new("market-escaped");
    let table = "[[instrument]]\nsymbol = \"A\\u001b[2J\"\nid = \"X\\nforged\"\n\
                 source = \"\\u0007\"\ndescription = \"B\\u009bC\"\n";
    let table = folder.with("table.toml", table);
    let said = run(&["market", "instruments", &table]).succeeded();
    assert_eq!(said.out.lines().count(), 2, "{:?}", said.out);
    for shown in [
        r" A\u{1b}[2J ",
        r" X\nforged ",
        r" \u{7} ",
        r"description=B\u{9b}C",
    ] {
        assert!(said.out.contains(shown), "{shown} in {:?}", said.out);
    }
}
