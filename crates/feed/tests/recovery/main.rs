//! Seeded simulations: a feed of several instruments, lines that lose messages, snapshots that are
//! lost, late and repeated, replays that respond or refuse, messages that can be read only in part,
//! channels that restart. A live book equals the book of the exchange. It has all changes that the
//! channel has sent.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one.
#![allow(clippy::unwrap_used, clippy::panic)]

mod rules;

use fanfare_feed::recovery::{
    Increment, Numbering, Recovery, RecoveryConfig, RecoveryStats, Sink, Snapshot, State,
};
use fastrand::Rng;
use std::collections::{BTreeMap, VecDeque};

/// A change, or a whole book, which is a number made from all its changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Item {
    rpt_seq: u32,
    value: u64,
}

fn mix(book: u64, value: u64) -> u64 {
    (book ^ value)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(23)
}

/// A book, and the number of its changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Book {
    rpt_seq: u32,
    value: u64,
}

impl Book {
    fn apply(&mut self, change: Item) {
        assert_eq!(change.rpt_seq, self.rpt_seq + 1, "changes come in turn");
        self.rpt_seq = change.rpt_seq;
        self.value = mix(self.value, change.value);
    }
}

/// The state of a client.
#[derive(Debug, Default)]
struct Client {
    books: BTreeMap<u32, Book>,
    states: BTreeMap<u32, State>,
    log: Vec<String>,
    dropped: u64,
}

impl Sink<Item> for Client {
    fn apply(&mut self, instrument: u32, change: &Item) {
        self.books.entry(instrument).or_default().apply(*change);
        self.log.push(format!("apply {}", change.rpt_seq));
    }

    fn superseded(&mut self, instrument: u32, change: &Item) {
        assert!(change.rpt_seq <= self.books[&instrument].rpt_seq);
        self.log.push(format!("superseded {}", change.rpt_seq));
    }

    fn dropped(&mut self, _: u32, change: &Item) {
        self.dropped += 1;
        self.log.push(format!("dropped {}", change.rpt_seq));
    }

    fn snapshot(&mut self, instrument: u32, items: &[Item]) {
        let Item { rpt_seq, value } = items[0];
        self.books.insert(instrument, Book { rpt_seq, value });
        self.log.push(format!("snapshot {rpt_seq}"));
    }

    fn clear(&mut self, instrument: u32) {
        self.books.insert(instrument, Book::default());
        self.log.push("clear".into());
    }

    fn state(&mut self, instrument: u32, state: State) {
        assert_ne!(self.states.insert(instrument, state), Some(state));
        self.log.push(state.to_string());
    }
}

/// A message of the channel: changes of instruments.
#[derive(Debug, Clone, Default)]
struct Message {
    changes: Vec<(u32, Item)>,
}

#[derive(Debug, Clone, Copy)]
struct SentSnapshot {
    instrument: u32,
    book: Book,
    last_processed: u64,
    made: u64,
    due: u64,
}

/// The exchange: everything that it sent since it restarted.
struct Exchange {
    base: u64,
    messages: Vec<Message>,
    /// Each instrument's book after each message.
    books: Vec<Vec<Book>>,
}

impl Exchange {
    fn new(base: u64, instruments: usize) -> Self {
        Self {
            base,
            messages: Vec::new(),
            books: vec![vec![Book::default(); instruments]],
        }
    }

    fn next(&self) -> u64 {
        self.base + self.messages.len() as u64
    }

    fn send(&mut self, rng: &mut Rng) -> Message {
        let mut books = self.books.last().unwrap().clone();
        let mut message = Message::default();
        for _ in 0..rng.usize(0..4) {
            let instrument = rng.usize(0..books.len());
            let (rpt_seq, value) = (books[instrument].rpt_seq + 1, rng.u64(..));
            let item = Item { rpt_seq, value };
            books[instrument].apply(item);
            message.changes.push((instrument as u32, item));
        }
        self.messages.push(message.clone());
        self.books.push(books);
        message
    }

    /// Changes the meaning of all messages, including those already sent.
    fn mean_otherwise(&mut self, key: u64) {
        let mut book = vec![Book::default(); self.books[0].len()];
        let mut books = vec![book.clone()];
        for message in &mut self.messages {
            for (instrument, item) in &mut message.changes {
                item.value ^= key;
                book[*instrument as usize].apply(*item);
            }
            books.push(book.clone());
        }
        self.books = books;
    }

    /// Returns the book of an instrument before a message.
    fn book(&self, instrument: usize, sequence: u64) -> Book {
        self.books[(sequence - self.base) as usize][instrument]
    }
}

