//! A file of DBN, or a stream of a live gateway, as one feed among others: its events have the
//! current time of arrival, and the plant's own numbers.

use super::cursor::{Cursor, Next, pause};
use super::dbn::DbnPlace;
use super::feed_config::FileFeed;
use super::log::{OpenReplay, empty, mark_shown};
use super::piece;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::gateway::plan::Plan;
use crate::market::outlet::{MarketOutlet, SHOWN};
use crate::market::ring::EventRing;
use crate::notice::{Notice, Notices};
use fanfare_engine::poll::Waker;
use fanfare_feed::recovery::{Lack, State};
use fanfare_fix::session::Now;
use fanfare_market::instruments::Directory;
use fanfare_market::state::to_event;
use fanfare_market::view::Seen;
use fanfare_market::{BookConfig, Event, Flags, InstrumentId, Instruments, Kind, View};
use std::sync::Arc;

/// The most messages of one turn.
const TURN: usize = 512;

/// A file, or a live stream, that is received like a feed.
pub(crate) struct FileMarket {
    cursor: Cursor,
    source: u16,
    outlet: MarketOutlet,
    /// The books and states, for readers that have lost events.
    view: View,
    /// The instruments so far.
    directory: Directory,
    /// The instruments that are to be shown again, the last one first.
    shown: Vec<(InstrumentId, Box<[u8]>)>,
    /// An empty table, because the numbers of instruments are assigned where the file is read.
    none: Instruments,
    channel: Arc<str>,
    notices: Notices,
    /// The thread that reads the source ends when this is dropped.
    _life: Arc<()>,
}

impl FileMarket {
    /// Starts the reading thread, which wakes this one by `waker`. `books` are those of all feeds.
    pub(crate) fn open(
        settings: &FileFeed,
        place: DbnPlace,
        books: &[BookConfig],
        waker: &Waker,
        plan: Plan<'_>,
    ) -> std::io::Result<Self> {
        let (sender, pieces) = piece::channel();
        let from = &settings.source;
        let part = OpenReplay::of_file(&from.file, place, from.turns);
        part.start(sender, waker.clone())?;
        let cursor = Cursor::new(pieces, from.speed);
        let ends = (cursor, Arc::default());
        Ok(Self::new(&settings.channel, ends, place, books, plan))
    }

    /// Creates the market of the feed with this name. The thread whose pieces the cursor has ends
    /// when the second one of `ends` is dropped.
    pub(super) fn new(
        channel: &str,
        (cursor, life): (Cursor, Arc<()>),
        place: DbnPlace,
        books: &[BookConfig],
        plan: Plan<'_>,
    ) -> Self {
        let channel: Arc<str> = channel.into();
        Self {
            cursor,
            source: place.source,
            outlet: MarketOutlet::new(Arc::clone(&channel), 0, plan),
            view: View::new(books.to_vec()),
            directory: Directory::new(),
            shown: Vec::new(),
            none: Instruments::new(0),
            channel,
            notices: plan.notices.clone(),
            _life: life,
        }
    }

    /// Writes the items that are due to the ring. Returns the amount of work done.
    pub(crate) fn turn(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let received = now.utc.nanos().unsigned_abs();
        let mut work = 0;
        while work < TURN && self.cursor.has_room(now.mono, ring) {
            match self.cursor.next(now.mono) {
                None => break,
                Some(Next::Message(events, _)) => {
                    for event in events {
                        let event = Event {
                            ts_recv: received,
                            ..*event
                        };
                        if event.instrument != InstrumentId::ALL {
                            self.view.apply(&event);
                        }
                        self.outlet.brought.events.push(event);
                    }
                    self.outlet.pass_on(&self.none, ring);
                }
                Some(Next::Instrument(bytes)) => {
                    self.directory.take(bytes);
                    ring.put_bytes(bytes);
                }
                Some(Next::Restart(_)) => self.begin_again(received, ring),
                // Its events arrive now.
                Some(Next::Watermark(_)) => {}
                Some(Next::Stale) => self.be_stale(received, ring),
                Some(Next::Pause(nanos)) => self.tell(pause(nanos)),
                Some(Next::Over(why)) => self.end(why, received, ring),
            }
            work += 1;
        }
        self.outlet.count(now.mono);
        if self.outlet.is_due(now.mono) {
            self.count();
        }
        work
    }

