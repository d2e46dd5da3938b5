//! Snapshots in several messages over two lossy lines: no book is ever live from a part of one, nor
//! from two mappings.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use fanfare_fast::{Decoder, Encoder, Message, Program, json};
use fanfare_feed::Line;
use fanfare_feed::channel::{Channel, ChannelConfig, Datagram};
use fanfare_feed::recovery::{Numbering, RecoveryConfig, State};
use fanfare_market::fragments::FragmentStats;
use fanfare_market::instruments::{IdSource, SecurityId};
use fanfare_market::{
    BookConfig, Follower, FollowerConfig, InstrumentId, Instruments, Mapping, MarketConfig, Side,
};
use fastrand::Rng;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const TEMPLATES: &str = r#"<templates>
  <template name="Change" id="1"><uInt32 name="MsgSeqNum" id="34"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <uInt32 name="MDUpdateAction" id="279"/><string name="MDEntryType" id="269"/>
      <uInt32 name="SecurityID" id="48"/><uInt32 name="RptSeq" id="83"/>
      <decimal name="MDEntryPx" id="270"/><uInt32 name="MDEntrySize" id="271"/>
    </sequence></template>
  <template name="Snapshot" id="2"><uInt32 name="MsgSeqNum" id="34"/>
    <uInt32 name="SecurityID" id="48"/><uInt32 name="RptSeq" id="83"/>
    <uInt32 name="LastMsgSeqNumProcessed" id="369"/>
    <uInt32 name="RouteFirst" id="7944" presence="optional"/>
    <uInt32 name="Fragment" id="9000" presence="optional"/>
    <uInt32 name="LastFragment" id="893"/>
    <sequence name="MDEntries"><length name="NoMDEntries" id="268"/>
      <string name="MDEntryType" id="269"/>
      <decimal name="MDEntryPx" id="270"/><uInt32 name="MDEntrySize" id="271"/>
    </sequence></template>
</templates>"#;

const MAPPING: &str = r#"
absent = "ignore"
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
rpt-seq = 83
[[message.event]]
kind = "level"
[[message]]
template = 2
does = "snapshot"
number = 34
rpt-seq = 83
last = 369
last-fragment = 893
first-fragment = 7944
fragment = 9000
entries = 268
instrument = { id = 48 }
[message.entry]
type = 269
price = 270
size = 271
[[message.event]]
kind = "level"
"#;

/// Returns the mapping, or one to which offers are statistics, so that books have only bids.
fn mapping(has_offers: bool) -> Mapping {
    let bids_alone = "kind = \"level\"\nwhen = { 269 = \"0\" }\n\
                      [[message.event]]\nkind = \"statistic\"";
    let text = match has_offers {
        true => MAPPING.to_owned(),
        false => MAPPING.replace("kind = \"level\"", bids_alone),
    };
    Mapping::parse("test.toml", &text).unwrap()
}

/// The marking of fragments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Marks {
    /// Only the last one is marked.
    Last,
    /// First and last are marked.
    Both,
    /// By numbers, interleaved with those of other instruments.
    Numbers,
}

const INSTRUMENTS: usize = 4;

/// The sizes by price, of bids and offers.
type Content = [BTreeMap<i64, i64>; 2];

/// The exchange: its books, and the state of each at each RptSeq.
struct Exchange {
    books: Vec<(u32, Content)>,
    truth: BTreeMap<(usize, u32), Content>,
    changes: u32,
    snapshots: u32,
    /// The messages of snapshots that are still to be sent.
    queue: Vec<String>,
}

