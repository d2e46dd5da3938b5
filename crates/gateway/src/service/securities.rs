//! Requests for instruments and statuses: SecurityListRequest(x), SecurityDefinitionRequest(c),
//! SecurityStatusRequest(e), TradingSessionStatusRequest(g).

use super::Core;
use super::bodies::{BodyId, Writer};
use super::client::{self, Client, Subscription, Untold, lead};
use super::contract::Contract;
use super::entry_types::EntryTypes;
use super::feeds::OfFeed;
use super::list::{Filter, List, Page, UNSUPPORTED};
use super::messages::{self, DAY};
use super::patterns::Pattern;
use super::request::{FEED, Fault, Named, gone, id, named};
use super::share::Share;
use super::spec::Spec;
use crate::users::grant::Grant;
use fanfare_engine::host::Peer;
use fanfare_fix::codec::{FieldWriter, Message};
use fanfare_fix::session::{BusinessReason, RejectReason, SendError};
use fanfare_fix::tag;
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::to_fix::WriteError;
use fanfare_market::{Event, InstrumentId, Kind, Price};
use fanfare_wire::{Decimal, UtcTimestamp};

/// The most concurrent lists of one session.
const MOST_LISTS: usize = 16;

/// The most requests of one session for the status of the trading session that go on.
const MOST_SESSION_REQUESTS: usize = 16;

/// The most instruments that are counted before a list is sent. A longer list does not state its
/// length.
const COUNTED: usize = 20_000;

/// The fields of x and c that are read, and the texts, which are no criteria.
const READ: [u32; 21] = [
    15, 22, 48, 55, 58, 107, 167, 200, 202, 207, 263, 311, 320, 321, 354, 355, 461, 541, 559, 1300,
    1301,
];

impl Core {
    /// Responds to x, c, e or g.
    pub(super) fn securities(
        &mut self,
        peer: &mut Peer<'_>,
        message: &Message<'_>,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let (_, writer) = self.of(peer)?;
        let msg_type = message.msg_type();
        let Some(body) = writer.dictionary.body(msg_type) else {
            return Err(Fault::Reject(RejectReason::InvalidMsgType, 35));
        };
        let missing = body.required().find(|tag| message.get(*tag).is_none());
        if let Some(tag) = missing {
            return Err(Fault::Reject(RejectReason::RequiredTagMissing, tag));
        }
        match msg_type {
            b"x" => self.list(peer, message, directory),
            b"c" => self.definition(peer, message, directory),
            b"e" => self.status(peer, message, directory),
            _ => self.trading_session(peer, message),
        }
    }

    /// Returns a session, and the writer of its messages.
    fn of(&self, peer: &Peer<'_>) -> Result<(&Client, &Writer), Fault> {
        let client = self.client(peer.key().index() as u32);
        let client = client.ok_or_else(gone)?;
        let writer = self.writers.get(client.version).ok_or_else(gone)?;
        Ok((client, writer))
    }

    /// Responds to SecurityListRequest(x).
    fn list(
        &mut self,
        peer: &mut Peer<'_>,
        message: &Message<'_>,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let request = id(message, 320)?;
        // By symbol, by type or CFI code, or all.
        let kind = message.get(559).unwrap_or_default();
        let is_known = match kind {
            b"0" | b"1" => are_criteria_known(message),
            _ => kind == b"4",
        };
        let goes_on = !matches!(message.get(263), None | Some(b"0"));
        if !is_known || goes_on {
            return refuse(peer, List::new(request, false, Filter::default()));
        }
        let feed = self.feed_of(message)?;
        if kind == b"4" {
            let filter = Filter {
                feed,
                ..Filter::default()
            };
            return self.begin_list(peer, List::new(request, false, filter), directory);
        }
        let named = named(message)?;
        if kind == b"0" && named.is_none() {
            return Err(Fault::Reject(RejectReason::RequiredTagMissing, 55));
        }
        let filter = filter(message, feed)?;
        let grant = &self.of(peer)?.0.grant;
        let list = list_of(request, false, named, filter, directory, grant)?;
        self.begin_list(peer, list, directory)
    }

