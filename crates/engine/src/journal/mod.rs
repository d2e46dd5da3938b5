//! The journal: a [`MessageStore`] in memory-mapped files, which is also the send buffer.
//!
//! A message is encoded into the mapped segment where it will stay, transmitted from there, and
//! found there for a resend: persisting costs one table entry and its CRC, no copy and no system
//! call. A kill of the process at any moment leaves every committed message; the next opening cuts
//! off at most the one being written. [`Durability`] defines what survives a crash of the machine.
//!
//! One folder holds the journal of one session, in segments that are allocated and prefaulted
//! whole. The first one is small, and each later one has double the size, up to
//! [`Options::segment_bytes`]: a quiet session costs little. When a quarter of a segment is used, a
//! helper thread makes the next one, for all journals of the process. If it is late, the sending
//! thread makes the segment itself or waits for it, rather than refuse the message;
//! [`Journal::stalls`] counts this. When the journal has more bytes than [`Options::max_segments`]
//! full segments, the oldest segment is dropped, and a resend of its messages becomes a gap fill. A
//! full disk is reported as [`StoreError::DiskFull`] before anything is written; some space is
//! reserved for the Logout that follows.
//!
//! An open journal has at most two segments in memory to write to, the current one and the next. It
//! maps earlier ones for reading, and the page cache keeps what it can of them. It holds three
//! descriptors, whatever its size.
//!
//! Folders are made with mode 0700 and files with 0600, and existing ones with more rights are
//! restricted: see [`Recovery`]. A file that is cut short from outside while in use ends the
//! session with [`StoreError::Broken`], and not the process; the next opening reports which records
//! are lost.
//!
//! ```
//! use fanfare_engine::journal::{Journal, Options, folder_for};
//! use fanfare_fix::session::{Entry, Kind, MessageStore};
//! use fanfare_wire::UtcTimestamp;
//!
//! # let base = std::env::temp_dir().join(format!("fanfare-doc-{}", std::process::id()));
//! let identity = "FIX.4.4:SENDER->TARGET";
//! let folder = folder_for(&base, identity);
//! let now = UtcTimestamp::from_nanos(1_770_000_000_000_000_000);
//! let (mut journal, _) = Journal::open(&folder, identity, Options::default(), now)?;
//! journal.reserve(100)?[..5].copy_from_slice(b"8=FIX");
//! journal.commit(0..5, Entry { kind: Kind::App, transmit: true })?;
//! drop(journal); // or kill -9
//!
//! let (journal, _) = Journal::open(&folder, identity, Options::default(), now)?;
//! assert_eq!(journal.next_sender(), 2);
//! assert_eq!(journal.first_from(1).map(|message| message.bytes), Some(&b"8=FIX"[..]));
//! # drop(journal);
//! # std::fs::remove_dir_all(&base)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod damage;
mod error;
mod folder;
mod import;
mod in_use;
mod inspect;
mod layout;
mod numbers;
mod open;
mod prepare;
mod quickfix;
mod repair;
mod segment;
mod store;
#[cfg(test)]
mod tests;
mod transmit;

pub use damage::{Damage, Defect, Loss, Lost};
pub use error::OpenError;
pub use folder::folder_for;
pub use import::{ImportError, Imported, import};
pub use in_use::holder;
pub use inspect::{Found, Record, SegmentInfo, Snapshot};
pub use layout::EntryKind;
pub use numbers::{Numbers, NumbersError, NumbersSet, set_numbers};
pub use open::Recovery;
pub use quickfix::{QuickFixError, QuickFixStore};
pub use repair::{Outcome, RepairError, repair};

use crate::sys::cut;
use fanfare_fix::session::{SideBuffer, StoreError};
use fanfare_wire::UtcTimestamp;
use folder::Lock;
use layout::Header;
use prepare::{Helper, Recipe};
use segment::{Inherited, Segment};
use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use transmit::Transmit;

#[cfg(doc)]
use fanfare_fix::session::MessageStore;

