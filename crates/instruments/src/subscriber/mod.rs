//! A market data client that checks everything: it rebuilds the books of its subscriptions from
//! W and X, and reports messages that contradict them.
//!
//! Each book is kept twice, once by the position of its levels and once by their price, as clients
//! of both kinds exist; the two have to agree after each message. Numbers have no gaps, checksums
//! match, and the entries that the gateway announces as skipped are exactly the missing ones.
//!
//! This module reads neither sockets nor clocks: a session's requests and messages are arguments.
//!
//! ```
//! use fanfare_fix::codec::Decoder;
//! use fanfare_instruments::subscriber::{Subscriber, Terms};
//!
//! let mut subscriber = Subscriber::new();
//! subscriber.subscribed(b"r1", &["RIU3"], Terms { depth: 5, ..Terms::default() });
//! let body = "35=W|262=r1|55=RIU3|268=1|269=0|270=133310|271=7|290=1|".replace('|', "\x01");
//! let mut text = format!("8=FIX.4.4\x019={}\x01{body}", body.len());
//! text += &format!("10={:03}\x01", text.bytes().fold(0, u8::wrapping_add));
//! subscriber.take(&Decoder::new().decode(text.as_bytes())?);
//! assert_eq!((subscriber.counts().snapshots, subscriber.first_fault()), (1, None));
//! # Ok::<(), fanfare_fix::codec::DecodeError>(())
//! ```

mod book;
mod entry;
mod levels;
mod news;
mod orders;
mod rights;
#[cfg(test)]
mod tests;

pub use book::Held;
pub use levels::Row;
pub use rights::Rights;

use std::collections::HashMap;

use fanfare_fix::codec::Message;
use fanfare_fix::tag::{MD_REQ_ID, SYMBOL, TEXT};

use news::News;
use rights::covers;

/// SecurityID(48): the name of instruments without a Symbol(55).
const SECURITY_ID: u32 = 48;
/// RelatdSym(46).
const RELATED: u32 = 46;
/// MDReqRejReason(281).
const REASON: u32 = 281;
/// The most ended subscriptions of a session that are remembered.
const MOST_STOPPED: usize = 4_096;

/// The terms of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    /// MarketDepth(264): levels of a side, 0 for all.
    pub depth: u32,
    /// The messages after the first snapshot.
    pub updates: Updates,
    /// `ChecksumEvery(20012)`: each snapshot, and each such X of an instrument, has a checksum; 0:
    /// none was requested.
    pub checksum_every: u32,
    /// Entries are orders, AggregatedBook(266) `N`.
    pub by_order: bool,
    /// Changes may be merged, `DeliveryContract(20010)` `conflated`: numbers grow, with holes, and
    /// trades come late, without numbers.
    pub conflated: bool,
}

/// The messages after the first snapshot of an instrument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Updates {
    /// Nothing, SubscriptionRequestType(263) `0`.
    None,
    /// Snapshots, MDUpdateType(265) `0`.
    Snapshots,
    /// Changes, MDUpdateType(265) `1`.
    Changes,
}

impl Default for Terms {
    fn default() -> Self {
        Self {
            depth: 0,
            updates: Updates::Changes,
            checksum_every: 0,
            by_order: false,
            conflated: false,
        }
    }
}

/// The counts of messages and faults.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// W.
    pub snapshots: u64,
    /// X.
    pub changes: u64,
    /// Entries of X.
    pub entries: u64,
    /// Checksums compared.
    pub checked: u64,
    /// Ranges that the gateway announced as skipped, and the entries in them.
    pub skipped: u64,
    /// See `skipped`.
    pub skipped_entries: u64,
    /// Trades that the gateway announced as omitted from merged changes.
    pub trades_left_out: u64,
    /// States of instruments, News(B).
    pub states: u64,
    /// Trading statuses, f and h.
    pub statuses: u64,
    /// Y.
    pub refused: u64,
    /// Y with MDReqRejReason(281) `3` for a request beyond the session's rights.
    pub denied: u64,
    /// Messages in flight when a subscription was ended, or the first one made.
    pub late: u64,
    /// 3 and j.
    pub rejected: u64,
    /// Contradictions.
    pub faults: u64,
}

impl Counts {
    /// Adds the counts of another session.
    pub fn add(&mut self, other: &Self) {
        self.snapshots += other.snapshots;
        self.changes += other.changes;
        self.entries += other.entries;
        self.checked += other.checked;
        self.skipped += other.skipped;
        // The gateway states these numbers.
        self.skipped_entries = self.skipped_entries.saturating_add(other.skipped_entries);
        self.trades_left_out = self.trades_left_out.saturating_add(other.trades_left_out);
        self.states += other.states;
        self.statuses += other.statuses;
        self.refused += other.refused;
        self.denied += other.denied;
        self.late += other.late;
        self.rejected += other.rejected;
        self.faults += other.faults;
    }
}

