//! The writing end of a log.

use crate::block::Block;
use crate::error::LogError;
use crate::folder;
use crate::format::{Kind, SEGMENT_HEADER, SegmentHeader};
use crate::lock::Lock;
use crate::marks::Marks;
use crate::place::{Start, Tail, tail_to_write};
use crate::raw::Raw;
use crate::run::{FeedInfo, Run};
use fanfare_market::{Event, Watermark};
use std::fs::{self, File};
use std::ops::RangeInclusive;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The size in bytes at which a block is written.
const BLOCK: usize = 1 << 18;

/// The size in bytes of a block that cannot be written, beyond which nothing is appended.
const FULL: usize = 3 << 20;

/// The most events of a record: a longer message takes several. A block with more events than a
/// reader takes would be no block.
const MOST: usize = 1_024;

/// The permitted sizes of a full segment.
const SIZES: RangeInclusive<u64> = 1 << 16..=16 << 30;

/// The configuration of a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterConfig {
    /// The size at which a segment is full, in bytes: from 64 KiB to 16 GiB. A commit is not
    /// divided, so a segment may be larger by up to one.
    pub segment_bytes: u64,
    /// The number of the first event of a new log, from 1.
    pub first: u64,
}

impl Default for WriterConfig {
    /// Returns 256 MiB, which is four million events.
    fn default() -> Self {
        Self {
            segment_bytes: 256 << 20,
            first: 1,
        }
    }
}

/// The state of a log when it was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Opened {
    /// The number of the next event.
    pub next: u64,
    /// The latest time of arrival in the log, 0 if there is none.
    pub time: u64,
    /// The run that begins, from 1.
    pub run: u64,
    /// The number of half-written bytes that a kill left, which were removed.
    pub torn: u64,
    /// Whether the run before ended in good order.
    pub was_closed: bool,
}

/// The writing end of a log. A folder has one at a time, in all processes.
///
/// Records are gathered until [`Self::commit`]. Committed records survive the end of the process,
/// whatever its cause; after a crash of the machine the last seconds may be missing. It allocates
/// until its buffers have grown to the largest commit, and for each new segment.
#[derive(Debug)]
pub struct Writer {
    folder: PathBuf,
    config: WriterConfig,
    /// The lock, held as long as the log is open.
    _lock: Lock,
    id: u64,
    file: File,
    path: PathBuf,
    ordinal: u64,
    /// The number of the segment's first event.
    first: u64,
    /// The offset of the end of the segment.
    end: u64,
    block: Block,
    run: Run,
    /// The time at which the next run begins, if that could not be written yet.
    restart: Option<u64>,
    marks: Marks,
    room: Vec<u8>,
    /// The number after the last committed event.
    committed: Arc<AtomicU64>,
    /// The number of bytes of written blocks.
    written: u64,
}

impl Writer {
    /// Opens the log of a folder, which is made if it does not exist, and begins a run of the plant
    /// with these feeds at this time (nanoseconds since 1970-01-01 UTC). The feeds are those of
    /// [`Event::source`], from 1: the books of others are not known in
    /// [`Log::as_of`](crate::Log::as_of).
    ///
    /// # Errors
    /// Another writer has the log open, a file cannot be read or written, or a setting is out of
    /// range.
    pub fn open(
        folder: &Path,
        config: WriterConfig,
        feeds: Vec<FeedInfo>,
        now: u64,
    ) -> Result<(Self, Opened), LogError> {
        Self::open_with(folder, config, feeds, now, |_| Ok(()))
    }

