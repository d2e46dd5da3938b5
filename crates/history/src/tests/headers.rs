//! Segments whose headers are damaged.

use super::*;
use fanfare_market::Book;
use fanfare_market::state::code;
use std::ops::Range;

const HEADER: Range<usize> = 0..64;

/// The header, the record of the run, and the beginning of the first events.
const BEGINNING: Range<usize> = 0..200;

const WHOLE: Range<usize> = 0..usize::MAX;

/// Writes a log of four segments, of which the third one begins a run, and the last one is being
/// written. Returns its events, and the number of events in each segment.
fn four(folder: &Path) -> (Vec<Event>, [usize; 4]) {
    let mut source = Source::new(53, 1);
    let mut all = Vec::new();
    let mut counts = [0; 4];
    for run in counts.chunks_mut(2) {
        let (mut writer, _) = open(folder);
        for number in 0..10 {
            writer.instrument(&instrument(number)).unwrap();
        }
        for count in run {
            writer.roll().unwrap();
            let events = append(&mut writer, &mut source, 2_500);
            *count = events.len();
            all.extend(events);
        }
    }
    (all, counts)
}

/// Overwrites bytes of a segment. Returns its file.
fn harm(folder: &Path, ordinal: u64, range: Range<usize>) -> PathBuf {
    let is_compacted = folder::list(folder).unwrap().segments[&ordinal];
    let path = folder::segment(folder, ordinal, is_compacted);
    let mut bytes = std::fs::read(&path).unwrap();
    let end = range.end.min(bytes.len());
    bytes[range.start..end].fill(0);
    std::fs::write(&path, bytes).unwrap();
    path
}

fn books(view: &View) -> Vec<Option<Book>> {
    let books = (0..10).map(|number| view.get(InstrumentId(number))?.book.clone());
    let books = books.map(|book| book.filter(|book| !book.is_empty()));
    books.collect()
}

#[test]
fn a_segment_that_lost_its_header_alone_is_read_whole() {
    for (is_kept, ordinal) in (0..8).map(|round| (round >= 4, round % 4 + 1)) {
        let what = format!("{is_kept}, segment {ordinal}");
        let folder = Folder::new();
        let (all, counts) = four(&folder.0);
        if is_kept {
            keep(&folder.0, OFTEN);
        }
        let path = harm(&folder.0, ordinal, HEADER);
        let received = read_from(&folder.0, Start::First);
        assert!(received.events == all, "{what}");
        assert_eq!((received.lost, received.restarts), (vec![], 1), "{what}");
        let log = Log::open(&folder.0).unwrap();
        for at in (0..all.len()).step_by(613) {
            let number = at as u64 + 1;
            let received = read_from(&folder.0, Start::Number(number));
            assert!(received.events == all[at..], "{what}, {number}");
            let found = log.as_of(At::Number(number)).unwrap();
            let run = if at < counts[0] + counts[1] { 1 } else { 2 };
            assert_eq!((found.number, found.run.number), (number, run), "{what}");
            let found = log.as_of(At::Time(found.time)).unwrap();
            assert!(found.number >= number, "{what}");
        }
        let end = log.as_of(At::End).unwrap();
        assert_eq!((end.number, end.run.number), (all.len() as u64, 2));
        assert_eq!(log.extent().unwrap().next, end.number + 1);
        assert_eq!(log.segments().unwrap().len(), 4);
        let verified = log.verify(|_, _| true).unwrap();
        let damage = verified.damage.iter();
        let damage: Vec<_> = damage.map(|own| (&own.path, own.at, own.bytes)).collect();
        assert_eq!(damage, [(&path, 0, 64)], "{what}");
        assert_eq!(verified.missing, [], "{what}");
        assert_eq!(keep(&folder.0, OFTEN).number(), end.number, "{what}");
    }
}

