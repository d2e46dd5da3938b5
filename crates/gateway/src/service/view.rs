//! The view of the market of one worker, built from the events of the plant's ring.

use super::class_list::ClassList;
use fanfare_feed::recovery::State;
use fanfare_market::instruments::Name;
use fanfare_market::{Event, view};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The state of an instrument.
pub(crate) type Seen = view::Seen<Own>;

/// The state of all instruments, by the plant's numbers.
pub(crate) type View = view::View<Own>;

/// The state of an instrument that only the service uses.
#[derive(Debug, Default)]
pub(crate) struct Own {
    /// The state that subscribers were sent last.
    pub(crate) told: Option<State>,
    /// Whether it could be shown as of its last state or Clear, and no events were lost after it.
    pub(crate) has_snapshot: bool,
    /// The last event of its trading status.
    pub(crate) status: Option<Event>,
    /// The [hash](hash_of) of its name in its last definition, or at its first subscription.
    pub(crate) name: Option<u64>,
    /// The index of its feed, if other feeds have an instrument of the same name, or had one since
    /// its first subscription.
    pub(crate) feed: Option<u16>,
    /// The classes of subscriptions to it.
    pub(crate) classes: ClassList,
}

/// Returns the hash of a name.
pub(crate) fn hash_of(name: &Name<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}
