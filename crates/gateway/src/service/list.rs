//! Lists of instruments: SecurityList(y), and a series of SecurityDefinitions(d).

use super::bodies::{Bodies, BodyError, BodyId, Writer};
use super::feeds::{Feeds, OfFeed};
use super::messages::put_feed;
use super::patterns::Pattern;
use super::request::NONE_MATCHES;
use crate::users::grant::Grant;
use fanfare_fix::codec::FieldWriter;
use fanfare_market::instruments::{Directory, Instrument, Lookup};
use fanfare_market::to_fix::{Request, WriteError};
use fanfare_market::{InstrumentId, Price};
use std::collections::VecDeque;

/// A day, in nanoseconds.
const DAY: u64 = 86_400_000_000_000;

/// The most instruments of a SecurityList(y).
const PAGE: usize = 50;

/// SecurityRequestResult(560).
pub(crate) const UNSUPPORTED: u8 = b'1';
const NONE_FOUND: u8 = b'2';
const UNAVAILABLE: u8 = b'4';

/// The most symbols and instruments that are examined in a turn, for all lists together, unless
/// one symbol has more instruments. While the feeds bring messages, fewer are examined.
pub(crate) const LOOKED_AT: usize = 4096;

/// A list that is sent in pages.
#[derive(Debug)]
pub(crate) struct List {
    /// SecurityReqID(320).
    pub(crate) request: Box<[u8]>,
    /// Whether it consists of SecurityDefinitions(d), one for each instrument, instead of
    /// SecurityLists(y).
    pub(crate) definitions: bool,
    pub(crate) filter: Filter,
    /// The number of its instruments, if known.
    pub(crate) total: Option<u64>,
    /// The number of its instruments so far, while they are counted.
    counted: Option<u64>,
    /// The symbol that was examined last.
    last: Option<Vec<u8>>,
    /// The next instruments.
    held: VecDeque<InstrumentId>,
    /// Whether no symbol is left to examine.
    has_ended: bool,
    /// The number of messages so far.
    pages: u64,
    /// The number of instruments in them.
    pub(crate) sent: usize,
}

/// The criteria for the instruments of a list.
#[derive(Debug, Default, Clone)]
pub(crate) struct Filter {
    /// Symbol(55), or a prefix with `*`.
    pub(crate) symbol: Option<Pattern>,
    /// SecurityType(167).
    pub(crate) security_type: Option<Box<[u8]>>,
    /// CFICode(461), or a prefix of it.
    pub(crate) cfi: Option<Box<[u8]>>,
    /// MarketID(1301) or SecurityExchange(207), MarketSegmentID(1300).
    pub(crate) market: Option<Box<[u8]>>,
    pub(crate) segment: Option<Box<[u8]>>,
    /// UnderlyingSymbol(311): the product of a derivative.
    pub(crate) underlying: Option<Box<[u8]>>,
    /// SecurityDesc(107).
    pub(crate) description: Option<Box<[u8]>>,
    /// Currency(15).
    pub(crate) currency: Option<Box<[u8]>>,
    /// MaturityMonthYear(200), as the feed sends it.
    pub(crate) maturity_month: Option<Box<[u8]>>,
    /// The beginning of MaturityDate(541), in nanoseconds since 1970-01-01 UTC.
    pub(crate) maturity: Option<u64>,
    /// StrikePrice(202).
    pub(crate) strike: Option<Price>,
    pub(crate) feed: OfFeed,
}

impl Filter {
    /// Returns whether every instrument matches.
    pub(crate) fn is_open(&self) -> bool {
        let texts = [
            &self.security_type,
            &self.cfi,
            &self.market,
            &self.segment,
            &self.underlying,
            &self.description,
            &self.currency,
            &self.maturity_month,
        ];
        self.symbol.is_none()
            && self.feed.is_all()
            && self.maturity.is_none()
            && self.strike.is_none()
            && texts.iter().all(|text| text.is_none())
    }

