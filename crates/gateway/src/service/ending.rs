//! The end of subscriptions, in slices: a session may have a million parts, whose removal at once
//! would hold up all others of the worker.
//!
//! A subscription that ends leaves its session at once: it is sent nothing more, and counts for no
//! limit. The links of its parts stay in their classes until a slice removes them. Until then its
//! number is not used again, not even by another session in the same place of the host, so that
//! such a link is recognized by its subscription, which the session does not have.
//!
//! While parts are ending, each part that is added ends one: there are never more of both than the
//! sessions have had at a time. What is left when the worker stops is dropped with its classes.

use super::Core;
use super::class::Link;
use super::classes::{NOWHERE, Place};
use super::client::{self, Client, Subscription};
use std::collections::{BTreeMap, VecDeque};

/// The most parts that are ended in a turn, which bounds the delay of other sessions. Fewer are
/// ended while the feeds bring messages.
pub(super) const SLICE: usize = 2048;

/// A session, and the number of a subscription that it had.
type Id = (u32, u32);

/// The subscriptions that have ended, and whose parts have not all been removed.
pub(super) struct Ending {
    /// The places of the parts that are left of each.
    all: BTreeMap<Id, Vec<Place>>,
    /// Those that ended first come first.
    order: VecDeque<Id>,
    /// The number of parts that may still be ended before the next turn.
    room: usize,
}

impl Ending {
    pub(super) const fn new() -> Self {
        Self {
            all: BTreeMap::new(),
            order: VecDeque::new(),
            room: SLICE,
        }
    }

    /// Returns whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the place of a link's part, if its subscription has ended.
    fn place_mut(&mut self, link: &Link) -> Option<&mut Place> {
        let places = self.all.get_mut(&(link.session, link.subscription))?;
        places.get_mut(link.entry as usize)
    }

    /// Returns the numbers of a session, in order.
    fn numbers(&self, session: u32) -> impl Iterator<Item = u32> {
        let all = self.all.range((session, 0)..=(session, u32::MAX));
        all.map(|((_, number), _)| *number)
    }
}

impl Core {
    /// Adds a session in its place of the host, where another one may be ending.
    pub(super) fn log_on(&mut self, session: u32, mut client: Box<Client>) {
        client.skip(self.ending.numbers(session));
        let place = session as usize;
        if self.clients.len() <= place {
            self.clients.resize_with(place + 1, || None);
        }
        if let Some(own) = self.clients.get_mut(place) {
            *own = Some(client);
        }
    }

    /// Removes a session with all of its subscriptions, whose parts are ended in slices.
    pub(super) fn end(&mut self, session: u32) {
        let place = self.clients.get_mut(session as usize);
        let Some(client) = place.and_then(Option::take) else {
            return;
        };
        for (number, own) in (0..).zip(client.subscriptions) {
            if let Some(own) = own {
                self.set_aside((session, number), own);
            }
        }
        self.touched.retain(|own| *own != session);
        self.waiting.retain(|own| *own != session);
        self.end_some();
    }

    /// Ends a subscription, whose parts are ended in slices.
    pub(super) fn stop(&mut self, session: u32, number: u32) {
        let client = self.client_mut(session);
        let Some(own) = client.and_then(|client| client.remove(number)) else {
            return;
        };
        self.set_aside((session, number), own);
        self.end_some();
    }

    fn set_aside(&mut self, id: Id, own: Box<Subscription>) {
        for is_new in [false, true] {
            self.growing.remove(&(is_new, id.0, id.1));
        }
        self.with_patterns.remove(&id);
        if own.places.is_empty() {
            return self.release(id);
        }
        self.ending.order.push_back(id);
        self.ending.all.insert(id, own.places);
    }

    /// Releases the number of a subscription that has no parts any longer.
    fn release(&mut self, (session, number): Id) {
        if let Some(client) = self.client_mut(session) {
            client.release(number);
        }
    }

    /// Ends as many parts as a turn may. Returns their number.
    pub(super) fn end_slice(&mut self) -> usize {
        self.ending.room = self.share.ends;
        self.end_some()
    }

    /// Ends as many parts as may still be ended before the next turn. Returns their number.
    fn end_some(&mut self) -> usize {
        let before = self.ending.room;
        while self.ending.room > 0 && self.end_one() {
            self.ending.room -= 1;
        }
        before - self.ending.room
    }

    /// Ends a part of the subscription that ended first, the last part first. Returns whether there
    /// was one.
    pub(super) fn end_one(&mut self) -> bool {
        let Ending { all, order, .. } = &mut self.ending;
        let Some(&id) = order.front() else {
            return false;
        };
        let (place, is_last) = match all.get_mut(&id) {
            Some(places) => (places.pop(), places.is_empty()),
            None => (None, true),
        };
        if let Some(place) = place {
            self.leave(place);
        }
        if is_last {
            self.ending.order.pop_front();
            self.ending.all.remove(&id);
            self.release(id);
        }
        true
    }

    /// Releases one part, whose place another one may take.
    pub(super) fn leave(&mut self, place: Place) {
        if place == NOWHERE {
            return;
        }
        let Some(moved) = self.classes.leave(&mut self.view, place) else {
            return;
        };
        let Self {
            clients, ending, ..
        } = self;
        let link = moved.link;
        let client = client::at_mut(clients, link.session);
        let own = client.and_then(|client| client.get_mut(link.subscription));
        let known = match own {
            Some(own) => own.places.get_mut(link.entry as usize),
            None => ending.place_mut(&link),
        };
        if let Some(known) = known {
            *known = moved.to;
        }
    }

    /// Returns whether the subscription of a link has ended, so that nothing is sent for it.
    #[inline]
    pub(super) fn has_ended(&self, link: &Link) -> bool {
        if self.ending.is_empty() {
            return false;
        }
        let client = self.client(link.session);
        client.is_none_or(|client| client.get(link.subscription).is_none())
    }
}

#[cfg(test)]
mod tests;
