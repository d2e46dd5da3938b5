//! The error of a mapping or of a file of instruments.

use crate::toml_text::Problem;
use core::fmt;

/// The reason why a mapping cannot be used, or why a file of instruments was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The name of the text given by the caller.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key with the tables around it, like `message.event.price`, or the column, or empty if it
    /// concerns none.
    pub key: String,
    /// The fault.
    pub why: String,
}

impl TextError {
    pub(crate) fn new(file: &str, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            line: problem.line,
            key: problem.key,
            why: problem.why,
        }
    }
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.why)
    }
}

impl core::error::Error for TextError {}
