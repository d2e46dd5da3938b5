//! The numbers and texts of a record.

use crate::price::Price;

/// A record. Absent fields are 0.
#[derive(Clone, Copy)]
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    fn array<const N: usize>(self, at: usize) -> [u8; N] {
        let found = self.0.get(at..).and_then(|rest| rest.first_chunk());
        found.copied().unwrap_or([0; N])
    }

    pub(super) fn u8(self, at: usize) -> u8 {
        self.0.get(at).copied().unwrap_or(0)
    }

    pub(super) fn u16(self, at: usize) -> u16 {
        u16::from_le_bytes(self.array(at))
    }

    pub(super) fn u32(self, at: usize) -> u32 {
        u32::from_le_bytes(self.array(at))
    }

    pub(super) fn u64(self, at: usize) -> u64 {
        u64::from_le_bytes(self.array(at))
    }

    pub(super) fn i64(self, at: usize) -> i64 {
        i64::from_le_bytes(self.array(at))
    }

    pub(super) fn price(self, at: usize) -> Price {
        Price::from_units(self.i64(at))
    }

    /// Returns a text of at most `room` bytes, up to its NUL.
    pub(super) fn text(self, at: usize, room: usize) -> &'a [u8] {
        let room = self.0.get(at..at + room).unwrap_or(&[]);
        let end = room.iter().position(|byte| *byte == 0);
        room.get(..end.unwrap_or(room.len())).unwrap_or(&[])
    }
}
