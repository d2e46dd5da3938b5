//! Blocks: records that are written, checked and found together.

use crate::columns::Columns;
use crate::format::{
    BLOCK_HEADER, BlockHeader, Coding, Kind, MOST_BLOCK, RECORD_HEADER, push_record, u64_at,
};
use crate::raw::Raw;
use fanfare_market::Event;
use std::io;

/// A block that is being filled.
#[derive(Debug)]
pub(crate) struct Block {
    /// The header, to be filled in, then the records.
    bytes: Vec<u8>,
    first: u64,
    time: u64,
    events: u32,
    /// The number of the event after it, and the time of the log.
    next: u64,
    clock: u64,
}

impl Block {
    /// Makes an empty block, whose first event has the number `next`, at the log's time `clock`.
    pub(crate) fn new(next: u64, clock: u64) -> Self {
        let mut block = Self {
            bytes: Vec::new(),
            first: next,
            time: clock,
            events: 0,
            next,
            clock,
        };
        block.clear();
        block
    }

    /// Empties the block, for the events after it.
    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.resize(BLOCK_HEADER, 0);
        (self.first, self.time, self.events) = (self.next, self.clock, 0);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.bytes.len() <= BLOCK_HEADER
    }

    /// Returns the number of bytes of its records.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - BLOCK_HEADER
    }

    /// Returns the number of the event after it.
    pub(crate) const fn next(&self) -> u64 {
        self.next
    }

    /// Returns the latest `ts_recv` so far, 0 if there is none.
    pub(crate) const fn clock(&self) -> u64 {
        self.clock
    }

    /// Appends the events of one message.
    #[inline]
    pub(crate) fn events(&mut self, events: &[[u8; Event::SIZE]]) {
        let (Some(first), Some(last)) = (events.first(), events.last()) else {
            return;
        };
        if self.events == 0 {
            self.first = u64_at(first, 0);
        }
        push_record(&mut self.bytes, Kind::Events, &[events.as_flattened()]);
        self.events += events.len() as u32;
        self.next = u64_at(last, 0).saturating_add(1);
        for event in events {
            self.clock = later(self.clock, event);
        }
    }

    /// Sets the number of the next event, and the least time of the log. The block is empty.
    pub(crate) fn skip_to(&mut self, number: u64, time: u64) {
        (self.next, self.clock) = (self.next.max(number), self.clock.max(time));
        (self.first, self.time) = (self.next, self.clock);
    }

    /// Appends a datagram or a message, with the next number.
    pub(crate) fn raw(&mut self, raw: &Raw<'_>) {
        let header = raw.header(self.next);
        push_record(&mut self.bytes, Kind::Raw, &[&header, raw.bytes]);
        if self.events == 0 {
            self.first = self.next;
        }
        self.events += 1;
        self.next = self.next.saturating_add(1);
        self.clock = self.clock.max(raw.received);
    }

    /// Appends another record. Numbers up to `next` are used after it.
    pub(crate) fn record(&mut self, kind: Kind, bytes: &[u8], next: u64) {
        push_record(&mut self.bytes, kind, &[bytes]);
        self.next = self.next.max(next);
        if self.events == 0 {
            self.first = self.next;
        }
    }

    fn header(&self, stored: usize, coding: Coding) -> BlockHeader {
        BlockHeader {
            stored: stored as u32,
            plain: self.len() as u32,
            coding,
            first: self.first,
            time: self.time,
            events: self.events,
        }
    }

    /// Returns the block as it is written to a file.
    pub(crate) fn finish(&mut self) -> &[u8] {
        let header = self.header(self.len(), Coding::Plain);
        header.write(&mut self.bytes);
        &self.bytes
    }

    /// Appends the block to `out`, compressed.
    ///
    /// # Errors
    /// The compressor fails, or the block is longer than a reader takes.
    pub(crate) fn finish_compressed(
        &self,
        room: &mut Compressor,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let records = self.bytes.get(BLOCK_HEADER..).unwrap_or(&[]);
        room.columns
            .write(records, self.first, self.time, &mut room.coded);
        let start = out.len();
        out.resize(start + BLOCK_HEADER, 0);
        let bound = zstd::zstd_safe::compress_bound(room.coded.len());
        room.packed.resize(bound, 0);
        let len = room
            .zstd
            .compress_to_buffer(&room.coded, &mut room.packed)?;
        if records.len().max(len) > MOST_BLOCK {
            return Err(io::Error::other("the records of a block are too long"));
        }
        out.extend_from_slice(room.packed.get(..len).unwrap_or(&[]));
        let header = self.header(len, Coding::Columns);
        header.write(out.get_mut(start..).unwrap_or(&mut []));
        Ok(())
    }
}

/// Returns the later of the log's time and an event's `ts_recv`, if that is known.
#[inline]
pub(crate) fn later(clock: u64, event: &[u8; Event::SIZE]) -> u64 {
    match u64_at(event, 16) {
        Event::NO_TIME => clock,
        time => clock.max(time),
    }
}

/// The compressor of blocks, with its buffers.
pub(crate) struct Compressor {
    columns: Columns,
    coded: Vec<u8>,
    packed: Vec<u8>,
    zstd: zstd::bulk::Compressor<'static>,
}

impl Compressor {
    /// # Errors
    /// The level does not exist, or memory is exhausted.
    pub(crate) fn new(level: i32) -> io::Result<Self> {
        Ok(Self {
            columns: Columns::default(),
            coded: Vec::new(),
            packed: Vec::new(),
            zstd: zstd::bulk::Compressor::new(level)?,
        })
    }
}

/// The decoder of the records of blocks, with its buffers.
pub(crate) struct Unpacker {
    columns: Columns,
    coded: Vec<u8>,
    zstd: zstd::bulk::Decompressor<'static>,
}

impl Unpacker {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            columns: Columns::default(),
            coded: Vec::new(),
            zstd: zstd::bulk::Decompressor::new()?,
        })
    }

    /// Writes the records of a whole block into `out`, which is emptied first; returns false if
    /// they cannot be read.
    pub(crate) fn records(
        &mut self,
        header: &BlockHeader,
        block: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let stored = block.get(BLOCK_HEADER..).unwrap_or(&[]);
        let plain = header.plain as usize;
        out.clear();
        if header.coding == Coding::Plain {
            out.extend_from_slice(stored);
            return stored.len() == plain;
        }
        // By columns an event is at most 10 bytes longer, and a record shorter.
        let most = plain + plain / 4 + 64 + RECORD_HEADER;
        self.coded.clear();
        self.coded.reserve(most);
        let unpacked = self.zstd.decompress_to_buffer(stored, &mut self.coded);
        let at = (header.first, header.time);
        unpacked.is_ok()
            && self.columns.read(&self.coded, at, plain, out).is_ok()
            && out.len() == plain
    }
}
