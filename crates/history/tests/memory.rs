//! The memory of a log: no more at the end of a day than at its beginning.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use fanfare_history::{
    FeedInfo, Keeper, KeeperConfig, Log, LogError, Reader, Start, Writer, WriterConfig,
};
use fanfare_market::event::{Action, Flags, InstrumentId, Kind, entry};
use fanfare_market::{BookConfig, Delivery, Event, Price};

/// The events of a round, and the number of rounds.
const EVENTS: u64 = 5_000;
const TURNS: u64 = 200;

/// Readers that follow, besides one that stops.
const READERS: usize = 9;

/// Returns a level of one of a hundred books.
fn event(number: u64, rng: &mut fastrand::Rng) -> Event {
    let is_bid = number.is_multiple_of(2);
    let depth = (number / 200 % 10) as i64;
    Event {
        number,
        ts_recv: number * 1_000,
        instrument: InstrumentId((number / 2 % 100) as u32),
        kind: Kind::Level,
        entry: if is_bid { entry::BID } else { entry::OFFER },
        action: Action::New,
        size: rng.i64(1..1_000_000),
        price: Price::from_units(if is_bid { 100 - depth } else { 101 + depth }),
        source: 1,
        flags: Flags::LAST,
        ..Event::EMPTY
    }
}

/// Reads to the end. Returns the number of events, which are checked to be in order.
fn read(reader: &mut Reader) -> u64 {
    let (mut next, mut events) = (reader.next_number(), 0);
    let mut take = |delivery: Delivery<'_>| match delivery {
        Delivery::Event(event, _) => {
            assert_eq!(event.number, next);
            next += 1;
            events += 1;
        }
        Delivery::End(_) | Delivery::Watermark(_) => {}
        other => panic!("{other:?}"),
    };
    while reader.read(usize::MAX, &mut take).unwrap() > 0 {}
    events
}

#[test]
fn memory_stays_with_ten_readers_one_of_which_has_stopped() {
    let folder = std::env::temp_dir().join(format!("fanfare-memory-{}", std::process::id()));
    let feeds = vec![FeedInfo {
        name: "feed".to_owned(),
        base: 0,
        book: BookConfig::by_price(20).unwrap(),
    }];
    let config = WriterConfig {
        segment_bytes: 1 << 20,
        first: 1,
    };
    let (mut writer, _) = Writer::open(&folder, config, feeds, 1).unwrap();
    let config = KeeperConfig {
        checkpoint_events: 20_000,
        compress: Some(1),
        keep_bytes: Some(1 << 20),
        keep_nanos: None,
    };
    let mut keeper = Keeper::open(&folder, config).unwrap();
    let log = Log::open(&folder).unwrap();
    let mut readers: Vec<_> = (0..READERS)
        .map(|_| log.reader(Start::First).unwrap())
        .collect();
    let mut stopped = log.reader(Start::First).unwrap();
    let (mut early, mut seen) = (0, 0);
    let mut rng = fastrand::Rng::with_seed(1);
    let mut bytes = vec![[0; Event::SIZE]; EVENTS as usize];
    for turn in 0..TURNS {
        for (number, bytes) in (turn * EVENTS + 1..).zip(&mut bytes) {
            *bytes = event(number, &mut rng).to_bytes();
        }
        writer.events(&bytes).unwrap();
        writer.commit().unwrap();
        seen += readers.iter_mut().map(read).sum::<u64>();
        if turn == 0 {
            assert_eq!(read(&mut stopped), EVENTS);
        }
        while keeper.work().unwrap() > 0 {}
        if turn == TURNS / 5 {
            early = fanfare_counting::live_bytes_here();
        }
    }
    let late = fanfare_counting::live_bytes_here();
    assert_eq!(seen, EVENTS * TURNS * READERS as u64);
    let stats = keeper.stats();
    assert!(stats.compacted > 40 && stats.removed > 10, "{stats:?}");
    assert!(late < early + (64 << 10), "{early} bytes, then {late}");
    // Its open file still exists; the next one does not.
    let gone = loop {
        match stopped.read(1_000, |_| {}) {
            Ok(read) => assert!(read > 0, "it was told nothing"),
            Err(error) => break error,
        }
    };
    assert!(matches!(gone, LogError::Gone { .. }), "{gone}");
    std::fs::remove_dir_all(folder).unwrap();
}
