//! Previous values, as columns.

/// The flags of 64 columns. A column is undefined if it is neither assigned nor empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) assigned: u64,
    pub(super) empty: u64,
    /// The value does not fit into the column.
    pub(super) outside: u64,
}

/// Sixteen columns: what a vector register holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Vector(pub(super) [i32; 16]);

/// Previous values of a set of templates, with their states (section 6.3.1 of FAST 1.1). All
/// memory is allocated at the beginning.
///
/// A column has 32 bits. What does not fit ([`fits`]) is outside: a 64-bit number is kept beside
/// the columns, anything else is its owner's affair.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    pub(super) values: Vec<Vector>,
    pub(super) flags: Vec<Flags>,
    outside: Vec<u64>,
}

/// Whether a column holds a 64-bit pattern, signed or not: leaving room for a difference to be
/// added without overflow.
#[inline(always)]
pub const fn fits(bits: u64) -> bool {
    bits < 1 << 31 || (bits as i64) < 0 && (bits as i64) >= -(1 << 30)
}

impl Columns {
    /// So many columns, all undefined.
    pub fn new(count: usize) -> Self {
        Self {
            values: vec![Vector::default(); count.div_ceil(16)],
            flags: vec![Flags::default(); count.div_ceil(64)],
            outside: vec![0; count],
        }
    }

    /// Makes all undefined.
    #[inline]
    pub fn reset(&mut self) {
        for flags in &mut self.flags {
            *flags = Flags::default();
        }
    }

    /// The 64-bit pattern of an assigned column: an integer, or a packed string.
    #[inline(always)]
    pub fn value(&self, column: usize) -> u64 {
        if self.is_outside(column) {
            return self.outside[column];
        }
        i64::from(self.values[column / 16].0[column % 16]) as u64
    }

    /// Whether the column has a value.
    #[inline(always)]
    pub fn is_assigned(&self, column: usize) -> bool {
        self.flags[column / 64].assigned >> (column % 64) & 1 != 0
    }

    /// Whether the column is known to have no value.
    #[inline(always)]
    pub fn is_empty(&self, column: usize) -> bool {
        self.flags[column / 64].empty >> (column % 64) & 1 != 0
    }

    /// Whether the value is kept elsewhere.
    #[inline(always)]
    pub fn is_outside(&self, column: usize) -> bool {
        self.flags[column / 64].outside >> (column % 64) & 1 != 0
    }

    /// Assigns the 64-bit pattern of an integer, or a packed string.
    #[inline(always)]
    pub fn assign(&mut self, column: usize, value: u64) {
        if !fits(value) {
            self.outside[column] = value;
            return self.assign_outside(column);
        }
        let (flags, bit) = (&mut self.flags[column / 64], 1 << (column % 64));
        flags.assigned |= bit;
        flags.empty &= !bit;
        flags.outside &= !bit;
        self.values[column / 16].0[column % 16] = value as i32;
    }

    /// Assigns a value that is kept elsewhere.
    #[inline]
    pub fn assign_outside(&mut self, column: usize) {
        let (flags, bit) = (&mut self.flags[column / 64], 1 << (column % 64));
        flags.assigned |= bit;
        flags.empty &= !bit;
        flags.outside |= bit;
    }

    /// Makes the column empty.
    #[inline(always)]
    pub fn clear(&mut self, column: usize) {
        let (flags, bit) = (&mut self.flags[column / 64], 1 << (column % 64));
        flags.assigned &= !bit;
        flags.empty |= bit;
        flags.outside &= !bit;
    }

    /// Makes the column undefined.
    #[inline]
    pub fn undefine(&mut self, column: usize) {
        let (flags, bit) = (&mut self.flags[column / 64], 1 << (column % 64));
        flags.assigned &= !bit;
        flags.empty &= !bit;
        flags.outside &= !bit;
    }
}
