//! The market, kept by one more reader of the ring.

use super::{render, tell};
use crate::counts::WatchCounts;
use crate::market::ring::EventReader;
use fanfare_engine::counters::Counters;
use fanfare_feed::recovery::State;
use fanfare_history::FeedInfo;
use fanfare_market::event::{Action, Event, InstrumentId, Kind};
use fanfare_market::instruments::Directory;
use fanfare_market::view::{Seen, View};
use fanfare_market::{Delivery, Flags};
use fanfare_operator::Changes;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The most messages that are read while a query may wait.
const TURN: usize = 512;
/// The most trades of an instrument that are kept.
const TRADES: usize = 20;
/// The most changes of states that are reported one by one in each period.
const TOLD: u32 = 200;
const TELL: Duration = Duration::from_millis(100);
/// The least interval between requests for all instruments, if the thread was overtaken.
const ASK: Duration = Duration::from_secs(10);

/// The state of an instrument besides its book.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// The plant's number of its last event, the time of its arrival, and the last RptSeq(83).
    pub(super) number: u64,
    pub(super) received: u64,
    pub(super) rpt_seq: u32,
    /// The newest trades first.
    pub(super) trades: VecDeque<Event>,
    /// Whether an event had its state, which was reported.
    is_told: bool,
}

impl Own {
    /// Adds a trade, or removes or changes an earlier one, unless it is too old to be known.
    fn trade(&mut self, event: &Event) {
        let mut known = self.trades.iter();
        let place = known.position(|own| event.is_about(own));
        match (event.action, place) {
            (Action::Change, place) => {
                let known = place.and_then(|place| self.trades.get_mut(place));
                if let Some(known) = known {
                    *known = *event;
                }
            }
            (Action::Delete | Action::DeleteThru | Action::DeleteFrom, place) => {
                _ = place.and_then(|place| self.trades.remove(place));
            }
            _ => {
                self.trades.push_front(*event);
                self.trades.truncate(TRADES);
            }
        }
    }
}

/// The reading end of the ring, and the market built from it.
pub(crate) struct Market {
    events: EventReader,
    pub(super) view: View<Own>,
    pub(super) feeds: Vec<FeedInfo>,
    /// The latest time of arrival.
    pub(super) time: u64,
    changes: Told,
    /// The time at which all instruments were requested.
    asked: Option<Instant>,
    counts: WatchCounts,
}

/// A limit on the reported changes.
struct Told {
    changes: Changes,
    /// The start of this period, and the number of reports left in it.
    since: Option<Instant>,
    left: u32,
    untold: u64,
}

impl Market {
    pub(super) fn new(
        events: EventReader,
        feeds: Vec<FeedInfo>,
        changes: Changes,
        counters: &Counters,
    ) -> Self {
        let mut events = events.may_be_late();
        events.ask_by_hand();
        Self {
            events,
            view: View::new(feeds.iter().map(|feed| feed.book).collect()),
            feeds,
            time: 0,
            changes: Told {
                changes,
                since: None,
                left: TOLD,
                untold: 0,
            },
            asked: None,
            counts: WatchCounts::new(counters, ""),
        }
    }

    /// Reads events for a short time. Returns whether there may be more.
    pub(super) fn read(&mut self, now: Instant) -> bool {
        self.changes.turn(now);
        let Self {
            events,
            view,
            feeds,
            time,
            changes,
            counts,
            ..
        } = self;
        let read = events.read(TURN, |delivery| match delivery {
            Delivery::Event(event, directory) => {
                if event.instrument != InstrumentId::ALL {
                    let before = take(view, event);
                    if let Some(before) = before {
                        let seen = view.get(event.instrument);
                        changes.state(event.instrument, before, seen, directory, feeds);
                    }
                }
                if !matches!(event.ts_recv, 0 | Event::NO_TIME) {
                    *time = (*time).max(event.ts_recv);
                }
            }
            Delivery::End(_) | Delivery::Watermark(_) => {}
            Delivery::Lost { first, last } => {
                view.lose_all();
                counts.lapped.increment(last - first + 1);
                let fields = [("first", json!(first)), ("last", json!(last))];
                tell(&changes.changes, "lapped", render::object(fields));
            }
            Delivery::Restart => {
                restart(view);
                tell(&changes.changes, "restart", Map::new());
            }
        });
        if self.events.lacks_some() && self.asked.is_none_or(|at| now - at >= ASK) {
            self.asked = Some(now);
            self.events.ask();
        }
        read >= TURN
    }

    /// Returns the number of the last event that was read.
    pub(super) const fn number(&self) -> u64 {
        self.events.next_number().saturating_sub(1)
    }

    /// Returns the position of the end of the ring.
    pub(super) fn head(&self) -> u64 {
        self.events.head()
    }

