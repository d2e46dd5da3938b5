//! The view of the market of one worker, built from the events of the plant's ring.

use super::class_list::ClassList;
use fanfare_feed::recovery::State;
use fanfare_market::{Event, view};

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
    pub(crate) has_picture: bool,
    /// The last event of its trading status.
    pub(crate) status: Option<Event>,
    /// The hash of its name in its last definition.
    pub(crate) name: Option<u64>,
    /// The index of its feed, if other feeds have an instrument of the same name.
    pub(crate) feed: Option<u16>,
    /// The classes of subscriptions to it.
    pub(crate) classes: ClassList,
}
