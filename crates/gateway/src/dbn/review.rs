//! The effect of a change of the users: subscriptions that are no longer permitted end.

use super::beginning::{Join, Targets};
use super::client::{Client, Phase, Times};
use super::interest::{Wants, permits};
use super::task::Task;
use super::{DbnAgent, Hub};
use crate::users::grant::Grant;
use fanfare_engine::poll::Token;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::{ErrorCode, LiveSchemas, SymbolType};
use fanfare_market::instruments::{Directory, Lookup};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The text sent to a client that is no longer permitted.
const REVOKED: &str = "no longer permitted";

impl DbnAgent {
    /// Adopts the current users if they have changed. Returns whether they have.
    pub(super) fn review(&mut self) -> bool {
        let has_changed = self.users.look();
        if has_changed {
            self.review_all();
        }
        has_changed
    }

    #[cold]
    fn review_all(&mut self) {
        for token in self.tokens() {
            self.review_client(token);
        }
        self.hub.has_changed = true;
    }

    /// Ends the subscriptions to renamed instruments that their users may not see by the new names.
    #[cold]
    pub(super) fn review_names(&mut self, renamed: &[InstrumentId]) {
        let (now, directory) = (self.times, self.events.directory());
        let Hub {
            clients,
            wants,
            has_changed,
            ..
        } = &mut self.hub;
        let mut hidden: BTreeMap<Token, BTreeSet<u32>> = BTreeMap::new();
        for instrument in renamed {
            let known = directory.instrument(*instrument);
            for want in wants.of(*instrument) {
                let client = clients.get(want.client);
                if client.is_some_and(|own| own.is_streaming() && !own.grant.sees(known)) {
                    hidden.entry(want.client).or_default().insert(instrument.0);
                }
            }
        }
        let mut noted = Vec::new();
        for (token, numbers) in hidden {
            let Some(client) = clients.get_mut(token) else {
                continue;
            };
            for number in &numbers {
                client.interest.some.remove(number);
                wants.set(*number, token, LiveSchemas::NONE);
            }
            client.sum_up();
            *has_changed = true;
            let what = match numbers.first() {
                Some(number) if numbers.len() == 1 => format!("instrument {number}"),
                _ => format!("{} instruments", numbers.len()),
            };
            let text = format!("{what}: {REVOKED}");
            client.fail(ErrorCode::InvalidSubscription, &text, now);
            noted.push((token, what));
        }
        for (token, what) in noted {
            self.note(token, "revocation", &what, REVOKED);
        }
    }

    fn review_client(&mut self, token: Token) {
        let (users, now) = (self.users.get(), self.times);
        let is_open = self.config.takes_strangers(users.has_users());
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        if client.is_new() {
            return;
        }
        let grant = match &mut client.user {
            Some((key, own)) => {
                let user = users.of_key(key, &own.name, client.wire.peer().ip());
                user.map(|user| {
                    *own = Arc::clone(user);
                    Arc::clone(&user.grant)
                })
            }
            None => is_open.then(|| Arc::new(Grant::everything())),
        };
        let Some(grant) = grant else {
            if let Phase::Ready { .. } = client.phase {
                client.begin(&self.config.dataset, now);
            }
            return super::end(client, ErrorCode::ApiKeyDeactivated, REVOKED, now);
        };
        let before = std::mem::replace(&mut client.grant, grant);
        if !are_alike(&before, &client.grant) {
            self.narrow(token);
        }
    }

    /// Applies changed entitlements to a client: it keeps the subscriptions that are still
    /// permitted, and receives the instruments it requested that are newly permitted. No record of
    /// what it keeps is left out.
    fn narrow(&mut self, token: Token) {
        let (now, directory) = (self.times, self.events.directory());
        let Hub { clients, wants, .. } = &mut self.hub;
        let Some(client) = clients.get_mut(token) else {
            return;
        };
        let revoked = revoke(client, now);
        let listed = client.interest.permitted.without(revoked);
        let mut gone = 0;
        for (number, schemas) in std::mem::take(&mut client.interest.some) {
            let known = directory.instrument(InstrumentId(number));
            let sees = client.grant.sees(known);
            let left = match sees {
                true => schemas.without(revoked),
                false => LiveSchemas::NONE,
            };
            gone += usize::from(!sees);
            if !left.is_empty() {
                client.interest.some.insert(number, left);
            }
            wants.set(number, token, left);
        }
        gone += list(client, directory, revoked, token, wants, now);
        let mut noted: Vec<_> = revoked.iter().map(|own| own.name().to_owned()).collect();
        if gone > 0 {
            let what = format!("{gone} instruments");
            let text = format!("{what}: {REVOKED}");
            client.fail(ErrorCode::InvalidSubscription, &text, now);
            noted.push(what);
        }
        begin_again(client, listed, revoked, now);
        client.interest.any = client.interest.any.without(revoked);
        if !noted.is_empty() {
            self.note(token, "revocation", &noted.join(", "), REVOKED);
        }
    }
}

