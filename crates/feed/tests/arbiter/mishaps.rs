//! Two simulated lines with losses and jitter, on which packets are sent again, and runs
//! restart, announced or after a silence. Each message is brought by a line at least.

use crate::messages::{MS, Scene};
use crate::net::Random;
use fanfare_feed::{ArbiterConfig, Line, Start};
use std::collections::BTreeSet;

/// The number of simulations of each kind.
const SEEDS: u64 = 100;

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Restart {
    /// The last message announces the next run, which begins after this time in ms.
    Announced(u64),
    /// Nothing does, and the next run begins after this time in ms.
    Silent(u64),
}

/// The properties of the lines and of the feed, in percent and ms.
#[derive(Debug, Clone, Copy)]
struct Mishaps {
    loss: u64,
    repeat: u64,
    jitter: u64,
    lag: u64,
    length: u64,
    restart: Restart,
    /// How many of the first numbers of a run may be lost on both lines.
    lacks: u64,
}

const CALM: Mishaps = Mishaps {
    loss: 20,
    repeat: 0,
    jitter: 0,
    lag: 0,
    length: 500,
    restart: Restart::Silent(12_000),
    lacks: 0,
};

/// A packet that arrives: the message, and whether it announces the next run.
type Packet = (u32, u32, bool);

/// What did not come out as it was sent.
#[derive(Debug, Default, PartialEq, Eq)]
struct Outcome {
    lost: usize,
    doubled: usize,
}

fn arrivals(random: &mut Random, of: Mishaps) -> Vec<(u64, usize, usize, Packet)> {
    let (mut packets, mut at) = (Vec::new(), 0);
    let mut order = 0;
    for run in 1..=4 {
        let lacks = random.below(of.lacks + 1) as u32;
        let length = (of.length - random.below(of.length / 4)) as u32;
        for sequence in 1..=length {
            at += MS;
            if run > 1 && sequence <= lacks {
                continue;
            }
            let first = random.below(2) as usize;
            let is_whole = sequence == length;
            for line in [first, 1 - first] {
                let late = |random: &mut Random| {
                    let is_late = random.percent(30);
                    let jitter = if is_late {
                        random.below(of.jitter * MS + 1)
                    } else {
                        0
                    };
                    jitter + of.lag * MS * line as u64 + line as u64 * MS / 10
                };
                let is_lost = line != first && random.percent(of.loss);
                let announces = is_whole && matches!(of.restart, Restart::Announced(_));
                let packet = (run, sequence, announces);
                if !is_lost {
                    order += 1;
                    packets.push((at + late(random), order, line, packet));
                }
                if !is_lost && random.percent(of.repeat) {
                    order += 1;
                    packets.push((at + late(random), order, line, packet));
                }
            }
        }
        at += match of.restart {
            Restart::Announced(pause) | Restart::Silent(pause) => pause * MS,
        };
    }
    packets.sort();
    packets
}

fn receive(s: &mut Scene, line: Line, (run, sequence, announces): Packet) {
    s.message(line, run, sequence);
    if announces {
        s.arbiter.announce(1);
    }
    s.drain();
}

fn play(seed: u64, of: Mishaps) -> Outcome {
    let mut random = Random::new(seed);
    let arrivals = arrivals(&mut random, of);
    let mut s = Scene::new(ArbiterConfig {
        start: Start::First { wait: 25 * MS },
        ..ArbiterConfig::default()
    });
    for &(at, _, line, packet) in &arrivals {
        while let Some(t) = s.arbiter.poll_timeout().filter(|t| *t <= at) {
            s.until(t);
        }
        s.now = at;
        receive(&mut s, Line::new(line).unwrap(), packet);
    }
    s.arbiter.flush();
    s.drain();
    let came: BTreeSet<_> = s.out.iter().copied().collect();
    let sent = arrivals.iter().map(|(.., packet)| (packet.0, packet.1));
    let sent: BTreeSet<_> = sent.collect();
    Outcome {
        lost: sent.difference(&came).count(),
        doubled: s.out.len() - came.len(),
    }
}

/// In how many simulations messages are lost and doubled.
#[derive(Debug, Default, PartialEq, Eq)]
struct Failures {
    lost: usize,
    doubled: usize,
}

fn failures(of: Mishaps) -> Failures {
    let mut failures = Failures::default();
    for seed in 1..=SEEDS {
        let outcome = play(seed, of);
        failures.lost += usize::from(outcome.lost > 0);
        failures.doubled += usize::from(outcome.doubled > 0);
    }
    failures
}

const RESTARTS: [Restart; 3] = [
    Restart::Announced(300),
    Restart::Silent(1_500),
    Restart::Silent(12_000),
];

#[test]
fn packets_that_are_sent_again_restart_nothing() {
    for restart in RESTARTS {
        for (length, jitter) in [(60, 0), (60, 20), (500, 20)] {
            let of = Mishaps {
                repeat: 5,
                restart,
                length,
                jitter,
                ..CALM
            };
            assert_eq!(failures(of), Failures::default(), "{of:?}");
        }
    }
}

#[test]
fn runs_of_which_the_first_numbers_are_lost_hide_nothing_of_the_next_ones() {
    for pause in [1_500, 12_000] {
        for (jitter, repeat) in [(0, 0), (20, 5)] {
            let of = Mishaps {
                lacks: 3,
                restart: Restart::Silent(pause),
                repeat,
                jitter,
                ..CALM
            };
            assert_eq!(failures(of), Failures::default(), "{of:?}");
        }
    }
}
