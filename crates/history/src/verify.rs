//! The check of a whole log.

use crate::block::Unpacker;
use crate::error::LogError;
use crate::folder;
use crate::format::{Kind, Records, SEGMENT_HEADER, u64_at};
use crate::known::Known;
use crate::place::tail;
use crate::run::Run;
use crate::segment::{Found, Segment};
use fanfare_market::Event;
use std::path::{Path, PathBuf};

/// A range of a file that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub path: PathBuf,
    /// The offset of the range.
    pub at: u64,
    /// The number of bytes.
    pub bytes: u64,
    /// The kind of damage.
    pub what: &'static str,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// The number of segments read.
    pub segments: u64,
    /// The number of bytes in them.
    pub bytes: u64,
    /// The number of whole blocks.
    pub blocks: u64,
    /// The number of events.
    pub events: u64,
    /// The number of datagrams and messages.
    pub raw: u64,
    /// The number of instruments, each as often as it was written.
    pub instruments: u64,
    /// The number of whole checkpoints.
    pub checkpoints: u64,
    /// The first and the last number of each range of missing events: lost on their way to the log,
    /// or in damaged bytes.
    pub missing: Vec<(u64, u64)>,
    /// The number of events whose numbers are not above those before them.
    pub repeated: u64,
    /// The ranges that cannot be read, and the missing segments and ends of segments, which have no
    /// bytes.
    pub damage: Vec<Damage>,
    /// Whether the check ended before everything was read.
    pub is_partial: bool,
}

impl Verified {
    /// Returns whether nothing is damaged or repeated. Events that did not reach the log are no
    /// damage.
    #[must_use]
    pub const fn is_whole(&self) -> bool {
        self.damage.is_empty() && self.repeated == 0
    }
}

/// Most ranges of missing numbers kept; further ones are merged into one.
const MOST_RANGES: usize = 10_000;

/// The description of a file whose version is unknown.
const VERSION: &str = "unknown version: written by a later program, or damaged";

struct Check<'a, F> {
    folder: &'a Path,
    found: Verified,
    /// The next number, once one is known.
    next: Option<u64>,
    /// The segment before, and its length.
    before: Option<(PathBuf, u64)>,
    /// The segment before, if its end seems to be missing, and its length.
    cut: Option<(PathBuf, u64)>,
    /// Whether damage, or the mark of a repair, is behind the last number.
    is_told: bool,
    unpacker: Unpacker,
    room: Vec<u8>,
    progress: F,
    total: u64,
}

pub(crate) fn verify<F>(folder: &Path, progress: F) -> Result<Verified, LogError>
where
    F: FnMut(u64, u64) -> bool,
{
    let listing = folder::list(folder)?;
    if listing.segments.is_empty() {
        return Err(LogError::NoLog(folder.to_owned()));
    }
    let size = |(ordinal, is_compacted): (&u64, &bool)| {
        let path = folder::segment(folder, *ordinal, *is_compacted);
        std::fs::metadata(path).map_or(0, |metadata| metadata.len())
    };
    let mut check = Check {
        folder,
        found: Verified::default(),
        next: None,
        before: None,
        cut: None,
        is_told: false,
        unpacker: Unpacker::new().map_err(LogError::io(folder))?,
        room: Vec::new(),
        progress,
        total: listing.segments.iter().map(size).sum(),
    };
    let last = listing.segments.keys().next_back().copied();
    let mut before: Option<u64> = None;
    for &ordinal in listing.segments.keys() {
        let missing = before.map_or(ordinal, |before| before + 1)..ordinal;
        for ordinal in missing.take(MOST_RANGES).chain([ordinal]) {
            if !check.segment(ordinal, Some(ordinal) == last)? {
                check.found.is_partial = true;
                return Ok(check.found);
            }
        }
        before = Some(ordinal);
    }
    for view in listing.views {
        check.view(view)?;
    }
    Ok(check.found)
}

