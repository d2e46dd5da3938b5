//! The transfer encoding (section 10), read from a slice.

use fanfare_wire::stopbit::{self, Entity, StopBitError};

use crate::error::{Bound, CodecError, ErrorCode};
use crate::value::IntType;

/// The bytes of a message, and the position in them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    bytes: &'a [u8],
    pub(crate) at: usize,
    strict: bool,
    max_text: usize,
}

pub(crate) type Read<T> = Result<T, CodecError>;

impl<'a> Input<'a> {
    pub(crate) const fn new(bytes: &'a [u8], at: usize, strict: bool, max_text: usize) -> Self {
        Self {
            bytes,
            at,
            strict,
            max_text,
        }
    }

    pub(crate) const fn strict(&self) -> bool {
        self.strict
    }

    /// Returns all bytes.
    #[inline(always)]
    pub(crate) const fn all(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the bytes that are not read yet.
    #[inline(always)]
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    /// Returns the bytes from `start` to the position.
    pub(crate) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    /// Reads the bytes of a presence map.
    #[inline(always)]
    pub(crate) fn presence_map(&mut self) -> Read<&'a [u8]> {
        let start = self.at;
        let end = match self.bytes.get(start) {
            Some(byte) if byte & 0x80 != 0 => start + 1,
            _ => stopbit::entity_end(self.bytes, start).ok_or_else(|| self.truncated())?,
        };
        let map = &self.bytes[start..end];
        if self.strict && map.len() > 1 && map[map.len() - 1] == 0x80 {
            return Err(CodecError::new(ErrorCode::R7, start));
        }
        self.at = end;
        Ok(map)
    }

