//! Tests of `fanfare market events --fix`: messages of a log as events.

use super::{lines, text};
use crate::common::{Folder, fails, fanfare, run, told};
use dbn::decode::{DbnDecoder, DecodeRecordRef};
use dbn::{InstrumentDefMsg, Mbp10Msg, StatusMsg, TradeMsg};
use fanfare_peers::fix::framed;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a line of a log: a message of this type and number, with `|` for SOH.
fn message(msg_type: &str, number: u32, fields: &str) -> String {
    let body =
        format!("35={msg_type}|49=EXC|56=US|34={number}|52=20261123-10:00:00.000|1128=9|{fields}|");
    let message = framed("FIXT.1.1", &body);
    format!("10:00:00.{number:03} in {message}\n")
}

/// Returns a whole day of one instrument.
fn day() -> Vec<String> {
    vec![
        message("A", 1, "98=0|108=30|1137=9"),
        message(
            "d",
            2,
            "55=RIU3|48=49634118|22=8|107=RTS-9.23|167=FUT|461=FXXXXX|15=RUB|969=10",
        ),
        message(
            "W",
            3,
            "55=RIU3|48=49634118|22=8|83=20|268=2|269=0|270=99.5|271=7|1023=1|269=1|270=101|\
             271=3|1023=1",
        ),
        message(
            "X",
            4,
            "268=2|279=0|269=0|55=RIU3|48=49634118|22=8|83=21|270=99|271=4|1023=2|279=0|269=2|\
             55=RIU3|48=49634118|22=8|83=22|270=101|271=1|1003=7",
        ),
        message("f", 5, "55=RIU3|48=49634118|22=8|326=2"),
        message("h", 6, "336=1|340=3"),
        message("y", 7, "320=q|322=r|560=0|893=Y|146=1|55=SIU3|48=7|22=8"),
    ]
}

fn log(folder: &Folder, messages: &[String]) -> PathBuf {
    let file = folder.path().join("fix.log");
    let text = format!("starting\n{}", messages.concat());
    fs::write(&file, text).unwrap();
    file
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["kind"].as_str().unwrap())
        .collect()
}

#[test]
fn a_log_is_printed_as_events() {
    let folder = Folder::new("market-fix");
    let file = log(&folder, &day());
    let said = run(&["market", "events", "--fix", text(&file)]).succeeded();
    let events = lines(&said.out);
    assert_eq!(
        kinds(&events),
        [
            "definition",
            "clear",
            "level",
            "level",
            "level",
            "trade",
            "status",
            "status",
            "definition"
        ]
    );
    assert!(events[..7].iter().all(|event| event["symbol"] == "RIU3"));
    assert_eq!(events[0]["definition"]["tick"], "10");
    assert_eq!(
        (&events[2]["price"], &events[2]["snapshot"]),
        (&"99.5".into(), &true.into())
    );
    assert_eq!(
        (&events[4]["level"], &events[4]["rpt_seq"]),
        (&2.into(), &21.into())
    );
    assert_eq!(
        (&events[5]["trade_id"], &events[5]["last"]),
        (&7.into(), &true.into())
    );
    assert_eq!(events[7]["instrument"], "all");
    assert_eq!(events[8]["symbol"], "SIU3");
    assert!(
        said.err.contains("0 errors") && said.err.contains("other bytes: 8"),
        "{}",
        said.err
    );
    // The same from stdin.
    let mut piped = fanfare(&["market", "events", "--fix", "-"]);
    let piped = piped
        .stdin(fs::File::open(&file).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(piped.stdout).unwrap(), said.out);
    let only = [
        "market",
        "events",
        "--fix",
        text(&file),
        "--symbol",
        "SIU3",
        "--limit",
        "1",
    ];
    assert_eq!(lines(&run(&only).succeeded().out).len(), 1);
}

#[test]
fn a_log_becomes_dbn_with_a_whole_book() {
    let folder = Folder::new("market-fix-dbn");
    let file = log(&folder, &day());
    let target = folder.path().join("fix.dbn");
    let args = [
        "market",
        "events",
        "--fix",
        text(&file),
        "--format",
        "dbn",
        "-o",
        text(&target),
    ];
    run(&args).succeeded();
    let bytes = fs::read(&target).unwrap();
    let mut decoder = DbnDecoder::new(&bytes[..]).unwrap();
    let (mut books, mut others) = (Vec::new(), Vec::new());
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(mbp) = record.get::<Mbp10Msg>() {
            assert_eq!(mbp.flags.raw() & dbn::flags::MAYBE_BAD_BOOK, 0, "{mbp:?}");
            let levels = mbp.levels.iter().map(|level| (level.bid_px, level.ask_px));
            let none = i64::MAX;
            books.push(levels.take_while(|pair| *pair != (none, none)).count());
        } else if let Some(definition) = record.get::<InstrumentDefMsg>() {
            others.push(definition.raw_symbol().unwrap().to_owned());
        } else if let Some(status) = record.get::<StatusMsg>() {
            others.push(format!(
                "status {} of {}",
                status.action, status.hd.instrument_id
            ));
        } else if record.has::<TradeMsg>() {
            others.push("trade".to_owned());
        }
    }
    // The clear of the snapshot, its bid, its offer, and the second bid.
    assert_eq!(books, [0, 1, 1, 2]);
    assert_eq!(
        others,
        ["RIU3", "trade", "status 8 of 0", "status 12 of 0", "SIU3"]
    );
}

