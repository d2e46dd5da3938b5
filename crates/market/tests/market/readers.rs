//! Readers of the events of a market: what they know of a book after they lost some.

use super::{RIU3, first, level, market, snapshot};
use fanfare_feed::recovery::{Lack, Numbering, State};
use fanfare_market::event::entry;
use fanfare_market::{Action, BookConfig, Event, Kind, Market, Side, View};

#[test]
fn a_reader_that_shows_live_books_alone_never_shows_a_part_of_a_message() {
    let mut market = market(Numbering::Instrument);
    let mut view: View = View::new(vec![BookConfig::by_level(5).unwrap(); 7]);
    let mut shown = Vec::new();
    let mut send = |event: &Event| {
        view.apply(event);
        let seen = view.get(RIU3).unwrap();
        if event.kind == Kind::State && seen.has_snapshot() {
            let book = seen.book.as_ref().unwrap();
            shown.push(Side::BOTH.map(|side| book.best(side).map(|best| best.price.units())));
        }
    };
    let begins = [
        first(level(1, entry::BID, 1, 70)),
        level(2, entry::OFFER, 1, 80),
    ];
    market.changes(0, 1, &begins, &mut send);
    market.gap(0, 2..3, &mut send);
    let deleted = Event {
        action: Action::Delete,
        ..first(level(3, entry::BID, 1, 70))
    };
    let moved = [deleted, level(4, entry::BID, 1, 71)];
    market.changes(0, 3, &moved, &mut send);
    assert_eq!(shown, [[Some(70), Some(80)], [Some(71), Some(80)]]);
}

/// Returns whether the reader may show the instrument, and whether its book is the market's.
fn knows(view: &View, market: &Market) -> (bool, bool) {
    let seen = view.get(RIU3).unwrap();
    let has_book = seen.book.as_ref() == market.book(RIU3);
    (seen.has_snapshot(), has_book)
}

#[test]
fn a_reader_that_lost_events_before_the_first_change_knows_the_book() {
    for is_open in [true, false] {
        let [mut market, mut other] = [Numbering::Instrument, Numbering::Channel].map(market);
        let mut view: View = View::new(vec![BookConfig::by_level(5).unwrap(); 7]);
        if is_open {
            view.open(RIU3);
        }
        view.lose_all();
        for market in [&mut market, &mut other] {
            // Nothing of it has arrived.
            market.show(1, RIU3, &mut |event| panic!("{event:?}"));
        }
        market.changes(0, 1, &[level(1, entry::BID, 1, 60)], &mut |event| {
            view.apply(event);
        });
        assert_eq!(knows(&view, &market), (true, true));
        // Without numbers of its own, only a snapshot of the feed shows its book.
        view.lose_all();
        other.changes(0, 1, &[level(0, entry::BID, 1, 60)], &mut |event| {
            view.apply(event);
        });
        assert!(!knows(&view, &other).0);
    }
}

#[test]
fn a_reader_that_lost_the_beginning_of_a_book_does_not_show_the_rest_of_it() {
    let mut market = market(Numbering::Instrument);
    let mut view: View = View::new(vec![BookConfig::by_level(5).unwrap(); 7]);
    market.changes(0, 1, &[level(1, entry::BID, 1, 60)], &mut |_| {});
    view.lose_all();
    market.changes(0, 2, &[level(2, entry::BID, 2, 59)], &mut |event| {
        view.apply(event);
    });
    // Silent lines are heard again, and nothing else comes.
    for is_silent in [true, false] {
        market.silence(is_silent, &mut |event| view.apply(event));
        assert_eq!(knows(&view, &market), (false, false));
        let state = view.get(RIU3).unwrap().state;
        assert_eq!(state, State::Recovering(Lack::Snapshot));
    }
    market.show(1, RIU3, &mut |event| view.apply(event));
    assert_eq!(knows(&view, &market), (true, true));
}

#[test]
fn a_reader_that_lost_events_is_shown_books_that_are_not_live() {
    let mut market = market(Numbering::Instrument);
    let mut view: View = View::new(vec![BookConfig::by_level(5).unwrap(); 7]);
    market.snapshot((0, 0), Some(50), &snapshot(8, 65), &mut |event| {
        view.apply(event);
    });
    market.changes(0, 51, &[level(9, entry::OFFER, 1, 90)], &mut |event| {
        view.apply(event);
    });
    assert_eq!(knows(&view, &market), (true, true));
    // Silent lines are heard again, and nothing else comes.
    market.silence(true, &mut |event| view.apply(event));
    view.lose_all();
    assert_eq!(knows(&view, &market), (false, false));
    market.show(1, RIU3, &mut |event| view.apply(event));
    assert_eq!(knows(&view, &market), (true, true));
    market.silence(false, &mut |event| view.apply(event));
    assert_eq!(knows(&view, &market), (true, true));
    // A missing change comes late.
    market.changes(0, 53, &[level(11, entry::BID, 1, 67)], &mut |event| {
        view.apply(event);
    });
    view.lose_all();
    market.show(1, RIU3, &mut |event| view.apply(event));
    assert_eq!(knows(&view, &market), (false, true));
    market.changes(0, 52, &[level(10, entry::BID, 1, 66)], &mut |event| {
        view.apply(event);
    });
    assert_eq!(knows(&view, &market), (true, true));
    market.close(RIU3, &mut |event| view.apply(event));
    view.lose_all();
    market.show(1, RIU3, &mut |event| view.apply(event));
    assert_eq!(knows(&view, &market), (true, true));
}