    /// Returns whether an instrument matches.
    pub(crate) fn fits(&self, instrument: &Instrument<'_>) -> bool {
        let of = &instrument.definition;
        let is =
            |own: &Option<Box<[u8]>>, value: &[u8]| own.as_ref().is_none_or(|own| **own == *value);
        let symbol = self.symbol.as_ref();
        symbol.is_none_or(|own| own.fits(of.name.symbol))
            && self.feed.has(instrument.instrument)
            && is(&self.security_type, of.security_type)
            && self.cfi.as_ref().is_none_or(|own| of.cfi.starts_with(own))
            && is(&self.market, of.market)
            && is(&self.segment, of.segment)
            && is(&self.underlying, of.underlying)
            && is(&self.description, of.description)
            && is(&self.currency, of.currency)
            && is(&self.maturity_month, of.maturity_month)
            && self.strike.is_none_or(|own| own == of.strike)
            && self
                .maturity
                .is_none_or(|day| (day..day + DAY).contains(&of.maturity))
    }
}

/// A page of a list.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) instruments: Vec<InstrumentId>,
    pub(crate) is_last: bool,
}

impl List {
    pub(crate) fn new(request: &[u8], definitions: bool, filter: Filter) -> Self {
        Self {
            request: request.into(),
            definitions,
            filter,
            total: None,
            counted: None,
            last: None,
            held: VecDeque::new(),
            has_ended: false,
            pages: 0,
            sent: 0,
        }
    }

    /// Creates a list of those of the `found` instruments that fit the filter, and that the user
    /// may see.
    pub(crate) fn of(
        request: &[u8],
        definitions: bool,
        filter: Filter,
        mut found: Vec<InstrumentId>,
        directory: &Directory,
        grant: &Grant,
    ) -> Self {
        let fits = |known: Instrument<'_>| filter.fits(&known);
        found.retain(|id| {
            grant.sees(directory.instrument(*id)) && directory.instrument(*id).is_some_and(fits)
        });
        Self {
            total: Some(found.len() as u64),
            held: found.into(),
            has_ended: true,
            ..Self::new(request, definitions, filter)
        }
    }

    /// Counts the instruments before the first page.
    pub(crate) const fn count_first(&mut self) {
        self.counted = Some(0);
    }

    /// Looks up the next instruments, without those that the user may not see. Returns `None` if
    /// there may be more, which the next turn looks up: `looks` is the number of symbols and
    /// instruments that may be examined in this one. Only the last page may be empty, and only if
    /// it is also the first, or if the user may no longer see its instruments. Allocates.
    pub(crate) fn page(
        &mut self,
        directory: &Directory,
        grant: &Grant,
        looks: &mut usize,
    ) -> Option<Page> {
        let most = if self.definitions { 1 } else { PAGE };
        loop {
            if self.has_ended || self.held.len() > most {
                if self.drop_hidden(most + 1, directory, grant) {
                    continue;
                }
                return Some(self.take(most));
            }
            if *looks == 0 {
                return None;
            }
            match (self.next_symbol(directory, grant, looks), self.counted) {
                (Some(found), Some(count)) => self.counted = Some(count + found.len() as u64),
                (Some(found), None) => self.held.extend(found),
                // The pages begin with the first symbol again.
                (None, Some(count)) => {
                    (self.total, self.counted, self.last) = (Some(count), None, None);
                }
                (None, None) => self.has_ended = true,
            }
        }
    }

    /// Drops those of the next `count` instruments that the user may no longer see. Returns whether
    /// there were any.
    fn drop_hidden(&mut self, count: usize, directory: &Directory, grant: &Grant) -> bool {
        let before = self.held.len();
        let next: Vec<_> = self.held.drain(..count.min(before)).collect();
        let seen = next.into_iter().rev();
        for id in seen.filter(|id| grant.sees(directory.instrument(*id))) {
            self.held.push_front(id);
        }
        self.held.len() < before
    }

    fn take(&mut self, most: usize) -> Page {
        let count = self.held.len().min(most);
        let instruments = self.held.drain(..count).collect();
        Page {
            instruments,
            is_last: self.has_ended && self.held.is_empty(),
        }
    }

    /// Takes back the second half of a page that is too long for a message. Returns whether it had
    /// more than one instrument.
    fn halve(&mut self, page: &mut Page) -> bool {
        if page.instruments.len() < 2 {
            return false;
        }
        let half = page.instruments.split_off(page.instruments.len() / 2);
        half.iter().rev().for_each(|id| self.held.push_front(*id));
        page.is_last = false;
        true
    }

