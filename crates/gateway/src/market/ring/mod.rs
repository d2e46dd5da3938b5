//! The ring of market events: every outlet reads the same events, with the plant's numbers.
//!
//! The thread of the feeds writes and does not wait, unless it is configured to wait for the log. A
//! reader that is overtaken detects by the numbers what it lost, and requests all instruments and
//! snapshots again. These are written some at a time, as it reads them, so that they do not
//! overtake it again. Instruments that are known at the start are handed to the readers beside the
//! ring.

mod introduced;
mod reader;
#[cfg(test)]
mod tests;
mod writer;

use crate::stages::{MARKED, Mark};
use fanfare_engine::ring::Rescued;
use fanfare_market::{Event, Watermark};
pub use reader::EventReader;
pub(crate) use reader::RecordReader;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64};
pub(crate) use writer::EventRing;

/// The kinds of records: consecutive events of one message, an instrument, and the end of all
/// instruments that readers have requested, with the number of the last request.
const EVENTS: u32 = 0;
const INSTRUMENT: u32 = 1;
const SHOWN: u32 = 2;
/// The plant whose log is replayed was restarted at this time.
const RESTART: u32 = 3;
/// A watermark. Versions up to 0.3.0 write its time alone.
const WATERMARK: u32 = 4;

/// The bit in the kind of a record of events whose message continues in the next record.
const MORE: u32 = 1 << 29;

/// The bits in the kind of a record that do not belong to the kind.
const BITS: u32 = MARKED | MORE;

/// The most events of one record. A longer message takes several.
pub(crate) const MOST: usize = 256;

/// The bytes of this ring for each byte of a ring to a worker: the events of a message take about
/// this many times the room of the message.
const PER_BYTE: usize = 4;

/// The least size of the ring, which holds the longest instrument.
const LEAST: usize = 1 << 18;

/// A record of the ring.
pub(crate) enum Record<'a> {
    /// Events of one message, encoded, with their mark if they are measured.
    Events(&'a [[u8; Event::SIZE]], Option<Mark>),
    /// An instrument, encoded.
    Instrument(&'a [u8]),
    /// The plant whose log is replayed was restarted at this time.
    Restart(u64),
    /// Every later event of a trade arrived at this time or after it.
    Watermark(Watermark),
}

/// The requests of the readers to the writer.
#[derive(Default)]
struct Asks {
    /// The number of the last request of all instruments.
    all: AtomicU64,
    /// Whether the next of them are requested: a reader that waits for them has read most of the
    /// ring.
    more: AtomicBool,
}

/// Calls `each` with the records that the log lacks, from the ring of a killed process, and whether
/// their messages continue in the next record. Returns with what was found the plant's number of
/// the event after the last one that was written, 0 if the file does not have it.
pub(crate) fn rescue(
    path: &Path,
    mut each: impl FnMut(Record<'_>, bool),
) -> io::Result<(Rescued, u64)> {
    fanfare_engine::ring::rescue(path, |kind, bytes| match kind & !BITS {
        INSTRUMENT => each(Record::Instrument(bytes), false),
        EVENTS => each(events(kind, bytes), kind & MORE != 0),
        RESTART => each(Record::Restart(number(bytes)), false),
        WATERMARK => each(watermark(bytes), false),
        _ => {}
    })
}

/// Parses a record of events, which a mark precedes if they are measured.
fn events(kind: u32, bytes: &[u8]) -> Record<'_> {
    let (mark, bytes) = Mark::split(kind, bytes);
    Record::Events(bytes.as_chunks().0, mark)
}

/// Parses a watermark.
fn watermark(bytes: &[u8]) -> Record<'_> {
    // The ring has whole records.
    let mark = Watermark::from_bytes(bytes).unwrap_or(Watermark::unknown(0));
    Record::Watermark(mark)
}

/// Returns the number with which these bytes begin, such as that of an encoded event.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.first_chunk().copied().unwrap_or_default())
}
