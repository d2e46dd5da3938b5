//! The recorded feed of the Moscow Exchange's derivatives market: books that are live equal those
//! of an obvious program at the same RptSeq(83), at any moment, whatever the lines lose. Skipped
//! where the recording is not at hand.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_fast::{Decoder, Message, Program};
use fanfare_fast::{Fields, Value};
use fanfare_feed::recovery::{Numbering, RecoveryConfig, State};
use fanfare_market::event::entry;
use fanfare_market::{
    Action, Book, BookConfig, Event, Flags, InstrumentId, Kind, Market, MarketConfig, Price, Side,
};
use fastrand::Rng;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::path::Path;

/// A message of the channel: its number and its changes.
struct Changes {
    sequence: u64,
    events: Vec<Event>,
}

/// A picture of an instrument.
#[derive(Clone)]
struct Picture {
    last_processed: u64,
    events: Vec<Event>,
}

/// Levels of both sides, the best first.
type Content = [Vec<(i64, i64)>; 2];

struct Recording {
    changes: Vec<Changes>,
    pictures: Vec<Picture>,
    instruments: u32,
    /// Each instrument's book behind each RptSeq, from its first picture on.
    truth: HashMap<(u32, u32), Content>,
}

fn number(fields: &Fields<'_>, name: &str) -> Option<i64> {
    let value = fields.get(name)?;
    value.as_u64().map(|value| value as i64).or(value.as_i64())
}

fn entry_event(fields: &Fields<'_>) -> Event {
    let price = match fields.get("MDEntryPx") {
        Some(Value::Decimal(price)) => Price::from_decimal(price).unwrap(),
        _ => Price::UNDEFINED,
    };
    let entry = fields
        .get("MDEntryType")
        .unwrap()
        .as_str()
        .unwrap()
        .as_bytes()[0];
    Event {
        kind: match entry {
            entry::EMPTY_BOOK => Kind::Clear,
            _ => Kind::Level,
        },
        action: match number(fields, "MDUpdateAction") {
            Some(1) => Action::Change,
            Some(2) => Action::Delete,
            _ => Action::New,
        },
        entry,
        price,
        size: number(fields, "MDEntrySize").unwrap_or(Event::NO_SIZE),
        level: number(fields, "MDPriceLevel").unwrap_or(0) as u16,
        ..Event::EMPTY
    }
}

/// The last event of each instrument ends its message.
fn mark_last(events: &mut [Event]) {
    let mut seen = Vec::new();
    for event in events.iter_mut().rev() {
        if !seen.contains(&event.instrument) {
            seen.push(event.instrument);
            event.flags = event.flags.with(Flags::LAST);
        }
    }
}

/// The numbers of instruments, by SecurityID(48).
type Ids = BTreeMap<i64, u32>;

fn id_of(ids: &mut Ids, fields: &Fields<'_>) -> InstrumentId {
    let next = ids.len() as u32;
    InstrumentId(
        *ids.entry(number(fields, "SecurityID").unwrap())
            .or_insert(next),
    )
}

fn changes(fields: &Fields<'_>, ids: &mut Ids) -> Changes {
    let Some(Value::Sequence(entries)) = fields.get("MDEntries") else {
        panic!("no entries");
    };
    let mut events: Vec<Event> = entries
        .map(|entry| Event {
            instrument: id_of(ids, &entry),
            rpt_seq: number(&entry, "RptSeq").unwrap() as u32,
            ..entry_event(&entry)
        })
        .collect();
    mark_last(&mut events);
    let sequence = number(fields, "MsgSeqNum").unwrap() as u64;
    Changes { sequence, events }
}

fn picture(fields: &Fields<'_>, ids: &mut Ids) -> Picture {
    let Some(Value::Sequence(entries)) = fields.get("MDEntries") else {
        panic!("no entries");
    };
    let (instrument, rpt_seq) = (id_of(ids, fields), number(fields, "RptSeq").unwrap() as u32);
    let whole = |event: Event| Event {
        instrument,
        rpt_seq,
        flags: Flags::SNAPSHOT,
        ..event
    };
    let mut events = vec![whole(Event::EMPTY)];
    events.extend(entries.map(|entry| whole(entry_event(&entry))));
    mark_last(&mut events);
    Picture {
        last_processed: number(fields, "LastMsgSeqNumProcessed").unwrap() as u64,
        events,
    }
}

/// The obvious program: lists, changed as FIX says.
fn apply(content: &mut Content, event: &Event) {
    let Some(side) = Side::of_entry(event.entry) else {
        return;
    };
    let levels = &mut content[side as usize];
    let (at, level) = (
        usize::from(event.level) - 1,
        (event.price.units(), event.size),
    );
    match event.action {
        Action::New => levels.insert(at, level),
        Action::Change => levels[at] = level,
        _ => drop(levels.remove(at)),
    }
    levels.truncate(5);
}

