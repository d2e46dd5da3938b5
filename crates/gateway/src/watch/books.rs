//! Books of instruments, current and as of a moment in the past.

use super::error::NoBook;
use super::places::Places;
use super::{Watch, instruments, render};
use fanfare_history::moment::{Moment, utc};
use fanfare_history::{FeedInfo, Log};
use fanfare_market::Side;
use fanfare_market::book::BookKind;
use fanfare_market::event::{Event, InstrumentId, entry};
use fanfare_market::instruments::{Directory, IdSource, Lookup, SecurityId};
use fanfare_market::view::Seen;
use serde_json::{Map, Value, json};
use std::sync::Mutex;

/// The default and the greatest number of levels of a side.
const DEPTH: u64 = 10;
const DEEPEST: u64 = 1_000;
/// The most instruments of one symbol that are shown.
const MOST: usize = 64;

/// The selection of books.
#[derive(Debug, Clone, Default)]
pub(crate) struct WantedBook {
    /// Symbol(55), or SecurityID(48).
    pub(crate) symbol: String,
    /// SecurityID(48) of one of several instruments of the symbol.
    pub(crate) security_id: Option<String>,
    pub(crate) feed: Option<String>,
    pub(crate) depth: Option<u64>,
    /// The moment in the past, or now if absent.
    pub(crate) at: Option<String>,
}

/// The most queries about the past that run or are queued.
const LOOKING: usize = 4;

/// The queries about the past, of which one runs at a time.
pub(super) struct Past {
    one: Mutex<()>,
    places: Places,
}

impl Default for Past {
    fn default() -> Self {
        Self {
            one: Mutex::default(),
            places: Places::new(LOOKING),
        }
    }
}

impl Watch {
    /// Returns the books of all instruments of a symbol.
    ///
    /// # Errors
    /// Returns a [`NoBook`].
    pub(crate) fn books(&self, wanted: &WantedBook) -> Result<Value, NoBook> {
        let depth = wanted.depth.unwrap_or(DEPTH);
        if !(1..=DEEPEST).contains(&depth) {
            let why = format!("`depth` is {depth}: must be between 1 and {DEEPEST}");
            return Err(NoBook::Asked(why));
        }
        match &wanted.at {
            None => self.books_now(wanted, depth as usize),
            Some(at) => self.books_at(wanted, at, depth as usize),
        }
    }

    fn books_now(&self, wanted: &WantedBook, depth: usize) -> Result<Value, NoBook> {
        let market = self.caught_up()?;
        let found = find(market.directory(), &market.feeds, wanted)?;
        let books = found.into_iter().map(|instrument| {
            let mut object = instruments::row(&market, instrument);
            object.remove("event");
            let seen = market.view.get(instrument);
            let trades = seen.into_iter().flat_map(|seen| &seen.own.trades);
            let trades = trades.map(render::trade).collect();
            object.extend(book(seen, depth, trades));
            Value::Object(object)
        });
        Ok(json!({
            "number": market.number(),
            "time": render::time(market.time),
            "live": true,
            "books": books.collect::<Vec<_>>(),
        }))
    }

    fn books_at(&self, wanted: &WantedBook, at: &str, depth: usize) -> Result<Value, NoBook> {
        let log = self.0.log.as_ref();
        let log = log.ok_or(NoBook::Missing(
            "a past book needs a log: the gateway has no [history]",
        ))?;
        let moment: Moment = at.parse().map_err(NoBook::Asked)?;
        // Each query holds all books of that moment, so one runs at a time, and some may be queued.
        let place = self.0.past.places.take();
        let _place = place.ok_or(NoBook::Missing(
            "too many requests for past books at a time: try again",
        ))?;
        let _one = self.0.past.one.lock();
        let log = Log::open(&log.folder)?;
        let books = log.as_of(log.at(moment)?)?;
        let (directory, feeds) = (books.directory(), &books.run.feeds);
        let found = find(directory, feeds, wanted)?;
        let shown = found.into_iter().map(|instrument| {
            let seen = books.view.get(instrument);
            let known = directory.instrument(instrument);
            let status = seen.and_then(|seen| seen.status).map(|event| event.id);
            let status = status.or(known.map(|known| known.status.into()));
            let rpt_seq = seen.and_then(|seen| seen.book.as_ref());
            let rpt_seq = rpt_seq.map(|book| book.rpt_seq());
            let [state, lacks] = render::state(seen.map(|own| own.state));
            let mut object = render::names(instrument, directory, feeds);
            object.extend(render::object([
                state,
                lacks,
                ("rpt_seq", json!(rpt_seq.filter(|number| *number != 0))),
                ("updated", Value::Null),
                ("trading", json!(status.filter(|status| *status != 0))),
            ]));
            let trades = seen.into_iter().flat_map(|seen| seen.last.iter());
            let trades = trades.filter(|event| event.entry == entry::TRADE);
            let trades = trades.map(render::trade).collect();
            object.extend(book(seen, depth, trades));
            Value::Object(object)
        });
        Ok(json!({
            "number": books.number,
            "time": (books.time != 0).then(|| utc(books.time)),
            "live": false,
            "books": shown.collect::<Vec<_>>(),
        }))
    }
}

