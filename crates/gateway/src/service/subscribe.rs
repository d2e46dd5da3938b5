//! The requests of sessions: granting, refusing and revoking subscriptions.

use super::class::Link;
use super::classes::Place;
use super::client::{self, Client, Subscription, Untold, lead};
use super::contract::Contract;
use super::feeds::OfFeed;
use super::patterns::Pattern;
use super::request::{
    Fault, MarketDataRequest, NONE_MATCHES, Named, Wanted, What, gone, id, reason,
};
use super::spec::Spec;
use super::view::hash_of;
use super::{Core, replies};
use crate::notice::audit::Request;
use crate::users::grant::Grant;
use crate::users::{Names, PortName};
use fanfare_engine::host::{Peer, Peers};
use fanfare_feed::recovery::State;
use fanfare_fix::codec::Message;
use fanfare_fix::session::{BusinessReason, RejectReason};
use fanfare_market::InstrumentId;
use fanfare_market::book::BookKind;
use fanfare_market::instruments::{Directory, Lookup};
use std::sync::Arc;

/// The most prefixes of one request.
const MOST_PATTERNS: usize = 64;

/// The bytes of a client with a conflated subscription that the kernel takes while it cannot send
/// them, as many as wait here before changes are merged.
const UNSENT: i32 = 16 << 10;

/// The part of a request that is granted.
#[derive(Default)]
struct Granted {
    named: Vec<InstrumentId>,
    patterns: Vec<Pattern>,
    lists: Vec<Arc<Names>>,
    feed: OfFeed,
}

/// Text(58) of the refusal of a request beyond the limit of the user.
const TOO_MANY: &str = "too many requests in a second";

/// Text(58) of the refusal of a request for orders of an instrument whose feed has levels.
const OF_LEVELS: &str = "AggregatedBook(266) must be Y: the book has levels, not orders";

/// Text(58) of the refusal of a request for orders of a prefix, if a feed has levels.
const MAY_HAVE_LEVELS: &str = "AggregatedBook(266) must be Y where a feed has levels, not orders: \
                               Feed(20014) may name one that has orders";

/// Text(58) of the refusal of a request for past messages.
const PAST: &str = "past events are not sent in FIX: a subscription begins with a snapshot; \
                    DBN replays past events from the log, by start=";

impl Core {
    /// Responds to a message.
    pub(super) fn answer(
        &mut self,
        peer: &mut Peer<'_>,
        message: &Message<'_>,
        directory: &Directory,
    ) {
        let session = peer.key().index() as u32;
        let now = self.now;
        let Some(client) = self.client_mut(session) else {
            return;
        };
        let is_in_time = client.may_ask(now);
        client.has_asked |= message.msg_type() == b"V";
        let done = match message.msg_type() {
            b"V" if !is_in_time => Err(beyond_limit(message)),
            b"V" => self.market_data(session, message, directory),
            b"x" | b"c" | b"e" | b"g" if !is_in_time => {
                Err(Fault::Business(BusinessReason::Other, TOO_MANY.to_owned()))
            }
            b"x" | b"c" | b"e" | b"g" => self.securities(peer, message, directory),
            // Responses to messages of the gateway.
            b"j" | b"B" => return,
            b"BW" if self.knows(session, b"BW") => {
                let reason = BusinessReason::UnsupportedMessageType;
                Err(Fault::Business(reason, PAST.to_owned()))
            }
            other => Err(self.unsupported(session, other)),
        };
        self.record(peer, message, done.as_ref().err());
        self.keep_newest(session, peer);
        if let Err(fault) = done {
            replies::fault(peer, message, &fault);
        }
    }

    /// Keeps messages of a client with a conflated subscription here until they can be sent: the
    /// kernel would take some megabytes of them, which nothing newer can replace.
    fn keep_newest(&mut self, session: u32, peer: &mut Peer<'_>) {
        if let Some(client) = self.client_mut(session)
            && client.has_conflated
            && !client.has_limit
        {
            client.has_limit = true;
            peer.limit_unsent(UNSENT);
        }
    }

    /// Writes a request and its outcome to the audit file, without the secrets of a UserRequest(BE)
    /// and the like.
    fn record(&self, peer: &Peer<'_>, message: &Message<'_>, fault: Option<&Fault>) {
        let client = self.client(peer.key().index() as u32);
        let user = client.map_or("", |client| &client.grant.user);
        let id = [262, 320, 324, 335]
            .into_iter()
            .find_map(|tag| message.get(tag));
        let refused = fault.map(Fault::text);
        let mut room = Vec::new();
        let shown = message.masked(&mut room);
        self.audit.request(&Request {
            session: peer.id(),
            user,
            msg_type: message.msg_type(),
            id: id.unwrap_or_default(),
            what: shown.body(),
            refused: refused.as_deref(),
        });
    }

