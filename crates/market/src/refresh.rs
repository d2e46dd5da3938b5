//! Natural refresh: a book of numbered levels is complete again once the changes of the feed have
//! sent each of its levels anew.

use crate::event::{Action, Event, Flags, InstrumentId, Kind};
use crate::{Price, Side};
use std::collections::BTreeMap;

/// The most levels of a side that can be followed.
pub(crate) const MOST_LEVELS: u16 = 64;

/// A level received since the gap, or `None` if it was not.
type Known = Option<(Price, i64, u64)>;

/// The levels received of one instrument.
#[derive(Debug, Clone)]
struct Shadow {
    sides: [Vec<Known>; 2],
    /// The number of known levels, of both sides.
    known: usize,
    rpt_seq: u32,
}

/// The instruments that recover by natural refresh, each with the levels received since its gap.
/// Their number is bounded: instruments beyond the limit wait for a snapshot.
#[derive(Debug)]
pub(crate) struct Refresh {
    depth: usize,
    most: usize,
    shadows: BTreeMap<InstrumentId, Shadow>,
    /// The last snapshot that was assembled.
    snapshot: Vec<Event>,
}

impl Refresh {
    /// Creates a tracker of books of `depth` levels a side, at most `most` of them at a time.
    pub(crate) fn new(depth: u16, most: usize) -> Self {
        Self {
            depth: depth.clamp(1, MOST_LEVELS).into(),
            most,
            shadows: BTreeMap::new(),
            snapshot: Vec::new(),
        }
    }

    /// Stops following an instrument.
    pub(crate) fn forget(&mut self, instrument: InstrumentId) {
        self.shadows.remove(&instrument);
    }

    /// Stops following all instruments.
    pub(crate) fn clear(&mut self) {
        self.shadows.clear();
    }

    /// Processes a change of an instrument that recovers. Returns the snapshot of its book if this
    /// was the last change of its message and every level is known.
    pub(crate) fn take(&mut self, event: &Event) -> Option<&[Event]> {
        if event.rpt_seq == 0 {
            return None;
        }
        if !self.shadows.contains_key(&event.instrument) && self.shadows.len() >= self.most {
            return None;
        }
        let depth = self.depth;
        let shadow = self
            .shadows
            .entry(event.instrument)
            .or_insert_with(|| Shadow {
                sides: [vec![None; depth], vec![None; depth]],
                known: 0,
                rpt_seq: 0,
            });
        if event.rpt_seq != shadow.rpt_seq.wrapping_add(1) {
            // Known levels may have changed in the gap.
            shadow.forget();
        }
        shadow.rpt_seq = event.rpt_seq;
        if !shadow.apply(event, depth) {
            shadow.forget();
        }
        let is_whole = shadow.known == 2 * depth && event.flags.has(Flags::LAST);
        if !is_whole {
            return None;
        }
        let shadow = self.shadows.remove(&event.instrument)?;
        shadow.snapshot(event, &mut self.snapshot);
        Some(&self.snapshot)
    }
}

impl Shadow {
    fn forget(&mut self) {
        for level in self.sides.iter_mut().flatten() {
            *level = None;
        }
        self.known = 0;
    }

    /// Applies a change. Returns false if it is invalid for a book of this depth.
    fn apply(&mut self, event: &Event, depth: usize) -> bool {
        let (Kind::Level, Some(side)) = (event.kind, Side::of_entry(event.entry)) else {
            // Events like trades change no level, and clearing a book changes all of them.
            return event.kind != Kind::Clear;
        };
        let levels = &mut self.sides[side as usize];
        let Some(at) = usize::from(event.level)
            .checked_sub(1)
            .filter(|at| *at < depth)
        else {
            return false;
        };
        let level = Some((event.price, event.size, event.id));
        match event.action {
            Action::New => {
                levels.insert(at, level);
                levels.truncate(depth);
            }
            Action::Change | Action::Overlay => levels[at] = level,
            Action::Delete => drop(levels.remove(at)),
            Action::DeleteThru => drop(levels.drain(..=at)),
            Action::DeleteFrom => levels.truncate(at),
            Action::Fill => return false,
        }
        levels.resize(depth, None);
        self.known = self.sides.iter().flatten().flatten().count();
        true
    }

