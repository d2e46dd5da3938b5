use crate::net::{MS, Out, drain, payload};
use fanfare_feed::{Arbiter, ArbiterConfig, Event, Gap, Line, Refusal, Start, Unit, Verdict};

const HELD: Verdict = Verdict::Held;
const DELIVER: Verdict = Verdict::Deliver { skip: 0 };

/// An arbiter with a clock that advances by 1 ms a step.
struct Scene {
    arbiter: Arbiter,
    now: u64,
    out: Vec<Out>,
}

impl Scene {
    fn new(config: ArbiterConfig) -> Self {
        Self {
            arbiter: Arbiter::new(config),
            now: 0,
            out: Vec::new(),
        }
    }

    fn packet(&mut self, line: Line, sequence: u32) -> Verdict {
        self.packet_of(line, sequence, 1)
    }

    fn packet_of(&mut self, line: Line, sequence: u32, count: u32) -> Verdict {
        self.now += MS;
        let bytes = payload(sequence, count);
        let unit = Unit {
            sequence,
            count,
            bytes: &bytes,
        };
        let verdict = self.arbiter.receive(self.now, line, unit);
        if let Verdict::Deliver { skip } = verdict {
            let got = (skip..count).map(|i| Out::Got(sequence.wrapping_add(i)));
            self.out.extend(got);
        }
        drain(&mut self.arbiter, &mut self.out);
        verdict
    }

    fn wait(&mut self, ms: u64) {
        self.now += ms * MS;
        self.arbiter.handle_timeout(self.now);
        drain(&mut self.arbiter, &mut self.out);
    }

    /// Returns the output since the last call.
    fn out(&mut self) -> Vec<Out> {
        std::mem::take(&mut self.out)
    }
}

fn scene() -> Scene {
    Scene::new(ArbiterConfig::default())
}

fn got(range: std::ops::RangeInclusive<u32>) -> Vec<Out> {
    range.map(Out::Got).collect()
}

#[test]
fn a_hole_is_declared_after_the_time_out_and_not_before() {
    let mut s = scene();
    s.packet(Line::A, 1);
    assert_eq!(s.packet(Line::A, 4), HELD);
    assert_eq!(s.arbiter.poll_timeout(), Some(s.now + 50 * MS));
    s.wait(49);
    assert_eq!(s.out(), got(1..=1));
    s.wait(1);
    let gap = Out::Gap { first: 2, count: 2 };
    assert_eq!(s.out(), [gap, Out::Got(4)]);
    assert_eq!(s.arbiter.poll_timeout(), None);
    assert_eq!(s.arbiter.missing().count(), 2);
    // Line B brings one of them now, which is too late to be delivered, but no longer missing.
    assert_eq!(s.packet(Line::B, 3), Verdict::Late { filled: 1 });
    assert_eq!(s.packet(Line::A, 3), Verdict::Duplicate);
    assert_eq!(s.arbiter.missing().count(), 1);
    assert_eq!(s.arbiter.line(Line::B).late, 1);
    assert_eq!(s.arbiter.stats().missing, 2);
}

#[test]
fn each_hole_has_its_own_time_out() {
    let mut s = scene();
    s.packet(Line::A, 1);
    s.packet(Line::A, 3);
    s.wait(30);
    s.packet(Line::A, 5);
    s.wait(19);
    assert_eq!(s.arbiter.held(), 1, "3 is out, 5 waits for 4");
    s.wait(29);
    assert_eq!(s.arbiter.held(), 1);
    s.wait(2);
    assert_eq!(s.arbiter.held(), 0);
    assert_eq!(s.arbiter.stats().gaps, 2);
}

#[test]
fn a_full_hold_back_declares_the_oldest_hole() {
    let mut s = Scene::new(ArbiterConfig {
        hold_back: 3,
        ..ArbiterConfig::default()
    });
    s.packet(Line::A, 1);
    for sequence in 3..=5 {
        assert_eq!(s.packet(Line::A, sequence), HELD);
    }
    assert_eq!(s.out(), got(1..=1));
    assert_eq!(s.packet(Line::A, 6), HELD);
    let mut expected = vec![Out::Gap { first: 2, count: 1 }];
    expected.extend(got(3..=6));
    assert_eq!(s.out(), expected);
}

