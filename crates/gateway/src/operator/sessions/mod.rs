//! The commands about sessions: ending them, and setting their sequence numbers.

mod admitted;
mod dbn;
mod gate;
mod list;
mod numbers;
mod select;
mod steer;

use super::GatewayOperator;
use super::of;
use fanfare_operator::{Ask, Field, Form, OperatorError, Outcome, Row, Shape};
use select::{ANY_PORT, SENDER, SESSION, TARGET, USER};
use serde_json::json;

/// The default Text(58) of the Logouts that operators request.
const LOGGED_OUT: &str = "logged out by the operator";

const TEXT: Field = Field::new(
    "text",
    "Text(58) of the Logout; of DBN, the text of the error record.",
    Form::Text(256),
);

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    list::LIST,
    Row::act(
        "sessions logout",
        "Log sessions out; they may log on again.",
        &[SESSION, SENDER, TARGET, USER, ANY_PORT, TEXT],
        |operator, ask| end(operator, ask, Some(ask.text("text").unwrap_or(LOGGED_OUT))),
    )
    .returns(ENDED),
    Row::act(
        "sessions disconnect",
        "End sessions without a Logout; they may log on again.",
        &[SESSION, SENDER, TARGET, USER, ANY_PORT],
        |operator, ask| end(operator, ask, None),
    )
    .returns(ENDED),
    steer::TEST_REQUEST,
    numbers::REMEMBERED,
    numbers::RESET,
    numbers::SET_SEQ,
    gate::STOP,
    gate::START,
    gate::STOPPED,
    admitted::ADD,
    admitted::REMOVE,
];

fn end(operator: &GatewayOperator, ask: &Ask, text: Option<&str>) -> Outcome {
    let which = select::some(ask)?;
    let (seats, of_dbn) = (
        select::seats(operator, &which),
        dbn::seats(operator, &which),
    );
    let count = seats.len() + of_dbn.len();
    if count == 0 {
        return Err(nobody(operator));
    }
    let forced = operator.gateway.end(&seats, &of_dbn, text);
    Ok(json!({ "sessions": count, "forced": forced }))
}

/// The most sessions that an error names.
const NAMED: usize = 5;

/// Returns the error for a session that does not exist, which names those that do.
fn nobody(operator: &GatewayOperator) -> OperatorError {
    let all = operator.gateway.sessions(|_| true);
    let mut names: Vec<String> = all.iter().map(|seat| seat.id.to_string()).collect();
    names.sort_unstable();
    OperatorError::absent(match names.len() {
        0 => "no such session; no session is connected".to_owned(),
        _ => format!("no such session; connected: {}", some_of(&names)),
    })
}

/// Formats the first names, and the number of others.
fn some_of(names: &[String]) -> String {
    let first = names.get(..NAMED).unwrap_or(names).join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}

const ENDED: Shape = Shape::Object(&[
    of("sessions", Shape::Count, "Sessions that have ended."),
    of(
        "forced",
        Shape::Count,
        "Sessions that did not answer the Logout within half a second, or had not ended after 3 s, \
         and were disconnected.",
    ),
]);