fn content_of(picture: &[Event]) -> Content {
    let mut content = Content::default();
    for event in picture {
        apply(&mut content, event);
    }
    content
}

fn truth(changes: &[Changes], pictures: &[Picture]) -> HashMap<(u32, u32), Content> {
    let (mut truth, mut books) = (HashMap::new(), HashMap::new());
    for picture in pictures {
        let first = &picture.events[0];
        books
            .entry(first.instrument.0)
            .or_insert_with(|| (first.rpt_seq, content_of(&picture.events)));
    }
    truth.extend(
        books
            .iter()
            .map(|(id, (rpt, content))| ((*id, *rpt), content.clone())),
    );
    for event in changes.iter().flat_map(|changes| &changes.events) {
        let Some((rpt_seq, content)) = books.get_mut(&event.instrument.0) else {
            continue;
        };
        if event.rpt_seq > *rpt_seq {
            assert_eq!(event.rpt_seq, *rpt_seq + 1);
            apply(content, event);
            *rpt_seq = event.rpt_seq;
            truth.insert((event.instrument.0, event.rpt_seq), content.clone());
        }
    }
    truth
}

fn recording() -> Option<Recording> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let Ok(xml) = std::fs::read_to_string(folder.join("templates.xml")) else {
        println!("skipped: there is no recording at {}", folder.display());
        return None;
    };
    let program = Program::parse(&xml).unwrap();
    let (mut all, mut pictures, mut ids) = (Vec::new(), Vec::new(), Ids::new());
    for file in ["increment_a.dat", "increment_b.dat", "snapshot.dat"] {
        let mut decoder = Decoder::new(program.clone());
        let bytes = std::fs::read(folder.join(file)).unwrap();
        let (mut rest, mut message) = (&bytes[..], Message::new());
        while !rest.is_empty() {
            let len = decoder.decode(rest, &mut message).unwrap();
            rest = &rest[len..];
            let view = message.view(&program).unwrap();
            match view
                .fields()
                .get("MessageType")
                .and_then(|ty| Some(ty.as_str()?.to_owned()))
            {
                Some(ty) if ty == "X" => all.push(changes(&view.fields(), &mut ids)),
                Some(ty) if ty == "W" => pictures.push(picture(&view.fields(), &mut ids)),
                _ => {}
            }
        }
    }
    // What both lines have, once.
    all.sort_by_key(|changes| changes.sequence);
    all.dedup_by_key(|changes| changes.sequence);
    Some(Recording {
        truth: truth(&all, &pictures),
        changes: all,
        pictures,
        instruments: ids.len() as u32,
    })
}

fn content(book: &Book) -> Content {
    Side::BOTH.map(|side| {
        let levels = book.depth(side);
        levels
            .map(|level| (level.price.units(), level.size))
            .collect()
    })
}

/// What came out of a market, held against the truth.
struct Judge<'a> {
    recording: &'a Recording,
    market: Market,
    numbers: u64,
    /// How often a live book was compared.
    compared: u64,
}

impl<'a> Judge<'a> {
    fn new(recording: &'a Recording, has_natural_refresh: bool) -> Self {
        let config = MarketConfig {
            book: BookConfig::by_level(5).unwrap(),
            recovery: RecoveryConfig::new(Numbering::Instrument),
            source: 1,
            has_natural_refresh,
        };
        Self {
            recording,
            market: Market::new(config, 1),
            numbers: 0,
            compared: 0,
        }
    }

    /// Does a step; events that come out have numbers without a hole.
    fn step(&mut self, work: impl FnOnce(&mut Market, &mut dyn FnMut(&Event))) {
        let numbers = &mut self.numbers;
        work(&mut self.market, &mut |event| {
            *numbers += 1;
            assert_eq!(event.number, *numbers);
        });
    }

    fn changes(&mut self, changes: &Changes) {
        self.step(|market, mut send| {
            market.changes(0, changes.sequence, &changes.events, &mut send);
        });
        for event in &changes.events {
            self.check(event.instrument);
        }
    }

    fn picture(&mut self, now: u64, picture: &Picture) {
        self.step(|market, mut send| {
            let last = Some(picture.last_processed as u32);
            market.snapshot((now, 0), last, &picture.events, &mut send);
        });
        self.check(picture.events[0].instrument);
    }

    fn gap(&mut self, now: u64, from: u64, to: u64) {
        self.step(|market, mut send| market.gap(now, from..to, &mut send));
    }

    fn check(&mut self, instrument: InstrumentId) {
        if self.market.state(instrument) != Some(State::Live) {
            return;
        }
        let book = self.market.book(instrument).unwrap();
        // What was told of a faulty book is no change of the feed: its number stays.
        let key = (instrument.0, self.market.position(instrument).unwrap());
        // Of before the first picture the obvious program knows nothing.
        if let Some(truth) = self.recording.truth.get(&key) {
            assert_eq!(&content(book), truth, "{key:?}");
            self.compared += 1;
        }
    }
}

