//! A file of DBN as one feed among others: its events have the current time of arrival, and the
//! plant's own numbers.

use super::cursor::{Cursor, Next};
use super::dbn::DbnPlace;
use super::feed_config::FileFeed;
use super::log::{OpenReplay, mark_shown};
use super::piece;
use crate::bridge::Plan;
use crate::feed::feed_notice::{FeedNotice, MarketNotice};
use crate::market::outlet::MarketOutlet;
use crate::market::ring::EventRing;
use crate::notice::{Notice, Notices};
use fanfare_engine::poll::Waker;
use fanfare_feed::recovery::{Lack, State};
use fanfare_fix::session::Now;
use fanfare_market::instruments::Directory;
use fanfare_market::state::to_event;
use fanfare_market::{BookConfig, Event, Flags, InstrumentId, Instruments, Kind, View};
use std::sync::Arc;

/// The most messages of one turn.
const TURN: usize = 512;

/// The most instruments that are shown again in a turn, after a reader has lost events.
const SHOWN: usize = 16;

/// A file that is received like a feed.
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
        let channel: Arc<str> = settings.channel.as_str().into();
        Ok(Self {
            cursor: Cursor::new(pieces, from.speed),
            source: place.source,
            outlet: MarketOutlet::new(Arc::clone(&channel), 0, plan),
            view: View::new(books.to_vec()),
            directory: Directory::new(),
            shown: Vec::new(),
            none: Instruments::new(0),
            channel,
            notices: plan.notices.clone(),
        })
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

    /// Restarts the file, with empty books.
    fn begin_again(&mut self, received: u64, ring: &mut EventRing) {
        let clear = Event {
            kind: Kind::Clear,
            ..Event::EMPTY
        };
        self.put_to_all(&clear, received, ring);
        let state = to_event(State::Recovering(Lack::Picture));
        self.put_to_all(&state, received, ring);
    }

    /// Ends the feed. After damage, its books are not reliable.
    fn end(&mut self, why: Option<String>, received: u64, ring: &mut EventRing) {
        if why.is_some() {
            self.put_to_all(&to_event(State::Stale), received, ring);
        }
        let events = self.outlet.counts.events.value();
        let what = why.unwrap_or_else(|| format!("the file has ended, {events} events"));
        let channel = Arc::clone(&self.channel);
        let what = MarketNotice::File(what);
        let notice = FeedNotice::Market { channel, what };
        self.notices.send(Notice::Feed(notice));
    }

    /// Writes an event of each instrument that has a book or a state.
    fn put_to_all(&mut self, event: &Event, received: u64, ring: &mut EventRing) {
        let numbers: Vec<InstrumentId> = self.view.numbers().collect();
        for instrument in numbers {
            let event = Event {
                instrument,
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
            let Some(seen) = self.view.get(*instrument) else {
                continue;
            };
            let events = &mut self.outlet.brought.events;
            seen.show(*instrument, self.source, &mut |event| {
                let mut event = *event;
                event.ts_recv = received;
                mark_shown(&mut event);
                events.push(event);
            });
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
