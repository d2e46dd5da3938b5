//! Counters for an operator: one relaxed store each on the hot thread, readable from any other.
//!
//! ```
//! use fanfare_engine::counters::Counters;
//! let counters = Counters::new();
//! let sent = counters.add("messages_sent", "application messages written to sockets");
//! sent.increment(3); // on the hot thread
//! assert_eq!(counters.snapshot()[0].value, 3); // on any thread
//! ```
//!
//! [`Histogram`]s of durations share the registry; [`Windows`] reads them once a second for the
//! values of the last 10 s and of the last minute.

mod histogram;
mod windows;

pub use histogram::{Distribution, Histogram};
pub use windows::{Windowed, Windows};

use crate::pad::Padded;
use histogram::Cells;
use std::cell::Cell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The registry of counters. All clones share the same counters; cloning is cheap. Adding and
/// reading take a lock, counting does not.
#[derive(Clone, Default)]
pub struct Counters {
    entries: Arc<Mutex<Vec<Entry>>>,
    measured: Arc<Mutex<Vec<Measured>>>,
}

/// A histogram of the registry.
struct Measured {
    of: String,
    name: String,
    description: String,
    cells: Arc<Cells>,
}

struct Entry {
    of: String,
    name: String,
    kind: Kind,
    description: String,
    cell: Arc<Padded<AtomicU64>>,
}

/// The way in which a counter's value changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The value only grows.
    Count,
    /// The value is a quantity at this moment, which also falls.
    Gauge,
}

/// One counter at the moment it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reading {
    /// The agent, line or topic that counts; empty for the whole program.
    pub of: String,
    /// What is counted, as a short name in `snake_case`, the same for all that count it.
    pub name: String,
    /// The way in which the value changes.
    pub kind: Kind,
    /// What is counted, and in which unit.
    pub description: String,
    /// The value.
    pub value: u64,
}

/// One histogram at the moment it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistogramReading {
    /// The agent, line or topic measured; empty for the whole program.
    pub of: String,
    /// The name in `snake_case`, the same for all that measure it.
    pub name: String,
    /// What is measured.
    pub description: String,
    /// The values, in nanoseconds.
    pub distribution: Distribution,
}

impl Counters {
    /// Makes an empty registry.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a counter of the program, at zero. Names need not be unique.
    #[must_use]
    pub fn add(&self, name: impl Into<String>, description: impl Into<String>) -> Counter {
        self.add_of("", name, Kind::Count, description)
    }

    /// Adds a counter of an agent, a line or a topic, at zero. Names need not be unique: several
    /// may count the same.
    #[must_use]
    pub fn add_of(
        &self,
        of: impl Into<String>,
        name: impl Into<String>,
        kind: Kind,
        description: impl Into<String>,
    ) -> Counter {
        let cell = Arc::new(Padded(AtomicU64::new(0)));
        let entry = Entry {
            of: of.into(),
            name: name.into(),
            kind,
            description: description.into(),
            cell: cell.clone(),
        };
        self.lock().push(entry);
        Counter {
            cell,
            one_thread: PhantomData,
        }
    }

