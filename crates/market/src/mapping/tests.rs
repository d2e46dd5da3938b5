use super::*;
use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::instruments::{Instruments, SecurityId};
use crate::price::Price;
use fanfare_fast::{Decoder, Encoder, Record, json};
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_wire::byte_sum;
use proptest::prelude::*;
use std::sync::Arc;

fn program(xml: &str) -> Arc<Program> {
    Arc::new(Program::parse(xml).unwrap())
}

#[test]
fn the_built_in_mappings_fit_the_built_in_templates() {
    for (name, templates) in [
        ("builtin:spectra", fanfare_fast::builtin::SPECTRA),
        ("builtin:complex", fanfare_fast::builtin::COMPLEX),
    ] {
        let program = program(templates);
        assert_eq!(Mapping::name_for(&program), name);
        let (_, text) = BUILT_IN.iter().find(|(other, _)| *other == name).unwrap();
        let mapping = Mapping::parse(name, text).unwrap_or_else(|error| panic!("{error}"));
        let mapper = mapping.for_templates(&program, 0);
        mapper.unwrap_or_else(|error| panic!("{error}"));
        // Their times are integers, unlike those of standard FIX.
        let fix = Mapping::parse("fix.toml", FIX).unwrap_or_else(|error| panic!("{error}"));
        let error = fix.for_templates(&program, 0).unwrap_err();
        assert!(error.why.starts_with("SendingTime(52) of "), "{error}");
    }
    assert!(Mapping::built_in("builtin:other").is_none());
}

/// A template with all fields that a mapping can use.
const QUOTES: &str = r#"<templates>
  <template name="Quotes" id="1"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt64 name="SendingTime" id="52" presence="optional"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <string name="MDEntryType" id="269"/><string name="Symbol" id="55" presence="optional"/>
      <decimal name="MDEntryPx" id="270" presence="optional"/>
      <decimal name="MDEntrySize" id="271" presence="optional"/>
      <uInt32 name="MDPriceLevel" id="1023" presence="optional"/>
      <uInt64 name="RptSeq" id="83" presence="optional"/>
      <uInt32 name="MDUpdateAction" id="279" presence="optional"/>
      <byteVector name="Blob" id="9000" presence="optional"/>
    </sequence>
    <string name="Tail" id="9001" presence="optional"/>
  </template>
  <template name="Other" id="2"><uInt32 name="X"/></template>
</templates>"#;

const MAPPING: &str = r#"
[[message]]
template = 1
does = "changes"
number = 34
sent = { field = 52, format = "epoch-ms" }
entries = 268
instrument = { symbol = 55, carry = true }
entry = { type = 269, action = 279, price = 270, size = 271, level = 1023, rpt-seq = 83 }

[[message.event]]
kind = "level"
when = { 269 = ["0", "1"] }

[[message.event]]
kind = "ignore"
when = { 269 = "9" }

[[message.event]]
kind = "trade"
when = { MDEntryType = "2", 1023 = 7 }
"#;

/// A mapper of [`QUOTES`], with what drives it.
struct Rig {
    mapper: FastMapper,
    table: Instruments,
    message: fanfare_fast::Message,
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
            message: fanfare_fast::Message::new(),
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

/// Returns the error of loading a mapping against [`QUOTES`].
pub(super) fn refused(text: &str) -> String {
    let mapping = match Mapping::parse("m.toml", text) {
        Ok(mapping) => mapping,
        Err(error) => return error.to_string(),
    };
    let error = mapping.for_templates(&program(QUOTES), 0).unwrap_err();
    error.to_string()
}

/// Returns the error of loading [`MAPPING`] with one change.
fn with(from: &str, to: &str) -> String {
    assert!(MAPPING.contains(from), "{from}");
    refused(&MAPPING.replace(from, to))
}

#[test]
fn errors_of_mappings_say_where_and_why() {
    let told = with("template = 1", "template = 3");
    assert_eq!(told, "m.toml:2: message: no template 3");
    let told = with("template = 1", "template = \"Quote\"");
    assert_eq!(told, "m.toml:2: message: no template Quote");
    let told = with("price = 270", "price = 999");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: no field 999 in Quotes(1)"
    );
    let told = with("price = 270", "price = \"MDEntryType.X\"");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: no field MDEntryType.X in Quotes(1)"
    );
    let told = with("price = 270", "price = 9000");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: Blob(9000) of Quotes(1) is a byte vector, which cannot be \
         a price"
    );
    let told = with("price = 270", "price = 9001");
    assert_eq!(
        told,
        "m.toml:9: message.entry.price: Tail(9001) follows the entries of Quotes(1), which are \
         decoded before it"
    );
    let told = with("level = 1023", "level = 270");
    assert_eq!(
        told,
        "m.toml:9: message.entry.level: MDEntryPx(270) of Quotes(1) is a decimal, which cannot be \
         a whole number"
    );
}