    /// Writes the snapshot as of this event, the last of its message.
    fn snapshot(&self, event: &Event, out: &mut Vec<Event>) {
        let part = Event {
            number: 0,
            kind: Kind::Clear,
            action: Action::New,
            entry: 0,
            level: 0,
            id: 0,
            price: Price::UNDEFINED,
            size: Event::NO_SIZE,
            flags: Flags::SNAPSHOT,
            ..*event
        };
        out.clear();
        out.push(part);
        for side in Side::BOTH {
            let known = self.sides[side as usize].iter().flatten();
            out.extend(known.zip(1..).map(|(&(price, size, id), level)| Event {
                kind: Kind::Level,
                entry: side.entry(),
                price,
                size,
                id,
                level,
                ..part
            }));
        }
        if let Some(last) = out.last_mut() {
            last.flags = last.flags.with(Flags::LAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Book, BookConfig};
    use fastrand::Rng;

    const DEPTH: u16 = 4;

    fn event(rng: &mut Rng, book: &Book, rpt_seq: u32) -> Event {
        let side = Side::BOTH[rng.usize(0..2)];
        let count = book.depth(side).len() as u16;
        let action = match rng.u8(0..10) {
            0..4 if count > 0 => Action::Change,
            4 if count > 0 => Action::Delete,
            _ => Action::New,
        };
        let most = if action == Action::New {
            (count + 1).min(DEPTH)
        } else {
            count
        };
        Event {
            kind: Kind::Level,
            entry: side.entry(),
            action,
            level: rng.u16(1..=most),
            // Prices do not matter here, so all are equal.
            price: Price::from_units(5),
            size: rng.i64(1..1_000),
            id: rng.u64(0..9),
            rpt_seq,
            flags: Flags::LAST,
            ..Event::EMPTY
        }
    }

    #[test]
    fn what_is_put_together_is_the_book() {
        let mut whole = 0;
        for seed in 0..300 {
            let mut rng = Rng::with_seed(seed);
            let config = BookConfig::by_level(DEPTH.into()).unwrap().may_cross(true);
            let (mut book, mut refresh) = (Book::new(&config), Refresh::new(DEPTH, 1));
            for rpt_seq in 1..400 {
                let event = event(&mut rng, &book, rpt_seq);
                book.apply(&event).unwrap();
                if rpt_seq < 50 || rng.u8(0..100) == 0 {
                    continue; // Lost.
                }
                let Some(snapshot) = refresh.take(&event) else {
                    continue;
                };
                let mut other = Book::new(&config);
                for event in snapshot {
                    other.apply(event).unwrap();
                }
                assert_eq!(other, book, "seed {seed}, RptSeq {rpt_seq}");
                whole += 1;
            }
        }
        assert!(whole > 1_000, "{whole}");
    }

    #[test]
    fn instruments_beyond_the_limit_are_left_to_snapshots() {
        let mut refresh = Refresh::new(1, 1);
        let change = |instrument, side: Side| Event {
            kind: Kind::Level,
            action: Action::Change,
            instrument: InstrumentId(instrument),
            entry: side.entry(),
            level: 1,
            price: Price::from_units(5),
            size: 1,
            flags: Flags::LAST,
            rpt_seq: 7 + side as u32,
            ..Event::EMPTY
        };
        assert!(refresh.take(&change(0, Side::Bid)).is_none());
        assert!(refresh.take(&change(1, Side::Bid)).is_none());
        assert!(refresh.take(&change(1, Side::Offer)).is_none());
        assert_eq!(
            refresh.take(&change(0, Side::Offer)).map(<[_]>::len),
            Some(3)
        );
    }
}
