//! Previous values, of all dictionaries together, in flat arrays by slot.

use fanfare_wire::lanes::{self, BLOCK, Columns, Flags, Kept, Plan};

use crate::previous::PreviousValues;
use crate::program::{Program, Slot, TemplateProgram};
use crate::state::State;
use crate::text_ref::TextRef;
use crate::value::{Decimal, IntType, TextType};

/// Previous values as columns, for the vector kernels. Allocates only where a byte string grows
/// beyond all its predecessors.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dictionaries {
    /// Integers, mantissas of decimals, short ASCII strings packed; other strings are outside.
    pub(crate) columns: Columns,
    /// What else belongs to the columns, by block.
    others: Vec<Others>,
    texts: Vec<Vec<u8>>,
    /// Index of the template of the last message.
    pub(crate) template: Option<u32>,
    /// True between [`Self::begin`] and its end: what is going to change is kept.
    noting: bool,
    journal: Journal,
}

/// What belongs to a block of columns beside them.
#[derive(Debug, Clone, Copy)]
struct Others {
    /// The states of assigned values.
    types: [State; BLOCK],
    exponents: [i8; BLOCK],
}

impl Default for Others {
    fn default() -> Self {
        Self {
            types: [State::UNDEFINED; _],
            exponents: [0; _],
        }
    }
}

/// What it takes to undo everything since [`Dictionaries::begin`]. It takes no more memory than
/// the dictionaries.
#[derive(Debug, Clone, Default)]
struct Journal {
    template: Option<u32>,
    /// Blocks as they were before the first change, in the order in which they were kept.
    kept: Vec<(Kept, Others)>,
    /// How many of them count, and of how many all is kept.
    keeps: usize,
    wholes: usize,
    /// How many of them were kept before the first reset; its flags are those of all columns
    /// before it.
    reset: Option<usize>,
    flags: Vec<Flags>,
    /// Texts that were overwritten: their slots and their lengths in the bytes.
    texts: Vec<(u32, u32)>,
    bytes: Vec<u8>,
    /// The number of this journal, and for each block and each text slot that of the last one that
    /// it was kept in.
    number: u64,
    blocks: Vec<u64>,
    text_slots: Vec<u64>,
}

impl Dictionaries {
    pub(crate) fn new(program: &Program) -> Self {
        let slots = program.columns();
        Self {
            columns: Columns::new(slots),
            others: others(program.column_states()),
            texts: vec![Vec::new(); program.text_slots()],
            template: None,
            noting: false,
            journal: Journal {
                blocks: vec![0; slots.div_ceil(BLOCK)],
                text_slots: vec![0; program.text_slots()],
                ..Journal::default()
            },
        }
    }

    /// Keeps the columns that a kernel is going to change with these plans, if they may have to be
    /// restored. Before anything else is changed, [`Self::keep_all`] must be called.
    #[inline]
    pub(crate) fn keep(&mut self, first: &Plan, other: Option<&Plan>) {
        if self.noting {
            self.keep_blocks(first, other);
        }
    }

    /// Cold, to be out of the way where nothing is to be restored.
    #[cold]
    #[inline(never)]
    fn keep_blocks(&mut self, first: &Plan, other: Option<&Plan>) {
        self.keep_block(first.block());
        if let Some(other) = other {
            self.keep_block(other.block());
        }
    }

    /// Keeps what [`Self::keep`] has left out.
    fn keep_others(&mut self) {
        let journal = &mut self.journal;
        for (kept, others) in &mut journal.kept[journal.wholes..journal.keeps] {
            self.columns.keep_outside(kept);
            *others = self.others[kept.number()];
        }
        journal.wholes = journal.keeps;
    }

    #[cold]
    #[inline(never)]
    fn keep_blocks_of(&mut self, template: &TemplateProgram) {
        for &block in template.blocks() {
            self.keep_block(block as usize);
        }
        self.keep_others();
    }

    /// Keeps the flags of all columns before the first reset.
    #[cold]
    #[inline(never)]
    fn keep_flags(&mut self) {
        let journal = &mut self.journal;
        if journal.reset.is_none() {
            journal.reset = Some(journal.keeps);
            journal.flags.extend(self.columns.flags());
        }
    }

