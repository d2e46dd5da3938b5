//! The configuration of the gateway: TOML, unknown keys refused, every value checked before a
//! socket is opened. `Config::default()` is what `fanfare fanout server` runs without a file.

use crate::config::console::ConsoleConfig;
use crate::config::error::{ConfigError, NEEDS_MARKET, range, within};
use crate::config::rotation::RotationConfig;
use crate::dbn::config::DbnConfig;
use crate::dds::config::Dds;
use crate::edges;
use crate::edges::config::Edge;
use crate::fanout::batch::ENVELOPE;
use crate::fanout::consumer::NEWS_ROOM;
use crate::feed;
use crate::feed::config::Feed;
use crate::feed::session::config::SessionFeed;
use crate::gateway::start_error::StartError;
use crate::history::config::History;
use crate::kafka::config::{self as kafka, Kafka};
use crate::notice::program_log::ProgramLog;
use crate::ports::config::{self as port_config, COMP_IDS, CONSUMERS, PRODUCERS, PortConfig};
use crate::replay::config::Replay;
use crate::replay::feed_config::FileFeed;
use crate::replay::live::config::LiveFeed;
use crate::replay::{OpenReplay, book_of};
use crate::users::{
    LONGEST_ERROR, Lists, Source, UserSet, UserTables, cut, parsed_from, read_from, without_text,
};
use fanfare_engine::cpu::pin_to;
use fanfare_engine::tls::TlsServer;
use fanfare_fix::session::MAX_HEADER_FIELD;
use fanfare_market::book::BookConfig;
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

pub(crate) mod console;
pub(crate) mod error;
#[cfg(test)]
mod pages;
mod reload;
pub(crate) mod rotation;
#[cfg(test)]
mod tests;
mod topics;

/// The configuration of a gateway.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The port of the producers ("exchanges").
    #[serde(deserialize_with = "port_config::producers")]
    pub producers: PortConfig,
    /// The port of the consumers ("traders").
    #[serde(deserialize_with = "port_config::consumers")]
    pub consumers: PortConfig,
    /// The number of fan-out workers, from 1 to 64. Each serves its own group of consumer sessions.
    pub workers: usize,
    /// The threading of the agents.
    pub threads: Threads,
    /// The idle strategy of the threads.
    pub idle: Idle,
    /// The processors of the threads, in the order of the threads: that of ingress, those of the
    /// workers unless they share it, then those of DBN, of topics, of FIX sessions as feeds, and of
    /// DDS. Threads beyond the list are not pinned.
    pub pin: Vec<usize>,
    /// The capacity of the ring between ingress and workers in bytes, a power of two.
    pub ring_bytes: usize,
    /// The limits on a peer.
    pub limits: Limits,
    /// The policy for a consumer that does not keep up.
    pub slow_consumer: SlowConsumer,
    /// The messages of producers that are forwarded to the consumers and to DDS.
    pub fan_out: FanOut,
    /// The messages that a consumer receives before it subscribes.
    pub mode: Mode,
    /// Messages over DDS, to and from other gateways.
    pub dds: Dds,
    /// The FAST feeds whose messages are fanned out.
    #[serde(rename = "feed", deserialize_with = "feed::config::one_or_many")]
    pub feeds: Vec<Feed>,
    /// The feeds that are files of DBN: `[[feed]]` with `dbn`.
    #[serde(skip)]
    pub files: Vec<FileFeed>,
    /// The feeds that are received from a gateway of DBN's live protocol: `[[feed]]` with `live`.
    #[serde(skip)]
    pub live: Vec<LiveFeed>,
    /// The feeds that are FIX sessions: `[[feed]]` with `fix`.
    #[serde(skip)]
    pub sessions: Vec<SessionFeed>,
    /// The text log of the messages of all sessions.
    pub message_log: Option<LogConfig>,
    /// The file to which the program captures the traffic of the ports. The gateway itself does not
    /// write it.
    pub capture: Option<PathBuf>,
    /// The feeds that other gateways receive and publish as market events.
    #[serde(rename = "edge")]
    pub edges: Vec<Edge>,
    /// The port for clients of DBN's live protocol.
    pub dbn: Option<DbnConfig>,
    /// The file to which the program writes the market events of feeds with a `mapping`, as JSON
    /// lines. The gateway itself does not write it.
    pub events: Option<PathBuf>,
    /// The log that is replayed instead of feeds with a `mapping` and of edges.
    pub replay: Option<Replay>,
    /// The log of the market events of feeds with a `mapping`, and of edges.
    pub history: Option<History>,
    /// The topics of Kafka that carry market events.
    pub kafka: Vec<Kafka>,
    /// The audit file: Logons, refusals, requests and commands of operators, as JSON lines.
    pub audit: Option<PathBuf>,
    /// The Unix socket at which the program listens for operators. The gateway itself does not open
    /// it.
    pub control: Option<PathBuf>,
    /// Whether the latency from stage to stage is measured.
    pub stages: bool,
    /// Metrics and the control interface over HTTP.
    pub console: Option<ConsoleConfig>,
    /// The program's log. The gateway itself does not write it.
    pub log: ProgramLog,
    /// The users that may log on, and their entitlements.
    #[serde(rename = "user")]
    pub users: UserTables,
    /// A file with further users and lists.
    #[serde(rename = "users")]
    pub users_file: Option<PathBuf>,
    /// The named lists of instruments.
    pub lists: Lists,
}

