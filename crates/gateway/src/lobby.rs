//! A listening port and its connections that have not logged on.
//!
//! They wait in front of the sessions: they take neither places nor descriptors from sessions that
//! are logged on, and only a bounded share of a turn.

use crate::counts::LobbyCounts;
use crate::notice::{Notice, Notices, PeerEnd, Refusal};
use crate::registry::Claim;
use crate::rules::{Rules, SideRules};
use crate::seats::{Full, Seat, Seats};
use fanfare_engine::poll::{Interest, Poller, Token};
use fanfare_engine::slots::Slots;
use fanfare_engine::tcp::{Accepted, Inbox, Listener, Received, Stream};
use fanfare_fix::codec::Decoder;
use fanfare_fix::session::{Now, Peek, SECOND, peek_logon};
use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

/// Events taken from the kernel in one turn.
const EVENTS: usize = 32;

/// Connections accepted in one turn.
const ACCEPTS: usize = 4;

/// How long a busy thread leaves new connections waiting, in nanoseconds: looking is a system
/// call, and messages come first.
const PACE: u64 = 1_000_000;

/// How often timers are looked at, in nanoseconds. They are seconds long.
const TICK: u64 = SECOND / 10;

/// How long the listener rests after an error of the system.
const REST: u64 = SECOND / 10;

/// The listener's place in the poller: no connection has it.
const DOOR: Token = Token(u64::MAX);

/// How every message begins.
const MESSAGE_START: &[u8] = b"8=FIX";

/// A port.
pub(crate) struct Lobby {
    listener: Listener,
    poller: Poller,
    waiting: Slots<Waiting>,
    /// Of those that wait, how many there are from one address.
    by_address: HashMap<IpAddr, usize>,
    rules: Rules,
    seats: Seats,
    counts: LobbyCounts,
    notices: Notices,
    buffer: Box<[u8]>,
    decoder: Decoder,
    next_look: u64,
    next_tick: u64,
    /// The listener is not looked at until then.
    rests_until: Option<u64>,
}

/// A connection that has not logged on.
struct Waiting {
    stream: Stream,
    inbox: Inbox,
    deadline: u64,
    seat: Seat,
}

/// A connection whose Logon has come, with the session that it is for.
pub(crate) struct Newcomer {
    pub(crate) stream: Stream,
    /// What has come on it: the Logon, and perhaps more.
    pub(crate) bytes: Vec<u8>,
    pub(crate) claim: Claim,
    pub(crate) rules: Arc<SideRules>,
    pub(crate) seat: Seat,
}

impl Lobby {
    pub(crate) fn new(
        listener: Listener,
        rules: Rules,
        seats: Seats,
        counts: LobbyCounts,
        notices: Notices,
    ) -> io::Result<Self> {
        let poller = Poller::new(EVENTS)?;
        poller.add(&listener, DOOR, Interest::Read)?;
        Ok(Self {
            listener,
            poller,
            waiting: Slots::new(),
            by_address: HashMap::new(),
            // One byte more than a Logon may have: the front of a longer one fills it.
            buffer: vec![0; rules.now().logon_bytes + 1].into_boxed_slice(),
            rules,
            seats,
            counts,
            notices,
            decoder: Decoder::new(),
            next_look: 0,
            next_tick: 0,
            rests_until: None,
        })
    }

    /// One turn: accepts a few connections, reads those that are readable, and calls `seat` with
    /// each whose Logon is whole. Returns the number of events.
    pub(crate) fn turn(&mut self, now: Now, mut seat: impl FnMut(Newcomer)) -> io::Result<usize> {
        if now.mono < self.next_look {
            return Ok(0);
        }
        let ready = self.poller.poll(Some(Duration::ZERO))?;
        for i in 0..ready {
            match self.poller.event(i) {
                Some(event) if event.token == DOOR => self.accept(now),
                Some(event) => match self.hear(event.token) {
                    Ok(newcomer) => newcomer.into_iter().for_each(&mut seat),
                    Err(end) => self.turn_away(event.token, end),
                },
                None => break,
            }
        }
        if ready == 0 {
            self.next_look = now.mono + PACE;
        }
        if now.mono >= self.next_tick {
            self.next_tick = now.mono + TICK;
            self.tick(now);
        }
        Ok(ready)
    }

