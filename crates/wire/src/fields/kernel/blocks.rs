//! The index from masks of separators, each of 64 bytes, and words of eight bytes.
//!
//! The masks give the ends of all fields. Each kernel computes them in its own way. The tags are
//! then read from the first word of each field: its first `=` ends the tag, whose digits are
//! converted to a number together.

use super::{Scan, Unfit};
use crate::data::DataFields;
use crate::fields::{Columns, FieldIndex, SOH, zeros_in};
use crate::int::parse_last_of_eight;
use crate::sum::byte_sum;

/// The most entries that one block of 64 bytes may write.
const BLOCK_ROOM: usize = 64;

/// Indexes `bytes`, which are shorter than 2 GiB. `separators` returns the mask of the separators
/// among 64 bytes, with bit 0 for the first one.
///
/// # Errors
/// Returns [`Unfit::Message`] if `read_tags` returns `None` or the last field has no separator, and
/// [`Unfit::Room`] if the columns are too short.
#[inline(always)]
pub(super) fn index(
    bytes: &[u8],
    index: &mut FieldIndex,
    separators: impl Fn(&[u8; 64]) -> u64,
    read_tags: impl Fn(&[u8], usize, &DataFields, &mut Columns<'_>) -> Option<bool>,
) -> Result<Scan, Unfit> {
    index.clear();
    if bytes.last() != Some(&SOH) {
        return Err(Unfit::Message);
    }
    let max_fields = index.max_fields();
    let (data, mut columns) = index.parts().ok_or(Unfit::Room)?;
    let count = find_ends(bytes, &mut columns, separators)?;
    if count > max_fields {
        return Err(Unfit::Message);
    }
    let may_hold_data = read_tags(bytes, count, data, &mut columns).ok_or(Unfit::Message)?;
    index.len = count;
    Ok(Scan {
        sum: byte_sum(bytes),
        may_hold_data,
    })
}

/// Writes the ends of all fields, and returns their number.
#[inline(always)]
fn find_ends(
    bytes: &[u8],
    columns: &mut Columns<'_>,
    separators: impl Fn(&[u8; 64]) -> u64,
) -> Result<usize, Unfit> {
    let mut count = 0;
    let mut blocks = bytes.chunks_exact(64);
    let mut at = 0;
    for block in &mut blocks {
        let block = block.first_chunk().ok_or(Unfit::Message)?;
        count += write_positions(separators(block), at, count, columns)?;
        at += 64;
    }
    let rest = blocks.remainder();
    if rest.is_empty() {
        return Ok(count);
    }
    // The last 64 bytes, some of which have been looked at before.
    let mask = match bytes.last_chunk() {
        Some(block) => separators(block) >> (64 - rest.len()),
        None => {
            let mut block = [0; 64];
            block
                .iter_mut()
                .zip(rest)
                .for_each(|(to, &from)| *to = from);
            separators(&block)
        }
    };
    count += write_positions(mask, at, count, columns)?;
    Ok(count)
}

/// Writes the positions of the bits of `mask`, counted from `base`, after the first `count` ends,
/// and returns their number.
#[inline(always)]
fn write_positions(
    mut mask: u64,
    base: usize,
    count: usize,
    columns: &mut Columns<'_>,
) -> Result<usize, Unfit> {
    if count + BLOCK_ROOM > columns.tag.len() {
        return Err(Unfit::Room);
    }
    let bits = mask.count_ones() as usize;
    let to = columns.end.get_mut(count + 1..).unwrap_or_default();
    // Several at a time, so that the number of rounds is easy to predict; what is too much is
    // overwritten later.
    for entries in to.chunks_exact_mut(8) {
        for entry in entries {
            *entry = base as u32 + mask.trailing_zeros();
            mask &= mask.wrapping_sub(1);
        }
        if mask == 0 {
            break;
        }
    }
    Ok(bits)
}

/// Writes the numbers of all tags and the offsets at which their values begin. Returns whether any
/// tag may be the length of a data field, or `None` if a tag is not a number of up to seven digits.
#[inline(always)]
pub(super) fn read_tags(
    bytes: &[u8],
    count: usize,
    data: &DataFields,
    columns: &mut Columns<'_>,
) -> Option<bool> {
    let ends = columns.end.get(1..)?.iter().take(count);
    let fields = columns.tag.iter_mut().zip(columns.begin.iter_mut());
    let (mut start, mut may_hold_data) = (0, false);
    for ((tag, begin), &end) in fields.zip(ends) {
        (*tag, *begin) = match short_tag(bytes, start) {
            Some(found) => found,
            None => long_tag(bytes, start)?,
        };
        may_hold_data |= data.may_be_length(*tag);
        start = end + 1;
    }
    Some(may_hold_data)
}

/// Returns the tag of up to three digits of the field that begins at `start`, and the offset at
/// which its value begins. Returns `None` if there is no such tag, or if fewer than four bytes are
/// left.
#[inline(always)]
fn short_tag(bytes: &[u8], start: u32) -> Option<(u32, u32)> {
    let word = u32::from_le_bytes(*bytes.get(start as usize..)?.first_chunk()?);
    let equals = zeros_in_half(word ^ u32::from_ne_bytes([b'='; 4]));
    // Bit `8 * len + 7`.
    let bit = equals.trailing_zeros();
    let digits = (word ^ u32::from_ne_bytes([b'0'; 4])).wrapping_shl(!bit) << 8;
    let above_nine = digits.wrapping_add(0x7676_7676) | digits;
    if equals == 0 || above_nine & 0x8080_8080 != 0 {
        return None;
    }
    // Behind a zero: hundreds, tens, ones.
    let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    Some((
        (pairs & 0xff) * 100 + (pairs >> 16 & 0xff),
        start + bit / 8 + 1,
    ))
}

/// Returns marks of the bytes that are zero. Only the lowest bit set is certain.
#[inline(always)]
const fn zeros_in_half(word: u32) -> u32 {
    word.wrapping_sub(0x0101_0101) & !word & 0x8080_8080
}

/// Returns the tag of one to seven digits of the field that begins at `start`, and the offset at
/// which its value begins. Returns `None` if there is no such tag, or if fewer than eight bytes are
/// left.
#[inline]
pub(super) fn long_tag(bytes: &[u8], start: u32) -> Option<(u32, u32)> {
    let eight = u64::from_le_bytes(*bytes.get(start as usize..)?.first_chunk()?);
    let equals = zeros_in(eight ^ u64::from_ne_bytes([b'='; 8]));
    let count = equals.trailing_zeros() / 8;
    let digits = eight.checked_shl(64 - 8 * count).filter(|_| count < 8)?;
    let tag = parse_last_of_eight(digits, count as usize)?;
    Some((tag, start + count + 1))
}
