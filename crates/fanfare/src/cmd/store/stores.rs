//! Finds stores, and opens them for inspection.

use crate::progress;
use anyhow::{Context, Result, bail};
use fanfare_engine::journal::{
    Damage, Durability, Found, OpenError, Record, SegmentInfo, Snapshot, holder,
};
use fanfare_fix::dict::Printable;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Returns the stores of the folders: each is a store itself, or holds stores. A store is followed
/// by the store of its session's received messages, if there is one. The backup of a repair, and an
/// interrupted import, are included only if named explicitly.
pub(super) fn stores(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in folders {
        if is_store(folder)? {
            push_both(folder, &mut found)?;
            continue;
        }
        let before = found.len();
        for entry in read(folder)? {
            let name = entry.to_string_lossy();
            let is_aside = name.contains(".damaged-") || name.contains(".importing-");
            if entry.is_dir() && !is_aside && is_store(&entry)? {
                push_both(&entry, &mut found)?;
            }
        }
        if found.len() == before {
            bail!("{} has no store", folder.display());
        }
    }
    Ok(found)
}

/// Returns the same stores, and counts their files as work to be done.
pub(super) fn stores_counted(folders: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let stores = stores(folders)?;
    for store in &stores {
        let files = read(store)?;
        progress::begin_files(files.iter().filter(|path| is_segment(path)).count());
    }
    Ok(stores)
}

fn push_both(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    found.push(folder.to_owned());
    let received = folder.join(RECEIVED);
    if received.is_dir() && is_store(&received)? {
        found.push(received);
    }
    Ok(())
}

/// The folder of a session's received messages, within the folder of its store.
const RECEIVED: &str = "received";

fn is_store(folder: &Path) -> Result<bool> {
    Ok(read(folder)?.iter().any(|path| is_segment(path)))
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "journal")
}

/// Returns the entries of a folder, by name.
fn read(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        paths.push(entry.with_context(cannot)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// A store opened for inspection.
pub(super) struct Store {
    pub(super) path: PathBuf,
    pub(super) snapshot: Snapshot,
    pub(super) segments: Vec<SegmentInfo>,
}

impl Store {
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let snapshot = Snapshot::take(&path)?;
        Ok(Self::of(path, snapshot))
    }

    /// Opens a store, and counts its files as work done.
    pub(super) fn open_counted(path: PathBuf) -> Result<Self> {
        let snapshot = Snapshot::take_watched(&path, || progress::advance(1))?;
        Ok(Self::of(path, snapshot))
    }

    fn of(path: PathBuf, snapshot: Snapshot) -> Self {
        let segments = snapshot.segments().collect();
        Self {
            path,
            snapshot,
            segments,
        }
    }

    /// Returns the session, or the folder if no file can be read.
    pub(super) fn name(&self) -> String {
        let name = self.segments.last().map_or_else(
            || self.path.display().to_string(),
            |last| Printable(last.identity.as_bytes()).to_string(),
        );
        if self.is_received() {
            name + " received"
        } else {
            name
        }
    }

    /// Returns the direction of its messages, if the session has a store for each.
    pub(super) fn direction(&self) -> Option<&'static str> {
        match self.is_received() {
            true => Some("in"),
            false if self.path.join(RECEIVED).is_dir() => Some("out"),
            false => None,
        }
    }

    /// Returns whether it holds received messages instead of sent ones.
    pub(super) fn is_received(&self) -> bool {
        self.path.ends_with(RECEIVED)
    }

    /// Returns the messages that count: neither superseded nor copies.
    pub(super) fn messages(&self) -> impl Iterator<Item = Record<'_>> {
        self.snapshot.records().filter_map(|found| match found {
            Found::Good(record) if counts(&record) => Some(record),
            _ => None,
        })
    }
}

/// Returns whether this is a message under a number of its own that was not superseded.
pub(super) fn counts(record: &Record<'_>) -> bool {
    record.visible && matches!(record.kind.name(), "app" | "admin")
}

/// Returns a durability in human-readable form.
pub(super) fn named(durability: Option<Durability>) -> String {
    match durability {
        None => "unknown".to_owned(),
        Some(Durability::None) => "none".to_owned(),
        Some(Durability::Every) => "every".to_owned(),
        Some(Durability::EveryN(n)) => format!("every {n}"),
    }
}

/// Returns why a store cannot be opened; for one in use, names the process that holds it.
pub(super) fn in_use(path: &Path, error: &OpenError) -> String {
    match (error, holder(path)) {
        (OpenError::InUse { .. }, Some(pid)) => format!(
            "store {} is in use by process {pid}: stop that first",
            path.display()
        ),
        _ => error.to_string(),
    }
}

/// Returns a fault, for `--json`.
pub(super) fn fault(damage: &Damage) -> Value {
    json!({
        "file": damage.path.to_string_lossy(),
        "offset": damage.offset,
        "record": damage.record,
        "seq": damage.seq,
        "fault": damage.defect.to_string(),
    })
}
