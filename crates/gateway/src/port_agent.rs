//! A port of the gateway: hands each connection whose Logon has come to the host with the fewest
//! sessions.

use crate::counts::PortCounts;
use crate::notice::{Notice, Notices, PeerEnd};
use crate::rules::Rules;
use crate::users::{PortName, UserBook};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::host::{Admission, HostHandle, Incoming, Port, PortEvent, Refusal, Store};
use fanfare_fix::session::{MemoryStore, MessageStore, Now};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How long a busy thread leaves new connections waiting, in nanoseconds: looking is a system
/// call, and messages come first.
const PACE: u64 = 1_000_000;

/// A port with the hosts of its sessions.
pub(crate) struct PortAgent {
    name: PortName,
    port: Port,
    hosts: Vec<HostEnd>,
    rules: Rules,
    users: UserBook,
    counts: PortCounts,
    notices: Notices,
    next_look: u64,
}

/// A host, and how many sessions it has.
pub(crate) struct HostEnd {
    handle: HostHandle,
    sessions: Arc<AtomicUsize>,
}

impl HostEnd {
    pub(crate) fn new(handle: HostHandle) -> Self {
        Self {
            handle,
            sessions: Arc::default(),
        }
    }

    fn count(&self) -> Counted {
        self.sessions.fetch_add(1, Ordering::Relaxed);
        Counted(Arc::clone(&self.sessions))
    }
}

/// Counts one session of a host until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PortAgent {
    pub(crate) fn new(
        name: PortName,
        port: Port,
        hosts: Vec<HostEnd>,
        rules: Rules,
        users: UserBook,
        counts: PortCounts,
        notices: Notices,
    ) -> Self {
        let mut agent = Self {
            name,
            port,
            hosts,
            rules,
            users,
            counts,
            notices,
            next_look: 0,
        };
        agent.apply_rules();
        agent
    }

    fn apply_rules(&mut self) {
        let rules = self.rules.now();
        let port = &mut self.port;
        port.set_options(rules.options.clone());
        port.set_logon_timeout(rules.template.logon_timeout);
        port.set_max_header_field(rules.template.max_header_field);
        port.set_max_connections(rules.config.max_sessions);
    }

    fn take(&mut self, event: PortEvent) {
        match event {
            PortEvent::Logon(incoming) => {
                let address = incoming.address();
                if let Err(why) = self.admit(incoming) {
                    self.refused(address, why);
                }
            }
            PortEvent::Refused(address, why) => self.refused(address, why),
            PortEvent::CannotAccept(error) => {
                let error = error.to_string();
                self.notices.send(Notice::CannotAccept { error });
            }
        }
    }

    /// Hands a connection to the host with the fewest sessions.
    fn admit(&mut self, incoming: Incoming) -> Result<(), Refusal> {
        let config = incoming.config(&self.rules.now().template);
        let id = config.id.clone();
        let claim = self.rules.now().registry.claim(id.clone());
        // Behind the claim: what removes a session changes the rules and then finds the claim.
        if self.rules.look() {
            self.apply_rules();
        }
        let rules = self.rules.now();
        let is_user = self.users.read().grant(&id, self.name).is_some();
        if !is_user || !rules.admits(&id.target, &id.sender) {
            return Err(Refusal::UnknownSession(id));
        }
        incoming.check_certificate(&rules.config.client_names())?;
        let (claim, numbers) = claim.ok_or(Refusal::AlreadyConnected(id))?;
        let hosts = self.hosts.iter();
        let fewest = hosts.min_by_key(|host| host.sessions.load(Ordering::Relaxed));
        let Some(host) = fewest else {
            return Ok(());
        };
        let mut store = MemoryStore::without_resends(256 << 10);
        // This store keeps numbers in memory; setting them cannot fail.
        let _ = store.set_next_sender(numbers.sender);
        let _ = store.set_next_target(numbers.target);
        let admission = Admission {
            queue_bytes: rules.queue_bytes,
            guard: Some(Box::new((claim, host.count()))),
            ..Admission::new(config, Store::Memory(store))
        };
        let mut pending = host.handle.admit(incoming, admission);
        match pending.poll() {
            Some(Err(error)) => Err(Refusal::Store(error.to_string())),
            _ => Ok(()),
        }
    }

    fn refused(&self, peer: SocketAddr, why: Refusal) {
        self.counts.refused.increment(1);
        self.notices.send(Notice::Ended {
            session: None,
            peer,
            end: PeerEnd::Refused(why),
            left_out: 0,
        });
    }
}

impl Agent for PortAgent {
    fn name(&self) -> &str {
        self.name.name()
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        if now.mono < self.next_look {
            return Ok(0);
        }
        if self.rules.look() {
            self.apply_rules();
        }
        let work = self.port.turn(now)?;
        while let Some(event) = self.port.poll_event() {
            self.take(event);
        }
        self.counts.waiting.set(self.port.len() as u64);
        if work == 0 {
            self.next_look = now.mono + PACE;
        }
        Ok(work)
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.push(self.port.as_fd());
    }

    fn after_sleep(&mut self) {
        // The thread may have slept until a connection came.
        self.next_look = 0;
    }
}
