//! `[replay]`: a log of market events, or a file of DBN, that replaces feeds.

use crate::config::error::{ConfigError, range};
use fanfare_history::Moment;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::{Path, PathBuf};

/// A log or a file of DBN that is replayed. It is the only source of market events, so that they
/// keep their numbers.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The folder of the log.
    pub log: Option<PathBuf>,
    /// A file of DBN instead of a log.
    pub dbn: Option<PathBuf>,
    /// The speed relative to the original, from 0.001 to 1,000,000, or `max` for as fast as the
    /// outlets read.
    #[serde(default)]
    pub speed: Speed,
    /// The start of the replay. The default is the first event of the log.
    #[serde(default, deserialize_with = "moment")]
    pub from: Option<Moment>,
    /// The end of the replay, exclusive. The default is the end of the log at the start.
    #[serde(default, deserialize_with = "moment")]
    pub to: Option<Moment>,
    /// The number of times that it is replayed, or `true` to repeat until the gateway is stopped.
    #[serde(rename = "loop", default)]
    pub turns: Turns,
}

impl Replay {
    /// Returns the folder or the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        let path = self.log.as_ref().or(self.dbn.as_ref());
        path.map_or(Path::new(""), PathBuf::as_path)
    }

    /// Returns the key that names the folder or the file.
    pub(crate) const fn key(&self) -> &'static str {
        match self.log {
            Some(_) => "replay.log",
            None => "replay.dbn",
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let path = self.path().display();
        let is_one = self.log.is_some() != self.dbn.is_some();
        let rule = "expected either `replay.log` or `replay.dbn`";
        range("replay", &path, is_one, rule)?;
        let is_log = self.log.is_some() || (self.from.is_none() && self.to.is_none());
        let rule = "is always read whole: `replay.from` and `replay.to` need `replay.log`";
        range("replay.dbn", &path, is_log, rule)
    }
}

/// The speed relative to the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// The speed in thousandths.
    Thousandths(u32),
    /// As fast as the outlets read.
    Max,
}

/// The number of times that a source is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns(pub u64);

impl Default for Speed {
    fn default() -> Self {
        Self::Thousandths(1_000)
    }
}

impl Default for Turns {
    fn default() -> Self {
        Self(1)
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Max => f.write_str("as fast as it is read"),
            Self::Thousandths(speed) => write!(f, "at {} times its speed", f64::from(*speed) / 1e3),
        }
    }
}

/// A value that can be written in several ways.
#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "must be a number, a string, true or false (a time is a string in quotes)"
)]
enum Loose {
    Flag(bool),
    Whole(u64),
    Number(f64),
    Text(String),
}

impl<'de> Deserialize<'de> for Speed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let times = match Loose::deserialize(deserializer)? {
            Loose::Text(text) if text == "max" => return Ok(Self::Max),
            Loose::Whole(times) => times as f64,
            Loose::Number(times) => times,
            _ => f64::NAN,
        };
        match (0.001..=1e6).contains(&times) {
            true => Ok(Self::Thousandths((times * 1e3).round() as u32)),
            false => Err(D::Error::custom(
                "must be \"max\" or a number between 0.001 and 1000000",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Turns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Loose::deserialize(deserializer)? {
            Loose::Flag(true) => Ok(Self(u64::MAX)),
            Loose::Flag(false) => Ok(Self::default()),
            Loose::Whole(turns @ 1..) => Ok(Self(turns)),
            _ => Err(D::Error::custom(
                "must be true, false or a number of at least 1",
            )),
        }
    }
}

fn moment<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Moment>, D::Error> {
    match Loose::deserialize(deserializer)? {
        Loose::Whole(number) => Ok(Some(Moment::Number(number))),
        Loose::Text(text) => text.parse().map(Some).map_err(D::Error::custom),
        _ => Err(D::Error::custom("must be the number of an event or a time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replay(text: &str) -> Result<Replay, String> {
        toml::from_str(&format!("log = \"x\"\n{text}")).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_said_has_its_default() {
        let read = replay("").unwrap();
        assert_eq!(
            (read.speed, read.turns),
            (Speed::Thousandths(1_000), Turns(1))
        );
        assert_eq!((read.from, read.to), (None, None));
        let text = "speed = \"max\"\nfrom = 7\nto = \"+1.5\"\nloop = true";
        let read = replay(text).unwrap();
        assert_eq!((read.speed, read.turns), (Speed::Max, Turns(u64::MAX)));
        assert_eq!(read.from, Some(Moment::Number(7)));
        assert_eq!(read.to, Some(Moment::After(1_500_000_000)));
        let read = replay("speed = 0.5\nloop = 3").unwrap();
        assert_eq!(
            (read.speed, read.turns),
            (Speed::Thousandths(500), Turns(3))
        );
    }

    #[test]
    fn wrong_values_are_refused_with_their_line() {
        for text in [
            "speed = 0",
            "speed = \"fast\"",
            "speed = -1",
            "speed = true",
            "loop = 0",
            "loop = \"yes\"",
            "from = \"noon\"",
            "to = true",
            "from = 10:31:00",
            "too = 5",
        ] {
            let error = replay(text).unwrap_err();
            assert!(error.contains("line 2"), "{text}: {error}");
        }
    }
}
