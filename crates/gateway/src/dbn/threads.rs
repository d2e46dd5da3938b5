//! The threads of replays, of which every owner may have some, and the order of those that wait.

use std::mem;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// The most concurrent threads. Other replays are queued.
pub(super) const MOST: usize = 16;
/// The most of them that read for one owner, so that clients that read slowly leave some to others.
pub(super) const OWN: usize = 4;

/// The owner of a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// A user by its name.
    User(Arc<str>),
    /// The clients of a network that are no users.
    Network(IpAddr),
}

/// The threads that run, each with its owner, and the replays that wait for one.
#[derive(Debug, Default)]
pub(super) struct Threads {
    running: Vec<(Owner, Weak<()>)>,
    /// The tickets of the replays that were refused in this pass, and in the last one.
    asking: Vec<(u64, Owner)>,
    asked: Vec<(u64, Owner)>,
    next_ticket: u64,
}

impl Threads {
    /// Begins a pass over the clients. A replay that did not ask in the last one is not waited for.
    pub(super) fn begin_pass(&mut self) {
        mem::swap(&mut self.asked, &mut self.asking);
        self.asking.clear();
    }

    /// Returns a new ticket. Of the replays that wait, the one with the lowest comes first.
    pub(super) const fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Returns a place for a thread, which holds it as long as it runs, or `None` if all of them or
    /// all of the owner are taken, or another replay comes first.
    pub(super) fn take(&mut self, owner: Owner, ticket: u64) -> Option<Arc<()>> {
        self.running.retain(|(_, place)| place.strong_count() > 0);
        if !self.has_place(&owner) || self.is_behind(ticket) {
            self.asking.push((ticket, owner));
            return None;
        }
        self.asked.retain(|(other, _)| *other != ticket);
        let place = Arc::new(());
        self.running.push((owner, Arc::downgrade(&place)));
        Some(place)
    }

    fn has_place(&self, owner: &Owner) -> bool {
        let own = self.running.iter().filter(|(other, _)| other == owner);
        self.running.len() < MOST && own.count() < OWN
    }

    /// Returns whether a replay with a lower ticket waits that may have a thread.
    fn is_behind(&self, ticket: u64) -> bool {
        let mut before = self.asked.iter().filter(|(other, _)| *other < ticket);
        before.any(|(_, owner)| self.has_place(owner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn users() -> [Owner; 5] {
        ["a", "b", "c", "d", "e"].map(|name| Owner::User(name.into()))
    }

    /// Asks for a thread for a replay that has not asked before.
    fn first(threads: &mut Threads, owner: &Owner) -> Option<Arc<()>> {
        let ticket = threads.ticket();
        threads.take(owner.clone(), ticket)
    }

    /// Returns all threads, taken by the first four users.
    fn full(threads: &mut Threads, users: &[Owner; 5]) -> Vec<Arc<()>> {
        let each = users[..4].iter().flat_map(|owner| [owner; OWN]);
        each.map(|owner| first(threads, owner).unwrap()).collect()
    }

    #[test]
    fn one_owner_leaves_threads_to_others() {
        let (mut threads, users) = (Threads::default(), users());
        let mut taken = full(&mut threads, &users);
        assert_eq!(taken.len(), MOST);
        for owner in &users {
            assert!(first(&mut threads, owner).is_none());
        }
        // A thread of the first user ends.
        taken.remove(0);
        assert!(first(&mut threads, &users[1]).is_none());
        taken.push(first(&mut threads, &users[4]).unwrap());
        assert!(first(&mut threads, &users[0]).is_none());
    }

    #[test]
    fn replays_that_wait_come_in_the_order_in_which_they_asked() {
        let (mut threads, users) = (Threads::default(), users());
        let [a, b, _, _, e] = &users;
        let mut taken = full(&mut threads, &users);
        let [of_b, of_e, of_a] = [b, e, a].map(|owner| {
            let ticket = threads.ticket();
            assert!(threads.take(owner.clone(), ticket).is_none());
            ticket
        });
        // A thread of the first user ends. The second one has its share.
        taken.remove(0);
        threads.begin_pass();
        assert!(threads.take(a.clone(), of_a).is_none());
        assert!(threads.take(b.clone(), of_b).is_none());
        taken.push(threads.take(e.clone(), of_e).unwrap());
        assert!(threads.take(a.clone(), of_a).is_none());
    }

    #[test]
    fn a_replay_that_no_longer_asks_is_not_waited_for() {
        let (mut threads, users) = (Threads::default(), users());
        let [a, .., e] = &users;
        let mut taken = full(&mut threads, &users);
        assert!(first(&mut threads, e).is_none());
        taken.remove(0);
        let of_a = threads.ticket();
        for is_there in [false, true] {
            threads.begin_pass();
            assert_eq!(threads.take(a.clone(), of_a).is_some(), is_there);
        }
    }
}
