//! Previous values: the operators that share one, and the columns in which they are.

use super::{Compiler, Context};
use crate::program::{Slot, SlotInfo};
use crate::state::State;
use crate::template::{Dictionary, Name, Operator, OperatorKind};

/// The entry of a dictionary that an operator uses.
#[derive(PartialEq, Eq, Hash, Clone)]
pub(super) struct Entry {
    scope: Scope,
    key: Name,
    part: Part,
}

#[derive(PartialEq, Eq, Hash, Clone)]
enum Scope {
    Global,
    Template(usize),
    Type(Option<Name>),
    User(String),
}

/// The part of a generated name that a key is. Generated names never collide with names in the
/// document.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
pub(super) enum Part {
    Whole,
    Exponent,
    Mantissa,
    Length,
}

impl<'s> Compiler<'s> {
    /// Returns the number of the previous value that an operator uses.
    pub(super) fn slot(
        &mut self,
        operator: &Operator,
        name: &Name,
        part: Part,
        context: Context<'s>,
    ) -> Slot {
        if !operator.kind.uses_dictionary() {
            return Slot(0);
        }
        let scope = match &operator.dictionary {
            Dictionary::Global => Scope::Global,
            Dictionary::Template => Scope::Template(context.written_in),
            Dictionary::Type => Scope::Type(context.app_type.cloned()),
            Dictionary::User(name) => Scope::User(name.clone()),
        };
        let (key, part) = match &operator.key {
            Some(key) => (key.clone(), Part::Whole),
            None => (name.clone(), part),
        };
        let entry = Entry { scope, key, part };
        if let Some(&slot) = self.slots.get(&entry) {
            self.aligned = None;
            return slot;
        }
        let info = self.slot_info(&entry);
        let slot = self.column(Some(info));
        self.slots.insert(entry, slot);
        slot
    }

    /// Returns a new column. The first column of a body is the first one of a vector, and there is
    /// space for the others of the body after it.
    pub(super) fn column(&mut self, info: Option<SlotInfo>) -> Slot {
        let program = &mut self.program;
        let mut next = program.slots.len();
        if let Some(more) = self.aligned.take() {
            next = next.next_multiple_of(16);
            if more <= 64 && next % 64 + more > 64 {
                next = next.next_multiple_of(64);
            }
        }
        program.slots.resize(next, None);
        program.slots.push(info);
        program.column_states.resize(next + 1, State::UNDEFINED);
        Slot(next as u32)
    }

    /// Returns the column of an op of this type that can be in lanes: its slot if it has one,
    /// otherwise a column that no other op has.
    pub(super) fn in_column(
        &mut self,
        slot: Slot,
        op: &Operator,
        optional: bool,
        state: State,
    ) -> Slot {
        if op.kind == OperatorKind::Constant && !optional {
            return slot;
        }
        if !op.kind.uses_dictionary() {
            return self.column(None);
        }
        let known = &mut self.program.column_states[slot.index()];
        if *known == State::UNDEFINED {
            *known = state;
        } else if *known != state {
            *known = State::EMPTY;
        }
        slot
    }

    /// Returns the slot of a decimal with one operator, or the first of two columns for the parts
    /// of one without an operator.
    pub(super) fn decimal_slot(
        &mut self,
        operator: &Operator,
        name: &Name,
        context: Context<'s>,
    ) -> Slot {
        let slot = self.slot(operator, name, Part::Whole, context);
        match operator.kind {
            OperatorKind::None => {
                let first = self.column(None);
                self.column(None);
                first
            }
            OperatorKind::Constant => slot,
            _ => self.in_column(slot, operator, false, State::DECIMAL),
        }
    }

    fn slot_info(&self, entry: &Entry) -> SlotInfo {
        let dictionary = match &entry.scope {
            Scope::Global => "global".to_owned(),
            Scope::Template(index) => {
                format!("template {}", self.set.templates[*index].name.local)
            }
            Scope::Type(Some(name)) => format!("type {}", name.local),
            Scope::Type(None) => "type any".to_owned(),
            Scope::User(name) => format!("{name:?}"),
        };
        let part = match entry.part {
            Part::Whole => "",
            Part::Exponent => ".exponent",
            Part::Mantissa => ".mantissa",
            Part::Length => ".length",
        };
        SlotInfo {
            dictionary,
            key: format!("{}{part}", entry.key.local),
        }
    }
}
