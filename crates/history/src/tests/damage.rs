//! Logs that are cut, damaged and repaired.

use super::{
    Folder, OFTEN, Received, SMALL, Source, append, feeds, instrument, keep, open, read_from,
};
use crate::{At, Keeper, KeeperConfig, Log, LogError, Mended, Start, Writer};
use fanfare_market::instruments::Lookup;
use fanfare_market::{Delivery, Event, InstrumentId};
use std::path::{Path, PathBuf};

#[test]
fn a_log_that_is_cut_or_damaged_says_what_is_missing() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(5, 1);
    let all = append(&mut writer, &mut source, 3_000);
    drop(writer);
    let file = folder.0.join("0000000001.log");
    let whole = std::fs::read(&file).unwrap();
    let mut rng = fastrand::Rng::with_seed(2);
    for round in 0..150 {
        let mut bytes = whole.clone();
        if round % 2 == 0 {
            bytes.truncate(rng.usize(64..bytes.len()));
        } else {
            let at = rng.usize(64..bytes.len());
            bytes[at] ^= 1 << rng.u8(..8);
        }
        std::fs::write(&file, &bytes).unwrap();
        let received = read_from(&folder.0, Start::First);
        let mut next = 1;
        let mut lost = received.lost.iter();
        for event in &received.events {
            if event.number != next {
                assert_eq!(lost.next(), Some(&(next, event.number - 1)));
            }
            assert_eq!(*event, all[event.number as usize - 1]);
            next = event.number + 1;
        }
        assert_eq!(lost.next(), None);
        let verified = Log::open(&folder.0).unwrap().verify(|_, _| true).unwrap();
        assert_eq!(verified.events as usize, received.events.len());
        assert_eq!(verified.missing, received.lost);
        // The writer continues after the last whole event.
        let (mut writer, opened) = open(&folder.0);
        assert_eq!(opened.next, next);
        let mut more = Source::new(round, next);
        let more = append(&mut writer, &mut more, 10);
        let again = read_from(&folder.0, Start::First);
        assert_eq!(again.events[received.events.len()..], more);
        let restarts = usize::from(!received.events.is_empty());
        assert_eq!((again.restarts, &again.lost), (restarts, &received.lost));
        drop(writer);
        std::fs::remove_file(folder.0.join("0000000002.log")).unwrap();
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.retain(|file| {
        !["lock", "next", "id"]
            .iter()
            .any(|name| file.ends_with(name))
    });
    files.sort();
    files
}

/// Makes a log of two runs, with compacted segments, checkpoints, and a segment that is still being
/// written.
fn make(folder: &Path) -> Vec<Event> {
    let (mut writer, _) = open(folder);
    for number in 0..10 {
        writer.instrument(&instrument(number)).unwrap();
    }
    let mut source = Source::new(31, 1);
    let mut all = append(&mut writer, &mut source, 2_500);
    writer.roll().unwrap();
    all.extend(append(&mut writer, &mut source, 2_500));
    drop(writer);
    let (mut writer, _) = Writer::open(folder, SMALL, feeds(), 2).unwrap();
    all.extend(append(&mut writer, &mut source, 2_500));
    drop(writer);
    keep(folder, OFTEN);
    all
}

/// Checks the deliveries to a reader: missing events were reported, and the others are unchanged.
fn check(received: &Received, from: u64, all: &[Event], what: &str) {
    let mut next = from;
    let mut lost = received.lost.iter();
    for event in &received.events {
        while event.number > next {
            let range = lost.next();
            let (first, last) = *range.unwrap_or_else(|| panic!("{what}: {next} is passed over"));
            assert!(
                first == next && last < event.number,
                "{what}: {first} to {last}"
            );
            next = last + 1;
        }
        assert_eq!(event.number, next, "{what}");
        assert_eq!(*event, all[next as usize - 1], "{what}");
        next += 1;
    }
}

/// Makes a small log of a full segment and the one after it.
fn small(folder: &Path) -> Vec<Event> {
    let (mut writer, _) = open(folder);
    writer.instrument(&instrument(3)).unwrap();
    let mut source = Source::new(23, 1);
    let mut all = append(&mut writer, &mut source, 5);
    writer.roll().unwrap();
    all.extend(append(&mut writer, &mut source, 5));
    all
}

