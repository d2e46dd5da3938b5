//! `[console]`: metrics and the control interface over HTTP.

use crate::config::error::{ConfigError, range, within};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The default port.
const PORT: u16 = 9_464;

/// The HTTP console: `/metrics`, the API and the page. The program serves it, the gateway itself
/// does not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsoleConfig {
    /// The address to listen on, by default loopback.
    pub bind: IpAddr,
    /// The port. With 0, the kernel picks one, which is then printed.
    pub port: u16,
    /// A file of one line with the token that requests carry, read again at a reload. Without it,
    /// commands that change state are refused, and only loopback may read.
    pub token_file: Option<PathBuf>,
    /// A Unix socket at which the user of the process needs no token.
    pub socket: Option<PathBuf>,
    /// The TLS of all connections but those of the Unix socket.
    pub tls: Option<ConsoleTls>,
    /// The most concurrent connections of the port.
    pub connections: usize,
}

/// The TLS of a console: PEM files, read again at a reload.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleTls {
    /// The server certificate, followed by the chain to the root.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
}

impl Default for ConsoleConfig {
    fn default() -> Self {
        Self {
            bind: Ipv4Addr::LOCALHOST.into(),
            port: PORT,
            token_file: None,
            socket: None,
            tls: None,
            connections: 64,
        }
    }
}

impl ConsoleConfig {
    /// Returns the address to listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind, self.port)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let has_door = self.bind.is_loopback() || self.token_file.is_some();
        let rule = "is reachable from other machines: needs a `token_file`";
        range("console.bind", self.bind, has_door, rule)?;
        within("console.connections", self.connections, 1..=10_000)
    }
}
