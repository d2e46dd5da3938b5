//! The requests of a session, without input and output.
//!
//! [`Subscriptions`] knows which requests are to be sent, which of them are open, and what is to be
//! done with the answers that refuse one. The handler of the session sends and receives.

use fanfare_fix::codec::{FieldWriter, Message};
use fanfare_fix::{msg_type, tag};
use fanfare_wire::text::Escaped;
use std::collections::{BTreeMap, HashSet, VecDeque};

/// The most requests whose MsgSeqNum(34) is remembered for a Reject(3).
const REMEMBERED: usize = 1_024;

/// The most bytes of an instrument's name in a notice.
const NAME: usize = 100;

/// The instruments of a request.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Named {
    /// Symbol(55), possibly empty.
    symbol: Box<[u8]>,
    /// SecurityID(48) and SecurityIDSource(22), both possibly empty.
    id: (Box<[u8]>, Box<[u8]>),
}

impl Named {
    pub(crate) fn symbol(symbol: &str) -> Self {
        Self {
            symbol: symbol.as_bytes().into(),
            id: Default::default(),
        }
    }

    /// Returns the most bytes of its fields: the values, or `[N/A]`, with tags and delimiters.
    fn size(&self) -> usize {
        self.symbol.len().max(5) + self.id.0.len() + self.id.1.len() + "55=|48=|22=|".len()
    }

    /// Formats the name for a notice.
    fn text(&self) -> String {
        let name = match self.symbol.is_empty() {
            true => &self.id.0,
            false => &self.symbol,
        };
        let name = name.get(..NAME).unwrap_or(name);
        Escaped::text(&String::from_utf8_lossy(name)).to_string()
    }
}

/// The contents of all requests.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    pub(crate) depth: u16,
    /// The values of MDEntryType(269).
    pub(crate) entry_types: Vec<String>,
    /// Whether MDUpdateType(265)=0 is requested.
    pub(crate) full_refresh: bool,
    /// Whether AggregatedBook(266)=N is requested: orders.
    pub(crate) by_order: bool,
    /// The most instruments of a request.
    pub(crate) per_request: usize,
    /// The most instruments of a list.
    pub(crate) most: usize,
    /// The pause before a refused request is repeated, and the shortest time between two renewals,
    /// in nanoseconds.
    pub(crate) retry: u64,
}

/// A request that is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// SecurityListRequest(x) of everything.
    List {
        /// SecurityReqID(320).
        id: String,
    },
    /// MarketDataRequest(V) with 263=1.
    Open {
        /// MDReqID(262).
        id: String,
        /// The instruments.
        instruments: Vec<Named>,
    },
    /// MarketDataRequest(V) with 263=2.
    Close {
        /// MDReqID(262).
        id: String,
        /// The instruments.
        instruments: Vec<Named>,
    },
}

/// What is to be sent, in order.
#[derive(Debug)]
enum Task {
    List,
    Open(Vec<Named>),
    Close(String, Vec<Named>),
}

/// The requests of a session. See the module's text.
#[derive(Debug)]
pub(crate) struct Subscriptions {
    terms: Terms,
    /// The instruments to request by name, or `None` for those of a list.
    symbols: Option<Vec<Named>>,
    is_on: bool,
    /// The number of the last request: its ID.
    issued: u64,
    tasks: VecDeque<Task>,
    open: BTreeMap<String, Vec<Named>>,
    /// The IDs of open requests that have brought market data.
    served: HashSet<String>,
    /// The instruments of such requests that were renewed: their books may be complete.
    renewed_books: HashSet<Named>,
    /// The ID of the list that is under way.
    list: Option<String>,
    listed: HashSet<Named>,
    /// The requests that were refused, with the times at which they are repeated.
    refused: VecDeque<(u64, Vec<Named>)>,
    /// The time at which the list is requested again.
    list_again: Option<u64>,
    /// MsgSeqNum(34) and ID of the last requests.
    sent: VecDeque<(u64, String)>,
    /// The time of the last renewal, and that of the next.
    renewed: Option<u64>,
    renewal: Option<u64>,
}

/// The effect of a message of the counterparty.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// It is market data, or anything else that is no answer to a request.
    Data,
    /// It answers a request, and is done with.
    Done,
    /// It refuses a request, for this reason.
    Refused(String),
    /// It refuses a request whose books may be complete, for this reason: no change of them comes
    /// any more.
    Lost(String),
}

impl Subscriptions {
    pub(crate) fn new(terms: Terms, symbols: Option<Vec<Named>>) -> Self {
        Self {
            terms,
            symbols,
            is_on: false,
            issued: 0,
            tasks: VecDeque::new(),
            open: BTreeMap::new(),
            served: HashSet::new(),
            renewed_books: HashSet::new(),
            list: None,
            listed: HashSet::new(),
            refused: VecDeque::new(),
            list_again: None,
            sent: VecDeque::new(),
            renewed: None,
            renewal: None,
        }
    }

