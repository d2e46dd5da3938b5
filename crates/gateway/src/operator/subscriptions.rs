//! The commands about the market data subscriptions of sessions.

use super::GatewayOperator;
use super::of;
use super::pages::{AFTER, LIMIT, NEXT, TOTAL, page};
use crate::service::{Contract, WantedSubscriptions};
use crate::users::PortName;
use crate::users::roster::Seat;
use crate::watch::NoList;
use fanfare_fix::session::SessionId;
use fanfare_operator::Shape::{Count, Flag, List, Object, OneOf, Text};
use fanfare_operator::{Ask, Field, OperatorError, Outcome, Row, Shape};
use fanfare_wire::text::Escaped;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::look(
    "subscriptions",
    "The open requests for market data.",
    &[
        Field::text(
            "sender",
            "Only sessions with this SenderCompID(49) in their Logons.",
        )
        .first(),
        Field::text(
            "session",
            "Only the session of this name, as `sessions` prints it.",
        ),
        Field::text("user", "Only sessions of this user."),
        Field::text("symbol", "Only subscriptions with this Symbol(55)."),
        AFTER,
        LIMIT,
    ],
    subscriptions,
)
.returns(SUBSCRIPTIONS)];

fn subscriptions(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let page = page(ask)?;
    let seats = operator.gateway.sessions(|seat| is_wanted(seat, ask));
    let limits = ["session", "sender", "user"];
    let is_limited = limits.into_iter().any(|name| ask.text(name).is_some());
    let ids = seats.iter().map(|seat| SessionId::clone(&seat.id));
    let wanted = WantedSubscriptions {
        sessions: is_limited.then(|| Arc::new(ids.collect::<HashSet<_>>())),
        symbol: ask.text("symbol").map(str::to_owned),
    };
    let users = seats
        .iter()
        .map(|seat| (seat.id.to_string(), seat.user.to_string()));
    let users: HashMap<_, _> = users.collect();
    let mut list = operator
        .watch()?
        .subscriptions(&wanted, &page)
        .map_err(|why| {
            let text = why.to_string();
            match why {
                NoList::Asked(_) => OperatorError::usage(text),
                NoList::Worker(_) => OperatorError::failed(text),
            }
        })?;
    for row in list["subscriptions"].as_array_mut().into_iter().flatten() {
        let user = row["session"].as_str().and_then(|name| users.get(name));
        row["user"] = user.map_or("", String::as_str).into();
    }
    Ok(list)
}

/// Returns whether a session may have subscriptions, and is one of those requested. A producer's
/// session may have the same name as a consumer's.
fn is_wanted(seat: &Seat, ask: &Ask) -> bool {
    let is = |name, own: &str| ask.text(name).is_none_or(|wanted| wanted == own);
    let printed = Escaped::text(&seat.id.target).to_string();
    let session = ask.text("session");
    seat.port == PortName::Consumers
        && session.is_none_or(|wanted| wanted == seat.id.to_string())
        && is("user", &seat.user)
        && (is("sender", &seat.id.target) || is("sender", &printed))
}

const CONTRACTS: &[&str] = &[
    Contract::Cut.name(),
    Contract::Skip.name(),
    Contract::Conflated.name(),
];

const SUBSCRIPTIONS: Shape = Object(&[
    TOTAL,
    NEXT,
    of(
        "subscriptions",
        List(&SUBSCRIPTION),
        "The subscriptions, by session.",
    ),
]);

const SUBSCRIPTION: Shape = Object(&[
    of("session", Text, "The session, from this side."),
    of("request", Text, "MDReqID(262) or SecurityStatusReqID(324)."),
    of(
        "patterns",
        List(&Text),
        "Prefixes of symbols, each followed by *.",
    ),
    of(
        "symbols",
        List(&Text),
        "The first eight symbols that were named individually.",
    ),
    of("instruments", Count, "Instruments of the subscription."),
    of(
        "depth",
        Count,
        "MarketDepth(264): levels of a side, 0 for all.",
    ),
    of("entries", Text, "MDEntryTypes(269), a character each."),
    of(
        "by_order",
        Flag,
        "Whether the entries are orders instead of levels.",
    ),
    of(
        "contract",
        OneOf(CONTRACTS),
        "Delivery when the session is behind.",
    ),
    of(
        "interval_ms",
        Count,
        "Milliseconds between two updates; 0: each change.",
    ),
    of("goes_on", Flag, "Whether updates follow the snapshot."),
    of(
        "behind",
        Count,
        "Instruments whose snapshot must be sent before updates.",
    ),
    of(
        "conflated",
        Count,
        "Updates that were merged into later ones.",
    ),
    of(
        "skipped",
        Count,
        "Updates that were left out, and announced.",
    ),
    of("user", Text, "The user of the session; empty: no user."),
]);

#[cfg(test)]
mod tests {
    use super::*;
    use fanfare_fix::session::Version;
    use fanfare_wire::UtcTimestamp;
    use serde_json::{Map, Value};

    #[test]
    fn a_producer_with_the_name_of_a_consumer_is_not_taken_for_it() {
        let seat = |port, user: &str| {
            let id = SessionId::new(Version::Fix44, "PLANT", "DOM\\A");
            let (peer, since) = ("127.0.0.1:1".parse().unwrap(), UtcTimestamp::from_nanos(0));
            Seat::new(port, id, user.into(), peer, since)
        };
        let commands = GatewayOperator::commands();
        let mut commands = commands.into_iter();
        let command = commands.find(|own| own.name == "subscriptions").unwrap();
        let is = |port, user: &str, name: &str, wanted: &str| {
            let fields = Map::from_iter([(name.to_owned(), Value::from(wanted))]);
            let ask = Ask::new("test", command, fields).unwrap();
            is_wanted(&seat(port, user), &ask)
        };
        let printed = Escaped::text("DOM\\A").to_string();
        let session = format!("FIX.4.4:PLANT->{printed}");
        for (name, wanted) in [
            ("sender", "DOM\\A"),
            ("sender", &*printed),
            ("session", &*session),
            ("user", "desk"),
        ] {
            assert!(is(PortName::Consumers, "desk", name, wanted));
            assert!(!is(PortName::Producers, "desk", name, wanted));
        }
        assert!(!is(PortName::Consumers, "desk", "user", "other"));
        assert!(!is(PortName::Consumers, "desk", "sender", "B"));
        // Another version is another session.
        let other = format!("FIX.4.2:PLANT->{printed}");
        assert!(!is(PortName::Consumers, "desk", "session", &other));
    }
}
