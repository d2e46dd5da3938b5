//! Tests of feeds that several gateways publish, with gaps and gateways far behind.

use super::*;
use proptest::prelude::*;

fn of(number: u64, epoch: u64) -> Identity<'static> {
    Identity {
        channel: b"feed",
        epoch,
        number,
        index: 0,
    }
}

fn take(channels: &mut Channels, identity: Identity<'_>, origin: u64) -> Verdict {
    let looked = channels.look(&identity, origin);
    let verdict = channels.take(&identity, origin);
    assert_eq!(looked, verdict);
    verdict
}

#[test]
fn the_first_wins_and_the_second_fills() {
    let mut channels = Channels::default();
    let mut take = |number, origin| take(&mut channels, of(number, number), origin);
    assert_eq!(take(1, 7), Verdict::New);
    assert_eq!(take(1, 8), Verdict::Before);
    assert_eq!(take(3, 7), Verdict::New);
    assert_eq!(take(2, 8), Verdict::New, "the first had lost it");
    assert_eq!(take(3, 8), Verdict::Before);
    assert_eq!(take(4, 8), Verdict::New);
    assert_eq!(take(4, 7), Verdict::Before);
}

#[test]
fn a_number_that_comes_again_with_other_content_is_another_message() {
    let mut channels = Channels::default();
    let mut take = |number, epoch, origin| take(&mut channels, of(number, epoch), origin);
    for run in 1..=5 {
        for number in 1..=13 {
            let epoch = run * 100 + number;
            assert_eq!(take(number, epoch, 7), Verdict::New);
            // The second is a cycle behind, and has lost a number.
            if run > 1 && number != 5 {
                assert_eq!(take(number, epoch - 100, 8), Verdict::Before);
            }
        }
    }
}

#[test]
fn one_gateway_may_say_the_same_twice() {
    let mut channels = Channels::default();
    let mut take = |origin| take(&mut channels, of(1, 1), origin);
    assert_eq!([take(7), take(7)], [Verdict::New; 2]);
    assert_eq!([take(8), take(8)], [Verdict::Before; 2]);
    assert_eq!([take(8), take(7)], [Verdict::New, Verdict::Before]);
    (0..1_000).for_each(|_| assert_eq!(take(7), Verdict::New));
}

#[test]
fn channels_and_indices_are_told_apart() {
    let mut channels = Channels::default();
    for (index, channel) in [(0, &b"a"[..]), (1, b"a"), (0, b"b")] {
        let identity = Identity {
            channel,
            index,
            ..of(1, 1)
        };
        assert_eq!(take(&mut channels, identity, 7), Verdict::New);
        assert_eq!(take(&mut channels, identity, 8), Verdict::Before);
    }
}

#[test]
fn a_feed_is_shared_while_another_gateway_publishes_it() {
    let mut channels = Channels::default();
    let shared = |channels: &Channels, number| channels.are_shared(&of(number, 1), 8);
    for number in 1..=10 {
        take(&mut channels, of(number, 1), 8);
        assert_eq!(shared(&channels, number), number > 1);
        take(&mut channels, of(number, 1), 7);
    }
    // The first is stopped.
    let last = 10 + SILENT;
    for number in 11..last {
        take(&mut channels, of(number, 1), 8);
    }
    assert!(shared(&channels, last));
    take(&mut channels, of(last, 1), 8);
    assert!(!shared(&channels, last + 1));
    // It is started again, under another origin.
    take(&mut channels, of(last, 1), 9);
    assert!(shared(&channels, last + 1));
}

#[test]
fn only_what_others_have_delivered_fills_a_hole() {
    let mut channels = Channels::default();
    let reached = |channels: &Channels, number| channels.is_reached_by_another(b"feed", 7, number);
    take(&mut channels, of(5, 1), 7);
    assert!(!reached(&channels, 3) && !reached(&channels, 0));
    take(&mut channels, of(4, 1), 8);
    assert!(reached(&channels, 4) && !reached(&channels, 5));
    assert!(!channels.is_reached_by_another(b"other", 7, 0));
}

#[test]
fn a_hole_of_numbers_that_begin_again_is_not_filled_by_those_before() {
    let mut channels = Channels::default();
    for origin in [7, 8] {
        for number in 1..=9 {
            take(&mut channels, of(number, 1), origin);
        }
    }
    assert!(channels.is_reached_by_another(b"feed", 7, 3));
    take(&mut channels, of(1, 2), 7);
    assert!(!channels.is_reached_by_another(b"feed", 7, 3));
    for number in 1..=4 {
        take(&mut channels, of(number, 2), 8);
    }
    assert!(channels.is_reached_by_another(b"feed", 7, 3));
}

