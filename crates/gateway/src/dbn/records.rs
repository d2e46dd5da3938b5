//! Records in bytes: their bounds and their instruments.

use fanfare_market::dbn::live::{is_for_record, length};

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

/// Returns whether a record is a notice or an error that belongs to no instrument: not one in the
/// place of a record.
pub(super) fn is_notice(record: &[u8]) -> bool {
    matches!(record.get(1), Some(&(ERROR | SYSTEM))) && !is_for_record(record)
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
    use fanfare_market::InstrumentId;
    use fanfare_market::dbn::live::{ErrorCode, SystemCode, error, no_record, system};

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

    #[test]
    fn a_notice_in_the_place_of_a_record_is_of_its_instrument_whatever_its_text() {
        for (source, text) in [(0, "text"), (1, ""), (u16::MAX, "text")] {
            let mut bytes = Vec::new();
            no_record((source, InstrumentId(7)), text, 1, &mut bytes);
            assert!(is_for_record(&bytes) && !is_notice(&bytes));
            assert_eq!((each(&bytes).count(), instrument(&bytes)), (1, 7));
            // A text of others is no sign of it.
            bytes.clear();
            system(SystemCode::Unset, "no record: text", 1, &mut bytes);
            assert!(!is_for_record(&bytes) && is_notice(&bytes));
        }
    }
}
