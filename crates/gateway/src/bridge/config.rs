//! The `[bus]` part of the configuration.

use crate::config::{ConfigError, range};
use fanfare_bus::{Domain, DomainConfig, Durability, Error, History, Qos, Reliability, Transport};
use serde::Deserialize;
use std::time::Duration;

/// FIX messages over the bus, to other gateways and from them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Bus {
    /// Where messages of this gateway's own sources are published.
    pub publish: Option<BusEnd>,
    /// Where messages of other gateways are subscribed to; they go to the consumers.
    pub subscribe: Option<BusEnd>,
    /// Whether what is subscribed to is published too, under its first gateway's name: a link
    /// between two domains. What has been here before is dropped, so a ring of gateways is none.
    pub relay: bool,
}

/// One side: a domain, and the topics in it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BusEnd {
    /// Domain id, 0 to 232.
    pub domain: u32,
    /// Network interface, by name or address.
    pub interface: String,
    /// What carries the samples.
    pub transport: BusTransport,
    /// Other hosts with participants, ADDRESS or ADDRESS:PORT.
    pub peers: Vec<String>,
    /// With tcp, the port to listen on; 0: the system chooses.
    pub tcp_port: u16,
    /// What stands in front of `_` and MsgType(35) in the names of topics.
    pub topics: String,
    /// The partition; gateways in different ones do not hear each other.
    pub partition: Option<String>,
    /// MsgType(35) of the messages that go over the bus; others do not.
    pub msg_types: Vec<String>,
    /// How samples are delivered.
    pub qos: BusQos,
    /// Milliseconds that a reliable publisher waits for a subscriber that has not acknowledged
    /// what is under way; then the message is left out, and counted.
    pub wait_ms: u64,
}

/// What carries samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BusTransport {
    /// UDP unicast.
    Udp,
    /// TCP.
    Tcp,
    /// UDP multicast.
    Mcast,
}

/// How samples are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BusQos {
    /// Lost packets are sent again.
    Reliable,
    /// Lost packets are lost.
    BestEffort,
    /// Reliable, and who comes late gets the last message of each Symbol(55).
    LastValue,
}

/// How to join a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Participant<'a> {
    pub(crate) domain: u32,
    pub(crate) interface: &'a str,
    pub(crate) transport: BusTransport,
    pub(crate) peers: &'a [String],
    pub(crate) tcp_port: u16,
}

impl Participant<'_> {
    pub(crate) fn open(self) -> Result<Domain, Error> {
        let transport = match self.transport {
            BusTransport::Udp => Transport::Udp,
            BusTransport::Tcp => Transport::Tcp,
            BusTransport::Mcast => Transport::Multicast,
        };
        let config = DomainConfig::new(self.domain)
            .interface(self.interface)
            .transport(transport)
            .tcp_port(self.tcp_port);
        Domain::open(&self.peers.iter().fold(config, |c, peer| c.peer(peer)))
    }
}

/// Samples that a reader keeps until the gateway takes them.
pub(crate) const READER_SAMPLES: u32 = 8_192;

/// Most topics of one side.
const MOST_TYPES: usize = 64;

impl Default for BusEnd {
    fn default() -> Self {
        Self {
            domain: 0,
            interface: "127.0.0.1".to_owned(),
            transport: BusTransport::Udp,
            peers: Vec::new(),
            tcp_port: 0,
            topics: "Fix".to_owned(),
            partition: None,
            msg_types: ["W", "X", "d", "f", "h"].map(str::to_owned).to_vec(),
            qos: BusQos::Reliable,
            wait_ms: 100,
        }
    }
}

impl Bus {
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let both = self.publish.is_some() && self.subscribe.is_some();
        range(
            "bus.relay",
            self.relay,
            both || !self.relay,
            "needs [bus.publish] and [bus.subscribe]",
        )?;
        for end in [&self.publish, &self.subscribe].into_iter().flatten() {
            end.check()?;
        }
        Ok(())
    }
}

