//! Sets of MDEntryTypes(269).

/// A set of MDEntryTypes(269), each one ASCII character.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct EntryTypes(u128);

impl EntryTypes {
    /// Every type.
    pub const ALL: Self = Self(u128::MAX);
    /// No type.
    pub const NONE: Self = Self(0);

    /// Returns whether the type is in the set.
    #[must_use]
    pub const fn has(self, entry: u8) -> bool {
        entry < 128 && self.0 >> entry & 1 == 1
    }

    /// Returns the set with this type added.
    #[must_use]
    pub const fn with(self, entry: u8) -> Self {
        match entry < 128 {
            true => Self(self.0 | 1 << entry),
            false => self,
        }
    }

    /// Returns the types that are in both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns whether the set is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<u8> for EntryTypes {
    fn from_iter<I: IntoIterator<Item = u8>>(types: I) -> Self {
        types.into_iter().fold(Self::NONE, Self::with)
    }
}