    /// Restarts the source, with empty books.
    fn begin_again(&mut self, received: u64, ring: &mut EventRing) {
        let clear = Event {
            kind: Kind::Clear,
            ..Event::EMPTY
        };
        let all = self.numbers(|seen| seen.book.is_some() || !is_unknown(seen.state));
        self.put_to_all(&all, &clear, received, ring);
        let state = to_event(State::Recovering(Lack::Snapshot));
        self.put_to_all(&all, &state, received, ring);
    }

    /// Marks the books as stale that are complete.
    fn be_stale(&mut self, received: u64, ring: &mut EventRing) {
        let live = self.numbers(|seen| seen.state == State::Live);
        self.put_to_all(&live, &to_event(State::Stale), received, ring);
    }

    /// Returns the instruments with such a state.
    fn numbers(&self, is_one: impl Fn(&Seen) -> bool) -> Vec<InstrumentId> {
        let all = self.view.numbers();
        all.filter(|number| self.view.get(*number).is_some_and(&is_one))
            .collect()
    }

    /// Ends the feed. After damage, its books are not reliable.
    fn end(&mut self, why: Option<String>, received: u64, ring: &mut EventRing) {
        if why.is_some() {
            let all = self.numbers(|_| true);
            self.put_to_all(&all, &to_event(State::Stale), received, ring);
        }
        let events = self.outlet.counts.events.value();
        self.tell(why.unwrap_or_else(|| format!("the file has ended, {events} events")));
    }