#[test]
fn each_cut_and_each_damaged_byte_is_told() {
    for is_compacted in [false, true] {
        let folder = Folder::new();
        let all = small(&folder.0);
        if is_compacted {
            keep(&folder.0, OFTEN);
        }
        let log = Log::open(&folder.0).unwrap();
        let segments = log.segments().unwrap();
        assert_eq!(
            (segments.len(), segments[0].is_compacted),
            (2, is_compacted)
        );
        let read_all = |what: &str| {
            let (received, is_refused) = read(&log, Start::First, what);
            let first = first_of(&log);
            check(&received, first, &all, what);
            (received, is_refused || first > 1)
        };
        for segment in &segments {
            let whole = std::fs::read(&segment.path).unwrap();
            let harm = |bytes: &[u8], what: &str| {
                std::fs::write(&segment.path, bytes).unwrap();
                let (received, is_refused) = read_all(what);
                let lost = received.lost.iter().map(|(first, last)| last - first + 1);
                let is_all = received.events.len() as u64 + lost.sum::<u64>() == all.len() as u64;
                let is_last = segment.path == segments[1].path;
                // Events cut from the end or the beginning of a log cannot be missed.
                assert!(is_all || is_refused || is_last, "{what}: {received:?}");
                let verified = log.verify(|_, _| true).unwrap();
                let is_told = !verified.is_whole() || received.events.len() < all.len();
                assert!(is_told || bytes == whole, "{what}");
            };
            for at in 0..whole.len() {
                harm(
                    &whole[..at],
                    &format!("cut at {at} of {}", segment.path.display()),
                );
            }
            for at in 0..whole.len() {
                let mut bytes = whole.clone();
                bytes[at] ^= 1 << (at % 8);
                let what = format!("bit {} of byte {at} of {}", at % 8, segment.path.display());
                harm(&bytes, &what);
            }
            std::fs::write(&segment.path, &whole).unwrap();
        }
        assert_eq!(read_all("whole").0.events, all);
    }
}

/// Returns the bytes of a file, cut, flipped or overwritten.
fn harmed(whole: &[u8], rng: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    // Every other time in the header.
    let bound = if rng.bool() { 100 } else { bytes.len() };
    let at = rng.usize(..bound);
    match rng.u8(..3) {
        0 => bytes.truncate(at),
        1 => bytes[at] ^= 1 << rng.u8(..8),
        _ => {
            let end = (at + rng.usize(..300)).min(bytes.len());
            bytes[at..end].fill(rng.u8(..));
        }
    }
    bytes
}

/// Returns the first number of a log, 1 if nothing tells it.
fn first_of(log: &Log) -> u64 {
    log.begins().map_or(1, |begin| begin.number)
}

/// Reads to the end, or to a file that is reported to be no part of a log.
fn read(log: &Log, start: Start, what: &str) -> (Received, bool) {
    let mut received = Received::default();
    let is_told = |error: &LogError| {
        matches!(
            error,
            LogError::BadSegment { .. }
                | LogError::Gone { .. }
                | LogError::NotYet { .. }
                | LogError::Version { .. }
        )
    };
    let mut take = || {
        let mut reader = log.reader(start)?;
        while reader.read(100, |delivery| received.take(delivery))? > 0 {}
        Ok(())
    };
    match take() {
        Ok(()) => (received, false),
        Err(error) if is_told(&error) => (received, true),
        Err(error) => panic!("{what}: {error}"),
    }
}

#[test]
fn whatever_is_damaged_a_reader_is_told_and_reads_the_rest() {
    let folder = Folder::new();
    let all = make(&folder.0);
    let files = files(&folder.0);
    let is_compacted = |file: &&PathBuf| file.extension().is_some_and(|end| end == "logz");
    assert!(files.iter().filter(is_compacted).count() >= 2, "{files:?}");
    let (mut refused, mut missing) = (0, 0);
    for seed in 0..200 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let file = &files[rng.usize(..files.len())];
        let whole = std::fs::read(file).unwrap();
        let bytes = harmed(&whole, &mut rng);
        std::fs::write(file, &bytes).unwrap();
        let number = rng.u64(1..=all.len() as u64);
        let log = Log::open(&folder.0).unwrap();
        let first = first_of(&log);
        for (start, from) in [(Start::First, first), (Start::Number(number), number)] {
            let what = format!("seed {seed}, {}, {start:?}", file.display());
            let (received, is_refused) = read(&log, start, &what);
            refused += u32::from(is_refused);
            check(&received, from, &all, &what);
            missing += received.lost.len();
        }
        // A book, an extent and a check of the rest return a result or an error.
        let _ = log.as_of(At::Number(number)).map(|books| books.number);
        let _ = log.extent();
        log.verify(|_, _| true).unwrap();
        std::fs::write(file, &whole).unwrap();
    }
    assert!(
        refused > 0 && missing > 10,
        "{refused} refused, {missing} missing"
    );
    let received = read_from(&folder.0, Start::First);
    assert!(received.events == all && received.lost.is_empty());
}

