//! The log of market events: it has the events of every outlet, once, over restarts of the plant.

use crate::client::Client;
use crate::feed::group;
use crate::market::{feed, generator, send};
use crate::{eventually, start, stop, users};
use fanfare_gateway::{Config, EventReader, Gateway, GatewayOperator};
use fanfare_history::{At, Log, RawDelivery, RawLine, Reader, Source, Start};
use fanfare_market::instruments::{Directory, Instrument};
use fanfare_market::{Delivery, Event, InstrumentId};
use fanfare_operator::Operator;
use fanfare_peers::Scratch;
use serde_json::json;
use std::net::SocketAddrV4;
use std::path::Path;

fn gateway(text: &str, folder: &Path) -> Gateway {
    gateway_with(text, folder, "")
}

fn gateway_with(text: &str, folder: &Path, tables: &str) -> Gateway {
    let more = "segment_bytes = 1048576\ncheckpoint_events = 5000\ncompress = 1\nsync_ms = 10";
    let text = format!(
        "{text}\n[history]\nfolder = \"{}\"\n{more}\n{tables}",
        folder.display()
    );
    let parsed = Config::from_toml(&text).unwrap();
    start(|config| {
        (config.feeds, config.history) = (parsed.feeds, parsed.history);
        config.ring_bytes = 1 << 22;
    })
}

/// The items that a reader received.
#[derive(Default)]
struct Had {
    events: Vec<Event>,
    restarts: usize,
}

impl Had {
    fn take(&mut self, delivery: Delivery<'_>) {
        match delivery {
            Delivery::Event(event, _) => self.events.push(*event),
            Delivery::Lost { first, last } => panic!("{first} to {last} are lost"),
            Delivery::Restart => self.restarts += 1,
            Delivery::End(_) | Delivery::Watermark(_) => {}
        }
    }

    fn of_ring(&mut self, events: &mut EventReader) {
        while events.read(64, |delivery| self.take(delivery)) > 0 {}
    }

    fn of_log(&mut self, reader: &mut Reader) {
        while reader.read(64, |delivery| self.take(delivery)).unwrap() > 0 {}
    }
}

pub(crate) fn symbols(directory: &Directory) -> Vec<(InstrumentId, String)> {
    let name = |bytes: &[u8]| {
        Instrument::read(bytes)
            .unwrap()
            .definition
            .name
            .id
            .to_string()
    };
    let all = directory.iter();
    all.map(|(number, bytes)| (number, name(bytes))).collect()
}

#[test]
fn an_operator_ends_the_segments_of_all_logs_while_events_come() {
    let (line, snapshots) = (group(125), group(126));
    let folder = Scratch::new("roll");
    let raw = "[history.raw]\nsegment_bytes = 1048576";
    let plant = gateway_with(&feed("one", line, snapshots), &folder, raw);
    let (operator, _asks) = GatewayOperator::new(plant.handle());
    let logs = || [Log::open(&folder), Log::open(&folder.join("raw"))].map(Result::unwrap);
    let segments = || logs().map(|log| log.segments().unwrap().len());
    let mut live = Had::default();
    let mut reader = logs()[0].reader(Start::First).unwrap();
    for to in [line, snapshots] {
        let written = ["log_written", "raw_written"].map(|name| plant.count(name));
        send(to, to == snapshots, &[&plant]);
        eventually("both logs have more", || {
            plant.count("log_written") > written[0] && plant.count("raw_written") > written[1]
        });
        let before = segments();
        let done = operator.ask("test", "roll", serde_json::Map::new());
        assert_eq!(done, Ok(json!({ "logs": 2 })));
        let behind = segments();
        assert!(
            before[0] < behind[0] && before[1] < behind[1],
            "{before:?}, {behind:?}"
        );
    }
    stop(plant);
    live.of_log(&mut reader);
    let verified = logs()[0].verify(|_, _| true).unwrap();
    assert!(verified.is_whole(), "{verified:?}");
    assert_eq!(verified.events as usize, live.events.len());
    assert!(!live.events.is_empty());
}

#[test]
fn the_log_has_what_every_outlet_had_over_restarts() {
    let (line, snapshots) = (group(111), group(112));
    let folder = Scratch::new("restarts");
    let (mut all, mut live) = (Had::default(), Had::default());
    let mut reader: Option<Reader> = None;
    let mut known = Vec::new();
    for run in 0..3 {
        let mut plant = gateway(&feed("one", line, snapshots), &folder);
        let mut events = plant.take_events().unwrap();
        let reader = reader.get_or_insert_with(|| {
            let log = Log::open(&folder).unwrap();
            log.reader(Start::First).unwrap()
        });
        for is_snapshots in [false, true] {
            let to = if is_snapshots { snapshots } else { line };
            send(to, is_snapshots, &[&plant]);
            all.of_ring(&mut events);
            live.of_log(reader);
        }
        eventually("the log has everything", || {
            all.of_ring(&mut events);
            live.of_log(reader);
            plant.count("log_written") >= plant.count("events")
                && live.events.len() == all.events.len()
        });
        assert!(live.events == all.events);
        assert_eq!(plant.count("log_missed"), 0);
        assert_eq!(live.restarts, run);
        let now = symbols(reader.directory());
        if run == 0 {
            known.clone_from(&now);
        }
        assert!(
            now == known && !now.is_empty(),
            "instruments keep their numbers"
        );
        stop(plant);
        all.of_ring(&mut events);
        live.of_log(reader);
        assert!(live.events == all.events);
    }
    let log = Log::open(&folder).unwrap();
    let verified = log.verify(|_, _| true).unwrap();
    assert!(verified.is_whole(), "{verified:?}");
    assert_eq!(verified.events as usize, all.events.len());
    assert!(log.checkpoints().unwrap().len() > 2);
    let end = log.as_of(At::End).unwrap();
    let shown = end.view.numbers().filter(|number| {
        end.view
            .get(*number)
            .is_some_and(|seen| seen.book.as_ref().is_some_and(|b| !b.is_empty()))
    });
    assert!(shown.count() > 0);
    let numbers: Vec<u64> = all.events.iter().map(|event| event.number).collect();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}

