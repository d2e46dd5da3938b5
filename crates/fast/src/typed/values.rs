//! The types of the members of generated structs, besides numbers: strings, optional values and
//! entries, which keep their memory.

use std::fmt;
use std::ops::Deref;

use fanfare_wire::lanes;

use super::growth;
use crate::rows::RowRef;

/// The most bytes of a [`Text`] that are in it, and not on the heap.
const MAX_SHORT: usize = 15;

/// The index of the form of a [`Text`], before its bytes. A form from 2 to 15 is their number.
const FORM: usize = 0;

/// The form of a text that was never set, or is absent.
const NOTHING: u8 = 0;

/// The form of one byte, or of an empty text if that is NUL, as in a row.
const ONE: u8 = 1;

/// The form of one NUL.
const NUL: u8 = 16;

/// The form of a text on the heap.
const LONG: u8 = 17;

/// A string or byte vector. Up to 15 bytes are in the struct, and a longer text is on the heap. The
/// memory of the longest text so far is kept.
#[derive(Clone, Default)]
pub struct Text {
    /// The form, and the bytes.
    short: [u8; 1 + MAX_SHORT],
    #[allow(
        clippy::box_collection,
        reason = "few are long: this takes a third of the room"
    )]
    long: Option<Box<Vec<u8>>>,
}

impl Text {
    /// Returns the text, if it is valid UTF-8, as strings from a strict decoder are.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(self).ok()
    }

    /// Sets the text to the characters of a row's value ([`RowRef::chars`]).
    #[inline]
    pub fn set_packed(&mut self, value: i32) {
        let (chars, len) = RowRef::chars(value);
        self.set_front(u32::from_le_bytes(chars), (len as u8).max(ONE));
    }

    /// Sets the text to the character that a row's value is ([`RowRef::are_short`]), or makes it
    /// empty if that is 0.
    #[inline(always)]
    pub fn set_short(&mut self, value: i32) {
        self.set_front(value as u32, ONE);
    }

    /// Sets the text to one to eight bytes, the first one lowest, with zeros after the last one.
    /// The first byte must not be NUL.
    #[inline(always)]
    pub(crate) const fn set_word(&mut self, bytes: u64, len: u8) {
        self.short = ((bytes as u128) << 8 | len as u128).to_le_bytes();
    }

    /// Sets the text to a character that is not NUL, or makes it empty if that is 0.
    #[inline(always)]
    pub(crate) fn set_char(&mut self, char: u8) {
        self.set_front(char.into(), ONE);
    }

    /// Sets the form and the characters at once, because stores are what costs time where a struct
    /// is filled.
    #[inline(always)]
    fn set_front(&mut self, chars: u32, form: u8) {
        if let Some(place) = self.short.first_chunk_mut() {
            let front = u64::from(chars) << 8 | u64::from(form);
            *place = front.to_le_bytes();
        }
    }

    /// Sets the text to a copy of `value`.
    #[inline]
    pub fn set(&mut self, value: &[u8]) {
        let mut short = [0; 1 + MAX_SHORT];
        match short.get_mut(1..=value.len()) {
            Some(place) => {
                place.copy_from_slice(value);
                short[FORM] = match value {
                    [0] => NUL,
                    [] | [_] => ONE,
                    _ => value.len() as u8,
                };
            }
            None => {
                short[FORM] = LONG;
                let long = self.long.get_or_insert_default();
                let had = long.capacity();
                long.clear();
                long.extend_from_slice(value);
                if long.capacity() > had {
                    growth::add(had, long.capacity());
                }
            }
        }
        self.short = short;
    }

    /// Returns the bytes of the text, the first one lowest, if they are eight at most, and their
    /// number. The number is more than eight for a longer text, and for a text of one NUL.
    #[inline(always)]
    pub(crate) fn short(&self) -> (u64, usize) {
        let [form, bytes @ ..] = &self.short;
        let word = bytes.first_chunk().copied().map_or(0, u64::from_le_bytes);
        match *form {
            NOTHING => (0, 0),
            ONE => (word & 0xff, usize::from(word & 0xff != 0)),
            // After them are bytes of longer texts.
            len @ 2..=8 => (word & u64::MAX >> (64 - 8 * len), len.into()),
            _ => (0, usize::MAX),
        }
    }

    /// Returns the value of the text's lane in a row, or `None` if it cannot have one. The value is
    /// arbitrary if the text is absent.
    #[inline(always)]
    pub(super) fn packed(&self) -> Option<u64> {
        let front = self.short.first_chunk().copied();
        let front = front.map_or(0, u64::from_le_bytes);
        let form = front as u8;
        let one = if form == NOTHING { 0 } else { front >> 8 };
        match form <= ONE && one < 0x80 {
            true => Some(one),
            false => pack(self),
        }
    }
}

#[inline(never)]
fn pack(text: &[u8]) -> Option<u64> {
    lanes::pack(text)
}

impl Deref for Text {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        let len = match self.short[FORM] {
            NOTHING => 0,
            ONE => usize::from(self.short[1] != 0),
            NUL => 1,
            LONG => return self.long.as_deref().map_or(&[], Vec::as_slice),
            len => len.into(),
        };
        self.short.get(1..=len).unwrap_or_default()
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
    /// Returns the value, or `None` if it is absent.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.is_present.then_some(&self.value)
    }

    /// Makes the value present, and returns what was left in it.
    #[inline]
    pub fn insert(&mut self) -> &mut T {
        self.is_present = true;
        &mut self.value
    }

    /// Makes the value absent.
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
#[derive(Clone, Default)]
pub struct OptionalText(Text);

