//! The `[feed]` part of the configuration.

use crate::bridge::entry::MAX_CHANNEL;
use crate::bridge::side::{BusQos, BusTransport, Participant, bus_side, check};
use crate::config::{ConfigError, range};
use crate::feed::fix::USER_TAGS;
use crate::versions::VERSIONS;
use fanfare_bus::distribute::Distribution;
use fanfare_bus::fast::TypeOptions;
use fanfare_fix::codec::tags;
use fanfare_fix::dict::Version;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

/// A FAST feed on multicast lines. Its messages go to the consumers as FIX messages.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Feed {
    /// A template file, or `builtin:simple` or `builtin:complex`.
    pub templates: String,
    /// Takes templates with attributes, elements and text that the schema of FAST does not have,
    /// and leaves those out; a notice has the first of them and the number of the others.
    #[serde(default)]
    pub lenient_templates: bool,
    /// Multicast groups, `ADDRESS:PORT`: one line, or up to four with the same feed.
    pub lines: Vec<SocketAddrV4>,
    /// Address of the interface that receives.
    #[serde(default = "loopback")]
    pub interface: Ipv4Addr,
    /// How long a packet that is missing on all lines is waited for, in milliseconds.
    #[serde(default = "gap_timeout")]
    pub gap_timeout_ms: u64,
    /// Name of the feed on the bus: gateways that receive the same feed have the same, and a
    /// subscriber takes each message from the first that brings it. Default: the groups of the
    /// lines, lowest first, with `+` between.
    #[serde(default)]
    pub channel: Option<String>,
    /// MsgType(35) of messages whose template has none. They go only to versions whose dictionary
    /// has this type, and with `user_tags`.
    #[serde(default = "msg_type")]
    pub msg_type: String,
    /// Added to the tags of fields that have no place in a version, and user-defined fields go out
    /// too; without it both are left out. 5000 to 95000.
    #[serde(default)]
    pub user_tags: Option<u32>,
    /// Fields that go out under another tag, by the feed's own.
    #[serde(default)]
    pub tags: BTreeMap<String, u32>,
    /// Dictionaries in place of the built-in ones, as QuickFIX XML or FIX Orchestra XML: files, by
    /// version, such as `"FIX.4.4"`.
    #[serde(default)]
    pub dictionaries: BTreeMap<String, PathBuf>,
    /// The version in which messages go over the bus.
    #[serde(default = "bus_version")]
    pub bus_version: String,
    /// Where decoded messages are published, as samples of types made from the templates.
    #[serde(default)]
    pub publish: Option<FeedTopics>,
}

bus_side! {
    /// Topics with the decoded messages: as `fanfare dds publish` has them.
    pub struct FeedTopics {
        /// Key samples, and put all securities of a split template on one topic.
        pub keyed: bool = false,
        /// Name of the key field.
        pub key: String = "SecurityID".to_owned(),
        /// Name of the field to split templates by; `none`: no template is split.
        pub split: String = "SecurityID".to_owned(),
        /// Securities that have topics of their own, counted from 0: 1 to 100,000.
        pub securities: u32 = 100,
        /// Decimals become `{mantissa, exponent}` instead of double.
        pub exact_decimals: bool = false,
        /// IDL module around the types.
        pub module: String = "Fanfare".to_owned(),
    }
}

/// Most lines of a feed.
const MOST_LINES: usize = 4;

fn loopback() -> Ipv4Addr {
    Ipv4Addr::LOCALHOST
}

const fn gap_timeout() -> u64 {
    100
}

fn msg_type() -> String {
    "U".to_owned()
}

fn bus_version() -> String {
    Version::Fix44.name().to_owned()
}

/// The place of an application version of this name.
fn version(name: &str) -> Option<usize> {
    VERSIONS.iter().position(|known| known.name() == name)
}

