//! A request to run a command.

use crate::command::Command;
use crate::error::OperatorError;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::fmt;

/// A command with its fields, checked against those that it takes.
#[derive(Debug, Clone)]
pub struct Ask {
    by: String,
    command: &'static Command,
    fields: Map<String, Value>,
}

impl Ask {
    /// Makes a request of `by`, whom the audit file names. Fields that are null count as absent.
    ///
    /// # Errors
    /// The command does not take a field or its value, or a required field is missing.
    pub fn new(
        by: impl Into<String>,
        command: &'static Command,
        mut fields: Map<String, Value>,
    ) -> Result<Self, OperatorError> {
        fields.retain(|_, value| !value.is_null());
        for (name, value) in &fields {
            let field = command.takes.iter().find(|field| field.name == name);
            match field {
                Some(field) => field.check(value)?,
                None => return Err(no_such_field(command, name)),
            }
        }
        let mut needed = command.takes.iter().filter(|field| field.is_needed);
        if let Some(field) = needed.find(|field| !fields.contains_key(field.name)) {
            let why = format!("`{}` needs `{}`", command.name, field.name);
            return Err(OperatorError::usage(why));
        }
        Ok(Self {
            by: by.into(),
            command,
            fields,
        })
    }

    /// Returns the requester.
    #[must_use]
    pub fn by(&self) -> &str {
        &self.by
    }

    /// Returns the command.
    #[must_use]
    pub const fn command(&self) -> &'static Command {
        self.command
    }

    /// Returns the text, or the word, of a field.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// Returns the number of a field.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u64> {
        self.fields.get(name)?.as_u64()
    }

    /// Returns whether a flag is set.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        self.fields.get(name).and_then(Value::as_bool) == Some(true)
    }
}

/// Writes the request as the audit file has it.
impl fmt::Display for Ask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.command.name)?;
        for field in self.command.takes {
            match self.fields.get(field.name) {
                Some(Value::String(text)) => write!(f, " {}={}", field.name, quoted(text))?,
                Some(value) => write!(f, " {}={value}", field.name)?,
                None => {}
            }
        }
        Ok(())
    }
}

/// Returns the text as a value of the audit file: in double quotes, and with its own ones doubled,
/// if it has a blank or a quote, so that it cannot be read as further fields.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    match text.contains(|char: char| char.is_whitespace() || char == '"') {
        true => Cow::Owned(format!("\"{}\"", text.replace('"', "\"\""))),
        false => Cow::Borrowed(text),
    }
}

/// Returns the error of an unknown field, with those that the command takes.
fn no_such_field(command: &Command, name: &str) -> OperatorError {
    let name = fanfare_wire::text::Escaped::text(name);
    let all: Vec<&str> = command.takes.iter().map(|field| field.name).collect();
    OperatorError::usage(match all.is_empty() {
        true => format!("unknown field `{name}`: `{}` has no fields", command.name),
        false => format!(
            "unknown field `{name}` of `{}`: expected one of {}",
            command.name,
            all.join(", ")
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::{Effect, Field};
    use serde_json::json;

    const COMMAND: Command = Command {
        name: "sessions set-seq",
        about: "",
        effect: Effect::Act,
        takes: &[
            Field::text("sender", "").first().needed(),
            Field::number("next", ""),
            Field::one_of("port", "", &["producers", "consumers"]),
            Field::flag("all", ""),
        ],
        returns: crate::Shape::Any,
    };

    fn ask(fields: Value) -> Result<Ask, OperatorError> {
        let Value::Object(fields) = fields else {
            panic!("no object");
        };
        Ask::new("test", &COMMAND, fields)
    }

    #[test]
    fn fields_are_what_the_command_takes() {
        let fields = json!({ "next": u64::MAX, "sender": "A", "all": true, "port": null });
        let ask = ask(fields).unwrap();
        assert_eq!((ask.text("sender"), ask.text("port")), (Some("A"), None));
        assert_eq!(
            (ask.number("next"), ask.flag("all")),
            (Some(u64::MAX), true)
        );
        let shown = format!("sessions set-seq sender=A next={} all=true", u64::MAX);
        assert_eq!(ask.to_string(), shown);
    }

    #[test]
    fn a_value_cannot_be_read_as_further_fields() {
        let shown = |sender| ask(json!({ "sender": sender })).unwrap().to_string();
        assert_eq!(shown("A->B=c"), "sessions set-seq sender=A->B=c");
        assert_eq!(
            shown("A all=true"),
            r#"sessions set-seq sender="A all=true""#
        );
        assert_eq!(shown(r#"A" all="#), r#"sessions set-seq sender="A"" all=""#);
    }

    #[test]
    fn what_is_wrong_is_said_with_what_would_be_right() {
        for (fields, why) in [
            (json!({}), "`sessions set-seq` needs `sender`"),
            (
                json!({ "sender": 7 }),
                "`sender` must have at most 1024 bytes",
            ),
            (json!({ "sender": "a\u{1b}" }), "printable characters"),
            (json!({ "sender": "x".repeat(1025) }), "at most 1024 bytes"),
            (
                json!({ "sender": "A", "next": -1 }),
                "a number from 0 to 184",
            ),
            (
                json!({ "sender": "A", "next": 1.5 }),
                "`next` must be a number",
            ),
            (
                json!({ "sender": "A", "next": "7" }),
                "`next` must be a number",
            ),
            (json!({ "sender": "A", "port": "x" }), "one of producers, c"),
            (
                json!({ "sender": "A", "all": 1 }),
                "`all` must be true or false",
            ),
            (
                json!({ "sender": "A", "x\u{1b}": 1 }),
                "unknown field `x\\u{1b}` of `sessions set-seq`: expected one of sender",
            ),
        ] {
            let text = ask(fields).unwrap_err().text;
            assert!(text.contains(why), "{why} in {text}");
        }
    }

    #[test]
    fn text_of_a_query_becomes_what_the_field_is() {
        let [sender, next, port, all] = [0, 1, 2, 3].map(|at| &COMMAND.takes[at]);
        assert_eq!(next.read("18446744073709551615").unwrap(), json!(u64::MAX));
        assert_eq!(sender.read("18").unwrap(), json!("18"));
        assert_eq!(all.read("").unwrap(), json!(true));
        for (field, text) in [
            (next, "18446744073709551616"),
            (next, "-1"),
            (next, ""),
            (port, "x"),
            (all, "yes"),
        ] {
            assert!(field.read(text).is_err(), "{text}");
        }
    }
}
