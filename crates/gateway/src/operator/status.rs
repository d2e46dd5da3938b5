//! How the gateway is.

use super::GatewayOperator;
use fanfare_operator::{Ask, Outcome, Row};
use serde_json::{Value, json};

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look("status", "Version, uptime, ports.", &[], status),
    Row::look("counters", "All counters.", &[], counters),
    Row::look("limits", "The limits in force.", &[], limits),
];

fn status(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let gateway = &operator.gateway;
    let shared = gateway.shared();
    let ports = gateway.ports().map(|(name, port)| {
        let sessions = gateway.sessions(|seat| seat.port == name).len();
        let config = &port.rules.read().config;
        json!({
            "name": name.name(),
            "address": port.address.to_string(),
            "tls": config.tls.is_some(),
            "sessions": sessions,
            "most": config.max_sessions,
            "open": shared.users.read().takes_strangers(name),
        })
    });
    Ok(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "uptime_s": shared.begun.elapsed().as_secs(),
        "ports": ports.collect::<Vec<_>>(),
        "users": shared.users.read().users().count(),
    }))
}

fn counters(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let all = operator.gateway.shared().counters.snapshot();
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
