//! Listing, verifying, exporting, repairing.

use super::super::layout::Header;
use super::*;
use fanfare_fix::session::OurReset;

/// Returns a journal with five kinds of records, over two segments.
fn mixed() -> Folder {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, b"8=FIX\x0135=A\x01", ADMIN).unwrap();
    put(&mut journal, b"8=FIX\x0158=\"\\\xe9\x01", APP).unwrap();
    old_copy(&mut journal, b"again");
    journal.set_next_sender(10).unwrap();
    put(&mut journal, b"taken back", APP).unwrap();
    journal.set_next_sender(10).unwrap();
    put(
        &mut journal,
        b"ten",
        Entry {
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
    assert!(snapshot.damages().is_empty());
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
    assert_eq!(text, b"8=FIX|58=\"\\\\\\xe9|\n");
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
    let snapshot = Snapshot::take(&folder.0).unwrap();
    assert!(Journal::open(&folder.0, IDENTITY, small(), NOW).is_err());

    let told: Vec<_> = snapshot
        .damages()
        .iter()
        .map(|damage| (damage.record, damage.seq, damage.defect.clone()))
        .collect();
    let crc = |record, seq| (Some(record), Some(seq), Defect::Crc);
    assert_eq!(told, [crc(4, 5), crc(8, 9)]);
    let planned = repair(&folder.0, true).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), image, "nothing was changed");
    assert_eq!(counts(planned), (398, 2, 0, None));
    let (taken, lost, unreadable, backup) = counts(repair(&folder.0, false).unwrap());
    assert_eq!((taken, lost, unreadable), (398, 2, 0));
    let backup = backup.unwrap();
    assert_eq!(
        std::fs::read(backup.join(path.file_name().unwrap())).unwrap(),
        image
    );
    std::fs::remove_dir_all(&backup).unwrap();
    let journal = folder.open(small());
    let whole = (1..=400).filter(|seq| ![5, 9].contains(seq));
    assert_eq!(
        kept(&journal),
        whole.map(|seq| (seq, message(seq))).collect::<Vec<_>>()
    );
    assert_eq!((journal.next_sender(), journal.next_target()), (401, 9));
    assert!(matches!(
        repair(&folder.0, true),
        Err(RepairError::Open(OpenError::InUse { .. }))
    ));
}

/// Damages the CRC of the copy in a [`mixed`] journal: no record that counts is lost.
fn damage_copy(folder: &Folder) {
    let path = folder.files().remove(0);
    let mut image = std::fs::read(&path).unwrap();
    image[layout::HEADER_LEN + 2 * layout::ENTRY_LEN + 28] ^= 1;
    std::fs::write(&path, &image).unwrap();
}

#[test]
fn a_reset_that_is_open_outlives_a_repair_and_ends_when_numbers_are_set() {
    let folder = mixed();
    let our_reset = || folder.open(small()).our_reset();
    let mut journal = folder.open(small());
    journal.set_our_reset(OurReset::Asked).unwrap();
    drop(journal);
    damage_copy(&folder);
    rebuilt(&folder);
    assert_eq!(our_reset(), OurReset::Asked);
    set_numbers(&folder.0, None, None).unwrap();
    assert_eq!(our_reset(), OurReset::Asked);
    set_numbers(&folder.0, None, Some(7)).unwrap();
    assert_eq!(our_reset(), OurReset::None);
}

#[test]
fn a_repair_keeps_numbers_that_were_set() {
    let folder = mixed();
    damage_copy(&folder);
    let (taken, lost, ..) = rebuilt(&folder);
    assert_eq!((taken, lost), (4, 1));
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
    let (taken, _, unreadable, _) = rebuilt(&folder);
    assert_eq!((taken, unreadable), (1, 1));
    assert_eq!(folder.open(small()).next_sender(), next);
    std::fs::write(folder.files().remove(0), b"rubbish").unwrap();
    assert!(matches!(
        repair(&folder.0, false),
        Err(RepairError::Nothing(_))
    ));
}

/// Writes messages up to the one before `end`.
fn put_to(journal: &mut Journal, end: u64) {
    for seq in journal.next_sender()..end {
        put(journal, &message(seq), APP).unwrap();
    }
}

/// Returns the messages with these numbers.
fn expected(all: &[Range<u64>]) -> Vec<(u64, Vec<u8>)> {
    let all = all.iter().cloned().flatten();
    all.map(|seq| (seq, message(seq))).collect()
}

