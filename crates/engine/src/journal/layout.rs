//! The layout of a segment file.
//!
//! A segment is one header page, then a table of 32-byte entries, then the messages without
//! anything between them. So the bytes to be transmitted are contiguous, however many messages they
//! are. All integers are little-endian.
//!
//! | offset | header |
//! |---|---|
//! | 0 | magic |
//! | 8 | version (u32), CRC-32 of bytes 16 to 1024 (u32) |
//! | 16 | segment number (u64), when the numbers last started at 1 (i64 ns UTC) |
//! | 32 | first number this segment's first new message can have (u64) |
//! | 40 | capacity in entries (u32) and in bytes of messages (u32) |
//! | 48 | entries in the segment before (u32) and the CRC of its last one (u32) |
//! | 56 | 0 (u32), length of the identity (u32), identity (UTF-8) |
//! | 2048 | cell: MsgSeqNum expected next from the counterparty |
//! | 2176 | cell: number of entries known to be on the disk |
//! | 2304 | cell: the boot of the machine in which the segment was last written |
//! | 2432 | cell: the durability with which it was last written, see `durability_code` |
//! | 2560 | cell: 1 once the segment after this one has begun, 0 until then |
//! | 2688 | cell: the number from which on later segments took messages back, if they did |
//! | 2816 | cell: where a reset stands that the session asks for, see `reset_code` |
//! | 2944 | cell: number of the oldest segment kept, while this one is the newest |
//! | 3072 | cell: the last application message in the segments dropped by then; 0 for none |
//! | 3200 | cell: the generation of the durability's cell for which the two before this hold |
//!
//! A version that does not write the last three cells, such as 0.2.0, writes the durability when it
//! opens a segment, which makes them void.
//!
//! | offset | entry |
//! |---|---|
//! | 0 | number of the message; of a copy or skip, the last number used (u64) |
//! | 8 | offset (u32) and length (u32) of the message |
//! | 16 | kind (u32), 0 (u64) |
//! | 28 | CRC-32 of these 28 bytes and the message, started from the CRC of the entry before |
//!
//! The CRCs form a chain: an entry is only valid after the entry that it was written after.

use super::Durability;
use crc32fast::Hasher;
use fanfare_fix::session::OurReset;
use fanfare_wire::UtcTimestamp;
use std::ops::Range;
use std::sync::atomic::{Ordering, compiler_fence};

pub(super) const HEADER_LEN: usize = 4096;
pub(super) const ENTRY_LEN: usize = 32;
pub(super) const MAX_IDENTITY: usize = 1024 - 64;
pub(super) const VERSION: u32 = 1;
pub(super) const TARGET_CELL: usize = 2048;
pub(super) const SYNCED_CELL: usize = 2176;
pub(super) const BOOT_CELL: usize = 2304;
pub(super) const DURABILITY_CELL: usize = 2432;
pub(super) const CONTINUED_CELL: usize = 2560;
pub(super) const TAKEN_BACK_CELL: usize = 2688;
pub(super) const RESET_CELL: usize = 2816;
pub(super) const OLDEST_CELL: usize = 2944;
pub(super) const DROPPED_CELL: usize = 3072;
pub(super) const NOTES_CELL: usize = 3200;

const MAGIC: &[u8; 8] = b"FANFJRNL";
const CHECKED: Range<usize> = 16..1024;
const CELL_SLOT: usize = 64;

/// The header of a segment; written once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    pub(super) number: u64,
    pub(super) created: UtcTimestamp,
    pub(super) first_sender: u64,
    pub(super) entries: u32,
    pub(super) data_len: u32,
    pub(super) previous_count: u32,
    pub(super) previous_crc: u32,
    pub(super) identity: String,
}

/// The reason why a header page cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BadHeader {
    /// All zeros, or damaged.
    Invalid,
    /// Written by an unknown version.
    Version(u32),
}

