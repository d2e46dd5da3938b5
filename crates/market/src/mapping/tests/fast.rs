//! Messages of templates.

use super::{MAPPING, QUOTES, program};
use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{Instruments, Name};
use crate::mapping::{COMPLEX, Does, FastMapper, MapError, Mapping, Outcome, SPECTRA, Why};
use crate::price::Price;
use fanfare_fast::{Decoder, Encoder, Message, Program, Record, builtin, json};
use std::sync::Arc;

/// A mapper of [`QUOTES`], with what drives it.
struct Rig {
    mapper: FastMapper,
    table: Instruments,
    message: Message,
    encoder: Encoder,
    decoder: Decoder,
    record: Record,
}

impl Rig {
    fn new(mapping: &str) -> Self {
        let program = program(QUOTES);
        let mapping = Mapping::parse("m.toml", mapping).unwrap_or_else(|error| panic!("{error}"));
        let mapper = mapping.for_templates(&program, 9);
        Self {
            mapper: mapper.unwrap_or_else(|error| panic!("{error}")),
            table: Instruments::new(4),
            message: Message::new(),
            encoder: Encoder::new(program.clone()),
            decoder: Decoder::new(program),
            record: Record::new(),
        }
    }

    /// Maps a message with these entries in JSON.
    fn play(&mut self, entries: &str) -> Result<Outcome, MapError> {
        let line = format!(
            r#"{{"template":"Quotes","fields":{{"MsgSeqNum":5,"SendingTime":1000,
               "MDEntries":[{entries}]}}}}"#
        );
        let program = self.mapper.program().clone();
        json::read_line(&program, &line.replace('\n', ""), &mut self.message).unwrap();
        let mut bytes = Vec::new();
        self.encoder.encode(&self.message, &mut bytes).unwrap();
        self.decoder
            .decode_record(&bytes, &mut self.record)
            .unwrap();
        self.mapper.record(&mut self.table, 77, &self.record)
    }

    fn error(&mut self, entries: &str) -> String {
        let error = self.play(entries).unwrap_err();
        self.mapper.describe(&error, &self.table)
    }
}

#[test]
fn entries_become_events() {
    let mut rig = Rig::new(MAPPING);
    let px = r#"{"mantissa":125,"exponent":-2}"#;
    let outcome = rig.play(&format!(
        r#"{{"MDEntryType":"0","Symbol":"A","MDEntryPx":{px},"MDPriceLevel":200,"RptSeq":7,
            "MDUpdateAction":1,"MDEntrySize":{{"mantissa":3,"exponent":2}}}},
           {{"MDEntryType":"1","Symbol":"B","MDUpdateAction":2}},
           {{"MDEntryType":"9"}},
           {{"MDEntryType":"2"}},
           {{"MDEntryType":"2","MDPriceLevel":7}}"#
    ));
    assert_eq!(outcome.unwrap().number, Some(5));
    assert_eq!(outcome.unwrap().sent, Some(1_000_000_000));
    let level = Event {
        ts_event: 1_000_000_000,
        ts_recv: 77,
        source: 9,
        kind: Kind::Level,
        ..Event::EMPTY
    };
    let expected = [
        Event {
            price: Price::from_units(1_250_000_000),
            size: 300,
            level: 200,
            rpt_seq: 7,
            action: Action::Change,
            entry: b'0',
            flags: Flags::LAST,
            ..level
        },
        Event {
            instrument: InstrumentId(1),
            action: Action::Delete,
            entry: b'1',
            ..level
        },
        Event {
            instrument: InstrumentId(1),
            kind: Kind::Trade,
            level: 7,
            entry: b'2',
            flags: Flags::LAST,
            ..level
        },
    ];
    assert_eq!(rig.mapper.events(), expected);
    let counts = rig.mapper.counts();
    assert_eq!((counts.ignored, counts.no_rule, counts.events), (1, 1, 3));
}

