//! The classes of a worker, and the links of subscriptions to them.

use super::class::{Class, FEW, Link};
use super::spec::Spec;
use super::view::View;
use fanfare_market::book::Level;
use fanfare_market::{Event, InstrumentId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The place of a subscription's part in a class, as the subscription stores it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) class: u32,
    /// The index among the links of the class.
    pub(crate) link: u32,
}

/// The place of a part that was released.
pub(crate) const NOWHERE: Place = Place {
    class: u32::MAX,
    link: u32::MAX,
};

/// A link that was moved to the index of one that was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved {
    pub(crate) link: Link,
    pub(crate) to: Place,
}

/// The classes, by number. The numbers of classes that have ended are reused.
#[derive(Debug, Default)]
pub(crate) struct Classes {
    all: Vec<Option<Box<Class>>>,
    free: Vec<u32>,
    /// The classes whose interval must end first, by the time at which it does. The number of a
    /// class that has ended is not reused while it is here.
    due: BinaryHeap<Reverse<(u64, u32)>>,
    /// The number of those that have ended: at most half of them.
    ended: usize,
}

impl Classes {
    pub(crate) fn get(&self, class: u32) -> Option<&Class> {
        self.all.get(class as usize)?.as_deref()
    }

    pub(crate) fn get_mut(&mut self, class: u32) -> Option<&mut Class> {
        self.all.get_mut(class as usize)?.as_deref_mut()
    }

    pub(crate) fn link(&self, place: Place) -> Option<&Link> {
        self.get(place.class)?.links.get(place.link as usize)
    }

    pub(crate) fn link_mut(&mut self, place: Place) -> Option<&mut Link> {
        let class = self.get_mut(place.class)?;
        class.links.get_mut(place.link as usize)
    }

    /// Returns the places of the links of a class, as of now.
    pub(crate) fn places(&self, class: u32) -> impl Iterator<Item = Place> + use<> {
        let count = self.get(class).map_or(0, |class| class.links.len());
        (0..count as u32).map(move |link| Place { class, link })
    }

    /// Adds a link to the class of this instrument, which is created on the first request for it.
    /// Allocates.
    pub(crate) fn join(
        &mut self,
        view: &mut View,
        instrument: InstrumentId,
        spec: Spec,
        link: Link,
    ) -> Place {
        let seen = view.open(instrument);
        let spec_of = |number| self.get(number).map(|class| class.spec);
        let number = match seen.own.classes.find(&spec, spec_of) {
            Some(number) => number,
            None => {
                seen.last.reserve(FEW);
                let mut class = Box::new(Class::new(instrument, spec));
                let (mut room, mut out) = (Vec::<Level>::new(), Vec::new());
                class.restart(seen, &Event::EMPTY, &mut room, &mut out);
                let number = match self.free.pop() {
                    Some(number) => number,
                    None => {
                        self.all.push(None);
                        // So that no update allocates to schedule the next one.
                        self.due.reserve(self.all.len() - self.due.len());
                        (self.all.len() - 1) as u32
                    }
                };
                if let Some(place) = self.all.get_mut(number as usize) {
                    *place = Some(class);
                }
                let spec_of = |number| self.get(number).map(|class| class.spec);
                seen.own.classes.push(number, spec, spec_of);
                number
            }
        };
        let Some(class) = self.get_mut(number) else {
            return NOWHERE;
        };
        class.links.push(link);
        Place {
            class: number,
            link: (class.links.len() - 1) as u32,
        }
    }

    /// Removes a link. Returns the link that has moved to its index, whose subscription must be
    /// updated. A class without links ends.
    pub(crate) fn leave(&mut self, view: &mut View, place: Place) -> Option<Moved> {
        let class = self.get_mut(place.class)?;
        let at = place.link as usize;
        if at >= class.links.len() {
            return None;
        }
        class.links.swap_remove(at);
        let moved = class.links.get(at).map(|link| Moved {
            link: *link,
            to: place,
        });
        if class.links.is_empty() {
            let (instrument, spec, is_due) = (class.instrument, class.spec, class.is_due);
            if let Some(seen) = view.get_mut(instrument) {
                seen.own.classes.remove(place.class, &spec);
            }
            if let Some(ended) = self.all.get_mut(place.class as usize) {
                *ended = None;
            }
            match is_due {
                true => self.unschedule(),
                false => self.free.push(place.class),
            }
        }
        moved
    }

    /// Schedules the next update of a class for the end of its interval, unless that is done.
    /// Returns whether it has one.
    #[inline]
    pub(crate) fn schedule(&mut self, number: u32, now: u64) -> bool {
        let Some(class) = self.get_mut(number) else {
            return false;
        };
        let interval = u64::from(class.spec.interval) * 1_000_000;
        if interval == 0 {
            return false;
        }
        if !std::mem::replace(&mut class.is_due, true) {
            // All classes of an interval end together.
            let at = (now / interval + 1) * interval;
            self.due.push(Reverse((at, number)));
        }
        true
    }

    /// Returns the time of the next scheduled update.
    pub(crate) fn next_due(&self) -> Option<u64> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes a class whose scheduled update is due. Returns its number and its instrument.
    pub(crate) fn take_due(&mut self, now: u64) -> Option<(u32, InstrumentId)> {
        while let Some(&Reverse((at, number))) = self.due.peek() {
            if at > now {
                return None;
            }
            self.due.pop();
            if let Some(class) = self.get_mut(number) {
                class.is_due = false;
                return Some((number, class.instrument));
            }
            self.ended -= 1;
            self.free.push(number);
        }
        None
    }

    /// Records that a class with a scheduled update has ended. Removes all of those once they are
    /// more than half.
    fn unschedule(&mut self) {
        let Self {
            all,
            free,
            due,
            ended,
        } = self;
        *ended += 1;
        if *ended * 2 <= due.len() {
            return;
        }
        due.retain(|Reverse((_, number))| {
            let is_there = all.get(*number as usize).is_some_and(Option::is_some);
            if !is_there {
                free.push(*number);
            }
            is_there
        });
        *ended = 0;
    }
}
