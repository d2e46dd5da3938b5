//! A mapped segment file.

mod notes;

use super::error::OpenError;
use super::layout::{
    BOOT_CELL, BadHeader, CONTINUED_CELL, DROPPED_CELL, ENTRY_LEN, Entry, EntryKind, HEADER_LEN,
    Header, OLDEST_CELL, RESET_CELL, SYNCED_CELL, TARGET_CELL, chain, read_cell, reset_code,
    u32_at, write_cell,
};
use crate::private;
use crate::sys::map::{self, Mapping};
use fanfare_fix::session::{Kind, OurReset, Search, Stored};
use notes::boot;
use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{Ordering, compiler_fence};

/// What a segment takes over from the one before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Inherited {
    /// MsgSeqNum(34) expected next from the counterparty.
    pub(super) target: u64,
    /// Where a reset stands that the session asks for.
    pub(super) reset: OurReset,
    /// The number of the oldest segment kept.
    pub(super) oldest: u64,
    /// The number of the last application message in the segments dropped.
    pub(super) dropped: u64,
}

impl Inherited {
    /// The state of a journal with one segment.
    pub(super) const FIRST: Self = Self {
        target: 1,
        reset: OurReset::None,
        oldest: 1,
        dropped: 0,
    };
}

/// A file on the disk with all its space allocated, mapped and prefaulted, but without a header:
/// not part of the journal yet. Making it a segment takes no memory and no system call.
pub(super) struct Blank(Box<Segment>);

impl Blank {
    /// Makes the file. A failure leaves nothing behind.
    pub(super) fn create(path: &Path, len: u64, identity: &str) -> io::Result<Self> {
        let mut options = private::file_options();
        options.read(true).write(true).create(true).truncate(true);
        let file = options.open(path)?;
        let make = || {
            map::allocate(&file, len)?;
            map::zero(&file, len)?;
            let mut map = Mapping::new(&file, len as usize, true)?;
            map.prefault(0..len as usize)?;
            Ok(map)
        };
        match make() {
            Ok(map) => Ok(Self::of(path, file, map, identity)),
            Err(error) => {
                // The first error is the one to return.
                let _ = std::fs::remove_file(path);
                Err(error)
            }
        }
    }

    fn of(path: &Path, file: File, mut map: Mapping, identity: &str) -> Self {
        write_cell(map.bytes_mut(), BOOT_CELL, 1, boot());
        let header = Header {
            identity: identity.to_owned(),
            ..Header::default()
        };
        Self(Box::new(Segment {
            target_generation: 1,
            prefaulted: u32::MAX,
            ..Segment::new(path, file, map, header, 0)
        }))
    }

    /// Returns the size of the file.
    pub(super) const fn len(&self) -> u32 {
        self.0.len()
    }

    /// Makes the file a segment of the journal. The identity in `header` is that which the file was
    /// made for.
    pub(super) fn activate(self, header: Header, state: &Inherited) -> Box<Segment> {
        let mut segment = self.0;
        let identity = std::mem::take(&mut segment.header.identity);
        segment.header = Header { identity, ..header };
        segment.next_sender = segment.header.first_sender;
        let Segment { map, header, .. } = &mut *segment;
        let page = map.bytes_mut();
        write_cell(page, TARGET_CELL, 1, state.target);
        write_cell(page, SYNCED_CELL, 1, 0);
        write_cell(page, CONTINUED_CELL, 1, 0);
        write_cell(page, RESET_CELL, 1, reset_code(state.reset));
        write_cell(page, OLDEST_CELL, 1, state.oldest);
        write_cell(page, DROPPED_CELL, 1, state.dropped);
        compiler_fence(Ordering::Release);
        let crc = header.write(page.get_mut(..HEADER_LEN).unwrap_or(&mut []));
        (segment.crc, segment.header_crc) = (crc, crc);
        segment
    }

    /// Removes a file that is not needed.
    pub(super) fn discard(self) {
        // A file that stays is removed at the next opening.
        let _ = std::fs::remove_file(&self.0.path);
    }
}

/// Most entries that one search reads, as a run of messages that are not kept can be long.
const LOOK_AT: u32 = 32;

/// The length of the rehearsed message.
const USUAL_MESSAGE: u32 = 160;

