//! The parts of `[[feed]]` that make a market of it: `mapping`, `[feed.book]`, `[[feed.snapshot]]`
//! and `[feed.replay]`.

use crate::config_error::{ConfigError, range, within};
use crate::feed::lines::{FeedLine, by_name, check_lines, field_or_none};
use fanfare_engine::replay::ReplaySource;
use fanfare_feed::recovery::{Numbering, RecoveryConfig, ReplayConfig};
use fanfare_feed::{Header, Preamble, SequenceField};
use fanfare_fix::session::Version;
use fanfare_market::book::ConfigError as BookError;
use fanfare_market::{BookConfig, FollowerConfig, MarketConfig};
use serde::{Deserialize, Deserializer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// Books of a feed, and when they can be trusted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedBook {
    /// How the feed describes books.
    pub kind: FeedBookKind,
    /// Levels of a side: of numbered levels exactly as many as the feed sends, of others at most.
    pub depth: u32,
    /// Orders of a book at most, where the feed describes books by orders.
    pub orders: u32,
    /// What numbers the changes.
    pub numbers: FeedNumbers,
    /// Levels that the feed sends anew bring a book back without a picture.
    pub natural_refresh: bool,
    /// Books are empty, and whole, in front of RptSeq(83) 1.
    pub starts_empty: bool,
    /// Instruments that are known before: a CSV file, or a TOML file.
    pub instruments: Option<PathBuf>,
    /// Most instruments of the feed; more are refused and counted.
    pub most_instruments: u32,
    /// Changes that wait for a picture at most, of all instruments together.
    pub most_waiting: u32,
    /// As `most_waiting`, of one instrument.
    pub most_waiting_each: u32,
    /// How long all lines may bring nothing before books are stale, in milliseconds; 0: for ever.
    pub silence_ms: u64,
    /// The longest time from making a picture to its arrival, in milliseconds.
    pub snapshot_age_ms: u64,
}

/// How a feed describes books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedBookKind {
    /// Levels with numbers, MDPriceLevel(1023).
    Levels,
    /// Levels known by their prices.
    Prices,
    /// Orders.
    Orders,
}

/// What numbers the changes of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedNumbers {
    /// RptSeq(83) of the instrument.
    Instrument,
    /// MsgSeqNum(34) of the channel, with LastMsgSeqNumProcessed(369) in pictures.
    Channel,
}

impl Default for FeedBook {
    fn default() -> Self {
        let limits = RecoveryConfig::new(Numbering::Instrument);
        let small = |limit: usize| u32::try_from(limit).unwrap_or(u32::MAX);
        Self {
            kind: FeedBookKind::Levels,
            depth: 5,
            orders: 100_000,
            numbers: FeedNumbers::Instrument,
            natural_refresh: false,
            starts_empty: limits.starts_empty,
            instruments: None,
            most_instruments: small(limits.most_instruments),
            most_waiting: small(limits.most_held),
            most_waiting_each: limits.most_held_each,
            silence_ms: 30_000,
            snapshot_age_ms: limits.snapshot_age / MS,
        }
    }
}

/// Lines with pictures, definitions or states of the feed's instruments, arbitrated on their own.
/// They have the feed's templates; what they leave out here is as the feed has it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotLines {
    /// One line, or up to four with the same pictures.
    pub lines: Vec<FeedLine>,
    /// Address of the interface that receives lines that name none.
    pub interface: Option<Ipv4Addr>,
    /// Length headers of the packets in a datagram, as `header` of the feed.
    #[serde(default, deserialize_with = "by_name_if_there")]
    pub header: Option<Header>,
    /// What stands in front of the messages of a packet, as `preamble` of the feed.
    #[serde(default, deserialize_with = "by_name_if_there")]
    pub preamble: Option<Preamble>,
    /// The field with a message's sequence number, as `sequence` of the feed.
    #[serde(default, deserialize_with = "field_if_there")]
    pub sequence: Option<Option<SequenceField>>,
}

