//! The records of a live stream besides market data: metadata, notices, errors, symbols.

use crate::dbn::wire::{self, Fits, Header, Put, SYMBOL, rtype};
use crate::event::InstrumentId;
use fanfare_wire::text::beginning;

/// The bytes of the texts of notices and errors, including the NUL.
const NOTICE: usize = 303;
const ERROR: usize = 302;

/// The byte of a record at which its `publisher_id` begins.
const PUBLISHER: usize = 2;

/// The `code` of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SystemCode {
    /// Nothing else was sent.
    Heartbeat = 0,
    /// A subscription was accepted.
    SubscriptionAck = 1,
    /// The client reads more slowly than records arrive.
    SlowReaderWarning = 2,
    /// All requested records of the past were sent.
    ReplayCompleted = 3,
    /// All records of an interval were sent, and `ts_event` is its end.
    EndOfInterval = 4,
    /// A subscription was ended.
    UnsubscribeAck = 5,
    /// Anything else.
    Unset = 255,
}

/// The `code` of an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ErrorCode {
    /// The key is wrong.
    AuthFailed = 1,
    /// The key is no longer valid.
    ApiKeyDeactivated = 2,
    /// The user has too many sessions.
    ConnectionLimitExceeded = 3,
    /// A symbol is not known, or may not be seen.
    SymbolResolutionFailed = 4,
    /// A subscription cannot be served.
    InvalidSubscription = 5,
    /// The server failed.
    InternalError = 6,
    /// Records were dropped for a client that reads too slowly.
    SkippedRecordsAfterSlowReading = 7,
    /// The requested records of the past are no longer kept.
    ReplayDataAgedOut = 8,
    /// Anything else.
    Unset = 255,
}

/// Appends the metadata at the start of a live stream: a mix of schemas from `start` on
/// (nanoseconds since 1970-01-01 UTC). With `ts_out`, each record has 8 more bytes, the time at
/// which it was sent. Returns false if the name of the dataset has more than 15 bytes, and was left
/// out.
pub fn metadata(dataset: &str, start: u64, ts_out: bool, out: &mut Vec<u8>) -> bool {
    wire::metadata(dataset, start, ts_out, out).0
}

const fn header(ts_event: u64) -> Header {
    Header {
        source: 0,
        instrument: 0,
        ts_event,
    }
}

/// Returns the longest prefix of a text that leaves a byte for a NUL.
fn clipped(text: &str, room: usize) -> &str {
    beginning(text, room - 1)
}

/// Appends a notice. A text that is too long is truncated.
pub fn system(code: SystemCode, text: &str, ts_event: u64, out: &mut Vec<u8>) {
    notice(code, text, header(ts_event), out);
}

fn notice(code: SystemCode, text: &str, header: Header, out: &mut Vec<u8>) {
    out.header(320, rtype::SYSTEM, header);
    let Fits(_) = out.text(clipped(text, NOTICE).as_bytes(), NOTICE);
    out.u8(code as u8);
}

/// Appends a notice in the place of a record, which DBN cannot represent. Its header has the feed,
/// from 1, and the instrument of the record, where that of any other notice has zeros: see
/// [`is_for_record`]. A text that is too long is truncated.
pub fn no_record(
    (source, instrument): (u16, InstrumentId),
    why: &str,
    ts_event: u64,
    out: &mut Vec<u8>,
) {
    let header = Header {
        // The only feed of a stream may have no number.
        source: source.max(1),
        instrument: instrument.0,
        ts_event,
    };
    let text = format!("no record: {why}");
    notice(SystemCode::Unset, &text, header, out);
}

/// Returns whether a record is a notice in the place of a record of an instrument ([`no_record`]).
/// There may be as many of them as of those.
pub fn is_for_record(record: &[u8]) -> bool {
    let publisher = record.get(PUBLISHER..).and_then(<[u8]>::first_chunk);
    record.get(1) == Some(&rtype::SYSTEM) && publisher.is_some_and(|id| *id != [0; 2])
}

/// Appends an error. A text that is too long is truncated.
pub fn error(code: ErrorCode, text: &str, ts_event: u64, out: &mut Vec<u8>) {
    out.header(320, rtype::ERROR, header(ts_event));
    let Fits(_) = out.text(clipped(text, ERROR).as_bytes(), ERROR);
    out.u8(code as u8);
    // The last of those that belong together.
    out.u8(1);
}

/// The way in which a client names instruments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SymbolType {
    /// By the plant's numbers.
    InstrumentId,
    /// By their symbols.
    RawSymbol,
}

/// Appends the symbol of an instrument. Returns false, and appends nothing, if it does not fit into
/// a record.
pub fn mapping(
    by: SymbolType,
    (source, instrument): (u16, InstrumentId),
    symbol: &[u8],
    ts_event: u64,
    out: &mut Vec<u8>,
) -> bool {
    if symbol.is_empty() || symbol.len() >= SYMBOL {
        return false;
    }
    let header = Header {
        source,
        instrument: instrument.0,
        ts_event,
    };
    let start = out.len();
    let Fits(fits) = wire::mapping(header, by == SymbolType::RawSymbol, symbol, out);
    if !fits {
        out.truncate(start);
    }
    fits
}

/// Returns the length of the record at the start of `bytes`, or `None` if it is incomplete.
pub fn length(bytes: &[u8]) -> Option<usize> {
    let length = usize::from(*bytes.first()?) * 4;
    (length >= 16 && length <= bytes.len()).then_some(length)
}

/// Appends a record followed by the time at which it is sent.
pub fn with_ts_out(record: &[u8], sent: u64, out: &mut Vec<u8>) {
    let Some((length, rest)) = record.split_first() else {
        return;
    };
    out.push(length + 2);
    out.extend_from_slice(rest);
    out.extend_from_slice(&sent.to_le_bytes());
}
