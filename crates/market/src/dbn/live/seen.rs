//! The state of instruments: their books, states and last trades.

use crate::book::{Book, BookConfig, BookKind, Books, Side};
use crate::dbn::wire::{self, Header, Tick, flag};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::price::Price;
use crate::{picture, state};
use fanfare_feed::recovery::State;

/// The state of an instrument.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Its feed.
    pub(super) source: u16,
    /// RptSeq(83) of the last event, or 0 if it had none.
    pub(super) rpt_seq: u32,
    /// The time at which the last event was received.
    pub(super) ts_recv: u64,
    /// Whether its symbol was written.
    pub(super) is_named: bool,
    pub(super) state: Option<State>,
    /// Whether events were lost, and its book has not been shown since.
    pub(super) is_lost: bool,
    pub(super) trade: Option<Event>,
    pub(super) status: Option<Event>,
}

impl Seen {
    /// Returns whether the book of the instrument is known to be complete.
    pub(super) const fn is_whole(&self) -> bool {
        !self.is_lost && matches!(self.state, Some(State::Live))
    }
}

/// All instruments, by the plant's numbers.
#[derive(Debug)]
pub(super) struct Views {
    /// The configuration of the books of each feed, from source 1 on.
    configs: Vec<BookConfig>,
    books: Books,
    seen: Vec<Option<Box<Seen>>>,
}

impl Views {
    pub(super) fn new(configs: Vec<BookConfig>, other: BookConfig) -> Self {
        Self {
            configs,
            books: Books::new(other, u32::MAX),
            seen: Vec::new(),
        }
    }

    /// Returns the configuration of the books of each feed, from source 1 on.
    pub(super) fn configs(&self) -> &[BookConfig] {
        &self.configs
    }

    pub(super) fn seen(&self, instrument: InstrumentId) -> Option<&Seen> {
        self.seen.get(instrument.0 as usize)?.as_deref()
    }

    pub(super) fn seen_mut(&mut self, instrument: InstrumentId) -> Option<&mut Seen> {
        self.seen.get_mut(instrument.0 as usize)?.as_deref_mut()
    }

    pub(super) fn book(&self, instrument: InstrumentId) -> Option<&Book> {
        self.books.get(instrument)
    }

    /// Returns the instruments with a state.
    pub(super) fn numbers(&self) -> impl Iterator<Item = InstrumentId> + use<'_> {
        let all = (0..).zip(&self.seen);
        all.filter_map(|(number, seen)| seen.as_ref().map(|_| InstrumentId(number)))
    }

    /// Applies an event of one instrument. Allocates for a new one.
    #[inline]
    pub(super) fn take(&mut self, event: &Event) {
        let place = event.instrument.0 as usize;
        if place >= self.seen.len() {
            self.seen.resize_with(place + 1, || None);
        }
        let seen = self.seen[place].get_or_insert_default();
        seen.source = event.source;
        seen.ts_recv = event.ts_recv;
        match event.kind {
            Kind::Level | Kind::Order | Kind::Clear => {
                seen.is_lost &= event.kind != Kind::Clear;
                seen.rpt_seq = event.rpt_seq;
                self.apply(event);
            }
            Kind::Trade => {
                seen.rpt_seq = event.rpt_seq;
                seen.trade = Some(*event);
            }
            Kind::Status => seen.status = Some(*event),
            Kind::State => seen.state = state::of_event(event),
            Kind::Definition | Kind::Statistic => {}
        }
    }

    #[inline]
    fn apply(&mut self, event: &Event) {
        if self.books.get(event.instrument).is_none() && event.kind != Kind::Clear {
            let config = usize::from(event.source).checked_sub(1);
            if let Some(config) = config.and_then(|at| self.configs.get(at)) {
                // The table takes every number.
                let _ = self.books.open(event.instrument, config);
            }
        }
        // The feed's own book applied it, and a fault found after it is in the state.
        let _ = self.books.apply(event);
    }

    /// Records that no book is reliable until it is shown again.
    pub(super) fn lose_all(&mut self) {
        for seen in self.seen.iter_mut().flatten() {
            seen.state = None;
            seen.is_lost = true;
        }
    }

    /// Records that the book of an instrument is not reliable until it is shown again.
    pub(super) fn lose(&mut self, instrument: InstrumentId) {
        if let Some(seen) = self.seen_mut(instrument) {
            seen.is_lost = true;
        }
    }

    /// Records that no symbol was written.
    pub(super) fn forget_names(&mut self) {
        for seen in self.seen.iter_mut().flatten() {
            seen.is_named = false;
        }
    }

    /// Calls `send` with the events that make a book and a state equal to those of an instrument.
    pub(super) fn picture(&self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        let Some(seen) = self.seen(instrument) else {
            return;
        };
        let mut last = Event {
            flags: Flags::SNAPSHOT,
            instrument,
            ..Event::EMPTY
        };
        let whole = |event: Event| Event {
            rpt_seq: seen.rpt_seq,
            source: seen.source,
            ts_recv: seen.ts_recv,
            ..event
        };
        if let Some(book) = self.book(instrument) {
            picture::of_book(book, instrument, &mut |event| {
                send(&whole(last));
                last = *event;
            });
            last.flags = last.flags.with(Flags::LAST);
            send(&whole(last));
        }
        if let Some(state) = self.state(instrument) {
            send(&state);
        }
    }

    /// Returns the state of an instrument as an event.
    pub(super) fn state(&self, instrument: InstrumentId) -> Option<Event> {
        let seen = self.seen(instrument)?;
        Some(Event {
            instrument,
            source: seen.source,
            flags: Flags::LAST,
            ..state::to_event(seen.state?)
        })
    }

    /// Appends the orders of an instrument's book as records of a snapshot: `R`, then an `A` for
    /// each order. Returns the number of records, or 0 if the instrument has no book of orders.
    pub(super) fn orders(&self, instrument: InstrumentId, out: &mut Vec<u8>) -> u64 {
        let (Some(seen), Some(book)) = (self.seen(instrument), self.book(instrument)) else {
            return 0;
        };
        if book.kind() != BookKind::Orders {
            return 0;
        }
        let doubt = if seen.is_whole() {
            0
        } else {
            flag::MAYBE_BAD_BOOK
        };
        let clear = Tick {
            header: Header {
                source: seen.source,
                instrument: instrument.0,
                ts_event: Event::NO_TIME,
            },
            price: Price::UNDEFINED,
            size: 0,
            flags: Flags::SNAPSHOT.bits() | flag::BAD_TS_RECV | doubt,
            action: b'R',
            side: b'N',
            ts_recv: seen.ts_recv,
            sequence: seen.rpt_seq,
        };
        let mut last = (clear, 0);
        let mut records = 1;
        for (side, code) in [(Side::Bid, b'B'), (Side::Offer, b'A')] {
            for level in book.depth(side) {
                for order in book.queue(side, level.price) {
                    let Ok(size) = wire::unsigned("size", order.size.into()) else {
                        continue;
                    };
                    let (tick, id) = last;
                    wire::mbo(&tick, id, out);
                    records += 1;
                    let tick = Tick {
                        price: level.price,
                        size,
                        action: b'A',
                        side: code,
                        ..clear
                    };
                    last = (tick, order.id);
                }
            }
        }
        let (mut tick, id) = last;
        tick.flags |= flag::LAST;
        wire::mbo(&tick, id, out);
        records
    }
}
