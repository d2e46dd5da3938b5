//! Tests that the crate `dbn` reads the output of `fanfare market events --format dbn`.

use super::{feed, lines, spectra, text};
use crate::common::{Folder, fanfare, run, told};
use dbn::decode::{DbnDecoder, DbnMetadata, DecodeRecordRef};
use dbn::{Mbp10Msg, PitSymbolMap, RecordRef, SymbolMappingMsg, TradeMsg};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// Calls `take` with each record.
fn read(bytes: &[u8], mut take: impl FnMut(RecordRef<'_>)) {
    let mut decoder = DbnDecoder::new(bytes).unwrap();
    assert_eq!(decoder.metadata().dataset, "FANFARE");
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        take(record);
    }
}

/// Returns a price of JSON in units of 10^-9.
fn units(price: &Value) -> i64 {
    let price: f64 = price.as_str().unwrap().parse().unwrap();
    (price * 1e9).round() as i64
}

fn events(file: &Path) -> Vec<Value> {
    let args = spectra(&["market", "events"], file, &[]);
    lines(&run(&args).succeeded().out)
}

#[test]
fn a_feed_is_written_as_dbn() {
    let folder = Folder::new("market-dbn");
    let file = feed(&folder, "spectra", &["--trades", "20"]);
    let target = folder.path().join("feed.dbn");
    let args = spectra(&["market", "events"], &file, &["--format", "dbn"]);
    let to_file = ["--output", text(&target), "--json"];
    let said = run(&[&args[..], &to_file].concat()).succeeded();
    assert!(said.out.is_empty());
    let figures: Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    let bytes = fs::read(&target).unwrap();
    // The same to stdout, which is a pipe.
    assert_eq!(fanfare(&args).output().unwrap().stdout, bytes);
    let mut symbols = PitSymbolMap::new();
    let mut seen = Vec::new();
    let mut records = 0;
    read(&bytes, |record| {
        records += 1;
        if let Some(mapping) = record.get::<SymbolMappingMsg>() {
            symbols.on_symbol_mapping(mapping).unwrap();
            return;
        }
        let symbol = symbols.get(record.header().instrument_id).unwrap().clone();
        if let Some(trade) = record.get::<TradeMsg>() {
            seen.push((symbol, "trade", trade.price, trade.size, trade.sequence));
        } else if let Some(mbp) = record.get::<Mbp10Msg>() {
            // The feed begins in the middle, and has no snapshots.
            assert!(mbp.flags.raw() & dbn::flags::MAYBE_BAD_BOOK != 0);
            seen.push((symbol, "level", mbp.price, mbp.size, mbp.sequence));
        }
    });
    assert_eq!(figures["figures"]["dbn_records"], records);
    assert_eq!(figures["figures"]["dbn_lost"], 0);
    let wanted = events(&file).into_iter().filter_map(|event| {
        let kind = event["kind"].as_str().unwrap();
        let kind = ["trade", "level"]
            .into_iter()
            .find(|known| kind == *known)?;
        let undefined = || (i64::MAX, u32::MAX);
        let size = event["size"].as_u64().map(|size| size as u32);
        let price = event.get("price").map(units);
        Some((
            event["security_id"].as_str().unwrap().to_owned(),
            kind,
            price.unwrap_or(undefined().0),
            size.unwrap_or(undefined().1),
            event["rpt_seq"].as_u64().unwrap() as u32,
        ))
    });
    let wanted: Vec<_> = wanted.collect();
    assert!(wanted.len() > 300);
    assert_eq!(seen, wanted);
}

#[test]
fn schemas_and_limits_of_dbn_are_kept() {
    let folder = Folder::new("market-dbn-schemas");
    let file = feed(&folder, "spectra", &["--trades", "20"]);
    let target = folder.path().join("feed.dbn");
    let base = spectra(&["market", "events"], &file, &[]);
    let dbn = ["--format", "dbn", "-o", text(&target)];
    let with = |schemas| [&base[..], &dbn, &["--schema", schemas]].concat();
    let said = run(&with("trades")).succeeded();
    assert!(said.err.contains("dbn other schemas: "), "{}", said.err);
    let mut trades = 0;
    read(&fs::read(&target).unwrap(), |record| {
        trades += usize::from(record.has::<TradeMsg>());
        assert!(record.has::<TradeMsg>() || record.has::<SymbolMappingMsg>());
    });
    let of_json = events(&file);
    let of_json = of_json.iter().filter(|event| event["kind"] == "trade");
    assert!(trades > 0 && trades == of_json.count());
    let error = told(&with("mbp-1,mbp-10"), 2);
    assert!(
        error.contains("mbp-1 and mbp-10 exclude each other"),
        "{error}"
    );
    let error = told(&with("mbp-5"), 2);
    assert!(error.contains("unknown schema `mbp-5`"), "{error}");
    let error = told(&[&base[..], &["--schema", "mbo"]].concat(), 2);
    assert_eq!(error, "fanfare: --schema needs --format dbn\n");
}

