//! A port, and its connections whose session is not known yet.
//!
//! Such connections do not delay sessions: their number is limited, and so is the share of a duty
//! cycle that each takes.

use super::allow::AllowList;
use super::incoming::Incoming;
use super::permits::{Full, Permit, Permits};
use super::refusal::Refusal;
use super::transport::{Encrypt, Transport};
use crate::poll::{Interest, Poller, Token};
use crate::slots::Slots;
use crate::tcp::{Accepted, BindError, Inbox, Listener, Received, SocketOptions, Stream};
#[cfg(feature = "tls")]
use crate::tls::TlsServer;
use fanfare_fix::codec::{Decoder, Frame, FrameFinder};
use fanfare_fix::session::{MAX_HEADER_FIELD, Now, Peek, SECOND, SessionId, SubIds, peek_logon};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// A listening socket with its connections that have not logged on. For one thread.
///
/// The caller calls [`turn`](Self::turn) when the descriptor is readable and at
/// [`deadline`](Self::deadline), then [`poll_event`](Self::poll_event) until it returns `None`.
pub struct Port {
    listener: Listener,
    address: SocketAddr,
    options: PortOptions,
    permits: Option<Permits>,
    /// The longest CompID, SubID or LocationID of a Logon.
    max_header_field: usize,
    /// The longest time that a connection may be without a session, in nanoseconds.
    logon_timeout: u64,
    poller: Poller,
    connections: Slots<Unidentified>,
    by_age: Queue,
    by_address: HashMap<IpAddr, Queue>,
    decoder: Decoder,
    /// The pairs of a length and a data field that the decoder knows besides those of the standard.
    data_fields: Vec<(u32, u32)>,
    buffer: Box<[u8]>,
    events: VecDeque<PortEvent>,
    next_tick: u64,
    /// The time until which the listener is not watched.
    rests_until: Option<u64>,
}

/// The options of a port: the clients that may connect, and how.
#[derive(Debug, Clone)]
pub struct PortOptions {
    /// The networks that may connect.
    pub allow: AllowList,
    /// Most connections that have not logged on, at least one. One more takes the place of the
    /// oldest.
    pub max_without_logon: usize,
    /// Most of these from one address, at least one. One more takes the place of the oldest of that
    /// address. The addresses of an IPv6 host, which have the same first 64 bits, count as one.
    pub max_without_logon_per_address: usize,
    /// Longest Logon in bytes. A connection whose first message is longer is closed.
    pub max_logon: usize,
    /// Whether bytes in front of the Logon are skipped, as QuickFIX does. Otherwise the connection
    /// is closed.
    pub skip_noise: bool,
    /// The options of each connection's socket.
    pub socket: SocketOptions,
    pub(crate) encrypt: Encrypt,
}

impl Default for PortOptions {
    /// Returns options that admit every address. Up to 1,000 connections, 500 of them from one
    /// address, may be without a logon, Logons have up to 8 KiB, and noise in front of them is
    /// skipped.
    fn default() -> Self {
        Self::new()
    }
}

impl PortOptions {
    /// Makes options as [`default`](Self::default) does.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            allow: AllowList(Vec::new()),
            max_without_logon: 1000,
            max_without_logon_per_address: 500,
            max_logon: 8 << 10,
            skip_noise: true,
            socket: SocketOptions::new(),
            encrypt: Encrypt::No,
        }
    }

    /// Encrypts all connections.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, tls: TlsServer) -> Self {
        self.encrypt = Encrypt::Server(tls);
        self
    }

    /// Returns whether connections are encrypted.
    #[must_use]
    pub const fn is_encrypted(&self) -> bool {
        !matches!(self.encrypt, Encrypt::No)
    }
}

/// An event of a port.
#[derive(Debug)]
pub enum PortEvent {
    /// The Logon of a connection has arrived.
    Logon(Incoming),
    /// A connection from this address was refused or failed.
    Refused(SocketAddr, Refusal),
    /// The system accepts no connections; the port tries again after 100 ms.
    CannotAccept(io::Error),
}

