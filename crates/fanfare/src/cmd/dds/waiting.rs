//! The queue of samples between the thread that takes them and the one that prints them, which may
//! block on its output.

use fanfare_dds::Sample;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The limits of a queue of samples to print, in samples and in bytes.
pub(crate) const MOST_ITEMS: usize = 65_536;
pub(crate) const MOST_BYTES: usize = 64 << 20;

/// The memory of an item besides its bytes.
const OVERHEAD: usize = 64;

/// An item of a queue, whose memory is limited.
pub(crate) trait Weighed {
    /// Returns the bytes that the item owns.
    fn bytes(&self) -> usize;
}

/// A sample, or the end of an instance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Data(Vec<u8>),
    Disposed,
    NoWriters,
}

impl Item {
    /// Creates an item, or returns `None` for a sample without content.
    pub(crate) fn new(sample: &Sample<'_>) -> Option<Self> {
        let info = &sample.info;
        match (info.has_data, info.alive, info.disposed) {
            (true, ..) => Some(Self::Data(sample.bytes().to_vec())),
            (false, true, _) => None,
            (false, false, true) => Some(Self::Disposed),
            (false, false, false) => Some(Self::NoWriters),
        }
    }
}

impl Weighed for Item {
    fn bytes(&self) -> usize {
        match self {
            Self::Data(bytes) => bytes.len(),
            Self::Disposed | Self::NoWriters => 0,
        }
    }
}

/// A queue with two limits. At either the oldest items are dropped for the new one, and counted.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    most_items: usize,
    most_bytes: usize,
    inside: Mutex<Inside<T>>,
    /// Notified when an item comes, and at the end.
    ready: Condvar,
}

#[derive(Debug)]
struct Inside<T> {
    items: VecDeque<T>,
    bytes: usize,
    dropped: u64,
    /// Whether no more items come.
    is_closed: bool,
}

impl<T: Weighed> Waiting<T> {
    /// Creates a queue of at most `most_items` items, with at most `most_bytes` bytes in all of
    /// them.
    pub(crate) fn new(most_items: usize, most_bytes: usize) -> Self {
        Self {
            most_items,
            most_bytes,
            inside: Mutex::new(Inside {
                items: VecDeque::new(),
                bytes: 0,
                dropped: 0,
                is_closed: false,
            }),
            ready: Condvar::new(),
        }
    }

    /// Adds an item at the end. Does not block.
    pub(crate) fn push(&self, item: T) {
        let mut inside = self.lock();
        let size = weight(&item);
        if size > self.most_bytes {
            inside.dropped += 1;
            return;
        }
        while inside.items.len() >= self.most_items || inside.bytes + size > self.most_bytes {
            let Some(oldest) = inside.items.pop_front() else {
                break;
            };
            inside.bytes -= weight(&oldest);
            inside.dropped += 1;
        }
        inside.bytes += size;
        inside.items.push_back(item);
        self.ready.notify_one();
    }

    /// Removes the oldest item, and waits for one for at most `patience`, or until the queue is
    /// closed.
    pub(crate) fn pop(&self, patience: Duration) -> Option<T> {
        let empty = |inside: &mut Inside<T>| inside.items.is_empty() && !inside.is_closed;
        let waited = self.ready.wait_timeout_while(self.lock(), patience, empty);
        let (mut inside, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let item = inside.items.pop_front()?;
        inside.bytes -= weight(&item);
        Some(item)
    }

    /// Declares that no more items come.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.ready.notify_all();
    }

    /// Returns whether nothing is left, and nothing more comes.
    pub(crate) fn is_over(&self) -> bool {
        let inside = self.lock();
        inside.is_closed && inside.items.is_empty()
    }

    /// Returns the number of items dropped.
    pub(crate) fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    fn lock(&self) -> MutexGuard<'_, Inside<T>> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the memory of an item in the queue, bytes.
fn weight(item: &impl Weighed) -> usize {
    OVERHEAD + item.bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(n: u8, len: usize) -> Item {
        Item::Data(vec![n; len])
    }

    fn rest(waiting: &Waiting<Item>) -> Vec<Item> {
        std::iter::from_fn(|| waiting.pop(Duration::ZERO)).collect()
    }

    #[test]
    fn beyond_so_many_the_oldest_make_way() {
        let waiting = Waiting::new(3, 1 << 20);
        (0..5).for_each(|n| waiting.push(data(n, 10)));
        assert_eq!(waiting.dropped(), 2);
        assert_eq!(rest(&waiting), [data(2, 10), data(3, 10), data(4, 10)]);
        waiting.push(Item::Disposed);
        assert_eq!(
            (rest(&waiting), waiting.dropped()),
            (vec![Item::Disposed], 2)
        );
    }

    #[test]
    fn beyond_so_many_bytes_the_oldest_make_way() {
        let waiting = Waiting::new(100, 1_000);
        for (n, len) in [(0, 300), (1, 100), (2, 100), (3, 500)] {
            waiting.push(data(n, len));
        }
        assert_eq!(waiting.dropped(), 1);
        waiting.push(data(4, 937));
        assert_eq!(waiting.dropped(), 2, "more than all of it");
        waiting.push(data(5, 936));
        assert_eq!(rest(&waiting), [data(5, 936)]);
        assert_eq!(waiting.dropped(), 5);
    }

    #[test]
    fn a_closed_queue_is_over_once_it_is_empty() {
        let waiting = Waiting::new(3, 1 << 20);
        waiting.push(data(1, 10));
        assert!(!waiting.is_over());
        waiting.close();
        assert!(!waiting.is_over());
        let long = Duration::from_secs(3_600);
        assert_eq!(waiting.pop(long), Some(data(1, 10)));
        assert_eq!(waiting.pop(long), None, "it does not wait");
        assert!(waiting.is_over());
    }
}
