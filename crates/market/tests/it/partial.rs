//! Messages of which the mapping represents only a part, or of which some entries become no event:
//! the follower knows which instruments lack a change.

use fanfare_fast::{Decoder, Encoder, Message, Program, Record, json};
use fanfare_feed::Line;
use fanfare_feed::channel::{Delivered, Event as ChannelEvent};
use fanfare_feed::recovery::{Numbering, RecoveryConfig, ReplayConfig, State};
use fanfare_fix::codec::Decoder as FixDecoder;
use fanfare_fix::dict::{Dictionary, Version};
use fanfare_market::{
    BookConfig, Event, Flags, Follower, FollowerConfig, InstrumentId, Instruments, Kind, Mapping,
    MarketConfig,
};
use fanfare_wire::byte_sum;
use std::sync::Arc;

const TEMPLATES: &str = r#"<templates>
  <template name="Change" id="1"><uInt64 name="SendingTime" id="52"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <string name="MDEntryType" id="269"/><uInt32 name="SecurityID" id="48"/>
      <string name="Symbol" id="55" presence="optional"/><uInt32 name="RptSeq" id="83"/>
    </sequence></template>
  <template name="List" id="2">
    <sequence name="Securities"><length name="NoRelatedSym" id="146"/>
      <uInt32 name="SecurityID" id="48"/><decimal name="MinPriceIncrement" id="969"/>
    </sequence></template>
  <template name="Snapshot" id="3"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="SecurityID" id="48"/><uInt32 name="LastMsgSeqNumProcessed" id="369"/>
    <uInt32 name="LastFragment" id="893"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <string name="MDEntryType" id="269"/><uInt32 name="RptSeq" id="83"/>
    </sequence></template>
  <template name="SequenceReset" id="4"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="NewSeqNo" id="36"/></template>
  <template name="Heartbeat" id="5"><uInt32 name="MsgSeqNum" id="34"/></template>
  <template name="Definition" id="6"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="SecurityID" id="48"/><decimal name="MinPriceIncrement" id="969"/></template>
</templates>"#;

const MAPPING: &str = r#"
[[message]]
template = "Change"
does = "changes"
sent = { field = 52, format = "YYYYMMDDHHMMSSmmm" }
entries = 268
instrument = { id = 48 }
entry = { type = 269, rpt-seq = 83 }
[[message.event]]
kind = "statistic"
when = { 269 = "0" }
[[message.event]]
kind = "trade"
when = { 269 = "2" }
[[message.event]]
kind = "status"
when = { 269 = "6" }
[[message.event]]
kind = "ignore"
when = { 269 = "B" }
[[message]]
template = "List"
does = "definition"
entries = 146
instrument = { id = 48 }
definition = { tick = 969 }
[[message]]
template = "Snapshot"
does = "snapshot"
number = 34
last = 369
last-fragment = 893
entries = 268
instrument = { id = 48 }
entry = { type = 269, rpt-seq = 83 }
[[message.event]]
kind = "statistic"
when = { 269 = "0" }
[[message.event]]
kind = "clear"
when = { 269 = "J" }
[[message]]
template = "SequenceReset"
does = "sequence-reset"
number = 34
next = 36
[[message]]
template = "Heartbeat"
does = "heartbeat"
number = 34
[[message]]
template = "Definition"
does = "definition"
number = 34
instrument = { id = 48 }
definition = { tick = 969 }
"#;

/// A valid SendingTime(52).
const NOON: u64 = 20_261_120_120_000_000;

/// Returns a message that is all of its packet.
fn delivered<'a>(
    record: &'a mut Record,
    program: &'a Program,
    number: Option<u64>,
) -> Delivered<'a> {
    Delivered {
        record,
        program,
        number,
        index: 0,
        line: Line::A,
        received: 0,
        packet_len: 0,
        is_first: true,
        is_last: true,
        decoding: 0,
    }
}

/// A follower of messages in JSON, with the events that it passed on.
struct Rig {
    program: Arc<Program>,
    follower: Follower,
    events: Vec<Event>,
}

