//! Books of instruments, current and as of a moment in the past.

use super::error::{NO_MARKET, NoBook};
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
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The queries about the past, of which one runs at a time.
#[derive(Default)]
pub(super) struct Past {
    one: Mutex<()>,
    there: AtomicUsize,
}

/// The most queries that run or are queued.
const LOOKING: usize = 4;

/// A place in the queue, which is released when dropped.
struct Queue<'a>(&'a Past);

impl<'a> Queue<'a> {
    fn join(past: &'a Past) -> Result<Self, NoBook> {
        let place = Self(past);
        match past.there.fetch_add(1, Ordering::Relaxed) < LOOKING {
            true => Ok(place),
            false => Err(NoBook::Missing(
                "too many requests for past books at a time: try again",
            )),
        }
    }
}

impl Drop for Queue<'_> {
    fn drop(&mut self) {
        self.0.there.fetch_sub(1, Ordering::Relaxed);
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
        let market = self.0.market();
        let market = market.ok_or(NO_MARKET)?;
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
        let _place = Queue::join(&self.0.past)?;
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
            let [state, lacks] = render::state(seen.map_or_else(render::unknown, |own| own.state));
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

/// Returns the instruments of a symbol, or of an ID.
fn find(
    directory: &Directory,
    feeds: &[FeedInfo],
    wanted: &WantedBook,
) -> Result<Vec<InstrumentId>, NoBook> {
    let name = wanted.symbol.as_bytes();
    let is_of_feed = |instrument: &InstrumentId| {
        let feed = render::feed_of(feeds, *instrument);
        let wanted = wanted.feed.as_ref();
        wanted.is_none_or(|wanted| feed.is_some_and(|feed| feed.name == *wanted))
    };
    let is_of_id = |instrument: &InstrumentId| {
        let wanted = wanted.security_id.as_ref();
        wanted.is_none_or(|wanted| {
            let known = directory.instrument(*instrument);
            known.is_some_and(|known| render::id_text(known.definition.name.id) == *wanted)
        })
    };
    // One instrument's symbol may be another one's ID: what is not wanted hides nothing.
    let fits = |instrument: &InstrumentId| is_of_feed(instrument) && is_of_id(instrument);
    let mut found: Vec<_> = match name.is_empty() {
        true => return Err(NoBook::Asked("`symbol` is missing".to_owned())),
        false => directory.of_symbol(name).filter(fits).collect(),
    };
    if found.is_empty() {
        let number = wanted.symbol.parse().map(SecurityId::Number);
        let ids = [Some(SecurityId::Text(name)), number.ok()];
        let bound = directory.bound();
        let has = |instrument: &InstrumentId| {
            let known = directory.instrument(*instrument);
            known.is_some_and(|known| ids.contains(&Some(known.definition.name.id)))
        };
        let of_id = ids.into_iter().flatten();
        found = of_id
            .flat_map(|id| directory.of_id(id, IdSource::NONE))
            .filter(fits)
            .collect();
        if found.is_empty() {
            found = (0..bound)
                .map(InstrumentId)
                .filter(has)
                .filter(fits)
                .take(MOST)
                .collect();
        }
    }
    found.truncate(MOST);
    match found.is_empty() {
        true => Err(NoBook::Unknown(render::text(name))),
        false => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_log::instrument;
    use fanfare_market::instruments::{Definition, Name};

    fn directory_of(names: &[(&str, u64)]) -> Directory {
        let mut directory = Directory::new();
        for (number, (symbol, id)) in names.iter().enumerate() {
            let name = Name {
                symbol: symbol.as_bytes(),
                id: SecurityId::Number(*id),
                source: IdSource::NONE,
            };
            let definition = Definition {
                name,
                ..Definition::default()
            };
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
}
