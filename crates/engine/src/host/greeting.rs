//! Listening, and connections of which it is not yet known whose they are.

use super::handler::{Handler, Refusal, SessionKey};
use super::reactor::{Host, HostError, Slot};
use super::seats::Seat;
use super::settings::Acceptor;
use super::templates::Wildcard;
use super::transport::Transport;
use crate::poll::{Interest, Token};
use crate::tcp::{Accepted, Inbox, Listener, Received, Stream};
use fanfare_fix::session::{MAX_HEADER_FIELD, Now, Peek, SECOND, SessionId, SubIds, peek_logon};
use std::net::{IpAddr, SocketAddr};

/// A listening socket with its rules.
pub(super) struct Port {
    pub(super) listener: Listener,
    pub(super) settings: Acceptor,
    /// Connections that have not logged on yet.
    greetings: usize,
}

/// A connection without a session.
pub(super) struct Greeting {
    pub(super) port: usize,
    pub(super) transport: Transport,
    inbox: Inbox,
    pub(super) deadline: u64,
}

/// What the bytes of a greeting came to.
enum Heard {
    Nothing,
    Logon(SessionId, SubIds, Vec<u8>),
    Refused(Refusal),
}

/// Most connections taken from one port in one duty cycle.
const ACCEPTS: usize = 64;

impl<H: Handler> Host<H> {
    /// Listens, and hosts the acceptor's sessions. Gives the address, with the port that the
    /// system chose.
    ///
    /// # Errors
    /// The address cannot be listened on, a session is there already, or a store cannot be
    /// opened.
    pub fn listen(&mut self, mut settings: Acceptor) -> Result<SocketAddr, HostError> {
        let listener = Listener::bind(settings.listen)?;
        let address = listener.address()?;
        let token = self.slots.insert(Slot::Port(self.ports.len()));
        self.poller.add(&listener, token, Interest::Read)?;
        let port = self.ports.len();
        for listed in std::mem::take(&mut settings.sessions) {
            let seat = Seat {
                port,
                names: listed.names,
                made: None,
            };
            self.accept_session(listed.session, &listed.store, seat, None)?;
        }
        let templates = settings.wildcards.iter().flat_map(|own| &own.templates);
        for template in templates {
            self.make_room(template);
        }
        self.ports.push(Port {
            listener,
            settings,
            greetings: 0,
        });
        Ok(address)
    }

    /// Takes the callers that wait at a port.
    pub(super) fn accept(&mut self, port: usize, now: Now) -> usize {
        let mut count = 0;
        while count < ACCEPTS {
            let Some(Port {
                listener, settings, ..
            }) = self.ports.get_mut(port)
            else {
                break;
            };
            let (stream, refusal) = match listener.accept() {
                Ok(Accepted::Stream(stream)) if !settings.allow.allows(stream.peer().ip()) => {
                    (Some(stream), Some(Refusal::NotAllowed))
                }
                Ok(Accepted::Stream(stream)) => (Some(stream), None),
                Ok(Accepted::Refused) => (None, Some(Refusal::NoDescriptors)),
                Ok(Accepted::Nobody) => break,
                Err(error) => (None, Some(Refusal::Transport(error))),
            };
            count += 1;
            let peer = stream.as_ref().map_or(NOBODY, Stream::peer);
            match (stream, refusal) {
                (_, Some(why)) => self.bench.handler.refused(peer, &why),
                (Some(stream), None) => {
                    self.turn_oldest_away(port);
                    self.greet(port, stream, now);
                }
                (None, None) => {}
            }
        }
        count
    }

    /// Whoever has been silent for longest makes room: callers that say nothing, however many,
    /// do not keep one out who logs on.
    fn turn_oldest_away(&mut self, port: usize) {
        let is_full = |port: &Port| port.greetings >= port.settings.max_greetings;
        if !self.ports.get(port).is_some_and(is_full) {
            return;
        }
        let greetings = self.slots.iter().filter_map(|(token, slot)| match slot {
            Slot::Greeting(greeting) if greeting.port == port => Some((greeting.deadline, token)),
            _ => None,
        });
        if let Some((_, token)) = greetings.min_by_key(|(deadline, _)| *deadline) {
            self.refuse(token, &Refusal::TooManyGreetings);
        }
    }

