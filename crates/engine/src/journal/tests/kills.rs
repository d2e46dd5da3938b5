//! The effects of a kill, a cut or a flipped bit. The file is changed as they would have changed
//! it.

use super::super::layout::{
    BOOT_CELL, DURABILITY_CELL, ENTRY_LEN, HEADER_LEN, Header, durability_code, write_cell,
};
use super::*;
use std::os::unix::fs::FileExt;

const MESSAGES: u64 = 40;

/// Returns a journal with [`MESSAGES`] messages and the expected number 77, not closed, and the
/// image of its file.
fn written() -> (Folder, PathBuf, Vec<u8>) {
    let folder = Folder::new();
    let mut journal = folder.open(small());
    for seq in 1..=MESSAGES {
        put(&mut journal, &message(seq), APP).unwrap();
    }
    journal.set_next_target(77).unwrap();
    drop(journal);
    let path = folder.files().remove(0);
    let image = std::fs::read(&path).unwrap();
    (folder, path, image)
}

fn header(image: &[u8]) -> Header {
    Header::read(&image[..HEADER_LEN]).unwrap().0
}

/// Returns the end of the messages before number `seq`.
fn data_offset(image: &[u8], seq: u64) -> usize {
    header(image).data_start() + (1..seq).map(|seq| message(seq).len()).sum::<usize>()
}

/// Opens the journal, checks that its messages are correct and in order, continues, and checks
/// again. Returns the number of messages found.
fn opens_true(folder: &Folder) -> u64 {
    let mut journal = folder.open(small());
    let count = journal.next_sender() - 1;
    let expected: Vec<_> = (1..=count).map(|seq| (seq, message(seq))).collect();
    assert_eq!(kept(&journal), expected);
    assert_eq!(journal.next_target(), 77);
    for seq in count + 1..=count + 3 {
        put(&mut journal, &message(seq), APP).unwrap();
    }
    drop(journal);
    let journal = folder.open(small());
    let expected: Vec<_> = (1..=count + 3).map(|seq| (seq, message(seq))).collect();
    assert_eq!(kept(&journal), expected);
    count
}

#[test]
fn an_entry_torn_at_any_byte_keeps_the_rest() {
    let (folder, path, image) = written();
    let entry = |n: u64| HEADER_LEN + n as usize * ENTRY_LEN;
    for cut in entry(MESSAGES - 1)..=entry(MESSAGES) {
        let mut torn = image.clone();
        torn[cut..header(&image).data_start()].fill(0);
        std::fs::write(&path, &torn).unwrap();
        // An entry whose last bytes are zeros anyway is complete without them.
        let whole = (0..MESSAGES).take_while(|&n| torn[..entry(n + 1)] == image[..entry(n + 1)]);
        assert_eq!(opens_true(&folder), whole.count() as u64, "cut at {cut}");
    }
}

#[test]
fn a_kill_between_any_two_stores_of_a_commit_keeps_what_was_committed() {
    let (folder, path, after) = written();
    let data = data_offset(&after, MESSAGES)..data_offset(&after, MESSAGES + 1);
    let entry = HEADER_LEN + (MESSAGES as usize - 1) * ENTRY_LEN;
    let mut image = after.clone();
    image[data.clone()].fill(0);
    image[entry..entry + ENTRY_LEN].fill(0);
    let order = data.chain(entry..entry + ENTRY_LEN);
    for at in order {
        std::fs::write(&path, &image).unwrap();
        let count = opens_true(&folder);
        let whole = image == after;
        assert_eq!(
            count,
            MESSAGES - u64::from(!whole),
            "killed before byte {at}"
        );
        image[at] = after[at];
    }
}

/// Marks the machine as having gone down since: missing bytes were never on the disk.
fn after_a_crash(image: &mut [u8]) {
    write_cell(image, BOOT_CELL, 9, 12345);
}

