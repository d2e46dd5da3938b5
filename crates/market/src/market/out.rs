//! The output of a market: changes in sequence become books, and events with the plant's numbers.

use super::MarketStats;
use crate::book::{Books, Fault};
use crate::event::{Event, Flags, InstrumentId, Kind};
use crate::newest::Newest;
use crate::state;
use fanfare_feed::recovery::{Sink, State};

/// The output of changes in sequence.
#[derive(Debug)]
pub(super) struct Out {
    pub(super) books: Books,
    /// The number of the next event.
    pub(super) next: u64,
    pub(super) source: u16,
    /// The time of arrival of the current message.
    pub(super) ts_recv: u64,
    /// The instruments whose books had a fault in the current message, each with the number below
    /// which a message has a change that cannot be used; 0 if none has.
    pub(super) faulty: Vec<(InstrumentId, u64)>,
    /// Whether the changes of a message are being processed.
    pub(super) is_within: bool,
    /// The instruments whose books became complete in the current message, with the states that
    /// are passed on after its changes. At most one for each instrument of the message.
    pub(super) completed: Vec<(InstrumentId, State)>,
    /// The instrument whose snapshot is being applied, and the MDEntryTypes(269) of its statistics.
    pub(super) snapshotted: Option<(u32, u128)>,
    /// Whether messages that are missing may come late.
    pub(super) expects_late: bool,
    pub(super) newest: Newest,
    pub(super) stats: MarketStats,
}

/// [`Out`] with the receiver of events.
pub(super) struct To<'a, F> {
    pub(super) out: &'a mut Out,
    pub(super) send: &'a mut F,
}

impl Out {
    /// Notes that the book of an instrument is cleared at the end of the current message, once for
    /// all its faults. `end` is the number below which a message has a change that cannot be used.
    #[cold]
    pub(super) fn note_fault(&mut self, instrument: InstrumentId, end: u64) {
        let mut faulty = self.faulty.iter_mut();
        match faulty.find(|(own, _)| *own == instrument) {
            Some((_, known)) => *known = end.max(*known),
            None => self.faulty.push((instrument, end)),
        }
    }
}

impl<F: FnMut(&Event)> To<'_, F> {
    #[inline]
    fn emit(&mut self, event: &Event) {
        let event = Event {
            number: self.out.next,
            source: self.out.source,
            ..*event
        };
        self.out.next += 1;
        (self.send)(&event);
    }

    /// Passes on the state of an instrument.
    pub(super) fn emit_state(&mut self, instrument: InstrumentId, state: State) {
        let event = Event {
            instrument,
            ts_recv: self.out.ts_recv,
            flags: Flags::LAST,
            ..state::to_event(state)
        };
        self.emit_beside(&event);
    }

    /// Passes on an event that does not apply to the book. If the book had a fault in the current
    /// message, readers are not to read it here, but after the clear that follows.
    pub(super) fn emit_beside(&mut self, event: &Event) {
        let flags = match self.is_faulty(event.instrument) {
            true => event.flags.without(Flags::LAST),
            false => event.flags,
        };
        self.emit(&Event { flags, ..*event });
    }

    /// Ends a message whose last event does not apply to the book of its instrument. A book that
    /// waits for changes may have applied a part of a message, so only a complete one is checked.
    #[inline]
    pub(super) fn end_message(&mut self, instrument: InstrumentId, state: Option<State>) {
        let is_checked = state.is_some_and(state::has_book) && !self.is_faulty(instrument);
        if is_checked && self.out.books.end_message(instrument).is_err() {
            self.fault(instrument);
        }
    }

    /// Counts a fault of a book, which is cleared at the end of the current message.
    #[cold]
    fn fault(&mut self, instrument: InstrumentId) {
        self.out.stats.faults += 1;
        self.out.note_fault(instrument, 0);
    }

    /// Applies an event to the book of its instrument and passes it on, unless the book refuses it.
    #[inline]
    fn apply_to_book(&mut self, event: &Event) {
        match self.out.books.apply(event) {
            Ok(()) => self.emit(event),
            Err(fault) => self.refused(event, fault),
        }
    }

    /// Returns whether the book of an instrument had a fault in the current message.
    #[inline]
    pub(super) fn is_faulty(&self, instrument: InstrumentId) -> bool {
        let mut faulty = self.out.faulty.iter();
        faulty.any(|(own, _)| *own == instrument)
    }

    /// Returns whether a statistic is contained in the snapshot that is being applied to its
    /// instrument, which has no value of its type.
    fn is_beside_snapshot(&self, instrument: u32, event: &Event) -> bool {
        let snapshotted = self.out.snapshotted.filter(|(own, _)| *own == instrument);
        snapshotted.is_some_and(|(_, entries)| entries & bit(event.entry) == 0)
    }

    #[cold]
    fn refused(&mut self, event: &Event, fault: Fault) {
        self.fault(event.instrument);
        // These were found after the event, which is valid. For other faults the event was not
        // applied.
        if matches!(fault, Fault::Crossed | Fault::Disorder) {
            self.emit_beside(event);
        }
    }
}