#[test]
fn numbers_wrap_like_any_other_step() {
    let mut s = scene();
    for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
        assert_eq!(s.packet(Line::A, sequence), DELIVER);
    }
    for sequence in [u32::MAX - 1, u32::MAX, 0, 1] {
        assert_eq!(s.packet(Line::B, sequence), Verdict::Duplicate);
    }
    assert_eq!(s.packet(Line::B, 3), HELD);
    assert_eq!(s.packet(Line::A, 2), DELIVER);
    assert_eq!(s.arbiter.expected(), Some(4));
    assert_eq!(s.arbiter.stats().resets, 0);
}

#[test]
fn one_wild_number_is_ignored() {
    let mut s = scene();
    let base = 2_000_000;
    s.packet(Line::A, base);
    for wild in [base + (1 << 31), base - (1 << 20), 2_900_000, 7] {
        assert_eq!(s.packet(Line::A, wild), Verdict::Suspect);
    }
    assert_eq!(s.packet(Line::A, base + 1), DELIVER);
    s.wait(1000);
    assert_eq!(s.out(), got(base..=base + 1));
    s.arbiter.flush();
    assert_eq!(s.arbiter.line(Line::A).refused, 4);
}

#[test]
fn wild_numbers_agree_only_if_their_line_brings_nothing_in_between() {
    let mut s = scene();
    let base = 2_000_000;
    s.packet(Line::A, base);
    s.packet(Line::B, base);
    for (wild, next) in [(7, base + 1), (8, base + 2)] {
        assert_eq!(s.packet(Line::A, wild), Verdict::Suspect);
        assert_eq!(s.packet(Line::A, next), DELIVER);
    }
    // A slower line brings duplicates.
    for (wild, next) in [(9, base + 1), (10, base + 2)] {
        assert_eq!(s.packet(Line::B, wild), Verdict::Suspect);
        assert_eq!(s.packet(Line::B, next), Verdict::Duplicate);
    }
    assert_eq!(s.out(), got(base..=base + 2));
    for line in [Line::A, Line::B] {
        assert_eq!(s.arbiter.line(line).refused, 2);
    }
}

#[test]
fn a_jump_by_half_the_range_that_is_confirmed_is_a_reset() {
    let mut s = scene();
    s.packet(Line::A, 5);
    let far = 5 + (1 << 31);
    assert_eq!(s.packet(Line::A, far), Verdict::Suspect);
    assert_eq!(s.packet(Line::A, far + 1), HELD);
    let reset = Out::Reset {
        expected: 6,
        next: far,
    };
    assert_eq!(
        s.out(),
        [Out::Got(5), reset, Out::Got(far), Out::Got(far + 1)]
    );
    assert_eq!(s.packet(Line::B, far + 1), Verdict::Duplicate);
    assert_eq!(s.arbiter.stats().gaps, 0);
}

#[test]
fn a_confirmed_jump_ahead_is_a_gap() {
    let mut s = scene();
    s.packet(Line::A, 5);
    assert_eq!(s.packet(Line::A, 1_000_006), Verdict::Suspect);
    assert_eq!(s.packet(Line::B, 1_000_006), Verdict::Duplicate);
    s.wait(50);
    let gap = Out::Gap {
        first: 6,
        count: 1_000_000,
    };
    assert_eq!(s.out(), [Out::Got(5), gap, Out::Got(1_000_006)]);
}

#[test]
fn a_reset_to_one_on_both_lines_keeps_duplicates_apart() {
    let mut s = scene();
    for sequence in 5000..5010 {
        s.packet(Line::A, sequence);
    }
    s.packet(Line::B, 5004);
    s.out();
    // Line A restarts; line B is still in the old run, then follows.
    s.packet(Line::A, 1);
    s.packet(Line::A, 2);
    let reset = Out::Reset {
        expected: 5010,
        next: 1,
    };
    assert_eq!(s.out(), [reset, Out::Got(1), Out::Got(2)]);
    for sequence in 5005..5010 {
        assert_eq!(s.packet(Line::B, sequence), Verdict::Duplicate);
    }
    let stale = Verdict::Refused(Refusal::Stale);
    assert_eq!(s.packet(Line::B, 5010), stale);
    for sequence in 3..2000 {
        assert_eq!(s.packet(Line::A, sequence), DELIVER);
    }
    for sequence in 1..=2000 {
        let verdict = s.packet(Line::B, sequence);
        assert_eq!(verdict == Verdict::Duplicate, sequence < 2000);
    }
    assert_eq!(s.arbiter.stats().resets, 1);
}

