//! A snapshot channel of the Moscow Exchange: cycles of 12 or 13 packets that end with a
//! SequenceReset to 1, on two lines that both lose a fifth.

use crate::net::{MS, Random};
use fanfare_feed::{Arbiter, ArbiterConfig, Event, Line, Unit, Verdict};
use std::collections::BTreeSet;

/// A packet: its cycle, its number, whether it ends the cycle.
type Packet = (u32, u32, bool);

/// The properties of the lines.
#[derive(Debug, Clone, Copy)]
struct Lines {
    /// The percentage of packets that each line loses.
    loss: u64,
    /// The delay of the second line in ns.
    lag: u64,
    /// The greatest further delay of any packet in ns.
    jitter: u64,
    bytes: Bytes,
}

/// The contents of packets besides their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bytes {
    /// Other bytes in each cycle, the same on both lines, as with a SendingTime.
    Own,
    /// The same bytes in each cycle.
    OfNumber,
    /// Other bytes on each line.
    OfLine,
    /// The same bytes on both lines in the first cycles only.
    OfLineLater,
    /// The same bytes on both lines by chance, as with a SendingTime in milliseconds that each line
    /// has of its own.
    OfLineHalf,
}

/// The packets sent and delivered.
#[derive(Debug, Default)]
struct Outcome {
    /// Packets that a line brought after two ends had arrived, and that were not delivered.
    lacking: Vec<(u32, u32)>,
    /// The number of packets that were delivered twice, or after later ones.
    spoiled: usize,
    /// The number of packets that a line brought.
    brought: usize,
}

fn feed(random: &mut Random, cycles: u32) -> Vec<(u64, Packet)> {
    let (mut packets, mut at) = (Vec::new(), 0);
    for cycle in 1..=cycles {
        let length = if random.percent(70) { 13 } else { 12 };
        for sequence in 1..=length {
            // Three packets come at a time, as in the recording.
            if packets.len() % 3 == 0 {
                at += 140 * MS + random.below(30 * MS);
            }
            packets.push((at, (cycle, sequence, sequence == length)));
        }
    }
    packets
}

fn play(seed: u64, lines: Lines) -> Outcome {
    let mut random = Random::new(seed);
    let mut arrivals = Vec::new();
    let packets = feed(&mut random, 700);
    // The receiver joins somewhere in a cycle.
    let joined = random.below(13) as usize;
    for (order, (at, packet)) in packets.into_iter().enumerate().skip(joined) {
        for line in [Line::A, Line::B] {
            if !random.percent(lines.loss) {
                let lag = lines.lag * line.index() as u64 + random.below(lines.jitter + 1);
                arrivals.push((at + lag, order, line, packet));
            }
        }
    }
    arrivals.sort();
    let mut scene = Scene::new(&arrivals);
    for (index, &(at, _, line, packet)) in arrivals.iter().enumerate() {
        scene.wait_until(at);
        let of_line = 1 + line.index() as u32;
        let (cycle, sequence, _) = packet;
        let said = match lines.bytes {
            Bytes::Own => [cycle, sequence, 0],
            Bytes::OfNumber => [0, sequence, 0],
            Bytes::OfLine => [cycle, sequence, of_line],
            Bytes::OfLineLater if cycle < 100 => [cycle, sequence, 0],
            Bytes::OfLineHalf if is_even(cycle, sequence) => [cycle, sequence, 0],
            Bytes::OfLineLater | Bytes::OfLineHalf => [cycle, sequence, of_line],
        };
        scene.receive(index, &said.map(u32::to_le_bytes).concat());
    }
    scene.arbiter.flush();
    scene.drain();
    scene.outcome()
}

/// Returns true for about half of the packets.
const fn is_even(cycle: u32, sequence: u32) -> bool {
    let mixed = cycle.wrapping_mul(0x9e37_79b9) ^ sequence.wrapping_mul(0x85eb_ca6b);
    mixed.count_ones() & 1 == 0
}

/// An arbiter, with its input and output.
struct Scene<'a> {
    arrivals: &'a [(u64, usize, Line, Packet)],
    arbiter: Arbiter,
    out: Vec<(u32, u32)>,
    brought: BTreeSet<(u32, u32)>,
    ends_heard: usize,
}

impl<'a> Scene<'a> {
    fn new(arrivals: &'a [(u64, usize, Line, Packet)]) -> Self {
        let config = ArbiterConfig {
            gap_timeout: 300 * MS,
            ..ArbiterConfig::default()
        };
        Self {
            arrivals,
            arbiter: Arbiter::new(config),
            out: Vec::new(),
            brought: BTreeSet::new(),
            ends_heard: 0,
        }
    }

