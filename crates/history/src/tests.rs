//! Tests of whole logs in folders of their own.

mod checkpoints;
mod cuts;
mod damage;
mod headers;
mod iter;
mod parts;
mod raw;
mod retention;
mod runs;
mod watermarks;

use crate::folder;
use crate::{
    AsOf, At, FeedInfo, Keeper, KeeperConfig, Log, LogError, Opened, Pushed, Reader, Run, Start,
    Writer, WriterConfig,
};
use fanfare_market::event::{Action, Flags, InstrumentId, Kind, entry};
use fanfare_market::instruments::{Definition, Directory, Instrument, Lookup, Name};
use fanfare_market::view::Seen;
use fanfare_market::{BookConfig, Delivery, Event, Price, View, Watermark};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// A folder that is removed at the end of the test.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "fanfare-history-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const SMALL: WriterConfig = WriterConfig {
    segment_bytes: 1 << 20,
    first: 1,
};

fn feeds() -> Vec<FeedInfo> {
    vec![FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: BookConfig::by_price(50).unwrap(),
    }]
}

fn open(folder: &Path) -> (Writer, Opened) {
    Writer::open(folder, SMALL, feeds(), 1).unwrap()
}

/// Messages of random changes of ten books, with times that occasionally go back.
struct Source {
    rng: fastrand::Rng,
    number: u64,
    time: u64,
}

impl Source {
    fn new(seed: u64, next: u64) -> Self {
        Self {
            rng: fastrand::Rng::with_seed(seed),
            number: next,
            time: 1_000_000_000,
        }
    }

    fn message(&mut self) -> Vec<Event> {
        let Self { rng, number, time } = self;
        *time = time.saturating_add_signed(rng.i64(-10..1000));
        if rng.u16(..500) == 0 {
            // The clock was set back.
            *time = time.saturating_sub(rng.u64(..200_000));
        }
        let instrument = InstrumentId(rng.u32(..10));
        let count = rng.usize(1..5);
        let mut events = Vec::new();
        for at in 0..count {
            let (entry, price) = match rng.bool() {
                true => (entry::BID, rng.i64(1..30)),
                false => (entry::OFFER, rng.i64(31..60)),
            };
            let kind = match rng.u8(..20) {
                0 => Kind::Trade,
                1 => Kind::Clear,
                _ => Kind::Level,
            };
            let (size, action) = (rng.i64(1..100), Action::New);
            events.push(Event {
                number: *number,
                ts_recv: *time,
                instrument,
                kind,
                entry,
                action,
                size,
                price: Price::from_units(price),
                source: 1,
                flags: if at + 1 == count {
                    Flags::LAST
                } else {
                    Flags::NONE
                },
                ..Event::EMPTY
            });
            *number += 1;
        }
        events
    }
}

fn instrument(number: u32) -> Vec<u8> {
    called(number, &format!("SYM{number}"))
}

/// Returns the bytes of an instrument with a symbol.
fn called(number: u32, symbol: &str) -> Vec<u8> {
    let instrument = Instrument {
        instrument: InstrumentId(number),
        definition: Definition::named(Name::of_symbol(symbol.as_bytes())),
        revision: 1,
        status: 0,
    };
    let mut out = Vec::new();
    instrument.write(&mut out);
    out
}

fn append(writer: &mut Writer, source: &mut Source, events: usize) -> Vec<Event> {
    let mut all = Vec::new();
    while all.len() < events {
        let message = source.message();
        let bytes: Vec<_> = message.iter().map(Event::to_bytes).collect();
        writer.events(&bytes).unwrap();
        if source.rng.u8(..) < 40 {
            writer.commit().unwrap();
        }
        all.extend(message);
    }
    writer.commit().unwrap();
    all
}

/// The deliveries to a reader.
#[derive(Default, Debug)]
struct Received {
    events: Vec<Event>,
    lost: Vec<(u64, u64)>,
    restarts: usize,
}

impl Received {
    fn all(&mut self, reader: &mut Reader) {
        while self.some(reader, usize::MAX) > 0 {}
    }

    fn some(&mut self, reader: &mut Reader, limit: usize) -> usize {
        reader.read(limit, |delivery| self.take(delivery)).unwrap()
    }

    fn take(&mut self, delivery: Delivery<'_>) {
        match delivery {
            Delivery::Event(event, _) => self.events.push(*event),
            Delivery::Lost { first, last } => self.lost.push((first, last)),
            Delivery::Restart => self.restarts += 1,
            Delivery::End(_) | Delivery::Watermark(_) => {}
        }
    }
}

