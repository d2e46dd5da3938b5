//! Limits of the connections of two ports: neither takes the last descriptor of the other, or of
//! files and captures.

use crate::limits::raise_open_files;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A port keeps this part of all descriptors for itself, if it may have as many connections.
const OWN_PART: usize = 4;

/// At most this part of all descriptors is for connections of one port that have not logged on.
const WAITING_PART: usize = 8;

/// The connections permitted to one port. One thread takes permits; any thread may return them.
#[derive(Debug, Clone)]
pub struct Permits {
    /// The connections of both ports.
    taken: Arc<[AtomicUsize; 2]>,
    own: usize,
    most: [usize; 2],
    /// The descriptors for connections of both ports.
    all: usize,
}

/// A permit for one connection, returned when it is dropped.
#[derive(Debug)]
pub struct Permit {
    taken: Arc<[AtomicUsize; 2]>,
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
        // A raise by 0 never lowers the limit, so this reads it.
        let limit = raise_open_files(0).unwrap_or(u64::MAX);
        let open = std::fs::read_dir("/proc/self/fd").map_or(0, |all| all.count() as u64);
        let all = usize::try_from(limit.saturating_sub(open + spare)).unwrap_or(usize::MAX);
        Self::new(most, all)
    }

    fn new(most: [usize; 2], all: usize) -> [Self; 2] {
        let taken = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        [0, 1].map(|own| Self {
            taken: Arc::clone(&taken),
            own,
            most,
            all,
        })
    }

    /// Changes how many connections this port may have; the other port keeps to its former value.
    pub(super) fn set_most(&mut self, most: usize) {
        if let Some(own) = self.most.get_mut(self.own) {
            *own = most;
        }
    }

    /// Returns how many connections may wait without having logged on: at most `wanted`.
    pub(super) fn waiting(&self, wanted: usize) -> usize {
        wanted.min(self.all / WAITING_PART).max(1)
    }

    pub(super) fn take(&self) -> Result<Permit, Full> {
        let other = 1 - self.own;
        let count = |side: usize| {
            let taken = self.taken.get(side);
            taken.map_or(0, |taken| taken.load(Ordering::Relaxed))
        };
        let most = |side: usize| self.most.get(side).copied().unwrap_or(0);
        if count(self.own) >= most(self.own) {
            return Err(Full::Port);
        }
        let kept = most(other).min(self.all / OWN_PART);
        let kept = kept.saturating_sub(count(other));
        if count(0) + count(1) + kept >= self.all {
            return Err(Full::Descriptors);
        }
        if let Some(taken) = self.taken.get(self.own) {
            taken.fetch_add(1, Ordering::Relaxed);
        }
        Ok(Permit {
            taken: Arc::clone(&self.taken),
            own: self.own,
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(taken) = self.taken.get(self.own) {
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
        let [one, two] = Permits::new([3, 5], 1000);
        let (first, full) = fill(&one);
        assert_eq!((first.len(), full), (3, Full::Port));
        let (second, full) = fill(&two);
        assert_eq!((second.len(), full), (5, Full::Port));
        drop(first);
        assert_eq!(fill(&one).0.len(), 3);
    }

    #[test]
    fn no_port_takes_what_is_the_others() {
        let [one, two] = Permits::new([4096, 4096], 960);
        let (first, full) = fill(&one);
        assert_eq!((first.len(), full), (720, Full::Descriptors));
        let (second, full) = fill(&two);
        assert_eq!((second.len(), full), (240, Full::Descriptors));
        assert_eq!(one.take().unwrap_err(), Full::Descriptors);
        assert_eq!(one.waiting(4096), 120);
        // A port that may have few connections reserves few.
        let [one, _two] = Permits::new([4096, 10], 960);
        assert_eq!(fill(&one).0.len(), 950);
    }

    #[test]
    fn the_limit_of_this_process_leaves_some() {
        let [one, _] = Permits::of_process([1 << 30, 1 << 30], 64);
        assert!(one.take().is_ok());
    }
}
