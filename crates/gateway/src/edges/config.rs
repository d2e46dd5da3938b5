//! `[feed.edges]`, the topics on which a gateway publishes a feed for others, and `[[edge]]`, a
//! feed that it receives from them.

use crate::config::error::{ConfigError, range, within};
use crate::dds::endpoint::{DdsTransport, Participant, check, check_names, dds_endpoint};
use crate::market::config::FeedBook;
use fanfare_dds::{History, Qos};
use fanfare_feed::arbiter::ArbiterConfig;
use fanfare_market::book::ConfigError as BookError;
use fanfare_market::relay::EdgeConfig;
use serde::Deserialize;

/// The most bytes sent to edges that have not acknowledged them.
const UNACKNOWLEDGED: usize = 64 << 20;

/// The most samples of one gateway's feed that are queued for an edge. Beyond, it loses the oldest.
const WAITING: u32 = 8_192;

/// The longest packet of a feed, with its events.
const LONGEST_PACKET: usize = 16 << 20;

dds_endpoint! {
    lease_ms = 500;
    /// The topics of a feed's market events, for gateways that do not receive it.
    pub struct FeedEdges {
        /// The prefix of `_Steps` and `_Snapshots` in the names of the topics.
        pub topics: String = "Market".to_owned(),
        /// The partition. Gateways in different partitions do not communicate.
        pub partition: Option<String> = None,
        /// The milliseconds, from 10 to 60,000, between two snapshots of an instrument that
        /// changes.
        pub snapshots_ms: u64 = 250,
    }
}

dds_endpoint! {
    lease_ms = 500;
    /// A feed that other gateways receive and publish with `[feed.edges]`.
    pub struct Edge {
        /// The prefix of `_Steps` and `_Snapshots` in the names of the topics.
        pub topics: String = "Market".to_owned(),
        /// The partition. Gateways in different partitions do not communicate.
        pub partition: Option<String> = None,
        /// The name of the feed: its `channel` at the gateways that receive it.
        pub channel: String = String::new(),
        /// The time to wait for a message that one gateway did not deliver and another may, in
        /// milliseconds.
        pub gap_timeout_ms: u64 = 50,
        /// The books, as at the gateways that receive it, which publish its instruments:
        /// `instruments` is not allowed.
        pub book: FeedBook = FeedBook::default(),
    }
}

/// Returns the policies of the steps: no writer waits for a reader that is behind.
fn steps_qos(partition: Option<&str>, instances: u32) -> Qos {
    let qos = Qos::reliable()
        .history(History::KeepLast(WAITING))
        .autodispose(false)
        .resource_limits(None, Some(instances), None);
    partition.iter().fold(qos, |qos, name| qos.partition(name))
}

/// Returns the policies of the snapshots: the last one of each instrument is kept for late joiners.
fn snapshots_qos(partition: Option<&str>, instances: u32) -> Qos {
    let qos = Qos::last_value().instances(instances).autodispose(false);
    partition.iter().fold(qos, |qos, name| qos.partition(name))
}

impl FeedEdges {
    /// Checks the ranges.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let at = "feed.edges";
        check(at, self.domain, self.wait_ms, self.instances, self.lease_ms)?;
        within("feed.edges.snapshots_ms", self.snapshots_ms, 10..=60_000)?;
        check_names(at, &self.topics, self.partition.as_deref())
    }

    pub(crate) fn steps_qos(&self) -> Qos {
        steps_qos(self.partition.as_deref(), self.instances)
    }

    pub(crate) fn snapshots_qos(&self) -> Qos {
        snapshots_qos(self.partition.as_deref(), self.instances)
    }

    pub(crate) fn member(&self) -> Participant<'_> {
        Participant {
            unacknowledged: Some(UNACKNOWLEDGED),
            ..self.participant()
        }
    }
}

impl Edge {
    /// Checks the ranges.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let at = "edge";
        check(at, self.domain, self.wait_ms, self.instances, self.lease_ms)?;
        let is_named = (1..=96).contains(&self.channel.len());
        let rule = "must be the name of a feed, 1 to 96 bytes";
        range("edge.channel", &self.channel, is_named, rule)?;
        within("edge.gap_timeout_ms", self.gap_timeout_ms, 0..=60_000)?;
        self.book.check("edge.book")?;
        if let Some(file) = &self.book.instruments {
            let rule = "is not read: the gateways that receive the feed publish its instruments";
            range("edge.book.instruments", file.display(), false, rule)?;
        }
        check_names(at, &self.topics, self.partition.as_deref())
    }

    pub(crate) fn steps_qos(&self) -> Qos {
        steps_qos(self.partition.as_deref(), self.instances).ignore_own()
    }

    pub(crate) fn snapshots_qos(&self) -> Qos {
        snapshots_qos(self.partition.as_deref(), self.instances).ignore_own()
    }

    pub(crate) fn member(&self) -> Participant<'_> {
        self.participant()
    }

    /// Returns the configuration for following it, as feed `source` of the plant.
    ///
    /// # Errors
    /// Returns an error if levels or orders exceed the limits of a book.
    pub(crate) fn follower(&self, source: u16) -> Result<EdgeConfig, BookError> {
        Ok(EdgeConfig {
            follower: self.book.follower(source, None)?,
            arbiter: ArbiterConfig {
                gap_timeout: self.gap_timeout_ms.saturating_mul(1_000_000),
                max_unit_bytes: LONGEST_PACKET,
                ..ArbiterConfig::default()
            },
        })
    }
}

/// Checks the edges of a configuration. `channels` are the feeds that it receives itself.
pub(crate) fn check_all(edges: &[Edge], channels: &[String]) -> Result<(), ConfigError> {
    for (i, edge) in edges.iter().enumerate() {
        edge.check()?;
        let before = edges.iter().take(i).map(|other| &other.channel);
        let is_first = before.chain(channels).all(|other| *other != edge.channel);
        range(
            "edge.channel",
            &edge.channel,
            is_first,
            "is the channel of another feed",
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::Config;

    #[test]
    fn what_an_edge_cannot_have_is_refused_with_its_name() {
        let edge = |more: &str| {
            let text = format!("[[edge]]\nchannel = \"one\"\n{more}");
            Config::from_toml(&text).map_err(|error| error.to_string())
        };
        edge("[edge.book]\ndepth = 7\n").unwrap();
        for (more, what) in [
            ("gap_timeout_ms = 60001", "`edge.gap_timeout_ms` = 60001"),
            ("topics = \"1\"", "`edge.topics` = 1"),
            ("[edge.book]\ndepth = 0", "`edge.book.depth` = 0"),
            (
                "[edge.book]\nsilence_ms = 86400001",
                "`edge.book.silence_ms` = 86400001",
            ),
            (
                "[edge.book]\ninstruments = \"no.csv\"",
                "`edge.book.instruments` = no.csv: is not read",
            ),
        ] {
            let told = edge(more).unwrap_err();
            assert!(told.contains(what), "{more}: {told}");
        }
    }
}