/// The time at which messages and numbers are on the disk, so that they survive a crash of the
/// machine. A kill of the process loses nothing under any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the system writes them back, usually within 30 seconds.
    None,
    /// After this many messages each time, by the thread that commits; messages sent in between may
    /// be lost. If the disk fails then, the message is kept, and the next call returns the error.
    EveryN(u32),
    /// Before they are transmitted. Messages committed between two calls of
    /// [`MessageStore::sync`] share one fdatasync.
    Every,
}

/// Sizes and limits of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size of the first segment file in bytes, 32 KiB to `segment_bytes`. Each segment has double
    /// the size of the full one before it, up to `segment_bytes`. If the two sizes are the same,
    /// the next segment is made from the start, too.
    pub first_segment_bytes: u32,
    /// Size of a full-grown segment file, 64 KiB to 1 GiB; a fifth of it is for the table of
    /// entries. No message can be longer than the rest.
    pub segment_bytes: u32,
    /// The number of segments of `segment_bytes` kept, at least 2, or as many bytes in smaller
    /// ones; the oldest is dropped for the newest. One more, made in advance, may be on the disk.
    pub max_segments: u32,
    /// Most bytes that may wait for transmission before [`StoreError::Full`].
    pub max_unsent: usize,
    /// When messages are on the disk.
    pub durability: Durability,
    /// Whether a journal that has lost records is opened: its intact records are saved as by
    /// [`repair`](repair()), and the damaged journal is kept beside it. Otherwise opening fails.
    pub accept_loss: bool,
}

impl Default for Options {
    /// Returns options of 32 KiB for the first segment, up to 4 MiB for later ones, 256 segments (1
    /// GiB) and 16 MiB unsent, without waiting for the disk or accepting a loss.
    fn default() -> Self {
        let durability = Durability::None;
        Self {
            first_segment_bytes: 32 << 10,
            segment_bytes: 4 << 20,
            max_segments: 256,
            max_unsent: 16 << 20,
            durability,
            accept_loss: false,
        }
    }
}

impl Options {
    /// Makes the first segment full-sized, and the next one from the start: for a session known to
    /// be busy, at the price of two full segments on the disk and in memory.
    #[must_use]
    pub const fn full_from_the_start(self) -> Self {
        Self {
            first_segment_bytes: self.segment_bytes,
            ..self
        }
    }

    fn check(&self) -> Result<(), OpenError> {
        if !(64 << 10..=1 << 30).contains(&self.segment_bytes) {
            return Err(OpenError::Options("a segment has 64 KiB to 1 GiB"));
        }
        if !(32 << 10..=self.segment_bytes).contains(&self.first_segment_bytes) {
            return Err(OpenError::Options(
                "a first segment has 32 KiB to the size of the others",
            ));
        }
        if self.max_segments < 2 {
            return Err(OpenError::Options("a journal needs at least 2 segments"));
        }
        Ok(())
    }

    /// Returns whether segments have their full size from the first one on.
    const fn starts_full(&self) -> bool {
        self.first_segment_bytes == self.segment_bytes
    }
}

/// Returns the capacity of a segment of this size, in entries and in bytes of messages.
const fn division(segment_bytes: u32) -> (u32, u32) {
    let table = segment_bytes / 5 / 4096 * 4096;
    let messages = segment_bytes - table - layout::HEADER_LEN as u32;
    (table / layout::ENTRY_LEN as u32, messages)
}

/// Returns the least [`Options::segment_bytes`], in whole pages, of a journal that takes messages
/// of this length.
pub(crate) const fn least_segment_bytes(message: usize) -> u32 {
    let mut size = 64 << 10;
    while size < 1 << 30 && longest_message(size) < message {
        size += 4096;
    }
    size
}

/// Returns the length of the longest message for segments of this size.
const fn longest_message(segment_bytes: u32) -> usize {
    division(segment_bytes).1 as usize - EMERGENCY_BYTES
}

/// Bytes at the end of a segment that are used only when the disk is full, for the messages with
/// which a session ends.
const EMERGENCY_BYTES: usize = 4096;
const EMERGENCY_ENTRIES: u32 = 16;

