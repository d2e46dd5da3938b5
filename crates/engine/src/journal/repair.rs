//! Repair of a journal: cutting off a torn end, and saving the intact records of a damaged one.

use super::damage::{Damage, Defect};
use super::error::OpenError;
use super::folder::{lock, sync_with_name};
use super::inspect::{Found, Record, SegmentInfo, Snapshot};
use super::layout::EntryKind;
use super::segment::Segment;
use super::{Durability, Journal, Options};
use crate::private;
use crate::sys::map;
use fanfare_fix::session::{MessageStore, StoreError};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The result of a repair, or what it would be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The journal is intact.
    Sound,
    /// Incomplete records at the end were cut off.
    Cut {
        /// The first of them.
        from: Damage,
        /// The number of records.
        records: u32,
    },
    /// A new journal of all intact records has replaced the damaged one.
    Rebuilt {
        /// The number of records taken over.
        kept: u64,
        /// The number of damaged records, and of those that a file missing behind them may have
        /// taken back: a resend of them becomes a gap fill.
        lost: u64,
        /// The number of files that are missing or unreadable, or have lost their table of entries.
        /// The number of their records is not known. If one of them was the newest, the numbers are
        /// lower than before: compare them with the counterparty.
        unreadable: usize,
        /// MsgSeqNum(34) of the next message.
        next_sender: u64,
        /// The folder of the damaged journal now; `None` if nothing was done.
        backup: Option<PathBuf>,
    },
}

/// The reason why a repair did not happen. The journal is unchanged.
#[derive(Debug, Error)]
pub enum RepairError {
    /// The journal or its new copy cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new copy cannot be written.
    #[error("cannot write the repaired journal: {0}")]
    Store(StoreError),
    /// No file of the journal can be read.
    #[error("no file of journal {} can be read", .0.display())]
    Nothing(PathBuf),
}

/// Repairs the journal in `folder`. A torn end is cut off in place. From one with other damage all
/// intact records are written to a new journal, which takes its place, and the damaged one stays
/// beside it under another name. The session must not run: its lock is taken. With `dry_run`
/// nothing is changed.
///
/// # Errors
/// See [`RepairError`].
pub fn repair(folder: &Path, dry_run: bool) -> Result<Outcome, RepairError> {
    let _lock = lock(folder)?;
    let snapshot = Snapshot::take(folder)?;
    let damages = snapshot.damages();
    let last = snapshot.segments().last();
    let last = last.ok_or_else(|| RepairError::Nothing(folder.to_owned()))?;
    let Some(first) = damages.first() else {
        return Ok(Outcome::Sound);
    };
    // A kill tears at most one record. Further ones were transmitted, and keep their numbers.
    if let (Defect::Tail { records: 1 }, 1) = (&first.defect, damages.len()) {
        if !dry_run {
            cut(&last.path)?;
        }
        let from = first.clone();
        return Ok(Outcome::Cut { from, records: 1 });
    }
    rebuild(folder, &snapshot, &last, dry_run)
}

/// Renames an unreadable journal, and returns its new name.
pub(super) fn set_aside(folder: &Path) -> Result<PathBuf, OpenError> {
    let _lock = lock(folder)?;
    let backup = beside(folder, "damaged");
    let io_error = |source| OpenError::io(folder, source);
    fs::rename(folder, &backup).map_err(io_error)?;
    private::create_folder(folder).map_err(io_error)?;
    carry_over(&backup, folder).map_err(io_error)?;
    sync_with_name(folder).map_err(io_error)?;
    Ok(backup)
}