impl Header {
    /// Returns the size of the file.
    pub(super) const fn file_len(&self) -> u64 {
        HEADER_LEN as u64 + self.entries as u64 * ENTRY_LEN as u64 + self.data_len as u64
    }

    /// Returns the offset of the messages.
    pub(super) const fn data_start(&self) -> usize {
        HEADER_LEN + self.entries as usize * ENTRY_LEN
    }

    /// Writes the header into a zeroed page, and returns its CRC. The magic and the CRC are written
    /// last, so that an incomplete header is not valid.
    pub(super) fn write(&self, page: &mut [u8]) -> u32 {
        put(page, 16, &self.number.to_le_bytes());
        put(page, 24, &self.created.nanos().to_le_bytes());
        put(page, 32, &self.first_sender.to_le_bytes());
        put(page, 40, &self.entries.to_le_bytes());
        put(page, 44, &self.data_len.to_le_bytes());
        put(page, 48, &self.previous_count.to_le_bytes());
        put(page, 52, &self.previous_crc.to_le_bytes());
        put(page, 60, &(self.identity.len() as u32).to_le_bytes());
        put(page, 64, self.identity.as_bytes());
        let crc = crc32fast::hash(page.get(CHECKED).unwrap_or(&[]));
        compiler_fence(Ordering::Release);
        put(page, 8, &VERSION.to_le_bytes());
        put(page, 12, &crc.to_le_bytes());
        put(page, 0, MAGIC);
        crc
    }

    /// Reads a header page; also returns its CRC, which starts the chain.
    pub(super) fn read(page: &[u8]) -> Result<(Self, u32), BadHeader> {
        if page.len() < HEADER_LEN || !page.starts_with(MAGIC) {
            return Err(BadHeader::Invalid);
        }
        if u32_at(page, 8) != VERSION {
            return Err(BadHeader::Version(u32_at(page, 8)));
        }
        let crc = u32_at(page, 12);
        let identity_len = u32_at(page, 60) as usize;
        let identity = page
            .get(64..64 + identity_len.min(MAX_IDENTITY))
            .unwrap_or(&[]);
        if crc32fast::hash(page.get(CHECKED).unwrap_or(&[])) != crc || identity_len > MAX_IDENTITY {
            return Err(BadHeader::Invalid);
        }
        let header = Self {
            number: u64_at(page, 16),
            created: UtcTimestamp::from_nanos(u64_at(page, 24).cast_signed()),
            first_sender: u64_at(page, 32),
            entries: u32_at(page, 40),
            data_len: u32_at(page, 44),
            previous_count: u32_at(page, 48),
            previous_crc: u32_at(page, 52),
            identity: String::from_utf8_lossy(identity).into_owned(),
        };
        Ok((header, crc))
    }
}

/// The meaning of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// An application message.
    App,
    /// An administrative message, transmitted at once and never resent.
    Admin,
    /// An administrative message that waited until a resend was complete.
    AdminHeld,
    /// A message sent again, or a gap fill: uses no number. Versions up to 0.1 of 2026-11 wrote
    /// them; they are read and skipped.
    Copy,
    /// No message: the numbers up to this one count as used.
    Skip,
}

impl EntryKind {
    const ALL: [Self; 5] = [
        Self::App,
        Self::Admin,
        Self::AdminHeld,
        Self::Copy,
        Self::Skip,
    ];

    const fn code(self) -> u32 {
        self as u32 + 1
    }

    fn of_code(code: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.code() == code)
    }

    /// Returns whether the message can be requested again.
    #[must_use]
    pub const fn is_kept(self) -> bool {
        matches!(self, Self::App | Self::AdminHeld)
    }
}

/// One entry of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) seq: u64,
    pub(super) offset: u32,
    pub(super) len: u32,
    pub(super) kind: EntryKind,
}

impl Entry {
    pub(super) const fn range(&self) -> Range<usize> {
        self.offset as usize..self.offset as usize + self.len as usize
    }

