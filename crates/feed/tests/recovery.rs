//! Seeded simulations: a feed of several instruments, lines that lose messages, snapshots that are
//! lost, late and repeated, replays that respond or refuse, messages that can be read only in part,
//! channels that restart. A live book equals that of the exchange, and lacks nothing that the
//! channel has sent so far.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_feed::recovery::{
    Increment, Lack, Numbering, Recovery, RecoveryConfig, RecoveryStats, Refused, Sink, Snapshot,
    State,
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

fn change(rpt_seq: u32, sequence: u64) -> Increment<Item> {
    let item = Item { rpt_seq, value: 1 };
    Increment {
        instrument: 0,
        rpt_seq,
        sequence,
        item,
    }
}

fn snapshot(rpt_seq: u32, last_processed: Option<u32>, items: &[Item]) -> Snapshot<'_, Item> {
    Snapshot {
        instrument: 0,
        rpt_seq: Some(rpt_seq),
        last_processed,
        items,
    }
}

fn item(rpt_seq: u32) -> [Item; 1] {
    [Item { rpt_seq, value: 0 }]
}

#[test]
fn a_number_that_goes_back_ends_trust_until_the_next_snapshot() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    for n in 1..=3 {
        recovery
            .increment(change(n, u64::from(n)), &mut client)
            .unwrap();
    }
    assert_eq!(recovery.state(0), Some(State::Live));
    recovery.increment(change(2, 4), &mut client).unwrap();
    let lack = State::Recovering(Lack::SnapshotAfterFault);
    assert_eq!(recovery.state(0), Some(lack));
    recovery
        .snapshot(0, snapshot(3, Some(3), &item(3)), &mut client)
        .unwrap();
    assert_eq!(recovery.state(0), Some(lack), "has the earlier numbers");
    recovery
        .snapshot(0, snapshot(2, Some(4), &item(2)), &mut client)
        .unwrap();
    recovery.increment(change(3, 5), &mut client).unwrap();
    assert_eq!(recovery.state(0), Some(State::Live));
    assert_eq!(recovery.stats().jumped_back, 1);
}

const AGE: u64 = 10_000_000_000;

/// Returns a recovery of an instrument with a book of message 98 and the change of message 99.
fn with_a_book(numbering: Numbering) -> (Recovery<Item>, Client) {
    let mut recovery = Recovery::new(RecoveryConfig::new(numbering));
    let mut client = Client::default();
    recovery.see(98, &mut client);
    recovery
        .snapshot(0, snapshot(4, Some(98), &item(4)), &mut client)
        .unwrap();
    recovery.increment(change(5, 99), &mut client).unwrap();
    (recovery, client)
}

#[test]
fn a_snapshot_that_precedes_a_lost_change_is_not_taken() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let (mut recovery, mut client) = with_a_book(numbering);
        assert_eq!(recovery.state(0), Some(State::Live));
        recovery.see(100, &mut client);
        recovery.fault(0, 101, &mut client);
        recovery
            .snapshot(0, snapshot(5, Some(99), &item(5)), &mut client)
            .unwrap();
        let lack = State::Recovering(Lack::SnapshotAfterFault);
        assert_eq!(recovery.state(0), Some(lack), "{numbering:?}");
        recovery
            .snapshot(0, snapshot(6, Some(100), &item(6)), &mut client)
            .unwrap();
        assert_eq!(recovery.state(0), Some(State::Live), "{numbering:?}");
    }
}

#[test]
fn a_snapshot_without_its_message_is_taken_when_it_must_have_the_lost_change() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.increment(change(1, 1), &mut client).unwrap();
    recovery
        .snapshot(0, snapshot(1, None, &item(1)), &mut client)
        .unwrap();
    recovery.see(2, &mut client);
    recovery.fault(0, 3, &mut client);
    for now in [2 * AGE, 3 * AGE - 1] {
        recovery
            .snapshot(now, snapshot(1, None, &item(1)), &mut client)
            .unwrap();
        let lack = State::Recovering(Lack::SnapshotAfterFault);
        assert_eq!(recovery.state(0), Some(lack));
    }
    recovery
        .snapshot(3 * AGE, snapshot(2, None, &item(2)), &mut client)
        .unwrap();
    assert_eq!(recovery.state(0), Some(State::Live));
    // A later loss is judged on its own, and gaps do not prolong the wait.
    recovery.gap(4 * AGE, 3..4, &mut client);
    recovery.increment(change(4, 5), &mut client).unwrap();
    recovery
        .snapshot(4 * AGE, snapshot(4, None, &item(4)), &mut client)
        .unwrap();
    let lack = State::Recovering(Lack::Certainty(4));
    assert_eq!(recovery.state(0), Some(lack));
    recovery.distrust(5 * AGE, &mut client);
    recovery.fault(0, 6, &mut client);
    recovery
        .snapshot(6 * AGE, snapshot(4, None, &item(4)), &mut client)
        .unwrap();
    recovery.gap(7 * AGE - 1, 9..10, &mut client);
    recovery
        .snapshot(7 * AGE, snapshot(5, None, &item(5)), &mut client)
        .unwrap();
    assert_ne!(
        recovery.state(0),
        Some(State::Recovering(Lack::SnapshotAfterFault))
    );
}

