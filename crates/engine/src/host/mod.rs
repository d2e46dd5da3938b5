//! Hosting FIX sessions: sockets, stores, reconnection and shutdown around
//! [`Session`](fanfare_fix::session::Session).
//!
//! A [`Host`] is an [`Agent`](crate::agent::Agent) that runs any number of [`Initiator`]s and
//! [`Acceptor`]s on one thread; the application is a [`Handler`]. When the host is stopped it
//! logs every session out first.
//!
//! An acceptor that answers each order:
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

mod greeting;
mod handler;
mod link;
mod log;
mod names;
mod reactor;
mod received;
mod seats;
mod settings;
mod store;
mod templates;
#[cfg(test)]
mod tests;
mod transport;

pub use handler::{Handler, Peer, Peers, Refusal, SessionKey, Verdict};
pub use log::{LogOptions, LogTap, LogTrouble, MessageLog, NoRoom};
pub use names::{CertificateNames, ClientName, ClientNameError, ClientNames, NameKind};
pub use reactor::{Host, HostError};
pub use settings::{
    Acceptor, AcceptorSession, AllowList, Initiator, Network, NetworkError, StoreKind,
};
pub use store::Store;
pub use templates::{IdPattern, Pattern, Wildcard};