/// The configuration of the message log, which has a file for each group of sessions:
/// `producers.log`, `worker0.log`, ….
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogConfig {
    /// The folder of the files, which is created if absent.
    pub folder: PathBuf,
    /// Whether bytes are dropped while the disk is behind. Dropped bytes are reported. If unset,
    /// the sessions wait for the disk for up to 10 s, and up to 5 s while it writes nothing.
    #[serde(default)]
    pub lossy: bool,
    /// The rotation of the files.
    #[serde(default)]
    pub rotate: RotationConfig,
}

/// The messages of producers that are fanned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FanOut {
    /// Messages with `FanoutID(20001)`.
    Marked,
    /// All application messages.
    All,
}

/// The messages that a consumer's session receives until it requests market data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Every message that is fanned out.
    Broadcast,
    /// No messages.
    Subscriptions,
}

/// Threading of the agents (ingress, and one for each worker).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Threads {
    /// One thread for each worker and one for the other agents if there are several workers, and a
    /// single thread otherwise.
    Auto,
    /// All agents on one thread: without hand-over, best with two cores or few consumers.
    Shared,
    /// One thread for each worker, and one for the other agents.
    Dedicated,
}

/// The idle strategy of an agent's thread after a duty cycle without work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Idle {
    /// Sleep in the kernel until a socket is ready, a timer is due or another agent wakes the
    /// thread.
    Park,
    /// Poll without pause: the lowest latency, at one core for each thread.
    Spin,
}

/// The limits on a peer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// The longest message accepted, in bytes. A longer one closes the connection.
    pub message_bytes: usize,
    /// The seconds that a connection may stay silent before its Logon.
    pub logon_timeout_s: u64,
    /// The longest Logon at the start of a connection, including the bytes that arrive in the same
    /// read. At most `message_bytes`.
    pub logon_bytes: usize,
    /// The longest CompID, SubID or LocationID in a header, in bytes. At most 96, because two such
    /// CompIDs must fit into the header that is built once for each session.
    pub header_field_bytes: usize,
    /// The most connections of one port that have not logged on. A further connection closes the
    /// oldest of them. The limit is an eighth of the descriptors that the process may open if that
    /// is less.
    pub not_logged_on: usize,
    /// The same limit as `not_logged_on`, for one address (one /64 of IPv6).
    pub not_logged_on_per_address: usize,
    /// The most ended sessions of one port whose MsgSeqNum(34) are remembered. Beyond the limit,
    /// the session that ended first is forgotten, and begins at 1 at its next Logon.
    pub remembered_sessions: usize,
    /// The same limit as `remembered_sessions`, in bytes.
    pub remembered_bytes: usize,
    /// The longest heartbeat interval that a Logon may request, in seconds.
    pub heartbeat_max_s: u64,
}

/// The policy for a consumer that does not keep up.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SlowConsumer {
    /// The most bytes that are queued for one consumer beyond those its socket accepted.
    pub queue_bytes: usize,
    /// The action when the queue exceeds `queue_bytes`.
    pub policy: SlowPolicy,
}

/// The action when a consumer's queue is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowPolicy {
    /// Close its connection, and count and report the reason.
    Disconnect,
    /// Drop the messages that do not fit, and count them. The sequence numbers of the session stay
    /// gapless.
    Drop,
}

/// The least `queue_bytes` with a market: half of them hold a message.
const LEAST_OF_MARKET: usize = 8192;

