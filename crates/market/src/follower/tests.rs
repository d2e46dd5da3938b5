//! Tests of followers with packets that arrive twice, late, or in part.

mod in_fix;
mod nonsense;
mod repeats;
mod resets;
mod session;

use super::*;
use crate::book::{BookConfig, Side};
use crate::event::{Flags, Kind};
use crate::mapping::Mapping;
use crate::market::MarketConfig;
use crate::relay::{Edge, EdgeConfig};
use crate::state;
use fanfare_fast::{Decoder, Program};
use fanfare_feed::arbiter::ArbiterConfig;
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram};
use fanfare_feed::recovery::{Lack, Numbering, RecoveryConfig, ReplayConfig, State};
use fanfare_feed::{Line, Preamble};
use std::sync::Arc;

const TEMPLATES: &str = r#"<template name="Change" id="1">
    <uInt32 name="MsgSeqNum" id="34"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <uInt32 name="MDUpdateAction" id="279"/><string name="MDEntryType" id="269"/>
      <uInt32 name="SecurityID" id="48"/><uInt32 name="RptSeq" id="83"/>
      <uInt32 name="MDPriceLevel" id="1023"/><decimal name="MDEntryPx" id="270"/>
      <uInt32 name="MDEntrySize" id="271"/></sequence></template>
    <template name="Definition" id="2"><uInt32 name="MsgSeqNum" id="34"/>
      <uInt32 name="SecurityID" id="48"/><string name="SecurityUpdateAction" id="980"/></template>
    <template name="Status" id="3"><uInt32 name="MsgSeqNum" id="34"/>
      <uInt32 name="SecurityID" id="48"/><uInt32 name="SecurityTradingStatus" id="326"/></template>
    <template name="Session" id="4"><uInt32 name="MsgSeqNum" id="34"/>
      <uInt32 name="TradSesStatus" id="340"/></template>
    <template name="Limit" id="5"><uInt32 name="MsgSeqNum" id="34"/>
      <uInt32 name="SecurityID" id="48"/><decimal name="HighLimitPx" id="1149"/>
      <uInt32 name="SecurityTradingStatus" id="326"/></template>
    <template name="Reset" id="120"/>"#;

const MAPPING: &str = r#"
[[message]]
template = 1
does = "changes"
number = 34
entries = 268
instrument = { id = 48 }
[message.entry]
type = 269
action = 279
price = 270
size = 271
level = 1023
rpt-seq = 83
[[message.event]]
kind = "level"
when = { 269 = "0" }
[[message.event]]
kind = "trade"
[[message]]
template = 2
does = "definition"
number = 34
instrument = { id = 48 }
[message.definition]
closed = { 980 = "D" }
[[message]]
template = 3
does = "status"
number = 34
instrument = { id = 48 }
status = 326
[[message]]
template = 4
does = "session-status"
number = 34
status = 340
[[message]]
template = 5
does = "definition"
number = 34
instrument = { id = 48 }
[message.definition]
high-limit = 1149
status = 326
"#;

/// A message with an unknown template.
const UNKNOWN: &[u8] = &[0xc0, 0xff];

/// A Reset, which has no number of its own.
const RESET: &[u8] = &[0xc0, 0xf8];

const FIRST: InstrumentId = InstrumentId(0);
const SECOND: InstrumentId = InstrumentId(1);

/// The origin of the plant at an edge.
const PLANT: u64 = 7;

/// The fields of an entry, from its action to its size, with the exponent of the price.
type Entry = [u8; 8];

/// Returns an entry for the first level of bids, which a new one becomes.
const fn bid(action: u8, instrument: InstrumentId, rpt_seq: u8, price: u8) -> Entry {
    [
        action,
        b'0',
        1 + instrument.0 as u8,
        rpt_seq,
        1,
        0,
        price,
        1,
    ]
}