fn read_from(folder: &Path, start: Start) -> Received {
    let mut received = Received::default();
    received.all(&mut Log::open(folder).unwrap().reader(start).unwrap());
    received
}

fn keep(folder: &Path, config: KeeperConfig) -> Keeper {
    let mut keeper = Keeper::open(folder, config).unwrap();
    while keeper.work().unwrap() > 0 {}
    keeper
}

const OFTEN: KeeperConfig = KeeperConfig {
    checkpoint_events: 1000,
    compress: Some(1),
    keep_bytes: None,
    keep_nanos: None,
};

#[test]
fn a_reader_has_each_event_once_from_any_number_and_time() {
    let folder = Folder::new();
    let (mut writer, opened) = open(&folder.0);
    assert_eq!((opened.next, opened.run), (1, 1));
    for number in 0..10 {
        writer.instrument(&instrument(number)).unwrap();
    }
    let mut source = Source::new(1, 1);
    let mut all = append(&mut writer, &mut source, 60_000);
    drop(writer);
    let (mut writer, opened) = open(&folder.0);
    assert_eq!(
        (opened.next, opened.run, opened.was_closed),
        (source.number, 2, false)
    );
    all.extend(append(&mut writer, &mut source, 30_000));
    let check = |is_kept: bool| {
        let mut rng = fastrand::Rng::with_seed(3);
        for round in 0..60 {
            let at = rng.usize(..all.len());
            let received = read_from(&folder.0, Start::Number(at as u64 + 1));
            assert!(received.events == all[at..], "from {at}");
            assert_eq!(received.lost, []);
            let log = Log::open(&folder.0).unwrap();
            let time = all[at].ts_recv + rng.u64(..20);
            let mut clock = 0;
            let first = all.iter().position(|event| {
                clock = clock.max(event.ts_recv);
                clock >= time
            });
            let reader = log.reader(Start::Time(time)).unwrap();
            let number = first.map_or(all.len(), |first| first) as u64 + 1;
            assert_eq!(reader.next_number(), number, "at {time}, round {round}");
            assert_eq!(reader.directory().len(), 10, "{is_kept}");
        }
    };
    check(false);
    writer.close().unwrap();
    let keeper = keep(&folder.0, OFTEN);
    assert!(keeper.stats().compacted > 3, "{:?}", keeper.stats());
    assert!(keeper.stats().checkpoints > 80);
    check(true);
    let log = Log::open(&folder.0).unwrap();
    let extent = log.extent().unwrap();
    assert_eq!((extent.first, extent.next), (1, source.number));
    assert!(extent.is_closed);
    let verified = log.verify(|_, _| true).unwrap();
    assert!(verified.is_whole(), "{:?}", verified.damage);
    assert_eq!(verified.events as usize, all.len());
    assert_eq!(verified.missing, []);
    let wanted = extent.next + 1;
    let error = log.reader(Start::Number(wanted)).unwrap_err();
    assert!(matches!(error, LogError::NotYet { next, .. } if next == extent.next));
}

#[test]
fn books_as_of_any_number_are_those_of_all_events_before() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    for number in 0..10 {
        writer.instrument(&instrument(number)).unwrap();
    }
    let mut source = Source::new(7, 1);
    let all = append(&mut writer, &mut source, 40_000);
    keep(&folder.0, OFTEN);
    let log = Log::open(&folder.0).unwrap();
    let mut rng = fastrand::Rng::with_seed(9);
    for _ in 0..30 {
        let count = rng.usize(1..all.len());
        let mut expected: View = View::new(vec![feeds()[0].book]);
        all[..count].iter().for_each(|event| expected.apply(event));
        let found = log.as_of(At::Number(count as u64)).unwrap();
        assert_eq!(found.number as usize, count);
        for number in (0..10).map(InstrumentId) {
            let (own, other) = (found.view.get(number), expected.get(number));
            assert_eq!(own.is_some(), other.is_some());
            if let (Some(own), Some(other)) = (own, other) {
                // An empty book counts as none.
                let book = |seen: &Seen| seen.book.clone().filter(|book| !book.is_empty());
                assert_eq!(book(own), book(other), "{number:?} at {count}");
                let values = |seen: &Seen| {
                    let values = seen.last.iter();
                    let values = values.map(|own| (own.number, own.entry, own.price, own.size));
                    values.collect::<Vec<_>>()
                };
                assert_eq!(values(own), values(other));
            }
        }
    }
}

