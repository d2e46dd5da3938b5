//! A program with commands.

use crate::ask::Ask;
use crate::changes::Changes;
use crate::command::{Command, Effect};
use crate::error::{OperatorError, Outcome};
use fanfare_engine::counters::Counters;
use fanfare_wire::text::Escaped;
use serde_json::{Map, Value};

/// A running program, for whoever asks and steers it, from any thread.
pub trait Operator: Send + Sync {
    /// What it can do.
    fn commands(&self) -> Vec<&'static Command>;

    /// Does what is asked. May wait: for sessions that end, for a reload.
    ///
    /// # Errors
    /// Why it was not done.
    fn run(&self, ask: &Ask) -> Outcome;

    /// Its counters.
    fn counters(&self) -> &Counters;

    /// Notes in the audit file who asked for what, and what came of it.
    fn note(&self, by: &str, asked: &str, outcome: &str);

    /// What has changed lately; none if the program tells of no changes.
    fn changes(&self) -> Option<&Changes> {
        None
    }

    /// Does what `by` asks for by its name and fields. What changes something is noted.
    ///
    /// # Errors
    /// There is no such command, it takes no such field, or why it was not done.
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
    OperatorError::usage(format!("there is no command `{name}`; there are {names}"))
}

/// A result in a line.
fn told(result: &Value) -> String {
    match result {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| format!("{name}={}", told(value)));
            fields.collect::<Vec<_>>().join(" ")
        }
        Value::Array(values) => {
            let values: Vec<String> = values.iter().map(told).collect();
            values.join(",")
        }
        other => other.to_string(),
    }
}
