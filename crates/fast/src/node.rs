//! The nodes of a message. A node has two words, so that an encoder can compare many nodes with
//! those that it expects, without a branch for each.

use std::fmt;

use crate::program::FieldId;
use crate::value::Decimal;

/// A field, or an entry of a sequence, followed by the nodes of its contents.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Node {
    /// The [`Tag`] in the lowest byte, the field in the next four, then the exponent of a decimal
    /// or the length of a short text in bytes.
    head: u64,
    /// An integer, a mantissa, a short text, or two numbers of 32 bits. The numbers of a long text
    /// are its offset and its length in bytes. Those of a node with contents are the index of the
    /// node after them, and the number of entries or the index of a template.
    value: [u8; 8],
}

/// The kind of a node, which is in its head.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Tag {
    Absent,
    Int,
    Decimal,
    Short,
    Long,
    // All that follow have contents.
    Group,
    Sequence,
    Entry,
    Template,
}

/// The contents of a node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Content<'m> {
    Absent,
    /// An integer as a 64-bit pattern.
    Int(u64),
    Decimal(Decimal),
    /// A byte string.
    Text(&'m [u8]),
    Group,
    /// A sequence, with its number of entries.
    Sequence(u32),
    Entry,
    /// A dynamic reference to the template of this index.
    Template(u32),
}

/// The lowest bits of the field, and of what comes after it, in a head.
const FIELD: u32 = 8;
const EXTRA: u32 = 40;

