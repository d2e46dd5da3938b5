//! Page faults of a store while messages are written and read: few rounds may have any.
#![allow(clippy::unwrap_used, reason = "a test")]

use fanfare_fix::session::{Entry, Kind, MemoryLimits, MemoryStore, MessageStore};

/// Returns the number of page faults of this thread so far.
fn faults() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    // After the name, which is in parentheses and may contain anything.
    let behind = stat.rsplit(") ").next().unwrap();
    behind.split(' ').nth(7).unwrap().parse().unwrap()
}

/// Writes `rounds` messages. Returns for how many of them there was a page fault.
fn disturbed(store: &mut MemoryStore, rounds: u64) -> u64 {
    faults();
    let mut disturbed = 0;
    for _ in 0..rounds {
        let before = faults();
        // A rehearsal, as between two messages, and a message.
        store.reserve(16 << 10).unwrap()[..150].fill(b'r');
        store.prepare();
        store.reserve(16 << 10).unwrap()[..170].fill(b'm');
        let entry = Entry {
            kind: Kind::App,
            transmit: true,
        };
        store.commit(0..170, entry).unwrap();
        store.sent(170);
        disturbed += u64::from(faults() > before);
    }
    disturbed
}

#[test]
fn a_cold_store_disturbs_one_message_in_five_hundred() {
    let rounds = 20_000;
    let disturbed = disturbed(&mut MemoryStore::default(), rounds);
    assert!(disturbed <= rounds / 500, "{disturbed} of {rounds}");
}

#[test]
fn one_that_is_ready_from_the_start_disturbs_none() {
    let limits = MemoryLimits::default();
    let ready = limits.bytes;
    let mut store = MemoryStore::new(MemoryLimits { ready, ..limits });
    let disturbed = disturbed(&mut store, 60_000);
    assert!(disturbed <= 3, "{disturbed}");
}
