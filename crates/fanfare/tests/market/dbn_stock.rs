//! Tests of live DBN with the crate `databento`, unmodified: a feed, its past, clients that connect
//! and leave, and one that does not read.

use crate::common::gateway::port;
use crate::common::{Folder, Running, eventually, fanfare, groups, run, sending};
use crate::stock::{self, ERROR, MAPPING, Stock, data, number, of, program, rtype};
use crate::text;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `rtype` of the records that are counted.
const TRADES: u64 = 0;
const MBP1: u64 = 1;
const MBP10: u64 = 10;
const STATUS: u64 = 18;
const BARS: u64 = 32;

const SCHEMAS: [&str; 10] = [
    "mbo",
    "mbp-1",
    "mbp-10",
    "tbbo",
    "trades",
    "bbo-1s",
    "ohlcv-1s",
    "definition",
    "status",
    "statistics",
];
/// Levels of a side in the generated feed.
const DEPTH: usize = 5;
/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;
const UNKNOWN_PRICE: &str = "9223372036854775807";

/// A gateway with a feed and a DBN port.
struct Plant {
    gateway: Running,
    port: String,
    socket: String,
    events: String,
    lines: [String; 2],
    /// The datagrams of senders that have ended.
    sent: u64,
}

impl Plant {
    fn start(folder: &Folder, more: &str) -> Self {
        let lines = groups();
        let [line, snapshots] = &lines;
        let (socket, events) = (folder.file("ctl"), folder.file("events.jsonl"));
        let config = format!(
            "control = \"{socket}\"\nevents = \"{events}\"\n\
             [producers]\nport = 0\n[consumers]\nport = 0\n{more}\n\
             [[feed]]\ntemplates = \"builtin:spectra\"\nlines = [\"{line}\"]\n\
             mapping = \"builtin:spectra\"\n[feed.book]\nstarts_empty = false\n[feed.snapshot]\n\
             lines = [\"{snapshots}\"]\n"
        );
        let config = folder.with("gateway.toml", config);
        let mut gateway = Running::start(&mut fanfare(&["gateway", &config]));
        let port = port(&gateway.prints("Listening for DBN (FANFARE) on 127.0.0.1:"));
        gateway.prints("Listening for operators");
        Self {
            gateway,
            port,
            socket,
            events,
            lines,
            sent: 0,
        }
    }

    /// Returns a command that sends a file to one of the lines, a packet each `every` microseconds.
    fn send(&self, line: usize, file: &Path, every: u32) -> Command {
        let mut command = sending(file, &self.lines[line]);
        command.args(["-s", &every.to_string(), "--json"]);
        command
    }

    /// Returns the events so far.
    fn events(&self) -> Vec<Value> {
        let text = fs::read_to_string(&self.events).unwrap();
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        crate::lines(&text[..whole])
    }

    /// Waits for the ends of the senders, and returns the events of all that has been sent.
    fn settled(&mut self, senders: impl IntoIterator<Item = Running>) -> Vec<Value> {
        for sender in senders {
            let said = sender.end().succeeded();
            self.sent += said.figures()["packets"].as_u64().unwrap();
        }
        crate::lines(&crate::written(&self.socket, &self.events, self.sent))
    }

    fn stop(self) {
        self.gateway.interrupt();
        self.gateway.end().succeeded();
    }
}

fn units(price: &Value) -> i64 {
    let text = price.as_str().unwrap();
    let (whole, rest) = text.split_once('.').unwrap_or((text, ""));
    format!("{whole}{rest:0<9}").parse().unwrap()
}

/// A book of a feed of levels, in the obvious implementation: price, size, orders.
#[derive(Default)]
struct PlainBook([BTreeMap<i64, [u64; 2]>; 2]);

impl PlainBook {
    fn apply(&mut self, event: &Value) {
        if event["kind"] == "clear" {
            self.0 = Default::default();
        }
        if event["kind"] != "level" {
            return;
        }
        let is_bid = event["entry"] == "0";
        let side = &mut self.0[usize::from(!is_bid)];
        let price = units(&event["price"]);
        if event["action"] == "delete" {
            side.remove(&price);
            return;
        }
        let orders = event["orders"].as_u64().unwrap_or(0);
        side.insert(price, [event["size"].as_u64().unwrap(), orders]);
        // These levels moved out of the feed's window.
        while side.len() > DEPTH {
            match is_bid {
                true => side.pop_first(),
                false => side.pop_last(),
            };
        }
    }

