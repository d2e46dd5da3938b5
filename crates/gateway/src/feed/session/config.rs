//! `[[feed]]` with `fix`: a FIX session as a feed.

use super::subscriptions::Named;
use crate::config::error::{ConfigError, range, within};
use crate::market::config::FeedBook;
use fanfare_fix::dict::Version;
use fanfare_fix::session::{ApplVerId, Version as SessionVersion};
use fanfare_market::FollowerConfig;
use fanfare_market::book::ConfigError as BookError;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::HashSet;
use std::fmt;
use std::path::PathBuf;

/// A counterparty that serves market data in a FIX session, and what is requested of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionSource {
    /// The hosts to connect to, `HOST:PORT`, tried in order: one text, or several.
    #[serde(deserialize_with = "texts")]
    pub hosts: Vec<String>,
    /// SenderCompID(49).
    pub sender: String,
    /// TargetCompID(56).
    pub target: String,
    /// The version of the application messages, from FIX.4.2 on. The session of FIX.5.0 and later
    /// is FIXT.1.1.
    #[serde(default = "version")]
    pub version: String,
    /// Username(553).
    pub username: Option<String>,
    /// The file whose first line is Password(554). It is read at the start alone.
    pub password_file: Option<PathBuf>,
    /// The TLS of the connection. If absent, it is not encrypted.
    pub tls: Option<SessionTls>,
    /// The instruments to request.
    pub subscribe: Subscribe,
    /// MarketDepth(264): 0 for all levels.
    #[serde(default)]
    pub depth: u16,
    /// The MDEntryType(269) to request.
    #[serde(default = "entry_types")]
    pub entry_types: Vec<String>,
    /// Whether MDUpdateType(265)=0 is requested, so that each update is a snapshot.
    #[serde(default)]
    pub full_refresh: bool,
    /// The most instruments of a MarketDataRequest(V).
    #[serde(default = "per_request")]
    pub per_request: usize,
    /// HeartBtInt(108), in seconds.
    #[serde(default = "heartbeat_s")]
    pub heartbeat_s: u32,
    /// The pause before a refused request is repeated, and the shortest time between two
    /// repetitions of all requests, in milliseconds.
    #[serde(default = "retry_ms")]
    pub retry_ms: u64,
    /// Whether MsgSeqNum(34) begins at 1 with each Logon: ResetSeqNumFlag(141)=Y.
    #[serde(default = "yes")]
    pub reset: bool,
}

/// The TLS of a session that connects: PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SessionTls {
    /// The authorities that the server's certificate must come from.
    pub ca: PathBuf,
    /// The name in the server's certificate. The default is the first host.
    pub name: Option<String>,
    /// The certificate of this side, followed by the chain to the root. Requires `key`.
    pub certificate: Option<PathBuf>,
    /// The private key of the certificate.
    pub key: Option<PathBuf>,
}

/// The instruments to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subscribe {
    /// These values of Symbol(55).
    Symbols(Vec<String>),
    /// All instruments of the answers to a SecurityListRequest(x).
    SecurityList,
}

/// The name of [`Subscribe::SecurityList`] in a configuration.
const SECURITY_LIST: &str = "security-list";

impl<'de> Deserialize<'de> for Subscribe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneOfTwo;
        impl<'de> Visitor<'de> for OneOfTwo {
            type Value = Subscribe;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a list of symbols, or \"{SECURITY_LIST}\"")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Subscribe, E> {
                match text {
                    SECURITY_LIST => Ok(Subscribe::SecurityList),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Subscribe, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(Subscribe::Symbols)
            }
        }
        deserializer.deserialize_any(OneOfTwo)
    }
}

fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    struct OneOrMany;
    impl<'de> Visitor<'de> for OneOrMany {
        type Value = Vec<String>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a host as \"HOST:PORT\", or a list of hosts")
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Vec<String>, E> {
            Ok(vec![text.to_owned()])
        }

        fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Vec<String>, A::Error> {
            Vec::deserialize(SeqAccessDeserializer::new(seq))
        }
    }
    deserializer.deserialize_any(OneOrMany)
}

fn version() -> String {
    Version::Fix50Sp2.name().to_owned()
}

fn entry_types() -> Vec<String> {
    ["0", "1", "2"].map(str::to_owned).into()
}

const fn per_request() -> usize {
    50
}

const fn heartbeat_s() -> u32 {
    30
}

const fn retry_ms() -> u64 {
    10_000
}

const fn yes() -> bool {
    true
}

/// A feed that is received by requests in a FIX session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionFeed {
    /// The name of the feed.
    pub channel: String,
    /// The mapping from messages to market events: a mapping file, or one that is built in.
    pub mapping: String,
    /// The kind and size of the books.
    pub book: FeedBook,
    /// The session.
    pub source: SessionSource,
}

