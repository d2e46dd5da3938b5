//! Flaws of messages that were found in text.

use crate::codec::DecodeError;
use crate::tag;
use fanfare_wire::fields::{Fault, FaultKind};
use fanfare_wire::int::parse_u64;
use fanfare_wire::{FieldIndex, byte_sum};

/// A flaw of a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The second field is not BodyLength(9).
    #[error("the second field is not BodyLength(9)")]
    NoBodyLength,
    /// BodyLength(9) is not the number of bytes.
    #[error("BodyLength(9) is {value}, expected {counted}")]
    BodyLength {
        /// The value of the field.
        value: Box<str>,
        /// The number of bytes.
        counted: usize,
    },
    /// The third field is not MsgType(35).
    #[error("the third field is not MsgType(35)")]
    NoMsgType,
    /// The last field is not CheckSum(10): the message is cut off.
    #[error("CheckSum(10) is missing: the message is truncated")]
    NoCheckSum,
    /// CheckSum(10) is not the sum of the bytes.
    #[error("CheckSum(10) is {value}, expected {counted:03}")]
    CheckSum {
        /// The value of the field.
        value: Box<str>,
        /// The sum of the bytes.
        counted: u8,
    },
    /// The fields are broken at a place. The fields before that place are there, or all fields if
    /// the length of a data field is wrong.
    #[error("{}", DecodeError::Field(*.0))]
    Fields(Fault),
}

/// Indexes a message as far as possible, and finds its flaws. Returns the index that has more of
/// it: `plain` if the length of a data field is wrong.
pub(super) fn examine<'a>(
    wire: &[u8],
    index: &'a mut FieldIndex,
    plain: &'a mut FieldIndex,
    flaws: &mut Vec<Flaw>,
) -> &'a FieldIndex {
    flaws.clear();
    let has_sum = |index: &FieldIndex| index.tags().last() == Some(&tag::CHECK_SUM);
    let fault = index.index(wire).fault;
    let is_data = fault.is_some_and(|fault| fault.kind == FaultKind::DataLength);
    if !is_data && (fault.is_some() || has_sum(index)) {
        flaws.extend(fault.map(Flaw::Fields));
        frame(wire, index, flaws);
        return index;
    }
    let other = plain.index(wire).fault;
    if !is_data && !has_sum(plain) {
        frame(wire, index, flaws);
        return index;
    }
    // A data field that swallows the trailer is the last one.
    let offset = index.ends().iter().rev().nth(1).map_or(0, |&end| end + 1);
    let kind = FaultKind::DataLength;
    flaws.push(Flaw::Fields(fault.unwrap_or(Fault { offset, kind })));
    flaws.extend(other.map(Flaw::Fields));
    frame(wire, plain, flaws);
    plain
}

/// Finds the flaws of the fields of the frame: the first three and the last.
fn frame(wire: &[u8], index: &FieldIndex, flaws: &mut Vec<Flaw>) {
    let tag = |at: usize| index.tags().get(at).copied();
    let value = |at: usize| {
        let (begin, end) = (index.begins().get(at)?, index.ends().get(at)?);
        wire.get(*begin as usize..*end as usize)
    };
    let last = index.len().saturating_sub(1);
    let has_sum = tag(last) == Some(tag::CHECK_SUM);
    let behind = |at: usize| index.ends().get(at).map_or(0, |&end| end as usize + 1);
    let trailer = match last.checked_sub(1) {
        Some(before) if has_sum => behind(before),
        _ => wire.len(),
    };
    if tag(1) != Some(tag::BODY_LENGTH) {
        flaws.push(Flaw::NoBodyLength);
    } else {
        let value = value(1).unwrap_or_default();
        let counted = trailer.saturating_sub(behind(1));
        // Of a message that is cut off there is nothing to be counted.
        if has_sum && parse_u64(value) != Some(counted as u64) {
            let value = text(value);
            flaws.push(Flaw::BodyLength { value, counted });
        }
    }
    if tag(2) != Some(tag::MSG_TYPE) {
        flaws.push(Flaw::NoMsgType);
    }
    if !has_sum {
        return flaws.push(Flaw::NoCheckSum);
    }
    let (value, counted) = (
        value(last).unwrap_or_default(),
        byte_sum(wire.get(..trailer).unwrap_or_default()),
    );
    if value.len() != 3 || parse_u64(value) != Some(u64::from(counted)) {
        let value = text(value);
        flaws.push(Flaw::CheckSum { value, counted });
    }
}

/// Returns at most 20 bytes of a value that should be a number, as text.
fn text(value: &[u8]) -> Box<str> {
    let printable = crate::dict::Printable(value.get(..20).unwrap_or(value));
    printable.to_string().into()
}
