//! The work after the writer: checkpoints, compaction, retention.

use crate::as_of::AsOf;
use crate::block::{Block, Compressor, Unpacker};
use crate::checkpoint;
use crate::clock::Clock;
use crate::error::LogError;
use crate::folder::{self, Listing};
use crate::format::{BlockHeader, Kind, Records, SegmentHeader};
use crate::known::Known;
use crate::place::Border;
use crate::raw::Raw;
use crate::segment::{Found, Segment};
use fanfare_market::Event;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The configuration of a [`Keeper`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeeperConfig {
    /// Events between two checkpoints, and so the most that are read for a book as of any moment;
    /// at least 1,000.
    pub checkpoint_events: u64,
    /// The level of zstd for full segments, from 1 to 19; `None` turns compaction off.
    pub compress: Option<i32>,
    /// The limit of bytes of all segments, beyond which the oldest are removed; `None` for no
    /// limit.
    pub keep_bytes: Option<u64>,
    /// The time for which events are kept, in nanoseconds of the log's time; `None` for no limit.
    /// Neither a time stamp ahead of the system's clock makes them old, nor a jump of that clock by
    /// more than an hour while the keeper exists, until it has lasted for 24 hours in which the
    /// machine ran. When the keeper is made, the clock is believed.
    pub keep_nanos: Option<u64>,
}

impl Default for KeeperConfig {
    /// Returns a checkpoint each 250,000 events, level 3, no retention.
    fn default() -> Self {
        Self {
            checkpoint_events: 250_000,
            compress: Some(3),
            keep_bytes: None,
            keep_nanos: None,
        }
    }
}

/// The counters of a keeper.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KeeperStats {
    /// Checkpoints written.
    pub checkpoints: u64,
    /// Segments compacted.
    pub compacted: u64,
    /// Segments left uncompacted, because they are damaged, or have records of a later version.
    pub damaged: u64,
    /// Bytes of the segments that were compacted, before and after.
    pub bytes_before: u64,
    /// Bytes of those segments after compaction.
    pub bytes_after: u64,
    /// Segments removed.
    pub removed: u64,
    /// By how many nanoseconds the system's clock is too far ahead for events to be removed by
    /// their age; 0 once it is believed.
    pub clock_ahead: u64,
}

/// The least distance of two checkpoints in events, as a multiple of the size of the first one.
const SPACING: u64 = 4;

/// Most messages followed in a call.
const TURN: usize = 4096;

/// The pause after which old segments are looked for again while nothing is written.
const PAUSE: Duration = Duration::from_secs(60);

/// Bytes of the records of a compacted block.
const BLOCK: usize = 1 << 20;

/// The room for the records about the next events, and those events.
const AHEAD: usize = BLOCK / 8;

/// Follows a log, writes checkpoints, compacts full segments and removes old ones.
///
/// A log has one, beside its writer, on a thread of its own, as a call may wait for the disk. If it
/// is late nothing is lost, but books as of a moment take longer.
pub struct Keeper {
    folder: PathBuf,
    config: KeeperConfig,
    books: AsOf,
    /// The number of the last checkpoint, and its size in events.
    last: u64,
    size: u64,
    /// The segment being followed.
    segment: u64,
    /// The first segment that is yet to be compacted.
    due: u64,
    /// The segment after which the next one was made.
    prepared: Option<u64>,
    /// The time at which old segments were last looked for.
    retained: Option<Instant>,
    clock: Clock,
    stats: KeeperStats,
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Keeper")
            .field("folder", &self.folder)
            .field("stats", &self.stats)
            .finish_non_exhaustive()
    }
}

/// A segment, and the ones behind it whose headers are damaged: the log begins with none of these.
/// The first part also has those in front of its segment.
struct Part {
    /// The header of the segment; `None` if the log has no readable one.
    header: Option<SegmentHeader>,
    bytes: u64,
    paths: Vec<PathBuf>,
}

impl Keeper {
    /// Continues from the last checkpoint.
    ///
    /// # Errors
    /// A setting is out of range; the log cannot be read.
    pub fn open(folder: &Path, config: KeeperConfig) -> Result<Self, LogError> {
        if config.checkpoint_events < 1000 {
            return Err(LogError::Config {
                key: "checkpoint_events",
                why: "must be at least 1000",
            });
        }
        if config
            .compress
            .is_some_and(|level| !(1..=19).contains(&level))
        {
            return Err(LogError::Config {
                key: "compress",
                why: "must be between 1 and 19",
            });
        }
        for ordinal in folder::list(folder)?.left {
            folder::remove(&folder::segment(folder, ordinal, false))?;
        }
        let known = Known::before(folder, u64::MAX)?;
        let last = known.number;
        let mut books = AsOf::behind(folder, known, Border::Cross)?;
        books.keep_formers();
        Ok(Self {
            folder: folder.to_owned(),
            config,
            last,
            size: 0,
            segment: books.segment(),
            due: 0,
            prepared: None,
            retained: None,
            clock: Clock::new(),
            books,
            stats: KeeperStats::default(),
        })
    }