    /// Responds to SecurityDefinitionRequest(c): for one instrument, or for a list.
    fn definition(
        &mut self,
        peer: &mut Peer<'_>,
        message: &Message<'_>,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let request = id(message, 320)?;
        if !are_criteria_known(message) {
            return refuse(peer, List::new(request, true, Filter::default()));
        }
        let feed = self.feed_of(message)?;
        let (named, filter) = (named(message)?, filter(message, feed)?);
        let named = match named {
            Some(named) if message.get(321) != Some(b"3") => named,
            named => {
                let grant = &self.of(peer)?.0.grant;
                let list = list_of(request, true, named, filter, directory, grant)?;
                return self.begin_list(peer, list, directory);
            }
        };
        let mut found = self.find(peer, &named, feed, directory)?;
        found.retain(|id| {
            let known = directory.instrument(*id);
            known.is_some_and(|known| filter.fits(&known))
        });
        if found.is_empty() {
            return Err(business(BusinessReason::UnknownSecurity));
        }
        let mut list = List::new(request, true, Filter::default());
        list.total = Some(found.len() as u64);
        let (_, writer) = self.of(peer)?;
        for instrument in found {
            list.count();
            let page = Page {
                instruments: vec![instrument],
                is_last: true,
            };
            answer(peer, b"d", |out| {
                list.write(writer, directory, &self.feeds, &page, out)
            })?;
        }
        Ok(())
    }

    /// Returns the feed that a request names.
    fn feed_of(&self, message: &Message<'_>) -> Result<OfFeed, Fault> {
        let feed = self.feeds.of_name(message.get(FEED));
        feed.map_err(|text| Fault::Business(BusinessReason::UnknownId, text))
    }

    /// Returns the instruments of a name that the session may see.
    fn find(
        &self,
        peer: &Peer<'_>,
        named: &Named<'_>,
        feed: OfFeed,
        directory: &Directory,
    ) -> Result<Vec<InstrumentId>, Fault> {
        let (client, _) = self.of(peer)?;
        let mut found: Vec<_> = match named {
            Named::Symbols(Pattern::Symbol(symbol)) => directory.of_symbol(symbol).collect(),
            Named::Id(named) => named.find(directory),
            Named::Symbols(Pattern::Prefix(_)) | Named::List(_) => Vec::new(),
        };
        found.retain(|id| feed.has(*id));
        if found.is_empty() {
            return Err(business(BusinessReason::UnknownSecurity));
        }
        found.retain(|id| client.grant.sees(directory.instrument(*id)));
        match found.is_empty() {
            true => Err(business(BusinessReason::NotAuthorised)),
            false => Ok(found),
        }
    }

    fn begin_list(
        &mut self,
        peer: &Peer<'_>,
        mut list: List,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let session = peer.key().index() as u32;
        let client = self.client_mut(session).ok_or_else(gone)?;
        if client.lists.len() >= MOST_LISTS {
            let text = format!("{MOST_LISTS} lists are being sent already");
            return Err(Fault::Business(BusinessReason::Other, text));
        }
        let is_all = client.grant.instruments.are_all() && list.filter.is_open();
        match directory.len() {
            _ if list.total.is_some() => {}
            count if is_all => list.total = Some(count as u64),
            count if count <= COUNTED => list.count_first(),
            _ => {}
        }
        client.lists.push_back(list);
        self.wait(session);
        Ok(())
    }

    /// Encodes the next message of a session's first list, if that is possible. Returns `None` if
    /// the share of this turn has nothing left for it.
    pub(super) fn page(
        &mut self,
        session: u32,
        directory: &Directory,
        share: &mut Share,
    ) -> Option<Option<BodyId>> {
        if share.listed == 0 {
            return None;
        }
        let Self {
            clients,
            writers,
            bodies,
            feeds,
            ..
        } = self;
        let client = client::at_mut(clients, session)?;
        let writer = writers.get(client.version)?;
        let list = client.lists.front_mut()?;
        let (before, looks) = (list.sent, &mut share.looks);
        let encoded = list.encode(writer, bodies, &client.grant, directory, feeds, looks);
        let (body, is_last) = encoded?;
        let cost = 1 + list.sent - before;
        share.listed = share.listed.saturating_sub(cost);
        if is_last {
            client.lists.pop_front();
        }
        Some(body)
    }

    /// Responds to SecurityStatusRequest(e).
    fn status(
        &mut self,
        peer: &mut Peer<'_>,
        message: &Message<'_>,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let session = peer.key().index() as u32;
        let request = id(message, 324)?;
        let known = self.of(peer)?.0.find(324, request);
        let purpose = purpose(message, known, "SecurityStatusReqID(324)")?;
        if let Purpose::End(number) = purpose {
            self.stop(session, number);
            return Ok(());
        }
        let name = named(message)?.ok_or(Fault::Reject(RejectReason::RequiredTagMissing, 55))?;
        let found = self.find(peer, &name, self.feed_of(message)?, directory)?;
        let (client, writer) = self.of(peer)?;
        if purpose == Purpose::Begin {
            let fits = client.check_one_more(found.len());
            fits.map_err(|text| Fault::Business(BusinessReason::Other, text))?;
        }
        for instrument in &found {
            let status = self.last_status(*instrument, directory);
            let feed = self.feeds.name(directory, *instrument);
            answer(peer, b"f", |out| {
                messages::put_feed(feed, out);
                messages::status(writer, directory, request, &status, out)
            })?;
        }
        if purpose == Purpose::Begin {
            self.follow_status(session, request, &found, directory);
        }
        Ok(())
    }