    /// Returns whether everything up to a position was read.
    pub(super) const fn has_read(&self, position: u64) -> bool {
        self.events.has_read(position)
    }

    /// Returns whether it was overtaken, and has not been shown all instruments since.
    pub(super) const fn may_lack_some(&self) -> bool {
        self.events.may_lack_some()
    }

    /// Returns the state of an instrument, or `None` if no event had one so far.
    pub(super) fn state(&self, instrument: InstrumentId) -> Option<State> {
        let seen = self.view.get(instrument).filter(|seen| seen.own.is_told);
        seen.map(|seen| seen.state)
    }

    pub(super) const fn directory(&self) -> &Directory {
        self.events.directory()
    }
}

/// Applies an event of one instrument. Returns the previous state if it has changed.
fn take(view: &mut View<Own>, event: &Event) -> Option<Option<State>> {
    let before = view.get(event.instrument).map(|seen| seen.state);
    view.apply(event);
    let seen = view.get_mut(event.instrument)?;
    let own = &mut seen.own;
    own.number = event.number;
    if !matches!(event.ts_recv, 0 | Event::NO_TIME) {
        own.received = own.received.max(event.ts_recv);
    }
    match event.kind {
        // The book begins again, at the number of its snapshot, or at none.
        Kind::Clear => own.rpt_seq = event.rpt_seq,
        // The number of a state is that of a missing change.
        Kind::State => {}
        // Trades that a snapshot contains are passed on after it.
        _ => own.rpt_seq = own.rpt_seq.max(event.rpt_seq),
    }
    if event.kind == Kind::Trade && !event.flags.has(Flags::SNAPSHOT) {
        own.trade(event);
    }
    // The state of a lost book that is shown from a Clear on came before.
    let may_show = event.kind == Kind::Clear && own.is_told;
    if event.kind != Kind::State && !may_show {
        return None;
    }
    let before = before.filter(|_| own.is_told);
    own.is_told = true;
    let name = render::state_name;
    (before.map(name) != Some(name(seen.state))).then_some(before)
}

/// Records a restart of the plant: books and numbers are unknown until later events show them.
fn restart(view: &mut View<Own>) {
    view.restart();
    let all: Vec<_> = view.numbers().collect();
    for instrument in all {
        if let Some(seen) = view.get_mut(instrument) {
            seen.own.rpt_seq = 0;
        }
    }
}

impl Told {
    /// Reports the number of changes that were not reported one by one.
    fn turn(&mut self, now: Instant) {
        if self.since.is_some_and(|since| now - since < TELL) {
            return;
        }
        self.since = Some(now);
        self.left = TOLD;
        let untold = std::mem::take(&mut self.untold);
        if untold > 0 {
            let fields = render::object([("count", json!(untold))]);
            tell(&self.changes, "instruments", fields);
        }
    }