impl Config {
    /// Parses a configuration. Absent keys keep their defaults.
    ///
    /// # Errors
    /// Returns `Parse` with line and column, or `Range` naming the key.
    pub fn from_toml(text: &str) -> Result<Self, ConfigError> {
        let mut config: Self = toml::from_str(text).map_err(|error| parse_error(text, &error))?;
        config.files = feed::config::take_files(&mut config.feeds)?;
        config.live = feed::config::take_live(&mut config.feeds)?;
        config.sessions = feed::config::take_sessions(&mut config.feeds)?;
        parsed_from(text, &mut config.users, &mut config.lists);
        UserSet::check_tables(&config.user_source())?;
        config.check()?;
        Ok(config)
    }

    /// Returns whether a text of TOML sets any key. The head of a table is none.
    #[must_use]
    pub fn sets_key(text: &str) -> bool {
        let table = toml::from_str::<toml::Table>(text).unwrap_or_default();
        let mut open: Vec<_> = table.values().collect();
        while let Some(value) = open.pop() {
            match value {
                toml::Value::Table(table) => open.extend(table.values()),
                _ => return true,
            }
        }
        false
    }

    /// Records the file from which the configuration was parsed, for errors in its users and lists
    /// that are found when the files that it names are read.
    #[must_use]
    pub fn of_file(mut self, file: &Path) -> Self {
        read_from(file, &mut self.users, &mut self.lists);
        self
    }

    /// Returns whether users are configured, so that others cannot log on to a port that is not
    /// open.
    #[must_use]
    pub const fn has_users(&self) -> bool {
        !self.users.is_empty() || self.users_file.is_some()
    }

    /// Returns whether the gateway has market events.
    #[must_use]
    pub fn has_market(&self) -> bool {
        self.replay.is_some() || self.has_live_market()
    }

    fn has_live_market(&self) -> bool {
        let has_mapping = self.feeds.iter().any(|feed| feed.mapping.is_some());
        let others = [
            self.edges.len(),
            self.files.len(),
            self.live.len(),
            self.sessions.len(),
        ];
        has_mapping || others.iter().any(|len| *len > 0)
    }

    /// Returns the source of the users.
    pub(crate) fn user_source(&self) -> Source<'_> {
        Source {
            users: &self.users,
            lists: &self.lists,
            file: self.users_file.as_deref(),
            ports: [&self.producers, &self.consumers],
        }
    }

    /// Checks the ranges that the types do not express.
    ///
    /// # Errors
    /// Returns `Range`, naming the first key that is out of range.
    pub fn check(&self) -> Result<(), ConfigError> {
        within("workers", self.workers, 1..=64)?;
        let ring = self.ring_bytes;
        let fits = ring.is_power_of_two() && (1 << 16..=1 << 30).contains(&ring);
        range(
            "ring_bytes",
            ring,
            fits,
            "must be a power of two between 65536 and 1073741824",
        )?;
        let longest = self.limits.message_bytes;
        // The key that was set is the one at fault.
        let is_default = longest == Limits::default().message_bytes;
        range(
            "ring_bytes",
            ring,
            !is_default || ring / 8 >= longest,
            "must be at least eight times limits.message_bytes, which is 65536 unless it is set",
        )?;
        range(
            "limits.message_bytes",
            longest,
            (256..=ring / 8).contains(&longest),
            "must be at least 256 and at most an eighth of ring_bytes",
        )?;
        self.limits.check()?;
        let queue = self.slow_consumer.queue_bytes;
        range(
            "slow_consumer.queue_bytes",
            queue,
            (longest + ENVELOPE + NEWS_ROOM..=1 << 30).contains(&queue),
            "must be at least limits.message_bytes + 2048 and at most 1073741824",
        )?;
        range(
            "slow_consumer.queue_bytes",
            queue,
            queue >= LEAST_OF_MARKET || !self.has_market(),
            "must be at least 8192 for the snapshots of a market",
        )?;
        self.check_ports()?;
        feed::config::check_all(&self.feeds, &self.files, &self.live, &self.sessions)?;
        let mut channels: Vec<String> = self.feeds.iter().map(Feed::channel).collect();
        channels.extend(self.files.iter().map(|file| file.channel.clone()));
        channels.extend(self.live.iter().map(|live| live.channel.clone()));
        channels.extend(self.sessions.iter().map(|own| own.channel.clone()));
        edges::config::check_all(&self.edges, &channels)?;
        self.check_replay()?;
        if let Some(dbn) = &self.dbn {
            dbn.check(self.has_users(), self.has_market())?;
        }
        if let Some(console) = &self.console {
            console.check()?;
        }
        self.check_logs()?;
        if let Some(events) = &self.events {
            range("events", events.display(), self.has_market(), NEEDS_MARKET)?;
        }
        if let Some(history) = &self.history {
            let folder = history.folder.display();
            range("history.folder", folder, self.has_market(), NEEDS_MARKET)?;
            history.check()?;
        }
        kafka::check_all(&self.kafka, self.history.is_some())?;
        self.dds.check()?;
        self.check_topic_prefixes()
    }
}

