//! A program with commands.

use crate::ask::{Ask, quoted};
use crate::changes::Changes;
use crate::command::{Command, Effect};
use crate::error::{OperatorError, Outcome};
use fanfare_engine::counters::Counters;
use fanfare_wire::text::Escaped;
use serde_json::{Map, Value};

/// A running program, as operators query and steer it, from any thread.
pub trait Operator: Send + Sync {
    /// Returns its commands.
    fn commands(&self) -> Vec<&'static Command>;

    /// Runs a command. It may wait for sessions that end or for a reload.
    ///
    /// # Errors
    /// The reason why it was not done.
    fn run(&self, ask: &Ask) -> Outcome;

    /// Returns its counters.
    fn counters(&self) -> &Counters;

    /// Notes a request, its requester and its outcome in the audit file.
    fn note(&self, by: &str, asked: &str, outcome: &str);

    /// Returns its latest changes; `None` if the program records none.
    fn changes(&self) -> Option<&Changes> {
        None
    }

    /// Runs the command of this name with these fields for `by`. A command that changes something
    /// is noted.
    ///
    /// # Errors
    /// The command or a field does not exist, or the command was not done.
    fn ask(&self, by: &str, name: &str, fields: Map<String, Value>) -> Outcome {
        let all = self.commands();
        let Some(&command) = all.iter().find(|command| command.name == name) else {
            return Err(unknown(&all, name));
        };
        let ask = Ask::new(by, command, fields)?;
        let outcome = self.run(&ask);
        if command.effect == Effect::Act {
            let told = match &outcome {
                Ok(result) => told(result),
                Err(error) => format!("refused: {error}"),
            };
            self.note(by, &ask.to_string(), &told);
        }
        outcome
    }
}

fn unknown(all: &[&Command], name: &str) -> OperatorError {
    let name = Escaped::text(name);
    let names: Vec<&str> = all.iter().map(|command| command.name).collect();
    let names = names.join(", ");
    OperatorError::usage(format!("unknown command `{name}`: expected one of {names}"))
}

/// Formats a result in a line.
fn told(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| match value {
                Value::String(text) => format!("{name}={}", quoted(text)),
                other => format!("{name}={}", told(other)),
            });
            fields.collect::<Vec<_>>().join(" ")
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(told).collect();
            values.join(",")
        }
        other => other.to_string(),
    }
}
