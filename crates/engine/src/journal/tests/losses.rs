//! Files that were cut short, emptied or removed from outside: the loss is reported, and the
//! journal is opened only if it is accepted.

use super::super::layout::{
    BOOT_CELL, DURABILITY_CELL, ENTRY_LEN, HEADER_LEN, Header, NOTES_CELL, OLDEST_CELL,
    durability_code, rewrite_cell, write_cell,
};
use super::*;

/// Writes two segments, the second one half full, and optionally one in advance. Returns the number
/// of messages in the first one, and the next number.
fn written(advance: bool) -> (Folder, u64, u64) {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.is_empty() {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    let first = journal.current.header.first_sender - 1;
    for seq in journal.next_sender()..first + 40 {
        put(&mut journal, &message(seq), APP).unwrap();
    }
    journal.set_next_target(77).unwrap();
    let next = journal.next_sender();
    drop(journal);
    if advance {
        std::fs::write(folder::segment_path(&folder.0, 3), vec![0; 64 << 10]).unwrap();
    }
    (folder, first, next)
}

fn lost(folder: &Folder) -> Loss {
    match Journal::open(&folder.0, IDENTITY, small(), NOW) {
        Err(OpenError::Lost(loss)) => loss,
        Err(error) => panic!("{error}"),
        Ok((journal, recovery)) => panic!("{} {recovery:?}", journal.next_sender()),
    }
}

fn accepted(folder: &Folder) -> (Journal, Recovery) {
    let options = Options {
        accept_loss: true,
        ..small()
    };
    Journal::open(&folder.0, IDENTITY, options, NOW).unwrap()
}

fn shorten(path: &Path, len: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

/// Tests lengths to which the newest file in use can be cut, at 21 places and at all borders.
#[test]
fn no_file_cut_short_is_opened_with_lower_numbers() {
    for advance in [false, true] {
        let (folder, first, next) = written(advance);
        let path = folder::segment_path(&folder.0, 2);
        let image = std::fs::read(&path).unwrap();
        let header = Header::read(&image).unwrap().0;
        let messages: usize = (first + 1..next).map(|seq| message(seq).len()).sum();
        let (table, end) = (header.data_start(), header.data_start() + messages);
        let mut lengths: Vec<usize> = (0..21).map(|n| n * image.len() / 21).collect();
        lengths.extend([1, HEADER_LEN - 1, HEADER_LEN, HEADER_LEN + 1]);
        lengths.extend([HEADER_LEN + ENTRY_LEN, HEADER_LEN + 9 * ENTRY_LEN]);
        lengths.extend([
            table - 1,
            table,
            table + 1,
            end - 1,
            end,
            end + 1,
            image.len() - 1,
        ]);
        for len in lengths {
            std::fs::write(&path, &image[..len]).unwrap();
            if len >= end {
                let (journal, recovery) = Journal::open(&folder.0, IDENTITY, small(), NOW).unwrap();
                assert_eq!((journal.next_sender(), journal.next_target()), (next, 77));
                assert_eq!(recovery.stretched, (image.len() - len) as u64);
                assert!(recovery.to_string().contains("nothing is lost"));
                assert_eq!(kept(&journal).len() as u64, next - 1);
                continue;
            }
            let loss = lost(&folder);
            let cut = std::fs::read(&path).unwrap();
            assert!(cut == image[..len], "nothing was changed");
            assert!(loss.from > first && loss.from < next, "{len}: {loss}");
            assert_eq!(loss.path, path, "cut to {len}");
            if len >= table {
                let records = next - loss.from;
                assert_eq!(loss.lost, Lost::Records(records));
            } else {
                assert!(matches!(loss.lost, Lost::AllBehind(_)), "{len}: {loss}");
            }
        }
    }
}

#[test]
fn what_is_whole_is_kept_when_a_loss_is_accepted_and_the_rest_stays_beside_it() {
    let (folder, first, next) = written(true);
    let path = folder::segment_path(&folder.0, 2);
    let image = std::fs::read(&path).unwrap();
    let table = Header::read(&image).unwrap().0.data_start();
    for len in [0, 100, HEADER_LEN, table - 1, table, table + 3_000] {
        let copy = Folder::new();
        std::fs::create_dir(&copy.0).unwrap();
        for (_, file) in folder::segment_files(&folder.0).unwrap() {
            std::fs::copy(&file, copy.0.join(file.file_name().unwrap())).unwrap();
        }
        shorten(&copy.0.join(path.file_name().unwrap()), len as u64);
        std::fs::create_dir(copy.0.join("received")).unwrap();
        let (journal, recovery) = accepted(&copy);
        let loss = recovery.loss.clone().unwrap();
        let kept = kept(&journal);
        assert!(kept.len() as u64 >= first, "cut to {len}");
        assert!(kept.iter().all(|(seq, text)| *text == message(*seq)));
        assert_eq!(kept.len() as u64, loss.from - 1, "cut to {len}");
        // The table has the numbers used, although the messages are gone.
        if len >= table {
            assert_eq!((journal.next_sender(), journal.next_target()), (next, 77));
        }
        assert_eq!(recovery.next_sender, journal.next_sender());
        assert!(copy.0.join("received").is_dir(), "what else is there stays");
        drop(journal);
        let backup = Folder(recovery.backup.unwrap());
        let damaged = backup.0.join(path.file_name().unwrap());
        assert_eq!(std::fs::metadata(damaged).unwrap().len(), len as u64);
        let (_, recovery) = accepted(&copy);
        assert!(recovery.is_unremarkable(), "{recovery}");
    }
}

#[test]
fn a_newest_file_that_is_gone_is_missed() {
    let (folder, first, _) = written(false);
    std::fs::remove_file(folder::segment_path(&folder.0, 2)).unwrap();
    let loss = lost(&folder);
    assert_eq!((loss.from, loss.what.as_str()), (first + 1, "is missing"));
    let damages = Snapshot::take(&folder.0).unwrap().damages();
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!(damages[0].defect, Defect::NextMissing(2));
    let planned = repair(&folder.0, true).unwrap();
    assert!(
        matches!(planned, Outcome::Rebuilt { kept, unreadable: 1, .. } if kept == first),
        "{planned:?}"
    );
}

#[test]
fn an_oldest_file_that_is_gone_is_missed() {
    let (folder, first, next) = written(false);
    std::fs::remove_file(folder::segment_path(&folder.0, 1)).unwrap();
    let loss = lost(&folder);
    assert_eq!(loss.path, folder::segment_path(&folder.0, 1));
    let told = format!(
        "is missing: all records in front of MsgSeqNum {}",
        first + 1
    );
    assert!(loss.to_string().contains(&told), "{loss}");
    let damages = Snapshot::take(&folder.0).unwrap().damages();
    assert_eq!(damages.len(), 1, "{damages:?}");
    assert_eq!(damages[0].defect, Defect::FileMissing(1));
    let planned = repair(&folder.0, true).unwrap();
    assert!(
        matches!(
            planned,
            Outcome::Rebuilt {
                lost: 0,
                unreadable: 1,
                ..
            }
        ),
        "{planned:?}"
    );
    let (journal, recovery) = accepted(&folder);
    assert_eq!((journal.next_sender(), journal.next_target()), (next, 77));
    assert_eq!(kept(&journal).len() as u64, next - 1 - first);
    assert_eq!(journal.dropped(), first);
    drop(journal);
    let _backup = Folder(recovery.backup.unwrap());
    let (journal, recovery) = accepted(&folder);
    assert!(recovery.is_unremarkable(), "{recovery}");
    assert_eq!(journal.dropped(), first);
}

#[test]
fn a_kill_between_the_note_of_a_drop_and_the_drop_leaves_a_file_too_many() {
    let folder = Folder::new();
    let options = two_of(small());
    let path = |number| folder::segment_path(&folder.0, number);
    let mut journal = folder.open(options);
    let (mut second, mut seq) = (Vec::new(), 1);
    while journal.current.header.number < 4 {
        if journal.current.header.number == 3 && second.is_empty() {
            second = std::fs::read(path(2)).unwrap();
        }
        put(&mut journal, &message(seq), APP).unwrap();
        journal.drop_unsent();
        seq += 1;
    }
    drop(journal);
    assert!(!path(1).exists() && !path(2).exists() && path(3).exists());
    let damages = || Snapshot::take(&folder.0).unwrap().damages();
    assert_eq!(damages(), []);
    let first_of = |image: &[u8]| Header::read(image).unwrap().0.first_sender;
    assert!(kept(&folder.open(options))[0].0 > first_of(&second));
    std::fs::write(path(2), &second).unwrap();
    assert_eq!(damages(), []);
    let journal = folder.open(options);
    assert_eq!(kept(&journal)[0].0, first_of(&second));
    assert_eq!(journal.next_sender(), seq);
}

/// The note of the oldest file is not certain in these, so that a missing one is no loss.
#[test]
fn stores_of_earlier_versions_and_after_a_crash_of_the_machine_open_without_their_oldest_file() {
    let notes: [fn(&mut [u8]); 3] = [
        |image| image[OLDEST_CELL..OLDEST_CELL + 128].fill(0),
        |image| write_cell(image, BOOT_CELL, 9, 12345),
        // An earlier version has opened the store, and dropped the file.
        |image| rewrite_cell(image, DURABILITY_CELL, durability_code(Durability::None)),
    ];
    for note in notes {
        let (folder, first, next) = written(false);
        let newest = folder::segment_path(&folder.0, 2);
        let mut image = std::fs::read(&newest).unwrap();
        note(&mut image);
        std::fs::write(&newest, image).unwrap();
        std::fs::remove_file(folder::segment_path(&folder.0, 1)).unwrap();
        assert_eq!(Snapshot::take(&folder.0).unwrap().damages(), []);
        let mut journal = folder.open(small());
        assert_eq!(kept(&journal).len() as u64, next - 1 - first);
        assert_eq!(journal.dropped(), first);
        // From now on the oldest one is known.
        while journal.sealed.is_empty() {
            let seq = journal.next_sender();
            put(&mut journal, &message(seq), APP).unwrap();
        }
        drop(journal);
        std::fs::remove_file(newest).unwrap();
        lost(&folder);
    }
}

/// Under [`Durability::Every`] the note is on the disk before a file is removed.
#[test]
fn an_oldest_file_is_missed_after_a_crash_of_the_machine_if_the_store_waits_for_the_disk() {
    let (folder, ..) = written(false);
    let newest = folder::segment_path(&folder.0, 2);
    let mut image = std::fs::read(&newest).unwrap();
    write_cell(&mut image, BOOT_CELL, 9, 12345);
    let every = durability_code(Durability::Every);
    write_cell(&mut image, DURABILITY_CELL, 9, every);
    write_cell(&mut image, NOTES_CELL, 9, 9);
    std::fs::write(&newest, image).unwrap();
    std::fs::remove_file(folder::segment_path(&folder.0, 1)).unwrap();
    lost(&folder);
}

#[test]
fn files_dropped_by_a_reset_are_not_missed() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.is_empty() {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    // What waits for transmission keeps its segment in memory, but not its file.
    journal.reset(NOW).unwrap();
    assert!(!journal.sealed.is_empty() && folder.files().is_empty());
    for _ in 0..2 {
        let number = journal.current.header.number;
        while journal.current.header.number == number {
            let seq = journal.next_sender();
            put(&mut journal, &message(seq), APP).unwrap();
            journal.drop_unsent();
        }
        drop(journal);
        assert_eq!(Snapshot::take(&folder.0).unwrap().damages(), []);
        journal = folder.open(two_of(small()));
    }
}

#[test]
fn a_spare_file_that_is_cut_short_is_no_loss() {
    for len in [1, 100, HEADER_LEN, HEADER_LEN + ENTRY_LEN, 50_000] {
        let (folder, _, next) = written(true);
        let spare = folder::segment_path(&folder.0, 3);
        let mut image = vec![0; len];
        // As it is made.
        write_cell(&mut image, BOOT_CELL, 1, 12345);
        std::fs::write(&spare, image).unwrap();
        assert_eq!(Snapshot::take(&folder.0).unwrap().damages(), [], "{len}");
        assert_eq!(folder.open(small()).next_sender(), next, "{len}");
    }
}

#[test]
fn each_file_that_is_lost_counts_once() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.len() < 4 {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    drop(journal);
    let path = |number| folder::segment_path(&folder.0, number);
    let counted = || match repair(&folder.0, true).unwrap() {
        Outcome::Rebuilt { unreadable, .. } => unreadable,
        other => panic!("{other:?}"),
    };
    std::fs::write(path(2), b"rubbish").unwrap();
    assert_eq!(counted(), 1);
    std::fs::remove_file(path(2)).unwrap();
    std::fs::remove_file(path(3)).unwrap();
    assert_eq!(counted(), 2);
    std::fs::remove_file(path(5)).unwrap();
    assert_eq!(counted(), 3);
}

#[test]
fn a_session_with_one_file_that_is_emptied_does_not_begin_anew_unless_that_is_accepted() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, b"8=FIX", APP).unwrap();
    drop(journal);
    let path = folder::segment_path(&folder.0, 1);
    for len in [0, 1, 4096] {
        shorten(&path, 0);
        shorten(&path, len);
        assert_eq!(lost(&folder).from, 1);
    }
    let (journal, recovery) = accepted(&folder);
    assert_eq!(journal.next_sender(), 1);
    let _backup = Folder(recovery.backup.unwrap());
}

