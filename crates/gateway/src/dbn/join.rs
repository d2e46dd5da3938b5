//! The start of a client's subscriptions: symbols first, and the book if requested, some
//! instruments at a time, as the client reads them.

use super::beginning::{Join, Targets};
use super::client::{Client, Times};
use super::interest::Wants;
use super::replay::{Replay, Step};
use super::task::Task;
use super::threads::{self, Threads};
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{Encoder, LiveSchema, SystemCode};
use fanfare_market::instruments::{Directory, Lookup};
use std::collections::HashSet;
use std::sync::Arc;

/// The most instruments of one client in one turn.
const TURN: usize = 1_000;

/// The state needed to start a client's subscriptions.
pub(super) struct Place<'a> {
    pub(super) encoder: &'a Encoder,
    pub(super) wants: &'a mut Wants,
    pub(super) threads: &'a mut Threads,
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
                        self.again(InstrumentId(instrument), client);
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

    /// Appends the records of the past that are ready, for a subscription that is live. No replay
    /// is started.
    pub(super) fn finish(&mut self, next: u64, token: Token, client: &mut Client) {
        while let Some(Task::Replay(replay)) = client.tasks.front()
            && replay.has_begun()
            && !replay.is_past()
        {
            let Some(Task::Replay(replay)) = client.tasks.pop_front() else {
                return;
            };
            if !self.replay(replay, next, token, client) {
                return;
            }
        }
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
        let place = match replay.has_begun() {
            true => None,
            false => self.begin(&mut replay, client),
        };
        let ended = self.encoder.ended();
        let step = replay.step(place, next, ended, &client.grant, self.now.mono);
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
                // The records that were held back follow the missing ones.
                client.release_failed(code, &format!("{name}: {why}"), self.now);
                client.sum_up();
                return true;
            }
            Step::Waits => {}
        }
        client.tasks.push_front(Task::Replay(replay));
        goes_on
    }

    /// Returns a place for the thread of a replay, which it limits to the instruments that the
    /// client may have. If there is none, the client is told so once.
    fn begin(&mut self, replay: &mut Replay, client: &mut Client) -> Option<Arc<()>> {
        let (ticket, is_first) = replay.ticket(self.threads);
        let Some(place) = self.threads.take(client.owner(), ticket) else {
            if is_first {
                let text = format!(
                    "Replay of {} data waits: {} are read at a time, {} of one user",
                    replay.join().schema.name(),
                    threads::MOST,
                    threads::OWN
                );
                client.tell(SystemCode::Unset, &text, self.now);
            }
            return None;
        };
        if !client.grant.has_no_limits() {
            let join = replay.join();
            let (fitting, is_full) = self.fitting(join.schema, &join.targets, client);
            if is_full {
                client.refuse_more(self.now);
                replay.limit(fitting.into_iter().collect());
            }
        }
        Some(place)
    }

    /// Appends the orders of an instrument's book, if the client still wants its orders.
    fn again(&mut self, instrument: InstrumentId, client: &mut Client) {
        if !client.interest.of(instrument).has(LiveSchema::Mbo) {
            return;
        }
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
                // One at a time, because a symbol may have any number of them.
                let after = last.as_ref().map(|(symbol, number)| (&**symbol, *number));
                let Some((symbol, instrument)) = self.directory.next_instrument(after) else {
                    return false;
                };
                *last = Some((symbol.into(), instrument));
                self.join(join, instrument, token, client);
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
        if client.interest.leaves_out(join.schema) {
            return self.list(join.schema, token, client);
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

    /// Lists the instruments of a subscription to all that leaves some out, and makes them live.
    pub(super) fn list(&mut self, schema: LiveSchema, token: Token, client: &mut Client) {
        let interest = &mut client.interest;
        interest.all = interest.all.without(schema.alone());
        interest.permitted = interest.permitted.with(schema.alone());
        self.enter_fitting(schema, &Targets::All(None), token, client);
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
        if !client.grant.sees(known) || leaves_out(client, join.schema, &join.targets, instrument) {
            return true;
        }
        let own = client.interest.some.get(&instrument.0).copied();
        if own.is_some_and(|own| own.has(join.schema)) {
            return true;
        }
        let is_listed = match join.targets {
            Targets::Some(_) => true,
            // Records of one that begins with its book or state follow at once.
            Targets::All(_) => join.begins_with_state() || !client.grant.has_no_limits(),
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

    /// Returns the instruments of a subscription that it does not leave out, that the user may see
    /// and that fit into its limit, and whether it may see others.
    fn fitting(
        &self,
        schema: LiveSchema,
        targets: &Targets,
        client: &Client,
    ) -> (HashSet<InstrumentId>, bool) {
        let all: Vec<InstrumentId> = match targets {
            Targets::Some(all) => all.as_slice().to_vec(),
            Targets::All(_) => self.by_symbol(),
        };
        let (some, most) = (&client.interest.some, client.grant.subscriptions);
        let (mut fitting, mut new, mut is_full) = (HashSet::new(), 0, false);
        for number in all {
            let known = self.directory.instrument(number);
            if !client.grant.sees(known) || leaves_out(client, schema, targets, number) {
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
        self.enter_fitting(join.schema, &join.targets, token, client);
    }

    /// Adds the instruments that fit into a client's limit to its subscription from here on.
    fn enter_fitting(
        &mut self,
        schema: LiveSchema,
        targets: &Targets,
        token: Token,
        client: &mut Client,
    ) {
        let (fitting, is_full) = self.fitting(schema, targets, client);
        if is_full {
            client.refuse_more(self.now);
        }
        for number in fitting {
            self.enter(schema, number, token, client);
        }
    }

    /// Adds an instrument to a client's subscription from here on. If subscriptions to all left it
    /// out, that ends here.
    fn enter(
        &mut self,
        schema: LiveSchema,
        instrument: InstrumentId,
        token: Token,
        client: &mut Client,
    ) {
        client.interest.include(instrument.0, schema.alone());
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
        for schema in client.grows_by(instrument, known).iter() {
            self.enter(schema, instrument, token, client);
        }
    }
}

/// Returns whether a subscription leaves an instrument out. One that lists its instruments does
/// not: those that the client no longer wants are removed from the list.
fn leaves_out(
    client: &Client,
    schema: LiveSchema,
    targets: &Targets,
    instrument: InstrumentId,
) -> bool {
    matches!(targets, Targets::All(_)) && client.interest.left_out(instrument).has(schema)
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::{pair, texts};
    use super::super::replay::tests::{failed, replay};
    use super::*;
    use fanfare_market::book::BookConfig;
    use fanfare_market::dbn::live::SymbolType;
    use fanfare_market::dbn::{DbnConfig, Schemas};
    use fanfare_market::event::entry;
    use fanfare_market::instruments::{Definition, Instrument, Name, SecurityId};
    use fanfare_market::{Event, Flags, Kind, Price};

    const TOKEN: Token = Token(1);
    const A: InstrumentId = InstrumentId(0);
    const B: InstrumentId = InstrumentId(1);

    /// Calls `work` with two instruments, of which the first has an order.
    fn at_place(symbols: [&str; 2], work: impl FnOnce(&mut Place<'_>)) {
        let mut directory = Directory::new();
        for (instrument, symbol) in [A, B].into_iter().zip(symbols) {
            let name = Name {
                symbol: symbol.as_bytes(),
                id: SecurityId::Number(instrument.0.into()),
                ..Name::default()
            };
            let instrument = Instrument {
                instrument,
                definition: Definition::named(name),
                revision: 1,
                status: 0,
            };
            let mut bytes = Vec::new();
            instrument.write(&mut bytes);
            directory.take(&bytes).unwrap();
        }
        let books = vec![BookConfig::by_order(100, 100).unwrap()];
        let mut encoder = Encoder::new(books, DbnConfig::new(Schemas::MIXED)).unwrap();
        encoder.seed(&Event {
            kind: Kind::Order,
            instrument: A,
            source: 1,
            id: 1,
            entry: entry::BID,
            price: Price::from_units(90),
            size: 5,
            flags: Flags::LAST,
            ..Event::EMPTY
        });
        work(&mut Place {
            encoder: &encoder,
            wants: &mut Wants::default(),
            threads: &mut Threads::default(),
            directory: &directory,
            now: Times::default(),
            room: &mut Vec::new(),
        });
    }

    fn join(schema: LiveSchema, targets: Targets) -> Join {
        Join {
            schema,
            by: SymbolType::RawSymbol,
            targets,
            snapshot: false,
            is_full: false,
        }
    }

    #[test]
    fn a_book_is_sent_again_only_if_its_orders_are_still_wanted() {
        at_place(["A", "B"], |place| {
            let (mut client, _other) = pair(false);
            for (own, is_sent) in [(LiveSchema::Trades, false), (LiveSchema::Mbo, true)] {
                client.interest.some.insert(A.0, own.alone());
                client.missed.insert(A.0);
                client.tasks.push_back(Task::Again);
                place.go_on(1, TOKEN, &mut client);
                assert_eq!(client.wire.len() >= 2 * 56, is_sent);
                assert!(client.missed.is_empty() && client.tasks.is_empty());
            }
        });
    }

    #[test]
    fn changes_of_a_status_follow_it_while_other_instruments_start() {
        let status = LiveSchema::Status;
        // Of one symbol, or without one, they start one after the other too.
        for symbols in [["A", "B"], ["A", "A"], ["", ""]] {
            at_place(symbols, |place| {
                let (mut client, _other) = pair(false);
                let mut join = join(status, Targets::All(None));
                assert!(place.step(&mut join, TOKEN, &mut client));
                assert!(client.interest.of(A).has(status) && !client.interest.of(B).has(status));
                client.tasks.push_back(Task::Join(join));
                place.go_on(1, TOKEN, &mut client);
                assert!(client.interest.all.has(status) && client.interest.some.is_empty());
            });
        }
    }

    #[test]
    fn a_replay_that_waits_for_a_thread_says_so_once() {
        at_place(["A", "B"], |place| {
            let (mut client, _other) = pair(false);
            let owner = client.owner();
            let taken = [(); threads::OWN].map(|()| {
                let ticket = place.threads.ticket();
                place.threads.take(owner.clone(), ticket).unwrap()
            });
            let waiting = Box::new(replay(false));
            client.tasks.push_back(Task::Replay(waiting));
            for _ in 0..2 {
                assert_eq!(place.go_on(1, TOKEN, &mut client), 0);
                assert_eq!(client.wire.len(), 320);
            }
            let begins = |client: &Client| match client.tasks.front() {
                Some(Task::Replay(replay)) => replay.has_begun(),
                _ => true,
            };
            assert!(!begins(&client));
            drop(taken);
            place.go_on(1, TOKEN, &mut client);
            assert!(begins(&client));
        });
    }

    #[test]
    fn a_replay_that_fails_says_so_before_the_records_that_were_held_back() {
        at_place(["A", "B"], |place| {
            let (mut client, mut other) = pair(false);
            client.hold();
            client.tell(SystemCode::Unset, "live", place.now);
            let replay = Box::new(failed("gone"));
            client.tasks.push_back(Task::Replay(replay));
            place.go_on(1, TOKEN, &mut client);
            assert_eq!(texts(&mut client, &mut other), ["mbo: gone", "live"]);
        });
    }

    #[test]
    fn an_instrument_is_left_out_until_its_own_subscription_starts() {
        let trades = LiveSchema::Trades;
        at_place(["A", "B"], |place| {
            let (mut client, _other) = pair(false);
            client.interest.leave_out(A.0, trades.alone());
            let own = Targets::Some(vec![A].into_iter());
            for (targets, has_it) in [(Targets::All(None), false), (own, true)] {
                client.tasks.push_back(Task::Join(join(trades, targets)));
                place.go_on(1, TOKEN, &mut client);
                assert_eq!(client.interest.of(A).has(trades), has_it);
                assert_eq!(client.interest.leaves_out(trades), !has_it);
                assert!(client.interest.of(B).has(trades));
            }
        });
    }
}