    fn wait_until(&mut self, at: u64) {
        while let Some(t) = self.arbiter.poll_timeout().filter(|t| *t <= at) {
            self.arbiter.handle_timeout(t);
            self.drain();
        }
    }

    /// Takes an arrival. Delivered packets are recognized by their stamps, as their bytes may be
    /// the same.
    fn receive(&mut self, index: usize, bytes: &[u8]) {
        let (at, _, line, (cycle, sequence, is_end)) = self.arrivals[index];
        let unit = Unit {
            sequence,
            count: 1,
            bytes,
        };
        let verdict = self.arbiter.receive_stamped(at, index as u64, line, unit);
        if is_end {
            self.ends_heard += usize::from(self.arbiter.announce(1));
        }
        if verdict == (Verdict::Deliver { skip: 0 }) {
            self.out.push((cycle, sequence));
        }
        if self.ends_heard >= 2 {
            self.brought.insert((cycle, sequence));
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(event) = self.arbiter.poll_event() {
            if let Event::Unit(unit) = event {
                let (.., (cycle, sequence, _)) = self.arrivals[unit.received as usize];
                self.out.push((cycle, sequence));
            }
        }
    }

    fn outcome(self) -> Outcome {
        let spoiled = self.out.windows(2).filter(|two| two[0] >= two[1]).count();
        let out = self.out.into_iter().collect();
        Outcome {
            lacking: self.brought.difference(&out).copied().collect(),
            spoiled,
            brought: self.brought.len(),
        }
    }
}

/// Delays and jitters of the lines, as long as neither is half a cycle behind the other.
const WEATHER: [(u64, u64); 6] = [(0, 0), (1, 1), (5, 5), (20, 10), (40, 40), (90, 0)];

/// One packet in about 300,000 is excepted: a gap on both lines at whose number one of them
/// returns, more than half a cycle later and after the packets of the other.
#[test]
fn with_a_fifth_lost_on_both_lines_what_a_line_brought_comes_out() {
    let (mut brought, mut lacking) = (0, 0);
    for (lag, jitter) in WEATHER {
        for seed in 1..=10 {
            let lines = Lines {
                loss: 20,
                lag: lag * MS,
                jitter: jitter * MS,
                bytes: Bytes::Own,
            };
            let outcome = play(seed, lines);
            assert!(outcome.lacking.len() <= 1, "{outcome:?} {lines:?} {seed}");
            assert_eq!(outcome.spoiled, 0, "{lines:?}, seed {seed}");
            lacking += outcome.lacking.len();
            brought += outcome.brought;
        }
    }
    assert!(brought > 500_000, "{brought}");
    assert!(lacking <= 3, "{lacking} of {brought}");
}

/// Bytes are no evidence if all cycles have the same, or each line its own: lengths are, and some
/// packets of the cycles whose end neither line brought are lost with it.
#[test]
fn where_bytes_tell_nothing_few_packets_lack() {
    for bytes in [Bytes::OfNumber, Bytes::OfLine] {
        for (loss, most) in [(0, 0), (2, 0), (20, 40)] {
            for seed in 1..=10 {
                let lines = Lines {
                    loss,
                    lag: 5 * MS,
                    jitter: 0,
                    bytes,
                };
                let outcome = play(seed, lines);
                let lack = outcome.lacking.len();
                assert!(lack <= most, "{lack} of {lines:?}, seed {seed}");
                assert_eq!(outcome.spoiled, 0, "{lines:?}, seed {seed}");
            }
        }
    }
}

/// Bytes that were the same on both lines, or are by chance, are soon no evidence: packets are
/// delivered twice a few times at the beginning, and not in each cycle.
#[test]
fn lines_that_agree_for_a_while_or_by_chance_restart_nothing_for_long() {
    for bytes in [Bytes::OfLineLater, Bytes::OfLineHalf] {
        for loss in [0, 20] {
            for seed in 1..=5 {
                let lines = Lines {
                    loss,
                    lag: 5 * MS,
                    jitter: 0,
                    bytes,
                };
                let outcome = play(seed, lines);
                let lack = outcome.lacking.len();
                assert!(lack <= 40, "{lack} of {lines:?}, seed {seed}");
                let spoiled = outcome.spoiled;
                assert!(spoiled <= 10, "{spoiled} of {lines:?}, seed {seed}");
            }
        }
    }
}