const fn trade(instrument: InstrumentId, rpt_seq: u8) -> Entry {
    [0, b'2', 1 + instrument.0 as u8, rpt_seq, 1, 0, 50, 1]
}

fn message(number: u8, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = vec![0xc0, 0x81, 0x80 | number, 0x80 | entries.len() as u8];
    let fields = entries.iter().flatten();
    bytes.extend(fields.map(|field| 0x80 | field));
    bytes
}

/// Returns a definition with this SecurityUpdateAction(980).
fn definition(number: u8, instrument: InstrumentId, action: u8) -> Vec<u8> {
    let id = 1 + instrument.0 as u8;
    vec![0xc0, 0x82, 0x80 | number, 0x80 | id, 0x80 | action]
}

/// Returns a message of a template with these fields after its number.
fn fields(template: u8, number: u8, fields: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xc0, 0x80 | template, 0x80 | number];
    bytes.extend(fields.iter().map(|field| 0x80 | field));
    bytes
}

/// Returns a definition of the first instrument with this limit and status.
fn limit(number: u8, limit: u8, status: u8) -> Vec<u8> {
    fields(5, number, &[1, 0, limit, status])
}

fn status(number: u8, status: u8) -> Vec<u8> {
    fields(3, number, &[1, status])
}

fn session(number: u8, status: u8) -> Vec<u8> {
    fields(4, number, &[status])
}

/// Returns a packet that its preamble numbers.
fn packet(number: u32, messages: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    Preamble::Seq32Be.write(number, &mut bytes);
    bytes.extend(messages.concat());
    bytes
}

fn config(numbering: Numbering) -> FollowerConfig {
    let market = MarketConfig {
        book: BookConfig::by_level(5).unwrap(),
        recovery: RecoveryConfig::new(numbering),
        source: 0,
        has_natural_refresh: false,
    };
    FollowerConfig {
        replay: Some(ReplayConfig::default()),
        ..FollowerConfig::new(market)
    }
}

fn edge() -> Edge {
    let edge = EdgeConfig {
        follower: config(Numbering::Instrument),
        arbiter: ArbiterConfig::default(),
    };
    Edge::new(edge, Instruments::new(10))
}

/// The lines of a feed, and its follower.
struct Feed {
    channel: Channel,
    /// The decoder of what comes beside the lines.
    decoder: Decoder,
    follower: Follower,
    trades: u32,
    /// The definitions, statuses and states that a replay brought.
    replayed: Vec<Event>,
}

fn missing(market: &Market) -> Vec<(u64, u64)> {
    let ranges = market.missing().ranges();
    ranges.map(|range| (range.start, range.end)).collect()
}

impl Feed {
    fn new(lines: usize, preamble: Preamble, numbering: Numbering) -> Self {
        Self::with(("", ""), lines, preamble, numbering)
    }

    /// Makes a feed with further templates, and the mapping of their messages.
    fn with(
        (templates, mapping): (&str, &str),
        lines: usize,
        preamble: Preamble,
        numbering: Numbering,
    ) -> Self {
        let templates = format!("<templates>{TEMPLATES}{templates}</templates>");
        let program = Arc::new(Program::parse(&templates).unwrap());
        let mapping = Mapping::parse("test.toml", &[MAPPING, mapping].concat()).unwrap();
        let mapper = mapping.for_templates(&program, 0).unwrap();
        let channel = ChannelConfig {
            preamble,
            as_it_comes: lines == 1,
            ..ChannelConfig::new(lines)
        };
        let decoder = Decoder::new(program);
        let follower = Follower::new(config(numbering), mapper, Instruments::new(10));
        Self {
            channel: Channel::new(decoder.clone(), channel).unwrap(),
            decoder,
            follower: follower.with_steps(),
            trades: 0,
            replayed: Vec::new(),
        }
    }

