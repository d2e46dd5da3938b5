//! Tests of books that begin anew, and of books that need no snapshot.

use super::*;

#[derive(Default)]
struct Log(Vec<String>);

impl Sink<&'static str> for Log {
    fn apply(&mut self, _: u32, change: &&'static str) {
        self.0.push(format!("apply {change}"));
    }

    fn superseded(&mut self, _: u32, change: &&'static str) {
        self.0.push(format!("superseded {change}"));
    }

    fn dropped(&mut self, _: u32, change: &&'static str) {
        self.0.push(format!("dropped {change}"));
    }

    fn snapshot(&mut self, _: u32, _: &[&'static str]) {
        self.0.push("snapshot".into());
    }

    fn clear(&mut self, _: u32) {
        self.0.push("clear".into());
    }

    fn state(&mut self, _: u32, state: State) {
        self.0.push(state.to_string());
    }
}

/// A recovery of one instrument with its log.
struct World {
    recovery: Recovery<&'static str>,
    log: Log,
}

impl World {
    /// Returns a recovery that has the changes 1 to 20 of the messages 1 to 20, and lacks the
    /// messages 21 to 23.
    fn with_a_gap() -> Self {
        let mut world = Self::new(Numbering::Instrument);
        (1..=20).for_each(|n| world.change(n, n.into(), "old"));
        world.recovery.gap(0, 21..24, &mut world.log);
        world
    }

    fn new(numbering: Numbering) -> Self {
        Self {
            recovery: Recovery::new(RecoveryConfig::new(numbering)),
            log: Log::default(),
        }
    }

    fn change(&mut self, rpt_seq: u32, sequence: u64, item: &'static str) {
        let change = Increment {
            instrument: 0,
            rpt_seq,
            sequence,
            item,
        };
        self.recovery.increment(change, &mut self.log).unwrap();
    }

    fn snapshot(&mut self, rpt_seq: u32, last: u32) {
        let snapshot = Snapshot {
            instrument: 0,
            rpt_seq: Some(rpt_seq),
            last_processed: Some(last),
            items: &[],
        };
        self.recovery.snapshot(0, snapshot, &mut self.log).unwrap();
    }

    /// Checks that late changes of the book before this one are passed on as superseded, whether
    /// RptSeq(83) is the next, is ahead, or is that of a change in the book.
    fn check_late(&mut self) {
        self.log.0.clear();
        let (at, before) = (self.recovery.position(0), self.recovery.stats());
        for (rpt_seq, sequence) in [(21, 21), (95, 22), (3, 23)] {
            self.change(rpt_seq, sequence, "late");
        }
        self.recovery.replayed(21..24, &mut self.log);
        assert_eq!(self.log.0, ["superseded late"; 3]);
        assert_eq!(self.recovery.state(0), Some(State::Live));
        assert_eq!(self.recovery.position(0), at);
        let stats = self.recovery.stats();
        assert_eq!((stats.superseded, stats.held), (before.superseded + 3, 0));
    }
}

#[test]
fn a_book_is_ahead_until_the_messages_of_its_snapshot_have_arrived() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let mut world = World::new(numbering);
        assert!(!world.recovery.is_ahead(0));
        world.change(90, 10, "old");
        world.snapshot(95, 12);
        assert!(world.recovery.is_ahead(0), "{numbering:?}");
        world.recovery.see(11, &mut world.log);
        assert!(world.recovery.is_ahead(0), "{numbering:?}");
        world.recovery.see(12, &mut world.log);
        assert!(!world.recovery.is_ahead(0), "{numbering:?}");
        world.change(96, 13, "new");
        assert!(!world.recovery.is_ahead(0), "{numbering:?}");
    }
}

#[test]
fn a_snapshot_without_a_number_does_not_contain_messages_that_were_not_sent_yet() {
    let mut world = World::new(Numbering::Instrument);
    world.change(1, 1, "old");
    world.recovery.gap(0, 2..5, &mut world.log);
    let snapshot = Snapshot {
        instrument: 0,
        rpt_seq: Some(1),
        last_processed: None,
        items: &[],
    };
    let age = world.recovery.config.snapshot_age;
    let taken = world.recovery.snapshot(age, snapshot, &mut world.log);
    let state = world.recovery.state(0);
    assert_eq!((taken, state), (Ok(()), Some(State::Live)));
    world.recovery.take_back(3, &mut world.log);
    world.recovery.see(2, &mut world.log);
    assert_eq!(world.recovery.state(0), Some(State::Live));
    world.recovery.gap(age, 3..5, &mut world.log);
    let lack = State::Recovering(Lack::Certainty(5));
    assert_eq!(world.recovery.state(0), Some(lack));
}

#[test]
fn an_instrument_that_was_opened_among_messages_not_sent_yet_is_closed_by_one() {
    let mut world = World::new(Numbering::Instrument);
    world.change(1, 1, "old");
    world.recovery.gap(0, 2..5, &mut world.log);
    let next = world.recovery.next();
    world.recovery.open(0, next, &mut world.log);
    world.recovery.take_back(3, &mut world.log);
    world.recovery.close(0, Some(2), &mut world.log);
    assert_eq!(world.recovery.state(0), Some(State::Closed));
}

#[test]
fn late_changes_of_messages_before_a_new_definition_do_not_reach_the_book() {
    let mut world = World::with_a_gap();
    world.recovery.close(0, Some(24), &mut world.log);
    world.recovery.open(0, 25, &mut world.log);
    (1..=20).for_each(|n| world.change(n, 25 + u64::from(n), "new"));
    world.check_late();
    // One of a later message does.
    world.recovery.gap(0, 46..47, &mut world.log);
    world.change(22, 47, "new");
    world.change(21, 46, "new");
    assert_eq!(world.recovery.position(0), Some(22));
}