    /// Returns the last status of an instrument, which has the [id](Event::id) 0 if it is unknown.
    /// It is known also where events were lost.
    pub(super) fn last_status(&self, instrument: InstrumentId, directory: &Directory) -> Event {
        let seen = self.view.get(instrument);
        seen.and_then(|seen| seen.own.status).unwrap_or_else(|| {
            let defined = directory.instrument(instrument);
            Event {
                instrument,
                kind: Kind::Status,
                id: defined.map_or(0, |own| own.status.into()),
                ..Event::EMPTY
            }
        })
    }

    /// Subscribes to the statuses of instruments, which are sent when they change.
    fn follow_status(
        &mut self,
        session: u32,
        request: &[u8],
        found: &[InstrumentId],
        directory: &Directory,
    ) {
        let Some(client) = self.client_mut(session) else {
            return;
        };
        let spec = Spec {
            depth: 0,
            entries: EntryTypes::NONE,
            by_order: false,
            snapshots: false,
            interval: 0,
            checksum_every: 0,
        };
        let lead = lead(324, request);
        let number = client.add(Subscription::new(
            lead,
            spec,
            Contract::Conflated,
            true,
            found,
        ));
        for instrument in found {
            self.join(session, number, *instrument, directory);
        }
    }

    /// Responds to TradingSessionStatusRequest(g).
    fn trading_session(&mut self, peer: &mut Peer<'_>, message: &Message<'_>) -> Result<(), Fault> {
        let session = peer.key().index() as u32;
        let request = id(message, 335)?;
        let requests = &self.of(peer)?.0.session_requests;
        let known = requests.iter().position(|(own, _)| **own == *request);
        let purpose = purpose(message, known, "TradSesReqID(335)")?;
        if let Purpose::End(at) = purpose {
            let client = self.client_mut(session).ok_or_else(gone)?;
            client.session_requests.swap_remove(at);
            return Ok(());
        }
        let (client, writer) = self.of(peer)?;
        if purpose == Purpose::Begin && client.session_requests.len() >= MOST_SESSION_REQUESTS {
            let text = format!("at most {MOST_SESSION_REQUESTS} requests at a time");
            return Err(Fault::Business(BusinessReason::Other, text));
        }
        if message.get(336).is_some_and(|own| own != DAY) {
            let text = "TradingSessionID(336) must be 1, the session of the day".to_owned();
            return Err(Fault::Business(BusinessReason::UnknownId, text));
        }
        let feed = self.feed_of(message)?;
        let (mut is_told, mut fault) = (false, None);
        for event in self.session_statuses(feed) {
            let told = answer(peer, b"h", |out| {
                messages::session_status(writer, &self.feeds, request, &event, out)
            });
            match told {
                Ok(()) => is_told = true,
                Err(own) => fault = Some(own),
            }
        }
        if purpose == Purpose::Begin {
            // A status that the version lacks, as FIX.4.2 lacks the unknown one, is left out.
            let client = self.client_mut(session).ok_or_else(gone)?;
            client.session_requests.push((request.into(), feed));
            return Ok(());
        }
        match fault {
            Some(fault) if !is_told => Err(fault),
            _ => Ok(()),
        }
    }

    /// Returns the last status of the trading session of each feed that a request names.
    fn session_statuses(&self, named: OfFeed) -> Vec<Event> {
        let last = |source: u16| {
            let known = self.sessions.iter().find(|event| event.source == source);
            known.copied().unwrap_or(Event {
                kind: Kind::Status,
                id: 0,
                source,
                ..Event::EMPTY
            })
        };
        self.feeds.sources(named).map(last).collect()
    }

    /// Sends the status of a feed's trading session after a change.
    #[cold]
    pub(super) fn session_status(&mut self, event: &Event) {
        if event.kind != Kind::Status {
            return;
        }
        let mut known = self.sessions.iter_mut();
        match known.find(|own| own.source == event.source) {
            // The feed repeats it, or it is shown again for a reader that lost it.
            Some(own) if own.id == event.id => return,
            Some(own) => *own = *event,
            None => self.sessions.push(*event),
        }
        for session in 0..self.clients.len() as u32 {
            let feeds = &self.feeds;
            let Some(client) = client::at_mut(&mut self.clients, session) else {
                continue;
            };
            let mut requests = client.session_requests.iter();
            if client.parts > 0 || requests.any(|(_, named)| feeds.names(*named, event.source)) {
                client.untold.insert(Untold::Session(event.source));
                self.wait(session);
            }
        }
    }
}

