//! The start of a client's subscriptions: symbols first, and the book if requested, some
//! instruments at a time, as the client reads them.

use super::beginning::{Join, Targets};
use super::client::{Client, Times};
use super::interest::Wants;
use super::replay::{Replay, Step};
use super::task::{Task, past};
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{Encoder, LiveSchema, SystemCode};
use fanfare_market::instruments::{Directory, Lookup};
use std::collections::HashSet;

/// The most instruments of one client in one turn.
const TURN: usize = 1_000;

/// The state needed to start a client's subscriptions.
pub(super) struct Place<'a> {
    pub(super) encoder: &'a Encoder,
    pub(super) wants: &'a mut Wants,
    pub(super) directory: &'a Directory,
    pub(super) now: Times,
    pub(super) room: &'a mut Vec<u8>,
}

impl Place<'_> {
    /// Continues with the client's pending tasks while the queue has capacity. Returns the number
    /// of instruments processed. `next` is the number of the next event.
    pub(super) fn go_on(&mut self, next: u64, token: Token, client: &mut Client) -> usize {
        let mut done = 0;
        while done < TURN
            && client.has_room()
            && let Some(task) = client.tasks.pop_front()
        {
            done += 1;
            match task {
                Task::Again => {
                    if let Some(instrument) = client.missed.pop_first() {
                        self.orders(InstrumentId(instrument), client);
                        client.tasks.push_front(Task::Again);
                    }
                }
                Task::Replay(replay) => {
                    if !self.replay(replay, next, token, client) {
                        return done - 1;
                    }
                }
                Task::Join(mut join) => {
                    if self.step(&mut join, token, client) {
                        client.tasks.push_front(Task::Join(join));
                    } else if let Targets::All(_) = join.targets {
                        self.end(&join, token, client);
                    }
                }
            }
        }
        done
    }

    /// Continues with the past of a subscription. Returns false if there was nothing to do.
    fn replay(
        &mut self,
        mut replay: Box<Replay>,
        next: u64,
        token: Token,
        client: &mut Client,
    ) -> bool {
        let name = replay.join().schema.name();
        // Asked once: the thread of another client may end meanwhile.
        let begins = replay.begins();
        if begins && !client.grant.has_no_limits() {
            let (fitting, is_full) = self.fitting(&replay.join().targets, client);
            if is_full {
                client.refuse_more(self.now);
                replay.limit(fitting.into_iter().collect());
            }
        }
        let step = replay.step(begins, (next, self.encoder.ended()), &client.grant);
        let goes_on = !matches!(step, Step::Waits);
        match step {
            Step::Records(records) => client.put_past(&records, self.now),
            Step::Live => {
                client.hold();
                self.enter_all(&replay, token, client);
            }
            Step::Done => {
                let text = format!("Replay of {name} data completed");
                client.release(SystemCode::ReplayCompleted, &text, self.now);
                return true;
            }
            Step::Failed(code, why) => {
                client.unhold(self.now);
                client.fail(code, &format!("{name}: {why}"), self.now);
                client.sum_up();
                return true;
            }
            Step::Waits => {}
        }
        client.tasks.push_front(Task::Replay(replay));
        goes_on
    }

    /// Appends the orders of an instrument's book.
    fn orders(&mut self, instrument: InstrumentId, client: &mut Client) {
        self.room.clear();
        self.encoder.write_orders(instrument, self.room);
        client.put_all(self.room, self.now);
    }

    /// Continues with the next instrument. Returns false if there was none.
    fn step(&mut self, join: &mut Join, token: Token, client: &mut Client) -> bool {
        match &mut join.targets {
            Targets::Some(instruments) => match instruments.next() {
                None => false,
                Some(instrument) => self.join(join, instrument, token, client),
            },
            Targets::All(last) => {
                let Some((symbol, found)) = self.directory.next_symbol(last.as_deref(), b"") else {
                    return false;
                };
                let found: Vec<InstrumentId> = found.collect();
                *last = Some(symbol.into());
                found.into_iter().for_each(|instrument| {
                    self.join(join, instrument, token, client);
                });
                true
            }
        }
    }

    /// Ends the start of a subscription to all instruments after the last one: from here on, it
    /// includes future ones.
    fn end(&mut self, join: &Join, token: Token, client: &mut Client) {
        if join.snapshot || !client.grant.has_no_limits() {
            return;
        }
        let (schema, interest) = (join.schema.alone(), &mut client.interest);
        interest.all = interest.all.with(schema);
        interest.permitted = interest.permitted.without(schema);
        // Instruments that appeared in the meantime are among them.
        interest.some.retain(|instrument, own| {
            *own = own.without(schema);
            self.wants.set(*instrument, token, *own);
            !own.is_empty()
        });
    }

    /// Starts an instrument. Returns false if the subscription cannot continue.
    fn join(
        &mut self,
        join: &mut Join,
        instrument: InstrumentId,
        token: Token,
        client: &mut Client,
    ) -> bool {
        let known = self.directory.instrument(instrument);
        if !client.grant.sees(known) {
            return true;
        }
        let own = client.interest.some.get(&instrument.0).copied();
        if own.is_some_and(|own| own.has(join.schema)) {
            return true;
        }
        let is_listed = match join.targets {
            Targets::Some(_) => true,
            Targets::All(_) => join.snapshot || !client.grant.has_no_limits(),
        };
        if is_listed && client.interest.some.len() >= client.grant.subscriptions && own.is_none() {
            if !std::mem::replace(&mut join.is_full, true) {
                client.refuse_more(self.now);
            }
            // Of all instruments, those that the client has already still start.
            return matches!(join.targets, Targets::All(_));
        }
        self.room.clear();
        let (time, table) = (self.now.utc, self.directory);
        self.encoder
            .write_name(instrument, join.by, time, table, self.room);
        if join.snapshot {
            self.encoder.write_orders(instrument, self.room);
        }
        self.encoder
            .write_known(join.schema, instrument, time, table, self.room);
        client.put_all(self.room, self.now);
        if is_listed {
            self.enter(join.schema, instrument, token, client);
        }
        true
    }

    /// Returns the instruments of a subscription that the user may see and that fit into its limit,
    /// and whether it may see others.
    fn fitting(&self, targets: &Targets, client: &Client) -> (HashSet<InstrumentId>, bool) {
        let all: Vec<InstrumentId> = match targets {
            Targets::Some(all) => all.as_slice().to_vec(),
            Targets::All(_) => self.by_symbol(),
        };
        let (some, most) = (&client.interest.some, client.grant.subscriptions);
        let (mut fitting, mut new, mut is_full) = (HashSet::new(), 0, false);
        for number in all {
            if !client.grant.sees(self.directory.instrument(number)) {
                continue;
            }
            let is_new = !some.contains_key(&number.0) && !fitting.contains(&number);
            if is_new && some.len() + new >= most {
                is_full = true;
                continue;
            }
            new += usize::from(is_new);
            fitting.insert(number);
        }
        (fitting, is_full)
    }

    /// Returns all instruments in the order in which a subscription to all takes them.
    fn by_symbol(&self) -> Vec<InstrumentId> {
        let (mut all, mut last) = (Vec::new(), None);
        while let Some((symbol, found)) = self.directory.next_symbol(last, b"") {
            all.extend(found);
            last = Some(symbol);
        }
        all
    }

    /// Makes a subscription live whose past has been read up to here.
    fn enter_all(&mut self, replay: &Replay, token: Token, client: &mut Client) {
        let join = replay.join();
        if replay.is_of_all() {
            if client.grant.has_no_limits() {
                return self.end(join, token, client);
            }
            let schema = join.schema.alone();
            client.interest.permitted = client.interest.permitted.with(schema);
        }
        let (fitting, is_full) = self.fitting(&join.targets, client);
        if is_full {
            client.refuse_more(self.now);
        }
        for number in fitting {
            self.enter(join.schema, number, token, client);
        }
    }

    /// Adds an instrument to a client's subscription from here on.
    fn enter(
        &mut self,
        schema: LiveSchema,
        instrument: InstrumentId,
        token: Token,
        client: &mut Client,
    ) {
        let own = client.interest.some.entry(instrument.0).or_default();
        *own = own.with(schema.alone());
        self.wants.set(instrument.0, token, *own);
    }

    /// Adds a new instrument to a subscription to all that the user may see. Its symbol and its
    /// first records are already queued.
    pub(super) fn appeared(&mut self, instrument: InstrumentId, token: Token, client: &mut Client) {
        let known = self.directory.instrument(instrument);
        let sees = client.grant.sees(known);
        let is_there = client.interest.some.contains_key(&instrument.0);
        if !sees || !is_there && client.interest.some.len() >= client.grant.subscriptions {
            return;
        }
        let permitted = client.interest.permitted.without(past(&client.tasks));
        for schema in permitted.iter() {
            self.enter(schema, instrument, token, client);
        }
    }
}
