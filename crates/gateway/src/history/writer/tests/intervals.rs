//! The intervals of DBN that a log has are those of the live stream.

use super::*;
use crate::history::rescue::rescue;
use crate::market::ring::EventReader;
use crate::test_log::feed;
use fanfare_history::{Opened, Start};
use fanfare_market::dbn::live::{Batch, Encoder, LiveSchema};
use fanfare_market::dbn::{DbnConfig, Schemas};
use fanfare_market::event::entry;
use fanfare_market::instruments::Directory;
use fanfare_market::watermark::ClockCourse;
use fanfare_market::{BookConfig, Delivery, Flags, InstrumentId, Kind, Price, Watermark};
use proptest::prelude::*;

const MS: u64 = 1_000_000;
const HOUR: u64 = 3_600_000;

/// The schemas that are compared.
const SCHEMAS: [LiveSchema; 6] = [
    LiveSchema::Ohlcv1S,
    LiveSchema::Ohlcv1M,
    LiveSchema::Ohlcv1H,
    LiveSchema::Ohlcv1D,
    LiveSchema::Bbo1S,
    LiveSchema::Bbo1M,
];

/// A delivery without the instruments.
#[derive(Debug, Clone, Copy)]
enum Item {
    Event(Event),
    Mark(Watermark),
    Restart,
}

impl Item {
    fn of(delivery: Delivery<'_>) -> Option<Self> {
        match delivery {
            Delivery::Event(event, _) => Some(Self::Event(*event)),
            Delivery::Watermark(mark) => Some(Self::Mark(mark)),
            Delivery::Restart => Some(Self::Restart),
            Delivery::End(_) => None,
            Delivery::Lost { first, last } => panic!("{first} to {last} are lost"),
        }
    }
}

/// The intervals of some deliveries.
struct Stream {
    encoder: Encoder,
    batch: Batch,
    is_restarted: bool,
}

impl Stream {
    fn new() -> Self {
        let books = vec![BookConfig::by_price(5).unwrap()];
        let mut encoder = Encoder::new(books, DbnConfig::new(Schemas::MIXED)).unwrap();
        encoder.want(SCHEMAS.into_iter().collect(), &Directory::new());
        Self {
            encoder,
            batch: Batch::default(),
            is_restarted: false,
        }
    }

    fn of(items: &[Item]) -> Self {
        let mut stream = Self::new();
        items.iter().for_each(|item| stream.take(*item));
        stream
    }

    fn take(&mut self, item: Item) {
        let (table, batch) = (Directory::new(), &mut self.batch);
        match item {
            Item::Event(event) => {
                // As in a replay of the log.
                if std::mem::take(&mut self.is_restarted) {
                    self.encoder.restart(&table, batch);
                }
                self.encoder.event(&event, &table, batch);
            }
            Item::Mark(mark) => self.encoder.watermark(mark, batch),
            Item::Restart => self.is_restarted = true,
        }
    }

    /// Ends the intervals up to a time. Returns the records of all that have ended, and the notices
    /// of late trades, in an order of their own: that of intervals which end at once varies. With
    /// `bars_only`, quotes are left out.
    fn end(mut self, time: u64, bars_only: bool) -> Vec<Vec<u8>> {
        self.encoder.end_intervals(time, &mut self.batch);
        let records = self.batch.records().map(|(_, record)| record);
        let records = records.filter(|record| match record[1] {
            // Empty intervals have such a notice live.
            0x17 => !record[16..].starts_with(b"End of interval"),
            0xc3 | 0xc4 => !bars_only,
            _ => true,
        });
        let mut records: Vec<_> = records.map(<[u8]>::to_vec).collect();
        records.sort_unstable();
        records
    }
}

/// A plant with a log and a live stream.
struct Clocked {
    folder: Scratch,
    /// The clock, in milliseconds since 1970.
    millis: u64,
    ring: EventRing,
    agent: LogAgent,
    reader: EventReader,
    live: Stream,
    /// What the live streams of all runs received, and the number of the run's first event.
    items: Vec<Item>,
    first: u64,
    /// The position of the run in `items`.
    begins: usize,
}

/// A step of a plant.
#[derive(Debug, Clone)]
enum Step {
    /// A trade, or a change of a level, that has arrived this long ago, or has the stamp of a
    /// clock that is ahead by hours.
    Event {
        is_trade: bool,
        ago: u64,
        hours: u64,
        instrument: u32,
        size: i64,
    },
    /// Seconds go by without an event.
    Idle(u64),
    /// The clock is set, in milliseconds.
    Set(i64),
    /// The log reads the ring.
    Work,
    /// The plant is restarted, perhaps by a kill.
    Restart { is_killed: bool },
}