/// A segment of the journal.
pub(super) struct Segment {
    pub(super) path: PathBuf,
    /// Open while the segment is written to.
    file: Option<File>,
    map: Mapping,
    pub(super) header: Header,
    /// The number of entries.
    pub(super) count: u32,
    /// The number of bytes of messages.
    pub(super) data_end: u32,
    /// CRC of the last entry, or of the header: the next entry continues from it.
    pub(super) crc: u32,
    header_crc: u32,
    /// Number of the next message after this segment's entries.
    pub(super) next_sender: u64,
    /// Messages from this number on were taken back by a later segment.
    pub(super) visible_below: u64,
    target_generation: u32,
    /// The number of message bytes, from the start, whose pages are in memory.
    prefaulted: u32,
    /// The size of the file, if it was cut short. The map is a copy then.
    len: Option<u64>,
}

/// Bytes prefaulted in one step ahead of the messages, in a segment that was reopened.
const STEP: u32 = 64 << 10;

/// The result of a check of a segment's entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scan {
    /// The number of entries up to the first that is not valid.
    pub(super) valid: u32,
    /// The index after the last entry that is not all zeros.
    pub(super) used: u32,
    /// Whether an entry after the first invalid one is itself intact.
    pub(super) more_behind: bool,
}

impl Segment {
    /// Maps an existing file and reads its header, but trusts none of its entries yet. A file that
    /// was cut short is copied into memory. Unless `writable`, every file is copied, because it may
    /// be in use.
    pub(super) fn open(path: &Path, writable: bool) -> Result<Result<Self, BadHeader>, OpenError> {
        let io_error = |source| OpenError::io(path, source);
        let file = OpenOptions::new()
            .read(true)
            .write(writable)
            .open(path)
            .map_err(io_error)?;
        let len = file.metadata().map_err(io_error)?.len();
        if len < HEADER_LEN as u64 {
            return Ok(Err(BadHeader::Invalid));
        }
        let page = Mapping::copy(&file, HEADER_LEN).map_err(io_error)?;
        let (header, crc) = match Header::read(page.bytes()) {
            Ok(read) => read,
            Err(bad) => return Ok(Err(bad)),
        };
        let whole = header.file_len();
        let map = if writable && len >= whole {
            Mapping::new(&file, whole as usize, true)
        } else {
            Mapping::copy(&file, len.min(whole) as usize)
        };
        let map = map.map_err(io_error)?;
        let target = read_cell(page.bytes(), TARGET_CELL);
        Ok(Ok(Self {
            target_generation: target.map_or(0, |(generation, _)| generation),
            len: (len < whole).then_some(len),
            ..Self::new(path, file, map, header, crc)
        }))
    }

    /// Creates an empty segment; `crc` is the checksum of the header.
    fn new(path: &Path, file: File, map: Mapping, header: Header, crc: u32) -> Self {
        Self {
            path: path.to_owned(),
            file: Some(file),
            map,
            count: 0,
            data_end: 0,
            crc,
            header_crc: crc,
            next_sender: header.first_sender,
            visible_below: u64::MAX,
            target_generation: 0,
            prefaulted: 0,
            len: None,
            header,
        }
    }

    /// Returns the size of the file, if it was cut short.
    pub(super) const fn cut_to(&self) -> Option<u64> {
        self.len
    }

    /// Returns whether a part of the table of entries is lost, and with it the number of entries.
    pub(super) fn has_cut_table(&self) -> bool {
        self.len
            .is_some_and(|len| len < self.header.data_start() as u64)
    }

    /// Extends a file that was cut short to its length, with zeros, and maps it.
    pub(super) fn stretch(&mut self) -> io::Result<()> {
        if self.len.take().is_none() {
            return Ok(());
        }
        let whole = self.header.file_len();
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        map::allocate(file, whole)?;
        self.map = Mapping::new(file, whole as usize, true)?;
        Ok(())
    }

    /// Returns the next number according to the entries after the valid ones, as far as these are
    /// consecutive: their messages are lost, but their numbers were used. Each further entry that
    /// was on the disk counts as one number.
    pub(super) fn claimed_next(&self) -> u64 {
        let (mut next, mut end, mut index) = (self.next_sender, self.data_end, self.count);
        while let Some((entry, _)) = self.entry_bytes(index).and_then(Entry::decode) {
            let follows = match entry.kind {
                EntryKind::Copy => entry.seq + 1 == next,
                EntryKind::Skip => entry.seq >= next && entry.len == 0,
                _ => entry.seq == next,
            };
            let Some(behind) = entry.offset.checked_add(entry.len) else {
                break;
            };
            if !follows || entry.offset != end || behind > self.header.data_len {
                break;
            }
            (next, end, index) = (entry.seq.saturating_add(1), behind, index + 1);
        }
        next.saturating_add(self.synced().saturating_sub(index.into()))
    }

