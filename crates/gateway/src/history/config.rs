//! `[history]`: the log of market events.

use super::rolls::{self, Calendar};
use crate::config::error::{ConfigError, range, within};
use fanfare_history::{KeeperConfig, WriterConfig};
use serde::Deserialize;
use std::path::{Path, PathBuf};

const DAY: u64 = 86_400_000_000_000;

/// The configuration of the log of market events.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct History {
    /// The folder of its files, which is created if absent.
    pub folder: PathBuf,
    /// The size at which a segment is full, in bytes.
    #[serde(default = "segment_bytes")]
    pub segment_bytes: u64,
    /// The events from one checkpoint of all books to the next.
    #[serde(default = "checkpoint_events")]
    pub checkpoint_events: u64,
    /// The zstd level for full segments, from 1 to 19. With 0, they are not compressed.
    #[serde(default = "compress")]
    pub compress: u8,
    /// The most bytes of all segments, beyond which the oldest are removed.
    pub keep_bytes: Option<u64>,
    /// The days for which events are kept.
    pub keep_days: Option<u32>,
    /// The time of day at which a new segment begins: `HH:MM` in `time_zone`.
    pub roll_at: Option<String>,
    /// The name of the time zone of `roll_at`, such as `Europe/London`. The default is UTC.
    pub time_zone: Option<String>,
    /// The days of the week on which `roll_at` applies, such as `Mon`. If empty, all do.
    #[serde(default)]
    pub roll_days: Vec<String>,
    /// The local dates without a session, `YYYY-MM-DD`, on which `roll_at` does not apply.
    #[serde(default)]
    pub holidays: Vec<String>,
    /// The interval at which written events are synced to the disk, in milliseconds. With 0, the
    /// system decides. A kill of the gateway loses nothing either way.
    #[serde(default)]
    pub sync_ms: u64,
    /// The file of the ring of events, from which a start recovers the events that the log lacks
    /// after a kill. The default is in `/dev/shm`, or in the folder if that file system does not
    /// exist.
    pub ring: Option<PathBuf>,
    /// The action when the log is behind by the whole ring of events.
    #[serde(default)]
    pub when_behind: WhenBehind,
    /// The raw log: datagrams of the feeds' lines and messages of producers.
    pub raw: Option<RawHistory>,
}

/// The configuration of the raw log, in the folder `raw` of the log of market events. Its segments
/// end at the same times of the day.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawHistory {
    /// The size of each ring to the log in bytes: one for the lines of each feed, and one for the
    /// producers. Records that do not fit are dropped and counted, and no thread waits.
    #[serde(default = "raw_ring_bytes")]
    pub ring_bytes: usize,
    /// The size at which a segment is full, in bytes.
    #[serde(default = "segment_bytes")]
    pub segment_bytes: u64,
    /// The zstd level for full segments, from 1 to 19. With 0, they are not compressed.
    #[serde(default = "compress")]
    pub compress: u8,
    /// The most bytes of all segments, beyond which the oldest are removed.
    pub keep_bytes: Option<u64>,
    /// The days for which segments are kept.
    pub keep_days: Option<u32>,
}

/// The action when the log is behind by the whole ring of events.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenBehind {
    /// The log loses events, and records which ones. Nothing else is held up.
    #[default]
    Lose,
    /// The feeds wait for the log, and the kernel drops datagrams when its buffers are full. Once
    /// they have waited 5 s without progress of the log, it loses events until it makes some.
    Wait,
}

fn segment_bytes() -> u64 {
    WriterConfig::default().segment_bytes
}

const fn raw_ring_bytes() -> usize {
    8 << 20
}

fn checkpoint_events() -> u64 {
    KeeperConfig::default().checkpoint_events
}

const fn compress() -> u8 {
    3
}