    /// Opens the log as [`Self::open`] does. Before the new run, `rescue` appends the events of the
    /// run before that were stored elsewhere; it is called with the log of that run, if there is
    /// one.
    ///
    /// # Errors
    /// Those of [`Self::open`], and those of `rescue`.
    pub fn open_with(
        folder: &Path,
        config: WriterConfig,
        feeds: Vec<FeedInfo>,
        now: u64,
        rescue: impl FnOnce(&mut Self) -> Result<(), LogError>,
    ) -> Result<(Self, Opened), LogError> {
        if !SIZES.contains(&config.segment_bytes) {
            return Err(LogError::Config {
                key: "segment_bytes",
                why: "must be between 64 KiB and 16 GiB",
            });
        }
        folder::make(folder)?;
        let lock = Lock::take(folder)?;
        for unfinished in folder::list(folder)?.unfinished {
            folder::remove(&unfinished)?;
        }
        let unbegun = folder::remove_unbegun(folder)?;
        let mut tail = tail_to_write(folder)?;
        let torn = tail.cut()? + unbegun;
        if tail.ordinal == 0 {
            tail.next = config.first.max(1);
        }
        remove_views(folder, tail.next)?;
        let before = tail.run.take().unwrap_or_default();
        let was_there = before.number > 0;
        let run = Run {
            number: before.number + 1,
            start: now,
            feeds,
        };
        let mut opened = Opened {
            next: tail.next,
            time: tail.time,
            run: run.number,
            torn,
            was_closed: tail.is_closed,
        };
        if !was_there {
            let mut writer = Self::at(folder, config, lock, &tail, run)?;
            writer.put_run();
            writer.write_block()?;
            return Ok((writer, opened));
        }
        let mut writer = Self::at(folder, config, lock, &tail, before)?;
        rescue(&mut writer)?;
        writer.commit()?;
        writer.marks = Marks::default();
        (opened.next, opened.time) = (writer.next(), writer.block.clock());
        // Restarts of a replayed plant that were rescued are runs, too.
        opened.run = writer.run.number + 1;
        writer.run = Run {
            number: opened.run,
            ..run
        };
        writer.next_segment()?;
        Ok((writer, opened))
    }

    /// Continues in the last segment, which a reader may be following, or begins one.
    fn at(
        folder: &Path,
        config: WriterConfig,
        lock: Lock,
        tail: &Tail,
        run: Run,
    ) -> Result<Self, LogError> {
        let block = Block::new(tail.next, tail.time);
        let goes_on = tail.ordinal > 0 && !tail.is_compacted;
        let (ordinal, first, (file, path)) = match goes_on {
            true => {
                let path = folder::segment(folder, tail.ordinal, false);
                let file = File::options().write(true).open(&path);
                let file = file.map_err(LogError::io(&path))?;
                (tail.ordinal, tail.first, (file, path))
            }
            false => {
                let ordinal = tail.ordinal + 1;
                let made = create(folder, ordinal, &block, run.number)?;
                (ordinal, tail.next, made)
            }
        };
        let end = file.metadata().map_err(LogError::io(&path))?.len();
        Ok(Self {
            id: folder::id(folder)?,
            folder: folder.to_owned(),
            config,
            _lock: lock,
            file,
            path,
            ordinal,
            first,
            end,
            block,
            run,
            restart: None,
            marks: Marks::default(),
            room: Vec::new(),
            committed: Arc::new(AtomicU64::new(tail.next)),
            written: 0,
        })
    }

    /// Returns the folder of the log.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the number that tells the log from others, except copies of its folder.
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the number of the next event.
    pub const fn next(&self) -> u64 {
        self.block.next()
    }

