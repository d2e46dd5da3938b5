//! A disk that takes nothing for a while, and segments that begin.

use super::*;
use crate::tests::Folder;
use crate::{Claim, Keeper, KeeperConfig, Log, Start};
use fanfare_market::Delivery;
use std::os::unix::fs::MetadataExt;

fn event(number: u64) -> [u8; Event::SIZE] {
    Event {
        number,
        ts_recv: number,
        ..Event::EMPTY
    }
    .to_bytes()
}

/// Returns the numbers found, the ranges that are lost, and the number of restarts.
fn read(folder: &Path) -> (Vec<u64>, Vec<(u64, u64)>, usize) {
    let mut reader = Log::open(folder).unwrap().reader(Start::First).unwrap();
    let (mut numbers, mut lost, mut restarts) = (Vec::new(), Vec::new(), 0);
    let mut take = |delivery: Delivery<'_>| match delivery {
        Delivery::Event(event, _) => numbers.push(event.number),
        Delivery::Lost { first, last } => lost.push((first, last)),
        Delivery::Restart => restarts += 1,
        Delivery::End(_) | Delivery::Watermark(_) => {}
    };
    while reader.read(100, &mut take).unwrap() > 0 {}
    (numbers, lost, restarts)
}

/// Replaces the writer's file by one that can only be read.
fn break_file(writer: &mut Writer) -> File {
    let file = File::open(&writer.path).unwrap();
    std::mem::replace(&mut writer.file, file)
}

#[test]
fn what_the_disk_does_not_take_waits_up_to_a_limit_and_then_is_lost() {
    let folder = Folder::new();
    let (mut writer, _) = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1).unwrap();
    writer.events(&[event(1)]).unwrap();
    writer.commit().unwrap();
    let file = break_file(&mut writer);
    let mut taken = 1;
    let first_lost = loop {
        match writer.events(&[event(taken + 1)]) {
            Ok(()) => taken += 1,
            Err(_) => break taken + 1,
        }
        assert!(taken < 1 << 20, "there is no limit");
    };
    assert!(taken as usize * Event::SIZE > 2 << 20, "{taken}");
    for number in first_lost..first_lost + 10 {
        writer.events(&[event(number)]).unwrap_err();
    }
    writer.commit().unwrap_err();
    assert_eq!(read(&folder.0).0, [1]);
    writer.file = file;
    writer.commit().unwrap();
    assert!(read(&folder.0).0.into_iter().eq(1..=taken));
    writer.events(&[event(first_lost + 10)]).unwrap();
    writer.close().unwrap();
    let (numbers, lost, _) = read(&folder.0);
    assert_eq!(lost, [(first_lost, first_lost + 9)]);
    assert_eq!(numbers.len() as u64, taken + 1);
    let log = Log::open(&folder.0).unwrap();
    assert!(log.verify(|_, _| true).unwrap().is_whole());
}

#[test]
fn a_message_of_any_length_is_read_back_as_one() {
    const COUNT: u64 = 70_000;
    let folder = Folder::new();
    let open = || Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1);
    let (mut writer, _) = open().unwrap();
    let events: Vec<_> = (1..=COUNT).map(event).collect();
    writer.events(&events).unwrap();
    writer.roll().unwrap();
    for is_compacted in [false, true] {
        if is_compacted {
            let mut keeper = Keeper::open(&folder.0, KeeperConfig::default()).unwrap();
            while keeper.work().unwrap() > 0 {}
            assert_eq!(keeper.stats().compacted, 1);
        }
        let (mut numbers, mut ends) = (Vec::new(), 0);
        let mut reader = Log::open(&folder.0).unwrap().reader(Start::First).unwrap();
        let mut take = |delivery: Delivery<'_>| match delivery {
            Delivery::Event(event, _) => numbers.push(event.number),
            Delivery::End(_) => ends += 1,
            other => panic!("{other:?}"),
        };
        while reader.read(100, &mut take).unwrap() > 0 {}
        assert!(numbers.into_iter().eq(1..=COUNT) && ends == 1, "{ends}");
    }
    drop(writer);
    assert_eq!(open().unwrap().1.next, COUNT + 1);
}

#[test]
fn checkpoints_of_events_that_a_crash_took_are_removed() {
    let folder = Folder::new();
    let open = || Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1);
    let (mut writer, _) = open().unwrap();
    let mut keeper = Keeper::open(&folder.0, KeeperConfig::default()).unwrap();
    let mut lens = Vec::new();
    for number in [1, 2] {
        writer.events(&[event(number)]).unwrap();
        writer.commit().unwrap();
        lens.push(writer.end);
        while keeper.work().unwrap() > 0 {}
        keeper.checkpoint().unwrap();
    }
    let views = || folder::list(&folder.0).unwrap().views;
    assert_eq!(views(), [1, 2]);
    writer.file.set_len(lens[0]).unwrap();
    drop(writer);
    assert_eq!(open().unwrap().1.next, 2);
    assert_eq!(views(), [1]);
}

#[test]
fn a_run_that_cannot_begin_yet_begins_later_and_nothing_comes_in_front_of_it() {
    let folder = Folder::new();
    let (mut writer, _) = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1).unwrap();
    writer.events(&[event(1)]).unwrap();
    writer.commit().unwrap();
    let place = std::mem::replace(&mut writer.folder, folder.0.join("not there"));
    writer.restart(7).unwrap_err();
    writer.events(&[event(2)]).unwrap_err();
    writer.commit().unwrap_err();
    writer.folder = place;
    writer.events(&[event(3)]).unwrap();
    assert_eq!((writer.run.number, writer.run.start), (2, 7));
    // The disk takes the segment, but not its contents.
    let file = break_file(&mut writer);
    writer.commit().unwrap_err();
    writer.file = file;
    writer.commit().unwrap();
    let (numbers, lost, restarts) = read(&folder.0);
    assert_eq!((numbers, lost, restarts), (vec![1, 3], vec![(2, 2)], 1));
    drop(writer);
    let (_, opened) = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1).unwrap();
    assert_eq!((opened.run, opened.next), (3, 4));
}