/// Returns the datagrams of a generated market.
fn packets(snapshots: bool) -> Vec<Vec<u8>> {
    let mut packets = generator(snapshots);
    let mut all = Vec::new();
    while let Some(packet) = packets.next_packet().unwrap() {
        all.push(packet.to_vec());
    }
    all
}

#[test]
fn what_arrives_is_in_a_log_of_its_own_as_it_came_over_restarts() {
    let (line, snapshots) = (group(113), group(114));
    let folder = Scratch::new("raw");
    let order = |run: usize| format!("55=X|58=ORDER{run}|20001=J-{run}|268=0|");
    for run in 0..2 {
        let raw = "[history.raw]\nsegment_bytes = 1048576";
        let plant = gateway_with(&feed("one", line, snapshots), &folder, raw);
        send(line, false, &[&plant]);
        send(snapshots, true, &[&plant]);
        let mut producer = Client::log_on(plant.producers(), "P");
        producer.send("W", &order(run));
        let count = packets(false).len() + packets(true).len() + 1;
        eventually("the log has it", || {
            plant.count("raw_written") == count as u64
        });
        assert_eq!(plant.count("raw_missed"), 0);
        stop(plant);
    }
    let log = Log::open(&folder.join("raw")).unwrap();
    let verified = log.verify(|_, _| true).unwrap();
    assert!(verified.is_whole(), "{verified:?}");
    let mut reader = log.reader(Start::First).unwrap();
    let mut had: Vec<(RawLine, Vec<u8>)> = Vec::new();
    let mut messages: Vec<Vec<u8>> = Vec::new();
    let (mut next, mut restarts) = (1, 0);
    let mut take = |delivery: RawDelivery<'_>| match delivery {
        RawDelivery::Raw(raw) => {
            assert_eq!(raw.number, next);
            assert!(raw.received > 1_700_000_000_000_000_000);
            next += 1;
            match raw.line.source {
                Source::Fix => messages.push(raw.bytes.to_vec()),
                _ => had.push((raw.line, raw.bytes.to_vec())),
            }
        }
        RawDelivery::Lost { first, last } => panic!("{first} to {last} are lost"),
        RawDelivery::Restart => restarts += 1,
    };
    while reader.read_raw(64, &mut take).unwrap() > 0 {}
    assert_eq!(restarts, 1);
    let of = |source: Source, address: SocketAddrV4| {
        let of_line = |line: &RawLine| {
            let place = (line.feed, line.line);
            (line.source, line.address, place) == (source, address, (1, 0))
        };
        let had = had.iter().filter(|(line, _)| of_line(line));
        had.map(|(_, bytes)| bytes.clone()).collect::<Vec<_>>()
    };
    for (source, address, is_snapshots) in [
        (Source::Line, line, false),
        (Source::Snapshots, snapshots, true),
    ] {
        let once = packets(is_snapshots);
        assert!(of(source, address) == [once.clone(), once].concat());
    }
    for (run, message) in messages.iter().enumerate() {
        let text = String::from_utf8_lossy(message).replace('\x01', "|");
        assert!(
            text.starts_with("8=FIX.4.4|9=") && text.contains("|49=P|"),
            "{text}"
        );
        assert!(text.contains(&order(run)), "{text}");
    }
    assert_eq!(messages.len(), 2);
}

#[test]
fn operators_see_what_the_raw_log_misses() {
    let (line, snapshots) = (group(131), group(132));
    let folder = Scratch::new("missed");
    let text = format!(
        "ring_bytes = 8388608\n{}[limits]\nmessage_bytes = 1048576\n\
         [slow_consumer]\nqueue_bytes = 2097152\n{}\
         [history]\nfolder = \"{}\"\nsegment_bytes = 1048576\n\
         [history.raw]\nring_bytes = 1048576\nsegment_bytes = 1048576\n",
        users::PORTS,
        feed("one", line, snapshots),
        folder.display()
    );
    let plant = users::start(&text);
    let (operator, _asks) = GatewayOperator::new(plant.handle());
    let mut producer = Client::log_on(plant.producers(), "P");
    // The ring of the raw log takes at most half of its size.
    let long = "x".repeat(600_000);
    producer.send("W", &format!("55=X|58={long}|20001=J-1|268=0|"));
    eventually("the message is missing", || plant.count("raw_missed") == 1);
    let counters = operator.ask("test", "counters", serde_json::Map::new());
    assert_eq!(counters.unwrap()["raw_missed"], 1);
    stop(plant);
}
