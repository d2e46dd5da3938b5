//! The real feed: lines A and B of the Moscow Exchange's derivatives market, recorded in 2013.
//! Skipped if the recording is missing.
#![allow(clippy::unwrap_used, clippy::panic)]

use fanfare_fast::{Decoder, Message, Program};
use fanfare_feed::{
    Arbiter, ArbiterConfig, Channel, ChannelConfig, Event, Line, Start, Unit, Verdict,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const FIRST: u32 = 482_727;
const LAST: u32 = 490_838;

struct Feed {
    program: Arc<Program>,
    /// Packets of each line with their sequence numbers: a Reset and a message.
    lines: [Vec<(u32, Vec<u8>)>; 2],
}

fn feed() -> Option<Feed> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let Ok(xml) = std::fs::read_to_string(folder.join("templates.xml")) else {
        println!("skipped: there is no recording at {}", folder.display());
        return None;
    };
    let program = Arc::new(Program::parse(&xml).unwrap());
    let line = |name: &str| {
        let decoder = Decoder::new(Arc::clone(&program));
        let mut channel = Channel::new(decoder, ChannelConfig::new(1)).unwrap();
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let (mut rest, mut packets) = (&bytes[..], Vec::new());
        while !rest.is_empty() {
            let (len, numbers) = channel.cut(Line::A, rest);
            assert_eq!(numbers.count, 1);
            packets.push((numbers.first.unwrap(), rest[..len].to_vec()));
            rest = &rest[len..];
        }
        packets
    };
    let lines = [line("increment_a.dat"), line("increment_b.dat")];
    Some(Feed { program, lines })
}

/// The output: messages by their numbers with their bytes, and the numbers of the gaps.
#[derive(Default)]
struct Outcome {
    delivered: Vec<(u32, Vec<u8>)>,
    missing: Vec<u32>,
}

impl Outcome {
    fn drain(&mut self, arbiter: &mut Arbiter) {
        while let Some(event) = arbiter.poll_event() {
            match event {
                Event::Unit(unit) => self.delivered.push((unit.sequence, unit.bytes.to_vec())),
                Event::Gap(gap) => self.missing.extend(gap.first..=gap.last()),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// Plays both lines by the numbers, B `delay` packets behind A, without those that `keeps` drops.
fn arbitrate(
    feed: &Feed,
    delay: u32,
    start: Start,
    mut keeps: impl FnMut() -> bool,
) -> (Outcome, Arbiter, BTreeMap<u32, Vec<u8>>) {
    let mut arbiter = Arbiter::new(ArbiterConfig {
        start,
        ..ArbiterConfig::default()
    });
    let mut arrivals = Vec::new();
    for (line, packets) in [Line::A, Line::B].into_iter().zip(&feed.lines) {
        for (sequence, packet) in packets {
            if keeps() {
                let late = if line == Line::B { delay } else { 0 };
                arrivals.push((sequence + late, line, *sequence, packet));
            }
        }
    }
    arrivals.sort();
    let mut outcome = Outcome::default();
    let mut union = BTreeMap::new();
    for (at, line, sequence, bytes) in arrivals {
        union.insert(sequence, bytes.clone());
        let unit = Unit {
            sequence,
            count: 1,
            bytes,
        };
        let now = u64::from(at - FIRST) * 100_000;
        if arbiter.receive(now, line, unit) == (Verdict::Deliver { skip: 0 }) {
            outcome.delivered.push((sequence, bytes.clone()));
        }
        outcome.drain(&mut arbiter);
    }
    arbiter.flush();
    outcome.drain(&mut arbiter);
    (outcome, arbiter, union)
}

#[test]
fn both_lines_become_one_stream_without_a_gap() {
    let Some(feed) = feed() else { return };
    assert_eq!([feed.lines[0].len(), feed.lines[1].len()], [8_101, 8_088]);
    let (outcome, arbiter, _) = arbitrate(&feed, 3, Start::At(FIRST), || true);
    assert!(outcome.missing.is_empty());
    let numbers: Vec<u32> = outcome.delivered.iter().map(|(n, _)| *n).collect();
    assert!(numbers.iter().copied().eq(FIRST..=LAST));
    assert_eq!(arbiter.line(Line::A).first, 8_101);
    assert_eq!(arbiter.line(Line::B).first, 11, "490828 to 490838");
    assert_eq!(arbiter.line(Line::B).duplicate, 8_077);
    assert_eq!(arbiter.line(Line::B).lateness.max, 300_000);
    let mut decoder = Decoder::new(feed.program);
    let mut message = Message::new();
    for (number, packet) in &outcome.delivered {
        decoder.reset();
        let reset = decoder.decode(packet, &mut message).unwrap();
        let len = decoder.decode(&packet[reset..], &mut message).unwrap();
        assert_eq!(reset + len, packet.len());
        let view = message.view(decoder.program()).unwrap();
        let found = view.tag(34).unwrap().as_u64();
        assert_eq!(found, Some(u64::from(*number)));
    }
}

#[test]
fn with_a_fifth_of_each_line_lost_all_that_is_left_comes_out_in_order() {
    let Some(feed) = feed() else { return };
    for seed in 1..=20u64 {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let keeps = || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            !random.is_multiple_of(5)
        };
        let delay = (seed as u32 * 17) % 400;
        let start = Start::First { wait: 50_000_000 };
        let (outcome, arbiter, union) = arbitrate(&feed, delay, start, keeps);
        let expected: Vec<_> = union.iter().map(|(n, b)| (*n, b.clone())).collect();
        assert_eq!(outcome.delivered.len(), expected.len(), "seed {seed}");
        assert!(outcome.delivered == expected, "seed {seed}: order or bytes");
        let (first, last) = (expected[0].0, expected[expected.len() - 1].0);
        let missing: Vec<u32> = (first..=last).filter(|n| !union.contains_key(n)).collect();
        assert_eq!(outcome.missing, missing, "seed {seed}");
        assert_eq!(arbiter.stats().missing, missing.len() as u64);
        assert!(missing.len() > 200, "a 25th of 8,112 is lost on both lines");
    }
}
