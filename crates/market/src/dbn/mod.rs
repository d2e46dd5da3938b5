//! The conversion of events to records of DBN (Databento Binary Encoding, version 3), which its
//! readers accept unchanged, and of records of versions 1 to 3 to events ([`FromDbn`]).
//!
//! [`ToDbn`] makes at most one record of an event (two of a fill, two of the end of an instrument,
//! and one for each instrument of the status of a session) and writes the symbol of an instrument
//! before its first record. The first change of a book may have one more in front, with which the
//! book begins. The layouts are implemented here from the published ones, and tests read them with
//! the crate `dbn`. ADR 0048 documents the conversions.
//!
//! ```
//! use fanfare_market::dbn::{DbnConfig, Schemas, ToDbn};
//! use fanfare_market::event::{Event, Kind};
//! use fanfare_market::{Instruments, Price};
//!
//! let mut to_dbn = ToDbn::new(DbnConfig::new(Schemas::MIXED))?;
//! let mut out = Vec::new();
//! to_dbn.metadata("FANFARE", 0, &mut out);
//! let trade = Event {
//!     kind: Kind::Trade,
//!     price: Price::from_units(19_835_000_000_000),
//!     size: 7,
//!     ..Event::EMPTY
//! };
//! to_dbn.write(&trade, 1, &Instruments::new(10), &mut out);
//! assert!(to_dbn.lost().is_empty());
//! assert_eq!(out.len(), 128 + 48);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod codes;
mod convert;
mod definition;
mod from;
pub mod live;
mod lost;
mod schema;
mod trust;
mod wire;

pub use from::{FromDbn, FromDbnCounts, FromDbnError, NEWEST, Wrong};
pub use lost::{Lost, Why};
pub use schema::{NoSchema, Schema, Schemas};

use crate::book::{BookConfig, Books, ConfigError};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::instruments::Lookup;
use convert::To;
use trust::Trust;

/// The `publisher_id` of feed 0. Numbers from here on belong to no publisher that clients know, so
/// they show the number, and no venue's name.
pub const PUBLISHERS: u16 = 50_000;

/// Returns the `publisher_id` of records of a feed: [`PUBLISHERS`] plus its number, at most 65,535,
/// or 0 for records of no feed (0).
#[must_use]
pub const fn publisher_id(source: u16) -> u16 {
    match source {
        0 => 0,
        source => PUBLISHERS.saturating_add(source),
    }
}

/// The text of the system record that marks a restart of the plant in a file. The numbers of
/// instruments begin anew behind it. Without it, [`FromDbn`] takes a new symbol of a number for a
/// new name of its instrument.
pub const RESTARTED: &str = "The plant was restarted: numbers may be those of other instruments";

/// The schemas that are written, and the limits of the books they are made of, of feeds whose own
/// books are unknown ([`ToDbn::with_books`]).
#[derive(Clone, Copy, Debug)]
pub struct DbnConfig {
    /// The schemas that are written.
    pub schemas: Schemas,
    /// Whether the symbol of an instrument is written before its first record.
    pub names: bool,
    /// The numbered levels of a side, as many as the feed sends, if the definition of an instrument
    /// has no MarketDepth(264).
    pub depth: u16,
    /// The most levels of a side of books by price and by order.
    pub levels: u32,
    /// The most orders of a book.
    pub orders: u32,
    /// The most memory of all books, in bytes. Instruments beyond it have no book: their events of
    /// levels are lost, and so are deletions of orders without a size.
    pub most_memory: usize,
}

impl DbnConfig {
    /// Returns a configuration of five numbered levels, of 1,000 levels and 10,000 orders of other
    /// books, and of 1 GiB.
    pub const fn new(schemas: Schemas) -> Self {
        Self {
            schemas,
            names: true,
            depth: 5,
            levels: 1_000,
            orders: 10_000,
            most_memory: 1 << 30,
        }
    }
}

