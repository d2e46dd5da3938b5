//! The look-up of the patterns and lists of subscriptions, in slices.

use super::Core;
use super::classes::Place;
use super::client::{self, Untold};
use super::patterns::Pattern;
use fanfare_market::InstrumentId;
use fanfare_market::instruments::{Directory, Lookup};
use std::sync::Arc;

impl Core {
    /// Looks up the patterns and lists of a subscription once more, in the next turns, for
    /// instruments that its user was not permitted before.
    pub(super) fn look_again(&mut self, session: u32, number: u32) {
        let client = self.client_mut(session);
        let Some(own) = client.and_then(|client| client.get_mut(number)) else {
            return;
        };
        (own.growing, own.looks_again) = (Some((0, None)), true);
        self.growing.remove(&(true, session, number));
        self.growing.insert((false, session, number));
    }

    /// Collects the instruments of a subscription that looks again, before the first look. Returns
    /// their number, or 0 if that was done before.
    fn collect_had(&mut self, session: u32, number: u32) -> usize {
        let client = client::at_mut(&mut self.clients, session);
        let Some(own) = client.and_then(|client| client.get_mut(number)) else {
            return 0;
        };
        if !own.looks_again || own.had.is_some() {
            return 0;
        }
        let classes = own.places.iter();
        let classes = classes.filter_map(|place| self.classes.get(place.class));
        own.had = Some(classes.map(|class| class.instrument).collect());
        own.places.len()
    }

    /// Looks up instruments of patterns, and adds new instruments to the subscriptions that they
    /// belong to. Returns the number of instruments examined.
    pub(super) fn grow(&mut self, added: &[InstrumentId], directory: &Directory) -> usize {
        let told = self.feeds.tell_apart(&mut self.view, directory, added);
        let mut work = self.begin_anew(&told);
        for instrument in added {
            work += 1;
            let Some(known) = directory.instrument(*instrument) else {
                continue;
            };
            let symbol = known.definition.name.symbol;
            // One that is renamed may belong to some by the name that it had.
            let have_it = self.subscriptions_to(*instrument);
            if !have_it.is_empty() && !self.growing.is_empty() {
                self.renamed.insert(*instrument);
            }
            let all = std::mem::take(&mut self.with_patterns);
            for &(session, number) in &all {
                if have_it.binary_search(&(session, number)).is_err()
                    && self.belongs(session, number, symbol, *instrument)
                {
                    self.join(session, number, *instrument, directory);
                    self.check_most(session, number);
                }
            }
            self.with_patterns = all;
        }
        // New instruments take nothing of the share, so that looks go on while there are many.
        let mut looks = 0;
        while looks < self.share.growth
            && let Some((is_new, session, number)) = self.growing.pop_last()
        {
            looks += 1 + self.collect_had(session, number);
            if self.grow_one(session, number, directory) {
                self.growing.insert((is_new, session, number));
            }
        }
        if self.growing.is_empty() {
            self.renamed.clear();
        }
        work + looks
    }

    /// Queues a snapshot for all subscriptions to instruments whose messages have their feed from
    /// here on, because readers may keep books by it. Returns their number.
    fn begin_anew(&mut self, instruments: &[InstrumentId]) -> usize {
        if instruments.is_empty() {
            return 0;
        }
        // Those of this turn lack the feed.
        self.snapshots.clear();
        let seen = instruments.iter().filter_map(|id| self.view.get(*id));
        let classes = seen.flat_map(|seen| seen.own.classes.iter());
        let places = classes.flat_map(|class| self.classes.places(class));
        let places: Vec<Place> = places.collect();
        for place in &places {
            self.fall_behind(*place);
        }
        places.len()
    }

    /// Returns whether a subscription whose patterns reach an instrument has it: one that looks
    /// again, or by the name that the instrument had.
    fn has_already(&self, session: u32, number: u32, instrument: InstrumentId) -> bool {
        let client = self.client(session);
        let own = client.and_then(|client| client.get(number));
        match own.and_then(|own| own.had.as_ref()) {
            Some(had) => had.contains(&instrument),
            None => self.has_renamed(session, number, instrument),
        }
    }