    /// Returns the bytes of the entry, after an entry with CRC `previous`, and its own CRC.
    pub(super) fn encode(&self, previous: u32, message: &[u8]) -> ([u8; ENTRY_LEN], u32) {
        let mut bytes = [0; ENTRY_LEN];
        put(&mut bytes, 0, &self.seq.to_le_bytes());
        put(&mut bytes, 8, &self.offset.to_le_bytes());
        put(&mut bytes, 12, &self.len.to_le_bytes());
        put(&mut bytes, 16, &self.kind.code().to_le_bytes());
        let crc = chain(previous, &bytes, message);
        put(&mut bytes, 28, &crc.to_le_bytes());
        (bytes, crc)
    }

    /// Parses the bytes of an entry and its CRC, which is not checked; `None` if they are no entry.
    pub(super) fn decode(bytes: &[u8]) -> Option<(Self, u32)> {
        let kind = EntryKind::of_code(u32_at(bytes, 16))?;
        let (offset, len) = (u32_at(bytes, 8), u32_at(bytes, 12));
        Some((
            Self {
                seq: u64_at(bytes, 0),
                offset,
                len,
                kind,
            },
            u32_at(bytes, 28),
        ))
    }
}

/// Returns the CRC of an entry, over its first 28 bytes and its message, chained to `previous`.
pub(super) fn chain(previous: u32, entry: &[u8], message: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(previous);
    hasher.update(entry.get(..ENTRY_LEN - 4).unwrap_or(&[]));
    hasher.update(message);
    hasher.finalize()
}

/// Encodes a durability: 1 is none, 2 every message; n + 2 is every n messages. 0 does not occur.
pub(super) const fn durability_code(durability: Durability) -> u64 {
    match durability {
        Durability::None => 1,
        Durability::Every => 2,
        Durability::EveryN(n) => n as u64 + 2,
    }
}

/// Decodes a durability; every 0 messages is every message.
pub(super) fn durability_of(code: u64) -> Option<Durability> {
    match code {
        0 => None,
        1 => Some(Durability::None),
        2 => Some(Durability::Every),
        n => u32::try_from(n - 2).ok().map(Durability::EveryN),
    }
}

/// Encodes where a reset stands that the session asks for.
pub(super) const fn reset_code(reset: OurReset) -> u64 {
    match reset {
        OurReset::None => 0,
        OurReset::Asked => 1,
        OurReset::Begun => 2,
    }
}

/// Decodes where a reset stands that the session asks for.
pub(super) const fn reset_of(code: u64) -> OurReset {
    match code {
        1 => OurReset::Asked,
        2 => OurReset::Begun,
        _ => OurReset::None,
    }
}

