//! The notices of messages that an outlet dropped.

use crate::notice::{Notice, Notices, Outlet, Why};
use std::time::{Duration, Instant};

/// The interval between two notices of messages dropped by one outlet.
const AGAIN: Duration = Duration::from_secs(1);

/// All reasons, in the order of [`Why`].
const REASONS: [Why; 3] = [Why::Unacknowledged, Why::Overrun, Why::OverLimit];

/// The notices of the messages that an outlet dropped: the first at once, then sums once a second.
pub(crate) struct Omissions {
    outlet: Outlet,
    notices: Notices,
    /// The unreported messages, by reason.
    untold: [u64; REASONS.len()],
    told: Option<Instant>,
}

impl Omissions {
    pub(crate) fn new(outlet: Outlet, notices: Notices) -> Self {
        Self {
            outlet,
            notices,
            untold: [0; REASONS.len()],
            told: None,
        }
    }

    /// Counts messages that were dropped.
    pub(crate) fn add(&mut self, why: Why, count: u64) {
        if let Some(untold) = self.untold.get_mut(why as usize) {
            *untold += count;
        }
        self.look();
    }

    /// Sends the notices that are due.
    pub(crate) fn look(&mut self) {
        let is_early = self.told.is_some_and(|told| told.elapsed() < AGAIN);
        if is_early || self.untold.iter().all(|count| *count == 0) {
            return;
        }
        self.told = Some(Instant::now());
        for (why, untold) in REASONS.into_iter().zip(&mut self.untold) {
            let count = std::mem::take(untold);
            if count > 0 {
                let outlet = self.outlet;
                self.notices
                    .send(Notice::Unpublished { outlet, count, why });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notice::channel;

    #[test]
    fn what_is_left_out_is_told_at_once_and_then_in_sums() {
        let (notices, received) = channel();
        let mut omissions = Omissions::new(Outlet::Dds, notices);
        for _ in 0..10 {
            omissions.add(Why::Overrun, 3);
            omissions.add(Why::Unacknowledged, 1);
            omissions.add(Why::OverLimit, 2);
        }
        let told = |what: &str| {
            let all: Vec<_> = received.iter().map(|n| n.to_string()).collect();
            assert_eq!(
                all,
                what.split(';')
                    .filter(|l| !l.is_empty())
                    .collect::<Vec<_>>()
            );
        };
        told("dds: 3 messages left out: overwritten before they could be published");
        omissions.look();
        told("");
        omissions.told = Instant::now().checked_sub(AGAIN);
        omissions.look();
        told(
            "dds: 10 messages left out: a subscriber does not acknowledge;\
             dds: 27 messages left out: overwritten before they could be published;\
             dds: 20 messages left out: beyond a limit of their topic",
        );
    }
}