impl Clocked {
    fn new() -> Self {
        let folder = Scratch::new("clocked");
        let (ring, agent, reader, first) = Self::start(&folder);
        Self {
            folder,
            millis: 400_000 * HOUR,
            ring,
            agent,
            reader,
            live: Stream::new(),
            items: Vec::new(),
            first,
            begins: 0,
        }
    }

    fn start(folder: &Scratch) -> (EventRing, LogAgent, EventReader, u64) {
        let feeds = vec![feed(BookConfig::by_price(5).unwrap())];
        let opened = Writer::open_with(folder, WriterConfig::default(), feeds, 1, |writer| {
            let found = rescue(folder, &folder.join("ring"), writer)?;
            assert!(found.lacks.is_none(), "{found:?}");
            Ok(())
        });
        let (writer, Opened { next, .. }) = opened.unwrap();
        let (notices, _) = channel();
        let (mut ring, agent) = agent(folder, (writer, next), &Counters::new(), notices);
        let reader = ring.reader(Waker::detached().unwrap()).unwrap();
        (ring, agent, reader, next)
    }

    fn restart(self, is_killed: bool) -> Self {
        let Self {
            folder,
            millis,
            ring,
            mut agent,
            reader,
            mut items,
            ..
        } = self;
        drop((ring, reader));
        if !is_killed {
            agent.on_close(now());
        }
        drop(agent);
        items.push(Item::Restart);
        let (ring, agent, reader, first) = Self::start(&folder);
        Self {
            folder,
            millis,
            ring,
            agent,
            reader,
            live: Stream::new(),
            begins: items.len(),
            items,
            first,
        }
    }

    fn step(mut self, step: &Step) -> Self {
        match *step {
            Step::Event {
                is_trade,
                ago,
                hours,
                instrument,
                size,
            } => {
                self.millis += 10;
                let kind = if is_trade { Kind::Trade } else { Kind::Level };
                let arrived = (self.millis - ago + hours * HOUR) * MS;
                self.ring.put(&mut [Event {
                    kind,
                    source: 1,
                    ts_event: arrived,
                    ts_recv: arrived,
                    instrument: InstrumentId(instrument),
                    entry: if is_trade { entry::TRADE } else { entry::BID },
                    price: Price::from_units(size),
                    size,
                    flags: Flags::LAST,
                    ..Event::EMPTY
                }]);
            }
            Step::Idle(seconds) => {
                for _ in 0..seconds {
                    self.millis += 1_000;
                    self.ring.put_watermark((self.millis - 5) * MS);
                }
            }
            Step::Set(by) => {
                let set = self.millis.saturating_add_signed(by);
                self.millis = set.max(300_000 * HOUR);
            }
            Step::Work => {
                self.agent.do_work(now()).unwrap();
            }
            Step::Restart { is_killed } => return self.restart(is_killed),
        }
        self.ring.wake();
        let (live, items) = (&mut self.live, &mut self.items);
        while self.reader.read(usize::MAX, |delivery| {
            if let Some(item) = Item::of(delivery) {
                live.take(item);
                items.push(item);
            }
        }) > 0
        {}
        self
    }

    /// Returns the deliveries of the log from an event on.
    fn log(&self, number: u64) -> Vec<Item> {
        let log = Log::open(&self.folder).unwrap();
        let mut reader = log.reader(Start::Number(number)).unwrap();
        let mut items = Vec::new();
        while reader
            .read(100, |delivery| items.extend(Item::of(delivery)))
            .unwrap()
            > 0
        {}
        items
    }

    /// Compares the intervals of the log with those of the live streams, from each event on, and
    /// those of a past that joins the live stream of the run.
    fn check(mut self) {
        while self.agent.do_work(now()).unwrap() > 0 {}
        for (at, item) in self.items.iter().enumerate() {
            if let Item::Event(event) = item {
                // A run ends without the quotes that the log has of its end.
                let bars_only = at < self.begins;
                let [live, log] = [
                    Stream::of(&self.items[at..]),
                    Stream::of(&self.log(event.number)),
                ]
                .map(|stream| stream.end(u64::MAX, bars_only));
                assert_eq!(live, log, "from event {}", event.number);
            }
        }
        let ended = self.live.encoder.ended();
        let past = Stream::of(&self.log(self.first)).end(ended, false);
        assert_eq!(self.live.end(0, false), past, "{ended}");
    }
}

