//! How a client comes to what it subscribed to: symbols first, and the book where that was asked
//! for, some instruments at a time, as the client reads them.

use super::client::{Client, Times};
use super::interest::Wants;
use super::task::{Join, Targets, Task};
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{Encoder, ErrorCode, LiveSchema};
use fanfare_market::instruments::{Directory, Lookup};

/// Instruments of one client in one turn.
const TURN: usize = 1_000;

/// What it takes to bring a client to its subscriptions.
pub(super) struct Place<'a> {
    pub(super) encoder: &'a Encoder,
    pub(super) wants: &'a mut Wants,
    pub(super) directory: &'a Directory,
    pub(super) now: Times,
    pub(super) room: &'a mut Vec<u8>,
}

impl Place<'_> {
    /// Goes on with what a client is yet to get, as long as there is room. Returns how many
    /// instruments it went on with.
    pub(super) fn go_on(&mut self, token: Token, client: &mut Client) -> usize {
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
                Task::Join(mut join) => {
                    if self.step(&mut join, token, client) {
                        client.tasks.push_front(Task::Join(join));
                    } else if let Targets::All(_) = join.targets {
                        self.end(&join, client);
                    }
                }
            }
        }
        done
    }

    /// Appends the orders of an instrument's book.
    fn orders(&mut self, instrument: InstrumentId, client: &mut Client) {
        self.room.clear();
        self.encoder.write_orders(instrument, self.room);
        client.put_all(self.room, self.now);
    }

    /// Goes on with the next instrument. Returns false if there was none.
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

    /// A subscription to all instruments has come to the last one: from here on, those to come
    /// belong to it.
    fn end(&self, join: &Join, client: &mut Client) {
        if !join.snapshot && client.grant.has_no_limits() {
            let interest = &mut client.interest;
            interest.all = interest.all.with(join.schema.alone());
            interest.permitted = interest.permitted.without(join.schema.alone());
        }
    }

    /// Begins with an instrument. Returns false if the subscription cannot go on.
    pub(super) fn join(
        &mut self,
        join: &Join,
        instrument: InstrumentId,
        token: Token,
        client: &mut Client,
    ) -> bool {
        let known = self.directory.instrument(instrument);
        if !known.is_some_and(|known| client.grant.may_see(known.definition.name.symbol)) {
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
            let most = client.grant.subscriptions;
            let text = format!("no more than {most} instruments are permitted at a time");
            client.fail(ErrorCode::InvalidSubscription, &text, self.now);
            return false;
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

    /// An instrument belongs to a client's subscription from here on.
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

    /// An instrument has appeared that belongs to a subscription to all that the user may see: its
    /// symbol and its first records are on their way.
    pub(super) fn appeared(&mut self, instrument: InstrumentId, token: Token, client: &mut Client) {
        let known = self.directory.instrument(instrument);
        let sees = known.is_some_and(|known| client.grant.may_see(known.definition.name.symbol));
        let is_there = client.interest.some.contains_key(&instrument.0);
        if !sees || !is_there && client.interest.some.len() >= client.grant.subscriptions {
            return;
        }
        for schema in client.interest.permitted.iter() {
            self.enter(schema, instrument, token, client);
        }
    }
}
