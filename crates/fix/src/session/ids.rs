//! How long the names in a header may be.

use std::fmt;

use crate::codec::{Message, tags};

/// A CompID, SubID or LocationID that is longer than it may be. Of the value itself nothing is
/// kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldTooLong {
    /// The tag of the field.
    pub tag: u32,
    /// Its length in bytes.
    pub len: usize,
    /// The longest that is taken.
    pub limit: usize,
}

impl fmt::Display for FieldTooLong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tag, len, limit } = *self;
        let name = match tag {
            tags::SENDER_COMP_ID => "SenderCompID",
            tags::SENDER_SUB_ID => "SenderSubID",
            tags::TARGET_COMP_ID => "TargetCompID",
            tags::TARGET_SUB_ID => "TargetSubID",
            tags::SENDER_LOCATION_ID => "SenderLocationID",
            tags::TARGET_LOCATION_ID => "TargetLocationID",
            _ => "header field ",
        };
        write!(f, "{name}({tag}) has {len} bytes, more than {limit}")
    }
}

/// Finds the first name in the header of `message` that is longer than `limit`.
///
/// # Errors
/// There is one.
pub(super) fn check(message: &Message<'_>, limit: usize) -> Result<(), FieldTooLong> {
    for (position, &tag) in message.tags().iter().enumerate() {
        let len = message.value(position).map_or(0, <[u8]>::len);
        if len > limit && is_id(tag) {
            return Err(FieldTooLong { tag, len, limit });
        }
    }
    Ok(())
}

/// Whether this field of the header names somebody, or a part or a place of somebody.
pub(super) const fn is_id(tag: u32) -> bool {
    matches!(
        tag,
        tags::SENDER_COMP_ID
            | tags::SENDER_SUB_ID
            | tags::SENDER_LOCATION_ID
            | tags::TARGET_COMP_ID
            | tags::TARGET_SUB_ID
            | tags::TARGET_LOCATION_ID
            | tags::ON_BEHALF_OF_COMP_ID
            | tags::ON_BEHALF_OF_SUB_ID
            | tags::ON_BEHALF_OF_LOCATION_ID
            | tags::DELIVER_TO_COMP_ID
            | tags::DELIVER_TO_SUB_ID
            | tags::DELIVER_TO_LOCATION_ID
    )
}
