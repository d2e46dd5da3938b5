//! Limits of the connections of two ports: neither takes the last descriptor of the other, or of
//! files and captures.

use crate::limits::raise_open_files;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A port keeps this part of all descriptors for itself, if it may have as many connections.
const OWN_PART: usize = 4;

/// At most this part of all descriptors is for connections of one port that have not logged on.
const WAITING_PART: usize = 8;

/// The connections permitted to one port. One thread takes permits; any thread may return them, and
/// change how many there are.
#[derive(Debug, Clone)]
pub struct Permits {
    shared: Arc<Shared>,
    own: usize,
}

/// The numbers of both ports.
#[derive(Debug)]
struct Shared {
    taken: [AtomicUsize; 2],
    most: [AtomicUsize; 2],
    /// The descriptors for connections of both ports.
    all: AtomicUsize,
    /// The descriptors that were open before the first connection.
    open: u64,
}

/// A permit for one connection, returned when it is dropped.
#[derive(Debug)]
pub struct Permit {
    shared: Arc<Shared>,
    own: usize,
}

/// The reason why there is no permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// The port has as many connections as it may.
    Port,
    /// The remaining descriptors are the other port's.
    Descriptors,
}

impl Permits {
    /// Makes permits for two ports with at most `most` connections each, by the descriptors that
    /// the process may still open. `spare` descriptors remain for everything else.
    #[must_use]
    pub fn of_process(most: [usize; 2], spare: u64) -> [Self; 2] {
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
        let ports = Self::new(most, 0, open);
        ports[0].follow_limit(spare);
        ports
    }

    fn new(most: [usize; 2], all: usize, open: u64) -> [Self; 2] {
        let shared = Arc::new(Shared {
            taken: [AtomicUsize::new(0), AtomicUsize::new(0)],
            most: most.map(AtomicUsize::new),
            all: AtomicUsize::new(all),
            open,
        });
        [0, 1].map(|own| Self {
            shared: Arc::clone(&shared),
            own,
        })
    }

    /// Adopts the limit of descriptors that the process has now, for both ports. `spare` of them
    /// remain for everything else.
    pub fn follow_limit(&self, spare: u64) {
        // A raise by 0 never lowers the limit, so this reads it.
        let limit = raise_open_files(0).unwrap_or(u64::MAX);
        let all = limit.saturating_sub(self.shared.open.saturating_add(spare));
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        self.shared.all.store(all, Ordering::Relaxed);
    }

    /// Changes how many connections this port may have. The other port reserves descriptors for it
    /// by this number.
    pub(super) fn set_most(&self, most: usize) {
        if let Some(own) = self.shared.most.get(self.own) {
            own.store(most, Ordering::Relaxed);
        }
    }

    /// Returns how many connections may wait without having logged on: at most `wanted`.
    pub(super) fn waiting(&self, wanted: usize) -> usize {
        wanted.min(self.all() / WAITING_PART).max(1)
    }

    fn all(&self) -> usize {
        self.shared.all.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self) -> Result<Permit, Full> {
        let Shared { taken, most, .. } = &*self.shared;
        let (all, other) = (self.all(), 1 - self.own);
        let of = |numbers: &[AtomicUsize; 2], side: usize| {
            let number = numbers.get(side);
            number.map_or(0, |number| number.load(Ordering::Relaxed))
        };
        if of(taken, self.own) >= of(most, self.own) {
            return Err(Full::Port);
        }
        let kept = of(most, other).min(all / OWN_PART);
        let kept = kept.saturating_sub(of(taken, other));
        if of(taken, 0) + of(taken, 1) + kept >= all {
            return Err(Full::Descriptors);
        }
        if let Some(taken) = taken.get(self.own) {
            taken.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Permit {
            shared: Arc::clone(&self.shared),
            own: self.own,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(taken) = self.shared.taken.get(self.own) {
            taken.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(permits: &Permits) -> (Vec<Permit>, Full) {
        let mut taken = Vec::new();
        loop {
            match permits.take() {
                Ok(permit) => taken.push(permit),
                Err(full) => return (taken, full),
            }
        }
    }

    #[test]
    fn with_descriptors_enough_each_port_has_what_it_may() {
        let [one, two] = Permits::new([3, 5], 1000, 0);
        let (first, full) = fill(&one);
        assert_eq!((first.len(), full), (3, Full::Port));
        let (second, full) = fill(&two);
        assert_eq!((second.len(), full), (5, Full::Port));
        drop(first);
        assert_eq!(fill(&one).0.len(), 3);
    }

    #[test]
    fn no_port_takes_what_is_the_others() {
        let [one, two] = Permits::new([4096, 4096], 960, 0);
        let (first, full) = fill(&one);
        assert_eq!((first.len(), full), (720, Full::Descriptors));
        let (second, full) = fill(&two);
        assert_eq!((second.len(), full), (240, Full::Descriptors));
        assert_eq!(one.take().unwrap_err(), Full::Descriptors);
        assert_eq!(one.waiting(4096), 120);
        // A port that may have few connections reserves few.
        let [one, _two] = Permits::new([4096, 10], 960, 0);
        assert_eq!(fill(&one).0.len(), 950);
    }

    #[test]
    fn a_port_reserves_by_what_the_other_one_may_have_now() {
        let [one, two] = Permits::new([4096, 10], 960, 0);
        two.set_most(100);
        let (first, full) = fill(&one);
        assert_eq!((first.len(), full), (860, Full::Descriptors));
        two.set_most(0);
        let (more, full) = fill(&one);
        assert_eq!((more.len(), full), (100, Full::Descriptors));
    }

    #[test]
    fn both_ports_follow_the_limit_of_the_process() {
        // As with a limit that was lower at the start.
        let [one, two] = Permits::new([8, 8], 4, 0);
        let (first, full) = fill(&one);
        assert_eq!((first.len(), full), (3, Full::Descriptors));
        two.follow_limit(0);
        assert_eq!(fill(&one).0.len(), 5);
        assert_eq!(two.waiting(8), 8);
        one.follow_limit(u64::MAX);
        assert_eq!(two.take().unwrap_err(), Full::Descriptors);
    }

    #[test]
    fn the_limit_of_this_process_leaves_some() {
        let [one, _] = Permits::of_process([1 << 30, 1 << 30], 64);
        assert!(one.take().is_ok());
    }
}
