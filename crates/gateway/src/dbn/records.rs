//! Records in bytes: their bounds and their instruments.

use fanfare_market::dbn::live::{NO_RECORD, length};

/// Returns the records in bytes that contain whole ones.
pub(super) fn each(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (record, rest) = bytes.split_at_checked(length(bytes)?)?;
        bytes = rest;
        Some(record)
    })
}

/// The `rtype` of errors.
pub(super) const ERROR: u8 = 0x15;
/// The `rtype` of notices.
pub(super) const SYSTEM: u8 = 0x17;

/// Returns whether a record is a notice or an error, which belongs to no instrument.
pub(super) fn is_notice(record: &[u8]) -> bool {
    matches!(record.get(1), Some(&(ERROR | SYSTEM)))
}

/// Returns whether a notice is in the place of a record of market data. There may be as many of
/// them as of those.
pub(super) fn is_for_record(record: &[u8]) -> bool {
    let text = record.get(16..).unwrap_or_default();
    record.get(1) == Some(&SYSTEM) && text.starts_with(NO_RECORD.as_bytes())
}

/// Returns the instrument in a record's header.
pub(super) fn instrument(record: &[u8]) -> u32 {
    let bytes = record.get(4..8).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(u32::MAX, u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_engine::clock::Clock;
    use fanfare_market::dbn::live::{ErrorCode, SystemCode, error, system};

    #[test]
    fn notices_are_of_no_instrument_though_their_number_is_that_of_the_first() {
        let (now, mut bytes) = (Clock::new().read().utc.nanos().unsigned_abs(), Vec::new());
        system(SystemCode::Unset, "text", now, &mut bytes);
        error(ErrorCode::Unset, "text", now, &mut bytes);
        let records: Vec<_> = each(&bytes).collect();
        assert_eq!(records.len(), 2);
        assert!(
            records
                .iter()
                .all(|own| is_notice(own) && instrument(own) == 0)
        );
        assert!(!is_notice(&[14, 0xa0]));
    }
}