    fn keep_block(&mut self, number: usize) {
        let journal = &mut self.journal;
        let Some(last) = journal.blocks.get_mut(number) else {
            return;
        };
        if *last == journal.number {
            return;
        }
        *last = journal.number;
        if journal.kept.len() == journal.keeps {
            journal.kept.push(Default::default());
        }
        if let Some((kept, _)) = journal.kept.get_mut(journal.keeps) {
            self.columns.keep(number, kept);
            journal.keeps += 1;
        }
    }

    /// Keeps a text that is going to be overwritten.
    #[inline(never)]
    fn keep_text(&mut self, slot: u32) {
        let journal = &mut self.journal;
        let last = &mut journal.text_slots[slot as usize];
        if *last != journal.number {
            *last = journal.number;
            let old = &self.texts[slot as usize];
            journal.bytes.extend_from_slice(old);
            journal.texts.push((slot, old.len() as u32));
        }
    }

    /// Whether changes are noted.
    #[inline(always)]
    pub(crate) const fn is_noting(&self) -> bool {
        self.noting
    }

    /// The previous ASCII string as it is packed, if it is.
    #[inline(always)]
    pub(crate) fn packed(&self, slot: Slot) -> Option<u64> {
        let is_packed = self.state(slot) == State::text(TextType::Ascii)
            && !self.columns.is_outside(slot.index());
        is_packed.then(|| self.columns.value(slot.index()))
    }

    /// Replaces it.
    #[inline(always)]
    pub(crate) fn set_packed(&mut self, slot: Slot, packed: u64) {
        self.set_state(slot, State::text(TextType::Ascii));
        self.columns.assign(slot.index(), packed);
    }

    #[inline(always)]
    fn set_state(&mut self, slot: Slot, state: State) {
        self.others[slot.index() / BLOCK].types[slot.index() % BLOCK] = state;
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
        if self.noting {
            self.keep_flags();
        }
        self.columns.reset();
    }

    fn begin(&mut self) {
        self.noting = true;
        let journal = &mut self.journal;
        journal.number += 1;
        journal.template = self.template;
        (journal.keeps, journal.wholes, journal.reset) = (0, 0, None);
        journal.flags.clear();
        journal.texts.clear();
        journal.bytes.clear();
    }

    fn commit(&mut self) {
        self.noting = false;
    }

    fn roll_back(&mut self) {
        self.noting = false;
        let journal = &self.journal;
        // What was kept behind the reset has the flags that it left.
        let behind = journal.reset.unwrap_or_default();
        for (kept, _) in &journal.kept[behind..journal.keeps] {
            self.columns.restore(kept);
        }
        if journal.reset.is_some() {
            self.columns.set_flags(journal.flags.iter().copied());
            for (kept, _) in &journal.kept[..behind] {
                self.columns.restore(kept);
            }
        }
        for (kept, others) in &journal.kept[..journal.wholes] {
            self.others[kept.number()] = *others;
        }
        let mut bytes = &journal.bytes[..];
        for &(slot, len) in &journal.texts {
            let (old, rest) = bytes.split_at(len as usize);
            let text = &mut self.texts[slot as usize];
            text.clear();
            text.extend_from_slice(old);
            bytes = rest;
        }
        self.template = journal.template;
    }

    #[inline]
    fn keep_all(&mut self, template: &TemplateProgram) {
        if self.noting {
            self.keep_blocks_of(template);
        }
    }

    #[inline(always)]
    fn state(&self, slot: Slot) -> State {
        if self.columns.is_assigned(slot.index()) {
            self.others[slot.index() / BLOCK].types[slot.index() % BLOCK]
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
            exponent: self.others[slot.index() / BLOCK].exponents[slot.index() % BLOCK],
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
        self.others[slot.index() / BLOCK].exponents[slot.index() % BLOCK] = value.exponent;
    }

    #[inline]
    fn set_text(&mut self, slot: Slot, text_slot: u32, ty: TextType, value: &[u8]) {
        self.set_state(slot, State::text(ty));
        match lanes::pack(value) {
            Some(packed) if ty == TextType::Ascii => self.columns.assign(slot.index(), packed),
            _ => {
                self.columns.assign_outside(slot.index());
                if self.noting {
                    self.keep_text(text_slot);
                }
                let text = &mut self.texts[text_slot as usize];
                text.clear();
                text.extend_from_slice(value);
            }
        }
    }
}

/// What belongs to columns of these states.
fn others(states: &[State]) -> Vec<Others> {
    let block = |states: &[State]| {
        let mut others = Others::default();
        others.types[..states.len()].copy_from_slice(states);
        others
    };
    states.chunks(BLOCK).map(block).collect()
}
