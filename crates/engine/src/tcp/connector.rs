//! Connecting and reconnecting.

use super::{Backoff, Lookup, SocketOptions, Stream};
use crate::sys::socket;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// The order in which a [`Connector`] tries its hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum HostOrder {
    /// The next host after a failure, and the first one after a good connection: the others are
    /// for the time in which the first cannot be used.
    #[default]
    Priority,
    /// The next host after each attempt, and again from the first.
    RoundRobin,
}

/// Connects to one of several hosts, in order and again from the first, with a back-off between
/// attempts. It reads no clock and never waits: the caller calls [`poll`](Self::poll) each duty
/// cycle with the monotonic time in nanoseconds. After a connection failed, the caller calls
/// [`lost`](Self::lost) and continues to poll.
pub struct Connector {
    hosts: Vec<SocketAddr>,
    next_host: usize,
    order: HostOrder,
    local: Option<SocketAddr>,
    options: SocketOptions,
    lookup: Option<Lookup>,
    /// Whether there was an attempt, or one was deferred. The first one uses the addresses that the
    /// hosts were given with.
    has_tried: bool,
    backoff: Backoff,
    timeout: u64,
    state: State,
}

enum State {
    Waiting {
        until: u64,
    },
    /// Until there are addresses, or until this time at most.
    LookingUp {
        until: u64,
    },
    Connecting {
        stream: TcpStream,
        to: SocketAddr,
        deadline: u64,
    },
    Connected,
}

/// The result of [`Connector::poll`].
#[derive(Debug)]
pub enum Attempt {
    /// Nothing is to be done before this monotonic time (`u64::MAX` while connected). A connection
    /// attempt under way may have an outcome sooner.
    Wait(u64),
    /// The connection is established. Nothing more happens until [`Connector::lost`].
    Connected(Stream),
    /// An attempt failed; the next one starts at `retry_at`.
    Failed {
        /// The host of the attempt, or an unspecified address if no host has one.
        to: SocketAddr,
        /// The error; `TimedOut` if the host did not respond in time.
        error: io::Error,
        /// The time of the next attempt, in monotonic nanoseconds.
        retry_at: u64,
    },
}

impl Connector {
    /// Makes a connector that starts with the first of `hosts` at the first poll; each attempt has
    /// `timeout`. The back-off grows with each failed attempt and restarts at
    /// [`succeeded`](Self::succeeded).
    #[must_use]
    pub fn new(hosts: Vec<SocketAddr>, backoff: Backoff, timeout: Duration) -> Self {
        let timeout = nanos(timeout);
        Self {
            hosts,
            next_host: 0,
            order: HostOrder::default(),
            local: None,
            options: SocketOptions::new(),
            lookup: None,
            has_tried: false,
            backoff,
            timeout,
            state: State::Waiting { until: 0 },
        }
    }

    /// Sets the order of the hosts.
    #[must_use]
    pub fn in_order(mut self, order: HostOrder) -> Self {
        self.order = order;
        self
    }

    /// Connects from this address of the machine, and from this port unless it is 0.
    #[must_use]
    pub fn bound_to(mut self, local: SocketAddr) -> Self {
        self.local = Some(local);
        self
    }

    /// Sets the options of each connection's socket.
    #[must_use]
    pub fn with_options(mut self, options: SocketOptions) -> Self {
        self.options = options;
        self
    }

    /// Looks the hosts up again in front of each attempt but the first, for as long as an attempt
    /// may take. Beyond that, the attempt uses the addresses known so far. Addresses of another
    /// family than the address of [`bound_to`](Self::bound_to) are left out. Without any address,
    /// the first attempt begins with a lookup, too, and one that finds none fails.
    #[must_use]
    pub fn looking_up(mut self, lookup: Lookup) -> Self {
        self.lookup = Some(lookup);
        self
    }

    /// Returns the name of the host with this address, if hosts are [looked
    /// up](Self::looking_up).
    #[must_use]
    pub fn name_of(&self, address: SocketAddr) -> Option<&str> {
        self.lookup.as_ref()?.name_of(address)
    }

    /// Returns the monotonic time from which [`poll`](Self::poll) has something to do: 0 during an
    /// attempt and a lookup, `u64::MAX` while connected and without hosts to look up.
    #[must_use]
    pub const fn due(&self) -> u64 {
        match &self.state {
            State::Waiting { .. } if self.hosts.is_empty() && self.lookup.is_none() => u64::MAX,
            State::Waiting { until } => *until,
            State::LookingUp { .. } | State::Connecting { .. } => 0,
            State::Connected => u64::MAX,
        }
    }

    /// Makes no attempt before the monotonic time `until`; one under way is abandoned. The back-off
    /// stays as it is.
    pub fn defer(&mut self, until: u64) {
        // The addresses of the hosts may be others by then.
        self.has_tried = true;
        self.state = State::Waiting { until };
    }