impl History {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let segments = Segments {
            size: self.segment_bytes,
            level: self.compress,
            keep_bytes: self.keep_bytes,
            keep_days: self.keep_days,
        };
        segments.check("history")?;
        let events = self.checkpoint_events;
        within("history.checkpoint_events", events, 1000..=1 << 40)?;
        within("history.sync_ms", self.sync_ms, 0..=3_600_000)?;
        if let Some(raw) = &self.raw {
            let segments = Segments {
                size: raw.segment_bytes,
                level: raw.compress,
                keep_bytes: raw.keep_bytes,
                keep_days: raw.keep_days,
            };
            segments.check("history.raw")?;
            within("history.raw.ring_bytes", raw.ring_bytes, 1 << 20..=1 << 30)?;
        }
        rolls::check(self.calendar())
    }

    /// Returns the keys that determine when segments end.
    pub(super) fn calendar(&self) -> Calendar<'_> {
        Calendar {
            roll_at: self.roll_at.as_deref(),
            time_zone: self.time_zone.as_deref(),
            roll_days: &self.roll_days,
            holidays: &self.holidays,
        }
    }

    /// Returns the settings of the raw log and the size of its rings, if it is configured.
    pub(crate) fn of_raw(&self) -> Option<(Self, usize)> {
        let raw = self.raw.as_ref()?;
        let settings = Self {
            folder: self.folder.join("raw"),
            segment_bytes: raw.segment_bytes,
            compress: raw.compress,
            keep_bytes: raw.keep_bytes,
            keep_days: raw.keep_days,
            raw: None,
            ..self.clone()
        };
        Some((settings, raw.ring_bytes))
    }

    pub(crate) const fn writer(&self) -> WriterConfig {
        WriterConfig {
            segment_bytes: self.segment_bytes,
            first: 1,
        }
    }

    pub(crate) fn keeper(&self) -> KeeperConfig {
        KeeperConfig {
            checkpoint_events: self.checkpoint_events,
            compress: (self.compress > 0).then_some(self.compress.into()),
            keep_bytes: self.keep_bytes,
            keep_nanos: self.keep_days.map(|days| u64::from(days) * DAY),
        }
    }

    /// Returns the file of the ring of events.
    pub(crate) fn ring_file(&self) -> PathBuf {
        if let Some(ring) = &self.ring {
            return ring.clone();
        }
        let memory = Path::new("/dev/shm");
        let folder = self.folder.canonicalize();
        match folder {
            Ok(folder) if memory.is_dir() => {
                let name = folder.to_string_lossy().replace(['/', '\0'], "-");
                memory.join(format!("fanfare{name}.ring"))
            }
            _ => self.folder.join("ring"),
        }
    }
}

/// The size, compression and retention of the segments of a log.
struct Segments {
    size: u64,
    level: u8,
    keep_bytes: Option<u64>,
    keep_days: Option<u32>,
}

impl Segments {
    /// Checks the ranges. `table` is the table that has the keys.
    fn check(&self, table: &str) -> Result<(), ConfigError> {
        let key = |name: &str| format!("{table}.{name}");
        within(key("segment_bytes"), self.size, 1 << 16..=16 << 30)?;
        within(key("compress"), self.level, 0..=19)?;
        within(key("keep_days"), self.keep_days.unwrap_or(1), 1..=36_500)?;
        let least = 2 * self.size;
        let keep = self.keep_bytes.unwrap_or(least);
        let rule = "must be at least two segments, 2 × segment_bytes";
        range(key("keep_bytes"), keep, keep >= least, rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_out_of_range_are_refused() {
        let check = |text: &str| {
            let history: History = toml::from_str(&format!("folder = \"x\"\n{text}")).unwrap();
            history.check().map_err(|error| error.to_string())
        };
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("roll_at = \"23:59\"\nkeep_days = 3"), Ok(()));
        let days = "roll_days = [\"Mon\", \"friday\"]\nholidays = [\"2028-02-29\"]";
        assert_eq!(check(&format!("roll_at = \"23:59\"\n{days}")), Ok(()));
        for text in [
            "segment_bytes = 5",
            "checkpoint_events = 10",
            "compress = 20",
            "keep_bytes = 1000",
            "keep_days = 0",
            "roll_at = \"24:00\"",
            "roll_at = \"7:00\"",
            "roll_at = \"07:00\"\ntime_zone = \"Mars/Base\"",
            "time_zone = \"UTC\"",
            "roll_days = [\"Mon\"]",
            "roll_at = \"07:00\"\nroll_days = [\"Mon\", \"Someday\"]",
            "holidays = [\"2026-12-25\"]",
            "roll_at = \"07:00\"\nholidays = [\"2026-02-29\"]",
            "roll_at = \"07:00\"\nholidays = [\"25.12.2026\"]",
            "sync_ms = 99999999",
        ] {
            let error = check(text).unwrap_err();
            let key = text.rsplit('\n').next().unwrap();
            let key = key.split(' ').next().unwrap();
            assert!(error.contains(&format!("history.{key}")), "{text}: {error}");
        }
    }
}