/// Makes two runs with other books each, 50 events each. Returns the number of the first run's
/// last event.
fn two_runs(folder: &Path, is_closed: bool) -> u64 {
    let (mut writer, _) = open(folder);
    writer.instrument(&instrument(3)).unwrap();
    let mut source = Source::new(21, 1);
    append(&mut writer, &mut source, 50);
    let last = source.number - 1;
    match is_closed {
        true => writer.close().unwrap(),
        false => drop(writer),
    }
    let shallow = FeedInfo {
        name: "other".to_owned(),
        base: 0,
        book: BookConfig::by_price(2).unwrap(),
    };
    let (mut writer, _) = Writer::open(folder, SMALL, vec![shallow], 2).unwrap();
    // The second plant numbers its instruments differently.
    let mut bytes = instrument(4);
    bytes[..4].copy_from_slice(&3_u32.to_le_bytes());
    writer.instrument(&bytes).unwrap();
    writer.commit().unwrap();
    append(&mut writer, &mut source, 50);
    last
}

fn symbol(books: &AsOf, number: u32) -> Option<Vec<u8>> {
    let known = books.directory().instrument(InstrumentId(number));
    known.map(|known| known.definition.name.symbol.to_vec())
}

#[test]
fn books_behind_the_last_event_of_a_run_are_those_of_that_run() {
    for is_closed in [false, true] {
        for checkpoint in [false, true] {
            let folder = Folder::new();
            let last = two_runs(&folder.0, is_closed);
            if checkpoint {
                keep(&folder.0, OFTEN);
                assert!(folder::list(&folder.0).unwrap().views.contains(&last));
            }
            let log = Log::open(&folder.0).unwrap();
            let mut expected = View::new(vec![feeds()[0].book]);
            for event in read_from(&folder.0, Start::First).events {
                if event.number <= last {
                    expected.apply(&event);
                }
            }
            let books = |view: &View| {
                let books = (0..10).map(|number| view.get(InstrumentId(number))?.book.clone());
                let books = books.map(|book| book.filter(|book| !book.is_empty()));
                books.collect::<Vec<_>>()
            };
            assert!(books(&expected).iter().any(Option::is_some));
            let mut found = log.as_of(At::Number(last)).unwrap();
            assert_eq!((found.number, found.run.number), (last, 1));
            assert_eq!(books(&found.view), books(&expected));
            assert_eq!(symbol(&found, 3).as_deref(), Some(&b"SYM3"[..]));
            let at_time = log.as_of(At::Time(found.time)).unwrap();
            assert!(at_time.number <= last && at_time.run.number == 1);
            // A reader from there on needs only what the new run has.
            let before = log.as_of(At::Before(last + 1)).unwrap();
            assert_eq!((before.number, before.run.number), (last, 2));
            assert!(books(&before.view).iter().all(Option::is_none));
            assert_eq!(symbol(&before, 3).as_deref(), Some(&b"SYM4"[..]));
            while found.follow(usize::MAX).unwrap() > 0 {}
            let end = log.as_of(At::End).unwrap();
            assert_eq!((found.number, found.run.number), (end.number, 2));
            assert_eq!(books(&found.view), books(&end.view));
        }
    }
}

#[test]
fn a_moment_has_the_names_of_that_moment() {
    for is_committed in [false, true] {
        let folder = Folder::new();
        let (mut writer, _) = open(&folder.0);
        let mut source = Source::new(21, 1);
        // The second name comes with the first event of the second message.
        for name in [3_u32, 4] {
            let mut bytes = instrument(name);
            bytes[..4].copy_from_slice(&3_u32.to_le_bytes());
            writer.instrument(&bytes).unwrap();
            if is_committed {
                writer.commit().unwrap();
            }
            let events: Vec<_> = source.message().iter().map(Event::to_bytes).collect();
            writer.events(&events).unwrap();
        }
        writer.commit().unwrap();
        let log = Log::open(&folder.0).unwrap();
        let second = Source::new(21, 1).message().len() as u64 + 1;
        for (number, name) in [(second - 1, b"SYM3"), (second, b"SYM4")] {
            let mut found = log.as_of(At::Number(number)).unwrap();
            assert_eq!(symbol(&found, 3).as_deref(), Some(&name[..]));
            while found.follow(usize::MAX).unwrap() > 0 {}
            assert_eq!(symbol(&found, 3).as_deref(), Some(&b"SYM4"[..]));
        }
    }
}