    /// Returns whether the version of a session has a message.
    fn knows(&self, session: u32, msg_type: &[u8]) -> bool {
        let client = self.client(session);
        let writer = client.and_then(|client| self.writers.get(client.version));
        writer.is_some_and(|writer| writer.dictionary.message(msg_type).is_some())
    }

    /// Returns the fault for a message that the service does not support.
    fn unsupported(&self, session: u32, msg_type: &[u8]) -> Fault {
        match self.knows(session, msg_type) {
            true => {
                let reason = BusinessReason::UnsupportedMessageType;
                Fault::Business(reason, reason.text().to_owned())
            }
            false => Fault::Reject(RejectReason::InvalidMsgType, 35),
        }
    }

    /// Responds to MarketDataRequest(V).
    pub(super) fn market_data(
        &mut self,
        session: u32,
        message: &Message<'_>,
        directory: &Directory,
    ) -> Result<(), Fault> {
        let client = self.client(session).ok_or_else(gone)?;
        let writer = self.writers.get(client.version).ok_or_else(gone)?;
        if writer.dictionary.message(b"V").is_none() {
            return Err(Fault::Reject(RejectReason::InvalidMsgType, 35));
        }
        // ApplBegSeqNum and ApplEndSeqNum.
        if [1182, 1183].iter().any(|tag| message.get(*tag).is_some()) && message.get(262).is_some()
        {
            return Err(Fault::refused(reason::REQUEST_TYPE, PAST));
        }
        let request = MarketDataRequest::read(message, &writer.dictionary)?;
        let known = client.find(262, request.id);
        match (request.what, known) {
            (What::Stop, Some(number)) => {
                self.stop(session, number);
                Ok(())
            }
            (What::Stop, None) => {
                let text = "no subscription has this MDReqID(262)";
                Err(Fault::Refused(None, text.to_owned()))
            }
            (What::Open(_), Some(_)) => {
                let text = "a subscription has this MDReqID(262)";
                Err(Fault::refused(reason::DUPLICATE_ID, text))
            }
            (What::Open(wanted), None) => {
                let granted = self.grant(client, &wanted, directory)?;
                self.open(session, request.id, &wanted, granted, directory);
                Ok(())
            }
        }
    }

    /// Returns the part of a request that may be served.
    fn grant(
        &self,
        client: &Client,
        wanted: &Wanted<'_>,
        directory: &Directory,
    ) -> Result<Granted, Fault> {
        let grant = &client.grant;
        allow(grant, wanted)?;
        let feed = self.feeds.of_name(wanted.feed);
        let mut granted = Granted {
            feed: feed.map_err(|text| Fault::refused(reason::UNKNOWN_SYMBOL, text))?,
            ..Granted::default()
        };
        for named in &wanted.instruments {
            self.add(named, grant, directory, &mut granted)?;
        }
        granted.named.sort_unstable();
        granted.named.dedup();
        if granted.patterns.len() > MOST_PATTERNS {
            let text = format!("at most {MOST_PATTERNS} prefixes in a request");
            return Err(Fault::refused(reason::BANDWIDTH, text));
        }
        let is_empty = granted.named.is_empty() && granted.patterns.is_empty();
        if is_empty && !wanted.changes {
            return Err(Fault::refused(reason::UNKNOWN_SYMBOL, NONE_MATCHES));
        }
        let fits = client.check_one_more(granted.named.len());
        fits.map_err(|text| Fault::refused(reason::BANDWIDTH, text))?;
        if wanted.by_order {
            self.check_orders(wanted, &granted)?;
        }
        Ok(granted)
    }