fn by_name_if_there<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err = String>,
{
    by_name(deserializer).map(Some)
}

type IfThere<T> = Option<Option<T>>;

fn field_if_there<'de, D: Deserializer<'de>>(d: D) -> Result<IfThere<SequenceField>, D::Error> {
    field_or_none(d).map(Some)
}

/// A replay over TCP, which is asked for what no line brought.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedReplay {
    /// Address of the service.
    pub address: SocketAddr,
    /// What the service speaks.
    #[serde(default)]
    pub service: ReplayKind,
    /// SenderCompID(49).
    pub sender: String,
    /// TargetCompID(56).
    pub target: String,
    /// Version of the session, such as `FIX.4.4`; FIXT.1.1 if there is none.
    #[serde(default)]
    pub version: Option<String>,
    /// Username(553).
    pub username: Option<String>,
    /// File whose first line is Password(554).
    pub password_file: Option<PathBuf>,
    /// ApplID(1180): which channel's messages.
    pub appl_id: Option<String>,
    /// Most messages a request.
    #[serde(default = "most_messages")]
    pub most: u32,
    /// How long to wait for the connection, and for each further message, in milliseconds.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// How often the same messages are asked for.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// How long to wait after a refusal, in milliseconds; doubled with each one, up to 64 times.
    #[serde(default = "pause_ms")]
    pub pause_ms: u64,
}

/// What a replay speaks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayKind {
    /// MarketDataRequest(V) with ApplBegSeqNum(1182) and ApplEndSeqNum(1183) on a connection for
    /// each request, answered in FAST.
    #[default]
    Fast,
    /// ApplMessageRequest(BW) in a FIX session, answered with FIX messages.
    Fix,
}

fn most_messages() -> u32 {
    u32::try_from(ReplayConfig::default().most).unwrap_or(u32::MAX)
}

fn timeout_ms() -> u64 {
    ReplayConfig::default().timeout / MS
}

fn attempts() -> u32 {
    ReplayConfig::default().attempts
}

fn pause_ms() -> u64 {
    ReplayConfig::default().pause / MS
}

impl FeedBook {
    /// The books of its instruments.
    ///
    /// # Errors
    /// Levels or orders are beyond what a book can have.
    pub(crate) fn book(&self) -> Result<BookConfig, BookError> {
        match self.kind {
            FeedBookKind::Levels => BookConfig::by_level(self.depth),
            FeedBookKind::Prices => BookConfig::by_price(self.depth),
            FeedBookKind::Orders => BookConfig::by_order(self.depth, self.orders),
        }
    }

    /// How the feed is followed, as its feed `source` of the plant.
    ///
    /// # Errors
    /// Levels or orders are beyond what a book can have.
    pub(crate) fn follower(
        &self,
        source: u16,
        replay: Option<&FeedReplay>,
    ) -> Result<FollowerConfig, BookError> {
        let book = self.book()?;
        let numbering = match self.numbers {
            FeedNumbers::Instrument => Numbering::Instrument,
            FeedNumbers::Channel => Numbering::Channel,
        };
        let recovery = RecoveryConfig {
            starts_empty: self.starts_empty,
            most_instruments: self.most_instruments as usize,
            most_held: self.most_waiting as usize,
            most_held_each: self.most_waiting_each,
            snapshot_age: self.snapshot_age_ms.saturating_mul(MS),
            ..RecoveryConfig::new(numbering)
        };
        let silence = match self.silence_ms {
            0 => u64::MAX,
            ms => ms.saturating_mul(MS),
        };
        let market = MarketConfig {
            book,
            recovery,
            has_natural_refresh: self.natural_refresh,
            source,
        };
        Ok(FollowerConfig {
            replay: replay.map(FeedReplay::requests),
            silence,
            ..FollowerConfig::new(market)
        })
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let most = BookConfig::MOST_LEVELS;
        within("feed.book.depth", self.depth, 1..=most)?;
        within("feed.book.orders", self.orders, 1..=BookConfig::MOST_ORDERS)?;
        let most = self.most_instruments;
        within("feed.book.most_instruments", most, 1..=MOST_INSTRUMENTS)?;
        let most = self.most_waiting;
        within("feed.book.most_waiting", most, 1..=1 << 26)?;
        let each = self.most_waiting_each;
        within("feed.book.most_waiting_each", each, 1..=1 << 26)?;
        within("feed.book.silence_ms", self.silence_ms, 0..=86_400_000)?;
        let age = self.snapshot_age_ms;
        within("feed.book.snapshot_age_ms", age, 0..=3_600_000)
    }
}