    /// Begins a session, in which nothing has been requested.
    pub(crate) fn log_on(&mut self, now: u64) {
        self.end();
        (self.is_on, self.renewed) = (true, Some(now));
        match self.symbols.clone() {
            Some(symbols) => self.request(&symbols),
            None => self.tasks.push_back(Task::List),
        }
    }

    /// Ends the session, and with it all requests.
    pub(crate) fn end(&mut self) {
        self.is_on = false;
        self.tasks.clear();
        self.open.clear();
        self.served.clear();
        self.renewed_books.clear();
        self.listed.clear();
        self.refused.clear();
        self.sent.clear();
        (self.list, self.list_again, self.renewal) = (None, None, None);
    }

    /// Requests each instrument anew, as soon as the last time is long enough ago: each open
    /// request is ended, and repeated.
    pub(crate) fn renew(&mut self, now: u64) {
        if self.is_on && self.renewal.is_none() {
            let first = self.renewed.map_or(0, |last| last + self.terms.retry);
            self.renewal = Some(first.max(now));
        }
    }

    /// Records that messages were lost: each instrument is requested anew, and so is the list, of
    /// which a part may be among them.
    pub(crate) fn lose(&mut self, now: u64) {
        self.renew(now);
        if self.symbols.is_none() {
            self.list_again = self.renewal;
        }
    }

    /// Returns the time at which [`Self::poll`] has a request, or 0 if it has one now.
    pub(crate) fn due(&self) -> Option<u64> {
        if !self.tasks.is_empty() {
            return Some(0);
        }
        let refused = self.refused.front().map(|(at, _)| *at);
        let times = [refused, self.list_again, self.renewal];
        times.into_iter().flatten().min()
    }

    /// Returns the next request to send. The caller calls [`Self::sent`] for it,
    /// [`Self::unsent`] or [`Self::divide`].
    pub(crate) fn poll(&mut self, now: u64) -> Option<Request> {
        if !self.is_on {
            return None;
        }
        if self.renewal.is_some_and(|at| at <= now) {
            (self.renewal, self.renewed) = (None, Some(now));
            self.repeat_open();
        }
        while self.refused.front().is_some_and(|(at, _)| *at <= now) {
            let again = self.refused.pop_front();
            self.tasks.extend(again.map(|(_, all)| Task::Open(all)));
        }
        if self.list_again.is_some_and(|at| at <= now) {
            self.list_again = None;
            self.tasks.push_back(Task::List);
        }
        Some(match self.tasks.pop_front()? {
            Task::List => {
                let id = self.next_id();
                self.list = Some(id.clone());
                Request::List { id }
            }
            Task::Open(instruments) => {
                let id = self.next_id();
                self.open.insert(id.clone(), instruments.clone());
                Request::Open { id, instruments }
            }
            Task::Close(id, instruments) => Request::Close { id, instruments },
        })
    }

    /// Records that a request was sent with this MsgSeqNum(34).
    pub(crate) fn sent(&mut self, request: &Request, seq: u64) {
        let (Request::List { id } | Request::Open { id, .. }) = request else {
            return;
        };
        if self.sent.len() >= REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((seq, id.clone()));
    }

    /// Records that a request could not be sent now, and is to be sent later.
    pub(crate) fn unsent(&mut self, request: Request) {
        self.tasks.push_front(match request {
            Request::List { .. } => {
                self.list = None;
                Task::List
            }
            Request::Open { id, instruments } => {
                self.open.remove(&id);
                Task::Open(instruments)
            }
            Request::Close { id, instruments } => Task::Close(id, instruments),
        });
    }

    /// Records that a request is too long for any message. A request of several instruments is
    /// divided in two. Any other one is left out, and its name is returned.
    pub(crate) fn divide(&mut self, request: Request) -> Option<String> {
        match request {
            Request::List { .. } => {
                self.list = None;
                Some("the list of securities".to_owned())
            }
            Request::Open { id, instruments } => {
                self.open.remove(&id);
                self.halve(instruments, Task::Open)
            }
            Request::Close { id, instruments } => {
                self.halve(instruments, |half| Task::Close(id.clone(), half))
            }
        }
    }

    /// Puts the halves of a request in front of all others, or returns the name of its instrument.
    fn halve(
        &mut self,
        mut instruments: Vec<Named>,
        task: impl Fn(Vec<Named>) -> Task,
    ) -> Option<String> {
        if instruments.len() < 2 {
            return Some(instruments.first().map(Named::text).unwrap_or_default());
        }
        let second = instruments.split_off(instruments.len() / 2);
        self.tasks.push_front(task(second));
        self.tasks.push_front(task(instruments));
        None
    }