/// A connection without a session.
struct Unidentified {
    transport: Transport,
    inbox: Inbox,
    permit: Option<Permit>,
    /// The length of the first message, or 0 while it is not known. Nothing is parsed before all of
    /// it has arrived.
    need: usize,
    /// The address under which it is counted.
    address: IpAddr,
    deadline: u64,
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

/// The outcome of a read.
enum Read {
    Nothing,
    Logon(SessionId, SubIds, Vec<u8>),
    Refused(Refusal),
}

/// Events taken from the kernel in one duty cycle.
const EVENTS: usize = 32;
/// Most connections accepted in one duty cycle.
const ACCEPTS: usize = 8;
/// Most reads of one duty cycle, so that sessions do not wait for them. A step of a TLS handshake
/// counts as all of them.
pub(super) const STEPS: usize = 8;
/// Most bytes read at once beyond a Logon.
const READ: usize = 32 << 10;
/// The interval at which deadlines, which are seconds away, are checked, in nanoseconds.
const TICK: u64 = SECOND / 10;
/// The pause of the listener after an error of the system.
const REST: u64 = SECOND / 10;
/// The listener's token in the poller, which no connection has.
const LISTENER: Token = Token(u64::MAX);
/// The beginning of every message.
const MESSAGE_START: &[u8] = b"8=FIX";
/// The address that is reported for a connection that could not be accepted.
const NOBODY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

impl Port {
    /// Listens on `address`; with port 0 the system chooses the port.
    ///
    /// # Errors
    /// The address cannot be bound, or no descriptor is left.
    pub fn bind(address: SocketAddr, options: PortOptions) -> Result<Self, BindError> {
        let failed = |source| BindError { address, source };
        let listener = Listener::bind(address)?;
        listener.set_options(&options.socket).map_err(failed)?;
        let poller = Poller::new(EVENTS).map_err(failed)?;
        let added = poller.add(&listener, LISTENER, Interest::Read);
        added.map_err(failed)?;
        let mut port = Self {
            address: listener.address().map_err(failed)?,
            listener,
            options: PortOptions::new(),
            permits: None,
            max_header_field: MAX_HEADER_FIELD,
            logon_timeout: 10 * SECOND,
            poller,
            connections: Slots::new(),
            by_age: Queue::default(),
            by_address: HashMap::new(),
            decoder: Decoder::new(),
            data_fields: Vec::new(),
            buffer: Box::default(),
            events: VecDeque::new(),
            next_tick: 0,
            rests_until: None,
        };
        port.set_options(options);
        Ok(port)
    }

    /// Returns the address listened on, with the port that the system chose.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the options for connections from now on.
    pub fn set_options(&mut self, options: PortOptions) {
        let room = options.max_logon + READ;
        // The bytes of Logons that are not whole stay readable.
        if room > self.buffer.len() {
            self.buffer = vec![0; room].into_boxed_slice();
        }
        self.options = options;
    }

    /// Changes the limit of the CompIDs, SubIDs and LocationIDs of a Logon, in bytes.
    pub const fn set_max_header_field(&mut self, bytes: usize) {
        self.max_header_field = bytes;
    }

    /// Changes how long new connections may be without a session, in nanoseconds.
    pub const fn set_logon_timeout(&mut self, nanos: u64) {
        self.logon_timeout = nanos;
    }

    /// Sets the pairs of a length and a data field that Logons may have besides those of the
    /// standard. The last pair of a length field applies.
    pub(in crate::host) fn set_data_fields(&mut self, pairs: Vec<(u32, u32)>) {
        if self.data_fields != pairs {
            self.decoder = Decoder::knowing(self.decoder.finder(), &pairs);
            self.data_fields = pairs;
        }
    }

    /// Sets the permits: each connection takes one until it is closed.
    pub fn set_permits(&mut self, permits: Permits) {
        self.permits = Some(permits);
    }

    /// Changes how many permits the port may have.
    pub fn set_max_connections(&mut self, most: usize) {
        if let Some(permits) = &self.permits {
            permits.set_most(most);
        }
    }

    /// Returns the number of connections that have not logged on.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether all connections have logged on.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns the most bytes that the Logons of one duty cycle can have.
    #[must_use]
    pub fn longest_turn(&self) -> usize {
        STEPS * self.buffer.len()
    }

    /// Returns when [`turn`](Self::turn) has work besides what the descriptor reports.
    #[must_use]
    pub fn deadline(&self) -> Option<u64> {
        let all = self.connections.iter();
        let first = all.map(|(_, connection)| connection.deadline).min();
        first.into_iter().chain(self.rests_until).min()
    }

    /// Returns the next event.
    pub fn poll_event(&mut self) -> Option<PortEvent> {
        self.events.pop_front()
    }

    /// Accepts a few connections, and reads from some that are readable. Returns an amount of work.
    ///
    /// # Errors
    /// Those of the system call; none is expected.
    pub fn turn(&mut self, now: Now) -> io::Result<usize> {
        let ready = self.poller.poll(Some(Duration::ZERO))?;
        let mut steps = 0;
        for index in 0..ready {
            let Some(event) = self.poller.event(index) else {
                break;
            };
            if event.token == LISTENER {
                self.accept(now);
            } else if steps < STEPS {
                // The poller reports the others later, after those that it has not reported.
                steps += self.serve(event.token);
            }
        }
        if now.mono >= self.next_tick {
            self.tick(now);
        }
        Ok(ready)
    }

