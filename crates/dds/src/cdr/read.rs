//! Reading of CDR from untrusted bytes.

use super::{CdrError, CdrFault, HEADER};

/// A cursor over one sample. Each call reads the next member. Nothing is copied, nothing panics,
/// and no length is trusted before its bytes are checked to exist.
#[derive(Debug, Clone)]
pub struct CdrReader<'a> {
    bytes: &'a [u8],
    at: usize,
    big_endian: bool,
    /// The position from which alignment is counted.
    origin: usize,
    /// The largest alignment: 8 in version 1, 4 in version 2.
    max_align: usize,
}

macro_rules! take {
    ($(#[$doc:meta])* $name:ident, $type:ty) => {
        $(#[$doc])*
        #[inline]
        pub fn $name(&mut self) -> Result<$type, CdrError> {
            let bytes = self.fixed()?;
            Ok(if self.big_endian {
                <$type>::from_be_bytes(bytes)
            } else {
                <$type>::from_le_bytes(bytes)
            })
        }
    };
}

// Every reading call fails with `CdrFault::Short` when the bytes end.
#[allow(clippy::missing_errors_doc)]
impl<'a> CdrReader<'a> {
    /// Reads the header of a sample.
    ///
    /// # Errors
    /// [`CdrFault::Short`] without a header, [`CdrFault::Representation`] for XML and for
    /// representations not assigned.
    pub fn new(sample: &'a [u8]) -> Result<Self, CdrError> {
        let Some(header) = sample.first_chunk::<HEADER>() else {
            return Err(CdrError {
                offset: sample.len(),
                why: CdrFault::Short,
            });
        };
        let id = u16::from_be_bytes([header[0], header[1]]);
        // DDSI-RTPS 10.2.1.2: even ids are big endian, odd ones little.
        let max_align = match id & !1 {
            0x0000 | 0x0002 => 8,
            0x0006 | 0x0008 | 0x000a => 4,
            _ => {
                return Err(CdrError {
                    offset: 0,
                    why: CdrFault::Representation(id),
                });
            }
        };
        // Padding at the end is no part of the sample.
        let padding = usize::from(header[3] & 3).min(sample.len() - HEADER);
        Ok(Self {
            bytes: &sample[..sample.len() - padding],
            at: HEADER,
            origin: HEADER,
            big_endian: id & 1 == 0,
            max_align,
        })
    }

    take!(/// Reads an `octet` or `uint8`.
        u8, u8);
    take!(/// Reads an `int8`.
        i8, i8);
    take!(/// Reads an `unsigned short`.
        u16, u16);
    take!(/// Reads a `short`.
        i16, i16);
    take!(/// Reads an `unsigned long`.
        u32, u32);
    take!(/// Reads a `long` or an enumeration.
        i32, i32);
    take!(/// Reads an `unsigned long long`.
        u64, u64);
    take!(/// Reads a `long long`.
        i64, i64);
    take!(/// Reads a `float`.
        f32, f32);
    take!(/// Reads a `double`.
        f64, f64);

    /// Reads a `boolean`, which is 0 or 1.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, CdrError> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(self.fault_at(self.at - 1, CdrFault::BadBool(other))),
        }
    }

    /// Reads a string: its bytes without the NUL, not necessarily UTF-8.
    #[inline]
    pub fn string(&mut self) -> Result<&'a [u8], CdrError> {
        let length = self.u32()?;
        let start = self.at;
        let bytes = self.bytes(length as usize)?;
        match bytes.split_last() {
            Some((0, text)) if !text.contains(&0) => Ok(text),
            _ => Err(self.fault_at(start, CdrFault::BadString)),
        }
    }

    /// Reads a `wstring` of at most `bound` code units: its length in bytes, then UTF-16 without a
    /// NUL (XTypes 1.3, 7.4.1.1.2). Allocates.
    ///
    /// # Errors
    /// The length is odd, too large or beyond the bound, or a surrogate is unpaired.
    pub fn wide_string(&mut self, bound: Option<u32>) -> Result<String, CdrError> {
        let start = self.offset();
        let length = self.u32()?;
        if length as usize > self.remaining() || bound.is_some_and(|b| length / 2 > b) {
            return Err(self.fault_at(start, CdrFault::BadLength(length)));
        }
        let units = (0..length / 2).map(|_| self.u16());
        let units = units.collect::<Result<Vec<_>, _>>()?;
        let text = String::from_utf16(&units).ok().filter(|_| length % 2 == 0);
        text.ok_or(self.fault_at(start, CdrFault::BadString))
    }

    /// Reads a `sequence<octet>`.
    #[inline]
    pub fn octets(&mut self) -> Result<&'a [u8], CdrError> {
        let length = self.u32()?;
        self.bytes(length as usize)
    }

    /// Reads the number of elements of a sequence, each of which takes at least `element_min`
    /// bytes. A number that the bytes left cannot hold is an error, so that loops may trust it.
    #[inline]
    pub fn count(&mut self, element_min: usize) -> Result<u32, CdrError> {
        let count = self.u32()?;
        let most = self.remaining() / element_min.max(1);
        if count as usize > most {
            return Err(self.fault_at(self.at - 4, CdrFault::BadLength(count)));
        }
        Ok(count)
    }

    /// Returns the next `n` bytes unchanged.
    #[inline]
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], CdrError> {
        let taken = self
            .at
            .checked_add(n)
            .and_then(|end| self.bytes.get(self.at..end))
            .ok_or(self.fault(CdrFault::Short))?;
        self.at += n;
        Ok(taken)
    }

    /// Returns the number of bytes left.
    #[inline]
    pub const fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// Returns the offset of the next byte from the start of the sample.
    #[inline]
    pub const fn offset(&self) -> usize {
        self.at
    }

    /// Returns whether the sample is of version 2, which puts lengths in front of appendable
    /// structures and of sequences of them.
    pub(super) const fn is_version_2(&self) -> bool {
        self.max_align == 4
    }

    /// Skips to a multiple of `size`, counted from the end of the header.
    #[inline]
    pub fn align(&mut self, size: usize) -> Result<(), CdrError> {
        let size = size.min(self.max_align);
        let padding = self.origin.wrapping_sub(self.at) & (size - 1);
        self.bytes(padding).map(|_| ())
    }

    /// Returns a reader of the next `n` bytes only, with the same alignment; this one does not
    /// advance.
    pub(super) fn window(&self, n: usize) -> Result<Self, CdrError> {
        let end = self.at.checked_add(n).filter(|e| *e <= self.bytes.len());
        let Some(end) = end else {
            return Err(self.fault(CdrFault::Short));
        };
        Ok(Self {
            bytes: &self.bytes[..end],
            ..self.clone()
        })
    }

    /// Returns a reader of the next `n` bytes whose alignment is counted from their start.
    pub(super) fn parameter(&self, n: usize) -> Result<Self, CdrError> {
        let mut inside = self.window(n)?;
        inside.origin = self.at;
        Ok(inside)
    }

    pub(super) const fn fault(&self, why: CdrFault) -> CdrError {
        self.fault_at(self.at, why)
    }

    pub(super) const fn fault_at(&self, offset: usize, why: CdrFault) -> CdrError {
        CdrError { offset, why }
    }

    #[inline(always)]
    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], CdrError> {
        let align = N.min(self.max_align);
        let padding = self.origin.wrapping_sub(self.at) & (align - 1);
        let start = self.at + padding;
        let value = self
            .bytes
            .get(start..)
            .and_then(|rest| rest.first_chunk::<N>())
            .ok_or(self.fault(CdrFault::Short))?;
        self.at = start + N;
        Ok(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::super::CdrBuffer;
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let mut b = CdrBuffer::with_capacity(128);
        b.bool(true);
        b.i16(-2);
        b.u64(u64::MAX);
        b.string(b"hello");
        b.octets(&[1, 2, 3]);
        b.f32(0.5);
        let mut r = CdrReader::new(b.finish().unwrap()).unwrap();
        assert_eq!(
            (r.bool(), r.i16(), r.u64()),
            (Ok(true), Ok(-2), Ok(u64::MAX))
        );
        assert_eq!(r.string(), Ok(&b"hello"[..]));
        assert_eq!(r.octets(), Ok(&[1_u8, 2, 3][..]));
        assert_eq!((r.f32(), r.remaining()), (Ok(0.5), 0));
    }

    #[test]
    fn big_endian_and_version_2_alignment_are_read() {
        let mut r = CdrReader::new(&[0, 0, 0, 0, 1, 2]).unwrap();
        assert_eq!(r.u16(), Ok(0x0102));
        let mut bytes = vec![0, 7, 0, 0, 9, 0, 0, 0];
        bytes.extend(5_u64.to_le_bytes());
        let mut r = CdrReader::new(&bytes).unwrap();
        assert_eq!((r.u8(), r.u64()), (Ok(9), Ok(5)));
    }

    #[test]
    fn hostile_bytes_get_an_error_with_their_place() {
        assert_eq!(CdrReader::new(&[0, 1]).unwrap_err().why, CdrFault::Short);
        let id = CdrReader::new(&[0, 4, 0, 0]).unwrap_err().why;
        assert_eq!(id, CdrFault::Representation(4));
        let huge = [0, 1, 0, 0, 255, 255, 255, 255, 0];
        let mut r = CdrReader::new(&huge).unwrap();
        assert_eq!(r.clone().string().unwrap_err().why, CdrFault::Short);
        assert_eq!(r.count(1).unwrap_err().why, CdrFault::BadLength(u32::MAX));
        let unended = [0, 1, 0, 0, 1, 0, 0, 0, b'x'];
        let e = CdrReader::new(&unended).unwrap().string().unwrap_err();
        assert_eq!((e.offset, e.why), (8, CdrFault::BadString));
        let e = CdrReader::new(&[0, 1, 0, 0, 2])
            .unwrap()
            .bool()
            .unwrap_err();
        assert_eq!((e.offset, e.why), (4, CdrFault::BadBool(2)));
    }
}
