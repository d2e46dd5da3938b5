//! Places in a log: the starts of readers, and its end.

use crate::block::{Unpacker, later};
use crate::error::LogError;
use crate::folder;
use crate::format::{BlockHeader, Kind, Records, SegmentHeader, u64_at};
use crate::run::Run;
use crate::segment::{Found, Segment};
use fanfare_market::Event;
use std::path::{Path, PathBuf};

/// The start of a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the first event of the log.
    First,
    /// At the event with this number, which may be the next one.
    Number(u64),
    /// At the first event that arrived at this time or later, in nanoseconds since 1970-01-01 UTC.
    /// If the clock was set back, an event counts as arrived with the latest one before it. A time
    /// before the log is its first event: see [`Begin::check`].
    Time(u64),
    /// At the next event.
    Now,
}

/// The beginning of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Begin {
    /// The number of the first event.
    pub number: u64,
    /// The latest time of arrival in what retention has removed, in nanoseconds since 1970-01-01
    /// UTC; 0 if nothing was removed.
    pub time: u64,
}

impl Begin {
    /// Checks that nothing was removed of what a reader from `start` on reads. A time before the
    /// first event of a log from which nothing was removed is in order.
    ///
    /// # Errors
    /// [`LogError::Gone`].
    pub fn check(&self, start: Start) -> Result<(), LogError> {
        let wanted = match start {
            Start::Number(number) if number.max(1) < self.number => number,
            // The last event that was removed is of this time or a later one.
            Start::Time(time) if self.time > 0 && time <= self.time => {
                self.number.saturating_sub(1)
            }
            _ => return Ok(()),
        };
        Err(LogError::Gone {
            wanted,
            first: self.number,
            time: self.time,
        })
    }
}

/// A moment of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// After the event with this number, and before a restart of the plant that follows it.
    Number(u64),
    /// After the last event that arrived up to this time, in nanoseconds since 1970-01-01 UTC, and
    /// before a restart of the plant that follows it.
    Time(u64),
    /// Before the event with this number, from 1, and after a restart of the plant in front of it,
    /// for a reader that begins with this event.
    Before(u64),
    /// After everything that was written.
    End,
}

/// Whether a reader that stops at the start of a segment still enters it: it may begin a new run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Border {
    Cross,
    Keep,
}

/// The end of a log.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    /// The ordinal of the last segment, 0 if there is none.
    pub(crate) ordinal: u64,
    /// The number of its first event.
    pub(crate) first: u64,
    pub(crate) is_compacted: bool,
    /// The number of the next event.
    pub(crate) next: u64,
    /// The latest time of arrival.
    pub(crate) time: u64,
    /// The last run, if there is one.
    pub(crate) run: Option<Run>,
    pub(crate) is_closed: bool,
    /// Whether damage or the mark of a repair follows the last record with a number.
    pub(crate) is_told: bool,
    /// The file, place and length of bytes at the end of the last segment that are no block.
    pub(crate) torn: Option<(PathBuf, u64, u64)>,
}

impl Tail {
    /// Removes the bytes that a kill left half-written. Returns their number.
    pub(crate) fn cut(&self) -> Result<u64, LogError> {
        let Some((path, at, len)) = &self.torn else {
            return Ok(0);
        };
        let file = std::fs::File::options().write(true).open(path);
        let cut = file.and_then(|file| file.set_len(*at));
        cut.map_err(LogError::io(path))?;
        Ok(len - at)
    }
}

/// Returns the beginning of the log of a folder: its first segment of which something can be read.
pub(crate) fn begin(folder: &Path) -> Result<Begin, LogError> {
    let header = begin_header(folder)?;
    Ok(Begin {
        number: header.first,
        time: header.time,
    })
}

/// Returns the header of the first segment of a folder of which something can be read.
pub(crate) fn begin_header(folder: &Path) -> Result<SegmentHeader, LogError> {
    let segments = folder::list(folder)?.segments;
    let Some(&oldest) = segments.keys().next() else {
        return Err(LogError::NoLog(folder.to_owned()));
    };
    Ok(match readable(folder, segments.into_keys()).next() {
        Some(segment) => segment?.header,
        None => Segment::open_rest(folder, oldest)?.header,
    })
}

/// Opens those of these segments of which something can be read.
pub(crate) fn readable(
    folder: &Path,
    ordinals: impl Iterator<Item = u64>,
) -> impl Iterator<Item = Result<Segment, LogError>> {
    let opened = ordinals.map(move |ordinal| Segment::open_rest(folder, ordinal));
    opened.filter(|opened| !opened.as_ref().is_err_and(LogError::is_lost))
}

/// Returns the run of the first of these segments that names one; `None` if none does.
fn named_run(folder: &Path, ordinals: impl Iterator<Item = u64>) -> Result<Option<u64>, LogError> {
    for segment in readable(folder, ordinals) {
        let run = segment?.header.run;
        if run > 0 {
            return Ok(Some(run));
        }
    }
    Ok(None)
}

