//! Listening, and connections that have no session yet.

use super::handler::{Handler, Refusal, SessionKey};
use super::link::Prepared;
use super::reactor::{Host, HostError, Slot};
use super::settings::Acceptor;
use super::templates::Wildcard;
use super::transport::Transport;
use crate::poll::{Interest, Token};
use crate::tcp::{Accepted, Inbox, Listener, Received, Stream};
use fanfare_fix::codec::{Frame, FrameFinder};
use fanfare_fix::session::{MAX_HEADER_FIELD, Now, Peek, SECOND, SessionId, SubIds, peek_logon};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

/// A listening socket with its rules.
pub(super) struct Port {
    pub(super) listener: Listener,
    pub(super) settings: Acceptor,
    pub(super) address: SocketAddr,
    token: Token,
    /// Connections that have not logged on yet.
    lobby: Lobby,
}

/// A port with its sessions, to be hosted.
pub(super) struct Opened {
    listener: Listener,
    address: SocketAddr,
    sessions: Vec<Prepared>,
    /// Without the sessions.
    settings: Acceptor,
}

impl Opened {
    /// Binds the port and opens the stores.
    pub(super) fn open(mut settings: Acceptor, now: Now) -> Result<Self, HostError> {
        let listener = Listener::bind(settings.listen)?;
        let address = listener.address()?;
        let sessions = std::mem::take(&mut settings.sessions).into_iter();
        let sessions = sessions.map(|session| session.prepare(now));
        Ok(Self {
            sessions: sessions.collect::<Result<_, _>>()?,
            listener,
            address,
            settings,
        })
    }
}

/// The connections of a port that have not logged on yet, by age.
#[derive(Default)]
struct Lobby {
    waiting: Queue,
    by_address: HashMap<IpAddr, Queue>,
}

/// Connections in the order of their arrival. The tokens of closed ones stay in `order` until they
/// outnumber the others.
#[derive(Default)]
struct Queue {
    order: VecDeque<Token>,
    live: usize,
}

impl Queue {
    fn push(&mut self, token: Token, is_live: impl Fn(Token) -> bool) {
        if self.order.len() > 2 * self.live + 16 {
            self.order.retain(|&token| is_live(token));
        }
        self.order.push_back(token);
        self.live += 1;
    }

    fn oldest(&mut self, is_live: impl Fn(Token) -> bool) -> Option<Token> {
        while let Some(&token) = self.order.front() {
            if is_live(token) {
                return Some(token);
            }
            self.order.pop_front();
        }
        None
    }
}

/// A connection without a session.
pub(super) struct Greeting {
    pub(super) port: usize,
    pub(super) transport: Transport,
    inbox: Inbox,
    /// The length of the first message, or 0 while it is not known. Nothing is parsed before that
    /// many bytes have arrived.
    need: usize,
    /// The address under which it is counted.
    address: IpAddr,
    pub(super) deadline: u64,
}

/// The outcome of a read from a connection without a session.
enum Heard {
    Nothing,
    Logon(SessionId, SubIds, Vec<u8>),
    Refused(Refusal),
}

/// Most connections accepted from one port in one duty cycle.
const ACCEPTS: usize = 8;
/// Budget of one duty cycle for reads from connections without a session, so that sessions do not
/// wait for them.
pub(super) const STEPS: usize = 8;
/// Most bytes read at once from a connection without a session.
const READ: usize = 32 << 10;

impl<H: Handler> Host<H> {
    /// Listens, and hosts the acceptor's sessions. Returns the address, with the port that the
    /// system chose.
    ///
    /// # Errors
    /// The address cannot be listened on, a session is there already, or a store cannot be
    /// opened.
    pub fn listen(&mut self, settings: Acceptor) -> Result<SocketAddr, HostError> {
        let now = self.clock.read();
        self.open_port(Opened::open(settings, now)?)
    }

    /// Hosts a port and its sessions, or none of them.
    pub(super) fn open_port(&mut self, opened: Opened) -> Result<SocketAddr, HostError> {
        let Opened {
            listener,
            address,
            sessions,
            settings,
        } = opened;
        let port = self.next_port;
        let mut added = Vec::with_capacity(sessions.len());
        for mut prepared in sessions {
            prepared.seat_at(port);
            match self.add(prepared) {
                Ok(key) => added.push(key),
                Err(error) => {
                    added.into_iter().for_each(|key| self.give_up(key));
                    return Err(error);
                }
            }
        }
        for template in settings.wildcards.iter().flat_map(|own| &own.templates) {
            self.make_room(template);
        }
        let token = self.slots.next_token();
        if let Err(error) = self.poller.add(&listener, token, Interest::Read) {
            added.into_iter().for_each(|key| self.give_up(key));
            return Err(error.into());
        }
        self.slots.insert(Slot::Port(port));
        self.next_port += 1;
        let opened = Port {
            listener,
            settings,
            address,
            token,
            lobby: Lobby::default(),
        };
        self.ports.insert(port, opened);
        Ok(address)
    }