/// Checks that all events are correct and in order, and that at most one segment is missing.
/// Returns the number after the last event.
fn has_the_rest(folder: &Path, expected: &[Event]) -> u64 {
    let received = read_from(folder, Start::First);
    let mut next = 1;
    for event in &received.events {
        assert!(event.number >= next);
        assert_eq!(*event, expected[event.number as usize - 1]);
        next = event.number + 1;
    }
    let lost = received.lost.iter().map(|(first, last)| last - first + 1);
    let missing = lost.sum::<u64>() + expected.len() as u64 + 1 - next;
    let all = received.events.len() as u64 + missing;
    assert_eq!(all, expected.len() as u64);
    assert!(missing <= 20_000, "{missing}");
    next
}

#[test]
fn a_damaged_log_is_mended_and_has_all_that_can_be_read() {
    type Harm = fn(&mut Vec<u8>, &mut fastrand::Rng);
    let harms: [Harm; 4] = [
        |bytes, rng| bytes[rng.usize(12..64)] ^= 0x20,
        |bytes, rng| {
            let at = rng.usize(200..bytes.len());
            bytes[at] ^= 0x20;
        },
        |bytes, rng| bytes.truncate(rng.usize(..bytes.len())),
        |bytes, rng| {
            let at = rng.usize(64..bytes.len());
            bytes[at..].fill(0);
        },
    ];
    let whole = Folder::new();
    let (mut writer, _) = open(&whole.0);
    let expected = append(&mut writer, &mut Source::new(77, 1), 60_000);
    drop(writer);
    keep(&whole.0, KeeperConfig::default());
    let ordinals: Vec<u64> = crate::folder::list(&whole.0)
        .unwrap()
        .segments
        .into_keys()
        .collect();
    assert!(ordinals.len() > 3);
    for seed in 0..12 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let folder = Folder::new();
        for file in std::fs::read_dir(&whole.0).unwrap() {
            let path = file.unwrap().path();
            std::fs::copy(&path, folder.0.join(path.file_name().unwrap())).unwrap();
        }
        let ordinal = ordinals[rng.usize(..ordinals.len())];
        let is_compacted = crate::folder::list(&folder.0).unwrap().segments[&ordinal];
        let path = crate::folder::segment(&folder.0, ordinal, is_compacted);
        let is_removed =
            seed % 5 == 4 && ordinal != ordinals[0] && Some(&ordinal) != ordinals.last();
        if is_removed {
            std::fs::remove_file(&path).unwrap();
        } else {
            let mut bytes = std::fs::read(&path).unwrap();
            harms[rng.usize(..4)](&mut bytes, &mut rng);
            std::fs::write(&path, bytes).unwrap();
        }
        let done = Log::repair(&folder.0).unwrap();
        let what = match is_removed {
            true => Mended::Hole,
            false => Mended::Segment,
        };
        assert!(done.iter().any(|one| one.what == what), "{seed}: {done:?}");
        let verified = Log::open(&folder.0).unwrap().verify(|_, _| true).unwrap();
        assert!(verified.is_whole(), "{seed}: {verified:?}");
        let next = has_the_rest(&folder.0, &expected);
        assert_eq!(Log::repair(&folder.0).unwrap(), []);
        let (mut writer, opened) = open(&folder.0);
        assert_eq!(opened.next, next);
        append(&mut writer, &mut Source::new(1, next), 10);
        assert!(matches!(Log::repair(&folder.0), Err(LogError::InUse(_))));
        let again = read_from(&folder.0, Start::Number(next));
        assert!(again.events.len() >= 10 && again.lost.is_empty());
    }
}