    fn bring(&mut self, line: Line, bytes: &[u8]) {
        let datagram = Datagram {
            line,
            now: 0,
            received: 0,
            offset: 0,
            bytes,
        };
        let mut events = self.channel.receive(datagram);
        while let Some(event) = events.next() {
            self.follower.channel(0, &event, &mut |event| {
                self.trades += u32::from(event.kind == Kind::Trade);
            });
        }
    }

    /// Brings the messages of the replay that have this number.
    fn replay(&mut self, number: u32, messages: &[Vec<u8>]) {
        let records: Vec<Record> = messages.iter().map(|bytes| self.decoded(bytes)).collect();
        let mut send = |event: &Event| {
            self.trades += u32::from(event.kind == Kind::Trade);
            if matches!(event.kind, Kind::Definition | Kind::Status | Kind::State) {
                self.replayed.push(*event);
            }
        };
        self.follower.replayed(0, number, 0, &records, &mut send);
    }

    /// Brings the messages with number 2, which alone is missing, by the replay.
    fn replay_second(&mut self, messages: &[Vec<u8>]) {
        assert_eq!(self.follower.poll_request(0), Some(2..3));
        self.replay(2, messages);
        assert!(self.missing().is_empty());
    }

    /// Relays the steps so far to an edge, from a plant that has named these instruments.
    fn relay(
        &mut self,
        (now, plant): (u64, u64),
        named: &[InstrumentId],
        edge: &mut Edge,
        send: &mut impl FnMut(&Event),
    ) {
        for instrument in named {
            let mut bytes = Vec::new();
            let known = self.follower.instruments().get(*instrument).unwrap();
            known.write(&mut bytes);
            edge.instrument((now, 0), plant, &bytes, send).unwrap();
        }
        let steps = self.follower.steps().unwrap();
        steps.parts(100, |steps, events| {
            edge.steps(now, plant, steps, events, send);
        });
        steps.clear();
    }

    fn decoded(&mut self, bytes: &[u8]) -> Record {
        let mut record = Record::new();
        self.decoder.decode_record(bytes, &mut record).unwrap();
        record
    }

    /// Brings a message of a snapshot line.
    fn bring_beside(&mut self, bytes: &[u8]) {
        let record = self.decoded(bytes);
        self.follower.snapshot(0, 0, 0, &record, &mut |_| {});
    }

    /// Shows an empty book as of a message.
    fn show(&mut self, instrument: InstrumentId, last: u32) {
        let empty = Event {
            instrument,
            flags: Flags::SNAPSHOT.with(Flags::LAST),
            ..Event::EMPTY
        };
        self.snapshot(last, &[empty]);
    }

    /// Shows a snapshot as of a message.
    fn snapshot(&mut self, last: u32, events: &[Event]) {
        let market = &mut self.follower.course.market;
        market.snapshot((0, 0), Some(last), events, &mut |event| {
            self.trades += u32::from(event.kind == Kind::Trade);
        });
    }

    fn is_live(&self, instrument: InstrumentId) -> bool {
        self.state(instrument) == Some(State::Live)
    }

    fn state(&self, instrument: InstrumentId) -> Option<State> {
        self.follower.market().state(instrument)
    }

    /// Returns the missing numbers: the first of each range, and that behind it.
    fn missing(&self) -> Vec<(u64, u64)> {
        missing(self.follower.market())
    }

    fn bids(&self, instrument: InstrumentId) -> Vec<i64> {
        let book = self.follower.market().book(instrument).unwrap();
        let prices = book.depth(Side::Bid).map(|level| level.price.units());
        prices.map(|units| units / 1_000_000_000).collect()
    }
}

#[test]
fn a_packet_that_comes_twice_over_one_line_counts_once() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    for _ in 0..2 {
        feed.bring(Line::A, &message(1, &[trade(FIRST, 1)]));
    }
    assert_eq!((feed.trades, feed.follower.stats().repeated), (1, 1));

    let mut feed = Feed::new(1, Preamble::None, Numbering::Channel);
    feed.bring(Line::A, &message(1, &[trade(FIRST, 1)]));
    feed.show(FIRST, 1);
    for _ in 0..2 {
        feed.bring(Line::A, &message(2, &[bid(0, FIRST, 2, 50)]));
    }
    assert!(feed.is_live(FIRST));
    assert_eq!(feed.bids(FIRST), [50]);
}