/// Returns whether a segment that names no run is of this one: the segments around it are.
pub(crate) fn is_within(folder: &Path, ordinal: u64, run: u64) -> Result<bool, LogError> {
    let segments = folder::list(folder)?.segments;
    let behind = segments.range(ordinal + 1..).map(|(ordinal, _)| *ordinal);
    Ok(named_run(folder, behind)? == Some(run))
}

/// Reads the last segment of a folder of which something can be read, to its end.
pub(crate) fn tail(folder: &Path) -> Result<Tail, LogError> {
    let ordinals = folder::list(folder)?.segments.into_keys();
    match readable(folder, ordinals.rev()).next() {
        Some(segment) => read_to_end(segment?),
        None => tail_to_write(folder),
    }
}

/// Reads the last segment of a folder, whose header a writer needs, to its end.
pub(crate) fn tail_to_write(folder: &Path) -> Result<Tail, LogError> {
    let listing = folder::list(folder)?;
    let Some(&ordinal) = listing.segments.keys().next_back() else {
        return Ok(Tail {
            next: 1,
            ..Tail::default()
        });
    };
    let mut tail = read_to_end(Segment::open(folder, ordinal)?)?;
    if let Some(run) = tail.run.as_mut().filter(|run| run.number == 0) {
        // A repaired segment that names no run may have one of its own.
        let before = named_run(folder, listing.segments.into_keys().rev())?;
        run.number = before.unwrap_or(0) + 1;
    }
    Ok(tail)
}

/// Reads a segment to its end, and returns it as the end of a log.
pub(crate) fn read_to_end(mut segment: Segment) -> Result<Tail, LogError> {
    let mut tail = Tail {
        ordinal: segment.header.ordinal,
        first: segment.header.first,
        is_compacted: segment.header.is_compacted,
        next: segment.header.first,
        time: segment.header.time,
        run: Some(Run {
            number: segment.header.run,
            ..Run::default()
        }),
        ..Tail::default()
    };
    let (mut room, mut unpacker) = (
        Vec::new(),
        Unpacker::new().map_err(LogError::io(&segment.path))?,
    );
    loop {
        match segment.look()? {
            Found::Block(header) => {
                let block = segment.block(&header);
                if unpacker.records(&header, block, &mut room) {
                    let taken = tail.take(&header, &room);
                    taken.map_err(LogError::run(&segment.path))?;
                } else {
                    tail.is_told = true;
                }
                segment.pass(&header);
            }
            Found::End => break,
            Found::Torn if segment.resync()? => tail.is_told = true,
            Found::Torn => {
                tail.torn = Some((segment.path.clone(), segment.at, segment.len()?));
                tail.is_told = true;
                break;
            }
        }
    }
    Ok(tail)
}

impl Tail {
    /// Takes the records of a block; a run that cannot be read is an error.
    fn take(&mut self, header: &BlockHeader, records: &[u8]) -> Result<(), &'static str> {
        self.time = self.time.max(header.time);
        for (kind, bytes) in Records(records) {
            match kind {
                Some(Kind::Events) => {
                    for event in bytes.as_chunks::<{ Event::SIZE }>().0 {
                        self.next = self.next.max(u64_at(event, 0).saturating_add(1));
                        self.time = later(self.time, event);
                    }
                }
                Some(Kind::Raw) => {
                    self.next = self.next.max(u64_at(bytes, 0).saturating_add(1));
                    self.time = self.time.max(u64_at(bytes, 8));
                }
                Some(Kind::Lost) => {
                    self.next = self.next.max(u64_at(bytes, 8).saturating_add(1));
                }
                Some(Kind::Run) => self.run = Some(Run::read(bytes)?),
                _ => {}
            }
            match kind {
                Some(Kind::Events | Kind::Raw | Kind::Lost) => self.is_told = false,
                Some(Kind::Torn) => self.is_told = true,
                _ => {}
            }
            self.is_closed = kind == Some(Kind::End);
        }
        Ok(())
    }
}

/// Opens the segment in which the event with a number is, or would be: the last one that does not
/// begin after it. A number that is gone is an error.
pub(crate) fn segment_of(folder: &Path, number: u64) -> Result<Segment, LogError> {
    let mut found = None;
    // From the newest on: most readers read recent events.
    for segment in readable(folder, folder::list(folder)?.segments.into_keys().rev()) {
        let segment = segment?;
        // Segments without events begin with the same number as the one after them.
        let is_before = segment.header.first < number;
        found = Some(segment);
        if is_before {
            break;
        }
    }
    if let Some(segment) = found
        && segment.header.first <= number
    {
        return Ok(segment);
    }
    let begin = begin(folder)?;
    Err(LogError::Gone {
        wanted: number,
        first: begin.number,
        time: begin.time,
    })
}
