//! The commands that keep sessions out until they are admitted again.

use super::select::{self, ANY_PORT, SENDER, SESSION, TARGET, USER};
use super::{ENDED, GatewayOperator, TEXT, dbn, of, some_of};
use crate::operator::which::Which;
use fanfare_operator::{Ask, OperatorError, Outcome, Row, Shape};
use serde_json::{Value, json};

pub(super) const STOP: Row<GatewayOperator> = Row::act(
    "sessions stop",
    "Log sessions out, and refuse them until `start` or a new start of the gateway.",
    &[SESSION, SENDER, TARGET, USER, ANY_PORT, TEXT],
    stop,
)
.returns(ENDED);

pub(super) const START: Row<GatewayOperator> = Row::act(
    "sessions start",
    "Accept stopped sessions again: those of a `stop` with the same words.",
    &[SESSION, SENDER, TARGET, USER, ANY_PORT],
    start,
)
.returns(STARTED);

pub(super) const STOPPED: Row<GatewayOperator> = Row::look(
    "sessions stopped",
    "The sessions that are refused.",
    &[],
    |operator, _| {
        let named = |which: &Which| json!({ "stopped": which.to_string() });
        let rows = stops(operator, |all| all.iter().map(named).collect());
        Ok(Value::Array(rows))
    },
)
.returns(Shape::List(&STOP_SHAPE));

/// The most stops in force.
const MOST: usize = 1024;
/// The default Text(58) of the Logouts.
const STOPPED_TEXT: &str = "stopped by the operator";

fn stop(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let which = select::some(ask)?;
    stops(operator, |all| add(all, &which))?;
    // After the stop, so that these are all: sessions that match are refused from now on.
    let (seats, of_dbn) = (
        select::seats(operator, &which),
        dbn::seats(operator, &which),
    );
    let text = ask.text("text").unwrap_or(STOPPED_TEXT);
    let forced = operator.gateway.end(&seats, &of_dbn, Some(text));
    Ok(json!({ "sessions": seats.len() + of_dbn.len(), "forced": forced }))
}

/// Adds a stop to those in force.
fn add(all: &mut Vec<Which>, which: &Which) -> Result<(), OperatorError> {
    if all.contains(which) {
        return Err(OperatorError::failed(format!("{which} is stopped already")));
    }
    if all.len() >= MOST {
        let why = format!("too many stops are in force: the limit is {MOST}");
        return Err(OperatorError::failed(why));
    }
    all.push(which.clone());
    Ok(())
}

fn start(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let which = select::some(ask)?;
    stops(operator, |all| remove(all, &which))?;
    Ok(json!({ "started": which.to_string() }))
}

/// Removes a stop from those in force.
fn remove(all: &mut Vec<Which>, which: &Which) -> Result<(), OperatorError> {
    if let Some(at) = all.iter().position(|own| own == which) {
        all.remove(at);
        return Ok(());
    }
    let names: Vec<String> = all.iter().map(Which::to_string).collect();
    Err(OperatorError::absent(match names.len() {
        0 => format!("{which} is not stopped; no session is"),
        _ => format!("{which} is not stopped; stopped: {}", some_of(&names)),
    }))
}

/// Reads or changes the stops in force.
fn stops<T>(operator: &GatewayOperator, change: impl FnOnce(&mut Vec<Which>) -> T) -> T {
    operator.gateway.shared().roster.stops(change)
}

const STARTED: Shape = Shape::Object(&[of(
    "started",
    Shape::Text,
    "The sessions that are accepted again.",
)]);

const STOP_SHAPE: Shape =
    Shape::Object(&[of("stopped", Shape::Text, "The sessions that are refused.")]);
