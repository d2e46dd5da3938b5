//! Logs whose oldest segments are removed.

use super::*;
use crate::Begin;

/// Retention that leaves only the segment being written.
const LEAST: KeeperConfig = KeeperConfig {
    keep_bytes: Some(1),
    ..OFTEN
};

#[test]
fn books_from_before_the_beginning_of_a_log_are_gone() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let (mut source, mut all) = (Source::new(41, 1), Vec::new());
    for _ in 0..3 {
        all.extend(append(&mut writer, &mut source, 2_500));
        writer.roll().unwrap();
    }
    // Later than all before, wherever the clock was set back.
    source.time += 10_000_000;
    all.extend(append(&mut writer, &mut source, 2_500));
    let log = Log::open(&folder.0).unwrap();
    // Nothing is removed so far: before the first event there were no books.
    let begin = log.begins().unwrap();
    assert_eq!(begin, Begin { number: 1, time: 0 });
    begin.check(Start::Time(1)).unwrap();
    assert_eq!(log.as_of(At::Time(1)).unwrap().number, 0);
    assert_eq!(keep(&folder.0, LEAST).stats().removed, 3);
    let begin = log.begins().unwrap();
    let Begin {
        number: first,
        time,
    } = begin;
    let removed = &all[..first as usize - 1];
    assert_eq!(Some(time), removed.iter().map(|event| event.ts_recv).max());
    for at in [
        At::Time(0),
        At::Time(time - 1),
        At::Number(0),
        At::Number(first - 2),
        At::Before(first - 1),
    ] {
        let error = log.as_of(at).unwrap_err();
        let is_gone = matches!(error, LogError::Gone { first: told, .. } if told == first);
        assert!(is_gone, "{at:?}: {error}");
        if let At::Number(number @ 1..) = at {
            let told = format!("event {number} was removed by retention: ");
            assert!(error.to_string().starts_with(&told), "{at:?}: {error}");
        }
    }
    let later = all.iter().find(|event| event.ts_recv > time).unwrap();
    for (at, number) in [
        (At::Time(time), later.number - 1),
        (At::Number(first - 1), first - 1),
        (At::Before(first), first - 1),
    ] {
        assert_eq!(log.as_of(at).unwrap().number, number, "{at:?}");
    }
    // A reader begins at the first event of the log; `check` returns an error.
    let reader = log.reader(Start::Time(time)).unwrap();
    assert_eq!(reader.next_number(), first);
    for start in [Start::Time(time), Start::Number(first - 1)] {
        let error = begin.check(start).unwrap_err();
        assert!(matches!(error, LogError::Gone { .. }), "{start:?}: {error}");
    }
    for start in [
        Start::Time(time + 1),
        Start::Number(first),
        Start::First,
        Start::Now,
    ] {
        begin.check(start).unwrap();
    }
}

#[test]
fn a_log_is_verified_while_retention_removes_segments_and_checkpoints() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(43, 1);
    for _ in 0..3 {
        append(&mut writer, &mut source, 2_500);
        writer.roll().unwrap();
    }
    keep(&folder.0, OFTEN);
    append(&mut writer, &mut source, 2_500);
    writer.roll().unwrap();
    append(&mut writer, &mut source, 2_500);
    let mut keeper = Keeper::open(&folder.0, LEAST).unwrap();
    let log = Log::open(&folder.0).unwrap();
    let verified = log.verify(|_, _| {
        while keeper.work().unwrap() > 0 {}
        true
    });
    let verified = verified.unwrap();
    assert_eq!(keeper.stats().removed, 4);
    assert!(verified.is_whole(), "{verified:?}");
    assert_eq!((verified.segments, verified.missing), (2, vec![]));
}

#[test]
fn nothing_is_removed_before_a_checkpoint_that_cannot_be_read() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(47, 1);
    append(&mut writer, &mut source, 2_500);
    writer.roll().unwrap();
    let border = source.number;
    append(&mut writer, &mut source, 5_000);
    let config = KeeperConfig {
        compress: None,
        ..OFTEN
    };
    keep(&folder.0, config);
    let view = folder::view(&folder.0, border - 1);
    let mut bytes = std::fs::read(&view).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&view, bytes).unwrap();
    writer.roll().unwrap();
    append(&mut writer, &mut source, 2_500);
    let log = Log::open(&folder.0).unwrap();
    let segments = log.segments().unwrap();
    let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    // It would be enough to remove the first segment.
    let config = KeeperConfig {
        keep_bytes: Some(bytes - 1),
        ..config
    };
    assert_eq!(keep(&folder.0, config).stats().removed, 0);
    assert_eq!(log.as_of(At::Number(border)).unwrap().number, border);
}

#[test]
fn a_system_clock_that_is_set_ahead_makes_nothing_old() {
    const DAY: u64 = 86_400_000_000_000;
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(49, 1);
    let now = crate::clock::system_time();
    let config = KeeperConfig {
        keep_nanos: Some(3 * DAY),
        ..OFTEN
    };
    source.time = now - 400 * DAY;
    append(&mut writer, &mut source, 2_000);
    let mut keeper = Keeper::open(&folder.0, config).unwrap();
    keeper.set_clock_ahead(400 * DAY);
    // The clock was set ahead by 400 days, and what arrives has its time.
    for _ in 0..3 {
        writer.roll().unwrap();
        source.time = now;
        append(&mut writer, &mut source, 2_000);
        while keeper.work().unwrap() > 0 {}
    }
    let stats = keeper.stats();
    assert_eq!(stats.removed, 0, "{stats:?}");
    let ahead = stats.clock_ahead / DAY;
    assert_eq!(ahead, 399, "less the hour that is believed");
    // A keeper that starts now believes the clock.
    writer.roll().unwrap();
    append(&mut writer, &mut source, 10);
    let stats = keep(&folder.0, config).stats();
    assert_eq!((stats.removed, stats.clock_ahead), (1, 0), "{stats:?}");
}