#[test]
fn each_message_of_a_packet_that_comes_twice_is_repeated() {
    let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Instrument);
    let [first, second] = [1, 2].map(|rpt_seq| message(1, &[trade(FIRST, rpt_seq)]));
    for _ in 0..2 {
        feed.bring(Line::A, &packet(1, &[&first, &second]));
    }
    assert_eq!((feed.trades, feed.follower.stats().repeated), (2, 2));
}

/// Returns a feed with a live book and a delete that waits for packet 2, and the messages of that
/// packet.
fn behind_a_gap() -> (Feed, [Vec<u8>; 2]) {
    let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Channel);
    feed.bring(Line::A, &packet(1, &[&message(1, &[trade(FIRST, 1)])]));
    feed.show(FIRST, 1);
    let delete = message(3, &[bid(2, FIRST, 4, 51)]);
    feed.bring(Line::A, &packet(3, &[&delete]));
    let messages = [50, 51].map(|price| message(2, &[bid(0, FIRST, 2, price)]));
    (feed, messages)
}

#[test]
fn all_messages_of_a_late_packet_precede_what_waited_for_it() {
    let (mut feed, [first, second]) = behind_a_gap();
    assert_eq!(feed.missing(), [(2, 3)]);
    feed.bring(Line::A, &packet(2, &[&first, &second]));
    assert!(feed.missing().is_empty());
    assert_eq!(feed.follower.stats().late, 2);
    assert!(feed.is_live(FIRST));
    assert_eq!(feed.bids(FIRST), [50]);
}

#[test]
fn a_late_packet_that_comes_first_in_part_and_then_whole_is_applied_once() {
    let (mut feed, [_, second]) = behind_a_gap();
    let before = feed.trades;
    let first = message(2, &[trade(FIRST, 2), bid(0, FIRST, 2, 50)]);
    for _ in 0..2 {
        feed.bring(Line::A, &packet(2, &[&first, UNKNOWN]));
        assert_eq!(feed.missing(), [(2, 3)]);
    }
    feed.bring(Line::A, &packet(2, &[&first, &second]));
    assert!(feed.missing().is_empty());
    assert!(feed.is_live(FIRST));
    assert_eq!(feed.bids(FIRST), [50]);
    assert_eq!(feed.trades, before + 1);
    let steps = feed.follower.steps().unwrap();
    let mut counts = Vec::new();
    steps.parts(100, |steps, _| {
        counts.extend(steps.iter().map(|step| (step.number, step.events)));
    });
    assert!(counts.ends_with(&[(2, 2), (2, 1)]), "{counts:?}");
}

#[test]
fn a_replay_without_the_reset_of_a_packet_that_came_in_part_is_applied() {
    let (mut feed, _) = behind_a_gap();
    feed.bring(Line::A, &packet(2, &[RESET, UNKNOWN]));
    assert_eq!(feed.missing(), [(2, 3)]);
    let both = [50, 51].map(|price| bid(0, FIRST, 2, price));
    feed.replay_second(&[message(2, &both)]);
    assert_eq!(feed.bids(FIRST), [50]);
}

#[test]
fn a_late_packet_with_a_fault_passes_on_the_messages_behind_it_once() {
    let (mut feed, [first, _]) = behind_a_gap();
    let before = feed.trades;
    // So many faults, of an unknown action, that not all instruments are named.
    let faults = message(2, &[bid(9, SECOND, 2, 50); 40]);
    let messages = [first, faults, message(2, &[trade(FIRST, 2)])];
    for _ in 0..2 {
        feed.bring(Line::A, &packet(2, &messages.each_ref().map(Vec::as_slice)));
        assert_eq!(feed.missing(), [(2, 3)]);
    }
    feed.show(FIRST, 3);
    assert_eq!(feed.trades, before + 1);
}

