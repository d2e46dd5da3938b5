//! The `[feed]` table of the configuration.

use super::lines::{FeedLine, OneOrMany, by_name, check_lines, field_or_none};
use super::session::config::{SessionFeed, SessionSource};
use crate::config::error::{ConfigError, range, within};
use crate::dds::endpoint::{DdsQos, DdsTransport, LEASE_MS, Participant, check, dds_endpoint};
use crate::dds::entry::MAX_CHANNEL;
use crate::edges::config::FeedEdges;
use crate::fanout::versions::VERSIONS;
use crate::market::config::{self as market, FeedBook, FeedReplay, SnapshotLines};
use crate::replay::feed_config::{FileFeed, FileSource};
use crate::replay::live::config::{LiveFeed, LiveSource};
use fanfare_dds::distribute::Distribution;
use fanfare_dds::fast::TypeOptions;
use fanfare_dds::types::is_scoped_name;
use fanfare_engine::feed::{LineConfig, ReceiverConfig};
use fanfare_fast::Options;
use fanfare_feed::channel::Unnumbered;
use fanfare_feed::{Header, Preamble, SequenceField, Start};
use fanfare_fix::dict::Version;
use fanfare_fix::tag;
use serde::de::value::{Error as ValueError, MapDeserializer};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// A FAST feed on multicast lines. Its messages are sent to the consumers as FIX messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// A file of DBN instead of FAST lines, with `channel` as the only other key. Such a feed is
    /// one of [`Config::files`](crate::Config::files).
    pub dbn: Option<FileSource>,
    /// A gateway of DBN's live protocol instead of FAST lines, with `channel` as the only other
    /// key. Such a feed is one of [`Config::live`](crate::Config::live).
    pub live: Option<LiveSource>,
    /// A FIX session in which market data is requested, instead of FAST lines, with `channel`,
    /// `mapping` and `book` as the only other keys. Such a feed is one of
    /// [`Config::sessions`](crate::Config::sessions).
    pub fix: Option<SessionSource>,
    /// A template file, or `builtin:simple`, `builtin:complex` or `builtin:spectra`.
    #[serde(default)]
    pub templates: String,
    /// Whether deviations from the specification are accepted that exchanges are known to send, as
    /// [`Options::strict`] lists them, in the packets of all lines and in the responses of a
    /// replay. Includes [`lenient_templates`](Self::lenient_templates).
    #[serde(default)]
    pub lenient: bool,
    /// Whether templates may have attributes, elements and text that the schema of FAST does not
    /// allow. These are ignored, and a notice has the first of them and the number of the others.
    #[serde(default)]
    pub lenient_templates: bool,
    /// One line, or up to four with the same feed: multicast groups, `ADDRESS:PORT`, or tables with
    /// `group`, and the line's own `interface` and `source`.
    #[serde(default)]
    pub lines: Vec<FeedLine>,
    /// The address of the interface for lines that name none.
    #[serde(default = "loopback")]
    pub interface: Ipv4Addr,
    /// The length headers of the packets in a datagram: `none`, `u8`, `u16le`, `u16be`, `u32le`,
    /// `u32be` or `fast`.
    #[serde(default = "no_header", deserialize_with = "by_name")]
    pub header: Header,
    /// The preamble before the messages of a packet, which numbers it: `none`, `seq32le`, `seq32be`
    /// or `cme`.
    #[serde(default, deserialize_with = "by_name")]
    pub preamble: Preamble,
    /// The field with a message's sequence number, by name or tag. `auto` is MsgSeqNum(34), or a
    /// field of that name or named SequenceNumber, if there is one. With `none`, packets pass in
    /// the order of arrival. Not used with a preamble.
    #[serde(default = "auto", deserialize_with = "field_or_none")]
    pub sequence: Option<SequenceField>,
    /// The time for which all lines must be silent before repeated numbers are a restart, in
    /// milliseconds. With 0, they never are.
    #[serde(default = "restart_after")]
    pub restart_after_ms: u64,
    /// The time to wait for a packet that is missing on all lines, in milliseconds.
    #[serde(default = "gap_timeout")]
    pub gap_timeout_ms: u64,
    /// The name of the feed on DDS. Gateways that receive the same feed use the same name, and a
    /// subscriber takes each message from the first that delivers it. The default is the groups of
    /// the lines, lowest first, joined by `+`.
    pub channel: Option<String>,
    /// Whether all lines bring a message with the same SendingTime(52), which then distinguishes
    /// equal messages of a number that begins again on DDS. It is the same at all gateways of
    /// `channel`.
    #[serde(default)]
    pub same_times: bool,
    /// The MsgType(35) of messages whose template has none. They are sent only to versions whose
    /// dictionary has this type, and with `user_tags`.
    #[serde(default = "msg_type")]
    pub msg_type: String,
    /// The offset added to the tags of fields that have no place in a version, from 5000 to 95000.
    /// It also forwards user-defined fields. Without it, both are left out.
    pub user_tags: Option<u32>,
    /// The tags of fields that are sent under another tag, by the feed's own.
    #[serde(default)]
    pub tags: BTreeMap<String, u32>,
    /// The dictionaries that replace the built-in ones, as QuickFIX XML or FIX Orchestra XML:
    /// files, by version, such as `"FIX.4.4"`.
    #[serde(default)]
    pub dictionaries: BTreeMap<String, PathBuf>,
    /// The version of FIX for messages over DDS.
    #[serde(default = "dds_version")]
    pub dds_version: String,
    /// The topics of the decoded messages, as samples of types made from the templates.
    pub publish: Option<FeedTopics>,
    /// The mapping from messages and fields to market events: a mapping file, or `builtin:fix`,
    /// `builtin:spectra` or `builtin:complex`. With it the gateway keeps the feed's instruments,
    /// books and states, and forwards events.
    pub mapping: Option<String>,
    /// The kind, size and numbers of the books. Requires `mapping`.
    pub book: Option<FeedBook>,
    /// The lines with snapshots and definitions: one table, or several for lines that differ.
    /// Requires `mapping`.
    #[serde(default, deserialize_with = "one_or_many_snapshots")]
    pub snapshot: Vec<SnapshotLines>,
    /// The replay from which messages are requested that no line delivered. Requires `mapping`.
    pub replay: Option<FeedReplay>,
    /// The topics on which the feed's market events are published for gateways that do not receive
    /// it. Requires `mapping`.
    pub edges: Option<FeedEdges>,
}

