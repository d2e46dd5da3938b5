//! Tests of `fanfare history export --format dbn` with a log that the test writes.

use crate::common::Folder;
use crate::common::log::{NOON, instrument};
use crate::history::export;
use fanfare_history::{FeedInfo, Writer, WriterConfig};
use fanfare_market::event::{Flags, Kind, entry};
use fanfare_market::{BookConfig, Event, Price};
use std::path::Path;

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
