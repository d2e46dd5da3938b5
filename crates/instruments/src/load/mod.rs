//! Load generators: many producers' sessions that send on schedule, and many consumers' sessions
//! that check the messages they receive.
//!
//! Both connect first and run later, so that a program can start one when the other is ready:
//!
//! ```no_run
//! use fanfare_engine::stop::Stop;
//! use fanfare_instruments::load::{
//!     ConsumerOptions, Consumers, ProducerOptions, Producers, Template,
//! };
//!
//! let stop = Stop::new();
//! let options = ConsumerOptions::new("127.0.0.1:3001".parse()?, 200);
//! let consumers = Consumers::connect(&options, &stop)?;
//! let mut options = ProducerOptions::new("127.0.0.1:3000".parse()?, 50);
//! (options.messages, options.rate) = (1_000, 100.0);
//! let producers = Producers::connect(&options, Template::builtin(), &stop)?;
//! let received = std::thread::scope(|scope| {
//!     let watch = stop.clone();
//!     let mut progress = |total| println!("{total}");
//!     let consumers = scope.spawn(move || consumers.run(&watch, &mut progress));
//!     let sent = producers.run(&stop);
//!     stop.raise();
//!     (sent, consumers.join())
//! });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod consumers;
mod order;
mod producers;
mod progress;
mod sessions;
mod subscribe;
mod template;

use std::io;
use std::net::SocketAddr;

use fanfare_engine::host::HostError;

pub use consumers::{ConsumerOptions, ConsumerReport, Consumers};
pub use order::{OrderCheck, OrderCounts};
pub use producers::{ProducerOptions, ProducerReport, Producers};
pub use sessions::Refused;
pub use subscribe::{Asked, SubscribeOptions, SubscribeReport, Subscribers};
pub use template::{Template, TemplateError};

/// The error of a load generator.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// No connection.
    #[error("cannot connect session {session} to {address}: {error}")]
    Connect {
        /// CompID of the session.
        session: String,
        /// The gateway.
        address: SocketAddr,
        /// The error of the system.
        error: io::Error,
    },
    /// No session logged on.
    #[error("no session could log on, {session}: {why}")]
    Logon {
        /// CompID of the first.
        session: String,
        /// The reason.
        why: String,
    },
    /// The wait for the logons was interrupted.
    #[error("interrupted while sessions log on")]
    Interrupted,
    /// A session ended unexpectedly.
    #[error("session {session} ended: {why}")]
    Ended {
        /// CompID of the session.
        session: String,
        /// The reason.
        why: String,
    },
    /// A message cannot be sent in any state of the connection.
    #[error("session {session} cannot send the template: {why}")]
    Send {
        /// CompID of the session.
        session: String,
        /// The reason.
        why: String,
    },
    /// A session cannot be hosted.
    #[error("load generator: {0}")]
    Host(#[from] HostError),
    /// The host failed.
    #[error("load generator: {0}")]
    Io(#[from] io::Error),
}
