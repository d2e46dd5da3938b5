//! `fanfare store verify`: checks every CRC, and the order of the files.

use super::stores::{Store, fault, stores_counted};
use crate::plural::counted;
use crate::print::{exit_code, say};
use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::journal::{Damage, Defect, holder};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Options of `fanfare store verify`.
#[derive(ClapArgs)]
pub(crate) struct Args {
    /// Stores, or folders of stores.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// One JSON object on one line for each store.
    #[arg(long)]
    json: bool,
}

/// The most faults of one store that are listed.
const MOST: usize = 50;
/// The attempts to read a store in use whose end is half-written.
const LOOKS: usize = 5;

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut sound = true;
    for path in stores_counted(&args.folders)? {
        let (store, damages) = look(path)?;
        sound &= damages.is_empty();
        if args.json {
            say!("{}", as_json(&store, &damages));
        } else {
            tell(&store, &damages);
        }
    }
    Ok(exit_code(sound))
}

fn look(path: PathBuf) -> Result<(Store, Vec<Damage>)> {
    for _ in 1..LOOKS {
        let store = Store::open_counted(path.clone())?;
        let damages = store.snapshot.damages();
        let only_end = |damage: &Damage| {
            // The second is a file that was created between two reads.
            matches!(damage.defect, Defect::Tail { .. } | Defect::NextMissing(_))
        };
        if !damages.iter().any(only_end) || holder(&path).is_none() {
            return Ok((store, damages));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let store = Store::open(path)?;
    let damages = store.snapshot.damages();
    Ok((store, damages))
}

fn records(store: &Store) -> u64 {
    store.segments.iter().map(|s| u64::from(s.records)).sum()
}

fn tell(store: &Store, damages: &[Damage]) {
    let (name, records, files) = (store.name(), records(store), store.segments.len());
    let (records, files) = (counted(records, "record"), counted(files as u64, "file"));
    if damages.is_empty() {
        return say!("{name}: {records} in {files}, all in order");
    }
    say!(
        "{name}: {records} in {files}, {}:",
        counted(damages.len() as u64, "fault")
    );
    for damage in damages.iter().take(MOST) {
        say!("  {damage}");
    }
    if let Some(more @ 1..) = damages.len().checked_sub(MOST) {
        say!("  and {more} more");
    }
}

fn as_json(store: &Store, damages: &[Damage]) -> serde_json::Value {
    json!({
        "session": store.name(),
        "path": store.path.to_string_lossy(),
        "records": records(store),
        "files": store.segments.len(),
        "ok": damages.is_empty(),
        "faults": damages.iter().map(fault).collect::<Vec<_>>(),
    })
}
