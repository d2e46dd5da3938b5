//! The share of a turn that is for the requests of clients.

use super::ending::SLICE;
use super::list::LOOKED_AT;

/// What a whole share is divided by while the feeds bring messages. The requests of clients go on
/// with the rest, which takes less time than the messages.
const REST: usize = 8;

/// What the share of lists is divided by while messages of the feeds are waiting. The rest is about
/// five full pages.
const REST_OF_LISTS: usize = 2;

/// The most work of a turn that requests of clients cause, for all sessions together, so that
/// updates are not delayed by more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Share {
    /// Snapshots and other messages.
    pub(super) messages: usize,
    /// Messages of lists, and the instruments in them.
    pub(super) listed: usize,
    /// Symbols and instruments that are examined for lists, and items that sessions may no longer
    /// have.
    pub(super) looks: usize,
    /// Symbols and instruments that are looked up for patterns.
    pub(super) growth: usize,
    /// Parts of ended subscriptions that are removed.
    pub(super) ends: usize,
}

impl Share {
    /// The share of a turn without messages of the feeds.
    pub(super) const WHOLE: Self = Self {
        messages: 256,
        listed: 512,
        looks: LOOKED_AT,
        growth: 512,
        ends: SLICE,
    };

    /// Returns the share of a turn that has read this many messages of the feeds. `has_more` states
    /// whether messages of the feeds are still waiting.
    pub(super) const fn of_turn(read: usize, has_more: bool) -> Self {
        let whole = Self::WHOLE;
        if read == 0 && !has_more {
            return whole;
        }
        // All sessions that are behind divide these snapshots among themselves.
        let (messages, listed) = match has_more {
            true => (whole.messages / (REST / 2), whole.listed / REST_OF_LISTS),
            false => (whole.messages, whole.listed),
        };
        Self {
            messages,
            listed,
            // Two for each listed instrument: its symbol, and itself.
            looks: listed * 2,
            growth: whole.growth / REST,
            ends: whole.ends / REST,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_part_of_a_turn_while_the_feeds_bring_messages() {
        assert_eq!(Share::of_turn(0, false), Share::WHOLE);
        let parts = |share: Share| {
            let whole = Share::WHOLE;
            [whole.growth / share.growth, whole.ends / share.ends]
        };
        let rest = [(1, false, 1, 1), (0, true, 4, 2), (64, true, 4, 2)];
        for (read, has_more, messages, listed) in rest {
            let share = Share::of_turn(read, has_more);
            assert_eq!(parts(share), [REST; 2]);
            assert_eq!(Share::WHOLE.messages / share.messages, messages);
            assert_eq!(Share::WHOLE.listed / share.listed, listed);
            assert!(share.listed > 100 && share.looks >= 2 * share.listed);
        }
    }
}
