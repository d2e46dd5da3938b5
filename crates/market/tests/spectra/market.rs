//! The recording as events, straight into a market.

use super::recording::{Changes, Recording, Snapshot, content, content_of, recording};
use super::seeds;
use fanfare_feed::recovery::{Numbering, RecoveryConfig, State};
use fanfare_market::{BookConfig, Event, InstrumentId, Market, MarketConfig};
use fastrand::Rng;
use std::collections::VecDeque;

/// A comparison of the output of a market with the truth.
struct Judge<'a> {
    recording: &'a Recording,
    market: Market,
    numbers: u64,
    /// The number of comparisons of a live book.
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

    /// Performs a step, and checks that events have numbers without a gap.
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

    fn snapshot(&mut self, now: u64, snapshot: &Snapshot) {
        self.step(|market, mut send| {
            let last = Some(snapshot.last_processed as u32);
            market.snapshot((now, 0), last, &snapshot.events, &mut send);
        });
        self.check(snapshot.events[0].instrument);
    }

    fn gap(&mut self, now: u64, from: u64, to: u64) {
        self.step(|market, mut send| market.gap(now, from..to, &mut send));
    }

    fn check(&mut self, instrument: InstrumentId) {
        if self.market.state(instrument) != Some(State::Live) {
            return;
        }
        let book = self.market.book(instrument).unwrap();
        // An event about a faulty book is no change of the feed, so its number stays.
        let key = (instrument.0, self.market.position(instrument).unwrap());
        // The obvious program has no books before the first snapshot.
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
    for snapshot in &recording.snapshots {
        while let Some(next) = changes.next_if(|next| next.sequence <= snapshot.last_processed) {
            judge.changes(next);
        }
        let (instrument, rpt_seq) = (snapshot.events[0].instrument, snapshot.events[0].rpt_seq);
        if !seen[instrument.0 as usize] {
            // The recording has no reset and no loss, so one snapshot for each suffices.
            seen[instrument.0 as usize] = true;
            judge.snapshot(0, snapshot);
        }
        if judge.market.position(instrument) == Some(rpt_seq) {
            assert_eq!(judge.market.state(instrument), Some(State::Live));
            let book = judge.market.book(instrument).unwrap();
            assert_eq!(content(book), content_of(&snapshot.events));
            equal += 1;
        } else {
            ahead += 1;
        }
    }
    // The last snapshots are after the end of the recorded changes. The first one of each of the
    // eleven instruments began its book, so 7,834 are left that result from changes.
    assert_eq!((equal, ahead), (7_834 + 11, 3));
    assert_eq!(judge.market.stats().faults, 0);
    assert!(judge.compared > 20_000, "{}", judge.compared);
}

/// Checks that books recover without snapshots by the levels that the feed sends anew.
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

/// Loses 30 % of both lines, including those of snapshots, which are also late, repeated and
/// reordered.
fn lossy(recording: &Recording, seed: u64) -> u64 {
    let mut rng = Rng::with_seed(seed);
    let mut judge = Judge::new(recording, rng.bool());
    let mut is_lost = || rng.f64() < 0.3 && rng.f64() < 0.3;
    let lost: Vec<bool> = recording.changes.iter().map(|_| is_lost()).collect();
    let kept: Vec<bool> = recording.snapshots.iter().map(|_| !is_lost()).collect();
    let (mut snapshots, mut late) = (
        recording.snapshots.iter().zip(kept).peekable(),
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
        while let Some((snapshot, is_kept)) =
            snapshots.next_if(|(snapshot, _)| snapshot.last_processed < next)
        {
            let copies = if is_kept { rng.usize(1..3) } else { 0 };
            for _ in 0..copies {
                late.push_back((snapshot, index + rng.usize(0..50)));
            }
        }
        for _ in 0..late.len() {
            match late.pop_front() {
                Some((snapshot, due)) if due <= index => judge.snapshot(now, snapshot),
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
    for seed in seeds(200) {
        let outcome = std::panic::catch_unwind(|| lossy(&recording, seed));
        let compared = outcome.unwrap_or_else(|_| panic!("FANFARE_SEED={seed}: see above"));
        assert!(compared > 1_000, "FANFARE_SEED={seed}: {compared}");
    }
}
