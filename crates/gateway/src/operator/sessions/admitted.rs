//! The commands that change the lists of sessions that may log on.

use super::{GatewayOperator, of, some_of};
use crate::ports::config::{COMP_IDS, Pair};
use crate::ports::handle::PortHandle;
use fanfare_operator::{Ask, Field, OperatorError, Outcome, Row, Shape};
use fanfare_wire::text::Escaped;
use serde_json::json;

const PORT: Field = Field::one_of("port", "The port.", &["producers", "consumers"]).needed();
const SENDER: Field = Field::text("sender", "SenderCompID(49) of its Logon.").needed();
const TARGET: Field = Field::text("target", "TargetCompID(56) of its Logon.").needed();

pub(super) const ADD: Row<GatewayOperator> = Row::act(
    "sessions add",
    "Add a session to the list `sessions` of a port, until the next start or reload.",
    &[PORT, SENDER, TARGET],
    add,
)
.returns(LISTED);

pub(super) const REMOVE: Row<GatewayOperator> = Row::act(
    "sessions remove",
    "Remove a session from the list `sessions` of a port, and log it out.",
    &[PORT, SENDER, TARGET],
    remove,
)
.returns(LISTED);

/// The most sessions of a list that an operator extends.
const MOST: usize = 100_000;

fn add(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let (handle, pair) = asked(operator, ask)?;
    if !pair.is_possible() {
        return Err(OperatorError::usage(COMP_IDS));
    }
    if [&pair.sender, &pair.target]
        .iter()
        .any(|id| id.ends_with('*'))
    {
        let why =
            "a list names each session: CompIDs are compared as they are, `*` stands for none";
        return Err(OperatorError::usage(why));
    }
    let listed = handle.rules.read().config.sessions.len();
    if handle.rules.read().config.sessions.contains(&pair) {
        return Err(OperatorError::failed(format!(
            "{} is on the list already",
            name(&pair)
        )));
    }
    if listed >= MOST {
        let why = format!("the list is full: it has {listed} sessions");
        return Err(OperatorError::failed(why));
    }
    handle.add_session(pair);
    Ok(json!({ "listed": listed + 1 }))
}

fn remove(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let (handle, pair) = asked(operator, ask)?;
    let removed = handle.remove_session(&pair);
    let was_listed = removed.map_err(|error| OperatorError::failed(error.to_string()))?;
    let sessions = &handle.rules.read().config.sessions;
    if was_listed {
        return Ok(json!({ "listed": sessions.len() }));
    }
    let names: Vec<String> = sessions.iter().map(name).collect();
    Err(OperatorError::absent(match names.len() {
        0 => format!("{} is not on the list, which is empty", name(&pair)),
        _ => format!(
            "{} is not on the list, which has {}",
            name(&pair),
            some_of(&names)
        ),
    }))
}

/// Returns the port, which must have a list, and the session.
fn asked<'a>(
    operator: &'a GatewayOperator,
    ask: &Ask,
) -> Result<(&'a PortHandle, Pair), OperatorError> {
    let text = |name| ask.text(name).unwrap_or_default().to_owned();
    let mut ports = operator.gateway.ports();
    let found = ports.find(|(name, _)| ask.text("port") == Some(name.name()));
    let Some((port, handle)) = found else {
        return Err(OperatorError::usage("no port is named"));
    };
    if handle.rules.read().admits_all() {
        let port = port.name();
        return Err(OperatorError::failed(format!(
            "`{port}` has no list of sessions, so any may log on; `sessions stop` keeps one out"
        )));
    }
    let pair = Pair {
        sender: text("sender"),
        target: text("target"),
    };
    Ok((handle, pair))
}

fn name(pair: &Pair) -> String {
    let [sender, target] = [&pair.sender, &pair.target].map(|id| Escaped::text(id));
    format!("{sender}->{target}")
}

const LISTED: Shape = Shape::Object(&[of(
    "listed",
    Shape::Count,
    "Sessions that the list of the port has.",
)]);
