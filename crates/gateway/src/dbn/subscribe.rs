//! Requests of authenticated clients.

use super::beginning::{Join, Targets};
use super::client::Client;
use super::interest::permits;
use super::join::Place;
use super::line::{self, Line, Request, Wrong};
use super::replay::Replay;
use super::task::Task;
use super::{DbnAgent, SECOND};
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{ErrorCode, SymbolType, SystemCode};
use fanfare_market::instruments::{Directory, Lookup, SecurityId};
use std::collections::HashSet;
use std::sync::Arc;

/// The most subscriptions of one client that may be starting.
const TASKS: usize = 10_000;
/// The most instruments that the subscriptions of one client that are starting may list.
const STARTING: usize = 1 << 20;
/// The longest time that a start may be ahead of the gateway's clock, in nanoseconds.
const AHEAD: u64 = 86_400 * SECOND;
/// The most symbols that an error names.
const NAMED: usize = 5;

impl DbnAgent {
    /// Processes a line of a client that has not started its session. Requests are queued until
    /// then.
    pub(super) fn before_start(&mut self, token: Token, text: &str) {
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        match line::line(text) {
            // The queued requests are processed before the next line.
            Ok(Line::Start) => client.begin(&self.config.dataset, self.times),
            Err(Wrong::Line(why)) => self.close(token, &why),
            _ => {
                if let Err(why) = client.early.push(text, self.config.request_bytes) {
                    self.close(token, &why);
                }
            }
        }
    }

    /// Processes a line of a client whose session has started. Of those beyond the user's limit in
    /// a second, only the first is answered.
    pub(super) fn request(&mut self, token: Token, text: &str) {
        let now = self.times;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let most = client.grant.requests_per_second;
        match client.requests.beyond(most, now.mono) {
            0 => self.run(token, text),
            1 => {
                let why = format!("more than {most} requests in a second: the others are ignored");
                client.fail(ErrorCode::InvalidSubscription, &why, now);
                self.note(token, "request", text, &why);
            }
            _ => {}
        }
    }

    pub(super) fn run(&mut self, token: Token, text: &str) {
        let outcome = match line::line(text) {
            Ok(Line::Start) => Err("the session is started already".to_owned()),
            Ok(Line::Request(request)) if request.ends => {
                self.unsubscribe(token, &request);
                Ok(())
            }
            Ok(Line::Request(request)) => self.subscribe(token, &request),
            Err(Wrong::Subscription(why)) => Err(why),
            Err(Wrong::Line(why)) => return self.close(token, &why),
        };
        let why = outcome.err().unwrap_or_default();
        if !why.is_empty()
            && let Some(client) = self.hub.clients.get_mut(token)
        {
            client.fail(ErrorCode::InvalidSubscription, &why, self.times);
        }
        self.note(token, "request", text, &why);
    }

