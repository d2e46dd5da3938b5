//! The delivery of records to the clients that want them.

use super::client::Times;
use super::join::Place;
use super::{DbnAgent, Hub};
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{Batch, LiveSchemas, Tag, with_ts_out};
use fanfare_market::instruments::Lookup;

/// Clients that want the same schemas of all instruments, and the records for them.
struct Group {
    schemas: LiveSchemas,
    ts_out: bool,
    clients: Vec<Token>,
}

impl DbnAgent {
    /// Queues the records of a turn for the clients that want them.
    pub(super) fn deliver(&mut self) {
        let now = self.times;
        self.counts
            .records
            .increment(self.batch.tags().len() as u64);
        if self.hub.clients.is_empty() {
            return;
        }
        self.add_new();
        let (groups, mixed) = self.hub.sort();
        for group in groups {
            let records = shape(&group, &self.batch, now, &mut self.room);
            for token in group.clients {
                if let Some(client) = self.hub.clients.get_mut(token) {
                    client.send(records, now);
                }
            }
        }
        for token in &mixed {
            let Some(client) = self.hub.clients.get_mut(*token) else {
                continue;
            };
            for (tag, record) in self.batch.records() {
                if client.interest.takes(tag) {
                    client.push(tag, record, now);
                }
            }
        }
        self.deliver_listed(&mixed, now);
    }

    /// Queues records for the clients that want some instruments.
    fn deliver_listed(&mut self, mixed: &[Token], now: Times) {
        let listed = self.hub.listed();
        if listed.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        for (tag, record) in batch.records() {
            if tag.instrument == InstrumentId::ALL {
                for token in &listed {
                    if let Some(client) = self.hub.clients.get_mut(*token)
                        && client.interest.any.meets(tag.schemas)
                    {
                        client.push(tag, record, now);
                    }
                }
                continue;
            }
            let Hub { clients, wants, .. } = &mut self.hub;
            for want in wants.of(tag.instrument) {
                if want.schemas.meets(tag.schemas)
                    && !mixed.contains(&want.client)
                    && let Some(client) = clients.get_mut(want.client)
                    && client.is_streaming()
                {
                    client.push(tag, record, now);
                }
            }
        }
        self.batch = batch;
    }

    /// Adds the instruments that appear in a turn to the subscriptions that have their instruments
    /// one by one. The records of a turn begin with the instrument's symbol.
    fn add_new(&mut self) {
        let growing = self.hub.growing();
        if growing.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        for (tag, _) in batch.records() {
            if tag.instrument != InstrumentId::ALL && tag.schemas == LiveSchemas::ALL {
                self.appeared(tag, &growing);
            }
        }
        self.batch = batch;
    }

    /// Adds a new instrument to the subscriptions of clients that want all that they may see.
    fn appeared(&mut self, tag: &Tag, growing: &[Token]) {
        for token in growing {
            let Some(client) = self.hub.clients.get_mut(*token) else {
                continue;
            };
            let known = self.events.directory().instrument(tag.instrument);
            let new = client.grows_by(tag.instrument, known);
            let own = client.interest.some.get(&tag.instrument.0).copied();
            if own.unwrap_or_default().and(new) == new {
                continue;
            }
            let mut place = Place {
                encoder: &self.encoder,
                wants: &mut self.hub.wants,
                threads: &mut self.threads,
                directory: self.events.directory(),
                now: self.times,
                room: &mut self.room,
            };
            place.appeared(tag.instrument, *token, client);
        }
    }
}

impl Hub {
    /// Returns the streaming clients that want the same schemas of all instruments, in groups, and
    /// those for whom each record must be examined.
    fn sort(&self) -> (Vec<Group>, Vec<Token>) {
        let (mut groups, mut mixed) = (Vec::<Group>::new(), Vec::new());
        for (token, client) in self.clients.iter() {
            if !client.is_streaming() || client.interest.all.is_empty() {
                continue;
            }
            if client.is_mixed() {
                mixed.push(token);
                continue;
            }
            let (schemas, ts_out) = (client.interest.all, client.ts_out);
            let found = groups
                .iter_mut()
                .find(|group| group.schemas == schemas && group.ts_out == ts_out);
            match found {
                Some(group) => group.clients.push(token),
                None => groups.push(Group {
                    schemas,
                    ts_out,
                    clients: vec![token],
                }),
            }
        }
        (groups, mixed)
    }

    /// Returns the streaming clients that want all instruments that they may see, one by one.
    fn growing(&self) -> Vec<Token> {
        let clients = self.clients.iter();
        let growing = clients
            .filter(|(_, client)| client.is_streaming() && !client.interest.permitted.is_empty());
        growing.map(|(token, _)| token).collect()
    }

    /// Returns the streaming clients that want some instruments, but no schema of all.
    fn listed(&self) -> Vec<Token> {
        let clients = self.clients.iter();
        let listed = clients.filter(|(_, client)| {
            client.is_streaming()
                && client.interest.all.is_empty()
                && !client.interest.any.is_empty()
        });
        listed.map(|(token, _)| token).collect()
    }
}

/// Returns the records of a batch in the form that a group wants.
fn shape<'a>(group: &Group, batch: &'a Batch, now: Times, room: &'a mut Vec<u8>) -> &'a [u8] {
    if batch.schemas().without(group.schemas).is_empty() && !group.ts_out {
        return batch.bytes();
    }
    room.clear();
    for (tag, record) in batch.records() {
        if tag.schemas.meets(group.schemas) {
            match group.ts_out {
                true => with_ts_out(record, now.utc, room),
                false => room.extend_from_slice(record),
            }
        }
    }
    room
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::pair;
    use super::*;
    use fanfare_market::dbn::live::LiveSchema;

    #[test]
    fn a_client_of_all_together_and_of_all_one_by_one_is_given_new_instruments() {
        let mut hub = Hub::default();
        let (trades, orders) = (LiveSchema::Trades.alone(), LiveSchema::Mbo.alone());
        let mut tokens = Vec::new();
        for (all, permitted) in [
            (trades, LiveSchemas::NONE),
            (trades, orders),
            (LiveSchemas::NONE, orders),
        ] {
            let (mut client, _) = pair(false);
            (client.interest.all, client.interest.permitted) = (all, permitted);
            client.interest.sum_up();
            tokens.push(hub.clients.insert(client));
        }
        assert_eq!(hub.growing(), tokens[1..]);
        assert_eq!(hub.listed(), tokens[2..]);
    }
}
