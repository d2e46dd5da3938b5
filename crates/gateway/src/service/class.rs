//! Classes: subscriptions of one instrument that receive the same messages, which are encoded once
//! for all of them.

use super::ladder::Ladder;
use super::spec::Spec;
use super::view::Seen;
use fanfare_market::book::Level;
use fanfare_market::event::entry;
use fanfare_market::{Action, Event, InstrumentId, Kind, Side};

/// A subscription's part in a class: one instrument of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Link {
    /// The session, by its index in the host.
    pub(crate) session: u32,
    /// The index of the subscription in the session, and of the instrument in the subscription.
    pub(crate) subscription: u32,
    pub(crate) entry: u32,
    /// The index of the session's version.
    pub(crate) version: u8,
    /// Whether a snapshot must be sent first.
    pub(crate) is_behind: bool,
    /// Whether the session has queued it for a snapshot.
    pub(crate) is_queued: bool,
    /// Whether a snapshot was sent before.
    pub(crate) is_served: bool,
    /// Whether the trading status is to be sent in front of the first snapshot.
    pub(crate) owes_status: bool,
    /// RptSeq(83) of the first entry that did not fit into the queue, or 0 if none.
    pub(crate) missed: u32,
}

impl Link {
    /// Returns the instrument of the subscription.
    pub(crate) const fn part(&self) -> Part {
        Part {
            subscription: self.subscription,
            entry: self.entry,
        }
    }
}

/// An instrument of a subscription.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) subscription: u32,
    pub(crate) entry: u32,
}

/// The most trades and statistics that a class holds between two updates.
const MOST_HELD: usize = 1024;

/// The initial capacity for last values of an instrument, from its first subscription.
pub(crate) const FEW: usize = 8;

/// The initial capacity for trades and statistics of a class between two updates.
const HELD: usize = 32;

/// The subscriptions that receive the same messages of an instrument.
#[derive(Debug)]
pub(crate) struct Class {
    pub(crate) instrument: InstrumentId,
    pub(crate) spec: Spec,
    pub(crate) links: Vec<Link>,
    /// RptSeq(83) of the last entry.
    pub(crate) rpt_seq: u32,
    ladder: Ladder,
    /// The trades, statistics and orders of the next update.
    held: Vec<Event>,
    /// The number of events that exceeded its capacity.
    left_out: u64,
    /// The updates since the last one with a checksum.
    updates: u32,
    /// Whether its next update is scheduled.
    pub(crate) is_due: bool,
    /// Whether the book was cleared since the last update, which no entry of an order expresses, or
    /// is shown after a loss, the instrument has another name, or a class of orders exceeded its
    /// capacity. It holds no orders until a snapshot has them.
    pub(crate) is_cleared: bool,
}

