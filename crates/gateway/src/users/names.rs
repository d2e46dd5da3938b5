//! Sets of names of instruments.

use crate::service::Pattern;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

/// Symbols and prefixes of a list in the configuration.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Names {
    symbols: HashSet<Box<[u8]>>,
    /// Sorted, and none is a prefix of another.
    prefixes: Vec<Box<[u8]>>,
}

impl Names {
    /// Returns whether a Symbol(55) is in the set. Takes one look-up in a hash table and one binary
    /// search.
    pub(crate) fn fits(&self, symbol: &[u8]) -> bool {
        // A prefix of the symbol can only be the last one that does not sort after it, because none
        // of the others in between begins as the symbol does.
        let behind = self.prefixes.partition_point(|prefix| **prefix <= *symbol);
        let before = behind.checked_sub(1).and_then(|i| self.prefixes.get(i));
        before.is_some_and(|prefix| symbol.starts_with(prefix)) || self.symbols.contains(symbol)
    }

    /// Returns the full symbols, in no order.
    pub(crate) fn symbols(&self) -> impl Iterator<Item = &[u8]> {
        self.symbols.iter().map(|symbol| &**symbol)
    }

    /// Returns the prefixes, sorted. An empty one matches every symbol.
    pub(crate) fn prefixes(&self) -> impl Iterator<Item = &[u8]> {
        self.prefixes.iter().map(|prefix| &**prefix)
    }

    /// Returns the number of symbols and prefixes.
    pub(crate) fn len(&self) -> usize {
        self.symbols.len() + self.prefixes.len()
    }
}

impl FromIterator<Pattern> for Names {
    fn from_iter<I: IntoIterator<Item = Pattern>>(patterns: I) -> Self {
        let mut names = Self::default();
        for pattern in patterns {
            match pattern {
                Pattern::Symbol(symbol) => {
                    names.symbols.insert(symbol);
                }
                Pattern::Prefix(prefix) => names.prefixes.push(prefix),
            }
        }
        names.prefixes.sort_unstable();
        // Each sorts after the shortest prefix that it begins with.
        names.prefixes.dedup_by(|next, kept| next.starts_with(kept));
        names
    }
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Names({})", self.len())
    }
}

/// The instruments that a user may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Instruments {
    /// The sets, or `None` for all instruments.
    sets: Option<Vec<Arc<Names>>>,
}

impl Instruments {
    /// All instruments.
    pub(crate) const ALL: Self = Self { sets: None };

    /// Returns the instruments in any of these sets, which may be shared.
    pub(crate) fn of(sets: Vec<Arc<Names>>) -> Self {
        let is_all = |names: &Arc<Names>| names.prefixes().any(<[u8]>::is_empty);
        match sets.iter().any(is_all) {
            true => Self::ALL,
            false => Self { sets: Some(sets) },
        }
    }

    /// Returns whether these are all instruments.
    pub(crate) const fn are_all(&self) -> bool {
        self.sets.is_none()
    }

    /// Returns whether an instrument of this Symbol(55) is included.
    pub(crate) fn fit(&self, symbol: &[u8]) -> bool {
        let sets = self.sets.as_ref();
        sets.is_none_or(|sets| sets.iter().any(|names| names.fits(symbol)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(texts: &[&str]) -> Names {
        let patterns = texts.iter().map(|text| Pattern::parse(text.as_bytes()));
        patterns.collect()
    }

    #[test]
    fn symbols_and_prefixes_fit() {
        let set = names(&["RIU3", "SI*", "SIM*", "S*T", "GAZR"]);
        for (symbol, fits) in [
            ("RIU3", true),
            ("RIU33", false),
            ("RIU", false),
            ("SI", true),
            ("SIZ3", true),
            ("SIM3", true),
            ("S", false),
            ("SJ", false),
            ("", false),
        ] {
            assert_eq!(set.fits(symbol.as_bytes()), fits, "{symbol}");
        }
        assert_eq!(set.prefixes().collect::<Vec<_>>(), [b"SI"]);
        assert!(names(&["*"]).fits(b"") && names(&["*", "A*"]).fits(b"Z"));
        assert_eq!(names(&["*", "A*"]).len(), 1);
    }

    #[test]
    fn a_set_with_a_star_is_everything() {
        let all = Instruments::of(vec![Arc::new(names(&["A", "*"]))]);
        assert!(all.are_all() && all.fit(b"X"));
        let none = Instruments::of(Vec::new());
        assert!(!none.are_all() && !none.fit(b"X"));
    }

    proptest! {
        #[test]
        fn a_set_fits_what_one_of_its_patterns_fits(
            patterns in prop::collection::vec("[ab]{0,4}[*]?", 0..12),
            symbol in "[abc]{0,5}",
        ) {
            let parsed = patterns.iter().map(|text| Pattern::parse(text.as_bytes()));
            let expected = parsed.clone().any(|pattern| pattern.fits(symbol.as_bytes()));
            prop_assert_eq!(parsed.collect::<Names>().fits(symbol.as_bytes()), expected);
        }
    }
}