#[test]
fn what_cannot_be_represented_is_an_error_with_names() {
    let mut rig = Rig::new(MAPPING);
    let told = rig.error(
        r#"{"MDEntryType":"0","Symbol":"B"},{"MDEntryType":"0","Symbol":"A"},
           {"MDEntryType":"0","Symbol":"A","MDEntryPx":{"mantissa":1,"exponent":18}}"#,
    );
    assert_eq!(
        told,
        "Quotes(1): entry 2: MDEntryPx(270): instrument A: 1000000000000000000 is out of range: a \
         price must be below 9.2e9"
    );
    // The events of B are available, those of A are not.
    let table = &rig.table;
    let symbols = rig.mapper.events().iter().map(|event| {
        let known = table.get(event.instrument).unwrap();
        (known.definition.name.symbol, event.flags)
    });
    assert_eq!(symbols.collect::<Vec<_>>(), [(&b"B"[..], Flags::LAST)]);
    assert_eq!(
        (rig.mapper.counts().faults, rig.mapper.counts().withheld),
        (1, 1)
    );
    for (entry, what) in [
        (
            r#""MDEntryPx":{"mantissa":1,"exponent":-10}"#,
            "MDEntryPx(270): instrument A: 0.0000000001 has more than 9 decimal places",
        ),
        (
            r#""MDPriceLevel":0"#,
            "MDPriceLevel(1023): instrument A: the level is 0: levels are counted from 1",
        ),
        (
            r#""MDPriceLevel":65536"#,
            "MDPriceLevel(1023): instrument A: 65536 is above 65535",
        ),
        (
            r#""RptSeq":4294967296"#,
            "RptSeq(83): instrument A: 4294967296 is above 4294967295",
        ),
        (
            r#""MDUpdateAction":6"#,
            "MDUpdateAction(279): instrument A: the value is not an action from 0 to 5",
        ),
        (
            r#""MDEntrySize":{"mantissa":15,"exponent":-1}"#,
            "MDEntrySize(271): instrument A: the size 1.5 is not a whole number",
        ),
        (r#""MDEntrySize":{"mantissa":9,"exponent":18}"#, ""),
        (
            r#""MDEntrySize":{"mantissa":10,"exponent":18}"#,
            "MDEntrySize(271): instrument A: the size 10000000000000000000 is out of range",
        ),
    ] {
        let entries = format!(r#"{{"MDEntryType":"1","Symbol":"A",{entry}}}"#);
        match what {
            "" => assert!(rig.play(&entries).is_ok()),
            what => assert_eq!(rig.error(&entries), format!("Quotes(1): entry 0: {what}")),
        }
    }
    // RptSeq that jumps back is passed on, and the follower of the instrument handles it.
    rig.play(r#"{"MDEntryType":"0","Symbol":"A","RptSeq":9}"#)
        .unwrap();
    rig.play(r#"{"MDEntryType":"0","Symbol":"A","RptSeq":3}"#)
        .unwrap();
    assert_eq!(rig.mapper.events()[0].rpt_seq, 3);
}

#[test]
fn more_faults_than_are_kept_withhold_the_message() {
    let mut rig = Rig::new(MAPPING);
    let bad = r#"{"MDEntryType":"0","Symbol":"A","MDPriceLevel":0},"#.repeat(40);
    let error = rig.play(&format!(r#"{bad}{{"MDEntryType":"0","Symbol":"B"}}"#));
    assert_eq!(error.unwrap_err().why, Why::LevelZero);
    assert_eq!(
        (rig.mapper.events(), rig.mapper.faults().len()),
        (&[][..], 32)
    );
    let counts = rig.mapper.counts();
    assert_eq!((counts.faults, counts.withheld), (40, 1));
}

#[test]
fn unknown_instruments_are_added_up_to_the_limit_or_counted() {
    let mut rig = Rig::new(MAPPING);
    for number in 0..10 {
        let entry = format!(r#"{{"MDEntryType":"0","Symbol":"S{number}"}}"#);
        rig.play(&entry).unwrap();
        assert_eq!(rig.mapper.events().len(), usize::from(number < 4));
    }
    assert_eq!((rig.table.len(), rig.mapper.counts().table_full), (4, 6));
    let counting = format!("[instruments]\nunknown = \"count\"\n{MAPPING}");
    let mut rig = Rig::new(&counting);
    rig.play(r#"{"MDEntryType":"0","Symbol":"A"},{"MDEntryType":"0"}"#)
        .unwrap();
    assert_eq!((rig.mapper.events().len(), rig.table.len()), (0, 0));
    let counts = rig.mapper.counts();
    assert_eq!(
        (counts.unknown_instrument, counts.without_instrument),
        (1, 1)
    );
}

#[test]
fn a_report_says_what_becomes_of_each_field() {
    let rig = Rig::new(MAPPING);
    let report = rig.mapper.report();
    let [quotes, other, reset] = &report.messages[..] else {
        panic!("{report:?}");
    };
    assert_eq!((other.does, reset.does), (None, Some(Does::Reset)));
    let of = |name: &str| {
        let field = quotes.fields.iter().find(|field| field.name == name);
        field.unwrap().uses.join("; ")
    };
    assert_eq!(of("MsgSeqNum(34)"), "drives the channel: number");
    assert_eq!(
        of("MDEntryType(269)"),
        "level: type; condition; ignore: type; trade: type"
    );
    assert_eq!(of("MDEntries(268)"), "entries");
    assert_eq!(of("Blob(9000)"), "");
    assert_eq!(of("Symbol(55)"), "instrument: symbol");
    let ignoring = MAPPING.replace("rpt-seq = 83", "rpt-seq = [83, 84]");
    let rig = Rig::new(&format!("absent = \"ignore\"\n{ignoring}"));
    let missing = &rig.mapper.report().messages[0].missing;
    assert_eq!(missing[..], ["84 (level: rpt-seq)", "84 (trade: rpt-seq)"]);
}

/// Checks that the feeds of the built-in mappings take the fast path, whatever the form of their
/// records.
#[test]
fn built_in_feeds_are_read_straight() {
    let complex = program(builtin::COMPLEX);
    let mapper = |text: &str, program: &Arc<Program>| {
        let mapping = Mapping::parse("m.toml", text).unwrap();
        mapping.for_templates(program, 0).unwrap()
    };
    for text in [
        COMPLEX,
        &COMPLEX.replace("kind = \"level\"", "kind = \"ignore\""),
    ] {
        let mapper = mapper(text, &complex);
        assert!(!complex.has_rows(0) || mapper.reads_straight("MarketData", true));
        assert!(mapper.reads_straight("MarketData", false));
    }
    let spectra = program(builtin::SPECTRA);
    let mapper = mapper(SPECTRA, &spectra);
    for template in [
        "DefaultIncrementalRefreshMessage",
        "DefaultSnapshotMessage",
        "Reset",
    ] {
        assert!(mapper.reads_straight(template, false), "{template}");
    }
    assert!(!mapper.reads_straight("TradingSessionStatus", false));
}

/// Checks that an invalid date before all others is refused.
#[test]
fn a_date_of_zeros_is_no_date() {
    let mut rig = Rig::new(&MAPPING.replace(
        "sent = { field = 52, format = \"epoch-ms\" }",
        "sent = { field = 52, format = \"YYYYMMDDHHMMSS\" }",
    ));
    let told = rig.error(r#"{"MDEntryType":"0","Symbol":"A"}"#);
    assert!(told.contains("the value is not a time"), "{told}");
}

/// Checks that the cache does not confuse an instrument's ID with another one of the same
/// instrument.
#[test]
fn instruments_that_were_found_by_symbol_are_not_remembered_by_id() {
    let xml = r#"<template name="T" id="1"><uInt32 name="SecurityID" id="48"/>
        <string name="Symbol" id="55"/><string name="MDEntryType" id="269"/></template>"#;
    let program = program(xml);
    let text = "[[message]]\ntemplate = 1\ndoes = \"changes\"\n\
        instrument = { id = 48, symbol = 55 }\nentry = { type = 269 }\n\
        [[message.event]]\nkind = \"statistic\"\n";
    let mapping = Mapping::parse("m.toml", text).unwrap();
    let mut mapper = mapping.for_templates(&program, 0).unwrap();
    let mut table = Instruments::new(4);
    let known = table.see(&Name {
        symbol: b"A",
        ..Default::default()
    });
    let mut decoder = Decoder::new(program.clone());
    let mut record = Record::new();
    let mut play = |bytes: &[u8]| {
        decoder.decode_record(bytes, &mut record).unwrap();
        mapper.record(&mut table, 0, &record).unwrap();
        mapper.events()[0].instrument
    };
    assert_eq!(
        Ok(play(&[0xc0, 0x81, 0x85, b'A' | 0x80, b'0' | 0x80])),
        known
    );
    assert_ne!(
        Ok(play(&[0xc0, 0x81, 0x85, b'B' | 0x80, b'0' | 0x80])),
        known
    );
}

/// Checks that a snapshot of an empty book may lack its entries, on both paths.
#[test]
fn a_snapshot_without_entries_is_that_of_an_empty_book() {
    let xml = r#"<template name="P" id="1"><uInt32 name="MsgSeqNum" id="34"/>
        <uInt32 name="SecurityID" id="48"/><uInt32 name="LastMsgSeqNumProcessed" id="369"/>
        <string name="LastFragment" id="893" presence="optional"/>
        <sequence name="MDEntries" presence="optional"><length name="NoMDEntries" id="268"/>
          <string name="MDEntryType" id="269"/><uInt32 name="MDEntrySize" id="271"/>
        </sequence></template>"#;
    let program = program(xml);
    let text = "[[message]]\ntemplate = 1\ndoes = \"snapshot\"\nnumber = 34\n\
        last = 369\nlast-fragment = 893\nentries = 268\ninstrument = { id = 48 }\n\
        entry = { type = 269, size = 271 }\n[[message.event]]\nkind = \"statistic\"\n";
    let mapping = Mapping::parse("m.toml", text).unwrap();
    let mut mapper = mapping.for_templates(&program, 0).unwrap();
    let (mut table, mut record) = (Instruments::new(4), Record::new());
    let mut decoder = Decoder::new(program);
    // The first one is of a new instrument, and LastFragment(893) is absent from the second.
    for (ts_recv, flag, is_walked) in [(1, b'Y', true), (2, 0, true), (3, b'Y', false)] {
        let bytes = [0xc0, 0x81, 0x81, 0x85, 0x89, flag | 0x80, 0x80];
        assert_eq!(decoder.decode_record(&bytes, &mut record), Ok(bytes.len()));
        let outcome = mapper.record(&mut table, ts_recv, &record).unwrap();
        assert_eq!(mapper.has_walked(ts_recv), is_walked);
        let snapshot = outcome.snapshot.unwrap();
        let place = (snapshot.instrument, snapshot.last_processed);
        assert_eq!(place, (InstrumentId(0), Some(9)));
        let is_last = snapshot.fragment.map(|fragment| fragment.is_last);
        assert_eq!(is_last, (flag != 0).then_some(true));
        let clear = Event {
            ts_recv,
            flags: Flags::SNAPSHOT.with(Flags::LAST),
            ..Event::EMPTY
        };
        assert_eq!(mapper.events(), [clear]);
    }
}