#[test]
fn a_segment_that_lost_its_beginning_has_no_books_of_the_run_before() {
    for is_followed in [false, true] {
        let folder = Folder::new();
        let (mut keeper, mut follower) = (None, None);
        if is_followed {
            drop(open(&folder.0));
            keeper = Some(Keeper::open(&folder.0, OFTEN).unwrap());
            let reader = Log::open(&folder.0).unwrap().reader(Start::First);
            follower = Some(reader.unwrap());
        }
        let (all, counts) = four(&folder.0);
        let ordinal = 2 + u64::from(is_followed);
        harm(&folder.0, ordinal, BEGINNING);
        let log = Log::open(&folder.0).unwrap();
        let mut reader = follower.unwrap_or_else(|| log.reader(Start::First).unwrap());
        let mut received = Received::default();
        received.all(&mut reader);
        let [(first, last)] = received.lost[..] else {
            panic!("{:?}", received.lost);
        };
        assert_eq!(first as usize, counts[0] + 1);
        let (before, after) = all.split_at(first as usize - 1);
        let after = &after[(last + 1 - first) as usize..];
        assert!(received.events[..] == [before, after].concat());
        // Nothing says that the segment is of the run before, or of the one after it.
        assert_eq!(received.restarts, 2 + usize::from(is_followed));
        let number = last + 500;
        let found = log.as_of(At::Number(number)).unwrap();
        let mut expected = View::new(vec![feeds()[0].book]);
        expected.lose_all();
        let until = after.iter().take_while(|event| event.number <= number);
        until.for_each(|event| expected.apply(event));
        assert_eq!(books(&found.view), books(&expected));
        let mut keeper = keeper.unwrap_or_else(|| Keeper::open(&folder.0, OFTEN).unwrap());
        while keeper.work().unwrap() > 0 {}
        assert_eq!(keeper.number(), all.len() as u64);
    }
}

#[test]
fn a_segment_of_which_nothing_can_be_read_is_told_and_passed_over() {
    for is_kept in [false, true] {
        let folder = Folder::new();
        let (all, counts) = four(&folder.0);
        if is_kept {
            keep(&folder.0, OFTEN);
        }
        harm(&folder.0, 2, WHOLE);
        let (first, last) = (counts[0], counts[0] + counts[1]);
        let (left, hole) = (
            [&all[..first], &all[last..]].concat(),
            (first as u64 + 1, last as u64),
        );
        let received = read_from(&folder.0, Start::First);
        assert!(received.events == left);
        assert_eq!((received.lost, received.restarts), (vec![hole], 1));
        let received = read_from(&folder.0, Start::Number(hole.0 + 7));
        assert!(received.events[..] == left[first..]);
        assert_eq!(received.lost, [(hole.0 + 7, hole.1)]);
        let log = Log::open(&folder.0).unwrap();
        for number in [hole.0 + 7, hole.1 - 7, hole.1 + 7] {
            assert_eq!(log.as_of(At::Number(number)).unwrap().number, number);
        }
        assert_eq!(log.readable_segments().unwrap().len(), 3);
        assert_eq!(keep(&folder.0, OFTEN).number(), all.len() as u64);
    }
}

#[test]
fn a_log_begins_behind_segments_of_which_nothing_can_be_read() {
    for is_kept in [false, true] {
        let folder = Folder::new();
        let (all, counts) = four(&folder.0);
        if is_kept {
            keep(&folder.0, OFTEN);
        }
        harm(&folder.0, 1, WHOLE);
        let first = counts[0] as u64 + 1;
        let log = Log::open(&folder.0).unwrap();
        assert_eq!(log.begins().unwrap().number, first);
        let received = read_from(&folder.0, Start::First);
        assert!(received.events == all[counts[0]..]);
        assert_eq!((received.lost, received.restarts), (vec![], 1));
        let error = log.reader(Start::Number(first - 1));
        assert!(matches!(error, Err(LogError::Gone { .. })));
        let number = first + 100;
        assert_eq!(log.as_of(At::Number(number)).unwrap().number, number);
        assert_eq!(keep(&folder.0, OFTEN).number(), all.len() as u64);
    }
    // Nothing tells the first number of a log without a segment that can be read.
    let folder = Folder::new();
    four(&folder.0);
    for ordinal in 1..=4 {
        harm(&folder.0, ordinal, WHOLE);
    }
    let error = Log::open(&folder.0).unwrap().reader(Start::First);
    assert!(matches!(error, Err(LogError::BadSegment { .. })));
}

#[test]
fn books_of_a_checkpoint_are_lost_with_the_segment_behind_it() {
    let folder = Folder::new();
    let (_, counts) = four(&folder.0);
    keep(&folder.0, OFTEN);
    harm(&folder.0, 1, WHOLE);
    // The checkpoint at the border goes, and those inside the segment stay.
    let border = folder::view(&folder.0, counts[0] as u64);
    std::fs::remove_file(border).unwrap();
    let log = Log::open(&folder.0).unwrap();
    let first = counts[0] as u64 + 1;
    let found = log.as_of(At::Before(first)).unwrap();
    assert_eq!((found.number, found.run.number), (first - 1, 1));
    assert!(books(&found.view).iter().all(Option::is_none));
}