#[test]
fn a_hole_is_not_filled_by_who_was_heard_last_in_the_run_before() {
    let mut channels = Channels::default();
    for origin in [7, 8] {
        for number in 1..=300 {
            take(&mut channels, of(number, 1), origin);
        }
    }
    for number in (1..=500).filter(|number| !(201..=203).contains(number)) {
        take(&mut channels, of(number, 2), 7);
    }
    assert!(!channels.is_reached_by_another(b"feed", 7, 203));
    assert_eq!(take(&mut channels, of(500, 2), 8), Verdict::Before);
    assert!(channels.is_reached_by_another(b"feed", 7, 203));
}

#[test]
fn a_feed_of_one_gateway_beside_a_shared_one_may_be_what_is_missing() {
    let mut channels = Channels::default();
    for origin in [7, 8] {
        take(&mut channels, of(1, 1), origin);
    }
    let alone = Identity {
        channel: b"alone",
        ..of(1, 1)
    };
    take(&mut channels, alone, 8);
    assert!(channels.are_shared(&of(2, 1), 7));
    assert!(!channels.are_shared(&of(2, 1), 8));
    assert!(!channels.are_shared(&alone, 8));
    assert!(!channels.are_shared(&Identity::default(), 7));
}

#[test]
fn who_is_behind_by_more_than_is_remembered_brings_nothing_old() {
    let mut channels = Channels::default();
    let mut take = |number, origin| take(&mut channels, of(number, number), origin);
    assert_eq!([take(1, 7), take(1, 8)], [Verdict::New, Verdict::Before]);
    let far = 3 * WINDOW as u64;
    for number in 2..=far {
        assert_eq!(take(number, 7), Verdict::New);
    }
    assert_eq!(take(2, 8), Verdict::Behind);
    assert_eq!(take(far - 1, 8), Verdict::Before, "it has caught up");
    assert_eq!(take(far, 8), Verdict::Before);
    assert_eq!(take(far + 1, 8), Verdict::New);
    for number in far + 2..=2 * far {
        assert_eq!(take(number, 7), Verdict::New);
    }
    assert_eq!(take(1, 8), Verdict::New, "its numbers begin again");
    assert_eq!(take(2, 8), Verdict::New);
    assert_eq!(take(2 * far + 9, 8), Verdict::New);
}

/// Returns the memory of a channel whose first gateway has ended at 10,000, when the second one had
/// not been heard since 100. Both had the numbers of one run.
fn after_one_run() -> Channels {
    let mut channels = Channels::of_window(64);
    for origin in [7, 8] {
        for number in 1..=100 {
            take(&mut channels, of(number, number), origin);
        }
    }
    for number in 101..=10_000 {
        assert_eq!(take(&mut channels, of(number, number), 7), Verdict::New);
    }
    channels
}

/// Returns a message of the run after [`after_one_run`].
fn of_next_run(number: u64) -> Identity<'static> {
    of(number, 20_000 + number)
}

#[test]
fn who_comes_back_higher_beside_a_new_gateway_is_not_behind() {
    let mut channels = after_one_run();
    for number in 1..=150 {
        assert_eq!(take(&mut channels, of_next_run(number), 9), Verdict::New);
    }
    // The new gateway loses one in ten, which the other one alone brings.
    for number in 151..=400 {
        let verdict = take(&mut channels, of_next_run(number), 8);
        assert_eq!(verdict, Verdict::New, "{number}");
        if !number.is_multiple_of(10) {
            let verdict = take(&mut channels, of_next_run(number), 9);
            assert_eq!(verdict, Verdict::Before, "{number}");
        }
    }
}

#[test]
fn who_comes_back_higher_and_alone_is_behind_for_a_while_only() {
    let mut channels = after_one_run();
    let mut take_at = |time, number| {
        channels.set_time(time);
        take(&mut channels, of_next_run(number), 8)
    };
    assert_eq!(take_at(1, 200), Verdict::Behind);
    assert_eq!(take_at(ALONE, 201), Verdict::Behind);
    for number in 202..=500 {
        assert_eq!(take_at(ALONE + 1, number), Verdict::New, "{number}");
    }
}

