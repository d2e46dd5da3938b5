//! The host's execution of the requests of handles.

use super::pending::Reply;
use super::{Command, HostHandle, Removal, Request, Requests, Ticket, Undone};
use crate::host::hosted::Prepared;
use crate::host::incoming::Incoming;
use crate::host::peer::SessionKey;
use crate::host::{Handler, Host, HostError};
use fanfare_fix::session::{MessageStore, Now, SendError, Session};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Most requests of one handle in one duty cycle.
const BATCH: usize = 64;

impl<H: Handler> Host<H> {
    /// Returns access to this host from other threads.
    #[must_use]
    pub fn handle(&self) -> HostHandle {
        HostHandle(Arc::clone(&self.remote.shared))
    }

    /// Executes the requests of other threads. Costs one load while they have none.
    #[inline]
    pub(in super::super) fn take_requests(&mut self, now: Now) -> usize {
        match self.remote.is_rung() {
            true => self.do_requests(now),
            false => 0,
        }
    }

    #[inline(never)]
    fn do_requests(&mut self, now: Now) -> usize {
        // With acquire, everything stored before the flag was set is visible from here on.
        self.remote.shared.rung.swap(false, Ordering::AcqRel);
        let news = self.remote.shared.news.swap(false, Ordering::AcqRel);
        let command = if news { self.take_news() } else { None };
        let mut work = 0;
        // Ends of sessions and calls of the handler may need the list.
        let mut all = std::mem::take(&mut self.remote.requests);
        all.retain_mut(|own| {
            let (taken, stays) = self.serve(own, now);
            work += taken;
            stays
        });
        all.append(&mut self.remote.requests);
        self.remote.requests = all;
        // Earlier requests come first, up to `BATCH` of each handle, so that a session sends its
        // messages before it is removed.
        if let Some(command) = command {
            self.command(command, now);
            work += 1;
        }
        work
    }

    /// Takes over new handles. Returns the next command.
    fn take_news(&mut self) -> Option<Command> {
        let shared = &self.remote.shared;
        let mut state = shared.lock();
        self.remote.requests.append(&mut state.rings);
        let command = state.commands.pop_front();
        if !state.commands.is_empty() {
            shared.remind();
        }
        command
    }

    /// Executes some requests of a handle. Returns their number, and whether more may wait.
    fn serve(&mut self, own: &mut Requests, now: Now) -> (usize, bool) {
        let (key, serial) = (own.place.key, own.place.serial);
        let hosted = self.hosted.get(key.0);
        let is_hosted = hosted.is_some_and(|hosted| hosted.serial == serial);
        if !is_hosted {
            own.ring.close();
        }
        let taken = self.do_batch(own, now);
        if taken > 0 && is_hosted {
            self.write(key, now);
        }
        if own.ring.backlog() > 0 {
            self.remote.shared.rung.store(true, Ordering::Release);
            return (taken, true);
        }
        (taken, is_hosted && !own.ring.is_finished())
    }

    fn do_batch(&mut self, own: &mut Requests, now: Now) -> usize {
        let Requests {
            ring,
            session,
            place,
            handle,
        } = own;
        let hosted = self.hosted.get_mut(place.key.0);
        let mut hosted = hosted.filter(|hosted| hosted.serial == place.serial);
        let handler = &mut self.bench.handler;
        ring.read(BATCH, |record| {
            let sequence = record.sequence;
            let Some(request) = Request::read(record) else {
                return;
            };
            let why = match &mut hosted {
                Some(hosted) => match request.carry_out(&mut hosted.session, now) {
                    Ok(()) => return,
                    Err(error) => Some(error),
                },
                None => None,
            };
            let undone = Undone {
                session,
                ticket: Ticket {
                    handle: *handle,
                    request: sequence,
                },
                request,
                why,
            };
            handler.call(Some(&**session), |handler| handler.on_undone(&undone));
        })
    }