#[test]
fn errors_of_formats_and_words_say_where_and_why() {
    let told = with("entries = 268", "entries = 34");
    assert_eq!(
        told,
        "m.toml:7: message.entries: no sequence 34 in Quotes(1)"
    );
    let told = with("format = \"epoch-ms\"", "format = \"epoch\"");
    assert!(
        told.starts_with(
            "m.toml:6: message.sent.format: unknown format `epoch`: expected one of UTC"
        ),
        "{told}"
    );
    let told = with("epoch-ms", "UTCTimestamp");
    assert!(
        told.ends_with("is an integer, which cannot be a time of this format"),
        "{told}"
    );
    let told = with("kind = \"ignore\"", "kind = \"quote\"");
    assert_eq!(
        told,
        "m.toml:16: message.event.kind: unknown value `quote`: expected one of level, order, \
         trade, statistic, status, clear, ignore"
    );
    let told = with("kind = \"ignore\"", "knd = \"ignore\"");
    assert_eq!(
        told,
        "m.toml:15: message.event.kind: missing: what becomes of the entry"
    );
    let told = with("number = 34", "numbr = 34");
    assert_eq!(told, "m.toml:5: message.numbr: no such key");
    let told = with("number = 34", "number = 34\nnumber = 35");
    assert!(
        told.starts_with("m.toml:6: ") && told.contains("duplicate"),
        "{told}"
    );
    let told = with("number = 34", "number = -3");
    assert_eq!(
        told,
        "m.toml:5: message.number: `-3` is neither a tag nor a name"
    );
}

#[test]
fn what_a_mapping_lacks_or_has_twice_is_an_error() {
    let told = with("instrument = { symbol = 55, carry = true }", "");
    assert_eq!(
        told,
        "m.toml:2: message.instrument: missing: where the instrument is"
    );
    let told = with("does = \"changes\"", "");
    assert_eq!(
        told,
        "m.toml:2: message.does: missing: what the message does"
    );
    let twice = format!("{MAPPING}\n[[message]]\ntemplate = 1\ndoes = \"ignore\"\n");
    assert_eq!(
        refused(&twice),
        "m.toml:23: message: duplicate: template 1 is mapped on line 2 too"
    );
    let other_name = twice.replace(
        "template = 1\ndoes = \"ignore\"",
        "template = \"Quotes\"\ndoes = \"ignore\"",
    );
    let told = refused(&other_name);
    assert!(told.contains("Quotes(1) is mapped already"), "{told}");
    assert_eq!(
        refused(""),
        "m.toml:1: message: missing: a mapping needs [[message]]"
    );
    assert!(refused("[[message]").starts_with("m.toml:1: "));
    assert_eq!(
        refused("utc-offset = \"+3\"\n"),
        "m.toml:1: utc-offset: `+3` is not an offset such as +03:00 or Z"
    );
}