#[test]
fn all_messages_of_a_replayed_packet_are_applied_once() {
    let (mut feed, messages) = behind_a_gap();
    feed.replay_second(&messages);
    let [first, second] = &messages;
    feed.bring(Line::A, &packet(2, &[first, second]));
    let stats = feed.follower.stats();
    assert_eq!((stats.late, stats.repeated), (2, 2));
    assert!(feed.is_live(FIRST));
    assert_eq!(feed.bids(FIRST), [50]);
}

#[test]
fn what_another_line_brings_after_a_bad_packet_is_late_and_not_missing() {
    let mut feed = Feed::new(2, Preamble::None, Numbering::Instrument);
    let first = message(1, &[bid(0, FIRST, 1, 50), bid(0, SECOND, 1, 50)]);
    feed.bring(Line::A, &first);
    feed.bring(Line::A, UNKNOWN);
    assert_eq!(feed.missing(), [(2, 3)]);
    assert!(!feed.is_live(SECOND));
    feed.bring(Line::B, &first);
    feed.bring(Line::B, &message(2, &[trade(FIRST, 2)]));
    assert!(feed.missing().is_empty());
    assert_eq!(feed.follower.poll_request(0), None);
    assert_eq!((feed.trades, feed.follower.stats().late), (1, 1));
    assert!(feed.is_live(FIRST) && feed.is_live(SECOND));
}

#[test]
fn a_packet_that_is_read_in_part_is_missing_for_edges_too() {
    let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Instrument);
    let first = message(1, &[trade(FIRST, 1), trade(SECOND, 1)]);
    feed.bring(Line::A, &packet(1, &[&first]));
    feed.bring(
        Line::A,
        &packet(2, &[&message(2, &[trade(FIRST, 2)]), UNKNOWN]),
    );
    assert_eq!(feed.missing(), [(2, 3)]);
    assert_eq!(feed.follower.poll_request(0), Some(2..3));
    assert!(!feed.is_live(FIRST), "another of its changes may be lost");
    feed.bring(Line::A, &packet(3, &[&message(3, &[trade(SECOND, 2)])]));
    assert!(!feed.is_live(FIRST) && feed.is_live(SECOND));

    let mut edge = edge();
    feed.relay((0, PLANT), &[FIRST, SECOND], &mut edge, &mut |_| {});
    edge.handle_timeout(ArbiterConfig::default().gap_timeout, &mut |_| {});
    assert_eq!(missing(edge.market()), [(2, 3)]);
    assert_ne!(edge.market().state(FIRST), Some(State::Live));
    assert_eq!(edge.market().state(SECOND), Some(State::Live));
}

#[test]
fn a_definition_closes_an_instrument_and_the_next_one_opens_it_for_edges_too() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    let (mut edge, mut sent) = (edge(), Vec::new());
    let mut states = |feed: &mut Feed| {
        let mut send = |event: &Event| {
            if matches!(event.kind, Kind::Definition | Kind::State) {
                sent.push(event.kind);
            }
        };
        feed.relay((0, PLANT), &[FIRST], &mut edge, &mut send);
        let market = feed.follower.market();
        [market, edge.market()].map(|market| market.state(FIRST))
    };
    feed.bring(Line::A, &definition(1, FIRST, b'A'));
    feed.bring(Line::A, &message(2, &[bid(0, FIRST, 1, 50)]));
    assert_eq!(states(&mut feed), [Some(State::Live); 2]);
    feed.bring(Line::A, &definition(3, SECOND, b'D'));
    feed.bring(Line::A, &definition(4, FIRST, b'D'));
    assert_eq!(states(&mut feed), [Some(State::Closed); 2]);
    let counts = feed.follower.mapper().counts();
    assert_eq!(counts.unknown_instrument, 1);
    assert_eq!(feed.follower.instruments().len(), 1);
    feed.bring(Line::A, &definition(5, FIRST, b'A'));
    assert_eq!(states(&mut feed), [RECOVERING; 2]);
    feed.bring(Line::A, &message(6, &[bid(0, FIRST, 1, 60)]));
    assert_eq!(states(&mut feed), [Some(State::Live); 2]);
    assert_eq!(feed.bids(FIRST), [60]);
    let (definition, state) = (Kind::Definition, Kind::State);
    let all = [definition, state, state, definition, state, state];
    assert_eq!(sent, all);
}