dds_endpoint! {
    lease_ms = LEASE_MS;
    /// The topics of the decoded messages, as `fanfare dds publish` has them.
    pub struct FeedTopics {
        /// The delivery of samples.
        pub qos: DdsQos = DdsQos::Reliable,
        /// Whether samples are keyed, with all securities of a split template on one topic.
        pub keyed: bool = false,
        /// The name of the key field.
        pub key: String = "SecurityID".to_owned(),
        /// The name of the field to split templates by. With `none`, no template is split.
        pub split: String = "SecurityID".to_owned(),
        /// The number of securities that have topics of their own, counted from 0: 1 to 100,000.
        pub securities: u32 = 100,
        /// Whether decimals become `{mantissa, exponent}` instead of double.
        pub exact_decimals: bool = false,
        /// The IDL module of the types.
        pub module: String = "Fanfare".to_owned(),
    }
}

fn auto() -> Option<SequenceField> {
    Some(SequenceField::Auto)
}

/// Deserializes the feeds of a configuration: one table, or an array of tables.
pub(crate) fn one_or_many<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Feed>, D::Error> {
    d.deserialize_any(OneOrMany("a table [feed], or tables [[feed]]", PhantomData))
}

fn one_or_many_snapshots<'de, D>(d: D) -> Result<Vec<SnapshotLines>, D::Error>
where
    D: Deserializer<'de>,
{
    let expected = "a table [feed.snapshot], or tables [[feed.snapshot]]";
    d.deserialize_any(OneOrMany(expected, PhantomData))
}

/// Takes out the feeds that are files.
///
/// # Errors
/// Returns an error if one of them has a key that only lines have.
pub(crate) fn take_files(feeds: &mut Vec<Feed>) -> Result<Vec<FileFeed>, ConfigError> {
    let all = feeds.extract_if(.., |feed| feed.dbn.is_some());
    let files = all.map(|mut feed| {
        let (dbn, channel) = (feed.dbn.take(), feed.channel.take());
        let is_alone = is_blank(&feed);
        let file = dbn.filter(|_| is_alone);
        let rule = "must be the only key of its feed, except for `channel`";
        let file = file.ok_or_else(|| ConfigError::Range {
            key: "feed.dbn".to_owned(),
            value: "…".to_owned(),
            rule: rule.to_owned(),
        })?;
        Ok(FileFeed::new(channel, file))
    });
    files.collect()
}

