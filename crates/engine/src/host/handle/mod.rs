//! Other threads' access to a host and its sessions.

mod host_handle;
mod pending;
mod requests;
mod session_handle;
mod steer;

pub use host_handle::HostHandle;
pub use pending::Pending;
pub use session_handle::SessionHandle;
pub use steer::{SessionInfo, SessionPage, Steer};

pub(super) use host_handle::Command;
pub(super) use pending::Removal;

use super::peer::SessionKey;
use crate::pad::Padded;
use crate::poll::{Poller, Token, Waker};
use crate::ring::{Consumer, Record};
use fanfare_fix::codec::EncodeError;
use fanfare_fix::session::{Config, MAX_SEQ_NUM, SendError, SessionId};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;
use thiserror::Error;

/// The number of a request of a [`SessionHandle`]: unique within its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket {
    /// The handle: each handle and each clone has its own number.
    pub handle: u32,
    /// The request, counted from 0 within its handle.
    pub request: u64,
}

impl fmt::Display for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.handle, self.request)
    }
}

/// A request of a [`SessionHandle`] to its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Request<'a> {
    /// Send a message.
    Send {
        /// MsgType(35).
        msg_type: &'a [u8],
        /// The encoded fields after the standard header.
        body: &'a [u8],
    },
    /// Log out, with this Text(58).
    LogOut(&'a str),
    /// End the connection without a logout.
    Disconnect,
    /// Send the next message with this MsgSeqNum(34).
    NextSender(u64),
    /// Expect this MsgSeqNum(34) next.
    NextTarget(u64),
}

/// A request that the host took and cannot do: see
/// [`Handler::on_undone`](super::Handler::on_undone).
#[derive(Debug, Clone, Copy)]
pub struct Undone<'a> {
    /// The session.
    pub session: &'a SessionId,
    /// The number returned to the caller.
    pub ticket: Ticket,
    /// The request.
    pub request: Request<'a>,
    /// The reason; `None` if the session is no longer hosted.
    pub why: Option<SendError>,
}

impl fmt::Display for Undone<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            session, ticket, ..
        } = self;
        write!(f, "request {ticket} of {session}: ")?;
        match &self.why {
            Some(error) => error.fmt(f),
            None => f.write_str("the session was removed"),
        }
    }
}

/// The reason why a [`SessionHandle`] did not take a request. Nothing of the request will happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum HandleError {
    /// The handle's ring is full.
    #[error("the request queue of the host is full")]
    Full,
    /// The message cannot be encoded, or is longer than the session or the handle permits.
    #[error("cannot encode: {0}")]
    Encode(EncodeError),
    /// MsgType(35) is an administrative message, which only the session sends.
    #[error("MsgType(35) belongs to the session layer")]
    AdminMessage,
    /// The number is not from 1 to 2^60.
    #[error("MsgSeqNum(34): expected 1 to {MAX_SEQ_NUM}, found {0}")]
    Number(u64),
    /// The session was removed, or its host has ended.
    #[error("the session is no longer hosted")]
    Gone,
}

impl Request<'_> {
    const SEND: u32 = 0;
    const LOG_OUT: u32 = 1;
    const DISCONNECT: u32 = 2;
    const NEXT_SENDER: u32 = 3;
    const NEXT_TARGET: u32 = 4;

    /// Returns the request in a record of a handle; `None` for a record that no handle writes.
    fn read(record: Record<'_>) -> Option<Request<'_>> {
        let number = || record.bytes.try_into().ok().map(u64::from_le_bytes);
        match record.kind {
            Self::SEND => {
                let (&len, rest) = record.bytes.split_first()?;
                let (msg_type, body) = rest.split_at_checked(len.into())?;
                Some(Request::Send { msg_type, body })
            }
            Self::LOG_OUT => Some(Request::LogOut(std::str::from_utf8(record.bytes).ok()?)),
            Self::DISCONNECT => Some(Request::Disconnect),
            Self::NEXT_SENDER => Some(Request::NextSender(number()?)),
            Self::NEXT_TARGET => Some(Request::NextTarget(number()?)),
            _ => None,
        }
    }
}