const RECOVERING: Option<State> = Some(State::Recovering(Lack::Snapshot));

#[test]
fn a_snapshot_from_before_the_end_of_an_instrument_is_not_the_book_of_the_next_one() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &definition(1, FIRST, b'A'));
    feed.bring(Line::A, &message(2, &[bid(0, FIRST, 1, 50)]));
    let mut snapshot = Vec::new();
    let market = feed.follower.market();
    market.snapshot_of(FIRST, &mut |event| snapshot.push(*event));
    feed.bring(Line::A, &definition(3, FIRST, b'D'));
    feed.bring(Line::A, &definition(4, FIRST, b'A'));
    for (last, state) in [(2, RECOVERING), (4, Some(State::Live))] {
        feed.snapshot(last, &snapshot);
        assert_eq!(feed.state(FIRST), state);
    }
}

#[test]
fn a_repeated_definition_does_not_leave_an_instrument_closed() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    for (number, action) in [(1, b'A'), (2, b'D'), (1, b'A')] {
        feed.bring(Line::A, &definition(number, FIRST, action));
    }
    assert_eq!(feed.follower.stats().repeated, 1);
    assert_eq!(feed.state(FIRST), Some(State::Closed));
    feed.bring(Line::A, &definition(3, FIRST, b'A'));
    assert_eq!(feed.state(FIRST), RECOVERING);
}

#[test]
fn a_late_end_does_not_close_an_instrument_that_trades() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &definition(1, FIRST, b'A'));
    feed.bring(Line::A, &definition(3, FIRST, b'A'));
    feed.bring(Line::A, &message(4, &[bid(0, FIRST, 1, 50)]));
    feed.replay_second(&[definition(2, FIRST, b'D')]);
    assert!(feed.is_live(FIRST));
    feed.bring(Line::A, &definition(5, FIRST, b'A'));
    let known = feed.follower.instruments().get(FIRST).unwrap();
    assert_eq!(known.revision, 1);
}

#[test]
fn a_late_end_that_the_plant_ignores_does_not_reach_edges() {
    for (number, ends) in [(5, 1), (2, 0)] {
        let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
        feed.bring(Line::A, &definition(1, FIRST, b'A'));
        feed.bring(Line::A, &definition(3, FIRST, b'A'));
        feed.bring(Line::A, &message(4, &[bid(0, FIRST, 1, 50)]));
        assert_eq!(feed.follower.poll_request(0), Some(2..3));
        match number {
            2 => feed.replay(2, &[definition(2, FIRST, b'D')]),
            next => feed.bring(Line::A, &definition(next, FIRST, b'D')),
        }
        let steps = feed.follower.steps().unwrap();
        let closing = steps.events().iter().filter(|event| state::closes(event));
        assert_eq!(closing.count(), ends);
        let mut last = 0;
        steps.parts(100, |steps, _| {
            last = steps.last().map_or(0, |step| step.number);
        });
        assert_eq!(last, u32::from(number), "the message itself does");
    }
}

#[test]
fn a_late_end_does_not_close_an_instrument_that_was_defined_since() {
    // The second definition repeats the first one, or is of another instrument.
    for first in [FIRST, SECOND] {
        let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
        feed.bring(Line::A, &definition(1, first, b'A'));
        feed.bring(Line::A, &definition(3, FIRST, b'A'));
        feed.replay_second(&[definition(2, FIRST, b'D')]);
        for number in [FIRST, SECOND] {
            assert_ne!(feed.state(number), Some(State::Closed));
        }
    }
}

