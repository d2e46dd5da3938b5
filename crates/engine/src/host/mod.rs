//! Hosting FIX sessions: sockets, stores, reconnection and shutdown around
//! [`Session`](fanfare_fix::session::Session).
//!
//! A [`Host`] is an [`Agent`](crate::agent::Agent) that runs any number of [`Initiator`]s and
//! [`Acceptor`]s on one thread; the application is a [`Handler`]. When the host is stopped it
//! logs every session out first.
//!
//! [The crate](crate) has an acceptor as an example.
//!
//! While a session waits for its counterparty, the host rehearses the next message, once after each
//! message written. The rehearsal brings the code and data of a message back into the processor's
//! caches, and the first message after a pause takes 15 to 25 % less (`docs/adr/0037`). A program
//! with a loop of its own calls [`Session::rehearse`](fanfare_fix::session::Session::rehearse).
//!
//! Other threads use a host through its [`HostHandle`], and a session through a [`SessionHandle`],
//! whose requests the host takes in its next duty cycle:
//!
//! ```no_run
//! # use fanfare_engine::{agent, idle::Idle, stop::Stop};
//! use fanfare_engine::host::{Handler, Host, Initiator};
//! use fanfare_fix::session::{Config, SessionId, Version};
//!
//! fn trade(handler: impl Handler + 'static) -> Result<(), Box<dyn std::error::Error>> {
//!     let mut host = Host::new(handler)?;
//!     let hosts = host.handle();
//!     std::thread::spawn(move || agent::run(&mut host, Idle::BackOff, &Stop::new()));
//!
//!     let id = SessionId::new(Version::Fix44, "TRADER", "EXCHANGE");
//!     let session = Initiator::new(Config::new(id.clone()), vec!["127.0.0.1:9880".parse()?]);
//!     hosts.initiate(session).wait()?;
//!     let mut orders = hosts.session(&id)?;
//!     // Sent in the host's next duty cycle, or reported to `Handler::on_undone` with this number.
//!     let ticket = orders.send(b"D", |order| { order.str(11, "1").str(55, "EUR/USD"); })?;
//!     println!("request {ticket}");
//!     hosts.remove(&id).wait()?;
//!     Ok(())
//! }
//! ```

mod allow;
mod connection;
mod error;
mod handle;
mod handler;
mod hosted;
mod incoming;
mod log;
mod names;
mod peer;
mod permits;
mod port;
mod reactor;
mod received;
mod refusal;
mod settings;
mod store;
mod templates;
#[cfg(test)]
mod tests;
mod transport;

pub use allow::{AllowList, Network, NetworkError};
pub use error::HostError;
pub use handle::{
    HandleError, HostHandle, Pending, Request, SessionHandle, SessionInfo, SessionPage, Steer,
    Ticket, Undone,
};
pub use handler::{Handler, Peers, Verdict};
pub use incoming::Incoming;
pub use log::{LogOptions, LogTap, LogTrouble, MessageLog, NoRoom};
pub use names::{CertificateNames, ClientName, ClientNameError, ClientNames, NameKind};
pub use peer::{Peer, SessionKey};
pub use permits::{Permit, Permits};
pub use port::{Port, PortEvent, PortOptions, network_of};
pub use reactor::Host;
pub use refusal::Refusal;
pub use settings::{Acceptor, AcceptorSession, Admission, Initiator};
pub use store::{Store, StoreFactory, StoreKind};
pub use templates::{IdPattern, Pattern, Wildcard};
#[cfg(feature = "tls")]
pub(crate) use transport::Encrypt;