/// Formats both sides, trades and values.
fn book<T>(seen: Option<&Seen<T>>, depth: usize, trades: Vec<Value>) -> Map<String, Value> {
    let book = seen.and_then(|seen| seen.book.as_ref());
    let kind = book.map(|book| match book.kind() {
        BookKind::Levels => "levels",
        BookKind::Prices => "prices",
        BookKind::Orders => "orders",
    });
    let count = |side| book.map_or(0, |book| book.depth(side).len());
    let values = seen.into_iter().flat_map(|seen| seen.last.iter());
    let values = values.filter(|event: &&Event| event.entry != entry::TRADE);
    render::object([
        ("kind", json!(kind)),
        ("bids", render::levels(book, Side::Bid, depth)),
        ("offers", render::levels(book, Side::Offer, depth)),
        (
            "levels",
            json!({"bids": count(Side::Bid), "offers": count(Side::Offer)}),
        ),
        ("trades", trades.into()),
        ("values", values.map(render::statistic).collect()),
    ])
}

/// Returns the instruments of a symbol, or of an ID, which may be as they are, or as responses show
/// them.
fn find(
    directory: &Directory,
    feeds: &[FeedInfo],
    wanted: &WantedBook,
) -> Result<Vec<InstrumentId>, NoBook> {
    if wanted.symbol.is_empty() {
        return Err(NoBook::Asked("`symbol` is missing".to_owned()));
    }
    let is_of_feed = |instrument: &InstrumentId| {
        let feed = render::feed_of(feeds, *instrument);
        let wanted = wanted.feed.as_ref();
        wanted.is_none_or(|wanted| feed.is_some_and(|feed| feed.name == *wanted))
    };
    let is_of_id = |instrument: &InstrumentId| {
        let wanted = wanted.security_id.as_ref();
        wanted.is_none_or(|wanted| {
            let known = directory.instrument(*instrument);
            known.is_some_and(|known| render::is_id(known.definition.name.id, wanted))
        })
    };
    // One instrument's symbol may be another one's ID: what is not wanted hides nothing.
    let fits = |instrument: &InstrumentId| is_of_feed(instrument) && is_of_id(instrument);
    let ways: [fn(&Directory, &str) -> Vec<InstrumentId>; 3] = [of_symbol, of_id, of_any];
    let mut found = ways.into_iter().map(|way| {
        let found = way(directory, &wanted.symbol).into_iter();
        found.filter(fits).take(MOST).collect::<Vec<_>>()
    });
    let found = found.find(|found| !found.is_empty());
    found.ok_or_else(|| NoBook::Unknown(render::text(wanted.symbol.as_bytes())))
}

/// Returns the instruments with this symbol.
fn of_symbol(directory: &Directory, wanted: &str) -> Vec<InstrumentId> {
    let names = render::spellings(wanted);
    let found = names.flat_map(|name| directory.of_symbol(name.as_bytes()));
    found.collect()
}

/// Returns the instruments with this SecurityID(48) and no source.
fn of_id(directory: &Directory, wanted: &str) -> Vec<InstrumentId> {
    let number = wanted.parse().ok().map(SecurityId::Number);
    let number = number.into_iter();
    let mut found: Vec<_> = number
        .flat_map(|id| directory.of_id(id, IdSource::NONE))
        .collect();
    for name in render::spellings(wanted) {
        found.extend(directory.of_id(SecurityId::Text(name.as_bytes()), IdSource::NONE));
    }
    found
}

