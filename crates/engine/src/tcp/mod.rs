//! Non-blocking TCP: listener, stream, incomplete messages, connector with back-off.

mod backoff;
mod connector;
mod inbox;
mod listener;
mod lookup;
mod options;
mod stream;

pub use backoff::Backoff;
pub use connector::{Attempt, Connector, HostOrder};
pub use inbox::Inbox;
pub use listener::{Accepted, BindError, Listener};
pub use lookup::{Lookup, NamedHost};
pub use options::SocketOptions;
pub use stream::{Received, Stream};

#[cfg(test)]
mod tests;