impl Exchange {
    /// Returns the JSON line of a message with one or two changes.
    fn change(&mut self, rng: &mut Rng) -> String {
        self.changes += 1;
        let mut entries = Vec::new();
        for _ in 0..rng.usize(1..3) {
            let at = rng.usize(0..INSTRUMENTS);
            let (rpt_seq, book) = &mut self.books[at];
            *rpt_seq += 1;
            let side = rng.usize(0..2);
            let price = if side == 0 {
                100 - rng.i64(0..20)
            } else {
                101 + rng.i64(0..20)
            };
            let is_there = book[side].contains_key(&price);
            let (action, size) = match (is_there, rng.bool()) {
                (false, _) => (0, rng.i64(1..50)),
                (true, false) => (1, rng.i64(1..50)),
                (true, true) => (2, 0),
            };
            match action {
                2 => book[side].remove(&price),
                _ => book[side].insert(price, size),
            };
            self.truth.insert((at, *rpt_seq), book.clone());
            entries.push(format!(
                r#"{{"MDUpdateAction": {action}, "MDEntryType": "{side}", "SecurityID": {},
                    "RptSeq": {rpt_seq}, "MDEntryPx": {price}, "MDEntrySize": {size}}}"#,
                at + 1
            ));
        }
        format!(
            r#"{{"template": "Change", "fields": {{"MsgSeqNum": {}, "MDEntries": [{}]}}}}"#,
            self.changes,
            entries.join(", ")
        )
    }

    /// Returns the next message of a snapshot.
    fn snapshot(&mut self, rng: &mut Rng, marks: Marks) -> String {
        if self.queue.is_empty() {
            let at = rng.usize(0..INSTRUMENTS);
            let one = self.fragments(at, rng, marks);
            let other = match marks {
                Marks::Numbers => self.fragments((at + 1) % INSTRUMENTS, rng, marks),
                _ => Vec::new(),
            };
            // Numbered ones are interleaved in any order, each snapshot in its own.
            let (mut one, mut other) = (one.into_iter().peekable(), other.into_iter().peekable());
            while one.peek().is_some() || other.peek().is_some() {
                let next = if rng.bool() { one.next() } else { other.next() };
                self.queue.extend(next);
            }
            self.queue.reverse();
        }
        self.snapshots += 1;
        let number = self.snapshots.to_string();
        self.queue.pop().unwrap().replace("NUMBER", &number)
    }

    /// Returns the messages of a snapshot of an instrument's current state.
    fn fragments(&mut self, at: usize, rng: &mut Rng, marks: Marks) -> Vec<String> {
        let (rpt_seq, book) = &self.books[at];
        let mut entries: Vec<String> = Vec::new();
        for (side, levels) in book.iter().enumerate() {
            entries.extend(levels.iter().map(|(price, size)| {
                format!(
                    r#"{{"MDEntryType": "{side}", "MDEntryPx": {price}, "MDEntrySize": {size}}}"#
                )
            }));
        }
        let len = rng.usize(1..30);
        let chunks: Vec<&[String]> = match entries.is_empty() {
            true => vec![&[]],
            false => entries.chunks(len).collect(),
        };
        let count = chunks.len();
        let messages = chunks.into_iter().enumerate().map(|(number, entries)| {
            let marks = match marks {
                Marks::Last => String::new(),
                Marks::Both => format!(r#""RouteFirst": {}, "#, u8::from(number == 0)),
                Marks::Numbers => format!(r#""Fragment": {}, "#, number + 1),
            };
            format!(
                r#"{{"template": "Snapshot", "fields": {{"MsgSeqNum": NUMBER, "SecurityID": {},
                    "RptSeq": {rpt_seq}, "LastMsgSeqNumProcessed": {}, {marks}"LastFragment": {},
                    "MDEntries": [{}]}}}}"#,
                at + 1,
                self.changes,
                u8::from(number + 1 == count),
                entries.join(", ")
            )
        });
        messages.collect()
    }
}

/// A follower of two lines of changes and two of snapshots.
struct Run {
    program: Arc<Program>,
    encoder: Encoder,
    exchange: Exchange,
    follower: Follower,
    changes: Channel,
    snapshots: Channel,
    rng: Rng,
    loss: f64,
    now: u64,
    live: u64,
    has_offers: bool,
}