impl BusEnd {
    fn check(&self) -> Result<(), ConfigError> {
        let id = self.domain;
        range("bus domain", id, id <= 232, "must be 0 to 232")?;
        let count = self.msg_types.len();
        range(
            "bus msg_types",
            count,
            (1..=MOST_TYPES).contains(&count),
            "must be 1 to 64 types",
        )?;
        for (i, t) in self.msg_types.iter().enumerate() {
            let plain = t.bytes().all(|b| b.is_ascii_alphanumeric());
            let fits = plain && (1..=8).contains(&t.len());
            range(
                "bus msg_types",
                t,
                fits,
                "must be 1 to 8 letters and digits",
            )?;
            let session = ["0", "1", "2", "3", "4", "5", "A"].contains(&t.as_str());
            range(
                "bus msg_types",
                t,
                !session,
                "is a message of the session: it does not leave it",
            )?;
            let first = !self.msg_types.iter().take(i).any(|other| other == t);
            range("bus msg_types", t, first, "is there twice")?;
        }
        let name = &self.topics;
        let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
        let rest = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        range(
            "bus topics",
            name,
            starts && rest && name.len() <= 64,
            "must be letters, digits and _, at most 64, a letter first",
        )?;
        let wait = self.wait_ms;
        range("bus wait_ms", wait, wait <= 10_000, "must be 0 to 10000")
    }

    pub(crate) fn participant(&self) -> Participant<'_> {
        Participant {
            domain: self.domain,
            interface: &self.interface,
            transport: self.transport,
            peers: &self.peers,
            tcp_port: self.tcp_port,
        }
    }

    /// Whether both are the same participant's topics.
    pub(crate) fn shares_domain(&self, other: &Self) -> bool {
        self.participant() == other.participant()
    }

    /// The policies of writers and readers alike. A reader keeps what its gateway has not taken
    /// yet: up to 8,192 messages, and then a reliable writer waits for it.
    pub(crate) fn qos(&self) -> Qos {
        let reliable = Reliability::Reliable(Duration::from_millis(self.wait_ms));
        let qos = match self.qos {
            BusQos::Reliable => Qos::reliable().reliability(reliable),
            BusQos::BestEffort => Qos::best_effort(),
            BusQos::LastValue => Qos::last_value().reliability(reliable),
        };
        let partition = self.partition.iter();
        partition.fold(qos, |qos, name| qos.partition(name))
    }

    /// As `qos`, for a reader: it keeps more than the last value, which may not be taken yet, but
    /// never more than is taken in one go.
    pub(crate) fn reader_qos(&self) -> Qos {
        let limit = Some(READER_SAMPLES);
        let qos = self.qos().ignore_own().resource_limits(limit, None, None);
        match self.qos {
            BusQos::LastValue => qos
                .history(History::KeepLast(1_024))
                .durability(Durability::TransientLocal),
            _ => qos,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Config;

    fn told(text: &str) -> String {
        Config::from_toml(text).unwrap_err().to_string()
    }

    #[test]
    fn both_sides_have_defaults_and_values_of_their_own() {
        let text = "[bus]\nrelay = true\n[bus.publish]\ndomain = 5\n\
                    [bus.subscribe]\nqos = \"last-value\"\npartition = \"paris\"\n";
        let bus = Config::from_toml(text).unwrap().bus;
        let (publish, subscribe) = (bus.publish.unwrap(), bus.subscribe.unwrap());
        assert_eq!((publish.domain, subscribe.domain), (5, 0));
        assert_eq!(publish.qos, BusQos::Reliable);
        assert_eq!(subscribe.partition.as_deref(), Some("paris"));
        assert!(!publish.shares_domain(&subscribe));
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_name() {
        for (text, what) in [
            ("[bus]\nrelay = true", "bus.relay"),
            ("[bus.publish]\ndomain = 233", "bus domain"),
            ("[bus.publish]\nmsg_types = []", "bus msg_types"),
            ("[bus.publish]\nmsg_types = [\"W\", \"W\"]", "there twice"),
            (
                "[bus.publish]\nmsg_types = [\"A\"]",
                "message of the session",
            ),
            ("[bus.publish]\nmsg_types = [\"W/\"]", "letters and digits"),
            ("[bus.publish]\ntopics = \"1 x\"", "bus topics"),
            ("[bus.publish]\nwait_ms = 60000", "bus wait_ms"),
            ("[bus.publish]\n\nqos = \"fast\"", "line 3"),
            ("[bus.publish]\ndomian = 3", "domian"),
        ] {
            let told = told(text);
            assert!(told.contains(what), "{text}: {told}");
        }
    }
}
