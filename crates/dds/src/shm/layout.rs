//! The layout of a sender's file: words of control, the catalogue of topics as text, then the ring,
//! each at a multiple of a page.
//!
//! A record is its head, [`HEAD`] words, and the sample's bytes rounded up to words; it never
//! wraps. Positions count words since the beginning, so the place in the ring is the position
//! modulo its size.
//!
//! The first word of a record is stored last, and the word after a record is 0 before that. So a
//! receiver finds the next sample in the cache line that it reads anyway, and not in a counter.

use std::ops::Range;

use super::TopicSpec;
use crate::sys::PAGE;

/// "FANFARE" and the version of this layout.
pub(super) const MAGIC: u64 = u64::from_le_bytes(*b"FANFARE\x03");

pub(super) const MAGIC_AT: usize = 0;
/// The size of the ring in words, a power of two.
pub(super) const RING_AT: usize = 1;
/// The size of the catalogue in bytes.
pub(super) const CATALOGUE_AT: usize = 2;
/// 1 once the sender has written its last sample.
pub(super) const CLOSED_AT: usize = 3;
/// The number of receivers that refused the sender's types.
pub(super) const REFUSED_AT: usize = 4;
/// The number of receivers that died and whose slot another one took.
pub(super) const DIED_AT: usize = 5;
/// The position after the last complete record, for receivers that join, in a cache line of its
/// own.
pub(super) const PUBLISHED_AT: usize = 16;
/// The number of samples up to that position, set before it and once more after it.
pub(super) const COUNT_BEFORE_AT: usize = 17;
pub(super) const COUNT_AFTER_AT: usize = 18;
/// The oldest record. Earlier ones may be overwritten, so bytes read from there are invalid.
pub(super) const TAIL_AT: usize = 32;
/// The slots of receivers.
const PLACES_AT: usize = 48;
const PLACE: usize = 16;
/// Most receivers of a sender.
pub(super) const PLACES: usize = 64;
/// The number of words of control.
pub(super) const CONTROL: usize = PLACES_AT + PLACES * PLACE;

/// No receiver has the slot.
pub(super) const FREE: u64 = 0;
/// A receiver reads.
pub(super) const READING: u64 = 1;
/// A receiver that did not read is no longer waited for.
pub(super) const CUT_OFF: u64 = 2;

/// The byte that the sender locks while it runs. The receiver in slot `i` locks byte `1 + i`.
pub(super) const SENDER_LOCK: u32 = 0;

/// The number of words in front of a sample's bytes: length and topic, number, time.
pub(super) const HEAD: usize = 3;
/// The first word at a position that has no record yet.
pub(super) const NOTHING: u64 = 0;
/// The first word of a record that only fills the end of the ring.
pub(super) const FILLER: u64 = u64::MAX;

/// Returns the first word of a sample's record, which is neither [`NOTHING`] nor [`FILLER`].
#[inline(always)]
pub(super) const fn first_word(topic: u32, len: usize) -> u64 {
    (topic as u64 + 1) << 32 | len as u64
}

/// Returns the topic and the length that a first word states.
#[inline(always)]
pub(super) const fn topic_and_len(first: u64) -> (u32, usize) {
    (
        ((first >> 32) as u32).wrapping_sub(1),
        first as u32 as usize,
    )
}

/// Returns the place of a slot's state; its position is in the next word.
pub(super) const fn place_at(place: usize) -> usize {
    PLACES_AT + place * PLACE
}

/// Returns the lock of a slot.
pub(super) const fn place_lock(place: usize) -> u32 {
    1 + place as u32
}

/// Returns the number of bytes in front of the ring.
pub(super) const fn ring_offset(catalogue: usize) -> usize {
    (CONTROL * 8 + catalogue).next_multiple_of(PAGE)
}

/// Returns the words that hold the catalogue.
pub(super) const fn catalogue_words(catalogue: usize) -> Range<usize> {
    CONTROL..CONTROL + catalogue.div_ceil(8)
}

/// The longest catalogue, in bytes.
pub(super) const LONGEST_CATALOGUE: usize = 16 << 20;
/// The permitted sizes of a ring, in bytes.
pub(super) const RING_BYTES: std::ops::RangeInclusive<usize> = 1 << 16..=1 << 30;

/// Formats a catalogue, with one line for each topic: type hash, `k` or `-`, name.
pub(super) fn catalogue(topics: &[TopicSpec]) -> String {
    let line = |t: &TopicSpec| {
        let keep = if t.keep { 'k' } else { '-' };
        format!("{:016x} {keep} {}\n", t.type_hash, t.name)
    };
    topics.iter().map(line).collect()
}

/// Parses a catalogue; `None` if it is invalid.
pub(super) fn read_catalogue(text: &str) -> Option<Vec<TopicSpec>> {
    let line = |line: &str| {
        let mut parts = line.splitn(3, ' ');
        let type_hash = u64::from_str_radix(parts.next()?, 16).ok()?;
        let keep = match parts.next()? {
            "k" => true,
            "-" => false,
            _ => return None,
        };
        let name = parts.next()?.to_owned();
        Some(TopicSpec {
            name,
            type_hash,
            keep,
        })
    };
    text.lines().map(line).collect()
}