    fn greet(&mut self, port: usize, stream: Stream, now: Now) {
        let Some(settings) = self.ports.get(port).map(|port| &port.settings) else {
            return;
        };
        let (peer, token) = (stream.peer(), self.slots.next_token());
        let begun = settings.encrypt.begin(stream).and_then(|transport| {
            self.poller.add(&transport, token, Interest::Read)?;
            Ok(transport)
        });
        let transport = match begun {
            Ok(transport) => transport,
            Err(error) => {
                return self.bench.handler.refused(peer, &Refusal::Transport(error));
            }
        };
        let deadline = now.mono.saturating_add(self.logon_timeout(port));
        let greeting = Greeting {
            port,
            transport,
            inbox: Inbox::new(),
            deadline,
        };
        self.slots.insert(Slot::Greeting(greeting));
        if let Some(port) = self.ports.get_mut(port) {
            port.greetings += 1;
        }
    }

    /// A connection without a session may last as long as the longest logon timeout of those
    /// that it could turn out to be.
    fn logon_timeout(&self, port: usize) -> u64 {
        let wildcards = self.ports.get(port).map(|port| &port.settings.wildcards);
        let wildcards = wildcards.into_iter().flatten();
        let listed = self.hosted.iter().filter(|hosted| hosted.is_at(port));
        let listed = listed.map(|hosted| hosted.session.config().logon_timeout);
        let all = listed.chain(wildcards.filter_map(Wildcard::logon_timeout));
        all.max().unwrap_or(10 * SECOND)
    }

    /// Bytes have come on a connection without a session.
    pub(super) fn hear(&mut self, token: Token, now: Now) -> usize {
        match self.listen_to(token) {
            Heard::Nothing => 0,
            Heard::Refused(why) => {
                self.refuse(token, &why);
                1
            }
            Heard::Logon(id, sub, bytes) => {
                match self.session_for(token, &id, &sub) {
                    Ok(key) => self.seat(token, key, now, &bytes),
                    Err(why) => self.refuse(token, &why),
                }
                1
            }
        }
    }

    fn listen_to(&mut self, token: Token) -> Heard {
        let Some(Slot::Greeting(greeting)) = self.slots.get_mut(token) else {
            return Heard::Nothing;
        };
        let limit = self.header_field_limit.unwrap_or(MAX_HEADER_FIELD);
        let transport = &mut greeting.transport;
        let filled = greeting
            .inbox
            .fill(&mut self.bench.buffer, |room| transport.receive(room));
        let bytes = match filled {
            Ok((Received::Bytes(_), bytes)) => bytes,
            Ok((Received::Nothing, _)) => return Heard::Nothing,
            Ok((Received::Closed, _)) => return Heard::Refused(Refusal::NotLogon),
            Err(error) => return Heard::Refused(Refusal::Transport(error)),
        };
        match peek_logon(self.bench.scratch.decoder(), bytes, limit) {
            Peek::Logon(logon) => Heard::Logon(logon.session_id(), logon.sub_ids(), bytes.to_vec()),
            Peek::Partial => {
                greeting.inbox.keep(bytes);
                Heard::Nothing
            }
            Peek::TooLong(field) => Heard::Refused(Refusal::TooLong(field)),
            Peek::NotLogon | Peek::Garbled(_) => Heard::Refused(Refusal::NotLogon),
        }
    }

    /// The connection becomes the session's.
    fn seat(&mut self, token: Token, key: SessionKey, now: Now, bytes: &[u8]) {
        let Some(greeting) = self.take_greeting(token) else {
            return;
        };
        // The descriptor is registered under the old token; `attach` gives it the new one.
        self.attach(key, greeting.transport, now, bytes);
    }

    /// Closes a connection without a session.
    pub(super) fn refuse(&mut self, token: Token, why: &Refusal) {
        if let Some(greeting) = self.take_greeting(token) {
            self.bench.handler.refused(greeting.transport.peer(), why);
        }
    }

    fn take_greeting(&mut self, token: Token) -> Option<Greeting> {
        let Some(Slot::Greeting(greeting)) = self.slots.remove(token) else {
            return None;
        };
        if let Some(port) = self.ports.get_mut(greeting.port) {
            port.greetings -= 1;
        }
        Some(greeting)
    }
}

/// The address of a caller that was gone before it could be asked.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
