//! A FIX session as a state machine without I/O and without a clock.
//!
//! A [`Session`] takes bytes and the time, and returns bytes, events and the next time at which it
//! has to be called. It works on any transport, in any loop, and in a test under virtual time.
//!
//! | method | what it does |
//! |---|---|
//! | `connected`, `disconnected` | a connection has begun, is gone |
//! | `handle_bytes` | received bytes in, one event out; call until it is idle |
//! | `handle_timeout`, `poll_timeout` | time in; when to call again |
//! | `poll_transmit`, `transmitted` | bytes to write, and how many were written |
//! | `poll_event` | events that came without bytes |
//! | `resend_part` | the application decides on each message of a resend (`Config::ask_resend`) |
//! | `send`, `send_shared`, `logout`, … | requests of the application |
//!
//! After any call, write what `poll_transmit` returns, and take events until there are none. Call
//! `handle_timeout` when the monotonic clock reaches `poll_timeout`.
//!
//! The bytes that wait for transmission are in the [`MessageStore`], so that a message is encoded
//! once, and is kept and sent from the same place. Receive buffers belong to the caller. The memory
//! for decoding is in a [`Scratch`], which any number of sessions of one thread share.
//!
//! ```
//! use fanfare_fix::session::*;
//! use fanfare_wire::UtcTimestamp;
//!
//! let now = Now { mono: 0, utc: UtcTimestamp::from_nanos(1_700_000_000_000_000_000) };
//! let mut scratch = Scratch::default();
//! let id = SessionId::new(Version::Fix44, "BUYSIDE", "SELLSIDE");
//! let mut buy = Session::initiator(Config::new(id), MemoryStore::default());
//! let id = SessionId::new(Version::Fix44, "SELLSIDE", "BUYSIDE");
//! let mut sell = Session::acceptor(Config::new(id), MemoryStore::without_resends(1 << 18));
//!
//! sell.connected(now);
//! buy.connected(now); // writes the Logon
//! let logon = buy.poll_transmit().to_vec();
//! buy.transmitted(logon.len());
//! let mut at = 0;
//! loop {
//!     let step = sell.handle_bytes(now, &mut scratch, &logon[at..]);
//!     at += step.consumed;
//!     if let Some(event) = step.event {
//!         assert!(matches!(event, Event::LoggedOn { heart_bt_int: 30, .. }));
//!     } else if step.consumed == 0 {
//!         break;
//!     }
//! }
//! assert!(sell.is_logged_on());
//! sell.send(now, b"B", |news| { news.str(148, "Open").u64(33, 1).str(58, "Good morning"); })?;
//! # Ok::<(), SendError>(())
//! ```

mod admin;
mod checker;
mod chunks;
mod config;
mod connection;
mod event;
mod gap;
mod hook;
mod identity;
mod ids;
mod inbound;
mod incoming_header;
mod kept_message;
mod logon;
mod memory;
mod now;
mod outbound;
mod outgoing_header;
mod pace;
mod peek;
mod rejects;
mod resend;
mod round_trip;
mod route;
mod schedule;
mod store;
mod timers;
mod unreadable;
mod unsent;
mod validate;

use std::collections::VecDeque;
use std::sync::Arc;

use fanfare_wire::UtcTimestamp;

use crate::codec::{SessionHeader, Sought};
use admin::{Parting, Repeated};
use checker::Checker;
use gap::Gap;
use hook::Hooked;
use incoming_header::LastHeader;
use logon::{PendingLogon, Resets};
use outgoing_header::Fixed;
use pace::{Answers, RateWindow};
use resend::Replay;
use round_trip::RoundTrip;
use timers::Timers;
use unsent::Unsent;

pub use admin::MAX_SEQ_NUM;
pub use config::{
    AnswerLimit, Config, Credentials, ExtraField, Limits, MAX_HEADER_FIELD, OverRate, Rate,
    ReceiveLimit, SECOND, SendLimit, asks_for_new_password,
};
pub use event::{
    AppMessage, DisconnectReason, Event, LogonFault, NEW_PASSWORD, SendError, WRONG_CREDENTIALS,
};
pub use hook::{AdminHook, AdminMessage};
pub use identity::{ApplVerId, SessionId, SessionIdError, SessionIdFault, SubIds, Version};
pub use ids::FieldTooLong;
pub use inbound::{Scratch, Step};
pub use kept_message::{KeptMessage, Resend};
pub use memory::{MemoryLimits, MemoryStore};
pub use now::Now;
pub use peek::{Peek, peek_logon};
pub use route::ReverseRoute;
pub use schedule::{FixedOffset, Schedule, ScheduleError, TimeOfDay, Weekday, Window, Zone};
pub use store::{
    Again, Entry, Kind, MessageStore, OurReset, Search, SideBuffer, StoreError, Stored,
};
pub use validate::{BusinessReason, Context, Fault, RejectReason, Validator};