#[test]
fn what_dbn_cannot_hold_is_said_and_is_an_error() {
    let folder = Folder::new("market-dbn-lost");
    let file = feed(&folder, "spectra", &[]);
    let (large, target) = (folder.path().join("large"), folder.path().join("feed.dbn"));
    let decode = spectra(&["fast", "decode"], &file, &["--format", "json"]);
    let messages = run(&decode).succeeded().out;
    let size = "\"MDEntrySize\": ";
    let at = messages.find(size).unwrap() + size.len();
    let rest = messages[at..].trim_start_matches(|digit: char| digit.is_ascii_digit());
    let jsonl = folder.path().join("large.jsonl");
    fs::write(&jsonl, format!("{}5000000000{rest}", &messages[..at])).unwrap();
    let encode = spectra(&["fast", "encode"], &jsonl, &["-o", text(&large)]);
    run(&encode).succeeded();
    let args = spectra(
        &["market", "events"],
        &large,
        &["--format", "dbn", "-o", text(&target), "--json"],
    );
    let error = told(&args, 1);
    let first = error.lines().next().unwrap();
    assert!(first.starts_with("fanfare: instrument "), "{first}");
    let why = "event 1 (level): size: 5000000000 is not from 0 to 4294967294";
    assert!(first.ends_with(why), "{first}");
    let figures: Value = serde_json::from_str(error.lines().last().unwrap()).unwrap();
    assert_eq!(figures["ok"], false);
    assert!(figures["figures"]["dbn_lost"].as_u64().unwrap() > 0);
    assert_eq!(figures["figures"]["errors"], 0);
    read(&fs::read(&target).unwrap(), |_| {});
}

#[test]
fn a_log_that_was_exported_is_read_back() {
    use crate::common::log::{live, write};
    let folder = Folder::new("market-from-dbn");
    let [log, file] = ["log", "day.dbn"].map(|name| folder.file(name));
    write(Path::new(&log), &live(60));
    let export = ["history", "export", &log, "--format", "dbn", "-o", &file];
    run(&export).succeeded();
    let read = |args: &[&str]| {
        let lines = run(args).succeeded().json_lines();
        let is_it = |line: &Value| line["kind"] == "level" || line["kind"] == "trade";
        let lines = lines.into_iter().filter(is_it);
        let keys = [
            "kind", "action", "symbol", "entry", "price", "size", "orders", "rpt_seq", "ts_event",
            "ts_recv", "last",
        ];
        lines
            .map(|line| keys.map(|key| line[key].clone()).to_vec())
            .collect::<Vec<_>>()
    };
    let original = read(&["history", "cat", &log, "--json"]);
    let back = read(&["market", "events", "--dbn", &file]);
    assert!(original.len() > 70);
    assert_eq!(back, original);
    let mut bytes = folder.read("day.dbn");
    bytes.truncate(bytes.len() - 3);
    let cut = folder.with("cut.dbn", &bytes);
    let said = run(&["market", "events", "--dbn", &cut, "--json"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains(": the file is truncated: "),
        "{}",
        said.err
    );
    bytes[3] = 4;
    let newer = folder.with("newer.dbn", &bytes);
    let said = run(&["market", "events", "--dbn", &newer]);
    let why = "byte 0: unsupported version 4 of DBN, expected 1 to 3";
    assert!(said.code == 1 && said.err.contains(why), "{}", said.err);
    told(
        &["market", "events", "--dbn", &file, "-t", "builtin:spectra"],
        2,
    );
}

#[test]
fn each_book_begins_with_its_clear_when_the_events_of_dbn_become_dbn_again() {
    use crate::common::log::{live, write};
    let folder = Folder::new("market-again-dbn");
    let [log, file, again] = ["log", "day.dbn", "again.dbn"].map(|name| folder.file(name));
    write(Path::new(&log), &live(60));
    let export = ["history", "export", &log, "--format", "dbn", "-o", &file];
    run(&export).succeeded();
    let from_file = ["market", "events", "--dbn", &file];
    run(&[&from_file[..], &["--format", "dbn", "-o", &again]].concat()).succeeded();
    let cleared = lines(&run(&from_file).succeeded().out);
    let cleared = cleared.iter().filter(|line| line["kind"] == "clear");
    let mut records = 0;
    read(&folder.read("again.dbn"), |record| {
        let mbp = record.get::<Mbp10Msg>();
        records += usize::from(mbp.is_some_and(|mbp| mbp.action as u8 == b'R'));
    });
    assert!(records > 0);
    assert_eq!(cleared.count(), records);
}