#[test]
fn the_end_of_a_log_is_that_of_the_run_that_has_begun() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    append(&mut writer, &mut Source::new(21, 1), 50);
    drop(writer);
    drop(open(&folder.0));
    let log = Log::open(&folder.0).unwrap();
    let end = log.as_of(At::End).unwrap();
    assert_eq!(end.run.number, 2);
    assert_eq!(log.as_of(At::Number(end.number)).unwrap().run.number, 1);
    assert_eq!(log.as_of(At::Number(0)).unwrap().number, 0);
}

#[test]
fn readers_follow_while_it_is_written_compacted_and_removed() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let config = KeeperConfig {
        keep_bytes: Some(1 << 19),
        ..OFTEN
    };
    let mut keeper = Keeper::open(&folder.0, config).unwrap();
    let log = Log::open(&folder.0).unwrap();
    let mut readers: Vec<_> = (0..4)
        .map(|_| (log.reader(Start::First).unwrap(), Received::default()))
        .collect();
    let mut stopped = log.reader(Start::First).unwrap();
    let (mut source, mut all) = (Source::new(11, 1), Vec::new());
    let mut rng = fastrand::Rng::with_seed(4);
    for _ in 0..400 {
        all.extend(append(&mut writer, &mut source, 1000));
        for (reader, received) in &mut readers {
            if rng.bool() {
                received.some(reader, rng.usize(..2000));
            }
        }
        if rng.bool() {
            keeper.work().unwrap();
        }
    }
    while keeper.work().unwrap() > 0 {}
    for (reader, received) in &mut readers {
        received.all(reader);
        assert!(
            received.events == all,
            "{} of {}",
            received.events.len(),
            all.len()
        );
        assert_eq!((received.lost.len(), received.restarts), (0, 0));
    }
    assert!(keeper.stats().removed > 0, "{:?}", keeper.stats());
    let first = log.extent().unwrap().first;
    let gone = loop {
        match stopped.read(usize::MAX, |_| {}) {
            Ok(0) => panic!("it was told nothing"),
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(gone, LogError::Gone { first: told, .. } if told == first));
    let error = log.reader(Start::Number(1)).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with(&format!(
        "event 1 was removed by retention: the log begins with event {first} of"
    )));
    let received = read_from(&folder.0, Start::First);
    assert!(received.events == all[first as usize - 1..]);
    log.as_of(At::Number(first)).unwrap();
}

#[test]
fn what_was_lost_on_the_way_stays_lost_and_numbers_go_on() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(5, 1);
    append(&mut writer, &mut source, 100);
    let next = source.number;
    source.number += 50;
    append(&mut writer, &mut source, 100);
    let end = source.number;
    writer.lost(end - 10, end + 9).unwrap();
    writer.lost(1, 5).unwrap();
    writer.commit().unwrap();
    let received = read_from(&folder.0, Start::First);
    assert_eq!(received.lost, [(next, next + 49), (end, end + 9)]);
    drop(writer);
    let (writer, opened) = open(&folder.0);
    assert_eq!(opened.next, end + 10);
    drop(writer);
    keep(&folder.0, OFTEN);
    assert_eq!(read_from(&folder.0, Start::First).lost, received.lost);
    // Within the lost events, and before the first event after them.
    let from = read_from(&folder.0, Start::Number(next + 7));
    assert_eq!(from.lost[0], (next + 7, next + 49));
    // No event follows them.
    let from = read_from(&folder.0, Start::Number(end + 3));
    assert_eq!((from.lost, from.events), (vec![(end + 3, end + 9)], vec![]));
}