/// Writes three files: the first has messages up to 100, the second begins at `second` and has 11,
/// the third has 10. Destroys the header of the second, and repairs the journal.
fn without_second(second: u64) -> (Folder, u64, u64) {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put_to(&mut journal, 101);
    for (first, end) in [(second, second + 11), (second + 11, second + 21)] {
        journal.rotate(first, NOW, None).unwrap();
        put_to(&mut journal, end);
    }
    drop(journal);
    destroy_second(&folder);
    let (taken, lost, ..) = rebuilt(&folder);
    (folder, taken, lost)
}

/// Destroys the header of the second file.
fn destroy_second(folder: &Folder) {
    let path = &folder.files()[1];
    let mut image = std::fs::read(path).unwrap();
    image[..layout::HEADER_LEN].fill(0);
    std::fs::write(path, &image).unwrap();
}

#[test]
fn messages_that_a_missing_file_took_back_stay_gone() {
    let (folder, taken, lost) = without_second(50);
    let journal = folder.open(small());
    assert_eq!(kept(&journal), expected(&[1..50, 61..71]));
    assert_eq!((taken, lost, journal.next_sender()), (59, 11, 71));
    // A file that went on behind the one before it took nothing back.
    let (folder, taken, lost) = without_second(101);
    let journal = folder.open(small());
    assert_eq!(kept(&journal), expected(&[1..101, 112..122]));
    assert_eq!((taken, lost, journal.next_sender()), (110, 0, 122));
}

#[test]
fn messages_taken_back_stay_gone_where_the_missing_file_raised_the_number_again() {
    for has_third in [true, false] {
        let folder = Folder::new();
        let mut journal = folder.open(small());
        put_to(&mut journal, 101);
        journal.set_next_sender(50).unwrap();
        put_to(&mut journal, 53);
        journal.set_next_sender(150).unwrap();
        put_to(&mut journal, 153);
        if has_third {
            journal.rotate(153, NOW, None).unwrap();
            put_to(&mut journal, 160);
        }
        drop(journal);
        destroy_second(&folder);
        let (taken, lost, ..) = rebuilt(&folder);
        let journal = folder.open(small());
        let (third, end) = if has_third { (153, 160) } else { (101, 101) };
        assert_eq!(kept(&journal), expected(&[1..50, third..end]));
        assert_eq!((taken, lost), (49 + end - third, 51));
        assert_eq!(journal.next_sender(), end);
    }
}

/// Returns the counts of a rebuild: kept, lost, unreadable, backup.
fn counts(outcome: Outcome) -> (u64, u64, usize, Option<PathBuf>) {
    match outcome {
        Outcome::Rebuilt {
            kept,
            lost,
            unreadable,
            backup,
            ..
        } => (kept, lost, unreadable, backup),
        other => panic!("{other:?}"),
    }
}

/// Rebuilds, and removes the damaged journal.
fn rebuilt(folder: &Folder) -> (u64, u64, usize, Option<PathBuf>) {
    let told = counts(repair(&folder.0, false).unwrap());
    std::fs::remove_dir_all(told.3.as_ref().unwrap()).unwrap();
    told
}

#[test]
fn a_torn_end_is_cut_in_place_and_told() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    for seq in 1..=9 {
        put(&mut journal, &message(seq), APP).unwrap();
    }
    journal.set_next_target(4).unwrap();
    drop(journal);
    assert_eq!(repair(&folder.0, false).unwrap(), Outcome::Sound);
    let path = folder.files().remove(0);
    let mut image = std::fs::read(&path).unwrap();
    let ninth = layout::HEADER_LEN + 8 * layout::ENTRY_LEN;
    image[ninth + 28] ^= 1;
    std::fs::write(&path, &image).unwrap();
    for dry_run in [true, false] {
        let Outcome::Cut { from, records: 1 } = repair(&folder.0, dry_run).unwrap() else {
            panic!("not just the end")
        };
        assert_eq!(
            (from.record, from.seq, from.bytes as usize, from.offset),
            (Some(8), Some(9), message(9).len(), ninth as u64)
        );
        assert_eq!(std::fs::read(&path).unwrap() == image, dry_run);
    }
    assert!(Snapshot::take(&folder.0).unwrap().damages().is_empty());
    let (journal, recovery) = Journal::open(&folder.0, IDENTITY, small(), NOW).unwrap();
    assert!(recovery.is_unremarkable());
    assert_eq!((journal.next_sender(), journal.next_target()), (9, 4));
}