    /// Returns the size of the file.
    pub(super) const fn len(&self) -> u32 {
        self.map.len() as u32
    }

    /// Returns whether an access has shown that the file was cut short since it was mapped, or
    /// cannot be read any more.
    pub(super) fn is_broken(&self) -> bool {
        self.map.is_broken()
    }

    /// Returns whether a file without a valid header was never a segment: empty, or a header that a
    /// kill cut off with no entry after it, or cut short with no header in front of its cells.
    pub(super) fn is_blank(path: &Path) -> io::Result<bool> {
        let file = File::open(path)?;
        let len = file.metadata()?.len();
        if len == 0 {
            return Ok(true);
        }
        let whole = HEADER_LEN + ENTRY_LEN;
        let start = Mapping::copy(&file, len.min(whole as u64) as usize)?;
        let bytes = start.bytes();
        let unused = match bytes.len() < whole {
            true => bytes.get(..bytes.len().min(TARGET_CELL)),
            false => bytes.get(HEADER_LEN..),
        };
        Ok(unused.unwrap_or(&[]).iter().all(|&byte| byte == 0))
    }

    /// Checks the chain of entries from the start and takes over the valid ones.
    pub(super) fn scan(&mut self) -> Scan {
        while let Some((entry, crc)) = self.check(self.count, self.crc, self.data_end) {
            self.advance(entry, crc);
        }
        let used = self.used();
        let more_behind = (self.count + 1..used).any(|index| self.judge(index).1);
        Scan {
            valid: self.count,
            used,
            more_behind,
        }
    }

    /// Returns the index after the last entry that is not all zeros.
    pub(super) fn used(&self) -> u32 {
        let last = (0..self.header.entries)
            .rev()
            .find(|&index| !self.is_empty_entry(index));
        last.map_or(0, |last| last + 1)
    }

    /// Returns the entry at `index`, and whether it is intact by itself: chained to what its
    /// predecessor holds, or should have held, whether or not that one is intact.
    pub(super) fn judge(&self, index: u32) -> (Option<Entry>, bool) {
        let entry = self
            .entry_bytes(index)
            .and_then(Entry::decode)
            .map(|(entry, _)| entry);
        let in_order = match index.checked_sub(1) {
            None => self.check(index, self.header_crc, 0).is_some(),
            Some(before) => self
                .predecessors(before)
                .into_iter()
                .flatten()
                .any(|(crc, end)| self.check(index, crc, end).is_some()),
        };
        (entry, in_order)
    }

    /// Returns the CRCs that the entry at `index` may have had, with the end of its message: the
    /// stored one, and the one that matches its bytes.
    fn predecessors(&self, index: u32) -> [Option<(u32, u32)>; 2] {
        let Some(bytes) = self.entry_bytes(index) else {
            return [None; 2];
        };
        let Some((entry, stored)) = Entry::decode(bytes) else {
            return [None; 2];
        };
        let end = u32::try_from(entry.range().end).unwrap_or(u32::MAX);
        let before = match index.checked_sub(1) {
            None => Some(self.header_crc),
            Some(before) => self
                .entry_bytes(before)
                .map(|bytes| u32_at(bytes, ENTRY_LEN - 4)),
        };
        let fitting = before.zip(self.data(entry.range()));
        let fitting = fitting.map(|(before, message)| (chain(before, bytes, message), end));
        [Some((stored, end)), fitting]
    }

    /// Returns the entry at `index` if it is valid after an entry with CRC `previous` whose message
    /// ended at `data_end`.
    fn check(&self, index: u32, previous: u32, data_end: u32) -> Option<(Entry, u32)> {
        let bytes = self.entry_bytes(index)?;
        let (entry, crc) = Entry::decode(bytes)?;
        let message = self.data(entry.range())?;
        let in_place = entry.offset == data_end;
        (in_place && chain(previous, bytes, message) == crc).then_some((entry, crc))
    }

    fn advance(&mut self, entry: Entry, crc: u32) {
        self.count += 1;
        self.data_end = entry.offset + entry.len;
        self.crc = crc;
        self.next_sender = entry.seq.saturating_add(1);
    }

    /// Drops all entries after the valid ones.
    pub(super) fn cut_tail(&mut self) {
        let from = HEADER_LEN + self.count as usize * ENTRY_LEN;
        let to = self.header.data_start();
        if let Some(tail) = self.map.bytes_mut().get_mut(from..to) {
            tail.fill(0);
        }
    }

