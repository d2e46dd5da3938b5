//! The settings that every direction on DDS has: the domain that it joins, and the transport of
//! samples.

use super::ack_wait::slice;
use crate::config::error::{ConfigError, range, within};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reliability, Transport};
use serde::Deserialize;
use std::time::Duration;

/// The transport of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DdsTransport {
    /// UDP unicast.
    Udp,
    /// TCP.
    Tcp,
    /// UDP multicast.
    Mcast,
}

/// The delivery of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DdsQos {
    /// Lost packets are retransmitted.
    Reliable,
    /// Lost packets are not retransmitted.
    BestEffort,
    /// Reliable, and a subscriber that joins late, such as a gateway, receives the last message of
    /// each Symbol(55).
    LastValue,
}

/// The settings for joining a domain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Participant<'a> {
    pub(crate) domain: u32,
    pub(crate) interface: &'a str,
    pub(crate) transport: DdsTransport,
    pub(crate) peers: &'a [String],
    pub(crate) tcp_port: u16,
    pub(crate) lease_ms: u64,
    /// The bytes sent ahead of the slowest subscriber's acknowledgement, or `None` for the default
    /// of DDS.
    pub(crate) unacknowledged: Option<usize>,
}

/// The default lease of a participant, which is that of Cyclone DDS, in milliseconds.
pub(crate) const LEASE_MS: u64 = 10_000;

impl DdsQos {
    /// Returns the policies of a topic with up to `instances` keys. If they are reliable, a call of
    /// a writer blocks for a slice of `wait_ms`, and [`AckWait`](super::ack_wait::AckWait) calls
    /// again.
    pub(crate) fn policies(self, wait_ms: u64, instances: u32) -> Qos {
        let reliable = Reliability::Reliable(slice(wait_ms));
        // A subscriber can tell a symbol that has ended from a gateway that is gone.
        let qos = match self {
            Self::Reliable => Qos::reliable().reliability(reliable),
            Self::BestEffort => Qos::best_effort(),
            Self::LastValue => Qos::last_value().reliability(reliable),
        };
        qos.instances(instances).autodispose(false)
    }
}

impl Participant<'_> {
    pub(crate) fn open(self) -> Result<Domain, Error> {
        let transport = match self.transport {
            DdsTransport::Udp => Transport::Udp,
            DdsTransport::Tcp => Transport::Tcp,
            DdsTransport::Mcast => Transport::Multicast,
        };
        let config = DomainConfig::new(self.domain);
        Domain::open(&DomainConfig {
            lease: Some(Duration::from_millis(self.lease_ms)),
            unacknowledged: self.unacknowledged.unwrap_or(config.unacknowledged),
            interface: self.interface.to_owned(),
            transport,
            peers: self.peers.to_vec(),
            tcp_port: self.tcp_port,
            // Publishers wait for acknowledgements before, no longer than a stop may take.
            linger: Duration::ZERO,
            ..config
        })
    }
}

/// Checks the ranges of the keys that every direction has. `at` is the name of the table.
pub(crate) fn check(
    at: &str,
    domain: u32,
    wait_ms: u64,
    instances: u32,
    lease_ms: u64,
) -> Result<(), ConfigError> {
    within(format!("{at}.lease_ms"), lease_ms, 100..=600_000)?;
    let some = instances > 0;
    range(
        format!("{at}.instances"),
        instances,
        some,
        "must be at least 1",
    )?;
    within(format!("{at}.domain"), domain, 0..=232)?;
    within(format!("{at}.wait_ms"), wait_ms, 0..=10_000)
}

/// Checks the prefix of the names of topics, and the partition. `at` is the name of the table.
pub(crate) fn check_names(
    at: &str,
    name: &str,
    partition: Option<&str>,
) -> Result<(), ConfigError> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let rest = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    range(
        format!("{at}.topics"),
        name,
        starts && rest && name.len() <= 64,
        "must be 1 to 64 letters, digits and `_`, the first a letter",
    )?;
    let partition = partition.unwrap_or_default();
    range(
        format!("{at}.partition"),
        partition.escape_debug(),
        partition.len() <= 256 && !partition.contains('\0'),
        "must be at most 256 bytes without a NUL",
    )
}

/// Declares the table of a direction: the keys that every direction has, then its own with their
/// defaults. It is a macro because `serde(flatten)` of a shared struct would lose the line in the
/// error of an unknown key or a wrong value.
macro_rules! dds_endpoint {
    (
        lease_ms = $lease:expr;
        $(#[$about:meta])*
        pub struct $name:ident {
            $( $(#[$doc:meta])* pub $field:ident: $type:ty = $default:expr, )*
        }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct $name {
            /// The domain id, from 0 to 232.
            pub domain: u32,
            /// The network interface, by name or address.
            pub interface: String,
            /// The transport of the samples.
            pub transport: DdsTransport,
            /// Other hosts with participants, ADDRESS or ADDRESS:PORT.
            pub peers: Vec<String>,
            /// The port to listen on with tcp. With 0, the system chooses.
            pub tcp_port: u16,
            /// The milliseconds, from 0 to 10,000, that a reliable write waits for a subscriber
            /// that has not acknowledged earlier samples. Then the message is dropped, and counted.
            pub wait_ms: u64,
            /// The keys that a topic may have, at least 1, each of at most 1,024 bytes in CDR. A
            /// publisher drops and counts messages with further keys, or with a longer one. A
            /// subscriber leaves a topic with more keys or a longer one, and keeps the others.
            pub instances: u32,
            /// The milliseconds of silence, from 100 to 600,000, after which the other participants
            /// consider this process gone, with all of its writers and readers. It bounds how soon
            /// a killed process or machine is detected.
            pub lease_ms: u64,
            $( $(#[$doc])* pub $field: $type, )*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    domain: 0,
                    interface: "127.0.0.1".to_owned(),
                    transport: DdsTransport::Udp,
                    peers: Vec::new(),
                    tcp_port: 0,
                    wait_ms: 100,
                    instances: fanfare_dds::INSTANCES,
                    lease_ms: $lease,
                    $( $field: $default, )*
                }
            }
        }

        impl $name {
            pub(crate) fn participant(&self) -> Participant<'_> {
                Participant {
                    domain: self.domain,
                    interface: &self.interface,
                    transport: self.transport,
                    peers: &self.peers,
                    tcp_port: self.tcp_port,
                    lease_ms: self.lease_ms,
                    unacknowledged: None,
                }
            }
        }
    };
}

pub(crate) use dds_endpoint;
