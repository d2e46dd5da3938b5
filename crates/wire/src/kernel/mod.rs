//! The ways to index fields: a scalar one, which is the oracle, and vector kernels.

mod scalar;

use crate::fields::{FieldIndex, Indexed};

/// A way to index fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kernel {
    /// One byte at a time: slow, obvious, the oracle of the others.
    Scalar,
}

impl Kernel {
    /// All kernels, slowest first.
    pub const ALL: [Self; 1] = [Self::Scalar];

    /// The fastest that this processor has.
    pub fn best() -> Self {
        Self::Scalar
    }

    /// Whether this processor has it.
    pub fn is_available(self) -> bool {
        true
    }
}

#[inline]
pub(crate) fn index(kernel: Kernel, bytes: &[u8], index: &mut FieldIndex) -> Indexed {
    match kernel {
        Kernel::Scalar => scalar::index(bytes, index),
    }
}