    fn subscribe(&mut self, token: Token, request: &Request<'_>) -> Result<(), String> {
        let now = self.times;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return Ok(());
        };
        let name = request.schema.name();
        permits(&client.grant, request.schema).map_err(|why| format!("{name}: {why}"))?;
        let latest = now.utc.saturating_add(AHEAD);
        if let Some(start) = request.start.filter(|start| *start > latest) {
            return Err(format!(
                "{name}: `start` is more than a day ahead of the gateway's clock: {start}"
            ));
        }
        if request.start.is_some() && self.past.is_none() {
            return Err(format!(
                "{name}: `start` needs a log, which this gateway does not have"
            ));
        }
        if client.tasks.len() >= TASKS {
            return Err(format!("{name}: too many subscriptions are beginning"));
        }
        let targets = match &request.symbols {
            None => Targets::All(None),
            Some(symbols) => {
                let directory = self.events.directory();
                let most = STARTING.saturating_sub(client.starting());
                let (found, unknown) = find(client, directory, request.by, symbols, most);
                if let Some(why) = unknown {
                    let why = format!("{name}: {why}");
                    client.fail(ErrorCode::SymbolResolutionFailed, &why, now);
                }
                if found.is_empty() {
                    return Ok(());
                }
                if found.len() > most {
                    return Err(format!("{name}: too many instruments are starting"));
                }
                Targets::Some(found.into_iter())
            }
        };
        let id = request.id.map(|id| format!(" {id}")).unwrap_or_default();
        let text = format!("Subscription request{id} for {name} data succeeded");
        client.tell(SystemCode::SubscriptionAck, &text, now);
        let schema = request.schema.alone();
        if let Targets::All(_) = targets {
            client.interest.include_all(schema);
            // One that starts in the past has no new instruments before it is live.
            if request.start.is_none() {
                client.interest.permitted = client.interest.permitted.with(schema);
            }
        }
        client.interest.any = client.interest.any.with(schema);
        let join = Join {
            schema: request.schema,
            by: request.by,
            targets,
            snapshot: request.snapshot,
            is_full: false,
        };
        client.tasks.push_back(match (request.start, &self.past) {
            (Some(start), Some(past)) => {
                Task::Replay(Box::new(Replay::new(join, start, Arc::clone(past))))
            }
            _ => Task::Join(join),
        });
        self.hub.has_changed = true;
        Ok(())
    }

    fn unsubscribe(&mut self, token: Token, request: &Request<'_>) {
        let now = self.times;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let schema = request.schema.alone();
        let numbers: Vec<u32> = match &request.symbols {
            None => {
                client.tasks.retain(|task| !task.schema().meets(schema));
                client.interest.include_all(schema);
                client.interest.all = client.interest.all.without(schema);
                client.interest.permitted = client.interest.permitted.without(schema);
                client.interest.some.keys().copied().collect()
            }
            Some(symbols) => {
                let directory = self.events.directory();
                let (found, _) = find(client, directory, request.by, symbols, usize::MAX);
                let gone: HashSet<InstrumentId> = found.iter().copied().collect();
                client
                    .tasks
                    .retain_mut(|task| task.leave_out(schema, &gone));
                for instrument in &gone {
                    client.interest.leave_out(instrument.0, schema);
                }
                if !gone.is_empty() && client.interest.all.meets(schema) {
                    let mut place = Place {
                        encoder: &self.encoder,
                        wants: &mut self.hub.wants,
                        threads: &mut self.threads,
                        directory,
                        now,
                        room: &mut self.room,
                    };
                    place.list(request.schema, token, client);
                }
                found.iter().map(|instrument| instrument.0).collect()
            }
        };
        client.unhold_if_over(now);
        for number in numbers {
            let left = client.interest.some.get(&number).copied();
            let left = left.unwrap_or_default().without(schema);
            match left.is_empty() {
                true => _ = client.interest.some.remove(&number),
                false => _ = client.interest.some.insert(number, left),
            }
            self.hub.wants.set(number, token, left);
        }
        client.sum_up();
        let text = format!(
            "Unsubscribe request for {} succeeded",
            request.schema.name()
        );
        client.tell(SystemCode::UnsubscribeAck, &text, now);
        self.hub.has_changed = true;
    }
}

/// Returns the instruments of symbols that a client may see, and the symbols without any. Equal
/// symbols count once. Beyond `most` instruments it returns one more, and no others.
fn find(
    client: &Client,
    directory: &Directory,
    by: SymbolType,
    symbols: &[&str],
    most: usize,
) -> (Vec<InstrumentId>, Option<String>) {
    let sees = |own: &InstrumentId| client.grant.sees(directory.instrument(*own));
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    let (mut asked, mut own) = (HashSet::new(), Vec::new());
    for symbol in symbols.iter().filter(|symbol| asked.insert(**symbol)) {
        let before = found.len();
        if before > most {
            break;
        }
        own.clear();
        match by {
            SymbolType::RawSymbol => named(directory, symbol, &mut own),
            SymbolType::InstrumentId => own.extend(symbol.parse().ok().map(InstrumentId)),
        }
        let room = (most - before).saturating_add(1);
        found.extend(own.iter().copied().filter(sees).take(room));
        if found.len() == before {
            unknown.push(*symbol);
        }
    }
    let named = unknown.iter().take(NAMED).copied().collect::<Vec<_>>();
    let why = match unknown.len() {
        0 => None,
        n if n <= NAMED => Some(format!("unknown symbols: {}", named.join(", "))),
        n => Some(format!(
            "{n} unknown symbols, among them {}",
            named.join(", ")
        )),
    };
    (found, why)
}