#[test]
fn a_late_definition_does_not_open_an_instrument_that_was_closed_since() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &definition(1, FIRST, b'A'));
    feed.bring(Line::A, &definition(3, FIRST, b'D'));
    feed.replay_second(&[definition(2, FIRST, b'A')]);
    assert_eq!(feed.state(FIRST), Some(State::Closed));
    let is_definition = |event: &Event| event.kind == Kind::Definition;
    assert!(feed.replayed.iter().any(is_definition));
    assert!(state::closes(feed.replayed.last().unwrap()));
    feed.bring(Line::A, &definition(4, FIRST, b'A'));
    assert_eq!(feed.state(FIRST), RECOVERING);
}

/// Brings a definition, and then a message before another one, by the replay. Returns the feed, and
/// the kinds of the events that the replay brought.
fn with_late(newer: &[u8], late: Vec<u8>) -> (Feed, Vec<Kind>) {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &limit(1, 50, 17));
    feed.bring(Line::A, newer);
    feed.replay_second(&[late]);
    let kinds = feed.replayed.iter().map(|event| event.kind).collect();
    (feed, kinds)
}

/// Returns the limit and the status of the first instrument.
fn known(feed: &Feed) -> (i64, u16) {
    let known = feed.follower.instruments().get(FIRST).unwrap();
    let limit = known.definition.high_limit.units() / 1_000_000_000;
    (limit, known.status)
}

#[test]
fn a_late_definition_or_status_does_not_replace_a_newer_one() {
    for (newer, late, expected) in [
        (limit(3, 60, 17), limit(2, 55, 18), (60, 17)),
        (limit(3, 50, 17), limit(2, 55, 18), (50, 17)),
        (limit(3, 50, 17), status(2, 18), (50, 17)),
        (status(3, 17), status(2, 18), (50, 17)),
        (session(3, 2), session(2, 3), (50, 17)),
    ] {
        let (feed, kinds) = with_late(&newer, late);
        assert_eq!(known(&feed), expected);
        assert!(kinds.is_empty(), "{newer:?}: {kinds:?}");
    }
    // What no later message has is passed on, each part of a definition for itself.
    let all = [Kind::Definition, Kind::Status];
    for (newer, late, expected, events) in [
        (status(3, 19), limit(2, 60, 18), (60, 19), &all[..1]),
        (session(3, 2), limit(2, 60, 18), (60, 18), &all[..]),
        (session(3, 2), status(2, 18), (50, 18), &all[1..]),
    ] {
        let (feed, kinds) = with_late(&newer, late);
        assert_eq!(known(&feed), expected);
        assert_eq!(kinds, events, "{newer:?}");
    }
}

#[test]
fn what_a_snapshot_line_repeats_does_not_precede_a_late_message() {
    let all = [Kind::Definition, Kind::Status];
    let other = fields(3, 3, &[2, 20]);
    for (first, beside, late, events) in [
        (
            limit(1, 50, 17),
            limit(9, 50, 17),
            limit(2, 55, 18),
            &all[..],
        ),
        (limit(1, 50, 17), status(9, 17), limit(2, 55, 18), &all[..]),
        (
            limit(1, 50, 17),
            limit(9, 60, 19),
            limit(2, 55, 18),
            &all[..0],
        ),
        (session(1, 2), session(9, 2), session(2, 3), &all[1..]),
        (session(1, 2), session(9, 4), session(2, 3), &all[..0]),
    ] {
        let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
        feed.bring(Line::A, &first);
        feed.bring(Line::A, &other);
        feed.bring_beside(&beside);
        feed.replay_second(&[late]);
        let kinds: Vec<Kind> = feed.replayed.iter().map(|event| event.kind).collect();
        assert_eq!(kinds, events, "{beside:?}");
    }
}