#[inline(always)]
const fn pair(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl Node {
    #[inline(always)]
    const fn new(field: FieldId, tag: Tag, extra: u8, value: u64) -> Self {
        Self {
            head: tag as u64 | (field.0 as u64) << FIELD | (extra as u64) << EXTRA,
            value: value.to_le_bytes(),
        }
    }

    #[inline(always)]
    pub(crate) const fn absent(field: FieldId) -> Self {
        Self::new(field, Tag::Absent, 0, 0)
    }

    /// Returns the node of an integer, given as its 64-bit pattern.
    #[inline(always)]
    pub(crate) const fn int(field: FieldId, bits: u64) -> Self {
        Self::new(field, Tag::Int, 0, bits)
    }

    #[inline(always)]
    pub(crate) const fn decimal(field: FieldId, value: Decimal) -> Self {
        let (exponent, mantissa) = (value.exponent as u8, value.mantissa as u64);
        Self::new(field, Tag::Decimal, exponent, mantissa)
    }

    /// Returns the node of a byte string of eight bytes at most, or `None` for a longer one.
    #[inline(always)]
    pub(crate) fn short(field: FieldId, text: &[u8]) -> Option<Self> {
        let value = match text {
            [] => 0,
            [byte] => u64::from(*byte),
            _ => word(text)?,
        };
        Some(Self::new(field, Tag::Short, text.len() as u8, value))
    }

    /// Returns the node of an empty byte string.
    #[inline(always)]
    pub(crate) const fn empty(field: FieldId) -> Self {
        Self::new(field, Tag::Short, 0, 0)
    }

    /// Returns the length of a short text in bytes. `differ` is the exclusive or of the heads of
    /// the node and of an empty text. The result is more than 255 if the node is no short text.
    #[inline(always)]
    pub(crate) const fn short_len(differ: u64) -> u64 {
        differ.rotate_right(EXTRA)
    }

    /// Returns how much larger the head of a node is if its field is `fields` later.
    #[inline(always)]
    pub(crate) const fn further(fields: u64) -> u64 {
        fields << FIELD
    }

    /// Returns a node that no message has for this field.
    pub(crate) const fn none(field: FieldId) -> Self {
        Self {
            head: (field.0 as u64) << FIELD | 0xff,
            value: [0; 8],
        }
    }

    /// Returns 0 if the nodes are the same, and another number if not.
    #[inline(always)]
    pub(crate) const fn difference(&self, other: &Self) -> u64 {
        (self.head ^ other.head) | (self.word() ^ other.word())
    }

    /// Returns the node of a longer byte string, given its place among the bytes of the message.
    #[inline]
    pub(crate) const fn long(field: FieldId, start: u32, len: u32) -> Self {
        Self::new(field, Tag::Long, 0, pair(start, len))
    }

    /// Returns the node of this index with contents, whose end is set by [`Self::close`].
    #[inline]
    pub(crate) const fn open(field: FieldId, content: Content<'_>, index: u32) -> Self {
        let (tag, number) = match content {
            Content::Sequence(count) => (Tag::Sequence, count),
            Content::Template(index) => (Tag::Template, index),
            Content::Entry => (Tag::Entry, 0),
            _ => (Tag::Group, 0),
        };
        // A node that is never closed has no contents.
        Self::new(field, tag, 0, pair(index + 1, number))
    }

    /// Returns the node of an entry of a sequence, whose contents end before the node of index
    /// `end`.
    #[inline(always)]
    pub(crate) const fn entry(sequence: FieldId, end: u32) -> Self {
        Self::new(sequence, Tag::Entry, 0, pair(end, 0))
    }

    /// Sets the end of the contents, which is before the node of this index.
    #[inline]
    pub(crate) const fn close(&mut self, end: u32) {
        self.value = pair(end, self.halves().1).to_le_bytes();
    }

    #[inline(always)]
    pub(crate) const fn field(&self) -> FieldId {
        FieldId((self.head >> FIELD) as u32)
    }

    #[inline(always)]
    const fn tag(&self) -> u8 {
        self.head as u8
    }

    /// Returns everything but the value, as a number.
    #[inline(always)]
    pub(crate) const fn head(&self) -> u64 {
        self.head
    }

    /// Returns the value as a number.
    #[inline(always)]
    pub(crate) const fn word(&self) -> u64 {
        u64::from_le_bytes(self.value)
    }

    /// Returns the exponent of a decimal, or the length of a short text in bytes.
    #[inline(always)]
    pub(crate) const fn extra(&self) -> u8 {
        (self.head >> EXTRA) as u8
    }

    #[inline(always)]
    const fn halves(&self) -> (u32, u32) {
        (self.word() as u32, (self.word() >> 32) as u32)
    }

    /// Returns the index of the node after the contents of this node, which has this index itself.
    #[inline(always)]
    pub(crate) const fn end(&self, index: u32) -> u32 {
        match self.tag() >= Tag::Group as u8 {
            true => self.halves().0,
            false => index + 1,
        }
    }

    #[inline(always)]
    pub(crate) const fn is_entry(&self) -> bool {
        self.tag() == Tag::Entry as u8
    }

    /// Returns whether the node is an entry of this sequence.
    #[inline(always)]
    pub(crate) const fn is_entry_of(&self, sequence: FieldId) -> bool {
        self.head == Self::entry(sequence, 0).head
    }

    #[inline(always)]
    pub(crate) const fn is_absent(&self) -> bool {
        self.tag() == Tag::Absent as u8
    }

    /// Returns the integer of this field, as a 64-bit pattern, or `None` if the node is of another
    /// field or kind.
    #[inline(always)]
    pub(crate) const fn int_of(&self, field: FieldId) -> Option<u64> {
        match self.head == Self::int(field, 0).head {
            true => Some(self.word()),
            false => None,
        }
    }

    /// Returns the decimal of this field, or `None` if the node is of another field or kind.
    #[inline(always)]
    pub(crate) const fn decimal_of(&self, field: FieldId) -> Option<Decimal> {
        const KIND: u64 = (1 << EXTRA) - 1;
        match self.head & KIND == Tag::Decimal as u64 | (field.0 as u64) << FIELD {
            true => Some(Decimal {
                mantissa: self.word() as i64,
                exponent: self.extra() as i8,
            }),
            false => None,
        }
    }

    /// Returns the byte string of this field, or `None` if the node is of another field or kind.
    /// Long strings are in `bytes`.
    #[inline(always)]
    pub(crate) fn text_of<'m>(&'m self, field: FieldId, bytes: &'m [u8]) -> Option<&'m [u8]> {
        if self.field() != field {
            return None;
        }
        match self.content(bytes) {
            Content::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the index of the node after the sequence of this field, or `None` if the node is of
    /// another field or kind.
    #[inline(always)]
    pub(crate) const fn end_of_sequence(&self, field: FieldId) -> Option<u32> {
        match self.head == Self::new(field, Tag::Sequence, 0, 0).head {
            true => Some(self.halves().0),
            false => None,
        }
    }

    /// Returns the contents of the node. Long texts are in `bytes`.
    #[inline(always)]
    pub(crate) fn content<'m>(&'m self, bytes: &'m [u8]) -> Content<'m> {
        const ABSENT: u8 = Tag::Absent as u8;
        const INT: u8 = Tag::Int as u8;
        const DECIMAL: u8 = Tag::Decimal as u8;
        const SHORT: u8 = Tag::Short as u8;
        const LONG: u8 = Tag::Long as u8;
        const GROUP: u8 = Tag::Group as u8;
        const SEQUENCE: u8 = Tag::Sequence as u8;
        const ENTRY: u8 = Tag::Entry as u8;
        match self.tag() {
            ABSENT => Content::Absent,
            INT => Content::Int(self.word()),
            DECIMAL => Content::Decimal(Decimal {
                mantissa: self.word() as i64,
                exponent: self.extra() as i8,
            }),
            SHORT => {
                let text = self.value.get(..usize::from(self.extra()));
                Content::Text(text.unwrap_or_default())
            }
            LONG => {
                let (start, len) = self.halves();
                let text = bytes.get(start as usize..start as usize + len as usize);
                Content::Text(text.unwrap_or_default())
            }
            GROUP => Content::Group,
            SEQUENCE => Content::Sequence(self.halves().1),
            ENTRY => Content::Entry,
            _ => Content::Template(self.halves().1),
        }
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (field, tag, extra) = (self.field(), self.tag(), self.extra());
        write!(f, "{field:?} {tag} {extra} {:#x}", self.word())
    }
}

/// Returns two to eight bytes as a word, the first one lowest, or `None` for fewer or more bytes.
/// They are read as two pieces of a fixed size, which overlap.
#[inline(always)]
fn word(text: &[u8]) -> Option<u64> {
    let shift = 8 * text.len();
    match (text.first_chunk(), text.last_chunk()) {
        (Some(front), Some(back)) if text.len() <= 8 => {
            let (front, back) = (u32::from_le_bytes(*front), u32::from_le_bytes(*back));
            return Some(u64::from(front) | u64::from(back) << (shift - 32));
        }
        (Some(_), _) => return None,
        _ => {}
    }
    let (front, back) = (text.first_chunk()?, text.last_chunk()?);
    let (front, back) = (u16::from_le_bytes(*front), u16::from_le_bytes(*back));
    Some(u64::from(front) | u64::from(back) << (shift - 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_they_were() {
        let all = b"\0abcdefg\xff";
        for len in 0..=all.len() {
            for start in 0..=all.len() - len {
                let text = &all[start..start + len];
                let node = Node::short(FieldId(7), text);
                assert_eq!(node.is_some(), len <= 8);
                let node = node.unwrap_or(Node::long(FieldId(7), start as u32, len as u32));
                assert_eq!(node.content(all), Content::Text(text));
                assert_eq!((node.field(), node.end(3)), (FieldId(7), 4));
            }
        }
    }

    #[test]
    fn contents_are_what_they_were() {
        let field = FieldId(u32::MAX);
        let decimal = Decimal {
            mantissa: i64::MIN,
            exponent: -128,
        };
        for (node, content) in [
            (Node::absent(field), Content::Absent),
            (Node::int(field, u64::MAX), Content::Int(u64::MAX)),
            (Node::decimal(field, decimal), Content::Decimal(decimal)),
        ] {
            assert_eq!((node.field(), node.content(&[])), (field, content));
            assert_eq!(node.end(8), 9);
        }
        let number = u32::MAX;
        for content in [
            Content::Group,
            Content::Sequence(number),
            Content::Entry,
            Content::Template(number),
        ] {
            let mut node = Node::open(field, content, 8);
            assert_eq!((node.content(&[]), node.end(8)), (content, 9));
            node.close(77);
            assert_eq!((node.field(), node.content(&[])), (field, content));
            assert_eq!(node.end(8), 77);
        }
    }
}