/// Cuts off the end in place.
fn cut(path: &Path) -> Result<(), RepairError> {
    let io_error = |source| OpenError::io(path, source);
    let mut segment = Segment::open(path, true)?.map_err(|bad| OpenError::of_header(path, bad))?;
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
    let unreadable = snapshot.lost_files();
    let uncertain = snapshot.uncertain_from();
    let (mut kept, mut lost) = (0, 0);
    for found in snapshot.records() {
        match found {
            Found::Good(record) if !counts(&record) => {}
            Found::Good(record) if is_certain(&record, &uncertain) => kept += 1,
            Found::Good(_) | Found::Bad { .. } => lost += 1,
        }
    }
    for damage in snapshot.damages() {
        if let Defect::Missing { records } = damage.defect {
            lost += u64::from(records);
        }
    }
    let next_sender = last.next_sender.max(snapshot.claimed_next());
    let rebuilt = |backup| Outcome::Rebuilt {
        kept,
        lost,
        unreadable,
        next_sender,
        backup,
    };
    if dry_run {
        return Ok(rebuilt(None));
    }
    let copy = beside(folder, "repaired");
    let io_error = |source| OpenError::io(folder, source);
    let options = options_of(snapshot, last);
    let (mut journal, _) = Journal::open(&copy, &last.identity, options, last.created)?;
    let filled = fill(&mut journal, snapshot, next_sender, last.next_target);
    if let Err(error) = filled.and_then(|()| journal.close()) {
        // The copy is of no use, and the first error is the one to return.
        let _ = fs::remove_dir_all(&copy);
        return Err(RepairError::Store(error));
    }
    let backup = beside(folder, "damaged");
    // The two are exchanged atomically: a session that found no journal would begin at 1.
    if map::exchange(folder, &copy).is_ok() {
        fs::rename(&copy, &backup).map_err(io_error)?;
    } else {
        // The file system cannot exchange them.
        fs::rename(folder, &backup).map_err(io_error)?;
        fs::rename(&copy, folder).map_err(io_error)?;
    }
    carry_over(&backup, folder).map_err(io_error)?;
    sync_with_name(folder).map_err(io_error)?;
    Ok(rebuilt(Some(backup)))
}

/// Returns the options with which a journal continues as its session left it.
pub(super) fn options_of(snapshot: &Snapshot, last: &SegmentInfo) -> Options {
    let segment_bytes = u32::try_from(snapshot.largest())
        .unwrap_or(u32::MAX)
        .clamp(64 << 10, 1 << 30);
    Options {
        segment_bytes,
        max_segments: u32::MAX,
        durability: last.durability.unwrap_or(Durability::None),
        ..Options::default()
    }
}

/// Moves the subfolders of a journal's folder, such as the journal of received messages.
fn carry_over(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            fs::rename(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Returns whether a repair takes this record over: one that was sent again does not count.
fn counts(record: &Record<'_>) -> bool {
    record.visible && record.kind != EntryKind::Copy
}

/// Returns whether no missing file can have taken this record back. `uncertain` is the result of
/// [`Snapshot::uncertain_from`].
fn is_certain(record: &Record<'_>, uncertain: &[u64]) -> bool {
    let from = uncertain.get(record.segment);
    from.is_none_or(|&from| record.seq < from)
}

/// Takes over the intact records that count and are certain, and what was noted of dropped ones.
fn fill(
    journal: &mut Journal,
    snapshot: &Snapshot,
    next_sender: u64,
    target: Option<u64>,
) -> Result<(), StoreError> {
    let uncertain = snapshot.uncertain_from();
    for found in snapshot.records() {
        let record = match found {
            Found::Good(record) if counts(&record) && is_certain(&record, &uncertain) => record,
            _ => continue,
        };
        if record.kind == EntryKind::Skip {
            journal.set_next_sender(record.seq + 1)?;
            continue;
        }
        journal.set_next_sender(record.seq)?;
        journal.append_bytes(record.bytes, record.kind, record.seq)?;
    }
    journal.set_next_sender(next_sender.max(journal.next_sender()))?;
    journal.set_next_target(target.unwrap_or(1))?;
    journal.current.set_dropped(snapshot.dropped());
    journal.set_our_reset(snapshot.our_reset())
}

/// Returns a free name beside the folder.
pub(super) fn beside(folder: &Path, what: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let candidates = (1u32..).map(|n| folder.with_file_name(format!("{name}.{what}-{n}")));
    let mut free = candidates.filter(|path| !path.exists());
    free.next().unwrap_or_else(|| folder.with_extension(what))
}
