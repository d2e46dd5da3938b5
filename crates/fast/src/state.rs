//! States of previous values.

use crate::value::{IntType, TextType};

/// The state of a previous value (section 6.3.1): undefined, empty, or assigned by a certain type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct State(u8);

impl State {
    /// The state of a value that was not assigned since the last reset.
    pub const UNDEFINED: Self = Self(0);
    /// The state of a value that is known to be absent.
    pub const EMPTY: Self = Self(1);

    /// Returns the state as a number.
    pub(crate) const fn number(self) -> u8 {
        self.0
    }

    /// Returns the state of this number.
    pub(crate) const fn from_number(number: u8) -> Self {
        Self(number)
    }

    /// Returns whether the value was assigned by a string or byte vector.
    pub(crate) const fn is_text(self) -> bool {
        self.0 > Self::DECIMAL.0
    }

    /// Returns the state of a value that was assigned by an integer field of this type.
    #[must_use]
    pub const fn int(ty: IntType) -> Self {
        Self(2 + ty as u8)
    }

    /// The state of a value that was assigned by a decimal field.
    pub const DECIMAL: Self = Self(10);

    /// Returns the state of a value that was assigned by a string or byte vector field of this
    /// type.
    #[must_use]
    pub const fn text(ty: TextType) -> Self {
        Self(11 + ty as u8)
    }
}
