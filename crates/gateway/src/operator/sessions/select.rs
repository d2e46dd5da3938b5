//! The selection of the sessions of a command.

use super::GatewayOperator;
use crate::operator::which::{DBN, Which};
use crate::users::roster::Seat;
use fanfare_operator::{Ask, Field, OperatorError};
use std::sync::Arc;

pub(super) const SESSION: Field = Field::text(
    "session",
    "The session as `sessions` prints it, or SenderCompID(49) of its Logon.",
)
.first();
pub(super) const SENDER: Field = Field::text(
    "sender",
    "Only sessions with this SenderCompID(49) in their Logons.",
);
pub(super) const TARGET: Field = Field::text(
    "target",
    "Only sessions with this TargetCompID(56) in their Logons.",
);
pub(super) const USER: Field = Field::text("user", "Only sessions of this user.");
pub(super) const PORT: Field = Field::one_of(
    "port",
    "Only sessions of this port.",
    &["producers", "consumers"],
);
/// The parameter of commands that apply to clients of DBN too.
pub(super) const ANY_PORT: Field = Field::one_of(
    "port",
    "Only sessions of this port.",
    &["producers", "consumers", DBN],
);

/// Returns the selection, which is all sessions if no criterion is given.
pub(super) fn any(ask: &Ask) -> Which {
    let text = |name| ask.text(name).map(str::to_owned);
    let mut which = Which {
        session: text("session"),
        sender: text("sender"),
        target: text("target"),
        user: text("user"),
        port: text("port"),
    };
    // A CompID alone means the same as `sender`. A number may be that of a session of DBN.
    let is_number = |own: &str| own.bytes().all(|byte| byte.is_ascii_digit());
    let is_comp_id = which
        .session
        .as_ref()
        .is_some_and(|own| !own.contains("->") && !is_number(own));
    if is_comp_id && which.sender.is_none() {
        which.sender = which.session.take();
    }
    which
}

/// Returns the selection.
///
/// # Errors
/// Returns an error if no criterion is given but the port and the gateway's own CompID.
pub(super) fn some(ask: &Ask) -> Result<Which, OperatorError> {
    let which = any(ask);
    match (&which.session, &which.sender, &which.user) {
        (None, None, None) => Err(OperatorError::usage(
            "no session is named: expected `session`, `sender` or `user`",
        )),
        _ => Ok(which),
    }
}

/// Returns the FIX sessions that match.
pub(super) fn seats(operator: &GatewayOperator, which: &Which) -> Vec<Arc<Seat>> {
    operator.gateway.sessions(|seat| seat.is(which))
}
