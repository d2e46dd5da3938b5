//! Records in bytes: their bounds and their instruments.

use fanfare_market::dbn::live::length;

/// Returns the records in bytes that contain whole ones.
pub(super) fn each(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (record, rest) = bytes.split_at_checked(length(bytes)?)?;
        bytes = rest;
        Some(record)
    })
}

/// Returns the instrument in a record's header.
pub(super) fn instrument(record: &[u8]) -> u32 {
    let bytes = record.get(4..8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(u32::MAX, u32::from_le_bytes)
}
