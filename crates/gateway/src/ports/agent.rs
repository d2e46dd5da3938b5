//! A port of the gateway, which hands each connection whose Logon has arrived to the host with the
//! fewest sessions.

use crate::counts::PortCounts;
use crate::notice::{Notice, Notices, PeerEnd};
use crate::ports::rules::Rules;
use crate::ports::seats::Records;
use crate::users::door::{Door, Passage};
use crate::users::roster::Seat;
use crate::users::{Denied, User};
use fanfare_engine::agent::{Agent, AgentError};
use fanfare_engine::host::{Admission, HostHandle, Incoming, Port, PortEvent, Refusal, Store};
use fanfare_fix::session::{MemoryStore, MessageStore, Now};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The longest time for which a busy thread does not accept connections, in nanoseconds. Accepting
/// is a system call, and messages have priority.
const PACE: u64 = 1_000_000;

/// The most Logons in one turn that are admitted or refused after their passwords were checked, so
/// that sessions are not delayed.
const PASSAGES: usize = 8;

/// A port with the hosts of its sessions.
pub(crate) struct PortAgent {
    port: Port,
    hosts: Vec<HostEnd>,
    rules: Rules,
    door: Door,
    records: Records,
    counts: PortCounts,
    notices: Notices,
    next_look: u64,
}

/// A host, and the number of its sessions.
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

/// A guard that counts one session of a host until it is dropped.
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl PortAgent {
    pub(crate) fn new(
        port: Port,
        hosts: Vec<HostEnd>,
        rules: Rules,
        door: Door,
        records: Records,
        counts: PortCounts,
        notices: Notices,
    ) -> Self {
        let mut agent = Self {
            port,
            hosts,
            rules,
            door,
            records,
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

    fn take(&mut self, event: PortEvent, now: Now) {
        match event {
            PortEvent::Logon(incoming) => {
                let passage = self.door.ask(incoming, &self.rules.now().door, now);
                passage
                    .into_iter()
                    .for_each(|passage| self.pass(passage, now));
            }
            PortEvent::Refused(address, why) => self.refused(address, why),
            PortEvent::CannotAccept(error) => {
                let error = error.to_string();
                self.notices.send(Notice::CannotAccept { error });
            }
        }
    }

    /// Admits or refuses a Logon whose password was checked.
    fn pass(&mut self, passage: Passage, now: Now) {
        match passage {
            Passage::Through(incoming, user) => {
                let (id, address) = (incoming.id().clone(), incoming.address());
                if let Err(why) = self.admit(incoming, user.as_deref(), now) {
                    let name = user.as_ref().map_or("", |user| &user.name);
                    self.records.refused(&id, name, address, &why);
                    self.refused(address, why);
                }
            }
            Passage::Refused(incoming, user, why) => {
                let (id, address) = (incoming.id(), incoming.address());
                let name = user.as_deref().unwrap_or_default();
                self.records.refused(id, name, address, &why);
                self.refused(address, why);
            }
            Passage::Denied(incoming, user, why) => self.deny(incoming, user, why, now),
        }
    }

    /// Closes the connection of a user's Logon.
    fn deny(&self, mut incoming: Incoming, user: Arc<str>, why: Denied, now: Now) {
        let config = incoming.config(&self.rules.now().template);
        let (peer, session) = (incoming.address(), config.id.clone());
        if let Some(text) = why.answer() {
            incoming.refuse(&config, now, text);
        }
        let user = user.to_string();
        self.records.refused(&session, &user, peer, &why);
        self.ended(peer, PeerEnd::Denied { session, user, why });
    }

    /// Hands a connection to the host with the fewest sessions.
    fn admit(&mut self, incoming: Incoming, user: Option<&User>, now: Now) -> Result<(), Refusal> {
        let config = incoming.config(&self.rules.now().template);
        let id = config.id.clone();
        let claim = self.rules.now().registry.claim(id.clone());
        // After the claim, because removing a session changes the rules first and then finds the
        // claim.
        if self.rules.look() {
            self.apply_rules();
        }
        if !self.rules.now().admits(&id.target, &id.sender) {
            return Err(Refusal::UnknownSession(id));
        }
        let Some((claim, numbers)) = claim else {
            return Err(Refusal::AlreadyConnected(id));
        };
        let name = user.map_or_else(Arc::default, |user| Arc::clone(&user.name));
        let seat = Seat::new(
            self.records.port,
            id.clone(),
            Arc::clone(&name),
            incoming.address(),
            now.utc,
        );
        let most = user.map_or(usize::MAX, |user| user.sessions_at_a_time);
        let seated = match self.records.roster.take(seat, most) {
            Ok(seated) => seated,
            Err(why) => {
                drop(claim);
                self.deny(incoming, name, why, now);
                return Ok(());
            }
        };
        if !self.door.still_admits(seated.seat()) {
            return Err(Refusal::UnknownSession(id));
        }
        let hosts = self.hosts.iter();
        let fewest = hosts.min_by_key(|host| host.sessions.load(Ordering::Relaxed));
        let Some(host) = fewest else {
            return Ok(());
        };
        let mut store = MemoryStore::without_resends(256 << 10);
        // This store keeps numbers in memory, so setting them cannot fail.
        let _ = store.set_next_sender(numbers.sender);
        let _ = store.set_next_target(numbers.target);
        let admission = Admission {
            queue_bytes: self.rules.now().queue_bytes,
            reset: numbers.reset,
            guard: Some(Box::new((seated, claim, host.count()))),
            ..Admission::new(config, Store::Memory(store))
        };
        let mut pending = host.handle.admit(incoming, admission);
        match pending.poll() {
            Some(Err(error)) => Err(Refusal::Store(error.to_string())),
            _ => Ok(()),
        }
    }

    fn refused(&self, peer: SocketAddr, why: Refusal) {
        self.ended(peer, PeerEnd::Refused(why));
    }

    fn ended(&self, peer: SocketAddr, end: PeerEnd) {
        self.counts.refused.increment(1);
        self.notices.send(Notice::Ended {
            session: None,
            peer,
            end,
            left_out: 0,
        });
    }

    /// Processes some of the Logons whose passwords have been checked.
    fn poll_door(&mut self, now: Now) -> usize {
        for taken in 0..PASSAGES {
            let Some(passage) = self.door.poll(&self.rules.now().door, now) else {
                return taken;
            };
            self.pass(passage, now);
        }
        PASSAGES
    }
}

impl Agent for PortAgent {
    fn name(&self) -> &str {
        self.records.port.name()
    }

    fn do_work(&mut self, now: Now) -> Result<usize, AgentError> {
        let checked = match self.door.len() {
            0 => 0,
            _ => self.poll_door(now),
        };
        if now.mono < self.next_look {
            return Ok(checked);
        }
        if self.rules.look() {
            self.apply_rules();
        }
        let work = self.port.turn(now)?;
        while let Some(event) = self.port.poll_event() {
            self.take(event, now);
        }
        self.counts
            .waiting
            .set((self.port.len() + self.door.len()) as u64);
        if work == 0 {
            self.next_look = now.mono + PACE;
        }
        Ok(work + checked)
    }

    fn wait_for<'a>(&'a self, descriptors: &mut Vec<BorrowedFd<'a>>) {
        descriptors.extend([self.port.as_fd(), self.door.waker().as_fd()]);
    }

    fn before_sleep(&mut self) {
        self.door.waker().prepare_sleep();
    }

    fn after_sleep(&mut self) {
        self.door.waker().awake();
        // The thread may have slept until a connection arrived.
        self.next_look = 0;
    }
}