    fn side(&self, is_bid: bool) -> Vec<Value> {
        let level =
            |(price, [size, orders]): (&i64, &[u64; 2])| json!([price.to_string(), size, orders]);
        match is_bid {
            true => self.0[0].iter().rev().map(level).collect(),
            false => self.0[1].iter().map(level).collect(),
        }
    }

    fn sides(&self) -> [Vec<Value>; 2] {
        [self.side(true), self.side(false)]
    }
}

/// Returns the levels of a record of `mbp-1` or `mbp-10` that are present.
fn levels(record: &Value) -> [Vec<Value>; 2] {
    ["bid", "ask"].map(|side| {
        let of = |level: &Value, what: &str| level[format!("{side}_{what}")].clone();
        let all = record["levels"].as_array().unwrap().iter();
        let there = all.filter(|level| of(level, "px") != UNKNOWN_PRICE);
        there
            .map(|level| json!([of(level, "px"), of(level, "sz"), of(level, "ct")]))
            .collect()
    })
}

/// Returns the fields of a record that come from its event.
fn own(record: &Value) -> Value {
    let hd = &record["hd"];
    json!([
        hd["publisher_id"],
        hd["instrument_id"],
        number(&hd["ts_event"]),
        number(&record["ts_recv"]),
        record["action"],
        record["side"],
        record["price"],
        record["size"],
        record["sequence"],
        record["ts_in_delta"],
    ])
}

/// Returns the same fields of an event.
fn expected(event: &Value) -> Value {
    let side = match event["entry"].as_str() {
        Some("0") => "B",
        Some("1") => "A",
        _ => "N",
    };
    let action = match (event["kind"].as_str().unwrap(), event["action"].as_str()) {
        ("level", Some("new")) => "A",
        ("level", Some("change")) => "M",
        ("level", Some("delete")) => "C",
        ("trade", _) => "T",
        ("clear", _) => "R",
        _ => "N",
    };
    let price = match event["price"].is_string() {
        true => units(&event["price"]).to_string(),
        false => UNKNOWN_PRICE.to_owned(),
    };
    json!([
        50_001,
        event["instrument"],
        event["ts_event"].as_u64().or(event["ts_recv"].as_u64()),
        event["ts_recv"],
        action,
        side,
        price,
        event["size"].as_u64().unwrap_or(0),
        event["rpt_seq"].as_u64().unwrap_or(0),
        0,
    ])
}

fn is_of_a_book(event: &&Value) -> bool {
    ["level", "clear", "state", "trade"].contains(&event["kind"].as_str().unwrap())
}

fn trades(events: &[Value]) -> Vec<&Value> {
    events
        .iter()
        .filter(|event| event["kind"] == "trade")
        .collect()
}

/// Compares all records of a client of each schema with the events, field by field.
fn judge(all: &[Value], events: &[Value]) {
    let traded: Vec<Value> = trades(events).into_iter().map(expected).collect();
    let said: Vec<Value> = of(all, TRADES).into_iter().map(own).collect();
    assert_eq!(said, traded);
    let tops = of(all, MBP1)
        .into_iter()
        .filter(|record| record["action"] == "T");
    assert_eq!(tops.map(own).collect::<Vec<_>>(), traded);
    judge_books(all, events);
    judge_bars(all, events);
    // The status of the session is repeated for each of the known instruments.
    assert!(!of(all, STATUS).is_empty());
    assert_eq!(of(all, MAPPING).len(), 11);
    assert_eq!(of(all, ERROR).len(), 0);
}

