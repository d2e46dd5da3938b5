//! The host, from any thread.

use super::pending::{Pending, Removal, Reply};
use super::{SessionHandle, SessionPage, Shared, Steer};
use crate::clock::Clock;
use crate::host::HostError;
use crate::host::hosted::Prepared;
use crate::host::incoming::Incoming;
use crate::host::peer::SessionKey;
use crate::host::settings::{Acceptor, AcceptorSession, Admission, Initiator, Opened};
use crate::poll::Waker;
use fanfare_fix::session::{Now, SessionId};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;

/// Access to a [`Host`](super::super::Host) from any thread, before and while it runs: see
/// [`Host::handle`](super::super::Host::handle).
///
/// Stores are opened and ports bound on the caller's thread, so that no session waits for them.
#[derive(Clone)]
pub struct HostHandle(pub(in super::super) Arc<Shared>);

/// Most commands queued for a host.
const MAX_COMMANDS: usize = 1024;

/// A command for the host's next duty cycle.
pub(in super::super) enum Command {
    Add(Box<Prepared>, Reply<SessionKey>),
    AddTo(SocketAddr, Box<Prepared>, Reply<SessionKey>),
    Admit(Box<(Incoming, Prepared)>, Reply<SessionKey>),
    Open(Box<Opened>, Reply<SocketAddr>),
    Remove(SessionId, Arc<Removal>),
    Close(SocketAddr, Arc<Removal>),
    List(usize, Reply<SessionPage>),
    Steer(Box<(SessionId, Steer)>, Reply<()>),
    Make(Box<(Option<SocketAddr>, SessionId)>, Reply<SessionId>),
}

impl HostHandle {
    /// Returns a handle of a hosted session, with a ring for about a thousand messages of 200
    /// bytes, or a larger one for a session with long messages.
    ///
    /// # Errors
    /// The session is not hosted, or the host has ended.
    pub fn session(&self, id: &SessionId) -> Result<SessionHandle, HostError> {
        self.handle(id, None)
    }

    /// Returns a handle as [`session`](Self::session) does, with a ring of `ring_bytes` (rounded up
    /// to a power of two, at least 4 KiB). A message may take an eighth of the ring.
    ///
    /// # Errors
    /// The session is not hosted, or the host has ended.
    pub fn session_with_ring(
        &self,
        id: &SessionId,
        ring_bytes: usize,
    ) -> Result<SessionHandle, HostError> {
        self.handle(id, Some(ring_bytes))
    }

    fn handle(&self, id: &SessionId, ring: Option<usize>) -> Result<SessionHandle, HostError> {
        let state = self.0.lock();
        if state.ended {
            return Err(HostError::Ended);
        }
        let place = state.sessions.get(id).copied();
        let place = place.ok_or_else(|| HostError::Unknown(id.clone()))?;
        drop(state);
        let ring = ring.unwrap_or_else(|| SessionHandle::ring_bytes(place.max_send));
        let ring = ring.max(4 << 10).next_power_of_two();
        Ok(SessionHandle::new(
            &self.0,
            Arc::new(id.clone()),
            place,
            ring,
        ))
    }

    /// Hosts one more initiator, as [`Host::initiate`](super::super::Host::initiate) does.
    pub fn initiate(&self, initiator: Initiator) -> Pending<SessionKey> {
        let prepared = initiator.prepare(now());
        self.put(prepared, |prepared, reply| {
            Command::Add(Box::new(prepared), reply)
        })
    }

    /// Listens on one more port, as [`Host::listen`](super::super::Host::listen) does.
    pub fn listen(&self, acceptor: Acceptor) -> Pending<SocketAddr> {
        let opened = acceptor.open(now());
        self.put(opened, |opened, reply| {
            Command::Open(Box::new(opened), reply)
        })
    }

    /// Hosts a session for one connection whose Logon has arrived, as
    /// [`Host::admit`](super::super::Host::admit) does. The connection is closed if the command is
    /// not accepted or not run.
    pub fn admit(&self, incoming: Incoming, admission: Admission) -> Pending<SessionKey> {
        let prepared = admission.prepare();
        self.put(Ok((incoming, prepared)), |admitted, reply| {
            Command::Admit(Box::new(admitted), reply)
        })
    }

    /// Returns a waker of the host's thread, which then calls its handler.
    #[must_use]
    pub fn waker(&self) -> Waker {
        self.0.waker.clone()
    }

    /// Adds a session to a port of the host.
    pub fn accept(&self, port: SocketAddr, session: AcceptorSession) -> Pending<SessionKey> {
        let prepared = session.prepare(now());
        self.put(prepared, |prepared, reply| {
            Command::AddTo(port, Box::new(prepared), reply)
        })
    }

    /// Removes a session: logs it out and closes its store. The result is available when the
    /// session is gone, at the latest after its logout timeout; it is [`HostError::Ended`] if the
    /// host ends before that. Requests of handles that wait are reported to the application, and
    /// further ones refused.
    pub fn remove(&self, id: &SessionId) -> Pending<()> {
        let id = id.clone();
        self.put(Ok(id), |id, reply| Command::Remove(id, Removal::new(reply)))
    }

    /// Closes a port and its connections that have not logged on, and [removes](Self::remove) its
    /// sessions.
    pub fn close_port(&self, address: SocketAddr) -> Pending<()> {
        self.put(Ok(address), |address, reply| {
            Command::Close(address, Removal::new(reply))
        })
    }

    /// Describes up to 256 sessions, from index `from` on, in one duty cycle of the host.
    pub fn page(&self, from: usize) -> Pending<SessionPage> {
        self.put(Ok(from), Command::List)
    }

    /// Steers one session. The result is available when the command has begun: a logout ends later.
    pub fn steer(&self, id: &SessionId, steer: Steer) -> Pending<()> {
        let asked = Box::new((id.clone(), steer));
        self.put(Ok(asked), Command::Steer)
    }

    /// Makes a session from a template of the port, or of any port, as a Logon with this identity
    /// would. The session stays until it is removed. The result is its identity, with the qualifier
    /// that a template with [qualifiers](crate::host::Wildcard::qualified) adds: each call makes
    /// another session of such a template, where a Logon takes one that is free.
    pub fn make(&self, port: Option<SocketAddr>, id: &SessionId) -> Pending<SessionId> {
        let asked = Box::new((port, id.clone()));
        self.put(Ok(asked), Command::Make)
    }

    fn put<P, T>(
        &self,
        prepared: Result<P, HostError>,
        command: impl FnOnce(P, Reply<T>) -> Command,
    ) -> Pending<T> {
        let (reply, answer) = sync_channel(1);
        let reply = Reply(reply);
        match prepared {
            Err(error) => reply.send(Err(error)),
            Ok(prepared) => {
                let mut state = self.0.lock();
                if state.ended {
                    drop(state);
                    reply.send(Err(HostError::Ended));
                } else if state.commands.len() >= MAX_COMMANDS {
                    drop(state);
                    reply.send(Err(HostError::Busy));
                } else {
                    state.commands.push_back(command(prepared, reply));
                    drop(state);
                    self.0.announce();
                }
            }
        }
        Pending {
            answer,
            shared: Arc::clone(&self.0),
        }
    }
}

impl fmt::Debug for HostHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostHandle").finish_non_exhaustive()
    }
}

fn now() -> Now {
    Clock::new().read()
}
