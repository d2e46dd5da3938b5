//! Finding stores, and looking into one.

use crate::progress;
use anyhow::{Context, Result, bail};
use fanfare_engine::journal::{
    Damage, Durability, Found, OpenError, Record, SegmentInfo, Snapshot, holder,
};
use fanfare_fix::dict::Printable;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The stores that folders name: each is a store itself, or holds stores. Behind a store comes the
/// one of what its session has received, if there is one. What a repair has put aside, and an
/// import that was cut short, are only taken when they are named themselves.
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
            bail!("there is no store in {}", folder.display());
        }
    }
    Ok(found)
}

/// The same, and counts their files as work to be done.
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

/// The folder of what a session has received, in that of its store.
const RECEIVED: &str = "received";

fn is_store(folder: &Path) -> Result<bool> {
    Ok(read(folder)?.iter().any(|path| is_segment(path)))
}

fn is_segment(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "journal")
}

/// What is in a folder, by name.
fn read(folder: &Path) -> Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        paths.push(entry.with_context(cannot)?.path());
    }
    paths.sort();
    Ok(paths)
}

/// A look into one store.
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

    /// The same; its files are counted as work done.
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

    /// The session, or the folder if no file can be read.
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

    /// Which way its messages went, where the session has a store for each.
    pub(super) fn direction(&self) -> Option<&'static str> {
        match self.is_received() {
            true => Some("in"),
            false if self.path.join(RECEIVED).is_dir() => Some("out"),
            false => None,
        }
    }

    /// Whether it holds what the session received, and not what it sent.
    pub(super) fn is_received(&self) -> bool {
        self.path.ends_with(RECEIVED)
    }

    /// The messages that count: not taken back, no copies.
    pub(super) fn messages(&self) -> impl Iterator<Item = Record<'_>> {
        self.snapshot.records().filter_map(|found| match found {
            Found::Good(record) if counts(&record) => Some(record),
            _ => None,
        })
    }
}

/// A message under a number of its own that was not taken back.
pub(super) fn counts(record: &Record<'_>) -> bool {
    record.visible && matches!(record.kind.name(), "app" | "admin")
}

/// A durability as people write it.
pub(super) fn named(durability: Option<Durability>) -> String {
    match durability {
        None => "unknown".to_owned(),
        Some(Durability::None) => "none".to_owned(),
        Some(Durability::Every) => "every".to_owned(),
        Some(Durability::EveryN(n)) => format!("every {n}"),
    }
}

/// Why a store cannot be opened; of one in use, by whom it is.
pub(super) fn in_use(path: &Path, error: &OpenError) -> String {
    match (error, holder(path)) {
        (OpenError::InUse { .. }, Some(pid)) => format!(
            "store {} is in use by process {pid}: stop that first",
            path.display()
        ),
        _ => error.to_string(),
    }
}

/// One thing that is wrong, for `--json`.
pub(super) fn fault(damage: &Damage) -> Value {
    json!({
        "file": damage.path.to_string_lossy(),
        "offset": damage.offset,
        "record": damage.record,
        "seq": damage.seq,
        "fault": damage.defect.to_string(),
    })
}
