//! The errors of a mapping file.

use crate::toml_text::Problem;
use core::fmt;

/// The reason why a mapping cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappingError {
    /// The name of the text given by the caller.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The key with the tables around it, like `message.event.price`, or empty if the text is not
    /// TOML.
    pub key: String,
    /// The fault.
    pub why: String,
}

impl MappingError {
    pub(super) fn new(file: &str, problem: Problem) -> Self {
        Self {
            file: file.to_owned(),
            line: problem.line,
            key: problem.key,
            why: problem.why,
        }
    }
}

impl fmt::Display for MappingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.why)
    }
}

impl core::error::Error for MappingError {}
