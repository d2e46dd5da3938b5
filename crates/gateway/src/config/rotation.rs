//! `rotate = { … }` of a table: the rotation of the files of a log.

use crate::config::error::{ConfigError, range, within};
use fanfare_engine::rotate::{Daily, Rotation};
use fanfare_engine::zone;
use serde::Deserialize;

/// The rotation of the files of a log, and the number of files that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RotationConfig {
    /// The size in bytes at which a file is rotated.
    pub max_bytes: Option<u64>,
    /// The time of day at which a file is rotated: `HH:MM` in `time_zone`.
    pub roll_at: Option<String>,
    /// The name of the time zone of `roll_at`, such as `Europe/London`. The default is UTC.
    pub time_zone: Option<String>,
    /// The number of rotated files that are kept.
    pub keep: Option<usize>,
    /// The zstd level for rotated files, from 1 to 19. With 0, they are not compressed.
    pub compress: Option<u8>,
}

impl RotationConfig {
    pub(crate) fn check(&self, table: &str) -> Result<(), ConfigError> {
        let key = |name: &str| format!("{table}.rotate.{name}");
        if let Some(bytes) = self.max_bytes {
            within(key("max_bytes"), bytes, 1 << 16..=1 << 40)?;
        }
        if let Some(keep) = self.keep {
            within(key("keep"), keep, 1..=100_000)?;
        }
        if let Some(level) = self.compress {
            within(key("compress"), level, 0..=19)?;
        }
        let table = format!("{table}.rotate");
        check_daily(&table, self.roll_at.as_deref(), self.time_zone.as_deref())
    }

    /// Returns the rotation, with defaults for absent keys and `max_bytes` as the default size.
    #[must_use]
    pub fn rotation(&self, max_bytes: u64) -> Rotation {
        let default = Rotation::default();
        Rotation {
            max_bytes: self.max_bytes.unwrap_or(max_bytes),
            daily: daily(self.roll_at.as_deref(), self.time_zone.as_deref()),
            keep: self.keep.unwrap_or(default.keep),
            compress: self.compress.unwrap_or(default.compress),
        }
    }
}

/// Returns the daily time of `roll_at` and `time_zone`, which were checked.
pub(crate) fn daily(roll_at: Option<&str>, time_zone: Option<&str>) -> Option<Daily> {
    Daily::new(roll_at?, time_zone.unwrap_or("UTC")).ok()
}

/// Checks `roll_at` and `time_zone` of a table.
pub(crate) fn check_daily(
    table: &str,
    roll_at: Option<&str>,
    time_zone: Option<&str>,
) -> Result<(), ConfigError> {
    let key = |name: &str| format!("{table}.{name}");
    let name = time_zone.unwrap_or("UTC");
    let rule = "must be the name of a time zone, such as Europe/London or UTC";
    range(key("time_zone"), name, zone::by_name(name).is_ok(), rule)?;
    let at = roll_at.unwrap_or("00:00");
    let rule = "must be a time of day, HH:MM or HH:MM:SS";
    range(key("roll_at"), at, Daily::new(at, "UTC").is_ok(), rule)?;
    let rule = format!("needs `{table}.roll_at`");
    let is_used = time_zone.is_none() || roll_at.is_some();
    range(key("time_zone"), name, is_used, &rule)
}
