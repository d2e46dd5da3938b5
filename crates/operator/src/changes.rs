//! Numbered changes, so that a reader that reconnects knows how many it missed.

use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most changes kept, and the most bytes of them.
const MOST: usize = 16_384;
const MOST_BYTES: usize = 8 << 20;

/// A change of the program's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The number of the change, one more than that of the change before.
    pub id: u64,
    /// The kind of the object that changed, in a word: `session`.
    pub kind: &'static str,
    /// The new state, as a JSON object.
    pub data: Arc<str>,
}

/// The changes after a number.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Since {
    /// The number of changes that are no longer kept.
    pub missed: u64,
    /// The others, in order.
    pub changes: Vec<Change>,
}

/// The last changes of a program: up to 16,384, and 8 MiB of them. Any thread may use it, and
/// clones share the changes.
///
/// ```
/// use fanfare_operator::Changes;
/// let changes = Changes::default();
/// changes.push("session", Default::default());
/// let seen = changes.since(0, 10);
/// assert_eq!((seen.missed, seen.changes[0].id, seen.changes[0].kind), (0, 1, "session"));
/// ```
#[derive(Debug, Clone, Default)]
pub struct Changes {
    kinds: &'static [&'static str],
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    /// The number before the first change of this run.
    base: u64,
    /// The last number.
    last: u64,
    bytes: usize,
    changes: VecDeque<Change>,
}

impl Changes {
    /// Creates the changes of a run of a program, which are numbered from `base + 1` on. A base
    /// above all numbers of earlier runs tells a reader of such a run from one of this run.
    /// Microseconds since 1970 are below 2^53, to which JSON may be limited.
    #[must_use]
    pub fn from_base(base: u64) -> Self {
        let last = base;
        let kept = Kept {
            base,
            last,
            ..Kept::default()
        };
        Self {
            kinds: &[],
            kept: Arc::new(Mutex::new(kept)),
        }
    }

    /// Names the kinds of the changes, so that a request for another kind can be refused.
    #[must_use]
    pub const fn with_kinds(mut self, kinds: &'static [&'static str]) -> Self {
        self.kinds = kinds;
        self
    }

    /// Returns the kinds of the changes. Empty if they were not named.
    #[must_use]
    pub const fn kinds(&self) -> &'static [&'static str] {
        self.kinds
    }

    /// Adds a change. The oldest ones are dropped beyond the limits. Allocates.
    pub fn push(&self, kind: &'static str, fields: Map<String, Value>) {
        debug_assert!(self.kinds.is_empty() || self.kinds.contains(&kind));
        let data: Arc<str> = Value::Object(fields).to_string().into();
        let mut kept = self.lock();
        kept.last += 1;
        kept.bytes += data.len();
        let id = kept.last;
        kept.changes.push_back(Change { id, kind, data });
        while kept.changes.len() > MOST || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.changes.pop_front() else {
                break;
            };
            kept.bytes -= oldest.data.len();
        }
    }

    /// Returns the number before the first change of this run.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.lock().base
    }

    /// Returns the numbers of the oldest change that is kept, and of the next one.
    #[must_use]
    pub fn range(&self) -> (u64, u64) {
        let kept = self.lock();
        let next = kept.last + 1;
        (kept.changes.front().map_or(next, |own| own.id), next)
    }

    /// Returns up to `limit` changes with numbers above `after`. A number that is of another run of
    /// the program, because no change of this one has it, means that the reader has seen none.
    #[must_use]
    pub fn since(&self, after: u64, limit: usize) -> Since {
        let kept = self.lock();
        let is_own = (kept.base..=kept.last).contains(&after);
        let after = if is_own { after } else { kept.base };
        let first = kept.changes.front().map_or(kept.last + 1, |own| own.id);
        // Numbers have no gaps.
        let skipped = (after + 1).saturating_sub(first) as usize;
        let rest = kept.changes.iter().skip(skipped);
        Since {
            missed: first.saturating_sub(after + 1),
            changes: rest.take(limit).cloned().collect(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(since: &Since) -> Vec<u64> {
        since.changes.iter().map(|own| own.id).collect()
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_knows_what_it_missed() {
        let changes = Changes::default();
        assert_eq!(changes.since(0, 9), Since::default());
        assert_eq!(changes.range(), (1, 1));
        (0..5).for_each(|_| changes.push("line", Map::new()));
        assert_eq!(ids(&changes.since(0, 2)), [1, 2]);
        let rest = changes.since(2, 9);
        assert_eq!((ids(&rest), rest.missed), (vec![3, 4, 5], 0));
        assert_eq!(changes.since(5, 9), Since::default());
        assert_eq!(
            ids(&changes.since(99, 9)),
            [1, 2, 3, 4, 5],
            "of another run"
        );
        (0..MOST).for_each(|_| changes.push("line", Map::new()));
        let late = changes.since(2, 1);
        assert_eq!((late.missed, ids(&late)), (3, vec![6]));
        assert_eq!(changes.range(), (6, MOST as u64 + 6));
    }

    #[test]
    fn a_reader_of_an_earlier_run_has_seen_nothing_of_this_one() {
        let earlier = Changes::from_base(1_000);
        (0..5).for_each(|_| earlier.push("line", Map::new()));
        let changes = Changes::from_base(2_000);
        assert_eq!((changes.base(), changes.range()), (2_000, (2_001, 2_001)));
        (0..2_000).for_each(|_| changes.push("line", Map::new()));
        for after in [0, 1_000, 1_005, 1_999, 2_000, 9_999] {
            let since = changes.since(after, 2);
            assert_eq!(
                (since.missed, ids(&since)),
                (0, vec![2_001, 2_002]),
                "{after}"
            );
        }
        assert_eq!(ids(&changes.since(2_001, 1)), [2_002]);
        assert_eq!(changes.base(), 2_000, "it stays");
    }

    #[test]
    fn bytes_are_bounded() {
        let changes = Changes::default();
        let long = Map::from_iter([("text".to_owned(), Value::from("x".repeat(1 << 20)))]);
        (0..20).for_each(|_| changes.push("notice", long.clone()));
        let (first, next) = changes.range();
        assert_eq!((next, next - first), (21, 7));
    }
}