/// The counts of what was written, and of what was not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DbnCounts {
    /// Records, including those with symbols.
    pub records: u64,
    /// Events of schemas that are not written.
    pub other_schemas: u64,
    /// Changes of books below the levels of a record.
    pub too_deep: u64,
    /// Records whose book may be wrong (`MAYBE_BAD_BOOK`).
    pub doubtful: u64,
    /// Events that a book refused, or that left it crossed or in disorder.
    pub faults: u64,
    /// Values that DBN cannot represent.
    pub lost: u64,
}

impl DbnCounts {
    /// Returns all counters with their names.
    pub const fn all(&self) -> [(&'static str, u64); 6] {
        [
            ("records", self.records),
            ("other_schemas", self.other_schemas),
            ("too_deep", self.too_deep),
            ("doubtful", self.doubtful),
            ("faults", self.faults),
            ("lost", self.lost),
        ]
    }
}

/// A converter of events to records of DBN. See the module's text.
///
/// Records of books are made from books of its own, one for each instrument that needs one.
/// Allocates only for new instruments and their books, for definitions, for lost values, and in
/// `out` beyond its capacity.
#[derive(Debug)]
pub struct ToDbn {
    config: DbnConfig,
    /// The books of the feeds, from source 1 on.
    feeds: Vec<BookConfig>,
    /// The number of the first instrument of each feed, from source 1 on, if they are known.
    bases: Vec<u32>,
    numbered: BookConfig,
    by_price: BookConfig,
    by_order: BookConfig,
    books: Books,
    /// The bytes of the books that are not a feed's own.
    memory: usize,
    trust: Vec<Trust>,
    /// Whether events were lost, so that the books of other instruments may have begun in them.
    is_lost: bool,
    /// The number of gaps of the channel.
    gaps: u32,
    counts: DbnCounts,
    lost: Vec<Lost>,
}

impl ToDbn {
    /// Creates a converter without instruments, to which the books of feeds are unknown.
    ///
    /// # Errors
    ///
    /// Returns an error if `levels` or `orders` is beyond the limits of [`BookConfig`].
    pub fn new(config: DbnConfig) -> Result<Self, ConfigError> {
        let by_price = BookConfig::by_price(config.levels)?;
        Ok(Self {
            numbered: BookConfig::by_level(config.depth.into())?,
            by_price,
            by_order: BookConfig::by_order(config.levels, config.orders)?,
            books: Books::new(by_price, u32::MAX),
            memory: 0,
            trust: Vec::new(),
            is_lost: false,
            gaps: 0,
            counts: DbnCounts::default(),
            lost: Vec::new(),
            feeds: Vec::new(),
            bases: Vec::new(),
            config,
        })
    }

    /// Sets the books of the feeds, in the order of [`Event::source`], from 1. They take precedence
    /// over the definitions of instruments and over [`DbnConfig`], and their memory has no bound
    /// but the number of instruments.
    #[must_use]
    pub fn with_books(mut self, feeds: Vec<BookConfig>) -> Self {
        self.feeds = feeds;
        self
    }

    /// Sets the number of the first instrument of each feed, in the order of [`Event::source`],
    /// from 1, ascending. The status of a feed's trading session becomes one of each of its
    /// instruments. Without these numbers, an instrument without an event so far counts as one of
    /// any feed.
    #[must_use]
    pub fn with_bases(mut self, bases: Vec<u32>) -> Self {
        self.set_bases(bases);
        self
    }

    fn set_bases(&mut self, bases: Vec<u32>) {
        self.bases = bases;
    }

    /// Appends the metadata at the start of a stream: a mix of schemas from `start` on (nanoseconds
    /// since 1970-01-01 UTC), without an end. Returns false if the name of the dataset has more
    /// than 15 bytes, and was left out.
    pub fn metadata(&self, dataset: &str, start: u64, out: &mut Vec<u8>) -> bool {
        wire::metadata(dataset, start, false, out).0
    }