/// Takes out the feeds that are received from a gateway of DBN's live protocol.
///
/// # Errors
/// Returns an error if one of them has a key that only lines have.
pub(crate) fn take_live(feeds: &mut Vec<Feed>) -> Result<Vec<LiveFeed>, ConfigError> {
    let all = feeds.extract_if(.., |feed| feed.live.is_some());
    let live = all.map(|mut feed| {
        let (live, channel) = (feed.live.take(), feed.channel.take());
        let is_alone = is_blank(&feed);
        let source = live.filter(|_| is_alone);
        let source = source.ok_or_else(|| ConfigError::Range {
            key: "feed.live".to_owned(),
            value: "…".to_owned(),
            rule: "must be the only key of its feed, except for `channel`".to_owned(),
        })?;
        Ok(LiveFeed::new(channel, source))
    });
    live.collect()
}

/// Takes out the feeds that are FIX sessions.
///
/// # Errors
/// Returns an error if one of them has a key that only lines have.
pub(crate) fn take_sessions(feeds: &mut Vec<Feed>) -> Result<Vec<SessionFeed>, ConfigError> {
    let all = feeds.extract_if(.., |feed| feed.fix.is_some());
    let sessions = all.map(|mut feed| {
        let (fix, channel) = (feed.fix.take(), feed.channel.take());
        let (mapping, book) = (feed.mapping.take(), feed.book.take());
        let is_alone = is_blank(&feed);
        let source = fix.filter(|_| is_alone);
        let rule = "goes with `channel`, `mapping` and `[feed.book]` alone";
        let source = source.ok_or_else(|| ConfigError::Range {
            key: "feed.fix".to_owned(),
            value: "…".to_owned(),
            rule: rule.to_owned(),
        })?;
        Ok(SessionFeed::new(channel, mapping, book, source))
    });
    sessions.collect()
}

/// Returns whether a feed has no key.
fn is_blank(feed: &Feed) -> bool {
    let nothing = MapDeserializer::new(std::iter::empty::<(&str, &str)>());
    let blank: Result<Feed, ValueError> = Feed::deserialize(nothing);
    blank.is_ok_and(|blank| blank == *feed)
}

/// Checks the feeds of a configuration.
pub(crate) fn check_all(
    feeds: &[Feed],
    files: &[FileFeed],
    live: &[LiveFeed],
    sessions: &[SessionFeed],
) -> Result<(), ConfigError> {
    feeds.iter().try_for_each(Feed::check)?;
    files.iter().try_for_each(FileFeed::check)?;
    live.iter().try_for_each(LiveFeed::check)?;
    sessions.iter().try_for_each(SessionFeed::check)?;
    let mut channels: Vec<String> = feeds.iter().map(Feed::channel).collect();
    channels.extend(files.iter().map(|file| file.channel.clone()));
    channels.extend(live.iter().map(|live| live.channel.clone()));
    channels.extend(sessions.iter().map(|session| session.channel.clone()));
    for (i, channel) in channels.iter().enumerate() {
        let is_first = !channels.iter().take(i).any(|other| other == channel);
        range(
            "feed.channel",
            channel,
            is_first,
            "is the channel of another feed",
        )?;
    }
    Ok(())
}

fn loopback() -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

const fn gap_timeout() -> u64 {
    100
}

const fn restart_after() -> u64 {
    1000
}

const fn no_header() -> Header {
    Header::None
}

fn msg_type() -> String {
    "U".to_owned()
}

fn dds_version() -> String {
    Version::Fix44.name().to_owned()
}

/// Returns the index of an application version of this name.
fn version(name: &str) -> Option<usize> {
    VERSIONS.iter().position(|known| known.name() == name)
}

