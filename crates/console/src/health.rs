//! `/healthz` and `/readyz`, for load balancers and for what starts a program again.
//!
//! They need no token, and name neither feeds nor instruments.

use axum::http::Method;
use fanfare_engine::counters::Reading;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The path that is answered while the program runs.
pub(crate) const ALIVE: &str = "/healthz";
/// The path that says whether clients are to be sent here.
pub(crate) const READY: &str = "/readyz";

/// The counters of a feed's instruments by state.
const STATES: [&str; 4] = [
    "instruments_live",
    "instruments_recovering",
    "instruments_stale",
    "instruments_closed",
];

/// Returns whether a request needs no token.
pub(crate) fn is_public(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && matches!(path, ALIVE | READY)
}

/// The number of feeds whose books are kept, and of those that are not ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readiness {
    feeds: usize,
    not_ready: usize,
}

impl Readiness {
    /// Returns the readiness that counters show. A feed is ready if at least half of the
    /// instruments that it has told of, and that are still traded, are live.
    pub(crate) fn of(readings: impl IntoIterator<Item = Reading>) -> Self {
        let mut feeds: BTreeMap<String, [u64; 4]> = BTreeMap::new();
        for reading in readings {
            let Some(state) = STATES.iter().position(|state| *state == reading.name) else {
                continue;
            };
            let states = feeds.entry(reading.of).or_default();
            if let Some(count) = states.get_mut(state) {
                *count += reading.value;
            }
        }
        let not_ready = feeds.values().filter(|states| !is_ready(states)).count();
        Self {
            feeds: feeds.len(),
            not_ready,
        }
    }

    pub(crate) const fn is_ready(self) -> bool {
        self.not_ready == 0
    }

    pub(crate) fn json(self) -> Value {
        let Self { feeds, not_ready } = self;
        json!({ "ready": self.is_ready(), "feeds": feeds, "not_ready": not_ready })
    }
}

/// Returns whether a feed with these numbers of instruments, in the order of [`STATES`], is ready.
const fn is_ready([live, recovering, stale, closed]: &[u64; 4]) -> bool {
    let others = *recovering + *stale;
    match *live {
        0 => others == 0 && *closed > 0,
        live => live >= others,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::counters::Kind;

    fn readings(of: &str, counts: [u64; 4]) -> Vec<Reading> {
        let readings = STATES.iter().zip(counts).map(|(name, value)| Reading {
            of: of.to_owned(),
            name: (*name).to_owned(),
            kind: Kind::Gauge,
            description: String::new(),
            value,
        });
        readings.collect()
    }

    #[test]
    fn a_feed_is_ready_if_half_of_its_books_are_live() {
        for (counts, ready) in [
            ([0, 0, 0, 0], false),
            ([9, 0, 0, 0], true),
            ([5, 3, 2, 9], true),
            ([5, 3, 3, 0], false),
            ([0, 0, 9, 0], false),
            ([0, 1, 0, 9], false),
            ([0, 0, 0, 9], true),
        ] {
            let readiness = Readiness::of(readings("feed", counts));
            assert_eq!(readiness.is_ready(), ready, "{counts:?}");
        }
    }

    #[test]
    fn each_feed_has_to_be_ready_and_other_counters_do_not_matter() {
        let mut all = readings("one", [3, 0, 0, 0]);
        all.extend(readings("two", [0, 0, 3, 0]));
        let other = Reading {
            name: "instruments_beyond".to_owned(),
            ..all[0].clone()
        };
        let expected = json!({ "ready": false, "feeds": 2, "not_ready": 1 });
        all.push(other.clone());
        assert_eq!(Readiness::of(all).json(), expected);
        let none = json!({ "ready": true, "feeds": 0, "not_ready": 0 });
        assert_eq!(Readiness::of([other]).json(), none);
    }
}
