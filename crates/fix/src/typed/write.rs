//! Writers of bodies and entries, for generated builders.

use fanfare_wire::{Precision, UtcTimestamp};

use super::Listed;
use super::groups::{Groups, Level};
use crate::codec::{EncodeError, FieldWriter};

/// The body of a message that a builder writes. Its fields may come in any order, each at most
/// once.
///
/// A field is known by its place among the optional fields of the message, of which there are at
/// most `WORDS * 64`. The writer keeps a fault, which is returned when the message is finished.
#[derive(Debug)]
pub struct Body<'w, 'b, const WORDS: usize> {
    out: &'w mut FieldWriter<'b>,
    written: [u64; WORDS],
    last: Last,
}

/// The group that was written last, if no field is written after it.
#[derive(Debug, Default)]
struct Last(Option<&'static Level>);

impl Last {
    /// Checks a field that follows the group. The standard has no message with a field both in a
    /// group and beside it, but other dictionaries do. After the group the two cannot be told
    /// apart.
    #[inline]
    fn follow(&mut self, out: &mut FieldWriter<'_>, tag: u32) {
        if let Some(level) = self.0.take()
            && level.has(tag)
        {
            out.fail(EncodeError::InGroup { tag });
        }
    }
}

impl<'w, 'b, const WORDS: usize> Body<'w, 'b, WORDS> {
    /// Returns a body without optional fields.
    #[inline]
    pub fn new(out: &'w mut FieldWriter<'b>) -> Self {
        Self {
            out,
            written: [0; WORDS],
            last: Last::default(),
        }
    }

    /// Returns the writer for the field at a place. The second call for one place sets the
    /// message's fault [`EncodeError::Twice`].
    #[inline]
    pub fn once(&mut self, place: usize, tag: u32) -> &mut FieldWriter<'b> {
        if let Some(word) = self.written.get_mut(place / 64) {
            let bit = 1 << (place % 64);
            if *word & bit != 0 {
                self.out.fail(EncodeError::Twice { tag });
            }
            *word |= bit;
        }
        self.last.follow(self.out, tag);
        self.out
    }

    /// Notes that a group was written whose entries are those of a level.
    #[inline]
    pub fn behind(&mut self, groups: &'static Groups, level: u32) {
        self.last.0 = groups.at(level);
    }

    /// Demands a group. The message has the fault [`EncodeError::GroupMissing`] until
    /// [`Body::supply`] is called with the same tag.
    #[inline]
    pub fn demand(&mut self, tag: u32) {
        self.out.fail(EncodeError::GroupMissing { tag });
    }

    /// Returns the writer for the group that was demanded last.
    #[inline]
    pub fn supply(&mut self, tag: u32) -> &mut FieldWriter<'b> {
        self.out.forgive(EncodeError::GroupMissing { tag });
        self.last.follow(self.out, tag);
        self.out
    }
}

/// An entry of a group that a builder writes. Its fields come in the order of the definition.
#[derive(Debug)]
pub struct Ordered<'w, 'b> {
    out: &'w mut FieldWriter<'b>,
    /// The place after that of the field written last.
    next: u32,
    last: Last,
}

impl<'w, 'b> Ordered<'w, 'b> {
    /// Returns an entry without fields.
    #[inline]
    pub fn new(out: &'w mut FieldWriter<'b>) -> Self {
        Self {
            out,
            next: 0,
            last: Last::default(),
        }
    }

    /// Returns the writer for the field at a place of the definition. A call for the same or an
    /// earlier place than the last one sets the message's fault [`EncodeError::Order`].
    #[inline]
    pub fn reach(&mut self, place: u32, tag: u32) -> &mut FieldWriter<'b> {
        if place < self.next {
            self.out.fail(EncodeError::Order { tag });
        }
        self.next = place + 1;
        self.last.follow(self.out, tag);
        self.out
    }

    /// Notes that a group was written whose entries are those of a level.
    #[inline]
    pub fn behind(&mut self, groups: &'static Groups, level: u32) {
        self.last.0 = groups.at(level);
    }
}

