//! Previous values, of all dictionaries together, in flat arrays by slot.

use crate::program::{Program, Slot};
use crate::value::{Decimal, IntType, TextType};

/// State of a previous value (section 6.3.1): undefined, empty, or assigned by a certain type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct State(u8);

impl State {
    /// Nothing was assigned since the last reset.
    pub const UNDEFINED: Self = Self(0);
    /// The value is known to be absent.
    pub const EMPTY: Self = Self(1);

    /// Assigned by an integer field of this type.
    #[must_use]
    pub const fn int(ty: IntType) -> Self {
        Self(2 + ty as u8)
    }

    /// Assigned by a decimal field.
    pub const DECIMAL: Self = Self(10);

    /// Assigned by a string or byte vector field of this type.
    #[must_use]
    pub const fn text(ty: TextType) -> Self {
        Self(11 + ty as u8)
    }
}

/// A previous value as it is shown in traces.
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

/// The previous values of one stream. Allocates only where a byte string grows beyond all its
/// predecessors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dictionaries {
    pub(crate) states: Vec<State>,
    /// 64-bit patterns of integers; mantissas of decimals.
    pub(crate) values: Vec<u64>,
    exponents: Vec<i8>,
    texts: Vec<Vec<u8>>,
    /// Index of the template of the last message.
    pub(crate) template: Option<u32>,
    /// True between [`Self::begin`] and its end: changes are noted.
    noting: bool,
    journal: Journal,
}

/// What it takes to undo everything since [`Dictionaries::begin`].
#[derive(Debug, Clone, Default)]
struct Journal {
    template: Option<u32>,
    cells: Vec<Cell>,
    bytes: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
struct Cell {
    slot: u32,
    state: State,
    value: u64,
    exponent: i8,
    /// The text slot, and the length of its old content at the end of the journal's bytes.
    text: Option<(u32, u32)>,
}

impl Dictionaries {
    pub(crate) fn new(program: &Program) -> Self {
        let slots = program.slots().len();
        Self {
            states: vec![State::UNDEFINED; slots],
            values: vec![0; slots],
            exponents: vec![0; slots],
            texts: vec![Vec::new(); program.text_slots()],
            template: None,
            noting: false,
            journal: Journal::default(),
        }
    }

    /// All previous values become undefined.
    pub(crate) fn reset(&mut self) {
        if self.noting {
            for slot in 0..self.states.len() as u32 {
                if self.states[slot as usize] != State::UNDEFINED {
                    self.note(Slot(slot), None);
                }
            }
        }
        self.states.fill(State::UNDEFINED);
    }

    /// From here on changes can be undone, until [`Self::commit`].
    pub(crate) fn begin(&mut self) {
        self.noting = true;
        self.journal.template = self.template;
        self.journal.cells.clear();
        self.journal.bytes.clear();
    }

    /// The changes since [`Self::begin`] stay.
    pub(crate) fn commit(&mut self) {
        self.noting = false;
    }

    /// Undoes the changes since [`Self::begin`].
    pub(crate) fn roll_back(&mut self) {
        self.noting = false;
        let journal = &mut self.journal;
        while let Some(cell) = journal.cells.pop() {
            let slot = cell.slot as usize;
            self.states[slot] = cell.state;
            self.values[slot] = cell.value;
            self.exponents[slot] = cell.exponent;
            if let Some((text_slot, len)) = cell.text {
                let at = journal.bytes.len() - len as usize;
                let text = &mut self.texts[text_slot as usize];
                text.clear();
                text.extend_from_slice(&journal.bytes[at..]);
                journal.bytes.truncate(at);
            }
        }
        self.template = journal.template;
    }

    #[inline(always)]
    pub(crate) fn state(&self, slot: Slot) -> State {
        self.states[slot.index()]
    }

    #[inline(always)]
    pub(crate) fn int(&self, slot: Slot) -> u64 {
        self.values[slot.index()]
    }

    #[inline(always)]
    pub(crate) fn decimal(&self, slot: Slot) -> Decimal {
        Decimal {
            mantissa: self.values[slot.index()] as i64,
            exponent: self.exponents[slot.index()],
        }
    }

    #[inline(always)]
    pub(crate) fn text(&self, text_slot: u32) -> &[u8] {
        &self.texts[text_slot as usize]
    }

    #[inline(always)]
    pub(crate) fn set_empty(&mut self, slot: Slot) {
        self.note(slot, None);
        self.states[slot.index()] = State::EMPTY;
    }

    #[inline(always)]
    pub(crate) fn set_int(&mut self, slot: Slot, state: State, value: u64) {
        self.note(slot, None);
        self.states[slot.index()] = state;
        self.values[slot.index()] = value;
    }

    #[inline(always)]
    pub(crate) fn set_decimal(&mut self, slot: Slot, value: Decimal) {
        self.note(slot, None);
        self.states[slot.index()] = State::DECIMAL;
        self.values[slot.index()] = value.mantissa as u64;
        self.exponents[slot.index()] = value.exponent;
    }

    /// Replaces a previous byte string by `front`, then `middle`, then `back`.
    #[inline]
    pub(crate) fn set_text(&mut self, slot: Slot, text_slot: u32, state: State, value: &[u8]) {
        self.note(slot, Some(text_slot));
        self.states[slot.index()] = state;
        let text = &mut self.texts[text_slot as usize];
        text.clear();
        text.extend_from_slice(value);
    }

    /// The previous value in words.
    pub(crate) fn previous(&self, slot: Slot, text_slot: u32, ty: Option<IntType>) -> Previous {
        match self.state(slot) {
            State::UNDEFINED => Previous::Undefined,
            State::EMPTY => Previous::Empty,
            State::DECIMAL => Previous::Decimal(self.decimal(slot)),
            State(tag) if tag > State::DECIMAL.0 => Previous::Text(self.text(text_slot).to_vec()),
            _ => Previous::Int(ty.unwrap_or(IntType::UInt64).widen(self.int(slot))),
        }
    }

    #[inline(always)]
    fn note(&mut self, slot: Slot, text_slot: Option<u32>) {
        if self.noting {
            self.note_cell(slot, text_slot);
        }
    }

    #[cold]
    fn note_cell(&mut self, slot: Slot, text_slot: Option<u32>) {
        let journal = &mut self.journal;
        let text = text_slot.map(|text_slot| {
            let old = &self.texts[text_slot as usize];
            journal.bytes.extend_from_slice(old);
            (text_slot, old.len() as u32)
        });
        journal.cells.push(Cell {
            slot: slot.0,
            state: self.states[slot.index()],
            value: self.values[slot.index()],
            exponent: self.exponents[slot.index()],
            text,
        });
    }
}
