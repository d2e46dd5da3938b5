//! The configuration of what a host runs.

use super::HostError;
use super::allow::{AllowList, Network};
use super::connection::QUEUE_BYTES;
use super::hosted::{Access, Hosted, Prepared, hosted_config};
use super::names::ClientNames;
use super::port::{Port, PortOptions};
use super::store::{Store, StoreKind};
use super::templates::Wildcard;
use super::transport::Encrypt;
use crate::tcp::{Backoff, Connector, HostOrder, Lookup, NamedHost, SocketOptions};
#[cfg(feature = "tls")]
use crate::tls::{TlsClient, TlsServer};
use fanfare_fix::session::{Config, Now, Session};
use std::any::Any;
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::time::Duration;

/// A session that connects.
#[derive(Debug, Clone)]
pub struct Initiator {
    /// The session.
    pub session: Config,
    /// The addresses to connect to, tried in order and again from the first, with a back-off
    /// between attempts. Without any, and without a name to look up, the session is hosted and
    /// never connects.
    pub hosts: Vec<SocketAddr>,
    /// The same hosts by their names. If one of these is no address, all of them are looked up
    /// again in front of each attempt but the first, in a thread of its own; the addresses found
    /// take the place of `hosts`. Without any address, the first attempt looks them up, too.
    pub names: Vec<NamedHost>,
    /// The order in which the hosts are tried.
    pub order: HostOrder,
    /// The address of this machine to connect from, and the port, if it is not 0; by default the
    /// system chooses both.
    pub local: Option<SocketAddr>,
    /// The options of each connection's socket.
    pub socket: SocketOptions,
    /// The store of the session's messages.
    pub store: StoreKind,
    /// The first back-off after a failure, and the longest.
    pub backoff: (Duration, Duration),
    /// The timeout of one attempt.
    pub connect_timeout: Duration,
    pub(crate) encrypt: Encrypt,
}

impl Initiator {
    /// Makes an initiator with a back-off from 1 s to 30 s, 5 s for an attempt, and messages kept
    /// in memory.
    #[must_use]
    pub fn new(session: Config, hosts: Vec<SocketAddr>) -> Self {
        Self {
            session,
            hosts,
            names: Vec::new(),
            order: HostOrder::default(),
            local: None,
            socket: SocketOptions::new(),
            store: StoreKind::default(),
            backoff: (Duration::from_secs(1), Duration::from_secs(30)),
            connect_timeout: Duration::from_secs(5),
            encrypt: Encrypt::No,
        }
    }

    /// Encrypts the connection.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: TlsClient) -> Self {
        self.encrypt = Encrypt::Client(tls);
        self
    }

    /// Sets the store of the session's messages.
    #[must_use]
    pub fn store(mut self, store: StoreKind) -> Self {
        self.store = store;
        self
    }

    /// Opens the store.
    pub(super) fn prepare(self, now: Now) -> Result<Prepared, HostError> {
        let Self {
            session,
            hosts,
            names,
            order,
            local,
            socket,
            store,
            backoff,
            connect_timeout,
            encrypt,
        } = self;
        let id = session.id.clone();
        let mut prepared = Prepared::open(session, &store, now, Session::initiator)?;
        let mut seed = DefaultHasher::new();
        (now.mono, std::process::id(), id).hash(&mut seed);
        let backoff = Backoff::new(backoff.0, backoff.1, seed.finish());
        let connector = Connector::new(hosts, backoff, connect_timeout);
        let mut connector = connector.in_order(order).with_options(socket);
        if let Some(local) = local {
            connector = connector.bound_to(local);
        }
        if names.iter().any(|host| !host.is_address()) {
            connector = connector.looking_up(Lookup::new(names));
        }
        prepared.hosted.connector = Some(Box::new(connector));
        prepared.hosted.encrypt = encrypt;
        Ok(prepared)
    }
}

/// A port and its sessions.
#[derive(Debug, Clone)]
pub struct Acceptor {
    /// The address to listen on; with port 0 the system chooses the port.
    pub listen: SocketAddr,
    /// The sessions.
    pub sessions: Vec<AcceptorSession>,
    /// Templates for Logons that match none of the sessions. The first that a Logon matches is
    /// used.
    pub wildcards: Vec<Wildcard>,
    /// The clients that may connect, and how.
    pub options: PortOptions,
}

/// A session of an acceptor.
#[derive(Debug, Clone)]
pub struct AcceptorSession {
    /// The session.
    pub session: Config,
    /// The store of the session's messages.
    pub store: StoreKind,
    /// The networks that may log on, of those that may connect to the port.
    pub allow: AllowList,
    /// The certificates that admit a client, where the port requires them.
    pub names: ClientNames,
}