impl Feed {
    /// Returns the name of the feed on DDS.
    #[must_use]
    pub fn channel(&self) -> String {
        self.channel.clone().unwrap_or_else(|| {
            let mut groups: Vec<SocketAddrV4> = self.lines.iter().map(|line| line.group).collect();
            groups.sort_unstable();
            let groups: Vec<String> = groups.iter().map(ToString::to_string).collect();
            groups.join("+")
        })
    }

    /// Returns the options of every decoder of the feed.
    pub(crate) fn decoding(&self) -> Options {
        Options::with_strict(!self.lenient)
    }

    /// Returns whether templates may have what the schema of FAST does not have.
    pub(crate) const fn has_lenient_templates(&self) -> bool {
        self.lenient || self.lenient_templates
    }

    /// Returns the configuration of its receiver.
    pub(crate) fn receiver(&self) -> ReceiverConfig {
        let mut config = self.receive(&self.lines, self.interface);
        let channel = &mut config.channel;
        channel.header = self.header;
        channel.preamble = self.preamble;
        channel.sequence = self.sequence.clone();
        config
    }

    /// Returns the configuration of the receiver of lines with snapshots.
    pub(crate) fn snapshot_receiver(&self, of: &SnapshotLines) -> ReceiverConfig {
        let mut config = self.receive(&of.lines, of.interface.unwrap_or(self.interface));
        let channel = &mut config.channel;
        channel.header = of.header.unwrap_or(self.header);
        channel.preamble = of.preamble.unwrap_or(self.preamble);
        let sequence = of.sequence.as_ref().unwrap_or(&self.sequence);
        channel.sequence = sequence.clone();
        config
    }

    /// Returns the configuration of a receiver of lines.
    fn receive(&self, lines: &[FeedLine], interface: Ipv4Addr) -> ReceiverConfig {
        const MS: u64 = 1_000_000;
        let several = lines.len() > 1;
        let lines = lines.iter().map(|line| LineConfig {
            address: line.group,
            interface: line.interface.unwrap_or(interface),
            source: line.source,
        });
        let mut config = ReceiverConfig::new(lines.collect());
        let channel = &mut config.channel;
        channel.as_it_comes = !several;
        if several {
            channel.unnumbered = Unnumbered::AtTheEnd;
        }
        // With a single line, no other one can deliver a missing packet.
        let gap_timeout = if several { self.gap_timeout_ms * MS } else { 0 };
        channel.arbiter.gap_timeout = gap_timeout;
        channel.arbiter.start = Start::First { wait: gap_timeout };
        channel.arbiter.restart_timeout = self.restart_after_ms * MS;
        config
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let rule = "is missing: a feed needs `templates` and `lines`, a file as `dbn`, or a \
            session as `fix`";
        range("feed.templates", "", !self.templates.is_empty(), rule)?;
        check_lines("feed.lines", &self.lines)?;
        within("feed.gap_timeout_ms", self.gap_timeout_ms, 1..=60_000)?;
        within(
            "feed.restart_after_ms",
            self.restart_after_ms,
            0..=3_600_000,
        )?;
        let t = &self.msg_type;
        let plain = t.bytes().all(|b| b.is_ascii_alphanumeric());
        range(
            "feed.msg_type",
            t,
            plain && (1..=8).contains(&t.len()) && t.starts_with('U'),
            "must be a user-defined type: U and at most 7 letters and digits",
        )?;
        let channel = self.channel();
        let plain = channel.bytes().all(|b| b.is_ascii_graphic());
        range(
            "feed.channel",
            &channel,
            plain && (1..=MAX_CHANNEL).contains(&channel.len()),
            "must be 1 to 96 printable ASCII characters without spaces",
        )?;
        self.check_fix()?;
        let (book, replay) = (self.book.as_ref(), self.replay.as_ref());
        market::check(self.mapping.is_some(), book, &self.snapshot, replay)?;
        if let Some(edges) = &self.edges {
            let rule = "needs `mapping`, which turns messages into market events";
            range("feed.edges", "…", self.mapping.is_some(), rule)?;
            edges.check()?;
        }
        let Some(topics) = &self.publish else {
            return Ok(());
        };
        check(
            "feed.publish",
            topics.domain,
            topics.wait_ms,
            topics.instances,
            topics.lease_ms,
        )?;
        let (module, rule) = (&topics.module, "must be a name in IDL");
        range("feed.publish.module", module, is_scoped_name(module), rule)?;
        within("feed.publish.securities", topics.securities, 1..=100_000)
    }

