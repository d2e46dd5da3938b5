//! Watermarks in a log.

use super::*;
use fanfare_market::watermark::ClockCourse;

/// The numbers of events, and the watermarks before them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Marked(Vec<Result<u64, u64>>);

impl Marked {
    fn read(&mut self, reader: &mut Reader) {
        let mut take = |delivery: Delivery<'_>| match delivery {
            Delivery::Event(event, _) => self.0.push(Ok(event.number)),
            Delivery::Watermark(mark) => self.0.push(Err(mark.time)),
            other => assert!(matches!(other, Delivery::End(_)), "{other:?}"),
        };
        while reader.read(7, &mut take).unwrap() > 0 {}
    }
}

fn forward(time: u64) -> Watermark {
    Watermark {
        time,
        clock: ClockCourse::Forward,
    }
}

/// Returns a watermark with which the clock was set back.
fn back(time: u64) -> Watermark {
    Watermark {
        time,
        clock: ClockCourse::SetBack(time + 3_600),
    }
}

fn event(number: u64) -> [u8; Event::SIZE] {
    Event {
        number,
        ..Event::EMPTY
    }
    .to_bytes()
}

/// Returns the watermarks in front of each event of a log, from this one on.
fn marks(folder: &Path, from: u64) -> Vec<(u64, Vec<Watermark>)> {
    let mut reader = Log::open(folder)
        .unwrap()
        .reader(Start::Number(from))
        .unwrap();
    let (mut all, mut marks) = (Vec::new(), Vec::new());
    let mut take = |delivery: Delivery<'_>| match delivery {
        Delivery::Event(event, _) => all.push((event.number, std::mem::take(&mut marks))),
        Delivery::Watermark(mark) => marks.push(mark),
        Delivery::End(_) | Delivery::Restart => {}
        other @ Delivery::Lost { .. } => panic!("{other:?}"),
    };
    while reader.read(7, &mut take).unwrap() > 0 {}
    all
}

#[test]
fn a_watermark_with_which_the_clock_was_set_back_is_kept_in_front_of_the_last_one() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    writer.events(&[event(1)]).unwrap();
    writer.watermark(forward(9_000));
    writer.watermark(back(100));
    // No event follows for now.
    writer.commit().unwrap();
    for time in 101..200 {
        writer.watermark(forward(time));
        writer.commit().unwrap();
    }
    let written = writer.written();
    writer.watermark(forward(200));
    writer.commit().unwrap();
    assert_eq!(writer.written(), written, "an idle log does not grow");
    writer.events(&[event(2)]).unwrap();
    writer.watermark(forward(300));
    writer.watermark(back(50));
    writer.events(&[event(3)]).unwrap();
    writer.events(&[event(4)]).unwrap();
    writer.close().unwrap();
    let expected = [
        (1, vec![]),
        (2, vec![back(100), forward(200)]),
        (3, vec![back(50)]),
        (4, vec![]),
    ];
    for is_compacted in [false, true] {
        if is_compacted {
            // A further run ends the segment.
            open(&folder.0).0.close().unwrap();
            let keeper = keep(&folder.0, OFTEN);
            assert!(keeper.stats().compacted > 0, "{:?}", keeper.stats());
        }
        assert_eq!(marks(&folder.0, 1), expected);
        assert_eq!(marks(&folder.0, 3), expected[2..]);
        assert_eq!(marks(&folder.0, 4), expected[3..], "those of event 3");
        let log = Log::open(&folder.0).unwrap();
        assert!(log.verify(|_, _| true).unwrap().is_whole());
    }
}

#[test]
fn a_watermark_of_events_that_the_log_has_does_not_come_again() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let put = |writer: &mut Writer, events: &[u64]| {
        for number in events {
            writer.watermark(back(*number));
            writer.watermark(forward(1_000 + number));
            writer.events(&[event(*number)]).unwrap();
        }
    };
    put(&mut writer, &[1, 2]);
    writer.commit().unwrap();
    // A kill: the records of the ring come once more. A message may be known in part.
    drop(writer);
    let config = SMALL;
    let opened = Writer::open_with(&folder.0, config, feeds(), 1, |writer| {
        put(writer, &[1, 2, 3]);
        writer.watermark(back(4));
        writer.events(&[event(3), event(4)])
    });
    let (mut writer, _) = opened.unwrap();
    writer.events(&[event(5)]).unwrap();
    writer.close().unwrap();
    let expected = [1, 2, 3].map(|number| (number, vec![back(number), forward(1_000 + number)]));
    let all = marks(&folder.0, 1);
    assert_eq!(all[..3], expected);
    assert_eq!(all[3..], [(4, vec![]), (5, vec![])]);
}

#[test]
fn the_last_watermark_precedes_the_next_event() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut expected = Marked::default();
    for number in 1..=40_000 {
        if number % 100 == 0 {
            writer.watermark(forward(number - 50));
            writer.watermark(forward(number));
            expected.0.push(Err(number));
        }
        let event = Event {
            number,
            ts_recv: number,
            ..Event::EMPTY
        };
        writer.events(&[event.to_bytes()]).unwrap();
        if number % 9 == 0 {
            writer.commit().unwrap();
        }
        expected.0.push(Ok(number));
    }
    // The last watermark has no next event: one that the log has does not count.
    writer.watermark(forward(9_999));
    writer.events(&[Event::EMPTY.to_bytes()]).unwrap();
    writer.close().unwrap();
    let log = Log::open(&folder.0).unwrap();
    let read = |start, bounds: &[u64]| {
        let (mut marked, mut reader) = (Marked::default(), log.reader(start).unwrap());
        let mut parts = Vec::new();
        for bound in bounds {
            reader.stop_before(*bound);
            marked.read(&mut reader);
            parts.push(marked.0.len());
        }
        (marked, parts)
    };
    for is_compacted in [false, true] {
        if is_compacted {
            let keeper = keep(&folder.0, OFTEN);
            assert!(keeper.stats().compacted > 0, "{:?}", keeper.stats());
        }
        // A reader that stops before event 100 does not return the watermark before it.
        let (all, parts) = read(Start::First, &[100, u64::MAX]);
        assert_eq!((parts[0], &all), (99, &expected));
        let (rest, _) = read(Start::Number(100), &[u64::MAX]);
        assert_eq!(rest.0, expected.0[99..]);
        assert!(log.verify(|_, _| true).unwrap().is_whole());
    }
}