    /// Returns the counters of what was written so far, and of what was not.
    pub const fn counts(&self) -> DbnCounts {
        self.counts
    }

    /// Returns the values of the last event that DBN cannot represent.
    pub fn lost(&self) -> &[Lost] {
        &self.lost
    }

    /// Records that messages of the channel are missing, so that books of instruments without
    /// RptSeq(83) may be wrong.
    pub const fn gap(&mut self) {
        self.gaps = self.gaps.wrapping_add(1);
    }

    /// Records that events were lost, so that every book may be wrong until it is cleared, also
    /// that of an instrument without an event so far. The end of an instrument that is shown again
    /// has its definition again.
    pub fn lose_all(&mut self) {
        self.is_lost = true;
        for trust in &mut self.trust {
            trust.lose();
            trust.is_closed = false;
        }
    }

    /// Records that events of an instrument were lost, so that its book may be wrong until it is
    /// cleared. [`InstrumentId::ALL`] stands for the instruments whose books have had no event so
    /// far, nor a state.
    pub fn lose_book(&mut self, instrument: InstrumentId) {
        if instrument == InstrumentId::ALL {
            self.is_lost = true;
            self.trust.iter_mut().for_each(Trust::lose_unseen);
        } else if let Some(trust) = self.trust.get_mut(instrument.0 as usize) {
            trust.lose();
        }
    }

    /// Appends a record without a change of a book that events were lost of: behind
    /// [`Self::lose_all`] it has the flag MAYBE_BAD_BOOK. `end` has its instrument, its feed and
    /// the time of arrival. An instrument without a book has no such record.
    pub fn note_loss(&mut self, end: &Event, table: &dyn Lookup, out: &mut Vec<u8>) {
        self.lost.clear();
        let mut to = To {
            table,
            out,
            ts_recv: end.ts_recv,
            sequence: end.rpt_seq,
            written: self.counts.records,
        };
        let end = Event {
            flags: Flags::LAST,
            ..*end
        };
        self.note(&end, b'N', &mut to);
    }

    /// Records a restart of the plant, behind the events that clear its books: every book begins
    /// again, also one without an event so far.
    pub fn restart(&mut self) {
        self.is_lost = false;
        self.trust.iter_mut().for_each(Trust::restart);
    }

    /// Appends the records of an event. `sequence` is MsgSeqNum(34) of its message, for events
    /// without RptSeq(83), or 0 if it has none. [`Self::lost`] has the values that DBN cannot
    /// represent.
    ///
    /// Instruments that are not in the table have no symbol and no book.
    pub fn write(&mut self, event: &Event, sequence: u32, table: &dyn Lookup, out: &mut Vec<u8>) {
        self.lost.clear();
        let mut to = To {
            table,
            out,
            ts_recv: event.ts_recv,
            sequence: match event.rpt_seq {
                0 => sequence,
                number => number,
            },
            written: self.counts.records,
        };
        if event.instrument == InstrumentId::ALL {
            return self.status_of_all(event, &mut to);
        }
        self.see(event, table);
        self.record(event, &mut to);
        if event.flags.has(Flags::LAST) && self.counts.records == to.written {
            self.close(event, &mut to);
        }
    }

    /// Appends the last status of an instrument, or its definition, without its symbol.
    /// `is_of_session` is set for the status of a trading session. Unlike [`Self::write`], it
    /// allocates no state of instruments.
    fn write_known(
        &mut self,
        (event, is_of_session): (&Event, bool),
        table: &dyn Lookup,
        out: &mut Vec<u8>,
    ) {
        let mut to = To {
            table,
            out,
            ts_recv: event.ts_recv,
            sequence: 0,
            written: self.counts.records,
        };
        match event.kind {
            Kind::Status => self.status(event, is_of_session, &mut to),
            _ => self.definition(event, &mut to),
        }
    }
}
