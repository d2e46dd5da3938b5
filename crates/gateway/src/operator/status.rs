//! The command for the state of the gateway.

use super::GatewayOperator;
use super::market::{ALL, CLOSED, LIVE, RECOVERING, STALE, UNHEARD};
use super::of;
use super::which::DBN;
use crate::gateway::handle::GatewayHandle;
use fanfare_engine::clock;
use fanfare_history::moment::utc;
use fanfare_operator::Shape::{Count, Flag, List, Map, Maybe, Number, Object, OneOf, Text, Time};
use fanfare_operator::{Ask, Outcome, Row, Shape};
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look("status", "Version, uptime, ports.", &[], status).returns(STATUS),
    Row::look("counters", "All counters.", &[], counters).returns(Map(&Count)),
    Row::look("limits", "The limits in force.", &[], limits).returns(Map(&Count)),
];

fn status(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let gateway = &operator.gateway;
    let (shared, watch) = (gateway.shared(), operator.watch()?);
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "uptime_s": shared.begun.elapsed().as_secs(),
        "run": watch.changes().base(),
        "ports": ports(gateway),
        "users": shared.users.read().users().count(),
        "time": utc(clock::utc()),
        "feeds": watch.states(),
        "events": watch.events().map(|(next, rate)| json!({ "next": next, "per_s": rate })),
        "history": operator.gateway.config().history.is_some(),
    }))
}

/// Returns the FIX ports and, if there is one, the DBN port.
fn ports(gateway: &GatewayHandle) -> Vec<Value> {
    let shared = gateway.shared();
    let users = shared.users.read();
    let of_fix = gateway.ports().map(|(name, port)| {
        let sessions = gateway.sessions(|seat| seat.port == name).len();
        let config = &port.rules.read().config;
        json!({
            "name": name.name(),
            "address": port.address.to_string(),
            "tls": config.tls.is_some(),
            "sessions": sessions,
            "most": config.max_sessions,
            "open": users.takes_strangers(name),
        })
    });
    let of_dbn = shared.dbn.zip(shared.started.dbn.as_ref());
    let of_dbn = of_dbn.map(|((address, most), config)| {
        json!({
            "name": DBN,
            "address": address.to_string(),
            "tls": false,
            "sessions": gateway.dbn_sessions(|_| true).len(),
            "most": most,
            "open": config.takes_strangers(users.has_users()),
        })
    });
    of_fix.chain(of_dbn).collect()
}

fn counters(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let all = operator.gateway.shared().counters.sums();
    let named = all.iter().map(|one| (one.label(), Value::from(one.value)));
    Ok(Value::Object(named.collect()))
}

fn limits(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let config = operator.gateway.config();
    let limits = &config.limits;
    Ok(json!({
        "message_bytes": limits.message_bytes,
        "logon_timeout_s": limits.logon_timeout_s,
        "logon_bytes": limits.logon_bytes,
        "header_field_bytes": limits.header_field_bytes,
        "not_logged_on": limits.not_logged_on,
        "not_logged_on_per_address": limits.not_logged_on_per_address,
        "remembered_sessions": limits.remembered_sessions,
        "remembered_bytes": limits.remembered_bytes,
        "heartbeat_max_s": limits.heartbeat_max_s,
        "queue_bytes": config.slow_consumer.queue_bytes,
        "producers_max_sessions": config.producers.max_sessions,
        "consumers_max_sessions": config.consumers.max_sessions,
    }))
}

const STATUS: Shape = Object(&[
    of("version", Text, "Version of the program."),
    of("pid", Count, "Process ID."),
    of("uptime_s", Count, "Seconds since the start."),
    of(
        "run",
        Count,
        "A number of this run of the program: another run has another one.",
    ),
    of("ports", List(&PORT), "The ports that accept sessions."),
    of("users", Count, "Configured users."),
    of("time", Time, "The time of the response."),
    of("feeds", List(&FEED), "The feeds that have a market."),
    of(
        "events",
        Maybe(&EVENTS),
        "Market events; null without a market.",
    ),
    of("history", Flag, "Whether there is a log of market events."),
]);

const PORT: Shape = Object(&[
    of(
        "name",
        OneOf(&["producers", "consumers", DBN]),
        "The sessions that connect to the port.",
    ),
    of("address", Text, "The address that the port listens on."),
    of("tls", Flag, "Whether connections are encrypted."),
    of("sessions", Count, "Connected sessions."),
    of("most", Count, "Most concurrent connections."),
    of("open", Flag, "Whether sessions without a user may log on."),
]);

const FEED: Shape = Object(&[
    of("channel", Text, "The name of the feed."),
    LIVE,
    RECOVERING,
    STALE,
    CLOSED,
    UNHEARD,
    ALL,
]);

const EVENTS: Shape = Object(&[
    of("next", Count, "The plant's number of the next event."),
    of("per_s", Maybe(&Number), "Events per second, recently."),
]);
