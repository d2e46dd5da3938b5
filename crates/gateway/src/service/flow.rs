//! The conversion of the plant's events to the messages of a turn.

use super::bodies::BodyId;
use super::class::{Link, Update, trades_after};
use super::classes::Place;
use super::client::{self, Of, Out, Untold};
use super::view::{Seen, hash_of};
use super::{Core, messages};
use crate::fanout::hole::NEWS;
use crate::fanout::versions::COUNT;
use fanfare_fix::codec::FieldWriter;
use fanfare_market::instruments::{Directory, Lookup};
use fanfare_market::{Event, Flags, InstrumentId, Kind};

impl Core {
    /// Processes an event of the plant.
    #[inline]
    pub(super) fn event(&mut self, event: &Event, directory: &Directory) {
        if event.instrument == InstrumentId::ALL {
            return self.session_status(event);
        }
        let sided;
        let event = match event.kind {
            Kind::Order if event.entry == 0 => {
                sided = self.with_side(event);
                &sided
            }
            _ => event,
        };
        let is_shown = event.flags.has(Flags::SNAPSHOT) || event.kind == Kind::Status;
        let is_known = is_shown && self.has_value(event);
        self.view.apply(event);
        match event.kind {
            Kind::Status => self.keep_status(event),
            Kind::Definition => self.keep_name(event.instrument, directory),
            _ => {}
        }
        let seen = self.view.get(event.instrument);
        let is_wanted = seen.is_some_and(|seen| !seen.own.classes.is_empty());
        // Later subscriptions begin with the state.
        if !is_wanted && !matches!(event.kind, Kind::State | Kind::Clear) {
            return;
        }
        match event.kind {
            // The trade happened before, and is in the snapshot.
            Kind::Trade if event.flags.has(Flags::SNAPSHOT) => {}
            // It is shown again for a reader that lost it, or the feed repeats the status.
            Kind::Statistic | Kind::Status if is_known => {}
            Kind::Trade | Kind::Statistic | Kind::Order => self.hold(event),
            Kind::State => self.state(event, directory),
            Kind::Status => self.tell(event, Untold::Status(event.instrument), directory),
            Kind::Clear => self.clear(event, directory),
            Kind::Level | Kind::Definition => {}
        }
        if event.flags.has(Flags::LAST) && event.kind != Kind::State {
            self.pending
                .retain(|own| own.instrument != event.instrument);
            self.update_all(event, directory);
        }
    }

    /// Returns a change of an order with the side of the order, which a feed may leave out.
    fn with_side(&self, event: &Event) -> Event {
        let seen = self.view.get(event.instrument);
        let book = seen.and_then(|seen| seen.book.as_ref());
        let order = book.and_then(|book| book.order(event.id));
        let entry = order.map_or(event.entry, |(side, ..)| side.entry());
        Event { entry, ..*event }
    }

    #[cold]
    fn keep_status(&mut self, event: &Event) {
        if let Some(seen) = self.view.get_mut(event.instrument) {
            seen.own.status = Some(*event);
        }
    }

    /// Records the name of an instrument. If it is another one, a snapshot by the new name precedes
    /// the next changes, because readers may keep books by Symbol(55).
    #[cold]
    fn keep_name(&mut self, instrument: InstrumentId, directory: &Directory) {
        let (Some(seen), Some(known)) = (
            self.view.get_mut(instrument),
            directory.instrument(instrument),
        ) else {
            return;
        };
        let name = hash_of(&known.definition.name);
        if seen.own.name.replace(name) == Some(name) {
            return;
        }
        for number in seen.own.classes.iter() {
            if let Some(class) = self.classes.get_mut(number) {
                class.begin_again();
            }
        }
    }

    /// Returns whether a statistic or a status is the last one. A status is remembered also where
    /// events were lost, since subscribers have it.
    #[cold]
    pub(super) fn has_value(&self, event: &Event) -> bool {
        let Some(seen) = self.view.get(event.instrument) else {
            return false;
        };
        match event.kind {
            Kind::Status => seen.own.status.is_some_and(|known| known.id == event.id),
            Kind::Statistic => {
                let last = seen.last.iter().find(|own| own.entry == event.entry);
                last.is_some_and(|known| known.repeats(event))
            }
            _ => false,
        }
    }

