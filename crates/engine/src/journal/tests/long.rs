//! Messages that are longer than the free part of a segment, taken over by an import and a repair.

use super::super::layout::Header;
use super::*;
use std::fmt::Write;

/// Returns the lengths of 20 messages that leave a part of the first segment free, and of one that
/// is longer than that segment, in both orders.
fn lengths() -> [Vec<usize>; 2] {
    let (many, long) = ([3_000; 20], [30_000]);
    [[&many[..], &long].concat(), [&long[..], &many].concat()]
}

/// Returns a message of `len` bytes.
fn order(seq: u64, len: usize) -> Vec<u8> {
    let mut text = format!("8=FIX.4.4\x0135=D\x0134={seq}\x0158=").into_bytes();
    text.resize(len - 1, b'a' + (seq % 26) as u8);
    text.push(1);
    text
}

fn orders(lengths: &[usize]) -> Vec<(u64, Vec<u8>)> {
    let numbered = (1..).zip(lengths);
    numbered.map(|(seq, &len)| (seq, order(seq, len))).collect()
}

#[test]
fn an_import_takes_over_each_message_as_it_is() {
    for lengths in lengths() {
        let (old, folder) = (Folder::new(), Folder::new());
        std::fs::create_dir(&old.0).unwrap();
        let orders = orders(&lengths);
        let (mut header, mut body) = (String::new(), Vec::new());
        for (seq, text) in &orders {
            write!(header, "{seq},{},{} ", body.len(), text.len()).unwrap();
            body.extend_from_slice(text);
        }
        let file = |name: &str| old.0.join(name);
        std::fs::write(file("A-B.body"), body).unwrap();
        std::fs::write(file("A-B.header"), header).unwrap();
        std::fs::write(file("A-B.seqnums"), "0000000022 : 0000000009").unwrap();
        let mut store = QuickFixStore::open(&file("A-B")).unwrap();
        let imported = import(&mut store, &folder.0, IDENTITY, NOW).unwrap();
        assert_eq!((imported.messages, imported.lost), (21, 0));
        let journal = folder.open(Options::default());
        assert!(kept(&journal) == orders);
        assert_eq!((journal.next_sender(), journal.next_target()), (22, 9));
    }
}

#[test]
fn a_repair_takes_over_each_message_as_it_is() {
    for lengths in lengths() {
        let folder = Folder::new();
        let mut journal = folder.open(Options::default());
        let mut orders = orders(&lengths);
        for (_, text) in &orders {
            put(&mut journal, text, APP).unwrap();
        }
        drop(journal);
        let path = folder.files().remove(0);
        let mut image = std::fs::read(&path).unwrap();
        let start = Header::read(&image).unwrap().0.data_start();
        image[start + lengths[0] + 100] ^= 1; // the second message
        std::fs::write(&path, &image).unwrap();
        let Outcome::Rebuilt {
            kept: taken,
            lost,
            backup,
            ..
        } = repair(&folder.0, false).unwrap()
        else {
            panic!("not rebuilt")
        };
        let _backup = Folder(backup.unwrap());
        let journal = folder.open(Options::default());
        orders.remove(1);
        assert!(kept(&journal) == orders);
        assert_eq!((taken, lost, journal.next_sender()), (20, 1, 22));
    }
}