    /// Advances as far as `now` (monotonic nanoseconds) permits.
    pub fn poll(&mut self, now: u64) -> Attempt {
        match &self.state {
            State::Connected => Attempt::Wait(u64::MAX),
            State::Waiting { until } if now < *until => Attempt::Wait(*until),
            State::Waiting { .. } => self.start(now),
            &State::LookingUp { until } => self.look_up(now, until),
            State::Connecting { .. } => self.progress(now),
        }
    }

    /// Notes that the connection failed, or could not be used: the next attempt follows after a
    /// back-off. Returns its monotonic time.
    pub fn lost(&mut self, now: u64) -> u64 {
        let until = now.saturating_add(nanos(self.backoff.next_wait()));
        self.state = State::Waiting { until };
        until
    }

    /// Makes the next attempt due at once, and restarts the back-off.
    pub const fn hurry(&mut self) {
        self.backoff.reset();
        if let State::Waiting { until } = &mut self.state {
            *until = 0;
        }
    }

    /// Notes that the connection is good (a Logon was accepted): the back-off restarts, and the
    /// first host is next if the order is [`HostOrder::Priority`]. Without this the back-off also
    /// applies to a peer that accepts connections and then closes them.
    pub const fn succeeded(&mut self) {
        self.backoff.reset();
        if matches!(self.order, HostOrder::Priority) {
            self.next_host = 0;
        }
    }

    fn start(&mut self, now: u64) -> Attempt {
        let has_tried = std::mem::replace(&mut self.has_tried, true);
        match &mut self.lookup {
            Some(lookup) if has_tried || self.hosts.is_empty() => {
                lookup.begin();
                let until = now.saturating_add(self.timeout);
                self.state = State::LookingUp { until };
                self.look_up(now, until)
            }
            _ => self.dial(now),
        }
    }

    fn look_up(&mut self, now: u64, until: u64) -> Attempt {
        if let Some(lookup) = &mut self.lookup {
            if !lookup.poll() && now < until {
                return Attempt::Wait(until);
            }
            let local = self.local;
            let is_usable = |address: &SocketAddr| {
                local.is_none_or(|local| local.is_ipv4() == address.is_ipv4())
            };
            let found: Vec<_> = lookup.addresses().filter(is_usable).collect();
            if !found.is_empty() {
                self.hosts = found;
            }
        }
        self.dial(now)
    }

    fn dial(&mut self, now: u64) -> Attempt {
        // A lookup may have found fewer addresses.
        let count = self.hosts.len().max(1);
        let Some(&to) = self.hosts.get(self.next_host % count) else {
            let Some(to) = self.lookup.as_ref().map(Lookup::nowhere) else {
                return Attempt::Wait(u64::MAX);
            };
            let error = io::Error::new(io::ErrorKind::NotFound, "no host has an address");
            return self.failed(now, to, error);
        };
        self.next_host = (self.next_host + 1) % count;
        let prepare = |fd: BorrowedFd<'_>| self.options.set(fd, to.is_ipv6());
        match socket::connect(to, self.local, prepare) {
            Ok(stream) => {
                let deadline = now.saturating_add(self.timeout);
                self.state = State::Connecting {
                    stream,
                    to,
                    deadline,
                };
                self.progress(now)
            }
            Err(error) => self.failed(now, to, error),
        }
    }

    fn progress(&mut self, now: u64) -> Attempt {
        let State::Connecting {
            stream,
            to,
            deadline,
        } = &self.state
        else {
            return Attempt::Wait(u64::MAX);
        };
        let (to, deadline) = (*to, *deadline);
        match outcome(stream) {
            Ok(true) => self.finish(to, now),
            Ok(false) if now < deadline => Attempt::Wait(deadline),
            Ok(false) => {
                let error = io::Error::new(io::ErrorKind::TimedOut, "no answer in time");
                self.failed(now, to, error)
            }
            Err(error) => self.failed(now, to, error),
        }
    }

    fn failed(&mut self, now: u64, to: SocketAddr, error: io::Error) -> Attempt {
        let trouble = self.lookup.as_mut().and_then(Lookup::take_trouble);
        let error = match trouble {
            Some(trouble) => io::Error::new(error.kind(), format!("{error}; {trouble}")),
            None => error,
        };
        Attempt::Failed {
            to,
            error,
            retry_at: self.lost(now),
        }
    }

    fn finish(&mut self, to: SocketAddr, now: u64) -> Attempt {
        let State::Connecting { stream, .. } = std::mem::replace(&mut self.state, State::Connected)
        else {
            return Attempt::Wait(u64::MAX);
        };
        match Stream::new(stream) {
            Ok(stream) => Attempt::Connected(stream),
            Err(error) => self.failed(now, to, error),
        }
    }
}

/// Returns true if connected, false if not yet.
fn outcome(stream: &TcpStream) -> io::Result<bool> {
    if let Some(error) = stream.take_error()? {
        return Err(error);
    }
    match stream.peer_addr() {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
        Err(error) => Err(error),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
