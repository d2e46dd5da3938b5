//! Subscriptions of one instrument that are sent the same: what is encoded, is encoded once for all
//! of them.

use super::entry_types::EntryTypes;
use super::ladder::Ladder;
use super::view::Seen;
use fanfare_market::book::Level;
use fanfare_market::event::entry;
use fanfare_market::{Action, Event, InstrumentId, Kind, Side};

/// What a subscription asks for of each instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Spec {
    /// MarketDepth(264): levels of a side, 0 for all.
    pub(crate) depth: u16,
    /// MDEntryTypes(269).
    pub(crate) entries: EntryTypes,
    /// AggregatedBook(266)=N: orders instead of levels.
    pub(crate) by_order: bool,
    /// MDUpdateType(265)=0: pictures alone.
    pub(crate) pictures: bool,
    /// Milliseconds between two updates; 0: each change.
    pub(crate) interval: u32,
    /// Updates from one checksum of the book to the next; 0: none has one.
    pub(crate) checksum_every: u32,
}

/// A subscription's part in a class: one instrument of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The session, by its place in the host.
    pub(crate) session: u32,
    /// The subscription among those of the session, and the instrument among those of the
    /// subscription.
    pub(crate) subscription: u32,
    pub(crate) entry: u32,
    /// The place of the session's version.
    pub(crate) version: u8,
    /// Whether a picture has to come first.
    pub(crate) is_behind: bool,
    /// Whether the session has it among those that wait for a picture.
    pub(crate) is_queued: bool,
    /// Whether what it misses is merged, not announced.
    pub(crate) conflates: bool,
    /// RptSeq(83) of the first entry that found no room; 0: none.
    pub(crate) missed: u32,
}

/// Trades and statistics that a class holds between two updates at most.
const MOST_HELD: usize = 1024;

/// Last values of an instrument, for which there is room from its first subscription.
pub(crate) const FEW: usize = 8;

/// Trades and statistics of a class between two updates, for which there is room from the start.
const HELD: usize = 32;

/// The subscriptions that are sent the same of an instrument.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) instrument: InstrumentId,
    pub(crate) spec: Spec,
    pub(crate) links: Vec<Link>,
    /// RptSeq(83) of the last entry.
    pub(crate) rpt_seq: u32,
    ladder: Ladder,
    /// Trades, statistics and orders of updates to come.
    held: Vec<Event>,
    /// Those that found no room there.
    left_out: u64,
    /// Updates since the last one with a checksum.
    updates: u32,
    /// Whether it waits for its next update.
    pub(crate) is_due: bool,
    /// Whether the book was cleared since the last update, which no entry of an order says, or an
    /// order found no room.
    pub(crate) is_cleared: bool,
}

/// An update of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Update {
    /// RptSeq(83) of the first entry. The last entry has [`Class::rpt_seq`].
    pub(crate) first: u32,
    /// The checksum goes with it.
    pub(crate) has_checksum: bool,
    /// Trades and statistics that found no room between two updates.
    pub(crate) left_out: u64,
}

impl Class {
    pub(crate) fn new(instrument: InstrumentId, spec: Spec) -> Self {
        Self {
            instrument,
            spec,
            links: Vec::new(),
            rpt_seq: 0,
            ladder: Ladder::new(match spec.by_order {
                true => 1,
                false => spec.depth,
            }),
            held: Vec::with_capacity(HELD),
            left_out: 0,
            updates: 0,
            is_due: false,
            is_cleared: false,
        }
    }

    /// Takes an event that is an entry of its own: a trade, a statistic, a change of an order.
    pub(crate) fn hold(&mut self, event: &Event, seen: &Seen) {
        let is_wanted = self.spec.entries.has(event.entry);
        if event.kind == Kind::Order {
            if self.spec.by_order && is_wanted {
                self.push(&of_order(event, seen));
            }
        } else if is_wanted {
            self.push(event);
        }
    }

    fn push(&mut self, event: &Event) {
        match self.held.len() < MOST_HELD {
            true => self.held.push(*event),
            // A book of orders that lacks one is wrong: a picture takes the place of all.
            false if event.kind == Kind::Order => self.is_cleared = true,
            false => self.left_out += 1,
        }
    }