    /// Closes connections that have been without a session for too long.
    pub(super) fn tick(&mut self, now: Now) {
        self.next_tick = now.mono + TICK;
        if self.rests_until.is_some_and(|until| now.mono >= until) {
            let added = self.poller.add(&self.listener, LISTENER, Interest::Read);
            self.rests_until = added.is_err().then(|| now.mono + REST);
        }
        while let Some(token) = self.first_late(now) {
            self.refuse(token, Refusal::Silent);
        }
    }

    fn first_late(&self, now: Now) -> Option<Token> {
        let mut all = self.connections.iter();
        let late = all.find(|(_, connection)| now.mono >= connection.deadline);
        late.map(|(token, _)| token)
    }

    /// Closes all connections that have not logged on.
    pub(super) fn close(&mut self) {
        let all = self.connections.iter().map(|(token, _)| token);
        for token in all.collect::<Vec<_>>() {
            self.refuse(token, Refusal::PortClosed);
        }
    }

    fn accept(&mut self, now: Now) {
        for _ in 0..ACCEPTS {
            match self.listener.accept() {
                Ok(Accepted::Stream(stream)) => self.admit(now, stream),
                Ok(Accepted::Refused) => {
                    self.refused(NOBODY, Refusal::NoDescriptors);
                    // With one closed, the next one finds a descriptor.
                    self.make_room(None, Refusal::TooManyWithoutLogon);
                }
                Ok(Accepted::Nobody) => return,
                Err(error) => return self.rest(now, error),
            }
        }
    }

    /// Pauses the listener after an error that is not the client's and would recur at once.
    fn rest(&mut self, now: Now, error: io::Error) {
        self.make_room(None, Refusal::TooManyWithoutLogon);
        let _ = self.poller.remove(&self.listener);
        self.rests_until = Some(now.mono + REST);
        self.events.push_back(PortEvent::CannotAccept(error));
    }

    fn admit(&mut self, now: Now, stream: Stream) {
        let peer = stream.peer();
        if !self.options.allow.allows(peer.ip()) {
            return self.refused(peer, Refusal::NotAllowed);
        }
        let address = network_of(peer);
        self.limit(address);
        let permit = match self.permit() {
            Ok(permit) => permit,
            Err(why) => return self.refused(peer, why),
        };
        let token = self.connections.next_token();
        let begun = self
            .options
            .encrypt
            .begin(stream, None)
            .and_then(|transport| {
                self.poller.add(&transport, token, Interest::Read)?;
                Ok(transport)
            });
        let transport = match begun {
            Ok(transport) => transport,
            Err(error) => return self.refused(peer, error.into()),
        };
        self.connections.insert(Unidentified {
            transport,
            inbox: Inbox::new(),
            permit,
            need: 0,
            address,
            deadline: now.mono.saturating_add(self.logon_timeout),
        });
        let connections = &self.connections;
        let is_live = |token| connections.get(token).is_some();
        self.by_age.push(token, is_live);
        let of_address = self.by_address.entry(address).or_default();
        of_address.push(token, is_live);
    }

    /// Closes the oldest connection, if the port or `address` has as many as it may have. Silent
    /// connections, however many, do not prevent a Logon, and those of one address close no others.
    fn limit(&mut self, address: IpAddr) {
        let of_address = self.by_address.get(&address);
        let of_address = of_address.map_or(0, |queue| queue.live);
        let wanted = self.options.max_without_logon.max(1);
        let permits = self.permits.as_ref();
        let most = permits.map_or(wanted, |permits| permits.waiting(wanted));
        if of_address >= self.options.max_without_logon_per_address.max(1) {
            self.make_room(Some(address), Refusal::TooManyFromAddress);
        } else if self.by_age.live >= most {
            self.make_room(None, Refusal::TooManyWithoutLogon);
        }
    }

    /// Returns a permit for a connection, in place of the oldest connection if none is left.
    fn permit(&mut self) -> Result<Option<Permit>, Refusal> {
        let Some(permits) = &self.permits else {
            return Ok(None);
        };
        let mut permit = permits.take();
        if permit.is_err()
            && self.make_room(None, Refusal::TooManyWithoutLogon)
            && let Some(permits) = &self.permits
        {
            permit = permits.take();
        }
        permit.map(Some).map_err(|full| match full {
            Full::Port => Refusal::TooManyConnections,
            Full::Descriptors => Refusal::NoDescriptors,
        })
    }

