//! `[[kafka]]`: topics of Kafka with market events.

use super::options;
use crate::config::error::{ConfigError, range, within};
use fanfare_market::Kind;
use fanfare_market::dbn::live::LiveSchema;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The options of the library that the gateway sets itself, because with other values a number
/// could be written twice or not at all.
const OWN: [&str; 13] = [
    "bootstrap.servers",
    "metadata.broker.list",
    "transactional.id",
    "transaction.timeout.ms",
    "enable.idempotence",
    "acks",
    "request.required.acks",
    "isolation.level",
    "auto.offset.reset",
    "enable.partition.eof",
    "enable.auto.commit",
    "partitioner",
    "group.id",
];

/// A topic of Kafka with market events.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kafka {
    /// The brokers: `HOST:PORT`, one or more.
    pub brokers: Vec<String>,
    /// The topic. It must exist, or the brokers must create it on request.
    pub topic: String,
    /// The format of messages.
    #[serde(default)]
    pub format: KafkaFormat,
    /// The schemas of the records with `dbn`, except those of intervals.
    #[serde(default)]
    pub schemas: Vec<String>,
    /// The kinds of events with `json`. If empty, all are sent.
    #[serde(default)]
    pub kinds: Vec<String>,
    /// The symbols, and prefixes with `*`. If empty, all instruments are sent.
    #[serde(default)]
    pub instruments: Vec<String>,
    /// The start of an empty topic.
    #[serde(default)]
    pub begin: KafkaBegin,
    /// The transactional ID. A second producer with the same ID ends the first one's transactions.
    /// The default is `fanfare-TOPIC`.
    pub transactional_id: Option<String>,
    /// The milliseconds from the first message of a transaction to its end.
    #[serde(default = "commit_ms")]
    pub commit_ms: u64,
    /// The options of librdkafka, such as `security.protocol`.
    #[serde(default)]
    pub options: BTreeMap<String, String>,
}

/// Hides the options, which may be secret.
impl std::fmt::Debug for Kafka {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Kafka")
            .field("brokers", &self.brokers)
            .field("topic", &self.topic)
            .finish_non_exhaustive()
    }
}

/// The format of a message.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaFormat {
    /// A JSON object.
    #[default]
    Json,
    /// The DBN records of an event.
    Dbn,
}

/// The start of an empty topic.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KafkaBegin {
    /// The first event of the log.
    #[default]
    First,
    /// The first event after the start of the gateway.
    Now,
}

const fn commit_ms() -> u64 {
    100
}

impl Kafka {
    /// Returns the transactional ID of the producer.
    #[must_use]
    pub fn transactional_id(&self) -> String {
        let named = self.transactional_id.clone();
        named.unwrap_or_else(|| format!("fanfare-{}", self.topic))
    }

    fn check(&self) -> Result<(), ConfigError> {
        let topic = &self.topic;
        let rule = "this program is built without Kafka: build it with the Cargo feature `kafka` \
                    (cargo build --release --package fanfare --features kafka)";
        range("kafka.topic", topic, cfg!(feature = "kafka"), rule)?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        let fits = (1..=249).contains(&topic.len()) && topic.chars().all(is_plain);
        let fits = fits && !matches!(topic.as_str(), "." | "..");
        let rule = "must be 1 to 249 letters, digits, `.`, `_` and `-`, and not `.` or `..`";
        range("kafka.topic", topic, fits, rule)?;
        let is_broker = |broker: &String| {
            let parts = broker.rsplit_once(':');
            let parts = parts.map(|(host, port)| (host.is_empty(), port.parse::<u16>()));
            matches!(parts, Some((false, Ok(1..))))
        };
        let fits = !self.brokers.is_empty() && self.brokers.iter().all(is_broker);
        let rule = "must be one or more addresses HOST:PORT";
        range("kafka.brokers", self.brokers.join(","), fits, rule)?;
        let id = self.transactional_id();
        let rule = "must not be empty";
        range("kafka.transactional_id", &id, !id.is_empty(), rule)?;
        within("kafka.commit_ms", self.commit_ms, 1..=5_000)?;
        for name in &self.schemas {
            let rule = "must be mbo, mbp-1, mbp-10, tbbo, trades, definition, status or statistics";
            range("kafka.schemas", name, schema(name).is_some(), rule)?;
        }
        let is_dbn = self.format == KafkaFormat::Dbn;
        let schemas = self.schemas.join(",");
        let rule = "is required with `format = \"dbn\"`, and not allowed otherwise";
        range(
            "kafka.schemas",
            schemas,
            is_dbn != self.schemas.is_empty(),
            rule,
        )?;
        for name in &self.kinds {
            let all = Kind::ALL.map(Kind::name).join(", ");
            let rule = format!("must be one of {all}");
            range("kafka.kinds", name, kind(name).is_some(), &rule)?;
        }
        let fits = !is_dbn || self.kinds.is_empty();
        let rule = "is not allowed with `format = \"dbn\"`, which has `schemas`";
        range("kafka.kinds", self.kinds.join(","), fits, rule)?;
        for (key, value) in &self.options {
            let rule = "is set by the gateway";
            range("kafka.options", key, !OWN.contains(&key.as_str()), rule)?;
            let fault = options::fault(key, value);
            let rule = fault.as_deref().unwrap_or_default();
            range("kafka.options", key, fault.is_none(), rule)?;
        }
        Ok(())
    }
}

