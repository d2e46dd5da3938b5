//! `[log]`: the configuration of the program's log, and the form of a [`Notice`] in it.

use crate::config::error::{ConfigError, range};
use crate::config::rotation::RotationConfig;
use crate::notice::{Notice, PeerEnd};
use fanfare_engine::levels::{LogLevel, LogLevels};
use fanfare_fix::session::SessionId;
use serde::{Deserialize, Deserializer};
use std::net::SocketAddr;
use std::path::PathBuf;

/// The targets of the lines of the program's log, each with a level of its own.
///
/// | target | lines about |
/// |---|---|
/// | `program` | start, stop, configuration, defects |
/// | `session` | connections and FIX sessions: Logons, refusals, ends, rejects, slow consumers |
/// | `feed` | lines, gaps, templates, books and their recovery |
/// | `dds` | topics, readers, writers |
/// | `dbn`, `kafka` | clients of DBN's live protocol, topics of Kafka |
/// | `history` | the log of market events, and its replay |
/// | `files` | stores, message log, audit file, capture, file of events |
/// | `control` | what operators ask for |
pub const LOG_TARGETS: [&str; 9] = [
    "program", "session", "feed", "dds", "dbn", "kafka", "history", "files", "control",
];

/// The configuration of the program's log.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramLog {
    /// The destination of the lines.
    pub to: LogTo,
    /// The form of a line.
    pub format: LogFormat,
    /// The levels, as [`LogLevels::apply`] parses them. A target without one has `info`.
    pub level: Option<String>,
    /// The rotation of the file.
    pub rotate: RotationConfig,
}

/// The destination of the lines of the program's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogTo {
    /// Standard error. If it is connected to the journal, as for a service of systemd, lines have
    /// the journal's form.
    Stderr,
    /// Standard error in the journal's form, with the priority first.
    Journald,
    /// This file, which is rotated.
    File(PathBuf),
}

/// The form of a line of the program's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// Time, level, target, text, and the fields that the text does not contain.
    Text,
    /// A JSON object.
    Json,
}

impl Default for ProgramLog {
    fn default() -> Self {
        Self {
            to: LogTo::Stderr,
            format: LogFormat::Text,
            level: None,
            rotate: RotationConfig::default(),
        }
    }
}

impl From<&str> for LogTo {
    fn from(text: &str) -> Self {
        match text {
            "stderr" => Self::Stderr,
            "journald" => Self::Journald,
            path => Self::File(path.into()),
        }
    }
}

impl<'de> Deserialize<'de> for LogTo {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self::from(text.as_str()))
    }
}

impl ProgramLog {
    /// The default size at which a file is rotated, in bytes.
    pub const MAX_BYTES: u64 = 100 << 20;

    /// Checks levels and ranges.
    ///
    /// # Errors
    /// Returns `Range`, naming the first key that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        if let Some(level) = &self.level
            && let Err(why) = LogLevels::new(&LOG_TARGETS).apply(level)
        {
            range("log.level", level, false, &why.to_string())?;
        }
        let is_named = self.to != LogTo::File(PathBuf::new());
        range(
            "log.to",
            "\"\"",
            is_named,
            "must be stderr, journald or a file",
        )?;
        let is_file = matches!(self.to, LogTo::File(_));
        let rotates = self.rotate != RotationConfig::default();
        let rule = "needs a file in `log.to`";
        range("log.rotate", "{ … }", is_file || !rotates, rule)?;
        let is_plain = self.to != LogTo::Journald || self.format == LogFormat::Text;
        let rule = "must be \"text\" with `log.to` = journald, which has fields of its own";
        range("log.format", "json", is_plain, rule)?;
        self.rotate.check("log")
    }
}

impl Notice {
    /// Returns the target of the notice: one of [`LOG_TARGETS`].
    #[must_use]
    pub const fn target(&self) -> &'static str {
        match self {
            Self::LoggedOn { .. }
            | Self::Ended { .. }
            | Self::LeftOut { .. }
            | Self::Rejected { .. }
            | Self::Messages { .. }
            | Self::CannotAccept { .. } => "session",
            Self::Dbn { .. } => "dbn",
            Self::Log(_) | Self::Audit { .. } => "files",
            Self::History { .. } | Self::Replay { .. } => "history",
            Self::Kafka { .. } => "kafka",
            Self::Panicked { .. } => "program",
            Self::Dds { .. }
            | Self::DdsClosed { .. }
            | Self::DdsStalled { .. }
            | Self::DdsWarning { .. }
            | Self::DdsResumed { .. }
            | Self::FeedTopics { .. }
            | Self::Unpublished { .. } => "dds",
            Self::SmallBuffer(_) | Self::LeftOutOfTemplates { .. } | Self::Feed(_) => "feed",
        }
    }

    /// Returns the level of the notice.
    #[must_use]
    pub fn level(&self) -> LogLevel {
        match self {
            Self::Panicked { .. } => LogLevel::Error,
            notice if notice.is_trouble() => LogLevel::Warn,
            _ => LogLevel::Info,
        }
    }

    /// Returns the session that the notice concerns, if any.
    #[must_use]
    pub const fn session(&self) -> Option<&SessionId> {
        match self {
            Self::LoggedOn { session, .. }
            | Self::LeftOut { session, .. }
            | Self::Rejected { session, .. }
            | Self::Messages { session, .. } => Some(session),
            Self::Ended {
                end: PeerEnd::Denied { session, .. },
                ..
            } => Some(session),
            Self::Ended { session, .. } | Self::Panicked { session, .. } => session.as_ref(),
            _ => None,
        }
    }

    /// Returns the address of the peer that the notice concerns, if any.
    #[must_use]
    pub const fn peer(&self) -> Option<SocketAddr> {
        match self {
            Self::LoggedOn { peer, .. }
            | Self::Ended { peer, .. }
            | Self::LeftOut { peer, .. }
            | Self::Dbn { peer, .. } => Some(*peer),
            _ => None,
        }
    }
}
