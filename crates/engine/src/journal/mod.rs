//! The journal: a [`MessageStore`] in memory-mapped files, which is also the send buffer.
//!
//! A message is encoded into the mapped segment where it will stay, transmitted from there, and
//! found there when it is asked for again: persisting costs one table entry and its CRC, no copy
//! and no system call. A kill of the process at any moment leaves every committed message; at
//! most the one that was being written is cut off at the next opening. What survives a crash of
//! the machine is chosen by [`Durability`].
//!
//! One folder holds the journal of one session, in segments of a fixed size that are allocated
//! and prefaulted whole. When one is full the next is begun, which a helper thread has made in
//! advance: one for all journals of the process. If it is late the sending thread makes the
//! segment itself or waits for it, rather than refuse the message, and [`Journal::stalls`] counts
//! that. Beyond [`Options::max_segments`] the oldest is given up, and a resend of its messages
//! becomes a gap fill. A full disk shows as [`StoreError::DiskFull`] before anything is written; a
//! little room is held back for the Logout after it.
//!
//! An open journal has two segments in memory that it may write to, the current one and the next,
//! and maps those before for reading (the page cache keeps what of them it has room for); it holds
//! three descriptors, whatever it keeps.
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
mod in_use;
mod inspect;
mod layout;
mod open;
mod prepare;
mod repair;
mod segment;
mod store;
#[cfg(test)]
mod tests;
mod transmit;

pub use damage::{Damage, Defect};
pub use error::OpenError;
pub use in_use::holder;
pub use inspect::{Found, Record, SegmentInfo, Snapshot};
pub use layout::EntryKind;
pub use open::{Recovery, folder_for};
pub use repair::{Outcome, RepairError, repair};

use fanfare_fix::session::{SideBuffer, StoreError};
use fanfare_wire::UtcTimestamp;
use layout::Header;
use open::Lock;
use prepare::{Helper, Recipe};
use segment::Segment;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use transmit::Transmit;

#[cfg(doc)]
use fanfare_fix::session::MessageStore;

/// When messages and numbers are on the disk, so that they survive a crash of the machine. A
/// kill of the process loses nothing under any of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the system writes them back, usually within 30 seconds.
    None,
    /// After each so many messages, by the thread that commits; what was sent in between may be
    /// lost.
    EveryN(u32),
    /// Before they are transmitted. Messages committed between two calls of
    /// [`MessageStore::sync`] share one fdatasync.
    Every,
}

/// Sizes and limits of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Size of a segment file, 64 KiB to 1 GiB; a fifth of it is for the table of entries. No
    /// message can be longer than the rest.
    pub segment_bytes: u32,
    /// How many segments are kept, at least 2; the oldest is given up for the newest. On the disk
    /// there is one more, made in advance.
    pub max_segments: u32,
    /// How many bytes may wait for transmission before [`StoreError::Full`].
    pub max_unsent: usize,
    /// When the disk has it.
    pub durability: Durability,
}

impl Default for Options {
    /// 4 MiB a segment, 256 segments (1 GiB), 16 MiB unsent, no waiting for the disk.
    fn default() -> Self {
        let durability = Durability::None;
        Self {
            segment_bytes: 4 << 20,
            max_segments: 256,
            max_unsent: 16 << 20,
            durability,
        }
    }
}

impl Options {
    fn check(&self) -> Result<(), OpenError> {
        if !(64 << 10..=1 << 30).contains(&self.segment_bytes) {
            return Err(OpenError::Options("a segment has 64 KiB to 1 GiB"));
        }
        if self.max_segments < 2 {
            return Err(OpenError::Options("a journal needs at least 2 segments"));
        }
        Ok(())
    }

    /// Room for entries, and for messages in bytes.
    const fn division(&self) -> (u32, u32) {
        let table = self.segment_bytes / 5 / 4096 * 4096;
        let messages = self.segment_bytes - table - layout::HEADER_LEN as u32;
        (table / layout::ENTRY_LEN as u32, messages)
    }
}

/// Room at the end of a segment that only opens when the disk is full: for the messages with
/// which a session ends.
const EMERGENCY_BYTES: usize = 4096;
const EMERGENCY_ENTRIES: u32 = 16;

/// The journal of one session, open for writing. See the [module](self).
///
/// The helper thread starts with the first journal of the process, and inherits the processors
/// that the opening thread may run on: open it before that thread is pinned.
pub struct Journal {
    folder: PathBuf,
    recipe: Recipe,
    /// Makes segments; without, this thread does.
    helper: Option<Helper>,
    /// The next segment is asked for when so much of this one is used: entries, bytes.
    ask_at: (u32, u32),
    /// Segments that were not ready when they were needed.
    stalls: u64,
    options: Options,
    /// Room for entries and for messages in a segment.
    division: (u32, u32),
    /// Full segments, oldest first.
    #[allow(clippy::vec_box, reason = "what is moved on the hot path is a pointer")]
    sealed: VecDeque<Box<Segment>>,
    current: Box<Segment>,
    next_target: u64,
    transmit: Transmit,
    /// What is transmitted and in no segment.
    side: SideBuffer,
    retain_from: Option<u64>,
    /// Messages committed since the last sync.
    unsynced: u32,
    /// Numbers or messages changed since the last sync.
    dirty: bool,
    /// The disk was full the last time: the emergency room is open.
    disk_full: bool,
    /// A write to the disk failed: nothing can be promised any more.
    failed: Option<StoreError>,
    /// Given up last, when the helper is done with the folder.
    _lock: Lock,
}

