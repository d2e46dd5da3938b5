//! Any records in blocks with right checksums as a segment of a log: a check and readers reach its
//! end, and no reader has an event that the check does not count.
#![no_main]

use fanfare_history::{At, Log, LogError, Start};
use fanfare_market::Delivery;
use libfuzzer_sys::fuzz_target;
use std::fs;

fuzz_target!(|input: (bool, &[u8])| {
    let (is_compacted, bytes) = input;
    let folder = std::env::temp_dir().join(format!("fanfare-fuzz-{}", std::process::id()));
    let end = if is_compacted { "logz" } else { "log" };
    fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join(format!("0000000001.{end}"));
    fs::write(file, segment(is_compacted, bytes)).expect("a file");
    let log = Log::open(&folder).expect("a log");
    let verified = log.verify(|_, _| true).expect("damage is no error");
    if let Ok(events) = events(&log) {
        assert!(events <= verified.events);
    }
    let _ = raw(&log);
    let _ = (log.extent(), log.segments(), log.is_raw());
    let _ = log.as_of(At::End);
    fs::remove_dir_all(&folder).expect("its own folder");
});

/// Reads all of the log; returns the number of its events.
fn events(log: &Log) -> Result<u64, LogError> {
    let mut reader = log.reader(Start::First)?;
    let mut events = 0;
    let mut each = |delivery: Delivery<'_>| {
        events += u64::from(matches!(delivery, Delivery::Event(..)));
    };
    while reader.read_with(100, |_| {}, &mut each)? > 0 {}
    Ok(events)
}

/// Reads all of the log as datagrams and messages.
fn raw(log: &Log) -> Result<(), LogError> {
    let mut reader = log.reader(Start::First)?;
    while reader.read_raw(100, |_| {})? > 0 {}
    Ok(())
}

/// Returns a segment with the blocks that the bytes say.
fn segment(is_compacted: bool, mut rest: &[u8]) -> Vec<u8> {
    let mut file = vec![0; 64];
    file[..8].copy_from_slice(b"FANFLOG\0");
    // The version, the ordinal, the first event and the run.
    for at in [8, 16, 24, 40] {
        file[at] = 1;
    }
    file[48] = is_compacted.into();
    let crc = crc32fast::hash(&file[16..]);
    file[12..16].copy_from_slice(&crc.to_le_bytes());
    while let Some((head, behind)) = rest.split_first_chunk::<8>() {
        let (records, behind) = behind.split_at(usize::from(head[0]).min(behind.len()));
        rest = behind;
        file.extend(block(head, records));
    }
    file
}

/// Returns a block of these records, plain or as compressed columns.
fn block(head: &[u8; 8], records: &[u8]) -> Vec<u8> {
    let [_, coding, first, time, events, plain, ..] = *head;
    let is_plain = coding & 1 == 0;
    let stored = match is_plain {
        true => records.to_vec(),
        false => zstd::bulk::compress(records, 1).expect("memory for a few bytes"),
    };
    let plain = match is_plain {
        true => records.len() as u32,
        false => u32::from(plain) << 3,
    };
    let mut block = vec![0; 40];
    block[..4].copy_from_slice(&(stored.len() as u32).to_le_bytes());
    block[8..12].copy_from_slice(&plain.to_le_bytes());
    block[12] = (!is_plain).into();
    (block[16], block[24], block[32]) = (first, time, events);
    block.extend(stored);
    let crc = crc32fast::hash(&block[8..]);
    block[4..8].copy_from_slice(&crc.to_le_bytes());
    block
}
