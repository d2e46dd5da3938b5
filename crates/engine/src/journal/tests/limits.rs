//! Full disks, slow readers, old segments, wrong owners, waiting for the disk.

use super::*;
use fanfare_fix::session::{
    Config, DisconnectReason, Event, Now, Scratch, SendError, Session, SessionId, Version,
};

fn full_disk(_: &Path, _: u64, _: &str) -> io::Result<segment::Blank> {
    Err(io::Error::from(io::ErrorKind::StorageFull))
}

/// Writes until an error, which it returns.
fn fill(journal: &mut Journal) -> StoreError {
    loop {
        let seq = journal.next_sender();
        if let Err(error) = put(journal, &message(seq), APP) {
            return error;
        }
        let all = journal.unsent().len();
        journal.sent(all);
    }
}

#[test]
fn a_full_disk_is_told_in_time_and_leaves_room_for_the_farewell() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    (journal.recipe.make, journal.helper) = (full_disk, None);
    assert_eq!(fill(&mut journal), StoreError::DiskFull);
    let whole = journal.next_sender() - 1;
    put(&mut journal, b"35=5|58=disk full", ADMIN).unwrap();
    assert_eq!(drain(&mut journal), b"35=5|58=disk full");
    assert_eq!(
        journal.reset(NOW),
        Err(StoreError::DiskFull),
        "and nothing is forgotten"
    );
    drop(journal);
    let mut journal = folder.open(small());
    assert_eq!(journal.next_sender(), whole + 2);
    let expected: Vec<_> = (1..=whole).map(|seq| (seq, message(seq))).collect();
    assert_eq!(kept(&journal), expected);
    put(&mut journal, &message(whole + 2), APP).expect("the disk has room again");
    assert_eq!(folder.files().len(), 2);
}

/// The time of a session's tests.
const WHEN: Now = Now { mono: 1, utc: NOW };

/// Returns a message of B to A.
fn of_b(kind: &str, seq: u32, more: &str) -> String {
    framed(&format!(
        "35={kind}|34={seq}|49=B|52=20260202-02:40:00|56=A|{more}"
    ))
}

/// Returns a session that is logged on, on a disk without room for another segment.
fn on_a_full_disk(folder: &Folder) -> Session<Journal> {
    let mut journal = folder.open(small());
    (journal.recipe.make, journal.helper) = (full_disk, None);
    let config = Config::new(SessionId::new(Version::Fix44, "A", "B"));
    let mut session = Session::acceptor(config, journal);
    session.connected(WHEN);
    let logon = of_b("A", 1, "98=0|108=0|");
    session.handle_bytes(WHEN, &mut Scratch::default(), logon.as_bytes());
    assert!(session.is_logged_on());
    session
}

#[test]
fn a_message_whose_answer_finds_the_disk_full_is_not_received() {
    let folder = Folder::new();
    let mut session = on_a_full_disk(&folder);
    let (mut scratch, text) = (Scratch::default(), "x".repeat(200));
    let refused = (2..).find(|&seq| {
        session.transmitted(session.poll_transmit().len());
        let order = of_b("D", seq, "11=A|");
        let mut at = 0;
        while at < order.len() {
            let step = session.handle_bytes(WHEN, &mut scratch, &order.as_bytes()[at..]);
            at += step.consumed;
            if step.is_idle() || matches!(step.event, Some(Event::App(_))) {
                break;
            }
        }
        let answered = session.send(WHEN, b"8", |report| {
            report.str(58, &text);
        });
        let is_full = answered == Err(SendError::Store(StoreError::DiskFull));
        assert_eq!(is_full, answered.is_err(), "{answered:?}");
        is_full
    });
    assert!(!session.is_connected());
    let expected = session.store().next_target();
    assert_eq!(Some(expected), refused.map(u64::from), "it comes again");
}

#[test]
fn a_session_on_a_full_disk_says_so_and_ends_with_nothing_half_written() {
    let folder = Folder::new();
    let (mut session, now) = (on_a_full_disk(&folder), WHEN);
    let text = "x".repeat(200);
    let error = loop {
        session.transmitted(session.poll_transmit().len());
        let sent = session.send(now, b"B", |news| {
            news.str(58, &text);
        });
        if let Err(error) = sent {
            break error;
        }
    };
    assert_eq!(error, SendError::Store(StoreError::DiskFull));
    let last = String::from_utf8_lossy(session.poll_transmit()).replace('\x01', "|");
    assert!(
        last.contains("|35=5|") && last.contains("|58=store: disk full|"),
        "{last}"
    );
    let reason = DisconnectReason::Store(StoreError::DiskFull);
    assert!(matches!(session.poll_event(), Some(Event::Disconnect(why)) if why == reason));
    let next = session.store().next_sender();
    drop(session);
    assert!(Snapshot::take(&folder.0).unwrap().damages().is_empty());
    assert_eq!(folder.open(small()).next_sender(), next);
}