impl SessionFeed {
    /// Creates the feed of a session, which is named after its first host if `channel` is absent.
    pub(crate) fn new(
        channel: Option<String>,
        mapping: Option<String>,
        book: Option<FeedBook>,
        source: SessionSource,
    ) -> Self {
        let first = source.hosts.first().cloned().unwrap_or_default();
        Self {
            channel: channel.unwrap_or(first),
            mapping: mapping.unwrap_or_else(|| "builtin:fix".to_owned()),
            book: book.unwrap_or_default(),
            source,
        }
    }

    /// Returns the configuration for following the feed, as feed `source` of the plant.
    pub(crate) fn follower(&self, source: u16) -> Result<FollowerConfig, BookError> {
        self.book.follower(source, None)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let plain = self.channel.bytes().all(|b| b.is_ascii_graphic());
        range(
            "feed.channel",
            &self.channel,
            plain && (1..=96).contains(&self.channel.len()),
            "must be 1 to 96 printable ASCII characters without spaces",
        )?;
        self.book.check("feed.book")?;
        let usual = FeedBook::default();
        let own = &self.book;
        for (key, is_usual) in [
            ("numbers", own.numbers == usual.numbers),
            (
                "natural_refresh",
                own.natural_refresh == usual.natural_refresh,
            ),
            ("starts_empty", own.starts_empty == usual.starts_empty),
            ("silence_ms", own.silence_ms == usual.silence_ms),
            (
                "snapshot_age_ms",
                own.snapshot_age_ms == usual.snapshot_age_ms,
            ),
        ] {
            let rule =
                "has no meaning for a FIX session, which has no holes and tells when it ends";
            range(format!("feed.book.{key}"), "…", is_usual, rule)?;
        }
        self.source.check()
    }
}

impl SessionSource {
    fn check(&self) -> Result<(), ConfigError> {
        within("feed.fix.hosts", self.hosts.len(), 1..=16)?;
        for host in &self.hosts {
            let rule = "must be HOST:PORT, with a port from 1 to 65535";
            range("feed.fix.hosts", host, split(host).is_some(), rule)?;
        }
        for (key, text) in [
            ("feed.fix.sender", Some(&self.sender)),
            ("feed.fix.target", Some(&self.target)),
            ("feed.fix.username", self.username.as_ref()),
        ] {
            let Some(text) = text else {
                continue;
            };
            let plain = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
            let rule = "must be 1 to 64 printable ASCII characters";
            range(key, text, plain && (1..=64).contains(&text.len()), rule)?;
        }
        let rule = "must be FIX.4.2, FIX.4.3, FIX.4.4, FIX.5.0, FIX.5.0SP1 or FIX.5.0SP2";
        let known = self.versions().is_some();
        range("feed.fix.version", &self.version, known, rule)?;
        self.check_request()?;
        within("feed.fix.heartbeat_s", self.heartbeat_s, 1..=3_600)?;
        within("feed.fix.retry_ms", self.retry_ms, 100..=3_600_000)?;
        if let Some(tls) = &self.tls {
            let is_pair = tls.certificate.is_some() == tls.key.is_some();
            let rule = "goes with `feed.fix.tls.key`, and not without";
            range("feed.fix.tls.certificate", "…", is_pair, rule)?;
        }
        Ok(())
    }

    fn check_request(&self) -> Result<(), ConfigError> {
        within("feed.fix.per_request", self.per_request, 1..=200)?;
        within("feed.fix.entry_types", self.entry_types.len(), 1..=32)?;
        for entry in &self.entry_types {
            let is_char = entry.len() == 1 && entry.bytes().all(|b| b.is_ascii_alphanumeric());
            let rule = "must be a letter or digit, a value of MDEntryType(269)";
            range("feed.fix.entry_types", entry, is_char, rule)?;
        }
        let Subscribe::Symbols(symbols) = &self.subscribe else {
            return Ok(());
        };
        within("feed.fix.subscribe", symbols.len(), 1..=1_000_000)?;
        let mut seen = HashSet::new();
        for symbol in symbols {
            // The changes of two requests would be applied twice.
            let rule = "must be named once";
            range("feed.fix.subscribe", symbol, seen.insert(symbol), rule)?;
            let plain = symbol.chars().all(|c| !c.is_control());
            let rule = "must be 1 to 64 bytes without control characters";
            let fits = plain && (1..=64).contains(&symbol.len());
            range("feed.fix.subscribe", symbol, fits, rule)?;
        }
        Ok(())
    }

