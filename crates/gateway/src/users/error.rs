//! The error of refused users.

use super::origin::Origin;
use fanfare_wire::text::beginning;
use std::fmt;
use std::path::{Path, PathBuf};

/// The reason why the users, or the named lists of instruments, were refused. Never shows a
/// password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{why}", Place(self))]
pub struct UsersError {
    /// The file of the users, or `None` for a configuration whose file is not known.
    pub file: Option<PathBuf>,
    /// The line, from 1, if the users were read from text.
    pub line: Option<usize>,
    /// The user, the key and the fault.
    pub why: String,
}

impl UsersError {
    /// Returns the error of a whole file of users.
    pub(crate) fn of_file(file: &Path, why: impl Into<String>) -> Self {
        Self {
            file: Some(file.to_owned()),
            line: None,
            why: why.into(),
        }
    }
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

/// The longest text of the configuration, and the longest message about it, in an error, in bytes.
pub(crate) const LONGEST_ERROR: usize = 1_000;

/// Returns a text, or the beginning of a long one.
pub(crate) fn cut(text: String) -> String {
    match text.len() <= LONGEST_ERROR {
        true => text,
        false => format!("{} …", beginning(&text, LONGEST_ERROR)),
    }
}

/// A fault at a position of the text, in bytes from its beginning.
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

    /// Returns the error, with file and line as far as they are known.
    pub(super) fn error(self, origin: &Origin) -> UsersError {
        UsersError {
            file: origin.file(),
            line: self.at.and_then(|at| origin.line(at)),
            why: cut(self.why),
        }
    }
}

/// A text of the configuration in an error. It is quoted unless it may be or contain a password or
/// a hash, for example if a quotation mark is missing and the text of one key extends into another.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'a>(pub(super) &'a str);

impl Quoted<'_> {
    /// The longest text that is shown, in bytes. The output of argon2 is longer.
    const LONGEST: usize = 40;

    /// Returns whether the text is shown. A hash has `$`, and a line `password = "..."` has `=`.
    pub(super) fn is_shown(self) -> bool {
        let is_odd = |c: char| c.is_control() || matches!(c, '$' | '=');
        self.0.len() <= Self::LONGEST && !self.0.contains(is_odd)
    }
}

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_shown() {
            true => write!(f, "`{}`", self.0.escape_debug()),
            false => f.write_str(NOT_SHOWN),
        }
    }
}

/// The replacement for a text that may contain a secret.
const NOT_SHOWN: &str = "(not shown)";

/// Returns the line and the message of an error of TOML. The text of that line is left out, because
/// it may contain a password.
pub(crate) fn without_text(text: &str, error: &toml::de::Error) -> (Option<usize>, String) {
    let at = error.span().map(|span| span.start);
    let line = at.and_then(|at| Origin::of(text).line(at));
    let of_line = line.and_then(|line| text.lines().nth(line - 1));
    let why = match of_line {
        Some(of_line) if of_line.trim_start().starts_with("password") => NO_STRING.to_owned(),
        _ => without_values(error.message()),
    };
    (line, why)
}

/// The fault of a `password` that is not a string.
pub(super) const NO_STRING: &str = "`password`: must be a string, an argon2 hash";

/// Removes values from a message of TOML's or serde's, which may quote a value, key or variant that
/// it did not expect: ``invalid type: string "x", expected u16``.
fn without_values(message: &str) -> String {
    let end = message.rfind(", expected").unwrap_or(message.len());
    let (found, expected) = message.split_at(end);
    let quotes = ['"', '`'];
    let (Some(first), Some(last)) = (found.find(quotes), found.rfind(quotes)) else {
        return message.to_owned();
    };
    // The quotes are one byte each.
    let value = found.get(first + 1..last).unwrap_or_default();
    // What is not a string in the place of one may be a secret without quotation marks.
    let is_secret = expected.contains("a string") || expected.contains('$');
    match Quoted(value).is_shown() && !is_secret {
        true => message.to_owned(),
        false => {
            let (kind, behind) = (found.get(..first), found.get(last + 1..));
            let parts = [kind, Some(NOT_SHOWN), behind, Some(expected)];
            let parts = parts.into_iter().flatten();
            parts.filter(|part| !part.contains('$')).collect()
        }
    }
}
