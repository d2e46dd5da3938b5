//! `[[feed]]` with `dbn`: a file of DBN as a feed.

use super::config::{Speed, Turns};
use crate::config::error::{ConfigError, range, within};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::PathBuf;

/// The default limit of the instruments of a file.
const MOST_INSTRUMENTS: u32 = 100_000;

/// A file of DBN and the settings for reading it: the path as a text, or a table.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct FileSource {
    /// The file, which may be compressed by zstd.
    pub file: PathBuf,
    /// The speed relative to the original, from 0.001 to 1,000,000, or `max` for as fast as the
    /// outlets read.
    #[serde(default)]
    pub speed: Speed,
    /// The number of times that it is read, or `true` to repeat until the gateway is stopped.
    #[serde(rename = "loop", default)]
    pub turns: Turns,
    /// The most instruments. Further ones are refused and counted.
    #[serde(default = "most_instruments")]
    pub most_instruments: u32,
}

const fn most_instruments() -> u32 {
    MOST_INSTRUMENTS
}

impl<'de> Deserialize<'de> for FileSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SourceVisitor)
    }
}

struct SourceVisitor;

impl<'de> Visitor<'de> for SourceVisitor {
    type Value = FileSource;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a file of DBN, or a table with file, speed, loop, most_instruments")
    }

    fn visit_str<E: Error>(self, file: &str) -> Result<FileSource, E> {
        Ok(FileSource {
            file: file.into(),
            speed: Speed::default(),
            turns: Turns::default(),
            most_instruments: MOST_INSTRUMENTS,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FileSource, A::Error> {
        FileSource::deserialize(MapAccessDeserializer::new(map))
    }
}

/// A file of DBN that is received like a feed: its records become market events when they are due,
/// beside those of other feeds, with the numbers and times of arrival of this plant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFeed {
    /// The name of the feed.
    pub channel: String,
    /// The file.
    pub source: FileSource,
}

impl FileFeed {
    /// Creates the feed of a file, which is named after the file if `channel` is absent.
    pub(crate) fn new(channel: Option<String>, source: FileSource) -> Self {
        let name = source.file.file_name().unwrap_or_default();
        let channel = channel.unwrap_or_else(|| name.to_string_lossy().into_owned());
        Self { channel, source }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let (source, key) = (&self.source, "feed.dbn.most_instruments");
        let has_name = source.file.file_name().is_some();
        range(
            "feed.dbn",
            source.file.display(),
            has_name,
            "must be the path of a file",
        )?;
        within(key, source.most_instruments, 1..=10_000_000)
    }
}
