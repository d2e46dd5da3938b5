//! The FIX session as a state machine without I/O and without a clock.
//!
//! A [`Session`] is fed with bytes and time and asked for bytes, events and the next time it wants
//! to be called. It works on any transport, in any loop, and in a test under virtual time.
//!
//! | method | what it does |
//! |---|---|
//! | `connected`, `disconnected` | a connection has begun, is gone |
//! | `handle_bytes` | received bytes in, one event out; call until it is idle |
//! | `handle_timeout`, `poll_timeout` | time in; when to call again |
//! | `poll_transmit`, `transmitted` | bytes to write, and how many were written |
//! | `poll_event` | events that came without bytes |
//! | `send`, `send_shared`, `logout`, … | what the application wants |
//!
//! After any call, write what `poll_transmit` gives, take events until there are none, and call
//! `handle_timeout` when the monotonic clock reaches `poll_timeout`.
//!
//! The bytes that wait for transmission live in the [`MessageStore`], so that a message is encoded
//! once, kept and sent from the same place. Receive buffers belong to the caller; what decoding
//! needs is in a [`Scratch`] that any number of sessions of one thread share.
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
//! let mut sell = Session::acceptor(Config::new(id), NoResendStore::default());
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
mod chunks;
mod config;
mod event;
mod gap;
mod hook;
mod ids;
mod inbound;
mod incoming_header;
mod logon;
mod memory;
mod now;
mod outbound;
mod outgoing_header;
mod pace;
mod peek;
mod rejects;
mod resend;
mod route;
mod schedule;
mod state;
mod store;
mod timers;
mod validate;

pub use admin::MAX_SEQ_NUM;
pub use config::{
    AnswerLimit, ApplVerId, Config, Credentials, ExtraField, Limits, MAX_HEADER_FIELD, OverRate,
    Rate, ReceiveLimit, SECOND, SendLimit, SessionId, SubIds, Version,
};
pub use event::{AppMessage, DisconnectReason, Event, LogonFault, SendError};
pub use hook::{AdminHook, AdminMessage};
pub use ids::FieldTooLong;
pub use inbound::{Scratch, Step};
pub use logon::WRONG_CREDENTIALS;
pub use memory::{MemoryLimits, MemoryStore, NoResendStore};
pub use now::Now;
pub use peek::{Peek, peek_logon};
pub use route::ReverseRoute;
pub use schedule::{FixedOffset, Schedule, ScheduleError, TimeOfDay, Weekday, Window, Zone};
pub use state::{Role, Session, State};
pub use store::{Again, Entry, Kind, MessageStore, Search, SideBuffer, StoreError, Stored};
pub use validate::{BusinessReason, Context, Fault, RejectReason, Validator};
