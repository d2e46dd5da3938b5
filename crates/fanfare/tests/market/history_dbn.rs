//! Tests of `fanfare history export --format dbn` with a log that the test writes.

use crate::common::Folder;
use crate::common::log::{NOON, events, instrument, live, write};
use crate::history::whole;
use crate::history_export::export;
use fanfare_history::{FeedInfo, Writer, WriterConfig};
use fanfare_market::event::{Action, Flags, InstrumentId, Kind, entry};
use fanfare_market::{BookConfig, Event, Price};
use std::collections::BTreeMap;
use std::path::Path;

#[test]
fn dbn_is_read_by_its_crate() {
    use dbn::decode::{DbnMetadata, DecodeRecordRef, dbn::Decoder};
    let folder = Folder::new("history-dbn");
    let log = whole(&folder);
    let to = folder.file("out.dbn");
    export(&log, &to, &["--format", "dbn", "--dataset", "TESTS"]);
    let mut decoder = Decoder::from_file(&to).unwrap();
    assert_eq!(decoder.metadata().dataset, "TESTS");
    let (mut trades, mut levels) = (Vec::new(), 0);
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(trade) = record.get::<dbn::TradeMsg>() {
            trades.push((trade.hd.instrument_id, trade.price, trade.size));
        }
        levels += usize::from(record.has::<dbn::Mbp10Msg>());
    }
    let of_kind = |kind: Kind| {
        let all = events(60).into_iter().flatten();
        all.filter(move |event| event.kind == kind)
    };
    let wanted = of_kind(Kind::Trade);
    let wanted = wanted.map(|event| (event.instrument.0, event.price.units(), event.size as u32));
    assert_eq!(trades, wanted.collect::<Vec<_>>());
    assert!(levels >= of_kind(Kind::Level).count());
}

#[test]
fn a_restart_is_told_in_a_file_of_dbn() {
    use dbn::decode::{DecodeRecordRef, dbn::Decoder};
    let folder = Folder::new("history-dbn-restart");
    let [log, to] = ["log", "out.dbn"].map(|name| folder.file(name));
    let messages = events(60);
    write(Path::new(&log), &messages[..40]);
    write(Path::new(&log), &messages[40..]);
    export(&log, &to, &["--format", "dbn"]);
    let (mut decoder, mut said) = (Decoder::from_file(&to).unwrap(), Vec::new());
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(system) = record.get::<dbn::SystemMsg>() {
            said.push(system.msg().unwrap().to_owned());
        }
    }
    let restarted = "The plant was restarted: numbers may be those of other instruments";
    assert_eq!(said, [restarted]);
}

#[test]
fn a_trade_that_a_log_shows_again_is_exported_once() {
    let folder = Folder::new("history-again");
    let mut messages = events(60);
    let mut trades = messages.iter().flatten();
    let trade = *trades.rfind(|event| event.kind == Kind::Trade).unwrap();
    let [plain, again] = ["plain", "again"].map(|name| folder.file(name));
    write(Path::new(&plain), &messages);
    let next = messages.iter().flatten().last().unwrap().number + 1;
    messages.push(vec![Event {
        number: next,
        flags: Flags::SNAPSHOT.with(Flags::LAST),
        ..trade
    }]);
    write(Path::new(&again), &messages);
    let to = folder.file("out");
    // From the start, and from checkpoint and books.
    for more in [&[][..], &["--from", "+45"]] {
        let args = [&["--format", "dbn", "--schema", "trades"], more].concat();
        export(&plain, &to, &args);
        let expected = folder.read("out");
        export(&again, &to, &args);
        assert!(folder.read("out") == expected, "{more:?}");
    }
}

/// Returns flags and levels of the last record of each instrument's book, and whether any may be
/// wrong.
fn last_books(file: &str) -> (BTreeMap<u32, String>, bool) {
    use dbn::decode::{DecodeRecordRef, dbn::Decoder};
    let mut decoder = Decoder::from_file(file).unwrap();
    let (mut books, mut is_doubtful) = (BTreeMap::new(), false);
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(book) = record.get::<dbn::Mbp10Msg>() {
            is_doubtful |= book.flags.is_maybe_bad_book();
            books.insert(book.hd.instrument_id, format!("{:?}", book.levels));
        }
    }
    (books, is_doubtful)
}

#[test]
fn dbn_from_the_middle_begins_with_snapshots() {
    let folder = Folder::new("history-dbn-part");
    let log = folder.file("log");
    write(Path::new(&log), &live(60));
    let [all, part] = ["all.dbn", "part.dbn"].map(|name| folder.file(name));
    let args = ["--format", "dbn", "--schema", "mbp-10"];
    export(&log, &all, &args);
    export(&log, &part, &[&args[..], &["--from", "+45"]].concat());
    let (all, part) = (last_books(&all), last_books(&part));
    assert_eq!((all.0.len(), all.1), (3, false));
    assert_eq!(part, all);
    let one = folder.file("one.dbn");
    export(
        &log,
        &one,
        &[&args[..], &["--from", "+45", "--symbol", "BETA"]].concat(),
    );
    assert_eq!(last_books(&one).0.into_iter().collect::<Vec<_>>()[0].0, 1);
}