#[test]
fn the_oldest_segment_keeps_its_first_number_without_its_header() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    append(&mut writer, &mut Source::new(3, 1), 60_000);
    drop(writer);
    let retain = KeeperConfig {
        keep_bytes: Some(1 << 20),
        ..OFTEN
    };
    let keeper = keep(&folder.0, retain);
    assert!(keeper.stats().removed > 0, "{:?}", keeper.stats());
    drop(keeper);
    let before = read_from(&folder.0, Start::First);
    assert!(before.events[0].number > 1);
    let segment = Log::open(&folder.0).unwrap().segments().unwrap()[0].clone();
    let mut bytes = std::fs::read(&segment.path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&segment.path, bytes).unwrap();
    Log::repair(&folder.0).unwrap();
    let after = read_from(&folder.0, Start::First);
    assert_eq!((after.events, after.lost), (before.events, before.lost));
}

#[test]
fn a_segment_that_lost_its_end_does_not_stop_retention() {
    for is_seen_before in [false, true] {
        let folder = Folder::new();
        let (mut writer, _) = open(&folder.0);
        let mut source = Source::new(37, 1);
        append(&mut writer, &mut source, 2_500);
        writer.roll().unwrap();
        let border = source.number;
        append(&mut writer, &mut source, 2_500);
        writer.roll().unwrap();
        append(&mut writer, &mut source, 2_500);
        let file = folder.0.join("0000000001.log");
        let len = std::fs::metadata(&file).unwrap().len();
        let cut = std::fs::File::options().write(true).open(&file).unwrap();
        cut.set_len(len - 100).unwrap();
        let lost = read_from(&folder.0, Start::First).lost;
        assert!(
            matches!(lost[..], [(_, last)] if last == border - 1),
            "{lost:?}"
        );
        if is_seen_before {
            // As a log whose keeper has passed it without a checkpoint at the border.
            keep(&folder.0, OFTEN);
            std::fs::remove_file(folder.0.join(format!("{:020}.view", border - 1))).unwrap();
        }
        let config = KeeperConfig {
            keep_bytes: Some(1),
            ..OFTEN
        };
        let mut keeper = keep(&folder.0, config);
        writer.roll().unwrap();
        append(&mut writer, &mut source, 2_500);
        while keeper.work().unwrap() > 0 {}
        assert!(keeper.stats().removed >= 2, "{:?}", keeper.stats());
        let rest = read_from(&folder.0, Start::First);
        assert_eq!(rest.lost, []);
        assert!(rest.events.len() >= 2_500);
        let end = Log::open(&folder.0).unwrap().as_of(At::End).unwrap();
        assert_eq!(end.number, source.number - 1);
    }
}

#[test]
fn a_segment_that_lost_its_header_stops_neither_compaction_nor_retention() {
    for ordinal in [1, 2] {
        let folder = Folder::new();
        let (mut writer, _) = open(&folder.0);
        let mut source = Source::new(39, 1);
        for _ in 0..3 {
            append(&mut writer, &mut source, 2_500);
            writer.roll().unwrap();
        }
        append(&mut writer, &mut source, 2_500);
        let plain = KeeperConfig {
            compress: None,
            ..OFTEN
        };
        keep(&folder.0, plain);
        let config = KeeperConfig {
            keep_bytes: Some(1),
            ..OFTEN
        };
        let mut keeper = Keeper::open(&folder.0, config).unwrap();
        let file = crate::folder::segment(&folder.0, ordinal, false);
        let mut bytes = std::fs::read(&file).unwrap();
        bytes[20] ^= 1;
        std::fs::write(&file, bytes).unwrap();
        while keeper.work().unwrap() > 0 {}
        let stats = keeper.stats();
        assert_eq!((stats.damaged, stats.compacted), (1, 2), "{stats:?}");
        writer.roll().unwrap();
        append(&mut writer, &mut source, 2_500);
        while keeper.work().unwrap() > 0 {}
        assert_eq!(keeper.stats().removed, 4, "{:?}", keeper.stats());
        let rest = read_from(&folder.0, Start::First);
        assert!(rest.lost.is_empty() && rest.events.len() >= 2_500);
    }
}