#[test]
fn who_is_behind_one_that_brings_more_stays_behind() {
    let mut channels = after_one_run();
    for step in 1..=5 {
        channels.set_time(step * ALONE / 2);
        let ahead = of(10_000 + step, 10_000 + step);
        assert_eq!(take(&mut channels, ahead, 7), Verdict::New);
        let old = of(100 + step, 100 + step);
        assert_eq!(take(&mut channels, old, 8), Verdict::Behind);
    }
}

/// Returns the number of messages that are lost though one of two gateways has them, and the number
/// of those that come twice. The feed repeats 13 equal messages in 1,000 cycles. Each gateway lacks
/// `lacking` of 1,000 messages. Chance decides which gateway is first.
fn of_cycles(lacking: u64, has_times: bool) -> (usize, usize) {
    let mut channels = Channels::of_window(WINDOW);
    let (mut lost, mut doubled) = (0, 0);
    for cycle in 0..1_000_u64 {
        let sent = match has_times {
            true => hash_of(&cycle.to_le_bytes()),
            false => 0,
        };
        for number in 1..=13 {
            let message = of(number, epoch_at(epoch(b"W", b"268=0\x01"), sent));
            let draw = |of_what| mix(mix(mix(lacking, cycle), number), of_what) % 1_000;
            let mut order = [7, 8];
            order.rotate_left((draw(0) % 2) as usize);
            let has = order.into_iter().filter(|origin| draw(*origin) >= lacking);
            let verdicts: Vec<_> = has.map(|o| take(&mut channels, message, o)).collect();
            let taken = verdicts.iter().filter(|v| **v == Verdict::New).count();
            lost += usize::from(taken == 0 && !verdicts.is_empty());
            doubled += taken.saturating_sub(1);
        }
    }
    (lost, doubled)
}

#[test]
fn equal_messages_of_two_runs_are_distinguished_by_their_times() {
    // Without times one gateway's loss makes a later loss of the other one permanent.
    for (lacking, lost) in [(10, 88), (50, 520)] {
        assert_eq!(of_cycles(lacking, true), (0, 0));
        assert_eq!(of_cycles(lacking, false), (lost, 0));
    }
}

