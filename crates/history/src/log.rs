//! A log, for reading.

use crate::as_of::AsOf;
use crate::error::LogError;
use crate::folder;
use crate::moment::Moment;
use crate::place::{self, At, Begin, Start, tail};
use crate::reader::Reader;
use crate::repair::{self, Repair};
use crate::run::Run;
use crate::segment::Segment;
use crate::verify::{self, Verified};
use fanfare_market::{Delivery, Event};
use std::path::{Path, PathBuf};

/// The extent of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of the first event.
    pub first: u64,
    /// The number of the event after the last one.
    pub next: u64,
    /// The time of the log in front of the first event, 0 if that is its beginning.
    pub from: u64,
    /// The latest time of arrival.
    pub to: u64,
    /// The number of runs of the plant so far.
    pub run: u64,
    /// Whether the last run has ended in good order.
    pub is_closed: bool,
}

/// A segment of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Its ordinal among all segments that ever existed, from 1.
    pub ordinal: u64,
    /// The number of its first event.
    pub first: u64,
    /// The time of the log before it, 0 if there is none.
    pub time: u64,
    /// The run of the plant that wrote it; 0 if its header and the record of its run are, or were,
    /// damaged.
    pub run: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Whether it was compacted.
    pub is_compacted: bool,
    /// Its file.
    pub path: PathBuf,
}

/// The log of a folder, for reading. Any number of processes may read while one writes.
#[derive(Debug, Clone)]
pub struct Log {
    folder: PathBuf,
}

impl Log {
    /// Opens the log of a folder.
    ///
    /// # Errors
    /// The folder cannot be read, or has no segment.
    pub fn open(folder: &Path) -> Result<Self, LogError> {
        match folder::list(folder)?.segments.is_empty() {
            true => Err(LogError::NoLog(folder.to_owned())),
            false => Ok(Self {
                folder: folder.to_owned(),
            }),
        }
    }

    /// Returns the folder of the log.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns whether a file of this name is, or would be, one of the log's own: to write it
    /// damages the log.
    #[must_use]
    pub fn owns(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(|name| name.to_str());
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let folder = (parent.canonicalize().ok(), self.folder.canonicalize().ok());
        name.is_some_and(folder::is_of_log) && folder.0.is_some() && folder.0 == folder.1
    }