/// Appends one event of instrument 3, in a block of its own.
fn put(writer: &mut Writer, number: u64, event: Event) {
    let event = Event {
        number,
        instrument: InstrumentId(3),
        source: 1,
        flags: Flags::LAST,
        ..event
    };
    writer.events(&[event.to_bytes()]).unwrap();
    writer.commit().unwrap();
}

fn level() -> Event {
    Event {
        kind: Kind::Level,
        entry: entry::BID,
        action: Action::New,
        size: 1,
        price: Price::from_units(7),
        ..Event::EMPTY
    }
}

fn state(id: u64) -> Event {
    Event {
        kind: Kind::State,
        id,
        ..Event::EMPTY
    }
}

/// Writes a log of three segments of one run: the instrument is stale in the second one, and live
/// in the third one without a snapshot. Returns its number of events.
fn stale_then_live(folder: &Path) -> u64 {
    let (mut writer, _) = open(folder);
    writer.instrument(&instrument(3)).unwrap();
    put(&mut writer, 1, level());
    put(&mut writer, 2, state(code::LIVE));
    writer.roll().unwrap();
    put(&mut writer, 3, state(code::STALE));
    put(&mut writer, 4, level());
    put(&mut writer, 5, level());
    writer.roll().unwrap();
    put(&mut writer, 6, state(code::LIVE));
    6
}

#[test]
fn books_behind_a_border_that_damage_hides_are_lost() {
    for is_harmed in [false, true] {
        let folder = Folder::new();
        let (mut writer, _) = open(&folder.0);
        writer.instrument(&instrument(3)).unwrap();
        put(&mut writer, 1, level());
        drop(writer);
        let (mut writer, _) = open(&folder.0);
        put(&mut writer, 2, level());
        put(&mut writer, 3, level());
        writer.roll().unwrap();
        put(&mut writer, 4, state(code::STALE));
        put(&mut writer, 5, state(code::LIVE));
        if is_harmed {
            harm(&folder.0, 2, BEGINNING);
        }
        let found = Log::open(&folder.0).unwrap().as_of(At::End).unwrap();
        assert_eq!((found.number, found.run.number), (5, 2));
        let seen = found.view.get(InstrumentId(3)).unwrap();
        assert_eq!(
            (seen.is_lost(), seen.has_snapshot()),
            (is_harmed, !is_harmed)
        );
    }
}

#[test]
fn a_segment_within_a_run_is_of_that_run() {
    let plain = KeeperConfig {
        compress: None,
        ..OFTEN
    };
    // Without a checkpoint, from the one in front of the segment, and from the one behind it.
    for (views, is_lost) in [(vec![], true), (vec![2], true), (vec![2, 5], false)] {
        let folder = Folder::new();
        let end = stale_then_live(&folder.0);
        keep(&folder.0, plain);
        for view in folder::list(&folder.0).unwrap().views {
            if !views.contains(&view) {
                std::fs::remove_file(folder::view(&folder.0, view)).unwrap();
            }
        }
        harm(&folder.0, 2, BEGINNING);
        let received = read_from(&folder.0, Start::First);
        assert_eq!((received.lost, received.restarts), (vec![(3, 3)], 0));
        let log = Log::open(&folder.0).unwrap();
        assert_eq!(log.checkpoints().unwrap(), views);
        let found = log.as_of(At::End).unwrap();
        assert_eq!((found.number, found.run.number), (end, 1));
        let seen = found.view.get(InstrumentId(3)).unwrap();
        assert_eq!((seen.is_lost(), seen.has_snapshot()), (is_lost, !is_lost));
        let lost: Vec<_> = found.lost().collect();
        let all = [InstrumentId(3), InstrumentId::ALL];
        assert_eq!(lost, if is_lost { &all[..] } else { &[] });
    }
}