/// Most instruments of a feed.
const MOST_INSTRUMENTS: u32 = 10_000_000;

impl FeedReplay {
    /// Limits of its requests.
    fn requests(&self) -> ReplayConfig {
        ReplayConfig {
            most: self.most.into(),
            timeout: self.timeout_ms.saturating_mul(MS),
            attempts: self.attempts,
            pause: self.pause_ms.saturating_mul(MS),
        }
    }

    /// The session to open, with this password.
    pub(crate) fn source(&self, password: Option<String>) -> ReplaySource {
        ReplaySource {
            version: self.begin_string().unwrap_or(Version::Fixt11),
            username: self.username.clone(),
            password,
            appl_id: self.appl_id.clone(),
            timeout: Duration::from_millis(self.timeout_ms),
            ..ReplaySource::new(self.address, &self.sender, &self.target)
        }
    }

    fn begin_string(&self) -> Option<Version> {
        let name = self.version.as_deref().unwrap_or("FIXT.1.1");
        Version::parse(name.as_bytes())
    }

    fn check(&self) -> Result<(), ConfigError> {
        for (key, text) in [
            ("feed.replay.sender", Some(&self.sender)),
            ("feed.replay.target", Some(&self.target)),
            ("feed.replay.username", self.username.as_ref()),
            ("feed.replay.appl_id", self.appl_id.as_ref()),
        ] {
            let Some(text) = text else {
                continue;
            };
            let plain = text.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
            let rule = "must be 1 to 64 characters of ASCII";
            range(key, text, plain && (1..=64).contains(&text.len()), rule)?;
        }
        let name = self.version.as_deref().unwrap_or_default();
        let rule = "must be FIX.4.0 to FIX.4.4 or FIXT.1.1";
        range(
            "feed.replay.version",
            name,
            self.begin_string().is_some(),
            rule,
        )?;
        within("feed.replay.most", self.most, 1..=1_000_000)?;
        within("feed.replay.timeout_ms", self.timeout_ms, 1..=60_000)?;
        within("feed.replay.attempts", self.attempts, 1..=100)?;
        within("feed.replay.pause_ms", self.pause_ms, 1..=600_000)
    }
}

/// Most channels of pictures of one feed.
const MOST_CHANNELS: usize = 4;

/// Checks what makes a market of a feed. `has_mapping` says that it is one.
pub(crate) fn check(
    has_mapping: bool,
    book: Option<&FeedBook>,
    snapshots: &[SnapshotLines],
    replay: Option<&FeedReplay>,
) -> Result<(), ConfigError> {
    for (key, is_there) in [
        ("feed.book", book.is_some()),
        ("feed.snapshot", !snapshots.is_empty()),
        ("feed.replay", replay.is_some()),
    ] {
        let rule = "needs `mapping`, which makes a market of the feed";
        range(key, "…", has_mapping || !is_there, rule)?;
    }
    book.map_or(Ok(()), FeedBook::check)?;
    within("feed.snapshot", snapshots.len(), 0..=MOST_CHANNELS)?;
    for channel in snapshots {
        check_lines("feed.snapshot.lines", &channel.lines)?;
    }
    replay.map_or(Ok(()), FeedReplay::check)
}
