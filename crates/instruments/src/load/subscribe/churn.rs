//! The next steps of clients that change their subscriptions, from a seed.

use fanfare_fix::session::SECOND;
use fanfare_gateway::Contract;
use fastrand::Rng;

use super::Asked;
use crate::subscriber::{Rights, Updates};

/// The most subscriptions of a session at a time.
const MOST: usize = 4;

/// A client's step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Adds a subscription.
    Subscribe(Asked),
    /// Ends the subscription at this index.
    Stop(usize),
    /// Ends it, and subscribes anew at once.
    Change(usize, Asked),
    /// Logs out, and reconnects.
    Leave,
    /// Closes its connection without a Logout, and reconnects.
    Break,
}

/// The decisions of one client. A seed and a number always lead to the same ones.
#[derive(Debug)]
pub(super) struct Churn {
    rng: Rng,
    /// The time at which the next one is due, in monotonic nanoseconds.
    pub(super) next: u64,
}

impl Churn {
    pub(super) fn new(seed: u64, client: usize) -> Self {
        let mut mix = Rng::with_seed(seed);
        let own = mix.u64(..) ^ (client as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self {
            rng: Rng::with_seed(own),
            next: 0,
        }
    }

    /// Returns the client's step now, with this many subscriptions; `base` limits its
    /// subscriptions.
    pub(super) fn step(
        &mut self,
        now: u64,
        subscriptions: usize,
        (base, rights): (&Asked, Option<&Rights>),
    ) -> Step {
        self.next = now + self.rng.u64(SECOND / 20..SECOND);
        let any = self.rng.usize(..subscriptions.max(1));
        match self.rng.u8(..20) {
            0 => Step::Leave,
            1 => Step::Break,
            2..=6 if subscriptions > 0 => Step::Stop(any),
            7..=11 if subscriptions > 0 => Step::Change(any, self.asked(base, rights)),
            _ if subscriptions < MOST => Step::Subscribe(self.asked(base, rights)),
            _ => Step::Stop(any),
        }
    }

    /// Returns another subscription within `base`; three times of four within the rights, too.
    pub(super) fn asked(&mut self, base: &Asked, rights: Option<&Rights>) -> Asked {
        let mut asked = base.clone();
        self.rng.shuffle(&mut asked.symbols);
        let count = self.rng.usize(1..=asked.symbols.len().max(1));
        asked.symbols.truncate(count);
        asked.terms.depth = match base.terms.by_order {
            // A book of orders has full depth.
            true => 0,
            false => self.depth(base.terms.depth),
        };
        asked.contract = base.contract.or_else(|| self.contract());
        asked.terms.conflated = asked.contract == Some(Contract::Conflated);
        if asked.contract == Some(Contract::Conflated) && asked.interval.is_none() {
            asked.interval = self.rng.bool().then(|| self.rng.u32(1..100));
        }
        if base.terms.updates == Updates::Changes {
            match self.rng.u8(..8) {
                0 => asked.terms.updates = Updates::None,
                1 => {
                    asked.terms.updates = Updates::Snapshots;
                    asked.interval = Some(self.rng.u32(10..200));
                }
                _ => {}
            }
        }
        if let Some(rights) = rights
            && self.rng.u8(..4) > 0
        {
            asked.keep_to(rights);
        }
        asked
    }

    /// Returns a depth of at most `base`, where 0 is full depth.
    fn depth(&mut self, base: u32) -> u32 {
        match (base, self.rng.u8(..4)) {
            (1, _) => 1,
            (_, 0) => base,
            (_, 1) => 1,
            (0, _) => self.rng.u32(2..=20),
            (base, _) => self.rng.u32(1..=base),
        }
    }

    fn contract(&mut self) -> Option<Contract> {
        match self.rng.usize(..=Contract::ALL.len()) {
            // A slow client would be logged out, which is not a fault of its books.
            0 => None,
            at => Contract::ALL.get(at - 1).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_number_decide_everything() {
        let base = Asked {
            symbols: ["A", "B", "C*"].map(str::to_owned).to_vec(),
            ..Asked::everything()
        };
        let story = |seed, client| {
            let mut churn = Churn::new(seed, client);
            let steps = (0..200).map(|at| churn.step(at, at as usize % 4, (&base, None)));
            steps.collect::<Vec<_>>()
        };
        assert_eq!(story(1, 1), story(1, 1));
        assert_ne!(story(1, 1), story(1, 2));
        assert_ne!(story(1, 1), story(2, 1));
        let all = story(1, 1);
        assert!(all.contains(&Step::Leave) && all.contains(&Step::Break));
    }

    #[test]
    fn nothing_is_asked_for_beyond_the_base() {
        let mut base = Asked::everything();
        base.terms.depth = 3;
        base.contract = Some(Contract::Skip);
        let mut churn = Churn::new(7, 0);
        for _ in 0..1_000 {
            let asked = churn.asked(&base, None);
            assert!((1..=3).contains(&asked.terms.depth), "{asked:?}");
            assert_eq!((asked.contract, asked.symbols.len()), (base.contract, 1));
        }
    }
}