#[test]
fn a_definition_that_is_repeated_does_not_undo_a_status_behind_a_loss() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &limit(1, 50, 17));
    feed.bring(Line::A, &status(2, 19));
    // Messages of any instrument may be lost.
    feed.bring(Line::A, &fields(3, 4, &[2, 20]));
    feed.bring_beside(&limit(9, 50, 17));
    assert_eq!(known(&feed), (50, 19));
    feed.bring_beside(&limit(9, 50, 18));
    assert_eq!(known(&feed), (50, 18));
}

#[test]
fn a_late_status_does_not_replace_a_newer_one_at_an_edge() {
    let gap = ArbiterConfig::default().gap_timeout;
    let (mut edge, mut statuses) = (edge(), Vec::new());
    let mut relay = |now, origin, messages: &[Vec<u8>]| {
        let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
        for message in messages {
            feed.bring(Line::A, message);
        }
        let mut send = |event: &Event| {
            if event.kind == Kind::Status {
                statuses.push(event.id);
            }
        };
        feed.relay((now, origin), &[FIRST], &mut edge, &mut send);
        edge.handle_timeout(now + gap, &mut send);
    };
    relay(0, PLANT, &[limit(1, 50, 17), status(3, 19)]);
    let all = [limit(1, 50, 17), status(2, 18), status(3, 19)];
    relay(2 * gap, PLANT + 1, &all);
    assert!(missing(edge.market()).is_empty());
    assert_eq!(edge.instruments().get(FIRST).unwrap().status, 19);
    assert_eq!(statuses, [17, 19]);
}

#[test]
fn a_repeated_status_does_not_replace_a_newer_one() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    for message in [limit(1, 50, 17), status(2, 18), status(3, 19)] {
        feed.bring(Line::A, &message);
    }
    feed.bring(Line::A, &status(2, 18));
    assert_eq!(feed.follower.stats().repeated, 1);
    assert_eq!(known(&feed), (50, 19));
}

#[test]
fn a_straggler_of_the_run_before_makes_nothing_missing() {
    let mut feed = Feed::new(2, Preamble::Seq32Be, Numbering::Instrument);
    let of = |number| packet(number, &[&message(1, &[trade(FIRST, 1)])]);
    for (line, number) in [(Line::A, 5000), (Line::B, 5000), (Line::A, 1), (Line::A, 2)] {
        feed.bring(line, &of(number));
    }
    assert_eq!((feed.follower.stats().resets, feed.missing()), (1, vec![]));
    feed.bring(Line::B, &of(5001));
    feed.bring(Line::A, &of(3));
    let stats = feed.follower.stats();
    assert_eq!((stats.bad, stats.late, feed.missing()), (0, 0, vec![]));
}

#[test]
fn a_trade_of_a_packet_that_came_in_part_is_passed_on_once() {
    let mut feed = Feed::new(1, Preamble::Seq32Be, Numbering::Instrument);
    feed.bring(Line::A, &packet(1, &[&message(1, &[trade(FIRST, 1)])]));
    let first = message(2, &[trade(FIRST, 2)]);
    feed.bring(Line::A, &packet(2, &[&first, UNKNOWN]));
    assert_eq!((feed.trades, feed.missing()), (2, vec![(2, 3)]));
    assert_eq!(feed.follower.poll_request(0), Some(2..3));
    // A snapshot has the rest of the packet, whose changes are superseded from then on.
    let empty = Event {
        flags: Flags::SNAPSHOT.with(Flags::LAST),
        rpt_seq: 4,
        ..Event::EMPTY
    };
    feed.snapshot(2, &[empty]);
    let second = message(2, &[trade(FIRST, 3), bid(0, FIRST, 4, 50)]);
    feed.replay(2, &[first, second]);
    assert!(feed.missing().is_empty() && feed.is_live(FIRST));
    assert_eq!(feed.trades, 3, "the one that was missing");
}