#[test]
fn a_first_file_that_a_kill_left_unfinished_is_nothing() {
    let folder = Folder::new();
    std::fs::create_dir(&folder.0).unwrap();
    let making = folder.0.join("0000000001.making");
    std::fs::write(making, [0; 100]).unwrap();
    assert_eq!(folder.open(small()).next_sender(), 1);
    assert_eq!(
        std::fs::read_dir(&folder.0).unwrap().count(),
        2,
        "lock and first"
    );
}

#[test]
fn a_file_cut_short_while_it_is_in_use_ends_the_session_and_not_the_process() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        first_segment_bytes: 64 << 10,
        ..Options::default()
    });
    put(&mut journal, &message(1), APP).unwrap();
    let sent = journal.unsent().len();
    journal.sent(sent);
    shorten(&journal.current.path, 4096);
    let error = put(&mut journal, &message(2), APP).unwrap_err();
    assert_eq!(error, StoreError::Broken);
    assert_eq!(journal.unsent(), b"", "nothing of it is transmitted");
    assert_eq!(journal.sync(), Err(StoreError::Broken));
    assert_eq!(journal.set_next_target(9), Err(StoreError::Broken));
    drop(journal);
    // Another journal of the process continues.
    let other = Folder::new();
    let mut journal = other.open(small());
    put(&mut journal, &message(1), APP).unwrap();
    assert_eq!(drain(&mut journal), message(1));
    assert_eq!(lost(&folder).from, 1);
}