fn event() -> impl Strategy<Value = Step> {
    let hours = prop_oneof![9 => Just(0), 1 => 1..4_u64];
    (any::<bool>(), 0_u64..1_500, hours, 0_u32..2, 1_i64..9).prop_map(
        |(is_trade, ago, hours, instrument, size)| Step::Event {
            is_trade,
            ago,
            hours,
            instrument,
            size,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let day = 24 * HOUR as i64;
    prop_oneof![
        8 => event(),
        5 => (1_u64..4).prop_map(Step::Idle),
        1 => (-2_500_i64..2_500).prop_map(Step::Set),
        2 => (-2 * day..2 * day).prop_map(Step::Set),
        3 => Just(Step::Work),
        1 => any::<bool>().prop_map(|is_killed| Step::Restart { is_killed }),
    ]
}

fn trade(size: i64) -> Step {
    Step::Event {
        is_trade: true,
        ago: 0,
        hours: 0,
        instrument: 0,
        size,
    }
}

/// Plays these steps, and checks the intervals. Returns the watermarks of the log.
fn play(steps: &[Step]) -> Vec<Watermark> {
    let mut plant = steps.iter().fold(Clocked::new(), Clocked::step);
    while plant.agent.do_work(now()).unwrap() > 0 {}
    let marks = plant.log(1).into_iter().filter_map(|item| match item {
        Item::Mark(mark) => Some(mark),
        Item::Event(_) | Item::Restart => None,
    });
    let marks = marks.collect();
    plant.check();
    marks
}

#[test]
fn a_clock_that_jumps_while_nothing_comes_leaves_one_step_in_the_log() {
    let hour = HOUR as i64;
    let mut steps = vec![trade(1), Step::Idle(2), Step::Set(-hour), Step::Idle(2)];
    // However often it jumps, and although it ends ahead of where it was.
    for _ in 0..20 {
        steps.extend([
            Step::Set(hour),
            Step::Idle(1),
            Step::Set(-hour),
            Step::Idle(1),
        ]);
    }
    steps.extend([Step::Set(2 * hour), Step::Idle(1), trade(2), Step::Idle(1)]);
    let marks = play(&steps);
    let [back, last] = marks[..] else {
        panic!("{marks:?}");
    };
    assert!(matches!(back.clock, ClockCourse::SetBack(from) if from > back.time));
    assert_eq!(last.clock, ClockCourse::Forward);
    assert!(last.time > back.time);
}

#[test]
fn the_last_watermark_outlives_a_kill_however_long_nothing_comes() {
    // A watermark takes 32 bytes of the ring.
    let kept = KEPT as usize / 32;
    for idle in [1, kept, kept + 1, kept + 2] {
        let mut steps = vec![trade(1), Step::Work];
        for _ in 0..idle {
            steps.extend([Step::Idle(1), Step::Work]);
        }
        steps.extend([trade(2), Step::Restart { is_killed: true }]);
        let marks = play(&steps);
        assert_eq!(marks.len(), 1, "{idle}");
        let first = 400_000 * HOUR + 10;
        assert_eq!(marks[0].time, (first + 1_000 * idle as u64 - 5) * MS);
    }
}

#[test]
fn a_step_back_of_the_clock_outlives_a_kill() {
    let hour = HOUR as i64;
    let back = [
        trade(1),
        Step::Idle(2),
        Step::Work,
        Step::Set(-hour),
        Step::Idle(1),
    ];
    let ahead = [Step::Set(2 * hour), Step::Idle(1)];
    // The log has read the step or not, and has read the trade behind it or not.
    for (reads_step, reads_trade) in [(false, false), (true, false), (true, true)] {
        let mut steps = back.to_vec();
        steps.extend(reads_step.then_some(Step::Work));
        steps.extend(ahead.clone());
        steps.extend(reads_step.then_some(Step::Work));
        steps.push(trade(2));
        steps.extend(reads_trade.then_some(Step::Work));
        steps.extend([trade(3), Step::Restart { is_killed: true }, trade(4)]);
        let marks = play(&steps);
        let is_back = |mark: &&Watermark| matches!(mark.clock, ClockCourse::SetBack(_));
        assert!(marks.iter().filter(is_back).count() > 0, "{marks:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the clock does, and wherever the plant is restarted or killed.
    #[test]
    fn intervals_of_the_log_are_those_of_the_live_stream(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        play(&steps);
    }
}
