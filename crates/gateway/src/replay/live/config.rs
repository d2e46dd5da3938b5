//! `[[feed]]` with `live`: a subscription at a gateway of DBN's live protocol as a feed.

use crate::config::error::{ConfigError, range, within};
use crate::feed::session::config::split;
use crate::replay::dbn;
use fanfare_market::BookConfig;
use fanfare_market::book::ConfigError as BookError;
use fanfare_market::dbn::live::LiveSchema;
use serde::Deserialize;
use std::path::PathBuf;

/// The most symbols of a subscription, which is one line of the protocol.
const SYMBOLS: usize = 500;
/// The longest past of a subscription in seconds: a week.
const PAST: u64 = 7 * 86_400;
/// The longest pause between two connections in milliseconds.
pub(super) const LONGEST_RETRY: u64 = 60_000;

/// A gateway of DBN's live protocol, such as the DBN port of another plant, and what is subscribed
/// to.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveSource {
    /// The hosts to connect to, `HOST:PORT`, tried in order.
    pub hosts: Vec<String>,
    /// The name of the dataset.
    pub dataset: String,
    /// The file whose first line is the key. It is read at the start alone, and only its owner may
    /// have access.
    pub key_file: Option<PathBuf>,
    /// The variable of the environment that has the key, instead of a file.
    pub key_env: Option<String>,
    /// The subscriptions, one of each schema.
    pub subscribe: Vec<LiveRequest>,
    /// The interval of heartbeats in seconds. A connection that is silent for two of them has
    /// ended.
    #[serde(default = "heartbeat_s")]
    pub heartbeat_s: u64,
    /// The first pause before another connection, in milliseconds. Each further one is twice as
    /// long, up to a minute.
    #[serde(default = "retry_ms")]
    pub retry_ms: u64,
    /// The most instruments. Further ones are refused and counted.
    #[serde(default = "most_instruments")]
    pub most_instruments: u32,
}

/// A subscription.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LiveRequest {
    /// `mbo`, `mbp-1`, `mbp-10`, `trades`, `definition`, `status` or `statistics`.
    pub schema: String,
    /// The symbols, at most 500. If empty, all instruments of the dataset.
    #[serde(default)]
    pub symbols: Vec<String>,
    /// The kind of the symbols.
    #[serde(default = "stype_in")]
    pub stype_in: String,
    /// How much of the past is requested at the first connection, in seconds. Not for `mbo`.
    #[serde(default)]
    pub past_s: u64,
}

const fn heartbeat_s() -> u64 {
    30
}

const fn retry_ms() -> u64 {
    1_000
}

const fn most_instruments() -> u32 {
    100_000
}

fn stype_in() -> String {
    "raw_symbol".to_owned()
}

/// A feed that is received from a gateway of DBN's live protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFeed {
    /// The name of the feed.
    pub channel: String,
    /// The gateway and the subscriptions.
    pub source: LiveSource,
}

impl LiveFeed {
    /// Creates the feed of a gateway, which is named after the dataset if `channel` is absent.
    pub(crate) fn new(channel: Option<String>, source: LiveSource) -> Self {
        Self {
            channel: channel.unwrap_or_else(|| source.dataset.clone()),
            source,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let is_name = |text: &str, most: usize| {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic());
            is_plain && (1..=most).contains(&text.len())
        };
        let rule = "must be 1 to 96 printable ASCII characters without spaces";
        let name = &self.channel;
        range("feed.channel", name, is_name(name, 96), rule)?;
        let source = &self.source;
        let dataset = &source.dataset;
        let rule = "must be 1 to 64 printable ASCII characters without spaces and `|`";
        let is_dataset = is_name(dataset, 64) && !dataset.contains('|');
        range("feed.live.dataset", dataset, is_dataset, rule)?;
        within("feed.live.hosts", source.hosts.len(), 1..=16)?;
        for host in &source.hosts {
            let rule = "must be HOST:PORT, with a port from 1 to 65535";
            range("feed.live.hosts", host, split(host).is_some(), rule)?;
        }
        let has_key = source.key_file.is_some() != source.key_env.is_some();
        let rule = "needs either `key_file` or `key_env`";
        range("feed.live", name, has_key, rule)?;
        within("feed.live.heartbeat_s", source.heartbeat_s, 5..=1_800)?;
        within("feed.live.retry_ms", source.retry_ms, 100..=LONGEST_RETRY)?;
        let key = "feed.live.most_instruments";
        within(key, source.most_instruments, 1..=10_000_000)?;
        source.check_requests()
    }
}

impl LiveSource {
    /// Returns the books of the feed: by order with `mbo`, otherwise by price.
    ///
    /// # Errors
    /// Returns an error if such books are not possible, which is not expected.
    pub(crate) fn book(&self) -> Result<BookConfig, BookError> {
        dbn::book(self.has(LiveSchema::Mbo))
    }

    fn check_requests(&self) -> Result<(), ConfigError> {
        let key = "feed.live.subscribe";
        within(key, self.subscribe.len(), 1..=7)?;
        for (at, request) in self.subscribe.iter().enumerate() {
            request.check()?;
            let before = self.subscribe.iter().take(at);
            let mut schemas = before.filter_map(LiveRequest::schema);
            let own = request.schema();
            let is_first = !schemas
                .any(|other| Some(other) == own || has_books(other) && own.is_some_and(has_books));
            let rule = "is the schema of another subscription, or has books as another one has";
            range(key, &request.schema, is_first, rule)?;
        }
        Ok(())
    }

