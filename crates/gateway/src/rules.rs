//! What the connections of one side have in common, and how that is changed while they run.

use crate::registry::Registry;
use crate::{Config, PortConfig};
use fanfare_fix::session::{self, SECOND, SessionId};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the peers of one side have in common.
#[derive(Clone)]
pub(crate) struct SideRules {
    pub(crate) side: PortConfig,
    pub(crate) registry: Registry,
    pub(crate) template: session::Config,
    pub(crate) queue_bytes: usize,
    pub(crate) message_bytes: usize,
    pub(crate) logon_bytes: usize,
    /// Nanoseconds.
    pub(crate) logon_timeout: u64,
    pub(crate) not_logged_on: usize,
    pub(crate) not_logged_on_per_address: usize,
}

impl SideRules {
    pub(crate) fn new(config: &Config, side: &PortConfig) -> Self {
        let limits = &config.limits;
        let nobody = SessionId::new(session::Version::Fix44, "", "");
        let logon_timeout = limits.logon_timeout_s * SECOND;
        let template = session::Config {
            logon_timeout,
            heart_bt_int_range: (0, u32::try_from(limits.heartbeat_max_s).unwrap_or(0)),
            max_message: limits.message_bytes,
            max_header_field: limits.header_field_bytes,
            // A consumer over FIXT.1.1 gets messages of the version that it names.
            mirror_appl_ver_id: true,
            ..session::Config::new(nobody)
        };
        Self {
            side: side.clone(),
            registry: Registry::new(limits.remembered_sessions, limits.remembered_bytes),
            template,
            queue_bytes: config.slow_consumer.queue_bytes,
            message_bytes: limits.message_bytes,
            logon_bytes: limits.logon_bytes.min(limits.message_bytes),
            logon_timeout,
            not_logged_on: limits.not_logged_on,
            not_logged_on_per_address: limits.not_logged_on_per_address,
        }
    }

    /// Takes the limits and sessions of a new configuration; the rest stays as it is.
    fn reloaded(&self, config: &Config, side: &PortConfig) -> Self {
        let new = Self::new(config, side);
        let limits = &config.limits;
        self.registry
            .set_most(limits.remembered_sessions, limits.remembered_bytes);
        Self {
            side: PortConfig {
                bind: self.side.bind,
                port: self.side.port,
                ..new.side
            },
            registry: self.registry.clone(),
            queue_bytes: self.queue_bytes,
            message_bytes: self.message_bytes,
            logon_bytes: new.logon_bytes.min(self.message_bytes),
            template: session::Config {
                max_message: self.message_bytes,
                ..new.template
            },
            ..new
        }
    }
}

/// The rules in force, as the thread of a port has them.
pub(crate) struct Rules {
    seen: u64,
    known: Arc<SideRules>,
    shared: RuleBook,
}

/// Where new rules are put, from any thread.
#[derive(Clone)]
pub(crate) struct RuleBook(Arc<Book>);

struct Book {
    version: AtomicU64,
    rules: Mutex<Arc<SideRules>>,
}

impl RuleBook {
    pub(crate) fn new(rules: SideRules) -> Self {
        Self(Arc::new(Book {
            version: AtomicU64::new(0),
            rules: Mutex::new(Arc::new(rules)),
        }))
    }

    /// For the thread of a port.
    pub(crate) fn open(&self) -> Rules {
        Rules {
            seen: self.0.version.load(Ordering::Acquire),
            known: self.read(),
            shared: self.clone(),
        }
    }

    /// New rules for connections from now on.
    pub(crate) fn reload(&self, config: &Config, side: &PortConfig) {
        let mut rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        *rules = Arc::new(rules.reloaded(config, side));
        drop(rules);
        self.0.version.fetch_add(1, Ordering::Release);
    }

    fn read(&self) -> Arc<SideRules> {
        let rules = self.0.rules.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&rules)
    }
}

impl Rules {
    pub(crate) fn now(&self) -> &Arc<SideRules> {
        &self.known
    }

    /// Takes new rules, if there are any.
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
