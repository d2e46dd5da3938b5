//! The format of a log: segments of blocks of records. All integers are little-endian.
//!
//! | offset | header of a segment, 64 bytes |
//! |---|---|
//! | 0 | `FANFLOG`, 0 |
//! | 8 | version (u32), CRC-32 of bytes 16 to 64 (u32) |
//! | 16 | ordinal of the segment (u64) |
//! | 24 | number of the first event (u64) |
//! | 32 | time of the log (u64): the latest `ts_recv` before it, 0 if there is none |
//! | 40 | run of the plant that wrote it (u64), from 1; 0 if a repair found none |
//! | 48 | 1 if it was compacted (u64), 0 (u64) |
//!
//! | offset | header of a block, 40 bytes |
//! |---|---|
//! | 0 | bytes after the header (u32), CRC-32 of all that follows this field (u32) |
//! | 8 | bytes of its records (u32), [`Coding`] (u32) |
//! | 16 | number of its first event, or of the next one (u64) |
//! | 24 | time of the log before it (u64) |
//! | 32 | events (u32), 0 (u32) |
//!
//! A record is its [`Kind`] (u32), the bytes that follow (u32), and these, with zeros up to a
//! multiple of 8.

use fanfare_market::Event;

pub(crate) const VERSION: u32 = 1;
pub(crate) const SEGMENT_HEADER: usize = 64;
pub(crate) const BLOCK_HEADER: usize = 40;
pub(crate) const RECORD_HEADER: usize = 8;

/// The most bytes of the records of a block, and of what they are on disk.
pub(crate) const MOST_BLOCK: usize = 4 << 20;

const MAGIC: [u8; 8] = *b"FANFLOG\0";

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct SegmentHeader {
    pub(crate) ordinal: u64,
    pub(crate) first: u64,
    pub(crate) time: u64,
    pub(crate) run: u64,
    pub(crate) is_compacted: bool,
}

/// The reason why the bytes are no header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoHeader {
    /// The header is incomplete or damaged.
    Invalid(&'static str),
    /// The version is unknown.
    Version(u32),
}

impl SegmentHeader {
    pub(crate) fn write(&self) -> [u8; SEGMENT_HEADER] {
        let mut bytes = [0; SEGMENT_HEADER];
        put(&mut bytes, 16, &self.ordinal.to_le_bytes());
        put(&mut bytes, 24, &self.first.to_le_bytes());
        put(&mut bytes, 32, &self.time.to_le_bytes());
        put(&mut bytes, 40, &self.run.to_le_bytes());
        put(&mut bytes, 48, &u64::from(self.is_compacted).to_le_bytes());
        let crc = crc32fast::hash(&bytes[16..]);
        put(&mut bytes, 0, &MAGIC);
        put(&mut bytes, 8, &VERSION.to_le_bytes());
        put(&mut bytes, 12, &crc.to_le_bytes());
        bytes
    }

    pub(crate) fn read(bytes: &[u8]) -> Result<Self, NoHeader> {
        let Some(bytes) = bytes.get(..SEGMENT_HEADER) else {
            return Err(NoHeader::Invalid("the file is shorter than its header"));
        };
        if !bytes.starts_with(&MAGIC) {
            return Err(NoHeader::Invalid("the file does not begin with FANFLOG"));
        }
        let version = u32_at(bytes, 8);
        let is_whole = crc32fast::hash(&bytes[16..]) == u32_at(bytes, 12);
        // The CRC of a later version has to include the version: with this one, that alone is
        // damaged.
        if version > VERSION && !is_whole {
            return Err(NoHeader::Version(version));
        }
        if version != VERSION || !is_whole {
            return Err(NoHeader::Invalid("the header is damaged"));
        }
        Ok(Self {
            ordinal: u64_at(bytes, 16),
            first: u64_at(bytes, 24),
            time: u64_at(bytes, 32),
            run: u64_at(bytes, 40),
            is_compacted: u64_at(bytes, 48) != 0,
        })
    }
}