#[test]
fn what_is_pushed_is_what_is_read() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    writer.instrument(&instrument(3)).unwrap();
    let mut source = Source::new(13, 1);
    let mut all = append(&mut writer, &mut source, 5_000);
    let log = Log::open(&folder.0).unwrap();
    let (reader, look) = (
        log.reader(Start::Number(100)).unwrap(),
        Duration::from_millis(1),
    );
    let mut ahead = log.reader(Start::First).unwrap().ahead(2, look).unwrap();
    let pusher = thread::spawn(move || {
        let mut received = Received::default();
        let ended = reader.push(look, |pushed| {
            if let Pushed::Delivery(delivery) = pushed {
                received.take(delivery);
            }
            match received.restarts {
                2 => ControlFlow::Break("two"),
                _ => ControlFlow::Continue(()),
            }
        });
        (ended.unwrap(), received)
    });
    let mut taken = Received::default();
    for round in 0..2 {
        for _ in 0..4 {
            all.extend(append(&mut writer, &mut source, 1_000));
            ahead.take(look, |delivery| taken.take(delivery)).unwrap();
        }
        writer.restart(round).unwrap();
    }
    let (ended, received) = pusher.join().unwrap();
    assert_eq!(ended, "two");
    assert!(received.events == all[99..] && received.lost.is_empty());
    while taken.events.len() < all.len() || taken.restarts < 2 {
        let patience = Duration::from_secs(60);
        assert!(
            ahead
                .take(patience, |delivery| taken.take(delivery))
                .unwrap()
                > 0
        );
    }
    assert!(taken.events == all && taken.lost.is_empty());
    assert_eq!(ahead.directory().len(), 1);
    assert_eq!(ahead.take(look, |_| {}).unwrap(), 0);
}

#[test]
fn who_reads_ahead_is_told_what_is_gone_once() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(13, 1);
    append(&mut writer, &mut source, 20_000);
    let reader = Log::open(&folder.0).unwrap().reader(Start::First).unwrap();
    for _ in 0..4 {
        append(&mut writer, &mut source, 20_000);
        writer.roll().unwrap();
    }
    let config = KeeperConfig {
        keep_bytes: Some(1),
        ..OFTEN
    };
    assert!(keep(&folder.0, config).stats().removed > 2);
    let mut ahead = reader.ahead(1, Duration::from_millis(1)).unwrap();
    let error = loop {
        match ahead.take(Duration::from_secs(60), |_| {}) {
            Ok(count) => assert!(count > 0, "it was told nothing"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, LogError::Gone { .. }), "{error}");
    let error = ahead.take(Duration::from_secs(60), |_| {}).unwrap_err();
    assert!(matches!(error, LogError::Ended), "{error}");
}

#[test]
fn a_disk_without_room_is_told_and_what_waits_is_done_later() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(17, 1);
    append(&mut writer, &mut source, 4_000);
    writer.roll().unwrap();
    append(&mut writer, &mut source, 20_000);
    writer.roll().unwrap();
    append(&mut writer, &mut source, 20_000);
    let mut keeper = Keeper::open(&folder.0, OFTEN).unwrap();
    // A folder of that name has the effect of a full disk.
    let in_the_way = folder.0.join("0000000001.logz.new");
    std::fs::create_dir(&in_the_way).unwrap();
    let mut failed = 0;
    for _ in 0..200 {
        failed += u32::from(keeper.work().is_err());
    }
    assert!(
        failed > 100 && keeper.stats().compacted == 0,
        "{failed}, {:?}",
        keeper.stats()
    );
    std::fs::remove_dir(&in_the_way).unwrap();
    while keeper.work().unwrap() > 0 {}
    let log = Log::open(&folder.0).unwrap();
    let segments = log.segments().unwrap();
    let (last, full) = segments.split_last().unwrap();
    assert!(full.len() > 1 && full.iter().all(|one| one.is_compacted));
    assert!(!last.is_compacted);
    let verified = log.verify(|_, _| true).unwrap();
    assert!(
        verified.is_whole() && verified.checkpoints > 20,
        "{verified:?}"
    );
}

#[test]
fn a_reader_that_follows_from_the_first_moment_follows_over_restarts() {
    let folder = Folder::new();
    let mut source = Source::new(9, 1);
    let mut received: Option<(Reader, Received)> = None;
    let mut expected = Vec::new();
    for run in 0..5 {
        // The reader reads at each moment of the start: before the rescued events, and after them.
        let rescue = |_: &mut Writer| {
            if let Some((reader, received)) = &mut received {
                received.all(reader);
            }
            Ok(())
        };
        let (mut writer, _) = Writer::open_with(&folder.0, SMALL, feeds(), 1, rescue).unwrap();
        let (reader, received) = received.get_or_insert_with(|| {
            let reader = Log::open(&folder.0).unwrap().reader(Start::First);
            (reader.unwrap(), Received::default())
        });
        expected.extend(append(&mut writer, &mut source, 100));
        received.all(reader);
        assert_eq!(received.events, expected);
        assert_eq!(received.restarts, run);
    }
}

