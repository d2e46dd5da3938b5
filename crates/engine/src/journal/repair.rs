//! Saving what is whole of a damaged journal.

use super::error::OpenError;
use super::inspect::{Found, Snapshot};
use super::layout::EntryKind;
use super::{Journal, Options};
use fanfare_fix::session::{MessageStore, StoreError};
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a repair did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repaired {
    /// Records that were taken over.
    pub kept: u64,
    /// Records that were damaged: a resend of them becomes a gap fill.
    pub lost: u64,
    /// Files that could not be understood at all; their records are lost, and if it was the
    /// newest, the numbers are older than they were: compare them with the counterparty.
    pub unreadable: usize,
    /// Where the damaged journal is now.
    pub backup: PathBuf,
}

/// Why a repair did not happen. The journal is as it was.
#[derive(Debug, Error)]
pub enum RepairError {
    /// The journal or its new copy cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The new copy cannot be written.
    #[error("cannot write the repaired journal: {0}")]
    Store(#[from] StoreError),
    /// No file of the journal can be understood.
    #[error("nothing in journal {} can be read", .0.display())]
    Nothing(PathBuf),
}

/// Writes all records of the journal in `folder` that are in order to a new one and puts that in
/// its place; the damaged one stays beside it under another name. The session must not run.
///
/// # Errors
/// See [`RepairError`].
pub fn repair(folder: &Path) -> Result<Repaired, RepairError> {
    let _lock = super::open::lock(folder)?;
    let snapshot = Snapshot::take(folder)?;
    let last = snapshot.segments().last();
    let last = last.ok_or_else(|| RepairError::Nothing(folder.to_owned()))?;
    let copy = beside(folder, "repaired");
    let io_error = |source| OpenError::io(folder, source);
    let size = fs::metadata(&last.path).map_err(io_error)?.len();
    let segment_bytes = u32::try_from(size)
        .unwrap_or(u32::MAX)
        .clamp(64 << 10, 1 << 30);
    let options = Options {
        segment_bytes,
        max_segments: u32::MAX,
        ..Options::default()
    };
    let (mut journal, _) = Journal::open(&copy, &last.identity, options, last.created)?;
    let filled = fill(&mut journal, &snapshot, last.next_target);
    let (kept, lost) = match filled.and_then(|counts| journal.close().map(|()| counts)) {
        Ok(counts) => counts,
        Err(error) => {
            // The copy is worth nothing; the error is what counts.
            let _ = fs::remove_dir_all(&copy);
            return Err(error.into());
        }
    };
    let backup = beside(folder, "damaged");
    fs::rename(folder, &backup).map_err(io_error)?;
    fs::rename(&copy, folder).map_err(io_error)?;
    Ok(Repaired {
        kept,
        lost,
        unreadable: snapshot.unreadable().len(),
        backup,
    })
}

/// Takes over the good records that count; gives how many, and how many bad ones there were.
fn fill(
    journal: &mut Journal,
    snapshot: &Snapshot,
    target: Option<u64>,
) -> Result<(u64, u64), StoreError> {
    let (mut kept, mut lost) = (0, 0);
    for found in snapshot.records() {
        let record = match found {
            Found::Bad { .. } => {
                lost += 1;
                continue;
            }
            Found::Good(record) if !record.visible || record.kind == EntryKind::Copy => continue,
            Found::Good(record) => record,
        };
        kept += 1;
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
    journal.set_next_target(target.unwrap_or(1))?;
    Ok((kept, lost))
}

/// A name beside the folder that is not taken.
fn beside(folder: &Path, what: &str) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let candidates = (1u32..).map(|n| folder.with_file_name(format!("{name}.{what}-{n}")));
    let mut free = candidates.filter(|path| !path.exists());
    free.next().unwrap_or_else(|| folder.with_extension(what))
}