impl Rig {
    fn new(mapping: &str) -> Self {
        let program = Arc::new(Program::parse(TEMPLATES).unwrap());
        let mapping = Mapping::parse("test.toml", mapping).unwrap();
        let market = MarketConfig {
            book: BookConfig::by_price(5).unwrap(),
            recovery: RecoveryConfig::new(Numbering::Instrument),
            source: 0,
            has_natural_refresh: false,
        };
        let config = FollowerConfig {
            replay: Some(ReplayConfig::default()),
            ..FollowerConfig::new(market)
        };
        let mapper = mapping.for_templates(&program, 0).unwrap();
        let fix = Mapping::built_in("builtin:fix").unwrap();
        let fix = fix.for_fix(&Dictionary::built_in(Version::Fix50Sp2), 0);
        let follower = Follower::new(config, mapper, Instruments::new(100));
        Self {
            program,
            follower: follower.with_fix(fix.unwrap()),
            events: Vec::new(),
        }
    }

    fn record(&self, template: &str, fields: &str) -> Record {
        let line = format!(r#"{{"template": "{template}", "fields": {{{fields}}}}}"#);
        let (mut message, mut record) = (Message::new(), Record::new());
        json::read_line(&self.program, &line, &mut message).unwrap();
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(Arc::clone(&self.program));
        encoder.encode(&message, &mut bytes).unwrap();
        let mut decoder = Decoder::new(Arc::clone(&self.program));
        decoder.decode_record(&bytes, &mut record).unwrap();
        record
    }

    /// Processes a message of the channel with this number, or of snapshot lines of this index.
    fn take(&mut self, from: Result<u64, usize>, template: &str, fields: &str) {
        let mut record = self.record(template, fields);
        let event = ChannelEvent::Message(delivered(&mut record, &self.program, from.ok()));
        self.events.clear();
        let send = &mut |event: &Event| self.events.push(*event);
        match from {
            Ok(_) => self.follower.channel(0, &event, send),
            Err(lines) => self.follower.snapshot_lines(lines, 0, &event, send),
        }
    }

    /// Processes a message of the channel with these entries: type, instrument and RptSeq(83).
    fn change(&mut self, number: u64, sent: u64, entries: &[(char, u32, u32)]) {
        let entries: Vec<String> = entries
            .iter()
            .map(|(kind, id, rpt_seq)| {
                format!(
                    r#"{{"MDEntryType": "{kind}", "SecurityID": {id}, "Symbol": "S{id}",
                        "RptSeq": {rpt_seq}}}"#
                )
            })
            .collect();
        let entries = entries.join(", ").replace('\n', "");
        let fields = format!(r#""SendingTime": {sent}, "MDEntries": [{entries}]"#);
        self.take(Ok(number), "Change", &fields);
    }