    fn command(&mut self, command: Command, now: Now) {
        match command {
            Command::Add(prepared, reply) => reply.send(self.add(*prepared)),
            Command::AddTo(address, mut prepared, reply) => {
                let added = match self.port_at(address) {
                    Some(port) => {
                        prepared.set_port(port);
                        let added = self.add(*prepared);
                        self.set_limits(port);
                        added
                    }
                    None => Err(HostError::NoPort(address)),
                };
                reply.send(added);
            }
            Command::Admit(admitted, reply) => self.admit_command(admitted, reply, now),
            Command::Open(opened, reply) => reply.send(self.open_port(*opened)),
            Command::Remove(id, removal) => match self.remote.key(&id) {
                Some(key) => self.remove(key, now, removal),
                None => Removal::fail(removal, HostError::Unknown(id)),
            },
            Command::Close(address, removal) => self.close_port(address, now, removal),
            Command::List(from, reply) => reply.send(Ok(self.list(from, now))),
            Command::Steer(asked, reply) => reply.send(self.steer(asked.0, asked.1, now)),
            Command::Make(asked, reply) => reply.send(self.make_at(asked.0, asked.1, now)),
        }
    }

    /// Hosts a session for one connection, when the handler has capacity for the bytes behind its
    /// Logon.
    fn admit_command(
        &mut self,
        admitted: Box<(Incoming, Prepared)>,
        reply: Reply<SessionKey>,
        now: Now,
    ) {
        let bytes = admitted.0.bytes().len();
        if self.bench.handler.handler.room() >= bytes {
            let (incoming, prepared) = *admitted;
            return reply.send(self.admit_prepared(now, incoming, prepared));
        }
        let shared = &self.remote.shared;
        let command = Command::Admit(admitted, reply);
        shared.lock().commands.push_front(command);
        shared.remind();
    }

    /// Logs a session out and removes it when the logout is complete.
    fn remove(&mut self, key: SessionKey, now: Now, removal: Arc<Removal>) {
        let Some(hosted) = self.hosted.get_mut(key.0) else {
            return;
        };
        hosted.removals.push(removal);
        hosted.connector = None;
        if hosted.link.is_none() {
            return self.give_up(key);
        }
        hosted.session.logout(now, "");
        self.write(key, now);
    }

    /// Returns the number of the port that listens on this address.
    pub(super) fn port_at(&self, address: SocketAddr) -> Option<usize> {
        let mut ports = self.ports.iter();
        let found = ports.find(|(_, own)| own.port.address() == address);
        found.map(|(&port, _)| port)
    }

    fn close_port(&mut self, address: SocketAddr, now: Now, removal: Arc<Removal>) {
        let Some(port) = self.port_at(address) else {
            return Removal::fail(removal, HostError::NoPort(address));
        };
        self.stop_listening(port, now);
        for index in 0..self.hosted.len() {
            if self.hosted.get(index).is_some_and(|h| h.is_at(port)) {
                self.remove(SessionKey(index), now, Arc::clone(&removal));
            }
        }
        Removal::done(removal);
    }

    /// Stops taking requests, after executing those of handles that wait, so that the sessions have
    /// them before their logout. Callers of commands that wait learn that the host has ended.
    pub(in super::super) fn end_requests(&mut self, now: Now) {
        let mut state = self.remote.shared.lock();
        state.ended = true;
        state.thread = None;
        self.remote.requests.append(&mut state.rings);
        let commands = std::mem::take(&mut state.commands);
        drop(state);
        drop(commands);
        for mut own in std::mem::take(&mut self.remote.requests) {
            own.ring.close();
            while self.serve(&mut own, now).0 > 0 {}
        }
    }
}

impl Request<'_> {
    fn carry_out<S: MessageStore>(
        self,
        session: &mut Session<S>,
        now: Now,
    ) -> Result<(), SendError> {
        match self {
            Self::Send { msg_type, body } => {
                let sent = session.send(now, msg_type, |out| {
                    out.raw(body);
                });
                return sent.map(drop);
            }
            Self::LogOut(text) => session.logout(now, text),
            Self::Disconnect => session.close(now),
            Self::NextSender(seq) => return session.change_next_sender(now, seq),
            Self::NextTarget(seq) => return session.change_next_target(now, seq),
        }
        Ok(())
    }
}
