//! The tables `[producers]` and `[consumers]` of the configuration.

use fanfare_engine::host::{ClientNames, Network, PortOptions};
use fanfare_engine::tls::{Identity, TlsError, TlsServer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// A port on which the gateway listens. In a file, every key has a default.
#[derive(Debug, Clone, PartialEq)]
pub struct PortConfig {
    /// The address to listen on, by default loopback.
    pub bind: IpAddr,
    /// The port. With 0, the kernel picks one, which is then printed.
    pub port: u16,
    /// The sessions that may log on. If empty, any pair of CompIDs may.
    pub sessions: Vec<Pair>,
    /// The most concurrent connections, logged on or not.
    pub max_sessions: usize,
    /// The networks that may connect. If empty, all may.
    pub allow: Vec<Network>,
    /// The TLS of all connections.
    pub tls: Option<PortTls>,
    /// Whether sessions without a user may log on.
    pub open: bool,
}

/// The TLS of a port: PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortTls {
    /// The server certificate, followed by the chain to the root.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// The authorities that client certificates must come from. If absent, clients are not asked
    /// for a certificate.
    pub client_ca: Option<PathBuf>,
    /// Whether a client's certificate must name its CompID.
    #[serde(default = "yes")]
    pub check_client_name: bool,
}

/// A counterparty as it names itself in its Logon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// `SenderCompID(49)` of the Logon.
    pub sender: String,
    /// `TargetCompID(56)` of the Logon: the gateway's CompID.
    pub target: String,
}

/// The longest CompID of a configuration, in bytes.
const LONGEST_COMP_ID: usize = 96;
/// The rule of the CompIDs of a [`Pair`].
pub(crate) const COMP_IDS: &str = "the CompIDs must have 1 to 96 printable characters";

impl Pair {
    /// Returns whether a Logon(A) can have these CompIDs.
    pub(crate) fn is_possible(&self) -> bool {
        [&self.sender, &self.target].into_iter().all(|id| {
            (1..=LONGEST_COMP_ID).contains(&id.len()) && !id.chars().any(char::is_control)
        })
    }
}

/// A [`PortConfig`] in a file, whose absent keys have the port's own defaults.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PortTable {
    bind: Option<IpAddr>,
    port: Option<u16>,
    sessions: Option<Vec<Pair>>,
    max_sessions: Option<usize>,
    #[serde(default, deserialize_with = "networks")]
    allow: Vec<Network>,
    tls: Option<PortTls>,
    #[serde(default)]
    open: bool,
}

impl PortTable {
    fn over(self, absent: PortConfig) -> PortConfig {
        PortConfig {
            bind: self.bind.unwrap_or(absent.bind),
            port: self.port.unwrap_or(absent.port),
            sessions: self.sessions.unwrap_or(absent.sessions),
            max_sessions: self.max_sessions.unwrap_or(absent.max_sessions),
            allow: self.allow,
            tls: self.tls,
            open: self.open,
        }
    }
}

pub(crate) fn producers<'de, D: Deserializer<'de>>(table: D) -> Result<PortConfig, D::Error> {
    Ok(PortTable::deserialize(table)?.over(PortConfig::on_port(PRODUCERS)))
}

pub(crate) fn consumers<'de, D: Deserializer<'de>>(table: D) -> Result<PortConfig, D::Error> {
    Ok(PortTable::deserialize(table)?.over(PortConfig::on_port(CONSUMERS)))
}

/// Reads networks from their texts.
pub(crate) fn networks<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<Network>, D::Error> {
    let list = Vec::<String>::deserialize(list)?;
    let networks = list.iter().map(|text| text.parse());
    networks.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// The default ports of the producers and of the consumers.
pub(crate) const PRODUCERS: u16 = 3000;
pub(crate) const CONSUMERS: u16 = 3001;

/// The default of the most concurrent connections.
const MAX_SESSIONS: usize = 4096;

const fn yes() -> bool {
    true
}

impl PortConfig {
    /// Returns the configuration of a port on loopback, for any CompIDs, in plain text.
    #[must_use]
    pub fn on_port(port: u16) -> Self {
        Self {
            bind: Ipv4Addr::LOCALHOST.into(),
            port,
            sessions: Vec::new(),
            max_sessions: MAX_SESSIONS,
            allow: Vec::new(),
            tls: None,
            open: false,
        }
    }

    /// Returns the address to listen on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind, self.port)
    }

    /// Returns whether sessions without a user may log on, given whether users are configured.
    pub(crate) const fn takes_strangers(&self, has_users: bool) -> bool {
        self.open || self.bind.is_loopback() && !has_users
    }

    /// Returns which certificates admit a client to its session.
    pub(crate) fn client_names(&self) -> ClientNames {
        match &self.tls {
            Some(tls) if !tls.check_client_name => ClientNames::Any,
            _ => ClientNames::CompId,
        }
    }

    /// Reads the certificates.
    pub(crate) fn tls_server(&self) -> Result<Option<TlsServer>, TlsError> {
        let server = |tls: &PortTls| {
            let identity = Identity {
                certificates: tls.certificate.clone(),
                key: tls.key.clone(),
            };
            TlsServer::new(&identity, tls.client_ca.as_deref())
        };
        self.tls.as_ref().map(server).transpose()
    }

    /// Returns whether another configuration names the same files of certificates.
    pub(crate) fn has_certificates_of(&self, other: &Self) -> bool {
        let files = |tls: &PortTls| {
            let client_ca = tls.client_ca.clone();
            (tls.certificate.clone(), tls.key.clone(), client_ca)
        };
        self.tls.as_ref().map(files) == other.tls.as_ref().map(files)
    }

    pub(crate) fn options(&self, tls: Option<TlsServer>) -> PortOptions {
        let mut options = PortOptions::new();
        options.allow.0.clone_from(&self.allow);
        match tls {
            Some(tls) => options.tls(tls),
            None => options,
        }
    }
}