#[test]
fn beyond_the_limit_the_oldest_segment_is_dropped_unless_it_is_needed() {
    let folder = Folder::new();
    let options = Options {
        max_segments: 3,
        ..small()
    };
    let mut journal = folder.open(options);
    journal.retain_from(Some(1));
    assert_eq!(fill(&mut journal), StoreError::Full);
    assert_eq!(journal.first_from(0).unwrap().seq, 1);
    journal.retain_from(None);
    for _ in 0..1000 {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
        journal.drop_unsent();
    }
    let oldest = journal.first_from(0).unwrap();
    assert!(oldest.seq > 1 && oldest.bytes == message(oldest.seq));
    let (first, next) = (oldest.seq, journal.next_sender());
    drop(journal);
    assert_eq!(folder.files().len(), 3);
    assert_eq!(kept(&folder.open(options)).len() as u64, next - first);
}

/// Returns a journal that has dropped its first segment; `entry` is the kind of its messages but
/// the fifth, which is an application message.
fn dropped(folder: &Folder, entry: Entry) -> Journal {
    let mut journal = folder.open(two_of(small()));
    while journal.current.header.number < 3 {
        let seq = journal.next_sender();
        let entry = if seq == 5 { APP } else { entry };
        put(&mut journal, &message(seq), entry).unwrap();
        journal.drop_unsent();
    }
    journal
}

#[test]
fn the_last_application_message_dropped_is_known_also_to_another_process() {
    let folder = Folder::new();
    let journal = dropped(&folder, APP);
    let last = journal.first_from(0).unwrap().seq - 1;
    assert_eq!(journal.dropped(), last);
    drop(journal);
    let mut journal = folder.open(two_of(small()));
    assert_eq!(journal.dropped(), last);
    // What is taken back is not missed.
    journal.set_next_sender(last - 3).unwrap();
    assert_eq!(journal.dropped(), last - 4);
    journal.reset(NOW).unwrap();
    assert_eq!(journal.dropped(), 0);
    drop(journal);
    assert_eq!(folder.open(two_of(small())).dropped(), 0);
    // Messages of the session layer are not sent again.
    let folder = Folder::new();
    let journal = dropped(&folder, ADMIN);
    assert_eq!(journal.dropped(), 5);
}

#[test]
fn a_store_of_an_earlier_version_may_have_dropped_any_message_in_front_of_the_first() {
    let folder = Folder::new();
    let journal = dropped(&folder, APP);
    let first = journal.first_from(0).unwrap().seq;
    let newest = journal.current.path.clone();
    drop(journal);
    let mut image = std::fs::read(&newest).unwrap();
    image[layout::DROPPED_CELL..layout::DROPPED_CELL + 128].fill(0);
    std::fs::write(&newest, image).unwrap();
    assert_eq!(folder.open(two_of(small())).dropped(), first - 1);
}

#[test]
fn what_was_taken_back_is_not_taken_for_dropped_in_a_store_of_an_earlier_version() {
    let folder = Folder::new();
    let mut journal = dropped(&folder, APP);
    let lowest = journal.first_from(0).unwrap().seq - 3;
    journal.set_next_sender(lowest).unwrap();
    assert!(journal.sealed[0].header.first_sender > lowest);
    let newest = journal.current.path.clone();
    drop(journal);
    let mut image = std::fs::read(&newest).unwrap();
    image[layout::DROPPED_CELL..layout::DROPPED_CELL + 128].fill(0);
    std::fs::write(&newest, image).unwrap();
    assert_eq!(folder.open(two_of(small())).dropped(), lowest - 1);
}

