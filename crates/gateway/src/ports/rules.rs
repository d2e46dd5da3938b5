//! The rules that the connections of one port share, and their changes at run time.

use crate::ports::registry::Registry;
use crate::users::door::DoorRules;
use crate::{Config, Pair, PortConfig};
use fanfare_engine::host::PortOptions;
use fanfare_engine::tls::{TlsError, TlsServer};
use fanfare_fix::session::{self, SECOND, SessionId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The rules that the sessions of one port share.
#[derive(Clone)]
pub(crate) struct PortRules {
    pub(crate) config: PortConfig,
    /// Whether the configuration lists no sessions, so that any may log on.
    admits_all: bool,
    /// The certificates, as in `options`.
    pub(crate) tls: Option<TlsServer>,
    pub(crate) options: PortOptions,
    pub(crate) registry: Registry,
    pub(crate) template: session::Config,
    pub(crate) queue_bytes: usize,
    pub(crate) door: DoorRules,
}

/// The time that a shutdown waits for the response to a Logout, in nanoseconds.
const LOGOUT_TIMEOUT: u64 = SECOND / 2;

impl PortRules {
    /// Builds the rules of a port, and reads its certificates.
    pub(crate) fn new(config: &Config, port: &PortConfig) -> Result<Self, TlsError> {
        let limits = &config.limits;
        let registry = Registry::new(limits.remembered_sessions, limits.remembered_bytes);
        Ok(Self::with(config, port, port.tls_server()?, registry))
    }

    fn with(
        config: &Config,
        port: &PortConfig,
        tls: Option<TlsServer>,
        registry: Registry,
    ) -> Self {
        let limits = &config.limits;
        let nobody = SessionId::new(session::Version::Fix44, "", "");
        let template = session::Config {
            logon_timeout: limits.logon_timeout_s * SECOND,
            logout_timeout: LOGOUT_TIMEOUT,
            heart_bt_int_range: (0, u32::try_from(limits.heartbeat_max_s).unwrap_or(0)),
            max_message: limits.message_bytes,
            max_header_field: limits.header_field_bytes,
            // A consumer over FIXT.1.1 receives messages of the version that it names.
            mirror_appl_ver_id: true,
            ..session::Config::new(nobody)
        };
        let mut options = port.options(tls.clone());
        options.max_without_logon = limits.not_logged_on;
        options.max_without_logon_per_address = limits.not_logged_on_per_address;
        // Noise from an unauthenticated peer ends the connection.
        options.skip_noise = false;
        options.max_logon = limits.logon_bytes.min(limits.message_bytes);
        Self {
            config: port.clone(),
            admits_all: port.sessions.is_empty(),
            tls,
            options,
            registry,
            template,
            queue_bytes: config.slow_consumer.queue_bytes,
            door: DoorRules {
                names: port.client_names(),
                patience: limits.logon_timeout_s * SECOND,
                most_waiting: limits.not_logged_on,
                most_waiting_of_address: limits.not_logged_on_per_address,
            },
        }
    }

    /// Returns whether any session may log on, because no sessions are listed.
    pub(crate) const fn admits_all(&self) -> bool {
        self.admits_all
    }

    /// Returns whether a Logon with these CompIDs is admitted.
    pub(crate) fn admits(&self, sender: &str, target: &str) -> bool {
        let matches = |own: &Pair| own.sender == sender && own.target == target;
        self.admits_all || self.config.sessions.iter().any(matches)
    }

    /// Adds a session to the list, if there is one.
    pub(crate) fn add_session(&mut self, session: Pair) {
        let sessions = &mut self.config.sessions;
        if !self.admits_all && !sessions.contains(&session) {
            sessions.push(session);
        }
    }

    /// Removes a session from the list. Returns whether it was listed.
    pub(crate) fn remove_session(&mut self, session: &Pair) -> bool {
        let sessions = &mut self.config.sessions;
        let place = sessions.iter().position(|own| own == session);
        place.map(|place| sessions.remove(place)).is_some()
    }

    /// Returns the rules with the limits, networks and sessions of a new configuration and with
    /// certificates that were read for it. The rest is unchanged.
    fn reloaded(&self, config: &Config, port: &PortConfig, tls: Option<TlsServer>) -> Self {
        let mut config = config.clone();
        config.limits.message_bytes = self.template.max_message;
        config.slow_consumer.queue_bytes = self.queue_bytes;
        let limits = &config.limits;
        self.registry
            .set_most(limits.remembered_sessions, limits.remembered_bytes);
        let port = PortConfig {
            bind: self.config.bind,
            port: self.config.port,
            tls: self.config.tls.clone(),
            ..port.clone()
        };
        Self::with(&config, &port, tls, self.registry.clone())
    }
}

/// The rules in force, as read by the thread of a port.
pub(crate) struct Rules {
    seen: u64,
    known: Arc<PortRules>,
    shared: RuleBook,
}

/// The writing end of the rules, for any thread.
#[derive(Clone)]
pub(crate) struct RuleBook(Arc<Book>);

struct Book {
    version: AtomicU64,
    rules: Mutex<Arc<PortRules>>,
}

impl RuleBook {
    pub(crate) fn new(rules: PortRules) -> Self {
        Self(Arc::new(Book {
            version: AtomicU64::new(0),
            rules: Mutex::new(Arc::new(rules)),
        }))
    }

    /// Opens a reader for the thread of a port.
    pub(crate) fn open(&self) -> Rules {
        Rules {
            seen: self.0.version.load(Ordering::Acquire),
            known: self.read(),
            shared: self.clone(),
        }
    }

    /// Sets new rules for connections from now on, with certificates that were read for them.
    pub(crate) fn reload(&self, config: &Config, port: &PortConfig, tls: Option<TlsServer>) {
        self.change(|rules| *rules = rules.reloaded(config, port, tls));
    }

    /// Changes the rules for connections from now on.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut PortRules) -> T) -> T {
        let mut rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = PortRules::clone(&rules);
        let changed = change(&mut new);
        *rules = Arc::new(new);
        drop(rules);
        self.0.version.fetch_add(1, Ordering::Release);
        changed
    }

    pub(crate) fn read(&self) -> Arc<PortRules> {
        let rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&rules)
    }
}

impl Rules {
    pub(crate) fn now(&self) -> &Arc<PortRules> {
        &self.known
    }

    /// Adopts new rules, if there are any. Returns whether there were.
    pub(crate) fn look(&mut self) -> bool {
        let version = self.shared.0.version.load(Ordering::Acquire);
        let is_new = version != self.seen;
        if is_new {
            self.seen = version;
            self.known = self.shared.read();
        }
        is_new
    }
}