    fn state(
        &mut self,
        instrument: InstrumentId,
        before: Option<State>,
        seen: Option<&Seen<Own>>,
        directory: &Directory,
        feeds: &[FeedInfo],
    ) {
        if self.left == 0 {
            self.untold += 1;
            return;
        }
        self.left -= 1;
        let mut fields = render::names(instrument, directory, feeds);
        let state = render::state(seen.map(|seen| seen.state)).into_iter();
        fields.extend(state.map(|(name, value)| (name.to_owned(), value)));
        let before: Value = before.map(render::state_name).into();
        fields.insert("before".to_owned(), before);
        tell(&self.changes, "instrument", fields);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::ring::EventRing;
    use crate::test_log::feed;
    use fanfare_engine::poll::Waker;
    use fanfare_market::book::BookConfig;
    use fanfare_market::state;

    fn state_of(instrument: u32, state: State) -> Event {
        Event {
            instrument: InstrumentId(instrument),
            source: 1,
            ts_recv: 1,
            flags: Flags::LAST,
            ..state::to_event(state)
        }
    }

    fn market(ring: &mut EventRing, changes: &Changes) -> Market {
        let feed = feed(BookConfig::by_price(4).unwrap());
        let events = ring.reader(Waker::detached().unwrap()).unwrap();
        Market::new(events, vec![feed], changes.clone(), &Counters::new())
    }

    #[test]
    fn many_changes_of_states_are_told_as_a_number() {
        let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
        let changes = Changes::default();
        let (mut market, begun) = (market(&mut ring, &changes), Instant::now());
        for instrument in 0..250 {
            ring.put(&mut [state_of(instrument, State::Live)]);
            // A repeated state is not a change.
            ring.put(&mut [state_of(instrument, State::Live)]);
        }
        while market.read(begun) {}
        assert_eq!(changes.range().1 - 1, u64::from(TOLD));
        market.read(begun + TELL);
        let seen = changes.since(u64::from(TOLD), 9).changes;
        assert_eq!((seen.len(), seen[0].kind), (1, "instruments"));
        assert!(seen[0].data.contains("\"count\":50"), "{}", seen[0].data);
        assert_eq!(market.number(), 500);
    }

    #[test]
    fn a_lost_book_whose_state_came_before_is_told_as_live_when_it_is_shown() {
        let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
        let changes = Changes::default();
        let (mut market, begun) = (market(&mut ring, &changes), Instant::now());
        let clear = Event {
            source: 1,
            ..Event::EMPTY
        };
        ring.put(&mut [clear, state_of(0, State::Live)]);
        while market.read(begun) {}
        market.view.lose_all();
        for event in [state_of(0, State::Live), clear, clear] {
            ring.put(&mut [event]);
        }
        while market.read(begun) {}
        let told = changes.since(0, 9).changes;
        assert_eq!(told.len(), 2, "{told:?}");
        for (change, before) in told.iter().zip(["null", "\"recovering\""]) {
            let data = &change.data;
            assert!(data.contains("\"state\":\"live\""), "{data}");
            assert!(data.contains(&format!("\"before\":{before}")), "{data}");
        }
    }

    #[test]
    fn a_trade_that_is_deleted_is_no_longer_shown() {
        let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
        let (mut market, begun) = (market(&mut ring, &Changes::default()), Instant::now());
        let trade = |action, id, size| Event {
            kind: Kind::Trade,
            action,
            id,
            size,
            source: 1,
            entry: b'2',
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        for event in [
            trade(Action::New, 1, 5),
            trade(Action::New, 2, 6),
            trade(Action::New, 3, 7),
            trade(Action::Delete, 2, 6),
            trade(Action::Change, 1, 8),
            trade(Action::Change, 9, 9),
            trade(Action::Delete, 9, 9),
        ] {
            ring.put(&mut [event]);
        }
        while market.read(begun) {}
        let seen = market.view.get(InstrumentId(0)).unwrap();
        let shown: Vec<_> = seen.own.trades.iter().map(|own| own.size).collect();
        assert_eq!(shown, [7, 8]);
        assert_eq!(seen.last.iter().next().map(|own| own.size), Some(7));
    }

    #[test]
    fn the_number_of_the_last_change_goes_back_only_where_the_book_begins_again() {
        let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
        let (mut market, begun) = (market(&mut ring, &Changes::default()), Instant::now());
        let event = |kind, rpt_seq| Event {
            kind,
            rpt_seq,
            source: 1,
            entry: b'2',
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        for (kind, rpt_seq, expected) in [
            (Kind::Trade, 7, 7),
            (Kind::Clear, 20, 20),
            (Kind::Trade, 8, 20),
            (Kind::Trade, 0, 20),
            (Kind::State, 30, 20),
            (Kind::Trade, 21, 21),
            (Kind::Clear, 0, 0),
            (Kind::Trade, 1, 1),
        ] {
            ring.put(&mut [event(kind, rpt_seq)]);
            while market.read(begun) {}
            let seen = market.view.get(InstrumentId(0)).unwrap();
            assert_eq!(seen.own.rpt_seq, expected, "{kind:?} {rpt_seq}");
        }
        ring.put_restart(5);
        while market.read(begun) {}
        assert_eq!(market.view.get(InstrumentId(0)).unwrap().own.rpt_seq, 0);
    }

    #[test]
    fn one_that_is_overtaken_says_so_and_asks_now_and_then() {
        let mut ring = EventRing::new(1, 1, Waker::detached().unwrap(), 1);
        let changes = Changes::default();
        let (mut market, begun) = (market(&mut ring, &changes), Instant::now());
        ring.put(&mut [state_of(0, State::Live)]);
        market.read(begun);
        assert_eq!(market.view.get(InstrumentId(0)).unwrap().state, State::Live);
        let overtake = |ring: &mut EventRing, market: &mut Market, at| {
            (0..20_000).for_each(|_| ring.put(&mut [state_of(1, State::Live)]));
            while market.read(at) {}
        };
        overtake(&mut ring, &mut market, begun);
        let seen = market.view.get(InstrumentId(0)).unwrap();
        assert!(seen.is_lost() && !seen.has_snapshot());
        assert!(market.counts.lapped.value() > 0);
        let lapped = changes.since(0, 9).changes;
        assert!(lapped.iter().any(|own| own.kind == "lapped"), "{lapped:?}");
        assert!(ring.is_asked());
        overtake(&mut ring, &mut market, begun + Duration::from_secs(1));
        assert!(!ring.is_asked(), "it has asked a second ago");
        market.read(begun + ASK);
        assert!(ring.is_asked());
    }
}
