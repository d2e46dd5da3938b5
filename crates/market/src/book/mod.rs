//! Books by level number, by price or by order, built from [`Event`]s.
//!
//! A [`Book`] refuses an invalid event with a [`Fault`], counts it, and is doubtful until a
//! [`Kind::Clear`] and the snapshot after it restore it. [`Books`] has one book for each instrument
//! that has data.
//!
//! ```
//! use fanfare_market::event::{Action, Event, Flags, Kind, entry};
//! use fanfare_market::{Book, BookConfig, Fault, Price, Side};
//!
//! let mut book = Book::new(&BookConfig::by_price(100)?);
//! let level = |action, units, size| Event {
//!     kind: Kind::Level,
//!     action,
//!     entry: entry::BID,
//!     price: Price::from_units(units),
//!     size,
//!     flags: Flags::LAST,
//!     ..Event::EMPTY
//! };
//! book.apply(&level(Action::New, 19_835_000_000_000, 7))?;
//! let best = book.best(Side::Bid).ok_or("no bid")?;
//! assert_eq!((best.price.to_string().as_str(), best.size), ("19835", 7));
//!
//! let lost = book.apply(&level(Action::Delete, 19_830_000_000_000, 0));
//! assert_eq!(lost, Err(Fault::NotThere));
//! assert!(book.is_doubtful());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod books;
mod config;
mod fault;
mod ids;
mod levels;
mod orders;
mod prices;
mod ranks;
mod view;
mod window;

pub use books::Books;
pub use config::{BookConfig, BookKind, ConfigError, Priority};
pub use fault::{Fault, Faults};
pub use view::{DepthIter, Level, Order, QueueIter, checksum_of_levels};

use core::fmt;

use crate::event::{Event, Flags, Kind, entry};
use crate::price::Price;
use levels::Levels;
use orders::Orders;
use prices::Prices;

/// A side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Side {
    /// Orders to buy, of which the highest price is the best.
    Bid = 0,
    /// Orders to sell, of which the lowest price is the best.
    Offer = 1,
}

impl Side {
    /// Both sides.
    pub const BOTH: [Self; 2] = [Self::Bid, Self::Offer];

    /// Returns the side of MDEntryType(269) `0` and `1`, or `None` for others.
    #[inline]
    pub const fn of_entry(entry: u8) -> Option<Self> {
        // Sides alternate unpredictably, so the code is free of branches.
        match entry.wrapping_sub(entry::BID) {
            number @ 0..2 => Some(Self::of_number(number as u32)),
            _ => None,
        }
    }

    /// Returns MDEntryType(269) of this side.
    pub const fn entry(self) -> u8 {
        entry::BID + self as u8
    }

    #[inline]
    const fn of_number(number: u32) -> Self {
        if number == 0 { Self::Bid } else { Self::Offer }
    }

    /// Returns a key that is higher the better the price is. It is its own inverse, and no price
    /// overflows.
    #[inline]
    const fn key(self, price: Price) -> i64 {
        price.units() ^ self.mask()
    }

    #[inline]
    const fn price(self, key: i64) -> Price {
        Price::from_units(key ^ self.mask())
    }

    /// Returns all ones for offers.
    #[inline]
    const fn mask(self) -> i64 {
        -(self as i64)
    }
}

/// The book of an instrument.
///
/// It allocates all of its memory when it is created ([`BookConfig`] specifies how much) and
/// nothing after that. Two books are equal if they have the same contents, whatever their history.
#[derive(Clone)]
pub struct Book {
    may_cross: bool,
    is_doubtful: bool,
    rpt_seq: u32,
    body: Body,
    faults: Faults,
}

#[derive(Clone)]
enum Body {
    Levels(Levels),
    Prices(Prices),
    Orders(Orders),
}

impl Book {
    /// Creates an empty book. Allocates.
    pub fn new(config: &BookConfig) -> Self {
        Self {
            may_cross: config.may_cross,
            is_doubtful: false,
            rpt_seq: 0,
            body: match config.kind {
                BookKind::Levels => Body::Levels(Levels::new(config.levels as usize)),
                BookKind::Prices => Body::Prices(Prices::new(config.levels as usize)),
                BookKind::Orders => Body::Orders(Orders::new(config)),
            },
            faults: Faults::default(),
        }
    }