    fn has_snapshot(&self, instrument: InstrumentId) -> bool {
        let seen = self.view.get(instrument);
        seen.is_some_and(Seen::has_snapshot)
    }

    /// Ends the events of a message, and sends trades whose instrument had no last event.
    pub(super) fn end_of_message(&mut self, directory: &Directory) {
        while let Some(event) = self.pending.pop() {
            self.pending
                .retain(|own| own.instrument != event.instrument);
            self.update_all(&event, directory);
        }
    }

    fn hold(&mut self, event: &Event) {
        let Some(seen) = self.view.get(event.instrument) else {
            return;
        };
        for number in seen.own.classes.iter() {
            if let Some(class) = self.classes.get_mut(number) {
                class.hold(event, seen);
            }
        }
        self.pending.push(*event);
    }

    /// Clears a book of orders, whose subscribers need a snapshot, as those of a lost book that is
    /// shown from here on.
    fn clear(&mut self, event: &Event, directory: &Directory) {
        let Some(seen) = self.view.get(event.instrument) else {
            return;
        };
        let is_back = seen.has_snapshot() && !seen.own.has_snapshot;
        if is_back {
            // Its state came before.
            self.state(event, directory);
        }
        let Some(seen) = self.view.get(event.instrument) else {
            return;
        };
        for number in seen.own.classes.iter() {
            if let Some(class) = self.classes.get_mut(number) {
                class.clear_orders();
                // The snapshot is one of the book that follows.
                class.is_cleared |= is_back;
            }
        }
    }

    /// Sends the changes of an instrument's events to all subscribers, or schedules them.
    fn update_all(&mut self, last: &Event, directory: &Directory) {
        let Some(seen) = self.view.get(last.instrument) else {
            return;
        };
        if !seen.has_snapshot() {
            return;
        }
        for at in 0..seen.own.classes.len() {
            let seen = self.view.get(last.instrument);
            let Some(number) = seen.and_then(|seen| seen.own.classes.get(at)) else {
                return;
            };
            if !self.classes.schedule(number, self.now) {
                self.update(number, last, directory);
            }
        }
    }

    /// Sends the updates that are due.
    pub(super) fn flush_due(&mut self, directory: &Directory) {
        while let Some((number, instrument)) = self.classes.take_due(self.now) {
            let last = Event {
                instrument,
                ..Event::EMPTY
            };
            if self.has_snapshot(instrument) {
                self.update(number, &last, directory);
            }
        }
    }

    /// Sends the next update of a class.
    fn update(&mut self, number: u32, last: &Event, directory: &Directory) {
        let Self {
            view,
            classes,
            scratch,
            ..
        } = self;
        let (Some(seen), Some(class)) = (view.get(last.instrument), classes.get_mut(number)) else {
            return;
        };
        if class.is_cleared {
            return self.renew(number, last, directory);
        }
        let entries = &mut scratch.entries;
        let Some(update) = class.update(seen, last, &mut scratch.levels, entries) else {
            return self.queue_delayed(number);
        };
        let has_trades = entries.iter().any(|event| event.kind == Kind::Trade);
        let is_snapshot = class.spec.snapshots;
        if is_snapshot {
            trades_after(entries.iter(), &mut scratch.trades);
        }
        self.queue_delayed(number);
        let mut bodies = [None; COUNT];
        for place in self.classes.places(number) {
            let Some(&link) = self.classes.link(place) else {
                return;
            };
            if self.has_ended(&link) {
                continue;
            }
            let version = usize::from(link.version);
            if link.is_behind {
                // A part without its first snapshot keeps no trades, and a range of changes that
                // will be announced includes them.
                if has_trades && link.is_served && (link.missed == 0 || is_snapshot) {
                    self.hold_trades(link);
                }
                continue;
            }
            let Some(encoded) = bodies.get_mut(version) else {
                continue;
            };
            let encode = || self.encode(number, version, update, directory);
            let Some(body) = *encoded.get_or_insert_with(encode) else {
                if has_trades {
                    self.hold_trades(link);
                }
                self.fall_behind(place);
                continue;
            };
            self.post(link.session, body, Of::Part(link.part()));
        }
        if update.left_out > 0 {
            self.tell_left_out(number, update.left_out);
        }
    }

