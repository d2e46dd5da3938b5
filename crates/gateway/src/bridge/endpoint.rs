//! What every side on DDS is told first: which domain it joins, and how samples go.

use super::patience::slice;
use crate::config_error::{ConfigError, range, within};
use fanfare_dds::{Domain, DomainConfig, Error, Qos, Reliability, Transport};
use serde::Deserialize;
use std::time::Duration;

/// What carries samples.
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

/// How samples are delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DdsQos {
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
    pub(crate) transport: DdsTransport,
    pub(crate) peers: &'a [String],
    pub(crate) tcp_port: u16,
    pub(crate) lease_ms: u64,
    /// Bytes sent ahead of the slowest subscriber's acknowledgement; `None`: as DDS has it.
    pub(crate) unacknowledged: Option<usize>,
}

/// The lease of a participant unless told otherwise, as Cyclone DDS has it, in milliseconds.
pub(crate) const LEASE_MS: u64 = 10_000;

impl DdsQos {
    /// The policies of a topic with up to `instances` keys. Where they are reliable, a call of a
    /// writer waits a slice of `wait_ms` for a subscriber, and
    /// [`Patience`](super::patience::Patience) calls again.
    pub(crate) fn policies(self, wait_ms: u64, instances: u32) -> Qos {
        let reliable = Reliability::Reliable(slice(wait_ms));
        let qos = match self {
            Self::Reliable => Qos::reliable().reliability(reliable),
            Self::BestEffort => Qos::best_effort(),
            Self::LastValue => Qos::last_value().reliability(reliable),
        };
        qos.instances(instances)
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
            // Publishers wait for acknowledgements before: no longer than a stop may take.
            linger: Duration::ZERO,
            ..config
        })
    }
}

/// Checks the ranges of the keys that every side has; `at` is its table.
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

/// Checks what stands in front of the names of topics; `at` is the table.
pub(crate) fn check_topics(at: &str, name: &str) -> Result<(), ConfigError> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let rest = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    range(
        format!("{at}.topics"),
        name,
        starts && rest && name.len() <= 64,
        "must be letters, digits and _, at most 64, a letter first",
    )
}

/// Declares the table of a side: the keys that every side has, then its own with their defaults.
/// A macro, because `serde(flatten)` of a shared struct would cost the line in the error of an
/// unknown key or a wrong value.
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
            /// Domain id, 0 to 232.
            pub domain: u32,
            /// Network interface, by name or address.
            pub interface: String,
            /// What carries the samples.
            pub transport: DdsTransport,
            /// Other hosts with participants, ADDRESS or ADDRESS:PORT.
            pub peers: Vec<String>,
            /// With tcp, the port to listen on; 0: the system chooses.
            pub tcp_port: u16,
            /// Milliseconds, 0 to 10,000, that a reliable write waits for a subscriber that has
            /// not acknowledged what is under way; then the message is left out, and counted.
            pub wait_ms: u64,
            /// Keys that a topic may have, at least 1. To publish: what has another is left out,
            /// and counted. To subscribe: a topic with more is left, and the others go on.
            pub instances: u32,
            /// Milliseconds, 100 to 600,000, of silence of this process after which the others take
            /// it to be gone, with all that it writes and reads: how soon the end of a process that
            /// was killed, or of its machine, is known.
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
