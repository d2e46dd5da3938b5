//! What a book holds, and how much of it at most.

use core::fmt;

/// What a book is fed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BookKind {
    /// Levels with numbers: as many as the feed sends, each where MDPriceLevel(1023) says.
    Levels,
    /// Levels without numbers, each known by its price.
    Prices,
    /// Orders, each known by its number (MBO); levels are the sums of their orders.
    Orders,
}

/// The kind of a book, its limits, and what venues do differently.
///
/// A book takes all of its memory when it is made. With `L` levels a side at most and `M`
/// orders it has, in bytes beside its own 400 or so, where `w(L)` = L + L/2 + 8 and `t(n)` =
/// 5 p + 16 with the power of two p from 16 n / 7 on (from 8 levels or orders on):
///
/// | kind | bytes | L = 20 | L = 1,000 |
/// |---|---|---|---|
/// | levels | 48 w(L) | 1.8 kB | 72 kB |
/// | prices | 48 L + 32 w(L) + 2 t(L) | 2.8 kB | 137 kB |
/// | orders | 64 L + 32 w(L) + 2 t(L) + 32 M + t(M) | 3.2 kB + orders | 153 kB + orders |
///
/// An order takes 43 to 55 bytes; 28,672 of them 1.2 MB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BookConfig {
    pub(super) kind: BookKind,
    pub(super) levels: u32,
    pub(super) orders: u32,
    pub(super) may_cross: bool,
    pub(super) priority: Priority,
}

/// Which changes of an order's size cost its place in the queue. A change of its price always
/// does; a fill never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Priority {
    /// A larger order stays where it is; by default it goes to the back.
    pub increase_keeps: bool,
    /// A smaller order goes to the back; by default it stays where it is.
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
            Self::Levels(most) => write!(f, "levels of a book are from 1 to {most}"),
            Self::Orders(most) => write!(f, "orders of a book are from 1 to {most}"),
        }
    }
}

impl core::error::Error for ConfigError {}

impl BookConfig {
    /// The most levels of a side.
    pub const MOST_LEVELS: u32 = 65_535;
    /// The most orders of a book.
    pub const MOST_ORDERS: u32 = 1 << 24;

    /// Levels by number, `depth` of them on each side, as the feed sends them.
    ///
    /// # Errors
    ///
    /// The depth is not from 1 to [`BookConfig::MOST_LEVELS`].
    pub const fn by_level(depth: u32) -> Result<Self, ConfigError> {
        Self::new(BookKind::Levels, depth, 1)
    }

    /// Levels by price, at most `levels` of them on each side.
    ///
    /// # Errors
    ///
    /// The levels are not from 1 to [`BookConfig::MOST_LEVELS`].
    pub const fn by_price(levels: u32) -> Result<Self, ConfigError> {
        Self::new(BookKind::Prices, levels, 1)
    }

    /// Returns a configuration for at most `orders` orders, at no more than `levels` prices on each
    /// side.
    ///
    /// # Errors
    ///
    /// The levels are not from 1 to [`BookConfig::MOST_LEVELS`], or the orders not from 1 to
    /// [`BookConfig::MOST_ORDERS`].
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

    /// Sets whether a bid above the offers is no fault: in auctions, or where several venues fill
    /// one book. By default it is one.
    #[must_use]
    pub const fn may_cross(mut self, may_cross: bool) -> Self {
        self.may_cross = may_cross;
        self
    }

    /// Sets what costs an order its place in the queue.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    /// Returns what the events of the book are: levels, prices or orders.
    pub const fn kind(&self) -> BookKind {
        self.kind
    }

    /// Returns the most levels of a side.
    pub const fn levels(&self) -> u32 {
        self.levels
    }

    /// Returns the most orders, 1 unless it is a book of orders.
    pub const fn orders(&self) -> u32 {
        self.orders
    }
}