impl<F: FnMut(&Event)> Sink<Event> for To<'_, F> {
    #[inline]
    fn apply(&mut self, _: u32, event: &Event) {
        if event.is_bare_number() {
            return;
        }
        if self.is_faulty(event.instrument) {
            // After a fault, no change applies to the book until the next snapshot arrives.
            match event.kind.is_of_book() {
                true => self.out.stats.left_out += 1,
                false => self.emit_beside(event),
            }
            return;
        }
        self.apply_to_book(event);
    }

    fn superseded(&mut self, instrument: u32, event: &Event) {
        match event.kind {
            Kind::Trade => self.emit_beside(event),
            _ if event.is_bare_number() => {}
            // Snapshots of many feeds have levels alone.
            Kind::Statistic if self.is_beside_snapshot(instrument, event) => {
                self.emit_beside(event);
            }
            _ => self.out.stats.left_out += 1,
        }
    }

    fn dropped(&mut self, instrument: u32, event: &Event) {
        self.superseded(instrument, event);
    }

    fn snapshot(&mut self, instrument: u32, events: &[Event]) {
        let statistics = events.iter().filter(|event| event.kind == Kind::Statistic);
        let entries = statistics.fold(0, |all, event| all | bit(event.entry));
        self.out.snapshotted = Some((instrument, entries));
        for event in events {
            self.apply(instrument, event);
        }
    }

    fn clear(&mut self, instrument: u32) {
        let event = Event {
            instrument: InstrumentId(instrument),
            ts_recv: self.out.ts_recv,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        self.apply_to_book(&event);
    }

    fn state(&mut self, instrument: u32, state: State) {
        let (instrument, has_book) = (InstrumentId(instrument), state::has_book(state));
        if has_book && self.is_faulty(instrument) {
            // Its book is cleared at the end of the message, and its next state passed on then.
            return;
        }
        if self.out.is_within {
            self.out.completed.retain(|(own, _)| *own != instrument);
            if has_book {
                // The book has a part of the message until its last change.
                self.out.completed.push((instrument, state));
                return;
            }
        }
        self.emit_state(instrument, state);
    }
}

/// The receiver of the changes that wait at the end of a feed. Books and states stay as they are.
pub(super) struct Waiting<'own, 'to, F>(pub(super) &'own mut To<'to, F>);

impl<F: FnMut(&Event)> Sink<Event> for Waiting<'_, '_, F> {
    fn apply(&mut self, _: u32, _: &Event) {}

    fn superseded(&mut self, instrument: u32, event: &Event) {
        // Nothing else of its message follows.
        let flags = event.flags.with(Flags::LAST);
        self.0.superseded(instrument, &Event { flags, ..*event });
    }

    fn dropped(&mut self, instrument: u32, event: &Event) {
        self.superseded(instrument, event);
    }

    fn snapshot(&mut self, _: u32, _: &[Event]) {}

    fn clear(&mut self, _: u32) {}

    fn state(&mut self, _: u32, _: State) {}
}

/// Returns the bit of an MDEntryType(269).
const fn bit(entry: u8) -> u128 {
    1 << (entry & 127)
}
