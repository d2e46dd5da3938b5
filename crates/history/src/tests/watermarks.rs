//! Watermarks in a log.

use super::*;

/// The numbers of events, and the watermarks before them.
#[derive(Debug, Default, PartialEq, Eq)]
struct Marked(Vec<Result<u64, u64>>);

impl Marked {
    fn read(&mut self, reader: &mut Reader) {
        let mut take = |delivery: Delivery<'_>| match delivery {
            Delivery::Event(event, _) => self.0.push(Ok(event.number)),
            Delivery::Watermark(time) => self.0.push(Err(time)),
            other => assert!(matches!(other, Delivery::End(_)), "{other:?}"),
        };
        while reader.read(7, &mut take).unwrap() > 0 {}
    }
}

#[test]
fn the_last_watermark_precedes_the_next_event() {
    let folder = Folder::new();
    let (mut writer, _) = open(&folder.0);
    let mut expected = Marked::default();
    for number in 1..=40_000 {
        if number % 100 == 0 {
            writer.watermark(number - 50);
            writer.watermark(number);
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
    writer.watermark(9_999);
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