/// Returns whether a number may be set as MsgSeqNum(34).
const fn is_seq_num(number: u64) -> bool {
    matches!(number, 1..=MAX_SEQ_NUM)
}

/// The state shared by a host and all its handles.
pub(super) struct Shared {
    /// Whether anything waits for the host. It has a cache line of its own, as the host reads it
    /// each duty cycle.
    rung: Padded<AtomicBool>,
    /// Whether part of that is in `state`: the host takes the lock for nothing else.
    news: AtomicBool,
    waker: Waker,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    sessions: HashMap<SessionId, Place>,
    /// Rings of handles that the host has not seen yet.
    rings: Vec<Requests>,
    /// The number of handles made.
    handles: u32,
    commands: VecDeque<Command>,
    /// The host's thread, while the host runs as an agent.
    thread: Option<ThreadId>,
    ended: bool,
}

/// The place of a hosted session. A key is reused, a serial number is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    key: SessionKey,
    serial: u64,
    max_send: usize,
}

/// The host's end of a handle.
struct Requests {
    ring: Consumer,
    session: Arc<SessionId>,
    place: Place,
    handle: u32,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the host that a new handle or a command waits for it.
    fn announce(&self) {
        self.news.store(true, Ordering::Release);
        self.ring();
    }

    /// Notes for the host's next duty cycle that a command waits.
    fn remind(&self) {
        self.news.store(true, Ordering::Release);
        self.rung.store(true, Ordering::Release);
    }

    /// Tells the host that work waits for it.
    fn ring(&self) {
        self.rung.store(true, Ordering::Release);
        self.waker.wake();
    }
}

/// The host's own side.
pub(super) struct Remote {
    shared: Arc<Shared>,
    requests: Vec<Requests>,
    /// The serial number of the last session.
    serial: u64,
}

/// The token of the waker, which no connection has.
const WAKER: Token = Token(u64::MAX);

impl Remote {
    pub(super) fn new(poller: &Poller) -> io::Result<Self> {
        let shared = Shared {
            rung: Padded(AtomicBool::new(false)),
            news: AtomicBool::new(false),
            waker: Waker::new(poller, WAKER)?,
            state: Mutex::default(),
        };
        Ok(Self {
            shared: Arc::new(shared),
            requests: Vec::new(),
            serial: 0,
        })
    }

    /// Returns whether anything waits.
    #[inline]
    pub(super) fn is_rung(&self) -> bool {
        self.shared.rung.load(Ordering::Acquire)
    }

    pub(super) fn begin(&self) {
        self.shared.lock().thread = Some(std::thread::current().id());
    }

    pub(super) fn prepare_sleep(&self) {
        self.shared.waker.prepare_sleep();
    }

    pub(super) fn awake(&self) {
        self.shared.waker.awake();
    }

    /// Returns the place of a session.
    pub(super) fn key(&self, id: &SessionId) -> Option<SessionKey> {
        self.shared.lock().sessions.get(id).map(|place| place.key)
    }

    /// Notes that a session is hosted. Returns its serial number.
    pub(super) fn add(&mut self, key: SessionKey, config: &Config) -> u64 {
        self.serial += 1;
        let place = Place {
            key,
            serial: self.serial,
            max_send: config.max_send,
        };
        let mut state = self.shared.lock();
        state.sessions.insert(config.id.clone(), place);
        self.serial
    }

    /// Notes that a session is no longer hosted; its handles are closed in the next duty cycle.
    pub(super) fn remove(&self, id: &SessionId) {
        self.shared.lock().sessions.remove(id);
        self.shared.rung.store(true, Ordering::Release);
    }
}

/// Makes the handles report that the host is gone.
impl Drop for Remote {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.ended = true;
        state.sessions.clear();
        let commands = std::mem::take(&mut state.commands);
        let rings = std::mem::take(&mut state.rings);
        drop(state);
        drop((commands, rings));
    }
}
