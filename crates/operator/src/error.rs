//! Why a command was not done.

use serde_json::Value;
use thiserror::Error;

/// What a command returns: its result as JSON, or why it was not done.
pub type Outcome = Result<Value, OperatorError>;

/// Why a command was not done, for the operator to read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{text}")]
pub struct OperatorError {
    /// Whose fault it is.
    pub fault: Fault,
    /// A sentence that says what is there instead.
    pub text: String,
}

/// Whose fault it is that a command was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The question: there is no such command, or it has no such field, or a field no such value.
    Usage,
    /// What the question names is not there.
    Absent,
    /// It is there, and it cannot be done now.
    Failed,
}

impl Fault {
    /// As answers have it.
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
    /// The question is wrong.
    #[must_use]
    pub fn usage(text: impl Into<String>) -> Self {
        Self::new(Fault::Usage, text)
    }

    /// What it names is not there.
    #[must_use]
    pub fn absent(text: impl Into<String>) -> Self {
        Self::new(Fault::Absent, text)
    }

    /// It cannot be done now.
    #[must_use]
    pub fn failed(text: impl Into<String>) -> Self {
        Self::new(Fault::Failed, text)
    }

    fn new(fault: Fault, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { fault, text }
    }
}
