//! The journal against an oracle, against kills, and at its limits.

mod growth;
mod inspect;
mod kills;
mod limits;
mod long;
mod losses;
mod model;
mod prepare;
mod resend;
mod secrets;

use super::segment::Segment;
use super::*;
use fanfare_fix::session::{Again, Entry, Kind, MessageStore};
use std::fs::File;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

const IDENTITY: &str = "FIX.4.4:A->B";
const NOW: UtcTimestamp = UtcTimestamp::from_nanos(1_770_000_000_000_000_000);
const APP: Entry = Entry {
    kind: Kind::App,
    transmit: true,
};
const ADMIN: Entry = Entry {
    kind: Kind::Admin,
    transmit: true,
};

/// Returns a message of these fields, with `|` for SOH, in its frame.
fn framed(fields: &str) -> String {
    let fields = fields.replace('|', "\x01");
    let message = format!("8=FIX.4.4\x019={}\x01{fields}", fields.len());
    let sum = message.bytes().fold(0, u8::wrapping_add);
    format!("{message}10={sum:03}\x01")
}

/// Returns the smallest segments, of one size, so that tests reach their ends.
fn small() -> Options {
    Options {
        first_segment_bytes: 64 << 10,
        segment_bytes: 64 << 10,
        max_unsent: 1 << 30,
        ..Options::default()
    }
}

/// A folder that is removed at the end of the test.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("fanfare-journal-{}-{n}", std::process::id())))
    }

    fn open(&self, options: Options) -> Journal {
        Journal::open(&self.0, IDENTITY, options, NOW).unwrap().0
    }

    /// Returns the segments, without the one made in advance.
    fn files(&self) -> Vec<PathBuf> {
        let files = folder::segment_files(&self.0).unwrap().into_iter();
        files
            .map(|(_, path)| path)
            .filter(|path| !Segment::is_blank(path).unwrap())
            .collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes as an encoder does, with some bytes left free in front of the message.
fn put(journal: &mut Journal, text: &[u8], entry: Entry) -> Result<(), StoreError> {
    let front = text.len() % 4;
    let end = front + text.len();
    journal.reserve(end)?[front..end].copy_from_slice(text);
    journal.commit(front..end, entry)
}

/// Returns these options with a limit of two segments.
fn two_of(options: Options) -> Options {
    Options {
        max_segments: 2,
        ..options
    }
}

/// Returns a journal with this many messages, none of which waits; calls `look` after each of them.
fn written(
    folder: &Folder,
    options: Options,
    messages: u64,
    mut look: impl FnMut(&Journal),
) -> Journal {
    let mut journal = folder.open(options);
    for seq in 1..=messages {
        put(&mut journal, &message(seq), APP).unwrap();
        journal.drop_unsent();
        look(&journal);
    }
    journal
}

/// Waits for another thread, for at most a minute.
fn wait_until(mut there: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !there() {
        assert!(Instant::now() < until, "the helper does not come");
        std::thread::yield_now();
    }
}

/// Writes the record of earlier versions for a message that was sent again.
fn old_copy(journal: &mut Journal, text: &[u8]) {
    journal.reserve(text.len()).unwrap()[..text.len()].copy_from_slice(text);
    let last = journal.next_sender() - 1;
    journal
        .append(0..text.len(), EntryKind::Copy, last)
        .unwrap();
}

/// Returns a message that is determined by its number.
fn message(seq: u64) -> Vec<u8> {
    let len = 20 + (seq as usize * 37) % 300;
    let mut text = format!("8=FIX.4.4|34={seq}|58=").into_bytes();
    text.resize(len, b'a' + (seq % 26) as u8);
    text
}

/// Returns all kept messages.
fn kept(journal: &Journal) -> Vec<(u64, Vec<u8>)> {
    let next = |seq| {
        journal
            .first_from(seq)
            .map(|stored| (stored.seq, stored.bytes.to_vec()))
    };
    std::iter::successors(next(0), |(seq, _)| next(seq + 1)).collect()
}

/// Writes a journal of six segments, each of which is ready when it is needed. Returns its
/// messages with their numbers.
fn six_segments(folder: &Folder, options: Options) -> Vec<(u64, Vec<u8>)> {
    let mut journal = folder.open(options);
    let mut seq = 1;
    while journal.sealed.len() < 5 {
        wait_until(|| !journal.awaits_segment());
        put(&mut journal, &message(seq), APP).unwrap();
        seq += 1;
    }
    assert_eq!(journal.stalls(), 0);
    let expected: Vec<_> = (1..seq).map(|seq| (seq, message(seq))).collect();
    assert_eq!(kept(&journal), expected);
    expected
}

/// Transmits everything.
fn drain(journal: &mut Journal) -> Vec<u8> {
    let mut all = Vec::new();
    while !journal.unsent().is_empty() {
        let part = journal.unsent().len().min(1000);
        all.extend_from_slice(&journal.unsent()[..part]);
        journal.sent(part);
    }
    all
}
