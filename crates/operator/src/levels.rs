//! The commands for the levels of a program's log.

use crate::command::Field;
use crate::error::OperatorError;
use crate::row::Row;
use crate::shape::{Member, Shape};
use fanfare_engine::levels::LogLevels;
use serde_json::{Value, json};

const LEVELS: Field = Field::text(
    "levels",
    "A level for all targets, TARGET=LEVEL, or several with commas: warn,session=debug.",
)
.first()
.needed();

const SHOWN: Shape = Shape::List(&Shape::Object(&[
    Member::new("target", Shape::Text, "The target of the lines."),
    Member::new(
        "level",
        Shape::OneOf(&["off", "error", "warn", "info", "debug", "trace"]),
        "The lowest level that is written.",
    ),
]));

/// A program whose log has levels.
pub trait HasLevels {
    /// Returns the levels of its log.
    fn levels(&self) -> &LogLevels;
}

/// Returns the commands for the levels of a program's log.
#[must_use]
pub const fn level_rows<T: HasLevels>() -> [Row<T>; 2] {
    [
        Row::look(
            "log level",
            "The levels of the program's log, by target.",
            &[],
            |program: &T, _| Ok(shown(program.levels())),
        )
        .returns(SHOWN),
        Row::act(
            "log set-level",
            "Set levels of the program's log, until they are set again or the program ends.",
            &[LEVELS],
            |program: &T, ask| {
                let levels = program.levels();
                let asked = ask.text("levels").unwrap_or_default();
                let applied = levels.apply(asked);
                applied.map_err(|error| OperatorError::usage(error.to_string()))?;
                Ok(shown(levels))
            },
        )
        .returns(SHOWN),
    ]
}

fn shown(levels: &LogLevels) -> Value {
    let rows = levels
        .iter()
        .map(|(target, level)| json!({ "target": target, "level": level.to_string() }));
    Value::Array(rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ask, Outcome};

    struct Program(LogLevels);

    impl HasLevels for Program {
        fn levels(&self) -> &LogLevels {
            &self.0
        }
    }

    const COMMANDS: crate::Rows<Program> = &[&level_rows()];

    fn run(program: &Program, name: &str, levels: &str) -> Outcome {
        let command = crate::commands(COMMANDS)
            .into_iter()
            .find(|command| command.name == name)
            .unwrap();
        let mut fields = serde_json::Map::new();
        if !levels.is_empty() {
            fields.insert("levels".to_owned(), levels.into());
        }
        crate::run(COMMANDS, program, &Ask::new("test", command, fields)?)
    }

    #[test]
    fn levels_are_shown_and_set_and_a_mistake_changes_nothing() {
        let program = Program(LogLevels::new(&["program", "session"]));
        let at = |program, session| {
            json!([
                { "target": "program", "level": program },
                { "target": "session", "level": session },
            ])
        };
        assert_eq!(run(&program, "log level", ""), Ok(at("info", "info")));
        let set = run(&program, "log set-level", "warn,session=debug");
        assert_eq!(set, Ok(at("warn", "debug")));
        for wrong in ["loud", "stars=info", "info,session=", ""] {
            let refused = run(&program, "log set-level", wrong).unwrap_err();
            assert_eq!(refused.fault, crate::Fault::Usage, "{wrong}");
        }
        assert_eq!(run(&program, "log level", ""), Ok(at("warn", "debug")));
    }
}
