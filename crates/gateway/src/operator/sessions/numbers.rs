//! The commands about the sequence numbers of connected and remembered sessions.

use super::select::{self, PORT, SENDER, SESSION, TARGET, USER};
use super::steer::{self, Found};
use super::{GatewayOperator, nobody, of, some_of};
use crate::operator::which::Which;
use crate::ports::registry::Numbers;
use fanfare_engine::host::{HostError, Steer};
use fanfare_fix::session::MAX_SEQ_NUM;
use fanfare_operator::{Ask, Field, Member, OperatorError, Outcome, Row, Shape};
use fanfare_wire::text::Escaped;
use serde_json::{Value, json};

pub(super) const REMEMBERED: Row<GatewayOperator> = Row::look(
    "sessions remembered",
    "The sessions that are not connected and whose numbers are remembered.",
    &[SESSION, SENDER, TARGET, PORT],
    remembered,
)
.returns(Shape::List(&REMEMBERED_SHAPE));

pub(super) const RESET: Row<GatewayOperator> = Row::act(
    "sessions reset",
    "Start both directions of sessions at 1 again, by a Logon with ResetSeqNumFlag(141) if they \
     are logged on.",
    &[SESSION, SENDER, TARGET, USER, PORT, Field::DISCARD],
    reset,
)
.returns(DONE);

pub(super) const SET_SEQ: Row<GatewayOperator> = Row::act(
    "sessions set-seq",
    "Set numbers of one session.",
    &[
        SESSION,
        SENDER,
        TARGET,
        USER,
        PORT,
        Field::NEXT_SENDER,
        Field::NEXT_TARGET,
        Field::FORCE,
    ],
    set_seq,
)
.returns(SET);

fn remembered(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let mut all = idle(operator, &select::any(ask));
    all.sort_by_cached_key(|found| (found.port, found.id.to_string()));
    let rows = all.iter().map(|found| {
        json!({
            "port": found.port.name(),
            "session": found.id.to_string(),
            "sender": Escaped::text(&found.id.target).to_string(),
            "target": Escaped::text(&found.id.sender).to_string(),
            "next_sender": found.numbers.map(|numbers| numbers.sender),
            "next_target": found.numbers.map(|numbers| numbers.target),
        })
    });
    Ok(Value::Array(rows.collect()))
}

/// Returns the remembered sessions that match. Their users are not remembered, so a user's name
/// matches none.
fn idle(operator: &GatewayOperator, which: &Which) -> Vec<Found> {
    let ports = operator.gateway.ports();
    let wanted = ports.filter(|(name, _)| which.is_at(name.name()));
    let mut all = Vec::new();
    for (port, handle) in wanted {
        let registry = handle.rules.read().registry.clone();
        let idle = registry.idle(|id| which.is_of(id, ""));
        all.extend(idle.into_iter().map(|(id, numbers)| Found {
            port,
            id,
            numbers: Some(numbers),
        }));
    }
    all
}

/// Returns the connected or remembered sessions that match.
fn found(operator: &GatewayOperator, which: &Which) -> Result<Vec<Found>, OperatorError> {
    let mut all = steer::live(operator, which);
    all.extend(idle(operator, which));
    match all.is_empty() {
        true => Err(nobody(operator)),
        false => Ok(all),
    }
}

fn reset(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let all = found(operator, &select::some(ask)?)?;
    let fresh = |_| Numbers::new(1, 1);
    let force = ask.flag("force");
    steer::all(operator, &all, &Steer::Reset { force }, fresh, "reset")
}

fn set_seq(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let (sender, target) = (ask.number("next_sender"), ask.number("next_target"));
    if sender.is_none() && target.is_none() {
        let why = "a number is missing: expected `next_sender`, `next_target` or both";
        return Err(OperatorError::usage(why));
    }
    for number in [sender, target].into_iter().flatten() {
        if !(1..=MAX_SEQ_NUM).contains(&number) {
            return Err(OperatorError::usage(HostError::Number(number).to_string()));
        }
    }
    let all = found(operator, &select::some(ask)?)?;
    let [one] = &*all else {
        let names: Vec<String> = all.iter().map(|found| found.id.to_string()).collect();
        let count = names.len();
        let why = format!(
            "numbers are set for one session at a time; {count} match: {}",
            some_of(&names)
        );
        return Err(OperatorError::usage(why));
    };
    let wish = Steer::SetNumbers {
        sender,
        target,
        force: ask.flag("force"),
    };
    let with = |numbers: Numbers| {
        let sender = sender.unwrap_or(numbers.sender);
        Numbers::new(sender, target.unwrap_or(numbers.target))
    };
    steer::one(operator, one, &wish, with)?;
    Ok(json!({ "session": one.id.to_string(), "next_sender": sender, "next_target": target }))
}

const NAME: Member = of(
    "session",
    Shape::Text,
    "The name of the session, from this side.",
);
const NEXT_SENDER: Member = of(
    "next_sender",
    Shape::Maybe(&Shape::Count),
    "The next MsgSeqNum(34) to the counterparty.",
);
const NEXT_TARGET: Member = of(
    "next_target",
    Shape::Maybe(&Shape::Count),
    "The next MsgSeqNum(34) from the counterparty.",
);

const DONE: Shape = Shape::Object(&[of("sessions", Shape::Count, "Sessions that were reset.")]);

const SET: Shape = Shape::Object(&[NAME, NEXT_SENDER, NEXT_TARGET]);

const REMEMBERED_SHAPE: Shape = Shape::Object(&[
    of("port", Shape::Text, "The port of the session."),
    NAME,
    of("sender", Shape::Text, "SenderCompID(49) of its Logon."),
    of("target", Shape::Text, "TargetCompID(56) of its Logon."),
    NEXT_SENDER,
    NEXT_TARGET,
]);
