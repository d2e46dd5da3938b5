//! The past, read from the log and encoded on a thread of its own for each subscription, so that
//! the disk delays no other client.
//!
//! The thread reads up to the position of the agent, and follows it. Once it is near, the agent
//! sets the end of the past to the event that it reads next. From that event on the subscription is
//! live, and its records are held back until the thread has reached the same position, so that no
//! event is missing and none is repeated.

use super::beginning::{Join, Targets};
use super::past::Past;
use super::records::{each, instrument, is_notice};
use super::restarts::Restarts;
use super::threads::Threads;
use crate::users::grant::Grant;
use fanfare_history::moment::utc;
use fanfare_history::{AsOf, At, Log, LogError, SegmentInfo, Start};
use fanfare_market::dbn::live::{
    Batch, Encoder, ErrorCode, LiveSchema, LiveSchemas, SystemCode, Tag,
};
use fanfare_market::dbn::{DbnConfig, Schemas};
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::{Delivery, Event, InstrumentId, Kind};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::time::Duration;

/// The messages read at once, and the most batches queued for the agent.
const TURN: usize = 512;
const PIECES: usize = 4;
/// The most events that the past may be behind when the subscription becomes live.
const NEAR: u64 = 4_096;
/// The time that a subscription that is live waits for progress in the rest of its past, in
/// nanoseconds. The disk may be full, and nothing else of the client's records is sent meanwhile.
const PATIENCE: u64 = 10_000_000_000;
/// The time that the thread waits for more of the log.
const LOOK: Duration = Duration::from_millis(1);

/// A subscription that starts in the past.
pub(super) struct Replay {
    join: Join,
    /// Whether it is to all instruments, although it may list those that fit into a limit.
    is_of_all: bool,
    /// Nanoseconds since 1970, or 0 for the first event of the log.
    start: u64,
    past: Arc<Past>,
    running: Option<Running>,
    /// Its place among those that ask for a thread, once it has asked.
    ticket: Option<u64>,
    /// Whether the subscription is live, and its records are held back.
    has_joined: bool,
    /// The time of the last progress, once the subscription is live.
    waits_since: u64,
    /// The position of the thread at that time. It moves without a result where the log has no
    /// records for the client.
    position: u64,
    /// The instruments that the client no longer wants, of which the thread sends records.
    gone: HashSet<InstrumentId>,
}

/// The agent's handle of the thread.
struct Running {
    pieces: Receiver<Step>,
    shared: Arc<Shared>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
    }
}

#[derive(Default)]
struct Shared {
    /// The number before which reading stops.
    bound: AtomicU64,
    /// Whether the bound is the end of the past.
    is_last: AtomicBool,
    /// The time up to which the live stream has ended its intervals since the last event before the
    /// bound: see [`Encoder::ended`].
    ended: AtomicU64,
    /// The number of the event that is read next.
    position: AtomicU64,
    /// Whether the client has gone.
    ends: AtomicBool,
}

impl Shared {
    /// Returns the failure of a past that has not come to its end in time.
    fn late(&self) -> Step {
        let first = self.position.load(Ordering::Acquire);
        let last = self.bound.load(Ordering::Acquire).saturating_sub(1);
        let seconds = PATIENCE / 1_000_000_000;
        let why = format!("events {first} to {last} did not come from the log in {seconds} s");
        Step::Failed(ErrorCode::InternalError, why)
    }
}

/// The result of a step of a replay.
pub(super) enum Step {
    /// Records of the past.
    Records(Vec<u8>),
    /// The subscription is live from the next event on, and its records are held back.
    Live,
    /// The records that were held back follow.
    Done,
    /// The reason why the replay fails.
    Failed(ErrorCode, String),
    /// No records yet.
    Waits,
}

impl Replay {
    pub(super) fn new(join: Join, start: u64, past: Arc<Past>) -> Self {
        Self {
            is_of_all: matches!(join.targets, Targets::All(_)),
            join,
            start,
            past,
            running: None,
            ticket: None,
            has_joined: false,
            waits_since: 0,
            position: 0,
            gone: HashSet::new(),
        }
    }

