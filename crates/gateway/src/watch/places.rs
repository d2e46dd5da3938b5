//! A limit on the queries that take long.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The places for queries that take long at the same time.
pub(super) struct Places {
    most: usize,
    taken: AtomicUsize,
}

/// A place, which is free again when it is dropped.
pub(super) struct Place<'a>(&'a Places);

impl Places {
    /// Creates this many places.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            taken: AtomicUsize::new(0),
        }
    }

    /// Takes a place. Returns `None` if all are taken.
    pub(super) fn take(&self) -> Option<Place<'_>> {
        let place = Place(self);
        (self.taken.fetch_add(1, Ordering::Relaxed) < self.most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let places = Places::new(2);
        let (first, second) = (places.take(), places.take());
        assert!(first.is_some() && second.is_some());
        assert!(places.take().is_none() && places.take().is_none());
        drop(second);
        assert!(places.take().is_some());
    }
}