#[test]
fn a_change_that_comes_again_is_passed_on_once() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.increment(change(1, 1), &mut client).unwrap();
    recovery.increment(change(2, 2), &mut client).unwrap();
    recovery.gap(0, 2..3, &mut client);
    recovery.increment(change(2, 2), &mut client).unwrap();
    let lines = client
        .log
        .iter()
        .filter(|line| line.starts_with("superseded"));
    assert_eq!(lines.count(), 0, "{:?}", client.log);
    assert_eq!(recovery.stats().superseded, 1);
}

#[test]
fn an_instrument_whose_first_change_is_lost_waits_for_a_snapshot() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.see(1, &mut client);
    recovery.fault(0, 2, &mut client);
    recovery
        .snapshot(0, snapshot(0, Some(0), &[]), &mut client)
        .unwrap();
    let lack = State::Recovering(Lack::SnapshotAfterFault);
    assert_eq!(recovery.state(0), Some(lack));
}

#[test]
fn a_message_that_arrived_in_part_is_not_trusted() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let (mut recovery, mut client) = with_a_book(numbering);
        recovery.gap(0, 99..100, &mut client);
        assert_ne!(recovery.state(0), Some(State::Live), "{numbering:?}");
        // A replay has the whole of it.
        recovery.increment(change(5, 99), &mut client).unwrap();
        recovery.increment(change(6, 99), &mut client).unwrap();
        recovery.replayed(99..100, &mut client);
        if numbering == Numbering::Channel {
            assert_ne!(recovery.state(0), Some(State::Live));
            recovery
                .snapshot(0, snapshot(6, Some(99), &item(6)), &mut client)
                .unwrap();
        }
        assert_eq!(recovery.state(0), Some(State::Live), "{numbering:?}");
        assert_eq!(client.books[&0].rpt_seq, 6);
        assert_eq!(recovery.stats().jumped_back, 0);
    }
}

#[test]
fn a_gap_does_not_prolong_the_time_after_a_reset() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.increment(change(1, 1), &mut client).unwrap();
    let first = 1 << 32;
    recovery.reset(0, first, &mut client);
    recovery.gap(AGE - 1, first..first + 3, &mut client);
    recovery
        .snapshot(AGE, snapshot(5, Some(2), &item(5)), &mut client)
        .unwrap();
    assert_eq!(recovery.stats().snapshots_unusable, 0);
    assert_eq!(recovery.state(0), Some(State::Live));
}

#[test]
fn a_snapshot_from_in_front_of_a_reset_is_not_taken() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery
        .increment(change(226_148, 482_727), &mut client)
        .unwrap();
    recovery.reset(0, (1 << 32) + 1, &mut client);
    let late = snapshot(226_148, Some(482_727), &[]);
    recovery.snapshot(1, late, &mut client).unwrap();
    assert_eq!(recovery.stats().snapshots_unusable, 1);
    recovery
        .increment(change(1, (1 << 32) + 1), &mut client)
        .unwrap();
    assert_eq!(recovery.state(0), Some(State::Live));
}

#[test]
fn a_live_book_waits_for_changes_that_a_snapshot_is_ahead_of() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.increment(change(1, 1), &mut client).unwrap();
    recovery
        .snapshot(0, snapshot(2, Some(2), &item(2)), &mut client)
        .unwrap();
    recovery.increment(change(2, 2), &mut client).unwrap();
    assert!(!client.log.iter().any(|line| line.starts_with("snapshot")));
    // Number 3 is lost and no message follows it: the second snapshot is taken.
    recovery
        .snapshot(1, snapshot(3, Some(3), &item(3)), &mut client)
        .unwrap();
    recovery
        .snapshot(2, snapshot(3, Some(3), &item(3)), &mut client)
        .unwrap();
    assert_eq!(client.log.last().map(String::as_str), Some("snapshot 3"));
    assert_eq!(recovery.position(0), Some(3));
}

