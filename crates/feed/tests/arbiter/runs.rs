//! Sequences that restart: announced by the feed, or after a silence.

use fanfare_feed::{Arbiter, ArbiterConfig, Event, Line, Start, Unit, Verdict};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

/// A packet of a feed that counts to the same number again and again: the last one announces that 1
/// is next.
type Packet = (u32, u32);

/// An arbiter and its output: packets with their cycles, gaps as zeros.
struct Scene {
    arbiter: Arbiter,
    length: u32,
    now: u64,
    out: Vec<Packet>,
}

impl Scene {
    fn new(length: u32, config: ArbiterConfig) -> Self {
        Self {
            arbiter: Arbiter::new(config),
            length,
            now: 0,
            out: Vec::new(),
        }
    }

    fn packet(&mut self, line: Line, (cycle, sequence): Packet) -> Verdict {
        let bytes = u64::from(cycle) << 32 | u64::from(sequence);
        let unit = Unit {
            sequence,
            count: 1,
            bytes: &bytes.to_le_bytes(),
        };
        let verdict = self.arbiter.receive(self.now, line, unit);
        if sequence == self.length {
            self.arbiter.announce(1);
        }
        if verdict == (Verdict::Deliver { skip: 0 }) {
            self.out.push((cycle, sequence));
        }
        self.drain();
        verdict
    }