/// Returns how many messages of the second publisher are taken that the first one has brought
/// before. `all` has each message with the time at which it was written; `second` is the order
/// in which the second one brings them.
fn doubled(all: &[(Identity<'static>, i64)], second: &[usize]) -> usize {
    let mut channels = Channels::of_window(1_024);
    let mut take = |at: usize, origin| {
        let (identity, written) = &all[at];
        channels.take_written(identity, origin, *written)
    };
    assert_eq!([take(0, 7), take(0, 8)], [Verdict::New, Verdict::Before]);
    for at in 1..all.len() {
        assert_eq!(take(at, 7), Verdict::New);
    }
    let verdicts = second.iter().map(|at| take(*at, 8));
    verdicts.filter(|verdict| *verdict == Verdict::New).count()
}

#[test]
fn who_catches_up_from_far_behind_brings_nothing_twice() {
    let all: Vec<_> = (1..10_000).map(|n| (of(n, n), 0)).collect();
    let second: Vec<_> = (1..all.len()).collect();
    assert_eq!(doubled(&all, &second), 0);
}

#[test]
fn who_catches_up_from_far_behind_fills_what_is_remembered() {
    let mut channels = Channels::of_window(1_024);
    let mut take = |number, origin| take(&mut channels, of(number, number), origin);
    assert_eq!([take(1, 7), take(1, 8)], [Verdict::New, Verdict::Before]);
    // Of the others the first one loses one in 100. About the last 2,000 are remembered.
    let lost = |number: &u64| number.is_multiple_of(100);
    for number in (2..10_000).filter(|number| !lost(number)) {
        assert_eq!(take(number, 7), Verdict::New);
    }
    let brought = (2..10_000).filter(|number| take(*number, 8) == Verdict::New);
    let brought: Vec<_> = brought.collect();
    assert!(brought.iter().all(lost), "{brought:?}");
    assert!((11..22).contains(&brought.len()), "{brought:?}");
}

#[test]
fn two_that_share_no_message_are_both_taken() {
    let mut channels = Channels::of_window(64);
    for number in (20..1_000).step_by(2) {
        let first = take(&mut channels, of(number, number), 7);
        let second = take(&mut channels, of(number - 19, number), 8);
        assert_eq!([first, second], [Verdict::New; 2], "{number}");
    }
}

#[test]
fn what_another_one_fills_late_does_not_show_where_a_gateway_is() {
    let mut channels = Channels::of_window(64);
    let mut take = |number, origin| take(&mut channels, of(number, number), origin);
    for origin in [7, 8, 9] {
        take(1, origin);
    }
    // The first one loses 40, which the second one brings when 64 are no longer the latest.
    (2..=70)
        .filter(|n| *n != 40)
        .for_each(|n| assert_eq!(take(n, 7), Verdict::New));
    (2..40).for_each(|n| assert_eq!(take(n, 8), Verdict::Before));
    assert_eq!(take(40, 8), Verdict::New);
    (2..=40).for_each(|n| assert_eq!(take(n, 9), Verdict::Before));
    (71..=140).for_each(|n| assert_eq!(take(n, 7), Verdict::New));
    let brought = (41..=140).filter(|n| take(*n, 9) == Verdict::New);
    assert_eq!(brought.count(), 0);
}

#[test]
fn who_is_far_behind_brings_no_message_of_a_packet_twice() {
    let of_packet = |n: u64| {
        let with = move |index| Identity { index, ..of(n, n) };
        (0..3).map(move |index| (with(index), 0))
    };
    let all: Vec<_> = (1..4_000).flat_map(of_packet).collect();
    let second: Vec<_> = (1..all.len()).collect();
    assert_eq!(doubled(&all, &second), 0);
}

#[test]
fn who_is_far_behind_brings_nothing_twice_in_another_order() {
    let all: Vec<_> = (1..10_000).map(|n| (of(n, n), 1_000 + n as i64)).collect();
    let mut second: Vec<_> = (1..all.len()).collect();
    // One of seven instances after the other, as far as they wait together.
    for waiting in second.chunks_mut(700) {
        waiting.sort_by_key(|at| (at % 7, *at));
    }
    assert_eq!(doubled(&all, &second), 0);
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut channels = Channels::default();
    for n in 0..100_u64 {
        let name = n.to_string();
        let channel = name.as_bytes();
        for origin in 1..100 {
            take(
                &mut channels,
                Identity {
                    channel,
                    ..of(n, n)
                },
                origin,
            );
        }
    }
    assert_eq!(channels.known.len(), MOST_CHANNELS);
    let one = &mut channels.known[0];
    let capacity = one.young.capacity();
    for n in 0..5 * WINDOW as u64 {
        let source = Source {
            origin: 3,
            written: 0,
            now: 0,
        };
        one.note(&of(n, 1_000 + n), source, n, Verdict::New);
    }
    assert_eq!(
        (one.young.capacity(), one.old.capacity()),
        (capacity, capacity)
    );
}

#[test]
fn an_epoch_is_of_the_whole_content() {
    let all = [
        epoch(b"X", b"1=2\x01"),
        epoch(b"W", b"1=2\x01"),
        epoch(b"X", b"1=3\x01"),
        epoch(b"X", b"1=2\x01\0"),
        epoch(b"X", b"12345678"),
        epoch(b"X", b"12345678\0"),
        epoch(b"X1", b"=2\x01"),
    ];
    for (i, one) in all.iter().enumerate() {
        assert!(!all[..i].contains(one), "{i}");
    }
}

proptest! {
    /// Checks that the messages taken are the union of both, each once, whatever either loses,
    /// and however far one is ahead.
    #[test]
    fn two_that_lose_are_one_that_loses_what_both_lost(
        lost in prop::collection::vec((any::<bool>(), any::<bool>()), 1..200),
        turns in prop::collection::vec(any::<bool>(), 400),
        cycle in 1_u64..50,
    ) {
        let of_gateway = |which: usize| {
            let all = (0..).zip(&lost);
            let has = move |lost: &(bool, bool)| !if which == 0 { lost.0 } else { lost.1 };
            all.filter(move |(_, l)| has(l)).map(|(n, _)| n).collect::<Vec<u64>>()
        };
        let streams = [of_gateway(0), of_gateway(1)];
        let (mut at, mut channels) = ([0, 0], Channels::default());
        let mut came = Vec::new();
        let rest = [false, true].map(|second| std::iter::repeat_n(second, lost.len()));
        for second in turns.into_iter().chain(rest.into_iter().flatten()) {
            let which = usize::from(second);
            let Some(&n) = streams[which].get(at[which]) else { continue };
            at[which] += 1;
            if take(&mut channels, of(n % cycle, n), 7 + which as u64) == Verdict::New {
                came.push(n);
            }
        }
        came.sort_unstable();
        let mut wanted: Vec<u64> = streams.concat();
        wanted.sort_unstable();
        wanted.dedup();
        prop_assert_eq!(came, wanted);
    }
}