#[test]
fn late_changes_of_messages_before_a_number_that_went_back_do_not_reach_the_book() {
    let mut world = World::with_a_gap();
    world.change(5, 24, "new");
    world.recovery.see(39, &mut world.log);
    world.snapshot(20, 39);
    world.check_late();
    world.change(21, 40, "new");
    assert_eq!(world.recovery.position(0), Some(21));
    // A definition that comes late does not let them in again.
    world.recovery.close(0, Some(41), &mut world.log);
    world.recovery.open(0, 42, &mut world.log);
    assert!(world.recovery.precedes(0, 40) && !world.recovery.precedes(0, 41));
}

#[test]
fn late_changes_between_the_end_and_a_definition_without_a_number_reach_the_new_book() {
    let mut world = World::with_a_gap();
    world.recovery.close(0, Some(24), &mut world.log);
    world.recovery.gap(0, 25..28, &mut world.log);
    let next = world.recovery.next();
    world.recovery.open(0, next, &mut world.log);
    world.change(21, 21, "old");
    assert_eq!(world.log.0.last().unwrap(), "superseded old");
    world.change(1, 26, "new");
    world.change(2, 27, "new");
    world.recovery.replayed(21..28, &mut world.log);
    assert_eq!(world.recovery.position(0), Some(2));
    assert_eq!(world.recovery.state(0), Some(State::Live));
}

#[test]
fn an_end_that_is_repeated_does_not_begin_the_book_later() {
    for repeated in [None, Some(28)] {
        let mut world = World::with_a_gap();
        world.recovery.close(0, Some(24), &mut world.log);
        world.recovery.gap(0, 25..28, &mut world.log);
        world.recovery.close(0, repeated, &mut world.log);
        world.recovery.open(0, 29, &mut world.log);
        assert!(world.recovery.precedes(0, 23) && !world.recovery.precedes(0, 24));
    }
    // An end without a number may be of an earlier time.
    let mut world = World::with_a_gap();
    world.recovery.close(0, None, &mut world.log);
    world.recovery.open(0, 25, &mut world.log);
    assert!(!world.recovery.precedes(0, 21));
}

#[test]
fn a_channel_may_begin_again_with_lower_numbers_than_a_book() {
    for starts_with in [0, 3] {
        let mut world = World::with_a_gap();
        world.change(5, 24, "new");
        world.recovery.reset(0, starts_with, &mut world.log);
        world.log.0.clear();
        world.change(1, starts_with, "of the new run");
        assert_eq!(world.log.0, ["apply of the new run", "live"]);
    }
}

#[test]
fn a_complete_book_without_numbers_needs_no_snapshot_of_messages_that_have_come() {
    let mut world = World::new(Numbering::Channel);
    world.change(0, 50, "change");
    world.snapshot(0, 49);
    world.log.0.clear();
    for silence in [false, true] {
        world.recovery.silence(silence, &mut world.log);
        for last in 50..60 {
            world.recovery.see(last.into(), &mut world.log);
            world.snapshot(0, last);
            world.snapshot(0, last);
        }
    }
    assert_eq!(world.log.0, ["stale"]);
    world.recovery.silence(false, &mut world.log);
    // Snapshots that are ahead of the channel show what it has lost, if it does not come.
    world.snapshot(0, 60);
    world.recovery.see(60, &mut world.log);
    world.snapshot(0, 60);
    world.snapshot(0, 61);
    assert_eq!(world.log.0, ["stale", "live"]);
    world.snapshot(0, 62);
    assert_eq!(world.log.0, ["stale", "live", "snapshot"]);
    // So do those behind a gap.
    world.recovery.gap(0, 63..65, &mut world.log);
    world.snapshot(0, 63);
    assert_ne!(world.recovery.state(0), Some(State::Live));
    world.snapshot(0, 64);
    assert_eq!(world.recovery.state(0), Some(State::Live));
    let stats = world.recovery.stats();
    assert_eq!((stats.snapshots_taken, stats.snapshots_ahead), (3, 2));
}

#[test]
fn a_snapshot_that_is_known_to_be_made_after_a_reset_is_taken_at_once() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let mut world = World::new(numbering);
        world.recovery.config.starts_empty = false;
        world.change(90, 10, "old");
        let next = (1 << 32) + 5;
        world.recovery.reset(0, next, &mut world.log);
        let before = world.recovery.state(0);
        let mut take = |last_processed, is_since| {
            let snapshot = Snapshot {
                instrument: 0,
                rpt_seq: Some(3),
                last_processed,
                items: &[],
            };
            let recovery = &mut world.recovery;
            let taken = match is_since {
                true => recovery.snapshot_since_reset(1, snapshot, &mut world.log),
                false => recovery.snapshot(1, snapshot, &mut world.log),
            };
            taken.unwrap();
            let stats = recovery.stats();
            (stats.snapshots_taken, stats.snapshots_unusable)
        };
        assert_eq!(
            take(Some(4), false),
            (0, 1),
            "it may be from before the reset"
        );
        assert_eq!(
            take(Some(3), true),
            (0, 2),
            "its message is from before the reset"
        );
        assert_eq!(take(None, true), (0, 3), "its message is not known");
        assert_eq!(take(Some(1 << 20), true), (0, 4), "it is too far ahead");
        assert_eq!(take(Some(4), true), (1, 4), "{numbering:?}: {before:?}");
        assert_eq!(world.recovery.state(0), Some(State::Live));
    }
}
