//! The place in a log at which a reader begins.

use crate::block::{Unpacker, later};
use crate::error::LogError;
use crate::folder;
use crate::format::{Kind, Records, u64_at};
use crate::place::{Start, begin, readable, tail};
use crate::segment::{Found, Segment};
use fanfare_market::Event;
use std::path::Path;

/// Returns the number of the event that a reader begins with.
pub(crate) fn number_of(folder: &Path, start: Start) -> Result<u64, LogError> {
    match start {
        Start::First => Ok(begin(folder)?.number),
        Start::Number(number) => Ok(number.max(1)),
        Start::Time(time) => number_at(folder, time),
        Start::Now => Ok(tail(folder)?.next),
    }
}

/// Skips the blocks before the one with an event.
pub(super) fn hop(segment: &mut Segment, number: u64) -> Result<(), LogError> {
    while let Found::Block(header) = segment.peek()?
        && header.first < number
        && header.next() <= number
    {
        segment.pass(&header);
    }
    Ok(())
}

/// Skips the blocks before the one in which the log's time reaches `time`.
fn hop_to_time(segment: &mut Segment, time: u64) -> Result<(), LogError> {
    while let Found::Block(header) = segment.peek()? {
        let place = segment.at;
        segment.pass(&header);
        if !matches!(segment.peek()?, Found::Block(next) if next.time < time) {
            segment.at = place;
            break;
        }
    }
    Ok(())
}

/// Returns the number of the first event at `time` or later, or of the next one.
fn number_at(folder: &Path, time: u64) -> Result<u64, LogError> {
    let segments = folder::list(folder)?.segments;
    let mut from = segments.keys().next().copied();
    for segment in readable(folder, segments.keys().rev().copied()) {
        let header = segment?.header;
        if header.time < time {
            from = Some(header.ordinal);
            break;
        }
    }
    let Some(from) = from else {
        return Err(LogError::NoLog(folder.to_owned()));
    };
    let (mut room, mut unpacker) = (Vec::new(), Unpacker::new().map_err(LogError::io(folder))?);
    for segment in readable(folder, segments.range(from..).map(|(ordinal, _)| *ordinal)) {
        let mut segment = segment?;
        hop_to_time(&mut segment, time)?;
        loop {
            match segment.look()? {
                Found::Block(header) => {
                    let block = segment.block(&header);
                    if unpacker.records(&header, block, &mut room)
                        && let Some(number) = first_at(&room, header.time, time)
                    {
                        return Ok(number);
                    }
                    segment.pass(&header);
                }
                Found::Torn if segment.resync()? => {}
                Found::End | Found::Torn => break,
            }
        }
    }
    Ok(tail(folder)?.next)
}

/// Returns the number of the first event of records with which the log's time reaches `time`.
fn first_at(records: &[u8], mut clock: u64, time: u64) -> Option<u64> {
    // In both kinds of records the number comes first; a raw one has its time after it.
    for (kind, bytes) in Records(records) {
        let found = match kind {
            Some(Kind::Events) => {
                let mut events = bytes.as_chunks::<{ Event::SIZE }>().0.iter();
                let found = events.find(|event| {
                    clock = later(clock, event);
                    clock >= time
                });
                found.map(|event| u64_at(event, 0))
            }
            Some(Kind::Raw) => {
                clock = clock.max(u64_at(bytes, 8));
                (clock >= time).then(|| u64_at(bytes, 0))
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
    }
    None
}
