//! The error of a refused configuration.

use crate::users::{UsersError, cut};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// The reason why a configuration was refused. The text names the place.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Invalid TOML, an unknown key, or a value of the wrong type. The text names the line.
    #[error("{0}")]
    Parse(String),
    /// An error in the users or the named lists.
    #[error(transparent)]
    Users(#[from] UsersError),
    /// A value outside its range.
    #[error("`{key}` = {value}: {rule}")]
    Range {
        /// The key, with its table.
        key: String,
        /// The value found.
        value: String,
        /// The values allowed.
        rule: String,
    },
}

/// The rule of keys about market events.
pub(crate) const NEEDS_MARKET: &str = "needs a source of market events: a feed with `mapping`, \
    `dbn`, `live` or `fix`, an edge or `[replay]`";

/// Checks that the value of a key is in its range.
pub(crate) fn range(
    key: impl Into<String>,
    value: impl ToString,
    holds: bool,
    rule: &str,
) -> Result<(), ConfigError> {
    if holds {
        Ok(())
    } else {
        Err(ConfigError::Range {
            key: cut(key.into()),
            value: cut(value.to_string()),
            rule: rule.to_owned(),
        })
    }
}

/// Checks that the value of a key lies between two others.
pub(crate) fn within<T: PartialOrd + Display>(
    key: impl Into<String>,
    value: T,
    allowed: RangeInclusive<T>,
) -> Result<(), ConfigError> {
    let rule = format!("must be between {} and {}", allowed.start(), allowed.end());
    range(key, &value, allowed.contains(&value), &rule)
}