#[test]
fn a_repair_keeps_the_note_of_the_last_application_message_dropped() {
    let folder = Folder::new();
    let journal = dropped(&folder, ADMIN);
    let mut oldest = journal.sealed[0].path.clone();
    drop(journal);
    // The first file of a repaired journal begins with 1, although messages were dropped.
    for _ in 0..2 {
        let mut image = std::fs::read(&oldest).unwrap();
        image[layout::HEADER_LEN + 8 * layout::ENTRY_LEN + 29] ^= 1;
        std::fs::write(&oldest, image).unwrap();
        let Outcome::Rebuilt { backup, .. } = repair(&folder.0, false).unwrap() else {
            panic!("it is damaged");
        };
        let _backup = Folder(backup.unwrap());
        for _ in 0..2 {
            assert_eq!(folder.open(small()).dropped(), 5);
        }
        oldest = folder::segment_path(&folder.0, 1);
    }
}

#[test]
fn a_reset_waits_for_the_disk_before_it_removes_files_if_the_store_does() {
    for (durability, waits) in [(Durability::Every, true), (Durability::None, false)] {
        let folder = Folder::new();
        let options = Options {
            durability,
            ..small()
        };
        let mut journal = written(&folder, options, 1, |_| {});
        journal.reset(NOW).unwrap();
        assert_eq!(!journal.dirty, waits);
        assert!(folder.files().is_empty(), "the one before is removed");
    }
}

#[test]
fn a_segment_that_waits_for_transmission_is_not_dropped() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        max_segments: 2,
        ..small()
    });
    let (mut all, mut seq) = (Vec::new(), 1);
    while put(&mut journal, &message(seq), APP).is_ok() {
        all.extend(message(seq));
        seq += 1;
    }
    assert!(journal.sealed.len() == 1 && drain(&mut journal) == all);
    put(&mut journal, &message(seq), APP).unwrap();
    assert_eq!(drain(&mut journal), message(seq));
}

#[test]
fn too_much_unsent_and_too_long_messages_are_refused() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        max_unsent: 1000,
        ..small()
    });
    put(&mut journal, &[b'x'; 600], APP).unwrap();
    assert_eq!(put(&mut journal, &[b'x'; 600], APP), Err(StoreError::Full));
    journal.sent(600);
    put(&mut journal, &[b'x'; 600], APP).unwrap();
    journal.drop_unsent();
    assert_eq!(journal.reserve(60_000).unwrap_err(), StoreError::TooLong);
    assert_eq!(journal.next_sender(), 3);
}

#[test]
fn the_least_segments_take_the_longest_message() {
    for (message, least) in [(45_056, 65_536), (45_060, 69_632), (69_632, 94_208)] {
        assert_eq!(least_segment_bytes(message), least);
        let (folder, smaller) = (Folder::new(), Folder::new());
        let with = |segment_bytes| Options {
            segment_bytes,
            ..small()
        };
        let mut journal = folder.open(with(least));
        put(&mut journal, &vec![b'x'; message], APP).unwrap();
        if least > small().segment_bytes {
            let mut journal = smaller.open(with(least - 4096));
            let refused = put(&mut journal, &vec![b'x'; message], APP);
            assert_eq!(refused, Err(StoreError::TooLong));
        }
    }
}

#[test]
fn unsent_bytes_survive_a_reset() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    put(&mut journal, b"logout", ADMIN).unwrap();
    journal.reset(UtcTimestamp::from_nanos(9)).unwrap();
    put(&mut journal, b"logon", ADMIN).unwrap();
    assert_eq!(drain(&mut journal), b"logoutlogon");
    assert_eq!(folder.files().len(), 1);
}

#[test]
fn under_every_nothing_is_transmitted_before_it_is_on_the_disk() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        durability: Durability::Every,
        ..small()
    });
    put(&mut journal, b"one", APP).unwrap();
    put(&mut journal, b"two", APP).unwrap();
    assert_eq!(journal.unsent(), b"");
    journal.sync().unwrap();
    assert_eq!(
        (journal.unsent(), journal.current.synced()),
        (&b"onetwo"[..], 2)
    );
    put(&mut journal, b"three", APP).unwrap();
    assert_eq!(drain(&mut journal), b"onetwo");
    journal.sync().unwrap();
    assert_eq!(drain(&mut journal), b"three");
}

#[test]
fn under_every_n_the_disk_has_it_after_n_messages() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        durability: Durability::EveryN(3),
        ..small()
    });
    let synced: Vec<u64> = (1..=7)
        .map(|seq| {
            put(&mut journal, &message(seq), APP).unwrap();
            journal.current.synced()
        })
        .collect();
    assert_eq!(synced, [0, 0, 3, 3, 3, 6, 6]);
    journal.close().unwrap();
    assert_eq!(folder.open(small()).current.synced(), 7);
}