/// Writes the count field and the entries of a group. `entry` writes one entry for each of `items`.
#[inline]
pub fn write_group<'b, I: ExactSizeIterator>(
    out: &mut FieldWriter<'b>,
    count_tag: u32,
    items: I,
    mut entry: impl FnMut(Ordered<'_, 'b>, I::Item),
) {
    let count = items.len();
    out.u64(count_tag, count as u64);
    let mut written = 0;
    for item in items {
        entry(Ordered::new(out), item);
        written += 1;
    }
    // `len` is safe code of the caller's, and may be wrong.
    if written != count {
        out.fail(EncodeError::Count { tag: count_tag });
    }
}

/// Writes a field with a time, in milliseconds, or in microseconds or nanoseconds if the time has
/// such digits.
#[inline]
pub fn write_timestamp(out: &mut FieldWriter<'_>, tag: u32, time: UtcTimestamp) {
    let nanos = time.nanos();
    let precision = match (nanos % 1_000_000, nanos % 1_000) {
        (0, _) => Precision::Millis,
        (_, 0) => Precision::Micros,
        _ => Precision::Nanos,
    };
    out.timestamp(tag, time, precision);
}

/// Writes a length field and its data field. An empty value sets the message's fault
/// [`EncodeError::Empty`].
#[inline]
pub fn write_data(out: &mut FieldWriter<'_>, length_tag: u32, tag: u32, value: &[u8]) {
    match value.is_empty() {
        true => out.fail(EncodeError::Empty { tag }),
        false => out.data(length_tag, tag, value),
    };
}

/// Writes a field that holds several values, separated by spaces.
pub fn write_values<'v, T: Listed<'v>>(out: &mut FieldWriter<'_>, tag: u32, values: &[T]) {
    out.words(tag, values.iter().map(Listed::wire));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the fault of a message that `write` writes, in words.
    fn fault(write: impl FnOnce(&mut FieldWriter<'_>)) -> String {
        let mut room = [0; 64];
        let mut out = FieldWriter::new(&mut room);
        write(&mut out);
        let fault = out.written().map(|_| ()).unwrap_err();
        fault.to_string()
    }

    #[test]
    fn fields_are_written_once() {
        let twice = fault(|out| {
            let mut body = Body::<1>::new(out);
            body.once(3, 58).str(58, "a");
            body.once(3, 58).str(58, "b");
        });
        assert_eq!(twice, "tag 58 is written twice");
    }

    #[test]
    fn demanded_groups_are_missed_until_they_are_supplied() {
        let missing = fault(|out| Body::<1>::new(out).demand(267));
        assert_eq!(missing, "the required group 267 is not written");
        let mut room = [0; 64];
        let mut out = FieldWriter::new(&mut room);
        let mut body = Body::<1>::new(&mut out);
        body.demand(267);
        body.supply(267).u64(267, 0);
        assert_eq!(out.written(), Ok(&b"267=0\x01"[..]));
    }

    #[test]
    fn fields_of_entries_are_in_order() {
        let order = fault(|out| {
            write_group(out, 453, [1].into_iter(), |mut entry, _| {
                entry.reach(1, 447).char(447, b'D');
                entry.reach(0, 448).str(448, "A");
            });
        });
        assert_eq!(
            order,
            "tag 448 is written after a field that follows it in the definition of the group"
        );
    }

    #[test]
    fn wrong_lengths_of_iterators_are_noticed() {
        struct Wrong;
        impl Iterator for Wrong {
            type Item = ();
            fn next(&mut self) -> Option<()> {
                None
            }
            fn size_hint(&self) -> (usize, Option<usize>) {
                (2, Some(2))
            }
        }
        impl ExactSizeIterator for Wrong {}
        let count = fault(|out| {
            write_group(out, 453, Wrong, |_, ()| {});
        });
        assert_eq!(
            count,
            "the number of entries of group 453 differs from its count"
        );
    }
}
