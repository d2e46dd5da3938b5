//! The value of a field of a record.

use crate::text_ref::TextRef;
use crate::value::Decimal;

/// The value of a field of a [`Record`](crate::Record).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Cell<'r> {
    /// No value: the field is absent, or there is no such field.
    Absent,
    /// An unsigned integer.
    Unsigned(u64),
    /// A signed integer.
    Signed(i64),
    /// A decimal.
    Decimal(Decimal),
    /// A string or byte vector.
    Text(TextRef<'r>),
    /// A sequence, with its number of entries.
    Sequence(u32),
    /// A group, or a dynamic reference.
    Group,
}
