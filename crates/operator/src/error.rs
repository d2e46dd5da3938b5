//! Errors of commands.

use serde_json::Value;
use thiserror::Error;

/// The outcome of a command: its result as JSON, or the error.
pub type Outcome = Result<Value, OperatorError>;

/// The reason why a command was not done, for the operator.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct OperatorError {
    /// The kind of the error.
    pub fault: Fault,
    /// A sentence that names the alternatives.
    pub text: String,
}

/// The kind of reason why a command was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The request is wrong: the command, the field or its value does not exist.
    Usage,
    /// The object named by the request does not exist.
    Absent,
    /// The object exists, but the command cannot be done now.
    Failed,
}

impl Fault {
    /// Returns its name in responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Usage => "usage",
            Self::Absent => "absent",
            Self::Failed => "failed",
        }
    }
}

impl OperatorError {
    /// Makes the error of a wrong request.
    #[must_use]
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(Fault::Usage, text)
    }

    /// Makes the error of an object that does not exist.
    #[must_use]
    pub fn absent(text: impl Into<String>) -> Self {
        Self::new(Fault::Absent, text)
    }

    /// Makes the error of a command that cannot be done now.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(Fault::Failed, text)
    }

    fn new(fault: Fault, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { fault, text }
    }
}
