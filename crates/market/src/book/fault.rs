//! What a book refuses, and how often it did.

use core::fmt;

/// Why an event cannot be true of a book, or why the book cannot be after it.
///
/// All but [`Fault::Disorder`] and [`Fault::Crossed`], which are found at the end of a message,
/// leave the content of the book as it was. All make the book doubtful: an event was lost or
/// comes from elsewhere, and a picture has to bring the book back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Fault {
    /// MDPriceLevel(1023) is 0 or beyond the depth of the book.
    Level,
    /// A new level more than one behind the last: what lies between was lost.
    Hole,
    /// A change or a deletion of a level or a price that is not there.
    NotThere,
    /// A new order with the number of one that is there.
    DuplicateOrder,
    /// A change, a deletion or a fill of an order that is not there.
    UnknownOrder,
    /// No price where one is needed.
    Price,
    /// No size where one is needed, a size below zero, an order of nothing, a fill of more than
    /// there is, or a level whose orders add up to more than 2^63 - 1.
    Size,
    /// Neither bid nor offer, or another side than the order is on.
    Side,
    /// An action that books of this kind do not have.
    Action,
    /// No room for another level or another order.
    Full,
    /// At the end of a message a level has a better price than one before it.
    Disorder,
    /// At the end of a message the best bid is above the best offer.
    Crossed,
    /// An instrument beyond the most that there may be; no book was made for it.
    Instrument,
}

impl Fault {
    /// All of them, in the order of [`Faults::iter`].
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

    /// Returns a name for counters: lower case, with underscores.
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
            Self::Hole => "the new level would leave a hole in front of it",
            Self::NotThere => "there is no such level",
            Self::DuplicateOrder => "there is such an order already",
            Self::UnknownOrder => "there is no such order",
            Self::Price => "it has no price",
            Self::Size => "its size is missing or impossible",
            Self::Side => "it is no bid and no offer, or on the other side",
            Self::Action => "books of this kind have no such action",
            Self::Full => "the book is full",
            Self::Disorder => "the levels are not in the order of their prices",
            Self::Crossed => "the best bid is above the best offer",
            Self::Instrument => "there are too many instruments",
        })
    }
}

impl core::error::Error for Fault {}

/// How often each [`Fault`] was found; a count that reaches 2^32 - 1 stays there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults([u32; Fault::ALL.len()]);

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        let count = &mut self.0[fault as usize];
        *count = count.saturating_add(1);
    }

    /// How often this one was found.
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