#[test]
fn a_run_after_rescued_restarts_has_a_number_of_its_own() {
    let folder = Folder::new();
    let config = WriterConfig::default();
    drop(Writer::open(&folder.0, config, Vec::new(), 1).unwrap());
    let rescue = |writer: &mut Writer| {
        writer.events(&[event(1)])?;
        writer.restart(7)?;
        writer.events(&[event(2)])
    };
    let opened = Writer::open_with(&folder.0, config, Vec::new(), 1, rescue);
    let (mut writer, opened) = opened.unwrap();
    assert_eq!((opened.run, opened.next), (3, 3));
    writer.events(&[event(3)]).unwrap();
    writer.close().unwrap();
    assert_eq!(read(&folder.0), (vec![1, 2, 3], Vec::new(), 2));
}

#[test]
fn the_next_segment_is_made_in_advance() {
    let folder = Folder::new();
    let (mut writer, _) = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1).unwrap();
    let mut keeper = Keeper::open(&folder.0, KeeperConfig::default()).unwrap();
    let next = folder::next(&folder.0);
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let mut append = |number| {
        writer.events(&[event(number)]).unwrap();
        writer.roll().unwrap();
        inode(&writer.path)
    };
    while keeper.work().unwrap() > 0 {}
    let made = inode(&next);
    assert_eq!(append(1), made);
    assert!(!next.exists());
    // The keeper has not made it.
    append(2);
    while keeper.work().unwrap() > 0 {}
    let made = inode(&next);
    // A kill came between the header and the name.
    fs::write(&next, [7; SEGMENT_HEADER]).unwrap();
    assert_eq!(append(3), made);
    while keeper.work().unwrap() > 0 {}
    assert_eq!(read(&folder.0).0, [1, 2, 3]);
    writer.close().unwrap();
    assert!(!next.exists());
    let log = Log::open(&folder.0).unwrap();
    assert!(log.verify(|_, _| true).unwrap().is_whole());
}

#[test]
fn a_segment_that_a_crash_left_without_its_header_has_never_begun() {
    for len in [0, 1, SEGMENT_HEADER as u64 - 1] {
        let folder = Folder::new();
        let open = || Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1);
        let (mut writer, _) = open().unwrap();
        writer.events(&[event(1)]).unwrap();
        writer.roll().unwrap();
        writer.events(&[event(2)]).unwrap();
        writer.commit().unwrap();
        writer.file.set_len(len).unwrap();
        drop(writer);
        let (mut writer, opened) = open().unwrap();
        assert_eq!((opened.next, opened.torn, opened.run), (2, len, 2));
        writer.events(&[event(2)]).unwrap();
        writer.close().unwrap();
        assert_eq!(read(&folder.0), (vec![1, 2], Vec::new(), 1));
    }
    // The only file belongs to something else.
    let folder = Folder::new();
    fs::write(folder.0.join("0000000001.log"), "no log").unwrap();
    let error = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1).unwrap_err();
    assert!(error.to_string().contains("0000000001.log"), "{error}");
}

#[test]
fn a_log_is_its_owners_alone() {
    let folder = Folder::new();
    let log = folder.0.join("above").join("log");
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    let (mut writer, _) = Writer::open(&log, WriterConfig::default(), Vec::new(), 1).unwrap();
    drop(Claim::make(&log, 1).unwrap());
    for number in 1..3 {
        writer.events(&[event(number)]).unwrap();
        writer.roll().unwrap();
    }
    let mut keeper = Keeper::open(&log, KeeperConfig::default()).unwrap();
    while keeper.work().unwrap() > 0 {}
    let stats = keeper.stats();
    assert!(stats.compacted > 0 && stats.checkpoints > 0, "{stats:?}");
    let folders = [log.as_path(), log.parent().unwrap()].map(mode);
    assert_eq!(folders, [0o700; 2]);
    let files = fs::read_dir(&log).unwrap();
    let files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    assert!(files.len() > 5, "{files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

#[test]
fn a_log_keeps_what_tells_it_from_others() {
    let folders = [Folder::new(), Folder::new()];
    let id = |folder: &Folder| {
        let opened = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1);
        opened.unwrap().0.id()
    };
    let [first, second] = folders.each_ref().map(id);
    assert_ne!(first, second);
    assert_eq!(folders.each_ref().map(id), [first, second]);
    // One that cannot be read is made again.
    for damaged in [&b"text"[..], b"", b"0", &[0xff; 16]] {
        fs::write(folders[0].0.join("id"), damaged).unwrap();
        let made = id(&folders[0]);
        assert_eq!(id(&folders[0]), made);
    }
}

#[test]
fn a_watermark_of_an_earlier_version_has_its_time_alone() {
    let folder = Folder::new();
    let (mut writer, _) = Writer::open(&folder.0, WriterConfig::default(), Vec::new(), 1).unwrap();
    let time = 7_u64.to_le_bytes();
    writer.block.record(Kind::Watermark, &time, 0);
    writer.events(&[event(1)]).unwrap();
    writer.close().unwrap();
    let log = Log::open(&folder.0).unwrap();
    let mut reader = log.reader(Start::First).unwrap();
    let mut marks = Vec::new();
    let mut take = |delivery: Delivery<'_>| {
        if let Delivery::Watermark(mark) = delivery {
            marks.push(mark);
        }
    };
    while reader.read(100, &mut take).unwrap() > 0 {}
    assert_eq!(marks, [Watermark::unknown(7)]);
}
