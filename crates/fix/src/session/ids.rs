//! Limits on the length of the IDs in a header.

use std::fmt;

use crate::codec::Message;
use crate::tag;

/// A CompID, SubID or LocationID that is too long. Its value is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTooLong {
    /// The tag of the field.
    pub tag: u32,
    /// The length of the field in bytes.
    pub len: usize,
    /// The longest accepted length in bytes.
    pub limit: usize,
}

impl fmt::Display for FieldTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, len, limit } = *self;
        let name = match tag {
            tag::SENDER_COMP_ID => "SenderCompID",
            tag::SENDER_SUB_ID => "SenderSubID",
            tag::TARGET_COMP_ID => "TargetCompID",
            tag::TARGET_SUB_ID => "TargetSubID",
            tag::SENDER_LOCATION_ID => "SenderLocationID",
            tag::TARGET_LOCATION_ID => "TargetLocationID",
            _ => "header field ",
        };
        write!(f, "{name}({tag}) has {len} bytes, more than {limit}")
    }
}

/// Checks that no ID in the header of `message` is longer than `limit`.
///
/// # Errors
/// Returns the first ID that is too long.
pub(super) fn check(message: &Message<'_>, limit: usize) -> Result<(), FieldTooLong> {
    let header = message.tags().iter().take(message.lead_len());
    for (position, &tag) in header.enumerate() {
        let len = message.value(position).map_or(0, <[u8]>::len);
        if len > limit && is_id(tag) {
            return Err(FieldTooLong { tag, len, limit });
        }
    }
    Ok(())
}

/// Returns whether a field of the header is a CompID, SubID or LocationID.
pub(super) const fn is_id(tag: u32) -> bool {
    matches!(
        tag,
        tag::SENDER_COMP_ID
            | tag::SENDER_SUB_ID
            | tag::SENDER_LOCATION_ID
            | tag::TARGET_COMP_ID
            | tag::TARGET_SUB_ID
            | tag::TARGET_LOCATION_ID
            | tag::ON_BEHALF_OF_COMP_ID
            | tag::ON_BEHALF_OF_SUB_ID
            | tag::ON_BEHALF_OF_LOCATION_ID
            | tag::DELIVER_TO_COMP_ID
            | tag::DELIVER_TO_SUB_ID
            | tag::DELIVER_TO_LOCATION_ID
    )
}