    /// Looks up the instruments of the next symbol that belong to the list. Subtracts from `looks`
    /// what it examines.
    fn next_symbol(
        &mut self,
        directory: &Directory,
        grant: &Grant,
        looks: &mut usize,
    ) -> Option<Vec<InstrumentId>> {
        *looks = looks.saturating_sub(1);
        let prefix: &[u8] = match &self.filter.symbol {
            Some(Pattern::Symbol(text) | Pattern::Prefix(text)) => text,
            None => b"",
        };
        let (symbol, found) = directory.next_symbol(self.last.as_deref(), prefix)?;
        let fits = |id: &InstrumentId| {
            *looks = looks.saturating_sub(1);
            let known = directory.instrument(*id);
            known.is_some_and(|known| self.filter.fits(&known))
        };
        let found = match grant.may_see(symbol) {
            true => found.filter(fits).collect(),
            false => Vec::new(),
        };
        let last = self.last.get_or_insert_default();
        last.clear();
        last.extend_from_slice(symbol);
        Some(found)
    }

    /// Encodes the next message, of as many instruments as fit. Returns it, if it can be encoded,
    /// and whether it is the last, or `None` if more instruments must be looked up.
    pub(crate) fn encode(
        &mut self,
        writer: &Writer,
        bodies: &mut Bodies,
        grant: &Grant,
        directory: &Directory,
        feeds: &Feeds,
        looks: &mut usize,
    ) -> Option<(Option<BodyId>, bool)> {
        let mut page = self.page(directory, grant, looks)?;
        self.count();
        let msg_type: &'static [u8] = if self.definitions { b"d" } else { b"y" };
        let mut put = |list: &Self, page: Result<&Page, u8>| {
            bodies.put(msg_type, (0, 0), |out| match page {
                Ok(page) => list.write(writer, directory, feeds, page, out),
                Err(why) => {
                    list.write_none(why, out);
                    Ok(())
                }
            })
        };
        let body = loop {
            let is_empty = page.instruments.is_empty();
            // Instruments may have been added or hidden since the first page.
            if page.is_last
                && let Some(total) = &mut self.total
            {
                *total = (self.sent + page.instruments.len()) as u64;
            }
            let body = put(self, if is_empty { Err(NONE_FOUND) } else { Ok(&page) });
            if body != Err(BodyError::TooLong) || !self.halve(&mut page) {
                break body;
            }
        };
        if body.is_ok() {
            self.sent += page.instruments.len();
        }
        // An instrument that no message can hold ends the list.
        let is_last = page.is_last || body.is_err();
        let body = body.or_else(|_| put(self, Err(UNAVAILABLE)));
        Some((body.ok(), is_last))
    }

    /// Writes the message that ends a list without an instrument, with the reason.
    pub(crate) fn write_none(&self, why: u8, out: &mut FieldWriter<'_>) {
        out.field(320, &self.request).u64(322, self.pages);
        if !self.definitions {
            out.char(560, why);
            return;
        }
        // SecurityResponseType(323): the request is rejected. FIX.4.2 requires 393.
        out.u64(323, 5).u64(393, 0);
        let text = match why {
            NONE_FOUND => NONE_MATCHES,
            UNSUPPORTED => "a criterion of the request is not supported",
            _ => "an instrument does not fit into a message",
        };
        out.str(58, text);
    }

    /// Writes a page: the body of SecurityList(y), or of the SecurityDefinition(d) of its
    /// instrument.
    pub(crate) fn write(
        &self,
        writer: &Writer,
        directory: &Directory,
        feeds: &Feeds,
        page: &Page,
        out: &mut FieldWriter<'_>,
    ) -> Result<(), WriteError> {
        let response = self.pages.to_string();
        let request = Request {
            id: &self.request,
            response: response.as_bytes(),
            total: self.total,
            is_last: page.is_last,
        };
        let to_fix = &writer.to_fix;
        if let (true, Some(only)) = (self.definitions, page.instruments.first()) {
            put_feed(feeds.name(directory, *only), out);
            to_fix.definition(directory, &request, *only, out)?;
            return Ok(());
        }
        let (all, text) = (&page.instruments, |id| feeds.text(directory, id));
        to_fix
            .list_with(directory, &request, all, text, out)
            .map(drop)
    }