#[test]
fn books_that_began_in_front_of_a_log_are_unknown_until_they_are_shown() {
    let folder = Folder::new();
    stale_then_live(&folder.0);
    // Retention has removed it, and its checkpoint cannot be read.
    std::fs::remove_file(folder::segment(&folder.0, 1, false)).unwrap();
    let log = Log::open(&folder.0).unwrap();
    for _ in 0..2 {
        let found = log.as_of(At::End).unwrap();
        assert_eq!((found.number, found.run.number), (6, 1));
        let seen = found.view.get(InstrumentId(3)).unwrap();
        assert!(!seen.has_snapshot() && seen.book.is_none());
        assert!(found.lost().eq([InstrumentId(3), InstrumentId::ALL]));
        // A checkpoint of them says so, too.
        keep(&folder.0, OFTEN).checkpoint().unwrap();
        assert_eq!(log.checkpoints().unwrap().last(), Some(&6));
    }
    let (mut writer, _) = open(&folder.0);
    put(&mut writer, 7, level());
    put(&mut writer, 8, state(code::LIVE));
    let found = log.as_of(At::End).unwrap();
    assert!(found.view.get(InstrumentId(3)).unwrap().has_snapshot());
    assert_eq!((found.run.number, found.lost().count()), (2, 0));
}

#[test]
fn nothing_precedes_a_log_that_begins_with_any_number() {
    let folder = Folder::new();
    let config = WriterConfig {
        first: 100,
        ..SMALL
    };
    let (mut writer, _) = Writer::open(&folder.0, config, feeds(), 1).unwrap();
    put(&mut writer, 100, level());
    put(&mut writer, 101, state(code::LIVE));
    let found = Log::open(&folder.0).unwrap().as_of(At::End).unwrap();
    assert!(found.view.get(InstrumentId(3)).unwrap().has_snapshot());
    assert_eq!((found.number, found.lost().count()), (101, 0));
}

#[test]
fn a_repaired_segment_is_of_the_run_around_it_or_names_none() {
    // No segment behind these is of the run before them.
    for ordinal in [2, 3, 4] {
        let folder = Folder::new();
        let (all, _) = four(&folder.0);
        harm(&folder.0, ordinal, BEGINNING);
        assert_eq!(Log::repair(&folder.0).unwrap().len(), 1);
        let segments = Log::open(&folder.0).unwrap().segments().unwrap();
        assert_eq!(segments[ordinal as usize - 1].run, 0);
        assert!(Log::repair(&folder.0).unwrap().is_empty());
        let (writer, opened) = open(&folder.0);
        drop(writer);
        // The last one may have had a run of its own.
        let next = if ordinal == 4 { 4 } else { 3 };
        assert_eq!((opened.next, opened.run), (all.len() as u64 + 1, next));
    }
    let folder = Folder::new();
    stale_then_live(&folder.0);
    harm(&folder.0, 2, BEGINNING);
    assert_eq!(Log::repair(&folder.0).unwrap().len(), 1);
    let segments = Log::open(&folder.0).unwrap().segments().unwrap();
    assert_eq!(segments[1].run, 1);
}

#[test]
fn a_reader_waits_at_a_last_segment_of_which_nothing_can_be_read() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(59, 1);
    let mut all = append(&mut writer, &mut source, 100);
    let mut reader = Log::open(&folder.0).unwrap().reader(Start::First).unwrap();
    let mut received = Received::default();
    received.all(&mut reader);
    writer.roll().unwrap();
    let first = source.number;
    append(&mut writer, &mut source, 100);
    harm(&folder.0, 2, WHOLE);
    // The next change of the folder has another time than this one.
    let of_folder = std::fs::File::open(&folder.0).unwrap();
    of_folder.set_modified(std::time::UNIX_EPOCH).unwrap();
    received.all(&mut reader);
    assert!(received.events == all && received.lost.is_empty());
    writer.roll().unwrap();
    let last = source.number - 1;
    all.extend(append(&mut writer, &mut source, 100));
    received.all(&mut reader);
    assert!(received.events == all);
    assert_eq!(received.lost, [(first, last)]);
}

#[test]
fn a_repaired_segment_is_of_the_run_that_it_begins() {
    let folder = Folder::new();
    let (all, counts) = four(&folder.0);
    harm(&folder.0, 3, HEADER);
    assert_eq!(Log::repair(&folder.0).unwrap().len(), 1);
    let mut reader = Log::open(&folder.0).unwrap().reader(Start::First).unwrap();
    // Before the next segment, which names the run, too.
    let end = counts[0] + counts[1] + 100;
    reader.stop_before(end as u64 + 1);
    let mut received = Received::default();
    received.all(&mut reader);
    assert!(received.events == all[..end]);
    assert_eq!((received.lost, received.restarts), (vec![], 1));
}