    /// Removes instruments from the subscription. Returns false if it lists its instruments, and
    /// none is left.
    pub(super) fn leave_out(&mut self, gone: &HashSet<InstrumentId>) -> bool {
        self.gone.extend(gone);
        self.join.targets.leave_out(gone) || self.is_of_all
    }

    pub(super) const fn schema(&self) -> LiveSchemas {
        self.join.schema.alone()
    }

    /// Returns whether its subscription is not live yet.
    pub(super) const fn is_past(&self) -> bool {
        !self.has_joined
    }

    /// Returns the subscription.
    pub(super) const fn join(&self) -> &Join {
        &self.join
    }

    /// Returns whether the subscription is to all instruments.
    pub(super) const fn is_of_all(&self) -> bool {
        self.is_of_all
    }

    /// Limits the subscription to some instruments, before its thread starts.
    pub(super) fn limit(&mut self, instruments: Vec<InstrumentId>) {
        self.join.targets = Targets::Some(instruments.into_iter());
    }

    /// Ends the replay. Returns the subscription.
    pub(super) fn into_join(self) -> Join {
        match self.is_of_all {
            true => Join {
                targets: Targets::All(None),
                ..self.join
            },
            false => self.join,
        }
    }

    /// Returns whether the thread has started.
    pub(super) const fn has_begun(&self) -> bool {
        self.running.is_some()
    }

    /// Returns its ticket for a thread, and whether it asks for the first time.
    pub(super) fn ticket(&mut self, threads: &mut Threads) -> (u64, bool) {
        let is_first = self.ticket.is_none();
        let ticket = self.ticket.get_or_insert_with(|| threads.ticket());
        (*ticket, is_first)
    }

    /// Returns the next result of the thread, which starts if there is a `place` for it. `next` is
    /// the number of the event that the agent reads next, and `ended` the time up to which its
    /// intervals have ended since the one before. `now` is a monotonic time in nanoseconds.
    pub(super) fn step(
        &mut self,
        place: Option<Arc<()>>,
        next: u64,
        ended: u64,
        grant: &Arc<Grant>,
        now: u64,
    ) -> Step {
        if let Some(place) = place {
            match self.begin(place, next, grant) {
                Ok(running) => self.running = Some(running),
                Err(error) => return Step::Failed(ErrorCode::InternalError, error.to_string()),
            }
        }
        let Some(running) = &self.running else {
            return Step::Waits;
        };
        match running.pieces.try_recv() {
            Ok(Step::Records(records)) => {
                self.waits_since = now;
                return Step::Records(match self.gone.is_empty() {
                    true => records,
                    false => self.wanted(&records),
                });
            }
            Ok(step) => return step,
            Err(TryRecvError::Disconnected) => {
                let why = "the replay has ended".to_owned();
                return Step::Failed(ErrorCode::InternalError, why);
            }
            Err(TryRecvError::Empty) => {}
        }
        let shared = &running.shared;
        let position = shared.position.load(Ordering::Acquire);
        if self.has_joined {
            if position != self.position {
                (self.position, self.waits_since) = (position, now);
            }
            return match now.saturating_sub(self.waits_since) < PATIENCE {
                true => Step::Waits,
                false => shared.late(),
            };
        }
        // Stored first, so that a thread that sees `is_last` also sees the bound.
        shared.bound.store(next, Ordering::Release);
        if position == 0 || position.saturating_add(NEAR) < next {
            return Step::Waits;
        }
        shared.ended.store(ended, Ordering::Relaxed);
        shared.is_last.store(true, Ordering::Release);
        (self.has_joined, self.position, self.waits_since) = (true, position, now);
        Step::Live
    }

    /// Returns the records of the instruments that the client still wants.
    fn wanted(&self, records: &[u8]) -> Vec<u8> {
        let wants = |record: &&[u8]| {
            let is_gone = self.gone.contains(&InstrumentId(instrument(record)));
            is_notice(record) || !is_gone
        };
        each(records).filter(wants).flatten().copied().collect()
    }