struct World {
    rng: Rng,
    numbering: Numbering,
    with_last: bool,
    loss: f64,
    now: u64,
    exchange: Exchange,
    recovery: Recovery<Item>,
    client: Client,
    snapshots: VecDeque<SentSnapshot>,
    /// The next message that the client has not received.
    heard: Option<u64>,
    lives: u64,
}

const INSTRUMENTS: usize = 5;
const SNAPSHOT_AGE: u64 = 50;

impl World {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let numbering = match rng.u8(0..3) {
            0 => Numbering::Channel,
            _ => Numbering::Instrument,
        };
        let with_last = numbering == Numbering::Channel || rng.bool();
        let config = RecoveryConfig {
            most_held: rng.usize(4..200),
            most_held_each: rng.u32(2..100),
            most_gaps: rng.usize(1..20),
            snapshot_age: SNAPSHOT_AGE,
            ..RecoveryConfig::new(numbering)
        };
        let base = [1, (1 << 32) - 20, 5_000][rng.usize(0..3)];
        Self {
            numbering,
            with_last,
            loss: [0.0, 0.05, 0.3, 0.6][rng.usize(0..4)],
            now: 0,
            exchange: Exchange::new(base, INSTRUMENTS),
            recovery: Recovery::new(config),
            client: Client::default(),
            snapshots: VecDeque::new(),
            heard: None,
            lives: 0,
            rng,
        }
    }

    fn deliver(&mut self, sequence: u64, message: &Message) {
        self.recovery.see(sequence, &mut self.client);
        for &(instrument, item) in &message.changes {
            let increment = Increment {
                instrument,
                rpt_seq: item.rpt_seq,
                sequence,
                item,
            };
            self.recovery
                .increment(increment, &mut self.client)
                .unwrap();
        }
    }

    fn message(&mut self) {
        let sequence = self.exchange.next();
        let message = self.exchange.send(&mut self.rng);
        if self.rng.f64() < self.loss || (self.heard.is_none() && self.rng.u8(0..4) != 0) {
            return;
        }
        if let Some(heard) = self.heard.filter(|heard| *heard < sequence) {
            self.recovery
                .gap(self.now, heard..sequence, &mut self.client);
        }
        match self.rng.u8(0..200) {
            0 => self.deliver_part(sequence, message),
            _ => self.deliver(sequence, &message),
        }
        self.heard = Some(sequence + 1);
    }

    /// Delivers a message without the changes of an instrument, or without those at its end, whose
    /// instruments are unknown.
    fn deliver_part(&mut self, sequence: u64, mut message: Message) {
        if self.rng.bool() {
            let lost = self.rng.u32(0..INSTRUMENTS as u32);
            message
                .changes
                .retain(|(instrument, _)| *instrument != lost);
            self.deliver(sequence, &message);
            self.recovery.fault(lost, sequence + 1, &mut self.client);
        } else {
            let len = self.rng.usize(0..=message.changes.len());
            message.changes.truncate(len);
            self.deliver(sequence, &message);
            let range = sequence..sequence + 1;
            self.recovery.gap(self.now, range, &mut self.client);
        }
    }

    fn send_snapshot(&mut self) {
        let instrument = self.rng.usize(0..INSTRUMENTS);
        let snapshot = SentSnapshot {
            instrument: instrument as u32,
            book: self.exchange.book(instrument, self.exchange.next()),
            last_processed: self.exchange.next() - 1,
            made: self.now,
            due: self.now + self.rng.u64(0..40),
        };
        for _ in 0..self.rng.usize(0..3) {
            self.snapshots.push_back(snapshot);
        }
    }

    fn take_snapshots(&mut self) {
        for _ in 0..self.snapshots.len() {
            let Some(snapshot) = self.snapshots.pop_front() else {
                return;
            };
            if snapshot.due > self.now {
                self.snapshots.push_back(snapshot);
                continue;
            }
            // By the configuration none is older.
            if self.now - snapshot.made >= SNAPSHOT_AGE {
                continue;
            }
            let Book { rpt_seq, value } = snapshot.book;
            let snapshot = Snapshot {
                instrument: snapshot.instrument,
                rpt_seq: Some(rpt_seq),
                last_processed: self.with_last.then_some(snapshot.last_processed as u32),
                items: &[Item { rpt_seq, value }],
            };
            self.recovery
                .snapshot(self.now, snapshot, &mut self.client)
                .unwrap();
        }
    }

    /// Responds to a replay for a part of the missing messages.
    fn replay(&mut self) {
        let ranges: Vec<_> = self.recovery.missing().ranges().collect();
        let Some(range) = self.rng.choice(ranges) else {
            return;
        };
        let from = self.rng.u64(range.clone());
        let to = self.rng.u64(from..range.end) + 1;
        for sequence in from..to {
            let index = (sequence - self.exchange.base) as usize;
            let message = self.exchange.messages[index].clone();
            self.deliver(sequence, &message);
        }
        self.recovery.replayed(from..to, &mut self.client);
    }

    fn reset(&mut self) {
        let base = (self.exchange.next() | 0xffff_ffff) + 1 + self.rng.u64(0..3);
        self.exchange = Exchange::new(base, INSTRUMENTS);
        self.heard = Some(base);
        self.recovery.reset(self.now, base, &mut self.client);
    }

    fn distrust(&mut self) {
        let (key, exchange) = (self.rng.u64(..), &mut self.exchange);
        exchange.mean_otherwise(key);
        for snapshot in &mut self.snapshots {
            let next = snapshot.last_processed + 1;
            if next >= exchange.base {
                snapshot.book = exchange.book(snapshot.instrument as usize, next);
            }
        }
        self.recovery.distrust(self.now, &mut self.client);
        let mut states = self.client.states.values();
        assert!(states.all(|state| matches!(state, State::Recovering(_))));
    }

    fn check(&mut self) {
        for (&instrument, &state) in &self.client.states {
            assert_eq!(self.recovery.state(instrument), Some(state));
            if state != State::Live {
                continue;
            }
            self.lives += 1;
            let book = self
                .client
                .books
                .get(&instrument)
                .copied()
                .unwrap_or_default();
            let exchange = &self.exchange.books;
            let same = exchange.iter().map(|books| books[instrument as usize]);
            assert!(same.clone().any(|same| same == book), "{book:?} never was");
            let told = self.exchange.book(instrument as usize, self.heard.unwrap());
            assert!(
                book.rpt_seq >= told.rpt_seq,
                "{book:?} is live, told was {told:?}"
            );
        }
    }

    fn step(&mut self, resets: bool) {
        self.now += 1;
        match self.rng.u32(0..1_000) {
            0..600 => self.message(),
            600..800 => self.send_snapshot(),
            800..860 => self.replay(),
            860..862 if resets => self.reset(),
            862..866 => {
                let instrument = self.rng.u32(0..INSTRUMENTS as u32);
                self.recovery.fault(instrument, 0, &mut self.client);
            }
            866..868 => self.distrust(),
            _ => self.take_snapshots(),
        }
        self.check();
    }
}