    fn check_fix(&self) -> Result<(), ConfigError> {
        if let Some(first) = self.user_tags {
            within("feed.user_tags", first, tag::USER_TAGS..=95_000)?;
        }
        for (from, to) in &self.tags {
            let is_tag = from.parse::<u32>().is_ok_and(|tag| tag > 0);
            range("feed.tags", from, is_tag, "must be a tag of at least 1")?;
            let is_field = *to > 0 && !tag::is_header(*to) && !tag::is_trailer(*to);
            let rule = "must be a tag outside the header and trailer";
            range("feed.tags", to, is_field, rule)?;
        }
        let names = self
            .dictionaries
            .keys()
            .map(|name| ("feed.dictionaries", name));
        for (key, name) in names.chain([("feed.dds_version", &self.dds_version)]) {
            let rule = "must be FIX.4.0 to FIX.4.4, FIX.5.0, FIX.5.0SP1 or FIX.5.0SP2";
            range(key, name, version(name).is_some(), rule)?;
        }
        Ok(())
    }

    /// Returns the feed's tags that are sent under others, once they have been checked.
    pub(crate) fn mapped_tags(&self) -> Vec<(u32, u32)> {
        let tags = self.tags.iter();
        tags.filter_map(|(from, to)| Some((from.parse().ok()?, *to)))
            .collect()
    }

    /// Returns the index of the version for messages over DDS.
    pub(crate) fn dds_place(&self) -> usize {
        version(&self.dds_version).unwrap_or_default()
    }
}

impl FeedTopics {
    pub(crate) fn types(&self) -> TypeOptions {
        TypeOptions {
            module: self.module.clone(),
            exact_decimals: self.exact_decimals,
            keyed: self.keyed,
            key: self.key.clone(),
            split: (self.split != "none").then(|| self.split.clone()),
        }
    }