    /// Returns the number of free bytes for messages; 0 if no further entry fits.
    pub(super) fn room(&self) -> usize {
        if self.count < self.header.entries {
            (self.header.data_len - self.data_end) as usize
        } else {
            0
        }
    }

    pub(super) const fn entries_left(&self) -> u32 {
        self.header.entries - self.count
    }

    /// Returns all free bytes, for the next message.
    pub(super) fn room_mut(&mut self) -> &mut [u8] {
        let start = self.header.data_start() + self.data_end as usize;
        self.map.bytes_mut().get_mut(start..).unwrap_or(&mut [])
    }

    /// Makes the message at `range` of the free bytes the next entry. Returns its range among the
    /// messages.
    pub(super) fn append(&mut self, range: Range<usize>, kind: EntryKind, seq: u64) -> Range<u32> {
        let (start, len) = (self.data_end, range.len() as u32);
        if range.start > 0 {
            self.room_mut().copy_within(range, 0);
        }
        let entry = Entry {
            seq,
            offset: start,
            len,
            kind,
        };
        let message = self.data(entry.range()).unwrap_or(&[]);
        let (bytes, crc) = entry.encode(self.crc, message);
        // The message is written before its entry: a kill in between leaves no entry.
        compiler_fence(Ordering::Release);
        let at = HEADER_LEN + self.count as usize * ENTRY_LEN;
        super::layout::put(self.map.bytes_mut(), at, &bytes);
        self.advance(entry, crc);
        start..start + len
    }

    /// Makes an entry in the place of the next one and discards it, which brings its code and data
    /// into the processor's caches.
    pub(super) fn rehearse(&self) {
        let entry = Entry {
            seq: self.next_sender,
            offset: self.data_end,
            len: USUAL_MESSAGE,
            kind: EntryKind::App,
        };
        if let Some(message) = self.data(entry.range()) {
            black_box(entry.encode(self.crc, message));
        }
        black_box(self.entry_bytes(self.count).map(|bytes| bytes.first()));
    }

    /// Returns the entry at `index`, which must be a valid one.
    pub(super) fn entry(&self, index: u32) -> Option<Entry> {
        if index >= self.count {
            return None;
        }
        Entry::decode(self.entry_bytes(index)?).map(|(entry, _)| entry)
    }

    /// Returns the bytes of an entry, as in the file.
    pub(super) fn entry_bytes(&self, index: u32) -> Option<&[u8]> {
        if index >= self.header.entries {
            return None;
        }
        let at = HEADER_LEN + index as usize * ENTRY_LEN;
        self.map.bytes().get(at..at + ENTRY_LEN)
    }

    fn is_empty_entry(&self, index: u32) -> bool {
        self.entry_bytes(index)
            .is_none_or(|bytes| bytes.iter().all(|&byte| byte == 0))
    }

    /// Returns message bytes.
    pub(super) fn data(&self, range: Range<usize>) -> Option<&[u8]> {
        let start = self.header.data_start();
        self.map.bytes().get(start..)?.get(range)
    }

    /// Returns the number above those of all messages in this segment.
    pub(super) fn end(&self) -> u64 {
        self.next_sender.min(self.visible_below)
    }

