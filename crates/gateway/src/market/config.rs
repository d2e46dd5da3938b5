//! The parts of `[[feed]]` that make it a market: `mapping`, `[feed.book]`, `[[feed.snapshot]]` and
//! `[feed.replay]`.

use crate::config::error::{ConfigError, range, within};
use crate::feed::lines::{FeedLine, by_name, check_lines, field_or_none};
use fanfare_engine::replay::ReplaySource;
use fanfare_feed::recovery::{Numbering, RecoveryConfig, ReplayConfig};
use fanfare_feed::{Header, Preamble, SequenceField};
use fanfare_fix::session::Version;
use fanfare_market::book::{ConfigError as BookError, Priority};
use fanfare_market::{BookConfig, FollowerConfig, MarketConfig};
use serde::{Deserialize, Deserializer};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// The books of a feed, and the conditions for trusting them.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FeedBook {
    /// The way in which the feed describes books.
    pub kind: FeedBookKind,
    /// The levels of a side: exactly as many as the feed sends if levels are numbered, and the most
    /// otherwise.
    pub depth: u32,
    /// The most orders of a book, if the feed describes books by orders.
    pub orders: u32,
    /// Whether bids may be above offers, as in auctions.
    pub may_cross: bool,
    /// Whether an order that grows keeps its place in the queue.
    pub increase_keeps: bool,
    /// Whether an order that shrinks goes to the back of the queue.
    pub decrease_loses: bool,
    /// The numbers of the changes.
    pub numbers: FeedNumbers,
    /// Whether levels that the feed sends anew restore a book without a snapshot: numbered ones
    /// with RptSeq(83), at most [`MarketConfig::MOST_REFRESHED_LEVELS`] on a side.
    pub natural_refresh: bool,
    /// Whether books are empty, and complete, before RptSeq(83) 1.
    pub starts_empty: bool,
    /// The instruments that are known in advance: a CSV file, or a TOML file.
    pub instruments: Option<PathBuf>,
    /// The most instruments of the feed. Further ones are refused and counted.
    pub most_instruments: u32,
    /// The most changes of all instruments together that are queued for a snapshot.
    pub most_waiting: u32,
    /// The same limit as `most_waiting`, for one instrument.
    pub most_waiting_each: u32,
    /// The time of silence on all lines after which books are stale, in milliseconds. With 0, they
    /// never are.
    pub silence_ms: u64,
    /// The longest time from the creation of a snapshot to its arrival, in milliseconds.
    pub snapshot_age_ms: u64,
}

/// The way in which a feed describes books.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedBookKind {
    /// Levels with numbers, MDPriceLevel(1023).
    Levels,
    /// Levels identified by their prices.
    Prices,
    /// Orders.
    Orders,
}

/// The numbers of a feed's changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FeedNumbers {
    /// RptSeq(83) of the instrument.
    Instrument,
    /// MsgSeqNum(34) of the channel, with LastMsgSeqNumProcessed(369) in snapshots.
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
            may_cross: false,
            increase_keeps: false,
            decrease_loses: false,
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

/// The lines with snapshots, definitions or states of the feed's instruments, arbitrated on their
/// own. They use the feed's templates. Absent keys default to those of the feed.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SnapshotLines {
    /// One line, or up to four with the same snapshots.
    pub lines: Vec<FeedLine>,
    /// The address of the interface for lines that name none.
    pub interface: Option<Ipv4Addr>,
    /// The length headers of the packets in a datagram, as `header` of the feed.
    #[serde(default, deserialize_with = "by_name_if_there")]
    pub header: Option<Header>,
    /// The preamble before the messages of a packet, as `preamble` of the feed.
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

/// A replay over TCP, from which messages are requested that no line delivered.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FeedReplay {
    /// The address of the service.
    pub address: SocketAddr,
    /// The protocol of the service.
    #[serde(default)]
    pub service: ReplayKind,
    /// SenderCompID(49).
    pub sender: String,
    /// TargetCompID(56).
    pub target: String,
    /// The version of the session, such as `FIX.4.4`. The default is FIXT.1.1.
    #[serde(default)]
    pub version: Option<String>,
    /// Username(553).
    pub username: Option<String>,
    /// The file whose first line is Password(554). It is read at the start alone.
    pub password_file: Option<PathBuf>,
    /// ApplID(1180) of the channel.
    pub appl_id: Option<String>,
    /// The most messages of a request.
    #[serde(default = "most_messages")]
    pub most: u32,
    /// The time to wait for the connection, and for each further message, in milliseconds.
    #[serde(default = "timeout_ms")]
    pub timeout_ms: u64,
    /// The number of requests for the same messages.
    #[serde(default = "attempts")]
    pub attempts: u32,
    /// The pause after a refusal, in milliseconds. It doubles with each one, up to 64 times.
    #[serde(default = "pause_ms")]
    pub pause_ms: u64,
}