#[test]
fn a_false_reset_is_left_again_when_it_falls_silent() {
    let mut s = scene();
    s.packet(Line::A, 5000);
    s.packet(Line::B, 5000);
    s.packet(Line::A, 1);
    s.packet(Line::A, 2);
    s.out();
    assert_eq!(
        s.packet(Line::B, 5001),
        Verdict::Refused(Refusal::Stale),
        "the new run is alive"
    );
    s.wait(1_000);
    assert_eq!(s.packet(Line::B, 5002), Verdict::Suspect);
    assert_eq!(s.packet(Line::B, 5003), HELD);
    let reset = Out::Reset {
        expected: 3,
        next: 5002,
    };
    assert_eq!(s.out(), [reset, Out::Got(5002), Out::Got(5003)]);
}

#[test]
fn the_feed_may_announce_a_reset() {
    let mut s = scene();
    s.packet(Line::A, 100);
    s.packet(Line::A, 102);
    s.arbiter.reset(1);
    assert_eq!(s.packet(Line::A, 1), HELD);
    assert_eq!(s.packet(Line::B, 1), Verdict::Duplicate);
    let gap = Out::Gap {
        first: 101,
        count: 1,
    };
    let reset = Out::Reset {
        expected: 103,
        next: 1,
    };
    let all = [Out::Got(100), gap, Out::Got(102), reset, Out::Got(1)];
    assert_eq!(s.out(), all);
    assert_eq!(s.packet(Line::B, 2), DELIVER);
}

#[test]
fn lines_that_do_not_start_together_lose_nothing() {
    let mut s = Scene::new(ArbiterConfig {
        start: Start::First { wait: 20 * MS },
        ..ArbiterConfig::default()
    });
    assert_eq!(s.packet(Line::B, 25), HELD);
    for sequence in 3..25 {
        s.packet(Line::A, sequence);
    }
    s.wait(20);
    assert_eq!(s.out(), got(3..=25));
    assert_eq!(s.arbiter.stats().gaps, 0);
}

#[test]
fn a_hole_before_the_given_first_number_is_a_gap() {
    let mut s = Scene::new(ArbiterConfig {
        start: Start::At(10),
        ..ArbiterConfig::default()
    });
    assert_eq!(s.arbiter.expected(), Some(10));
    s.packet(Line::A, 12);
    s.wait(50);
    let gap = Out::Gap {
        first: 10,
        count: 2,
    };
    assert_eq!(s.out(), [gap, Out::Got(12)]);
}

#[test]
fn an_overlap_skips_what_was_there() {
    let mut s = scene();
    assert_eq!(s.packet_of(Line::A, 1, 3), DELIVER);
    assert_eq!(s.packet_of(Line::B, 2, 4), Verdict::Deliver { skip: 2 });
    assert_eq!(s.packet_of(Line::A, 7, 3), HELD);
    assert_eq!(s.packet_of(Line::B, 8, 2), Verdict::Duplicate);
    assert_eq!(s.packet_of(Line::B, 6, 2), DELIVER);
    assert_eq!(s.out(), got(1..=9));
}

fn recovering() -> Scene {
    let mut s = Scene::new(ArbiterConfig {
        recovery_timeout: 500 * MS,
        ..ArbiterConfig::default()
    });
    s.packet(Line::A, 1);
    s.packet(Line::A, 4);
    s.out();
    s.now += 50 * MS;
    s.arbiter.handle_timeout(s.now);
    let gap = Gap { first: 2, count: 2 };
    assert_eq!(s.arbiter.poll_event(), Some(Event::Recover(gap)));
    assert_eq!(gap.last(), 3);
    assert_eq!(s.arbiter.poll_event(), None, "asked once");
    s
}