/// Reads a cell, a number that changes often, in two slots of which one is always complete. Returns
/// the generation and the value of the newer complete one.
pub(super) fn read_cell(page: &[u8], cell: usize) -> Option<(u32, u64)> {
    let slot = |at: usize| {
        let (value, generation, check) = (
            u64_at(page, at),
            u32_at(page, at + 8),
            u32_at(page, at + 12),
        );
        (check == cell_check(value, generation)).then_some((generation, value))
    };
    match (slot(cell), slot(cell + CELL_SLOT)) {
        (Some(a), Some(b)) if b.0.wrapping_sub(a.0).cast_signed() > 0 => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// Writes a cell's next value; `generation` is one more than the last one's. A kill during the
/// write leaves the other slot, with the value before.
pub(super) fn write_cell(page: &mut [u8], cell: usize, generation: u32, value: u64) {
    let at = cell + CELL_SLOT * (generation & 1) as usize;
    put(page, at + 12, &0u32.to_le_bytes());
    compiler_fence(Ordering::Release);
    put(page, at, &value.to_le_bytes());
    put(page, at + 8, &generation.to_le_bytes());
    compiler_fence(Ordering::Release);
    put(page, at + 12, &cell_check(value, generation).to_le_bytes());
}

/// Writes the next value of a cell that seldom changes.
pub(super) fn rewrite_cell(page: &mut [u8], cell: usize, value: u64) {
    let generation = read_cell(page, cell).map_or(0, |(last, _)| last);
    write_cell(page, cell, generation.wrapping_add(1), value);
}

/// Returns the check of a slot. It is never 0, so that an empty or incomplete slot is invalid.
const fn cell_check(value: u64, generation: u32) -> u32 {
    let mixed = (value ^ (generation as u64).rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 32) as u32 | 1
}

pub(super) fn put(bytes: &mut [u8], at: usize, value: &[u8]) {
    if let Some(room) = bytes.get_mut(at..at + value.len()) {
        room.copy_from_slice(value);
    }
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|b| b.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> Header {
        Header {
            number: 7,
            created: UtcTimestamp::from_nanos(-5),
            first_sender: 1 << 60,
            entries: 100,
            data_len: 9000,
            previous_count: 3,
            previous_crc: 0xdead_beef,
            identity: "FIX.4.4:A->B".to_owned(),
        }
    }

    #[test]
    fn a_header_comes_back_and_any_changed_byte_is_noticed() {
        let mut page = vec![0; HEADER_LEN];
        assert_eq!(Header::read(&page), Err(BadHeader::Invalid));
        let crc = header().write(&mut page);
        assert_eq!(Header::read(&page), Ok((header(), crc)));
        for at in 0..1024 {
            let mut damaged = page.clone();
            damaged[at] ^= 0x40;
            assert!(Header::read(&damaged).is_err(), "byte {at}");
        }
        for len in 0..HEADER_LEN {
            assert!(Header::read(&page[..len]).is_err());
        }
    }

    #[test]
    fn a_cell_survives_a_kill_between_any_two_bytes() {
        let mut page = vec![0; HEADER_LEN];
        assert_eq!(read_cell(&page, TARGET_CELL), None);
        for generation in 1..200u32 {
            let value = u64::from(generation) * 0x0101_0101_0101;
            let before = page.clone();
            write_cell(&mut page, TARGET_CELL, generation, value);
            assert_eq!(read_cell(&page, TARGET_CELL), Some((generation, value)));
            let at = TARGET_CELL + CELL_SLOT * (generation & 1) as usize;
            for done in 0..12 {
                let mut torn = before.clone();
                torn[at + 12..at + 16].fill(0);
                torn[at..at + done].copy_from_slice(&page[at..at + done]);
                assert_eq!(
                    read_cell(&torn, TARGET_CELL),
                    read_cell(&before, TARGET_CELL)
                );
            }
        }
    }

    #[test]
    fn a_cell_goes_on_when_the_generation_wraps() {
        let mut page = vec![0; HEADER_LEN];
        write_cell(&mut page, SYNCED_CELL, u32::MAX, 1);
        write_cell(&mut page, SYNCED_CELL, 0, 2);
        assert_eq!(read_cell(&page, SYNCED_CELL), Some((0, 2)));
    }

    #[test]
    fn a_durability_comes_back() {
        let known = [Durability::None, Durability::Every, Durability::EveryN(1)];
        for durability in known.into_iter().chain([Durability::EveryN(u32::MAX)]) {
            assert_eq!(durability_of(durability_code(durability)), Some(durability));
        }
        assert_eq!((durability_of(0), durability_of(u64::MAX)), (None, None));
    }

    #[test]
    fn an_entry_is_valid_only_behind_its_predecessor() {
        let entry = Entry {
            seq: 9,
            offset: 0,
            len: 3,
            kind: EntryKind::App,
        };
        let (bytes, crc) = entry.encode(1, b"abc");
        assert_eq!(Entry::decode(&bytes), Some((entry, crc)));
        assert_eq!(chain(1, &bytes, b"abc"), crc);
        assert_ne!(chain(2, &bytes, b"abc"), crc);
        assert_ne!(chain(1, &bytes, b"abd"), crc);
        assert_eq!(Entry::decode(&[0; ENTRY_LEN]), None);
    }
}
