//! The storm of the session's tests over journals: two sessions on a bad network under virtual
//! time, where a side that restarts has only its files.
//!
//! `FANFARE_SEEDS=10000` runs more seeds, `FANFARE_SEED=7` just that one.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

#[allow(dead_code, reason = "the session's own tests use the rest")]
#[path = "../../../fix/tests/session/fields.rs"]
mod fields;
#[path = "../../../fix/tests/session/net.rs"]
mod net;

use fanfare_engine::journal::{Durability, Journal, Options, Recovery};
use fanfare_wire::UtcTimestamp;
use net::{Shelf, storm};
use std::path::PathBuf;

/// A folder with the journal of one side.
struct Files {
    folder: PathBuf,
    options: Options,
    records: u64,
}

impl Files {
    fn journal(&self) -> (Journal, Recovery) {
        let now = UtcTimestamp::from_nanos(1_795_168_800_000_000_000);
        Journal::open(&self.folder, "storm", self.options, now).unwrap()
    }
}

impl Shelf for Files {
    type Store = Journal;

    fn new(seed: u64, side: usize) -> Self {
        let memory = PathBuf::from("/dev/shm");
        let base = if memory.is_dir() {
            memory
        } else {
            std::env::temp_dir()
        };
        // Several seeds run at the same time.
        let name = format!("fanfare-storm-{}-{seed}-{side}", std::process::id());
        let durabilities = [Durability::None, Durability::Every, Durability::EveryN(3)];
        let folder = base.join(name);
        let _ = std::fs::remove_dir_all(&folder);
        Self {
            folder,
            options: Options {
                segment_bytes: 64 << 10,
                durability: durabilities[(seed as usize + side) % 3],
                ..Options::default()
            },
            records: 0,
        }
    }

    fn open(&mut self) -> Journal {
        self.journal().0
    }

    /// Opens the journal again without closing the old one, as after a kill of the process.
    fn reopen(&mut self, before: Journal) -> Journal {
        drop(before);
        let (journal, recovery) = self.journal();
        assert!(recovery.is_unremarkable());
        assert!(recovery.records >= self.records, "{recovery:?}");
        self.records = recovery.records;
        journal
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

#[test]
fn each_message_once_and_in_order_over_journals() {
    storm::<Files>(500);
}