#[test]
fn a_clock_that_jumped_ahead_removes_nothing() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(19, 1);
    let mut all = Vec::new();
    let now = crate::clock::system_time();
    let (hour, day) = (3_600_000_000_000, 86_400_000_000_000);
    let mut keeper = None;
    // Two hours ago, 30 years ahead for a moment, and the current time.
    for time in [now - 2 * hour, now + 30 * 365 * day, now - hour, now] {
        source.time = time;
        all.extend(append(&mut writer, &mut source, 2_000));
        writer.roll().unwrap();
        let config = KeeperConfig {
            keep_nanos: Some(day),
            ..OFTEN
        };
        keeper = Some(keep(&folder.0, config));
    }
    let stats = keeper.unwrap().stats();
    assert_eq!(stats.removed, 0, "{stats:?}");
    assert!(read_from(&folder.0, Start::First).events == all);
    // Events that are old at the latest possible time are removed.
    let config = KeeperConfig {
        keep_nanos: Some(hour),
        ..OFTEN
    };
    append(&mut writer, &mut source, 10);
    writer.roll().unwrap();
    append(&mut writer, &mut source, 10);
    assert_eq!(keep(&folder.0, config).stats().removed, 1);
}

#[test]
fn there_is_one_writer() {
    let folder = Folder::new();
    let (writer, _) = open(&folder.0);
    let error = Writer::open(&folder.0, SMALL, feeds(), 1).unwrap_err();
    assert!(matches!(error, LogError::InUse(_)), "{error}");
    drop(writer);
    assert_eq!(open(&folder.0).1.run, 2);
    let nothing = Folder::new();
    assert!(matches!(Log::open(&nothing.0), Err(LogError::NoLog(_))));
    std::fs::write(nothing.0.join("0000000001.log"), "no log").unwrap();
    let error = Log::open(&nothing.0).unwrap().extent().unwrap_err();
    assert!(error.to_string().contains("0000000001.log"), "{error}");
}

#[test]
fn instruments_of_feeds_with_other_numbers_are_forgotten() {
    let folder = Folder::new();
    let run = |places: &[(&str, u32)], numbers: &[u32]| {
        let book = BookConfig::by_price(50).unwrap();
        let feed = |(name, base): &(&str, u32)| FeedInfo {
            name: (*name).to_owned(),
            base: *base,
            book,
        };
        let feeds = places.iter().map(feed).collect();
        let (mut writer, _) = Writer::open(&folder.0, SMALL, feeds, 1).unwrap();
        for number in numbers {
            writer.instrument(&instrument(*number)).unwrap();
        }
        let mut source = Source::new(3, writer.next());
        append(&mut writer, &mut source, 50);
        writer.close().unwrap();
    };
    run(&[("x", 0), ("y", 4), ("z", 8)], &[0, 1, 4, 5, 8]);
    let log = Log::open(&folder.0).unwrap();
    let reader = log.reader(Start::First).unwrap();
    let mut ahead = reader.ahead(1, Duration::from_millis(1)).unwrap();
    // The first feed has room for more, and the last one is gone.
    run(&[("x", 0), ("y", 6)], &[2, 6]);
    let known = |directory: &Directory| {
        let all = directory.iter();
        all.map(|(number, _)| number.0).collect::<Vec<_>>()
    };
    let mut received = Received::default();
    while received.events.len() < 100 {
        let each = |delivery: Delivery<'_>| received.take(delivery);
        assert!(ahead.take(Duration::from_secs(60), each).unwrap() > 0);
    }
    assert_eq!(known(ahead.directory()), [0, 1, 2, 6]);
    for _ in 0..2 {
        assert_eq!(known(log.as_of(At::End).unwrap().directory()), [0, 1, 2, 6]);
        // A checkpoint has the same ones.
        keep(&folder.0, OFTEN).checkpoint().unwrap();
    }
    let before = log.as_of(At::Number(50)).unwrap();
    assert_eq!(known(before.directory()), [0, 1, 4, 5, 8]);
}

#[test]
fn a_run_says_what_its_books_are() {
    let folder = Folder::new();
    drop(open(&folder.0));
    let mut reader = Log::open(&folder.0).unwrap().reader(Start::First).unwrap();
    reader.read(10, |_| {}).unwrap();
    let run = Run {
        number: 1,
        start: 1,
        feeds: feeds(),
    };
    assert_eq!(reader.run(), Some(&run));
}
