//! `[console]`: metrics and the control interface over HTTP.

use crate::config_error::{ConfigError, range, within};
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// The port unless the file names another.
const PORT: u16 = 9_464;

/// Where whoever runs the gateway serves `/metrics`, the HTTP API and the page; the gateway itself
/// does not.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ConsoleConfig {
    /// Address to listen on; loopback unless told otherwise.
    pub bind: IpAddr,
    /// Port; 0 lets the kernel pick one, which is then printed.
    pub port: u16,
    /// A file of one line: the secret that requests bring. Without it nobody can steer, and only
    /// loopback can look.
    pub token_file: Option<PathBuf>,
    /// A Unix socket that is another way in, for this user alone: without the token.
    pub socket: Option<PathBuf>,
    /// Encrypts all connections but those of the Unix socket.
    pub tls: Option<ConsoleTls>,
    /// Connections at a time.
    pub connections: usize,
}

/// The TLS of a console: PEM files, which are read again at a reload.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleTls {
    /// Our certificate, and behind it those that lead to the root.
    pub certificate: PathBuf,
    /// Its private key.
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
    /// Where to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind, self.port)
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let has_door = self.bind.is_loopback() || self.token_file.is_some();
        let rule = "other machines reach it: there must be a `token_file`";
        range("console.bind", self.bind, has_door, rule)?;
        within("console.connections", self.connections, 1..=10_000)
    }
}
