//! The commands that the hosts of sessions execute.

use super::select::{self, PORT, SENDER, SESSION, TARGET, USER};
use super::{GatewayOperator, nobody, of, some_of};
use crate::operator::which::Which;
use crate::ports::registry::Numbers;
use crate::users::PortName;
use fanfare_engine::host::{HostError, Steer};
use fanfare_fix::session::SessionId;
use fanfare_operator::{Ask, OperatorError, Outcome, Row, Shape};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

pub(super) const TEST_REQUEST: Row<GatewayOperator> = Row::act(
    "sessions test-request",
    "Send a TestRequest(1) to sessions; `sessions` shows the time to their answers.",
    &[SESSION, SENDER, TARGET, USER, PORT],
    test_request,
)
.returns(ASKED);

/// The time limit of a host.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session, connected or remembered.
pub(super) struct Found {
    pub(super) port: PortName,
    pub(super) id: Arc<SessionId>,
    pub(super) numbers: Option<Numbers>,
}

fn test_request(operator: &GatewayOperator, ask: &Ask) -> Outcome {
    let found = live(operator, &select::some(ask)?);
    if found.is_empty() {
        return Err(nobody(operator));
    }
    all(operator, &found, &Steer::TestRequest, |own| own, "tested")
}

/// Returns the connected sessions that match.
pub(super) fn live(operator: &GatewayOperator, which: &Which) -> Vec<Found> {
    let seats = select::seats(operator, which);
    let found = seats.iter().map(|seat| Found {
        port: seat.port,
        id: Arc::clone(&seat.id),
        numbers: None,
    });
    found.collect()
}

/// Steers each session. `done` formats the result for those that succeeded.
pub(super) fn all(
    operator: &GatewayOperator,
    found: &[Found],
    wish: &Steer,
    remember: impl Fn(Numbers) -> Numbers,
    done: &str,
) -> Outcome {
    let steered = found.iter().map(|own| one(operator, own, wish, &remember));
    let failed: Vec<String> = steered
        .filter_map(Result::err)
        .map(|error| error.text)
        .collect();
    let count = found.len() - failed.len();
    match failed.is_empty() {
        true => Ok(json!({ "sessions": count })),
        false => Err(OperatorError::failed(match found.len() {
            1 => failed.concat(),
            many => format!("{count} of {many} sessions {done}: {}", some_of(&failed)),
        })),
    }
}

/// Steers a session through its host, or changes its remembered state.
pub(super) fn one(
    operator: &GatewayOperator,
    found: &Found,
    wish: &Steer,
    remember: impl FnOnce(Numbers) -> Numbers,
) -> Result<(), OperatorError> {
    let mut ports = operator.gateway.ports();
    let Some((_, handle)) = ports.find(|(name, _)| *name == found.port) else {
        return Err(nobody(operator));
    };
    if let Some(numbers) = found.numbers {
        let registry = handle.rules.read().registry.clone();
        return match registry.set(&found.id, remember(numbers)) {
            true => Ok(()),
            false => Err(OperatorError::failed(format!(
                "session {} has logged on in the meantime",
                found.id
            ))),
        };
    }
    for host in &handle.hosts {
        match host.steer(&found.id, wish.clone()).wait_for(PATIENCE) {
            Ok(()) => return Ok(()),
            Err(HostError::Unknown(_)) => {}
            Err(error @ HostError::Lower { .. }) => {
                let why = format!("{error}: stop the session with `sessions stop`, or set `force`");
                return Err(OperatorError::failed(why));
            }
            Err(error @ HostError::Missing(_)) => {
                return Err(OperatorError::failed(format!(
                    "{error}; set `force` to do so"
                )));
            }
            Err(error) => return Err(OperatorError::failed(error.to_string())),
        }
    }
    let why = format!(
        "session {} is logging on, or has ended in the meantime",
        found.id
    );
    Err(OperatorError::failed(why))
}

const ASKED: Shape = Shape::Object(&[of("sessions", Shape::Count, "Tested sessions.")]);
