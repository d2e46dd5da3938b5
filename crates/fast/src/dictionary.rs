//! Previous values, of all dictionaries together, in flat arrays by slot.

use std::fmt;
use std::ops::Deref;

use fanfare_wire::lanes::{self, Columns, Flags, Kept, Plan};

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
    /// Integers, mantissas of decimals, short ASCII strings packed; other strings are outside.
    pub(crate) columns: Columns,
    /// The states of assigned values.
    types: Vec<State>,
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
    /// Columns as they were before all that is in the cells.
    kept: [Kept; 2],
    /// How many of them count.
    keeps: usize,
    /// What was noted, one after the other.
    cells: Vec<Cell>,
    /// For each reset the flags of all columns.
    flags: Vec<Flags>,
    /// For each text its text slot, and its length at the end of the bytes.
    texts: Vec<(u32, u32)>,
    bytes: Vec<u8>,
}

/// What was in a slot before it was changed, or a reset.
#[derive(Debug, Clone, Copy)]
enum Cell {
    Slot {
        slot: u32,
        state: State,
        exponent: i8,
        /// Its text is noted too.
        text: bool,
        column: lanes::Cell,
    },
    Reset,
}

impl Dictionaries {
    pub(crate) fn new(program: &Program) -> Self {
        let slots = program.columns();
        Self {
            columns: Columns::new(slots),
            types: program.column_states().to_vec(),
            exponents: vec![0; slots],
            texts: vec![Vec::new(); program.text_slots()],
            template: None,
            noting: false,
            journal: Journal::default(),
        }
    }

    /// All previous values become undefined.
    #[inline]
    pub(crate) fn reset(&mut self) {
        if self.noting {
            self.journal.flags.extend(self.columns.flags());
            self.journal.cells.push(Cell::Reset);
        }
        self.columns.reset();
    }

