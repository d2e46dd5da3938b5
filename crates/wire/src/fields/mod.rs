//! The field index: the positions of all tag=value fields of one message.

mod kernel;

use crate::data::DataFields;

pub use kernel::Kernel;

/// The separator of fields.
pub const SOH: u8 = 1;

/// Returns marks of the separators among eight bytes, of which `word` is the little-endian word.
/// The result is not zero if there is a separator, and its lowest bit set is the highest bit of the
/// first separator's byte. The bits above that may be wrong.
#[inline]
pub const fn separators_in(word: u64) -> u64 {
    zeros_in(word ^ 0x0101_0101_0101_0101)
}

/// Returns marks of the bytes that are zero. As in [`separators_in`], only the lowest bit set is
/// certain.
#[inline]
pub(crate) const fn zeros_in(word: u64) -> u64 {
    word.wrapping_sub(0x0101_0101_0101_0101) & !word & 0x8080_8080_8080_8080
}

/// The positions and tag numbers of all fields of one message, in reusable arrays.
///
/// A field is `tag=value` and the separator (0x01). The tag is the text before the first `=`; a
/// later `=` belongs to the value. A field whose tag is the length of a data field (see
/// [`DataFields`]), and which that data field follows, has the number of bytes of the value of the
/// data field. That value may contain separators.
///
/// Indexing does not allocate once the arrays are large enough for the messages at hand.
#[derive(Clone, Debug)]
pub struct FieldIndex {
    /// The three columns, one after the other. The entries before them are left free so that the
    /// columns begin on a page, as a store over the border of two pages takes 25 cycles.
    room: Vec<u32>,
    /// The index in `room` at which the columns begin.
    first: usize,
    /// The number of entries of a column.
    height: usize,
    pub(crate) len: usize,
    pub(crate) data: DataFields,
    kernel: Kernel,
    max_fields: usize,
}

/// The result of one pass over a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// The sum of all bytes modulo 256.
    pub sum: u8,
    /// The fault if the bytes are no sequence of fields. The fields before it are indexed.
    pub fault: Option<Fault>,
    /// Whether a value may contain a separator. If not, each separator ends a field.
    pub may_hold_data: bool,
}

/// The first place at which bytes are no sequence of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The offset of the first byte of the faulty field.
    pub offset: u32,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// The kind of fault of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The field has no `=` before the separator.
    NoEquals,
    /// The last field has no separator.
    Unterminated,
    /// The length field of a data field is no number, or no separator follows the value of the data
    /// field.
    DataLength,
    /// The message has more fields than the limit.
    TooManyFields,
    /// The message has 4 GiB or more.
    TooLong,
}

/// The arrays of an index, all of the same height except for a spare entry.
pub(crate) struct Columns<'a> {
    pub(crate) tag: &'a mut [u32],
    /// The offsets at which the values begin.
    pub(crate) begin: &'a mut [u32],
    /// The offsets at which the values end. A spare entry at the front is that of the separator
    /// before the first field: field `i` begins after `end[i]` and ends at `end[i + 1]`.
    pub(crate) end: &'a mut [u32],
}

/// The number of entries in a page of 4096 bytes.
const PAGE: usize = 1024;

impl FieldIndex {
    /// The default limit of [`FieldIndex::set_max_fields`].
    pub const DEFAULT_MAX_FIELDS: usize = 65_536;

    /// Returns an empty index with the standard's data fields and the fastest kernel of this
    /// processor.
    pub fn new() -> Self {
        Self::with(DataFields::standard(), Kernel::best())
    }

    /// Returns an empty index. A kernel that this processor lacks is replaced by the fastest one
    /// that it has.
    pub fn with(data: DataFields, kernel: Kernel) -> Self {
        let kernel = if kernel.is_available() {
            kernel
        } else {
            Kernel::best()
        };
        let mut index = Self {
            room: Vec::new(),
            first: 0,
            height: 0,
            len: 0,
            data,
            kernel,
            max_fields: Self::DEFAULT_MAX_FIELDS,
        };
        index.grow();
        index
    }

    /// Sets the limit on the number of fields of a message, and with it the limit on memory: 12
    /// bytes for each field of the longest message, rounded up to a power of two, at least 256 and
    /// less than twice the limit and 144 more.
    pub fn set_max_fields(&mut self, max_fields: usize) {
        self.max_fields = max_fields;
    }

    /// Returns the kernel in use.
    pub fn kernel(&self) -> Kernel {
        self.kernel
    }

