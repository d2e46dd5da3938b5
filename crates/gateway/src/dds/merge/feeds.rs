//! The order of the samples that several gateways have of feeds.

use std::ops::Range;

/// The most origins whose samples are merged into the order of their feeds.
const MOST_RUNS: usize = 64;

/// Stands for no sample, and for no rank.
const NONE: usize = usize::MAX;

/// The places of a sample among those of its origin and of its feed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) origin: u64,
    /// The hash of its channel, or 0 if it belongs to no feed.
    pub(super) channel: u64,
    /// Its number and index in the channel.
    pub(super) in_feed: (u64, u32),
}

/// Ranks the samples of several origins so that each feed is in its order. Allocates on
/// construction only.
pub(super) struct FeedOrder {
    /// The samples of each origin that have no rank yet.
    runs: Vec<Range<usize>>,
    /// The samples of feeds, in an order.
    sorted: Vec<usize>,
    /// The sample before each one in its feed.
    before: Vec<usize>,
    ranks: Vec<usize>,
}

impl FeedOrder {
    /// Creates an order of up to `most` samples.
    pub(super) fn new(most: usize) -> Self {
        Self {
            runs: Vec::with_capacity(MOST_RUNS),
            sorted: Vec::with_capacity(most),
            before: Vec::with_capacity(most),
            ranks: Vec::with_capacity(most),
        }
    }

    /// Returns the ranks of samples, which are sorted by origin. Those of one origin keep their
    /// order, one of no feed comes as early as it can, and one of a feed behind all earlier ones of
    /// it, unless the orders of origins contradict each other. Returns `None` if there is nothing
    /// to merge, or the numbers of a feed begin again among those of an origin, so that they have
    /// no order in common.
    pub(super) fn rank<T>(&mut self, all: &[T], place: impl Fn(&T) -> Place) -> Option<&[usize]> {
        let place = |at: usize| all.get(at).map(&place);
        if !self.divide(all.len(), &place) || self.begins_again(&place) {
            return None;
        }
        self.link(all.len(), &place);
        for rank in 0..all.len() {
            let next = self.next_run(&place);
            let next = next.and_then(|run| self.runs.get_mut(run)?.next());
            if let Some(of_next) = next.and_then(|at| self.ranks.get_mut(at)) {
                *of_next = rank;
            }
        }
        Some(&self.ranks)
    }

    /// Divides the samples by origin. Returns whether there are several, and not too many.
    fn divide(&mut self, len: usize, place: &impl Fn(usize) -> Option<Place>) -> bool {
        let Self { runs, sorted, .. } = self;
        runs.clear();
        sorted.clear();
        let mut origin = None;
        for (at, place) in (0..len).filter_map(|at| Some((at, place(at)?))) {
            let is_full = runs.len() == MOST_RUNS;
            match runs.last_mut() {
                Some(run) if origin == Some(place.origin) => run.end = at + 1,
                _ if is_full => return false,
                _ => runs.push(at..at + 1),
            }
            origin = Some(place.origin);
            if place.channel != 0 {
                sorted.push(at);
            }
        }
        runs.len() > 1
    }

    /// Returns whether the numbers of a feed begin again among the samples of an origin.
    fn begins_again(&mut self, place: &impl Fn(usize) -> Option<Place>) -> bool {
        let of_origin = |at: usize| place(at).map(|p| (p.origin, p.channel));
        self.sorted.sort_unstable_by_key(|&at| (of_origin(at), at));
        let in_feed = |at: usize| place(at).map(|p| p.in_feed);
        self.sorted
            .windows(2)
            .filter_map(|pair| <[usize; 2]>::try_from(pair).ok())
            .any(|[a, b]| of_origin(a) == of_origin(b) && in_feed(b) < in_feed(a))
    }

    /// Finds the sample before each one in its feed.
    fn link(&mut self, len: usize, place: &impl Fn(usize) -> Option<Place>) {
        let Self { sorted, before, .. } = self;
        let in_feed = |at: usize| place(at).map(|p| (p.channel, p.in_feed));
        sorted.sort_unstable_by_key(|&at| (in_feed(at), at));
        before.clear();
        before.resize(len, NONE);
        let channel = |at: usize| place(at).map(|p| p.channel);
        for pair in sorted.windows(2) {
            if let &[a, b] = pair
                && channel(a) == channel(b)
                && let Some(before) = before.get_mut(b)
            {
                *before = a;
            }
        }
        self.ranks.clear();
        self.ranks.resize(len, NONE);
    }