/// Checks the topics of a configuration.
pub(crate) fn check_all(all: &[Kafka], has_log: bool) -> Result<(), ConfigError> {
    for (i, own) in all.iter().enumerate() {
        own.check()?;
        let rule = "needs `[history]`, the log that fills the topic";
        range("kafka.topic", &own.topic, has_log, rule)?;
        let before = || all.iter().take(i);
        let is_new = before().all(|other| other.topic != own.topic);
        range(
            "kafka.topic",
            &own.topic,
            is_new,
            "is the topic of another [[kafka]]",
        )?;
        let id = own.transactional_id();
        let is_new = before().all(|other| other.transactional_id() != id);
        range(
            "kafka.transactional_id",
            &id,
            is_new,
            "is the transactional ID of another [[kafka]]",
        )?;
    }
    Ok(())
}

/// Returns the schema of a name, if its records are made of single events.
pub(super) fn schema(name: &str) -> Option<LiveSchema> {
    use LiveSchema::{Bbo1M, Bbo1S, Ohlcv1D, Ohlcv1H, Ohlcv1M, Ohlcv1S};
    let of_intervals = [Bbo1S, Bbo1M, Ohlcv1S, Ohlcv1M, Ohlcv1H, Ohlcv1D];
    LiveSchema::of_name(name).filter(|schema| !of_intervals.contains(schema))
}

/// Returns the kind of event of a name.
pub(super) fn kind(name: &str) -> Option<Kind> {
    Kind::ALL.into_iter().find(|kind| kind.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(), String> {
        let text = format!("brokers = [\"a:1\"]\ntopic = \"t\"\n{text}");
        let kafka: Kafka = toml::from_str(&text).unwrap();
        check_all(&[kafka], true).map_err(|error| error.to_string())
    }

    #[test]
    #[cfg(not(feature = "kafka"))]
    fn a_program_without_the_feature_names_it() {
        let error = check("").unwrap_err();
        assert!(error.contains("--features kafka"), "{error}");
    }

    #[test]
    #[cfg(feature = "kafka")]
    fn names_that_no_broker_accepts_are_refused() {
        for (brokers, topic, key) in [
            (":9092", "t", "brokers"),
            ("a:0", "t", "brokers"),
            ("a:1", ".", "topic"),
            ("a:1", "..", "topic"),
            ("a:1", "a b", "topic"),
        ] {
            let text = format!("brokers = [{brokers:?}]\ntopic = {topic:?}");
            let kafka: Kafka = toml::from_str(&text).unwrap();
            let error = check_all(&[kafka], true).unwrap_err().to_string();
            assert!(error.contains(&format!("`kafka.{key}`")), "{text}: {error}");
        }
    }

    #[test]
    #[cfg(feature = "kafka")]
    fn settings_that_do_not_fit_are_refused() {
        assert_eq!(check(""), Ok(()));
        assert_eq!(check("format = \"dbn\"\nschemas = [\"trades\"]"), Ok(()));
        for text in [
            "format = \"dbn\"",
            "schemas = [\"trades\"]",
            "format = \"dbn\"\nschemas = [\"ohlcv-1s\"]",
            "kinds = [\"trad\"]",
            "commit_ms = 0",
            "options = { acks = \"1\" }",
            "options = { \"request.required.acks\" = \"1\" }",
            "options = { \"linger.ms\" = \"soon\" }",
            "transactional_id = \"\"",
        ] {
            let key = text
                .rsplit('\n')
                .next()
                .and_then(|line| line.split(' ').next());
            let key = key.filter(|key| *key != "format").unwrap_or("schemas");
            let error = check(text).unwrap_err();
            assert!(error.contains(&format!("`kafka.{key}`")), "{text}: {error}");
        }
    }
}
