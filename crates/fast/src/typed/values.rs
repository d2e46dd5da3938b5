//! What the members of generated structs are, besides numbers: strings, optional values and
//! entries that keep their memory.

use std::fmt;
use std::ops::Deref;

use fanfare_wire::lanes;

use crate::rows::RowRef;

/// Most bytes of a [`Text`] that are in it, and not on the heap.
const MAX_SHORT: usize = 15;

/// The length of a text that is on the heap.
const LONG: u8 = u8::MAX;

/// A string or byte vector. Up to 15 bytes are in it; a longer one is on the heap, and the memory
/// of the longest so far is kept when it is set again.
#[derive(Clone, Default)]
pub struct Text {
    /// The length, or [`LONG`], then the bytes, then zeros.
    short: [u8; 1 + MAX_SHORT],
    #[allow(
        clippy::box_collection,
        reason = "few are long: this takes a third of the room"
    )]
    long: Option<Box<Vec<u8>>>,
}

impl Text {
    /// The text, if it is valid UTF-8, as strings from a strict decoder are.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self).ok()
    }

    /// Sets it to the characters of a row's value ([`crate::RowRef::chars`]).
    #[inline(always)]
    pub fn set_packed(&mut self, value: i32) {
        let mut front = one(value);
        if !is_one(front) {
            front = unpacked(value);
        }
        self.set_front(front);
    }

    #[inline(always)]
    const fn set_front(&mut self, front: u64) {
        if let Some(place) = self.short.first_chunk_mut() {
            *place = front.to_le_bytes();
        }
    }

    /// The first eight bytes: all there is, if it is not longer.
    #[inline(always)]
    fn front(&self) -> u64 {
        let front = self.short.first_chunk().copied();
        front.map_or(0, u64::from_le_bytes)
    }

    /// Sets it to a copy of `value`.
    #[inline]
    pub fn set(&mut self, value: &[u8]) {
        let mut short = [0; 1 + MAX_SHORT];
        match short.get_mut(1..=value.len()) {
            Some(place) => {
                place.copy_from_slice(value);
                short[0] = value.len() as u8;
            }
            None => {
                short[0] = LONG;
                let long = self.long.get_or_insert_default();
                long.clear();
                long.extend_from_slice(value);
            }
        }
        self.short = short;
    }

    /// The value of its lane in a row, if it can be one.
    #[inline(always)]
    pub(super) fn packed(&self) -> Option<u64> {
        let front = self.front();
        match front == 0 || is_one(front) && front as u8 == 1 {
            true => Some(front >> 8),
            false => pack(self),
        }
    }
}

/// The first bytes of a [`Text`] that is the one character of this value.
#[inline(always)]
const fn one(value: i32) -> u64 {
    (value as u32 as u64) << 8 | 1
}

/// Whether the first bytes are those of a [`Text`] of one character that is not NUL, or
/// [`ABSENT`]: most are one or the other.
#[inline(always)]
const fn is_one(front: u64) -> bool {
    front.wrapping_sub(0x101) <= 0x7f01 - 0x101
}

/// The first bytes of a [`Text`] of these characters.
#[inline(never)]
fn unpacked(value: i32) -> u64 {
    // No lane has more.
    let (chars, len) = RowRef::chars(value & 0x0fff_ffff);
    u64::from(u32::from_le_bytes(chars)) << 8 | len as u64
}

#[inline(never)]
fn pack(text: &[u8]) -> Option<u64> {
    lanes::pack(text)
}

impl Deref for Text {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self.short.get(1..=usize::from(self.short[0])) {
            Some(text) => text,
            None => self.long.as_deref().map_or(&[], Vec::as_slice),
        }
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Text {}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        let mut text = Self::default();
        text.set(bytes);
        text
    }
}

/// An optional value that keeps its memory while it is absent.
#[derive(Debug, Clone, Default)]
pub struct Optional<T> {
    is_present: bool,
    value: T,
}

impl<T> Optional<T> {
    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.is_present.then_some(&self.value)
    }

    /// Makes it present; the value is what was left in it.
    #[inline]
    pub fn insert(&mut self) -> &mut T {
        self.is_present = true;
        &mut self.value
    }

    /// Makes it absent.
    #[inline]
    pub fn clear(&mut self) {
        self.is_present = false;
    }
}

impl<T: PartialEq> PartialEq for Optional<T> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// An optional [`Text`] that keeps its memory while it is absent.
#[derive(Clone)]
pub struct OptionalText(Text);

/// The first bytes of one that is absent: no length, and nobody's character.
const ABSENT: u64 = 0x01fe;

impl OptionalText {
    #[inline(always)]
    const fn is_present(&self) -> bool {
        self.0.short[0] != ABSENT as u8
    }

    /// The text, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&Text> {
        self.is_present().then_some(&self.0)
    }

    /// Makes it present: empty, if it was absent.
    #[inline]
    pub fn insert(&mut self) -> &mut Text {
        if !self.is_present() {
            self.0.short = [0; _];
        }
        &mut self.0
    }

    /// Makes it absent.
    #[inline]
    pub fn clear(&mut self) {
        self.0.set_front(ABSENT);
    }

    /// Sets it to the characters of a row's value ([`crate::RowRef::chars`]), or makes it absent.
    #[inline(always)]
    pub fn read(&mut self, is_present: bool, value: i32) {
        // Without a branch: which are there is hard to foresee.
        let mut front = if is_present { one(value) } else { ABSENT };
        if !is_one(front) {
            front = unpacked(value);
        }
        self.0.set_front(front);
    }

    /// Whether it is there, and the value of its lane if it can have one.
    #[inline(always)]
    pub(super) fn packed(&self) -> (bool, Option<u64>) {
        let front = self.0.front();
        let is_present = front as u8 != ABSENT as u8;
        match is_one(front) && front as u8 == 1 || !is_present {
            true => (is_present, Some(front >> 8)),
            false => (is_present, self.0.packed()),
        }
    }
}

impl Default for OptionalText {
    fn default() -> Self {
        let mut text = Text::default();
        text.set_front(ABSENT);
        Self(text)
    }
}

impl fmt::Debug for OptionalText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

impl PartialEq for OptionalText {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

/// The entries of a sequence; those beyond its length keep their memory.
#[derive(Debug, Clone)]
pub struct Entries<T> {
    entries: Vec<T>,
    len: usize,
}

impl<T> Default for Entries<T> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            len: 0,
        }
    }
}

impl<T: Default> Entries<T> {
    /// Adds an entry; its values are what was left in it.
    #[inline]
    pub fn add(&mut self) -> &mut T {
        let place = self.len;
        self.add_many(1);
        &mut self.entries[place]
    }

    /// Adds so many entries, which it returns; their values are what was left in them.
    #[inline]
    pub fn add_many(&mut self, count: usize) -> &mut [T] {
        let first = self.len;
        let len = first.saturating_add(count);
        if len > self.entries.len() {
            self.grow(len);
        }
        self.len = len;
        &mut self.entries[first..len]
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, len: usize) {
        self.entries.resize_with(len, T::default);
    }

    /// Removes all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// The entry that was added last.
    #[inline]
    pub fn last_mut(&mut self) -> Option<&mut T> {
        self.entries[..self.len].last_mut()
    }
}

impl<T> Deref for Entries<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.entries[..self.len]
    }
}

impl<T: PartialEq> PartialEq for Entries<T> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}
