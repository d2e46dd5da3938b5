//! The times that accompany a message through a ring.

use fanfare_engine::clock::monotonic;

/// The bit in the kind of a ring's record that begins with a [`Mark`].
pub(crate) const MARKED: u32 = 1 << 30;

/// The times at which the following message arrived and was written to the ring: monotonic, in
/// nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) arrived: u64,
    pub(crate) written: u64,
}

impl Mark {
    /// Its length in bytes.
    pub(crate) const SIZE: usize = 16;

    /// Splits a record of a ring into the mark, if the kind has the bit, and the rest.
    #[inline]
    pub(crate) fn split(kind: u32, bytes: &[u8]) -> (Option<Self>, &[u8]) {
        if kind & MARKED == 0 {
            return (None, bytes);
        }
        match bytes.split_first_chunk::<{ Self::SIZE }>() {
            Some((mark, rest)) => (Some(Self::read(mark)), rest),
            None => (None, bytes),
        }
    }

    fn read(bytes: &[u8; Self::SIZE]) -> Self {
        let both = u128::from_le_bytes(*bytes);
        Self {
            arrived: both as u64,
            written: (both >> 64) as u64,
        }
    }

    fn to_bytes(self) -> [u8; Self::SIZE] {
        (u128::from(self.arrived) | u128::from(self.written) << 64).to_le_bytes()
    }

    /// Returns the bit of the kind, and the length, that this mark adds to a record.
    #[inline]
    pub(crate) const fn of_record(mark: Option<Self>) -> (u32, usize) {
        match mark {
            Some(_) => (MARKED, Self::SIZE),
            None => (0, 0),
        }
    }

    /// Writes the mark, if there is one, to the front of a record, and returns the rest.
    #[inline]
    pub(crate) fn write(mark: Option<Self>, room: &mut [u8]) -> &mut [u8] {
        let Some(mark) = mark else {
            return room;
        };
        match room.split_first_chunk_mut() {
            Some((place, rest)) => {
                *place = mark.to_bytes();
                rest
            }
            None => &mut [],
        }
    }
}

/// A mark that is pending for the next message, at the writing end of a ring.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    arrived: Option<u64>,
    written: Option<u64>,
}

impl Pending {
    /// Marks the next message for measurement, with its time of arrival.
    #[inline]
    pub(crate) const fn set(&mut self, arrived: u64) {
        self.arrived = Some(arrived);
        self.written = None;
    }

    /// Returns the mark for the message that is written now. Reads the clock if there is one.
    #[inline]
    pub(crate) fn make(&mut self) -> Option<Mark> {
        let arrived = self.arrived.take()?;
        let written = monotonic();
        self.written = Some(written);
        Some(Mark { arrived, written })
    }

    /// Returns when the message was written, if it was. The next one is not measured.
    #[inline]
    pub(crate) const fn end(&mut self) -> Option<u64> {
        self.arrived = None;
        self.written.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let mark = Mark {
            arrived: 7 << 40,
            written: u64::MAX - 1,
        };
        for (mark, kind) in [(Some(mark), MARKED), (None, 0)] {
            let mut room = [0; 40];
            let (bit, more) = Mark::of_record(mark);
            assert_eq!(bit, kind);
            let len = more + 4;
            Mark::write(mark, &mut room[..len]).copy_from_slice(b"body");
            assert_eq!(Mark::split(bit | 3, &room[..len]), (mark, &b"body"[..]));
        }
    }

    #[test]
    fn a_record_that_is_too_short_has_no_mark() {
        assert_eq!(Mark::split(MARKED, &[1; 15]), (None, &[1; 15][..]));
    }

    #[test]
    fn one_message_is_marked_until_the_next_is_to_be() {
        let mut pending = Pending::default();
        assert_eq!((pending.make(), pending.end()), (None, None));
        pending.set(5);
        let mark = pending.make().unwrap();
        assert_eq!((mark.arrived, pending.make()), (5, None));
        assert_eq!((pending.end(), pending.end()), (Some(mark.written), None));
        pending.set(6);
        assert_eq!((pending.end(), pending.make()), (None, None));
    }
}
