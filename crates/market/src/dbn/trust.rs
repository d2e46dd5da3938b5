//! The completeness of a reader's book, as far as the events show it.

use crate::event::{Event, Flags, Kind};
use crate::state::code;

/// The state of an instrument's books.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trust {
    /// Whether its symbol was written.
    pub(super) is_named: bool,
    /// Whether it has ended, and no definition and no loss of events has followed.
    pub(super) is_closed: bool,
    /// The feed of the instrument, once an event has arrived.
    pub(super) source: Option<u16>,
    /// Whether the last record of its book was not the last one of a message.
    pub(super) is_open: bool,
    /// Whether its book was cleared before the kind of its book, and thus of its records, was
    /// known.
    pub(super) owes_clear: bool,
    /// Whether the book is complete, or `None` before its first event.
    is_whole: Option<bool>,
    /// Whether events of [`Kind::State`], which take precedence, report the state.
    is_told: bool,
    /// Whether a record was not written, so that the following ones lack their base until the book
    /// is cleared.
    has_lost: bool,
    /// RptSeq(83) of the last event, or 0 if it had none.
    last: u32,
    /// The number of gaps of the channel.
    gaps: u32,
}

impl Trust {
    /// Returns the state of an instrument without events so far, of which `has_lost` says whether
    /// some were lost.
    pub(super) fn new(has_lost: bool) -> Self {
        Self {
            has_lost,
            ..Self::default()
        }
    }

    /// Records an event. `gaps` is the number of gaps of the channel so far.
    pub(super) fn see(&mut self, event: &Event, gaps: u32) {
        match event.kind {
            Kind::State => {
                self.is_told = true;
                self.is_whole = Some(event.id == code::LIVE);
            }
            Kind::Definition | Kind::Status => {}
            _ if self.is_told => {}
            _ => self.count(event, gaps),
        }
        if event.kind == Kind::Clear {
            self.has_lost = false;
        }
    }

    /// Detects losses by RptSeq(83), and by gaps of the channel if the instrument has no numbers.
    fn count(&mut self, event: &Event, gaps: u32) {
        let is_next = match (self.is_whole, event.rpt_seq) {
            (None, number) => number == 1,
            (Some(_), 0) => gaps == self.gaps,
            (Some(_), number) => number == self.last.wrapping_add(1),
        };
        let is_snapshot = event.flags.has(Flags::SNAPSHOT);
        if event.kind == Kind::Clear {
            self.is_whole = Some(true);
        } else if !is_snapshot {
            self.is_whole = Some(is_next && self.is_whole != Some(false));
        }
        if event.kind == Kind::Clear || !is_snapshot {
            (self.last, self.gaps) = (event.rpt_seq, gaps);
        }
    }

    /// Records that a record of the book was not written.
    pub(super) const fn lose(&mut self) {
        self.has_lost = true;
    }

    /// Records that records of the book were not written, if it has had no event so far.
    pub(super) fn lose_unseen(&mut self) {
        self.has_lost |= self.is_whole.is_none();
    }

    /// Records that the book begins again, as in a stream without an event so far.
    pub(super) const fn restart(&mut self) {
        (self.has_lost, self.is_told, self.is_whole) = (false, false, None);
    }