    /// Adds the instruments of a name.
    fn add(
        &self,
        named: &Named<'_>,
        grant: &Grant,
        directory: &Directory,
        granted: &mut Granted,
    ) -> Result<(), Fault> {
        let (before, feed) = (granted.named.len(), granted.feed);
        match named {
            Named::Symbols(Pattern::Symbol(symbol)) => {
                let found = directory.of_symbol(symbol).filter(|id| feed.has(*id));
                granted.named.extend(found);
                let name = symbol.escape_ascii().to_string();
                check_named(grant, directory, granted, before, &name)?;
                self.check_unique(directory, granted, before, &name)
            }
            Named::Id(named) => {
                let found = named.find(directory).into_iter();
                granted.named.extend(found.filter(|id| feed.has(*id)));
                let name = named.id.to_string();
                check_named(grant, directory, granted, before, &name)?;
                self.check_unique(directory, granted, before, &name)
            }
            Named::Symbols(pattern) => {
                granted.patterns.push(pattern.clone());
                Ok(())
            }
            Named::List(name) => {
                let list = self.users.get().list(name).ok_or_else(|| {
                    let text = format!("unknown list @{}", name.escape_ascii());
                    Fault::refused(reason::UNKNOWN_SYMBOL, text)
                })?;
                if granted.lists.iter().any(|own| Arc::ptr_eq(own, list)) {
                    return Ok(());
                }
                granted.lists.push(Arc::clone(list));
                // Instruments of a list that the user may not see, or that do not exist, are left
                // out.
                let seen = list.symbols().filter(|symbol| grant.may_see(symbol));
                let found = seen.flat_map(|symbol| directory.of_symbol(symbol));
                granted.named.extend(found.filter(|id| feed.has(*id)));
                let prefixes = list.prefixes();
                let prefixes = prefixes.map(|prefix| Pattern::Prefix(prefix.into()));
                granted.patterns.extend(prefixes);
                Ok(())
            }
        }
    }

    /// Checks that no instrument named one by one is in several feeds, unless the request names the
    /// feed.
    fn check_unique(
        &self,
        directory: &Directory,
        granted: &Granted,
        before: usize,
        name: &str,
    ) -> Result<(), Fault> {
        let mut found = granted.named.iter().skip(before);
        let feeds = match granted.feed.is_all() {
            true => found.find_map(|id| self.feeds.several(directory, *id)),
            false => None,
        };
        match feeds {
            None => Ok(()),
            Some(feeds) => {
                let text = format!("{name} is in the feeds {feeds}: Feed(20014) must name one");
                Err(Fault::refused(reason::UNKNOWN_SYMBOL, text))
            }
        }
    }

    /// Checks AggregatedBook(266)=N, which is possible only for books of orders, at full depth. The
    /// feed of an instrument determines the kind of its book, before it has one.
    fn check_orders(&self, wanted: &Wanted<'_>, granted: &Granted) -> Result<(), Fault> {
        if wanted.depth != 0 {
            let text = "MarketDepth(264) must be 0 for a book by order";
            return Err(Fault::refused(reason::DEPTH, text));
        }
        let is_of_orders = |kind| kind == BookKind::Orders;
        let mut kinds = self.feeds.kinds(granted.feed);
        let fault = match granted.patterns.is_empty() {
            true => {
                let mut named = granted.named.iter();
                let fits = kinds.any(is_of_orders) && named.all(|id| self.feeds.has_orders(*id));
                (!fits).then_some(OF_LEVELS)
            }
            false => (!kinds.all(is_of_orders)).then_some(MAY_HAVE_LEVELS),
        };
        match fault {
            None => Ok(()),
            Some(text) => Err(Fault::refused(reason::AGGREGATED, text)),
        }
    }

    /// Opens a subscription, whose parts begin with snapshots.
    fn open(
        &mut self,
        session: u32,
        id: &[u8],
        wanted: &Wanted<'_>,
        granted: Granted,
        directory: &Directory,
    ) {
        let Some(client) = self.client_mut(session) else {
            return;
        };
        let contract = wanted.contract.unwrap_or(client.grant.contract);
        client.has_conflated |= contract == Contract::Conflated;
        let spec = Spec {
            depth: wanted.depth,
            entries: wanted.entries,
            by_order: wanted.by_order,
            snapshots: wanted.snapshots && wanted.changes,
            interval: if wanted.changes { wanted.interval } else { 0 },
            checksum_every: wanted.checksum_every,
        };
        let lead = lead(262, id);
        let has_patterns = !granted.patterns.is_empty();
        let may_grow = has_patterns || !granted.lists.is_empty();
        let mut own = Subscription::new(lead, spec, contract, wanted.changes, &granted.named);
        (own.patterns, own.lists, own.feed) = (granted.patterns, granted.lists, granted.feed);
        own.growing = has_patterns.then_some((0, None));
        let number = client.add(own);
        for instrument in granted.named {
            self.join(session, number, instrument, directory);
        }
        if has_patterns {
            self.growing.insert((true, session, number));
        }
        if may_grow && wanted.changes {
            self.with_patterns.insert((session, number));
        }
    }