#[test]
fn an_older_file_cut_short_while_it_is_in_use_is_found_by_a_resend() {
    let (folder, ..) = written(false);
    let mut journal = folder.open(small());
    shorten(&journal.sealed[0].path, 4096);
    let _ = journal.first_from(1).map(|stored| stored.bytes.len());
    let _ = journal.first_from(5).map(|stored| stored.bytes.to_vec());
    assert_eq!(journal.sync(), Err(StoreError::Broken));
}

#[test]
fn files_are_the_owners_and_those_of_older_versions_are_closed() {
    use std::os::unix::fs::PermissionsExt;
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, &message(1), APP).unwrap();
    let all = || {
        let files = std::fs::read_dir(&folder.0).unwrap();
        let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        files.push(folder.0.clone());
        files
    };
    let is_closed = |path: &PathBuf| mode(path) & 0o077 == 0;
    assert!(all().iter().all(is_closed) && all().len() >= 3);
    drop(journal);
    for path in all() {
        let open = mode(&path) | 0o055;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(open)).unwrap();
    }
    let (journal, recovery) = Journal::open(&folder.0, IDENTITY, small(), NOW).unwrap();
    assert!(recovery.closed && recovery.to_string().contains("accessible to other users"));
    assert!(all().iter().all(is_closed));
    drop(journal);
    let (_, recovery) = Journal::open(&folder.0, IDENTITY, small(), NOW).unwrap();
    assert!(recovery.is_unremarkable());
}