/// The journal of one session, open for writing. See the [module](self).
///
/// The helper thread starts with the first journal of the process, and inherits the processors that
/// the opening thread may run on: open the journal before that thread is pinned.
pub struct Journal {
    folder: PathBuf,
    recipe: Recipe,
    /// The helper that makes segments; without it, this thread does.
    helper: Option<Helper>,
    /// The entries and bytes of this segment that are used when the next is requested.
    ask_at: (u32, u32),
    /// The number of segments that were not ready when they were needed.
    stalls: u64,
    options: Options,
    /// The buffer for a message that may be too long for the current segment.
    aside: Vec<u8>,
    /// Whether the reserved message is in `aside`, not in the segment.
    is_aside: bool,
    /// Full segments, oldest first.
    #[allow(clippy::vec_box, reason = "what is moved on the hot path is a pointer")]
    sealed: VecDeque<Box<Segment>>,
    current: Box<Segment>,
    next_target: u64,
    transmit: Transmit,
    /// Bytes to be transmitted that are in no segment.
    side: SideBuffer,
    retain_from: Option<u64>,
    /// The number of messages committed since the last sync.
    unsynced: u32,
    /// Whether numbers or messages have changed since the last sync.
    dirty: bool,
    /// Whether the disk was full the last time: the emergency bytes may be used.
    disk_full: bool,
    /// The error of a failed write to the disk, after which nothing can be promised.
    failed: Option<StoreError>,
    /// The number of faults in the process when the maps of this journal were last checked.
    faults: usize,
    /// The lock, released last, when the helper has finished with the folder.
    _lock: Lock,
}

