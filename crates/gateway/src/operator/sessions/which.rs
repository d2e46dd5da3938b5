//! Which sessions a command is for.

use super::GatewayOperator;
use crate::users::PortName;
use crate::users::roster::Seat;
use crate::which::Which;
use fanfare_operator::{Ask, Field, OperatorError};
use std::sync::Arc;

pub(super) const SESSION: Field = Field::text(
    "session",
    "The session as `sessions` prints it, or SenderCompID(49) of its Logon.",
)
.first();
pub(super) const SENDER: Field = Field::text(
    "sender",
    "Those with this SenderCompID(49) of their Logons.",
);
pub(super) const TARGET: Field = Field::text(
    "target",
    "Those with this TargetCompID(56) of their Logons.",
);
pub(super) const USER: Field = Field::text("user", "Those of this user.");
pub(super) const PORT: Field =
    Field::one_of("port", "Those of one port.", &["producers", "consumers"]);
/// Of commands that are for clients of DBN too.
pub(super) const ANY_PORT: Field = Field::one_of(
    "port",
    "Those of one port.",
    &["producers", "consumers", super::dbn::PORT],
);

/// Those that are asked for; all, if nothing is said.
pub(super) fn any(ask: &Ask) -> Which {
    let text = |name| ask.text(name).map(str::to_owned);
    let is_asked = |port: &PortName| ask.text("port") == Some(port.name());
    let mut which = Which {
        session: text("session"),
        sender: text("sender"),
        target: text("target"),
        user: text("user"),
        port: PortName::ALL.into_iter().find(is_asked),
    };
    // A CompID alone says the same as `sender`.
    let is_comp_id = which
        .session
        .as_ref()
        .is_some_and(|own| !own.contains("->"));
    if is_comp_id && which.sender.is_none() {
        which.sender = which.session.take();
    }
    which
}

/// Those that are asked for.
///
/// # Errors
/// Nothing is said but the port and our own name.
pub(super) fn some(ask: &Ask) -> Result<Which, OperatorError> {
    let which = any(ask);
    match (&which.session, &which.sender, &which.user) {
        (None, None, None) => Err(OperatorError::usage(
            "which sessions? `session`, `sender` or `user`, with `target` and `port`",
        )),
        _ => Ok(which),
    }
}

/// The FIX sessions that are there and asked for.
pub(super) fn seats(operator: &GatewayOperator, ask: &Ask, which: &Which) -> Vec<Arc<Seat>> {
    let is_dbn = ask.text("port") == Some(super::dbn::PORT);
    operator.gateway.sessions(|seat| !is_dbn && which.is(seat))
}