impl Run {
    fn new(seed: u64, loss: f64) -> Self {
        let program = Arc::new(Program::parse(TEMPLATES).unwrap());
        let mapper = mapping(true).for_templates(&program, 0).unwrap();
        let market = MarketConfig {
            book: BookConfig::by_price(50).unwrap(),
            recovery: RecoveryConfig::new(Numbering::Instrument),
            source: 0,
            has_natural_refresh: false,
        };
        let channel = || {
            let decoder = Decoder::new(Arc::clone(&program));
            Channel::new(decoder, ChannelConfig::new(2)).unwrap()
        };
        Self {
            encoder: Encoder::new(Arc::clone(&program)),
            exchange: Exchange {
                books: vec![(0, Content::default()); INSTRUMENTS],
                truth: BTreeMap::new(),
                changes: 0,
                snapshots: 0,
                queue: Vec::new(),
            },
            follower: Follower::new(FollowerConfig::new(market), mapper, Instruments::new(100)),
            changes: channel(),
            snapshots: channel(),
            rng: Rng::with_seed(seed),
            loss,
            now: 0,
            live: 0,
            has_offers: true,
            program,
        }
    }

    /// Adopts the other mapping.
    fn remap(&mut self) {
        self.has_offers = !self.has_offers;
        let mapper = mapping(self.has_offers).for_templates(&self.program, 0);
        let mapper = mapper.unwrap();
        assert!(!mapper.maps_as(self.follower.mapper()));
        let (known, counts) = (
            self.follower.instruments().len(),
            self.follower.mapper().counts(),
        );
        let old = self.follower.remap(self.now, (mapper, None), &mut |_| {});
        assert_eq!(self.follower.instruments().len(), known);
        assert_eq!(self.follower.mapper().counts(), counts);
        assert!(!old.0.maps_as(self.follower.mapper()));
        for number in 0..known as u32 {
            let state = self.follower.market().state(InstrumentId(number));
            assert_ne!(state, Some(State::Live));
        }
    }

    /// Delivers a message over both lines, unless it is lost, and sometimes twice.
    fn bring(&mut self, line: &str, is_change: bool) {
        let mut message = Message::new();
        json::read_line(&self.program, line, &mut message).unwrap();
        let mut bytes = Vec::new();
        self.encoder.reset();
        self.encoder.encode(&message, &mut bytes).unwrap();
        self.now += 1_000_000;
        let now = self.now;
        for line in [Line::A, Line::B] {
            for _ in 0..if self.rng.u8(0..20) == 0 { 2 } else { 1 } {
                if self.rng.f64() < self.loss {
                    continue;
                }
                let datagram = Datagram {
                    line,
                    now,
                    received: now,
                    offset: 0,
                    bytes: &bytes,
                };
                let channel = match is_change {
                    true => &mut self.changes,
                    false => &mut self.snapshots,
                };
                let mut events = channel.receive(datagram);
                while let Some(event) = events.next() {
                    match is_change {
                        true => self.follower.channel(now, &event, &mut |_| {}),
                        false => self.follower.snapshot_lines(0, now, &event, &mut |_| {}),
                    }
                }
            }
        }
        let mut events = self.changes.handle_timeout(now);
        while let Some(event) = events.next() {
            self.follower.channel(now, &event, &mut |_| {});
        }
        let mut events = self.snapshots.handle_timeout(now);
        while let Some(event) = events.next() {
            self.follower.snapshot_lines(0, now, &event, &mut |_| {});
        }
        self.check();
    }

    /// Checks that every live book equals the exchange's at its RptSeq.
    fn check(&mut self) {
        let (table, market) = (self.follower.instruments(), self.follower.market());
        for at in 0..INSTRUMENTS {
            let id = SecurityId::Number(at as u64 + 1);
            let Some(id) = table.by_id(id, IdSource::NONE) else {
                continue;
            };
            if market.state(id) != Some(State::Live) {
                continue;
            }
            self.live += 1;
            let rpt_seq = market.position(id).unwrap();
            let truth = self.exchange.truth.get(&(at, rpt_seq));
            let mut truth = truth.cloned().unwrap_or_default();
            if !self.has_offers {
                truth[1].clear();
            }
            let side = |side| {
                let book = market.book(id);
                let levels = book.into_iter().flat_map(move |book| book.depth(side));
                levels.map(|level| (level.price.units() / 1_000_000_000, level.size))
            };
            let content: Content = Side::BOTH.map(|of| side(of).collect());
            assert_eq!(content, truth, "instrument {at} at {rpt_seq}");
        }
    }
}