    /// Sets what a first subscription is sent of an instrument: its name, and its feed only if
    /// other feeds have an instrument of this name.
    fn name_first(&mut self, instrument: InstrumentId, directory: &Directory) {
        self.feeds
            .forget_alone(&mut self.view, directory, instrument);
        let seen = self.view.open(instrument);
        if seen.own.classes.is_empty() {
            let known = directory.instrument(instrument);
            seen.own.name = known.map(|known| hash_of(&known.definition.name));
        }
    }

    /// Adds an instrument to a subscription.
    pub(super) fn join(
        &mut self,
        session: u32,
        number: u32,
        instrument: InstrumentId,
        directory: &Directory,
    ) {
        // So that no request adds parts faster than they end.
        self.end_one();
        self.name_first(instrument, directory);
        let has_status = self.last_status(instrument, directory).id != 0;
        let Self {
            view,
            classes,
            clients,
            is_within,
            ..
        } = self;
        let Some(client) = client::at_mut(clients, session) else {
            return;
        };
        let version = client.version as u8;
        let Some(own) = client.get_mut(number) else {
            return;
        };
        if let Some(had) = &mut own.had {
            had.insert(instrument);
        }
        let entry = own.places.len() as u32;
        let link = Link {
            session,
            subscription: number,
            entry,
            version,
            is_behind: true,
            is_queued: true,
            is_served: false,
            // A request for statuses has its response.
            owes_status: has_status && own.goes_on && !own.is_of_status(),
            missed: 0,
        };
        let seen = view.get(instrument);
        let is_first = seen.is_none_or(|seen| seen.own.classes.is_empty());
        let place = classes.join(view, instrument, own.spec, link);
        if let Some(class) = classes.get_mut(place.class).filter(|_| *is_within) {
            // The book may have a part of the message only.
            class.is_cleared |= class.links.len() == 1;
        }
        own.places.push(place);
        own.unserved += 1;
        // A subscription without instruments counts as one already.
        client.parts += usize::from(entry > 0);
        client.behind.push_back(link.part());
        if let Some(seen) = view.get_mut(instrument)
            && (seen.state != State::Live || !seen.has_snapshot())
        {
            client.untold.insert(Untold::State(instrument));
            // The next state is news if it differs from this one, or from that told to others.
            let is_told = is_first || seen.own.told == Some(seen.state);
            seen.own.told = is_told.then_some(seen.state);
        }
        self.wait(session);
    }

    /// Applies a change of the users: each session has the current entitlements of its user, and
    /// subscriptions that are no longer permitted end.
    #[cold]
    pub(super) fn review(&mut self, peers: &mut Peers<'_>, directory: &Directory) {
        for session in 0..self.clients.len() as u32 {
            let Some(client) = self.client_mut(session) else {
                continue;
            };
            let Some(mut peer) = peers.get(client.key) else {
                continue;
            };
            let grant = self.users.get().grant(peer.id(), PortName::Consumers);
            let grant = grant.unwrap_or_else(|| Arc::new(Grant::nothing()));
            let Some(client) = self.client_mut(session) else {
                continue;
            };
            if client.grant == grant {
                continue;
            }
            let is_of_others = client.grant.instruments != grant.instruments;
            client.set_grant(&grant, directory);
            for number in 0..client.subscriptions.len() as u32 {
                self.revoke(&mut peer, session, number, &grant, directory);
                if is_of_others && self.with_patterns.contains(&(session, number)) {
                    self.look_again(session, number);
                }
            }
        }
    }

    /// Ends the subscriptions to renamed instruments that their users may not see by the new names.
    pub(super) fn review_names(
        &mut self,
        renamed: &[InstrumentId],
        peers: &mut Peers<'_>,
        directory: &Directory,
    ) {
        let mut last = None;
        for (session, number) in self.hidden(renamed, directory) {
            let Some(client) = self.client_mut(session) else {
                continue;
            };
            let (key, grant) = (client.key, Arc::clone(&client.grant));
            if last.replace(session) != Some(session) {
                client.set_grant(&grant, directory);
            }
            if let Some(mut peer) = peers.get(key) {
                self.revoke(&mut peer, session, number, &grant, directory);
            }
        }
    }

