//! Checkpoints of large books.

use super::*;
use crate::block::{Block, Compressor};
use crate::format::{self, MOST_BLOCK, SegmentHeader};
use crate::known::Known;

/// Writes a checkpoint after the event with this number: a run with these bytes, these records, and
/// the end.
fn write(folder: &Path, number: u64, run: &[u8], records: &[(format::Kind, &[u8])]) {
    let header = SegmentHeader {
        ordinal: 0,
        first: number + 1,
        time: 1,
        run: 1,
        is_compacted: true,
    };
    let mut block = Block::new(number + 1, 1);
    block.record(format::Kind::Run, run, 0);
    for (kind, bytes) in records {
        block.record(*kind, bytes, 0);
    }
    block.record(format::Kind::End, &[], 0);
    let mut bytes = header.write().to_vec();
    bytes.extend_from_slice(block.finish());
    std::fs::write(folder::view(folder, number), bytes).unwrap();
}

/// Returns the bytes of the first run of a log.
fn first_run() -> Vec<u8> {
    let run = Run {
        number: 1,
        start: 1,
        feeds: feeds(),
    };
    let mut bytes = Vec::new();
    run.write(&mut bytes);
    bytes
}

/// Writes a log of some 50 events, and returns its folder and the number of the last one.
fn logged(seed: u64) -> (Folder, u64) {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(seed, 1);
    append(&mut writer, &mut source, 50);
    (folder, source.number - 1)
}

#[test]
fn a_lost_book_in_a_checkpoint_of_an_old_version_loses_those_without_events() {
    let (folder, last) = logged(67);
    let lost: &[u8] = &3_u32.to_le_bytes();
    write(&folder.0, last, &first_run(), &[(format::Kind::Lost, lost)]);
    let books = Log::open(&folder.0).unwrap().as_of(At::End).unwrap();
    let lost: Vec<_> = books.lost().collect();
    assert_eq!(lost, [InstrumentId(3), InstrumentId::ALL]);
}

#[test]
fn a_checkpoint_with_an_unknown_rule_is_refused_and_kept() {
    let (folder, last) = logged(71);
    let mut run = first_run();
    // The rules of the first feed's book end here.
    run[23] |= 1;
    write(&folder.0, last, &run, &[]);
    let path = folder::view(&folder.0, last);
    let log = Log::open(&folder.0).unwrap();
    for error in [
        log.reader(Start::Number(last + 1)).unwrap_err(),
        log.as_of(At::End).unwrap_err(),
        Keeper::open(&folder.0, OFTEN).unwrap_err(),
        Log::repair(&folder.0).unwrap_err(),
    ] {
        let is_told = matches!(&error, LogError::Run { path: told, .. } if *told == path);
        assert!(is_told, "{error}");
    }
    let found = log.verify(|_, _| true).unwrap();
    assert_eq!((found.damage.len(), found.checkpoints), (1, 0));
    assert_eq!(found.damage[0].what, "a rule of a book is unknown");
}

#[test]
fn a_log_with_a_checkpoint_of_a_later_version_is_not_repaired() {
    let (folder, last) = logged(73);
    write(&folder.0, last, &first_run(), &[]);
    let path = folder::view(&folder.0, last);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[8] += 1;
    // The CRC of a later version includes the version.
    bytes[12] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let refused = Log::repair(&folder.0);
    assert!(
        matches!(&refused, Err(LogError::Version { path: told, .. }) if *told == path),
        "{refused:?}"
    );
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
    // Readers use the checkpoint before it, or none.
    let books = Log::open(&folder.0).unwrap().as_of(At::End).unwrap();
    assert_eq!(books.number, last);
}