    /// Returns whether a subscription has a renamed instrument by the name that it had.
    fn has_renamed(&self, session: u32, number: u32, instrument: InstrumentId) -> bool {
        self.renamed.contains(&instrument)
            && self
                .subscriptions_to(instrument)
                .binary_search(&(session, number))
                .is_ok()
    }

    /// Refuses a subscription with more instruments than the session may have.
    fn check_most(&mut self, session: u32, number: u32) {
        if let Some(client) = self.client_mut(session)
            && client.parts > client.grant.subscriptions
        {
            client.untold.insert(Untold::TooMany(number));
            self.wait(session);
        }
    }

    /// Returns whether a new instrument belongs to a subscription whose patterns will not reach it.
    fn belongs(&self, session: u32, number: u32, symbol: &[u8], id: InstrumentId) -> bool {
        let client = self.client(session);
        let Some((client, own)) = client.and_then(|client| Some((client, client.get(number)?)))
        else {
            return false;
        };
        let comes_yet = match own.patterns.iter().position(|own| own.fits(symbol)) {
            Some(fitting) => own.growing.as_ref().is_some_and(|(pattern, last)| {
                fitting > *pattern
                    || fitting == *pattern && last.as_deref().is_none_or(|last| symbol > last)
            }),
            None if own.lists.iter().any(|list| list.fits(symbol)) => false,
            None => return false,
        };
        !comes_yet
            && own.feed.has(id)
            // The book of another would be empty for ever.
            && (!own.spec.by_order || self.feeds.has_orders(id))
            && client.grant.may_see(symbol)
            && own.named.binary_search(&id).is_err()
    }

    /// Adds the instruments of the next symbol of a subscription's patterns, or of its lists if it
    /// looks again. Returns whether there may be more.
    fn grow_one(&mut self, session: u32, number: u32, directory: &Directory) -> bool {
        let Some(client) = self.client_mut(session) else {
            return false;
        };
        let (grant, parts) = (Arc::clone(&client.grant), client.parts);
        let Some(own) = client.get_mut(number) else {
            return false;
        };
        let Some((at, last)) = &mut own.growing else {
            return false;
        };
        if parts > grant.subscriptions {
            client.untold.insert(Untold::TooMany(number));
            self.wait(session);
            return false;
        }
        let of_lists = own.patterns.len();
        let prefix: &[u8] = match own.patterns.get(*at) {
            Some(Pattern::Symbol(prefix) | Pattern::Prefix(prefix)) => prefix,
            // A list has no order: the directory is searched from its first symbol on.
            None if own.looks_again && *at == of_lists && !own.lists.is_empty() => b"",
            None => return self.end_growth(session, number),
        };
        let next = directory.next_symbol(last.as_deref(), prefix);
        let Some((symbol, instruments)) = next else {
            (*at, *last) = (*at + 1, None);
            return true;
        };
        *last = Some(symbol.into());
        let before = own.patterns.get(..*at).unwrap_or_default();
        let is_there = before.iter().any(|own| own.fits(symbol));
        let is_of_lists = *at == of_lists;
        let fits = !is_of_lists || own.lists.iter().any(|list| list.fits(symbol));
        if is_there || !fits || !grant.may_see(symbol) {
            return true;
        }
        let (named, feed) = (Arc::clone(&own.named), own.feed);
        // The book of another would be empty for ever.
        let needs_orders = is_of_lists && own.spec.by_order;
        for instrument in instruments.filter(|id| feed.has(*id)) {
            let fits = !needs_orders || self.feeds.has_orders(instrument);
            if fits
                && named.binary_search(&instrument).is_err()
                && !self.has_already(session, number, instrument)
            {
                self.join(session, number, instrument, directory);
            }
        }
        true
    }

    /// Ends the look-up of a subscription's patterns. Returns false, as there are no more.
    fn end_growth(&mut self, session: u32, number: u32) -> bool {
        let Some(client) = self.client_mut(session) else {
            return false;
        };
        let Some(own) = client.get_mut(number) else {
            return false;
        };
        (own.growing, own.looks_again, own.had) = (None, false, None);
        let is_done = !own.goes_on && own.unserved == 0;
        if is_done && own.places.is_empty() {
            client.untold.insert(Untold::NoneFound(number));
            self.wait(session);
        } else if is_done {
            self.stop(session, number);
        }
        false
    }
}