fn run(seed: u64) -> (u64, RecoveryStats) {
    let mut world = World::new(seed);
    let resets = world.with_last || world.numbering == Numbering::Channel;
    for _ in 0..1_500 {
        world.step(resets);
    }
    let stats = world.recovery.stats();
    assert_eq!(stats.dropped, world.client.dropped, "each is handed over");
    (world.lives, stats)
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn what_is_live_equals_the_exchange_and_lacks_nothing() {
    let seeds = match number("FANFARE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("FANFARE_SEEDS").unwrap_or(200),
    };
    let count = seeds.end - seeds.start;
    let (mut lives, mut taken, mut recovered) = (0, 0, 0);
    for seed in seeds {
        let outcome = std::panic::catch_unwind(|| run(seed));
        let (live, stats) = outcome.unwrap_or_else(|_| panic!("FANFARE_SEED={seed}: see above"));
        lives += live;
        taken += stats.snapshots_taken;
        recovered += stats.recovered;
    }
    if count >= 100 {
        // Some books do recover.
        assert!(lives > 1_000 * count, "{lives}");
        assert!(taken.min(recovered) > 20 * count, "{taken}, {recovered}");
    }
}

/// Without loss a joined channel recovers completely, whatever the snapshots did.
#[test]
fn all_are_live_in_the_end_if_snapshots_come_and_nothing_is_lost() {
    for seed in 0..100 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step(false);
        }
        world.loss = 0.0;
        for _ in 0..600 {
            world.step(false);
        }
        let next = world.exchange.next();
        for instrument in 0..INSTRUMENTS {
            let Some(state) = world.recovery.state(instrument as u32) else {
                continue;
            };
            let Book { rpt_seq, value } = world.exchange.book(instrument, next);
            let last_processed = world.with_last.then_some((next - 1) as u32);
            let (instrument, items) = (instrument as u32, &[Item { rpt_seq, value }]);
            let snapshot = Snapshot {
                instrument,
                rpt_seq: Some(rpt_seq),
                last_processed,
                items,
            };
            for _ in 0..2 {
                world.now += 100;
                let (recovery, client) = (&mut world.recovery, &mut world.client);
                recovery.snapshot(world.now, snapshot, client).unwrap();
            }
            let after = world.recovery.state(instrument);
            assert_eq!(after, Some(State::Live), "seed {seed}, was {state:?}");
        }
    }
}