fn judge_books(all: &[Value], events: &[Value]) {
    let mut books = BTreeMap::<u64, PlainBook>::new();
    // The best of both sides of each instrument, at each change of one of them.
    let mut tops = BTreeMap::<u64, Vec<[Option<Value>; 2]>>::new();
    let records = of(all, MBP10);
    let of_books: Vec<&Value> = events.iter().filter(is_of_a_book).collect();
    assert_eq!(records.len(), of_books.len());
    for (record, event) in records.into_iter().zip(of_books) {
        let instrument = event["instrument"].as_u64().unwrap();
        let book = books.entry(instrument).or_default();
        book.apply(event);
        assert_eq!(
            (own(record), levels(record)),
            (expected(event), book.sides())
        );
        let ends = record["flags"].as_u64().unwrap() & 0x80 != 0;
        assert_eq!(ends, event["last"] == true, "{event}");
        add(tops.entry(instrument).or_default(), book.sides());
    }
    let mut said = BTreeMap::<u64, Vec<[Option<Value>; 2]>>::new();
    for record in of(all, MBP1) {
        let instrument = record["hd"]["instrument_id"].as_u64().unwrap();
        add(said.entry(instrument).or_default(), levels(record));
    }
    assert_eq!(said, tops);
}

fn add(tops: &mut Vec<[Option<Value>; 2]>, sides: [Vec<Value>; 2]) {
    let top = sides.map(|side| side.first().cloned());
    if tops.last() != Some(&top) {
        tops.push(top);
    }
}

/// Compares each bar with the trades in it. A trade that is not in the bar of its own second,
/// because the instrument was recovering, is reported.
fn judge_bars(all: &[Value], events: &[Value]) {
    let traded = trades(events);
    let mut left = BTreeMap::<u64, VecDeque<&Value>>::new();
    for trade in &traded {
        let of_instrument = left.entry(number(&trade["instrument"])).or_default();
        of_instrument.push_back(trade);
    }
    let mut late = 0;
    for bar in of(all, BARS) {
        let start = number(&bar["hd"]["ts_event"]);
        let left = left.get_mut(&number(&bar["hd"]["instrument_id"])).unwrap();
        let (mut prices, mut volume) = (Vec::new(), 0);
        while volume < number(&bar["volume"]) {
            let trade = left.pop_front().unwrap();
            let arrival = number(&trade["ts_recv"]);
            assert!(arrival < start + SECOND, "{trade}");
            late += usize::from(arrival < start);
            prices.push(units(&trade["price"]));
            volume += number(&trade["size"]);
        }
        let (high, low) = (prices.iter().max(), prices.iter().min());
        let made = [prices.first(), high, low, prices.last()].map(|price| *price.unwrap());
        let said = ["open", "high", "low", "close"].map(|name| number(&bar[name]) as i64);
        assert_eq!((said, number(&bar["volume"])), (made, volume), "{bar}");
    }
    assert!(left.values().all(VecDeque::is_empty), "{left:?}");
    let notices = of(all, stock::SYSTEM).into_iter();
    let reported = notices.filter_map(|notice| {
        let text = notice["msg"].as_str().unwrap();
        let count = text.strip_prefix("trades in these bars of ohlcv-1s that belong to earlier");
        count.map(|rest| rest.rsplit(' ').next().unwrap().parse::<usize>().unwrap())
    });
    assert_eq!(reported.sum::<usize>(), late);
    assert!(late < traded.len(), "{late}");
}

/// Writes the feed and its snapshots, with as many messages.
fn files(folder: &Folder, count: &str) -> [PathBuf; 2] {
    ["changes", "snapshots"].map(|name| {
        let file = folder.path().join(name);
        let to = text(&file);
        let mut args = vec!["fast", "generate", "spectra", "--trades", "20", "-n", count];
        args.extend(["-o", to]);
        args.extend((name == "snapshots").then_some("--snapshots"));
        run(&args).succeeded();
        file
    })
}

