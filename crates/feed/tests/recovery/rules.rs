//! The rules of recovery one by one, for one instrument.

use super::{Client, Item};
use fanfare_feed::recovery::{
    Increment, Lack, Numbering, Recovery, RecoveryConfig, Refused, Snapshot, State,
};

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