    /// Queues snapshots of the current book for all subscribers of a class. The trades that it
    /// holds come before them.
    #[cold]
    fn renew(&mut self, number: u32, last: &Event, directory: &Directory) {
        let Self {
            view,
            classes,
            scratch,
            ..
        } = self;
        let (Some(seen), Some(class)) = (view.get(last.instrument), classes.get_mut(number)) else {
            return;
        };
        class.restart(seen, last, &mut scratch.levels, &mut scratch.entries);
        for place in self.classes.places(number) {
            self.fall_behind(place);
        }
        self.update(number, last, directory);
    }

    /// Queues the snapshots of a class of orders that were delayed until its update. A snapshot has
    /// the current book, and no later update may repeat a change that it contains.
    fn queue_delayed(&mut self, number: u32) {
        let class = self.classes.get(number);
        if !class.is_some_and(|class| class.spec.by_order && class.spec.interval != 0) {
            return;
        }
        for place in self.classes.places(number) {
            let link = self.classes.link(place);
            if link.is_some_and(|link| link.is_behind) {
                self.fall_behind(place);
            }
        }
    }

    /// Announces how many trades and statistics of an update exceeded the capacity, and queues
    /// snapshots for all subscribers.
    #[cold]
    fn tell_left_out(&mut self, number: u32, count: u64) {
        for place in self.classes.places(number) {
            let Some(&link) = self.classes.link(place) else {
                return;
            };
            // A part without its first snapshot lacks none.
            if link.is_served
                && let Some(client) = self.client_mut(link.session)
                && let Some(own) = client.get_mut(link.subscription)
            {
                own.trades_left_out += count;
            }
            self.fall_behind(place);
        }
    }

    #[cold]
    fn hold_trades(&mut self, link: Link) {
        let Self {
            clients, scratch, ..
        } = self;
        let client = client::at_mut(clients, link.session);
        if let Some(own) = client.and_then(|client| client.get_mut(link.subscription)) {
            own.hold_trades(&scratch.entries);
        }
    }