    /// Returns the segments, the oldest first. One whose header is damaged begins with its first
    /// whole block.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub fn segments(&self) -> Result<Vec<SegmentInfo>, LogError> {
        let ordinals = folder::list(&self.folder)?.segments.into_keys();
        let segments = ordinals.map(|ordinal| info(Segment::open_rest(&self.folder, ordinal)?));
        segments.collect()
    }

    /// Returns the segments without those of which nothing can be read, or that have been removed
    /// meanwhile, the oldest first.
    ///
    /// # Errors
    /// The folder, or a segment, cannot be read for another reason.
    pub fn readable_segments(&self) -> Result<Vec<SegmentInfo>, LogError> {
        let ordinals = folder::list(&self.folder)?.segments.into_keys();
        let opened = place::readable(&self.folder, ordinals);
        let known = opened.filter(|opened| !matches!(opened, Err(LogError::Version { .. })));
        known.map(|opened| info(opened?)).collect()
    }

    /// Returns the numbers of the events after which all books are on the disk.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn checkpoints(&self) -> Result<Vec<u64>, LogError> {
        Ok(folder::list(&self.folder)?.views)
    }

    /// Returns the beginning of the log: a segment in front of it of which nothing can be read
    /// counts as removed. A reader that starts at an earlier time begins there. [`Begin::check`]
    /// returns an error if retention has removed the events of that time.
    ///
    /// # Errors
    /// No segment can be read.
    pub fn begins(&self) -> Result<Begin, LogError> {
        place::begin(&self.folder)
    }

    /// Returns the extent of the log. Reads the last segment.
    ///
    /// # Errors
    /// A segment cannot be read.
    pub fn extent(&self) -> Result<Extent, LogError> {
        let begin = self.begins()?;
        let tail = tail(&self.folder)?;
        Ok(Extent {
            first: begin.number,
            next: tail.next,
            from: begin.time,
            to: tail.time,
            run: tail.run.map_or(0, |run| run.number),
            is_closed: tail.is_closed,
        })
    }

    /// Returns the time of arrival of the first event that has one.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn first_time(&self) -> Result<Option<u64>, LogError> {
        let (mut reader, mut first) = (self.reader(Start::First)?, None);
        while first.is_none() {
            let read = reader.read(1, |delivery| {
                if let Delivery::Event(event, _) = delivery {
                    let is_known = event.ts_recv != Event::NO_TIME && event.ts_recv != 0;
                    first = first.or(is_known.then_some(event.ts_recv));
                }
            })?;
            let raw = reader.raw_time();
            first = first.or((raw > 0).then_some(raw));
            if read == 0 {
                break;
            }
        }
        Ok(first)
    }

    /// Returns whether it is a log of datagrams and messages ([`Writer::raw`](crate::Writer::raw)),
    /// by the first piece that can be read; false if there is none.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn is_raw(&self) -> Result<bool, LogError> {
        let mut reader = self.reader(Start::First)?;
        let (mut is_raw, mut is_event) = (false, false);
        while !is_raw && !is_event {
            let event =
                |delivery: Delivery<'_>| is_event |= matches!(delivery, Delivery::Event(..));
            if reader.read_all(1, |_| {}, event, |_| is_raw = true)? == 0 {
                break;
            }
        }
        Ok(is_raw)
    }

    /// Returns the start for a reader of the first event at a moment, or after it.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn place(&self, moment: Moment) -> Result<Start, LogError> {
        let first = match moment {
            Moment::Number(number) => return Ok(Start::Number(number)),
            Moment::Before(_) | Moment::Day => {
                let time = moment.time_from_end(self.extent()?.to);
                return Ok(Start::Time(time.unwrap_or_default()));
            }
            Moment::Utc(_) => 0,
            _ => self.first_time()?.unwrap_or_default(),
        };
        Ok(Start::Time(moment.time(first).unwrap_or_default()))
    }

    /// Returns the moment for [`Self::as_of`]: after the event with a number, or after all events
    /// that had arrived at a time.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn at(&self, moment: Moment) -> Result<At, LogError> {
        Ok(match self.place(moment)? {
            Start::First => At::Before(1),
            Start::Number(number) => At::Number(number),
            Start::Time(time) => At::Time(time),
            Start::Now => At::End,
        })
    }

    /// Returns a reader that begins at `start`.
    ///
    /// # Errors
    /// [`LogError::Gone`] or [`LogError::NotYet`]; a file cannot be read.
    pub fn reader(&self, start: Start) -> Result<Reader, LogError> {
        Reader::open(&self.folder, start)
    }

    /// Returns the run of the plant that wrote the event with this number, or an empty one if the
    /// log does not name it.
    ///
    /// # Errors
    /// Returns an error as [`Self::reader`] does, or if the log cannot be read there.
    pub fn run_of(&self, number: u64) -> Result<Run, LogError> {
        let mut reader = self.reader(Start::Number(number))?;
        let mut is_there = false;
        while !is_there {
            let read = reader.read(1, |delivery| {
                is_there |= matches!(delivery, Delivery::Event(..) | Delivery::Lost { .. });
            })?;
            if read == 0 {
                break;
            }
        }
        Ok(reader.run().cloned().unwrap_or_default())
    }

    /// Returns all books as of a moment. Before the first event of a log from which nothing was
    /// removed they are empty.
    ///
    /// # Errors
    /// Those of [`Self::reader`]: [`LogError::Gone`] also if retention has removed the events of a
    /// time.
    pub fn as_of(&self, at: At) -> Result<AsOf, LogError> {
        AsOf::of(&self.folder, at)
    }

    /// Repairs the log of a folder: rewrites damaged segments with all that can be read of them,
    /// replaces missing segments by empty ones, and removes checkpoints that are damaged or behind
    /// the last event. Damaged segments are kept under another name.
    ///
    /// # Errors
    /// A plant writes the log, the log does not exist, or a file cannot be read or written. Before
    /// anything is changed: a later version wrote a segment, a checkpoint or a run, or a segment
    /// has the name of another one.
    pub fn repair(folder: &Path) -> Result<Vec<Repair>, LogError> {
        repair::repair(folder)
    }

    /// Reads and checks everything. `progress` is called with the bytes read so far and those of
    /// the whole log, and ends the check by returning `false`.
    ///
    /// # Errors
    /// A file cannot be read; damage is no error.
    pub fn verify(&self, progress: impl FnMut(u64, u64) -> bool) -> Result<Verified, LogError> {
        verify::verify(&self.folder, progress)
    }
}

/// Returns the description of an open segment.
fn info(segment: Segment) -> Result<SegmentInfo, LogError> {
    let header = segment.header;
    Ok(SegmentInfo {
        ordinal: header.ordinal,
        first: header.first,
        time: header.time,
        run: header.run,
        bytes: segment.len()?,
        is_compacted: header.is_compacted,
        path: segment.path,
    })
}