/// Returns whether two entitlements permit the same subscriptions.
fn are_alike(a: &Grant, b: &Grant) -> bool {
    let all = |grant: &Grant| (grant.entries, grant.depth, grant.subscriptions);
    a.has_no_limits() && b.has_no_limits() || all(a) == all(b) && a.instruments == b.instruments
}

/// Reports the schemas of a client that are no longer permitted. Returns them.
fn revoke(client: &mut Client, now: Times) -> LiveSchemas {
    let mut revoked = LiveSchemas::NONE;
    for schema in client.interest.any.iter() {
        if let Err(why) = permits(&client.grant, schema) {
            revoked = revoked.with(schema.alone());
            let text = format!("{}: {REVOKED}: {why}", schema.name());
            client.fail(ErrorCode::InvalidSubscription, &text, now);
        }
    }
    revoked
}

/// Lists the instruments of a client that had all of them, as it has limits now. Returns the number
/// of those that it had and may not see.
fn list(
    client: &mut Client,
    directory: &Directory,
    revoked: LiveSchemas,
    token: Token,
    wants: &mut Wants,
    now: Times,
) -> usize {
    let had = std::mem::take(&mut client.interest.all);
    client.interest.permitted = client.interest.permitted.with(had).without(revoked);
    let left = had.without(revoked);
    if left.is_empty() {
        return 0;
    }
    let most = client.grant.subscriptions;
    let (mut gone, mut is_full) = (0, false);
    for (number, _) in directory.iter() {
        if !client.grant.sees(directory.instrument(number)) {
            gone += 1;
            continue;
        }
        let some = &mut client.interest.some;
        if some.len() >= most && !some.contains_key(&number.0) {
            is_full = true;
            continue;
        }
        let own = some.entry(number.0).or_default();
        *own = own.with(left);
        wants.set(number.0, token, *own);
    }
    if is_full {
        client.refuse_more(now);
    }
    gone
}

/// Ends the replays of a client, because they use the entitlements that they started with, and
/// starts its subscriptions to all instruments again, because more may be permitted: those that are
/// starting, and those to the schemas `listed`. Instruments that it has are skipped.
fn begin_again(client: &mut Client, listed: LiveSchemas, revoked: LiveSchemas, now: Times) {
    client.end_replays("permissions have changed", now);
    let mut left = listed;
    for task in std::mem::take(&mut client.tasks) {
        let mut task = match task {
            task if task.schema().meets(revoked) => continue,
            Task::Replay(replay) if !replay.is_past() => continue,
            Task::Replay(replay) => Task::Join(replay.into_join()),
            task => task,
        };
        if let Task::Join(join) = &mut task
            && let Targets::All(last) = &mut join.targets
        {
            *last = None;
            join.is_full = false;
            let schema = join.schema.alone();
            client.interest.permitted = client.interest.permitted.with(schema);
            left = left.without(schema);
        }
        client.tasks.push_back(task);
    }
    for schema in left.iter() {
        client.tasks.push_back(Task::Join(Join {
            schema,
            by: SymbolType::RawSymbol,
            targets: Targets::All(None),
            snapshot: false,
            is_full: false,
        }));
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::tests::{pair, texts};
    use super::super::replay::tests::replay;
    use super::*;
    use fanfare_market::dbn::live::SystemCode;

    #[test]
    fn a_replay_that_a_reload_ends_says_so_before_the_records_that_were_held_back() {
        let (mut client, mut other) = pair(false);
        let now = Times::default();
        client.tasks.push_back(Task::Replay(Box::new(replay(true))));
        client.hold();
        client.tell(SystemCode::Unset, "live", now);
        begin_again(&mut client, LiveSchemas::NONE, LiveSchemas::NONE, now);
        let ends = "permissions have changed: the replay ends here";
        assert_eq!(texts(&mut client, &mut other), [ends, "live"]);
        assert!(client.tasks.is_empty());
    }
}