    /// Returns whether the reader's book may be wrong.
    pub(super) fn is_doubtful(&self) -> bool {
        self.has_lost || self.is_whole != Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state;
    use fanfare_feed::recovery::{Lack, State};

    fn seen(trust: &mut Trust, kind: Kind, rpt_seq: u32, flags: Flags, gaps: u32) -> bool {
        let event = Event {
            kind,
            rpt_seq,
            flags,
            ..Event::EMPTY
        };
        trust.see(&event, gaps);
        trust.is_doubtful()
    }

    #[test]
    fn a_hole_is_doubtful_until_a_snapshot_comes() {
        let mut trust = Trust::default();
        let none = Flags::NONE;
        assert!(!seen(&mut trust, Kind::Level, 1, none, 0));
        assert!(!seen(&mut trust, Kind::Trade, 2, none, 5), "numbers say it");
        assert!(seen(&mut trust, Kind::Level, 4, none, 5));
        assert!(seen(&mut trust, Kind::Level, 5, none, 5));
        assert!(!seen(&mut trust, Kind::Clear, 9, Flags::SNAPSHOT, 5));
        assert!(!seen(&mut trust, Kind::Level, 9, Flags::SNAPSHOT, 5));
        assert!(!seen(&mut trust, Kind::Level, 10, none, 5));
        assert!(seen(&mut trust, Kind::Level, 10, none, 5), "again");
    }

    #[test]
    fn without_numbers_gaps_of_the_channel_count() {
        let mut trust = Trust::default();
        let none = Flags::NONE;
        assert!(seen(&mut trust, Kind::Level, 0, none, 0), "no beginning");
        assert!(!seen(&mut trust, Kind::Clear, 0, none, 0));
        assert!(!seen(&mut trust, Kind::Level, 0, none, 0));
        assert!(seen(&mut trust, Kind::Level, 0, none, 1));
        assert!(seen(&mut trust, Kind::Level, 0, none, 1));
        assert!(!seen(&mut trust, Kind::Clear, 0, none, 1));
        trust.lose();
        assert!(trust.is_doubtful());
        assert!(!seen(&mut trust, Kind::Clear, 0, none, 1));
    }

    #[test]
    fn a_loss_hides_books_until_they_begin_with_a_clear() {
        let none = Flags::NONE;
        for rpt_seq in [0, 1, 2] {
            // The first number is no beginning: a snapshot may have contained it.
            let mut trust = Trust::new(true);
            assert!(seen(&mut trust, Kind::Definition, 0, none, 0));
            assert!(seen(&mut trust, Kind::Trade, rpt_seq, none, 0));
            trust.see(&state::to_event(State::Live), 0);
            assert!(trust.is_doubtful());
            assert!(!seen(&mut trust, Kind::Clear, 0, none, 0));
            assert!(!seen(&mut trust, Kind::Level, 1, none, 0));
        }
        let (mut begun, mut new) = (Trust::default(), Trust::default());
        assert!(!seen(&mut begun, Kind::Level, 1, none, 0));
        for trust in [&mut begun, &mut new] {
            trust.lose_unseen();
        }
        assert!(!seen(&mut begun, Kind::Level, 2, none, 0));
        assert!(seen(&mut new, Kind::Level, 1, none, 0));
        new.restart();
        assert!(!seen(&mut new, Kind::Level, 1, none, 0));
    }

    #[test]
    fn a_snapshot_after_a_restart_is_whole_before_its_state() {
        let snapshot = Flags::SNAPSHOT;
        let (mut again, mut new) = (Trust::default(), Trust::default());
        again.see(&state::to_event(State::Recovering(Lack::Snapshot)), 0);
        again.restart();
        for trust in [&mut again, &mut new] {
            assert!(!seen(trust, Kind::Clear, 9, snapshot, 0));
            assert!(!seen(trust, Kind::Level, 9, snapshot, 0));
            trust.see(&state::to_event(State::Live), 0);
            assert!(!seen(trust, Kind::Level, 10, Flags::NONE, 0));
        }
    }

    #[test]
    fn states_know_better() {
        let mut trust = Trust::default();
        trust.see(&state::to_event(State::Recovering(Lack::Snapshot)), 0);
        assert!(seen(&mut trust, Kind::Clear, 1, Flags::SNAPSHOT, 0));
        trust.see(&state::to_event(State::Live), 0);
        assert!(!seen(&mut trust, Kind::Level, 77, Flags::NONE, 3));
        trust.see(&state::to_event(State::Stale), 0);
        assert!(trust.is_doubtful());
    }
}
