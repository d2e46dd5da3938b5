//! Two simulated lines under virtual time, and a driver that plays them into an arbiter.

use fanfare_feed::{Arbiter, Event, Line, Unit, Verdict};

pub(crate) const MS: u64 = 1_000_000;

/// Random numbers, determined by their seed.
pub(crate) struct Random(fastrand::Rng);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0.u64(..n.max(1))
    }

    pub(crate) fn percent(&mut self, p: u64) -> bool {
        self.below(100) < p
    }
}

/// The conditions of a line, in percent and ns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Weather {
    pub(crate) loss: u64,
    pub(crate) repeat: u64,
    pub(crate) delay: u64,
    pub(crate) jitter: u64,
}

/// A packet that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrival {
    pub(crate) at: u64,
    pub(crate) line: usize,
    pub(crate) index: u64,
    pub(crate) count: u32,
}

/// Sends packets `(index, count)` over one line, one each 100 µs from `start`.
pub(crate) fn send(
    random: &mut Random,
    line: usize,
    start: u64,
    packets: &[(u64, u32)],
    weather: Weather,
) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for (i, &(index, count)) in packets.iter().enumerate() {
        let copies = if random.percent(weather.repeat) { 2 } else { 1 };
        for _ in 0..copies {
            if !random.percent(weather.loss) {
                let late = weather.delay + random.below(weather.jitter + 1);
                let at = start + i as u64 * 100_000 + late;
                arrivals.push(Arrival {
                    at,
                    line,
                    index,
                    count,
                });
            }
        }
    }
    arrivals
}

/// The output in order, with numbers as on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Out {
    Got(u32),
    Gap { first: u32, count: u32 },
    Reset { expected: u32, next: u32 },
    Late { filled: u32 },
}

/// Returns the bytes of a packet: every message in it is its number, so that the receiver can
/// check.
pub(crate) fn payload(sequence: u32, count: u32) -> Vec<u8> {
    let numbers = (0..count).flat_map(|i| sequence.wrapping_add(i).to_le_bytes());
    numbers.collect()
}

fn unpack(bytes: &[u8], skip: u32, out: &mut Vec<Out>) {
    for number in bytes.chunks(4).skip(skip as usize) {
        out.push(Out::Got(u32::from_le_bytes(number.try_into().unwrap())));
    }
}

pub(crate) fn drain(arbiter: &mut Arbiter, out: &mut Vec<Out>) {
    while let Some(event) = arbiter.poll_event() {
        match event {
            Event::Unit(unit) => unpack(unit.bytes, unit.skip, out),
            Event::Gap(gap) => out.push(Out::Gap {
                first: gap.first,
                count: gap.count,
            }),
            Event::Reset { expected, next } => out.push(Out::Reset { expected, next }),
            Event::Recover(_) => {}
        }
    }
}

/// Plays arrivals in time order, with every time-out between, and flushes at the end. `number`
/// converts a packet's index to its sequence number.
pub(crate) fn play(
    arbiter: &mut Arbiter,
    arrivals: &mut [Arrival],
    number: impl Fn(u64) -> u32,
) -> Vec<Out> {
    arrivals.sort();
    let mut out = Vec::new();
    for arrival in arrivals.iter() {
        while let Some(t) = arbiter.poll_timeout().filter(|t| *t <= arrival.at) {
            arbiter.handle_timeout(t);
            drain(arbiter, &mut out);
        }
        let sequence = number(arrival.index);
        let bytes = payload(sequence, arrival.count);
        let unit = Unit {
            sequence,
            count: arrival.count,
            bytes: &bytes,
        };
        let line = Line::new(arrival.line).unwrap();
        match arbiter.receive(arrival.at, line, unit) {
            Verdict::Deliver { skip } => unpack(&bytes, skip, &mut out),
            Verdict::Late { filled } => out.push(Out::Late { filled }),
            _ => {}
        }
        drain(arbiter, &mut out);
    }
    arbiter.flush();
    drain(arbiter, &mut out);
    out
}