    /// Reads the bytes of any entity.
    pub(crate) fn entity(&mut self) -> Read<&'a [u8]> {
        let start = self.at;
        let end = stopbit::entity_end(self.bytes, start).ok_or_else(|| self.truncated())?;
        self.at = end;
        Ok(&self.bytes[start..end])
    }

    /// Reads an integer of the type, as a 64-bit pattern.
    #[inline(always)]
    pub(crate) fn int(&mut self, ty: IntType) -> Read<u64> {
        let start = self.at;
        let value = if ty.is_signed() {
            self.accept(stopbit::read_signed(self.bytes, start), true)? as u64
        } else {
            self.accept(stopbit::read_unsigned(self.bytes, start), false)?
        };
        if ty.holds_bits(value) {
            Ok(value)
        } else {
            Err(CodecError::new(ErrorCode::D2, start))
        }
    }

    /// Reads a nullable integer of the type, as a 64-bit pattern.
    #[inline(always)]
    pub(crate) fn nullable_int(&mut self, ty: IntType) -> Read<Option<u64>> {
        let start = self.at;
        if self.bytes.get(start) == Some(&0x80) {
            self.at += 1;
            return Ok(None);
        }
        let d2 = CodecError::new(ErrorCode::D2, start);
        let value = if ty.is_signed() {
            match stopbit::read_signed(self.bytes, start) {
                Ok(entity) => match self.accept(Ok(entity), true)? {
                    0 => return Ok(None),
                    value => (value - i64::from(value > 0)) as u64,
                },
                Err(_) => match self.nullable_delta()? {
                    Some(value) => i64::try_from(value).map_err(|_| d2)? as u64,
                    None => return Ok(None),
                },
            }
        } else {
            match stopbit::read_unsigned(self.bytes, start) {
                Ok(entity) => match self.accept(Ok(entity), false)? {
                    0 => return Ok(None),
                    value => value - 1,
                },
                Err(_) => {
                    match self.accept(stopbit::read_unsigned_wide(self.bytes, start), false)? {
                        0 => return Ok(None),
                        value => u64::try_from(value - 1).map_err(|_| d2)?,
                    }
                }
            }
        };
        if ty.holds_bits(value) {
            Ok(Some(value))
        } else {
            Err(d2)
        }
    }

    /// Reads an integer delta, which may be larger than any type. Returns D2 if it is larger than
    /// any difference; the caller has an error of its own for that ([`instead_of_d2`]).
    #[inline(always)]
    pub(crate) fn delta(&mut self) -> Read<i128> {
        match stopbit::read_signed(self.bytes, self.at) {
            Ok(entity) => Ok(i128::from(self.accept(Ok(entity), true)?)),
            Err(_) => self.accept(stopbit::read_signed_wide(self.bytes, self.at), true),
        }
    }

    /// Reads a nullable integer delta.
    #[inline(always)]
    pub(crate) fn nullable_delta(&mut self) -> Read<Option<i128>> {
        let value = self.delta()?;
        Ok(match value {
            0 => None,
            1.. => Some(value - 1),
            _ => Some(value),
        })
    }

    /// Reads an ASCII string, whose last byte still has its stop bit.
    #[inline]
    pub(crate) fn ascii(&mut self, nullable: bool) -> Read<Option<&'a [u8]>> {
        let start = self.at;
        let end = stopbit::entity_end(self.bytes, start).ok_or_else(|| self.truncated())?;
        let entity = &self.bytes[start..end];
        self.at = end;
        let first = |bytes: &[u8]| bytes.first().map_or(0xff, |byte| byte & 0x7f);
        if first(entity) != 0 {
            self.check_length(entity.len(), start)?;
            return Ok(Some(entity));
        }
        // A zero preamble: of one group, or of two if that may stand for null.
        let rest = &entity[1..];
        let rest = match (nullable, rest) {
            (true, []) => return Ok(None),
            (true, [0x80]) => return Ok(Some(&[])),
            (true, [0, rest @ ..]) => rest,
            _ => rest,
        };
        self.check_length(rest.len(), start)?;
        if first(rest) == 0 || rest.is_empty() {
            return Ok(Some(rest));
        }
        if self.strict {
            Err(CodecError::new(ErrorCode::R9, start))
        } else {
            Ok(Some(rest))
        }
    }

    /// Reads a byte vector.
    #[inline]
    pub(crate) fn byte_vector(&mut self, nullable: bool) -> Read<Option<&'a [u8]>> {
        let start = self.at;
        let length = match nullable {
            true => match self.nullable_int(IntType::UInt32)? {
                Some(length) => length,
                None => return Ok(None),
            },
            false => self.int(IntType::UInt32)?,
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        self.check_length(length, start)?;
        let end = self.at.saturating_add(length);
        let bytes = self
            .bytes
            .get(self.at..end)
            .ok_or_else(|| self.truncated())?;
        self.at = end;
        Ok(Some(bytes))
    }

    pub(crate) fn check_length(&self, length: usize, at: usize) -> Read<()> {
        if length > self.max_text {
            Err(CodecError::beyond(Bound::Text, at))
        } else {
            Ok(())
        }
    }

    pub(crate) const fn truncated(&self) -> CodecError {
        CodecError::new(ErrorCode::Truncated, self.bytes.len())
    }

    #[inline(always)]
    fn accept<T>(&mut self, entity: Result<Entity<T>, StopBitError>, signed: bool) -> Read<T> {
        match entity {
            Ok(Entity {
                value,
                next,
                overlong,
            }) => {
                if overlong && self.strict {
                    return Err(CodecError::new(ErrorCode::R6, self.at));
                }
                self.at = next;
                Ok(value)
            }
            Err(StopBitError::Truncated) => Err(self.truncated()),
            Err(StopBitError::Overflow) => Err(self.too_large(signed)),
        }
    }
    /// Returns the error of an entity with more bits than any integer has. The entity is overlong
    /// if its first seven bits are redundant.
    #[cold]
    fn too_large(&self, signed: bool) -> CodecError {
        let is_overlong = match *self.rest() {
            [0, second, ..] => !signed || second & 0x40 == 0,
            [0x7f, second, ..] => signed && second & 0x40 != 0,
            _ => false,
        };
        let code = match is_overlong && self.strict {
            true => ErrorCode::R6,
            false => ErrorCode::D2,
        };
        CodecError::new(code, self.at)
    }
}

