//! Segments that grow, and messages written into them.

use super::*;

/// Returns options with a small first segment, and larger ones after it.
fn growing() -> Options {
    Options {
        first_segment_bytes: 32 << 10,
        segment_bytes: 256 << 10,
        ..small()
    }
}

fn sizes(folder: &Folder) -> Vec<u64> {
    let files = folder::segment_files(&folder.0).unwrap().into_iter();
    files
        .map(|(_, path)| std::fs::metadata(path).unwrap().len() >> 10)
        .collect()
}

#[test]
fn a_session_that_says_little_has_one_small_file() {
    let folder = Folder::new();
    let mut journal = folder.open(Options::default());
    for _ in 0..20 {
        put(&mut journal, b"8=FIX.4.4|35=0", ADMIN).unwrap();
        // As in a rehearsal: the longest message is reserved, and nothing is written.
        journal.reserve(68 << 10).unwrap();
        journal.prepare();
    }
    wait_until(|| !journal.awaits_segment());
    assert_eq!(sizes(&folder), [32]);
    journal.reset(UtcTimestamp::from_nanos(7)).unwrap();
    assert_eq!(sizes(&folder), [32], "a reset is no reason to grow");
    assert_eq!(journal.stalls(), 0);
}

#[test]
fn segments_double_up_to_their_full_size_and_are_ready_in_time() {
    let folder = Folder::new();
    let expected = six_segments(&folder, growing());
    assert_eq!(sizes(&folder), [32, 64, 128, 256, 256, 256]);
    assert_eq!(kept(&folder.open(growing())), expected);
}

#[test]
fn room_for_the_longest_message_wastes_no_segment() {
    let folder = Folder::new();
    let mut journal = folder.open(growing());
    let longest = 100 << 10;
    let mut all = Vec::new();
    for seq in 1..=60 {
        let text = message(seq);
        journal.reserve(longest).unwrap()[9..9 + text.len()].copy_from_slice(&text);
        journal.commit(9..9 + text.len(), APP).unwrap();
        all.extend(text);
    }
    assert_eq!(
        journal.sealed.len(),
        0,
        "60 short messages fit into the first one"
    );
    assert_eq!(drain(&mut journal), all);
    // The longest message has a segment of its size at once, and is found there.
    let text = vec![b'x'; longest];
    put(&mut journal, &text, APP).unwrap();
    assert_eq!(drain(&mut journal), text);
    assert_eq!(sizes(&folder)[..2], [32, 256]);
    assert_eq!(journal.first_from(61).unwrap().bytes, text);
    drop(journal);
    assert_eq!(folder.open(growing()).first_from(61).unwrap().bytes, text);
}

#[test]
fn small_segments_count_by_their_bytes() {
    let folder = Folder::new();
    let mut most = 0;
    let journal = written(&folder, two_of(growing()), 6_000, |journal| {
        let files = journal.sealed.iter().map(|s| s.len()).sum::<u32>() + journal.current.len();
        most = most.max(files);
    });
    assert_eq!(most, 512 << 10);
    assert_eq!(journal.sealed.len(), 1);
}

#[test]
fn a_large_file_opened_again_is_not_in_memory_until_it_is_written_to() {
    let folder = Folder::new();
    let whole = Options {
        first_segment_bytes: 4 << 20,
        ..Options::default()
    };
    let mut journal = folder.open(whole);
    for seq in 1..=100 {
        put(&mut journal, &message(seq), APP).unwrap();
    }
    drop(journal);
    let mut journal = folder.open(Options::default());
    let resident = journal.current.resident();
    assert!(resident <= 256 << 10, "{resident}");
    for seq in 101..=5_000 {
        put(&mut journal, &message(seq), APP).unwrap();
        journal.prepare();
    }
    let expected: Vec<_> = (1..=5_000).map(|seq| (seq, message(seq))).collect();
    assert_eq!(kept(&journal), expected);
}
