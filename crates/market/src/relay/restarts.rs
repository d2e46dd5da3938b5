//! The restarts of a channel, as the plants of an edge report them.

use super::{Step, Turns, What};
use core::cmp::Ordering;
use std::collections::VecDeque;

/// The time after which every plant has restarted with the channel, in nanoseconds.
const SOON: u64 = 60_000_000_000;

/// The most restarts within that time that plants are waited for.
const MOST: usize = 64;

/// The restarts of a channel.
///
/// The first plant that reports a restart makes it. The others report it when they come to it, one
/// after the other if there are several. After a minute, each plant is taken to have made it: the
/// messages of one that did not notice have the numbers of the feed all the same.
#[derive(Debug)]
pub(super) struct Restarts {
    count: u32,
    /// The times of the restarts within the last minute, oldest first.
    recent: VecDeque<u64>,
    /// The count at the last time at which the edge's numbers began anew.
    begun: u32,
    /// Whether a plant had reported a restart then.
    is_reported: bool,
}

/// What a plant has reported of its channel.
#[derive(Debug, Clone, Copy)]
pub(super) struct Past {
    /// The restarts that it has made.
    pub(super) restarts: u32,
    /// The restarts that it had made when it last reported one, or `None` if it has reported none.
    reported: Option<u32>,
    /// What its last step showed, or `None` before the first.
    turns: Option<Turns>,
}

/// What a step shows of its plant's channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct News {
    /// Whether messages are mapped differently from here on.
    pub(super) is_remapped: bool,
    /// The number of restarts, and the number of the next message, if there are any.
    pub(super) restarts: Option<(u32, u32)>,
}

impl Restarts {
    pub(super) fn new() -> Self {
        Self {
            count: 0,
            recent: VecDeque::with_capacity(MOST),
            begun: 0,
            is_reported: false,
        }
    }

    /// Records that the edge's numbers begin anew.
    pub(super) const fn begin(&mut self) {
        self.is_reported = self.begun != self.count;
        self.begun = self.count;
    }

    /// Returns whether the edge's numbers are those of the last restart that this plant reported
    /// itself.
    pub(super) fn are_those_of(&self, plant: &Past) -> bool {
        self.is_reported && plant.reported == Some(self.count)
    }

    /// Returns the number of restarts.
    pub(super) const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the number of restarts older than a minute. Each plant is taken to have made them.
    pub(super) fn settled(&self) -> u32 {
        self.count - self.recent.len() as u32
    }

    /// Returns whether a plant that has reported this many has made all of them.
    #[inline]
    pub(super) fn are_made(&self, reported: u32) -> bool {
        reported.max(self.settled()) == self.count
    }

    /// Settles restarts that are older than a minute. Returns whether any were.
    #[inline]
    pub(super) fn settle(&mut self, now: u64) -> bool {
        let before = self.recent.len();
        let is_past = |at: &u64| now.saturating_sub(*at) >= SOON;
        while self.recent.front().is_some_and(is_past) {
            self.recent.pop_front();
        }
        self.recent.len() < before
    }

    /// Processes `times` restarts that a plant reports after `reported` others. Restarts that a
    /// returning plant reports may be settled already. Returns the number that the plant has made,
    /// and whether the last one is new.
    pub(super) fn report(&mut self, now: u64, reported: u32, times: u32) -> (u32, bool) {
        let made = reported.saturating_add(times).max(self.settled());
        let is_new = made > self.count;
        while self.count < made {
            if self.recent.len() == MOST {
                self.recent.pop_front();
            }
            self.recent.push_back(now);
            self.count += 1;
        }
        (made, is_new)
    }
}

impl Past {
    /// Returns the past of a new plant, which has made these restarts.
    pub(super) const fn new(restarts: u32) -> Self {
        Self {
            restarts,
            reported: None,
            turns: None,
        }
    }

    /// Records that the plant has reported restarts, and made as many by now.
    pub(super) const fn report(&mut self, made: u32) {
        self.restarts = made;
        self.reported = Some(made);
    }

    /// Compares the restarts that the plant had counted with those that its last step showed.
    /// Returns `None` before the first step.
    pub(super) fn compare(&self, restarts: u16) -> Option<Ordering> {
        let known = self.turns?.restarts;
        Some(restarts.wrapping_sub(known).cast_signed().cmp(&0))
    }

    /// Counts these restarts as made.
    #[inline]
    pub(super) fn settle(&mut self, settled: u32) {
        self.restarts = self.restarts.max(settled);
    }

    /// Processes what a step shows besides what it says. The steps of a restart or of another
    /// mapping may be lost: later ones show both. `settled` is the number of restarts that each
    /// plant is taken to have made.
    #[inline]
    pub(super) fn learn(&mut self, step: &Step, settled: u32) -> News {
        let mut news = News {
            is_remapped: step.what == What::Remapped,
            restarts: None,
        };
        let next = match step.what {
            What::Reset | What::Changes => Some(step.number),
            What::Position => Some(step.number.wrapping_add(1)),
            // They have no place in the channel.
            What::Unnumbered | What::Silence | What::Remapped => None,
            What::Snapshot => return news,
        };
        let new = step.turns();
        let known = self.turns.get_or_insert(new);
        news.is_remapped |= known.mappings != new.mappings;
        known.mappings = new.mappings;
        if let Some(next) = next {
            let times = new.restarts.wrapping_sub(known.restarts);
            known.restarts = new.restarts;
            let times = times.max(u16::from(step.what == What::Reset));
            news.restarts = (times > 0).then_some((times.into(), next));
            // The plant may have been gone when restarts were settled.
            if times == 0 {
                self.settle(settled);
            }
        }
        news
    }
}
