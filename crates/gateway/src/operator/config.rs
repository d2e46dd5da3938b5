//! The configuration, read again by whoever runs the gateway.

use super::GatewayOperator;
use fanfare_operator::{Member, OperatorError, Outcome, Row, Shape};
use serde_json::Value;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// The most questions that wait for whoever runs the gateway.
pub(super) const MOST: usize = 16;
/// How long a question may take until who asked is told that it is still under way.
const PATIENCE: Duration = Duration::from_secs(60);

const NAMES: Shape = Shape::List(&Shape::Text);
const CHANGES: Shape = Shape::Object(&[
    Member::new("added", NAMES, "Those that are new."),
    Member::new("removed", NAMES, "Those that are gone."),
    Member::new("changed", NAMES, "Those whose tables are others."),
]);

pub(super) const COMMANDS: &[Row<GatewayOperator>] = &[
    Row::look(
        "config check",
        "Read the configuration and the files that it names, and say what is wrong with them.",
        &[],
        |operator, _| asked(operator, ConfigAsk::Check),
    )
    .returns(Shape::Text),
    Row::look(
        "config diff",
        "What a reload would change now, and what only a new start would.",
        &[],
        |operator, _| asked(operator, ConfigAsk::Diff),
    )
    .returns(Shape::Object(&[
        Member::new("users", CHANGES, "Users, by name."),
        Member::new("lists", CHANGES, "Lists, by name."),
        Member::new(
            "mappings",
            NAMES,
            "Channels of feeds whose mappings make something else of messages.",
        ),
        Member::new("keys", NAMES, "Other keys."),
        Member::new("needs_start", NAMES, "Keys that only a new start changes."),
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
        "Read users and lists again, and nothing else of the configuration.",
        &[],
        |operator, _| asked(operator, ConfigAsk::ReloadUsers),
    )
    .returns(Shape::Text),
];

/// What an operator asks about the configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigAsk {
    /// Whether it could be used.
    Check,
    /// What a reload would change.
    Diff,
    /// That it is read again.
    Reload,
    /// That its users and lists are read again.
    ReloadUsers,
}

/// What operators ask about the configuration, for whoever runs the gateway.
#[derive(Debug)]
pub struct ConfigAsks(Receiver<ConfigAsked>);

impl ConfigAsks {
    pub(super) const fn new(asks: Receiver<ConfigAsked>) -> Self {
        Self(asks)
    }

    /// Returns the next question, if there is one.
    #[must_use]
    pub fn next(&self) -> Option<ConfigAsked> {
        self.0.try_recv().ok()
    }
}

/// A question of an operator, which waits for its answer.
#[derive(Debug)]
pub struct ConfigAsked {
    /// What is asked.
    pub ask: ConfigAsk,
    answer: SyncSender<Result<Value, String>>,
}

impl ConfigAsked {
    /// Answers it: what was done or found, or why nothing was.
    pub fn answer(self, outcome: Result<Value, String>) {
        // Who asked may be gone.
        let _ = self.answer.try_send(outcome);
    }
}

fn asked(operator: &GatewayOperator, ask: ConfigAsk) -> Outcome {
    let (answer, answered) = sync_channel(1);
    let asked = operator.config.try_send(ConfigAsked { ask, answer });
    let outcome = match asked {
        Err(_) => Err("nobody reads the configuration again here".to_owned()),
        Ok(()) => answered
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| Err("no answer within a minute".to_owned())),
    };
    outcome.map_err(OperatorError::failed)
}