/// Returns the instruments with this SecurityID(48) of any source, or whose symbol, which need not
/// be UTF-8, is shown so.
fn of_any(directory: &Directory, wanted: &str) -> Vec<InstrumentId> {
    let is = |instrument: &InstrumentId| {
        let known = directory.instrument(*instrument);
        known.is_some_and(|known| {
            let name = known.definition.name;
            render::is_text(name.symbol, wanted) || render::is_id(name.id, wanted)
        })
    };
    let all = (0..directory.bound()).map(InstrumentId);
    all.filter(is).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::market::ring::EventRing;
    use crate::test_log::{feed, instrument, named};
    use crate::watch::{Page, WantedInstruments, Watched, WatchedMarket};
    use fanfare_engine::counters::Counters;
    use fanfare_engine::poll::Waker;
    use fanfare_engine::stop::Stop;
    use fanfare_feed::recovery::State;
    use fanfare_market::book::BookConfig;
    use fanfare_market::event::{Flags, Kind};
    use fanfare_market::instruments::{Definition, Name};
    use fanfare_market::{Price, state};

    fn directory_of(names: &[(&str, u64)]) -> Directory {
        let mut directory = Directory::new();
        for (number, (symbol, id)) in names.iter().enumerate() {
            let name = Name {
                symbol: symbol.as_bytes(),
                id: SecurityId::Number(*id),
                source: IdSource::NONE,
            };
            let definition = Definition::named(name);
            let known = instrument(number as u32, definition);
            directory.take(&known).unwrap();
        }
        directory
    }

    #[test]
    fn an_id_that_is_the_symbol_of_another_instrument_finds_its_own() {
        let directory = directory_of(&[("", 5), ("5", 9)]);
        let found = |id: Option<&str>| {
            let wanted = WantedBook {
                symbol: "5".to_owned(),
                security_id: id.map(str::to_owned),
                ..WantedBook::default()
            };
            find(&directory, &[], &wanted).unwrap()
        };
        assert_eq!(found(Some("5")), [InstrumentId(0)]);
        assert_eq!(found(Some("9")), [InstrumentId(1)]);
        assert_eq!(found(None), [InstrumentId(1)]);
    }

    #[test]
    fn a_name_is_found_as_it_is_and_as_it_is_shown() {
        let mut directory = Directory::new();
        let names: [&[u8]; 4] = [b"a\\b", b"c\x1b\n", b"d\xff", b"\\n"];
        for (number, symbol) in names.into_iter().enumerate() {
            let name = Name::of_symbol(symbol);
            let definition = Definition::named(name);
            let known = instrument(number as u32, definition);
            directory.take(&known).unwrap();
        }
        let ids = [r"x\y", "\u{202e}"].map(str::as_bytes);
        for (number, id) in (4..).zip(ids) {
            let name = Name {
                id: SecurityId::Text(id),
                ..Name::default()
            };
            let definition = Definition::named(name);
            directory.take(&instrument(number, definition)).unwrap();
        }
        for (symbol, number) in [
            (r"a\b", 0),
            (r"a\\b", 0),
            ("c\u{1b}\n", 1),
            (r"c\u{1b}\n", 1),
            (r"d\xff", 2),
            (r"\n", 3),
            (r"\\n", 3),
            (r"x\y", 4),
            (r"x\\y", 4),
            ("\u{202e}", 5),
            (r"\u{202e}", 5),
        ] {
            let wanted = WantedBook {
                symbol: symbol.to_owned(),
                ..WantedBook::default()
            };
            let found = find(&directory, &[], &wanted).unwrap();
            assert_eq!(found, [InstrumentId(number)], "{symbol:?}");
        }
        for symbol in [r"c\u{1B}\n", r"a\\\\b", r"d\u{fffd}", "d\u{fffd}"] {
            let wanted = WantedBook {
                symbol: symbol.to_owned(),
                ..WantedBook::default()
            };
            assert!(find(&directory, &[], &wanted).is_err(), "{symbol:?}");
        }
    }

    /// Returns a ring, and a view that has read nothing of it.
    fn unread() -> (EventRing, Watch) {
        let mut ring = EventRing::new(1 << 20, 1, Waker::detached().unwrap(), 1);
        let market = WatchedMarket {
            events: ring.reader(Waker::detached().unwrap()).unwrap(),
            feeds: vec![feed(BookConfig::by_price(4).unwrap())],
            next: ring.number(),
        };
        let watched = Watched {
            market: Some(market),
            ..Watched::default()
        };
        let (config, counters) = (Config::default(), Counters::new());
        let watch = Watch::new(&config, &counters, &Stop::new(), watched);
        (ring, watch)
    }

    /// Writes the sizes of a bid one after another, and that its book is live.
    fn put_bid(ring: &mut EventRing, sizes: std::ops::RangeInclusive<i64>) {
        let base = Event {
            source: 1,
            flags: Flags::LAST,
            ..Event::EMPTY
        };
        for size in sizes {
            ring.put(&mut [Event {
                kind: Kind::Level,
                entry: entry::BID,
                price: Price::from_units(5_000_000_000),
                size,
                ..base
            }]);
        }
        ring.put(&mut [Event {
            source: 1,
            flags: Flags::LAST,
            ..state::to_event(State::Live)
        }]);
    }

    #[test]
    fn a_query_is_about_all_that_came_before_it_although_nobody_has_read() {
        let (mut ring, watch) = unread();
        let of = |symbol: &str| WantedBook {
            symbol: symbol.to_owned(),
            ..WantedBook::default()
        };
        ring.put_bytes(&instrument(0, named("A")));
        for (sizes, number) in [(1..=5_000, 5_001), (5_001..=9_000, 9_002)] {
            let last = *sizes.end();
            put_bid(&mut ring, sizes);
            let found = watch.books(&of("A")).unwrap();
            assert_eq!(
                (&found["live"], &found["number"]),
                (&json!(true), &json!(number))
            );
            let book = &found["books"][0];
            assert_eq!(
                (&book["state"], &book["bids"][0]["size"]),
                (&json!("live"), &json!(last))
            );
        }
        ring.put_bytes(&instrument(1, named("B")));
        assert_eq!(watch.books(&of("B")).unwrap()["books"][0]["number"], 1);
        assert!(matches!(watch.books(&of("C")), Err(NoBook::Unknown(_))));
    }

    #[test]
    fn an_instrument_of_which_nothing_came_is_unheard_in_the_list_and_in_its_book() {
        let (mut ring, watch) = unread();
        ring.put_bytes(&instrument(0, named("A")));
        ring.put_bytes(&instrument(1, named("B")));
        put_bid(&mut ring, 1..=1);
        let page = Page::new(None, None).unwrap();
        for (state, symbols) in [
            ("live", &["A"] as &[_]),
            ("unheard", &["B"]),
            ("recovering", &[]),
        ] {
            let wanted = WantedInstruments {
                state: Some(state.to_owned()),
                ..WantedInstruments::default()
            };
            let found = watch.instruments(&wanted, &page).unwrap();
            let rows = found["instruments"].as_array().unwrap();
            let found: Vec<_> = rows
                .iter()
                .map(|row| (&row["symbol"], &row["state"]))
                .collect();
            let (symbols, state) = (symbols.iter().map(|symbol| json!(symbol)), json!(state));
            let symbols: Vec<_> = symbols.collect();
            let expected: Vec<_> = symbols.iter().map(|symbol| (symbol, &state)).collect();
            assert_eq!(found, expected);
        }
        let wanted = WantedBook {
            symbol: "B".to_owned(),
            ..WantedBook::default()
        };
        let found = watch.books(&wanted).unwrap();
        let book = &found["books"][0];
        assert_eq!(
            (&book["state"], &book["lacks"]),
            (&json!("unheard"), &Value::Null)
        );
    }

    #[test]
    fn the_list_has_all_instruments_that_came_before_the_query() {
        let (mut ring, watch) = unread();
        ring.put_bytes(&instrument(0, named("A")));
        put_bid(&mut ring, 1..=5_000);
        ring.put_bytes(&instrument(1, named("B")));
        let page = Page::new(None, None).unwrap();
        let found = watch.instruments(&WantedInstruments::default(), &page);
        let found = found.unwrap();
        assert_eq!(
            (&found["total"], &found["instruments"][0]["event"]),
            (&json!(2), &json!(5_001))
        );
    }
}