impl Config {
    fn check_ports(&self) -> Result<(), ConfigError> {
        for (key, side) in [
            ("producers.max_sessions", &self.producers),
            ("consumers.max_sessions", &self.consumers),
        ] {
            within(key, side.max_sessions, 1..=100_000)?;
        }
        for (key, side) in [
            ("producers.sessions", &self.producers),
            ("consumers.sessions", &self.consumers),
        ] {
            for pair in &side.sessions {
                let name = format!("{}->{}", pair.sender, pair.target);
                range(key, name, pair.is_possible(), COMP_IDS)?;
            }
        }
        for (key, side) in [
            ("producers.bind", &self.producers),
            ("consumers.bind", &self.consumers),
        ] {
            let has_door = side.bind.is_loopback() || side.open || self.has_users();
            let rule = "is reachable from other machines: needs users (`users`, `[[user]]`), or \
                `open = true` (--open), which admits every client";
            range(key, side.bind, has_door, rule)?;
        }
        let port = self.producers.port;
        let clash = self.producers.address() == self.consumers.address() && port != 0;
        let rule = "must differ from `producers.port`";
        range("consumers.port", port, !clash, rule)
    }

    fn check_logs(&self) -> Result<(), ConfigError> {
        if let Some(log) = &self.message_log {
            log.rotate.check("message_log")?;
        }
        self.log.check()
    }

    fn check_replay(&self) -> Result<(), ConfigError> {
        let Some(replay) = &self.replay else {
            return Ok(());
        };
        let rule = "must be the only source of market events: feeds with `mapping`, `dbn`, \
            `live` or `fix`, and edges, are not allowed";
        let is_alone = !self.has_live_market();
        range("replay", replay.path().display(), is_alone, rule)?;
        replay.check()
    }
}

/// Formats a parse error with the line of the text, unless the line is long, or may contain a
/// secret.
fn parse_error(text: &str, error: &toml::de::Error) -> ConfigError {
    // A key may be misspelt, so the names of the tables and the prefix of a hash are searched for
    // as well.
    let mut has_secrets = ["password", "secret", "user", "kafka", "$argon2"].into_iter();
    let (line, why) = without_text(text, error);
    let of_line = line.and_then(|line| text.lines().nth(line - 1));
    let of_line = of_line.unwrap_or_default();
    let is_long = of_line.len() + error.message().len() > LONGEST_ERROR;
    // A token in the place of its file. Many keys of other tables have such names.
    let may_be_secret = error.message().starts_with("unknown field")
        || ["token", "key"].iter().any(|hint| of_line.contains(hint));
    if !is_long && !may_be_secret && !has_secrets.any(|hint| text.contains(hint)) {
        return ConfigError::Parse(error.to_string().trim().into());
    }
    let place = line
        .map(|line| format!("line {line}: "))
        .unwrap_or_default();
    ConfigError::Parse(cut(format!("{place}{why}")))
}

impl Config {
    /// Reads the certificates of both ports.
    fn read_certificates(&self) -> Result<[Option<TlsServer>; 2], StartError> {
        let read = |name, port: &PortConfig| {
            let server = port.tls_server();
            server.map_err(|error| StartError::Tls(name, error))
        };
        Ok([
            read("producers", &self.producers)?,
            read("consumers", &self.consumers)?,
        ])
    }

    /// Opens the log, or the file of DBN, that replaces feeds, if there is one.
    pub(crate) fn open_replay(&self) -> Result<Option<OpenReplay>, StartError> {
        let own = self.history.as_ref().map(|own| own.folder.as_path());
        let open = |replay: &Replay| {
            let opened = OpenReplay::open(replay, own);
            opened.map_err(|error| StartError::Replay(replay.key(), error))
        };
        self.replay.as_ref().map(open).transpose()
    }