/// The subscriptions of one session, and their books.
#[derive(Debug, Default)]
pub struct Subscriber {
    requests: HashMap<Box<[u8]>, Request>,
    /// Ended subscriptions, with the number of the request that ended them.
    stopped: HashMap<Box<[u8]>, u64>,
    /// The number of requests so far.
    asked: u64,
    /// The last request with a response: a subscription that an earlier one ended is silent from
    /// then on.
    answered: u64,
    counts: Counts,
    /// The session's rights; `None`: everything.
    rights: Option<Rights>,
    first_fault: Option<String>,
    first_refusal: Option<String>,
}

/// A subscription.
#[derive(Debug)]
struct Request {
    /// Symbol(55) of instruments, until there is a response.
    names: Vec<String>,
    terms: Terms,
    number: u64,
    is_answered: bool,
    /// Whether it has to be refused.
    is_denied: bool,
    books: HashMap<Box<[u8]>, Held>,
}

impl Request {
    /// Returns whether an instrument of this symbol is requested, or may be by a list.
    fn covers(&self, symbol: &[u8]) -> bool {
        let mut names = self.names.iter();
        names.any(|name| name.starts_with('@') || covers(name, symbol))
    }

    /// Notes a response.
    fn answer(&mut self) {
        self.is_answered = true;
        self.names = Vec::new();
    }
}

impl Subscriber {
    /// Creates the subscriber of a session that has just logged on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates the subscriber of a session with these rights. Data beyond them is a fault, in each
    /// message.
    #[must_use]
    pub fn with_rights(rights: Rights) -> Self {
        Self {
            rights: Some(rights),
            ..Self::default()
        }
    }

    /// Notes that the request with this MDReqID(262) exceeds the session's rights: a response other
    /// than Y with MDReqRejReason(281) `3` is a fault.
    pub fn denied(&mut self, id: &[u8]) {
        if let Some(request) = self.requests.get_mut(id) {
            request.is_denied = true;
        }
    }

    /// Notes a sent request with this MDReqID(262), SubscriptionRequestType(263) `0` or `1`, and
    /// instruments of these Symbol(55); `PREFIX*`, `*` and `@LIST` stand for several.
    pub fn subscribed(&mut self, id: &[u8], symbols: &[impl AsRef<str>], terms: Terms) {
        self.asked += 1;
        self.stopped.remove(id);
        let names = symbols.iter().map(|name| name.as_ref().to_owned());
        let request = Request {
            names: names.collect(),
            terms,
            number: self.asked,
            is_answered: false,
            is_denied: false,
            books: HashMap::new(),
        };
        self.requests.insert(id.into(), request);
    }

    /// Notes a sent request that ends this one, SubscriptionRequestType(263) `2`.
    pub fn stopped(&mut self, id: &[u8]) {
        self.asked += 1;
        if self.requests.remove(id).is_none() {
            return;
        }
        if self.stopped.len() >= MOST_STOPPED {
            self.stopped.clear();
        }
        self.stopped.insert(id.into(), self.asked);
    }

    /// Notes that the session has ended, and its subscriptions with it. Counts stay.
    pub fn logged_out(&mut self) {
        self.requests.clear();
        self.stopped.clear();
        (self.asked, self.answered) = (0, 0);
    }

    /// Returns the counts so far.
    #[must_use]
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Returns the first contradiction.
    #[must_use]
    pub fn first_fault(&self) -> Option<&str> {
        self.first_fault.as_deref()
    }

    /// Returns the first refusal of a request, Y, j or 3.
    #[must_use]
    pub fn first_refusal(&self) -> Option<&str> {
        self.first_refusal.as_deref()
    }

    /// Returns whether a subscription has a snapshot or the state of one of its instruments. One of
    /// prefixes or lists without an instrument has no response.
    #[must_use]
    pub fn is_answered(&self, request: &[u8]) -> bool {
        let request = self.requests.get(request);
        request.is_none_or(|request| request.is_answered)
    }

    /// Returns the book of an instrument in a subscription: by Symbol(55), or by SecurityID(48) if
    /// that is `[N/A]`.
    #[must_use]
    pub fn book(&self, request: &[u8], symbol: &[u8]) -> Option<&Held> {
        self.requests.get(request)?.books.get(symbol)
    }

    /// Returns the names of the instruments of a subscription.
    pub fn symbols(&self, request: &[u8]) -> impl Iterator<Item = &[u8]> {
        let books = self.requests.get(request).into_iter();
        books.flat_map(|request| request.books.keys().map(|symbol| &**symbol))
    }

    /// Returns all books.
    pub fn books(&self) -> impl Iterator<Item = &Held> {
        let requests = self.requests.values();
        requests.flat_map(|request| request.books.values())
    }

    /// Takes a message of the session; ignores messages other than market data.
    pub fn take(&mut self, message: &Message<'_>) {
        if let Some(rights) = &self.rights
            && matches!(message.msg_type(), b"W" | b"X" | b"B" | b"f")
            && let Err(why) = rights.check(message)
        {
            self.fault(why);
        }
        match message.msg_type() {
            b"W" | b"X" => self.market_data(message),
            b"Y" => self.refused(message),
            b"B" => self.news(message),
            b"f" | b"h" => self.counts.statuses += 1,
            b"j" | b"3" => {
                self.counts.rejected += 1;
                let text = text_of(message.get(TEXT).unwrap_or_default());
                self.refusal(&format!("{}: {text}", text_of(message.msg_type())));
            }
            _ => {}
        }
    }

