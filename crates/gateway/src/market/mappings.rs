//! The mappings of feeds, which can be replaced at run time.

use super::error::MarketError;
use super::files::{self, Mappers};
use crate::feed::config::Feed;
use fanfare_engine::poll::Waker;
use fanfare_fast::Program;
use fanfare_market::Mapping;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The mappings in force, of all feeds that are markets.
#[derive(Clone, Default)]
pub(crate) struct Mappings(Arc<Mutex<Vec<InForce>>>);

/// The mapping of a feed.
pub(super) struct InForce {
    pub(super) channel: String,
    pub(super) mapping: Mapping,
    pub(super) program: Arc<Program>,
    /// The number of the feed among those that are markets.
    pub(super) source: u16,
    pub(super) slot: Slot,
    /// The waker of the thread of the feeds.
    pub(super) waker: Waker,
}

/// A new mapping of a feed, compiled.
pub(crate) struct NewMapping {
    channel: String,
    mapping: Mapping,
    mappers: Mappers,
}

impl NewMapping {
    /// Returns the channel of its feed.
    pub(crate) fn channel(&self) -> String {
        self.channel.clone()
    }
}

impl Mappings {
    pub(super) fn add(&self, feed: InForce) {
        self.all().push(feed);
    }

    fn all(&self) -> MutexGuard<'_, Vec<InForce>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads and compiles the mappings of these feeds. Returns those that differ from the ones in
    /// force.
    pub(crate) fn read(&self, feeds: &[Feed]) -> Result<Vec<NewMapping>, MarketError> {
        let mut new = Vec::new();
        for in_force in self.all().iter() {
            let of_channel = |feed: &&Feed| feed.channel() == in_force.channel;
            let Some(feed) = feeds.iter().find(of_channel) else {
                continue;
            };
            let InForce {
                program, source, ..
            } = in_force;
            let mapping = files::mapping(feed, program)?;
            let (fast, fix) = files::mappers(feed, &mapping, program, *source)?;
            let (fast_before, fix_before) =
                files::mappers(feed, &in_force.mapping, program, *source)?;
            let is_same = fast.maps_as(&fast_before)
                && match (&fix, &fix_before) {
                    (Some(fix), Some(before)) => fix.maps_as(before),
                    (fix, before) => fix.is_none() && before.is_none(),
                };
            if !is_same {
                new.push(NewMapping {
                    channel: in_force.channel.clone(),
                    mapping,
                    mappers: (fast, fix),
                });
            }
        }
        Ok(new)
    }

    /// Hands new mappings to the thread of the feeds. Returns the channels of their feeds.
    pub(crate) fn exchange(&self, new: Vec<NewMapping>) -> Vec<String> {
        let mut all = self.all();
        let mut channels = Vec::new();
        for new in new {
            let mut feeds = all.iter_mut();
            if let Some(in_force) = feeds.find(|feed| feed.channel == new.channel) {
                in_force.mapping = new.mapping;
                in_force.slot.put(new.mappers);
                in_force.waker.wake();
                channels.push(new.channel);
            }
        }
        channels
    }
}

/// The slot in which the thread of the feeds finds a new mapping of a feed.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Place>);

#[derive(Default)]
struct Place {
    is_new: AtomicBool,
    /// The new mapping, and once it is taken the old one, so that the thread of the feeds does not
    /// free it.
    mappers: Mutex<Option<Mappers>>,
}

impl Slot {
    /// Stores a mapping, and replaces one that was not taken.
    fn put(&self, new: Mappers) {
        let place = &*self.0;
        let mut mappers = place.mappers.lock().unwrap_or_else(PoisonError::into_inner);
        *mappers = Some(new);
        place.is_new.store(true, Ordering::Release);
    }

    /// Exchanges a stored mapping for the one that `exchange` returns. Returns false if there is
    /// none. Never waits.
    #[inline]
    pub(super) fn take(&self, exchange: impl FnOnce(Mappers) -> Mappers) -> bool {
        self.0.is_new.load(Ordering::Acquire) && self.take_new(exchange)
    }

    #[cold]
    fn take_new(&self, exchange: impl FnOnce(Mappers) -> Mappers) -> bool {
        // While another one is being stored, the next turn takes it.
        let Ok(mut mappers) = self.0.mappers.try_lock() else {
            return false;
        };
        self.0.is_new.store(false, Ordering::Relaxed);
        *mappers = mappers.take().map(exchange);
        mappers.is_some()
    }
}
