//! The market as a worker sees it, kept from the events of the plant's ring.

use fanfare_feed::recovery::State;
use fanfare_market::view;

/// What is known of an instrument.
pub(crate) type Seen = view::Seen<Own>;

/// All instruments, by the plant's numbers.
pub(crate) type View = view::View<Own>;

/// What a worker keeps of an instrument.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// The state that subscribers were told last.
    pub(crate) told: Option<State>,
    /// The classes of subscriptions to it.
    pub(crate) classes: Vec<u32>,
}