    /// Returns the number after the last committed event, which other threads may read.
    pub fn committed(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.committed)
    }

    /// Returns how many bytes of events and instruments it has written so far.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// Returns a start for a reader that has everything so far.
    pub const fn here(&self) -> Start {
        Start::Number(self.block.next())
    }

    /// Appends the events of one message, in the form of [`Event::to_bytes`], in the order of their
    /// numbers. Events whose numbers are not above those before are left out.
    ///
    /// # Errors
    /// The file cannot be written, and 3 MiB wait: nothing is appended, except perhaps the first
    /// events of a message of more than 1,024. See [`Self::commit`].
    #[inline]
    pub fn events(&mut self, events: &[[u8; Event::SIZE]]) -> Result<(), LogError> {
        self.part(events, false)
    }

    /// Appends some events of one message as [`Self::events`] does. `continues` is set if others of
    /// the message follow: readers receive one [`Delivery::End`](fanfare_market::Delivery::End) for
    /// all of them.
    ///
    /// # Errors
    /// Those of [`Self::events`].
    #[inline]
    pub fn part(&mut self, events: &[[u8; Event::SIZE]], continues: bool) -> Result<(), LogError> {
        let mut left = events.len();
        for events in events.chunks(MOST) {
            left -= events.len();
            self.put_events(events, continues || left > 0)?;
        }
        Ok(())
    }

    /// Appends a record of events of one message.
    #[inline]
    fn put_events(
        &mut self,
        events: &[[u8; Event::SIZE]],
        continues: bool,
    ) -> Result<(), LogError> {
        let next = self.block.next();
        let number = |event: &[u8; Event::SIZE]| crate::format::u64_at(event, 0);
        let known = events.iter().take_while(|event| number(event) < next);
        let new = events.get(known.count()..).unwrap_or(&[]);
        if new.len() < events.len() {
            // After a kill, watermarks of events that the log has come again, too.
            self.marks = Marks::default();
        }
        self.make_room(events.len() * Event::SIZE)?;
        if let Some(first) = new.first().map(number)
            && first > next
        {
            self.put_lost(next, first - 1)?;
        }
        if !new.is_empty() {
            for mark in self.marks.take() {
                self.block.record(Kind::Watermark, &mark.to_bytes(), 0);
            }
        }
        if let Some(first) = new.first().map(number)
            && continues
        {
            self.block.record(Kind::Part, &first.to_le_bytes(), 0);
        }
        self.block.events(new);
        Ok(())
    }

    /// Records a [`Delivery::Watermark`](fanfare_market::Delivery::Watermark) before the next
    /// event, in place of an earlier one. One with which the clock was set back is recorded at the
    /// next commit, and no later one takes its place.
    pub const fn watermark(&mut self, mark: Watermark) {
        self.marks.add(mark);
    }

    /// Returns whether a watermark waits for the next event. It is lost with the process.
    pub const fn has_watermark(&self) -> bool {
        !self.marks.is_empty()
    }

    /// Appends the watermark with which the clock was set back, if one waits.
    fn put_back(&mut self) {
        if let Some(mark) = self.marks.take_back() {
            self.block.record(Kind::Watermark, &mark.to_bytes(), 0);
        }
    }

    /// Appends a datagram or a message with the next number, in place of [`Raw::number`]. One of
    /// more than [`Raw::MOST`] bytes is recorded as lost.
    ///
    /// # Errors
    /// Those of [`Self::events`].
    pub fn raw(&mut self, raw: &Raw<'_>) -> Result<(), LogError> {
        if raw.bytes.len() > Raw::MOST {
            return self.lost(self.next(), self.next());
        }
        self.make_room(raw.bytes.len())?;
        self.block.raw(raw);
        Ok(())
    }

    /// Appends an instrument, in the form of `Instrument::write`, before its first event, and again
    /// when its definition has changed.
    ///
    /// # Errors
    /// Those of [`Self::events`].
    pub fn instrument(&mut self, bytes: &[u8]) -> Result<(), LogError> {
        self.make_room(bytes.len())?;
        self.block.record(Kind::Instrument, bytes, 0);
        Ok(())
    }

    /// Records that events did not reach the log. Their numbers are used.
    ///
    /// # Errors
    /// Those of [`Self::events`].
    pub fn lost(&mut self, first: u64, last: u64) -> Result<(), LogError> {
        self.make_room(16)?;
        match last >= self.block.next() {
            true => self.put_lost(first.max(self.block.next()), last),
            false => Ok(()),
        }
    }

    /// Records lost events in a new block, as the numbers of a block's events have no gap.
    fn put_lost(&mut self, first: u64, last: u64) -> Result<(), LogError> {
        self.put_back();
        self.write_block()?;
        let bytes = [first.to_le_bytes(), last.to_le_bytes()];
        let next = last.saturating_add(1);
        self.block.record(Kind::Lost, bytes.as_flattened(), next);
        Ok(())
    }

    fn put_run(&mut self) {
        self.run.write(&mut self.room);
        self.block.record(Kind::Run, &self.room, 0);
    }

    /// Ends the run, and begins the next one with the same feeds: books are unknown from here on.
    ///
    /// # Errors
    /// Those of [`Self::commit`]: the next call begins the run, and nothing is appended before it.
    pub fn restart(&mut self, now: u64) -> Result<(), LogError> {
        self.restart = Some(now);
        // It ends all intervals.
        self.marks = Marks::default();
        self.commit()
    }

    /// Writes the block if `more` bytes would make it too large. If the file cannot be written, the
    /// block grows up to [`FULL`].
    #[inline]
    fn make_room(&mut self, more: usize) -> Result<(), LogError> {
        let len = self.block.len() + more;
        if (len <= BLOCK || self.block.is_empty()) && self.restart.is_none() {
            return Ok(());
        }
        match self.commit() {
            Err(_) if self.restart.is_none() && len <= FULL => Ok(()),
            outcome => outcome,
        }
    }

    /// Writes the appended records: from here on they are in the log, and readers see them.
    ///
    /// # Errors
    /// The file cannot be written, for instance as the disk is full: the appended records are kept,
    /// and the next call tries again.
    pub fn commit(&mut self) -> Result<(), LogError> {
        self.put_back();
        self.write_block()?;
        if let Some(start) = self.restart {
            return self.next_run(start);
        }
        match self.end >= self.config.segment_bytes {
            true => self.roll(),
            false => Ok(()),
        }
    }

    /// Ends the segment, and begins the next one. An empty segment continues.
    ///
    /// # Errors
    /// Those of [`Self::commit`].
    pub fn roll(&mut self) -> Result<(), LogError> {
        self.write_block()?;
        if self.block.next() == self.first {
            return Ok(());
        }
        self.next_segment()
    }

    fn next_run(&mut self, start: u64) -> Result<(), LogError> {
        let before = (self.run.number, self.run.start);
        (self.run.number, self.run.start) = (before.0 + 1, start);
        let ordinal = self.ordinal;
        let begun = self.next_segment();
        match self.ordinal == ordinal {
            true => (self.run.number, self.run.start) = before,
            false => self.restart = None,
        }
        begun
    }

    /// Begins the next segment. A segment is never made again, as a reader may have it open.
    fn next_segment(&mut self) -> Result<(), LogError> {
        let ordinal = self.ordinal + 1;
        let (file, path) = create(&self.folder, ordinal, &self.block, self.run.number)?;
        (self.file, self.path, self.ordinal) = (file, path, ordinal);
        (self.end, self.first) = (SEGMENT_HEADER as u64, self.block.next());
        self.put_run();
        self.write_block()
    }

    fn write_block(&mut self) -> Result<(), LogError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let bytes = self.block.finish();
        let written = self.file.write_all_at(bytes, self.end);
        written.map_err(LogError::io(&self.path))?;
        self.end += bytes.len() as u64;
        self.written += bytes.len() as u64;
        self.block.clear();
        // After the write: a reader that sees the number finds the event.
        self.committed.store(self.block.next(), Ordering::Release);
        Ok(())
    }

    /// Writes the committed records to the disk, and waits for it.
    ///
    /// # Errors
    /// The disk reports an error.
    pub fn sync(&self) -> Result<(), LogError> {
        self.file.sync_data().map_err(LogError::io(&self.path))
    }

    /// Ends the run in good order.
    ///
    /// # Errors
    /// Those of [`Self::commit`].
    pub fn close(mut self) -> Result<(), LogError> {
        self.block.record(Kind::End, &[], 0);
        self.write_block()?;
        folder::remove(&folder::next(&self.folder))?;
        self.sync()
    }
}

