//! Lists of instruments: SecurityList(y), and a series of SecurityDefinitions(d).

use super::bodies::Writer;
use super::patterns::Pattern;
use crate::users::grant::Grant;
use fanfare_fix::codec::FieldWriter;
use fanfare_market::InstrumentId;
use fanfare_market::instruments::{Directory, Instrument, Lookup};
use fanfare_market::to_fix::{Request, WriteError};

/// The most instruments of a SecurityList(y).
const PAGE: usize = 50;

/// The most symbols that are examined for one message. Others are examined in the session's next
/// turn.
const LOOKED_AT: usize = 4096;

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
    /// The symbol that was examined last.
    last: Option<Box<[u8]>>,
    /// The instruments of the next message.
    held: Vec<InstrumentId>,
    /// The number of messages so far.
    pages: u64,
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
        ];
        self.symbol.is_none() && texts.iter().all(|text| text.is_none())
    }

    fn fits(&self, instrument: &Instrument<'_>) -> bool {
        let of = &instrument.definition;
        let is =
            |own: &Option<Box<[u8]>>, value: &[u8]| own.as_ref().is_none_or(|own| **own == *value);
        let symbol = self.symbol.as_ref();
        symbol.is_none_or(|own| own.fits(of.name.symbol))
            && is(&self.security_type, of.security_type)
            && self.cfi.as_ref().is_none_or(|own| of.cfi.starts_with(own))
            && is(&self.market, of.market)
            && is(&self.segment, of.segment)
            && is(&self.underlying, of.underlying)
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
            last: None,
            held: Vec::new(),
            pages: 0,
        }
    }

    /// Looks up the next instruments, without those that the user may not see. Returns `None` if
    /// there may be more, which the next turn looks up. Only the last page may be empty, and only
    /// if it is also the first. Allocates.
    pub(crate) fn page(&mut self, directory: &Directory, grant: &Grant) -> Option<Page> {
        let most = if self.definitions { 1 } else { PAGE };
        for _ in 0..LOOKED_AT {
            let is_last = match self.next_symbol(directory, grant) {
                Some((symbol, found)) => {
                    let is_full = !self.held.is_empty() && self.held.len() + found.len() > most;
                    if !is_full {
                        self.held.extend(found);
                        self.last = Some(symbol);
                        continue;
                    }
                    false
                }
                None => true,
            };
            return Some(Page {
                instruments: std::mem::take(&mut self.held),
                is_last,
            });
        }
        None
    }

    /// Looks up the next symbol, and its instruments that belong to the list.
    fn next_symbol(
        &self,
        directory: &Directory,
        grant: &Grant,
    ) -> Option<(Box<[u8]>, Vec<InstrumentId>)> {
        let prefix: &[u8] = match &self.filter.symbol {
            Some(Pattern::Symbol(text) | Pattern::Prefix(text)) => text,
            None => b"",
        };
        let (symbol, found) = directory.next_symbol(self.last.as_deref(), prefix)?;
        let fits = |id: &InstrumentId| {
            let known = directory.instrument(*id);
            known.is_some_and(|known| self.filter.fits(&known))
        };
        let found = match grant.may_see(symbol) {
            true => found.filter(fits).collect(),
            false => Vec::new(),
        };
        Some((symbol.into(), found))
    }

    /// Returns the number of its instruments.
    pub(crate) fn count_all(&self, directory: &Directory, grant: &Grant) -> u64 {
        let mut copy = Self::new(b"", false, self.filter.clone());
        let mut count = 0;
        loop {
            if let Some(page) = copy.page(directory, grant) {
                count += page.instruments.len() as u64;
                if page.is_last {
                    return count;
                }
            }
        }
    }

    /// Writes a page: the body of SecurityList(y), or of the SecurityDefinition(d) of its
    /// instrument.
    pub(crate) fn write(
        &self,
        writer: &Writer,
        directory: &Directory,
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
        match (self.definitions, page.instruments.first()) {
            (true, Some(only)) => to_fix.definition(directory, &request, *only, out).map(drop),
            _ => to_fix
                .list(directory, &request, &page.instruments, out)
                .map(drop),
        }
    }

    /// Counts a message before it is written. The count is its SecurityResponseID(322).
    pub(crate) const fn count(&mut self) {
        self.pages += 1;
    }
}