    /// The most bytes that the newcomers of a turn bring.
    pub(crate) fn longest_read(&self) -> usize {
        EVENTS * self.buffer.len()
    }

    /// Makes the next turn look at the port: the thread may have slept until a connection came.
    pub(crate) fn look_now(&mut self) {
        self.next_look = 0;
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }

    fn accept(&mut self, now: Now) {
        for _ in 0..ACCEPTS {
            match self.listener.accept() {
                Ok(Accepted::Stream(stream)) => self.admit(now, stream),
                Ok(Accepted::Refused) => {
                    self.refused(None, Refusal::NoDescriptor);
                    // The next one finds a descriptor.
                    self.turn_oldest_away(None);
                }
                Ok(Accepted::Nobody) => return,
                Err(error) => return self.rest(now, &error),
            }
        }
    }

    /// Pauses the listener after an error that is not the peer's and would come again at once.
    fn rest(&mut self, now: Now, error: &io::Error) {
        self.turn_oldest_away(None);
        let _ = self.poller.remove(&self.listener);
        self.rests_until = Some(now.mono + REST);
        let error = error.to_string();
        self.notices.tell(Notice::CannotAccept { error });
    }

    /// Admits a connection. The one that has been silent for longest makes room, so that silent
    /// connections, however many, do not keep out one that logs on.
    fn admit(&mut self, now: Now, stream: Stream) {
        let peer = stream.peer();
        let network = network(peer);
        let rules = Arc::clone(self.rules.now());
        let (most, most_of_one) = (rules.not_logged_on, rules.not_logged_on_per_address);
        let of_one = self.by_address.get(&network).copied().unwrap_or(0);
        if of_one >= most_of_one {
            self.turn_oldest_away(Some(network));
        } else if self.waiting.len() >= self.seats.waiting(most) {
            self.turn_oldest_away(None);
        }
        let mut seat = self.seats.take();
        if seat.is_err() && self.turn_oldest_away(None) {
            seat = self.seats.take();
        }
        let seat = match seat {
            Ok(seat) => seat,
            Err(Full::Port) => return self.refused(Some(peer), Refusal::TooMany),
            Err(Full::Descriptors) => return self.refused(Some(peer), Refusal::NoDescriptor),
        };
        let token = self.waiting.next_token();
        if let Err(error) = self.poller.add(&stream, token, Interest::Read) {
            return self.ended(peer, PeerEnd::Broken(error.to_string()));
        }
        self.waiting.insert(Waiting {
            stream,
            inbox: Inbox::new(),
            deadline: now.mono.saturating_add(rules.logon_timeout),
            seat,
        });
        *self.by_address.entry(network).or_default() += 1;
        self.counts.waiting.set(self.waiting.len() as u64);
    }

    /// Ends the connection that has waited longest, of one network or of all; whether there was
    /// one.
    fn turn_oldest_away(&mut self, of: Option<IpAddr>) -> bool {
        let is_of = |waiting: &Waiting| of.is_none_or(|of| network(waiting.stream.peer()) == of);
        let waiting = self.waiting.iter().filter(|(_, waiting)| is_of(waiting));
        let oldest = waiting.min_by_key(|(_, waiting)| waiting.deadline);
        let Some((token, _)) = oldest else {
            return false;
        };
        self.turn_away(token, PeerEnd::Refused(Refusal::MadeRoom));
        true
    }

    /// Bytes have come on a connection.
    fn hear(&mut self, token: Token) -> Result<Option<Newcomer>, PeerEnd> {
        // A token without a slot: its connection ended earlier in this turn.
        let Some(waiting) = self.waiting.get_mut(token) else {
            return Ok(None);
        };
        let Waiting { stream, inbox, .. } = waiting;
        let filled = inbox.fill(&mut self.buffer, |room| stream.receive(room));
        let bytes = match filled {
            Ok((Received::Bytes(_), bytes)) => bytes,
            Ok((Received::Nothing, _)) => return Ok(None),
            Ok((Received::Closed, _)) => return Err(PeerEnd::Left),
            Err(error) => return Err(PeerEnd::Broken(error.to_string())),
        };
        let rules = self.rules.now();
        match claim(&mut self.decoder, rules, bytes).map_err(PeerEnd::Refused)? {
            Some(claim) => {
                let (bytes, rules) = (bytes.to_vec(), Arc::clone(rules));
                Ok(self.leaves(token).map(|Waiting { stream, seat, .. }| {
                    // The descriptor goes to another poller.
                    let _ = self.poller.remove(&stream);
                    Newcomer {
                        stream,
                        bytes,
                        claim,
                        rules,
                        seat,
                    }
                }))
            }
            None => {
                inbox.keep(bytes);
                Ok(None)
            }
        }
    }