/// Writes a run whose feed has this number of levels: as many, then one above them. Returns the
/// number of the next event.
fn write_levels(folder: &str, levels: u32, first: u64) -> u64 {
    let feed = FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: BookConfig::by_level(levels).unwrap(),
    };
    let (config, folder) = (WriterConfig::default(), Path::new(folder));
    let (mut writer, _) = Writer::open(folder, config, vec![feed], NOON).unwrap();
    writer.instrument(&instrument(0)).unwrap();
    for at in 0..=levels {
        let event = Event {
            number: first + u64::from(at),
            kind: Kind::Level,
            instrument: InstrumentId(0),
            source: 1,
            entry: entry::BID,
            action: Action::New,
            level: 1,
            price: Price::from_units(100 + i64::from(at)),
            size: 1,
            rpt_seq: at + 1,
            ts_recv: NOON,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        writer.events(&[event.to_bytes()]).unwrap();
    }
    writer.close().unwrap();
    first + u64::from(levels) + 1
}

#[test]
fn books_of_an_export_are_those_of_each_run() {
    use dbn::decode::{DecodeRecordRef, dbn::Decoder};
    let folder = Folder::new("history-dbn-runs");
    let log = folder.file("log");
    let next = write_levels(&log, 4, 1);
    write_levels(&log, 2, next);
    let to = folder.file("out.dbn");
    export(&log, &to, &["--format", "dbn", "--schema", "mbp-10"]);
    let mut decoder = Decoder::from_file(&to).unwrap();
    let (mut counts, mut actions) = (Vec::new(), Vec::new());
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(book) = record.get::<dbn::Mbp10Msg>() {
            let action = book.action().unwrap();
            let is_unknown = action == dbn::Action::None;
            assert_eq!(book.flags.is_maybe_bad_book(), is_unknown);
            let is_there = |level: &&dbn::BidAskPair| level.bid_px != dbn::UNDEF_PRICE;
            counts.push(book.levels.iter().filter(is_there).count());
            actions.push(action);
        }
    }
    // Between the runs, the book is cleared and then unknown.
    assert_eq!(counts, [1, 2, 3, 4, 4, 0, 0, 1, 2, 2]);
    assert_eq!(actions[5..7], [dbn::Action::Clear, dbn::Action::None]);
}

#[test]
fn books_in_front_of_missing_events_are_marked_without_a_later_record() {
    use dbn::decode::{DecodeRecordRef, dbn::Decoder};
    let folder = Folder::new("history-dbn-hole");
    let (log, to) = (whole(&folder), folder.file("out.dbn"));
    export(&log, &to, &["--format", "dbn", "--schema", "mbp-10"]);
    let mut decoder = Decoder::from_file(&to).unwrap();
    let mut marked = Vec::new();
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        if let Some(book) = record.get::<dbn::Mbp10Msg>()
            && book.action().unwrap() == dbn::Action::None
            && book.flags.is_maybe_bad_book()
        {
            marked.push(book.hd.instrument_id);
        }
    }
    assert!(marked.starts_with(&[0, 1, 2]), "{marked:?}");
}

#[test]
fn a_book_is_marked_once_for_all_missing_events_until_it_is_cleared() {
    use dbn::decode::{DecodeRecordRef, dbn::Decoder};
    let folder = Folder::new("history-dbn-holes");
    let [log, to] = ["log", "out.dbn"].map(|name| folder.file(name));
    let feed = FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: BookConfig::by_level(5).unwrap(),
    };
    let config = WriterConfig::default();
    let (mut writer, _) = Writer::open(Path::new(&log), config, vec![feed], NOON).unwrap();
    writer.instrument(&instrument(0)).unwrap();
    let clear = Event {
        source: 1,
        ts_recv: NOON,
        flags: Flags::LAST,
        ..Event::EMPTY
    };
    let level = |units| Event {
        kind: Kind::Level,
        entry: entry::BID,
        level: 1,
        price: Price::from_units(units),
        size: 1,
        ..clear
    };
    for event in [level(100), level(101), clear, level(102)] {
        let event = Event {
            number: writer.next(),
            ..event
        };
        writer.events(&[event.to_bytes()]).unwrap();
        let next = writer.next();
        writer.lost(next, next).unwrap();
    }
    writer.close().unwrap();
    export(&log, &to, &["--format", "dbn", "--schema", "mbp-10"]);
    let mut decoder = Decoder::from_file(&to).unwrap();
    let mut actions = Vec::new();
    while let Some(record) = decoder.decode_record_ref().unwrap() {
        let book = record.get::<dbn::Mbp10Msg>();
        actions.extend(book.map(|book| book.action().unwrap()));
    }
    let (add, none) = (dbn::Action::Add, dbn::Action::None);
    assert_eq!(actions, [add, none, add, dbn::Action::Clear, none, add]);
}
