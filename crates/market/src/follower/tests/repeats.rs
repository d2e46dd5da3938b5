//! Tests of definitions that snapshot lines repeat, which may be older than what is known.

use super::*;

/// Brings a message of a snapshot line that arrives at this time.
fn bring_beside_at(feed: &mut Feed, received: u64, bytes: &[u8]) {
    let record = feed.decoded(bytes);
    feed.follower.snapshot(0, 0, received, &record, &mut |_| {});
}

#[test]
fn a_repeated_definition_does_not_undo_a_status() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring_beside(&limit(9, 50, 17));
    feed.bring(Line::A, &status(1, 2));
    feed.bring_beside(&limit(9, 50, 17));
    assert_eq!(known(&feed), (50, 2));
    // The rest of a definition may change without its status.
    feed.bring_beside(&limit(9, 60, 17));
    assert_eq!(known(&feed), (60, 2));
    feed.bring_beside(&limit(9, 60, 18));
    assert_eq!(known(&feed), (60, 18));
    // One of the channel is later than the status in front of it.
    feed.bring(Line::A, &status(2, 2));
    feed.bring(Line::A, &limit(3, 60, 18));
    assert_eq!(known(&feed), (60, 18));
}

#[test]
fn a_repeated_definition_of_a_late_message_does_not_undo_a_status() {
    let (mut feed, _) = with_late(&status(3, 19), limit(2, 60, 18));
    feed.bring_beside(&limit(9, 60, 18));
    assert_eq!(known(&feed), (60, 19));
}

#[test]
fn a_repeated_definition_opens_an_instrument_once_it_cannot_be_of_the_time_before_its_end() {
    let age = RecoveryConfig::new(Numbering::Instrument).snapshot_age;
    for (received, repeated, is_closed) in [
        (0, limit(9, 50, 17), true),
        (age - 1, limit(9, 50, 17), true),
        (2 * age, limit(9, 50, 17), false),
        (0, limit(9, 60, 17), false),
        (0, limit(9, 50, 18), false),
    ] {
        let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
        feed.bring(Line::A, &limit(1, 50, 17));
        feed.bring(Line::A, &definition(2, FIRST, b'D'));
        bring_beside_at(&mut feed, received, &repeated);
        let is_still = feed.state(FIRST) == Some(State::Closed);
        assert_eq!(is_still, is_closed, "{received}: {repeated:?}");
    }
}

#[test]
fn a_definition_behind_the_end_on_the_same_snapshot_line_opens_the_instrument() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &limit(1, 50, 17));
    feed.bring_beside(&definition(9, FIRST, b'D'));
    assert_eq!(feed.state(FIRST), Some(State::Closed));
    feed.bring_beside(&limit(9, 50, 17));
    assert_ne!(feed.state(FIRST), Some(State::Closed));
}

#[test]
fn an_instrument_that_is_defined_anew_has_the_status_of_its_definition() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &limit(1, 50, 17));
    feed.bring(Line::A, &status(2, 2));
    feed.bring_beside(&definition(9, FIRST, b'D'));
    feed.bring_beside(&limit(9, 50, 17));
    assert_eq!(known(&feed), (50, 17));
}
