//! The effect of a change of the users: subscriptions that are no longer permitted end.

use super::DbnAgent;
use super::beginning::{Join, Targets};
use super::interest::permits;
use super::task::Task;
use crate::users::grant::Grant;
use fanfare_engine::poll::Token;
use fanfare_market::dbn::live::{ErrorCode, LiveSchemas, SymbolType};
use fanfare_market::instruments::Lookup;
use std::sync::Arc;

/// The text sent to a client that is no longer permitted.
const REVOKED: &str = "no longer permitted";

impl DbnAgent {
    /// Adopts the current users if they have changed.
    pub(super) fn review(&mut self) {
        let version = self.book.version();
        if version == self.users.0 {
            return;
        }
        self.users = (version, self.book.read());
        for token in self.tokens() {
            self.review_client(token);
        }
        self.sum_up();
    }

    fn review_client(&mut self, token: Token) {
        let (users, now) = (&self.users.1, self.times);
        let is_open = self.config.takes_strangers(users.has_users());
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        if client.is_new() {
            return;
        }
        let grant = match &mut client.user {
            Some((key, own)) => {
                let Some(user) = users.of_key(key, client.wire.peer().ip()) else {
                    return super::end(client, ErrorCode::ApiKeyDeactivated, REVOKED, now);
                };
                *own = Arc::clone(user);
                Arc::clone(&user.grant)
            }
            None if is_open => Arc::new(Grant::everything()),
            None => return super::end(client, ErrorCode::ApiKeyDeactivated, REVOKED, now),
        };
        if *grant != *client.grant {
            client.grant = grant;
            self.narrow(token);
        }
    }

    /// Applies changed entitlements to a client: it keeps the subscriptions that are still
    /// permitted, and receives the instruments it requested that are newly permitted.
    fn narrow(&mut self, token: Token) {
        let (now, directory) = (self.times, self.events.directory());
        let Some(client) = self.hub.clients.get_mut(token) else {
            return;
        };
        let mut revoked = LiveSchemas::NONE;
        for schema in client.interest.any.iter() {
            if let Err(why) = permits(&client.grant, schema) {
                revoked = revoked.with(schema.alone());
                let text = format!("{}: {REVOKED}: {why}", schema.name());
                client.fail(ErrorCode::InvalidSubscription, &text, now);
            }
        }
        let everything = client.interest.all.with(client.interest.permitted);
        client.interest.all = LiveSchemas::NONE;
        client.interest.permitted = everything.without(revoked);
        let mut gone = 0;
        let own = std::mem::take(&mut client.interest.some);
        for (number, schemas) in own {
            let known = directory.instrument(fanfare_market::InstrumentId(number));
            let sees =
                known.is_some_and(|known| client.grant.may_see(known.definition.name.symbol));
            let left = match sees {
                true => schemas.without(revoked),
                false => LiveSchemas::NONE,
            };
            gone += usize::from(!sees);
            if !left.is_empty() {
                client.interest.some.insert(number, left);
            }
            self.hub.wants.set(number, token, left);
        }
        if gone > 0 {
            let text = format!("{gone} instruments: {REVOKED}");
            client.fail(ErrorCode::InvalidSubscription, &text, now);
        }
        // A replay uses the entitlements it started with, so it ends.
        let ends = |task: &Task| matches!(task, Task::Replay(_)) || task.schema().meets(revoked);
        if client
            .tasks
            .iter()
            .any(|task| matches!(task, Task::Replay(_)))
        {
            let text = "permissions have changed: the replay ends here";
            client.fail(ErrorCode::Unset, text, now);
            client.unhold();
        }
        client.tasks.retain(|task| !ends(task));
        for schema in client.interest.permitted.iter() {
            client.tasks.push_back(Task::Join(Join {
                schema,
                by: SymbolType::RawSymbol,
                targets: Targets::All(None),
                snapshot: false,
            }));
        }
        client.interest.any = client.interest.any.without(revoked);
    }
}
