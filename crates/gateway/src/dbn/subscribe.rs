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

/// The limit of requests that are queued until the session is started, in lines of the longest
/// kind.
const EARLY: usize = 64;
/// The most subscriptions of one client that may be starting.
const TASKS: usize = 10_000;
/// The most instruments that the subscriptions of one client that are starting may list.
const STARTING: usize = 1 << 20;
/// The most symbols that an error names.
const NAMED: usize = 5;

impl DbnAgent {
    /// Processes a line of a client that has not started its session. Requests are queued until
    /// then.
    pub(super) fn before_start(&mut self, token: Token, text: &str) {
        let most = EARLY * self.config.request_bytes;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        match line::line(text) {
            // The queued requests are processed before the next line.
            Ok(Line::Start) => client.begin(&self.config.dataset, self.times),
            Err(Wrong::Line(why)) => self.close(token, &why),
            _ if client.early.len() + text.len() > most => {
                self.close(token, "too many requests before start_session");
            }
            _ => {
                client.early.push_str(text);
                client.early.push('\n');
            }
        }
    }

    /// Processes a line of a client whose session has started. Of those beyond the user's limit in
    /// a second, only the first is answered.
    pub(super) fn request(&mut self, token: Token, text: &str) {
        let second = self.times.mono / SECOND;
        let now = self.times;
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let most = client.grant.requests_per_second;
        let (of, count) = &mut client.requests;
        if *of != second {
            (*of, *count) = (second, 0);
        }
        *count = count.saturating_add(1);
        if *count > most {
            if *count - most > 1 {
                return;
            }
            let why = format!("more than {most} requests in a second: the others are ignored");
            client.fail(ErrorCode::InvalidSubscription, &why, now);
            return self.note(token, "request", text, &why);
        }
        self.run(token, text);
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
                let (found, unknown) = find(client, directory, request.by, symbols);
                if let Some(why) = unknown {
                    let why = format!("{name}: {why}");
                    client.fail(ErrorCode::SymbolResolutionFailed, &why, now);
                }
                if found.is_empty() {
                    return Ok(());
                }
                if client.starting() + found.len() > STARTING {
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
        self.sum_up();
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
                let (found, _) = find(client, directory, request.by, symbols);
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
        self.sum_up();
    }
}

/// Returns the instruments of symbols that a client may see, and the symbols without any.
fn find(
    client: &Client,
    directory: &Directory,
    by: SymbolType,
    symbols: &[&str],
) -> (Vec<InstrumentId>, Option<String>) {
    let (mut found, mut unknown) = (Vec::new(), Vec::new());
    for symbol in symbols {
        let before = found.len();
        match by {
            SymbolType::RawSymbol => named(directory, symbol, &mut found),
            SymbolType::InstrumentId => found.extend(symbol.parse().ok().map(InstrumentId)),
        }
        let mut at = before;
        while let Some(instrument) = found.get(at) {
            match client.grant.sees(directory.instrument(*instrument)) {
                true => at += 1,
                false => _ = found.remove(at),
            }
        }
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
    use super::*;
    use fanfare_market::instruments::{Definition, IdSource, Instrument, Name};

    #[test]
    fn an_instrument_without_a_symbol_is_found_by_its_id_from_any_source() {
        let mut directory = Directory::new();
        let names = [
            ("", SecurityId::Number(7), "99"),
            ("", SecurityId::Text(b"X7"), ""),
            ("SI", SecurityId::Number(7), "8"),
        ];
        for (number, (symbol, id, source)) in (0..).zip(names) {
            let name = Name {
                symbol: symbol.as_bytes(),
                id,
                source: IdSource::parse(source.as_bytes()).unwrap(),
            };
            let instrument = Instrument {
                instrument: InstrumentId(number),
                definition: Definition {
                    name,
                    ..Definition::default()
                },
                revision: 1,
                status: 17,
            };
            let mut bytes = Vec::new();
            instrument.write(&mut bytes);
            directory.take(&bytes).unwrap();
        }
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
}
