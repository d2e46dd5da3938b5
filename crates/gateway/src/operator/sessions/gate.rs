//! The commands that keep sessions out until they are admitted again.

use super::which::{self, PORT, SENDER, SESSION, TARGET, USER};
use super::{ENDED, GatewayOperator, TEXT, of, some_of};
use crate::which::{Stopped, Which};
use fanfare_operator::{Ask, OperatorError, Outcome, Row, Shape};
use serde_json::{Value, json};

pub(super) const STOP: Row<GatewayOperator> = Row::act(
    "sessions stop",
    "Log sessions out, and refuse them until `start` or a new start of the gateway.",
    &[SESSION, SENDER, TARGET, USER, PORT, TEXT],
    stop,
)
.returns(ENDED);

pub(super) const START: Row<GatewayOperator> = Row::act(
    "sessions start",
    "Accept stopped sessions again: those of a `stop` with the same words.",
    &[SESSION, SENDER, TARGET, USER, PORT],
    start,
)
.returns(STARTED);

pub(super) const STOPPED: Row<GatewayOperator> = Row::look(
    "sessions stopped",
    "The sessions that are refused.",
    &[],
    |operator, _| {
        let all = stopped(operator);
        let rows = all
            .iter()
            .map(|which| json!({ "stopped": which.to_string() }));
        Ok(Value::Array(rows.collect()))
    },
)
.returns(Shape::List(&STOP_SHAPE));

/// The most stops in force.
const MOST: usize = 1024;
/// The default Text(58) of the Logouts.
const STOPPED_TEXT: &str = "stopped by the operator";

fn stop(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let which = which::some(ask)?;
    let all = stopped(operator);
    if all.contains(&which) {
        return Err(OperatorError::failed(format!("{which} is stopped already")));
    }
    if all.len() >= MOST {
        let why = format!("too many stops are in force: the limit is {MOST}");
        return Err(OperatorError::failed(why));
    }
    change(operator, &which, |stopped| stopped.push(which.clone()));
    // After the rules, so that sessions admitted from now on have seen them.
    let seats = operator.gateway.sessions(|seat| which.is(seat));
    let text = ask.text("text").unwrap_or(STOPPED_TEXT);
    let forced = operator.gateway.end(&seats, &[], Some(text));
    Ok(json!({ "sessions": seats.len(), "forced": forced }))
}

fn start(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let which = which::some(ask)?;
    let all = stopped(operator);
    if !all.contains(&which) {
        let names: Vec<String> = all.iter().map(Which::to_string).collect();
        return Err(OperatorError::absent(match names.len() {
            0 => format!("{which} is not stopped; no session is"),
            _ => format!("{which} is not stopped; stopped: {}", some_of(&names)),
        }));
    }
    change(operator, &which, |stopped| {
        stopped.retain(|own| *own != which);
    });
    Ok(json!({ "started": which.to_string() }))
}

/// Returns the stops in force, each once.
fn stopped(operator: &GatewayOperator) -> Vec<Which> {
    let mut all: Vec<Which> = Vec::new();
    for (_, port) in operator.gateway.ports() {
        for which in port.rules.read().stopped.0.iter() {
            if !all.contains(which) {
                all.push(which.clone());
            }
        }
    }
    all
}

/// Changes the stops of the selected ports.
fn change(operator: &GatewayOperator, which: &Which, change: impl Fn(&mut Vec<Which>)) {
    for (name, port) in operator.gateway.ports() {
        if which.port.is_none_or(|own| own == name) {
            port.rules.change(|rules| {
                let mut stopped = rules.stopped.0.to_vec();
                change(&mut stopped);
                rules.stopped = Stopped(stopped.into());
            });
        }
    }
}

const STARTED: Shape = Shape::Object(&[of(
    "started",
    Shape::Text,
    "The sessions that are accepted again.",
)]);

const STOP_SHAPE: Shape =
    Shape::Object(&[of("stopped", Shape::Text, "The sessions that are refused.")]);