    /// Closes a port, and its connections that have not logged on.
    pub(super) fn stop_listening(&mut self, port: usize) {
        let at_port = |slot: &Slot| matches!(slot, Slot::Greeting(own) if own.port == port);
        let waiting = self.slots.iter().filter(|(_, slot)| at_port(slot));
        for token in waiting.map(|(token, _)| token).collect::<Vec<_>>() {
            self.refuse(token, &Refusal::PortClosed);
        }
        if let Some(port) = self.ports.remove(&port) {
            self.slots.remove(port.token);
        }
    }

    /// Accepts connections that wait at a port.
    pub(super) fn accept(&mut self, port: usize, now: Now) -> usize {
        let (mut count, mut timeout) = (0, None);
        while count < ACCEPTS {
            let Some(Port {
                listener, settings, ..
            }) = self.ports.get_mut(&port)
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
                    self.turn_oldest_away(port, peer.ip());
                    let timeout = *timeout.get_or_insert_with(|| self.logon_timeout(port));
                    self.greet(port, stream, now.mono.saturating_add(timeout));
                }
                (None, None) => {}
            }
        }
        count
    }

    /// Closes the oldest connection without a session, if the port or `address` has as many as it
    /// may have. Silent connections, however many, keep nobody out who logs on, and those of one
    /// address close no others.
    fn turn_oldest_away(&mut self, port: usize, address: IpAddr) {
        let slots = &self.slots;
        let is_live = |token| matches!(slots.get(token), Some(Slot::Greeting(_)));
        let Some(Port {
            settings, lobby, ..
        }) = self.ports.get_mut(&port)
        else {
            return;
        };
        let of_address = lobby.by_address.get_mut(&address);
        let most = settings.max_greetings_per_address.max(1);
        let crowd = of_address.filter(|queue| queue.live >= most);
        let (oldest, why) = if let Some(queue) = crowd {
            (queue.oldest(is_live), Refusal::TooManyFromAddress)
        } else if lobby.waiting.live >= settings.max_greetings {
            (lobby.waiting.oldest(is_live), Refusal::TooManyGreetings)
        } else {
            return;
        };
        if let Some(token) = oldest {
            self.refuse(token, &why);
        }
    }

    fn greet(&mut self, port: usize, stream: Stream, deadline: u64) {
        let Some(settings) = self.ports.get(&port).map(|port| &port.settings) else {
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
        let address = peer.ip();
        let greeting = Greeting {
            port,
            transport,
            inbox: Inbox::new(),
            need: 0,
            address,
            deadline,
        };
        self.slots.insert(Slot::Greeting(greeting));
        let slots = &self.slots;
        let is_live = |token| matches!(slots.get(token), Some(Slot::Greeting(_)));
        if let Some(Port { lobby, .. }) = self.ports.get_mut(&port) {
            lobby.waiting.push(token, is_live);
            let of_address = lobby.by_address.entry(address).or_default();
            of_address.push(token, is_live);
        }
    }

    /// How long a connection may be without a session: the longest logon timeout of the sessions
    /// and templates of the port.
    fn logon_timeout(&self, port: usize) -> u64 {
        let wildcards = self.ports.get(&port).map(|port| &port.settings.wildcards);
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
                match self.session_for(token, &id, &sub, now, &bytes) {
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
        let read = |room: &mut [u8]| {
            let most = READ.min(room.len());
            transport.receive(room.get_mut(..most).unwrap_or_default())
        };
        let filled = greeting.inbox.fill(&mut self.bench.buffer, read);
        let bytes = match filled {
            Ok((Received::Bytes(_), bytes)) => bytes,
            Ok((Received::Nothing, _)) => return Heard::Nothing,
            Ok((Received::Closed, _)) => return Heard::Refused(Refusal::NotLogon),
            Err(error) => return Heard::Refused(Refusal::Transport(error)),
        };
        if bytes.len() < greeting.need {
            greeting.inbox.keep(bytes);
            return Heard::Nothing;
        }
        let port = self.ports.get(&greeting.port);
        let longest = port.map_or(0, |port| port.settings.max_logon);
        match peek_logon(self.bench.scratch.decoder(), bytes, limit) {
            Peek::Logon(logon) if logon.message.bytes().len() > longest => {
                Heard::Refused(Refusal::LongLogon(longest))
            }
            Peek::Logon(logon) => Heard::Logon(logon.session_id(), logon.sub_ids(), bytes.to_vec()),
            Peek::Partial => {
                let need = match FrameFinder::default().find(bytes) {
                    Frame::Partial { need, .. } => need.unwrap_or(0),
                    _ => 0,
                };
                if need.max(bytes.len()) > longest {
                    return Heard::Refused(Refusal::LongLogon(longest));
                }
                greeting.need = need;
                greeting.inbox.keep(bytes);
                Heard::Nothing
            }
            Peek::TooLong(field) => Heard::Refused(Refusal::TooLong(field)),
            Peek::NotLogon | Peek::Garbled(_) => Heard::Refused(Refusal::NotLogon),
        }
    }

    /// Hands the connection over to its session.
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
        if let Some(Port { lobby, .. }) = self.ports.get_mut(&greeting.port) {
            lobby.waiting.live -= 1;
            if let Some(of_address) = lobby.by_address.get_mut(&greeting.address) {
                of_address.live -= 1;
                if of_address.live == 0 {
                    lobby.by_address.remove(&greeting.address);
                }
            }
        }
        Some(greeting)
    }
}

/// The address that is reported for a connection that could not be accepted.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