    /// Processes a message of the counterparty.
    pub(crate) fn take(&mut self, now: u64, message: &Message<'_>) -> Effect {
        match message.msg_type() {
            msg_type::MARKET_DATA_REQUEST_REJECT => {
                let id = message.get(tag::MD_REQ_ID).unwrap_or_default();
                let id = String::from_utf8_lossy(id).into_owned();
                self.refuse(now, &id, message, tag::MD_REQ_REJ_REASON)
            }
            msg_type::BUSINESS_MESSAGE_REJECT => self.rejected(now, message),
            msg_type::SECURITY_LIST => self.listed(now, message),
            msg_type::MARKET_DATA_SNAPSHOT_FULL_REFRESH => {
                self.serve(message);
                Effect::Data
            }
            _ => Effect::Data,
        }
    }

    /// Records that a request brings market data.
    fn serve(&mut self, message: &Message<'_>) {
        let id = message.get(tag::MD_REQ_ID);
        let Some(id) = id.and_then(|id| std::str::from_utf8(id).ok()) else {
            return;
        };
        if self.open.contains_key(id) && !self.served.contains(id) {
            self.served.insert(id.to_owned());
        }
    }

    /// Processes a Reject(3) or a BusinessMessageReject(j) of a message of this side.
    pub(crate) fn rejected(&mut self, now: u64, message: &Message<'_>) -> Effect {
        let id = message.get(tag::BUSINESS_REJECT_REF_ID);
        let mut id = id.map(|id| String::from_utf8_lossy(id).into_owned());
        if let Ok(seq) = message.u64(tag::REF_SEQ_NUM) {
            let of_seq = self.sent.iter().rev().find(|(own, _)| *own == seq);
            id = of_seq.map(|(_, id)| id.clone()).or(id);
        }
        match id {
            Some(id) => self.refuse(now, &id, message, tag::BUSINESS_REJECT_REASON),
            None => Effect::Done,
        }
    }

    /// Records the refusal of a request. One of several instruments is divided, so that one that
    /// the counterparty does not have costs no other. One that has brought market data is ended,
    /// too, as the counterparty may serve some of its instruments further.
    fn refuse(&mut self, now: u64, id: &str, message: &Message<'_>, reason: u32) -> Effect {
        let again = now + self.terms.retry;
        let what = if self.list.as_deref() == Some(id) {
            (self.list, self.list_again) = (None, Some(again));
            "the list of securities".to_owned()
        } else {
            let Some(instruments) = self.open.remove(id) else {
                return Effect::Done;
            };
            let has_books = self.forget_books(id, &instruments);
            let is_divided = instruments.len() > 1;
            let name = instruments.first().map(Named::text).unwrap_or_default();
            if has_books {
                let all = instruments.clone();
                self.tasks.push_back(Task::Close(id.to_owned(), all));
            }
            if is_divided {
                let each = instruments.into_iter().map(|own| Task::Open(vec![own]));
                self.tasks.extend(each);
            } else {
                self.refused.push_back((again, instruments));
            }
            match has_books {
                true => return Effect::Lost(refusal(&name, message, reason)),
                false if is_divided => return Effect::Done,
                false => name,
            }
        };
        Effect::Refused(refusal(&what, message, reason))
    }

    /// Forgets that instruments may have complete books. Returns whether any may.
    fn forget_books(&mut self, id: &str, instruments: &[Named]) -> bool {
        let mut has_books = self.served.remove(id);
        for named in instruments {
            has_books |= self.renewed_books.remove(named);
        }
        has_books
    }

    /// Processes a SecurityList(y), which also defines its instruments: it is data, too.
    fn listed(&mut self, now: u64, message: &Message<'_>) -> Effect {
        let id = message.get(tag::SECURITY_REQ_ID).unwrap_or_default();
        if self.list.as_deref().map(str::as_bytes) != Some(id) {
            return Effect::Data;
        }
        match message.get(tag::SECURITY_REQUEST_RESULT) {
            None | Some(b"0") => {}
            Some(_) => {
                let id = String::from_utf8_lossy(id).into_owned();
                return self.refuse(now, &id, message, tag::SECURITY_REQUEST_RESULT);
            }
        }
        let mut new = Vec::new();
        let mut is_over = false;
        for named in entries(message) {
            if self.listed.len() >= self.terms.most && !self.listed.contains(&named) {
                is_over = true;
            } else if self.listed.insert(named.clone()) {
                new.push(named);
            }
        }
        self.request(&new);
        match is_over {
            true => {
                self.list = None;
                let most = self.terms.most;
                let rule = "`feed.book.most_instruments`";
                Effect::Refused(format!(
                    "the list has more than {most} instruments ({rule})"
                ))
            }
            false => Effect::Data,
        }
    }

