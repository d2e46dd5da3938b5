//! The frame finder over a stream cut in two ways: the outcomes must be the same.
#![no_main]

use fanfare_fix::codec::{Frame, FrameFinder, Garbled, Sought};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, u8, &[u8])| {
    let (max_len, piece, stream) = input;
    let finder = FrameFinder::new(usize::from(max_len) + 64);
    let whole = outcomes(&finder, stream, stream.len());
    assert_eq!(whole, outcomes(&finder, stream, usize::from(piece)));
});

/// Where each message or garbled stretch stands in the stream.
fn outcomes(
    finder: &FrameFinder,
    stream: &[u8],
    piece: usize,
) -> Vec<(usize, usize, Option<Garbled>)> {
    let mut found = Vec::new();
    let (mut from, mut read) = (0, 0);
    let mut sought = Sought::default();
    loop {
        match finder.find_further(&stream[from..read], &mut sought) {
            Frame::Message { start, end } => {
                found.push((from + start, from + end, None));
                from += end;
            }
            Frame::Garbled { start, end, why } => {
                assert!(end > start && from + end <= read);
                found.push((from + start, from + end, Some(why)));
                from += end;
            }
            Frame::Partial { start, need } => {
                assert!(need.is_none_or(|need| from + need > read));
                from += start;
                assert!(read - from < finder.max_len());
                if read == stream.len() {
                    return found;
                }
                read = (read + piece.max(1)).min(stream.len());
            }
        }
    }
}