#[test]
fn a_clear_precedes_the_trade_that_comes_before_the_first_level_of_its_message() {
    let folder = Folder::new("market-fix-clear");
    let name = "55=RIU3|48=49634118|22=8";
    let change = format!(
        "268=3|279=0|269=J|{name}|83=1|279=0|269=2|{name}|83=2|270=101|271=1|1003=7|279=0|269=0|\
         {name}|83=3|270=99|271=4|1023=1"
    );
    let file = log(&folder, &[message("X", 1, &change)]);
    let target = folder.file("clear.dbn");
    let args = ["market", "events", "--fix", text(&file), "--format", "dbn"];
    run(&[&args[..], &["-o", &target]].concat()).succeeded();
    let bytes = fs::read(&target).unwrap();
    let mut decoder = DbnDecoder::new(&bytes[..]).unwrap();
    let mut actions = Vec::new();
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(mbp) = record.get::<Mbp10Msg>() {
            actions.push(("mbp-10", mbp.action as u8));
        } else if let Some(trade) = record.get::<TradeMsg>() {
            actions.push(("trades", trade.action as u8));
        }
    }
    // The level alone shows that the book has levels, and thus which record the clear is.
    let expected = [("mbp-10", b'R'), ("trades", b'T'), ("mbp-10", b'A')];
    assert_eq!(actions, expected);
}

#[test]
fn snapshots_in_fragments_come_out_whole_or_not_at_all() {
    let folder = Folder::new("market-fix-fragments");
    let part = |number, is_last, level: u32| {
        let fields = format!(
            "55=RIU3|83=20|893={is_last}|268=1|269=0|270={}|271=7|1023={level}",
            100 - level
        );
        message("W", number, &fields)
    };
    let mut messages = vec![
        part(1, 'Y', 1),
        part(2, 'N', 1),
        part(3, 'N', 2),
        part(4, 'Y', 3),
    ];
    messages.extend([part(5, 'N', 1), part(7, 'Y', 3), part(8, 'Y', 1)]);
    let file = log(&folder, &messages);
    let said = run(&["market", "events", "--fix", text(&file), "--json"]).succeeded();
    let events = lines(&said.out);
    assert_eq!(
        kinds(&events),
        ["clear", "level", "level", "level", "clear", "level"]
    );
    let last: Vec<bool> = events.iter().map(|event| event["last"] == true).collect();
    assert_eq!(last, [false, false, false, true, false, true]);
    let figures: Value = serde_json::from_str(said.err.lines().last().unwrap()).unwrap();
    let count = |name: &str| {
        figures["figures"][format!("fragments_{name}")]
            .as_u64()
            .unwrap()
    };
    let counts = ["seen", "whole", "discarded", "without_beginning"].map(count);
    assert_eq!(counts, [7, 1, 1, 2]);
}

/// Returns the errors for a log with a malformed message, up to the figures.
fn said_of(file: &Path, more: &[&str]) -> Vec<String> {
    let mut args = vec!["market", "events", "--fix", text(file)];
    args.extend(more);
    let said = told(&args, 1);
    said.lines()
        .take_while(|line| line.starts_with("fanfare: "))
        .map(str::to_owned)
        .collect()
}

#[test]
fn errors_name_line_message_and_field() {
    let folder = Folder::new("market-fix-errors");
    let mut messages = day();
    messages[3] = messages[3].replace("270=99|", "270=9.0000000001|");
    // The message's sum is wrong now.
    let file = log(&folder, &messages);
    let name = text(&file);
    let flaw = said_of(&file, &[]);
    assert_eq!(flaw.len(), 1);
    assert!(
        flaw[0].starts_with(&format!(
            "fanfare: {name}:5: MsgType(35) X: BodyLength(9) is "
        )),
        "{flaw:?}"
    );
    let entry = "279=0|269=0|55=RIU3|48=49634118|22=8|83=21|270=9.0000000001|271=4|1023=0";
    messages[3] = message("X", 4, &format!("268=1|{entry}"));
    let level = message(
        "X",
        5,
        &format!("268=1|{}", entry.replace("9.0000000001", "1e3")),
    );
    messages.insert(4, level);
    let file = log(&folder, &messages);
    let faults = said_of(&file, &["--keep-going"]);
    let price = "MarketDataIncrementalRefresh(X)";
    assert!(
        faults[0].starts_with(&format!("fanfare: {name}:5: ")),
        "{faults:?}"
    );
    assert!(
        faults[0].contains(price) && faults[0].contains("MDEntryPx(270)"),
        "{faults:?}"
    );
    assert!(
        faults[0].contains("RIU3") && faults[0].contains("more than 9 decimal places"),
        "{faults:?}"
    );
    assert!(
        faults[1].starts_with(&format!("fanfare: {name}:6: ")),
        "{faults:?}"
    );
}

#[test]
fn what_is_no_log_and_options_that_do_not_go_together_are_refused() {
    let folder = Folder::new("market-fix-refused");
    let file = log(&folder, &day());
    let name = text(&file);
    let empty = folder.path().join("empty");
    fs::write(&empty, "nothing here\n").unwrap();
    let error = fails(&["market", "events", "--fix", text(&empty)]);
    assert_eq!(
        error,
        format!("fanfare: no FIX message in {}\n", text(&empty))
    );
    let missing = folder.path().join("missing");
    let error = fails(&["market", "events", "--fix", text(&missing)]);
    assert!(error.contains("cannot read "), "{error}");
    let both = ["market", "events", "--fix", name, "-t", "builtin:spectra"];
    told(&both, 2);
    told(
        &["market", "events", "--fix", name, "--fix-version", "FIX.9"],
        2,
    );
    let mapping = folder.path().join("m.toml");
    fs::write(
        &mapping,
        "[[message]]\nmsg-type = \"X\"\ndoes = \"dance\"\n",
    )
    .unwrap();
    let error = fails(&["market", "events", "--fix", name, "-m", text(&mapping)]);
    assert!(
        error.contains("m.toml:3: message.does: unknown value `dance`: expected one of "),
        "{error}"
    );
}
