//! Segments that are cut where a block ends, and segments that only look so.

use super::{Folder, OFTEN, Source, append, keep, open};
use crate::format::{SEGMENT_HEADER, SegmentHeader};
use crate::segment::{Found, Segment};
use crate::{Log, Mended, Verified, folder};
use fanfare_market::Event;
use std::path::{Path, PathBuf};

fn verified(folder: &Path) -> Verified {
    Log::open(folder).unwrap().verify(|_, _| true).unwrap()
}

/// Makes a log of a full segment and the one after it, and returns the first one's file.
fn make(folder: &Path, is_compacted: bool) -> PathBuf {
    let (mut writer, _) = open(folder);
    let mut source = Source::new(41, 1);
    append(&mut writer, &mut source, 50);
    writer.roll().unwrap();
    append(&mut writer, &mut source, 300);
    drop(writer);
    if is_compacted {
        keep(folder, OFTEN);
    }
    folder::segment(folder, 1, is_compacted)
}

/// Returns the offsets of the blocks of the first segment.
fn blocks(folder: &Path) -> Vec<u64> {
    let mut segment = Segment::open(folder, 1).unwrap();
    let mut all = Vec::new();
    while let Found::Block(header) = segment.look().unwrap() {
        all.push(segment.at);
        segment.pass(&header);
    }
    all
}

fn cut(path: &Path, len: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.set_len(len).unwrap();
}

#[test]
fn a_segment_that_is_cut_where_a_block_ends_is_damage_until_it_is_repaired() {
    for is_compacted in [false, true] {
        let whole = Folder::new();
        make(&whole.0, is_compacted);
        assert!(verified(&whole.0).is_whole());
        let cuts = blocks(&whole.0);
        assert_eq!(cuts[0], SEGMENT_HEADER as u64);
        assert!(is_compacted || cuts.len() > 1, "{cuts:?}");
        for at in cuts {
            let folder = Folder::new();
            let path = make(&folder.0, is_compacted);
            cut(&path, at);
            let found = verified(&folder.0);
            let damage = found.damage.iter();
            let damage: Vec<_> = damage.map(|own| (&own.path, own.at, own.bytes)).collect();
            assert_eq!(damage, [(&path, at, 0)]);
            assert_eq!(found.missing.len(), 1, "{found:?}");
            let done = Log::repair(&folder.0).unwrap();
            assert_eq!(done.len(), 1, "{done:?}");
            assert_eq!((&done[0].path, done[0].what), (&path, Mended::Segment));
            // The segment itself has the mark, also without the damaged file.
            std::fs::remove_file(folder::kept(&path)).unwrap();
            let repaired = verified(&folder.0);
            assert!(repaired.is_whole(), "{repaired:?}");
            assert_eq!(repaired.missing, found.missing);
            assert_eq!(Log::repair(&folder.0).unwrap(), []);
        }
    }
}

#[test]
fn a_segment_whose_beginning_is_repaired_does_not_make_the_one_before_it_damage() {
    let folder = Folder::new();
    make(&folder.0, false);
    let path = folder::segment(&folder.0, 2, false);
    let mut bytes = std::fs::read(&path).unwrap();
    // The header, the record of the run, and the beginning of the first events.
    bytes[..200].fill(0);
    std::fs::write(&path, bytes).unwrap();
    let done = Log::repair(&folder.0).unwrap();
    let paths: Vec<_> = done.iter().map(|own| &own.path).collect();
    assert_eq!(paths, [&path]);
    std::fs::remove_file(folder::kept(&path)).unwrap();
    let found = verified(&folder.0);
    assert!(found.is_whole() && found.missing.len() == 1, "{found:?}");
    assert_eq!(Log::repair(&folder.0).unwrap(), []);
}

#[test]
fn a_segment_that_0_2_0_has_repaired_without_a_mark_is_no_damage() {
    let folder = Folder::new();
    let path = make(&folder.0, true);
    let kept = folder::kept(&folder::segment(&folder.0, 1, false));
    std::fs::copy(&path, kept).unwrap();
    cut(&path, SEGMENT_HEADER as u64);
    let found = verified(&folder.0);
    assert!(found.is_whole() && found.missing.len() == 1, "{found:?}");
}

#[test]
fn numbers_that_a_writer_has_passed_over_are_no_damage() {
    let folder = Folder::new();
    let event = |number| {
        let event = Event {
            number,
            ts_recv: number,
            ..Event::EMPTY
        };
        [event.to_bytes()]
    };
    let (mut writer, _) = open(&folder.0);
    writer.events(&event(5)).unwrap();
    // Lost at the end of a segment, and at the beginning of the next one.
    writer.lost(6, 9).unwrap();
    writer.roll().unwrap();
    writer.events(&event(20)).unwrap();
    writer.roll().unwrap();
    drop(writer);
    // A kill came between the header of a segment and its first block.
    let header = SegmentHeader {
        ordinal: 4,
        first: 21,
        time: 20,
        run: 1,
        is_compacted: false,
    };
    let path = folder::segment(&folder.0, 4, false);
    std::fs::write(path, header.write()).unwrap();
    let (mut writer, opened) = open(&folder.0);
    assert_eq!(opened.next, 21);
    writer.events(&event(30)).unwrap();
    writer.close().unwrap();
    for is_compacted in [false, true] {
        if is_compacted {
            keep(&folder.0, OFTEN);
        }
        let found = verified(&folder.0);
        assert!(found.is_whole(), "{found:?}");
        assert_eq!((found.segments, found.events), (5, 3));
        assert_eq!(found.missing, [(1, 4), (6, 19), (21, 29)]);
        assert_eq!(Log::repair(&folder.0).unwrap(), []);
    }
}
