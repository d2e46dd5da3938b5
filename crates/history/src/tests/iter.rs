//! Tests of readers as iterators.

use super::*;
use crate::Logged;

#[test]
fn what_is_iterated_is_what_is_read_and_a_reader_goes_on_anywhere() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut source = Source::new(29, 1);
    let mut all = append(&mut writer, &mut source, 2_000);
    let lost = source.number;
    source.number += 5;
    all.extend(append(&mut writer, &mut source, 500));
    writer.restart(2).unwrap();
    writer.instrument(&instrument(3)).unwrap();
    let expected = |all: &[Event]| {
        let mut expected: Vec<_> = all.iter().copied().map(Logged::Event).collect();
        let at = expected
            .partition_point(|one| matches!(one, Logged::Event(event) if event.number < lost));
        let hole = (lost, lost + 4);
        expected.insert(
            at,
            Logged::Lost {
                first: hole.0,
                last: hole.1,
            },
        );
        expected.push(Logged::Restart);
        expected
    };
    let log = Log::open(&folder.0).unwrap();
    let mut events = log.reader(Start::First).unwrap().into_iter();
    let read: Vec<_> = events.by_ref().map(Result::unwrap).collect();
    assert!(read == expected(&all));
    // It continues with events written later, and knows the instruments before them.
    assert!(events.next().is_none());
    let more = append(&mut writer, &mut source, 100);
    assert_eq!(events.next().unwrap().unwrap(), Logged::Event(more[0]));
    assert_eq!(events.directory().len(), 1);
    assert!(
        events
            .map(Result::unwrap)
            .eq(more[1..].iter().copied().map(Logged::Event))
    );
    // A reader that begins where another one stopped has the rest, wherever that was.
    for count in [0, 1, 2, 3, 700, 1_999, 2_000, 2_001] {
        let mut events = log.reader(Start::First).unwrap().into_iter();
        let mut read: Vec<_> = events.by_ref().take(count).map(Result::unwrap).collect();
        let rest = log.reader(Start::Number(events.next_number())).unwrap();
        read.extend(rest.into_iter().map(Result::unwrap));
        let mut all = expected(&all);
        all.extend(more.iter().copied().map(Logged::Event));
        assert!(read == all, "{count}");
    }
}

#[test]
fn nothing_is_in_front_of_the_first_number() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    writer.lost(1, 9).unwrap();
    append(&mut writer, &mut Source::new(29, 10), 10);
    let mut reader = Log::open(&folder.0).unwrap().reader(Start::First).unwrap();
    for end in [0, 1] {
        reader.stop_before(end);
        let mut received = Received::default();
        received.all(&mut reader);
        assert_eq!((received.events.len(), received.lost.len()), (0, 0));
    }
    reader.stop_before(4);
    let mut received = Received::default();
    received.all(&mut reader);
    assert_eq!(received.lost, [(1, 3)]);
}
