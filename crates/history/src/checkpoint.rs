//! Writing of checkpoints.

use crate::as_of::AsOf;
use crate::block::{Block, Compressor};
use crate::error::LogError;
use crate::folder;
use crate::format::{Kind, SegmentHeader};
use fanfare_market::Event;
use std::path::Path;

/// Bytes of the records of a block of a checkpoint.
const BLOCK: usize = 1 << 20;

/// The most bytes of events in a record: a book may have more than a block.
const RECORD: usize = 16_384 * Event::SIZE;

/// The level of compression of a checkpoint, chosen for fast reading.
const LEVEL: i32 = 1;

/// Writes a checkpoint. Returns its size, in events.
pub(crate) fn write(folder: &Path, known: &AsOf) -> Result<u64, LogError> {
    let path = folder::view(folder, known.number);
    let header = SegmentHeader {
        ordinal: 0,
        first: known.number + 1,
        time: known.time,
        run: known.run.number,
        is_compacted: true,
    };
    let mut out = header.write().to_vec();
    let mut packer = Packer {
        block: Block::new(known.number + 1, known.time),
        compressor: Compressor::new(LEVEL).map_err(LogError::io(&path))?,
        out: &mut out,
        events: 0,
    };
    packer.pack(known).map_err(LogError::io(&path))?;
    let events = packer.events;
    folder::write_whole(&path, &out)?;
    Ok(events)
}

struct Packer<'a> {
    block: Block,
    compressor: Compressor,
    out: &'a mut Vec<u8>,
    events: u64,
}

impl Packer<'_> {
    fn pack(&mut self, known: &AsOf) -> std::io::Result<()> {
        let mut room = Vec::new();
        known.run.write(&mut room);
        self.block.record(Kind::Run, &room, 0);
        for (_, bytes) in known.directory().iter() {
            self.block.record(Kind::Instrument, bytes, 0);
            self.events += bytes.len().div_ceil(Event::SIZE) as u64;
            self.flush(BLOCK)?;
        }
        for instrument in known.view.numbers() {
            let Some(seen) = known.view.get(instrument) else {
                continue;
            };
            room.clear();
            let source = known.source_of(instrument);
            seen.show(instrument, source, &mut |event| {
                room.extend_from_slice(&event.to_bytes());
            });
            for events in room.chunks(RECORD) {
                self.block.record(Kind::Events, events, 0);
                self.flush(BLOCK)?;
            }
            self.events += (room.len() / Event::SIZE) as u64;
            if seen.is_lost() {
                let number = instrument.0.to_le_bytes();
                self.block.record(Kind::Lost, &number, 0);
            }
            self.flush(BLOCK)?;
        }
        if known.view.has_lost_others() {
            self.block.record(Kind::OthersLost, &[], 0);
        }
        for event in &known.of_all {
            self.block.record(Kind::Events, &event.to_bytes(), 0);
        }
        for former in known.formers().records(known.number + 1) {
            self.block.record(Kind::Former, &former, 0);
            self.flush(BLOCK)?;
        }
        self.block.record(Kind::End, &[], 0);
        self.flush(0)
    }

    /// Writes the block if it has more than `most` bytes.
    fn flush(&mut self, most: usize) -> std::io::Result<()> {
        if self.block.len() > most {
            self.block
                .finish_compressed(&mut self.compressor, self.out)?;
            self.block.clear();
        }
        Ok(())
    }
}
