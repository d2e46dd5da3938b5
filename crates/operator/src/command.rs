//! Commands as data.

use crate::error::OperatorError;
use crate::shape::Shape;
use serde_json::Value;

/// What is known of a command without the program that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its words, with one space between them: `sessions logout`. `fanfare ctl` takes them as
    /// words, HTTP as parts of its path.
    pub name: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// Whether it changes anything.
    pub effect: Effect,
    /// The fields that it takes.
    pub takes: &'static [Field],
    /// What its result looks like.
    pub returns: Shape,
}

/// Whether a command changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It shows something: GET over HTTP.
    Look,
    /// It changes something: POST over HTTP, with a line in the audit file.
    Act,
}

/// A field of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON, in queries, and as an option: `--name`.
    pub name: &'static str,
    /// One sentence about it.
    pub about: &'static str,
    /// What it may be.
    pub form: Form,
    /// Whether `fanfare ctl` takes it without its name.
    pub is_first: bool,
    /// Whether the command is wrong without it.
    pub is_needed: bool,
}

/// What a field may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Printable text of up to so many bytes.
    Text(usize),
    /// A number from 0 to 2^64 - 1.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Yes or no; no if it is not there.
    Flag,
}

impl Field {
    /// Of commands that set numbers: MsgSeqNum(34) of the next message to the session.
    pub const NEXT_SENDER: Self =
        Self::number("next_sender", "MsgSeqNum(34) of the next message to it.");

    /// Of commands that set numbers: MsgSeqNum(34) of the next message from the session.
    pub const NEXT_TARGET: Self = Self::number(
        "next_target",
        "MsgSeqNum(34) that is expected from it next.",
    );

    /// Of commands that set numbers: a number that the counterparty has seen may come again.
    pub const FORCE: Self = Self::flag(
        "force",
        "Also if it has seen the number of the next message to it.",
    );

    /// Text of up to 1,024 bytes.
    #[must_use]
    pub const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Form::Text(1024))
    }

    /// A number.
    #[must_use]
    pub const fn number(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Form::Number)
    }

    /// One of some words.
    #[must_use]
    pub const fn one_of(
        name: &'static str,
        about: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self::new(name, about, Form::OneOf(words))
    }

    /// Yes or no.
    #[must_use]
    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Form::Flag)
    }

    /// The same, of another form.
    #[must_use]
    pub const fn new(name: &'static str, about: &'static str, form: Form) -> Self {
        Self {
            name,
            about,
            form,
            is_first: false,
            is_needed: false,
        }
    }

    /// The same, taken without its name by `fanfare ctl`.
    #[must_use]
    pub const fn first(mut self) -> Self {
        self.is_first = true;
        self
    }

    /// The same, without which the command is wrong.
    #[must_use]
    pub const fn needed(mut self) -> Self {
        self.is_needed = true;
        self
    }

    /// What was written for it, where everything is text: a query, an argument.
    ///
    /// # Errors
    /// The text is no such value.
    pub fn read(&self, text: &str) -> Result<Value, OperatorError> {
        let value = match self.form {
            Form::Text(_) | Form::OneOf(_) => Some(Value::from(text)),
            Form::Number => text.parse::<u64>().ok().map(Value::from),
            Form::Flag => match text {
                "" | "true" => Some(Value::from(true)),
                "false" => Some(Value::from(false)),
                _ => None,
            },
        };
        match value {
            Some(value) => self.check(&value).map(|()| value),
            None => Err(self.wrong()),
        }
    }

    /// Checks a value.
    pub(crate) fn check(&self, value: &Value) -> Result<(), OperatorError> {
        let is_right = match self.form {
            Form::Text(most) => value
                .as_str()
                .is_some_and(|text| text.len() <= most && !text.chars().any(char::is_control)),
            Form::Number => value.is_u64(),
            Form::OneOf(words) => value.as_str().is_some_and(|text| words.contains(&text)),
            Form::Flag => value.is_boolean(),
        };
        if is_right { Ok(()) } else { Err(self.wrong()) }
    }

    fn wrong(&self) -> OperatorError {
        let name = self.name;
        OperatorError::usage(match self.form {
            Form::Text(most) => format!("`{name}` has up to {most} bytes of printable characters"),
            Form::Number => format!("`{name}` is a number from 0 to {}", u64::MAX),
            Form::OneOf(words) => format!("`{name}` is one of {}", words.join(", ")),
            Form::Flag => format!("`{name}` is true or false"),
        })
    }
}
