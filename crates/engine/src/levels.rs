//! The levels of a program's log, which an operator sees and changes while it runs.
//!
//! The writer of the log asks [`LogLevels::is_on`] before it makes a line; a control socket has a
//! clone, and sets levels. Neither waits for the other.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use thiserror::Error;

/// The severity of a line, or the least severity that a target logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum LogLevel {
    /// No lines.
    Off,
    /// Failures.
    Error,
    /// Conditions that need an operator's attention.
    Warn,
    /// Events of normal operation.
    Info,
    /// Details of events that are otherwise summed up.
    Debug,
    /// Everything.
    Trace,
}

impl LogLevel {
    /// All levels, from the quietest.
    pub const ALL: [Self; 6] = [
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    /// Returns the level's name, as [`FromStr`] parses it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }

    fn of_number(number: u8) -> Self {
        let found = Self::ALL.into_iter().find(|level| *level as u8 == number);
        found.unwrap_or(Self::Info)
    }
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LogLevel {
    type Err = LevelError;

    fn from_str(text: &str) -> Result<Self, LevelError> {
        let found = Self::ALL.into_iter().find(|level| level.name() == text);
        found.ok_or_else(|| LevelError::Level(text.to_owned()))
    }
}

/// The reason why levels are not set.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LevelError {
    /// No level has this name.
    #[error("unknown log level {0:?}: expected off, error, warn, info, debug or trace")]
    Level(String),
    /// The log has no target of this name.
    #[error("unknown log target {target:?}: expected one of {}", .targets.join(", "))]
    Target {
        /// The target named.
        target: String,
        /// The targets of the log.
        targets: Vec<&'static str>,
    },
}

/// A level for each target of a log. Clones share the levels. Reading and setting one take an
/// atomic access each and never wait.
///
/// ```
/// use fanfare_engine::levels::{LogLevel, LogLevels};
/// let levels = LogLevels::new(&["session", "feed"]);
/// levels.apply("warn,session=debug")?;
/// assert!(levels.is_on("session", LogLevel::Info));
/// assert!(!levels.is_on("feed", LogLevel::Info));
/// assert_eq!(levels.to_string(), "session=debug,feed=warn");
/// # Ok::<(), fanfare_engine::levels::LevelError>(())
/// ```
#[derive(Debug, Clone)]
pub struct LogLevels(Arc<[(&'static str, AtomicU8)]>);

impl LogLevels {
    /// Creates levels for these targets, each at [`LogLevel::Info`].
    #[must_use]
    pub fn new(targets: &[&'static str]) -> Self {
        let level = || AtomicU8::new(LogLevel::Info as u8);
        Self(targets.iter().map(|target| (*target, level())).collect())
    }

    /// Returns whether lines of this level are written for a target. A target that the log does not
    /// have counts as the first one.
    #[must_use]
    pub fn is_on(&self, target: &str, level: LogLevel) -> bool {
        let own = self.0.iter().find(|(name, _)| *name == target);
        let most = own.or_else(|| self.0.first());
        most.is_some_and(|(_, most)| level as u8 <= most.load(Ordering::Relaxed))
            && level != LogLevel::Off
    }

    /// Sets the level of a target, or of all.
    ///
    /// # Errors
    /// The log has no such target.
    pub fn set(&self, target: Option<&str>, level: LogLevel) -> Result<(), LevelError> {
        if let Some(target) = target {
            self.known(target)?;
        }
        let is_it = |name: &str| target.is_none_or(|target| target == name);
        for (_, own) in self.0.iter().filter(|(name, _)| is_it(name)) {
            own.store(level as u8, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Sets levels from a list: `warn`, `session=debug`, or `warn,session=debug,dds=off`. A level
    /// without a target is for all targets, and later entries win. An error changes nothing.
    ///
    /// # Errors
    /// An entry names no level, or no target of this log.
    pub fn apply(&self, list: &str) -> Result<(), LevelError> {
        let mut all: Vec<(Option<&str>, LogLevel)> = Vec::new();
        for entry in list.split(',').map(str::trim) {
            let (target, level) = match entry.split_once('=') {
                None => (None, entry),
                Some((target, level)) => (Some(target.trim()), level.trim()),
            };
            if let Some(target) = target {
                self.known(target)?;
            }
            all.push((target, level.parse()?));
        }
        // Each target is stored once: other threads never see the level of an earlier entry.
        for (name, own) in self.0.iter() {
            let is_it = |target: Option<&str>| target.is_none_or(|target| target == *name);
            let last = all.iter().rfind(|(target, _)| is_it(*target));
            if let Some((_, level)) = last {
                own.store(*level as u8, Ordering::Relaxed);
            }
        }
        Ok(())
    }

    /// Returns the targets with their levels, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, LogLevel)> + '_ {
        let level = |of: &AtomicU8| LogLevel::of_number(of.load(Ordering::Relaxed));
        self.0.iter().map(move |(name, of)| (*name, level(of)))
    }

    fn known(&self, target: &str) -> Result<(), LevelError> {
        let mut targets = self.0.iter().map(|(name, _)| *name);
        if targets.any(|name| name == target) {
            return Ok(());
        }
        Err(LevelError::Target {
            target: target.to_owned(),
            targets: self.0.iter().map(|(name, _)| *name).collect(),
        })
    }
}

/// Writes the list that [`LogLevels::apply`] parses.
impl fmt::Display for LogLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (target, level)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{target}={level}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_applied_whole_or_not_at_all() {
        let levels = LogLevels::new(&["session", "feed", "dds"]);
        let seen_elsewhere = levels.clone();
        assert_eq!(levels.to_string(), "session=info,feed=info,dds=info");
        levels.apply(" error , dds = trace ").unwrap();
        assert_eq!(
            seen_elsewhere.to_string(),
            "session=error,feed=error,dds=trace"
        );
        for wrong in ["session=debug,feed=loud", "debug,stars=info", "", "session"] {
            assert!(levels.apply(wrong).is_err(), "{wrong}");
            assert_eq!(levels.to_string(), "session=error,feed=error,dds=trace");
        }
        let told = levels.apply("stars=info").unwrap_err().to_string();
        assert_eq!(
            told,
            "unknown log target \"stars\": expected one of session, feed, dds"
        );
        assert!(levels.apply(&seen_elsewhere.to_string()).is_ok());
    }

    #[test]
    fn later_entries_win_and_earlier_ones_are_never_in_force() {
        let levels = LogLevels::new(&["session", "feed"]);
        levels.apply("session=debug,error,feed=warn").unwrap();
        assert_eq!(levels.to_string(), "session=error,feed=warn");
        levels.apply("feed=error").unwrap();
        std::thread::scope(|scope| {
            let applied = scope.spawn(|| (0..50_000).try_for_each(|_| levels.apply("info,error")));
            while !applied.is_finished() {
                assert!(!levels.is_on("session", LogLevel::Info));
            }
            applied.join().unwrap().unwrap();
        });
    }

    #[test]
    fn a_level_includes_those_that_matter_more() {
        let levels = LogLevels::new(&["session"]);
        levels.set(Some("session"), LogLevel::Warn).unwrap();
        let on = |level| levels.is_on("session", level);
        assert!(on(LogLevel::Error) && on(LogLevel::Warn) && !on(LogLevel::Info));
        levels.set(None, LogLevel::Off).unwrap();
        assert!(!on(LogLevel::Error) && !on(LogLevel::Off));
    }
}