    /// Reads the beginnings of the feeds that are files, and returns their books.
    pub(crate) fn file_books(&self) -> Result<Vec<BookConfig>, StartError> {
        let book = |file: &FileFeed| {
            let book = book_of(&file.source.file);
            book.map_err(|error| StartError::Replay("feed.dbn", error))
        };
        self.files.iter().map(book).collect()
    }

    /// Reads the templates, dictionaries, certificates and users that the configuration names, and
    /// the beginnings of the log and of the files of DBN. Checks that threads can be pinned. Opens
    /// no socket, and writes nothing.
    ///
    /// # Errors
    /// Returns an error for the first file that is missing or unusable, or for `pin`.
    pub fn check_files(&self) -> Result<(), StartError> {
        self.check_pin()?;
        self.feeds.iter().try_for_each(feed::check)?;
        self.sessions.iter().try_for_each(feed::session::check)?;
        self.live.iter().try_for_each(crate::replay::live::check)?;
        self.check_topics()?;
        self.open_replay()?;
        self.file_books()?;
        self.read_certificates()?;
        UserSet::load(&self.user_source())?;
        Ok(())
    }

    /// Checks that threads can be pinned to the processors of `pin`.
    pub(crate) fn check_pin(&self) -> Result<(), StartError> {
        if self.pin.is_empty() {
            return Ok(());
        }
        let refused = first_refused(&self.pin)?;
        let rule = "must be processors on which this process may run";
        range("pin", refused.unwrap_or_default(), refused.is_none(), rule)?;
        Ok(())
    }
}

/// Pins a thread to each of these processors in turn, and returns the first one that is refused.
/// The processors of the calling thread do not show it, because it may itself be pinned.
fn first_refused(cpus: &[usize]) -> io::Result<Option<usize>> {
    thread::scope(|scope| {
        let find = move || cpus.iter().copied().find(|&cpu| pin_to(cpu).is_err());
        let tried = thread::Builder::new().spawn_scoped(scope, find)?.join();
        Ok(tried.unwrap_or_default())
    })
}

impl Default for Config {
    fn default() -> Self {
        Self {
            producers: PortConfig::on_port(PRODUCERS),
            consumers: PortConfig::on_port(CONSUMERS),
            workers: 1,
            threads: Threads::Auto,
            idle: Idle::Park,
            pin: Vec::new(),
            ring_bytes: 1 << 22,
            limits: Limits::default(),
            slow_consumer: SlowConsumer::default(),
            fan_out: FanOut::Marked,
            mode: Mode::Broadcast,
            dds: Dds::default(),
            feeds: Vec::new(),
            files: Vec::new(),
            live: Vec::new(),
            sessions: Vec::new(),
            edges: Vec::new(),
            message_log: None,
            capture: None,
            dbn: None,
            events: None,
            replay: None,
            history: None,
            kafka: Vec::new(),
            audit: None,
            control: None,
            stages: true,
            console: None,
            log: ProgramLog::default(),
            users: UserTables::default(),
            users_file: None,
            lists: Lists::default(),
        }
    }
}

impl Limits {
    /// Checks all limits but the longest message, which depends on the ring.
    fn check(&self) -> Result<(), ConfigError> {
        within("limits.logon_bytes", self.logon_bytes, 256..=1 << 20)?;
        within("limits.header_field_bytes", self.header_field_bytes, 1..=96)?;
        within("limits.not_logged_on", self.not_logged_on, 1..=100_000)?;
        let of_address = self.not_logged_on_per_address;
        within("limits.not_logged_on_per_address", of_address, 1..=100_000)?;
        let sessions = self.remembered_sessions;
        within("limits.remembered_sessions", sessions, 1..=1 << 20)?;
        let bytes = self.remembered_bytes;
        within("limits.remembered_bytes", bytes, 1 << 16..=1 << 30)?;
        within("limits.logon_timeout_s", self.logon_timeout_s, 1..=3600)?;
        within("limits.heartbeat_max_s", self.heartbeat_max_s, 1..=86_400)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 16,
            logon_timeout_s: 10,
            logon_bytes: 8192,
            header_field_bytes: MAX_HEADER_FIELD,
            not_logged_on: 1024,
            not_logged_on_per_address: 256,
            remembered_sessions: 16_384,
            remembered_bytes: 16 << 20,
            heartbeat_max_s: 3600,
        }
    }
}

impl Default for SlowConsumer {
    fn default() -> Self {
        Self {
            queue_bytes: 1 << 20,
            policy: SlowPolicy::Disconnect,
        }
    }
}