    /// Counts a message before it is written. The count is its SecurityResponseID(322).
    pub(crate) const fn count(&mut self) {
        self.pages += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::super::bodies::Writers;
    use super::*;
    use crate::test_log::{instrument, named};
    use fanfare_market::instruments::{Definition, Name, SecurityId};

    /// A venue that names its instruments by SecurityID(48) alone.
    fn without_symbols(count: u32, description: &[u8]) -> Directory {
        directory(count, description, |_| String::new())
    }

    /// Returns instruments with these symbols.
    fn directory(count: u32, description: &[u8], symbol: impl Fn(u32) -> String) -> Directory {
        let mut directory = Directory::new();
        for number in 0..count {
            let symbol = symbol(number);
            let definition = Definition {
                name: Name {
                    symbol: symbol.as_bytes(),
                    id: SecurityId::Number(number.into()),
                    ..Name::default()
                },
                description,
                ..Definition::default()
            };
            let known = instrument(number, definition);
            assert!(directory.take(&known).is_some());
        }
        directory
    }

    /// Returns the messages of a list, of at most `most` bytes each, with `|` for SOH.
    fn list(definitions: bool, directory: &Directory, most: usize) -> Vec<String> {
        let mut writers = Writers::new();
        let version = crate::fanout::versions::COUNT - 1;
        writers.open(version);
        let writer = writers.get(version).unwrap();
        let mut bodies = Bodies::new(most);
        let mut list = List::new(b"r", definitions, Filter::default());
        let mut messages = Vec::new();
        loop {
            let grant = Grant::everything();
            let mut looks = LOOKED_AT;
            let feeds = Feeds::default();
            let encoded = list.encode(writer, &mut bodies, &grant, directory, &feeds, &mut looks);
            let Some((body, is_last)) = encoded else {
                continue;
            };
            let (_, body) = bodies.get(body.unwrap()).unwrap();
            let text = String::from_utf8_lossy(body.fields()).replace('\x01', "|");
            assert!(text.len() <= most, "{}", text.len());
            messages.push(text);
            if is_last {
                return messages;
            }
        }
    }

    fn count(messages: &[String]) -> Vec<usize> {
        let ids = messages.iter().map(|text| text.matches("|48=").count());
        ids.collect()
    }

    #[test]
    fn pages_divide_the_instruments_of_a_symbol() {
        let directory = without_symbols(120, b"");
        let messages = list(false, &directory, 1 << 16);
        assert_eq!(count(&messages), [50, 50, 20]);
        assert_eq!(count(&list(true, &directory, 1 << 16)).len(), 120);
        let last = messages.iter().filter(|text| text.contains("|893=Y|"));
        assert_eq!(last.count(), 1);
        assert!(messages[2].contains("|893=Y|"));
        let none = list(false, &Directory::new(), 1 << 16);
        assert_eq!(none, ["320=r|322=1|560=2|"]);
    }

    #[test]
    fn pages_are_no_longer_than_messages() {
        let directory = without_symbols(120, &[b'd'; 1000]);
        let messages = list(false, &directory, 1 << 14);
        assert!(
            count(&messages)
                .iter()
                .all(|count| (1..=15).contains(count))
        );
        assert_eq!(count(&messages).iter().sum::<usize>(), 120);
        for number in 0..120 {
            let field = format!("|48={number}|");
            assert!(messages.iter().any(|text| text.contains(&field)), "{field}");
        }
        assert!(messages.last().unwrap().contains("|893=Y|"));
    }

    #[test]
    fn a_turn_examines_a_limited_number_of_symbols() {
        let directory = directory(10_000, b"", |number| format!("S{number}"));
        let filter = Filter {
            security_type: Some((*b"NONE").into()),
            ..Filter::default()
        };
        let mut list = List::new(b"r", false, filter);
        list.count_first();
        let (grant, mut turns) = (Grant::everything(), 1);
        let page = loop {
            let mut looks = LOOKED_AT;
            if let Some(page) = list.page(&directory, &grant, &mut looks) {
                break page;
            }
            assert_eq!(looks, 0);
            assert_eq!(list.page(&directory, &grant, &mut looks), None);
            turns += 1;
        };
        assert!(page.is_last && page.instruments.is_empty());
        assert_eq!(list.total, Some(0));
        // The symbols and their instruments, for the total and for the pages.
        assert_eq!(turns, 40_000 / LOOKED_AT + 1);
    }

    #[test]
    fn the_total_is_the_number_of_instruments_on_all_pages() {
        let directory = directory(120, b"", |number| format!("{}{number}", number % 2));
        let filter = Filter {
            symbol: Some(Pattern::parse(b"1*")),
            ..Filter::default()
        };
        let mut list = List::new(b"r", false, filter);
        list.count_first();
        let (grant, mut looks) = (Grant::everything(), LOOKED_AT);
        let mut page = || list.page(&directory, &grant, &mut looks).unwrap();
        let pages = [page(), page()];
        assert_eq!(pages.map(|page| page.instruments.len()), [50, 10]);
        assert_eq!(list.total, Some(60));
    }

    #[test]
    fn the_last_page_states_how_many_instruments_there_were() {
        let mut directory = without_symbols(60, b"");
        let mut writers = Writers::new();
        let version = crate::fanout::versions::COUNT - 1;
        writers.open(version);
        let (writer, feeds) = (writers.get(version).unwrap(), Feeds::default());
        let (grant, mut bodies) = (Grant::everything(), Bodies::new(1 << 16));
        let mut list = List::new(b"r", false, Filter::default());
        list.total = Some(60);
        let mut page = |directory: &Directory| {
            let mut looks = LOOKED_AT;
            let page = list.encode(writer, &mut bodies, &grant, directory, &feeds, &mut looks);
            let (_, body) = bodies.get(page.unwrap().0.unwrap()).unwrap();
            String::from_utf8_lossy(body.fields()).replace('\x01', "|")
        };
        let first = page(&directory);
        assert!(first.contains("|393=60|893=N|146=50|"), "{first}");
        let definition = named("NEW");
        directory.take(&instrument(60, definition)).unwrap();
        let last = page(&directory);
        assert!(last.contains("|393=61|893=Y|146=11|"), "{last}");
    }

    #[test]
    fn each_criterion_selects() {
        let definition = Definition {
            description: b"text",
            currency: b"USD",
            maturity_month: b"202612",
            // 2026-12-15, 13:00.
            maturity: 1_797_339_600_000_000_000,
            strike: Price::from_units(5_000_000_000),
            ..named("S")
        };
        let mut directory = Directory::new();
        directory.take(&instrument(0, definition)).unwrap();
        let known = directory.instrument(InstrumentId(0)).unwrap();
        let text = |text: &str| Some(Box::<[u8]>::from(text.as_bytes()));
        let day = Some(1_797_292_800_000_000_000);
        let none = Filter::default;
        #[rustfmt::skip]
        let filters = [
            (Filter { description: text("text"), ..none() }, true),
            (Filter { description: text("tex"), ..none() }, false),
            (Filter { currency: text("USD"), ..none() }, true),
            (Filter { currency: text("EUR"), ..none() }, false),
            (Filter { maturity_month: text("202612"), ..none() }, true),
            (Filter { maturity_month: text("209901"), ..none() }, false),
            (Filter { maturity: day, ..none() }, true),
            (Filter { maturity: day.map(|day| day + DAY), ..none() }, false),
            (Filter { strike: Some(Price::from_units(5_000_000_000)), ..none() }, true),
            (Filter { strike: Some(Price::from_units(5)), ..none() }, false),
        ];
        for (filter, expected) in filters {
            assert!(!filter.is_open());
            assert_eq!(filter.fits(&known), expected, "{filter:?}");
            let found = vec![InstrumentId(0)];
            let total = |grant: &Grant| {
                let (filter, found) = (filter.clone(), found.clone());
                List::of(b"r", false, filter, found, &directory, grant).total
            };
            assert_eq!(total(&Grant::everything()), Some(expected.into()));
            assert_eq!(total(&Grant::nothing()), Some(0), "it may not be seen");
        }
    }

    #[test]
    fn instruments_that_the_user_may_no_longer_see_are_left_out() {
        let directory = without_symbols(120, b"");
        let mut list = List::new(b"r", false, Filter::default());
        let mut looks = LOOKED_AT;
        let page = list.page(&directory, &Grant::everything(), &mut looks);
        assert_eq!(page.unwrap().instruments.len(), 50);
        let rest = list.page(&directory, &Grant::nothing(), &mut looks);
        let none = Page {
            instruments: Vec::new(),
            is_last: true,
        };
        assert_eq!(rest, Some(none));
    }

    #[test]
    fn an_instrument_that_no_message_holds_ends_the_list_with_the_reason() {
        let directory = without_symbols(3, &[b'd'; 1000]);
        assert_eq!(list(false, &directory, 500), ["320=r|322=1|560=4|"]);
        let refused = list(true, &directory, 500);
        let text = "320=r|322=1|323=5|393=0|58=an instrument does not fit into a message|";
        assert_eq!(refused, [text]);
    }
}
