//! Checkpoints of large books.

use super::*;
use crate::block::{Block, Compressor};
use crate::format::{self, MOST_BLOCK};
use crate::known::Known;

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