/// The encoding of a block's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub(crate) enum Coding {
    /// Unchanged.
    #[default]
    Plain = 0,
    /// Events by columns ([`crate::columns`]), compressed by zstd.
    Columns = 1,
}

/// The header of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BlockHeader {
    /// The number of bytes after the header.
    pub(crate) stored: u32,
    /// The number of bytes of the records.
    pub(crate) plain: u32,
    pub(crate) coding: Coding,
    /// The number of the first event, or of the next one.
    pub(crate) first: u64,
    /// The time of the log before it.
    pub(crate) time: u64,
    pub(crate) events: u32,
}

impl BlockHeader {
    /// Returns the number of the event after the block.
    pub(crate) const fn next(&self) -> u64 {
        self.first.saturating_add(self.events as u64)
    }

    /// Returns the number of bytes of the block in its file.
    pub(crate) const fn size(&self) -> u64 {
        BLOCK_HEADER as u64 + self.stored as u64
    }

    /// Writes the header in front of the rest of the block.
    pub(crate) fn write(&self, block: &mut [u8]) {
        put(block, 0, &self.stored.to_le_bytes());
        put(block, 8, &self.plain.to_le_bytes());
        put(block, 12, &(self.coding as u32).to_le_bytes());
        put(block, 16, &self.first.to_le_bytes());
        put(block, 24, &self.time.to_le_bytes());
        put(block, 32, &u64::from(self.events).to_le_bytes());
        let crc = crc32fast::hash(block.get(8..).unwrap_or(&[]));
        put(block, 4, &crc.to_le_bytes());
    }

    /// Reads a header, without its CRC; `None` if the bytes cannot be one.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..BLOCK_HEADER)?;
        let coding = match u32_at(bytes, 12) {
            0 => Coding::Plain,
            1 => Coding::Columns,
            _ => return None,
        };
        let header = Self {
            stored: u32_at(bytes, 0),
            plain: u32_at(bytes, 8),
            coding,
            first: u64_at(bytes, 16),
            time: u64_at(bytes, 24),
            events: u32_at(bytes, 32),
        };
        let fits = |len: u32| (1..=MOST_BLOCK).contains(&(len as usize));
        let events = header.events as usize * Event::SIZE;
        (fits(header.stored) && fits(header.plain) && events <= MOST_BLOCK).then_some(header)
    }

    /// Returns whether the CRC of a whole block is right.
    pub(crate) fn is_whole(block: &[u8]) -> bool {
        let (Some(rest), true) = (block.get(8..), block.len() >= BLOCK_HEADER) else {
            return false;
        };
        crc32fast::hash(rest) == u32_at(block, 4)
    }
}

/// The kind of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Kind {
    /// Events of one message, 64 bytes each. After a [`Kind::Part`], the rest is in the next such
    /// record.
    Events = 1,
    /// An instrument, in the form of `Instrument::write`.
    Instrument = 2,
    /// Events that were lost on their way to the log: the numbers of the first and the last one.
    Lost = 3,
    /// The run of the plant that wrote the following records; see [`crate::run::Run`].
    Run = 4,
    /// The plant has ended in good order.
    End = 5,
    /// A datagram or a message; see [`crate::raw::Raw`].
    Raw = 6,
    /// The time at which or after which every later event of a trade arrived (u64), and the time
    /// from which the clock was set back to it (u64): 0 if it was not, `u64::MAX` or no bytes if
    /// that is not known. Versions up to 0.3.0 write and read the first time alone. Of several in
    /// front of an event, these versions read the last one.
    Watermark = 7,
    /// The record of events that begins with this number (u64), and follows, does not end its
    /// message. Fanfare 0.1.0 does not write it: each record of a long message looks like a message
    /// of its own.
    Part = 8,
    /// In a checkpoint: the books of instruments without events in it are not known, as events were
    /// lost. Versions up to 0.2.0 do not write it, and ignore it.
    OthersLost = 9,
    /// In a checkpoint: an instrument as it was at the last event, by its number (u32), where its
    /// [`Kind::Instrument`] is that of the next event; without more bytes if it was not known.
    /// Versions up to 0.2.0 do not write it, and ignore it.
    Former = 10,
    /// Bytes, or a whole segment, that a repair could not read were here, behind the records before
    /// and in front of the next block: they may have had instruments. Versions up to 0.2.0 do not
    /// write it, and ignore it.
    Torn = 11,
}

