//! What readers of market events receive, from a ring or from the log.

use crate::event::Event;
use crate::instruments::Directory;

/// What a reader of market events receives.
#[derive(Debug, Clone, Copy)]
pub enum Delivery<'a> {
    /// An event, and the instruments known so far, among them its own, unless the event is of all
    /// instruments.
    Event(&'a Event, &'a Directory),
    /// The events of a message are complete; with the instruments known so far.
    End(&'a Directory),
    /// Events that are missing. Instruments, pictures and states of everything come once more
    /// behind it.
    Lost {
        /// The plant's number of the first one.
        first: u64,
        /// That of the last one.
        last: u64,
    },
    /// The plant was started again: books and states are known once they are shown. Numbers go on.
    /// From the log alone.
    Restart,
}