    /// Indexes all fields of `bytes` and sums its bytes. The index of the previous message is
    /// discarded.
    #[inline]
    pub fn index(&mut self, bytes: &[u8]) -> Indexed {
        kernel::index(bytes, self)
    }

    /// Returns the number of fields.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there are no fields.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the tag numbers. A tag that is not a number from 1 to 999,999,999 in at most 9
    /// digits is 0.
    #[inline]
    pub fn tags(&self) -> &[u32] {
        self.column(0).get(..self.len).unwrap_or_default()
    }

    /// Returns the offsets of the values' first bytes.
    #[inline]
    pub fn begins(&self) -> &[u32] {
        self.column(1).get(..self.len).unwrap_or_default()
    }

    /// Returns the offsets of the separators after the values. The text of a field begins one byte
    /// after the end of the previous field, and that of the first field at 0.
    #[inline]
    pub fn ends(&self) -> &[u32] {
        self.column(2).get(1..=self.len).unwrap_or_default()
    }

    /// Returns the tags, begins and ends of the first `N` fields, or `None` if there are fewer.
    #[inline]
    pub fn front<const N: usize>(&self) -> Option<[&[u32; N]; 3]> {
        if self.len < N {
            return None;
        }
        let ends = 2 * self.height + 1;
        let column = |at: usize| self.room.get(self.first + at..)?.first_chunk();
        Some([column(0)?, column(self.height)?, column(ends)?])
    }

    /// Returns the offsets at which the value of field `at` begins and ends, or `None` if there is
    /// no such field.
    #[inline]
    pub fn span(&self, at: usize) -> Option<(u32, u32)> {
        if at >= self.len {
            return None;
        }
        let begin = self.first + self.height + at;
        let end = begin + self.height + 1;
        Some((*self.room.get(begin)?, *self.room.get(end)?))
    }

    /// Returns the entries from the first one of a column on: 0 is tags, 1 begins, 2 ends.
    #[inline]
    fn column(&self, i: usize) -> &[u32] {
        self.room
            .get(self.first + i * self.height..)
            .unwrap_or_default()
    }

    /// Returns the data fields that a kernel needs to know and the columns that it writes to. The
    /// result is never `None`, as the columns are in the room.
    #[inline]
    pub(crate) fn parts(&mut self) -> Option<(&DataFields, Columns<'_>)> {
        let room = self.room.get_mut(self.first..)?;
        let (tag, rest) = room.split_at_mut_checked(self.height)?;
        let (begin, rest) = rest.split_at_mut_checked(self.height)?;
        let end = rest.get_mut(..=self.height)?;
        Some((&self.data, Columns { tag, begin, end }))
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Appends a field, and returns whether the limit allows that.
    pub(crate) fn push(&mut self, tag: u32, begin: usize, end: usize) -> bool {
        if self.len == self.height {
            self.grow();
        }
        if self.len >= self.max_fields {
            return false;
        }
        let entries = [
            (0, tag),
            (self.height, begin as u32),
            (2 * self.height + 1, end as u32),
        ];
        for (column, value) in entries {
            self.room[self.first + column + self.len] = value;
        }
        self.len += 1;
        true
    }

    /// Doubles the room unless a message at the limit fits already, and returns whether it has.
    #[cold]
    pub(crate) fn grow_within_limit(&mut self) -> bool {
        let may_grow = self.height < self.max_fields.saturating_add(kernel::SPARE);
        if may_grow {
            self.grow();
        }
        may_grow
    }

    pub(crate) fn max_fields(&self) -> usize {
        self.max_fields
    }

    /// Doubles the room. A caller that adds fields keeps to their limit.
    #[cold]
    fn grow(&mut self) {
        let height = (self.height * 2).max(256);
        let mut room = vec![0; 3 * height + 1 + PAGE];
        let first = room.as_ptr().align_offset(4 * PAGE).min(PAGE);
        for i in 0..3 {
            let old = self.column(i).get(..=self.len).unwrap_or_default();
            room[first + i * height..][..old.len()].copy_from_slice(old);
        }
        (self.room, self.first, self.height) = (room, first, height);
    }
}

impl Default for FieldIndex {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the number of a tag of 1 to 9 digits, which is not zero. Returns 0 for any other text.
#[inline]
pub fn parse_tag(text: &[u8]) -> u32 {
    if text.len() > 9 {
        return 0;
    }
    crate::int::parse_u64(text).map_or(0, |tag| tag as u32)
}