#[test]
fn every_snapshot_equals_the_book_that_the_increments_made() {
    let Some(recording) = recording() else {
        return;
    };
    let mut judge = Judge::new(&recording, false);
    let mut changes = recording.changes.iter().peekable();
    let (mut equal, mut ahead) = (0, 0);
    let mut seen = vec![false; recording.instruments as usize];
    for picture in &recording.pictures {
        while let Some(next) = changes.next_if(|next| next.sequence <= picture.last_processed) {
            judge.changes(next);
        }
        let (instrument, rpt_seq) = (picture.events[0].instrument, picture.events[0].rpt_seq);
        if !seen[instrument.0 as usize] {
            // The recording has no reset and no loss: one picture for each suffices.
            seen[instrument.0 as usize] = true;
            judge.picture(0, picture);
        }
        if judge.market.position(instrument) == Some(rpt_seq) {
            assert_eq!(judge.market.state(instrument), Some(State::Live));
            let book = judge.market.book(instrument).unwrap();
            assert_eq!(content(book), content_of(&picture.events));
            equal += 1;
        } else {
            ahead += 1;
        }
    }
    // The last pictures are behind the end of the recorded changes. The first one of each of the
    // eleven instruments is what its book began with, so 7,834 are left that were made by changes.
    assert_eq!((equal, ahead), (7_834 + 11, 3));
    assert_eq!(judge.market.stats().faults, 0);
    assert!(judge.compared > 20_000, "{}", judge.compared);
}

/// Without any picture books come back by the levels that the feed sends anew.
#[test]
fn books_come_back_by_natural_refresh() {
    let Some(recording) = recording() else {
        return;
    };
    let (mut judge, mut next) = (Judge::new(&recording, true), 0);
    let mut rng = Rng::with_seed(1);
    for (index, changes) in recording.changes.iter().enumerate() {
        if rng.u8(0..100) == 0 {
            continue;
        }
        if next != 0 && next < changes.sequence {
            judge.gap(index as u64, next, changes.sequence);
        }
        judge.changes(changes);
        next = changes.sequence + 1;
    }
    let stats = judge.market.stats();
    assert!(stats.refreshed > 20 && stats.faults == 0, "{stats:?}");
    assert!(judge.compared > 1_000, "{}", judge.compared);
}

/// Both lines lose 30 % of what they carry, those of snapshots too, which also come late, twice and
/// in another order.
fn lossy(recording: &Recording, seed: u64) -> u64 {
    let mut rng = Rng::with_seed(seed);
    let mut judge = Judge::new(recording, rng.bool());
    let mut is_lost = || rng.f64() < 0.3 && rng.f64() < 0.3;
    let lost: Vec<bool> = recording.changes.iter().map(|_| is_lost()).collect();
    let kept: Vec<bool> = recording.pictures.iter().map(|_| !is_lost()).collect();
    let (mut pictures, mut late) = (
        recording.pictures.iter().zip(kept).peekable(),
        VecDeque::new(),
    );
    let mut next = recording.changes[rng.usize(0..2_000)].sequence;
    let joined = next;
    for (index, changes) in recording.changes.iter().enumerate() {
        let now = index as u64 * 1_000_000;
        if changes.sequence < joined || lost[index] {
            continue;
        }
        if next < changes.sequence {
            judge.gap(now, next, changes.sequence);
        }
        judge.changes(changes);
        next = changes.sequence + 1;
        while let Some((picture, is_kept)) =
            pictures.next_if(|(picture, _)| picture.last_processed < next)
        {
            let copies = if is_kept { rng.usize(1..3) } else { 0 };
            for _ in 0..copies {
                late.push_back((picture, index + rng.usize(0..50)));
            }
        }
        for _ in 0..late.len() {
            match late.pop_front() {
                Some((picture, due)) if due <= index => judge.picture(now, picture),
                Some(waiting) => late.push_back(waiting),
                None => break,
            }
        }
    }
    let stats = judge.market.recovery_stats();
    assert!(stats.recovered > 100, "{stats:?}");
    assert_eq!(judge.market.stats().faults, 0);
    judge.compared
}

#[test]
fn books_that_are_live_are_right_whatever_is_lost() {
    let Some(recording) = recording() else {
        return;
    };
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    let seeds = match number("FANFARE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FANFARE_SEEDS").unwrap_or(200),
    };
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| lossy(&recording, seed));
        let compared = outcome.unwrap_or_else(|_| panic!("FANFARE_SEED={seed}: see above"));
        assert!(compared > 1_000, "FANFARE_SEED={seed}: {compared}");
    }
}
