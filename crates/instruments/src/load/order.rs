//! Checks that each marked message comes exactly once and in order.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};

/// The most missing numbers remembered for each producer, to distinguish late ones from duplicates;
/// numbers beyond are counted all the same.
const MAX_REMEMBERED: usize = 4_096;
/// Producers known to one check; the marks of further ones are counted as unreadable.
const MAX_PRODUCERS: usize = 65_536;

/// The results of a check; all but `in_order` should be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OrderCounts {
    /// Marks that came in order.
    pub in_order: u64,
    /// Marks that have not come although a later one has.
    pub missing: u64,
    /// Marks that came after a later one.
    pub reordered: u64,
    /// Marks that were repeated.
    pub duplicates: u64,
    /// Marks that are not `<producer>-<n>`.
    pub unreadable: u64,
}

impl OrderCounts {
    /// Adds the counts of another check.
    pub fn add(&mut self, other: Self) {
        self.in_order += other.in_order;
        self.missing = self.missing.saturating_add(other.missing);
        self.reordered += other.reordered;
        self.duplicates += other.duplicates;
        self.unreadable += other.unreadable;
    }

    /// Returns whether every mark came exactly once and in order.
    pub fn is_clean(&self) -> bool {
        *self
            == Self {
                in_order: self.in_order,
                ..Self::default()
            }
    }
}

/// A check of the marks that one consumer receives: `<producer>-<n>`, n counting from 1 for each
/// producer. A producer that restarts at 1 is followed anew.
#[derive(Debug, Default)]
pub struct OrderCheck {
    from_start: bool,
    producers: HashMap<Box<[u8]>, Producer>,
    counts: OrderCounts,
}

#[derive(Debug, Default)]
struct Producer {
    place: Place,
    missing: BTreeSet<u64>,
}

/// The place of a check in the marks of one producer.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    /// How often the producer has started anew.
    restarts: u64,
    /// The number before the first one expected.
    before: u64,
    /// The last number.
    last: u64,
}

/// The last marks that any of several checks has, by producer.
#[derive(Debug, Default)]
pub(super) struct Reached(HashMap<Box<[u8]>, Place>);

impl OrderCheck {
    /// Creates a check. With `from_start` the first mark of each producer must be its number 1;
    /// without, a consumer may join later, and the first one seen counts as the first.
    pub fn new(from_start: bool) -> Self {
        Self {
            from_start,
            ..Self::default()
        }
    }

    /// Takes the value of a FanoutID(20001). Allocates only for a new producer and for missing
    /// marks.
    pub fn mark(&mut self, mark: &[u8]) {
        let Some((name, number)) = split(mark) else {
            self.counts.unreadable += 1;
            return;
        };
        let Some(producer) = self.producers.get_mut(name) else {
            if self.producers.len() >= MAX_PRODUCERS {
                self.counts.unreadable += 1;
                return;
            }
            let before = if self.from_start { 0 } else { number - 1 };
            let mut producer = Producer {
                place: Place {
                    restarts: 0,
                    before,
                    last: before,
                },
                missing: BTreeSet::new(),
            };
            producer.take(number, &mut self.counts);
            self.producers.insert(name.into(), producer);
            return;
        };
        producer.take(number, &mut self.counts);
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> OrderCounts {
        self.counts
    }

    /// Forgets how often producers have started anew: checks that began at different times count
    /// the same from here on.
    pub(super) fn forget_restarts(&mut self) {
        for producer in self.producers.values_mut() {
            producer.place.restarts = 0;
        }
    }
}

impl Producer {
    /// Takes a number, which is at least 1.
    fn take(&mut self, number: u64, counts: &mut OrderCounts) {
        let last = self.place.last;
        if number - 1 == last {
            self.place.last = number;
            counts.in_order += 1;
        } else if number > last {
            counts.missing = counts.missing.saturating_add(number - last - 1);
            let room = MAX_REMEMBERED - self.missing.len();
            self.missing.extend((last + 1..number).take(room));
            self.place.last = number;
            counts.in_order += 1;
        } else if self.missing.remove(&number) {
            counts.missing -= 1;
            counts.reordered += 1;
        } else if number == 1 && last > 1 {
            self.place.restarts += 1;
            (self.place.last, self.missing) = (1, BTreeSet::new());
            counts.in_order += 1;
        } else {
            counts.duplicates += 1;
        }
    }
}

impl Place {
    /// Returns the later one of both, for the checks of both.
    fn later(self, other: Self) -> Self {
        let (restarts, last) = (self.restarts, self.last).max((other.restarts, other.last));
        Self {
            restarts,
            before: self.before.min(other.before),
            last,
        }
    }
}

impl Reached {
    /// Returns the last marks of these checks.
    pub(super) fn of<'c>(checks: impl Iterator<Item = &'c OrderCheck>) -> Self {
        let mut all: HashMap<Box<[u8]>, Place> = HashMap::new();
        for (name, producer) in checks.flat_map(|check| &check.producers) {
            match all.get_mut(name) {
                Some(place) => *place = place.later(producer.place),
                None => _ = all.insert(name.clone(), producer.place),
            }
        }
        Self(all)
    }

