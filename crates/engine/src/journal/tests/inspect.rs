//! Listing, verifying, exporting, repairing.

use super::super::layout::Header;
use super::*;

/// Five kinds of records, over two segments.
fn mixed() -> Folder {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, b"8=FIX\x0135=A\x01", ADMIN).unwrap();
    put(&mut journal, b"8=FIX\x0158=\"\\\xe9\x01", APP).unwrap();
    put(&mut journal, b"again", Entry::Copy).unwrap();
    journal.set_next_sender(10).unwrap();
    put(&mut journal, b"taken back", APP).unwrap();
    journal.set_next_sender(10).unwrap();
    put(
        &mut journal,
        b"ten",
        Entry::New {
            kind: Kind::Admin,
            transmit: false,
        },
    )
    .unwrap();
    journal.set_next_target(33).unwrap();
    folder
}

fn good(snapshot: &Snapshot) -> Vec<Record<'_>> {
    let good = |found| {
        if let Found::Good(record) = found {
            Some(record)
        } else {
            None
        }
    };
    snapshot.records().filter_map(good).collect()
}

#[test]
fn a_snapshot_lists_and_exports_what_is_there() {
    let folder = mixed();
    let _in_use = folder.open(small());
    let snapshot = Snapshot::take(&folder.0).unwrap();
    assert!(snapshot.is_sound());
    let segments: Vec<SegmentInfo> = snapshot.segments().collect();
    let figures: Vec<_> = segments
        .iter()
        .map(|s| (s.records, s.next_sender, s.bad))
        .collect();
    assert_eq!(figures, [(5, 11, 0), (1, 11, 0)]);
    assert_eq!(
        (segments[1].next_target, segments[0].identity.as_str()),
        (Some(33), IDENTITY)
    );
    let records = good(&snapshot);
    let shape: Vec<_> = records
        .iter()
        .map(|r| (r.seq, r.kind.name(), r.visible))
        .collect();
    assert_eq!(
        shape,
        [
            (1, "admin", true),
            (2, "app", true),
            (2, "copy", true),
            (9, "skip", true),
            (10, "app", false),
            (10, "admin", true),
        ]
    );
    let (mut text, mut json) = (Vec::new(), Vec::new());
    records[1].write_text(&mut text).unwrap();
    records[1].write_json(&mut json).unwrap();
    assert_eq!(text, b"8=FIX|58=\"\\\xe9|\n");
    let expected = "{\"seq\":2,\"kind\":\"app\",\
        \"message\":\"8=FIX\\u000158=\\\"\\\\\\u00e9\\u0001\"}\n";
    assert_eq!(String::from_utf8(json).unwrap(), expected);
}

#[test]
fn a_repair_keeps_what_is_whole_and_the_damaged_one_beside_it() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    for seq in 1..=400 {
        put(&mut journal, &message(seq), APP).unwrap();
    }
    journal.set_next_target(9).unwrap();
    journal.close().unwrap();
    let path = folder.files().remove(0);
    let mut image = std::fs::read(&path).unwrap();
    let header = Header::read(&image).unwrap().0;
    let fifth = header.data_start() + (1..5).map(|seq| message(seq).len()).sum::<usize>();
    image[fifth] ^= 1; // the message of 5
    image[layout::HEADER_LEN + 8 * layout::ENTRY_LEN + 29] ^= 1; // the CRC of 9
    std::fs::write(&path, &image).unwrap();
    assert!(!Snapshot::take(&folder.0).unwrap().is_sound());
    assert!(Journal::open(&folder.0, IDENTITY, small(), NOW).is_err());

    let repaired = repair(&folder.0).unwrap();
    assert_eq!(
        (repaired.kept, repaired.lost, repaired.unreadable),
        (398, 2, 0)
    );
    assert_eq!(
        std::fs::read(repaired.backup.join(path.file_name().unwrap())).unwrap(),
        image
    );
    std::fs::remove_dir_all(&repaired.backup).unwrap();
    let journal = folder.open(small());
    let whole = (1..=400).filter(|seq| ![5, 9].contains(seq));
    assert_eq!(
        kept(&journal),
        whole.map(|seq| (seq, message(seq))).collect::<Vec<_>>()
    );
    assert_eq!((journal.next_sender(), journal.next_target()), (401, 9));
    assert!(matches!(
        repair(&folder.0),
        Err(RepairError::Open(OpenError::InUse { .. }))
    ));
}

#[test]
fn a_repair_keeps_numbers_that_were_set() {
    let folder = mixed();
    let repaired = repair(&folder.0).unwrap();
    std::fs::remove_dir_all(&repaired.backup).unwrap();
    let journal = folder.open(small());
    let texts: Vec<_> = kept(&journal);
    assert_eq!(
        texts,
        [
            (2, b"8=FIX\x0158=\"\\\xe9\x01".to_vec()),
            (10, b"ten".to_vec())
        ]
    );
    assert_eq!((journal.next_sender(), journal.next_target()), (11, 33));
}

#[test]
fn an_unreadable_file_is_told_and_does_not_stop_a_repair() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.is_empty() {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    let next = journal.next_sender();
    drop(journal);
    let files = folder.files();
    let mut image = std::fs::read(&files[0]).unwrap();
    image[20] ^= 1;
    std::fs::write(&files[0], &image).unwrap();
    let repaired = repair(&folder.0).unwrap();
    std::fs::remove_dir_all(&repaired.backup).unwrap();
    assert_eq!((repaired.kept, repaired.unreadable), (1, 1));
    assert_eq!(folder.open(small()).next_sender(), next);
    std::fs::write(folder.files().remove(0), b"rubbish").unwrap();
    assert!(matches!(repair(&folder.0), Err(RepairError::Nothing(_))));
}
