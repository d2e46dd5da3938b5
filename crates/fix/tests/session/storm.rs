//! The storm over stores in memory, which outlive a restart.

use fanfare_fix::session::MemoryStore;

use crate::net::{Shelf, storm};

struct Memory;

impl Shelf for Memory {
    type Store = MemoryStore;

    fn new(_: u64, _: usize) -> Self {
        Self
    }

    fn open(&mut self) -> MemoryStore {
        MemoryStore::default()
    }

    fn reopen(&mut self, before: MemoryStore) -> MemoryStore {
        before
    }
}

#[test]
fn each_message_once_and_in_order() {
    storm::<Memory>(10_000);
}
