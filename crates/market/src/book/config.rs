//! The configuration of a book: its kind and its limits.

use core::fmt;

/// The events that a book is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BookKind {
    /// Levels with numbers: as many as the feed sends, each at its MDPriceLevel(1023).
    Levels,
    /// Levels without numbers, each identified by its price.
    Prices,
    /// Orders, each identified by its number (MBO). Levels are the sums of their orders.
    Orders,
}

/// The kind of a book, its limits, and the rules that differ between venues.
///
/// A book allocates all of its memory when it is created, unless it may have more than 100,000
/// orders: then it has room for 16,384 at first, and grows. With at most `L` levels a side and
/// room for `M` orders it has, in bytes beside its own 400 or so, where `w(L)` = L + L/2 + 8 and
/// `t(n)` = 5 p + 16 with the power of two p from 16 n / 7 on (from 8 levels or orders on):
///
/// | kind | bytes | L = 20 | L = 1,000 |
/// |---|---|---|---|
/// | levels | 48 w(L) | 1.8 kB | 72 kB |
/// | prices | 48 L + 32 w(L) + 2 t(L) | 2.8 kB | 137 kB |
/// | orders | 64 L + 32 w(L) + 2 t(L) + 32 M + t(M) | 3.2 kB + orders | 153 kB + orders |
///
/// An order takes 43 to 55 bytes, so 28,672 of them take 1.2 MB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookConfig {
    pub(super) kind: BookKind,
    pub(super) levels: u32,
    pub(super) orders: u32,
    pub(super) may_cross: bool,
    pub(super) priority: Priority,
}

/// The changes of an order's size that cost its place in the queue. A change of its price always
/// does, and a fill never does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// Whether a larger order keeps its place. By default it goes to the back.
    pub increase_keeps: bool,
    /// Whether a smaller order goes to the back. By default it keeps its place.
    pub decrease_loses: bool,
}

/// A limit that no book can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigError {
    /// The levels of a side are not between 1 and this number.
    Levels(u32),
    /// The orders are not between 1 and this number.
    Orders(u32),
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Levels(most) => write!(f, "a book must have 1 to {most} levels"),
            Self::Orders(most) => write!(f, "a book must have 1 to {most} orders"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl BookConfig {
    /// The most levels of a side.
    pub const MOST_LEVELS: u32 = 65_535;
    /// The most orders of a book.
    pub const MOST_ORDERS: u32 = 1 << 24;

    /// Returns a configuration for numbered levels, `depth` of them on each side, as the feed sends
    /// them.
    ///
    /// # Errors
    ///
    /// Returns an error if the depth is not from 1 to [`BookConfig::MOST_LEVELS`].
    pub const fn by_level(depth: u32) -> Result<Self, ConfigError> {
        Self::new(BookKind::Levels, depth, 1)
    }

    /// Returns a configuration for levels by price, at most `levels` of them on each side.
    ///
    /// # Errors
    ///
    /// Returns an error if the levels are not from 1 to [`BookConfig::MOST_LEVELS`].
    pub const fn by_price(levels: u32) -> Result<Self, ConfigError> {
        Self::new(BookKind::Prices, levels, 1)
    }

    /// Returns a configuration for at most `orders` orders, at no more than `levels` prices on each
    /// side.
    ///
    /// # Errors
    ///
    /// Returns an error if the levels are not from 1 to [`BookConfig::MOST_LEVELS`], or the orders
    /// not from 1 to [`BookConfig::MOST_ORDERS`].
    pub const fn by_order(levels: u32, orders: u32) -> Result<Self, ConfigError> {
        Self::new(BookKind::Orders, levels, orders)
    }

    const fn new(kind: BookKind, levels: u32, orders: u32) -> Result<Self, ConfigError> {
        if levels == 0 || levels > Self::MOST_LEVELS {
            return Err(ConfigError::Levels(Self::MOST_LEVELS));
        }
        if orders == 0 || orders > Self::MOST_ORDERS {
            return Err(ConfigError::Orders(Self::MOST_ORDERS));
        }
        Ok(Self {
            kind,
            levels,
            orders,
            may_cross: false,
            priority: Priority {
                increase_keeps: false,
                decrease_loses: false,
            },
        })
    }

    /// Sets whether a bid above the offers is allowed, as in auctions, or if several venues fill
    /// one book. By default it is a fault.
    #[must_use]
    pub const fn may_cross(mut self, may_cross: bool) -> Self {
        self.may_cross = may_cross;
        self
    }

    /// Sets the changes that cost an order its place in the queue.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Returns the kind of the book's events: levels, prices or orders.
    pub const fn kind(&self) -> BookKind {
        self.kind
    }

    /// Returns the most levels of a side.
    pub const fn levels(&self) -> u32 {
        self.levels
    }

    /// Returns the most orders, or 1 unless it is a book of orders.
    pub const fn orders(&self) -> u32 {
        self.orders
    }

    /// Returns the rules that differ between venues, as bits of a number below 8, for
    /// [`Self::with_rules`].
    pub const fn rules(&self) -> u32 {
        let Priority {
            increase_keeps,
            decrease_loses,
        } = self.priority;
        self.may_cross as u32 | (increase_keeps as u32) << 1 | (decrease_loses as u32) << 2
    }

    /// Sets the rules that differ between venues, as [`Self::rules`] returns them; `None` if there
    /// is any other bit.
    #[must_use]
    pub const fn with_rules(self, rules: u32) -> Option<Self> {
        let priority = Priority {
            increase_keeps: rules & 2 != 0,
            decrease_loses: rules & 4 != 0,
        };
        let config = self.may_cross(rules & 1 != 0).priority(priority);
        match config.rules() == rules {
            true => Some(config),
            false => None,
        }
    }
}