/// The side of a connection that a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that connects and sends the first Logon(A).
    Initiator,
    /// The side that is connected to and answers the Logon(A).
    Acceptor,
}

/// The state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no connection.
    Idle,
    /// The session is connected, and no Logon(A) has been received yet.
    AwaitingLogon,
    /// A Logon(A) waits for the application's decision.
    AwaitingDecision,
    /// Both Logon(A) messages are exchanged.
    LoggedOn,
    /// The session has sent a Logout(5) and waits for the answer.
    LoggingOut,
    /// The session has ended. The last bytes are to be transmitted, and the connection is to be
    /// closed.
    Ended,
}

/// A FIX session: see the [module](self) for how it is driven.
///
/// A session allocates nothing after warm-up, except while messages are missing, are sent again,
/// or wait for a limited rate or the next logon. It has no receive buffer: its memory consists of
/// its configuration and its store. One thread at a time uses it.
#[derive(Debug)]
pub struct Session<S> {
    config: Config,
    role: Role,
    store: S,
    state: State,
    timers: Timers,
    round_trip: RoundTrip,
    /// The constant header of messages with a shared body.
    shared_header: Option<SessionHeader>,
    /// The fields of the headers of all other messages.
    fixed: Fixed,
    /// The hook of the configuration. It is shared, as it is called while the session writes.
    hooked: Option<Arc<Hooked>>,
    /// The dictionary checks of the application's messages.
    checker: Option<Box<Checker>>,
    notices: VecDeque<Event<'static>>,
    /// The reason for the logout under way, if the application did not request it.
    closing: Option<DisconnectReason>,
    pending_logon: Option<PendingLogon>,
    peer_appl_ver: Option<ApplVerId>,
    our_reset: OurReset,
    /// Whether the application has the message with the expected number. The message counts as
    /// received with the next call.
    unconfirmed: bool,
    gap: Option<Box<Gap>>,
    replay: Option<Box<Replay>>,
    unsent: Unsent,
    last_header: LastHeader,
    /// The progress of the search in the bytes that are kept for the next call.
    sought: Sought,
    /// See `Config::header_field_limit`.
    header_field_limit: usize,
    repeated: Repeated,
    parting: Parting,
    resets: Resets,
    /// The count of bytes that `transmitted` was told of.
    transmitted: u64,
    /// The count of bytes written behind the last message of the application.
    behind: usize,
    /// See `is_cut_short`.
    is_cut_short: bool,
    /// Whether the end of this connection resets with `Config::reset_on_disconnect`: the
    /// counterparty has logged on to an acceptor or answered the Logon(A) of an initiator, or the
    /// session had not begun, so that a reset loses nothing.
    resets_at_end: bool,
    /// The length of the message written last.
    written: usize,
    answers: Answers,
    /// See `refuse_unnumbered`.
    refuses_unnumbered: bool,
    /// The count of Logout(5) messages to counterparties that had not logged on.
    turned_away: Answers,
    /// The times of the newest messages sent and received, where their rate is limited.
    send_window: Option<RateWindow>,
    receive_window: Option<RateWindow>,
    /// How long the bytes at hand may have been left unread, in nanoseconds.
    unread_for: u64,
    /// The number of the last message with a broken field that has not used it up; 0 for none.
    unreadable: u64,
}

impl<S: MessageStore> Session<S> {
    /// Returns a session that sends the Logon(A) when it is connected.
    pub fn initiator(config: Config, store: S) -> Self {
        Self::new(Role::Initiator, config, store)
    }

    /// Returns a session that waits for a connection and a Logon(A).
    pub fn acceptor(config: Config, store: S) -> Self {
        Self::new(Role::Acceptor, config, store)
    }

