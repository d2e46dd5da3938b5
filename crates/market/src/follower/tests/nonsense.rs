//! Tests of packets that cannot be read, which may be of the channel or not.

use super::*;

/// Returns a feed of one line that has brought its first message, and then `unknown` packets that
/// cannot be read.
fn with_unknown(numbering: Numbering, unknown: usize) -> Feed {
    let mut feed = Feed::new(1, Preamble::None, numbering);
    feed.bring(Line::A, &message(1, &[bid(0, FIRST, 1, 50)]));
    for _ in 0..unknown {
        feed.bring(Line::A, UNKNOWN);
    }
    feed
}

#[test]
fn packets_that_were_not_of_the_channel_leave_nothing_missing_behind_the_next_message() {
    let mut feed = with_unknown(Numbering::Instrument, 3);
    assert_eq!(missing(feed.follower.market()), [(2, 5)]);
    assert!(matches!(feed.state(FIRST), Some(State::Recovering(_))));
    // An edge, which cannot take back what it counts as missing, is told of one message.
    assert_eq!(feed.follower.last_number(), Some(2));
    // A message that comes again shows nothing.
    feed.bring(Line::A, &message(1, &[bid(0, FIRST, 1, 50)]));
    assert_eq!(missing(feed.follower.market()), [(2, 5)]);
    feed.bring(Line::A, &message(2, &[bid(1, FIRST, 2, 51)]));
    assert_eq!(missing(feed.follower.market()), []);
    assert_eq!(feed.state(FIRST), Some(State::Live));
    feed.bring(Line::A, &message(3, &[bid(1, FIRST, 3, 52)]));
    assert_eq!(feed.state(FIRST), Some(State::Live));
    assert_eq!(feed.follower.last_number(), Some(3));
}

#[test]
fn packets_of_which_one_was_of_the_channel_leave_that_one_missing() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let mut feed = with_unknown(numbering, 3);
        feed.bring(Line::A, &message(3, &[bid(1, SECOND, 1, 51)]));
        assert_eq!(missing(feed.follower.market()), [(2, 3)]);
        assert_eq!(feed.follower.last_number(), Some(3));
    }
}

#[test]
fn a_message_that_was_requested_before_it_was_sent_is_requested_again_once_it_is_lost() {
    let mut feed = with_unknown(Numbering::Instrument, 1);
    for _ in 0..ReplayConfig::default().attempts {
        assert_eq!(feed.follower.poll_request(0), Some(2..3));
        feed.follower.replay_done();
    }
    assert_eq!(feed.follower.poll_request(0), None);
    feed.bring(Line::A, &message(3, &[bid(1, FIRST, 3, 52)]));
    feed.replay_second(&[message(2, &[bid(1, FIRST, 2, 51)])]);
    assert_eq!(missing(feed.follower.market()), []);
    assert_eq!(feed.state(FIRST), Some(State::Live));
}

#[test]
fn a_message_that_a_replay_has_brought_is_not_taken_back() {
    for numbering in [Numbering::Instrument, Numbering::Channel] {
        let mut feed = Feed::new(2, Preamble::None, numbering);
        feed.bring(Line::A, &message(1, &[trade(FIRST, 1)]));
        if numbering == Numbering::Channel {
            feed.show(FIRST, 1);
        }
        let before = feed.trades;
        for _ in 0..3 {
            feed.bring(Line::A, UNKNOWN);
        }
        assert_eq!(feed.follower.poll_request(0), Some(2..5));
        feed.replay(3, &[message(3, &[trade(FIRST, 3)])]);
        for number in [2, 3, 4] {
            feed.bring(Line::B, &message(number, &[trade(FIRST, number)]));
            assert_eq!(feed.follower.stats().repeated, u64::from(number > 2));
        }
        assert_eq!((feed.trades - before, feed.missing()), (3, vec![]));
        assert_eq!(feed.follower.last_number(), Some(4));
    }
}

#[test]
fn what_comes_beside_the_channel_precedes_a_message_that_was_not_sent_yet() {
    let mut feed = Feed::new(1, Preamble::None, Numbering::Instrument);
    feed.bring(Line::A, &limit(1, 50, 17));
    for _ in 0..3 {
        feed.bring(Line::A, UNKNOWN);
    }
    feed.bring_beside(&status(9, 2));
    feed.bring(Line::A, &status(2, 18));
    assert_eq!(known(&feed), (50, 18));
}