    /// Sets the system's clock ahead, as far as this keeper knows.
    #[cfg(test)]
    pub(crate) fn set_clock_ahead(&mut self, by: u64) {
        self.clock = Clock::set_ahead(by);
    }

    /// Compacts full segments.
    fn catch_up(&mut self) -> Result<(), LogError> {
        let segments = folder::list(&self.folder)?.segments;
        for (&ordinal, &is_compacted) in segments.range(self.due..self.segment) {
            if !is_compacted {
                self.compact(ordinal)?;
            }
            self.due = ordinal + 1;
        }
        self.due = self.segment;
        Ok(())
    }

    /// Returns the counters so far.
    #[must_use]
    pub const fn stats(&self) -> KeeperStats {
        self.stats
    }

    /// Returns the number of the event up to which the log was followed.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.books.number
    }

    /// Follows what was written, and does the work that is due. Returns how many records were read;
    /// 0 if nothing was written.
    ///
    /// # Errors
    /// A file cannot be read or written: the next call tries again.
    pub fn work(&mut self) -> Result<usize, LogError> {
        let prepared = self.prepare();
        let spacing = self.config.checkpoint_events.max(self.size * SPACING);
        self.books.stop_before(self.last + spacing + 1);
        // A call ends where another segment begins.
        let mut read = self.books.follow(TURN)?;
        let is_at_stop = self.books.number >= self.last + spacing;
        if is_at_stop && self.books.segment() == self.segment {
            // All missing events have one checkpoint, however many they are.
            read += self.books.pass_lost()?;
        }
        let is_full = self.books.segment() != self.segment;
        if is_full {
            // The checkpoint is where the next segment begins, whatever this one has lost.
            self.books.skip_lost();
        }
        let since = self.books.number.saturating_sub(self.last);
        let is_due = since >= spacing || (is_full && since > 0);
        let outcome = self.store(is_due);
        // The limits may be others than before, and on a full disk this frees space.
        let has_limit = self.config.keep_bytes.or(self.config.keep_nanos).is_some();
        let is_paused = self.retained.is_some_and(|at| at.elapsed() < PAUSE);
        let is_idle = read == 0 && has_limit && !is_paused;
        if is_full || is_idle || outcome.is_err() || prepared.is_err() {
            self.retain()?;
        }
        outcome.and(prepared)?;
        Ok(read + usize::from(is_due))
    }

    /// Makes the file of the next segment, so that the writer does not wait for the disk, and syncs
    /// the segment being followed.
    fn prepare(&mut self) -> Result<(), LogError> {
        if self.prepared == Some(self.segment) {
            return Ok(());
        }
        folder::make_next(&self.folder)?;
        self.sync()?;
        self.prepared = Some(self.segment);
        Ok(())
    }

    /// Writes a checkpoint if one is due, and syncs a segment that is full.
    fn store(&mut self, is_due: bool) -> Result<(), LogError> {
        if is_due {
            self.checkpoint()?;
        }
        if self.books.segment() != self.segment {
            self.sync()?;
        }
        self.segment = self.books.segment();
        match self.due < self.segment && self.config.compress.is_some() {
            true => self.catch_up(),
            false => Ok(()),
        }
    }

    /// Syncs the segment being followed, which waits for the disk.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn sync(&self) -> Result<(), LogError> {
        let path = folder::segment(&self.folder, self.segment, false);
        match File::open(&path).and_then(|file| file.sync_data()) {
            // A compacted segment was synced already.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            synced => synced.map_err(LogError::io(&path)),
        }
    }

    /// Writes a checkpoint of the current books.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn checkpoint(&mut self) -> Result<(), LogError> {
        self.size = checkpoint::write(&self.folder, &self.books)?;
        self.last = self.books.number;
        self.stats.checkpoints += 1;
        Ok(())
    }

    /// Rewrites a full segment in large compressed blocks, in place of the old file.
    fn compact(&mut self, ordinal: u64) -> Result<(), LogError> {
        let Some(level) = self.config.compress else {
            return Ok(());
        };
        let mut segment = match Segment::open(&self.folder, ordinal) {
            Err(LogError::BadSegment { .. } | LogError::Version { .. }) => {
                self.stats.damaged += 1;
                return Ok(());
            }
            opened => opened?,
        };
        if segment.header.is_compacted {
            return Ok(());
        }
        let path = folder::segment(&self.folder, ordinal, true);
        let new = path.with_extension("logz.new");
        match compact(&mut segment, &new, level, Damaged::Refuse) {
            Ok(true) => {}
            Ok(false) => {
                // What cannot be read of a segment may be worth more than the space.
                self.stats.damaged += 1;
                return folder::remove(&new);
            }
            Err(error) => {
                // The first error is the one to return.
                let _ = folder::remove(&new);
                return Err(error);
            }
        }
        self.stats.compacted += 1;
        self.stats.bytes_before += segment.len()?;
        self.stats.bytes_after += std::fs::metadata(&new).map_or(0, |metadata| metadata.len());
        std::fs::rename(&new, &path).map_err(LogError::io(&path))?;
        folder::remove(&folder::segment(&self.folder, ordinal, false))
    }

    /// Returns the parts of the log that are removed as a whole, the oldest first.
    fn parts(&self, listing: &Listing) -> Result<Vec<Part>, LogError> {
        let mut parts: Vec<Part> = Vec::new();
        for &ordinal in listing.segments.keys() {
            let (header, bytes, path) = match Segment::open(&self.folder, ordinal) {
                Ok(segment) => (Some(segment.header), segment.len()?, segment.path),
                Err(LogError::BadSegment { path, .. } | LogError::Version { path, .. }) => {
                    let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
                    (None, bytes, path)
                }
                Err(error) => return Err(error),
            };
            match parts.last_mut() {
                Some(part) if header.is_none() || part.header.is_none() => {
                    part.header = part.header.or(header);
                    part.bytes += bytes;
                    part.paths.push(path);
                }
                _ => parts.push(Part {
                    header,
                    bytes,
                    paths: vec![path],
                }),
            }
        }
        Ok(parts)
    }

    /// Returns whether a checkpoint has the instruments and books before an event, which the rest
    /// of the log needs.
    fn has_view(&self, listing: &Listing, first: u64) -> bool {
        let view = listing.views.iter().find(|view| **view + 1 == first);
        view.is_some_and(|view| matches!(Known::read(&self.folder, *view), Ok(Some(_))))
    }

    /// Removes the oldest segments, as long as the log is beyond its limits.
    fn retain(&mut self) -> Result<(), LogError> {
        self.retained = Some(Instant::now());
        let listing = folder::list(&self.folder)?;
        let all = self.parts(&listing)?;
        let mut bytes: u64 = all.iter().map(|part| part.bytes).sum();
        // A time stamp in the future makes nothing old.
        let (system, ahead) = self.clock.now();
        let now = self.books.time.min(system);
        self.stats.clock_ahead = ahead;
        let mut due: Vec<&PathBuf> = Vec::new();
        for pair in all.windows(2) {
            let [part, behind] = pair else {
                break;
            };
            let (Some(oldest), Some(next)) = (part.header, behind.header) else {
                break;
            };
            let age = now.saturating_sub(next.time);
            let is_old = self.config.keep_nanos.is_some_and(|keep| age > keep);
            let is_much = self.config.keep_bytes.is_some_and(|keep| bytes > keep);
            let is_done = next.ordinal <= self.segment;
            if !(is_old || is_much) || !is_done {
                break;
            }
            due.extend(&part.paths);
            bytes -= part.bytes;
            if next.first != oldest.first && !self.has_view(&listing, next.first) {
                // It goes with the next one.
                continue;
            }
            for path in due.drain(..) {
                folder::remove(path)?;
                self.stats.removed += 1;
            }
            for view in listing.views.iter().filter(|view| **view + 1 < next.first) {
                folder::remove(&folder::view(&self.folder, *view))?;
            }
        }
        Ok(())
    }
}