#[test]
fn a_message_behind_which_the_disk_fails_is_kept_and_the_next_one_refused() {
    let folder = Folder::new();
    let mut journal = folder.open(Options {
        durability: Durability::EveryN(2),
        ..small()
    });
    put(&mut journal, b"one", APP).unwrap();
    journal.current.fail_syncs();
    put(&mut journal, b"two", APP).unwrap();
    assert_eq!(journal.next_sender(), 3);
    let failed = put(&mut journal, b"three", APP).unwrap_err();
    assert!(matches!(failed, StoreError::Io(_)), "{failed:?}");
    assert_eq!(drain(&mut journal), b"onetwo");
    drop(journal);
    let journal = folder.open(small());
    let all = [(1, b"one".to_vec()), (2, b"two".to_vec())];
    assert_eq!(kept(&journal), all);
}

fn refusal(folder: &Path, identity: &str, options: Options) -> OpenError {
    Journal::open(folder, identity, options, NOW)
        .err()
        .expect("refused")
}

#[test]
fn the_journal_of_another_session_is_refused_by_name() {
    let folder = Folder::new();
    drop(folder.open(small()));
    let error = refusal(&folder.0, "FIX.4.4:A->C", small()).to_string();
    assert!(
        error.contains("FIX.4.4:A->B") && error.contains("FIX.4.4:A->C"),
        "{error}"
    );
}

#[test]
fn a_journal_in_use_is_refused() {
    let folder = Folder::new();
    let journal = folder.open(small());
    assert!(matches!(
        refusal(&folder.0, IDENTITY, small()),
        OpenError::InUse { .. }
    ));
    drop(journal);
    drop(folder.open(small()));
}

#[test]
fn bad_options_and_places_are_refused() {
    let folder = Folder::new();
    let tiny = Options {
        segment_bytes: 100,
        ..small()
    };
    assert!(matches!(
        refusal(&folder.0, IDENTITY, tiny),
        OpenError::Options(_)
    ));
    let one = Options {
        max_segments: 1,
        ..small()
    };
    assert!(matches!(
        refusal(&folder.0, IDENTITY, one),
        OpenError::Options(_)
    ));
    let long = "x".repeat(2000);
    assert!(matches!(
        refusal(&folder.0, &long, small()),
        OpenError::Options(_)
    ));
    let file = folder.0.with_extension("file");
    std::fs::write(&file, b"").unwrap();
    let error = refusal(&file, IDENTITY, small());
    assert!(error.to_string().contains("fanfare-journal"), "{error}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn what_the_system_says_becomes_a_kind() {
    let of = |kind: io::ErrorKind| OpenError::io(Path::new("x"), kind.into());
    assert!(matches!(
        of(io::ErrorKind::PermissionDenied),
        OpenError::ReadOnly { .. }
    ));
    assert!(matches!(
        of(io::ErrorKind::ReadOnlyFilesystem),
        OpenError::ReadOnly { .. }
    ));
    assert!(matches!(
        of(io::ErrorKind::StorageFull),
        OpenError::DiskFull { .. }
    ));
    assert_eq!(
        store_error(&io::Error::from_raw_os_error(5)),
        StoreError::Io(5)
    );
    let text = StoreError::Io(24).to_string();
    assert_eq!(text, "Too many open files (os error 24)");
    // An error without a number of the system.
    assert_eq!(
        store_error(&io::ErrorKind::WriteZero.into()),
        StoreError::Io(5)
    );
    assert_eq!(
        store_error(&io::ErrorKind::ReadOnlyFilesystem.into()),
        StoreError::ReadOnly
    );
}

#[test]
fn a_missing_segment_is_noticed() {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    while journal.sealed.len() < 3 {
        let seq = journal.next_sender();
        put(&mut journal, &message(seq), APP).unwrap();
    }
    drop(journal);
    let files = folder.files();
    std::fs::remove_file(&files[1]).unwrap();
    assert!(matches!(
        refusal(&folder.0, IDENTITY, small()),
        OpenError::Lost(_)
    ));
}

#[test]
fn folders_are_named_after_sessions() {
    let name = |identity| folder_for(Path::new("base"), identity);
    assert_eq!(name("FIX.4.4:A->B"), Path::new("base/FIX.4.4%3AA-%3EB"));
    assert_eq!(name("../é"), Path::new("base/%2E.%2F%C3%A9"));
}