/// Writes a log of three segments, of which the last one has `events`, and removes the second one.
/// Returns the events that are left, and the first and the last number of the others.
fn with_a_hole(folder: &Path, is_kept: bool, events: usize) -> (Vec<Event>, (u64, u64)) {
    let (mut writer, _) = open(folder);
    writer.instrument(&instrument(3)).unwrap();
    let mut source = Source::new(29, 1);
    let mut left = append(&mut writer, &mut source, 2_500);
    writer.roll().unwrap();
    let first = source.number;
    append(&mut writer, &mut source, 2_500);
    writer.roll().unwrap();
    let last = source.number - 1;
    left.extend(append(&mut writer, &mut source, events));
    if is_kept {
        keep(folder, OFTEN);
    }
    std::fs::remove_file(crate::folder::segment(folder, 2, is_kept)).unwrap();
    (left, (first, last))
}

#[test]
fn readers_and_the_keeper_go_on_behind_a_missing_segment() {
    for (is_kept, events) in [(false, 2_500), (true, 2_500), (false, 0), (true, 0)] {
        let what = format!("{is_kept}, {events}");
        let folder = Folder::new();
        let (left, hole) = with_a_hole(&folder.0, is_kept, events);
        let (first, last) = hole;
        let end = left.last().unwrap().number.max(last);
        let received = read_from(&folder.0, Start::First);
        assert!(received.events == left, "{what}");
        assert_eq!(
            (received.lost, received.restarts),
            (vec![hole], 0),
            "{what}"
        );
        let received = read_from(&folder.0, Start::Number(first + 7));
        assert!(received.events[..] == left[first as usize - 1..], "{what}");
        assert_eq!(received.lost, [(first + 7, last)], "{what}");
        let log = Log::open(&folder.0).unwrap();
        assert_eq!(log.reader(Start::Now).unwrap().next_number(), end + 1);
        for (at, number) in [
            (At::Number(first + 7), first + 7),
            (At::Number(last - 7), last - 7),
            (At::Before(last), last - 1),
            (At::End, end),
        ] {
            assert_eq!(log.as_of(at).unwrap().number, number, "{what}, {at:?}");
        }
        let verified = log.verify(|_, _| true).unwrap();
        let damage = verified.damage.iter().map(|damage| damage.path.clone());
        let file = crate::folder::segment(&folder.0, 2, false);
        assert_eq!(damage.collect::<Vec<_>>(), [file], "{what}");
        assert_eq!(verified.missing, [hole], "{what}");
        assert_eq!(keep(&folder.0, OFTEN).number(), end, "{what}");
    }
}

#[test]
fn events_that_are_missing_before_lost_ones_are_told_with_them() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(27, 1);
    append(&mut writer, &mut source, 100);
    writer.roll().unwrap();
    let border = source.number;
    writer.lost(border, border + 9).unwrap();
    source.number += 10;
    append(&mut writer, &mut source, 100);
    let file = folder.0.join("0000000001.log");
    let len = std::fs::metadata(&file).unwrap().len();
    let cut = std::fs::File::options().write(true).open(&file).unwrap();
    cut.set_len(len - 100).unwrap();
    let received = read_from(&folder.0, Start::First);
    let before = received.events.iter().filter(|event| event.number < border);
    let first = before.count() as u64 + 1;
    assert!(first < border, "{first}");
    assert_eq!(received.lost, [(first, border + 9)]);
    let verified = Log::open(&folder.0).unwrap().verify(|_, _| true).unwrap();
    assert_eq!(verified.missing, received.lost);
}

#[test]
fn a_segment_under_the_name_of_another_one_is_passed_over_and_not_repaired() {
    let folder = Folder::new();
    let all = make(&folder.0);
    let log = Log::open(&folder.0).unwrap();
    let segments = log.segments().unwrap();
    let path = &segments[1].path;
    let copied = std::fs::copy(&segments[0].path, path).unwrap();
    let mut reader = log.reader(Start::First).unwrap();
    let mut received = Received::default();
    // A reader that took the copy's own number would come to it again and again.
    for _ in 0..100 {
        received.some(&mut reader, usize::MAX);
    }
    let (first, last) = (segments[1].first, segments[2].first - 1);
    assert_eq!(received.lost, [(first, last)]);
    let rest = all
        .iter()
        .filter(|event| !(first..=last).contains(&event.number));
    assert!(received.events.iter().eq(rest));
    let verified = log.verify(|_, _| true).unwrap();
    let damage = verified.damage.iter();
    let damage: Vec<_> = damage.map(|own| (&own.path, own.at, own.bytes)).collect();
    assert_eq!((damage, verified.repeated), (vec![(path, 0, copied)], 0));
    let refused = Log::repair(&folder.0);
    assert!(
        matches!(&refused, Err(LogError::BadSegment { path: told, .. }) if told == path),
        "{refused:?}"
    );
    // Under a number behind all others it hides none of them.
    std::fs::rename(path, crate::folder::segment(&folder.0, 100, true)).unwrap();
    assert_eq!(log.extent().unwrap().next, all.len() as u64 + 1);
}