    /// Encodes an update in a version, or returns `None` if that is impossible.
    fn encode(
        &mut self,
        number: u32,
        version: usize,
        update: Update,
        directory: &Directory,
    ) -> Option<BodyId> {
        let class = self.classes.get(number)?;
        if class.spec.snapshots {
            let body = match self.scratch.trades.is_empty() {
                true => self.snapshot(number, version, directory)?,
                false => self.put_snapshot(number, version, directory)?,
            };
            self.bodies.begin_at(body, update.first);
            self.bodies.keep_trades(body, &self.scratch.entries);
            return Some(body);
        }
        let writer = self.writers.get(version)?;
        let seen = self.view.get(class.instrument)?;
        let checksum = update.has_checksum.then(|| messages::checksum(class, seen));
        let numbers = (update.first, class.rpt_seq);
        let feed = self.feeds.told(Some(seen));
        let entries = &self.scratch.entries;
        let fill = |entries: &[Event], out: &mut FieldWriter<'_>| {
            messages::put_feed(feed, out);
            messages::put_checksum(checksum, out);
            writer.to_fix.changes(directory, b"", entries, out)
        };
        let mut put = self.bodies.put(b"X", numbers, |out| fill(entries, out));
        if put.is_err() {
            let sayable = &mut self.scratch.sayable;
            messages::sayable(entries, sayable, |event, out| {
                writer.to_fix.changes(directory, b"", event, out)
            });
            put = self.bodies.put(b"X", numbers, |out| fill(sayable, out));
        }
        let body = put.ok()?;
        self.bodies.keep_trades(body, entries);
        Some(body)
    }

    /// Returns the snapshot of a class in a version, as of its last update, with the last trade
    /// alone. It is encoded once a turn.
    pub(super) fn snapshot(
        &mut self,
        number: u32,
        version: usize,
        directory: &Directory,
    ) -> Option<BodyId> {
        let key = (number, version as u8);
        let class = self.classes.get(number)?;
        if let Some(known) = self.snapshots.get(&key)
            && let Some((body, _)) = self.bodies.get(*known)
            && body.numbers.1 == class.rpt_seq
        {
            return Some(*known);
        }
        self.scratch.trades.clear();
        let body = self.put_snapshot(number, version, directory)?;
        self.snapshots.insert(key, body);
        Some(body)
    }

    /// Encodes the snapshot of a class in a version, with the trades of `scratch.trades`, if there
    /// are any, in place of the last one.
    pub(super) fn put_snapshot(
        &mut self,
        number: u32,
        version: usize,
        directory: &Directory,
    ) -> Option<BodyId> {
        let class = self.classes.get(number)?;
        let seen = self.view.get(class.instrument)?;
        let writer = self.writers.get(version)?;
        let entries = &mut self.scratch.snapshot;
        class.snapshot(seen, &self.scratch.trades, entries);
        let checksum = (class.spec.checksum_every != 0).then(|| messages::checksum(class, seen));
        let (numbers, instrument) = ((class.rpt_seq, class.rpt_seq), class.instrument);
        let feed = self.feeds.told(Some(seen));
        let fill = |entries: &[Event], out: &mut FieldWriter<'_>| {
            let to_fix = &writer.to_fix;
            messages::put_feed(feed, out);
            messages::put_checksum(checksum, out);
            to_fix.snapshot(directory, b"", instrument, entries, out)
        };
        let mut put = self.bodies.put(b"W", numbers, |out| fill(entries, out));
        if put.is_err() {
            let sayable = &mut self.scratch.sayable;
            messages::sayable(entries, sayable, |event, out| {
                let to_fix = &writer.to_fix;
                to_fix.snapshot(directory, b"", instrument, event, out)
            });
            put = self.bodies.put(b"W", numbers, |out| fill(sayable, out));
        }
        put.ok()
    }

    /// Adds a message of this turn to the outbox of a session.
    pub(super) fn post(&mut self, session: u32, body: BodyId, of: Of) {
        let Some(client) = self.client_mut(session) else {
            return;
        };
        let is_first = client.outbox.is_empty();
        client.outbox.push(Out { body, of });
        if is_first {
            self.touched.push(session);
        }
    }

    /// Sends the state of an instrument if it has changed or is repeated.
    fn state(&mut self, event: &Event, directory: &Directory) {
        let instrument = event.instrument;
        let Some(seen) = self.view.get_mut(instrument) else {
            return;
        };
        // A lost book that is shown again may precede its state.
        let has_snapshot = seen.has_snapshot();
        let had_snapshot = std::mem::replace(&mut seen.own.has_snapshot, has_snapshot);
        if seen.own.told.replace(seen.state) != Some(seen.state) {
            self.tell(event, Untold::State(instrument), directory);
        }
        match (had_snapshot, has_snapshot) {
            (true, false) => self.put_behind(instrument),
            (false, true) => self.come_back(instrument, directory),
            _ => {}
        }
    }

    /// Records a restart of the plant: no book is known, of which subscribers are told.
    #[cold]
    pub(super) fn restart(&mut self) {
        self.lose_all();
        self.view.restart();
        let all: Vec<InstrumentId> = self.view.numbers().collect();
        for instrument in all {
            let Some(seen) = self.view.get_mut(instrument) else {
                continue;
            };
            if seen.own.told.replace(seen.state) == Some(seen.state) {
                continue;
            }
            for (session, _) in self.subscriptions_to(instrument) {
                if let Some(client) = self.client_mut(session) {
                    client.untold.insert(Untold::State(instrument));
                }
                self.wait(session);
            }
        }
    }

    /// Sends an item to all sessions that have requested the instrument.
    fn tell(&mut self, event: &Event, what: Untold, directory: &Directory) {
        let Some(seen) = self.view.get(event.instrument) else {
            return;
        };
        let mut bodies = [None; COUNT];
        for class in 0..seen.own.classes.len() {
            let seen = self.view.get(event.instrument);
            let Some(number) = seen.and_then(|seen| seen.own.classes.get(class)) else {
                return;
            };
            for place in self.classes.places(number) {
                let Some(&link) = self.classes.link(place) else {
                    break;
                };
                if self.has_ended(&link) {
                    continue;
                }
                if let Untold::Status(_) = what
                    && let Some(own) = self.classes.link_mut(place)
                {
                    own.owes_status = false;
                }
                let version = usize::from(link.version);
                let Some(client) = self.client_mut(link.session) else {
                    continue;
                };
                if client.told == event.number && event.number != 0 {
                    continue;
                }
                client.told = event.number;
                // It has the newest one.
                client.untold.remove(&what);
                let Some(encoded) = bodies.get_mut(version) else {
                    continue;
                };
                let body = match *encoded {
                    Some(body) => body,
                    None => {
                        let body = self.news(what, version, directory);
                        *encoded = Some(body);
                        body
                    }
                };
                if let Some(body) = body {
                    self.post(link.session, body, Of::Told(what));
                }
            }
        }
    }

    /// Encodes an item about an instrument in a version, or returns `None` if the version cannot
    /// express it.
    pub(super) fn news(
        &mut self,
        what: Untold,
        version: usize,
        directory: &Directory,
    ) -> Option<BodyId> {
        let writer = self.writers.get(version)?;
        let put = match what {
            Untold::State(instrument) => {
                let seen = self.view.get_mut(instrument)?;
                let state = seen.state;
                // After a loss, the others were told another one: the next state is news.
                seen.own.told = seen.own.told.filter(|told| *told == state);
                let feed = self.feeds.told(Some(&*seen));
                self.bodies.put(NEWS, (0, 0), |out| {
                    messages::put_feed(feed, out);
                    messages::state(writer, directory, instrument, state, out);
                    Ok(())
                })
            }
            Untold::TooMany(_) | Untold::NoneFound(_) => return None,
            Untold::Session(source) => {
                let of_source = self.sessions.iter().find(|event| event.source == source);
                let (event, feeds) = (*of_source?, &self.feeds);
                self.bodies.put(b"h", (0, 0), |out| {
                    messages::session_status(writer, feeds, b"", &event, out)
                })
            }
            Untold::Status(instrument) => {
                let event = self.last_status(instrument, directory);
                let feed = self.feeds.told(self.view.get(instrument));
                self.bodies.put(b"f", (0, 0), |out| {
                    messages::put_feed(feed, out);
                    messages::status(writer, directory, b"", &event, out)
                })
            }
        };
        put.ok()
    }

    /// Marks all subscriptions to an instrument as in need of a snapshot.
    pub(super) fn put_behind(&mut self, instrument: InstrumentId) {
        let Some(seen) = self.view.get_mut(instrument) else {
            return;
        };
        seen.own.has_snapshot = false;
        for number in seen.own.classes.iter() {
            if let Some(class) = self.classes.get_mut(number) {
                class
                    .links
                    .iter_mut()
                    .for_each(|link| link.is_behind = true);
            }
        }
    }

    /// Queues all subscriptions to an instrument whose snapshot is available again.
    fn come_back(&mut self, instrument: InstrumentId, directory: &Directory) {
        let last = Event {
            instrument,
            ..Event::EMPTY
        };
        let Some(seen) = self.view.get(instrument) else {
            return;
        };
        for class in 0..seen.own.classes.len() {
            let seen = self.view.get(instrument);
            let Some(number) = seen.and_then(|seen| seen.own.classes.get(class)) else {
                return;
            };
            self.renew(number, &last, directory);
        }
    }

    /// Marks a link as in need of a snapshot next.
    pub(super) fn fall_behind(&mut self, place: Place) {
        let Some(link) = self.classes.link_mut(place) else {
            return;
        };
        link.is_behind = true;
        if std::mem::replace(&mut link.is_queued, true) {
            return;
        }
        let link = *link;
        if self.has_ended(&link) {
            return;
        }
        if let Some(client) = self.client_mut(link.session) {
            client.behind.push_back(link.part());
        }
        self.wait(link.session);
    }

    /// Records that a session has pending messages.
    pub(super) fn wait(&mut self, session: u32) {
        if let Some(client) = self.client_mut(session)
            && !std::mem::replace(&mut client.is_waiting, true)
        {
            self.waiting.push(session);
        }
    }
}

#[cfg(test)]
mod tests;