impl OptionalText {
    #[inline(always)]
    const fn is_present(&self) -> bool {
        self.0.short[FORM] != NOTHING
    }

    /// Returns the text, or `None` if it is absent.
    #[inline]
    pub fn get(&self) -> Option<&Text> {
        self.is_present().then_some(&self.0)
    }

    /// Makes the text present, and empty if it was absent.
    #[inline]
    pub fn insert(&mut self) -> &mut Text {
        if !self.is_present() {
            self.0.set_short(0);
        }
        &mut self.0
    }

    /// Makes the text absent.
    #[inline]
    pub fn clear(&mut self) {
        self.0.short[FORM] = NOTHING;
    }

    /// Returns the text, which is to be set and may be absent before.
    #[inline(always)]
    pub(super) const fn unset(&mut self) -> &mut Text {
        &mut self.0
    }

    /// Sets the text to the characters of a row's value ([`RowRef::chars`]), or makes it absent.
    #[inline]
    pub fn set_packed(&mut self, is_present: bool, value: i32) {
        match is_present {
            true => self.0.set_packed(value),
            false => self.clear(),
        }
    }

    /// Sets the text to the character that a row's value is ([`RowRef::are_short`]), or makes it
    /// empty if that is 0, or absent.
    #[inline(always)]
    pub fn set_short(&mut self, is_present: bool, value: i32) {
        // Without a branch: which are there is hard to foresee.
        self.0.set_front(value as u32, u8::from(is_present) * ONE);
    }

    /// Returns whether the text is present, and the value of its lane if it can have one.
    #[inline(always)]
    pub(super) fn packed(&self) -> (bool, Option<u64>) {
        (self.is_present(), self.0.packed())
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
    /// Adds an entry, and returns it with the values that were left in it.
    #[inline]
    pub fn add(&mut self) -> &mut T {
        let place = self.len;
        self.add_many(1);
        &mut self.entries[place]
    }

    /// Adds a number of entries, and returns them with the values of earlier messages.
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
        let bytes = |capacity: usize| capacity.saturating_mul(size_of::<T>());
        let had = self.entries.capacity();
        self.entries.resize_with(len, T::default);
        growth::add(bytes(had), bytes(self.entries.capacity()));
    }

    /// Removes all entries.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }

    /// Returns the entry that was added last.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_what_they_were_set_to() {
        let mut text = Text::default();
        assert_eq!((&*text, text.packed()), (&b""[..], Some(0)));
        let long = [b'x'; 300];
        let all = [0, 1, 2, 15, 16, 17, 255, 256, 300].map(|len| &long[..len]);
        for value in all
            .into_iter()
            .chain([&b"\0"[..], b"A\0", b"\xe9", b"ABCD", b"A"])
        {
            text.set(value);
            assert_eq!((&*text, text.packed()), (value, lanes::pack(value)));
            check_short(&text);
            if let Some(packed) = lanes::pack(value) {
                let mut other = Text::from(&long[..15]);
                other.set_packed(packed as i32);
                assert_eq!((&other, other.packed()), (&text, Some(packed)));
                check_short(&other);
                if packed < 0x80 {
                    other.set_short(packed as i32);
                    assert_eq!(other, text);
                    check_short(&other);
                }
            }
        }
        assert_eq!(format!("{text:?}"), "\"A\"");
    }

    #[test]
    fn what_is_outgrown_is_counted() {
        growth::take();
        let mut text = Text::default();
        text.set(&[b'x'; MAX_SHORT]);
        assert_eq!(growth::take(), 0);
        text.set(&[b'x'; 300]);
        assert!(growth::take() >= 300);
        text.set(&[b'y'; 200]);
        let mut entries = Entries::<[u64; 4]>::default();
        assert_eq!(growth::take(), 0);
        entries.add_many(100);
        assert!(growth::take() >= 3200);
        entries.clear();
        entries.add_many(50);
        assert_eq!(growth::take(), 0);
    }

    /// Checks [`Text::short`], whatever the text held before.
    fn check_short(text: &Text) {
        let (bits, len) = text.short();
        let is_short = text.len() <= 8 && **text != *b"\0";
        assert_eq!(len <= 8, is_short, "{text:?}");
        if is_short {
            let word = text.iter().rev();
            let word = word.fold(0, |word, byte| word << 8 | u64::from(*byte));
            assert_eq!((bits, len), (word, text.len()), "{text:?}");
        }
    }

    #[test]
    fn optional_texts_are_there_or_not() {
        let mut text = OptionalText::default();
        assert_eq!(text.get(), None);
        text.insert().set(b"long ago");
        text.set_short(false, 0x41);
        assert_eq!((text.get(), text.packed()), (None, (false, Some(0))));
        assert_eq!(text.insert().as_str(), Some(""));
        text.set_short(true, 0x41);
        assert_eq!(
            (text.get(), text.packed()),
            (Some(&"A".into()), (true, Some(0x41)))
        );
        text.set_packed(true, 0);
        assert_eq!(text.get().map(|text| text.len()), Some(0));
        text.clear();
        assert_eq!(text, OptionalText::default());
    }
}