#[test]
fn a_book_of_more_orders_than_a_block_has_room_for_comes_back() {
    const ORDERS: u64 = 70_000;
    let folder = Folder::new();
    let book = BookConfig::by_order(50, 100_000).unwrap();
    let feed = FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book,
    };
    let (mut writer, _) = Writer::open(&folder.0, WriterConfig::default(), vec![feed], 1).unwrap();
    let instrument = InstrumentId(3);
    let mut expected: View = View::new(vec![book]);
    for number in 1..=ORDERS {
        let event = Event {
            number,
            ts_recv: number,
            instrument,
            kind: Kind::Order,
            entry: entry::BID,
            action: Action::New,
            id: number,
            price: Price::from_units(number as i64 % 40 + 1),
            size: 1,
            source: 1,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        writer.events(&[event.to_bytes()]).unwrap();
        expected.apply(&event);
    }
    writer.commit().unwrap();
    let mut keeper = keep(&folder.0, KeeperConfig::default());
    keeper.checkpoint().unwrap();
    let known = Known::read(&folder.0, ORDERS).unwrap().unwrap();
    let events = known.events.iter();
    let orders = events.filter(|event| event.kind == Kind::Order);
    assert_eq!(orders.count() as u64, ORDERS);
    let mut found: View = View::new(vec![book]);
    known.events.iter().for_each(|event| found.apply(event));
    let book = |view: &View| view.get(instrument).unwrap().book.clone().unwrap();
    assert_eq!(book(&found), book(&expected));
    let log = Log::open(&folder.0).unwrap();
    let verified = log.verify(|_, _| true).unwrap();
    assert_eq!((verified.is_whole(), verified.checkpoints), (true, 1));
}

#[test]
fn a_block_that_no_reader_takes_is_not_written() {
    let mut block = Block::new(1, 0);
    block.record(format::Kind::Instrument, &vec![0; MOST_BLOCK], 0);
    let mut compressor = Compressor::new(1).unwrap();
    let written = block.finish_compressed(&mut compressor, &mut Vec::new());
    assert!(written.is_err());
}

/// Returns the symbols of a directory, by number.
fn symbols(directory: &Directory) -> Vec<String> {
    let all = directory.iter().map(|(number, _)| number);
    let known = all.filter_map(|number| directory.instrument(number));
    let symbols = known.map(|known| known.definition.name.symbol.escape_ascii().to_string());
    symbols.collect()
}

#[test]
fn a_checkpoint_does_not_have_the_names_of_the_event_behind_it() {
    // The names of the next event are in the block of the last one, or behind its checkpoint.
    for is_behind in [false, true] {
        let folder = Folder::new();
        let (mut writer, _) = open(&folder.0);
        let event = |number: u64| {
            let event = Event {
                number,
                ts_recv: number,
                ..Event::EMPTY
            };
            [event.to_bytes()]
        };
        for number in 0..2 {
            let bytes = called(number, &format!("OLD{number}"));
            writer.instrument(&bytes).unwrap();
        }
        for number in 1..=1_000 {
            writer.events(&event(number)).unwrap();
        }
        writer.instrument(&called(1, "OTHER")).unwrap();
        writer.instrument(&called(1, "NEW1")).unwrap();
        writer.instrument(&called(2, "NEW2")).unwrap();
        if is_behind {
            writer.commit().unwrap();
            let mut keeper = keep(&folder.0, KeeperConfig::default());
            keeper.checkpoint().unwrap();
            // The one of a keeper that begins with it has them, too.
            let mut again = keep(&folder.0, KeeperConfig::default());
            again.checkpoint().unwrap();
        }
        writer.events(&event(1_001)).unwrap();
        writer.commit().unwrap();
        keep(&folder.0, OFTEN);
        let log = Log::open(&folder.0).unwrap();
        assert_eq!(log.checkpoints().unwrap(), [1_000]);
        let (old, new) = (["OLD0", "OLD1"], ["OLD0", "NEW1", "NEW2"]);
        for at in [At::Number(1_000), At::Time(1_000)] {
            let mut books = log.as_of(at).unwrap();
            assert_eq!(books.number, 1_000);
            assert_eq!(symbols(books.directory()), old);
            while books.follow(usize::MAX).unwrap() > 0 {}
            assert_eq!(books.number, 1_001);
            assert_eq!(symbols(books.directory()), new);
        }
        let behind = log.as_of(At::Number(1_001)).unwrap();
        assert_eq!(symbols(behind.directory()), new);
        // A reader behind the checkpoint needs them.
        let reader = log.reader(Start::Number(1_001)).unwrap();
        assert_eq!(symbols(reader.directory()), new);
    }
}

#[test]
fn missing_events_have_one_checkpoint() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(79, 1);
    append(&mut writer, &mut source, 100);
    // As after a crash of the machine.
    let last = source.number + 8_000_000;
    writer.lost(source.number, last).unwrap();
    writer.commit().unwrap();
    source.number = last + 1;
    append(&mut writer, &mut source, 100);
    let keeper = keep(&folder.0, OFTEN);
    let log = Log::open(&folder.0).unwrap();
    assert_eq!(log.checkpoints().unwrap(), [last]);
    assert_eq!(keeper.number(), source.number - 1);
}
