//! The sessions that are there.

use super::GatewayOperator;
use crate::audit::iso_of;
use crate::users::roster::Seat;
use fanfare_operator::{Ask, Field, Form, OperatorError, Outcome, Row};
use fanfare_wire::text::Escaped;
use serde_json::{Value, json};
use std::sync::Arc;

/// Text(58) of the Logouts that operators ask for, unless they say another.
const LOGGED_OUT: &str = "logged out by the operator";

const SENDER: Field = Field::text(
    "sender",
    "Those with this SenderCompID(49) of their Logons.",
)
.first();
const TARGET: Field = Field::text("target", "Those with this TargetCompID(56).");
const USER: Field = Field::text("user", "Those of this user.");
const PORT: Field = Field::one_of("port", "Those of one port.", &["producers", "consumers"]);
const TEXT: Field = Field::new("text", "Text(58) of the Logout.", Form::Text(256));

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look(
        "sessions",
        "The sessions that are there, with numbers and queues as they were up to some seconds ago.",
        &[SENDER, TARGET, USER, PORT],
        list,
    ),
    Row::act(
        "sessions logout",
        "Log sessions out.",
        &[SENDER, TARGET, USER, PORT, TEXT],
        |operator, ask| end(operator, ask, Some(ask.text("text").unwrap_or(LOGGED_OUT))),
    ),
    Row::act(
        "sessions disconnect",
        "End sessions without a Logout.",
        &[SENDER, TARGET, USER, PORT],
        |operator, ask| end(operator, ask, None),
    ),
];

fn list(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let mut seats = operator.gateway.sessions(|seat| is_wanted(ask, seat));
    seats.sort_by_cached_key(|seat| (seat.port, seat.id.to_string()));
    Ok(Value::Array(seats.iter().map(described).collect()))
}

fn end(operator: &GatewayOperator, ask: &Ask, text: Option<&str>) -> Outcome {
    if ask.text("user").is_none() && ask.text("sender").is_none() {
        return Err(OperatorError::usage(
            "which sessions? `sender`, `user` or both, with `target` and `port`",
        ));
    }
    let seats = operator.gateway.sessions(|seat| is_wanted(ask, seat));
    if seats.is_empty() {
        return Err(OperatorError::absent("there is no such session"));
    }
    let forced = operator.gateway.end(&seats, text);
    Ok(json!({ "sessions": seats.len(), "forced": forced }))
}

fn is_wanted(ask: &Ask, seat: &Seat) -> bool {
    let is = |name, own: &str| ask.text(name).is_none_or(|wanted| wanted == own);
    is("port", seat.port.name())
        && is("user", &seat.user)
        && is("sender", &seat.id.target)
        && is("target", &seat.id.sender)
}

fn described(seat: &Arc<Seat>) -> Value {
    let reading = seat.reading();
    json!({
        "port": seat.port.name(),
        "session": seat.id.to_string(),
        "version": seat.id.version.begin_string(),
        "sender": Escaped::text(&seat.id.target).to_string(),
        "target": Escaped::text(&seat.id.sender).to_string(),
        "user": &*seat.user,
        "peer": seat.peer.to_string(),
        "since": iso_of(seat.since),
        "logged_on": reading.is_logged_on,
        "next_sender": reading.next_sender,
        "next_target": reading.next_target,
        "queued_bytes": reading.queued,
    })
}
