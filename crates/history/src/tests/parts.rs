//! Messages of several records.

use super::*;
use crate::block::Unpacker;
use crate::format::{Kind, Records};
use crate::segment::{Found, Segment};
use std::ops::RangeInclusive;

/// Appends events with these numbers.
fn put(writer: &mut Writer, numbers: RangeInclusive<u64>, continues: bool) {
    let event = |number| Event {
        number,
        ..Event::EMPTY
    };
    let events: Vec<_> = numbers.map(|number| event(number).to_bytes()).collect();
    writer.part(&events, continues).unwrap();
}

/// Returns the numbers of the events up to the one before `end`, and 0 at the end of a message.
fn messages(reader: &mut Reader, end: u64) -> Vec<u64> {
    let mut seen = Vec::new();
    let mut take = |delivery: Delivery<'_>| match delivery {
        Delivery::Event(event, _) => seen.push(event.number),
        Delivery::End(_) => seen.push(0),
        other => panic!("{other:?}"),
    };
    reader.stop_before(end);
    while reader.read(1, &mut take).unwrap() > 0 {}
    seen
}

#[test]
fn a_message_has_one_end_behind_its_last_record() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    put(&mut writer, 1..=3, true);
    writer.commit().unwrap();
    put(&mut writer, 4..=5, true);
    put(&mut writer, 6..=6, false);
    put(&mut writer, 7..=7, false);
    writer.roll().unwrap();
    put(&mut writer, 8..=8, false);
    writer.close().unwrap();
    let log = Log::open(&folder.0).unwrap();
    for is_compacted in [false, true] {
        if is_compacted {
            assert!(keep(&folder.0, OFTEN).stats().compacted > 0);
        }
        let mut reader = log.reader(Start::First).unwrap();
        assert_eq!(messages(&mut reader, 5), [1, 2, 3, 4]);
        assert_eq!(messages(&mut reader, u64::MAX), [5, 6, 0, 7, 0, 8, 0]);
    }
}

#[test]
fn a_compacted_block_ends_with_events() {
    let folder = Folder::new();
    let config = WriterConfig {
        segment_bytes: 16 << 20,
        ..SMALL
    };
    let (mut writer, _) = Writer::open(&folder.0, config, feeds(), 1).unwrap();
    for first in (1..200_000).step_by(256) {
        writer.watermark(Watermark::unknown(first));
        put(&mut writer, first..=first + 199, true);
        put(&mut writer, first + 200..=first + 255, false);
    }
    writer.roll().unwrap();
    put(&mut writer, 300_000..=300_000, false);
    writer.close().unwrap();
    assert!(keep(&folder.0, OFTEN).stats().compacted > 0);
    let mut segment = Segment::open(&folder.0, 1).unwrap();
    let (mut unpacker, mut room, mut blocks) = (Unpacker::new().unwrap(), Vec::new(), 0);
    while let Found::Block(header) = segment.look().unwrap() {
        assert!(unpacker.records(&header, segment.block(&header), &mut room));
        let (last, _) = Records(&room).last().unwrap();
        assert_eq!(last, Some(Kind::Events), "block {blocks}");
        segment.pass(&header);
        blocks += 1;
    }
    assert!(blocks > 4, "{blocks}");
}