    /// Returns the version of the messages, that of the session, and DefaultApplVerID(1137).
    pub(super) fn versions(&self) -> Option<(Version, SessionVersion, ApplVerId)> {
        let all = [
            (Version::Fix42, SessionVersion::Fix42, ApplVerId::Fix42),
            (Version::Fix43, SessionVersion::Fix43, ApplVerId::Fix43),
            (Version::Fix44, SessionVersion::Fix44, ApplVerId::Fix44),
            (Version::Fix50, SessionVersion::Fixt11, ApplVerId::Fix50),
            (
                Version::Fix50Sp1,
                SessionVersion::Fixt11,
                ApplVerId::Fix50Sp1,
            ),
            (
                Version::Fix50Sp2,
                SessionVersion::Fixt11,
                ApplVerId::Fix50Sp2,
            ),
        ];
        all.into_iter().find(|(own, ..)| own.name() == self.version)
    }

    /// Returns the instruments to request by name, or `None` for those of a list.
    pub(super) fn symbols(&self) -> Option<Vec<Named>> {
        match &self.subscribe {
            Subscribe::Symbols(all) => Some(all.iter().map(|own| Named::symbol(own)).collect()),
            Subscribe::SecurityList => None,
        }
    }
}

/// Returns the name, or address, and the port of `HOST:PORT`.
pub(crate) fn split(host: &str) -> Option<(&str, u16)> {
    let (name, port) = host.rsplit_once(':')?;
    let bare = name.strip_prefix('[').and_then(|own| own.strip_suffix(']'));
    let port = port.parse::<u16>().ok().filter(|port| *port > 0)?;
    let name = bare.unwrap_or(name);
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, port))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const SOURCE: &str = "hosts = \"127.0.0.1:9\"\nsender = \"A\"\ntarget = \"B\"\n";

    fn refused(text: &str) -> String {
        Config::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn a_session_is_a_market_of_its_own() {
        let text = format!("[feed.fix]\n{SOURCE}subscribe = [\"X\"]\n");
        let config = Config::from_toml(&text).unwrap();
        assert!(config.feeds.is_empty() && config.has_market());
        let [session] = &config.sessions[..] else {
            panic!("{:?}", config.sessions);
        };
        let names = (
            &*session.channel,
            &*session.mapping,
            &*session.source.version,
        );
        assert_eq!(names, ("127.0.0.1:9", "builtin:fix", "FIX.5.0SP2"));
        assert_eq!(session.source.symbols().unwrap().len(), 1);
        let list = text.replace("[\"X\"]", "\"security-list\"");
        let config = Config::from_toml(&list).unwrap();
        assert_eq!(config.sessions[0].source.symbols(), None);
    }

    #[test]
    fn keys_that_contradict_a_session_are_refused_by_name() {
        let of = |front: &str, rest: &str| {
            format!("[[feed]]\n{front}[feed.fix]\n{SOURCE}subscribe = [\"X\"]\n{rest}")
        };
        for (text, why) in [
            (of("lines = [\"239.1.1.1:5000\"]\n", ""), "`feed.fix`"),
            (of("templates = \"builtin:simple\"\n", ""), "`feed.fix`"),
            (
                of("", "[feed.book]\nsilence_ms = 5\n"),
                "`feed.book.silence_ms`",
            ),
            (
                of("", "[feed.book]\nnumbers = \"channel\"\n"),
                "`feed.book.numbers`",
            ),
            (of("channel = \"a b\"\n", ""), "`feed.channel`"),
            (of("", "version = \"FIX.4.1\"\n"), "`feed.fix.version`"),
            (of("", "per_request = 0\n"), "`feed.fix.per_request`"),
            (of("", "entry_types = [\"00\"]\n"), "`feed.fix.entry_types`"),
            (of("", "retry_ms = 1\n"), "`feed.fix.retry_ms`"),
            (of("", "heartbeat_s = 0\n"), "`feed.fix.heartbeat_s`"),
            (of("", "colour = 1\n"), "unknown field `colour`"),
            (
                of("", "").replace("127.0.0.1:9", "nowhere"),
                "`feed.fix.hosts`",
            ),
            (of("", "").replace("[\"X\"]", "[]"), "`feed.fix.subscribe`"),
            (
                of("", "").replace("[\"X\"]", "[\"X\", \"Y\", \"X\"]"),
                "must be named once",
            ),
            (of("", "").replace("[\"X\"]", "\"all\""), "security-list"),
        ] {
            let said = refused(&text);
            assert!(said.contains(why), "{text}: {said}");
        }
        let both = of("channel = \"one\"\n", "") + &of("channel = \"one\"\n", "");
        assert!(refused(&both).contains("is the channel of another feed"));
    }
}