/// The handling of bytes that cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// Unreadable bytes end the compaction.
    Refuse,
    /// Unreadable bytes are left out.
    PassOver,
    /// Unreadable bytes are left out, and the end of the segment is missing.
    Cut,
}

/// Writes the records of a segment to a file; returns false if not all of them can be read. Records
/// of a later version end the compaction as unreadable bytes do, and else are left out.
pub(crate) fn compact(
    segment: &mut Segment,
    path: &Path,
    level: i32,
    damaged: Damaged,
) -> Result<bool, LogError> {
    let io = || LogError::io(path);
    let mut out = BufWriter::with_capacity(1 << 20, folder::create(path).map_err(io())?);
    let header = SegmentHeader {
        is_compacted: true,
        ..segment.header
    };
    out.write_all(&header.write()).map_err(io())?;
    let mut packer = Packer {
        block: Block::new(header.first, header.time),
        compressor: Compressor::new(level).map_err(io())?,
        room: Vec::new(),
        is_ahead: false,
    };
    let (mut room, mut unpacker) = (Vec::new(), Unpacker::new().map_err(io())?);
    let mut is_whole = true;
    loop {
        match segment.look()? {
            Found::Block(header) => {
                if unpacker.records(&header, segment.block(&header), &mut room) {
                    packer.skip_to(&header, &mut out).map_err(io())?;
                    for (kind, bytes) in Records(&room) {
                        if kind.is_none() && damaged == Damaged::Refuse {
                            return Ok(false);
                        }
                        packer.put(kind, bytes, &mut out).map_err(io())?;
                    }
                } else {
                    is_whole = false;
                    packer.put(Some(Kind::Torn), &[], &mut out).map_err(io())?;
                }
                segment.pass(&header);
            }
            Found::End => break,
            Found::Torn => {
                is_whole = false;
                if damaged != Damaged::Refuse {
                    packer.put(Some(Kind::Torn), &[], &mut out).map_err(io())?;
                    if !segment.resync()? {
                        break;
                    }
                }
            }
        }
        if !is_whole && damaged == Damaged::Refuse {
            return Ok(false);
        }
    }
    if damaged == Damaged::Cut {
        is_whole = false;
        packer.put(Some(Kind::Torn), &[], &mut out).map_err(io())?;
    }
    packer.flush(&mut out).map_err(io())?;
    let file = out.into_inner().map_err(|error| io()(error.into_error()))?;
    file.sync_data().map_err(io())?;
    Ok(is_whole)
}