#[test]
fn changes_without_room_are_counted_and_a_snapshot_behind_them_helps() {
    let config = RecoveryConfig {
        most_held_each: 2,
        ..RecoveryConfig::new(Numbering::Instrument)
    };
    let mut recovery = Recovery::new(config);
    let mut client = Client::default();
    for n in 10..14 {
        recovery
            .increment(change(n, u64::from(n)), &mut client)
            .unwrap();
    }
    let stats = recovery.stats();
    assert_eq!((stats.overflows, stats.dropped, stats.held), (1, 3, 1));
    let dropped = ["dropped 10", "dropped 11", "dropped 12"];
    assert_eq!(client.log[2..5], dropped);
    recovery
        .snapshot(0, snapshot(11, Some(11), &item(11)), &mut client)
        .unwrap();
    assert_eq!(recovery.stats().snapshots_old, 1, "12 was dropped");
    recovery
        .snapshot(0, snapshot(12, Some(12), &item(12)), &mut client)
        .unwrap();
    assert_eq!(recovery.state(0), Some(State::Live));
    assert_eq!(recovery.position(0), Some(13));
}

#[test]
fn instruments_beyond_the_limit_are_refused_and_counted() {
    let config = RecoveryConfig {
        most_instruments: 1,
        ..RecoveryConfig::new(Numbering::Instrument)
    };
    let mut recovery = Recovery::new(config);
    let mut client = Client::default();
    let beyond = Increment {
        instrument: 1,
        ..change(1, 1)
    };
    let refused = recovery.increment(beyond, &mut client);
    assert_eq!(refused, Err(Refused::TooManyInstruments(1)));
    assert_eq!(recovery.stats().refused, 1);
}

#[test]
fn silence_makes_live_books_stale_and_speech_live_again() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.increment(change(1, 1), &mut client).unwrap();
    recovery.silence(true, &mut client);
    assert_eq!(recovery.state(0), Some(State::Stale));
    recovery.silence(false, &mut client);
    recovery.close(0, Some(1), &mut client);
    let states = ["clear", "apply 1", "live", "stale", "live", "closed"];
    assert_eq!(client.log, states);
}

fn told(work: impl FnOnce(&mut Recovery<Item>, &mut Client)) -> Vec<String> {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    work(&mut recovery, &mut client);
    client.log
}

fn take(recovery: &mut Recovery<Item>, client: &mut Client, rpt_seqs: &[u32]) {
    for &rpt_seq in rpt_seqs {
        let change = change(rpt_seq, u64::from(rpt_seq));
        recovery.increment(change, client).unwrap();
    }
}

#[test]
fn a_book_that_is_empty_at_the_start_begins_with_a_clear() {
    let behind = told(|recovery, client| take(recovery, client, &[3, 4]));
    assert_eq!(behind, ["clear", "recovering: RptSeq 1 to 2 are missing"]);
    let empty = told(|recovery, client| {
        recovery.see(1, client);
        for _ in 0..2 {
            let empty = snapshot(0, Some(1), &[]);
            recovery.snapshot(0, empty, client).unwrap();
        }
        recovery.increment(change(1, 2), client).unwrap();
    });
    assert_eq!(empty, ["clear", "live", "apply 1"]);
    let shown = told(|recovery, client| {
        recovery.see(3, client);
        recovery
            .snapshot(0, snapshot(3, Some(3), &item(3)), client)
            .unwrap();
        take(recovery, client, &[4]);
    });
    assert_eq!(shown, ["snapshot 3", "live", "apply 4"]);
    let closed = told(|recovery, client| {
        recovery.close(0, Some(0), client);
        take(recovery, client, &[1, 2]);
    });
    assert_eq!(closed, ["closed", "clear", "apply 1", "apply 2"]);
}

#[test]
fn a_closed_instrument_stays_closed_until_it_is_open_again() {
    let mut recovery = Recovery::new(RecoveryConfig::new(Numbering::Instrument));
    let mut client = Client::default();
    recovery.close(0, Some(0), &mut client);
    assert_eq!(client.log, ["closed"], "nothing of it was received");
    recovery.increment(change(1, 1), &mut client).unwrap();
    recovery.fault(0, 0, &mut client);
    recovery.reset(0, 5, &mut client);
    recovery.close(0, Some(5), &mut client);
    assert_eq!(recovery.state(0), Some(State::Closed));
    recovery.open(0, 4, &mut client);
    assert_eq!(recovery.state(0), Some(State::Closed));
    recovery.open(0, 5, &mut client);
    assert_eq!(recovery.state(0), Some(State::Recovering(Lack::Snapshot)));
    recovery.increment(change(1, 5), &mut client).unwrap();
    recovery.open(0, 5, &mut client);
    recovery.close(0, Some(4), &mut client);
    assert_eq!(recovery.state(0), Some(State::Live));
    let states = client.log.iter().filter(|line| *line == "closed");
    assert_eq!(states.count(), 1);
}
