//! Commands as data.

use crate::error::OperatorError;
use crate::shape::Shape;
use serde_json::Value;

/// The description of a command, independent of the program that runs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command {
    /// Its words, separated by one space: `sessions logout`. They are words for `fanfare ctl` and
    /// parts of the path over HTTP.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// Whether it changes anything.
    pub effect: Effect,
    /// The fields that it takes.
    pub takes: &'static [Field],
    /// The shape of its result.
    pub returns: Shape,
}

/// Whether a command changes anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The command shows something and is a GET over HTTP.
    Look,
    /// The command changes something, has a line in the audit file, and is a POST over HTTP.
    Act,
}

/// A field of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// Its name in JSON, in queries, and as an option: `--name`.
    pub name: &'static str,
    /// A description in one sentence.
    pub about: &'static str,
    /// The form of its value.
    pub form: Form,
    /// Whether `fanfare ctl` takes it without its name.
    pub is_first: bool,
    /// Whether the command requires it.
    pub is_needed: bool,
}

/// The form of a field's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Printable text of up to this many bytes.
    Text(usize),
    /// A number from 0 to 2^64 - 1.
    Number,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Yes or no; no if it is absent.
    Flag,
}

impl Field {
    /// For commands that set numbers: MsgSeqNum(34) of the next message to the session.
    pub const NEXT_SENDER: Self = Self::number(
        "next_sender",
        "MsgSeqNum(34) of the next message to the counterparty.",
    );

    /// For commands that set numbers: MsgSeqNum(34) of the next message from the session.
    pub const NEXT_TARGET: Self = Self::number(
        "next_target",
        "MsgSeqNum(34) that is expected next from the counterparty.",
    );

    /// For commands that set numbers: a number that the counterparty has seen may be used again.
    pub const FORCE: Self = Self::flag(
        "force",
        "Set the number even if the counterparty has seen it before.",
    );

    /// `force` of `sessions reset`.
    pub const DISCARD: Self = Self::flag(
        "force",
        "Reset even if messages of the counterparty are missing: they and those behind are lost.",
    );

    /// Makes a field of text of up to 1,024 bytes.
    #[must_use]
    pub const fn text(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Form::Text(1024))
    }

    /// Makes a field of a number.
    #[must_use]
    pub const fn number(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Form::Number)
    }

    /// Makes a field of one of some words.
    #[must_use]
    pub const fn one_of(
        name: &'static str,
        about: &'static str,
        words: &'static [&'static str],
    ) -> Self {
        Self::new(name, about, Form::OneOf(words))
    }

    /// Makes a field of yes or no.
    #[must_use]
    pub const fn flag(name: &'static str, about: &'static str) -> Self {
        Self::new(name, about, Form::Flag)
    }

    /// Makes a field of this form.
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

    /// Marks it as taken without its name by `fanfare ctl`.
    #[must_use]
    pub const fn first(mut self) -> Self {
        self.is_first = true;
        self
    }

    /// Marks it as required.
    #[must_use]
    pub const fn needed(mut self) -> Self {
        self.is_needed = true;
        self
    }

    /// Parses its value where everything is text: a query, an argument.
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
            Form::Text(most) => {
                format!("`{name}` must have at most {most} bytes of printable characters")
            }
            Form::Number => format!("`{name}` must be a number from 0 to {}", u64::MAX),
            Form::OneOf(words) => format!("`{name}` must be one of {}", words.join(", ")),
            Form::Flag => format!("`{name}` must be true or false"),
        })
    }
}