    /// Searches for the kept message with the lowest number that is not below `seq`, and reads at
    /// most [`LOOK_AT`] entries.
    pub(super) fn search(&self, seq: u64) -> Search<'_> {
        let mut index = self.find(seq);
        let mut from = seq;
        for _ in 0..LOOK_AT {
            let entry = self.entry(index).filter(|entry| entry.seq < self.end());
            let Some(entry) = entry else {
                return Search::Nothing;
            };
            if entry.kind.is_kept() {
                return self.stored(&entry);
            }
            // Of a number only the first entry can be a kept message: its copies follow.
            from = entry.seq + 1;
            index += 1;
            if self.entry(index).is_some_and(|next| next.seq < from) {
                index = self.find_behind(index, from);
            }
        }
        Search::NoneBelow(from)
    }

    fn stored(&self, entry: &Entry) -> Search<'_> {
        let kind = match entry.kind {
            EntryKind::App => Kind::App,
            _ => Kind::Admin,
        };
        match self.data(entry.range()) {
            Some(bytes) => Search::Kept(Stored {
                seq: entry.seq,
                kind,
                bytes,
            }),
            None => Search::NoneBelow(entry.seq + 1),
        }
    }

    /// Returns the index of the first entry whose number is not below `seq`.
    pub(super) fn find(&self, seq: u64) -> u32 {
        self.find_behind(0, seq)
    }

    /// Returns the same from index `low` on.
    fn find_behind(&self, mut low: u32, seq: u64) -> u32 {
        let mut high = self.count;
        while low < high {
            let middle = low + (high - low) / 2;
            match self.entry(middle) {
                Some(entry) if entry.seq < seq => low = middle + 1,
                _ => high = middle,
            }
        }
        low
    }

    /// Makes the segment writable again and prefaults all of it, or the next [`STEP`].
    pub(super) fn resume(&mut self, whole: bool) -> Result<(), OpenError> {
        let io_error = |source| OpenError::io(&self.path, source);
        let start = self.header.data_start();
        if whole {
            self.map.prefault(0..self.map.len()).map_err(io_error)?;
            self.prefaulted = u32::MAX;
        } else {
            // Checking the entries has brought all of the file into memory.
            self.map.release();
            self.map.prefault(0..HEADER_LEN).map_err(io_error)?;
            let entry = HEADER_LEN + self.count as usize * ENTRY_LEN;
            let table = entry..(entry + HEADER_LEN).min(start);
            self.map.prefault(table).map_err(io_error)?;
            self.prefaulted = self.data_end;
            self.prefault_ahead();
        }
        self.note_boot();
        Ok(())
    }

    /// Prefaults the next [`STEP`] of the space for messages, with the entries for it, when the
    /// messages come near. If that fails, each page is mapped when it is written to.
    pub(super) fn prefault_ahead(&mut self) {
        if self.data_end.saturating_add(STEP) <= self.prefaulted {
            return;
        }
        let start = self.header.data_start();
        let begun = self.prefaulted.max(self.data_end);
        let from = start + begun as usize;
        let _ = self.map.prefault(from..from + STEP as usize);
        let entry = HEADER_LEN + self.count as usize * ENTRY_LEN;
        let _ = self
            .map
            .prefault(entry..(entry + 2 * HEADER_LEN).min(start));
        self.prefaulted = begun.saturating_add(STEP);
    }

    /// Closes the segment, as the next one has begun: from now on it is only read, and its
    /// descriptor is released.
    pub(super) fn seal(&mut self) {
        self.file = None;
        self.note_continued();
    }

    /// Returns the number of the last application message of this segment that counts.
    pub(super) fn last_app(&self) -> Option<u64> {
        let entries = (0..self.count).rev().filter_map(|index| self.entry(index));
        let mut counting = entries.skip_while(|entry| entry.seq >= self.end());
        counting
            .find(|entry| entry.kind == EntryKind::App)
            .map(|entry| entry.seq)
    }

    /// Returns how many bytes of the segment are in this process' memory.
    #[cfg(test)]
    pub(super) fn resident(&self) -> usize {
        self.map.resident()
    }

    /// Releases the memory that checking its entries took.
    pub(super) fn release(&mut self) {
        self.map.release();
    }

    /// Lets each sync from now on fail.
    #[cfg(test)]
    pub(super) fn fail_syncs(&mut self) {
        self.file = File::open("/dev/null").ok();
    }

    /// Writes everything to the disk, and notes how much that was. The next sync writes that note.
    pub(super) fn sync(&mut self) -> io::Result<()> {
        if let Some(file) = &self.file {
            file.sync_data()?;
        }
        self.note_synced();
        Ok(())
    }
}

/// Hides messages that a later segment, with a lower next number, took back.
pub(super) fn hide_taken_back(segments: &mut VecDeque<Box<Segment>>) {
    let mut lowest = u64::MAX;
    for segment in segments.iter_mut().rev() {
        segment.visible_below = lowest;
        lowest = lowest.min(segment.header.first_sender);
    }
}

/// Returns the number of the last application message that may have been in segments in front of
/// these; 0 for none. The newest one has a note of it, which does not hold if the oldest segment is
/// not the one noted: a kill can leave one whose drop was noted, and a missing one was not
/// dropped. Without a note it is the number in front of the lowest: a later segment can begin with
/// a lower number, which takes messages back.
pub(super) fn dropped_before<'a>(segments: impl Iterator<Item = &'a Segment> + Clone) -> u64 {
    let firsts = segments.clone().map(|segment| segment.header.first_sender);
    let in_front = firsts.min().unwrap_or(1).saturating_sub(1);
    let oldest = segments.clone().next();
    let oldest = oldest.map_or(0, |oldest| oldest.header.number);
    let newest = segments.last();
    let noted = newest.and_then(|newest| newest.oldest().zip(newest.dropped()));
    match noted {
        Some((number, seq)) if number == oldest => seq,
        Some((number, seq)) if number > oldest => seq.min(in_front),
        _ => in_front,
    }
}
