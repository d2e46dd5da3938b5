//! The tables of a program.

use crate::ask::Ask;
use crate::command::{Command, Effect, Field};
use crate::error::{OperatorError, Outcome};
use crate::shape::Shape;

/// A command, and the function of a program that runs it.
pub struct Row<T: 'static> {
    /// The description of the command.
    pub command: Command,
    run: fn(&T, &Ask) -> Outcome,
}

/// The commands of a program, by family.
pub type Rows<T> = &'static [&'static [Row<T>]];

impl<T> Row<T> {
    /// Makes a row of a command that shows something.
    #[must_use]
    pub const fn look(
        name: &'static str,
        about: &'static str,
        takes: &'static [Field],
        run: fn(&T, &Ask) -> Outcome,
    ) -> Self {
        Self::new(Effect::Look, name, about, takes, run)
    }

    /// Makes a row of a command that changes something.
    #[must_use]
    pub const fn act(
        name: &'static str,
        about: &'static str,
        takes: &'static [Field],
        run: fn(&T, &Ask) -> Outcome,
    ) -> Self {
        Self::new(Effect::Act, name, about, takes, run)
    }

    const fn new(
        effect: Effect,
        name: &'static str,
        about: &'static str,
        takes: &'static [Field],
        run: fn(&T, &Ask) -> Outcome,
    ) -> Self {
        let command = Command {
            name,
            about,
            effect,
            takes,
            returns: Shape::Any,
        };
        Self { command, run }
    }

    /// Sets the shape of its result.
    #[must_use]
    pub const fn returns(mut self, shape: Shape) -> Self {
        self.command.returns = shape;
        self
    }
}

/// Returns the commands of the rows.
#[must_use]
pub fn commands<T>(rows: Rows<T>) -> Vec<&'static Command> {
    let all = rows.iter().flat_map(|family| *family);
    all.map(|row| &row.command).collect()
}

/// Runs a command.
///
/// # Errors
/// The rows do not have the command, or it was not done.
pub fn run<T>(rows: Rows<T>, program: &T, ask: &Ask) -> Outcome {
    let mut all = rows.iter().flat_map(|family| *family);
    match all.find(|row| row.command.name == ask.command().name) {
        Some(row) => (row.run)(program, ask),
        None => Err(OperatorError::usage("no such command")),
    }
}