    pub(crate) fn distribution(&self) -> Distribution {
        Distribution {
            keyed: self.keyed,
            securities: self.securities,
            echo: false,
            qos: self.qos.policies(self.wait_ms, self.instances),
            ..Distribution::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn two_lines_and_topics() {
        let text = "[feed]\ntemplates = \"builtin:complex\"\n\
                    lines = [\"224.1.2.133:13014\", \"224.1.2.134:13014\"]\n\
                    [feed.publish]\nkeyed = true\nqos = \"best-effort\"\n";
        let feed = Config::from_toml(text).unwrap().feeds.remove(0);
        assert_eq!((feed.lines.len(), feed.gap_timeout_ms), (2, 100));
        assert!(feed.publish.unwrap().keyed);
    }

    #[test]
    fn several_feeds_have_lines_preambles_and_sources_of_their_own() {
        let text = "[[feed]]\ntemplates = \"builtin:simple\"\nlines = [\"224.1.2.133:1\"]\n\
                    sequence = \"none\"\n\
                    [[feed]]\ntemplates = \"builtin:simple\"\npreamble = \"cme\"\n\
                    header = \"u16be\"\ninterface = \"10.0.0.1\"\nrestart_after_ms = 0\n\
                    lines = [{ group = \"224.1.2.134:2\", source = \"10.0.0.9\" },\n\
                             { group = \"224.1.2.135:2\", interface = \"10.0.0.2\" }]\n";
        let feeds = Config::from_toml(text).unwrap().feeds;
        let [first, second] = feeds.as_slice() else {
            panic!("{feeds:?}");
        };
        let first = first.receiver();
        assert_eq!(first.channel.sequence, None);
        assert_eq!(first.channel.arbiter.gap_timeout, 0);
        let second = second.receiver();
        assert_eq!(second.channel.preamble.to_string(), "cme");
        assert_eq!(second.channel.header.to_string(), "u16be");
        assert_eq!(second.channel.arbiter.gap_timeout, 100_000_000);
        assert_eq!(second.channel.arbiter.restart_timeout, 0);
        let lines: Vec<_> = second
            .lines
            .iter()
            .map(|l| (l.interface, l.source))
            .collect();
        let address = |text: &str| text.parse().unwrap();
        let own = address("10.0.0.9");
        assert_eq!(
            lines,
            [
                (address("10.0.0.1"), Some(own)),
                (address("10.0.0.2"), None)
            ]
        );
    }

    #[test]
    fn a_feed_is_named_by_its_lines_in_any_order() {
        let channel = |rest: &str| {
            let text = format!("[feed]\ntemplates = \"builtin:complex\"\n{rest}");
            Config::from_toml(&text).unwrap().feeds[0].channel()
        };
        let a = "lines = [\"224.1.2.134:13014\", \"224.1.2.133:13014\"]";
        assert_eq!(channel(a), "224.1.2.133:13014+224.1.2.134:13014");
        assert_eq!(channel(&format!("{a}\nchannel = \"moex\"")), "moex");
    }

    #[test]
    fn lines_and_framing_that_cannot_be_are_refused() {
        let feed = |rest: &str| format!("[feed]\ntemplates = \"builtin:simple\"\n{rest}");
        let line = "lines = [\"224.1.2.133:13014\"]\n";
        for (text, what) in [
            (
                feed(&format!("{line}preamble = \"cmee\"")),
                "unknown preamble `cmee`",
            ),
            (
                feed(&format!("{line}header = \"u17\"")),
                "unknown header `u17`",
            ),
            (
                feed(&format!("{line}restart_after_ms = 3600001")),
                "feed.restart_after_ms",
            ),
            (
                feed("lines = [{ group = \"224.1.2.133:13014\", from = 1 }]"),
                "line 3",
            ),
            (feed("lines = [{ group = \"224.1.2.133\" }]"), "line 3"),
            (
                feed("lines = [{ group = \"224.1.2.133:1\" }, \"224.1.2.133:1\"]"),
                "occurs twice",
            ),
            (
                feed("lines = [{ group = \"224.1.2.133:1\", source = \"224.1.2.1\" }]"),
                "`feed.lines` = 224.1.2.1: must be a unicast address",
            ),
            (
                [feed(line), feed(line)]
                    .map(|one| one.replace("[feed]", "[[feed]]"))
                    .concat(),
                "is the channel of another feed",
            ),
        ] {
            let told = Config::from_toml(&text).unwrap_err().to_string();
            assert!(told.contains(what), "{text}: {told}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name_or_line() {
        let feed = |rest: &str| format!("[feed]\ntemplates = \"builtin:simple\"\n{rest}");
        let line = "lines = [\"224.1.2.133:13014\"]\n";
        for (text, what) in [
            (feed(""), "lines"),
            (feed("lines = []"), "feed.lines"),
            (feed("lines = [\"10.0.0.1:13014\"]"), "multicast group"),
            (
                feed("lines = [\"224.1.2.133:1\", \"224.1.2.4:1\", \"224.1.2.133:1\"]"),
                "`feed.lines` = 224.1.2.133:1: occurs twice",
            ),
            (feed("lines = [\"224.1.2.133\"]"), "line 3"),
            (feed(&format!("{line}gap_timeout_ms = 0")), "gap_timeout_ms"),
            (feed(&format!("{line}msg_type = \"W\"")), "feed.msg_type"),
            (feed(&format!("{line}user_tags = 1")), "feed.user_tags"),
            (
                feed(&format!("{line}dds_version = \"FIXT.1.1\"")),
                "feed.dds_version",
            ),
            (feed(&format!("{line}[feed.tags]\n369 = 52")), "feed.tags"),
            (feed(&format!("{line}[feed.tags]\nx = 5000")), "feed.tags"),
            (
                feed(&format!("{line}[feed.dictionaries]\n\"FIX.9\" = \"a.xml\"")),
                "feed.dictionaries",
            ),
            (feed(&format!("{line}template = 1")), "line 4"),
            (feed(&format!("{line}channel = \"a b\"")), "feed.channel"),
            (
                feed(&format!("{line}[feed.publish]\ndomain = 999")),
                "feed.publish.domain",
            ),
            (
                feed(&format!("{line}[feed.publish]\nmodule = \"a b\"")),
                "feed.publish.module",
            ),
            (
                feed(&format!("{line}[feed.publish]\n\nkyed = true")),
                "line 6",
            ),
        ] {
            let told = Config::from_toml(&text).unwrap_err().to_string();
            assert!(told.contains(what), "{text}: {told}");
        }
    }
}