    /// Returns all counters in the order in which they were added.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Reading> {
        let read = |entry: &Entry| Reading {
            of: entry.of.clone(),
            name: entry.name.clone(),
            kind: entry.kind,
            description: entry.description.clone(),
            value: entry.cell.load(Ordering::Relaxed),
        };
        self.lock().iter().map(read).collect()
    }

    /// Returns one reading for each owner and name, with the sum of their counters, in the order in
    /// which the first of each was added. Sums wrap at 2^64.
    #[must_use]
    pub fn sums(&self) -> Vec<Reading> {
        let (mut sums, mut places) = (Vec::<Reading>::new(), HashMap::new());
        for reading in self.snapshot() {
            let key = (reading.of.clone(), reading.name.clone());
            let place = *places.entry(key).or_insert(sums.len());
            match sums.get_mut(place) {
                Some(sum) => sum.value = sum.value.wrapping_add(reading.value),
                None => sums.push(reading),
            }
        }
        sums
    }

    /// Adds a histogram of nanoseconds, of an agent, a line or a topic.
    #[must_use]
    pub fn add_histogram(
        &self,
        of: impl Into<String>,
        name: impl Into<String>,
        description: impl Into<String>,
    ) -> Histogram {
        let cells = Cells::new();
        self.measured().push(Measured {
            of: of.into(),
            name: name.into(),
            description: description.into(),
            cells: Arc::clone(&cells),
        });
        Histogram::new(cells)
    }

    /// Returns all histograms in the order in which they were added.
    #[must_use]
    pub fn histograms(&self) -> Vec<HistogramReading> {
        let read = |one: &Measured| HistogramReading {
            of: one.of.clone(),
            name: one.name.clone(),
            description: one.description.clone(),
            distribution: one.cells.read(),
        };
        self.measured().iter().map(read).collect()
    }

    /// Returns the values of all histograms, as [`Self::histograms`] does, without their names.
    fn distributions(&self) -> Vec<Distribution> {
        let measured = self.measured();
        measured.iter().map(|one| one.cells.read()).collect()
    }

    fn measured(&self) -> std::sync::MutexGuard<'_, Vec<Measured>> {
        self.measured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reading {
    /// Returns the name, behind the name of the agent, line or topic: `worker0_deliveries`.
    #[must_use]
    pub fn label(&self) -> String {
        match self.of.is_empty() {
            true => self.name.clone(),
            false => format!("{}_{}", self.of, self.name),
        }
    }
}

/// Returns a description of a counter or histogram as a sentence, with a capital and a full stop.
#[must_use]
pub fn sentence(description: &str) -> String {
    let mut chars = description.chars();
    let first = chars.next().map(|first| first.to_uppercase().to_string());
    format!("{}{}.", first.unwrap_or_default(), chars.as_str())
}

/// The writing end of one counter, for one thread at a time: it can be moved, not shared.
pub struct Counter {
    cell: Arc<Padded<AtomicU64>>,
    one_thread: PhantomData<Cell<()>>,
}

impl Counter {
    /// Adds `n`; wraps at 2^64. A plain load and store suffice for the only writer.
    pub fn increment(&self, n: u64) {
        self.set(self.value().wrapping_add(n));
    }

    /// Sets the value of a gauge.
    pub fn set(&self, value: u64) {
        self.cell.store(value, Ordering::Relaxed);
    }

    /// Returns the current value.
    #[must_use]
    pub fn value(&self) -> u64 {
        self.cell.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_reads_what_one_thread_counts() {
        let counters = Counters::new();
        let (sent, held) = (
            counters.add("sent", "messages"),
            counters.add("held", "bytes"),
        );
        std::thread::spawn(move || {
            (0..10).for_each(|_| sent.increment(2));
            [5, 9].into_iter().for_each(|bytes| held.set(bytes));
        })
        .join()
        .expect("no panic");
        let values: Vec<u64> = counters.snapshot().iter().map(|r| r.value).collect();
        assert_eq!(values, [20, 9]);
    }

    #[test]
    fn a_description_is_a_sentence() {
        assert_eq!(sentence("messages of a feed"), "Messages of a feed.");
        assert_eq!(sentence("älter"), "Älter.");
    }

    #[test]
    fn counters_of_one_owner_and_name_are_one_sum() {
        let counters = Counters::new();
        let add = |of, name| counters.add_of(of, name, Kind::Count, "messages");
        for (counter, value) in [
            (add("", "x"), 3),
            (add("a", "x"), 5),
            (add("", "x"), u64::MAX),
            (add("", "y"), 7),
            (add("", "x"), 0),
        ] {
            counter.increment(value);
        }
        let sums = counters.sums();
        let sums: Vec<_> = sums.iter().map(|sum| (&*sum.name, sum.value)).collect();
        assert_eq!(sums, [("x", 2), ("x", 5), ("y", 7)]);
    }
}