/// Runs a seed. `remaps` is how often the mapping changes, in 1,000 messages.
fn run(seed: u64, marks: Marks, loss: f64, remaps: u32) -> (u64, FragmentStats) {
    let mut run = Run::new(seed, loss);
    // Messages sent before are unknown.
    for _ in 0..100 {
        run.exchange.change(&mut run.rng);
    }
    for _ in 0..400 {
        if run.rng.u32(0..1_000) < remaps {
            run.remap();
        }
        match run.rng.u8(0..3) {
            0 => {
                let line = run.exchange.change(&mut run.rng);
                run.bring(&line, true);
            }
            _ => {
                let line = run.exchange.snapshot(&mut run.rng, marks);
                run.bring(&line, false);
            }
        }
    }
    (run.live, run.follower.fragment_stats())
}

fn seeds() -> Range<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("FANFARE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FANFARE_SEEDS").unwrap_or(60),
    }
}

#[test]
fn no_book_is_live_from_a_part_of_a_snapshot() {
    for marks in [Marks::Last, Marks::Both, Marks::Numbers] {
        let (mut live, mut whole, mut discarded) = (0, 0, 0);
        for seed in seeds() {
            let loss = [0.0, 0.1, 0.3, 0.5][seed as usize % 4];
            let (lived, stats) = std::panic::catch_unwind(|| run(seed, marks, loss, 0))
                .unwrap_or_else(|_| panic!("FANFARE_SEED={seed}, {marks:?}: see above"));
            live += lived;
            whole += stats.whole;
            discarded += stats.discarded;
            assert!(loss > 0.0 || stats.discarded == 0, "{seed}: {stats:?}");
        }
        let enough = seeds().count() as u64;
        assert!(
            live > 100 * enough && whole > 10 * enough,
            "{live}, {whole}"
        );
        assert!(discarded > enough, "{discarded}");
    }
}

#[test]
fn no_book_is_live_from_two_mappings() {
    let mut live = 0;
    for seed in seeds() {
        let loss = [0.0, 0.0, 0.1, 0.3][seed as usize % 4];
        let marks = [Marks::Last, Marks::Both, Marks::Numbers][seed as usize % 3];
        let (lived, _) = std::panic::catch_unwind(|| run(seed, marks, loss, 20))
            .unwrap_or_else(|_| panic!("FANFARE_SEED={seed}, {marks:?}: see above"));
        live += lived;
    }
    let enough = seeds().count() as u64;
    assert!(live > 50 * enough, "{live}");
}

#[test]
fn a_mapping_that_differs_in_comments_is_the_same() {
    let program = Arc::new(Program::parse(TEMPLATES).unwrap());
    let mapper = |text: &str| {
        let mapping = Mapping::parse("test.toml", text).unwrap();
        mapping.for_templates(&program, 0).unwrap()
    };
    let own = mapper(MAPPING);
    assert!(own.maps_as(&mapper(
        &MAPPING.replace("action = 279", "action = 279 # or so\n")
    )));
    for (what, other) in [
        ("size = 271\n[[message.event]]", "[[message.event]]"),
        ("first-fragment = 7944\n", ""),
        ("absent =", "instruments.unknown = \"count\"\nabsent ="),
        ("size = 271\nrpt-seq = 83", "size = 83\nrpt-seq = 83"),
    ] {
        assert!(MAPPING.contains(what));
        assert!(
            !own.maps_as(&mapper(&MAPPING.replace(what, other))),
            "{other}"
        );
    }
}
