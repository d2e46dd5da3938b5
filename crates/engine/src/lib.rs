//! The runtime of Fanfare's sans-I/O state machines: threads, sockets, rings, counters, time.
//!
//! | module | contents |
//! |---|---|
//! | [`agent`] | units of work on one to N threads, stopped together, first failure reported |
//! | [`idle`] | threads without work: spin, yield, back off, sleep, wait in the kernel |
//! | [`poll`], [`slots`] | epoll reactor and waker; tokens that lead to connections |
//! | [`tcp`], [`outbound`] | listener, stream, connector with back-off, bounded outbound queue |
//! | `tls` | rustls around a stream (feature `tls`, on by default) |
//! | [`udp`] | datagrams and multicast in batches, kernel stamps and drops |
//! | [`feed`] | the lines of a FAST feed: sockets, arbitration, decoded messages |
//! | [`host`] | FIX initiators and acceptors with their sockets, in ten lines |
//! | [`journal`] | the message store in mapped files, which is also the send buffer |
//! | [`ring`] | messages from thread to thread: broadcast by policy, and one to one |
//! | [`lines`] | whole lines to a file that may refuse them |
//! | [`reopen`] | the reopening of a log whose file was moved |
//! | [`rotate`] | files of lines that end at a size or each day, kept and compressed |
//! | [`settings`] | the settings files of QuickFIX users, and a host with their sessions |
//! | [`clock`] | monotonic time and UTC, one reading a duty cycle |
//! | [`throttle`] | the delay of password checks after wrong ones |
//! | [`zone`] | time zones by name, for the schedules of sessions |
//! | [`counters`] | figures for the operator at the price of a store |
//! | [`levels`] | levels of a program's log, which an operator changes while it runs |
//! | [`cpu`], [`limits`], [`stop`] | pinning, open descriptors, Ctrl-C |
//!
//! After start-up the hot paths allocate nothing, lock nothing and log nothing, and their only
//! system calls are the I/O itself. Linux only.
//!
//! An acceptor that responds to each order:
//!
//! ```no_run
//! use fanfare_engine::host::{Acceptor, Handler, Peer};
//! use fanfare_engine::{idle::Idle, stop::Stop};
//! use fanfare_fix::session::{AppMessage, Config, SessionId, Version};
//!
//! struct Exchange;
//!
//! impl Handler for Exchange {
//!     fn on_message(&mut self, peer: &mut Peer<'_>, order: &AppMessage<'_>) {
//!         let Some(id) = order.message.get(11) else { return };
//!         let sent = peer.send(b"8", |report| { report.field(11, id).char(39, b'0'); });
//!         sent.unwrap_or_else(|error| { eprintln!("{error}"); 0 });
//!     }
//! }
//!
//! let session = Config::new(SessionId::new(Version::Fix44, "EXCHANGE", "TRADER"));
//! let acceptor = Acceptor::new("127.0.0.1:9880".parse()?).session(session);
//! acceptor.run(Exchange, Idle::BackOff, &Stop::on_interrupt()?)?;
//! # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
//! ```
#![deny(unsafe_code)]

pub mod agent;
pub mod clock;
pub mod counters;
pub mod cpu;
pub mod feed;
pub mod host;
pub mod idle;
pub mod journal;
pub mod levels;
pub mod limits;
pub mod lines;
pub mod outbound;
pub mod pad;
pub mod poll;
pub mod private;
pub mod process;
pub mod regular;
pub mod reopen;
pub mod replay;
pub mod ring;
pub mod rotate;
pub mod settings;
pub mod slots;
pub mod stop;
pub mod tcp;
pub mod throttle;
#[cfg(feature = "tls")]
pub mod tls;
pub mod udp;
pub mod zone;

#[allow(unsafe_code)]
mod sys;