#[test]
fn the_stock_crate_receives_present_and_past() {
    let Some(program) = program() else {
        return;
    };
    let folder = Folder::new("dbn-stock");
    let log = folder.file("log");
    let more = format!("[history]\nfolder = \"{log}\"\n[dbn]\nport = 0\nheartbeat_s = 1");
    let mut plant = Plant::start(&folder, &more);
    let place = (&*program, &folder);
    let start = |name: &str, options: &[&str], subscriptions: &[&str]| {
        Stock::subscribed(place, name, &plant.port, options, subscriptions)
    };
    let all_of = SCHEMAS.map(|schema| format!("{schema} ALL_SYMBOLS"));
    let mut all = start("all", &[], &all_of.each_ref().map(String::as_str));
    let mut timed = start("timed", &["ts_out", "zstd"], &["trades ALL_SYMBOLS"]);
    let unknown = start("unknown", &["warn"], &["trades NONE"]);
    all.says("Heartbeat");
    timed.tell("reconnect");
    timed.says("{\"session\":\"4");
    let [changes, snapshots] = files(&folder, "300");
    // No record of an instrument is sent until a snapshot has come.
    let senders = [(0, &changes), (1, &snapshots)]
        .map(|(line, file)| Running::start(&mut plant.send(line, file, 8_000)));
    // The events so far are the past, and more come meanwhile.
    eventually("a part of the feed", || trades(&plant.events()).len() > 30);
    // The rest of the feed comes when a client has subscribed, however long that takes.
    senders.iter().for_each(|sender| sender.signal("STOP"));
    let traded = plant.events();
    let from = trades(&traded)[10]["ts_recv"].clone();
    let some = format!("trades ALL_SYMBOLS start={from}");
    let (number_of_one, name_of_one) = busiest(&traded);
    let one = [
        format!("mbp-10 #{number_of_one}"),
        format!("mbp-1 {name_of_one}"),
    ];
    let some = start("some", &["zstd"], &[&some, &one[0], &one[1]]);
    senders.iter().for_each(|sender| sender.signal("CONT"));
    let in_past = ["mbp-10", "ohlcv-1s"].map(|schema| format!("{schema} ALL_SYMBOLS start=0"));
    let mut past = start("past", &[], &in_past.each_ref().map(String::as_str));
    plant.settled(senders);
    let again = Running::start(&mut plant.send(1, &snapshots, 100));
    let events = plant.settled([again]);
    plant.gateway.tells("11 live");
    let count = events.iter().filter(is_of_a_book).count();
    let traded = trades(&events).len();
    all.has(MBP10, count);
    past.has(MBP10, count);
    timed.has(TRADES, traded);
    for client in [&all, &past] {
        bars_are_complete(client, &events);
    }
    let [all, past, timed, some, unknown] = [all, past, timed, some, unknown].map(Stock::end);
    judge(&all, &events);
    assert!(of(&past, MBP10) == of(&all, MBP10), "the past differs");
    judge_bars(&past, &events);
    let replays = ["mbp-10", "ohlcv-1s"].map(|name| format!("Replay of {name} data completed"));
    assert_eq!(completed(&past), replays);
    judge_some(&some, &all, (number(&from), number_of_one));
    judge_timed(&timed, &all);
    assert_eq!(
        (
            of(&unknown, ERROR)[0]["code"].as_u64(),
            data(&unknown).len()
        ),
        (Some(4), 0)
    );
    refused(&program, &folder, &plant.port);
    plant.stop();
}

/// Waits until all trades are in bars.
fn bars_are_complete(client: &Stock, events: &[Value]) {
    let trades = trades(events).into_iter();
    let traded: u64 = trades.map(|event| number(&event["size"])).sum();
    eventually("all bars", || {
        let lines = client.so_far();
        let bars = of(&lines, BARS).into_iter();
        let volume: u64 = bars.map(|bar| number(&bar["volume"])).sum();
        volume == traded
    });
}

fn completed(client: &[Value]) -> Vec<&str> {
    let notices = of(client, stock::SYSTEM).into_iter();
    let done = notices.filter(|notice| notice["code"] == 3);
    done.map(|notice| notice["msg"].as_str().unwrap()).collect()
}

