//! The faults of a book, and their counts.

use core::fmt;

/// The reason why an event cannot be valid for a book, or the book is invalid after it.
///
/// All but [`Fault::Disorder`] and [`Fault::Crossed`], which are found at the end of a message,
/// leave the contents of the book unchanged. All make the book doubtful: an event was lost or does
/// not belong to it, and a snapshot has to restore the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fault {
    /// MDPriceLevel(1023) is 0 or beyond the depth of the book.
    Level,
    /// A new level is more than one after the last, so a level between them was lost.
    Hole,
    /// A level or a price that does not exist was changed or deleted.
    NotThere,
    /// A new order has the number of an existing one.
    DuplicateOrder,
    /// An order that does not exist was changed, deleted or filled.
    UnknownOrder,
    /// A required price is absent.
    Price,
    /// A required size is absent, a size is negative, an order has size zero, a fill exceeds the
    /// order, or the orders of a level add up to more than 2^63 - 1.
    Size,
    /// The side is neither bid nor offer, or differs from the order's.
    Side,
    /// Books of this kind do not have the action.
    Action,
    /// The book has no capacity for another level or another order.
    Full,
    /// At the end of a message a level has a better price than one before it.
    Disorder,
    /// At the end of a message the best bid is above the best offer.
    Crossed,
    /// The instrument's number is beyond the limit, and no book was created.
    Instrument,
}

impl Fault {
    /// All faults, in the order of [`Faults::iter`].
    pub const ALL: [Self; 13] = [
        Self::Level,
        Self::Hole,
        Self::NotThere,
        Self::DuplicateOrder,
        Self::UnknownOrder,
        Self::Price,
        Self::Size,
        Self::Side,
        Self::Action,
        Self::Full,
        Self::Disorder,
        Self::Crossed,
        Self::Instrument,
    ];

    /// Returns a name for counters, in lower case with underscores.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Level => "level",
            Self::Hole => "hole",
            Self::NotThere => "not_there",
            Self::DuplicateOrder => "duplicate_order",
            Self::UnknownOrder => "unknown_order",
            Self::Price => "price",
            Self::Size => "size",
            Self::Side => "side",
            Self::Action => "action",
            Self::Full => "full",
            Self::Disorder => "disorder",
            Self::Crossed => "crossed",
            Self::Instrument => "instrument",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Level => "the level is 0 or beyond the depth of the book",
            Self::Hole => "the new level would leave a gap before it",
            Self::NotThere => "no such level",
            Self::DuplicateOrder => "the order exists already",
            Self::UnknownOrder => "no such order",
            Self::Price => "the price is missing",
            Self::Size => "the size is missing or out of range",
            Self::Side => "the side is neither bid nor offer, or not that of the order",
            Self::Action => "the action is not defined for books of this kind",
            Self::Full => "the book is full",
            Self::Disorder => "the levels are not in order of price",
            Self::Crossed => "the best bid is above the best offer",
            Self::Instrument => "too many instruments",
        })
    }
}

impl core::error::Error for Fault {}

/// The count of each [`Fault`]. A count that reaches 2^32 - 1 stays there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u32; Fault::ALL.len()]);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        let count = &mut self.0[fault as usize];
        *count = count.saturating_add(1);
    }

    /// Returns the count of this fault.
    pub const fn count(&self, fault: Fault) -> u32 {
        self.0[fault as usize]
    }

    /// Returns each fault with its count.
    pub fn iter(&self) -> impl Iterator<Item = (Fault, u32)> + '_ {
        Fault::ALL
            .into_iter()
            .map(|fault| (fault, self.count(fault)))
    }

    /// Returns the number of all faults.
    pub fn total(&self) -> u64 {
        self.0.iter().map(|&count| u64::from(count)).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_has_a_count_of_its_own() {
        let mut faults = Faults::default();
        for (place, fault) in Fault::ALL.into_iter().enumerate() {
            assert_eq!(fault as usize, place);
            for _ in 0..=place {
                faults.add(fault);
            }
        }
        assert!(faults.iter().eq(Fault::ALL.into_iter().zip(1..)));
        assert_eq!(faults.total(), 91);
    }
}
