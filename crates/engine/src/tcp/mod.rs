//! Non-blocking TCP: listener, stream, incomplete messages, connector with back-off.

mod backoff;
mod connector;
mod inbox;
mod listener;
mod stream;

pub use backoff::Backoff;
pub use connector::{Attempt, Connector};
pub use inbox::Inbox;
pub use listener::{Accepted, BindError, Listener};
pub use stream::{Received, Stream};

#[cfg(test)]
mod tests;