    /// Returns how many marks a check lacks up to these, behind its own last one; of a producer of
    /// which it has none, those after `from`, or all that any check has.
    pub(super) fn lacking(&self, check: &OrderCheck, from: &Self) -> u64 {
        let lacking = self.0.iter().map(|(name, reached)| {
            let own = match check.producers.get(name) {
                Some(producer) => producer.place,
                None => Place {
                    last: from.0.get(name).map_or(reached.before, |place| place.last),
                    ..Place::default()
                },
            };
            match own.restarts.cmp(&reached.restarts) {
                Ordering::Less => reached.last,
                Ordering::Equal => reached.last.saturating_sub(own.last),
                Ordering::Greater => 0,
            }
        });
        lacking.fold(0, u64::saturating_add)
    }
}

/// Returns producer and number of a mark; numbers count from 1.
fn split(mark: &[u8]) -> Option<(&[u8], u64)> {
    let dash = mark.iter().rposition(|b| *b == b'-')?;
    let number = std::str::from_utf8(mark.get(dash + 1..)?)
        .ok()?
        .parse()
        .ok()?;
    (number > 0).then_some((mark.get(..dash)?, number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(from_start: bool, marks: &[&str]) -> OrderCounts {
        let mut check = OrderCheck::new(from_start);
        marks.iter().for_each(|mark| check.mark(mark.as_bytes()));
        check.counts()
    }

    #[test]
    fn producers_are_followed_each_by_itself() {
        let counts = check(true, &["P-1-1", "P-2-1", "P-1-2", "P-2-2", "P-1-3"]);
        assert_eq!(
            counts,
            OrderCounts {
                in_order: 5,
                ..OrderCounts::default()
            }
        );
        assert!(counts.is_clean());
    }

    #[test]
    fn missing_late_and_repeated_marks() {
        let counts = check(true, &["p-2", "p-5", "p-4", "p-4", "p-5", "x", "p-0", "p-"]);
        let expected = OrderCounts {
            in_order: 2,
            missing: 2,
            reordered: 1,
            duplicates: 2,
            unreadable: 3,
        };
        assert_eq!(counts, expected);
        assert!(!counts.is_clean());
    }

    #[test]
    fn a_late_joiner_starts_with_what_it_sees() {
        assert!(check(false, &["p-57", "p-58"]).is_clean());
        assert_eq!(check(true, &["p-57", "p-58"]).missing, 56);
    }

    #[test]
    fn a_new_run_starts_again_at_one() {
        assert!(check(true, &["p-1", "p-2", "p-1", "p-2", "p-3"]).is_clean());
        assert_eq!(check(true, &["p-1", "p-1"]).duplicates, 1);
    }

    fn feed(checks: &mut [OrderCheck], marks: &[&str], part: usize) {
        for (check, marks) in checks.iter_mut().zip(marks) {
            let marks = marks.split('|').nth(part).unwrap_or_default();
            let marks = marks.split_whitespace();
            marks.for_each(|mark| check.mark(mark.as_bytes()));
        }
    }

    /// Returns how many marks each check lacks of those that any has. The marks before `|` come
    /// before all checks have begun.
    fn lacking<const N: usize>(from_start: bool, marks: [&str; N]) -> [u64; N] {
        let mut checks = marks.map(|_| OrderCheck::new(from_start));
        feed(&mut checks, &marks, 0);
        checks.iter_mut().for_each(OrderCheck::forget_restarts);
        let from = Reached::of(checks.iter());
        feed(&mut checks, &marks, 1);
        let reached = Reached::of(checks.iter());
        checks.each_ref().map(|check| reached.lacking(check, &from))
    }

    #[test]
    fn a_check_that_is_cut_short_lacks_what_others_have() {
        assert_eq!(lacking(true, ["|p-1 p-2 p-3 q-1", "|p-1", "|"]), [0, 3, 4]);
        // What is missing in between is counted by the check itself.
        assert_eq!(lacking(true, ["|p-1 p-2 p-3", "|p-3"]), [0, 0]);
        let late = lacking(false, ["p-8 | p-9", "p-8 |", "|", "| p-9"]);
        assert_eq!(late, [0, 1, 1, 0]);
        assert_eq!(lacking(false, ["| p-8 p-9", "| p-8", "|"]), [0, 1, 2]);
    }

    #[test]
    fn a_check_that_began_later_lacks_nothing() {
        assert_eq!(lacking(false, ["p-57 p-58 |", "|"]), [0, 0]);
        assert_eq!(lacking(false, ["p-57 | p-58", "| p-58"]), [0, 0]);
        assert_eq!(lacking(false, ["p-2 p-1 | p-2", "p-1 | p-2"]), [0, 0]);
    }

    #[test]
    fn a_check_lacks_a_new_run_that_it_has_nothing_of() {
        assert_eq!(lacking(true, ["|p-1 p-2 p-1 p-2", "|p-1 p-2"]), [0, 2]);
        assert_eq!(lacking(true, ["|p-1 p-2 p-1", "|p-1 p-2 p-1"]), [0, 0]);
    }

    #[test]
    fn a_number_beyond_reason_costs_no_memory() {
        let far = format!("p-{}", u64::MAX);
        let counts = check(true, &["p-1", &far, &far]);
        assert_eq!((counts.missing, counts.duplicates), (u64::MAX - 2, 1));
    }
}