    /// Processes a definition of each instrument with this tick, of 10^-10 for 0.
    fn list(&mut self, from: Result<u64, usize>, all: &[(u32, u32)]) {
        let securities: Vec<String> = all
            .iter()
            .map(|(id, tick)| {
                let exponent = if *tick == 0 { -10 } else { 0 };
                let mantissa = (*tick).max(1);
                format!(
                    r#"{{"SecurityID": {id}, "MinPriceIncrement":
                        {{"mantissa": {mantissa}, "exponent": {exponent}}}}}"#
                )
            })
            .collect();
        let securities = securities.join(", ").replace('\n', "");
        self.take(from, "List", &format!(r#""Securities": [{securities}]"#));
    }

    /// Processes a message with a whole snapshot of these lines.
    fn snapshot(&mut self, lines: usize, number: u32, entries: &[(char, u32)]) {
        let entries: Vec<String> = entries
            .iter()
            .map(|(kind, rpt_seq)| format!(r#"{{"MDEntryType": "{kind}", "RptSeq": {rpt_seq}}}"#))
            .collect();
        let fields = format!(
            r#""MsgSeqNum": {number}, "SecurityID": 1, "LastMsgSeqNumProcessed": 1,
               "LastFragment": 1, "MDEntries": [{}]"#,
            entries.join(", ")
        );
        self.take(Err(lines), "Snapshot", &fields.replace('\n', ""));
    }

    /// Processes a message of the replay in FIX.
    fn replayed(&mut self, number: u32, fields: &str) {
        let soh = |text: &str| text.replace('|', "\x01").into_bytes();
        let mut bytes = soh(&format!("8=FIXT.1.1|9={}|{fields}", fields.len()));
        let sum = byte_sum(&bytes);
        bytes.extend(soh(&format!("10={sum:03}|")));
        let mut decoder = FixDecoder::new();
        let message = decoder.decode(&bytes).unwrap();
        let send = &mut |event: &Event| self.events.push(*event);
        self.follower.replayed_fix(0, number, 0, &message, send);
    }

    /// Returns the description of the fault of a snapshot.
    fn fault(&mut self) -> String {
        let fault = self.follower.take_snapshot_fault().unwrap();
        self.follower.describe_snapshot(&fault)
    }

    /// Returns the number of instruments that are live.
    fn live(&self) -> usize {
        let all = (0..self.follower.instruments().len() as u32).map(InstrumentId);
        let market = self.follower.market();
        all.filter(|id| market.state(*id) == Some(State::Live))
            .count()
    }

    fn is_missing(&self, number: u64) -> bool {
        self.follower.market().missing().contains(number)
    }

    /// Returns the kinds of the events of the last message, and whether each is its last one.
    fn kinds(&self) -> Vec<(Kind, bool)> {
        let all = self.events.iter();
        all.map(|event| (event.kind, event.flags.has(Flags::LAST)))
            .collect()
    }
}

#[test]
fn a_message_with_more_faults_than_are_kept_is_lost_for_all_instruments() {
    let mut rig = Rig::new(MAPPING);
    let all = |rpt_seq| (1..=40).map(move |id| ('0', id, rpt_seq));
    rig.change(1, NOON, &all(1).collect::<Vec<_>>());
    assert_eq!(rig.live(), 40);
    rig.change(2, 1, &all(2).collect::<Vec<_>>());
    assert_eq!(rig.live(), 0);
    assert!(rig.is_missing(2));
    let counts = rig.follower.mapper().counts();
    assert_eq!((counts.faults, counts.events), (41, 40));
}

#[test]
fn a_replay_with_another_number_of_entries_fills_no_gap() {
    let mut rig = Rig::new(MAPPING);
    rig.change(1, NOON, &[('0', 1, 1), ('0', 2, 1)]);
    rig.change(3, NOON, &[]);
    assert_eq!(rig.follower.poll_request(0), Some(2..3));
    let entry = |id| format!("279=0|269=0|48={id}|1023=1|270=1|271=1|83=2|");
    let entries = [entry(1), entry(2)].concat();
    rig.replayed(2, &format!("35=X|34=2|268=3|{entries}"));
    assert_eq!((rig.live(), rig.is_missing(2)), (0, true));
}

#[test]
fn the_fault_of_a_definition_is_of_its_own_instrument_and_touches_no_book() {
    let mut rig = Rig::new(MAPPING);
    rig.change(1, NOON, &[('0', 1, 1), ('0', 2, 1)]);
    rig.list(Ok(2), &[(1, 5), (2, 0)]);
    assert_eq!(rig.kinds(), [(Kind::Definition, true)]);
    assert_eq!(rig.events[0].instrument, InstrumentId(0));
    let mapper = rig.follower.mapper();
    let told = mapper.describe(&mapper.faults()[0], rig.follower.instruments());
    assert_eq!(
        told,
        "List(2): entry 1: MinPriceIncrement(969): instrument 2: 0.0000000001 has more than 9 \
         decimal places"
    );
    // An instrument that is not known, alone.
    rig.list(Ok(3), &[(3, 0)]);
    assert_eq!((rig.live(), rig.is_missing(3)), (2, false));
}

#[test]
fn definitions_beside_a_faulty_one_are_passed_on_from_snapshot_lines() {
    let mut rig = Rig::new(MAPPING);
    rig.change(1, NOON, &[('0', 1, 1), ('0', 2, 1)]);
    rig.list(Err(0), &[(1, 5), (2, 0), (1, 6)]);
    assert_eq!(
        rig.kinds(),
        [(Kind::Definition, false), (Kind::Definition, true)]
    );
    assert_eq!((rig.live(), rig.follower.stats().bad_snapshots), (2, 1));
    // The repetition changes nothing.
    rig.list(Err(0), &[(1, 6)]);
    assert!(rig.events.is_empty());
}

#[test]
fn entries_without_an_event_use_their_numbers() {
    for instrument in ["{ id = 48 }", "{ symbol = 55 }"] {
        let changes = format!("entries = 268\ninstrument = {instrument}");
        let mapping = MAPPING.replacen("entries = 268\ninstrument = { id = 48 }", &changes, 1);
        let mut rig = Rig::new(&mapping);
        rig.change(1, NOON, &[('0', 1, 1)]);
        // Ignored, of no rule, and a status.
        for (at, kind) in (1..).zip(['B', '7', '6']) {
            let rpt_seq = 2 * at as u32;
            rig.change(2 * at, NOON, &[(kind, 1, rpt_seq)]);
            let expected: &[_] = match kind {
                '6' => &[(Kind::Status, true)],
                _ => &[],
            };
            assert_eq!(rig.kinds(), expected, "{kind}");
            rig.change(2 * at + 1, NOON, &[('0', 1, rpt_seq + 1)]);
            assert_eq!(rig.kinds(), [(Kind::Statistic, true)], "{kind}");
        }
        // The last event of the message is marked, although a number follows it.
        rig.change(
            8,
            NOON,
            &[('B', 1, 8), ('2', 1, 9), ('B', 1, 10), ('0', 2, 1)],
        );
        let expected = [
            (Kind::Trade, true),
            (Kind::Clear, true),
            (Kind::Statistic, true),
            (Kind::State, true),
        ];
        assert_eq!(rig.kinds(), expected);
        let market = rig.follower.market();
        assert_eq!(market.position(InstrumentId(0)), Some(10));
        assert_eq!(market.recovery_stats().recoveries, 0);
        let counts = rig.follower.mapper().counts();
        assert_eq!((counts.ignored, counts.no_rule, counts.events), (3, 1, 7));
    }
}

#[test]
fn a_snapshot_has_the_numbers_of_entries_without_an_event() {
    let mut rig = Rig::new(MAPPING);
    rig.change(1, NOON, &[('0', 1, 7)]);
    assert_eq!(rig.live(), 0);
    // The first one of the lines may be the end of any snapshot.
    for number in 1..3 {
        rig.snapshot(0, number, &[('J', 8)]);
    }
    assert_eq!(rig.live(), 1);
    rig.change(2, NOON, &[('0', 1, 9)]);
    assert_eq!(rig.live(), 1);
}

#[test]
fn snapshot_lines_have_numbers_of_their_own_that_restart() {
    let mut rig = Rig::new(MAPPING);
    let heartbeat = |number| format!(r#""MsgSeqNum": {number}"#);
    rig.snapshot(0, 1, &[('0', 1)]);
    assert_eq!(rig.follower.fragment_stats().without_beginning, 1);
    assert_eq!(
        rig.fault(),
        "snapshot, MsgSeqNum(34) 1: instrument 1: its first fragment is missing, or nothing marks \
         this fragment as the first"
    );
    for number in 2..5 {
        rig.take(Err(1), "Heartbeat", &heartbeat(number + 70));
        rig.snapshot(0, number, &[('0', 1)]);
    }
    rig.take(Err(0), "SequenceReset", r#""MsgSeqNum": 5, "NewSeqNo": 1"#);
    rig.snapshot(0, 1, &[('0', 1)]);
    let stats = rig.follower.fragment_stats();
    assert_eq!((stats.fragments, stats.without_beginning), (5, 1));
    assert_eq!(rig.follower.take_snapshot_fault(), None);
}

#[test]
fn a_snapshot_of_the_channel_without_a_number_is_named() {
    let mut rig = Rig::new(MAPPING);
    let mut record = rig.record(
        "Snapshot",
        r#""MsgSeqNum": 3, "SecurityID": 7, "LastMsgSeqNumProcessed": 1, "LastFragment": 1,
           "MDEntries": []"#
            .replace('\n', "")
            .as_str(),
    );
    let event = ChannelEvent::Message(delivered(&mut record, &rig.program, None));
    rig.follower.channel(0, &event, &mut |_| {});
    assert_eq!(rig.follower.stats().bad_snapshots, 1);
    let told = "snapshot: instrument 7: it has no MsgSeqNum(34), and so no place among the changes";
    assert_eq!(rig.fault(), told);
    assert_eq!(rig.follower.take_snapshot_fault(), None);
}

#[test]
fn a_faulty_definition_between_snapshots_discards_none() {
    let mut rig = Rig::new(MAPPING);
    rig.snapshot(0, 1, &[('0', 1)]);
    rig.take(
        Err(0),
        "Definition",
        r#""MsgSeqNum": 2, "SecurityID": 2, "MinPriceIncrement": {"mantissa": 1, "exponent": -10}"#,
    );
    assert_eq!(rig.follower.mapper().faults().len(), 1);
    rig.snapshot(0, 3, &[('0', 1)]);
    let stats = rig.follower.fragment_stats();
    assert_eq!((stats.fragments, stats.without_beginning), (2, 1));
}