/// Returns the number and the name of the most traded instrument.
fn busiest(events: &[Value]) -> (u64, String) {
    let mut counts = BTreeMap::new();
    for trade in trades(events) {
        let number = trade["instrument"].as_u64().unwrap();
        let name = trade["security_id"].as_str().unwrap().to_owned();
        *counts.entry((number, name)).or_insert(0) += 1;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.unwrap().0
}

/// Checks trades from a moment on, and levels of one instrument from another moment on.
fn judge_some(some: &[Value], all: &[Value], (from, one): (u64, u64)) {
    let trades = of(all, TRADES);
    let later = trades
        .into_iter()
        .filter(|trade| number(&trade["ts_recv"]) >= from);
    assert!(of(some, TRADES) == later.collect::<Vec<_>>());
    for kind in [MBP1, MBP10] {
        let of_one = |client| {
            let records = of(client, kind).into_iter();
            let own = records.filter(|record| record["hd"]["instrument_id"] == one);
            own.collect::<Vec<_>>()
        };
        let (own, whole) = (of_one(some), of_one(all));
        assert_eq!(own.len(), of(some, kind).len(), "of one instrument alone");
        assert!(!own.is_empty() && whole.ends_with(&own));
    }
    assert_eq!(completed(some).len(), 1);
}

/// Checks the same trades with their sending times.
fn judge_timed(timed: &[Value], all: &[Value]) {
    let mut last = 0;
    let plain: Vec<Value> = of(timed, TRADES)
        .into_iter()
        .map(|record| {
            let mut record = record.clone();
            let sent = number(&record.as_object_mut().unwrap().remove("ts_out").unwrap());
            assert!(sent >= last && sent >= number(&record["ts_recv"]));
            last = sent;
            record
        })
        .collect();
    assert!(plain.iter().collect::<Vec<_>>() == of(all, TRADES));
}

/// Checks that a client with a wrong name of the dataset gets an error, and nothing else.
fn refused(program: &Path, folder: &Folder, port: &str) {
    let client = Stock::start((program, folder), "refused", port, &["dataset=OTHER"]);
    client.says("unknown dataset OTHER: expected FANFARE");
}

#[test]
fn a_stock_client_that_stops_reading_is_told_what_it_missed() {
    let Some(program) = program() else {
        return;
    };
    let folder = Folder::new("dbn-slow");
    let more = "[dbn]\nport = 0\nqueue_bytes = 262144\nheartbeat_s = 1";
    let mut plant = Plant::start(&folder, more);
    let place = (&*program, &folder);
    let start = |name: &str, options: &[&str]| {
        let subscriptions = ["mbp-10 ALL_SYMBOLS"];
        Stock::subscribed(place, name, &plant.port, options, &subscriptions)
    };
    let (mut slow, mut warned) = (
        start("slow", &["quiet"]),
        start("warned", &["quiet", "warn"]),
    );
    for client in [&mut slow, &mut warned] {
        client.tell("stop");
        client.says("stopped");
    }
    let [changes, snapshots] = files(&folder, "12000");
    let senders = [(0, &changes), (1, &snapshots)]
        .map(|(line, file)| Running::start(&mut plant.send(line, file, 100)));
    let events = plant.settled(senders);
    let count = events.iter().filter(is_of_a_book).count() as u64;
    let skipped = |client: &Stock| {
        let lines = client.so_far();
        let errors = of(&lines, ERROR).into_iter().map(|error| {
            assert_eq!(error["code"], 7, "{error}");
            let text = error["err"].as_str().unwrap();
            text.split(' ').next().unwrap().parse::<u64>().unwrap()
        });
        errors.sum::<u64>()
    };
    slow.tell("go");
    eventually("all records, or word of them", || {
        let skipped = skipped(&slow);
        let got = slow.counts()["10"].as_u64().unwrap_or(0);
        assert!(got + skipped <= count, "{got} and {skipped} of {count}");
        got + skipped == count
    });
    assert!(skipped(&slow) > 0, "{count} records were too few");
    // The other client had requested a warning, and closed.
    warned.tell("go");
    warned.says("closed");
    let lines = warned.end();
    assert!(
        lines
            .iter()
            .any(|line| rtype(line) == stock::SYSTEM && line["code"] == 2)
    );
    assert!(
        of(&lines, ERROR)[0]["err"]
            .as_str()
            .unwrap()
            .contains("wants every record")
    );
    slow.end();
    plant.stop();
}
