//! The configuration, which the program reads again on request.

use super::GatewayOperator;
use fanfare_operator::{Member, OperatorError, Outcome, Row, Shape};
use serde_json::Value;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// The most requests that are queued for the program.
pub(super) const MOST: usize = 16;
/// The time after which the requester is told that a request is still under way.
const PATIENCE: Duration = Duration::from_secs(60);

const NAMES: Shape = Shape::List(&Shape::Text);
const CHANGES: Shape = Shape::Object(&[
    Member::new("added", NAMES, "Added names."),
    Member::new("removed", NAMES, "Removed names."),
    Member::new("changed", NAMES, "Names whose tables have changed."),
]);

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look(
        "config check",
        "Read the configuration and the files that it names, and report their faults.",
        &[],
        |operator, _| asked(operator, ConfigAsk::Check),
    )
    .returns(Shape::Text),
    Row::look(
        "config diff",
        "The changes that a reload would make now, and those that need a new start.",
        &[],
        |operator, _| asked(operator, ConfigAsk::Diff),
    )
    .returns(Shape::Object(&[
        Member::new("users", CHANGES, "Users, by name."),
        Member::new("lists", CHANGES, "Lists, by name."),
        Member::new(
            "mappings",
            NAMES,
            "Channels of feeds whose mappings have changed.",
        ),
        Member::new("keys", NAMES, "Other keys."),
        Member::new(
            "needs_start",
            NAMES,
            "Keys that take effect only at a new start.",
        ),
    ])),
    Row::act(
        "config reload",
        "Read the configuration again, as SIGHUP does.",
        &[],
        |operator, _| asked(operator, ConfigAsk::Reload),
    )
    .returns(Shape::Text),
    Row::act(
        "users reload",
        "Read users and lists again, but nothing else of the configuration.",
        &[],
        |operator, _| asked(operator, ConfigAsk::ReloadUsers),
    )
    .returns(Shape::Text),
];

/// A request of an operator about the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigAsk {
    /// Check whether it is valid.
    Check,
    /// Return the changes that a reload would make.
    Diff,
    /// Read it again.
    Reload,
    /// Read its users and lists again.
    ReloadUsers,
}

/// The requests of operators about the configuration, for the program that runs the gateway.
#[derive(Debug)]
pub struct ConfigAsks(Receiver<ConfigAsked>);

impl ConfigAsks {
    pub(super) const fn new(asks: Receiver<ConfigAsked>) -> Self {
        Self(asks)
    }

    /// Returns the next request, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<ConfigAsked> {
        self.0.try_recv().ok()
    }
}

/// A request of an operator, which awaits a response.
#[derive(Debug)]
pub struct ConfigAsked {
    /// The kind of request.
    pub ask: ConfigAsk,
    answer: SyncSender<Result<Value, String>>,
}

impl ConfigAsked {
    /// Responds to the request with its result, or with the reason why it failed.
    pub fn answer(self, outcome: Result<Value, String>) {
        // The requester may be gone.
        let _ = self.answer.try_send(outcome);
    }
}

fn asked(operator: &GatewayOperator, ask: ConfigAsk) -> Outcome {
    outcome(&operator.config, ask, PATIENCE).map_err(OperatorError::failed)
}

/// Returns the program's response to a request, or the reason why there is none.
fn outcome(
    program: &SyncSender<ConfigAsked>,
    ask: ConfigAsk,
    patience: Duration,
) -> Result<Value, String> {
    let (answer, answered) = sync_channel(1);
    let why = match program.try_send(ConfigAsked { ask, answer }) {
        Ok(()) => match answered.recv_timeout(patience) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) => "the request did not finish within a minute",
            Err(RecvTimeoutError::Disconnected) => "the program ended before it answered",
        },
        Err(TrySendError::Full(_)) => "too many requests about the configuration wait: try again",
        Err(TrySendError::Disconnected(_)) => "this program cannot reload its configuration",
    };
    Err(why.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_an_answer_says_why() {
        let (program, asks) = sync_channel(1);
        let ask = |patience| outcome(&program, ConfigAsk::Diff, patience);
        let why = |outcome: Result<Value, String>, expected: &str| {
            assert!(outcome.unwrap_err().contains(expected), "{expected}");
        };
        why(ask(Duration::ZERO), "within a minute");
        // The first one still waits.
        why(ask(PATIENCE), "too many requests");
        asks.recv().unwrap();
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(PATIENCE));
            drop(asks.recv().unwrap());
            why(asked.join().unwrap(), "ended before");
        });
        drop(asks);
        why(ask(PATIENCE), "cannot reload");
    }
}