/// SubscriptionRequestType(263).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose<T> {
    /// 0: the current status.
    Once,
    /// 1: the current status, and later ones.
    Begin,
    /// 2: the end of a request that goes on.
    End(T),
}

/// Returns the purpose of a request. `known` is the request that goes on with its ID, whose field
/// is `id`.
fn purpose<T>(message: &Message<'_>, known: Option<T>, id: &str) -> Result<Purpose<T>, Fault> {
    match (message.get(263).unwrap_or(b"0"), known) {
        (b"0", None) => Ok(Purpose::Once),
        (b"1", None) => Ok(Purpose::Begin),
        (b"2", Some(known)) => Ok(Purpose::End(known)),
        (b"0" | b"1", Some(_)) => {
            let text = format!("a request has this {id}");
            Err(Fault::Business(BusinessReason::Other, text))
        }
        (b"2", None) => {
            let text = format!("no request has this {id}");
            Err(Fault::Business(BusinessReason::UnknownId, text))
        }
        _ => Err(Fault::Reject(RejectReason::ValueIncorrect, 263)),
    }
}

fn business(reason: BusinessReason) -> Fault {
    Fault::Business(reason, reason.text().to_owned())
}

/// Sends a list without instruments, because the request is not supported.
fn refuse(peer: &mut Peer<'_>, mut list: List) -> Result<(), Fault> {
    list.count();
    let msg_type = if list.definitions { b"d" } else { b"y" };
    answer(peer, msg_type, |out| {
        list.write_none(UNSUPPORTED, out);
        Ok(())
    })
}

/// Returns whether all criteria of a request are among those that lists have. The fields that
/// counterparties agree on are none.
fn are_criteria_known(message: &Message<'_>) -> bool {
    message.tags().iter().all(|&own| {
        own >= tag::USER_TAGS || tag::is_header(own) || tag::is_trailer(own) || READ.contains(&own)
    })
}

/// Returns the list of the instruments of a name, or of all, that fit a filter, as far as the user
/// may see them.
fn list_of(
    request: &[u8],
    definitions: bool,
    named: Option<Named<'_>>,
    filter: Filter,
    directory: &Directory,
    grant: &Grant,
) -> Result<List, Fault> {
    let symbol = match named {
        Some(Named::Id(id)) => {
            let found = id.find(directory);
            let list = List::of(request, definitions, filter, found, directory, grant);
            return Ok(list);
        }
        Some(Named::List(_)) => return Err(Fault::Reject(RejectReason::ValueIncorrect, 55)),
        Some(Named::Symbols(pattern)) => Some(pattern),
        None => None,
    };
    let filter = Filter { symbol, ..filter };
    Ok(List::new(request, definitions, filter))
}

/// Parses the criteria of a request, besides the names of instruments.
fn filter(message: &Message<'_>, feed: OfFeed) -> Result<Filter, Fault> {
    let text = |tag| message.get(tag).map(Box::from);
    let maturity = message.get(541).map(|date| {
        let nanos = beginning(date).and_then(|time| u64::try_from(time.nanos()).ok());
        nanos.ok_or(Fault::Reject(RejectReason::DataFormat, 541))
    });
    let strike = message.get(202).map(|price| {
        let price = Decimal::parse(price).and_then(|price| Price::from_decimal(price).ok());
        price.ok_or(Fault::Reject(RejectReason::DataFormat, 202))
    });
    Ok(Filter {
        symbol: None,
        security_type: text(167),
        cfi: text(461),
        market: text(1301).or_else(|| text(207)),
        segment: text(1300),
        underlying: text(311),
        description: text(107),
        currency: text(15),
        maturity_month: text(200),
        maturity: maturity.transpose()?,
        strike: strike.transpose()?,
        feed,
    })
}

/// Returns the beginning of a day, `YYYYMMDD`.
fn beginning(date: &[u8]) -> Option<UtcTimestamp> {
    UtcTimestamp::parse(&[date, b"-00:00:00"].concat())
}

/// Sends a response.
fn answer(
    peer: &mut Peer<'_>,
    msg_type: &[u8],
    fill: impl FnOnce(&mut FieldWriter<'_>) -> Result<(), WriteError>,
) -> Result<(), Fault> {
    let mut done = Ok(());
    let sent = peer.send(msg_type, |out| {
        done = fill(out);
        if done.is_err() {
            // An invalid field: nothing is sent.
            out.u64(0, 0);
        }
    });
    let fault = match (done, sent) {
        (Err(error), _) => error.to_string(),
        (_, Err(SendError::Encode(_))) => "the response is too long for a message".to_owned(),
        // The session has ended, or its store ends it.
        _ => return Ok(()),
    };
    Err(Fault::Business(
        BusinessReason::ApplicationNotAvailable,
        fault,
    ))
}

#[cfg(test)]
mod tests;
