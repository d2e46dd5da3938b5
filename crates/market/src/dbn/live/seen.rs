//! The state of instruments: their books, states and last trades.

use crate::book::{Book, BookConfig, BookKind, Books, Order, Side};
use crate::dbn::codes;
use crate::dbn::wire::{self, Header, NoRoom, Tick, flag};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::price::Price;
use crate::{last, snapshot, state};
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
    /// Whether events were lost, so that the books of other instruments may have begun in them.
    is_lost: bool,
}

impl Views {
    pub(super) fn new(configs: Vec<BookConfig>, other: BookConfig) -> Self {
        Self {
            configs,
            books: Books::new(other, u32::MAX),
            seen: Vec::new(),
            is_lost: false,
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
        let is_lost = self.is_lost;
        let seen = self.seen[place].get_or_insert_with(|| {
            Box::new(Seen {
                is_lost,
                ..Seen::default()
            })
        });
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
                seen.trade = last::after(seen.trade.as_ref(), event);
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

    /// Marks all books as lost until they are shown again. Instruments without events so far are
    /// included.
    pub(super) fn lose_all(&mut self) {
        self.is_lost = true;
        for seen in self.seen.iter_mut().flatten() {
            seen.state = None;
            seen.is_lost = true;
        }
    }

    /// Records that the book of an instrument is not reliable until it is shown again, or with
    /// [`InstrumentId::ALL`] those of the instruments without events so far.
    pub(super) fn lose(&mut self, instrument: InstrumentId) {
        self.is_lost |= instrument == InstrumentId::ALL;
        if let Some(seen) = self.seen_mut(instrument) {
            seen.is_lost = true;
        }
    }

    /// Returns whether the books of instruments without events so far are not reliable until they
    /// are shown.
    pub(super) const fn has_lost_others(&self) -> bool {
        self.is_lost
    }

    /// Records a restart of the plant, after which every book begins again, and that no symbol was
    /// written.
    pub(super) fn restart(&mut self) {
        self.is_lost = false;
        for seen in self.seen.iter_mut().flatten() {
            seen.is_named = false;
        }
    }

    /// Calls `send` with the events that make a book and a state equal to those of an instrument.
    pub(super) fn snapshot(&self, instrument: InstrumentId, send: &mut impl FnMut(&Event)) {
        let Some(seen) = self.seen(instrument) else {
            return;
        };
        let clear = Event {
            flags: Flags::SNAPSHOT,
            instrument,
            rpt_seq: seen.rpt_seq,
            source: seen.source,
            ts_recv: seen.ts_recv,
            ..Event::EMPTY
        };
        if let Some(book) = self.book(instrument) {
            snapshot::of_book(&clear, Some(book), send);
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
    /// each order. Returns the number of records, or 0 if the instrument has no book of orders, and
    /// the number of orders whose size has no room in a record: without them, all are marked as
    /// those of a book that may be wrong.
    pub(super) fn orders(&self, instrument: InstrumentId, out: &mut Vec<u8>) -> (u64, u64) {
        let (Some(seen), Some(book)) = (self.seen(instrument), self.book(instrument)) else {
            return (0, 0);
        };
        if book.kind() != BookKind::Orders {
            return (0, 0);
        }
        let sizes = orders_of(book).map(|(_, _, order)| size_of_record(&order));
        let lost = sizes.filter(Result::is_err).count() as u64;
        let doubt = if seen.is_whole() && lost == 0 {
            0
        } else {
            flag::MAYBE_BAD_BOOK
        };
        let clear = Tick {
            header: Header {
                source: seen.source,
                instrument: instrument.0,
                ts_event: wire::known_time(Event::NO_TIME, seen.ts_recv),
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
        for (side, price, order) in orders_of(book) {
            let Ok(size) = size_of_record(&order) else {
                continue;
            };
            let (tick, id) = last;
            wire::mbo(&tick, id, out);
            records += 1;
            let tick = Tick {
                price,
                size,
                action: b'A',
                side: codes::side(side.entry()),
                ..clear
            };
            last = (tick, order.id);
        }
        let (mut tick, id) = last;
        tick.flags |= flag::LAST;
        wire::mbo(&tick, id, out);
        (records, lost)
    }
}

/// Returns the orders of a book with their sides and prices: bids first, the best ones first.
fn orders_of(book: &Book) -> impl Iterator<Item = (Side, Price, Order)> {
    let levels = move |side: Side| book.depth(side).map(move |level| (side, level.price));
    let all = Side::BOTH.into_iter().flat_map(levels);
    all.flat_map(move |(side, price)| {
        let queue = book.queue(side, price);
        queue.map(move |order| (side, price, order))
    })
}

/// Returns the size of an order as a record has it.
fn size_of_record(order: &Order) -> Result<u32, NoRoom> {
    wire::unsigned("size", order.size.into())
}
