//! The records of a live stream besides market data: metadata, notices, errors, symbols.

use crate::dbn::wire::{self, Fits, Header, Put, SYMBOL, rtype};
use crate::event::InstrumentId;
use fanfare_wire::text::beginning;

/// The bytes of the texts of notices and errors, including the NUL.
const NOTICE: usize = 303;
const ERROR: usize = 302;

/// The bytes of a record at which its `publisher_id`, its `ts_event` and its text begin.
const PUBLISHER: usize = 2;
const TIME: usize = 8;
const TEXT: usize = 16;

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

impl SystemCode {
    /// Returns the code with this number, or [`Self::Unset`] if there is none.
    const fn of(code: u8) -> Self {
        match code {
            0 => Self::Heartbeat,
            1 => Self::SubscriptionAck,
            2 => Self::SlowReaderWarning,
            3 => Self::ReplayCompleted,
            4 => Self::EndOfInterval,
            5 => Self::UnsubscribeAck,
            _ => Self::Unset,
        }
    }
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

impl ErrorCode {
    /// Returns the code with this number, or [`Self::Unset`] if there is none.
    const fn of(code: u8) -> Self {
        match code {
            1 => Self::AuthFailed,
            2 => Self::ApiKeyDeactivated,
            3 => Self::ConnectionLimitExceeded,
            4 => Self::SymbolResolutionFailed,
            5 => Self::InvalidSubscription,
            6 => Self::InternalError,
            7 => Self::SkippedRecordsAfterSlowReading,
            8 => Self::ReplayDataAgedOut,
            _ => Self::Unset,
        }
    }
}

/// A record about the stream itself. Its text has no NUL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control<'a> {
    /// A notice.
    Notice {
        /// Its code, [`SystemCode::Unset`] in version 1, which has none.
        code: SystemCode,
        /// Its text.
        text: &'a [u8],
        /// Its time, in nanoseconds since 1970-01-01 UTC.
        ts_event: u64,
    },
    /// An error.
    Error {
        /// Its code, [`ErrorCode::Unset`] in version 1, which has none.
        code: ErrorCode,
        /// Its text.
        text: &'a [u8],
    },
}

impl<'a> Control<'a> {
    /// Reads a whole record of any version. Returns `None` if it is neither a notice nor an error.
    pub fn read(record: &'a [u8]) -> Option<Self> {
        let text = |room| {
            let text = record.get(TEXT..).unwrap_or_default();
            let text = text.get(..room).unwrap_or(text);
            text.split(|byte| *byte == 0).next().unwrap_or_default()
        };
        let code = |room| record.get(TEXT + room).copied().unwrap_or(u8::MAX);
        match *record.get(1)? {
            rtype::SYSTEM => Some(Self::Notice {
                code: SystemCode::of(code(NOTICE)),
                text: text(NOTICE),
                ts_event: u64::from_le_bytes(*record.get(TIME..)?.first_chunk()?),
            }),
            rtype::ERROR => Some(Self::Error {
                code: ErrorCode::of(code(ERROR)),
                text: text(ERROR),
            }),
            _ => None,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_and_errors_are_read_as_they_are_written() {
        for number in 0..=u8::MAX {
            let (notice, failure) = (SystemCode::of(number), ErrorCode::of(number));
            let mut bytes = Vec::new();
            system(notice, "a notice", 7, &mut bytes);
            let read = Control::Notice {
                code: notice,
                text: b"a notice",
                ts_event: 7,
            };
            assert_eq!(Control::read(&bytes), Some(read));
            bytes.clear();
            error(failure, "an error", 7, &mut bytes);
            let read = Control::Error {
                code: failure,
                text: b"an error",
            };
            assert_eq!(Control::read(&bytes), Some(read));
            assert!(notice == SystemCode::Unset || notice as u8 == number);
            assert!(failure == ErrorCode::Unset || failure as u8 == number);
        }
    }

    #[test]
    fn those_of_version_1_have_no_code() {
        let mut bytes = [0; 80];
        (bytes[0], bytes[1]) = (20, rtype::ERROR);
        bytes[16..].fill(b'x');
        let read = Control::Error {
            code: ErrorCode::Unset,
            text: &[b'x'; 64],
        };
        assert_eq!(Control::read(&bytes), Some(read));
        assert_eq!(Control::read(&bytes[..1]), None);
        assert_eq!(Control::read(&[4, rtype::SYSTEM]), None);
    }
}
