//! Previous values, whichever way of decoding or encoding they are for.

use crate::program::Slot;
use crate::state::State;
use crate::text_ref::TextRef;
use crate::value::{Decimal, IntType, TextType};

/// A previous value, as traces show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Previous {
    /// Undefined.
    Undefined,
    /// Empty.
    Empty,
    /// An integer.
    Int(i128),
    /// A decimal.
    Decimal(Decimal),
    /// A string or byte vector.
    Text(Vec<u8>),
}

/// The previous values of one stream, of all its dictionaries.
pub(crate) trait PreviousValues {
    /// Returns the index of the template of the last message.
    fn template(&self) -> Option<u32>;

    fn set_template(&mut self, template: Option<u32>);

    /// Makes all previous values undefined.
    fn reset(&mut self);

    /// Starts a transaction on the previous values.
    fn begin(&mut self);

    /// Keeps the changes since [`Self::begin`].
    fn commit(&mut self);

    /// Undoes the changes since [`Self::begin`].
    fn roll_back(&mut self);

    fn state(&self, slot: Slot) -> State;

    fn int(&self, slot: Slot) -> u64;

    fn decimal(&self, slot: Slot) -> Decimal;

    /// Returns a previous byte string.
    fn text(&self, slot: Slot, text_slot: u32) -> TextRef<'_>;

    fn set_empty(&mut self, slot: Slot);

    fn set_int(&mut self, slot: Slot, state: State, value: u64);

    fn set_decimal(&mut self, slot: Slot, value: Decimal);

    /// Replaces a previous byte string.
    fn set_text(&mut self, slot: Slot, text_slot: u32, ty: TextType, value: &[u8]);

    /// Returns the previous value, as traces show it.
    fn previous(&self, slot: Slot, text_slot: u32, ty: Option<IntType>) -> Previous {
        match self.state(slot) {
            State::UNDEFINED => Previous::Undefined,
            State::EMPTY => Previous::Empty,
            State::DECIMAL => Previous::Decimal(self.decimal(slot)),
            state if state.is_text() => Previous::Text(self.text(slot, text_slot).to_vec()),
            _ => Previous::Int(ty.unwrap_or(IntType::UInt64).widen(self.int(slot))),
        }
    }
}