#[test]
fn instruments_in_damaged_bytes_are_known_from_the_next_checkpoint() {
    let folder = Folder::new();
    make(&folder.0);
    let log = Log::open(&folder.0).unwrap();
    let path = log.segments().unwrap()[0].path.clone();
    let mut bytes = std::fs::read(&path).unwrap();
    // In the header of the first block.
    bytes[100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let mut reader = log.reader(Start::First).unwrap();
    let (mut events, mut told) = (0, 0);
    let mut is_read = true;
    while is_read {
        let each = |delivery: Delivery<'_>| {
            if let Delivery::Event(event, known) = delivery {
                events += 1;
                assert!(known.instrument(event.instrument).is_some(), "{event:?}");
            }
        };
        is_read = reader.read_with(100, |_| told += 1, each).unwrap() > 0;
    }
    assert!(events >= 5_000);
    assert_eq!(told, 10);
}

#[test]
fn a_name_from_a_missing_segment_is_known_from_the_checkpoint_behind_it() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(31, 1);
    for name in [3_u32, 4] {
        let mut bytes = instrument(name);
        bytes[..4].copy_from_slice(&3_u32.to_le_bytes());
        writer.instrument(&bytes).unwrap();
        append(&mut writer, &mut source, 100);
        writer.roll().unwrap();
    }
    let last = source.number - 1;
    append(&mut writer, &mut source, 100);
    keep(&folder.0, OFTEN);
    let log = Log::open(&folder.0).unwrap();
    assert!(log.checkpoints().unwrap().contains(&last));
    std::fs::remove_file(&log.segments().unwrap()[1].path).unwrap();
    let mut reader = log.reader(Start::First).unwrap();
    let mut symbols = Vec::new();
    let mut is_read = true;
    while is_read {
        let each = |delivery: Delivery<'_>| {
            if let Delivery::Event(_, known) = delivery {
                let known = known.instrument(InstrumentId(3)).unwrap();
                symbols.push(known.definition.name.symbol.to_vec());
            }
        };
        is_read = reader.read(usize::MAX, each).unwrap() > 0;
    }
    symbols.dedup();
    assert_eq!(symbols, [b"SYM3", b"SYM4"]);
}

#[test]
fn a_checkpoint_behind_the_last_event_tells_that_the_end_is_missing() {
    let folder = Folder::new();
    make(&folder.0);
    let log = Log::open(&folder.0).unwrap();
    let segments = log.segments().unwrap();
    std::fs::remove_file(&segments[1].path).unwrap();
    std::fs::remove_file(&segments[2].path).unwrap();
    let mut behind = log.checkpoints().unwrap();
    behind.retain(|view| *view >= segments[1].first);
    assert!(!behind.is_empty());
    let verified = log.verify(|_, _| true).unwrap();
    let damage = verified.damage.iter().map(|damage| damage.path.clone());
    let files = behind
        .iter()
        .map(|view| crate::folder::view(&folder.0, *view));
    assert!(damage.eq(files), "{:?}", verified.damage);
    let done = Log::repair(&folder.0).unwrap();
    assert_eq!(done.len(), behind.len());
    assert!(done.iter().all(|one| one.what == Mended::Checkpoint));
    assert!(log.verify(|_, _| true).unwrap().is_whole());
}

/// Returns the symbol of each event, as a reader knows it.
fn names(folder: &Path) -> Vec<(u64, Option<Vec<u8>>)> {
    let mut reader = Log::open(folder).unwrap().reader(Start::First).unwrap();
    let mut names = Vec::new();
    let mut is_read = true;
    while is_read {
        let each = |delivery: Delivery<'_>| {
            if let Delivery::Event(event, known) = delivery {
                let known = known.instrument(event.instrument);
                let name = known.map(|known| known.definition.name.symbol.to_vec());
                names.push((event.number, name));
            }
        };
        is_read = reader.read(usize::MAX, each).unwrap() > 0;
    }
    names
}