/// Returns the error, with this code if its own is D2: the meaning of a number that is too large
/// depends on its use.
#[cold]
pub(crate) fn instead_of_d2(code: ErrorCode, error: CodecError) -> CodecError {
    match error.code {
        ErrorCode::D2 => CodecError::new(code, error.offset),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(bytes: &[u8], strict: bool) -> Input<'_> {
        Input::new(bytes, 0, strict, 100)
    }

    /// Returns the ASCII string in these bytes, without its stop bit.
    fn ascii(bytes: &[u8], nullable: bool, strict: bool) -> Result<Option<Vec<u8>>, ErrorCode> {
        let text = input(bytes, strict)
            .ascii(nullable)
            .map_err(|error| error.code)?;
        Ok(text.map(|text| text.iter().map(|byte| byte & 0x7f).collect()))
    }

    #[test]
    fn zero_preambles_follow_the_table_of_section_10_6_3() {
        let text = |text: &str| Ok(Some(text.as_bytes().to_vec()));
        assert_eq!(ascii(b"\x80", false, true), text(""));
        assert_eq!(ascii(b"\x00\x80", false, true), text("\0"));
        assert_eq!(ascii(b"\x00\xc1", false, true), Err(ErrorCode::R9));
        assert_eq!(ascii(b"\x00\xc1", false, false), text("A"));
        assert_eq!(ascii(b"\x00\x00\xc1", false, true), text("\0A"));
        assert_eq!(ascii(b"\x80", true, true), Ok(None));
        assert_eq!(ascii(b"\x00\x80", true, true), text(""));
        assert_eq!(ascii(b"\x00\xc1", true, true), Err(ErrorCode::R9));
        assert_eq!(ascii(b"\x00\x00\x80", true, true), text("\0"));
        assert_eq!(ascii(b"\x00\x00\xc1", true, true), Err(ErrorCode::R9));
        assert_eq!(ascii(b"\x00\x00\x00\xc1", true, true), text("\0A"));
        assert_eq!(ascii(b"A\xc2", true, true), text("AB"));
        assert_eq!(ascii(b"AB", true, true), Err(ErrorCode::Truncated));
    }

    #[test]
    fn integers_are_held_against_their_bounds() {
        let int = |bytes, ty| input(bytes, true).int(ty).map_err(|error| error.code);
        let null = |bytes, ty| {
            input(bytes, true)
                .nullable_int(ty)
                .map_err(|error| error.code)
        };
        assert_eq!(int(b"\x01\xff", IntType::UInt8), Ok(255));
        assert_eq!(int(b"\x02\x80", IntType::UInt8), Err(ErrorCode::D2));
        assert_eq!(int(b"\x7f\x80", IntType::Int8), Ok(-128_i64 as u64));
        assert_eq!(int(b"\x7e\xff", IntType::Int8), Err(ErrorCode::D2));
        assert_eq!(null(b"\x02\x80", IntType::UInt8), Ok(Some(255)));
        assert_eq!(null(b"\x02\x81", IntType::UInt8), Err(ErrorCode::D2));
        assert_eq!(null(b"\x01\x80", IntType::Int8), Ok(Some(127)));
        assert_eq!(null(b"\x80", IntType::Int8), Ok(None));
        assert_eq!(null(b"\xff", IntType::Int8), Ok(Some(-1_i64 as u64)));
        let most = [0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0x80];
        assert_eq!(null(&most, IntType::UInt64), Ok(Some(u64::MAX)));
        assert_eq!(int(&most, IntType::UInt64), Err(ErrorCode::D2));
        assert_eq!(int(b"\x00\x81", IntType::UInt32), Err(ErrorCode::R6));
        assert_eq!(input(b"\x00\x81", false).int(IntType::UInt32), Ok(1));
        assert_eq!(input(b"\x01\x81", false).int(IntType::UInt8), Ok(129));
        let endless = [0x7f; 40];
        assert!(int(&endless, IntType::UInt64).is_err());
    }

    #[test]
    fn byte_vectors_are_bounded() {
        assert_eq!(
            input(b"\x82ab", true).byte_vector(false),
            Ok(Some(&b"ab"[..]))
        );
        assert_eq!(
            input(b"\x83ab", true).byte_vector(true),
            Ok(Some(&b"ab"[..]))
        );
        assert_eq!(input(b"\x80", true).byte_vector(true), Ok(None));
        let code = |bytes| {
            input(bytes, true)
                .byte_vector(false)
                .map_err(|error| error.code)
        };
        assert_eq!(code(b"\x83ab"), Err(ErrorCode::Truncated));
        assert_eq!(code(b"\x0f\x7f\x7f\x7f\xff"), Err(ErrorCode::Limit));
    }
}
