//! The numbers of the items of a program.

/// The number of a field in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldId(pub(crate) u32);

impl FieldId {
    /// Returns the number as an index, from 0, dense in the program.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a previous value in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub(crate) u32);

impl Slot {
    /// Returns the number as an index into the flat arrays of previous values.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// The number of a constant or initial byte string in its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextId(pub(crate) u32);
