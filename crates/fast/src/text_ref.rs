//! Byte strings as records and previous values keep them.

use std::fmt;
use std::ops::Deref;

use fanfare_wire::lanes;

/// The length in bytes of the longest string that is kept in a word.
pub(crate) const SHORT: usize = 8;

/// Returns the first eight bytes of a string, the first one lowest.
#[inline(always)]
pub(crate) fn front(text: &[u8]) -> u64 {
    let bytes = text.iter().take(SHORT).rev();
    bytes.fold(0, |word, byte| word << 8 | u64::from(*byte))
}

/// A byte string. A short one is kept packed, a long one is borrowed. It dereferences to its bytes.
#[derive(Clone, Copy)]
pub struct TextRef<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    /// The bytes, and their number.
    Short([u8; SHORT], usize),
    Long(&'a [u8]),
}

impl<'a> TextRef<'a> {
    #[inline(always)]
    pub(crate) fn packed(packed: u64) -> Self {
        let (chars, len) = lanes::unpack(packed);
        Self::short(u32::from_le_bytes(chars).into(), len)
    }

    /// Returns the string of `len` bytes, eight at most, the first one lowest.
    #[inline(always)]
    pub(crate) const fn short(bits: u64, len: usize) -> Self {
        Self(Form::Short(bits.to_le_bytes(), len))
    }

    pub(crate) const fn long(bytes: &'a [u8]) -> Self {
        Self(Form::Long(bytes))
    }
}

impl Deref for TextRef<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short(chars, len) => chars.get(..*len).unwrap_or_default(),
            Form::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for TextRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for TextRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
