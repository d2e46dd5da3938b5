//! The configuration, which the program reads again on request.

use super::GatewayOperator;
use fanfare_operator::{Member, OperatorError, Outcome, Row, Shape};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

/// The most requests that are queued for the program.
pub(super) const MOST: usize = 16;
/// The time after which a request that the program has not begun is withdrawn, and the time after
/// which the requester of another one is told that it is still under way.
const PATIENCE: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(60)];

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
        let mut waiting = self.0.try_iter();
        waiting.find(|asked| !asked.is_taken.swap(true, Ordering::AcqRel))
    }
}

/// A request of an operator, which awaits a response.
#[derive(Debug)]
pub struct ConfigAsked {
    /// The kind of request.
    pub ask: ConfigAsk,
    /// Whether the program has begun it, or the requester has withdrawn it: the first of the two
    /// sets this.
    is_taken: Arc<AtomicBool>,
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
    patience: [Duration; 2],
) -> Result<Value, String> {
    let (answer, answered) = sync_channel(1);
    let is_taken = Arc::new(AtomicBool::new(false));
    let asked = ConfigAsked {
        ask,
        is_taken: Arc::clone(&is_taken),
        answer,
    };
    if let Err(error) = program.try_send(asked) {
        let why = match error {
            TrySendError::Full(_) => "too many requests about the configuration wait: try again",
            TrySendError::Disconnected(_) => "this program cannot reload its configuration",
        };
        return Err(why.to_owned());
    }
    wait(&answered, &is_taken, patience)
}

fn wait(
    answered: &Receiver<Result<Value, String>>,
    is_taken: &AtomicBool,
    [begin, end]: [Duration; 2],
) -> Result<Value, String> {
    let mut outcome = answered.recv_timeout(begin);
    if outcome == Err(RecvTimeoutError::Timeout) {
        if !is_taken.swap(true, Ordering::AcqRel) {
            return Err("a reload is under way: try again".to_owned());
        }
        outcome = answered.recv_timeout(end);
    }
    outcome.unwrap_or_else(|error| {
        Err(match error {
            RecvTimeoutError::Timeout => "the request did not finish within a minute".to_owned(),
            RecvTimeoutError::Disconnected => "the program ended before it answered".to_owned(),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_without_an_answer_says_why() {
        let (program, asks) = sync_channel(1);
        let asks = ConfigAsks::new(asks);
        let ask = |patience| outcome(&program, ConfigAsk::Diff, patience);
        let why = |outcome: Result<Value, String>, expected: &str| {
            assert!(outcome.unwrap_err().contains(expected), "{expected}");
        };
        why(ask([Duration::ZERO; 2]), "a reload is under way");
        // The first one still has its place, but is not begun any more.
        why(ask(PATIENCE), "too many requests");
        assert!(asks.next().is_none());
        let next = || {
            let all = std::iter::repeat_with(|| {
                std::thread::yield_now();
                asks.next()
            });
            all.flatten().next().unwrap()
        };
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(PATIENCE));
            drop(next());
            why(asked.join().unwrap(), "ended before");
        });
        let (_answer, answered) = sync_channel(1);
        let begun = AtomicBool::new(true);
        why(
            wait(&answered, &begun, [Duration::ZERO; 2]),
            "within a minute",
        );
        drop(asks);
        why(ask(PATIENCE), "cannot reload");
    }
}
