//! The scanner of logs over text cut in two ways: what it finds must be the same.
#![no_main]

use fanfare_fix::text::{Scanner, Skipped};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, text) = input;
    assert_eq!(found(text, text.len()), found(text, usize::from(piece)));
});

/// The prefixes, messages and flaws, and what was skipped.
fn found(text: &[u8], piece: usize) -> (Vec<(Vec<u8>, Vec<u8>, usize)>, Skipped) {
    let mut scanner = Scanner::new(200);
    let mut all = Vec::new();
    for part in text.chunks(piece.max(1)) {
        scanner.push(part);
        take(&mut scanner, &mut all);
    }
    scanner.finish();
    take(&mut scanner, &mut all);
    (all, scanner.skipped())
}

fn take(scanner: &mut Scanner, all: &mut Vec<(Vec<u8>, Vec<u8>, usize)>) {
    while let Some(next) = scanner.next() {
        let message = next.message.bytes().to_vec();
        all.push((next.prefix.to_vec(), message, next.flaws.len()));
    }
}