    /// Returns the subscriptions to some instruments that their users may not see.
    fn hidden(&self, instruments: &[InstrumentId], directory: &Directory) -> Vec<(u32, u32)> {
        let mut hidden = Vec::new();
        for instrument in instruments {
            let known = directory.instrument(*instrument);
            let mut found = self.subscriptions_to(*instrument);
            found.retain(|(session, _)| {
                let client = self.client(*session);
                client.is_some_and(|client| !client.grant.sees(known))
            });
            hidden.append(&mut found);
        }
        hidden.sort_unstable();
        hidden.dedup();
        hidden
    }

    /// Ends a subscription that the user is not permitted.
    fn revoke(
        &mut self,
        peer: &mut Peer<'_>,
        session: u32,
        number: u32,
        grant: &Grant,
        directory: &Directory,
    ) {
        let client = self.client(session);
        let Some(own) = client.and_then(|client| client.get(number)) else {
            return;
        };
        let may_see = |place: &Place| {
            let class = self.classes.get(place.class);
            let known = class.and_then(|class| directory.instrument(class.instrument));
            known.is_none_or(|known| grant.may_see(known.definition.name.symbol))
        };
        let is_within = own.is_of_status()
            || own.spec.entries.and(grant.entries) == own.spec.entries
                && may_have_depth(grant, own.spec.depth)
                && grant.contracts.contains(&own.contract);
        if is_within && (grant.instruments.are_all() || own.places.iter().all(may_see)) {
            return;
        }
        let text = "no longer permitted: the subscription has ended";
        // A session that does not read is ended by the next message sent to it.
        let _ = peer.make_room();
        let msg_type = match own.is_of_status() {
            true => {
                replies::end_status(peer, own.request(), text);
                b"e"
            }
            false => {
                replies::refuse(peer, own.request(), Some(reason::PERMISSION), text);
                b"V"
            }
        };
        self.audit
            .revoked(peer.id(), &grant.user, msg_type, own.request());
        self.stop(session, number);
    }

    /// Returns the subscriptions that have an instrument, in order.
    pub(super) fn subscriptions_to(&self, instrument: InstrumentId) -> Vec<(u32, u32)> {
        let seen = self.view.get(instrument);
        let classes = seen.into_iter().flat_map(|seen| seen.own.classes.iter());
        let links = classes
            .filter_map(|number| self.classes.get(number))
            .flat_map(|class| &class.links)
            .filter(|link| !self.has_ended(link));
        let mut all: Vec<_> = links
            .map(|link| (link.session, link.subscription))
            .collect();
        all.sort_unstable();
        all
    }
}

/// Checks that instruments named one by one exist, and that the user may see them.
fn check_named(
    grant: &Grant,
    directory: &Directory,
    granted: &Granted,
    before: usize,
    name: &str,
) -> Result<(), Fault> {
    let found = granted.named.get(before..).unwrap_or_default();
    if found.is_empty() {
        let text = format!("unknown instrument {name}");
        return Err(Fault::refused(reason::UNKNOWN_SYMBOL, text));
    }
    let may_see = |id: &InstrumentId| grant.sees(directory.instrument(*id));
    match found.iter().all(may_see) {
        true => Ok(()),
        false => {
            let text = format!("{name} is not permitted");
            Err(Fault::refused(reason::PERMISSION, text))
        }
    }
}

/// Returns the fault of a MarketDataRequest(V) beyond the limit of the user. One without an
/// MDReqID(262) is rejected, because the refusal has to repeat the ID.
fn beyond_limit(message: &Message<'_>) -> Fault {
    match id(message, 262) {
        Ok(_) => Fault::refused(reason::BANDWIDTH, TOO_MANY),
        Err(fault) => fault,
    }
}

/// Returns whether a user may have this many levels, where 0 stands for all.
const fn may_have_depth(grant: &Grant, depth: u16) -> bool {
    grant.depth == 0 || depth != 0 && depth <= grant.depth
}

/// Checks that a user may request entries, depth and contract.
fn allow(grant: &Grant, wanted: &Wanted<'_>) -> Result<(), Fault> {
    if wanted.entries.and(grant.entries) != wanted.entries {
        let text = "some of the MDEntryTypes(269) are not permitted";
        return Err(Fault::refused(reason::PERMISSION, text));
    }
    if !may_have_depth(grant, wanted.depth) {
        let text = format!("MarketDepth(264) must be between 1 and {}", grant.depth);
        return Err(Fault::refused(reason::PERMISSION, text));
    }
    if let Some(contract) = wanted.contract
        && !grant.contracts.contains(&contract)
    {
        let text = format!("the contract {} is not permitted", contract.name());
        return Err(Fault::refused(reason::PERMISSION, text));
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests;