    fn tell(&self, what: String) {
        let channel = Arc::clone(&self.channel);
        let what = MarketNotice::File(what);
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    /// Writes an event of each of these instruments.
    fn put_to_all(
        &mut self,
        numbers: &[InstrumentId],
        event: &Event,
        received: u64,
        ring: &mut EventRing,
    ) {
        for instrument in numbers {
            let event = Event {
                instrument: *instrument,
                source: self.source,
                ts_recv: received,
                flags: Flags::LAST,
                ..*event
            };
            self.view.apply(&event);
            self.outlet.brought.events.push(event);
            self.outlet.pass_on(&self.none, ring);
        }
    }

    /// Marks all instruments to be shown again, for a reader that has lost events.
    pub(crate) fn show_all(&mut self) {
        let all = self.directory.iter();
        self.shown = all.map(|(number, bytes)| (number, bytes.into())).collect();
        self.shown.reverse();
    }

    /// Returns whether some instruments are still to be shown.
    pub(crate) const fn is_showing(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Shows the next instruments, with their books. Returns their number.
    pub(crate) fn show(&mut self, now: Now, ring: &mut EventRing) -> usize {
        let received = now.utc.nanos().unsigned_abs();
        let rest = self.shown.len().saturating_sub(SHOWN);
        let next = self.shown.split_off(rest);
        for (instrument, bytes) in next.iter().rev() {
            ring.put_bytes(bytes);
            let (seen, source) = (self.view.get(*instrument), self.source);
            let events = &mut self.outlet.brought.events;
            if seen.is_none_or(|seen| seen.book.is_none()) {
                // An empty book has no event that shows it.
                events.push(empty(*instrument, source));
            }
            if let Some(seen) = seen {
                seen.show(*instrument, source, &mut |event| events.push(*event));
            }
            for event in &mut *events {
                event.ts_recv = received;
                mark_shown(event);
            }
            if let Some(last) = events.last_mut() {
                last.flags = last.flags.with(Flags::LAST);
            }
            self.outlet.pass_on(&self.none, ring);
        }
        next.len()
    }

    pub(crate) const fn next_timer(&self) -> Option<u64> {
        self.cursor.due
    }

    /// Sets the counters that are not counted on arrival.
    pub(crate) fn count(&self) {
        self.outlet.set_counts();
        let counts = &self.outlet.counts;
        counts.instruments.set(self.directory.len() as u64);
    }
}

/// Returns whether a book is not known.
const fn is_unknown(state: State) -> bool {
    matches!(state, State::Recovering(_))
}

#[cfg(test)]
mod tests {
    use super::super::config::{Speed, Turns};
    use super::super::feed_config::FileSource;
    use super::*;
    use crate::notice;
    use crate::test_log::named;
    use fanfare_engine::clock::Clock;
    use fanfare_engine::counters::Counters;
    use fanfare_engine::stop::Stop;
    use fanfare_market::Delivery;
    use fanfare_market::dbn::{DbnConfig, Schemas, ToDbn};
    use fanfare_peers::Scratch;
    use std::time::{Duration, Instant};

    /// The bytes of a definition.
    const DEFINITION: usize = 520;

    /// Returns a file of a definition, and of the name of another instrument.
    fn bytes() -> Vec<u8> {
        let mut to_dbn = ToDbn::new(DbnConfig::new(Schemas::MIXED)).unwrap();
        let (mut table, mut bytes) = (Instruments::new(2), Vec::new());
        to_dbn.metadata("TEST", 0, &mut bytes);
        for symbol in ["A", "B"] {
            let defined = table.define(&named(symbol)).unwrap();
            let event = Event {
                kind: Kind::Definition,
                instrument: defined.instrument,
                id: defined.revision.into(),
                flags: Flags::LAST,
                ..Event::EMPTY
            };
            to_dbn.write(&event, 0, &table, &mut bytes);
        }
        bytes.truncate(bytes.len() - DEFINITION);
        bytes
    }

    #[test]
    fn instruments_without_a_book_are_shown_with_an_empty_one() {
        let path = Scratch::new("no-book.dbn");
        path.write(bytes());
        let source = FileSource {
            file: path.to_path_buf(),
            speed: Speed::Max,
            turns: Turns(1),
            most_instruments: 10,
        };
        let settings = FileFeed::new(None, source);
        let (counters, stop) = (Counters::new(), Stop::new());
        let (notices, _received) = notice::channel();
        let plan = Plan::of_a_test(&counters, &notices, &stop);
        let (waker, mut clock) = (Waker::detached().unwrap(), Clock::new());
        let mut ring = EventRing::new(1 << 16, 1, waker.clone(), 1);
        let mut reader = ring.reader(waker.clone()).unwrap();
        let (place, books) = (DbnPlace::new(1, 0, 10), [BookConfig::by_price(10).unwrap()]);
        let mut file = FileMarket::open(&settings, place, &books, &waker, plan).unwrap();
        let until = Instant::now() + Duration::from_secs(60);
        while file.directory.len() < 2 || file.outlet.counts.events.value() < 1 {
            assert!(Instant::now() < until, "the file is not read");
            file.turn(clock.read(), &mut ring);
            std::thread::yield_now();
        }
        reader.read(usize::MAX, |_| {});
        let mut view: View = View::new(books.to_vec());
        let numbers = [0, 1].map(InstrumentId);
        for number in numbers {
            view.open(number);
        }
        view.lose_all();
        file.show_all();
        while file.is_showing() {
            file.show(clock.read(), &mut ring);
        }
        let mut shown = Vec::new();
        reader.read(usize::MAX, |delivery| {
            if let Delivery::Event(event, _) = delivery {
                view.apply(event);
                shown.push((event.instrument.0, event.kind, event.flags.has(Flags::LAST)));
            }
        });
        let (clear, state) = (Kind::Clear, Kind::State);
        assert_eq!(
            shown,
            [(0, clear, false), (0, state, true), (1, clear, true)]
        );
        let lost = numbers.map(|number| view.get(number).unwrap().is_lost());
        assert_eq!(lost, [false, false]);
    }
}