    fn request(&mut self, instruments: &[Named]) {
        for some in instruments.chunks(self.terms.per_request) {
            self.tasks.push_back(Task::Open(some.to_vec()));
        }
    }

    fn repeat_open(&mut self) {
        for (id, instruments) in std::mem::take(&mut self.open) {
            if self.served.remove(&id) {
                self.renewed_books.extend(instruments.iter().cloned());
            }
            self.tasks.push_back(Task::Close(id, instruments.clone()));
            self.tasks.push_back(Task::Open(instruments));
        }
    }

    fn next_id(&mut self) -> String {
        self.issued += 1;
        format!("f{}", self.issued)
    }

    /// Returns the number of instruments that are requested, or prefixes of them.
    #[cfg(test)]
    pub(crate) fn requested(&self) -> impl Iterator<Item = (&str, &[Named])> {
        self.open.iter().map(|(id, all)| (id.as_str(), &all[..]))
    }
}

/// Formats a refusal of a request of `what`, whose reason is in the field `reason`.
fn refusal(what: &str, message: &Message<'_>, reason: u32) -> String {
    let text = |tag| String::from_utf8_lossy(message.get(tag).unwrap_or_default());
    let (code, why) = (text(reason), text(tag::TEXT));
    let (code, why) = (Escaped::text(&code), Escaped::text(&why));
    format!("the request of {what} is refused: {code} {why}")
}

/// Returns the instruments of a SecurityList(y), each by the first name and ID of its entry.
fn entries(message: &Message<'_>) -> Vec<Named> {
    let Some(count) = message.position(tag::NO_RELATED_SYM) else {
        return Vec::new();
    };
    let delimiter = message.tags().get(count + 1).copied();
    let mut all: Vec<Named> = Vec::new();
    for field in message.fields().skip(count + 1) {
        if Some(field.tag) == delimiter {
            all.push(Named::symbol(""));
        }
        let Some(last) = all.last_mut() else {
            break;
        };
        let place = match field.tag {
            tag::SYMBOL => &mut last.symbol,
            tag::SECURITY_ID => &mut last.id.0,
            tag::SECURITY_ID_SOURCE => &mut last.id.1,
            _ => continue,
        };
        if place.is_empty() {
            *place = field.value.into();
        }
    }
    all.retain(|own| !own.symbol.is_empty() || !own.id.0.is_empty());
    all
}

impl Request {
    /// Returns MsgType(35).
    pub(crate) const fn msg_type(&self) -> &'static [u8] {
        match self {
            Self::List { .. } => msg_type::SECURITY_LIST_REQUEST,
            Self::Open { .. } | Self::Close { .. } => msg_type::MARKET_DATA_REQUEST,
        }
    }

    /// Returns the most bytes that the fields of its instruments take.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::List { .. } => 0,
            Self::Open { instruments, .. } | Self::Close { instruments, .. } => {
                instruments.iter().map(Named::size).sum()
            }
        }
    }

    /// Writes the fields behind the header.
    pub(crate) fn write(&self, terms: &Terms, out: &mut FieldWriter<'_>) {
        let (id, kind, instruments) = match self {
            Self::List { id } => {
                out.str(tag::SECURITY_REQ_ID, id);
                // All securities.
                out.u64(tag::SECURITY_LIST_REQUEST_TYPE, 4);
                return;
            }
            Self::Open { id, instruments } => (id, b'1', instruments),
            Self::Close { id, instruments } => (id, b'2', instruments),
        };
        out.str(tag::MD_REQ_ID, id);
        out.char(tag::SUBSCRIPTION_REQUEST_TYPE, kind);
        out.u64(tag::MARKET_DEPTH, terms.depth.into());
        if kind == b'1' {
            let update = if terms.full_refresh { b'0' } else { b'1' };
            out.char(tag::MD_UPDATE_TYPE, update);
            if terms.by_order {
                out.char(tag::AGGREGATED_BOOK, b'N');
            }
        }
        out.u64(tag::NO_MD_ENTRY_TYPES, terms.entry_types.len() as u64);
        for entry in &terms.entry_types {
            out.str(tag::MD_ENTRY_TYPE, entry);
        }
        out.u64(tag::NO_RELATED_SYM, instruments.len() as u64);
        for named in instruments {
            // Symbol(55) begins an entry, and is required before FIX.4.3.
            let symbol: &[u8] = match named.symbol.is_empty() {
                true => b"[N/A]",
                false => &named.symbol,
            };
            out.field(tag::SYMBOL, symbol);
            for (tag, value) in [
                (tag::SECURITY_ID, &named.id.0),
                (tag::SECURITY_ID_SOURCE, &named.id.1),
            ] {
                if !value.is_empty() {
                    out.field(tag, value);
                }
            }
        }
    }
}
