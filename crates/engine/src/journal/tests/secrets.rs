//! Passwords that are sent and not stored.

use super::*;

const LOGON: &[u8] = b"8=FIX.4.4\x0135=A\x0134=1\x01553=me\x01554=open sesame\x0110=000\x01";

/// Returns all bytes of the journal's files, as a kill at this moment would leave them.
fn on_the_medium(folder: &Folder) -> Vec<u8> {
    let files = folder::segment_files(&folder.0).unwrap().into_iter();
    files
        .flat_map(|(_, path)| std::fs::read(path).unwrap())
        .collect()
}

fn has(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}

fn put_secret(journal: &mut Journal) {
    let end = LOGON.len() + 5;
    journal.reserve_secret(200).unwrap()[5..end].copy_from_slice(LOGON);
    journal.commit_secret(5..end).unwrap();
}

#[test]
fn a_secret_is_transmitted_and_at_no_moment_on_the_medium() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    let end = LOGON.len();
    journal.reserve_secret(200).unwrap()[..end].copy_from_slice(LOGON);
    assert!(
        !has(&on_the_medium(&folder), b"sesame"),
        "before it is complete"
    );
    journal.commit_secret(0..end).unwrap();
    put(&mut journal, b"8=FIX.4.4|35=0", ADMIN).unwrap();
    assert!(
        !has(&on_the_medium(&folder), b"sesame"),
        "before it is transmitted"
    );
    assert!(has(&on_the_medium(&folder), b"554=***********\x01"));
    let expected = [LOGON, b"8=FIX.4.4|35=0"].concat();
    assert_eq!(drain(&mut journal), expected, "in order, as it is");
    assert!(!has(&on_the_medium(&folder), b"sesame"), "behind that");
    assert_eq!((journal.next_sender(), kept(&journal)), (3, vec![]));
    drop(journal);
    assert!(Snapshot::take(&folder.0).unwrap().damages().is_empty());
    assert_eq!(folder.open(small()).next_sender(), 3);
}

#[test]
fn secrets_wait_for_the_disk_and_are_dropped_with_the_connection() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        durability: Durability::Every,
        ..small()
    });
    put_secret(&mut journal);
    assert_eq!(journal.unsent(), b"");
    journal.sync().unwrap();
    assert_eq!(journal.unsent(), LOGON);
    journal.sent(9);
    put_secret(&mut journal);
    journal.sync().unwrap();
    assert_eq!(drain(&mut journal), [&LOGON[9..], LOGON].concat());
    put_secret(&mut journal);
    journal.drop_unsent();
    journal.sync().unwrap();
    assert_eq!(journal.unsent(), b"");
}

#[test]
fn what_an_earlier_version_kept_is_not_shown() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, LOGON, ADMIN).unwrap();
    drop(journal);
    let snapshot = Snapshot::take(&folder.0).unwrap();
    let Some(Found::Good(record)) = snapshot.records().next() else {
        panic!("it is there")
    };
    let (mut text, mut json) = (Vec::new(), Vec::new());
    record.write_text(&mut text).unwrap();
    record.write_json(&mut json).unwrap();
    for shown in [text, json, record.shown()] {
        assert!(has(&shown, b"553=me") && !has(&shown, b"sesame"));
    }
}
