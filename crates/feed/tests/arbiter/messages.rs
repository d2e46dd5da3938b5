//! An arbiter that receives messages of runs, and what comes out of it.

use fanfare_feed::{Arbiter, ArbiterConfig, Event, Line, Unit, Verdict};
use std::ops::Range;

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const DELIVER: Verdict = Verdict::Deliver { skip: 0 };

/// An arbiter and what comes out of it: messages with their runs, resets by the number that is
/// next.
pub(crate) struct Scene {
    pub(crate) arbiter: Arbiter,
    pub(crate) now: u64,
    pub(crate) out: Vec<(u32, u32)>,
    pub(crate) resets: Vec<u32>,
    pub(crate) gaps: u32,
}

pub(crate) fn scene() -> Scene {
    Scene::new(ArbiterConfig::default())
}

impl Scene {
    pub(crate) fn new(config: ArbiterConfig) -> Self {
        Self {
            arbiter: Arbiter::new(config),
            now: 0,
            out: Vec::new(),
            resets: Vec::new(),
            gaps: 0,
        }
    }

    /// Receives a message of a run.
    pub(crate) fn message(&mut self, line: Line, run: u32, sequence: u32) -> Verdict {
        self.message_of(line, run, sequence, 1)
    }

    /// Receives a message of a run that takes `count` numbers.
    pub(crate) fn message_of(
        &mut self,
        line: Line,
        run: u32,
        sequence: u32,
        count: u32,
    ) -> Verdict {
        let bytes = [run.to_le_bytes(), sequence.to_le_bytes()].concat();
        let unit = Unit {
            sequence,
            count,
            bytes: &bytes,
        };
        let verdict = self.arbiter.receive(self.now, line, unit);
        if verdict == DELIVER {
            self.out.push((run, sequence));
        }
        self.drain();
        verdict
    }

    /// Returns the number at which the only reset begins.
    pub(crate) fn only_reset(&self) -> u32 {
        assert_eq!(self.resets.len(), 1, "{:?}", self.resets);
        self.resets[0]
    }

    /// Receives messages of a run, one each 100 µs.
    pub(crate) fn messages(&mut self, line: Line, run: u32, sequences: Range<u32>) {
        for sequence in sequences {
            self.now += MS / 10;
            self.message(line, run, sequence);
        }
    }

    pub(crate) fn wait(&mut self, ms: u64) {
        self.until(self.now + ms * MS);
    }

    pub(crate) fn until(&mut self, now: u64) {
        self.now = now;
        self.arbiter.handle_timeout(now);
        self.drain();
    }

    pub(crate) fn drain(&mut self) {
        while let Some(event) = self.arbiter.poll_event() {
            match event {
                Event::Unit(unit) => {
                    let word = |at: usize| unit.bytes[at..at + 4].try_into().unwrap();
                    let run = u32::from_le_bytes(word(0));
                    self.out.push((run, u32::from_le_bytes(word(4))));
                }
                Event::Gap(gap) => self.gaps += gap.count,
                Event::Reset { next, .. } => self.resets.push(next),
                Event::Recover(_) => {}
            }
        }
    }

    pub(crate) fn duplicates(&self, line: Line) -> u64 {
        self.arbiter.line(line).duplicate
    }
}

/// Returns messages of a run.
pub(crate) fn run(run: u32, sequences: Range<u32>) -> Vec<(u32, u32)> {
    sequences.map(|sequence| (run, sequence)).collect()
}