    fn tick(&mut self, now: Now) {
        if self.rests_until.is_some_and(|until| now.mono >= until) {
            let added = self.poller.add(&self.listener, DOOR, Interest::Read);
            self.rests_until = added.is_err().then(|| now.mono + REST);
        }
        if self.rules.look() {
            self.seats.set_most(self.rules.now().side.max_sessions);
            let room = self.rules.now().logon_bytes + 1;
            // What has come of Logons that are not whole stays readable.
            if room > self.buffer.len() {
                self.buffer = vec![0; room].into_boxed_slice();
            }
        }
        loop {
            let is_late = |(_, waiting): &(Token, &Waiting)| now.mono >= waiting.deadline;
            let Some(token) = self.waiting.iter().find(is_late).map(|(token, _)| token) else {
                return;
            };
            self.turn_away(token, PeerEnd::Refused(Refusal::LogonTimeout));
        }
    }

    fn turn_away(&mut self, token: Token, end: PeerEnd) {
        if let Some(waiting) = self.leaves(token) {
            let _ = waiting.stream.finish();
            self.ended(waiting.stream.peer(), end);
        }
    }

    fn leaves(&mut self, token: Token) -> Option<Waiting> {
        let waiting = self.waiting.remove(token)?;
        let network = network(waiting.stream.peer());
        if let Some(count) = self.by_address.get_mut(&network) {
            *count -= 1;
            if *count == 0 {
                self.by_address.remove(&network);
            }
        }
        self.counts.waiting.set(self.waiting.len() as u64);
        Some(waiting)
    }

    fn refused(&self, peer: Option<SocketAddr>, why: Refusal) {
        // A caller that was closed before it could be asked has no address.
        let nobody = SocketAddr::new(IpAddr::V4(std::net::Ipv4Addr::UNSPECIFIED), 0);
        self.ended(peer.unwrap_or(nobody), PeerEnd::Refused(why));
    }

    fn ended(&self, peer: SocketAddr, end: PeerEnd) {
        self.counts.refused.increment(1);
        self.notices.tell(Notice::Ended {
            session: None,
            peer,
            end,
            left_out: 0,
        });
    }
}

/// Claims the session of a Logon; `None` while the Logon is not complete.
fn claim(decoder: &mut Decoder, rules: &SideRules, bytes: &[u8]) -> Result<Option<Claim>, Refusal> {
    // A session skips noise in front of a message; a stranger has no claim to that.
    if !bytes.starts_with(MESSAGE_START) && !MESSAGE_START.starts_with(bytes) {
        return Err(Refusal::Garbled);
    }
    let limit = rules.template.max_header_field;
    let logon = match peek_logon(decoder, bytes, limit) {
        Peek::Logon(logon) => logon,
        Peek::TooLong(field) => return Err(Refusal::TooLong(field)),
        Peek::Partial if bytes.len() <= rules.logon_bytes => return Ok(None),
        Peek::Partial | Peek::Garbled(_) => return Err(Refusal::Garbled),
        Peek::NotLogon => return Err(Refusal::NoLogon),
    };
    if !rules.side.admits(logon.sender, logon.target) {
        return Err(Refusal::UnknownSession);
    }
    let claim = rules.registry.claim(logon.session_id());
    claim.map(Some).ok_or(Refusal::AlreadyLoggedOn)
}

/// What is one place of the network: an address, or the 64 bits that all addresses of a host of
/// IPv6 begin with.
fn network(peer: SocketAddr) -> IpAddr {
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
        let of = |text: &str| network(SocketAddr::new(text.parse().unwrap(), 1));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
