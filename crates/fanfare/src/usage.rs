//! Wrong usage that the parser of arguments does not find: options that contradict each other, or
//! do not fit the kind of input.

use std::fmt;
use std::process::ExitCode;

/// The exit status of wrong usage. Arguments that cannot be parsed have the same one.
pub(crate) const STATUS: u8 = 2;

/// An error that follows from the command line alone, whatever the contents of files.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Returns from the function with a [`Usage`] error, as `bail!` returns with any other one.
macro_rules! misuse {
    ($($arg:tt)*) => {
        return Err($crate::usage::Usage(format!($($arg)*)).into())
    };
}

pub(crate) use misuse;

/// Returns the exit status for an error: [`STATUS`] for wrong usage, 1 for any other one.
pub(crate) fn status_of(error: &anyhow::Error) -> ExitCode {
    match error.is::<Usage>() {
        true => ExitCode::from(STATUS),
        false => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::{Context, Result, bail};

    #[test]
    fn wrong_usage_is_told_from_failures_whatever_its_context() {
        let option = "--one";
        let misused = || -> Result<()> { misuse!("{option} needs --other") };
        let failed = || -> Result<()> { bail!("the disk is full") };
        let misused = misused().context("inner").context("outer").unwrap_err();
        assert_eq!(format!("{misused:#}"), "outer: inner: --one needs --other");
        assert_eq!(status_of(&misused), ExitCode::from(STATUS));
        let failed = failed().context("outer").unwrap_err();
        assert_eq!(status_of(&failed), ExitCode::FAILURE);
    }
}
