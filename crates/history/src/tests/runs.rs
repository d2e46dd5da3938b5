//! Runs of the plant, as the books before a number name them.

use super::*;
use crate::format::{BLOCK_HEADER, BlockHeader, RECORD_HEADER, SEGMENT_HEADER};

/// Sets an unknown rule of a book in the run at the beginning of a segment, as a later version
/// may.
fn set_rule(path: &Path) {
    let mut bytes = std::fs::read(path).unwrap();
    let block = &mut bytes[SEGMENT_HEADER..];
    let header = BlockHeader::read(block).unwrap();
    let block = &mut block[..header.size() as usize];
    // The rules of the first feed's book begin there.
    block[BLOCK_HEADER + RECORD_HEADER + 22] |= 1 << 3;
    header.write(block);
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn a_run_with_an_unknown_rule_is_refused() {
    let folder = Folder::new();
    let last = two_runs(&folder.0, true);
    let path = folder::segment(&folder.0, 2, false);
    set_rule(&path);
    let log = Log::open(&folder.0).unwrap();
    assert_eq!(log.as_of(At::Number(last)).unwrap().number, last);
    let (mut reader, mut events) = (log.reader(Start::First).unwrap(), 0);
    let mut each =
        |delivery: Delivery<'_>| events += u64::from(matches!(delivery, Delivery::Event(..)));
    let refused = (0..10).find_map(|_| reader.read(usize::MAX, &mut each).err());
    assert_eq!(events, last);
    let found = log.verify(|_, _| true).unwrap();
    let damage = found
        .damage
        .iter()
        .map(|damage| (&damage.path, damage.what));
    let why = "a rule of a book is unknown";
    assert_eq!(damage.collect::<Vec<_>>(), [(&path, why)]);
    let mut keeper = Keeper::open(&folder.0, OFTEN).unwrap();
    for error in [
        refused.unwrap(),
        (0..10).find_map(|_| keeper.work().err()).unwrap(),
        log.as_of(At::Before(last + 1)).unwrap_err(),
        log.as_of(At::End).unwrap_err(),
        log.extent().unwrap_err(),
        Writer::open(&folder.0, SMALL, feeds(), 3).unwrap_err(),
        Log::repair(&folder.0).unwrap_err(),
    ] {
        let expected = format!("{}: unsupported run of the plant: {why}", path.display());
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_log_with_a_run_of_a_later_version_is_not_repaired_in_part() {
    let folder = Folder::new();
    two_runs(&folder.0, true);
    set_rule(&folder::segment(&folder.0, 2, false));
    let path = folder::segment(&folder.0, 1, false);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[120] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let refused = Log::repair(&folder.0);
    assert!(matches!(refused, Err(LogError::Run { .. })), "{refused:?}");
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_run_is_named_before_its_first_event_in_a_compacted_segment_too() {
    let folder = Folder::new();
    let last = two_runs(&folder.0, true);
    drop(open(&folder.0));
    keep(&folder.0, OFTEN);
    let log = Log::open(&folder.0).unwrap();
    assert!(log.segments().unwrap()[1].is_compacted);
    let mut before = log.as_of(At::Before(last + 1)).unwrap();
    assert_eq!((before.number, before.run.number), (last, 2));
    assert_eq!(before.run.feeds[0].name, "other");
    before.stop_before(last + 21);
    while before.follow(usize::MAX).unwrap() > 0 {}
    let then = log.as_of(At::Number(last + 20)).unwrap();
    assert_eq!((before.number, &before.run), (last + 20, &then.run));
    for number in (0..10).map(InstrumentId) {
        let book = |books: &AsOf| books.view.get(number)?.book.clone();
        assert_eq!(book(&before), book(&then), "{number:?}");
    }
}

#[test]
fn a_run_is_named_behind_its_lost_events() {
    let folder = Folder::new();
    drop(open(&folder.0));
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(61, 1);
    append(&mut writer, &mut source, 50);
    writer.roll().unwrap();
    let first = source.number;
    append(&mut writer, &mut source, 50);
    writer.roll().unwrap();
    keep(&folder.0, OFTEN);
    std::fs::remove_file(folder::segment(&folder.0, 2, true)).unwrap();
    for view in folder::list(&folder.0).unwrap().views {
        std::fs::remove_file(folder::view(&folder.0, view)).unwrap();
    }
    let log = Log::open(&folder.0).unwrap();
    for number in [first - 7, first] {
        let before = log.as_of(At::Before(number)).unwrap();
        assert_eq!((before.number, before.run.number), (number - 1, 2));
    }
}

#[test]
fn a_run_whose_record_is_damaged_has_none_of_the_books_before() {
    let folder = Folder::new();
    let last = two_runs(&folder.0, true);
    let path = folder::segment(&folder.0, 2, false);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[120] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let received = read_from(&folder.0, Start::First);
    assert_eq!((received.lost, received.restarts), (vec![], 1));
    let log = Log::open(&folder.0).unwrap();
    let mut expected: View = View::new(vec![feeds()[0].book]);
    let of_run = received.events.iter().skip(last as usize);
    for event in of_run.take(20) {
        expected.apply(event);
    }
    let before = log.as_of(At::Before(last + 1)).unwrap();
    assert_eq!((before.number, before.run.number), (last, 2));
    let found = log.as_of(At::Number(last + 20)).unwrap();
    assert_eq!((found.number, found.run.number), (last + 20, 2));
    for number in (0..10).map(InstrumentId) {
        assert!(before.view.get(number).is_none(), "{number:?}");
        let book = |view: &View| view.get(number)?.book.clone();
        assert_eq!(book(&found.view), book(&expected), "{number:?}");
    }
}
