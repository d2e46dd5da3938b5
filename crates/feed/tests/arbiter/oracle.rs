//! The slow, obvious arbiter: one set of waiting numbers, one of numbers declared missing, plain
//! 64-bit numbers, one number a packet.

use crate::net::{Arrival, Out};
use std::collections::{BTreeMap, BTreeSet};

pub(crate) struct Slow {
    pub(crate) next: Option<u64>,
    waiting: BTreeMap<u64, u64>,
    missing: BTreeSet<u64>,
    hold_back: usize,
    timeout: u64,
    out: Vec<Out>,
}

impl Slow {
    pub(crate) fn new(hold_back: usize, timeout: u64) -> Self {
        Self {
            next: None,
            waiting: BTreeMap::new(),
            missing: BTreeSet::new(),
            hold_back,
            timeout,
            out: Vec::new(),
        }
    }

    /// Returns the expected output for these arrivals (in time order).
    pub(crate) fn play(mut self, arrivals: &[Arrival], number: impl Fn(u64) -> u32) -> Vec<Out> {
        for arrival in arrivals {
            while let Some(t) = self.deadline().filter(|t| *t <= arrival.at) {
                self.advance(t, false, &number);
            }
            let next = *self.next.get_or_insert(arrival.index);
            if arrival.index >= next {
                self.waiting.entry(arrival.index).or_insert(arrival.at);
            } else if self.missing.remove(&arrival.index) {
                self.out.push(Out::Late { filled: 1 });
            }
            self.advance(arrival.at, false, &number);
        }
        self.advance(0, true, &number);
        self.out
    }

    fn deadline(&self) -> Option<u64> {
        self.waiting.values().min().map(|t| t + self.timeout)
    }

    fn advance(&mut self, now: u64, end: bool, number: impl Fn(u64) -> u32) {
        while let (Some(next), Some((&first, _))) = (self.next, self.waiting.iter().next()) {
            if first == next {
                self.out.push(Out::Got(number(next)));
                self.waiting.remove(&next);
                self.next = Some(next + 1);
                continue;
            }
            let due = self.deadline().is_some_and(|t| t <= now);
            if !due && !end && self.waiting.len() <= self.hold_back {
                return;
            }
            self.out.push(Out::Gap {
                first: number(next),
                count: (first - next) as u32,
            });
            self.missing.extend(next..first);
            self.next = Some(first);
        }
    }
}
