//! The ports of a host, and connections whose Logon has arrived.

use super::{Host, Slot};
use crate::host::HostError;
use crate::host::connection::Connection;
use crate::host::handler::Handler;
use crate::host::hosted::Prepared;
use crate::host::incoming::Incoming;
use crate::host::peer::SessionKey;
use crate::host::port::{Port, PortEvent};
use crate::host::refusal::Refusal;
use crate::host::settings::{Acceptor, Admission, Opened};
use crate::host::templates::Wildcard;
use crate::poll::{Interest, Token};
use fanfare_fix::session::{Now, SECOND};
use std::io;
use std::net::SocketAddr;

/// A port of a host.
pub(in crate::host) struct HostPort {
    pub(in crate::host) port: Port,
    pub(in crate::host) wildcards: Vec<Wildcard>,
    token: Token,
}

impl<H: Handler> Host<H> {
    /// Listens on a port and hosts the acceptor's sessions. Returns the address, with the port that
    /// the system chose.
    ///
    /// # Errors
    /// The address cannot be bound, a session is already hosted, or a store cannot be opened.
    pub fn listen(&mut self, settings: Acceptor) -> Result<SocketAddr, HostError> {
        let now = self.clock.read();
        self.open_port(settings.open(now)?)
    }

    /// Hosts a session for one connection whose Logon has arrived, for a caller that has a [`Port`]
    /// of its own. The session is removed when the connection ends.
    ///
    /// # Errors
    /// A session with this identity is already hosted. The connection is closed.
    pub fn admit(
        &mut self,
        now: Now,
        incoming: Incoming,
        admission: Admission,
    ) -> Result<SessionKey, HostError> {
        self.admit_prepared(now, incoming, admission.prepare())
    }

    pub(in crate::host) fn admit_prepared(
        &mut self,
        now: Now,
        incoming: Incoming,
        prepared: Prepared,
    ) -> Result<SessionKey, HostError> {
        let key = self.add(prepared)?;
        self.attach_incoming(key, incoming, now);
        Ok(key)
    }

    /// Hosts a port and all of its sessions, or neither.
    pub(in crate::host) fn open_port(&mut self, opened: Opened) -> Result<SocketAddr, HostError> {
        let Opened {
            port,
            sessions,
            wildcards,
        } = opened;
        let number = self.next_port;
        let mut added = Vec::with_capacity(sessions.len());
        for mut prepared in sessions {
            prepared.set_port(number);
            match self.add(prepared) {
                Ok(key) => added.push(key),
                Err(error) => {
                    added.into_iter().for_each(|key| self.give_up(key));
                    return Err(error);
                }
            }
        }
        for template in wildcards.iter().flat_map(|own| &own.templates) {
            self.make_room(template);
        }
        let token = self.slots.next_token();
        if let Err(error) = self.poller.add(&port, token, Interest::Read) {
            added.into_iter().for_each(|key| self.give_up(key));
            return Err(error.into());
        }
        self.slots.insert(Slot::Port(number));
        self.next_port += 1;
        let address = port.address();
        let own = HostPort {
            port,
            wildcards,
            token,
        };
        self.ports.insert(number, own);
        self.set_limits(number);
        Ok(address)
    }

    /// Sets the limits of a port to those of its sessions and templates: the longest header field,
    /// and the longest logon timeout. The port knows the data fields of all of them, so that it
    /// reads no ID of a Logon in such a field.
    pub(in crate::host) fn set_limits(&mut self, number: usize) {
        let Some(own) = self.ports.get_mut(&number) else {
            return;
        };
        let listed = self.hosted.iter().filter(|hosted| hosted.is_at(number));
        let listed = listed.map(|hosted| hosted.session.config().logon_timeout);
        let wildcards = own.wildcards.iter().filter_map(Wildcard::logon_timeout);
        let longest = listed.chain(wildcards).max();
        own.port.set_logon_timeout(longest.unwrap_or(10 * SECOND));
        if let Some(limit) = self.header_field_limit {
            own.port.set_max_header_field(limit);
        }
        let listed = self.hosted.iter().filter(|hosted| hosted.is_at(number));
        let listed = listed.map(|hosted| hosted.session.config());
        let templates = own.wildcards.iter().flat_map(|own| &own.templates);
        let mut pairs = Vec::new();
        for pair in listed.chain(templates).flat_map(|own| &own.data_fields) {
            if !pairs.contains(pair) {
                pairs.push(*pair);
            }
        }
        own.port.set_data_fields(pairs);
    }

    /// Closes a port, and its connections that have not logged on.
    pub(in crate::host) fn stop_listening(&mut self, number: usize, now: Now) {
        if let Some(own) = self.ports.get_mut(&number) {
            own.port.close();
        }
        self.port_events(number, now);
        if let Some(own) = self.ports.remove(&number) {
            self.slots.remove(own.token);
        }
    }

    /// Serves a port that has work.
    pub(in crate::host) fn serve_port(&mut self, number: usize, now: Now) -> io::Result<usize> {
        let Some(own) = self.ports.get_mut(&number) else {
            return Ok(0);
        };
        if self.bench.handler.handler.room() < own.port.longest_turn() {
            return Ok(0);
        }
        let work = own.port.turn(now)?;
        self.port_events(number, now);
        Ok(work)
    }

    /// Closes connections without a session whose deadline has passed.
    pub(in crate::host) fn tick_ports(&mut self, now: Now) -> usize {
        let mut work = 0;
        for number in 0..self.next_port {
            if let Some(own) = self.ports.get_mut(&number) {
                own.port.tick(now);
                work += self.port_events(number, now);
            }
        }
        work
    }

    fn port_events(&mut self, number: usize, now: Now) -> usize {
        let mut work = 0;
        loop {
            let own = self.ports.get_mut(&number);
            let Some(event) = own.and_then(|own| own.port.poll_event()) else {
                return work;
            };
            work += 1;
            match event {
                PortEvent::Logon(incoming) => self.log_on(number, incoming, now),
                PortEvent::Refused(address, why) => self.bench.handler.refused(address, &why),
                PortEvent::CannotAccept(error) => {
                    let own = self.ports.get(&number);
                    if let Some(address) = own.map(|own| own.port.address()) {
                        self.bench.handler.refused(address, &Refusal::from(error));
                    }
                }
            }
        }
    }

    fn log_on(&mut self, number: usize, mut incoming: Incoming, now: Now) {
        match self.session_for(number, &mut incoming, now) {
            Ok(key) => self.attach_incoming(key, incoming, now),
            Err(why) => self.bench.handler.refused(incoming.address(), &why),
        }
    }

    fn attach_incoming(&mut self, key: SessionKey, incoming: Incoming, now: Now) {
        let Incoming {
            transport,
            bytes,
            permit,
            ..
        } = incoming;
        let hosted = self.hosted.get(key.0);
        let Some(limit) = hosted.map(|hosted| hosted.queue_bytes) else {
            return;
        };
        let connection = Connection::new(transport, limit, permit);
        self.attach(key, connection, now, &bytes);
    }
}
