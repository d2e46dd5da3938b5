//! The classes of an instrument, in the order in which they were created, which is the order of
//! their messages.

use super::spec::Spec;
use std::collections::HashMap;

/// In place of the number of a class that has ended.
const ENDED: u32 = u32::MAX;

/// The most classes that are looked through for one. More are found by a table.
const MANY: usize = 16;

/// The classes of an instrument, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ClassList {
    /// The numbers in order, of which at most half are [`ENDED`].
    order: Vec<u32>,
    /// The indices in `order` by the contents of the classes, once there are many. Then a class
    /// that ends leaves its index to nobody, so that the others keep theirs.
    places: Option<Box<Places>>,
}

/// A table of indices. It is boxed, as few of perhaps a million instruments have one.
#[derive(Debug, Default)]
struct Places(HashMap<Spec, usize>);

impl ClassList {
    /// Returns whether there is no class.
    pub(crate) const fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// Returns the number of indices, at which there are classes or were some.
    pub(crate) const fn len(&self) -> usize {
        self.order.len()
    }

    /// Returns the number at an index. No class has it if the one at the index has ended.
    pub(crate) fn get(&self, at: usize) -> Option<u32> {
        self.order.get(at).copied()
    }

    /// Returns the numbers of all classes, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        let all = self.order.iter().copied();
        all.filter(|number| *number != ENDED)
    }

    /// Returns the class of these contents. Looks at the contents of a few, by `spec_of`, and at
    /// none if there are many.
    pub(crate) fn find(&self, spec: &Spec, spec_of: impl Fn(u32) -> Option<Spec>) -> Option<u32> {
        match &self.places {
            Some(places) => self.get(*places.0.get(spec)?),
            None => self.iter().find(|number| spec_of(*number) == Some(*spec)),
        }
    }

    /// Adds a class of contents that no other one has, as the last one. Allocates.
    pub(crate) fn push(&mut self, number: u32, spec: Spec, spec_of: impl Fn(u32) -> Option<Spec>) {
        let place = self.order.len();
        self.order.push(number);
        match &mut self.places {
            Some(places) => {
                places.0.insert(spec, place);
            }
            None if place >= MANY => {
                let all = self.order.iter().enumerate();
                let places = all.filter_map(|(place, number)| Some((spec_of(*number)?, place)));
                self.places = Some(Box::new(Places(places.collect())));
            }
            None => {}
        }
    }

    /// Removes a class that has ended. The order of the others stays.
    pub(crate) fn remove(&mut self, number: u32, spec: &Spec) {
        let Some(places) = &mut self.places else {
            self.order.retain(|own| *own != number);
            return;
        };
        let place = places.0.remove(spec);
        if let Some(own) = place.and_then(|place| self.order.get_mut(place)) {
            *own = ENDED;
        }
        if places.0.len() * 2 <= self.order.len() {
            self.close_up();
        }
    }

    /// Removes the indices of classes that have ended. Allocates.
    fn close_up(&mut self) {
        let Some(places) = &mut self.places else {
            return;
        };
        let mut rank = 0;
        let ranks = self.order.iter().map(|number| {
            let own = rank;
            rank += usize::from(*number != ENDED);
            own
        });
        let ranks: Vec<usize> = ranks.collect();
        for place in places.0.values_mut() {
            *place = ranks.get(*place).copied().unwrap_or_default();
        }
        self.order.retain(|number| *number != ENDED);
        if self.order.len() <= MANY / 2 {
            self.places = None;
        }
    }
}

#[cfg(test)]
mod tests;