    fn begin(&self, place: Arc<()>, next: u64, grant: &Arc<Grant>) -> std::io::Result<Running> {
        let (sender, pieces) = sync_channel(PIECES);
        let shared = Arc::new(Shared::default());
        shared.bound.store(next, Ordering::Release);
        let player = Player {
            start: self.start,
            past: Arc::clone(&self.past),
            _place: place,
            chosen: Chosen {
                schemas: self.schema(),
                wanted: match &self.join.targets {
                    Targets::All(_) => None,
                    Targets::Some(all) => Some(all.as_slice().iter().copied().collect()),
                },
                grant: Arc::clone(grant),
                sees: HashMap::new(),
                records: Vec::new(),
            },
            shared: Arc::clone(&shared),
            pieces: sender,
        };
        let thread = std::thread::Builder::new().name("dbn-replay".to_owned());
        thread.spawn(move || player.run())?;
        Ok(Running { pieces, shared })
    }
}

/// The state of the thread.
struct Player {
    start: u64,
    past: Arc<Past>,
    /// Counts the thread as long as it runs.
    _place: Arc<()>,
    chosen: Chosen,
    shared: Arc<Shared>,
    pieces: SyncSender<Step>,
}

/// The records that the client wants and may see.
struct Chosen {
    schemas: LiveSchemas,
    /// The instruments, or `None` for all that the user may see.
    wanted: Option<HashSet<InstrumentId>>,
    grant: Arc<Grant>,
    /// Whether an instrument may be seen by its symbol so far.
    sees: HashMap<InstrumentId, bool>,
    /// The records for the agent.
    records: Vec<u8>,
}

/// The reason why a thread ends early.
enum Ended {
    Log(LogError),
    /// The plant had other feeds or books before this segment.
    OtherFeeds(SegmentInfo),
    /// The client has gone.
    Gone,
}

impl From<LogError> for Ended {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

impl Player {
    fn run(mut self) {
        let piece = match self.play() {
            Ok(()) => Step::Done,
            Err(Ended::Gone) => return,
            Err(Ended::Log(error @ LogError::Gone { .. })) => {
                Step::Failed(ErrorCode::ReplayDataAgedOut, error.to_string())
            }
            Err(Ended::Log(error)) => Step::Failed(ErrorCode::InternalError, error.to_string()),
            Err(Ended::OtherFeeds(begin)) => {
                let why = format!(
                    "the plant had other feeds or books before event {}: the past begins with it, \
                     after {}",
                    begin.first,
                    utc(begin.time)
                );
                Step::Failed(ErrorCode::ReplayDataAgedOut, why)
            }
        };
        // The client may have gone.
        let _ = self.pieces.send(piece);
        self.past.waker.wake();
    }

    fn play(&mut self) -> Result<(), Ended> {
        let log = Log::open(&self.past.folder)?;
        let config = DbnConfig::new(Schemas::MIXED);
        let encoder = Encoder::new(self.past.run.books(), config);
        let Ok(mut encoder) = encoder.map(|own| own.with_bases(self.past.run.bases())) else {
            return Err(Ended::Gone);
        };
        let mut batch = Batch::default();
        let mut reader = log.reader(self.seed(&log, &mut encoder)?)?;
        encoder.want(self.chosen.schemas, reader.directory());
        let mut restarts = Restarts::default();
        loop {
            let is_last = self.shared.is_last.load(Ordering::Acquire);
            let bound = self.shared.bound.load(Ordering::Acquire);
            reader.stop_before(bound);
            let chosen = &mut self.chosen;
            let read = reader.read(TURN, |delivery| match delivery {
                Delivery::Event(event, directory) => {
                    if restarts.write(&mut encoder, directory, &mut batch) {
                        // These records are of the symbols before the restart.
                        chosen.take(&mut batch, directory);
                        chosen.sees.clear();
                    }
                    encoder.event(event, directory, &mut batch);
                    // The directory may have another symbol at the next event.
                    chosen.take(&mut batch, directory);
                    chosen.note(event, directory);
                }
                Delivery::End(_) => {}
                Delivery::Lost { first, last } => {
                    // An instrument may have another symbol behind the loss. The records of a
                    // waiting restart are of the symbols before it.
                    if !restarts.is_waiting() {
                        chosen.take(&mut batch, &Directory::new());
                        chosen.sees.clear();
                    }
                    restarts.lose(&mut encoder);
                    let text = format!("events {first} to {last} are missing in the log");
                    batch.notice(SystemCode::Unset, &text, encoder.time());
                }
                Delivery::Restart => restarts.note(),
                Delivery::Watermark(mark) => encoder.watermark(mark, &mut batch),
            })?;
            let position = reader.next_number();
            let is_over = is_last && position >= bound;
            if is_over {
                // The live stream has no records of the intervals that have ended in it.
                let ended = self.shared.ended.load(Ordering::Relaxed);
                encoder.end_intervals(ended, &mut batch);
            }
            self.chosen.take(&mut batch, reader.directory());
            self.send()?;
            self.shared.position.store(position, Ordering::Release);
            if is_over {
                return Ok(());
            }
            if read == 0 {
                std::thread::sleep(LOOK);
            }
        }
    }