#[test]
fn marks_of_fragments_need_an_end_and_numbers() {
    let snapshot = |keys: &str| {
        let keys = keys.replace("; ", "\n");
        refused(&format!(
            "[[message]]\ntemplate = 1\ndoes = \"snapshot\"\n{keys}\n\
             instrument = {{ symbol = 55 }}\n[[message.event]]\nkind = \"level\"\n"
        ))
    };
    for (keys, why) in [
        (
            "number = 34; first-fragment = 9001",
            "last-fragment: missing: the field that marks the last fragment of a snapshot",
        ),
        (
            "rpt-seq = 83; last-fragment = 9001",
            "number: missing: a lost fragment cannot be detected without numbers",
        ),
    ] {
        assert_eq!(snapshot(keys), format!("m.toml:1: message.{why}"));
    }
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
    let complex = program(fanfare_fast::builtin::COMPLEX);
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
    let spectra = program(fanfare_fast::builtin::SPECTRA);
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
    let known = table.see(&crate::instruments::Name {
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

/// Returns a FIX message, with `|` for SOH.
fn fix(version: &str, fields: &str) -> Vec<u8> {
    let soh = |text: &str| text.replace('|', "\x01").into_bytes();
    let mut bytes = soh(&format!("8={version}|9={}|{fields}", fields.len()));
    let sum = byte_sum(&bytes);
    bytes.extend(soh(&format!("10={sum:03}|")));
    bytes
}

pub(super) struct FixRig {
    pub(super) mapper: FixMapper,
    pub(super) table: Instruments,
    decoder: FixDecoder,
}

impl FixRig {
    pub(super) fn new(version: Version) -> Self {
        let mapping = Mapping::parse("fix.toml", FIX).unwrap_or_else(|error| panic!("{error}"));
        let dictionary = Dictionary::built_in(version);
        let transport = Dictionary::built_in(Version::Fixt11);
        let whole = match version {
            Version::Fix50Sp2 => dictionary.over(&transport).unwrap(),
            _ => (*dictionary).clone(),
        };
        let mapper = mapping.for_fix(&whole, 1);
        Self {
            mapper: mapper.unwrap_or_else(|error| panic!("{version:?}: {error}")),
            table: Instruments::new(100),
            decoder: FixDecoder::new(),
        }
    }

    pub(super) fn play(&mut self, fields: &str) -> Result<Outcome, MapError> {
        let bytes = fix("FIX.4.4", fields);
        let message = self.decoder.decode(&bytes).unwrap();
        self.mapper.message(&mut self.table, 5, &message)
    }
}

#[test]
fn the_fix_mapping_fits_all_versions() {
    for version in [
        Version::Fix42,
        Version::Fix43,
        Version::Fix44,
        Version::Fix50Sp2,
    ] {
        let rig = FixRig::new(version);
        let names: Vec<_> = rig.mapper.msg_types().collect();
        for msg_type in ["X", "W", "d", "f", "h"] {
            assert!(names.contains(&msg_type), "{version:?} {msg_type}");
        }
    }
}

#[test]
fn fix_increments_become_events() {
    let mut rig = FixRig::new(Version::Fix44);
    let outcome = rig.play(
        "35=X|49=E|56=C|34=7|52=20261120-12:34:56.500|262=r|268=3|\
         279=0|269=0|278=a1|55=MSFT|48=123|22=8|270=10.25|271=300|273=12:34:56|346=4|\
         279=1|269=1|270=10.5|271=5|290=2|\
         279=2|269=2|55=IBM|270=99|278=77|",
    );
    let outcome = outcome.unwrap();
    assert_eq!(
        (outcome.does, outcome.number),
        (Some(Does::Changes), Some(7))
    );
    let events = rig.mapper.events();
    assert_eq!(events.len(), 3);
    let [order, level, trade] = [&events[0], &events[1], &events[2]];
    assert_eq!((order.kind, order.action), (Kind::Order, Action::New));
    assert!(order.id > 1 << 63, "a text is hashed");
    assert_eq!(order.price, Price::from_units(10_250_000_000));
    assert_eq!((order.size, order.flags), (300, Flags::NONE));
    let time = fanfare_wire::UtcTimestamp::parse(b"20261120-12:34:56").unwrap();
    assert_eq!(order.ts_event, time.nanos() as u64);
    // The second entry names no instrument, so it belongs to that of the previous one.
    assert_eq!(
        (level.instrument, level.flags),
        (order.instrument, Flags::LAST)
    );
    assert_eq!(
        (level.kind, level.level, level.action),
        (Kind::Level, 2, Action::Change)
    );
    assert_eq!(level.ts_event, time.nanos() as u64 + 500_000_000);
    assert_eq!(
        (trade.kind, trade.id, trade.flags),
        (Kind::Trade, 77, Flags::LAST)
    );
    let known = rig.table.get(trade.instrument).unwrap();
    assert_eq!(known.definition.name.symbol, b"IBM");
    let first = rig.table.get(order.instrument).unwrap().definition.name;
    assert_eq!(
        (first.symbol, first.id),
        (&b"MSFT"[..], SecurityId::Number(123))
    );
}

#[test]
fn fix_pictures_definitions_and_states_become_events() {
    let mut rig = FixRig::new(Version::Fix50Sp2);
    let outcome = rig.play(
        "35=d|34=1|52=20261120-12:34:56|55=RIU3|48=99|22=8|107=Futures|15=RUB|969=10|231=2.5|\
         541=20131216|1079=12:30Z|964=5|1141=2|1022=A|264=5|1021=2|1022=B|264=20|1021=2|",
    );
    assert_eq!(outcome.unwrap().does, Some(Does::Definition));
    let defined = rig.mapper.events()[0];
    assert_eq!(
        (defined.kind, defined.id, defined.action),
        (Kind::Definition, 1, Action::New)
    );
    let known = rig.table.get(defined.instrument).unwrap().definition;
    assert_eq!(
        (known.currency, known.depth, known.book_type),
        (&b"RUB"[..], 20, 2)
    );
    assert_eq!(known.tick, Price::from_units(10_000_000_000));
    let maturity = fanfare_wire::UtcTimestamp::parse(b"20131216-12:30:00").unwrap();
    assert_eq!(known.maturity, maturity.nanos() as u64);
    let outcome = rig.play(
        "35=W|34=2|369=88|52=20261120-12:34:56|55=RIU3|48=99|22=8|268=3|\
         269=0|270=100|271=3|1023=1|83=7|269=1|270=101|271=4|1023=1|83=7|269=J|",
    );
    let picture = outcome.unwrap().picture.unwrap();
    assert_eq!((picture.rpt_seq, picture.last_processed), (7, Some(88)));
    assert_eq!(picture.instrument, defined.instrument);
    let events = rig.mapper.events();
    let kinds: Vec<_> = events
        .iter()
        .map(|event| (event.kind, event.entry))
        .collect();
    assert_eq!(
        kinds,
        [(Kind::Clear, 0), (Kind::Level, b'0'), (Kind::Level, b'1')]
    );
    assert!(
        events
            .iter()
            .all(|event| event.flags.has(Flags::SNAPSHOT) && event.rpt_seq == 7)
    );
    assert!(events[2].flags.has(Flags::LAST));
    rig.play("35=f|34=3|52=20261120-12:34:56|55=RIU3|326=17|")
        .unwrap();
    let status = rig.mapper.events()[0];
    assert_eq!((status.kind, status.id), (Kind::Status, 17));
    assert_eq!(rig.table.get(status.instrument).unwrap().status, 17);
    rig.play("35=h|34=4|52=20261120-12:34:56|336=1|340=2|")
        .unwrap();
    let status = rig.mapper.events()[0];
    assert_eq!((status.instrument, status.id), (InstrumentId::ALL, 2));
    let outcome = rig.play("35=4|34=5|36=9|").unwrap();
    assert_eq!(
        (outcome.does, outcome.next),
        (Some(Does::SequenceReset), Some(9))
    );
    assert!(rig.mapper.events().is_empty());
    assert_eq!(rig.play("35=D|34=5|").unwrap().does, None);
    // Two securities, of which one is known.
    rig.play("35=y|34=6|52=20261120-12:34:56|320=a|322=b|560=0|146=2|55=RIU3|55=SIZ3|15=RUB|")
        .unwrap();
    let actions: Vec<_> = rig
        .mapper
        .events()
        .iter()
        .map(|event| event.action)
        .collect();
    assert_eq!(actions, [Action::Change, Action::New]);
}

#[test]
fn a_fix_message_with_another_number_of_entries_gives_nothing() {
    let mut rig = FixRig::new(Version::Fix44);
    for (entries, what) in [
        (
            "268=3|279=0|269=0|55=A|279=0|269=1|55=A|",
            "the count is 3, found 2 entries",
        ),
        (
            "268=1|279=0|269=0|55=A|279=0|269=1|55=A|",
            "the count is 1, found 2 entries",
        ),
        (
            "268=x|279=0|269=0|55=A|",
            "the value is not a whole number, or too large",
        ),
    ] {
        let error = rig.play(&format!("35=X|34=7|{entries}")).unwrap_err();
        assert_eq!(error.why.to_string(), what);
        assert!(rig.mapper.events().is_empty());
    }
    let outcome = rig.play("35=X|34=7|268=0|");
    assert!(outcome.is_ok() && rig.mapper.events().is_empty());
    let error = rig.play("35=X|34=7|268=1|279=0|269=0|55=A|270=1000000000000000000|");
    let told = rig.mapper.describe(&error.unwrap_err(), &rig.table);
    assert_eq!(
        told,
        "MarketDataIncrementalRefresh(X): entry 0: MDEntryPx(270): instrument A: \
         1000000000000000000 is out of range: a price must be below 9.2e9"
    );
}

#[test]
fn fix_mappings_are_checked_against_the_dictionary() {
    let refused = |from: &str, to: &str| {
        let text = FIX.replacen(from, to, 1);
        assert_ne!(text, FIX);
        let mapping = Mapping::parse("fix.toml", &text).unwrap();
        match mapping.for_fix(&Dictionary::built_in(Version::Fix44), 0) {
            Ok(_) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    let told = refused("absent = \"ignore\"", "absent = \"error\"");
    assert!(
        told.contains("no field 83 in MarketDataIncrementalRefresh(X)"),
        "{told}"
    );
    let told = refused("price = 270", "price = 268");
    assert!(
        told.contains("is a group or a sequence, which cannot be a price"),
        "{told}"
    );
    let told = refused(
        "msg-type = \"X\"\ndoes = \"changes\"\noptional = true",
        "msg-type = \"XX\"\ndoes = \"changes\"",
    );
    assert!(told.ends_with("no MsgType(35) XX in FIX.4.4"), "{told}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Checks that damaged mappings are refused or harmless.
    #[test]
    fn damaged_mappings_are_harmless(
        at in 0..2000_usize, len in 0..40_usize, to in "[ -~\n]{0,12}",
    ) {
        for text in [MAPPING, SPECTRA, FIX] {
            let mut text = text.to_owned();
            let from = at.min(text.len());
            let end = (from + len).min(text.len());
            text.replace_range(from..end, &to);
            if let Ok(mapping) = Mapping::parse("m", &text) {
                let _ = mapping.for_templates(&program(QUOTES), 0);
                let _ = mapping.for_fix(&Dictionary::built_in(Version::Fix44), 0);
            }
        }
    }

    /// Checks that FIX messages of any fields are harmless.
    #[test]
    fn any_fix_message_is_harmless(
        fields in proptest::collection::vec((0..14_usize, "[0-9A-Z:.-]{1,12}"), 0..40),
        kind in 0..5_usize,
    ) {
        let tags = [34, 52, 55, 48, 22, 268, 269, 270, 271, 279, 83, 1023, 326, 146];
        let mut rig = FixRig::new(Version::Fix50Sp2);
        let mut text = format!("35={}|", ["X", "W", "d", "f", "y"][kind]);
        for (tag, value) in fields {
            text.push_str(&format!("{}={value}|", tags[tag]));
        }
        let _ = rig.play(&text);
        let last = rig.mapper.events().last();
        prop_assert!(last.is_none_or(|event| event.flags.has(Flags::LAST)));
    }
}