    /// Takes the book as it is, for a picture that everybody gets. Its numbers go on; trades that
    /// are held follow behind the picture.
    pub(crate) fn restart(
        &mut self,
        seen: &Seen,
        last: &Event,
        room: &mut Vec<Level>,
        out: &mut Vec<Event>,
    ) {
        let mut trades = std::mem::take(&mut self.held);
        trades.retain(|event| event.kind != Kind::Order);
        self.rpt_seq = self.rpt_seq.wrapping_add(1);
        let (number, updates) = (self.rpt_seq, self.updates);
        self.update(seen, last, room, out);
        (self.rpt_seq, self.updates, self.held) = (number, updates, trades);
    }

    /// Writes to `out` the entries that have come since the last update, numbered; `None` if there
    /// are none. `last` is the event behind which the book is read.
    pub(crate) fn update(
        &mut self,
        seen: &Seen,
        last: &Event,
        room: &mut Vec<Level>,
        out: &mut Vec<Event>,
    ) -> Option<Update> {
        out.clear();
        out.append(&mut self.held);
        if !self.spec.by_order {
            let from = out.len();
            for side in Side::BOTH {
                if self.spec.entries.has(side.entry()) {
                    let (book, depth) = (seen.book.as_ref(), self.spec.depth);
                    self.ladder.update(side, book, depth, room, out);
                }
            }
            for event in out.iter_mut().skip(from) {
                event.ts_event = last.ts_event;
            }
        }
        if out.is_empty() {
            return None;
        }
        let first = self.rpt_seq.wrapping_add(1);
        for event in &mut *out {
            self.rpt_seq = self.rpt_seq.wrapping_add(1);
            event.rpt_seq = self.rpt_seq;
            event.instrument = self.instrument;
        }
        self.updates += 1;
        let has_checksum =
            self.spec.checksum_every != 0 && self.updates >= self.spec.checksum_every;
        if has_checksum {
            self.updates = 0;
        }
        Some(Update {
            first,
            has_checksum,
            left_out: std::mem::take(&mut self.left_out),
        })
    }

    /// Writes to `out` a picture: a Clear with the number of the last entry, then what the class
    /// was sent so far, with the last trade and statistics.
    pub(crate) fn picture(&self, seen: &Seen, out: &mut Vec<Event>) {
        out.clear();
        out.push(Event {
            instrument: self.instrument,
            rpt_seq: self.rpt_seq,
            ..Event::EMPTY
        });
        let from = out.len();
        for side in Side::BOTH {
            if !self.spec.entries.has(side.entry()) {
                continue;
            }
            match self.spec.by_order {
                true => orders(seen, side, out),
                false => self.ladder.picture(side, out),
            }
        }
        let values = seen.last.iter();
        let wanted = values.filter(|event| self.spec.entries.has(event.entry));
        out.extend(wanted);
        for event in out.iter_mut().skip(from) {
            event.instrument = self.instrument;
            // FIX.5.0SP2 has it in each entry of a picture.
            event.rpt_seq = self.rpt_seq;
        }
    }

    /// The levels of a side as they were sent so far.
    pub(crate) fn levels(&self, side: Side) -> &[Level] {
        self.ladder.side(side)
    }
}

/// The orders of a side as entries of a picture, the best first.
fn orders(seen: &Seen, side: Side, out: &mut Vec<Event>) {
    let Some(book) = &seen.book else {
        return;
    };
    for level in book.depth(side) {
        out.extend(book.queue(side, level.price).map(|order| Event {
            kind: Kind::Order,
            entry: side.entry(),
            price: level.price,
            size: order.size,
            id: order.id,
            ..Event::EMPTY
        }));
    }
}

/// What became of an order, in the terms of MDUpdateAction(279): a fill is a change, or a deletion
/// if nothing is left.
fn of_order(event: &Event, seen: &Seen) -> Event {
    let order = seen.book.as_ref().and_then(|book| book.order(event.id));
    match order {
        Some((side, price, size)) => Event {
            action: match event.action {
                Action::New => Action::New,
                _ => Action::Change,
            },
            entry: side.entry(),
            price,
            size,
            ..*event
        },
        None => Event {
            action: Action::Delete,
            entry: match event.entry {
                entry::OFFER => entry::OFFER,
                _ => entry::BID,
            },
            ..*event
        },
    }
}