    /// Passes the books as of the start to the encoder. Returns the start.
    fn seed(&mut self, log: &Log, encoder: &mut Encoder) -> Result<Start, Ended> {
        if self.start == 0 {
            let segments = log.readable_segments()?;
            let first = match self.past.begin(log, &segments)? {
                Some(begin) => begin.first,
                None => log.begins()?.number,
            };
            // Retention may have removed the beginning of the books.
            self.begin_with(&log.as_of(At::Before(first))?, encoder);
            return Ok(Start::Number(first));
        }
        let time = Start::Time(self.start);
        log.begins()?.check(time)?;
        let first = log.reader(time)?.next_number();
        // Again: retention may have removed segments before the first one was opened.
        log.begins()?.check(time)?;
        let before = log.as_of(At::Before(first))?;
        if before.run.number < self.past.run.number {
            let segments = log.readable_segments()?;
            if let Some(begin) = self.past.begin(log, &segments)?
                && first < begin.first
            {
                return Err(Ended::OtherFeeds(begin.clone()));
            }
        }
        self.begin_with(&before, encoder);
        Ok(Start::Number(first))
    }

    /// Passes these books to the encoder, and notes which of their instruments may be seen.
    fn begin_with(&mut self, books: &AsOf, encoder: &mut Encoder) {
        books.seed(encoder);
        for instrument in books.view.numbers() {
            self.chosen.look(instrument, books.directory());
        }
    }

    /// Sends the agent the records that were chosen.
    fn send(&mut self) -> Result<(), Ended> {
        let records = std::mem::take(&mut self.chosen.records);
        if self.shared.ends.load(Ordering::Relaxed) {
            return Err(Ended::Gone);
        }
        if records.is_empty() {
            return Ok(());
        }
        let sent = self.pieces.send(Step::Records(records));
        self.past.waker.wake();
        sent.map_err(|_| Ended::Gone)
    }
}

impl Chosen {
    /// Moves the records of a batch that are wanted and may be seen. The directory has the symbols
    /// of the last event.
    fn take(&mut self, batch: &mut Batch, directory: &Directory) {
        for (tag, record) in batch.records() {
            if self.takes(tag, directory) {
                self.records.extend_from_slice(record);
            }
        }
        batch.clear();
    }

    fn takes(&mut self, tag: &Tag, directory: &Directory) -> bool {
        if !tag.schemas.meets(self.schemas) {
            return false;
        }
        if tag.instrument == InstrumentId::ALL {
            return true;
        }
        if tag.schemas.meets(LiveSchema::Definition.alone()) {
            // The record has the symbol, which may be another one than before.
            self.sees.remove(&tag.instrument);
        }
        let sees = self.look(tag.instrument, directory);
        let is_wanted = self.wanted.as_ref();
        let is_wanted = is_wanted.is_none_or(|all| all.contains(&tag.instrument));
        sees && is_wanted && (tag.entry == 0 || self.grant.entries.has(tag.entry))
    }

    /// Notes, behind the records of an event, whether its instrument may be seen: records of
    /// intervals come when the directory may have a later symbol.
    fn note(&mut self, event: &Event, directory: &Directory) {
        if event.instrument == InstrumentId::ALL {
            return;
        }
        if event.kind == Kind::Definition {
            // Its symbol may be too long for a record.
            self.sees.remove(&event.instrument);
        }
        self.look(event.instrument, directory);
    }