    /// Closes the connection that has been silent for longest, of one address or of all. Returns
    /// whether one was closed.
    fn make_room(&mut self, of: Option<IpAddr>, why: Refusal) -> bool {
        let connections = &self.connections;
        let is_live = |token| connections.get(token).is_some();
        let queue = match of {
            Some(address) => self.by_address.get_mut(&address),
            None => Some(&mut self.by_age),
        };
        let Some(token) = queue.and_then(|queue| queue.oldest(is_live)) else {
            return false;
        };
        self.refuse(token, why);
        true
    }

    /// Reads a connection. Returns its share of [`STEPS`].
    fn serve(&mut self, token: Token) -> usize {
        let refused = match self.read(token) {
            Read::Nothing => false,
            Read::Refused(why) => {
                self.refuse(token, why);
                true
            }
            Read::Logon(id, sub, bytes) => {
                self.log_on(token, id, sub, bytes);
                false
            }
        };
        let connection = self.connections.get(token);
        let computed = connection.is_some_and(|connection| connection.transport.has_computed());
        match computed || refused && self.options.is_encrypted() {
            true => STEPS,
            false => 1,
        }
    }

    fn read(&mut self, token: Token) -> Read {
        // A token without a slot belongs to a connection that was closed earlier in this duty
        // cycle.
        let Some(connection) = self.connections.get_mut(token) else {
            return Read::Nothing;
        };
        let transport = &mut connection.transport;
        let filled = connection
            .inbox
            .fill(&mut self.buffer, |room| transport.receive(room));
        let bytes = match filled {
            Ok((Received::Bytes(_), bytes)) => bytes,
            Ok((Received::Nothing, _)) => return Read::Nothing,
            Ok((Received::Closed, _)) => return Read::Refused(Refusal::Left),
            Err(error) => return Read::Refused(error.into()),
        };
        let begins = bytes.starts_with(MESSAGE_START) || MESSAGE_START.starts_with(bytes);
        if !begins && !self.options.skip_noise {
            return Read::Refused(Refusal::Garbled);
        }
        if bytes.len() < connection.need {
            connection.inbox.keep(bytes);
            return Read::Nothing;
        }
        let longest = self.options.max_logon;
        let need = match FrameFinder::default().find(bytes) {
            Frame::Message { end, .. } => end,
            Frame::Partial { need, .. } => need.unwrap_or(0).max(bytes.len()),
            Frame::Garbled { .. } => 0,
        };
        if need > longest {
            return Read::Refused(Refusal::LongLogon(longest));
        }
        match peek_logon(&mut self.decoder, bytes, self.max_header_field) {
            Peek::Logon(logon) => Read::Logon(logon.session_id(), logon.sub_ids(), bytes.to_vec()),
            Peek::Partial => {
                connection.need = need;
                connection.inbox.keep(bytes);
                Read::Nothing
            }
            Peek::TooLong(field) => Read::Refused(Refusal::TooLong(field)),
            Peek::NotLogon => Read::Refused(Refusal::NotLogon),
            Peek::Garbled(_) => Read::Refused(Refusal::Garbled),
        }
    }

    fn log_on(&mut self, token: Token, id: SessionId, sub: SubIds, bytes: Vec<u8>) {
        let Some(connection) = self.remove(token) else {
            return;
        };
        let Unidentified {
            transport, permit, ..
        } = connection;
        // The descriptor goes to another poller.
        let _ = self.poller.remove(&transport);
        self.events.push_back(PortEvent::Logon(Incoming {
            transport,
            bytes,
            permit,
            id,
            sub,
        }));
    }

    fn refuse(&mut self, token: Token, why: Refusal) {
        if let Some(connection) = self.remove(token) {
            self.refused(connection.transport.peer(), why);
        }
    }

    fn refused(&mut self, address: SocketAddr, why: Refusal) {
        self.events.push_back(PortEvent::Refused(address, why));
    }

    fn remove(&mut self, token: Token) -> Option<Unidentified> {
        let connection = self.connections.remove(token)?;
        self.by_age.live -= 1;
        if let Some(of_address) = self.by_address.get_mut(&connection.address) {
            of_address.live -= 1;
            if of_address.live == 0 {
                self.by_address.remove(&connection.address);
            }
        }
        Some(connection)
    }
}

/// Returns a descriptor that is readable while the port has work.
impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Returns the part of an address that counts as one client: all of an IPv4 address, and the first
/// 64 bits of an IPv6 address.
#[must_use]
pub fn network_of(peer: SocketAddr) -> IpAddr {
    match peer.ip().to_canonical() {
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() >> 64 << 64)),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_of_ipv6_is_one_place_with_all_its_addresses() {
        let of = |text: &str| network_of(SocketAddr::new(text.parse().unwrap(), 1));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
