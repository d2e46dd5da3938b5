//! The round trips of samples, from their echoes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use fanfare_dds::distribute::RoundTrips;

use crate::histogram::Histogram;

/// Round trips by template, and the time of the last echo. Created by the thread that publishes,
/// which each echo wakes.
pub struct Echoes {
    series: Mutex<BTreeMap<String, Vec<Arc<Mutex<Histogram>>>>>,
    publisher: Thread,
    begin: Instant,
    /// The time of the last echo, nanoseconds after the beginning; 0: none came.
    last: Arc<AtomicU64>,
}

impl Default for Echoes {
    fn default() -> Self {
        Self {
            series: Mutex::default(),
            publisher: thread::current(),
            begin: Instant::now(),
            last: Arc::default(),
        }
    }
}

impl Echoes {
    /// Returns the time of the last echo.
    pub fn last(&self) -> Option<Instant> {
        match self.last.load(Ordering::Acquire) {
            0 => None,
            nanos => Some(self.begin + Duration::from_nanos(nanos)),
        }
    }

    /// Returns a new series for a topic: no listener waits for another.
    pub fn recorder(&self, template: &str) -> RoundTrips {
        let series = Arc::new(Mutex::new(Histogram::new()));
        let publisher = self.publisher.clone();
        let (begin, last) = (self.begin, Arc::clone(&self.last));
        if let Ok(mut all) = self.series.lock() {
            let of_template = all.entry(template.to_owned()).or_default();
            of_template.push(Arc::clone(&series));
        }
        Box::new(move |nanos| {
            if let Ok(mut series) = series.lock() {
                series.record(nanos);
            }
            last.fetch_max(
                (begin.elapsed().as_nanos() as u64).max(1),
                Ordering::Release,
            );
            publisher.unpark();
        })
    }

    /// Returns the round trips of all topics of each template.
    pub fn merged(&self) -> BTreeMap<String, Histogram> {
        let Ok(all) = self.series.lock() else {
            return BTreeMap::new();
        };
        let merge = |(name, parts): (&String, &Vec<Arc<Mutex<Histogram>>>)| {
            let mut sum = Histogram::new();
            for part in parts.iter().filter_map(|p| p.lock().ok()) {
                sum.merge(&part);
            }
            (name.clone(), sum)
        };
        all.iter().map(merge).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_echo_is_that_of_any_topic() {
        let echoes = Echoes::default();
        assert_eq!(echoes.last(), None);
        let (mut first, mut second) = (echoes.recorder("A"), echoes.recorder("B"));
        first(5);
        let one = echoes.last().unwrap();
        second(7);
        assert!(echoes.last().unwrap() >= one && one >= echoes.begin);
        assert_eq!(echoes.merged().len(), 2);
    }
}
