//! Lines in the configuration, and the deserialization of their values.

use crate::config::error::{ConfigError, range, within};
use fanfare_feed::SequenceField;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::str::FromStr;

/// A line of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(remote = "Self", deny_unknown_fields)]
pub struct FeedLine {
    /// The multicast group and port.
    pub group: SocketAddrV4,
    /// The address of the interface that receives it. The default is the feed's.
    pub interface: Option<Ipv4Addr>,
    /// The only accepted sender (source-specific multicast). If absent, any sender is accepted.
    pub source: Option<Ipv4Addr>,
}

impl<'de> Deserialize<'de> for FeedLine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LineVisitor)
    }
}

struct LineVisitor;

impl<'de> Visitor<'de> for LineVisitor {
    type Value = FeedLine;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a multicast group as \"ADDRESS:PORT\", or a table with group, interface, source",
        )
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<FeedLine, E> {
        let group = text
            .parse()
            .map_err(|_| E::invalid_value(Unexpected::Str(text), &self))?;
        Ok(FeedLine {
            group,
            interface: None,
            source: None,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<FeedLine, A::Error> {
        FeedLine::deserialize(MapAccessDeserializer::new(map))
    }
}

/// Deserializes a value that is written as a name, with the error of its parser.
pub(crate) fn by_name<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = String>,
{
    String::deserialize(deserializer)?
        .parse()
        .map_err(D::Error::custom)
}

pub(crate) fn field_or_none<'de, D: Deserializer<'de>>(
    d: D,
) -> Result<Option<SequenceField>, D::Error> {
    let text = String::deserialize(d)?;
    let field = (text != "none").then(|| text.parse());
    field.transpose().map_err(D::Error::custom)
}

/// A visitor for a table, or an array of tables. Contains the text for what is expected.
pub(crate) struct OneOrMany<T>(pub(crate) &'static str, pub(crate) PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        Ok(vec![T::deserialize(MapAccessDeserializer::new(map))?])
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<T>, A::Error> {
        Vec::deserialize(SeqAccessDeserializer::new(seq))
    }
}

/// The most lines of a feed.
const MOST_LINES: usize = 4;

/// Checks the lines under a key.
pub(crate) fn check_lines(key: &str, lines: &[FeedLine]) -> Result<(), ConfigError> {
    within(key, lines.len(), 1..=MOST_LINES)?;
    for FeedLine { group, .. } in lines {
        range(
            key,
            group,
            group.ip().is_multicast() && group.port() > 0,
            "must be a multicast group with a port",
        )?;
    }
    for source in lines.iter().filter_map(|line| line.source) {
        let is_host = !source.is_multicast() && !source.is_unspecified();
        range(key, source, is_host, "must be a unicast address")?;
    }
    for (i, line) in lines.iter().enumerate() {
        let mut before = lines.iter().take(i);
        let FeedLine { group, .. } = line;
        range(
            key,
            group,
            before.all(|other| other.group != *group),
            "occurs twice: lines must differ in group or port",
        )?;
    }
    Ok(())
}
