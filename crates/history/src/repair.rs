//! Repairs damaged logs.

use crate::block::{Block, Unpacker};
use crate::error::LogError;
use crate::folder::{self, Listing};
use crate::format::{Kind, Records, SegmentHeader};
use crate::keeper::{Damaged, compact};
use crate::known::Known;
use crate::lock::Lock;
use crate::place::{Tail, is_within, read_to_end};
use crate::segment::{Found, Segment};
use std::fs;
use std::path::{Path, PathBuf};

/// The level of zstd for rewritten segments.
const LEVEL: i32 = 3;

/// The repair of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mended {
    /// A segment was rewritten, with all that can be read of it.
    Segment,
    /// A missing segment was replaced by one without events.
    Hole,
    /// A checkpoint that is unreadable, or beyond the last event, was removed: the one before it is
    /// used.
    Checkpoint,
}

/// One repair.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repair {
    /// The file that was damaged, or missing.
    pub path: PathBuf,
    /// The kind of the repair.
    pub what: Mended,
    /// The path of the damaged file now.
    pub kept: Option<PathBuf>,
}

/// Repairs the log of a folder, as its only writer. Events that cannot be read stay missing, and
/// readers report that. A log with a segment, a checkpoint or a run of a later version, or with a
/// segment under the name of another one, is not changed.
pub(crate) fn repair(folder: &Path) -> Result<Vec<Repair>, LogError> {
    let _lock = Lock::take(folder)?;
    let listing = folder::list(folder)?;
    let mut done = Vec::new();
    let mut ordinals = listing.segments.keys();
    let (first, last) = (ordinals.next().copied(), ordinals.next_back().copied());
    let Some(first) = first else {
        return Err(LogError::NoLog(folder.to_owned()));
    };
    check(folder, &listing)?;
    let mut end = Tail {
        next: 1,
        ..Tail::default()
    };
    for ordinal in first..=last.unwrap_or(first) {
        let is_compacted = listing.segments.get(&ordinal).copied();
        let repaired = match is_compacted {
            Some(is_compacted) => {
                let next = beginning(folder, ordinal + 1)?;
                mend(folder, ordinal, is_compacted, &end, next)?
            }
            None => Some(fill(folder, ordinal, &end)?),
        };
        done.extend(repaired);
        let before = end.run.take();
        end = read_to_end(Segment::open(folder, ordinal)?)?;
        end.run = end.run.filter(|run| run.number > 0).or(before);
    }
    for view in listing.views {
        // A start removes those beyond the last event, too: their numbers are used again.
        if view < end.next && matches!(Known::read(folder, view), Ok(Some(_))) {
            continue;
        }
        let path = folder::view(folder, view);
        folder::remove(&path)?;
        done.push(Repair {
            path,
            what: Mended::Checkpoint,
            kept: None,
        });
    }
    Ok(done)
}

/// Checks everything that can be read: no later version wrote it, and each segment has its own
/// name.
///
/// # Errors
/// A later version wrote a segment, a checkpoint or a run, a segment has the name of another one,
/// or a file cannot be read.
fn check(folder: &Path, listing: &Listing) -> Result<(), LogError> {
    for ordinal in listing.segments.keys() {
        Segment::check_name(folder, *ordinal)?;
        match Segment::open_rest(folder, *ordinal) {
            Err(error) if error.is_lost() => {}
            opened => _ = read_to_end(opened?)?,
        }
    }
    for view in &listing.views {
        if let Err(error @ (LogError::Run { .. } | LogError::Version { .. })) =
            Known::read(folder, *view)
        {
            return Err(error);
        }
    }
    Ok(())
}

/// Returns the header of a segment after `before`.
fn header(ordinal: u64, before: &Tail, is_compacted: bool) -> SegmentHeader {
    SegmentHeader {
        ordinal,
        first: before.next,
        time: before.time,
        run: before.run.as_ref().map_or(1, |run| run.number),
        is_compacted,
    }
}

/// Returns the contents of a segment of which nothing can be read.
fn empty(header: SegmentHeader) -> Vec<u8> {
    let mut block = Block::new(header.first, header.time);
    block.record(Kind::Torn, &[], 0);
    [&header.write()[..], block.finish()].concat()
}

/// Makes an empty segment in place of a missing one.
fn fill(folder: &Path, ordinal: u64, before: &Tail) -> Result<Repair, LogError> {
    let path = folder::segment(folder, ordinal, false);
    folder::write_whole(&path, &empty(header(ordinal, before, false)))?;
    Ok(Repair {
        path,
        what: Mended::Hole,
        kept: None,
    })
}

/// Returns whether a segment ends before the number `next`, and neither damage nor the mark of a
/// repair is at its end.
fn is_cut(path: &Path, next: u64) -> Result<bool, LogError> {
    let end = read_to_end(Segment::open_file(path)?)?;
    Ok(end.next < next && !end.is_told && !folder::was_repaired(path))
}

/// Returns the number with which a segment begins; 0 if it cannot be read, or if its beginning may
/// have been repaired.
fn beginning(folder: &Path, ordinal: u64) -> Result<u64, LogError> {
    let Ok(mut segment) = Segment::open(folder, ordinal) else {
        return Ok(0);
    };
    if folder::was_repaired(&segment.path) {
        return Ok(0);
    }
    let mut room = Vec::new();
    if let Found::Block(header) = segment.look()? {
        let mut unpacker = Unpacker::new().map_err(LogError::io(&segment.path))?;
        if unpacker.records(&header, segment.block(&header), &mut room)
            && let Some((Some(Kind::Torn), _)) = Records(&room).next()
        {
            return Ok(0);
        }
    }
    Ok(segment.header.first)
}

/// Rewrites a segment if it is damaged, or if its end is missing: the segment behind it begins with
/// the number `next`, 0 if that is unknown.
fn mend(
    folder: &Path,
    ordinal: u64,
    is_compacted: bool,
    before: &Tail,
    next: u64,
) -> Result<Option<Repair>, LogError> {
    let path = folder::segment(folder, ordinal, is_compacted);
    let mut is_empty = false;
    let (mut segment, has_header) = match Segment::open_file(&path) {
        Ok(segment) => (segment, true),
        Err(LogError::BadSegment { .. }) => {
            let named = header(ordinal, before, is_compacted);
            let mut segment = Segment::open_with(&path, SegmentHeader { run: 0, ..named })?;
            is_empty = !segment.begin_with_first_block()?;
            if segment.header.run == 0 && is_within(folder, ordinal, named.run)? {
                segment.header.run = named.run;
            }
            (segment, false)
        }
        Err(error) => return Err(error),
    };
    let damaged = match has_header && is_cut(&path, next)? {
        true => Damaged::Cut,
        false => Damaged::PassOver,
    };
    let to = folder::segment(folder, ordinal, true);
    let new = to.with_extension("logz.new");
    if is_empty {
        let header = SegmentHeader {
            is_compacted: true,
            ..segment.header
        };
        folder::write_whole(&new, &empty(header))?;
    } else if compact(&mut segment, &new, LEVEL, damaged)? && has_header {
        folder::remove(&new)?;
        return Ok(None);
    }
    // The damaged file has a second name before the new one replaces it.
    let kept = folder::kept(&path);
    folder::remove(&kept)?;
    fs::hard_link(&path, &kept).map_err(LogError::io(&kept))?;
    fs::rename(&new, &to).map_err(LogError::io(&to))?;
    if to != path {
        folder::remove(&path)?;
    }
    Ok(Some(Repair {
        path,
        what: Mended::Segment,
        kept: Some(kept),
    }))
}