impl Kind {
    const fn of(code: u32) -> Option<Self> {
        Some(match code {
            1 => Self::Events,
            2 => Self::Instrument,
            3 => Self::Lost,
            4 => Self::Run,
            5 => Self::End,
            6 => Self::Raw,
            7 => Self::Watermark,
            8 => Self::Part,
            9 => Self::OthersLost,
            10 => Self::Former,
            11 => Self::Torn,
            _ => return None,
        })
    }
}

/// Appends a record of these pieces, one after the other.
pub(crate) fn push_record(out: &mut Vec<u8>, kind: Kind, pieces: &[&[u8]]) {
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    out.extend_from_slice(&(kind as u32).to_le_bytes());
    out.extend_from_slice(&(len as u32).to_le_bytes());
    for piece in pieces {
        out.extend_from_slice(piece);
    }
    out.resize(out.len().next_multiple_of(8), 0);
}

/// The records of a block, in order, up to the first incomplete one.
#[derive(Clone)]
pub(crate) struct Records<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Records<'a> {
    /// The code of the kind, and the bytes.
    type Item = (Option<Kind>, &'a [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (header, rest) = self.0.split_at_checked(RECORD_HEADER)?;
        let len = u32_at(header, 4) as usize;
        let bytes = rest.get(..len)?;
        self.0 = rest.get(len.next_multiple_of(8)..).unwrap_or(&[]);
        Some((Kind::of(u32_at(header, 0)), bytes))
    }
}

pub(crate) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(room) = bytes.get_mut(at..at + value.len()) {
        room.copy_from_slice(value);
    }
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segments_header_comes_back_and_any_changed_byte_is_noticed() {
        let header = SegmentHeader {
            ordinal: 7,
            first: 1 << 40,
            time: 5,
            run: 3,
            is_compacted: true,
        };
        let bytes = header.write();
        assert_eq!(SegmentHeader::read(&bytes), Ok(header));
        for at in 0..SEGMENT_HEADER {
            let mut damaged = bytes;
            damaged[at] ^= 0x40;
            assert!(SegmentHeader::read(&damaged).is_err(), "byte {at}");
            assert!(SegmentHeader::read(&bytes[..at]).is_err());
        }
    }

    #[test]
    fn a_block_comes_back_and_any_changed_byte_is_noticed() {
        let mut block = vec![0; BLOCK_HEADER];
        push_record(&mut block, Kind::Lost, &[&[1, 2, 3]]);
        push_record(&mut block, Kind::End, &[]);
        let header = BlockHeader {
            stored: (block.len() - BLOCK_HEADER) as u32,
            plain: (block.len() - BLOCK_HEADER) as u32,
            coding: Coding::Plain,
            first: 9,
            time: 8,
            events: 7,
        };
        header.write(&mut block);
        assert_eq!(BlockHeader::read(&block), Some(header));
        assert!(BlockHeader::is_whole(&block));
        let records: Vec<_> = Records(&block[BLOCK_HEADER..]).collect();
        let expected: [(Option<Kind>, &[u8]); 2] =
            [(Some(Kind::Lost), &[1, 2, 3]), (Some(Kind::End), &[])];
        assert_eq!(records, expected);
        for at in 4..block.len() {
            let mut damaged = block.clone();
            damaged[at] ^= 0x10;
            assert!(!BlockHeader::is_whole(&damaged), "byte {at}");
        }
    }
}