impl Journal {
    /// Brings everything to the disk and ends. Dropping does the same without a word.
    ///
    /// # Errors
    /// The disk failed.
    pub fn close(mut self) -> Result<(), StoreError> {
        self.sync_now()
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// How often the next segment was not ready when it was needed, so that sending waited for it.
    #[must_use]
    pub const fn stalls(&self) -> u64 {
        self.stalls
    }

    /// Whether the next segment was asked for and is not there yet.
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

    fn usable(&self) -> Result<(), StoreError> {
        self.failed.map_or(Ok(()), Err)
    }

    fn fail(&mut self, error: &io::Error) -> StoreError {
        let failure = store_error(error);
        self.failed = Some(failure);
        failure
    }

    /// Makes sure that the current segment has room for `len` bytes and an entry.
    fn make_room(&mut self, len: usize) -> Result<(), StoreError> {
        self.usable()?;
        if len > self.division.1 as usize - EMERGENCY_BYTES {
            return Err(StoreError::TooLong);
        }
        if self.transmit.len() + len > self.options.max_unsent {
            return Err(StoreError::Full);
        }
        if self.fits(len) {
            return Ok(());
        }
        self.rotate(self.current.next_sender, self.current.header.created)
    }

    fn fits(&self, len: usize) -> bool {
        let (bytes, entries) = if self.disk_full {
            (0, 0)
        } else {
            (EMERGENCY_BYTES, EMERGENCY_ENTRIES)
        };
        self.current.room() >= len + bytes && self.current.entries_left() > entries
    }

    /// Begins the next segment. On an error nothing has changed.
    #[cold]
    fn rotate(&mut self, first_sender: u64, created: UtcTimestamp) -> Result<(), StoreError> {
        self.give_up_oldest()?;
        let blank = match self.next_blank() {
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
        let mut next = blank.activate(self.next_header(first_sender, created), self.next_target);
        next.set_durability(self.options.durability);
        let mut full = std::mem::replace(&mut self.current, next);
        full.seal();
        self.sealed.push_back(full);
        self.ask_at = (self.division.0 / 4, self.division.1 / 4);
        self.disk_full = false;
        self.dirty = true;
        if self.options.durability != Durability::None {
            let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
            folder.map_err(|error| self.fail(&error))?;
        }
        Ok(())
    }

    /// The segment that was made in advance. If it is not there, or could not be made then, it is
    /// made now: the error is that of this moment.
    fn next_blank(&mut self) -> io::Result<segment::Blank> {
        let (made, ready) = self.helper.as_ref().map_or((None, false), Helper::take);
        self.stalls += u64::from(!ready);
        match made {
            Some(Ok(blank)) => Ok(blank),
            _ => self.recipe.blank(self.current.header.number + 1),
        }
    }

    /// Has the next segment made, once for each.
    #[cold]
    fn ask_for_next(&mut self) {
        self.ask_at = (u32::MAX, u32::MAX);
        if let Some(helper) = &self.helper {
            helper.ask(self.current.header.number + 1);
        }
    }

    /// The header of the next segment; its identity is in the file made for it.
    const fn next_header(&self, first_sender: u64, created: UtcTimestamp) -> Header {
        let (entries, data_len) = self.division;
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

    /// Drops the oldest segment if the limit is reached.
    fn give_up_oldest(&mut self) -> Result<(), StoreError> {
        while self.sealed.len() + 2 > self.options.max_segments as usize {
            let Some(oldest) = self.sealed.front() else {
                break;
            };
            let needed = self
                .retain_from
                .is_some_and(|from| oldest.next_sender > from);
            if needed || self.transmit.reaches_into(oldest.header.number) {
                return Err(StoreError::Full);
            }
            let Some(oldest) = self.sealed.pop_front() else {
                return Ok(());
            };
            match &mut self.helper {
                Some(helper) => helper.give_up(oldest),
                None => remove(&oldest.path)?,
            }
        }
        Ok(())
    }

    /// Forgets all full segments, after a reset.
    fn drop_sealed(&mut self) -> Result<(), StoreError> {
        // Files go in their order: a kill in between leaves no hole.
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
            // Nobody is left to hear of an error; `close` tells it.
            let _ = self.sync_now();
        }
    }
}

/// Removes a segment file; after a reset it may be gone while its map was still in use.
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
        _ => StoreError::Io(error.raw_os_error().unwrap_or(0)),
    }
}
