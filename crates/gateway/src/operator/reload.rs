//! The configuration, read again by whoever runs the gateway.

use super::GatewayOperator;
use fanfare_operator::{Ask, OperatorError, Outcome, Row, Shape};
use serde_json::Value;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// The most reloads that wait for whoever runs the gateway.
pub(super) const MOST: usize = 16;
/// How long a reload may take until who asked for it is told that it is still under way.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[Row::act(
    "reload",
    "Read the configuration again, as SIGHUP does.",
    &[],
    reload,
)
.returns(Shape::Text)];

/// The operators' wishes that the configuration is read again, for whoever runs the gateway.
#[derive(Debug)]
pub struct Reloads(Receiver<ReloadAsked>);

impl Reloads {
    pub(super) const fn new(asked: Receiver<ReloadAsked>) -> Self {
        Self(asked)
    }

    /// The next wish, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<ReloadAsked> {
        self.0.try_recv().ok()
    }
}

/// An operator's wish that the configuration is read again.
#[derive(Debug)]
pub struct ReloadAsked(SyncSender<Result<String, String>>);

impl ReloadAsked {
    /// Says what became of it: what was changed, or why nothing was.
    pub fn answer(self, outcome: Result<String, String>) {
        // Who asked may be gone.
        let _ = self.0.try_send(outcome);
    }
}

fn reload(operator: &GatewayOperator, _ask: &Ask) -> Outcome {
    let (answer, answered) = sync_channel(1);
    let asked = operator.reload.try_send(ReloadAsked(answer));
    let outcome = match asked {
        Err(_) => Err("nobody reads the configuration again here".to_owned()),
        Ok(()) => answered
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| Err("no answer within a minute".to_owned())),
    };
    outcome.map(Value::String).map_err(OperatorError::failed)
}