#[test]
fn a_replay_fills_the_hole_as_another_line() {
    let mut s = recovering();
    let replay = Line::new(2).unwrap();
    assert_eq!(s.packet_of(replay, 2, 2), DELIVER);
    assert_eq!(s.out(), got(2..=4));
    assert_eq!(s.arbiter.stats().gaps, 0);
}

#[test]
fn a_snapshot_closes_the_hole() {
    let mut s = recovering();
    s.packet(Line::A, 5);
    s.arbiter.resume(5);
    drain(&mut s.arbiter, &mut s.out);
    assert_eq!(s.out(), got(5..=5), "the snapshot holds 1 to 4");
    assert!(s.arbiter.missing().is_empty());
    assert_eq!(s.arbiter.line(Line::A).duplicate, 1, "4 is of no use");
}

#[test]
fn recovery_that_does_not_come_ends_in_a_gap() {
    let mut s = recovering();
    assert_eq!(s.arbiter.poll_timeout(), Some(s.now + 500 * MS));
    s.wait(500);
    assert_eq!(s.out(), [Out::Gap { first: 2, count: 2 }, Out::Got(4)]);
}

#[test]
fn a_late_joiner_starts_with_a_snapshot() {
    let mut s = scene();
    s.arbiter.resume(1000);
    assert_eq!(s.packet(Line::A, 990), Verdict::Duplicate);
    assert_eq!(s.packet(Line::A, 1000), DELIVER);
}

#[test]
fn lateness_is_measured_on_the_second_line() {
    let mut s = scene();
    for sequence in 1..=4 {
        s.packet(Line::A, sequence);
        s.now += 2 * MS;
        s.packet(Line::B, sequence);
    }
    let b = s.arbiter.line(Line::B).lateness;
    assert_eq!((b.count, b.mean(), b.max), (4, 3 * MS, 3 * MS));
    assert_eq!(s.arbiter.line(Line::A).lateness.count, 0);
}

#[test]
fn lateness_goes_by_the_stamps_and_time_outs_by_the_reading() {
    let mut arbiter = Arbiter::new(ArbiterConfig::default());
    let unit = |sequence| Unit {
        sequence,
        count: 1,
        bytes: b"x",
    };
    // They are read together and were received 7 µs apart.
    arbiter.receive_stamped(MS, 10_000, Line::A, unit(1));
    arbiter.receive_stamped(MS, 17_000, Line::B, unit(1));
    assert_eq!(arbiter.line(Line::B).lateness.max, 7_000);
    arbiter.receive_stamped(2 * MS, 90_000, Line::A, unit(3));
    assert_eq!(arbiter.poll_event(), None);
    assert_eq!(arbiter.poll_timeout(), Some(52 * MS));
    arbiter.handle_timeout(52 * MS);
    assert!(matches!(arbiter.poll_event(), Some(Event::Gap(_))));
    let Some(Event::Unit(held)) = arbiter.poll_event() else {
        panic!("3 comes after the gap")
    };
    assert_eq!(held.received, 90_000);
}

#[test]
fn units_that_cannot_be_used_are_refused() {
    let mut arbiter = Arbiter::new(ArbiterConfig {
        max_unit_bytes: 4,
        hold_back: 1,
        ..ArbiterConfig::default()
    });
    let mut take = |sequence, count, bytes: &[u8]| {
        arbiter.receive(
            0,
            Line::A,
            Unit {
                sequence,
                count,
                bytes,
            },
        )
    };
    assert_eq!(take(1, 0, b""), Verdict::Refused(Refusal::Count));
    assert_eq!(take(1, u32::MAX, b""), Verdict::Refused(Refusal::Count));
    assert_eq!(take(1, 1, b"12345"), Verdict::Refused(Refusal::TooLong));
    assert_eq!(take(1, 1, b"1234"), DELIVER);
    // Events are never taken: the second over the limit does not fit.
    assert_eq!((take(3, 1, b""), take(5, 1, b"")), (HELD, HELD));
    assert_eq!(take(7, 1, b""), Verdict::Refused(Refusal::Full));
}
