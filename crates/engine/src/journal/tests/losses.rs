//! Files that were cut short, emptied or removed from outside: the loss is reported, and the
//! journal is opened only if it is accepted.

use super::super::layout::{ENTRY_LEN, HEADER_LEN, Header};
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