    /// Applies an event of the instrument.
    ///
    /// Books of levels apply events of [`Kind::Level`], books of orders those of [`Kind::Order`],
    /// and all books [`Kind::Clear`]. Of all others, only [`Flags::LAST`] matters. At the last
    /// event of a message the book must be in order and not crossed. Within a message it may be
    /// either.
    ///
    /// A numbered level needs a price and a size unless it is deleted, and `id` is its number of
    /// orders. A new one moves the levels from its number on down, and those beyond the depth are
    /// dropped. Deleting one moves the levels after it up. A level by price is set by New and
    /// Change alike, and removed by Delete, and its number is ignored. A level may have size 0, but
    /// an order of size 0 is a fault.
    ///
    /// A new order goes to the back of the queue of its price, and so does one whose price changes
    /// or that becomes larger (see [`Priority`]). [`Fill`](crate::Action::Fill) reduces an order.
    /// Deletions and fills are found by `id` alone. If they have a side, it must be the order's.
    ///
    /// # Errors
    ///
    /// Returns a fault if the event is invalid for this book, or the book is invalid after the last
    /// event of a message. The fault is counted, and the book is doubtful from then on. Its
    /// contents are unchanged by an invalid event.
    #[inline]
    pub fn apply(&mut self, event: &Event) -> Result<(), Fault> {
        let mut done = match (event.kind, &mut self.body) {
            (Kind::Level, Body::Levels(levels)) => levels.apply(event),
            (Kind::Level, Body::Prices(prices)) => prices.apply(event),
            (Kind::Order, Body::Orders(orders)) => orders.apply(event),
            (Kind::Clear, _) => {
                self.clear();
                Ok(())
            }
            _ => Ok(()),
        };
        if event.flags.has(Flags::LAST) && done.is_ok() {
            done = self.check();
        }
        self.rpt_seq = event.rpt_seq;
        if let Err(fault) = done {
            self.doubt(fault);
        }
        done
    }

    /// Empties the book, which is then not doubtful. The counts of faults are kept.
    #[cold]
    pub fn clear(&mut self) {
        self.is_doubtful = false;
        match &mut self.body {
            Body::Levels(levels) => levels.clear(),
            Body::Prices(prices) => prices.clear(),
            Body::Orders(orders) => orders.clear(),
        }
    }

    /// Ends a message whose last event does not apply to the book, as [`Self::apply`] does at the
    /// last one. RptSeq(83) stays that of the last event that applied.
    #[inline]
    fn end_message(&mut self) -> Result<(), Fault> {
        let done = self.check();
        if let Err(fault) = done {
            self.doubt(fault);
        }
        done
    }

    /// Checks the conditions at the end of a message.
    #[inline]
    fn check(&mut self) -> Result<(), Fault> {
        if let Body::Levels(levels) = &mut self.body
            && !levels.are_in_order()
        {
            return Err(Fault::Disorder);
        }
        if !self.may_cross && self.is_crossed() {
            return Err(Fault::Crossed);
        }
        Ok(())
    }

    #[cold]
    fn doubt(&mut self, fault: Fault) {
        self.is_doubtful = true;
        self.faults.add(fault);
    }

    /// Returns true from a fault on until the book is cleared, because its contents may be wrong.
    pub const fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    /// Returns the counts of faults since the book was created.
    pub const fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Returns RptSeq(83) of the last event, or 0 if it had none.
    pub const fn rpt_seq(&self) -> u32 {
        self.rpt_seq
    }

    /// Returns the kind of the book's events: levels, prices or orders.
    pub const fn kind(&self) -> BookKind {
        match self.body {
            Body::Levels(_) => BookKind::Levels,
            Body::Prices(_) => BookKind::Prices,
            Body::Orders(_) => BookKind::Orders,
        }
    }

    /// Returns the number of bytes of the book, including itself, which does not depend on its
    /// contents.
    pub fn memory(&self) -> usize {
        size_of::<Self>()
            + match &self.body {
                Body::Levels(levels) => levels.memory(),
                Body::Prices(prices) => prices.memory(),
                Body::Orders(orders) => orders.memory(),
            }
    }
}

impl PartialEq for Book {
    /// Returns true if both have the same levels and, if both are books of orders, the same queues.
    fn eq(&self, other: &Self) -> bool {
        let queues = |book: &Self| book.kind() == BookKind::Orders;
        queues(self) == queues(other)
            && Side::BOTH.into_iter().all(|side| {
                self.depth(side).eq(other.depth(side))
                    && self.depth(side).all(|level| {
                        let queue = self.queue(side, level.price);
                        queue.eq(other.queue(side, level.price))
                    })
            })
    }
}

impl fmt::Debug for Book {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Book")
            .field("kind", &self.kind())
            .field("best_bid", &self.best(Side::Bid))
            .field("best_offer", &self.best(Side::Offer))
            .field("is_doubtful", &self.is_doubtful)
            .finish_non_exhaustive()
    }
}
