//! Real market data: decoded completely, and encoded again to the same bytes.

use std::io::Write;
use std::path::Path;

use fanfare_fast::{Decoder, Encoder, Message, Program};

const DATA: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/moex-spectra"
);

/// The templates and a file, or `None` (said so) where the data is not there.
fn load(file: &str) -> Option<(Program, Vec<u8>)> {
    let folder = Path::new(DATA);
    let Ok(xml) = std::fs::read_to_string(folder.join("templates.xml")) else {
        // Not by a macro: what those print of a test that passes is not shown.
        let _ = writeln!(std::io::stderr(), "skipped: no data in {DATA}");
        return None;
    };
    let bytes = std::fs::read(folder.join(file)).unwrap();
    Some((Program::parse(&xml).unwrap(), bytes))
}

/// Decodes and encodes all; returns template and sequence number
/// of all but the Reset messages.
fn round_trip(program: &Program, bytes: &[u8]) -> Vec<(Option<u32>, u64)> {
    let mut decoder = Decoder::new(program.clone());
    let mut encoder = Encoder::new(program.clone());
    let (mut message, mut at, mut numbers) = (Message::new(), 0, Vec::new());
    let mut out = Vec::new();
    while at < bytes.len() {
        let len = decoder
            .decode(&bytes[at..], &mut message)
            .unwrap_or_else(|error| {
                panic!("{error} in {:?}, message at {at}", error.path(program))
            });
        out.clear();
        encoder.encode(&message, &mut out).unwrap();
        assert_eq!(out, bytes[at..at + len], "message at {at}");
        let view = message.view(program).unwrap();
        let id = view.template().id();
        if id != Some(120) {
            numbers.push((id, view.tag(34).unwrap().as_u64().unwrap()));
        }
        at += len;
    }
    numbers
}

#[test]
fn both_lines_of_the_incremental_channel_are_complete() {
    for (file, first, last) in [
        ("increment_a.dat", 482_727, 490_827),
        ("increment_b.dat", 482_751, 490_838),
    ] {
        let Some((program, bytes)) = load(file) else {
            return;
        };
        let messages = round_trip(&program, &bytes);
        let numbers: Vec<u64> = messages.into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, (first..=last).collect::<Vec<u64>>());
    }
}

#[test]
fn the_snapshot_channel_is_complete() {
    let Some((program, bytes)) = load("snapshot.dat") else {
        return;
    };
    // 7,848 snapshots, each preceded by a Reset; and as many messages around them.
    let messages = round_trip(&program, &bytes);
    assert_eq!(
        messages.iter().filter(|(id, _)| *id == Some(75)).count(),
        7848
    );
    assert_eq!(messages.len(), 7848 + 2 * 733);
}