impl AcceptorSession {
    /// Makes a session whose client may have any address, and, where certificates are required, has
    /// its CompID as a name.
    #[must_use]
    pub const fn new(session: Config, store: StoreKind) -> Self {
        Self {
            session,
            store,
            allow: AllowList(Vec::new()),
            names: ClientNames::CompId,
        }
    }

    /// Opens the store.
    pub(super) fn prepare(self, now: Now) -> Result<Prepared, HostError> {
        let mut prepared = Prepared::open(self.session, &self.store, now, Session::acceptor)?;
        prepared.hosted.access = Some(Access {
            port: 0,
            allow: self.allow,
            names: self.names,
            made: None,
        });
        Ok(prepared)
    }
}

/// An acceptor's session for one connection: see [`Host::admit`](super::Host::admit). The session
/// is removed when the connection ends.
pub struct Admission {
    /// The session.
    pub session: Config,
    /// The store of the session's numbers and messages.
    pub store: Store,
    /// Most bytes in its outbound queue: see [`Peer::write`](super::Peer::write).
    pub queue_bytes: usize,
    /// Whether the response to its Logon(A) has ResetSeqNumFlag(141)=Y, because the counterparty
    /// has not answered the one of an earlier connection: see [`Session::is_reset_open`].
    pub reset: bool,
    /// A value that is dropped when the session is removed, before its connection is closed.
    pub guard: Option<Box<dyn Any + Send>>,
}

impl Admission {
    /// Makes an admission with an outbound queue of up to 1 MiB.
    #[must_use]
    pub const fn new(session: Config, store: Store) -> Self {
        Self {
            session,
            store,
            queue_bytes: QUEUE_BYTES,
            reset: false,
            guard: None,
        }
    }

    pub(super) fn prepare(self) -> Prepared {
        let mut session = Session::acceptor(hosted_config(self.session), self.store);
        if self.reset {
            session.ask_reset();
        }
        let mut hosted = Hosted::new(session);
        hosted.is_transient = true;
        hosted.queue_bytes = self.queue_bytes;
        hosted.guard = self.guard;
        Prepared {
            hosted,
            recoveries: Vec::new(),
        }
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission")
            .field("session", &self.session.id)
            .finish_non_exhaustive()
    }
}

impl Acceptor {
    /// Makes a port without sessions, with the default options.
    #[must_use]
    pub const fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            sessions: Vec::new(),
            wildcards: Vec::new(),
            options: PortOptions::new(),
        }
    }

    /// Adds a session that keeps its messages in memory.
    #[must_use]
    pub fn session(self, session: Config) -> Self {
        self.session_with(session, StoreKind::default())
    }

    /// Adds a session. Where certificates are required, the client's must have its CompID as a
    /// name.
    #[must_use]
    pub fn session_with(mut self, session: Config, store: StoreKind) -> Self {
        self.sessions.push(AcceptorSession::new(session, store));
        self
    }

    /// Accepts any CompIDs and versions, up to `max_sessions`, with sessions made from
    /// `template`.
    #[must_use]
    pub fn anybody(self, template: Config, store: StoreKind, max_sessions: usize) -> Self {
        self.wildcard(Wildcard::anybody(&template, store, max_sessions))
    }

    /// Makes sessions for Logons that match neither a listed session nor a wildcard added before.
    #[must_use]
    pub fn wildcard(mut self, wildcard: Wildcard) -> Self {
        self.wildcards.push(wildcard);
        self
    }

    /// Binds the port and opens the stores.
    pub(super) fn open(self, now: Now) -> Result<Opened, HostError> {
        let port = Port::bind(self.listen, self.options)?;
        let sessions = self.sessions.into_iter();
        let sessions = sessions.map(|session| session.prepare(now));
        Ok(Opened {
            port,
            sessions: sessions.collect::<Result<_, _>>()?,
            wildcards: self.wildcards,
        })
    }

    /// Encrypts all connections of this port.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: TlsServer) -> Self {
        self.options = self.options.tls(tls);
        self
    }

    /// Admits clients from these networks only.
    #[must_use]
    pub fn allow(mut self, networks: Vec<Network>) -> Self {
        self.options.allow = AllowList(networks);
        self
    }
}

/// A port with its sessions, to be hosted.
pub(super) struct Opened {
    pub(super) port: Port,
    pub(super) sessions: Vec<Prepared>,
    pub(super) wildcards: Vec<Wildcard>,
}