    /// From here on changes can be undone, until [`Self::commit`].
    pub(crate) fn begin(&mut self) {
        self.noting = true;
        self.journal.template = self.template;
        self.journal.keeps = 0;
        self.journal.cells.clear();
        self.journal.flags.clear();
        self.journal.texts.clear();
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
            let Cell::Slot {
                slot,
                state,
                exponent,
                text,
                column,
            } = cell
            else {
                let at = journal.flags.len() - self.columns.flags().len();
                self.columns.set_flags(journal.flags.drain(at..));
                continue;
            };
            let slot = slot as usize;
            self.columns.set_cell(slot, column);
            self.types[slot] = state;
            self.exponents[slot] = exponent;
            if text && let Some((text_slot, len)) = journal.texts.pop() {
                let at = journal.bytes.len() - len as usize;
                let text = &mut self.texts[text_slot as usize];
                text.clear();
                text.extend_from_slice(&journal.bytes[at..]);
                journal.bytes.truncate(at);
            }
        }
        for kept in journal.kept.iter().take(journal.keeps).rev() {
            self.columns.restore(kept);
        }
        self.template = journal.template;
    }

    /// Notes the columns that a kernel is going to change with these plans, if changes are noted:
    /// before anything else is.
    #[inline]
    pub(crate) fn keep(&mut self, first: &Plan, other: Option<&Plan>) {
        if !self.noting {
            return;
        }
        let [one, two] = &mut self.journal.kept;
        self.columns.keep(first, one);
        self.journal.keeps = 1;
        if let Some(other) = other {
            self.columns.keep(other, two);
            self.journal.keeps = 2;
        }
    }

    /// Whether changes are noted.
    #[inline(always)]
    pub(crate) const fn is_noting(&self) -> bool {
        self.noting
    }

    /// Notes these columns, from `first` on, which a kernel is about to change.
    #[inline]
    pub(crate) fn note_columns(&mut self, first: usize, mut mask: u64) {
        if !self.noting {
            return;
        }
        while mask != 0 {
            self.note_cell(Slot(first as u32 + mask.trailing_zeros()), None);
            mask &= mask - 1;
        }
    }

    #[inline(always)]
    pub(crate) fn state(&self, slot: Slot) -> State {
        if self.columns.is_assigned(slot.index()) {
            self.types[slot.index()]
        } else if self.columns.is_empty(slot.index()) {
            State::EMPTY
        } else {
            State::UNDEFINED
        }
    }

    #[inline(always)]
    pub(crate) fn int(&self, slot: Slot) -> u64 {
        self.columns.value(slot.index())
    }

    #[inline(always)]
    pub(crate) fn decimal(&self, slot: Slot) -> Decimal {
        Decimal {
            mantissa: self.columns.value(slot.index()) as i64,
            exponent: self.exponents[slot.index()],
        }
    }

    /// A previous byte string.
    #[inline]
    pub(crate) fn text(&self, slot: Slot, text_slot: u32) -> TextRef<'_> {
        if self.columns.is_outside(slot.index()) {
            TextRef::long(&self.texts[text_slot as usize])
        } else {
            TextRef::packed(self.columns.value(slot.index()))
        }
    }

    #[inline(always)]
    pub(crate) fn set_empty(&mut self, slot: Slot) {
        self.note(slot);
        self.columns.clear(slot.index());
    }

    #[inline(always)]
    pub(crate) fn set_int(&mut self, slot: Slot, state: State, value: u64) {
        self.note(slot);
        self.types[slot.index()] = state;
        if state == State::int(IntType::UInt64) && value >> 63 != 0 {
            return self.columns.assign_beside(slot.index(), value);
        }
        self.columns.assign(slot.index(), value);
    }

    #[inline(always)]
    pub(crate) fn set_decimal(&mut self, slot: Slot, value: Decimal) {
        self.note(slot);
        self.types[slot.index()] = State::DECIMAL;
        self.columns.assign(slot.index(), value.mantissa as u64);
        self.exponents[slot.index()] = value.exponent;
    }

    /// Replaces a previous byte string.
    #[inline]
    pub(crate) fn set_text(&mut self, slot: Slot, text_slot: u32, ty: TextType, value: &[u8]) {
        if self.noting {
            self.note_cell(slot, Some(text_slot));
        }
        self.types[slot.index()] = State::text(ty);
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

    /// The previous value in words.
    pub(crate) fn previous(&self, slot: Slot, text_slot: u32, ty: Option<IntType>) -> Previous {
        match self.state(slot) {
            State::UNDEFINED => Previous::Undefined,
            State::EMPTY => Previous::Empty,
            State::DECIMAL => Previous::Decimal(self.decimal(slot)),
            State(tag) if tag > State::DECIMAL.0 => {
                Previous::Text(self.text(slot, text_slot).to_vec())
            }
            _ => Previous::Int(ty.unwrap_or(IntType::UInt64).widen(self.int(slot))),
        }
    }

    #[inline(always)]
    fn note(&mut self, slot: Slot) {
        if self.noting {
            self.note_cell(slot, None);
        }
    }

    /// Notes what is in a slot; `text_slot` if the bytes that are outside may be overwritten.
    #[inline(never)]
    fn note_cell(&mut self, slot: Slot, text_slot: Option<u32>) {
        let journal = &mut self.journal;
        if let Some(text_slot) = text_slot {
            let old = &self.texts[text_slot as usize];
            journal.bytes.extend_from_slice(old);
            journal.texts.push((text_slot, old.len() as u32));
        }
        journal.cells.push(Cell::Slot {
            slot: slot.0,
            state: self.types[slot.index()],
            exponent: self.exponents[slot.index()],
            text: text_slot.is_some(),
            column: self.columns.cell(slot.index()),
        });
    }
}

/// A byte string: a short one as it is packed, a long one borrowed. It dereferences to its bytes.
#[derive(Clone, Copy)]
pub struct TextRef<'a>(Form<'a>);

#[derive(Clone, Copy)]
enum Form<'a> {
    /// So many characters.
    Short([u8; lanes::MAX_CHARS], usize),
    Long(&'a [u8]),
}

impl<'a> TextRef<'a> {
    #[inline(always)]
    pub(crate) fn packed(packed: u64) -> Self {
        let (chars, len) = lanes::unpack(packed);
        Self(Form::Short(chars, len))
    }

    pub(crate) const fn long(bytes: &'a [u8]) -> Self {
        Self(Form::Long(bytes))
    }
}

impl Deref for TextRef<'_> {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        match &self.0 {
            Form::Short(chars, len) => chars.get(..*len).unwrap_or_default(),
            Form::Long(bytes) => bytes,
        }
    }
}

impl PartialEq for TextRef<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl fmt::Debug for TextRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.escape_ascii())
    }
}