#[test]
fn a_flipped_bit_never_gives_a_wrong_message() {
    let (folder, path, image) = written();
    let data = data_offset(&image, 1)..data_offset(&image, MESSAGES + 1);
    let table = HEADER_LEN..HEADER_LEN + MESSAGES as usize * ENTRY_LEN;
    for at in data.step_by(61).chain(table.step_by(3)) {
        let mut damaged = image.clone();
        damaged[at] ^= 0x10;
        std::fs::write(&path, &damaged).unwrap();
        match Journal::open(&folder.0, IDENTITY, small(), NOW) {
            // Only the last one, which a kill may have torn.
            Ok((journal, recovery)) => {
                assert_eq!((recovery.cut, journal.next_sender()), (1, MESSAGES));
                drop(journal);
                assert_eq!(opens_true(&folder), MESSAGES - 1);
            }
            Err(OpenError::Lost(loss)) => {
                assert!(u64::from(loss.record) < MESSAGES);
                assert_eq!(loss.from, u64::from(loss.record) + 1);
                assert!(loss.lost.at_least() > 0);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn after_a_crash_of_the_machine_only_what_was_never_transmitted_is_given_up() {
    let (folder, path, mut image) = written();
    // The pages reached the disk in another order than they were written in.
    let hole = data_offset(&image, 20);
    image[hole..hole + 50].fill(0);
    let open = || Journal::open(&folder.0, IDENTITY, small(), NOW);
    let every = durability_code(Durability::Every);
    // Neither a crash alone nor waiting for the disk alone excuses a loss.
    for crashed in [true, false] {
        let mut image = image.clone();
        if crashed {
            after_a_crash(&mut image);
        } else {
            write_cell(&mut image, DURABILITY_CELL, 9, every);
        }
        std::fs::write(&path, &image).unwrap();
        let error = open()
            .err()
            .expect("20 and those behind it may have been transmitted");
        let OpenError::Lost(loss) = error else {
            panic!("{error}")
        };
        assert_eq!((loss.record, loss.from), (19, 20));
        assert_eq!(loss.lost, Lost::Records(MESSAGES - 19));
    }
    after_a_crash(&mut image);
    write_cell(&mut image, DURABILITY_CELL, 9, every);
    std::fs::write(&path, &image).unwrap();
    let (journal, recovery) = open().unwrap();
    assert_eq!((recovery.records, recovery.cut), (19, MESSAGES - 19));
    assert!(
        recovery
            .to_string()
            .contains("21 records that were never transmitted")
    );
    drop(journal);
    assert_eq!(opens_true(&folder), 19);
}

#[test]
fn a_damaged_header_is_refused() {
    let (folder, path, image) = written();
    for at in [0, 9, 20, 40, 70] {
        let mut damaged = image.clone();
        damaged[at] ^= 1;
        std::fs::write(&path, &damaged).unwrap();
        assert!(
            Journal::open(&folder.0, IDENTITY, small(), NOW).is_err(),
            "byte {at}"
        );
    }
    for len in [1, 100, HEADER_LEN] {
        std::fs::write(&path, &image[..len]).unwrap();
        assert!(
            Journal::open(&folder.0, IDENTITY, small(), NOW).is_err(),
            "length {len}"
        );
    }
}

#[test]
fn a_segment_that_was_prepared_and_not_begun_is_taken_away() {
    let (folder, path, image) = written();
    let next = folder::segment_path(&folder.0, 2);
    for len in [0, image.len()] {
        std::fs::write(&next, vec![0; len]).unwrap();
        assert_eq!(folder.open(small()).next_sender(), MESSAGES + 1);
        assert_eq!(folder.files(), [path.as_path()]);
    }
    let mut half = vec![0; image.len()];
    half[16..60].copy_from_slice(&image[16..60]);
    std::fs::write(&next, half).unwrap();
    assert_eq!(opens_true(&folder), MESSAGES);
}

#[test]
fn a_kill_in_the_middle_of_a_reset_has_reset() {
    let (folder, path, image) = written();
    let mut journal = folder.open(small());
    journal.reset(UtcTimestamp::from_nanos(5)).unwrap();
    drop(journal);
    assert!(!path.exists());
    std::fs::write(&path, &image).unwrap();
    let journal = folder.open(small());
    assert_eq!((journal.next_sender(), journal.next_target()), (1, 1));
    assert_eq!(kept(&journal), []);
    assert!(!path.exists());
}

/// A seeded journal is killed again and again, each time in the middle of a commit at a random byte
/// of it, and never loses or changes a committed message.
#[test]
fn a_thousand_seeded_kills() {
    let folder = Folder::new();
    let mut random = fastrand::Rng::with_seed(42);
    let mut draw = |below: u64| random.u64(..below);
    let mut committed = 0;
    for kill in 0..1000 {
        let mut journal = folder.open(small());
        assert_eq!(journal.next_sender(), committed + 1, "kill {kill}");
        assert_eq!(journal.next_target(), 1 + committed / 3);
        for seq in (committed + 1).saturating_sub(50).max(1)..=committed {
            assert_eq!(journal.first_from(seq).unwrap().bytes, message(seq));
        }
        for _ in 0..draw(4) {
            committed += 1;
            put(&mut journal, &message(committed), APP).unwrap();
            journal.set_next_target(1 + committed / 3).unwrap();
        }
        let path = journal.current.path.clone();
        let entry = HEADER_LEN + journal.current.count as usize * ENTRY_LEN;
        let torn = message(committed + 1);
        let room = journal.reserve(torn.len()).unwrap();
        let written = draw(torn.len() as u64 + 1) as usize;
        room[..written].copy_from_slice(&torn[..written]);
        if journal.current.path == path && written == torn.len() {
            let garbage: Vec<u8> = (0..draw(32)).map(|_| draw(256) as u8).collect();
            let file = File::options().write(true).open(&path).unwrap();
            file.write_all_at(&garbage, entry as u64).unwrap();
        }
    }
    assert!(committed > 1000 && folder.files().len() > 2);
}