    /// Returns the index of the run whose first sample is next: one of no feed, or the earliest of
    /// its feed in all runs. If each waits for another, it is the earliest of the first one's feed.
    fn next_run(&self, place: &impl Fn(usize) -> Option<Place>) -> Option<usize> {
        let heads = (0..).zip(&self.runs);
        let heads = heads.filter_map(|(run, left)| Some((run, left.start, place(left.start)?)));
        let heads = || heads.clone().filter(|(run, ..)| self.has_more(*run));
        if let Some((plain, ..)) = heads().find(|(.., head)| head.channel == 0) {
            return Some(plain);
        }
        if let Some((free, ..)) = heads().find(|(_, at, _)| self.is_free(*at)) {
            return Some(free);
        }
        let (.., first) = heads().next()?;
        let same = heads().filter(|(.., head)| head.channel == first.channel);
        same.min_by_key(|(run, _, head)| (head.in_feed, *run))
            .map(|(run, ..)| run)
    }

    fn has_more(&self, run: usize) -> bool {
        self.runs.get(run).is_some_and(|left| !left.is_empty())
    }

    /// Returns whether the sample before this one in its feed has a rank, if there is one.
    fn is_free(&self, at: usize) -> bool {
        match self.before.get(at) {
            None | Some(&NONE) => true,
            Some(&before) => self.ranks.get(before).is_some_and(|rank| *rank != NONE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FeedOrder, Place};
    use proptest::prelude::*;

    /// Returns samples, given as origin, channel and number, in their order.
    fn in_order(all: &[(u64, u64, u64)]) -> Option<Vec<(u64, u64, u64)>> {
        let mut order = FeedOrder::new(all.len());
        let place = |&(origin, channel, number): &(u64, u64, u64)| Place {
            origin,
            channel,
            in_feed: (number, 0),
        };
        let ranks = order.rank(all, place)?;
        let mut ranked: Vec<_> = ranks.iter().zip(all).collect();
        ranked.sort_unstable();
        assert!(ranked.iter().map(|(rank, _)| **rank).eq(0..all.len()));
        Some(ranked.into_iter().map(|(_, sample)| *sample).collect())
    }

    #[test]
    fn each_of_several_feeds_is_in_its_order() {
        // The first sample of origin 2 is of the other feed.
        let all = [(1, 5, 5), (1, 6, 9), (2, 6, 7), (2, 5, 3)];
        let expected = [(2, 6, 7), (2, 5, 3), (1, 5, 5), (1, 6, 9)];
        assert_eq!(in_order(&all).unwrap(), expected);
    }

    #[test]
    fn numbers_that_begin_again_behind_another_feed_have_no_order() {
        assert_eq!(
            in_order(&[(1, 5, 9), (1, 6, 1), (1, 5, 1), (2, 5, 2)]),
            None
        );
    }

    #[test]
    fn origins_that_contradict_each_other_keep_their_own_orders() {
        let all = [(1, 5, 2), (1, 6, 1), (2, 6, 2), (2, 5, 1)];
        assert_eq!(in_order(&all).unwrap(), all);
    }

    proptest! {
        /// Origins that have parts of feeds as the feeds came are merged into what came.
        #[test]
        fn parts_of_what_came_are_in_the_order_of_their_feeds(
            came in proptest::collection::vec((0_u64..4, 1_u64..4), 1..40),
        ) {
            let mut numbers = [0; 4];
            let mut all = Vec::new();
            for (channel, origin) in came {
                numbers[channel as usize] += u64::from(channel != 0);
                all.push((origin, channel, numbers[channel as usize]));
            }
            all.sort_by_key(|(origin, ..)| *origin);
            if let Some(ranked) = in_order(&all) {
                for channel in 1..4 {
                    let of_feed = ranked.iter().filter(|(_, c, _)| *c == channel);
                    prop_assert!(of_feed.map(|(.., number)| number).is_sorted());
                }
                for origin in 1..4 {
                    let own = |all: &[(u64, u64, u64)]| -> Vec<_> {
                        all.iter().filter(|(o, ..)| *o == origin).copied().collect()
                    };
                    prop_assert_eq!(own(&ranked), own(&all));
                }
            } else {
                prop_assert!(all.iter().all(|(origin, ..)| *origin == all[0].0));
            }
        }
    }
}