impl Feed {
    /// The name of the feed on the bus.
    #[must_use]
    pub fn channel(&self) -> String {
        self.channel.clone().unwrap_or_else(|| {
            let mut lines = self.lines.clone();
            lines.sort_unstable();
            let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
            lines.join("+")
        })
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let lines = self.lines.len();
        range(
            "feed.lines",
            lines,
            (1..=MOST_LINES).contains(&lines),
            "must be 1 to 4",
        )?;
        for group in &self.lines {
            range(
                "feed.lines",
                group,
                group.ip().is_multicast() && group.port() > 0,
                "must be a multicast group with a port",
            )?;
        }
        for (i, group) in self.lines.iter().enumerate() {
            let before = self.lines.get(..i).unwrap_or(&[]);
            range(
                "feed.lines",
                group,
                !before.contains(group),
                "is there twice: lines are different groups or ports with the same packets",
            )?;
        }
        let wait = self.gap_timeout_ms;
        range(
            "feed.gap_timeout_ms",
            wait,
            (1..=60_000).contains(&wait),
            "must be 1 to 60000",
        )?;
        let t = &self.msg_type;
        let plain = t.bytes().all(|b| b.is_ascii_alphanumeric());
        range(
            "feed.msg_type",
            t,
            plain && (1..=8).contains(&t.len()) && t.starts_with('U'),
            "must be U and up to 7 letters and digits: a type of one's own",
        )?;
        let channel = self.channel();
        let plain = channel.bytes().all(|b| b.is_ascii_graphic());
        range(
            "feed.channel",
            &channel,
            plain && (1..=MAX_CHANNEL).contains(&channel.len()),
            "must be 1 to 96 characters of ASCII without blanks",
        )?;
        self.check_fix()?;
        let Some(topics) = &self.publish else {
            return Ok(());
        };
        check(
            "feed.publish",
            topics.domain,
            topics.wait_ms,
            topics.instances,
        )?;
        let many = topics.securities;
        range(
            "feed.publish.securities",
            many,
            (1..=100_000).contains(&many),
            "must be 1 to 100000",
        )
    }
}

impl Feed {
    fn check_fix(&self) -> Result<(), ConfigError> {
        if let Some(first) = self.user_tags {
            range(
                "feed.user_tags",
                first,
                (USER_TAGS..=95_000).contains(&first),
                "must be 5000 to 95000",
            )?;
        }
        for (from, to) in &self.tags {
            let is_tag = from.parse::<u32>().is_ok_and(|tag| tag > 0);
            range("feed.tags", from, is_tag, "must be the tag of a field")?;
            let is_field = *to > 0 && !tags::is_header(*to) && !tags::is_trailer(*to);
            let rule = "must be a tag that is not of header or trailer";
            range("feed.tags", to, is_field, rule)?;
        }
        let names = self
            .dictionaries
            .keys()
            .map(|name| ("feed.dictionaries", name));
        for (key, name) in names.chain([("feed.bus_version", &self.bus_version)]) {
            let rule = "must be FIX.4.0 to FIX.4.4, FIX.5.0, FIX.5.0SP1 or FIX.5.0SP2";
            range(key, name, version(name).is_some(), rule)?;
        }
        Ok(())
    }

    /// The feed's tags that go out under others, once they have been checked.
    pub(crate) fn mapped_tags(&self) -> Vec<(u32, u32)> {
        let tags = self.tags.iter();
        tags.filter_map(|(from, to)| Some((from.parse().ok()?, *to)))
            .collect()
    }

    /// The place of the version in which messages go over the bus.
    pub(crate) fn bus_place(&self) -> usize {
        version(&self.bus_version).unwrap_or_default()
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
        let feed = Config::from_toml(text).unwrap().feed.unwrap();
        assert_eq!((feed.lines.len(), feed.gap_timeout_ms), (2, 100));
        assert!(feed.publish.unwrap().keyed);
    }

    #[test]
    fn a_feed_is_named_by_its_lines_in_any_order() {
        let channel = |rest: &str| {
            let text = format!("[feed]\ntemplates = \"builtin:complex\"\n{rest}");
            Config::from_toml(&text).unwrap().feed.unwrap().channel()
        };
        let a = "lines = [\"224.1.2.134:13014\", \"224.1.2.133:13014\"]";
        assert_eq!(channel(a), "224.1.2.133:13014+224.1.2.134:13014");
        assert_eq!(channel(&format!("{a}\nchannel = \"moex\"")), "moex");
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
                "`feed.lines` = 224.1.2.133:1: is there twice",
            ),
            (feed("lines = [\"224.1.2.133\"]"), "line 3"),
            (feed(&format!("{line}gap_timeout_ms = 0")), "gap_timeout_ms"),
            (feed(&format!("{line}msg_type = \"W\"")), "feed.msg_type"),
            (feed(&format!("{line}user_tags = 1")), "feed.user_tags"),
            (
                feed(&format!("{line}bus_version = \"FIXT.1.1\"")),
                "feed.bus_version",
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
                feed(&format!("{line}[feed.publish]\n\nkyed = true")),
                "line 6",
            ),
        ] {
            let told = Config::from_toml(&text).unwrap_err().to_string();
            assert!(told.contains(what), "{text}: {told}");
        }
    }
}
