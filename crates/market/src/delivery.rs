//! The items that readers of market events receive, from a ring or from the log.

use crate::event::Event;
use crate::instruments::Directory;
use crate::watermark::Watermark;

/// An item that a reader of market events receives.
#[derive(Debug, Clone, Copy)]
pub enum Delivery<'a> {
    /// An event, and the instruments known so far. These include its own, unless the event is of
    /// all instruments.
    Event(&'a Event, &'a Directory),
    /// The end of the events of a message, with the instruments known so far.
    End(&'a Directory),
    /// Events are missing. All instruments, snapshots and states follow again.
    Lost {
        /// The plant's number of the first missing event.
        first: u64,
        /// The plant's number of the last missing event.
        last: u64,
    },
    /// The plant was restarted: books and states are unknown until they are shown, and numbers
    /// continue. Returned only by the log.
    Restart,
    /// Every later event of a trade arrived at this time or after it, unless the recovery of its
    /// instrument has delayed it. A gateway that serves intervals of DBN writes one a second.
    /// Before each event, the log keeps the last one, and in front of it one with which the clock
    /// was set back.
    Watermark(Watermark),
}
