//! The tables `[producers]` and `[consumers]` of the configuration.

use fanfare_engine::host::{ClientNames, Network, PortOptions};
use fanfare_engine::tls::{Identity, TlsError, TlsServer};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

/// A port on which the gateway listens. In a file every key has a default.
#[derive(Debug, Clone, PartialEq)]
pub struct PortConfig {
    /// Address to listen on; loopback unless told otherwise.
    pub bind: IpAddr,
    /// Port; 0 lets the kernel pick one, which is then printed.
    pub port: u16,
    /// Sessions that may log on; empty means any pair of CompIDs.
    pub sessions: Vec<Pair>,
    /// Most connections at a time, logged on or not.
    pub max_sessions: usize,
    /// Networks that may connect; empty means all.
    pub allow: Vec<Network>,
    /// Encrypts all connections.
    pub tls: Option<PortTls>,
    /// Whether sessions of no user may log on.
    pub open: bool,
}

/// The TLS of a port: PEM files.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortTls {
    /// Our certificate, and behind it those that lead to the root.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Where a client's certificate has to come from; without it, clients are asked for none.
    pub client_ca: Option<PathBuf>,
    /// Whether a client's certificate has to name its CompID.
    #[serde(default = "yes")]
    pub check_client_name: bool,
}

/// A counterparty as it names itself in its Logon.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// `SenderCompID(49)` of the Logon.
    pub sender: String,
    /// `TargetCompID(56)` of the Logon: our side's name.
    pub target: String,
}

/// A [`PortConfig`] in a file: what is absent has the port's own default.
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

fn networks<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<Network>, D::Error> {
    let list = Vec::<String>::deserialize(list)?;
    let networks = list.iter().map(|text| text.parse());
    networks.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// The ports of the two sides.
pub(crate) const PRODUCERS: u16 = 3000;
pub(crate) const CONSUMERS: u16 = 3001;

const MAX_SESSIONS: usize = 4096;

const fn yes() -> bool {
    true
}

impl PortConfig {
    /// Loopback, any CompIDs, plain text.
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

    /// Where to listen.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.bind, self.port)
    }

    /// Whether sessions of no user may log on, given whether users are configured.
    pub(crate) const fn takes_strangers(&self, has_users: bool) -> bool {
        self.open || self.bind.is_loopback() && !has_users
    }

    /// Which certificates admit a client to its session.
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

    pub(crate) fn options(&self, tls: Option<TlsServer>) -> PortOptions {
        let mut options = PortOptions::new();
        options.allow.0.clone_from(&self.allow);
        match tls {
            Some(tls) => options.tls(tls),
            None => options,
        }
    }
}
