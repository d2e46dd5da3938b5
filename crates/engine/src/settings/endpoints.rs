//! Ports and initiators made from the sessions of a settings file.

use super::dictionaries::{DictionaryError, DictionaryFiles, read_dictionary};
use super::session::{PortLimits, SessionSettings, longest_sent};
use super::tls::{ClientTlsFiles, TlsFiles};
use crate::agent::{self, AgentError, Crew, CrewError};
use crate::counters::Counters;
#[cfg(feature = "tls")]
use crate::host::Encrypt;
use crate::host::{
    Acceptor, AcceptorSession, AllowList, Handler, Host, HostError, Initiator, LogOptions, LogTap,
    MessageLog, StoreKind, Wildcard,
};
use crate::idle::Idle;
use crate::limits::raise_open_files;
use crate::private;
use crate::rotate::Rotation;
use crate::stop::Stop;
use crate::tcp::NamedHost;
#[cfg(feature = "tls")]
use crate::tls::{Identity, TlsClient, TlsError, TlsServer, out_of_time};
use fanfare_fix::dict::DictionaryValidator;
use fanfare_fix::session::{Config, Role, SessionId, Validator};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;

/// The ports and initiators of a settings file, with their sessions. Dictionaries and certificates
/// are loaded and addresses resolved; no port is bound, and no store is open yet.
///
/// A program that runs a settings file:
///
/// ```no_run
/// use fanfare_engine::host::{Handler, Peer};
/// use fanfare_engine::{idle::Idle, settings::Settings, stop::Stop};
/// use fanfare_fix::session::AppMessage;
///
/// struct Exchange;
///
/// impl Handler for Exchange {
///     fn on_message(&mut self, peer: &mut Peer<'_>, message: &AppMessage<'_>) {
///         println!("{}: {:?}", peer.id(), message.message);
///     }
/// }
///
/// let text = std::fs::read_to_string("exchange.cfg")?;
/// let endpoints = Settings::parse(&text)?.endpoints()?;
/// endpoints.run(Exchange, Idle::BackOff, &Stop::on_interrupt()?)?;
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
#[derive(Debug, Default)]
pub struct Endpoints {
    /// The ports, by address, with their sessions and templates; the tag of a template is the line
    /// of its section.
    pub acceptors: Vec<Acceptor>,
    /// The initiators, in the order of the file.
    pub initiators: Vec<Initiator>,
    /// The certificates that can be [reloaded](Certificates::reload).
    #[cfg(feature = "tls")]
    pub certificates: Vec<Certificates>,
    /// The folder of the message log: one for all sessions, in the first folder that one of them
    /// names.
    pub log: Option<PathBuf>,
    /// Whether the message log leaves out bytes when its ring is full.
    pub lossy_log: bool,
    /// The rotation of the message log, as the first session with a log has it.
    pub log_rotation: Rotation,
    /// Deviations from the file, hosts without an address and folders of further logs, and
    /// dictionaries of another version than their messages.
    pub remarks: Vec<String>,
}