#[test]
fn a_repaired_log_has_the_names_that_it_had_before() {
    let second = |folder: &Path| crate::folder::segment(folder, 2, false);
    let harm = |path: &Path, harm: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = std::fs::read(path).unwrap();
        harm(&mut bytes);
        std::fs::write(path, bytes).unwrap();
    };
    type Harm<'a> = (&'a str, &'a dyn Fn(&Path));
    let harms: [Harm<'_>; 5] = [
        ("removed", &|path| std::fs::remove_file(path).unwrap()),
        ("cut in its header", &|path| {
            harm(path, &|bytes| bytes.truncate(10));
        }),
        ("zeros", &|path| harm(path, &|bytes| bytes.fill(0))),
        ("cut", &|path| harm(path, &|bytes| bytes.truncate(300))),
        // The block of the instruments, which has no events.
        ("a damaged block", &|path| {
            harm(path, &|bytes| {
                let at = bytes.windows(4).position(|bytes| bytes == b"SYM3");
                bytes[at.unwrap()] ^= 1;
            });
        }),
    ];
    for (what, harm) in harms {
        let folder = Folder::new();
        let (mut writer, _) = open(&folder.0);
        let mut source = Source::new(83, 1);
        append(&mut writer, &mut source, 300);
        writer.roll().unwrap();
        append(&mut writer, &mut source, 5);
        for number in 0..10 {
            writer.instrument(&instrument(number)).unwrap();
        }
        writer.commit().unwrap();
        append(&mut writer, &mut source, 300);
        writer.roll().unwrap();
        append(&mut writer, &mut source, 300);
        drop(writer);
        keep(
            &folder.0,
            KeeperConfig {
                compress: None,
                ..OFTEN
            },
        );
        harm(&second(&folder.0));
        let before = names(&folder.0);
        let last = before.last().unwrap();
        assert!(last.1.is_some(), "{what}: {last:?}");
        assert_eq!(Log::repair(&folder.0).unwrap().len(), 1, "{what}");
        assert!(names(&folder.0) == before, "{what}");
        assert!(Log::repair(&folder.0).unwrap().is_empty(), "{what}");
        // Compaction keeps the mark in a segment that was filled in.
        keep(&folder.0, OFTEN);
        assert!(names(&folder.0) == before, "{what}");
    }
}

#[test]
fn a_segment_that_an_earlier_version_filled_in_hides_no_names() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(87, 1);
    append(&mut writer, &mut source, 300);
    writer.roll().unwrap();
    let first = source.number;
    for number in 0..10 {
        writer.instrument(&instrument(number)).unwrap();
    }
    append(&mut writer, &mut source, 300);
    writer.roll().unwrap();
    let last = source.number - 1;
    append(&mut writer, &mut source, 300);
    keep(&folder.0, OFTEN);
    let path = crate::folder::segment(&folder.0, 2, true);
    std::fs::remove_file(path).unwrap();
    let before = names(&folder.0);
    assert!(
        before
            .iter()
            .all(|(number, name)| name.is_some() == (*number > last))
    );
    let header = crate::format::SegmentHeader {
        ordinal: 2,
        first,
        time: 1,
        run: 1,
        is_compacted: false,
    };
    let path = crate::folder::segment(&folder.0, 2, false);
    std::fs::write(path, header.write()).unwrap();
    assert!(names(&folder.0) == before);
}

#[test]
fn events_that_the_log_has_lost_itself_recall_no_later_names() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(89, 1);
    append(&mut writer, &mut source, 300);
    let first = source.number;
    writer.lost(first, first + 99).unwrap();
    source.number += 100;
    append(&mut writer, &mut source, 300);
    for number in 0..10 {
        writer.instrument(&instrument(number)).unwrap();
    }
    let last = source.number - 1;
    append(&mut writer, &mut source, 300);
    writer.roll().unwrap();
    append(&mut writer, &mut source, 10);
    keep(&folder.0, OFTEN);
    let names = names(&folder.0);
    assert!(
        names
            .iter()
            .all(|(number, name)| name.is_some() == (*number > last))
    );
}
