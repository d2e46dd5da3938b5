//! The packets that came in part, and what of them was applied.

use crate::event::{Event, Kind};
use std::collections::VecDeque;

/// Most packets that came in part and of which it is known what was applied.
const MOST: usize = 16;

/// The packets that came in part. When they come again, their trades would be passed on twice, and
/// their changes would be applied twice without numbers of their own.
#[derive(Debug)]
pub(super) struct Parts {
    all: VecDeque<Part>,
    /// The number below which missing packets that `all` lacks stay missing, because some of their
    /// messages may have been applied.
    closed_below: u64,
    /// The trades of the last packet so far, if they are kept.
    trades: Vec<Event>,
    keeps_trades: bool,
}

/// A packet that came in part.
#[derive(Debug)]
struct Part {
    sequence: u64,
    /// The number of its messages that were applied.
    len: usize,
    /// Its trades that were passed on, if they are kept.
    trades: Vec<Event>,
}

impl Parts {
    pub(super) fn new() -> Self {
        Self {
            all: VecDeque::with_capacity(MOST),
            closed_below: 0,
            trades: Vec::new(),
            keeps_trades: false,
        }
    }

    /// Forgets all packets, as the channel begins again.
    pub(super) fn clear(&mut self) {
        self.all.clear();
        self.closed_below = 0;
    }

    /// Keeps the trades of packets from now on, for [`Self::rest_of`].
    pub(super) const fn keep_trades(&mut self) {
        self.keeps_trades = true;
    }

    /// Begins a packet.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.trades.clear();
    }

    /// Records the events of the next message of the last packet.
    #[inline]
    pub(super) fn take(&mut self, events: &[Event]) {
        if self.keeps_trades {
            let trades = events.iter().filter(|event| event.kind == Kind::Trade);
            self.trades.extend(trades);
        }
    }

    /// Notes that the last packet is not whole, and how many of its messages were applied.
    /// `is_missing` is whether a packet is missing.
    #[cold]
    pub(super) fn note(&mut self, sequence: u64, len: usize, is_missing: impl Fn(u64) -> bool) {
        if let Some(part) = self.all.iter_mut().find(|part| part.sequence == sequence) {
            part.len = part.len.max(len);
            if self.trades.len() > part.trades.len() {
                part.trades.clone_from(&self.trades);
            }
            return;
        }
        if self.all.len() >= MOST {
            self.all.retain(|part| is_missing(part.sequence));
        }
        if self.all.len() >= MOST
            && let Some(gone) = self.all.pop_front()
        {
            self.closed_below = self.closed_below.max(gone.sequence + 1);
        }
        self.all.push_back(Part {
            sequence,
            len,
            trades: self.trades.clone(),
        });
    }

    /// Returns whether it is known which messages of a missing packet were applied.
    pub(super) fn knows(&self, sequence: u64) -> bool {
        sequence >= self.closed_below || self.part(sequence).is_some()
    }

    /// Returns whether the message of this index was applied when its packet came in part.
    pub(super) fn is_applied(&self, sequence: u64, index: usize) -> bool {
        self.part(sequence).is_some_and(|part| index < part.len)
    }

    fn part(&self, sequence: u64) -> Option<&Part> {
        self.all.iter().find(|part| part.sequence == sequence)
    }

    /// Returns the events of a packet in another form, which may divide it otherwise, without the
    /// trades that were passed on when it came in part; `None` if it did not come in part. Counts
    /// the others as passed on.
    pub(super) fn rest_of(&mut self, sequence: u64, events: &[Event]) -> Option<Vec<Event>> {
        let part = self.all.iter_mut().find(|part| part.sequence == sequence)?;
        let mut passed = part.trades.clone();
        let mut rest = Vec::with_capacity(events.len());
        for event in events {
            match passed.iter().position(|own| is_same_trade(own, event)) {
                Some(place) => _ = passed.swap_remove(place),
                None => rest.push(*event),
            }
        }
        let new = rest.iter().filter(|event| event.kind == Kind::Trade);
        part.trades.extend(new);
        Some(rest)
    }
}

/// Returns whether two events are the same trade in two forms, whose IDs and times may differ.
fn is_same_trade(a: &Event, b: &Event) -> bool {
    let key = |event: &Event| (event.kind, event.instrument, event.price, event.size);
    // One of the forms may lack the number.
    let is_numbered = a.rpt_seq != 0 && b.rpt_seq != 0;
    b.kind == Kind::Trade && key(a) == key(b) && (!is_numbered || a.rpt_seq == b.rpt_seq)
}