    /// Returns whether one of the subscriptions is to a schema.
    pub(crate) fn has(&self, schema: LiveSchema) -> bool {
        let mut all = self.subscribe.iter();
        all.any(|request| request.schema() == Some(schema))
    }
}

impl LiveRequest {
    /// Returns the schema, or `None` if a feed cannot be of it.
    pub(crate) fn schema(&self) -> Option<LiveSchema> {
        let schema = LiveSchema::of_name(&self.schema)?;
        let is_own = has_books(schema)
            || matches!(
                schema,
                LiveSchema::Trades
                    | LiveSchema::Definition
                    | LiveSchema::Status
                    | LiveSchema::Statistics
            );
        is_own.then_some(schema)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let rule = "must be mbo, mbp-1, mbp-10, trades, definition, status or statistics";
        let schema = self.schema();
        let key = "feed.live.subscribe.schema";
        range(key, &self.schema, schema.is_some(), rule)?;
        let key = "feed.live.subscribe.symbols";
        within(key, self.symbols.len(), 0..=SYMBOLS)?;
        for symbol in &self.symbols {
            let is_plain =
                |byte: u8| (byte.is_ascii_graphic() || byte == b' ') && !b"|,".contains(&byte);
            let holds = (1..=70).contains(&symbol.len()) && symbol.bytes().all(is_plain);
            let rule = "must be 1 to 70 printable ASCII characters without `|` and `,`";
            range(key, symbol, holds, rule)?;
        }
        let is_type = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
        let holds = (1..=32).contains(&self.stype_in.len()) && self.stype_in.bytes().all(is_type);
        let rule = "must be the name of a symbology, such as raw_symbol or parent";
        range("feed.live.subscribe.stype_in", &self.stype_in, holds, rule)?;
        let most = match schema {
            Some(LiveSchema::Mbo) => 0,
            _ => PAST,
        };
        within("feed.live.subscribe.past_s", self.past_s, 0..=most)
    }
}

/// Returns whether the records of a schema have books.
pub(super) const fn has_books(schema: LiveSchema) -> bool {
    matches!(
        schema,
        LiveSchema::Mbo | LiveSchema::Mbp1 | LiveSchema::Mbp10
    )
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const SOURCE: &str = "hosts = [\"127.0.0.1:9\"]\ndataset = \"X\"\nkey_env = \"K\"\n";
    const TRADES: &str = "subscribe = [{ schema = \"trades\" }]\n";

    fn refused(text: &str) -> String {
        Config::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn a_live_feed_has_a_name_and_its_defaults() {
        let text = format!("[[feed]]\n[feed.live]\n{SOURCE}{TRADES}");
        let config = Config::from_toml(&text).unwrap();
        assert!(config.feeds.is_empty() && config.has_market());
        let [live] = &config.live[..] else {
            panic!("{:?}", config.live);
        };
        assert_eq!(live.channel, "X");
        assert_eq!((live.source.heartbeat_s, live.source.retry_ms), (30, 1_000));
        assert_eq!(live.source.subscribe[0].stype_in, "raw_symbol");
    }

    #[test]
    fn another_key_of_a_live_feed_needs_a_new_start() {
        let text = format!("[[feed]]\n[feed.live]\n{SOURCE}{TRADES}");
        let of = |more: &str| Config::from_toml(&format!("{text}{more}")).unwrap();
        let (old, new) = (of(""), of("retry_ms = 2000\n"));
        assert_eq!(old.fixed_keys_changed(&new), ["feed"]);
        assert!(old.fixed_keys_changed(&of("")).is_empty());
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        let live = |rest: &str| format!("[[feed]]\n[feed.live]\n{rest}");
        let of = |subscribe: &str| live(&format!("{SOURCE}subscribe = [{subscribe}]\n"));
        for (text, what) in [
            (live(SOURCE), "subscribe"),
            (of(""), "`feed.live.subscribe` = 0"),
            (of("{ schema = \"tbbo\" }"), "must be mbo, mbp-1"),
            (
                of("{ schema = \"mbo\" }, { schema = \"mbp-1\" }"),
                "has books as another one has",
            ),
            (
                of("{ schema = \"trades\" }, { schema = \"trades\" }"),
                "is the schema of another",
            ),
            (
                of("{ schema = \"mbo\", past_s = 1 }"),
                "feed.live.subscribe.past_s",
            ),
            (
                of("{ schema = \"trades\", symbols = [\"A,B\"] }"),
                "feed.live.subscribe.symbols",
            ),
            (
                of("{ schema = \"trades\", stype_in = \"a|b\" }"),
                "feed.live.subscribe.stype_in",
            ),
            (
                live(&format!("{SOURCE}key_file = \"f\"\n{TRADES}")),
                "either `key_file` or `key_env`",
            ),
            (
                live(&format!("{SOURCE}retry_ms = 1\n{TRADES}")),
                "feed.live.retry_ms",
            ),
            (
                live(&format!("{SOURCE}{TRADES}")).replace(":9", ""),
                "feed.live.hosts",
            ),
            (
                live(&format!("{SOURCE}{TRADES}")).replace("\"X\"", "\"a|b\""),
                "feed.live.dataset",
            ),
            (
                format!("[[feed]]\nmapping = \"builtin:fix\"\n[feed.live]\n{SOURCE}{TRADES}"),
                "`channel`",
            ),
        ] {
            let told = refused(&text);
            assert!(told.contains(what), "{text}: {told}");
        }
    }
}
