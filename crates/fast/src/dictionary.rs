//! The previous values of all dictionaries, in flat arrays by slot.

use fanfare_wire::lanes::{self, Columns};

use crate::previous::PreviousValues;
use crate::program::{Program, Slot};
use crate::state::State;
use crate::text_ref::TextRef;
use crate::value::{Decimal, IntType, TextType};

/// The previous values as columns, for the vector kernels. They allocate only where a byte string
/// grows beyond all its predecessors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dictionaries {
    /// The integers, the mantissas of decimals, and short ASCII strings, packed. Other strings are
    /// in `texts`.
    pub(crate) columns: Columns,
    /// The states of assigned values, by slot.
    types: Vec<State>,
    exponents: Vec<i8>,
    texts: Vec<Vec<u8>>,
    /// The index of the template of the last message.
    pub(crate) template: Option<u32>,
    /// A copy made by [`Self::begin`].
    saved: Option<Box<Self>>,
}

impl Dictionaries {
    pub(crate) fn new(program: &Program) -> Self {
        Self {
            columns: Columns::new(program.columns()),
            types: program.column_states().into(),
            exponents: vec![0; program.columns()],
            texts: vec![Vec::new(); program.text_slots()],
            template: None,
            saved: None,
        }
    }

    #[inline(always)]
    fn set_state(&mut self, slot: Slot, state: State) {
        self.types[slot.index()] = state;
    }
}

impl PreviousValues for Dictionaries {
    fn template(&self) -> Option<u32> {
        self.template
    }

    fn set_template(&mut self, template: Option<u32>) {
        self.template = template;
    }

    #[inline]
    fn reset(&mut self) {
        self.columns.reset();
    }

    fn begin(&mut self) {
        let mut saved = self.saved.take().unwrap_or_default();
        saved.columns.clone_from(&self.columns);
        saved.types.clone_from(&self.types);
        saved.exponents.clone_from(&self.exponents);
        saved.texts.clone_from(&self.texts);
        saved.template = self.template;
        self.saved = Some(saved);
    }

    fn commit(&mut self) {}

    fn roll_back(&mut self) {
        if let Some(mut saved) = self.saved.take() {
            std::mem::swap(self, &mut saved);
            self.saved = Some(saved);
        }
    }

    #[inline(always)]
    fn state(&self, slot: Slot) -> State {
        if self.columns.is_assigned(slot.index()) {
            self.types[slot.index()]
        } else if self.columns.is_empty(slot.index()) {
            State::EMPTY
        } else {
            State::UNDEFINED
        }
    }

    #[inline(always)]
    fn int(&self, slot: Slot) -> u64 {
        self.columns.value(slot.index())
    }

    #[inline(always)]
    fn decimal(&self, slot: Slot) -> Decimal {
        Decimal {
            mantissa: self.columns.value(slot.index()) as i64,
            exponent: self.exponents[slot.index()],
        }
    }

    #[inline]
    fn text(&self, slot: Slot, text_slot: u32) -> TextRef<'_> {
        if self.columns.is_outside(slot.index()) {
            TextRef::long(&self.texts[text_slot as usize])
        } else {
            TextRef::packed(self.columns.value(slot.index()))
        }
    }

    #[inline(always)]
    fn set_empty(&mut self, slot: Slot) {
        self.columns.clear(slot.index());
    }

    #[inline(always)]
    fn set_int(&mut self, slot: Slot, state: State, value: u64) {
        self.set_state(slot, state);
        if state == State::int(IntType::UInt64) && value >> 63 != 0 {
            return self.columns.assign_beside(slot.index(), value);
        }
        self.columns.assign(slot.index(), value);
    }

    #[inline(always)]
    fn set_decimal(&mut self, slot: Slot, value: Decimal) {
        self.set_state(slot, State::DECIMAL);
        self.columns.assign(slot.index(), value.mantissa as u64);
        self.exponents[slot.index()] = value.exponent;
    }

    #[inline]
    fn set_text(&mut self, slot: Slot, text_slot: u32, ty: TextType, value: &[u8]) {
        self.set_state(slot, State::text(ty));
        match lanes::pack(value) {
            Some(packed) if ty == TextType::Ascii => self.columns.assign(slot.index(), packed),
            _ => {
                self.columns.assign_outside(slot.index());
                let text = &mut self.texts[text_slot as usize];
                text.clear();
                text.extend_from_slice(value);
            }
        }
    }
}