#[test]
fn a_number_that_was_on_the_disk_stays_used_when_its_record_is_damaged_or_gone() {
    let ninth = layout::HEADER_LEN + 8 * layout::ENTRY_LEN;
    let damaged: [fn(&mut [u8]); 3] = [
        |entry| entry[28] ^= 1,
        |entry| entry[0] ^= 1,
        |entry| entry.fill(0),
    ];
    for (damage, is_gone) in damaged.into_iter().zip([false, false, true]) {
        let folder = Folder::new();
        let mut options = Options {
            durability: Durability::Every,
            ..small()
        };
        let mut journal = folder.open(options);
        put_to(&mut journal, 10);
        journal.set_next_target(4).unwrap();
        journal.close().unwrap();
        let path = folder.files().remove(0);
        let mut image = std::fs::read(&path).unwrap();
        damage(&mut image[ninth..ninth + layout::ENTRY_LEN]);
        std::fs::write(&path, &image).unwrap();
        let damages = Snapshot::take(&folder.0).unwrap().damages();
        let told: Vec<_> = damages.iter().map(|d| (d.record, &d.defect)).collect();
        let defect = match is_gone {
            true => Defect::Missing { records: 1 },
            false => Defect::Crc,
        };
        assert_eq!(told, [(Some(8), &defect)]);
        assert_eq!(counts(repair(&folder.0, true).unwrap()), (8, 1, 0, None));
        let opened = Journal::open(&folder.0, IDENTITY, options, NOW);
        let Err(OpenError::Lost(loss)) = opened else {
            panic!("the counterparty may have it");
        };
        assert_eq!((loss.from, loss.lost), (9, Lost::Records(1)));
        options.accept_loss = true;
        let (journal, recovery) = Journal::open(&folder.0, IDENTITY, options, NOW).unwrap();
        let _backup = Folder(recovery.backup.unwrap());
        assert_eq!((journal.next_sender(), journal.next_target()), (10, 4));
        let whole: Vec<_> = (1..9).map(|seq| (seq, message(seq))).collect();
        assert_eq!(kept(&journal), whole);
    }
}

#[test]
fn a_missing_file_is_told() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.len() < 2 {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    drop(journal);
    std::fs::remove_file(&folder.files()[1]).unwrap();
    let damages = Snapshot::take(&folder.0).unwrap().damages();
    assert_eq!(
        (damages.len(), &damages[0].defect),
        (1, &Defect::FileMissing(2))
    );
    let told = damages[0].to_string();
    assert!(told.ends_with("0000000003.journal: file 2 before it is missing"));
}

#[test]
fn records_missing_at_the_end_of_a_full_file_are_told() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.is_empty() {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    let last = journal.sealed[0].count - 1;
    drop(journal);
    let path = folder.files().remove(0);
    let mut image = std::fs::read(&path).unwrap();
    let at = layout::HEADER_LEN + last as usize * layout::ENTRY_LEN;
    image[at..at + layout::ENTRY_LEN].fill(0);
    std::fs::write(&path, &image).unwrap();
    let damages = Snapshot::take(&folder.0).unwrap().damages();
    let told: Vec<_> = damages.iter().map(|d| (d.record, &d.defect)).collect();
    assert_eq!(told, [(Some(last), &Defect::Missing { records: 1 })]);
    assert_eq!(rebuilt(&folder).1, 1);
}

#[test]
fn durability_and_holder_are_told() {
    let folder = Folder::new();
    let durability = |folder: &Folder| {
        let snapshot = Snapshot::take(&folder.0).unwrap();
        snapshot.segments().last().unwrap().durability
    };
    drop(folder.open(small()));
    assert_eq!(durability(&folder), Some(Durability::None));
    assert_eq!(holder(&folder.0), None);
    let every = Options {
        durability: Durability::EveryN(7),
        ..small()
    };
    let mut journal = folder.open(every);
    assert_eq!(durability(&folder), Some(Durability::EveryN(7)));
    while journal.sealed.is_empty() {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    assert_eq!(durability(&folder), Some(Durability::EveryN(7)));
    let told = holder(&folder.0);
    assert!(told.is_none_or(|pid| pid == std::process::id()), "{told:?}");
}
