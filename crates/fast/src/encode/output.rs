//! Writing the transfer encoding (section 10), always in its shortest form.

use fanfare_wire::stopbit;

/// Appends an unsigned integer.
#[inline]
pub(super) fn unsigned(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8 | 0x80);
        return;
    }
    let mut bytes = [0; stopbit::MAX_INT_LEN];
    let len = stopbit::write_unsigned(value, &mut bytes);
    out.extend_from_slice(&bytes[..len]);
}

/// Appends a nullable unsigned integer.
#[inline]
pub(super) fn nullable_unsigned(out: &mut Vec<u8>, value: Option<u64>) {
    match value {
        None => null(out),
        Some(u64::MAX) => {
            let mut bytes = [0; stopbit::MAX_WIDE_LEN];
            let len = stopbit::write_unsigned_wide(1 << 64, &mut bytes);
            out.extend_from_slice(&bytes[..len]);
        }
        Some(value) => unsigned(out, value + 1),
    }
}

/// Appends a signed integer of any size.
#[inline]
pub(super) fn signed(out: &mut Vec<u8>, value: i128) {
    if (-64..64).contains(&value) {
        out.push(value as u8 & 0x7f | 0x80);
        return;
    }
    let mut bytes = [0; stopbit::MAX_WIDE_LEN];
    let len = stopbit::write_signed_wide(value, &mut bytes);
    out.extend_from_slice(&bytes[..len]);
}

/// Appends a nullable signed integer of any size.
#[inline]
pub(super) fn nullable_signed(out: &mut Vec<u8>, value: Option<i128>) {
    match value {
        None => null(out),
        Some(value) => signed(out, if value < 0 { value } else { value + 1 }),
    }
}

/// Appends NULL, which is the same for every type.
#[inline]
pub(super) fn null(out: &mut Vec<u8>) {
    out.push(0x80);
}

/// Appends an ASCII string, with a zero preamble where it needs one.
#[inline]
pub(super) fn ascii(out: &mut Vec<u8>, text: &[u8], nullable: bool) {
    if text.first().is_none_or(|&byte| byte == 0) {
        out.push(0);
        if nullable && !text.is_empty() {
            out.push(0);
        }
    }
    match (text.split_last(), nullable) {
        (Some((last, front)), _) => {
            out.extend_from_slice(front);
            out.push(last | 0x80);
        }
        (None, true) => out.push(0x80),
        (None, false) => {
            out.pop();
            out.push(0x80);
        }
    }
}

/// Appends a byte vector.
#[inline]
pub(super) fn byte_vector(out: &mut Vec<u8>, bytes: &[u8], nullable: bool) {
    if nullable {
        nullable_unsigned(out, Some(bytes.len() as u64));
    } else {
        unsigned(out, bytes.len() as u64);
    }
    out.extend_from_slice(bytes);
}

/// A presence map that is being written: room for all bits is taken first, and what they did
/// not need is given back.
#[derive(Debug)]
pub(super) struct PresenceWriter {
    start: usize,
    end: usize,
    next: usize,
}

impl PresenceWriter {
    /// Takes room for so many bits at the end of `out`; for none, no room.
    #[inline]
    pub(super) fn new(out: &mut Vec<u8>, bits: u32) -> Self {
        let start = out.len();
        let end = start + bits.div_ceil(7) as usize;
        out.resize(end, 0);
        Self {
            start,
            end,
            next: 0,
        }
    }

    /// Appends a bit to the map.
    #[inline]
    pub(super) fn push(&mut self, out: &mut [u8], bit: bool) {
        if bit && let Some(byte) = out.get_mut(self.start + self.next / 7) {
            *byte |= 0x40 >> (self.next % 7);
        }
        self.next += 1;
    }

    /// Cuts trailing groups of zeros, sets the stop bit, and closes the gap.
    #[inline]
    pub(super) fn finish(self, out: &mut Vec<u8>) {
        let Some(map) = out.get_mut(self.start..self.end) else {
            return;
        };
        if map.is_empty() {
            return;
        }
        let last = map.iter().rposition(|&byte| byte != 0).unwrap_or_default();
        map[last] |= 0x80;
        let used = self.start + last + 1;
        if used < self.end {
            out.drain(used..self.end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_get_the_preambles_they_need() {
        let written = |text: &[u8], nullable| {
            let mut out = Vec::new();
            ascii(&mut out, text, nullable);
            out
        };
        assert_eq!(written(b"AB", false), b"A\xc2");
        assert_eq!(written(b"", false), b"\x80");
        assert_eq!(written(b"", true), b"\x00\x80");
        assert_eq!(written(b"\0", false), b"\x00\x80");
        assert_eq!(written(b"\0", true), b"\x00\x00\x80");
        assert_eq!(written(b"\0A", true), b"\x00\x00\x00\xc1");
    }

    #[test]
    fn presence_maps_are_minimal() {
        for (bits, expected) in [
            (&[false; 20][..], &b"\x80"[..]),
            (&[true], b"\xc0"),
            (
                &[false, false, false, false, false, false, false, true],
                b"\x00\xc0",
            ),
            (&[], b""),
        ] {
            let mut out = vec![1];
            let mut map = PresenceWriter::new(&mut out, bits.len() as u32);
            out.push(2);
            for &bit in bits {
                map.push(&mut out, bit);
            }
            map.finish(&mut out);
            assert_eq!(out, [b"\x01", expected, b"\x02"].concat());
        }
    }
}