    /// Returns whether an instrument may be seen: by its symbol at its last definition, or, if none
    /// was noted, by that of this directory, which is noted.
    fn look(&mut self, instrument: InstrumentId, directory: &Directory) -> bool {
        let grant = &self.grant;
        let sees = self.sees.entry(instrument);
        *sees.or_insert_with(|| grant.sees(directory.instrument(instrument)))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::test_log::{self, feed, named};
    use fanfare_engine::poll::Waker;
    use fanfare_history::{Run, Writer, WriterConfig};
    use fanfare_market::dbn::live::SymbolType;
    use fanfare_market::event::entry;
    use fanfare_market::{BookConfig, Flags, Price, Watermark};
    use fanfare_peers::Scratch;
    use std::path::PathBuf;

    /// Returns an event of an instrument, a definition or a trade.
    pub(in crate::dbn) fn event(kind: Kind, instrument: u32) -> Event {
        Event {
            kind,
            instrument: InstrumentId(instrument),
            source: 1,
            entry: entry::TRADE,
            price: Price::from_units(7),
            size: 1,
            flags: Flags::LAST,
            ..Event::EMPTY
        }
    }

    /// Returns the records of the past of a new log for a user who sees symbols that begin with P.
    fn seen_of_past(schema: LiveSchema, write: impl Fn(&mut Writer)) -> Vec<u8> {
        let folder = Scratch::new("dbn-names");
        let feeds = vec![feed(BookConfig::by_price(5).unwrap())];
        let config = WriterConfig::default();
        let (mut writer, opened) = Writer::open(&folder, config, feeds.clone(), 1).unwrap();
        write(&mut writer);
        let next = writer.next();
        writer.close().unwrap();
        let past = Past {
            folder: folder.to_path_buf(),
            run: Run {
                number: opened.run,
                feeds,
                ..Run::default()
            },
            waker: Waker::detached().unwrap(),
        };
        let join = Join {
            schema,
            ..replay(false).join
        };
        let mut replay = Replay::new(join, 0, Arc::new(past));
        let (grant, mut place) = (Arc::new(Grant::seeing(b"P*")), Some(Arc::new(())));
        let mut received = Vec::new();
        loop {
            match replay.step(place.take(), next, 0, &grant, 0) {
                Step::Records(records) => received.extend(records),
                Step::Done => return received,
                Step::Failed(_, why) => panic!("{why}"),
                Step::Live | Step::Waits => std::thread::yield_now(),
            }
        }
    }

    /// Writes an instrument with this symbol, and with `watermark` the end of the events before it.
    fn write_name(writer: &mut Writer, instrument: u32, symbol: &str, watermark: Option<u64>) {
        let bytes = test_log::instrument(instrument, named(symbol));
        writer.instrument(&bytes).unwrap();
        if let Some(time) = watermark {
            writer.watermark(Watermark::unknown(time));
        }
    }

    fn write_event(writer: &mut Writer, event: Event) {
        let event = Event {
            number: writer.next(),
            ..event
        };
        writer.events(&[event.to_bytes()]).unwrap();
    }

    #[test]
    fn a_record_of_the_past_is_for_those_who_may_see_the_symbol_of_its_time() {
        let received = seen_of_past(LiveSchema::Trades, |writer| {
            for (instrument, symbol) in [(0, "S1"), (1, "P2"), (0, "P1"), (1, "S2")] {
                write_name(writer, instrument, symbol, None);
                for kind in [Kind::Definition, Kind::Trade] {
                    write_event(writer, event(kind, instrument));
                }
            }
        });
        // The symbol and the trade of P2, then those of P1.
        let instruments: Vec<_> = each(&received).map(instrument).collect();
        assert_eq!(instruments, [1, 1, 0, 0]);
        for hidden in [b"S1", b"S2"] {
            assert!(!received.windows(2).any(|two| two == hidden));
        }
    }

    #[test]
    fn a_bar_of_the_past_is_for_those_who_may_see_the_symbol_of_its_trades() {
        const SECOND: u64 = 1_000_000_000;
        for has_watermark in [true, false] {
            let received = seen_of_past(LiveSchema::Ohlcv1S, |writer| {
                let names = [[(0, "S1"), (1, "P2")], [(0, "P1"), (1, "S2")]];
                for (names, time) in names.into_iter().zip([5 * SECOND, 8 * SECOND]) {
                    for (instrument, symbol) in names {
                        let watermark = (has_watermark && time > 5 * SECOND).then_some(time);
                        write_name(writer, instrument, symbol, watermark);
                        for kind in [Kind::Definition, Kind::Trade] {
                            let event = Event {
                                ts_recv: time,
                                ..event(kind, instrument)
                            };
                            write_event(writer, event);
                        }
                    }
                }
                writer.watermark(Watermark::unknown(20 * SECOND));
                let last = Event {
                    ts_recv: 20 * SECOND,
                    ..event(Kind::Status, 0)
                };
                write_event(writer, last);
            });
            // The bar of P2, then that of P1.
            let bars = each(&received).filter(|record| record[1] == 0x20);
            assert_eq!(bars.map(instrument).collect::<Vec<_>>(), [1, 0]);
        }
    }

    /// Returns a subscription to all orders that starts in the past, and may be live already.
    pub(in crate::dbn) fn replay(has_joined: bool) -> Replay {
        replay_of(Targets::All(None), has_joined)
    }

    /// Returns a subscription to the orders of these instruments.
    pub(in crate::dbn) fn replay_of(targets: Targets, has_joined: bool) -> Replay {
        let past = Past {
            folder: PathBuf::new(),
            run: Run::default(),
            waker: Waker::detached().unwrap(),
        };
        let join = Join {
            schema: LiveSchema::Mbo,
            by: SymbolType::RawSymbol,
            targets,
            snapshot: false,
            is_full: false,
        };
        Replay {
            has_joined,
            ..Replay::new(join, 0, Arc::new(past))
        }
    }

    #[test]
    fn a_past_that_does_not_come_to_its_end_in_time_fails() {
        let (sender, pieces) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        shared.position.store(7, Ordering::Relaxed);
        let mut replay = Replay {
            running: Some(Running { pieces, shared }),
            ..replay(false)
        };
        let grant = Arc::new(Grant::everything());
        let mut step = |now| replay.step(None, 9, 0, &grant, now);
        assert!(matches!(step(5), Step::Live));
        assert!(matches!(step(4 + PATIENCE), Step::Waits));
        sender.send(Step::Records(Vec::new())).unwrap();
        assert!(matches!(step(5 + PATIENCE), Step::Records(_)));
        assert!(matches!(step(4 + 2 * PATIENCE), Step::Waits));
        let Step::Failed(_, why) = step(5 + 2 * PATIENCE) else {
            panic!("it does not fail");
        };
        assert_eq!(why, "events 7 to 8 did not come from the log in 10 s");
    }

    #[test]
    fn a_past_without_records_for_the_client_fails_only_without_progress() {
        let (_sender, pieces) = sync_channel(1);
        let shared = Arc::new(Shared::default());
        shared.position.store(7, Ordering::Relaxed);
        let running = Running {
            pieces,
            shared: Arc::clone(&shared),
        };
        let mut replay = Replay {
            running: Some(running),
            ..replay(false)
        };
        let grant = Arc::new(Grant::everything());
        let mut step = |now| replay.step(None, 9, 0, &grant, now);
        assert!(matches!(step(0), Step::Live));
        shared.position.store(8, Ordering::Relaxed);
        assert!(matches!(step(PATIENCE), Step::Waits));
        assert!(matches!(step(2 * PATIENCE - 1), Step::Waits));
        assert!(matches!(step(2 * PATIENCE), Step::Failed(..)));
    }

    /// Returns a subscription to all orders that is live, and whose thread has failed.
    pub(in crate::dbn) fn failed(why: &str) -> Replay {
        ended(Step::Failed(ErrorCode::InternalError, why.to_owned()))
    }

    /// Returns a subscription to all orders that is live, and whose thread has ended with this
    /// result.
    pub(in crate::dbn) fn ended(step: Step) -> Replay {
        let (sender, pieces) = sync_channel(1);
        sender.send(step).unwrap();
        let shared = Arc::default();
        Replay {
            running: Some(Running { pieces, shared }),
            ..replay(true)
        }
    }
}