/// Adds the instruments of a symbol. An instrument without a symbol is named by its SecurityID(48).
fn named(directory: &Directory, symbol: &str, found: &mut Vec<InstrumentId>) {
    let before = found.len();
    found.extend(directory.of_symbol(symbol.as_bytes()));
    if found.len() > before {
        return;
    }
    let id = SecurityId::parse(symbol.as_bytes());
    for source in directory.sources() {
        let all = directory.of_id(id, *source);
        found.extend(all.filter(|instrument| {
            let known = directory.instrument(*instrument);
            known.is_some_and(|known| known.definition.name.symbol.is_empty())
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::pair;
    use super::*;
    use crate::users::grant::Grant;
    use fanfare_market::instruments::{Definition, IdSource, Instrument, Name};

    /// Returns instruments of these names, the first of which has the number 0.
    fn directory(names: &[(&str, SecurityId<'_>, &str)]) -> Directory {
        let mut directory = Directory::new();
        for (number, (symbol, id, source)) in (0..).zip(names) {
            let name = Name {
                symbol: symbol.as_bytes(),
                id: *id,
                source: IdSource::parse(source.as_bytes()).unwrap(),
            };
            let instrument = Instrument {
                instrument: InstrumentId(number),
                definition: Definition::named(name),
                revision: 1,
                status: 17,
            };
            let mut bytes = Vec::new();
            instrument.write(&mut bytes);
            directory.take(&bytes).unwrap();
        }
        directory
    }

    #[test]
    fn an_instrument_without_a_symbol_is_found_by_its_id_from_any_source() {
        let directory = directory(&[
            ("", SecurityId::Number(7), "99"),
            ("", SecurityId::Text(b"X7"), ""),
            ("SI", SecurityId::Number(7), "8"),
        ]);
        let of = |symbol: &str| {
            let mut found = Vec::new();
            named(&directory, symbol, &mut found);
            found
        };
        assert_eq!(of("7"), [InstrumentId(0)]);
        assert_eq!(of("X7"), [InstrumentId(1)]);
        assert_eq!(of("SI"), [InstrumentId(2)]);
        assert!(of("8").is_empty());
    }

    #[test]
    fn a_symbol_counts_once_in_a_request_however_many_instruments_have_it() {
        let names = ["SI", "SI", "RI", "SI"].map(|symbol| (symbol, SecurityId::None, ""));
        let directory = directory(&names);
        let (mut client, _other) = pair(false);
        let find = |client: &Client, most| {
            let symbols = ["SI", "NONE", "SI", "RI", "NONE", "SI"];
            let (found, why) = find(client, &directory, SymbolType::RawSymbol, &symbols, most);
            let found: Vec<u32> = found.into_iter().map(|own| own.0).collect();
            (found, why.unwrap_or_default())
        };
        let why = "unknown symbols: NONE".to_owned();
        assert_eq!(find(&client, usize::MAX), (vec![0, 1, 3, 2], why.clone()));
        // At the limit, it goes on to the first instrument beyond.
        assert_eq!(find(&client, 1), (vec![0, 1], String::new()));
        assert_eq!(find(&client, 3), (vec![0, 1, 3, 2], why));
        client.grant = Arc::new(Grant::nothing());
        let (found, why) = find(&client, usize::MAX);
        assert!(found.is_empty());
        assert_eq!(why, "unknown symbols: SI, NONE, RI");
    }
}