impl<F: FnMut(u64, u64) -> bool> Check<'_, F> {
    /// Checks a segment; returns false if the check is to end.
    fn segment(&mut self, ordinal: u64, is_last: bool) -> Result<bool, LogError> {
        let Some(mut segment) = self.open(ordinal)? else {
            return Ok(true);
        };
        self.found.segments += 1;
        self.begin(&segment);
        loop {
            match segment.look()? {
                Found::Block(header) => {
                    let block = segment.block(&header);
                    let is_read = self.unpacker.records(&header, block, &mut self.room);
                    match is_read {
                        true => self.records(&segment, header.size()),
                        false => {
                            let what = "records that cannot be decompressed";
                            self.damage(segment.path.clone(), segment.at, header.size(), what);
                        }
                    }
                    segment.pass(&header);
                }
                Found::End => break,
                Found::Torn => {
                    let at = segment.at;
                    let is_behind = segment.resync()?;
                    let end = if is_behind {
                        segment.at
                    } else {
                        segment.len()?
                    };
                    let what = match is_behind || !is_last {
                        true => "bytes that are not a block",
                        false => "incomplete block: being written, or cut off by a kill",
                    };
                    self.damage(segment.path.clone(), at, end - at, what);
                    if !is_behind {
                        break;
                    }
                }
            }
            if !(self.progress)(self.found.bytes + segment.at, self.total) {
                return Ok(false);
            }
        }
        self.tell_cut(None);
        let len = segment.len()?;
        self.found.bytes += len;
        self.before = Some((segment.path, len));
        Ok(true)
    }

    /// Begins a segment. A writer records what does not reach the log, and begins a segment with
    /// the number after its last record: other missing numbers were cut off.
    fn begin(&mut self, segment: &Segment) {
        let first = segment.header.first;
        let is_cut = !self.is_told && self.next.is_some_and(|next| next < first);
        self.reach(first);
        let before = self.before.take().filter(|_| is_cut);
        self.cut = before.filter(|(path, _)| {
            !folder::was_repaired(path) && !folder::was_repaired(&segment.path)
        });
    }

    /// Records that the end of the segment before is missing, unless a repair has marked the
    /// beginning of this one, of which `kind` is the first record.
    fn tell_cut(&mut self, kind: Option<Kind>) {
        if let Some((path, len)) = self.cut.take()
            && kind != Some(Kind::Torn)
        {
            let what = "the end is missing: the next segment begins later";
            self.damage(path, len, 0, what);
        }
    }

    /// Opens a segment, and records a damaged header; `None` if nothing of it can be read.
    fn open(&mut self, ordinal: u64) -> Result<Option<Segment>, LogError> {
        let (path, what) = match Segment::open(self.folder, ordinal) {
            Ok(segment) => return Ok(Some(segment)),
            Err(LogError::BadSegment { path, why }) => {
                match Segment::open_rest(self.folder, ordinal) {
                    Err(error) if error.is_lost() => (path, why),
                    opened => {
                        self.damage(path, 0, SEGMENT_HEADER as u64, why);
                        return opened.map(Some);
                    }
                }
            }
            Err(LogError::Version { path, .. }) => (path, VERSION),
            Err(error) if error.is_missing() => return self.missing(ordinal).map(|()| None),
            Err(error) => return Err(error),
        };
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        self.damage(path, 0, bytes, what);
        Ok(None)
    }

    /// Records a missing segment, if it was not removed by retention: that leaves none before it.
    fn missing(&mut self, ordinal: u64) -> Result<(), LogError> {
        let first = folder::list(self.folder)?.segments.into_keys().next();
        if first.is_some_and(|first| first > ordinal) {
            // The next segment begins after what was removed.
            self.next = None;
        } else {
            let path = folder::segment(self.folder, ordinal, false);
            self.damage(path, 0, 0, "missing segment");
        }
        Ok(())
    }

    /// Counts the records of the block of this size at the current offset of a segment.
    fn records(&mut self, segment: &Segment, size: u64) {
        self.found.blocks += 1;
        let room = std::mem::take(&mut self.room);
        for (kind, bytes) in Records(&room) {
            self.tell_cut(kind);
            match kind {
                Some(Kind::Events) => {
                    for event in bytes.as_chunks::<{ Event::SIZE }>().0 {
                        self.event(u64_at(event, 0));
                    }
                }
                Some(Kind::Raw) => {
                    self.event(u64_at(bytes, 0));
                    self.found.events -= 1;
                    self.found.raw += 1;
                }
                Some(Kind::Instrument) => self.found.instruments += 1,
                Some(Kind::Run) => {
                    if let Err(what) = Run::read(bytes) {
                        self.damage(segment.path.clone(), segment.at, size, what);
                    }
                }
                Some(Kind::Lost) => {
                    let last = u64_at(bytes, 8);
                    self.reach(last.saturating_add(1));
                    self.is_told = false;
                }
                Some(Kind::Torn) => self.is_told = true,
                _ => {}
            }
        }
        self.room = room;
    }

    fn event(&mut self, number: u64) {
        self.found.events += 1;
        self.is_told = false;
        if self.next.is_some_and(|next| number < next) {
            self.found.repeated += 1;
            return;
        }
        self.reach(number);
        self.next = Some(number.saturating_add(1));
    }

    /// Records that the numbers from the next one on, below this one, are missing.
    fn reach(&mut self, number: u64) {
        let next = *self.next.get_or_insert(number);
        if next < number {
            self.miss(next, number - 1);
            self.next = Some(number);
        }
    }

    fn miss(&mut self, first: u64, last: u64) {
        let is_full = self.found.missing.len() >= MOST_RANGES;
        match self.found.missing.last_mut() {
            Some((_, end)) if is_full || *end + 1 == first => *end = last,
            _ => self.found.missing.push((first, last)),
        }
    }

    fn view(&mut self, number: u64) -> Result<(), LogError> {
        let what = match Known::read(self.folder, number) {
            Ok(Some(_)) if self.is_of_log(number) => {
                self.found.checkpoints += 1;
                return Ok(());
            }
            Ok(Some(_)) => "checkpoint beyond the last event: the end of the log is missing",
            Ok(None) | Err(LogError::BadSegment { .. } | LogError::Version { .. }) => {
                "unreadable checkpoint: the one before it is used"
            }
            Err(LogError::Run { why, .. }) => why,
            // Retention has removed it.
            Err(error) if error.is_missing() => return Ok(()),
            Err(error) => return Err(error),
        };
        let path = folder::view(self.folder, number);
        let bytes = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        self.damage(path, 0, bytes, what);
        Ok(())
    }

    /// Returns whether the log had reached a number when it was checked, or has by now.
    fn is_of_log(&self, number: u64) -> bool {
        self.next.is_some_and(|next| number < next)
            || tail(self.folder).is_ok_and(|tail| number < tail.next)
    }

    fn damage(&mut self, path: PathBuf, at: u64, bytes: u64, what: &'static str) {
        self.is_told = true;
        self.found.damage.push(Damage {
            path,
            at,
            bytes,
            what,
        });
    }
}
