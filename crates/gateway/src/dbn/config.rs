//! `[dbn]`: a port for clients of DBN's live protocol.

use crate::config::error::{ConfigError, NEEDS_MARKET, range, within};
use crate::ports::config::networks;
use fanfare_engine::host::Network;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The default port of clients.
const PORT: u16 = 13_000;

/// A port for clients of DBN's live protocol.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DbnConfig {
    /// The address to listen on, by default loopback.
    pub bind: IpAddr,
    /// The port. With 0, the kernel picks one, which is then printed.
    pub port: u16,
    /// The name of the dataset, 1 to 15 characters.
    pub dataset: String,
    /// Whether clients need no key.
    pub open: bool,
    /// The networks that may connect. If empty, all may.
    #[serde(deserialize_with = "networks")]
    pub allow: Vec<Network>,
    /// The most concurrent connections, authenticated or not.
    pub max_clients: usize,
    /// The longest line of a client, in bytes.
    pub request_bytes: usize,
    /// The most bytes that are queued for one client beyond those its socket accepted.
    pub queue_bytes: usize,
    /// The seconds without a record until a heartbeat is sent, unless the client requests another
    /// interval.
    pub heartbeat_s: u64,
    /// The seconds that a connection has to authenticate.
    pub auth_timeout_s: u64,
    /// The seconds that an authenticated client has to start its session.
    pub start_timeout_s: u64,
    /// The seconds after which a client is closed whose socket accepts none of the queued bytes.
    pub stall_timeout_s: u64,
}

impl Default for DbnConfig {
    fn default() -> Self {
        Self {
            bind: Ipv4Addr::LOCALHOST.into(),
            port: PORT,
            dataset: "FANFARE".to_owned(),
            open: false,
            allow: Vec::new(),
            max_clients: 1_000,
            request_bytes: 1 << 16,
            queue_bytes: 4 << 20,
            heartbeat_s: 30,
            auth_timeout_s: 10,
            start_timeout_s: 3_600,
            stall_timeout_s: 60,
        }
    }
}

impl DbnConfig {
    /// Returns the address to listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind, self.port)
    }

    /// Returns whether clients need no key, given whether users are configured.
    pub(crate) const fn takes_strangers(&self, has_users: bool) -> bool {
        self.open || self.bind.is_loopback() && !has_users
    }

    pub(crate) fn check(&self, has_users: bool, has_market: bool) -> Result<(), ConfigError> {
        range("dbn", "…", has_market, NEEDS_MARKET)?;
        let has_door = self.bind.is_loopback() || self.open || has_users;
        let rule = "is reachable from other machines: needs users (`users`, `[[user]]`), or \
            `open = true`, which admits every client";
        range("dbn.bind", self.bind, has_door, rule)?;
        let name = &self.dataset;
        let is_plain =
            |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        let fits = (1..=15).contains(&name.len()) && name.bytes().all(is_plain);
        let rule = "must be 1 to 15 letters, digits, `.`, `-` and `_`";
        range("dbn.dataset", name, fits, rule)?;
        within("dbn.max_clients", self.max_clients, 1..=100_000)?;
        within("dbn.request_bytes", self.request_bytes, 256..=1 << 24)?;
        within("dbn.queue_bytes", self.queue_bytes, 1 << 12..=1 << 30)?;
        within("dbn.heartbeat_s", self.heartbeat_s, 1..=1_800)?;
        within("dbn.auth_timeout_s", self.auth_timeout_s, 1..=600)?;
        within("dbn.start_timeout_s", self.start_timeout_s, 1..=86_400)?;
        within("dbn.stall_timeout_s", self.stall_timeout_s, 1..=3_600)
    }
}