impl Journal {
    /// Writes everything to the disk and closes the journal. Dropping it does the same, but ignores
    /// errors.
    ///
    /// # Errors
    /// The disk failed.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.sync_now()
    }

    /// Returns the folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns how often sending waited for the next segment, which was not ready.
    #[must_use]
    pub const fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Returns whether the next segment was requested and is not ready yet.
    #[must_use]
    pub fn awaits_segment(&self) -> bool {
        self.helper.as_ref().is_some_and(Helper::is_awaited)
    }

    fn sync_now(&mut self) -> Result<(), StoreError> {
        self.usable()?;
        self.current.sync().map_err(|error| self.fail(&error))?;
        self.unsynced = 0;
        self.dirty = false;
        self.transmit.release();
        Ok(())
    }

    #[inline]
    fn usable(&mut self) -> Result<(), StoreError> {
        if cut::faults() != self.faults {
            self.look_for_faults();
        }
        self.failed.map_or(Ok(()), Err)
    }

    /// Checks the maps of this journal after some map of the process has lost a page.
    #[cold]
    fn look_for_faults(&mut self) {
        self.faults = cut::faults();
        let is_broken = self.current.is_broken() || self.sealed.iter().any(|s| s.is_broken());
        if is_broken && self.failed.is_none() {
            self.failed = Some(StoreError::Broken);
            // The contents are not known, so nothing of them is transmitted.
            self.transmit.clear();
        }
    }

    fn fail(&mut self, error: &io::Error) -> StoreError {
        let failure = store_error(error);
        self.failed = Some(failure);
        failure
    }

    /// Checks that the store can take a message of `len` bytes now.
    fn takes(&mut self, len: usize) -> Result<(), StoreError> {
        self.usable()?;
        if len > longest_message(self.options.segment_bytes) {
            return Err(StoreError::TooLong);
        }
        if self.transmit.len() + len > self.options.max_unsent {
            return Err(StoreError::Full);
        }
        Ok(())
    }

    /// Makes sure that the current segment has space for `len` bytes and an entry.
    fn make_room(&mut self, len: usize) -> Result<(), StoreError> {
        self.takes(len)?;
        if self.fits(len) {
            return Ok(());
        }
        self.rotate(
            self.current.next_sender,
            self.current.header.created,
            Some(len),
        )
    }

    /// Returns whether a new segment for a message of up to `len` bytes would leave much of the
    /// current one empty. Most messages are far shorter, so such a message is encoded aside first.
    fn wastes(&self, len: usize) -> bool {
        let free = self.current.room().saturating_sub(EMERGENCY_BYTES);
        free < len && free > self.current.header.data_len as usize / 16
    }

    /// Returns a buffer of `len` bytes outside the segment.
    #[cold]
    fn room_aside(&mut self, len: usize) -> &mut [u8] {
        self.is_aside = true;
        if self.aside.len() < len {
            self.aside = vec![0; len];
        }
        self.aside.get_mut(..len).unwrap_or(&mut [])
    }

    /// Copies the message at `range` of `aside` into the segment. Returns its range in the free
    /// part of the segment.
    #[cold]
    fn bring_in(&mut self, range: Range<usize>) -> Result<Range<usize>, StoreError> {
        self.is_aside = false;
        self.make_room(range.len())?;
        let message = self.aside.get(range).ok_or(StoreError::TooLong)?;
        let room = self.current.room_mut().get_mut(..message.len());
        room.ok_or(StoreError::TooLong)?.copy_from_slice(message);
        Ok(0..message.len())
    }

    fn fits(&self, len: usize) -> bool {
        let (bytes, entries) = if self.disk_full {
            (0, 0)
        } else {
            (EMERGENCY_BYTES, EMERGENCY_ENTRIES)
        };
        self.current.room() >= len + bytes && self.current.entries_left() > entries
    }

    /// Begins the next segment, because a message of this length does not fit in this one, or
    /// because the numbers restart (`None`). On an error nothing has changed.
    #[cold]
    fn rotate(
        &mut self,
        first_sender: u64,
        created: UtcTimestamp,
        message: Option<usize>,
    ) -> Result<(), StoreError> {
        self.drop_oldest()?;
        let blank = match self.next_blank(message) {
            Ok(blank) => blank,
            Err(error) => {
                let failure = store_error(&error);
                self.disk_full = failure == StoreError::DiskFull;
                return Err(failure);
            }
        };
        if self.options.durability != Durability::None {
            self.sync_now()?;
        }
        let header = self.next_header(blank.len(), first_sender, created);
        let oldest = match (message, first_sender) {
            // Nothing that earlier segments hold counts any more.
            (None, 1) => header.number,
            _ => self.oldest(),
        };
        let state = Inherited {
            target: self.next_target,
            reset: self.current.our_reset(),
            oldest,
            dropped: self.last_dropped().min(first_sender.saturating_sub(1)),
        };
        let mut next = blank.activate(header, &state);
        next.set_durability(self.options.durability);
        let mut full = std::mem::replace(&mut self.current, next);
        full.seal();
        self.sealed.push_back(full);
        self.ask_at = self.when_to_ask();
        self.disk_full = false;
        self.dirty = true;
        if self.options.durability != Durability::None {
            folder::sync_folder(&self.folder).map_err(|error| self.fail(&error))?;
        }
        Ok(())
    }

    /// Returns the segment made in advance. A segment that is missing, too small for this message,
    /// or could not be made then, is made now: the error is that of this moment.
    fn next_blank(&mut self, message: Option<usize>) -> io::Result<segment::Blank> {
        let (made, ready) = self.helper.as_ref().map_or((None, false), Helper::take);
        let needed = message.unwrap_or(0) + EMERGENCY_BYTES;
        let fits = |len: u32| division(len).1 as usize >= needed;
        if let Some(Ok(blank)) = made {
            if fits(blank.len()) {
                self.stalls += u64::from(!ready);
                return Ok(blank);
            }
            blank.discard();
        }
        self.stalls += u64::from(message.is_some());
        let mut len = match message {
            Some(_) => self.next_len(),
            None => self.current.len().min(self.options.segment_bytes),
        };
        while len < self.options.segment_bytes && !fits(len) {
            len = len.saturating_mul(2).min(self.options.segment_bytes);
        }
        self.recipe.blank(self.current.header.number + 1, len)
    }

    /// Returns the size of the segment after the current one, when that is full.
    fn next_len(&self) -> u32 {
        let double = self.current.len().saturating_mul(2);
        double.min(self.options.segment_bytes)
    }

    /// Returns the entries and bytes of the current segment that are used when the next is
    /// requested.
    fn when_to_ask(&self) -> (u32, u32) {
        let header = &self.current.header;
        (header.entries / 4, header.data_len / 4)
    }

    /// Requests the next segment, once for each.
    #[cold]
    fn ask_for_next(&mut self) {
        self.ask_at = (u32::MAX, u32::MAX);
        if let Some(helper) = &self.helper {
            helper.ask(self.current.header.number + 1, self.next_len());
        }
    }

    /// Returns the header of the next segment; its identity is in the file made for it.
    const fn next_header(&self, len: u32, first_sender: u64, created: UtcTimestamp) -> Header {
        let (entries, data_len) = division(len);
        Header {
            number: self.current.header.number + 1,
            created,
            first_sender,
            entries,
            data_len,
            previous_count: self.current.count,
            previous_crc: self.current.crc,
            identity: String::new(),
        }
    }

    /// Returns the number of the oldest segment kept. After a reset full segments can remain in
    /// memory whose files are removed.
    fn oldest(&self) -> u64 {
        let first = self.sealed.front().unwrap_or(&self.current);
        let first = first.header.number;
        self.current
            .oldest()
            .map_or(first, |noted| noted.max(first))
    }

    /// Returns the number of the last application message in the segments dropped; 0 for none.
    fn last_dropped(&self) -> u64 {
        self.current.dropped().unwrap_or(0)
    }

    /// Notes that the oldest full segment is about to be dropped.
    fn note_drop(&mut self) -> Result<(), StoreError> {
        let next = self.sealed.get(1).unwrap_or(&self.current).header.number;
        let next = next.max(self.oldest());
        self.current.set_oldest(next);
        if let Some(last) = self.sealed.front().and_then(|oldest| oldest.last_app()) {
            let last = last.max(self.last_dropped());
            self.current.set_dropped(last);
        }
        match self.options.durability {
            Durability::None => Ok(()),
            // A crash of the machine may not keep the removal alone.
            _ => self.sync_now(),
        }
    }

    /// Drops the oldest segments until the limit leaves space for a full-grown one.
    fn drop_oldest(&mut self) -> Result<(), StoreError> {
        let segment = u64::from(self.options.segment_bytes);
        let most = segment * u64::from(self.options.max_segments);
        let all = self.sealed.iter().chain([&self.current]);
        let mut kept: u64 = all.map(|segment| u64::from(segment.len())).sum();
        while kept + segment > most {
            let Some(oldest) = self.sealed.front() else {
                break;
            };
            let needed = self
                .retain_from
                .is_some_and(|from| oldest.next_sender > from);
            if needed || self.transmit.reaches_into(oldest.header.number) {
                return Err(StoreError::Full);
            }
            self.note_drop()?;
            let Some(oldest) = self.sealed.pop_front() else {
                return Ok(());
            };
            kept -= u64::from(oldest.len());
            match &mut self.helper {
                Some(helper) => helper.drop_segment(oldest),
                None => remove(&oldest.path)?,
            }
        }
        Ok(())
    }

    /// Drops all full segments, after a reset.
    fn drop_sealed(&mut self) -> Result<(), StoreError> {
        // Files are removed in order: a kill in between leaves no gap.
        if let Some(helper) = &self.helper {
            helper.flush();
        }
        for segment in &self.sealed {
            remove(&segment.path)?;
        }
        self.sealed
            .retain(|segment| self.transmit.reaches_into(segment.header.number));
        for segment in &mut self.sealed {
            segment.visible_below = 0;
        }
        Ok(())
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.dirty && self.options.durability != Durability::None {
            // An error cannot be returned here; `close` returns it.
            let _ = self.sync_now();
        }
    }
}

/// Removes a segment file. After a reset it may be gone while its map was still in use.
fn remove(path: &Path) -> Result<(), StoreError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(store_error(&error)),
        _ => Ok(()),
    }
}

fn store_error(error: &io::Error) -> StoreError {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => StoreError::ReadOnly,
        _ => StoreError::Io(error.raw_os_error().unwrap_or(libc::EIO)),
    }
}
