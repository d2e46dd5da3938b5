//! Listening, and connections of which it is not yet known whose they are.

use super::handler::{Handler, Refusal, SessionKey};
use super::link::Hosted;
use super::reactor::{Host, HostError, Slot};
use super::settings::{Acceptor, StoreKind};
use super::transport::Transport;
use crate::poll::{Interest, Token};
use crate::tcp::{Accepted, Inbox, Listener, Received, Stream};
use fanfare_fix::session::{
    Config, MAX_HEADER_FIELD, Now, Peek, SECOND, Session, SessionId, SubIds, peek_logon,
};
use std::net::{IpAddr, SocketAddr};

/// A listening socket with its rules.
pub(super) struct Port {
    pub(super) listener: Listener,
    settings: Acceptor,
    /// Connections that have not logged on yet.
    greetings: usize,
    /// Sessions that were made for counterparties not listed.
    made: usize,
}

/// A connection without a session.
pub(super) struct Greeting {
    port: usize,
    transport: Transport,
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
        for (config, store) in std::mem::take(&mut settings.sessions) {
            self.accept_session(config, &store)?;
        }
        if let Some(wildcard) = &settings.wildcard {
            self.make_room(&wildcard.template);
        }
        self.ports.push(Port {
            listener,
            settings,
            greetings: 0,
            made: 0,
        });
        Ok(address)
    }

    fn accept_session(
        &mut self,
        config: Config,
        store: &StoreKind,
    ) -> Result<SessionKey, HostError> {
        let store = store.open(&config.id, self.clock.read().utc)?;
        self.add(Hosted::new(Session::acceptor(config, store), None))
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
                (_, Some(why)) => self.bench.handler.on_refused(peer, &why),
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
                return self
                    .bench
                    .handler
                    .on_refused(peer, &Refusal::Transport(error));
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
        let wildcard = self
            .ports
            .get(port)
            .and_then(|port| port.settings.wildcard.as_ref());
        let listed = self
            .hosted
            .iter()
            .map(|hosted| hosted.session.config().logon_timeout);
        let wildcard = wildcard.map(|wildcard| wildcard.template.logon_timeout);
        listed.chain(wildcard).max().unwrap_or(10 * SECOND)
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

    /// The session of these CompIDs that names most of what the Logon does, and nothing else.
    fn named(&self, id: &SessionId, sub: &SubIds) -> Option<SessionKey> {
        if sub.is_empty() {
            return self.keys.get(id).copied();
        }
        let same = |known: &SessionId| {
            (known.version, &known.sender, &known.target) == (id.version, &id.sender, &id.target)
        };
        let fitting = self
            .hosted
            .iter()
            .enumerate()
            .filter_map(|(index, hosted)| {
                let known = &hosted.session.config().id;
                let named = match &known.sub {
                    _ if !same(known) => None,
                    None => Some(0),
                    Some(own) => own.found_in(sub),
                };
                Some((named?, SessionKey(index)))
            });
        let best = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best });
        best.map(|(_, key)| key)
    }

    /// The session that the Logon is for, made if it may be.
    fn session_for(
        &mut self,
        token: Token,
        id: &SessionId,
        sub: &SubIds,
    ) -> Result<SessionKey, Refusal> {
        if let Some(key) = self.named(id, sub) {
            let taken = self
                .hosted
                .get(key.0)
                .is_none_or(|h| h.session.is_connected());
            return if taken {
                Err(Refusal::AlreadyConnected(id.clone()))
            } else {
                Ok(key)
            };
        }
        let unknown = || Refusal::UnknownSession(id.clone().with_sub_ids(sub.clone()));
        let Some(Slot::Greeting(greeting)) = self.slots.get(token) else {
            return Err(unknown());
        };
        let port = self.ports.get_mut(greeting.port).ok_or_else(unknown)?;
        let wildcard = port
            .settings
            .wildcard
            .as_ref()
            .filter(|w| port.made < w.max_sessions);
        let wildcard = wildcard.ok_or_else(unknown)?;
        port.made += 1;
        let precision = id.version.precision();
        let config = Config {
            id: id.clone(),
            precision,
            ..wildcard.template.clone()
        };
        let store = wildcard.store.clone();
        self.accept_session(config, &store)
            .map_err(|error| Refusal::Store(error.to_string()))
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
            self.bench
                .handler
                .on_refused(greeting.transport.peer(), why);
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
