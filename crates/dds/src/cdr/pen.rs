//! A cursor for writing members into a buffer.

/// Bytes after a buffer's capacity, so that a member can be stored as a whole word or two.
pub(crate) const SLACK: usize = 16;

/// Writes members one after the other. A loop that holds the pen by value keeps it in registers,
/// which is impossible for a buffer's fields: each store could change them.
#[derive(Debug)]
pub(crate) struct Pen<'b> {
    /// The bytes after the header, so that a member is at a multiple of its size.
    room: &'b mut [u8],
    at: usize,
    full: bool,
}

impl<'b> Pen<'b> {
    #[inline(always)]
    pub(super) const fn new(room: &'b mut [u8], at: usize, full: bool) -> Self {
        Self { room, at, full }
    }

    /// Returns the number of bytes written.
    #[inline(always)]
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// Returns whether a member did not fit.
    #[inline(always)]
    pub(crate) const fn is_full(&self) -> bool {
        self.full
    }

    /// Writes a member of `size` bytes (1, 2, 4 or 8), the lowest of `value`; its other bytes must
    /// be zero.
    #[inline(always)]
    pub(crate) fn word(&mut self, value: u64, size: usize) {
        let start = self.at.wrapping_add(size - 1) & !(size - 1);
        match self.room.get_mut(start..start.wrapping_add(8)) {
            Some(room) => {
                room.copy_from_slice(&value.to_le_bytes());
                self.at = start + size;
            }
            None => self.full = true,
        }
    }

    /// Aligns as for a member of `size` bytes (1, 2, 4 or 8).
    #[inline(always)]
    pub(crate) const fn align(&mut self, size: usize) {
        self.at = self.at.wrapping_add(size - 1) & !(size - 1);
    }

    /// Writes a string: its length with the NUL, the bytes, the NUL. A NUL inside ends it.
    #[inline(always)]
    pub(crate) fn string(&mut self, text: &[u8]) {
        match short(text) {
            Some(word) => self.short_string(word, text.len()),
            None => self.long_string(text),
        }
    }

    /// Writes a string of up to seven bytes, which are the lowest of `word`; its other bytes must
    /// be zero. Length, text and the zeros after it are one store.
    #[inline(always)]
    pub(crate) fn short_string(&mut self, word: u64, length: usize) {
        if has_zero(word, length) {
            return self.long_string(word.to_le_bytes().get(..length).unwrap_or_default());
        }
        let start = self.at.wrapping_add(3) & !3;
        match self.room.get_mut(start..start.wrapping_add(16)) {
            Some(room) => {
                let whole = u128::from(word) << 32 | (length as u128 + 1);
                room.copy_from_slice(&whole.to_le_bytes());
                self.at = start + 4 + length + 1;
            }
            None => self.full = true,
        }
    }

    #[inline(always)]
    fn long_string(&mut self, text: &[u8]) {
        match long_string(self.room, self.at, text) {
            Some(at) => self.at = at,
            None => self.full = true,
        }
    }

    /// Writes a `sequence<octet>`.
    #[inline(always)]
    pub(crate) fn octets(&mut self, bytes: &[u8]) {
        let Ok(length) = u32::try_from(bytes.len()) else {
            self.full = true;
            return;
        };
        self.word(length.into(), 4);
        self.raw(bytes);
    }

    /// Writes bytes that are already in CDR form and aligned for this position.
    #[inline(always)]
    pub(crate) fn raw(&mut self, bytes: &[u8]) {
        let end = self.at.saturating_add(bytes.len());
        match self.room.get_mut(self.at..end.saturating_add(8)) {
            Some(room) => {
                let (room, behind) = room.split_at_mut(bytes.len());
                room.copy_from_slice(bytes);
                if let Some(word) = behind.first_chunk_mut::<8>() {
                    *word = [0; 8];
                }
                self.at = end;
            }
            None => self.full = true,
        }
    }

    /// Returns to an earlier position and discards the bytes after it.
    #[inline(always)]
    pub(crate) fn go_back(&mut self, at: usize) {
        self.at = at;
        self.raw(b"");
    }

    /// Returns the next `bytes` bytes of the buffer, or `None` if it is shorter.
    #[inline(always)]
    pub(crate) fn room(&mut self, bytes: usize) -> Option<&mut [u8]> {
        self.room.get_mut(self.at..self.at.wrapping_add(bytes))
    }

    /// Advances by `bytes` bytes that were written directly. After them the buffer is zero up to a
    /// multiple of eight.
    #[inline(always)]
    pub(crate) const fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Overwrites the lowest `size` bytes (at most 8) of a value that was written at `at`.
    #[inline(always)]
    pub(crate) fn patch(&mut self, at: usize, value: u64, size: usize) {
        if let (Some(place), Some(bytes)) = (
            self.room.get_mut(at..at.wrapping_add(size)),
            value.to_le_bytes().get(..size),
        ) {
            place.copy_from_slice(bytes);
        }
    }
}

/// Writes a string of any length and returns its end, if it fits. The function does not take the
/// pen, so that the pen can stay in registers.
#[inline(never)]
fn long_string(room: &mut [u8], at: usize, text: &[u8]) -> Option<usize> {
    let mut pen = Pen::new(room, at, false);
    let end = text.iter().position(|b| *b == 0).unwrap_or(text.len());
    pen.word(u32::try_from(end + 1).ok()?.into(), 4);
    pen.raw(&text[..end]);
    pen.word(0, 1);
    (!pen.full).then_some(pen.at)
}

/// Returns up to seven bytes as a word, the first one lowest.
#[inline(always)]
fn short(text: &[u8]) -> Option<u64> {
    let word = match *text {
        [] => 0,
        [a] => u64::from(a),
        [a, b] => u64::from(u16::from_le_bytes([a, b])),
        [a, b, c] => u64::from(u32::from_le_bytes([a, b, c, 0])),
        [a, b, c, d] => u64::from(u32::from_le_bytes([a, b, c, d])),
        [a, b, c, d, e] => u64::from_le_bytes([a, b, c, d, e, 0, 0, 0]),
        [a, b, c, d, e, f] => u64::from_le_bytes([a, b, c, d, e, f, 0, 0]),
        [a, b, c, d, e, f, g] => u64::from_le_bytes([a, b, c, d, e, f, g, 0]),
        _ => return None,
    };
    Some(word)
}

/// Returns whether one of the lowest `n` bytes (at most seven) is zero.
#[inline(always)]
const fn has_zero(word: u64, n: usize) -> bool {
    let used = word | (u64::MAX << (8 * n));
    used.wrapping_sub(0x0101_0101_0101_0101) & !used & 0x8080_8080_8080_8080 != 0
}
