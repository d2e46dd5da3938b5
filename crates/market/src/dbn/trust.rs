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
    /// Records an event. `gaps` is the number of gaps of the channel so far.
    pub(super) fn see(&mut self, event: &Event, gaps: u32) {
        // Of an instrument that begins here, nothing was lost.
        let is_first = self.is_whole.is_none()
            && event.rpt_seq == 1
            && !event.flags.has(Flags::SNAPSHOT)
            && !matches!(event.kind, Kind::State | Kind::Definition | Kind::Status);
        match event.kind {
            Kind::State => {
                self.is_told = true;
                self.is_whole = Some(event.id == code::LIVE);
            }
            Kind::Definition | Kind::Status => {}
            _ if self.is_told => {}
            _ => self.count(event, gaps),
        }
        if event.kind == Kind::Clear || is_first {
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
        let is_picture = event.flags.has(Flags::SNAPSHOT);
        if event.kind == Kind::Clear {
            self.is_whole = Some(true);
        } else if !is_picture {
            self.is_whole = Some(is_next && self.is_whole != Some(false));
        }
        if event.kind == Kind::Clear || !is_picture {
            (self.last, self.gaps) = (event.rpt_seq, gaps);
        }
    }

    /// Records that a record of the book was not written.
    pub(super) const fn lose(&mut self) {
        self.has_lost = true;
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
    fn a_hole_is_doubtful_until_a_picture_comes() {
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
    fn a_loss_before_the_first_number_hides_nothing() {
        let none = Flags::NONE;
        let firsts = [(1, none), (2, none), (0, none), (1, Flags::SNAPSHOT)];
        let doubts = firsts.map(|(rpt_seq, flags)| {
            let mut trust = Trust::default();
            assert!(seen(&mut trust, Kind::Definition, 0, none, 0));
            trust.lose();
            seen(&mut trust, Kind::Level, rpt_seq, flags, 0)
        });
        assert_eq!(doubts, [false, true, true, true]);
        let mut trust = Trust::default();
        assert!(!seen(&mut trust, Kind::Level, 1, none, 0));
        trust.lose();
        assert!(seen(&mut trust, Kind::Level, 2, none, 0));
        assert!(seen(&mut trust, Kind::Level, 1, none, 0), "not the first");
    }

    #[test]
    fn states_know_better() {
        let mut trust = Trust::default();
        trust.see(&state::to_event(State::Recovering(Lack::Picture)), 0);
        assert!(seen(&mut trust, Kind::Clear, 1, Flags::SNAPSHOT, 0));
        trust.see(&state::to_event(State::Live), 0);
        assert!(!seen(&mut trust, Kind::Level, 77, Flags::NONE, 3));
        trust.see(&state::to_event(State::Stale), 0);
        assert!(trust.is_doubtful());
    }
}
