//! A table of connections: a [`Token`] identifies a slot, and a token whose slot has since been
//! reused is not found.

use crate::poll::Token;

/// Values by token. A removed value leaves a free place for the next one; the generation in the
/// token distinguishes them, so that an event which was collected before a close cannot reach the
/// connection that took the place.
///
/// ```
/// use fanfare_engine::slots::Slots;
/// let mut slots = Slots::new();
/// let first = slots.insert("a");
/// assert_eq!(slots.remove(first), Some("a"));
/// let second = slots.insert("b"); // takes the same place
/// assert_eq!((slots.get(first), slots.get(second)), (None, Some(&"b")));
/// ```
pub struct Slots<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

struct Place<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Slots<T> {
    /// Makes an empty table.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Stores a value in a free place, or in a new one at the end (at most 2^32 places).
    pub fn insert(&mut self, value: T) -> Token {
        if let Some(index) = self.free.pop()
            && let Some(place) = self.places.get_mut(index as usize)
        {
            place.value = Some(value);
            return token(index, place.generation);
        }
        let index = self.places.len() as u32;
        self.places.push(Place {
            generation: 0,
            value: Some(value),
        });
        token(index, 0)
    }

    /// Returns the token that the next [`insert`](Self::insert) will return, for values that
    /// contain it.
    #[must_use]
    pub fn next_token(&self) -> Token {
        match self.free.last() {
            Some(&index) => token(
                index,
                self.places.get(index as usize).map_or(0, |p| p.generation),
            ),
            None => token(self.places.len() as u32, 0),
        }
    }

    /// Returns the value of a token.
    #[must_use]
    pub fn get(&self, token: Token) -> Option<&T> {
        let (index, generation) = parts(token);
        let place = self
            .places
            .get(index)
            .filter(|place| place.generation == generation)?;
        place.value.as_ref()
    }

    /// Returns the value of a token, to be changed.
    pub fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let (index, generation) = parts(token);
        let place = self
            .places
            .get_mut(index)
            .filter(|place| place.generation == generation)?;
        place.value.as_mut()
    }

    /// Removes a value; its token is not found from now on.
    pub fn remove(&mut self, token: Token) -> Option<T> {
        let (index, generation) = parts(token);
        let place = self
            .places
            .get_mut(index)
            .filter(|place| place.generation == generation)?;
        let value = place.value.take()?;
        place.generation = place.generation.wrapping_add(1);
        self.free.push(index as u32);
        Some(value)
    }

    /// Returns all values with their tokens, by place.
    pub fn iter(&self) -> impl Iterator<Item = (Token, &T)> {
        self.places.iter().enumerate().filter_map(|(i, place)| {
            let token = token(i as u32, place.generation);
            Some((token, place.value.as_ref()?))
        })
    }

    /// Returns the number of values.
    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Returns whether the table is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn token(index: u32, generation: u32) -> Token {
    Token(u64::from(generation) << 32 | u64::from(index))
}

fn parts(token: Token) -> (usize, u32) {
    (token.0 as u32 as usize, (token.0 >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_used_again_under_another_token() {
        let mut slots = Slots::new();
        let tokens: Vec<Token> = (0..3).map(|i| slots.insert(i)).collect();
        assert_eq!(slots.remove(tokens[1]), Some(1));
        assert_eq!(slots.remove(tokens[1]), None);
        let expected = slots.next_token();
        let again = slots.insert(9);
        assert_eq!(again, expected);
        assert_ne!(again, tokens[1]);
        assert_eq!(slots.get(tokens[1]), None);
        let values: Vec<i32> = slots.iter().map(|(_, &value)| value).collect();
        assert_eq!((values, slots.len()), (vec![0, 9, 2], 3));
    }
}
