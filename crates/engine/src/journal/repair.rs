//! Cutting off a torn end, and saving what is whole of a damaged journal.

use super::damage::{Damage, Defect};
use super::error::OpenError;
use super::inspect::{Found, Record, SegmentInfo, Snapshot};
use super::layout::EntryKind;
use super::open::bad_header;
use super::segment::Segment;
use super::{Durability, Journal, Options};
use fanfare_fix::session::{MessageStore, StoreError};
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a repair did, or would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// There is nothing to do.
    Sound,
    /// The records at the end that are not whole were cut off.
    Cut {
        /// Where they began: the first of them.
        from: Damage,
        /// How many they were.
        records: u32,
    },
    /// A new journal with all that is in order is in the place of the damaged one.
    Rebuilt {
        /// Records that were taken over.
        kept: u64,
        /// Records that were damaged: a resend of them becomes a gap fill.
        lost: u64,
        /// Files that could not be understood at all; their records are lost, and if it was the
        /// newest, the numbers are older than they were: compare them with the counterparty.
        unreadable: usize,
        /// Where the damaged journal is now; `None` if nothing was done.
        backup: Option<PathBuf>,
    },
}

/// Why a repair did not happen. The journal is as it was.
#[derive(Debug, Error)]
pub enum RepairError {
    /// The journal or its new copy cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new copy cannot be written.
    #[error("cannot write the repaired journal: {0}")]
    Store(StoreError),
    /// No file of the journal can be understood.
    #[error("nothing in journal {} can be read", .0.display())]
    Nothing(PathBuf),
}

/// Puts the journal in `folder` in order: a torn end is cut off in place; of one with other damage
/// all records that are in order are written to a new journal, which takes its place, and the
/// damaged one stays beside it under another name. The session must not run: its lock is taken.
/// With `dry_run` nothing is changed.
///
/// # Errors
/// See [`RepairError`].
pub fn repair(folder: &Path, dry_run: bool) -> Result<Outcome, RepairError> {
    let _lock = super::open::lock(folder)?;
    let snapshot = Snapshot::take(folder)?;
    let damages = snapshot.damages();
    let last = snapshot.segments().last();
    let last = last.ok_or_else(|| RepairError::Nothing(folder.to_owned()))?;
    let Some(first) = damages.first() else {
        return Ok(Outcome::Sound);
    };
    if let (Defect::Tail { records }, 1) = (&first.defect, damages.len()) {
        if !dry_run {
            cut(&last.path)?;
        }
        let (from, records) = (first.clone(), *records);
        return Ok(Outcome::Cut { from, records });
    }
    rebuild(folder, &snapshot, &last, dry_run)
}

/// Cuts the end off in place.
fn cut(path: &Path) -> Result<(), RepairError> {
    let io_error = |source| OpenError::io(path, source);
    let mut segment = Segment::open(path, true)?.map_err(|bad| bad_header(path, bad))?;
    segment.scan();
    segment.cut_tail();
    Ok(segment.sync().map_err(io_error)?)
}

fn rebuild(
    folder: &Path,
    snapshot: &Snapshot,
    last: &SegmentInfo,
    dry_run: bool,
) -> Result<Outcome, RepairError> {
    let unreadable = snapshot.unreadable().len();
    let (mut kept, mut lost) = (0, 0);
    for found in snapshot.records() {
        match found {
            Found::Good(record) => kept += u64::from(counts(&record)),
            Found::Bad { .. } => lost += 1,
        }
    }
    for damage in snapshot.damages() {
        if let Defect::Missing { records } = damage.defect {
            lost += u64::from(records);
        }
    }
    if dry_run {
        return Ok(Outcome::Rebuilt {
            kept,
            lost,
            unreadable,
            backup: None,
        });
    }
    let copy = beside(folder, "repaired");
    let io_error = |source| OpenError::io(folder, source);
    let size = fs::metadata(&last.path).map_err(io_error)?.len();
    let segment_bytes = u32::try_from(size)
        .unwrap_or(u32::MAX)
        .clamp(64 << 10, 1 << 30);
    let options = Options {
        segment_bytes,
        max_segments: u32::MAX,
        durability: last.durability.unwrap_or(Durability::None),
        ..Options::default()
    };
    let (mut journal, _) = Journal::open(&copy, &last.identity, options, last.created)?;
    let filled = fill(&mut journal, snapshot, last.next_target);
    if let Err(error) = filled.and_then(|()| journal.close()) {
        // The copy is worth nothing; the error is what counts.
        let _ = fs::remove_dir_all(&copy);
        return Err(RepairError::Store(error));
    }
    let backup = beside(folder, "damaged");
    fs::rename(folder, &backup).map_err(io_error)?;
    fs::rename(&copy, folder).map_err(io_error)?;
    Ok(Outcome::Rebuilt {
        kept,
        lost,
        unreadable,
        backup: Some(backup),
    })
}

/// Whether a repair takes this record over: what was sent again does not count.
fn counts(record: &Record<'_>) -> bool {
    record.visible && record.kind != EntryKind::Copy
}

/// Takes over the good records that count.
fn fill(journal: &mut Journal, snapshot: &Snapshot, target: Option<u64>) -> Result<(), StoreError> {
    for found in snapshot.records() {
        let record = match found {
            Found::Good(record) if counts(&record) => record,
            _ => continue,
        };
        if record.kind == EntryKind::Skip {
            journal.set_next_sender(record.seq + 1)?;
            continue;
        }
        journal.set_next_sender(record.seq)?;
        let len = record.bytes.len();
        journal
            .reserve(len)?
            .get_mut(..len)
            .ok_or(StoreError::TooLong)?
            .copy_from_slice(record.bytes);
        journal.append(0..len, record.kind, record.seq)?;
    }
    let next = snapshot
        .segments()
        .last()
        .map_or(1, |last| last.next_sender);
    journal.set_next_sender(next.max(journal.next_sender()))?;
    journal.set_next_target(target.unwrap_or(1))
}

/// A name beside the folder that is not taken.
fn beside(folder: &Path, what: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let candidates = (1u32..).map(|n| folder.with_file_name(format!("{name}.{what}-{n}")));
    let mut free = candidates.filter(|path| !path.exists());
    free.next().unwrap_or_else(|| folder.with_extension(what))
}