    fn market_data(&mut self, message: &Message<'_>) {
        let id = message.get(MD_REQ_ID).unwrap_or_default();
        let is_snapshot = message.msg_type() == b"W";
        let Some(request) = self.requests.get_mut(id) else {
            return self.unasked(id, message);
        };
        let symbol = symbol_of(message);
        if request.is_denied {
            let id = text_of(id);
            return self.fault(format!(
                "request {id}: granted, and not the session's to see"
            ));
        }
        if is_snapshot {
            self.counts.snapshots += 1;
            self.answered = self.answered.max(request.number);
            request.answer();
        } else {
            self.counts.changes += 1;
        }
        if !request.books.contains_key(symbol) {
            request
                .books
                .insert(symbol.into(), Held::new(&request.terms));
        }
        let Some(book) = request.books.get_mut(symbol) else {
            return;
        };
        let done = if is_snapshot {
            book.snapshot(message, &mut self.counts)
        } else {
            book.change(message, &mut self.counts)
        };
        if let Err(why) = done {
            let (id, symbol) = (text_of(id), text_of(symbol));
            self.fault(format!("request {id}, {symbol}: {why}"));
        }
    }

    /// Handles market data of a subscription that does not exist, or has ended.
    fn unasked(&mut self, id: &[u8], message: &Message<'_>) {
        if id.is_empty() && self.answered == 0 {
            // Gateways send everything to sessions without a subscription.
            self.counts.late += 1;
            return;
        }
        match self.stopped.get(id) {
            Some(stop) if *stop > self.answered => self.counts.late += 1,
            stop => {
                let what = match stop {
                    Some(_) => "was stopped, and goes on",
                    None => "was never made",
                };
                let (id, kind) = (text_of(id), text_of(message.msg_type()));
                self.fault(format!("request {id} {what}: {kind}"));
            }
        }
    }

    fn refused(&mut self, message: &Message<'_>) {
        let id = message.get(MD_REQ_ID).unwrap_or_default();
        let reason = message.get(REASON);
        let request = self.requests.get(id);
        if request.is_some_and(|request| request.is_denied) && reason == Some(b"3") {
            self.counts.denied += 1;
            let request = self.requests.remove(id);
            let number = request.map_or(0, |request| request.number);
            self.answered = self.answered.max(number);
            return;
        }
        self.counts.refused += 1;
        // The refusal of a second request with the same id leaves the first one unchanged.
        if message.get(REASON) != Some(b"1")
            && let Some(request) = self.requests.remove(id)
        {
            self.answered = self.answered.max(request.number);
        }
        let reason = text_of(message.get(REASON).unwrap_or_default());
        let text = text_of(message.get(TEXT).unwrap_or_default());
        self.refusal(&format!("request {}: 281={reason} {text}", text_of(id)));
    }

    fn news(&mut self, message: &Message<'_>) {
        let Some(news) = News::of(message) else {
            return;
        };
        let symbol = symbol_of(message);
        match news {
            News::State(state) => {
                self.counts.states += 1;
                for request in self.requests.values_mut() {
                    // The state replaces the first snapshot of an instrument without one. A
                    // request that has to be refused has no other response.
                    if !request.is_denied && request.covers(symbol) {
                        request.answer();
                    }
                    if let Some(book) = request.books.get_mut(symbol) {
                        book.state(state);
                    }
                }
            }
            News::TradesMissing(count) => {
                let trades = &mut self.counts.trades_left_out;
                *trades = trades.saturating_add(count);
            }
            News::Missing { request: id, range } => {
                self.counts.skipped += 1;
                let entries = &mut self.counts.skipped_entries;
                *entries = entries.saturating_add(range.count);
                let request = self.requests.get_mut(id);
                let book = request.and_then(|request| request.books.get_mut(symbol));
                let done = match book {
                    Some(book) => book.skipped(range),
                    None if self.stopped.contains_key(id) => Ok(()),
                    None => Err("is said to have lost what it never had".to_owned()),
                };
                if let Err(why) = done {
                    let (id, symbol) = (text_of(id), text_of(symbol));
                    self.fault(format!("request {id}, {symbol}: {why}"));
                }
            }
        }
    }

    fn fault(&mut self, why: String) {
        self.counts.faults += 1;
        self.first_fault.get_or_insert(why);
    }

    fn refusal(&mut self, why: &str) {
        self.first_refusal.get_or_insert_with(|| why.to_owned());
    }
}

/// Returns the name of the first instrument of a message. News(B) of FIX.4.2 has RelatdSym(46).
fn symbol_of<'a>(message: &Message<'a>) -> &'a [u8] {
    match message.get(SYMBOL).or_else(|| message.get(RELATED)) {
        Some(symbol) if symbol != b"[N/A]" => symbol,
        other => message
            .get(SECURITY_ID)
            .unwrap_or_else(|| other.unwrap_or_default()),
    }
}

fn text_of(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}