struct Packer {
    block: Block,
    compressor: Compressor,
    room: Vec<u8>,
    /// Whether the last record is about the next events.
    is_ahead: bool,
}

impl Packer {
    /// Ends the block where numbers are missing in front of this one: the numbers of a block's
    /// events have no gap.
    fn skip_to(&mut self, header: &BlockHeader, out: &mut impl Write) -> std::io::Result<()> {
        if header.first > self.block.next() {
            self.flush(out)?;
            self.block.skip_to(header.first, header.time);
        }
        Ok(())
    }

    fn put(
        &mut self,
        kind: Option<Kind>,
        bytes: &[u8],
        out: &mut impl Write,
    ) -> std::io::Result<()> {
        // A reader that begins with the events reads the records about them, too: one block has
        // both.
        let is_ahead = matches!(kind, Some(Kind::Part | Kind::Watermark));
        let more = match is_ahead && !self.is_ahead {
            true => AHEAD,
            false => bytes.len(),
        };
        // A record that is longer has a block of its own.
        if self.block.len() + more > BLOCK {
            self.flush(out)?;
        }
        self.is_ahead = is_ahead;
        match kind {
            Some(Kind::Events) => {
                let events = bytes.as_chunks::<{ Event::SIZE }>().0;
                self.block.events(events);
            }
            Some(Kind::Raw) => {
                if let Some(raw) = Raw::read(bytes) {
                    self.block.raw(&raw);
                }
            }
            Some(Kind::Lost) => {
                // The numbers of a block's events have no gap.
                self.flush(out)?;
                let next = crate::format::u64_at(bytes, 8).saturating_add(1);
                self.block.record(Kind::Lost, bytes, next);
            }
            Some(Kind::Torn) => {
                // What is behind it begins a block.
                self.block.record(Kind::Torn, bytes, 0);
                self.flush(out)?;
            }
            Some(kind) => self.block.record(kind, bytes, 0),
            // A record of a later version. A repair keeps it in the file that was damaged.
            None => {}
        }
        Ok(())
    }

    fn flush(&mut self, out: &mut impl Write) -> std::io::Result<()> {
        if self.block.is_empty() {
            return Ok(());
        }
        self.room.clear();
        self.block
            .finish_compressed(&mut self.compressor, &mut self.room)?;
        self.block.clear();
        out.write_all(&self.room)
    }
}