    fn at(&mut self, now: u64) {
        self.now = now;
        self.arbiter.handle_timeout(now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(event) = self.arbiter.poll_event() {
            match event {
                Event::Unit(unit) => {
                    let bytes = u64::from_le_bytes(unit.bytes.try_into().unwrap());
                    self.out.push(((bytes >> 32) as u32, bytes as u32));
                }
                Event::Gap(gap) => self.out.extend((0..gap.count).map(|_| (0, 0))),
                Event::Reset { .. } | Event::Recover(_) => {}
            }
        }
    }
}

/// Returns the packets of `cycles` cycles.
fn feed(cycles: u32, length: u32) -> Vec<Packet> {
    let cycle = |cycle| (1..=length).map(move |sequence| (cycle, sequence));
    (1..=cycles).flat_map(cycle).collect()
}

#[test]
fn cycles_that_end_with_a_sequence_reset_are_delivered_whole() {
    for length in [1, 2, 13, 700] {
        let mut s = Scene::new(length, ArbiterConfig::default());
        let all = feed(20, length);
        for packet in &all {
            s.packet(Line::A, *packet);
        }
        assert_eq!(s.out, all);
        assert_eq!(s.arbiter.stats().resets, 20);
        assert_eq!(s.arbiter.line(Line::A).lost, 0);
    }
}

#[test]
fn what_comes_while_the_end_of_a_cycle_is_waited_for_is_not_lost() {
    let mut s = Scene::new(13, ArbiterConfig::default());
    for (at, packet) in feed(2, 13).into_iter().enumerate() {
        s.at(at as u64 * MS);
        if packet != (1, 12) {
            s.packet(Line::A, packet);
        }
    }
    assert_eq!(s.out.last(), Some(&(1, 11)), "the hole is open");
    s.at(100 * MS);
    let mut expected = feed(2, 13);
    expected[11] = (0, 0);
    assert_eq!(s.out, expected);
    assert_eq!(s.arbiter.line(Line::A).lost, 1);
}

#[test]
fn a_line_that_lost_the_end_of_a_cycle_finds_the_next_one() {
    let mut s = Scene::new(13, ArbiterConfig::default());
    for packet in feed(3, 13) {
        // Line A loses the end of the first cycle and the start of the second.
        if ![(1, 12), (1, 13), (2, 1)].contains(&packet) {
            s.packet(Line::A, packet);
        }
        if packet != (2, 7) {
            s.packet(Line::B, packet);
        }
    }
    assert_eq!(s.out, feed(3, 13));
    assert_eq!(s.arbiter.line(Line::A).lost, 3);
    assert_eq!(s.arbiter.line(Line::B).lost, 1);
}

#[test]
fn a_repeated_announcement_is_none() {
    let mut s = Scene::new(5, ArbiterConfig::default());
    for packet in feed(1, 5) {
        s.packet(Line::A, packet);
    }
    assert_eq!(s.packet(Line::B, (1, 5)), Verdict::Duplicate);
    assert_eq!(s.packet(Line::B, (2, 1)), Verdict::Deliver { skip: 0 });
    assert!(!s.arbiter.announce(2), "goes on as it would");
    assert_eq!(s.arbiter.stats().resets, 1);
}

/// A run that is one packet has the same bytes each time: a copy of it restarts nothing, and the
/// next one comes a second later.
#[test]
fn a_run_of_one_packet_with_constant_bytes_comes_each_time() {
    let mut s = Scene::new(1, ArbiterConfig::default());
    for cycle in 0..20 {
        s.at(cycle * 1_000 * MS);
        for line in [Line::A, Line::B, Line::A] {
            s.packet(line, (7, 1));
        }
    }
    assert_eq!(s.out, [(7, 1); 20]);
    assert_eq!(s.arbiter.stats().resets, 20);
    // Sooner, it may be a copy.
    s.at(19_900 * MS);
    assert_eq!(s.packet(Line::B, (7, 1)), Verdict::Duplicate);
}

/// Line B is later than `stale_timeout` and brings each packet twice; then it is alone.
#[test]
fn a_run_of_one_packet_with_constant_bytes_comes_once_from_a_late_line() {
    let mut s = Scene::new(1, ArbiterConfig::default());
    for cycle in 0..20 {
        s.at(cycle * 3_000 * MS);
        if cycle < 10 {
            s.packet(Line::A, (7, 1));
        }
        s.at((cycle * 3_000 + 1_200) * MS);
        s.packet(Line::B, (7, 1));
        s.at((cycle * 3_000 + 1_201) * MS);
        assert_eq!(s.packet(Line::B, (7, 1)), Verdict::Duplicate);
        assert_eq!(s.out.len(), cycle as usize + 1);
    }
    assert_eq!(s.arbiter.stats().resets, 20);
}

#[test]
fn numbers_that_come_again_are_a_restart_after_a_silence_alone() {
    for (silence, timeout, restarts) in [(999, 1000, false), (1000, 1000, true), (5000, 0, false)] {
        let config = ArbiterConfig {
            restart_timeout: timeout * MS,
            ..ArbiterConfig::default()
        };
        let mut s = Scene::new(u32::MAX, config);
        for sequence in 1..=50 {
            s.packet(Line::A, (1, sequence));
            s.packet(Line::B, (1, sequence));
        }
        s.out.clear();
        s.at(silence * MS);
        let first = s.packet(Line::A, (2, 1));
        assert_eq!(first == Verdict::Suspect, restarts, "{silence} {timeout}");
        for sequence in 1..=60 {
            s.packet(Line::B, (2, sequence));
            s.packet(Line::A, (2, sequence + 1));
        }
        let expected = if restarts { 1 } else { 51 };
        let expected: Vec<_> = (expected..=61).map(|sequence| (2, sequence)).collect();
        assert_eq!(s.out, expected, "{silence} {timeout}");
        let both = s.arbiter.line(Line::A).first + s.arbiter.line(Line::B).first;
        assert_eq!(both, 50 + expected.len() as u64);
        assert_eq!(s.arbiter.line(Line::B).refused, 0);
    }
}

#[test]
fn a_heartbeat_with_the_last_number_is_no_restart() {
    let mut s = Scene::new(u32::MAX, ArbiterConfig::default());
    for sequence in 1..=50 {
        s.packet(Line::A, (1, sequence));
        s.packet(Line::B, (1, sequence));
    }
    for beat in 1..5 {
        s.at(beat * 2000 * MS);
        for line in [Line::A, Line::B] {
            assert_eq!(s.packet(line, (1, 50)), Verdict::Duplicate);
        }
    }
    assert_eq!(s.packet(Line::B, (1, 51)), Verdict::Deliver { skip: 0 });
    assert_eq!(s.arbiter.stats().resets, 0);
}

fn from_one() -> ArbiterConfig {
    ArbiterConfig {
        start: Start::At(1),
        ..ArbiterConfig::default()
    }
}

#[test]
fn the_end_of_a_cycle_may_be_lost_on_all_lines() {
    let mut s = Scene::new(13, ArbiterConfig::default());
    let mut expected = feed(4, 13);
    for (at, packet) in feed(4, 13).into_iter().enumerate() {
        s.at(at as u64 * MS);
        // The gap in the second cycle must not be filled from the third.
        if ![(2, 5), (2, 12), (2, 13)].contains(&packet) {
            s.packet(Line::A, packet);
        }
    }
    s.at(1000 * MS);
    expected[13 + 4] = (0, 0);
    expected.retain(|packet| ![(2, 12), (2, 13)].contains(packet));
    assert_eq!(s.out, expected);
    assert_eq!(s.arbiter.stats().resets, 4);
}

proptest! {
    /// Whatever one line loses and however far they are apart: the other one has all packets, so
    /// all are delivered, once and in order.
    #[test]
    fn what_one_line_has_whole_comes_out_whole(
        length in 8u32..40,
        lag in 0u64..4,
        is_first in any::<bool>(),
        lost in prop::collection::vec(prop::bool::weighted(0.3), 200),
    ) {
        let mut s = Scene::new(length, from_one());
        let all = feed(200 / length, length);
        let (whole, lossy) = if is_first { (0, lag) } else { (lag, 0) };
        for now in 0..all.len() as u64 + lag {
            s.at(now * MS);
            let at = |late: u64| now.checked_sub(late).map(|i| i as usize);
            if let Some(i) = at(lossy)
                && let Some(packet) = all.get(i).filter(|_| !lost[i])
            {
                s.packet(Line::A, *packet);
            }
            if let Some(packet) = at(whole).and_then(|i| all.get(i)) {
                s.packet(Line::B, *packet);
            }
        }
        s.at(u64::MAX / 2);
        prop_assert_eq!(s.out, all);
    }

    /// Whatever both lines lose, as long as it is less than half a cycle at a time, and not its end
    /// on both: nothing is delivered twice, or after later packets.
    #[test]
    fn what_both_lines_lose_spoils_nothing_else(
        length in 8u32..40,
        lag in 0u64..4,
        lost in prop::collection::vec(prop::bool::weighted(0.3), 400),
    ) {
        let mut s = Scene::new(length, from_one());
        let all = feed(200 / length, length);
        let mut in_a_row = [0, 0];
        for now in 0..all.len() as u64 + lag {
            s.at(now * MS);
            for (line, late) in [(Line::A, 0), (Line::B, lag)] {
                let index = now.checked_sub(late).map(|i| i as usize);
                let Some((i, packet)) = index.and_then(|i| Some((i, all.get(i)?))) else {
                    continue;
                };
                let row = &mut in_a_row[line.index()];
                let kept = line == Line::A && packet.1 == length;
                if lost[200 * line.index() + i] && *row < 3 && !kept {
                    *row += 1;
                } else {
                    *row = 0;
                    s.packet(line, *packet);
                }
            }
        }
        s.at(u64::MAX / 2);
        let came: Vec<_> = s.out.iter().filter(|packet| packet.0 > 0).collect();
        prop_assert!(came.is_sorted_by(|a, b| a < b), "{:?}", s.out);
    }
}
