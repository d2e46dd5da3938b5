//! A disk that takes nothing for a while.

use super::*;
use crate::tests::Folder;
use crate::{Log, Start};
use fanfare_market::Delivery;

fn event(number: u64) -> [u8; Event::SIZE] {
    Event {
        number,
        ts_recv: number,
        ..Event::EMPTY
    }
    .to_bytes()
}

/// The numbers that are there, the ranges that are lost, and the restarts.
fn read(folder: &Path) -> (Vec<u64>, Vec<(u64, u64)>, usize) {
    let mut reader = Log::open(folder).unwrap().reader(Start::First).unwrap();
    let (mut numbers, mut lost, mut restarts) = (Vec::new(), Vec::new(), 0);
    let mut take = |delivery: Delivery<'_>| match delivery {
        Delivery::Event(event, _) => numbers.push(event.number),
        Delivery::Lost { first, last } => lost.push((first, last)),
        Delivery::Restart => restarts += 1,
        Delivery::End(_) => {}
    };
    while reader.read(100, &mut take).unwrap() > 0 {}
    (numbers, lost, restarts)
}

/// Puts a file in place of the writer's that can only be read.
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
    // The disk takes the segment, and not what is in it.
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