/// Removes the checkpoints after events that the log does not have: a crash of the machine may have
/// left them, and what the log has next does not follow them.
fn remove_views(folder: &Path, next: u64) -> Result<(), LogError> {
    let views = folder::list(folder)?.views;
    for view in views.into_iter().filter(|view| *view >= next) {
        folder::remove(&folder::view(folder, view))?;
    }
    Ok(())
}

/// Makes a segment that continues after `block`.
fn create(
    folder: &Path,
    ordinal: u64,
    block: &Block,
    run: u64,
) -> Result<(File, PathBuf), LogError> {
    let (path, next) = (
        folder::segment(folder, ordinal, false),
        folder::next(folder),
    );
    let header = SegmentHeader {
        ordinal,
        first: block.next(),
        time: block.clock(),
        run,
        is_compacted: false,
    };
    // Readers see a segment with its header, or none.
    match File::options().write(true).open(&next) {
        Ok(file) => {
            let written = file.write_all_at(&header.write(), 0);
            let named = written.and_then(|()| fs::rename(&next, &path));
            named.map_err(LogError::io(&path))?;
            Ok((file, path))
        }
        // The keeper has not made it: this waits for the disk.
        Err(_) => {
            folder::write_whole(&path, &header.write())?;
            let file = File::options().write(true).open(&path);
            Ok((file.map_err(LogError::io(&path))?, path))
        }
    }
}

#[cfg(test)]
mod tests;
