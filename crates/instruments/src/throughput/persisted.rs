//! The contents of the initiators' journals.

use std::path::Path;

use fanfare_engine::journal::{EntryKind, Found, OpenError, Snapshot};
use fanfare_fix::codec::Decoder;

use super::orders::Orders;

/// More bytes than a message has around the fields of an order.
const AROUND: usize = 512;

/// More bytes than a segment has besides orders and their table: its header, the first messages of
/// the session, and a reserve.
const APART: u32 = 16 << 10;

/// MsgSeqNum(34) of the first order: the Logon has 1.
const FIRST: u64 = 2;

/// Reads the journals under `base`, one per session, and counts the orders in them that are intact
/// and in their place: the `n`-th with the fields of the `n`-th line.
///
/// # Errors
/// A journal cannot be read.
pub fn persisted(base: &Path, orders: &Orders) -> Result<u64, OpenError> {
    let io_error = |error| OpenError::Io {
        path: base.to_owned(),
        error,
    };
    let (mut decoder, mut count) = (Decoder::new(), 0);
    for folder in std::fs::read_dir(base).map_err(io_error)? {
        let snapshot = Snapshot::take(&folder.map_err(io_error)?.path())?;
        for found in snapshot.records() {
            let Found::Good(record) = found else { continue };
            if record.kind != EntryKind::App || !record.visible || record.seq < FIRST {
                continue;
            }
            let right = decoder
                .decode(record.bytes)
                .is_ok_and(|message| message.body() == orders.body(record.seq - FIRST));
            count += u64::from(right);
        }
    }
    Ok(count)
}

/// Returns the default length of a journal's segments, bytes: the journals of all sessions together
/// begin with at most a gigabyte, each with 64 KiB to 4 MiB. A power of two.
#[must_use]
pub fn segment_bytes(sessions: usize) -> u32 {
    let share = (1 << 30) / sessions.max(1) as u32;
    1 << share.clamp(64 << 10, 4 << 20).ilog2()
}

/// Returns whether a journal of at most `max_segments` segments keeps `messages` of these orders.
#[must_use]
pub fn holds(orders: &Orders, messages: u64, segment_bytes: u32, max_segments: u32) -> bool {
    let each = (orders.longest() + AROUND) as u64;
    // A fifth of a segment is the table of its messages. No order is in two segments.
    let room = (segment_bytes / 5 * 4).saturating_sub(APART);
    let in_segment = u64::from(room) / each;
    messages <= in_segment * u64::from(max_segments.saturating_sub(1))
}
