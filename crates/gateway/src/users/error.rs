//! Why users were refused.

use std::fmt;
use std::path::PathBuf;

/// Why the users, or the named lists of instruments, were refused. Never shows a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", Place(self))]
pub struct UsersError {
    /// The file of the users; `None`: the configuration itself.
    pub file: Option<PathBuf>,
    /// The line, from 1, if the users were read from text.
    pub line: Option<usize>,
    /// Which user and key, and what is wrong.
    pub why: String,
}

struct Place<'a>(&'a UsersError);

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.0.file {
            write!(f, "{}: ", file.display())?;
        }
        match self.0.line {
            Some(line) => write!(f, "line {line}: "),
            None => Ok(()),
        }
    }
}

/// A fault at a place of the text, in bytes from its beginning.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: Option<usize>,
    pub(super) why: String,
}

impl Fault {
    pub(super) fn new(at: impl Into<Option<usize>>, why: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            why: why.into(),
        }
    }

    /// The error, with the line if the text is known.
    pub(super) fn error(self, file: Option<PathBuf>, text: Option<&str>) -> UsersError {
        UsersError {
            file,
            line: self.at.zip(text).map(|(at, text)| line_of(text, at)),
            why: self.why,
        }
    }
}

/// The line, from 1, of a place in a text.
fn line_of(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    before.iter().filter(|&&byte| byte == b'\n').count() + 1
}

/// The line of TOML's error, and what it says. The line of the text that it would show is left
/// out: there may be a password in it.
pub(crate) fn without_text(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let at = error.span().map(|span| span.start);
    let line = at.map(|at| line_of(text, at));
    let of_line = line.and_then(|line| text.lines().nth(line - 1));
    let why = match of_line {
        Some(of_line) if of_line.trim_start().starts_with("password") => {
            "`password`: must be a string, an argon2 hash".to_owned()
        }
        _ => error.message().to_owned(),
    };
    (line, why)
}
