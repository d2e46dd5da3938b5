//! The sessions that are there: listed, ended.

mod admitted;
mod dbn;
mod gate;
mod numbers;
mod which;

use super::GatewayOperator;
use crate::users::roster::Seat;
use fanfare_operator::{Ask, Field, Form, OperatorError, Outcome, Row, iso_of};
use fanfare_wire::text::Escaped;
use serde_json::{Value, json};
use which::{ANY_PORT, SENDER, SESSION, TARGET, USER};

/// Text(58) of the Logouts that operators ask for, unless they say another.
const LOGGED_OUT: &str = "logged out by the operator";

const TEXT: Field = Field::new(
    "text",
    "Text(58) of the Logout; of DBN, the text of the error record.",
    Form::Text(256),
);

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look(
        "sessions",
        "The sessions that are there, with numbers and queues as they were up to some seconds ago.",
        &[SESSION, SENDER, TARGET, USER, ANY_PORT],
        list,
    ),
    Row::act(
        "sessions logout",
        "Log sessions out; they may come back.",
        &[SESSION, SENDER, TARGET, USER, ANY_PORT, TEXT],
        |operator, ask| end(operator, ask, Some(ask.text("text").unwrap_or(LOGGED_OUT))),
    ),
    Row::act(
        "sessions disconnect",
        "End sessions without a Logout; they may come back.",
        &[SESSION, SENDER, TARGET, USER, ANY_PORT],
        |operator, ask| end(operator, ask, None),
    ),
    numbers::REMEMBERED,
    numbers::RESET,
    numbers::SET_SEQ,
    gate::STOP,
    gate::START,
    gate::STOPPED,
    admitted::ADD,
    admitted::REMOVE,
];

fn list(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let mut seats = which::seats(operator, ask, &which::any(ask));
    seats.sort_by_cached_key(|seat| (seat.port, seat.id.to_string()));
    let of_dbn = dbn::seats(operator, ask);
    let all = seats.iter().map(|seat| described(seat));
    let all = all.chain(of_dbn.iter().map(|seat| dbn::described(seat)));
    Ok(Value::Array(all.collect()))
}

fn end(operator: &GatewayOperator, ask: &Ask, text: Option<&str>) -> Outcome {
    let seats = which::seats(operator, ask, &which::some(ask)?);
    let of_dbn = dbn::seats(operator, ask);
    let count = seats.len() + of_dbn.len();
    if count == 0 {
        return Err(nobody(operator));
    }
    let forced = operator.gateway.end(&seats, &of_dbn, text);
    Ok(json!({ "sessions": count, "forced": forced }))
}

/// Most sessions that an error names.
const NAMED: usize = 5;

/// There is no such session: says which there are.
fn nobody(operator: &GatewayOperator) -> OperatorError {
    let all = operator.gateway.sessions(|_| true);
    let mut names: Vec<String> = all.iter().map(|seat| seat.id.to_string()).collect();
    names.sort_unstable();
    OperatorError::absent(match names.len() {
        0 => "there is no such session, and no other".to_owned(),
        _ => format!("there is no such session; there are {}", some_of(&names)),
    })
}

/// The first names, and how many more there are.
fn some_of(names: &[String]) -> String {
    let first = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

fn described(seat: &Seat) -> Value {
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