/// The reason why the sessions of a settings file cannot be run.
#[derive(Debug, Error)]
pub enum EndpointsError {
    /// A dictionary cannot be used.
    #[error("session {session}")]
    Dictionary {
        /// The session that names it.
        session: SessionId,
        /// The reason.
        source: Box<DictionaryError>,
    },
    /// None of the hosts of a session has an address.
    #[error("session {0}: none of its hosts resolves to an address")]
    NoAddress(SessionId),
    /// The hosts of a session have no address of the family of its SocketLocalHost.
    #[error(
        "session {0}: none of its hosts has an address that can be reached from \
         SocketLocalHost={1}: one is of IPv4, the other of IPv6"
    )]
    OtherFamily(SessionId, IpAddr),
    /// The sessions of a port have different settings of TLS.
    #[error("all sessions on {0} need the same certificate files and NeedClientAuth, or none")]
    TlsDiffers(SocketAddr),
    /// The sessions of a port have different limits.
    #[error(
        "all sessions on {0} need the same MaxLogonLength, MaxConnectionsNotLoggedOn and \
         MaxConnectionsNotLoggedOnPerAddress: set them in [DEFAULT]"
    )]
    LimitsDiffer(SocketAddr),
    /// The sessions of a port have different options of sockets.
    #[error(
        "all sessions on {0} need the same SocketSendBufferSize, SocketReceiveBufferSize, \
         SocketTrafficClass and SocketKeepAlive: set them in [DEFAULT]"
    )]
    SocketsDiffer(SocketAddr),
    /// Certificates cannot be used.
    #[cfg(feature = "tls")]
    #[error("{of}")]
    Tls {
        /// The port or session that they are for.
        of: String,
        /// The reason.
        source: TlsError,
    },
    /// The crate was built without its feature `tls`.
    #[cfg(not(feature = "tls"))]
    #[error("{0}: this program is built without TLS")]
    NoTls(String),
    /// The message log cannot be written.
    #[error("cannot write a message log in {}", folder.display())]
    Log {
        /// Its folder.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A port cannot be bound, or a store cannot be opened.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// Descriptors of the process itself.
const SPARE_DESCRIPTORS: usize = 100;
/// Longest sleep of the thread that writes the message log.
const NAP: Duration = Duration::from_millis(20);

impl Endpoints {
    /// Loads the dictionaries and certificates of these sessions, and resolves the addresses of
    /// their hosts, which may take time.
    ///
    /// # Errors
    /// See [`EndpointsError`].
    pub fn of(sessions: Vec<SessionSettings>) -> Result<Self, EndpointsError> {
        let mut all = Self::default();
        all.find_log(&sessions);
        let mut ports = BTreeMap::new();
        let mut loaded = Vec::new();
        for mut settings in sessions {
            let config = &mut settings.config;
            config.max_send = longest_sent(config);
            if let Some(files) = &settings.dictionaries {
                let dictionaries = load(files, &config.id, &mut all.remarks, &mut loaded)?;
                config.data_fields = dictionaries.data_fields();
                let outgoing = files.outgoing.then(|| dictionaries.clone());
                config.outgoing_validator = outgoing.map(validator);
                // Without checks, messages still have the groups of the dictionaries.
                config.validator = Some(validator(match files.incoming {
                    true => dictionaries,
                    false => dictionaries.without_checks(),
                }));
            }
            match (settings.role, settings.listen) {
                (Role::Acceptor, Some(listen)) => all.accept(&mut ports, listen, settings)?,
                (Role::Acceptor, None) => {}
                (Role::Initiator, _) => all.initiate(settings)?,
            }
        }
        all.acceptors = ports.into_values().map(|port| port.acceptor).collect();
        Ok(all)
    }

    /// Hosts all ports and initiators, and returns the addresses listened on. Raises the process's
    /// limit of open descriptors for them, as far as the system permits.
    ///
    /// # Errors
    /// A port is taken, or a store cannot be opened.
    pub fn host<H: Handler>(self, host: &mut Host<H>) -> Result<Vec<SocketAddr>, HostError> {
        self.raise_open_files();
        for initiator in self.initiators {
            host.initiate(initiator)?;
        }
        let ports = self.acceptors.into_iter();
        ports.map(|acceptor| host.listen(acceptor)).collect()
    }

    /// Runs all ports and initiators on this thread, and the message log on another, until `stop`
    /// is raised. The caller prints the [`remarks`](Self::remarks).
    ///
    /// # Errors
    /// The host cannot be started, or it failed.
    pub fn run(self, handler: impl Handler, idle: Idle, stop: &Stop) -> Result<(), AgentError> {
        let mut host = Host::new(handler)?;
        let mut crew = Crew::new(Stop::new());
        if let Some((tap, log)) = self.message_log(&Counters::new())? {
            host.log_to(tap);
            crew.spawn(log, Idle::Sleep(NAP), None)?;
        }
        let hosted = self.host(&mut host);
        let ended = match hosted {
            Ok(_) => agent::run(&mut host, idle, stop),
            Err(error) => Err(error.into()),
        };
        crew.stop().raise();
        let logged = crew.join().map_err(|error: CrewError| error.into());
        ended.and(logged)
    }

    /// Raises the process's limit of open descriptors for all sessions, and for as many connections
    /// without a logon as the ports may have. If that fails, the error appears with the first
    /// descriptor above the limit.
    pub fn raise_open_files(&self) {
        let _ = raise_open_files(self.descriptors() as u64);
    }

    /// Returns the number of descriptors that may be open at once.
    pub(super) fn descriptors(&self) -> usize {
        let of_port = |port: &Acceptor| {
            let named = port.sessions.iter().map(|own| descriptors(&own.store));
            let made = port.wildcards.iter();
            let made = made.map(|own| own.max_sessions * descriptors(&own.store));
            named.chain(made).sum::<usize>() + port.options.max_without_logon
        };
        let accepted: usize = self.acceptors.iter().map(of_port).sum();
        let initiators = self.initiators.iter().map(|own| descriptors(&own.store));
        accepted + initiators.sum::<usize>() + SPARE_DESCRIPTORS
    }

    /// Opens the message log, `messages.log` in its folder, with rights for the user alone:
    /// [`Host::log_to`] takes one end, a thread runs the other. `None` if no session has a log.
    ///
    /// # Errors
    /// The folder or the file cannot be written.
    pub fn message_log(
        &self,
        counters: &Counters,
    ) -> Result<Option<(LogTap, MessageLog)>, EndpointsError> {
        let Some(folder) = &self.log else {
            return Ok(None);
        };
        let options = LogOptions {
            lossy: self.lossy_log,
            rotation: self.log_rotation.clone(),
            ..LogOptions::default()
        };
        let path = folder.join(LOG_FILE);
        let made = private::create_folder(folder);
        let opened = made.and_then(|()| MessageLog::open(&path, options, counters));
        opened.map(Some).map_err(|source| EndpointsError::Log {
            folder: folder.clone(),
            source,
        })
    }

    fn find_log(&mut self, sessions: &[SessionSettings]) {
        self.lossy_log = sessions.iter().any(|session| session.lossy_log);
        if let Some(first) = sessions.iter().find(|session| session.log.is_some()) {
            self.log_rotation = first.log_rotation.clone();
        }
        let mut folders = sessions.iter().filter_map(|session| session.log.as_ref());
        let Some(folder) = folders.next() else {
            return;
        };
        if folders.any(|other| other != folder) {
            let path = folder.join(LOG_FILE);
            let remark = format!("one message log for all sessions: {}", path.display());
            self.remarks.push(remark);
        }
        self.log = Some(folder.clone());
    }

    fn accept(
        &mut self,
        ports: &mut BTreeMap<SocketAddr, Port>,
        listen: SocketAddr,
        settings: SessionSettings,
    ) -> Result<(), EndpointsError> {
        let port = match ports.entry(listen) {
            Entry::Occupied(port) => port.into_mut(),
            Entry::Vacant(place) => place.insert(self.open(listen, &settings)?),
        };
        if port.tls != settings.tls {
            return Err(EndpointsError::TlsDiffers(listen));
        }
        if port.acceptor.options.socket != settings.socket {
            return Err(EndpointsError::SocketsDiffer(listen));
        }
        if port.limits != settings.port_limits {
            return Err(EndpointsError::LimitsDiffer(listen));
        }
        port.add(settings);
        Ok(())
    }

    /// Opens a port without sessions yet, encrypted as its first session requires.
    fn open(
        &mut self,
        listen: SocketAddr,
        first: &SessionSettings,
    ) -> Result<Port, EndpointsError> {
        let limits = first.port_limits;
        let mut acceptor = Acceptor::new(listen);
        acceptor.options.max_without_logon = limits.connections;
        acceptor.options.max_without_logon_per_address = limits.connections_per_address;
        acceptor.options.max_logon = limits.logon_bytes;
        acceptor.options.socket = first.socket;
        if let Some(files) = &first.tls {
            acceptor = self.encrypt_port(acceptor, files)?;
        }
        Ok(Port {
            acceptor,
            tls: first.tls.clone(),
            limits,
            for_all: false,
        })
    }

    /// Adds the initiator of one session.
    fn initiate(&mut self, settings: SessionSettings) -> Result<(), EndpointsError> {
        let mut names = Vec::new();
        for (host, port) in &settings.hosts {
            let addresses = match (host.as_str(), *port).to_socket_addrs() {
                Ok(addresses) => addresses.collect(),
                Err(error) => {
                    self.remarks.push(format!("{host}: {error}"));
                    Vec::new()
                }
            };
            let (name, port) = (host.clone(), *port);
            names.push(NamedHost {
                name,
                port,
                addresses,
            });
        }
        let mut hosts = Vec::new();
        for host in &names {
            let addresses = host.addresses.iter();
            hosts.extend(addresses.map(|address| (host.name.as_str(), *address)));
        }
        if hosts.is_empty() {
            return Err(EndpointsError::NoAddress(settings.config.id));
        }
        if let Some(local) = settings.local {
            hosts.retain(|(_, address)| address.is_ipv4() == local.is_ipv4());
            if hosts.is_empty() {
                let id = settings.config.id;
                return Err(EndpointsError::OtherFamily(id, local.ip()));
            }
        }
        let addresses = hosts.iter().map(|(_, address)| *address).collect();
        let mut initiator = Initiator::new(settings.config, addresses).store(settings.store);
        initiator.order = settings.host_order;
        initiator.local = settings.local;
        initiator.socket = settings.socket;
        initiator.backoff = (settings.reconnect, settings.reconnect);
        if let Some(files) = &settings.client_tls {
            initiator = self.encrypt(initiator, files, &hosts)?;
        }
        initiator.names = names;
        self.initiators.push(initiator);
        Ok(())
    }
}

/// Returns the number of descriptors of a session: its socket, and a lock, a file and the next file
/// of each journal.
const fn descriptors(store: &StoreKind) -> usize {
    match store {
        StoreKind::BothWays(..) => 7,
        _ => 4,
    }
}

/// The name of the message log in its folder.
const LOG_FILE: &str = "messages.log";

fn validator(dictionaries: DictionaryValidator) -> Arc<dyn Validator> {
    Arc::new(dictionaries)
}

/// Returns the dictionaries of a session. Sessions with the same files share them: over FIXT.1.1 a
/// session has those of all versions.
fn load(
    files: &DictionaryFiles,
    session: &SessionId,
    remarks: &mut Vec<String>,
    loaded: &mut Vec<(DictionaryFiles, DictionaryValidator)>,
) -> Result<DictionaryValidator, EndpointsError> {
    if let Some((_, own)) = loaded.iter().find(|(known, _)| known.loads_as(files)) {
        return Ok(own.clone());
    }
    let own =
        files
            .load(&read_dictionary, remarks)
            .map_err(|source| EndpointsError::Dictionary {
                session: session.clone(),
                source: Box::new(source),
            })?;
    loaded.push((files.clone(), own.clone()));
    Ok(own)
}

/// A port in the making.
struct Port {
    acceptor: Acceptor,
    tls: Option<TlsFiles>,
    limits: PortLimits,
    /// Whether the port is open to all, as one of its sessions has no list.
    for_all: bool,
}

impl Port {
    /// Adds a session, or a template; a template's entries for other versions are merged into it.
    /// The port lets every address connect that one of its sessions lets log on.
    fn add(&mut self, settings: SessionSettings) {
        let AllowList(networks) = &mut self.acceptor.options.allow;
        self.for_all |= settings.allow.is_empty();
        networks.extend(&settings.allow);
        if self.for_all {
            networks.clear();
        }
        let (session, store, names) = (settings.config, settings.store, settings.client_names);
        let allow = AllowList(settings.allow);
        let Some(template) = settings.template else {
            return self.acceptor.sessions.push(AcceptorSession {
                session,
                store,
                allow,
                names,
            });
        };
        let tag = template.line;
        let mut known = self.acceptor.wildcards.iter_mut();
        if let Some(wildcard) = known.find(|wildcard| wildcard.tag == tag) {
            return wildcard.templates.push(session);
        }
        self.acceptor.wildcards.push(Wildcard {
            pattern: template.pattern,
            templates: vec![session],
            store,
            max_sessions: template.max_sessions,
            qualified: template.qualified,
            allow,
            names,
            tag,
        });
    }
}

/// The certificates of a port or of an initiator.
#[cfg(feature = "tls")]
#[derive(Debug, Clone)]
pub struct Certificates {
    /// The address of the port that they are for, or `session` and its identity.
    pub of: String,
    /// Its own certificate, if it has one.
    file: Option<PathBuf>,
    encrypt: Encrypt,
}

#[cfg(feature = "tls")]
impl Certificates {
    /// Reloads the files, for new connections.
    ///
    /// # Errors
    /// The files cannot be used; the former certificates remain in use.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.encrypt.reload()
    }

    /// Returns why counterparties refuse its own certificate at a time, in nanoseconds since 1970:
    /// it has expired, or is not valid yet.
    #[must_use]
    pub fn out_of_time(&self, utc: u64) -> Option<String> {
        out_of_time(self.file.as_ref()?, utc)
    }
}