/// The protocol of a replay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReplayKind {
    /// MarketDataRequest(V) with ApplBegSeqNum(1182) and ApplEndSeqNum(1183), on one connection for
    /// each request, with responses in FAST.
    #[default]
    Fast,
    /// ApplMessageRequest(BW) in a FIX session, with responses in FIX.
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
    /// Returns the configuration of the books of its instruments.
    ///
    /// # Errors
    /// Returns an error if levels or orders exceed the limits of a book.
    pub(crate) fn book(&self) -> Result<BookConfig, BookError> {
        let book = match self.kind {
            FeedBookKind::Levels => BookConfig::by_level(self.depth),
            FeedBookKind::Prices => BookConfig::by_price(self.depth),
            FeedBookKind::Orders => BookConfig::by_order(self.depth, self.orders),
        }?;
        let priority = Priority {
            increase_keeps: self.increase_keeps,
            decrease_loses: self.decrease_loses,
        };
        Ok(book.may_cross(self.may_cross).priority(priority))
    }

    /// Returns the configuration for following the feed, as feed `source` of the plant.
    ///
    /// # Errors
    /// Returns an error if levels or orders exceed the limits of a book.
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

    /// Checks the ranges. `at` is the name of the table.
    pub(crate) fn check(&self, at: &str) -> Result<(), ConfigError> {
        let key = |name: &str| format!("{at}.{name}");
        within(key("depth"), self.depth, 1..=BookConfig::MOST_LEVELS)?;
        within(key("orders"), self.orders, 1..=BookConfig::MOST_ORDERS)?;
        let most = self.most_instruments;
        within(key("most_instruments"), most, 1..=MOST_INSTRUMENTS)?;
        within(key("most_waiting"), self.most_waiting, 1..=1 << 26)?;
        let each = self.most_waiting_each;
        within(key("most_waiting_each"), each, 1..=1 << 26)?;
        within(key("silence_ms"), self.silence_ms, 0..=86_400_000)?;
        within(key("snapshot_age_ms"), self.snapshot_age_ms, 0..=3_600_000)?;
        for (name, is_set) in [
            ("increase_keeps", self.increase_keeps),
            ("decrease_loses", self.decrease_loses),
        ] {
            let holds = !is_set || self.kind == FeedBookKind::Orders;
            range(key(name), is_set, holds, "needs `kind` orders")?;
        }
        let follower = self.follower(0, None);
        let can_refresh = follower.is_ok_and(|config| config.market.can_refresh());
        let holds = !self.natural_refresh || can_refresh;
        let rule = format!(
            "needs `kind` levels, `numbers` instrument, and a `depth` of at most {}",
            MarketConfig::MOST_REFRESHED_LEVELS
        );
        range(key("natural_refresh"), self.natural_refresh, holds, &rule)
    }
}

/// The most instruments of a feed.
const MOST_INSTRUMENTS: u32 = 10_000_000;

impl FeedReplay {
    /// Returns the limits of its requests. The thread of the replay notices a timeout up to a tenth
    /// of a second later.
    fn requests(&self) -> ReplayConfig {
        ReplayConfig {
            most: self.most.into(),
            timeout: self.timeout_ms.saturating_add(100).saturating_mul(MS),
            attempts: self.attempts,
            pause: self.pause_ms.saturating_mul(MS),
        }
    }

    /// Returns the session to open, with this password.
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
            let rule = "must be 1 to 64 printable ASCII characters";
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

/// The most snapshot channels of one feed.
const MOST_CHANNELS: usize = 4;

/// Checks the parts that make a feed a market. `has_mapping` is set if it is one.
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
        let rule = "needs `mapping`, which turns messages into market events";
        range(key, "…", has_mapping || !is_there, rule)?;
    }
    book.map_or(Ok(()), |book| book.check("feed.book"))?;
    within("feed.snapshot", snapshots.len(), 0..=MOST_CHANNELS)?;
    for channel in snapshots {
        check_lines("feed.snapshot.lines", &channel.lines)?;
    }
    replay.map_or(Ok(()), FeedReplay::check)
}