    fn new(role: Role, mut config: Config, store: S) -> Self {
        config.header_fields.sort_by_key(|field| field.0);
        config.logon_fields.sort_by_key(|field| field.0);
        let header_field_limit = config.header_field_limit();
        let hook = config.admin_hook.clone();
        let hooked = hook.map(|hook| Hooked {
            hook,
            id: config.id.clone(),
        });
        let our_reset = store.our_reset();
        let checks = config.outgoing_validator.clone();
        let checker = checks.map(|checks| Checker::new(checks, &config));
        Self {
            shared_header: outbound::shared_header(&config),
            fixed: Fixed::new(&config),
            send_window: config.send_limit.map(|limit| RateWindow::new(limit.rate)),
            receive_window: config
                .receive_limit
                .map(|limit| RateWindow::new(limit.rate)),
            hooked: hooked.map(Arc::new),
            checker: checker.map(Box::new),
            config,
            role,
            store,
            state: State::Idle,
            timers: Timers::IDLE,
            round_trip: RoundTrip::default(),
            notices: VecDeque::new(),
            closing: None,
            pending_logon: None,
            peer_appl_ver: None,
            our_reset,
            unconfirmed: false,
            gap: None,
            replay: None,
            unsent: Unsent::default(),
            last_header: LastHeader::NONE,
            sought: Sought::default(),
            header_field_limit,
            repeated: Repeated::default(),
            parting: Parting::default(),
            resets: Resets::default(),
            transmitted: 0,
            behind: 0,
            is_cut_short: false,
            resets_at_end: false,
            written: 0,
            answers: Answers::default(),
            refuses_unnumbered: false,
            turned_away: Answers::default(),
            unread_for: 0,
            unreadable: 0,
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Returns the store, with the numbers of both directions.
    pub fn store(&self) -> &S {
        &self.store
    }

    /// Returns the store, for maintenance while there is no connection.
    pub fn store_mut(&mut self) -> &mut S {
        &mut self.store
    }

    /// Ends the session and returns its store.
    pub fn into_store(self) -> S {
        self.store
    }

    /// Returns whether the session is the initiator or the acceptor.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the state of the session.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns whether application messages may be sent.
    pub fn is_logged_on(&self) -> bool {
        self.state == State::LoggedOn
    }

    /// Returns whether the session has a connection. A second one has to be refused.
    pub fn is_connected(&self) -> bool {
        !matches!(self.state, State::Idle | State::Ended)
    }

    /// Returns whether a resend is under way. Messages with a shared body would overtake it.
    #[must_use]
    pub fn is_resending(&self) -> bool {
        self.replay.is_some()
    }

    /// Returns whether messages of the counterparty are missing, and others may wait for them.
    #[must_use]
    pub fn is_missing_messages(&self) -> bool {
        self.gap.is_some()
    }

    /// Returns whether messages of the application were not transmitted, or a resend was under way,
    /// when the last Logout(5) of the counterparty on this connection was received.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        self.is_cut_short
    }

    /// Returns the number of bytes that [`transmitted`](Self::transmitted) was told of, of all
    /// connections.
    #[must_use]
    pub fn bytes_transmitted(&self) -> u64 {
        self.transmitted
    }

    /// Returns when the last whole message of the counterparty was received, or its connection
    /// began, in nanoseconds of the monotonic clock; 0 before the first connection.
    pub fn last_received(&self) -> u64 {
        self.timers.last_received
    }

    /// Counts the silence of the counterparty from `now` on, as if a message had been received.
    /// Call it while the counterparty's bytes are left unread, before `handle_timeout`. A gap is
    /// not requested again within the next second. `last_received` stays as it is.
    pub fn excuse(&mut self, now: Now) {
        self.timers.excuse(now.mono);
    }

    /// Sets how long the bytes that are handled from now on may have been left unread, in
    /// nanoseconds; 0 for bytes that are read when they arrive. Their SendingTime(52) may be older
    /// than `Config::max_latency` by as much.
    pub fn set_unread_for(&mut self, nanos: u64) {
        self.unread_for = nanos;
    }

    /// Returns how long the counterparty took to answer the last answered TestRequest(1) of this
    /// connection, in nanoseconds. The time is that from the call that wrote it to the call that
    /// read the Heartbeat(0). Returns `None` before the first answer, and does not measure a
    /// TestReqID(112) of more than 16 bytes.
    pub fn round_trip(&self) -> Option<u64> {
        self.round_trip.took()
    }

    /// Returns whether the schedule lets the session be connected at this time.
    pub fn is_open(&self, utc: UtcTimestamp) -> bool {
        let open =
            |schedule: &Option<Arc<Schedule>>| schedule.as_ref().is_none_or(|s| s.is_open(utc));
        open(&self.config.schedule) && open(&self.config.logon_schedule)
    }

    /// Returns the DefaultApplVerID(1137) of the counterparty's Logon.
    pub fn peer_appl_ver_id(&self) -> Option<ApplVerId> {
        self.peer_appl_ver
    }

    /// Returns the DefaultApplVerID(1137) of the messages that the session sends.
    fn appl_ver(&self) -> ApplVerId {
        let mirrored = self.config.mirror_appl_ver_id && self.role == Role::Acceptor;
        let theirs = self.peer_appl_ver.filter(|_| mirrored);
        theirs.unwrap_or(self.config.default_appl_ver_id)
    }
}