#[cfg(feature = "tls")]
impl Endpoints {
    fn encrypt_port(
        &mut self,
        acceptor: Acceptor,
        files: &TlsFiles,
    ) -> Result<Acceptor, EndpointsError> {
        let identity = Identity {
            certificates: files.certificate.clone(),
            key: files.key.clone(),
        };
        let of = acceptor.listen.to_string();
        let tls = match TlsServer::new(&identity, files.client_roots.as_deref()) {
            Ok(tls) => tls,
            Err(source) => return Err(EndpointsError::Tls { of, source }),
        };
        let acceptor = acceptor.tls(tls);
        let encrypt = acceptor.options.encrypt.clone();
        let file = Some(identity.certificates);
        self.certificates.push(Certificates { of, file, encrypt });
        Ok(acceptor)
    }

    /// Requires of each host a certificate for its name, or for the name in the settings.
    fn encrypt(
        &mut self,
        initiator: Initiator,
        files: &ClientTlsFiles,
        hosts: &[(&str, SocketAddr)],
    ) -> Result<Initiator, EndpointsError> {
        let of = of_session(&initiator.session);
        let identity = files.identity.clone();
        let identity = identity.map(|(certificates, key)| Identity { certificates, key });
        let first = hosts.first().map_or("", |(host, _)| host);
        let name = files.name.as_deref().unwrap_or(first);
        let tls = TlsClient::new(&files.roots, name, identity.as_ref()).and_then(|mut tls| {
            if files.name.is_none() {
                for (host, address) in hosts {
                    tls.expect_at(*address, host)?;
                }
            }
            Ok(tls)
        });
        let tls = match tls {
            Ok(tls) => tls,
            Err(source) => return Err(EndpointsError::Tls { of, source }),
        };
        let initiator = initiator.tls(tls);
        let encrypt = initiator.encrypt.clone();
        let file = identity.map(|own| own.certificates);
        self.certificates.push(Certificates { of, file, encrypt });
        Ok(initiator)
    }
}

fn of_session(config: &Config) -> String {
    format!("session {}", config.id)
}

#[cfg(not(feature = "tls"))]
impl Endpoints {
    fn encrypt_port(&self, port: Acceptor, _: &TlsFiles) -> Result<Acceptor, EndpointsError> {
        Err(EndpointsError::NoTls(port.listen.to_string()))
    }

    fn encrypt(
        &self,
        initiator: Initiator,
        _: &ClientTlsFiles,
        _: &[(&str, SocketAddr)],
    ) -> Result<Initiator, EndpointsError> {
        Err(EndpointsError::NoTls(of_session(&initiator.session)))
    }
}