/// An update of a class.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Update {
    /// RptSeq(83) of the first entry. The last entry has [`Class::rpt_seq`].
    pub(crate) first: u32,
    /// Whether it carries the checksum.
    pub(crate) has_checksum: bool,
    /// Trades and statistics that exceeded the capacity between two updates.
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
            held: Vec::with_capacity(if spec.may_hold() { HELD } else { 0 }),
            left_out: 0,
            updates: 0,
            is_due: false,
            is_cleared: false,
        }
    }

    /// Holds an event that is an entry of its own: a trade, a statistic, a change of an order.
    pub(crate) fn hold(&mut self, event: &Event, seen: &Seen) {
        let is_wanted = self.spec.entries.has(event.entry);
        if event.kind == Kind::Order {
            if self.spec.by_order && is_wanted && !self.is_cleared {
                self.push(&of_order(event, seen));
            }
        } else if is_wanted {
            self.push(event);
        }
    }

    fn push(&mut self, event: &Event) {
        match self.held.len() < MOST_HELD {
            true => self.held.push(*event),
            false => self.exceed(event),
        }
    }

    /// Handles an event that exceeds the capacity. A book of orders that lacks one is wrong, so a
    /// snapshot replaces all of its changes, which leaves room for trades and statistics.
    #[cold]
    fn exceed(&mut self, event: &Event) {
        self.clear_orders();
        match event.kind {
            Kind::Order => {}
            _ if self.held.len() < MOST_HELD => self.held.push(*event),
            _ => self.left_out += 1,
        }
    }

    /// Drops the changes of orders that it holds, which a snapshot replaces.
    pub(crate) fn clear_orders(&mut self) {
        if self.spec.by_order && !self.is_cleared {
            self.is_cleared = true;
            self.held.retain(|event| event.kind != Kind::Order);
        }
    }

    /// Replaces the next update by a snapshot for all subscribers, as the update would continue no
    /// book that they have.
    pub(crate) fn begin_again(&mut self) {
        self.clear_orders();
        self.is_cleared = true;
    }

    /// Adopts the current book, for a snapshot to all subscribers. The numbers continue, and trades
    /// and statistics that are held remain for the next update.
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
        let (number, updates, left_out) = (self.rpt_seq, self.updates, self.left_out);
        self.update(seen, last, room, out);
        (self.rpt_seq, self.updates, self.held) = (number, updates, trades);
        (self.left_out, self.is_cleared) = (left_out, false);
    }

    /// Writes to `out` the entries since the last update, numbered. Returns `None` if there are
    /// none. `last` is the event after which the book is read.
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

    /// Writes a snapshot to `out`: a Clear with the number of the last entry, the state sent to the
    /// class so far, and the last trade and statistics but those that the next update changes.
    /// `trades` replace the last one of their kind.
    pub(crate) fn snapshot(&self, seen: &Seen, trades: &[Event], out: &mut Vec<Event>) {
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
                false => self.ladder.snapshot(side, out),
            }
        }
        // The next update has what is held. One that is a snapshot has all values.
        let held: &[Event] = if self.spec.snapshots { &[] } else { &self.held };
        let is_other = |kind: u8| held.iter().chain(trades).all(|own| own.entry != kind);
        let is_wanted = |kind: u8| self.spec.entries.has(kind) && is_other(kind);
        let values = seen.last.iter();
        out.extend(values.filter(|event| is_wanted(event.entry)));
        out.extend_from_slice(trades);
        for event in out.iter_mut().skip(from) {
            event.instrument = self.instrument;
            // FIX.5.0SP2 has RptSeq(83) in each entry of a snapshot.
            event.rpt_seq = self.rpt_seq;
        }
    }

    /// Returns the levels of a side as they were last sent.
    pub(crate) fn levels(&self, side: Side) -> &[Level] {
        self.ladder.side(side)
    }
}

/// Writes to `out` the trades that `events` leave, in order. A change or cancellation of another
/// trade is ignored: a snapshot does not express what happens to an earlier one.
pub(crate) fn trades_after<'e>(events: impl Iterator<Item = &'e Event>, out: &mut Vec<Event>) {
    out.clear();
    for event in events.filter(|event| event.kind == Kind::Trade) {
        let is_last = || out.iter().rposition(|own| event.is_about(own));
        match event.action {
            Action::Delete | Action::DeleteThru | Action::DeleteFrom => {
                if let Some(place) = is_last() {
                    out.remove(place);
                }
            }
            Action::Change => {
                if let Some(own) = is_last().and_then(|place| out.get_mut(place)) {
                    *own = *event;
                }
            }
            _ => out.push(*event),
        }
    }
}

/// Writes the orders of a side as entries of a snapshot, the best first.
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

/// Translates an event of an order to the terms of MDUpdateAction(279): a fill is a change, or a
/// deletion if nothing is left.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn class(entries: &[u8], by_order: bool, snapshots: bool) -> Class {
        let spec = Spec {
            depth: if by_order { 0 } else { 1 },
            entries: entries.iter().copied().collect(),
            by_order,
            snapshots,
            interval: 0,
            checksum_every: 0,
        };
        Class::new(InstrumentId(0), spec)
    }

    #[test]
    fn a_class_of_levels_alone_reserves_no_memory_for_other_events() {
        let reserved = |entries: &[u8], by_order| class(entries, by_order, false).held.capacity();
        assert_eq!((reserved(b"", false), reserved(b"01", false)), (0, 0));
        assert!(reserved(b"012", false) > 0 && reserved(b"01", true) > 0);
    }

    #[test]
    fn a_snapshot_has_the_last_trade_where_updates_are_snapshots_too() {
        let trade = Event {
            kind: Kind::Trade,
            entry: entry::TRADE,
            ..Event::EMPTY
        };
        for (snapshots, expected) in [(false, 0), (true, 1)] {
            let (mut class, mut seen) = (class(b"2", false, snapshots), Seen::default());
            seen.last.take(&trade);
            class.hold(&trade, &seen);
            let mut out = Vec::new();
            class.snapshot(&seen, &[], &mut out);
            let trades = out.iter().filter(|event| event.kind == Kind::Trade);
            assert_eq!(trades.count(), expected, "{snapshots}");
        }
    }
}
