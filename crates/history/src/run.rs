//! A run of the plant: from its start to its end, with its feeds.

use crate::format::{Kind, Records, u32_at, u64_at};
use fanfare_market::book::BookKind;
use fanfare_market::instruments::Directory;
use fanfare_market::{BookConfig, InstrumentId};

/// The position of the rules of a book in the number of its kind.
const RULES: u32 = 16;

/// The fault of a record that ends before a run does.
const SHORT: &str = "the record is incomplete";

/// One feed of a run, in the order of [`fanfare_market::Event::source`], from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedInfo {
    /// Its name.
    pub name: String,
    /// The plant's number of its first instrument.
    pub base: u32,
    /// Its books.
    pub book: BookConfig,
}

impl FeedInfo {
    /// Returns what makes its instruments the same in two runs: its name and first number.
    fn place(&self) -> (&str, u32) {
        (&self.name, self.base)
    }
}

/// A run of the plant.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    /// Its number, from 1.
    pub number: u64,
    /// The time at which it began, in nanoseconds since 1970-01-01 UTC.
    pub start: u64,
    /// Its feeds.
    pub feeds: Vec<FeedInfo>,
}

impl Run {
    /// Returns the books of the feeds, as [`fanfare_market::View`] takes them.
    #[must_use]
    pub fn books(&self) -> Vec<BookConfig> {
        self.feeds.iter().map(|feed| feed.book).collect()
    }

    /// Returns the number of the first instrument of each feed, as
    /// [`fanfare_market::dbn::ToDbn::with_bases`] takes them.
    #[must_use]
    pub fn bases(&self) -> Vec<u32> {
        self.feeds.iter().map(|feed| feed.base).collect()
    }

    /// Returns the feed of an instrument, from 1.
    #[must_use]
    pub fn source_of(&self, instrument: InstrumentId) -> u16 {
        let feeds = self.feeds.iter();
        feeds.filter(|own| own.base <= instrument.0).count() as u16
    }

    /// Removes the instruments whose numbers belong to another feed than in the run before; returns
    /// whether there were any.
    pub(crate) fn prune(&self, before: &Self, directory: &mut Directory) -> bool {
        // The same run, whose record could not be read before.
        if before.number == self.number && before.feeds.is_empty() {
            return false;
        }
        let is_same = |(own, old): (&FeedInfo, &FeedInfo)| own.place() == old.place();
        let mut both = self.feeds.iter().zip(&before.feeds);
        if self.feeds.len() == before.feeds.len() && both.all(is_same) {
            return false;
        }
        let mut kept = Directory::new();
        for (number, bytes) in directory.iter() {
            if self.feed_of(number.0) == before.feed_of(number.0) {
                kept.take(bytes);
            }
        }
        let is_less = kept.len() < directory.len();
        *directory = kept;
        is_less
    }

    /// Returns the name and the first number of the feed of an instrument.
    fn feed_of(&self, instrument: u32) -> Option<(&str, u32)> {
        let feeds = self.feeds.iter().filter(|feed| feed.base <= instrument);
        feeds.max_by_key(|feed| feed.base).map(FeedInfo::place)
    }

    /// Writes the run into `out`, which is emptied first. The rules of books are in the upper half
    /// of their kind. Versions up to 0.2.0 write zeros there, and read no run with anything else.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(&self.number.to_le_bytes());
        out.extend_from_slice(&self.start.to_le_bytes());
        for feed in &self.feeds {
            let kind = match feed.book.kind() {
                BookKind::Levels => 0u32,
                BookKind::Prices => 1,
                BookKind::Orders => 2,
            };
            let kind = kind | feed.book.rules() << RULES;
            let name = feed.name.as_bytes();
            let (levels, orders) = (feed.book.levels(), feed.book.orders());
            for word in [feed.base, kind, levels, orders, name.len() as u32] {
                out.extend_from_slice(&word.to_le_bytes());
            }
            out.extend_from_slice(name);
        }
    }

    /// Returns the record of the run with which the records of a segment begin; `None` if they do
    /// not.
    pub(crate) fn leading(records: &[u8]) -> Option<&[u8]> {
        match Records(records).next() {
            Some((Some(Kind::Run), bytes)) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the number of the run in its record, of whatever version; 0 if it has none.
    pub(crate) fn number_of(bytes: &[u8]) -> u64 {
        u64_at(bytes, 0)
    }

    /// Reads the run that [`Self::write`] wrote.
    ///
    /// # Errors
    /// Returns the part that is not supported. Its block is whole: a later version wrote the run.
    pub(crate) fn read(bytes: &[u8]) -> Result<Self, &'static str> {
        let (fixed, mut rest) = bytes.split_at_checked(16).ok_or(SHORT)?;
        let mut feeds = Vec::new();
        while !rest.is_empty() {
            let (fixed, behind) = rest.split_at_checked(20).ok_or(SHORT)?;
            let word = |at: usize| u32_at(fixed, 4 * at);
            let (levels, orders) = (word(2), word(3));
            let (kind, rules) = (word(1) & ((1 << RULES) - 1), word(1) >> RULES);
            let book = match kind {
                0 => BookConfig::by_level(levels),
                1 => BookConfig::by_price(levels),
                2 => BookConfig::by_order(levels, orders),
                _ => return Err("the kind of a book is unknown"),
            };
            let book = book.map_err(|_| "the limits of a book are out of range")?;
            let book = book.with_rules(rules);
            let (name, behind) = behind.split_at_checked(word(4) as usize).ok_or(SHORT)?;
            feeds.push(FeedInfo {
                name: String::from_utf8_lossy(name).into_owned(),
                base: word(0),
                book: book.ok_or("a rule of a book is unknown")?,
            });
            rest = behind;
        }
        Ok(Self {
            number: u64_at(fixed, 0),
            start: u64_at(fixed, 8),
            feeds,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_market::book::Priority;

    #[test]
    fn a_run_comes_back() {
        let feed = |name: &str, base, book| FeedInfo {
            name: name.to_owned(),
            base,
            book,
        };
        let levels = BookConfig::by_level(5).unwrap();
        let orders = BookConfig::by_order(3, 100).unwrap();
        let priority = Priority {
            increase_keeps: true,
            decrease_loses: false,
        };
        let run = Run {
            number: 3,
            start: 1 << 60,
            feeds: vec![
                feed("one", 0, levels),
                feed("", 7, BookConfig::by_price(9).unwrap()),
                feed("drei", 1000, orders),
                feed("vier", 2000, orders.priority(priority)),
                feed("fünf", 3000, levels.may_cross(true)),
            ],
        };
        let mut bytes = Vec::new();
        run.write(&mut bytes);
        assert_eq!(Run::read(&bytes), Ok(run));
        for len in 0..bytes.len() {
            let _ = Run::read(&bytes[..len]);
        }
        // The kind of the first feed's book, and its rules.
        for (at, why) in [
            (20, "the kind of a book is unknown"),
            (22, "a rule of a book is unknown"),
            (23, "a rule of a book is unknown"),
        ] {
            let mut later = bytes.clone();
            later[at] |= 8;
            assert_eq!(Run::read(&later), Err(why));
        }
    }
}
