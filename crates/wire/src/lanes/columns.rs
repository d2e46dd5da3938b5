//! Previous values, as columns.

/// The flags of 64 columns. A column is undefined if it is neither assigned nor empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flags {
    pub(super) assigned: u64,
    pub(super) empty: u64,
    /// The columns whose value does not fit.
    pub(super) outside: u64,
}

/// Columns that share words of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub(super) struct Block {
    pub(super) flags: Flags,
    pub(super) values: [Vector; 4],
}

/// Sixteen columns, as in a vector register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(align(64))]
pub(super) struct Vector(pub(super) [i32; 16]);

/// The previous values of a set of templates, with their states (section 6.3.1 of FAST 1.1). All
/// memory is allocated at the beginning.
///
/// A column has 32 bits. A value that does not fit ([`fits`]) is outside: a 64-bit number is kept
/// beside the columns, and any other value by the owner.
#[derive(Debug, Default)]
pub struct Columns {
    pub(super) blocks: Vec<Block>,
    /// The values beside the columns, by column.
    outside: Vec<u64>,
}

/// Returns whether a 64-bit pattern, signed or not, fits into a column, and a difference can be
/// added to it without overflow.
#[inline(always)]
pub const fn fits(bits: u64) -> bool {
    bits < 1 << 31 || (bits as i64) < 0 && (bits as i64) >= -(1 << 30)
}

impl Clone for Columns {
    fn clone(&self) -> Self {
        Self {
            blocks: self.blocks.clone(),
            outside: self.outside.clone(),
        }
    }

    fn clone_from(&mut self, other: &Self) {
        self.blocks.clone_from(&other.blocks);
        self.outside.clone_from(&other.outside);
    }
}

impl Columns {
    /// Returns `count` columns, all undefined.
    pub fn new(count: usize) -> Self {
        Self {
            blocks: vec![Block::default(); count.div_ceil(64)],
            outside: vec![0; count],
        }
    }

    /// Makes all columns undefined.
    #[inline]
    pub fn reset(&mut self) {
        // Most often there are few, and the loop over many is not worth its beginning.
        match self.blocks.as_mut_slice() {
            [one] => one.flags = Flags::default(),
            [one, other] => (one.flags, other.flags) = Default::default(),
            many => many
                .iter_mut()
                .for_each(|block| block.flags = Flags::default()),
        }
    }

    /// Returns the 64-bit pattern of an assigned column: an integer, or a packed string.
    #[inline(always)]
    pub fn value(&self, column: usize) -> u64 {
        if self.is_outside(column) {
            return self.outside[column];
        }
        let values = &self.blocks[column / 64].values;
        i64::from(values[column / 16 % 4].0[column % 16]) as u64
    }

    /// Returns whether the column has a value.
    #[inline(always)]
    pub fn is_assigned(&self, column: usize) -> bool {
        self.blocks[column / 64].flags.assigned >> (column % 64) & 1 != 0
    }

    /// Returns whether the column is known to have no value.
    #[inline(always)]
    pub fn is_empty(&self, column: usize) -> bool {
        self.blocks[column / 64].flags.empty >> (column % 64) & 1 != 0
    }

    /// Returns whether the value is kept outside of the column.
    #[inline(always)]
    pub fn is_outside(&self, column: usize) -> bool {
        self.blocks[column / 64].flags.outside >> (column % 64) & 1 != 0
    }

    /// Assigns the 64-bit pattern of an integer, or a packed string, to the column.
    #[inline(always)]
    pub fn assign(&mut self, column: usize, value: u64) {
        if !fits(value) {
            return self.assign_beside(column, value);
        }
        let (flags, bit) = (&mut self.blocks[column / 64].flags, 1 << (column % 64));
        flags.assigned |= bit;
        flags.empty &= !bit;
        flags.outside &= !bit;
        self.blocks[column / 64].values[column / 16 % 4].0[column % 16] = value as i32;
    }

    /// Assigns an integer that is kept beside the columns, even if its pattern would fit. The
    /// pattern of an unsigned integer near the largest is that of a small negative number.
    #[inline]
    pub fn assign_beside(&mut self, column: usize, value: u64) {
        self.outside[column] = value;
        self.assign_outside(column);
    }

    /// Assigns a value that is kept outside of the column.
    #[inline]
    pub fn assign_outside(&mut self, column: usize) {
        let (flags, bit) = (&mut self.blocks[column / 64].flags, 1 << (column % 64));
        flags.assigned |= bit;
        flags.empty &= !bit;
        flags.outside |= bit;
    }

    /// Makes the column empty.
    #[inline(always)]
    pub fn clear(&mut self, column: usize) {
        let (flags, bit) = (&mut self.blocks[column / 64].flags, 1 << (column % 64));
        flags.assigned &= !bit;
        flags.empty |= bit;
        flags.outside &= !bit;
    }
}
