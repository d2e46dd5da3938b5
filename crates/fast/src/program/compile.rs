//! Templates to program: inlines static references, numbers fields and previous values, counts
//! presence bits.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};

use super::{
    BitsOp, Body, DecimalOp, Field, FieldId, FieldKind, IntOp, Op, Program, RESET_ID, Reset, Slot,
    SlotInfo, TemplateProgram, TextId, TextOp, lanes, place,
};
use crate::dictionary::State;
use crate::error::{ErrorCode, TemplateError};
use crate::template::{
    BitGroup, Block, Dictionary, Initial, Instruction, Kind, Name, Operator, OperatorKind,
    Position, Template, TemplateSet,
};
use crate::value::{IntType, TextType};

/// Most fields in a program, static references expanded.
const MAX_FIELDS: usize = 1 << 18;

/// Deepest nesting of groups, sequences and static references.
const MAX_NESTING: usize = 64;

pub(super) fn compile(set: &TemplateSet) -> Result<Program, TemplateError> {
    let mut compiler = Compiler::new(set);
    for (index, template) in set.templates.iter().enumerate() {
        compiler.template(index, template)?;
    }
    compiler.implied_reset();
    Ok(compiler.finish())
}

/// The entry of a dictionary that an operator uses.
#[derive(PartialEq, Eq, Hash, Clone)]
struct Entry {
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

/// Which generated name a key is: these never collide with names in the document.
#[derive(PartialEq, Eq, Hash, Clone, Copy)]
enum Part {
    Whole,
    Exponent,
    Mantissa,
    Length,
}

/// Where the compiler stands.
#[derive(Clone, Copy)]
struct Context<'s> {
    /// Index of the template in which the instruction is written.
    written_in: usize,
    /// The current application type.
    app_type: Option<&'s Name>,
    /// The group or sequence around it.
    parent: Option<FieldId>,
    depth: usize,
}

struct Compiler<'s> {
    set: &'s TemplateSet,
    by_name: HashMap<&'s Name, usize>,
    slots: HashMap<Entry, Slot>,
    text_slots: HashMap<Slot, u32>,
    /// Templates that are being expanded.
    expanding: Vec<usize>,
    bodies: Vec<Body>,
    /// The next new column begins a vector, with so many instructions behind it.
    aligned: Option<usize>,
    program: Program,
}

impl<'s> Compiler<'s> {
    fn new(set: &'s TemplateSet) -> Self {
        let by_name = set
            .templates
            .iter()
            .enumerate()
            .map(|(index, t)| (&t.name, index))
            .collect();
        let program = Program {
            templates: Vec::new(),
            by_id: HashMap::new(),
            direct: Vec::new(),
            fields: Vec::new(),
            children: Vec::new(),
            ops: Vec::new(),
            texts: Vec::new(),
            slots: Vec::new(),
            column_states: Vec::new(),
            text_slots: 0,
            steps: Vec::new(),
            segments: Vec::new(),
            flats: Vec::new(),
            places: Vec::new(),
            only: None,
            fingerprint: 0,
            flat_templates: Vec::new(),
            flat_ids: Vec::new(),
        };
        let (slots, text_slots) = (HashMap::new(), HashMap::new());
        Self {
            set,
            by_name,
            slots,
            text_slots,
            expanding: Vec::new(),
            bodies: Vec::new(),
            aligned: Some(0),
            program,
        }
    }

    fn template(&mut self, index: usize, template: &'s Template) -> Result<(), TemplateError> {
        let context = Context {
            written_in: index,
            app_type: template.type_ref.as_ref(),
            parent: None,
            depth: 0,
        };
        self.expanding.push(index);
        let (mut ops, mut children) = (Vec::new(), Vec::new());
        self.body(&template.body, context, &mut ops, &mut children)?;
        self.expanding.pop();
        let mut body = self.append(ops);
        body.bits += 1;
        let reset = match template.id {
            Some(RESET_ID) => Reset::All,
            _ if template.reset => Reset::Dictionaries,
            _ => Reset::None,
        };
        let children = self.append_children(children);
        self.program.templates.push(TemplateProgram {
            index: index as u32,
            name: template.name.clone(),
            id: template.id,
            reset,
            body,
            children,
            type_ref: template.type_ref.clone(),
        });
        Ok(())
    }

    /// The Reset message exists even where no template declares it.
    fn implied_reset(&mut self) {
        if self
            .set
            .templates
            .iter()
            .any(|template| template.id == Some(RESET_ID))
        {
            return;
        }
        let mut body = self.append(Vec::new());
        body.bits = 1;
        self.program.templates.push(TemplateProgram {
            index: self.program.templates.len() as u32,
            name: Name {
                ns: String::new(),
                local: "Reset".to_owned(),
            },
            id: Some(RESET_ID),
            reset: Reset::All,
            body,
            children: 0..0,
            type_ref: None,
        });
    }

    fn finish(mut self) -> Program {
        let program = &mut self.program;
        if let [template] = &self.set.templates[..] {
            program.only = template.id.is_none().then_some(0);
        }
        for template in &program.templates {
            if let Some(id) = template.id {
                program.by_id.insert(id, template.index);
                if (id as usize) < 4096 {
                    let needed = program.direct.len().max(id as usize + 1);
                    program.direct.resize(needed, 0);
                    program.direct[id as usize] = template.index + 1;
                }
            }
        }
        program.text_slots = self.text_slots.len() as u32;
        for body in &self.bodies {
            let steps = lanes::steps(program, *body);
            program.steps.push(steps);
        }
        Self::find_flat(program);
        program.fingerprint = fingerprint(program);
        self.program
    }

    /// Finds the templates that are flat.
    fn find_flat(program: &mut Program) {
        let flats: Vec<_> = program
            .templates
            .iter()
            .filter_map(|template| lanes::flat(program, template))
            .collect();
        program.flat_templates = vec![0; program.templates.len()];
        program.flat_ids = vec![0; 128];
        for (number, flat) in (1..).zip(&flats) {
            program.flat_templates[flat.template as usize] = number;
            let id = program.templates[flat.template as usize].id;
            // An identifier that is there twice is the last one's.
            if let Some(id) = id.filter(|id| program.by_id.get(id) == Some(&flat.template))
                && let Some(place) = program.flat_ids.get_mut(id as usize)
            {
                *place = number;
            }
        }
        program.places = place::places(program, &flats);
        program.flats = flats;
    }

    fn body(
        &mut self,
        instructions: &'s [Instruction],
        context: Context<'s>,
        ops: &mut Vec<Op>,
        children: &mut Vec<FieldId>,
    ) -> Result<(), TemplateError> {
        self.aligned = Some(instructions.len());
        for instruction in instructions {
            if instruction.kind == Kind::StaticRef {
                self.static_ref(instruction, context, ops, children)?;
                continue;
            }
            let field = self.field(instruction, context)?;
            children.push(field);
            ops.push(self.op(instruction, field, context)?);
        }
        Ok(())
    }

    fn static_ref(
        &mut self,
        instruction: &'s Instruction,
        context: Context<'s>,
        ops: &mut Vec<Op>,
        children: &mut Vec<FieldId>,
    ) -> Result<(), TemplateError> {
        let at = instruction.position;
        let name = &instruction.name.local;
        let Some(&index) = self.by_name.get(&instruction.name) else {
            let field = self.field(instruction, context)?;
            ops.push(Op::Unresolved { field });
            return Ok(());
        };
        if self.expanding.contains(&index) {
            return Err(s1(at, format!("template {name} refers to itself")));
        }
        if context.depth >= MAX_NESTING {
            return Err(s1(at, format!("nested deeper than {MAX_NESTING} levels")));
        }
        let template = &self.set.templates[index];
        let inner = Context {
            written_in: index,
            app_type: template.type_ref.as_ref().or(context.app_type),
            depth: context.depth + 1,
            ..context
        };
        self.expanding.push(index);
        self.body(&template.body, inner, ops, children)?;
        self.expanding.pop();
        Ok(())
    }

    fn op(
        &mut self,
        instruction: &'s Instruction,
        field: FieldId,
        context: Context<'s>,
    ) -> Result<Op, TemplateError> {
        let optional = instruction.optional;
        let name = &instruction.name;
        Ok(match &instruction.kind {
            Kind::Int(ty, operator) => {
                let slot = self.slot(operator, name, Part::Whole, context);
                let slot = self.in_column(slot, operator, optional, State::int(*ty));
                Op::Int(int_op(field, *ty, operator, optional, slot))
            }
            Kind::Decimal(operator) => Op::Decimal(DecimalOp {
                field,
                operator: operator.kind,
                optional,
                slot: self.decimal_slot(operator, name, context),
                initial: match operator.initial {
                    Some(Initial::Decimal(decimal)) => Some(decimal),
                    _ => None,
                },
            }),
            Kind::SplitDecimal { exponent, mantissa } => {
                let first = self.slot(exponent, name, Part::Exponent, context);
                let ty = State::int(IntType::Int32);
                let first = self.in_column(first, exponent, optional, ty);
                let second = self.slot(mantissa, name, Part::Mantissa, context);
                let second = self.in_column(second, mantissa, false, State::int(IntType::Int64));
                Op::SplitDecimal {
                    field,
                    exponent: int_op(field, IntType::Int32, exponent, optional, first),
                    mantissa: int_op(field, IntType::Int64, mantissa, false, second),
                }
            }
            Kind::Text(ty, operator) => {
                Op::Text(self.text_op(field, *ty, operator, instruction, context))
            }
            Kind::Group(block) => Op::Group {
                field,
                optional,
                body: self.block(block, field, instruction, context)?,
            },
            Kind::Sequence { length, entry } => {
                let (name, part) = match &length.name {
                    Some(name) => (name, Part::Whole),
                    None => (name, Part::Length),
                };
                let slot = self.slot(&length.operator, name, part, context);
                let ty = State::int(IntType::UInt32);
                let slot = self.in_column(slot, &length.operator, optional, ty);
                let length = int_op(field, IntType::UInt32, &length.operator, optional, slot);
                Op::Sequence {
                    field,
                    length,
                    body: self.block(entry, field, instruction, context)?,
                }
            }
            Kind::Bits(group) => Op::Bits(self.bits(group, field, instruction, context)?),
            Kind::StaticRef => Op::Unresolved { field },
            Kind::DynamicRef => Op::TemplateRef { field },
        })
    }

    fn text_op(
        &mut self,
        field: FieldId,
        ty: TextType,
        operator: &Operator,
        instruction: &Instruction,
        context: Context<'s>,
    ) -> TextOp {
        let optional = instruction.optional;
        let mut slot = self.slot(operator, &instruction.name, Part::Whole, context);
        if ty == TextType::Ascii || operator.kind.uses_dictionary() {
            slot = self.in_column(slot, operator, optional, State::text(ty));
        }
        let mut text_slot = 0;
        if operator.kind.uses_dictionary() {
            let next = self.text_slots.len() as u32;
            text_slot = *self.text_slots.entry(slot).or_insert(next);
        }
        let initial = match &operator.initial {
            Some(Initial::Text(text)) => {
                self.program.texts.push(text.clone().into_boxed_slice());
                Some(TextId(self.program.texts.len() as u32 - 1))
            }
            _ => None,
        };
        TextOp {
            field,
            ty,
            operator: operator.kind,
            optional,
            slot,
            text_slot,
            initial,
        }
    }

    /// A bit group, its members fields inside it.
    fn bits(
        &mut self,
        group: &'s BitGroup,
        field: FieldId,
        instruction: &Instruction,
        context: Context<'s>,
    ) -> Result<BitsOp, TemplateError> {
        let slot = self.slot(&group.operator, &instruction.name, Part::Whole, context);
        let ty = IntType::UInt64;
        let slot = self.in_column(slot, &group.operator, instruction.optional, State::int(ty));
        let inner = Context {
            parent: Some(field),
            depth: context.depth + 1,
            ..context
        };
        let (mut ops, mut children) = (Vec::new(), Vec::new());
        for (member, width) in &group.members {
            let id = self.field(member, inner)?;
            self.program.fields[id.index()].bits = *width;
            children.push(id);
            if let Kind::Int(ty, operator) = &member.kind {
                ops.push(Op::Int(int_op(id, *ty, operator, member.optional, Slot(0))));
            }
        }
        self.program.fields[field.index()].children = self.append_children(children);
        Ok(BitsOp {
            whole: int_op(field, ty, &group.operator, instruction.optional, slot),
            width: group.width(),
            members: self.append_ops(ops, u32::MAX),
        })
    }

    /// The contents of a group or sequence.
    fn block(
        &mut self,
        block: &'s Block,
        field: FieldId,
        instruction: &Instruction,
        context: Context<'s>,
    ) -> Result<Body, TemplateError> {
        if context.depth >= MAX_NESTING {
            let message = format!("nested deeper than {MAX_NESTING} levels");
            return Err(s1(instruction.position, message));
        }
        let inner = Context {
            app_type: block.type_ref.as_ref().or(context.app_type),
            parent: Some(field),
            depth: context.depth + 1,
            ..context
        };
        let (mut ops, mut children) = (Vec::new(), Vec::new());
        self.body(&block.body, inner, &mut ops, &mut children)?;
        self.aligned = Some(0);
        self.program.fields[field.index()].children = self.append_children(children);
        Ok(self.append(ops))
    }

    fn field(
        &mut self,
        instruction: &Instruction,
        context: Context<'s>,
    ) -> Result<FieldId, TemplateError> {
        if self.program.fields.len() >= MAX_FIELDS {
            let message = format!("more than {MAX_FIELDS} fields, references expanded");
            return Err(s1(instruction.position, message));
        }
        let (kind, id_text) = match &instruction.kind {
            Kind::Int(ty, _) => (FieldKind::Int(*ty), &instruction.id),
            Kind::Decimal(_) | Kind::SplitDecimal { .. } => (FieldKind::Decimal, &instruction.id),
            Kind::Text(ty, _) => (FieldKind::Text(*ty), &instruction.id),
            Kind::Group(_) | Kind::Bits(_) => (FieldKind::Group, &instruction.id),
            Kind::Sequence { length, .. } if length.id.is_some() => {
                (FieldKind::Sequence, &length.id)
            }
            Kind::Sequence { .. } => (FieldKind::Sequence, &instruction.id),
            Kind::StaticRef | Kind::DynamicRef => (FieldKind::TemplateRef, &instruction.id),
        };
        let mut name = instruction.name.clone();
        if name.local.is_empty() {
            "templateRef".clone_into(&mut name.local);
        }
        let id = FieldId(self.program.fields.len() as u32);
        self.program.fields.push(Field {
            id,
            name,
            tag: id_text.as_ref().and_then(|id| id.parse().ok()),
            id_text: id_text.as_deref().map(Into::into),
            kind,
            optional: instruction.optional,
            parent: context.parent,
            template: self.expanding.first().copied().unwrap_or_default() as u32,
            children: 0..0,
            op: 0,
            bits: 0,
        });
        Ok(id)
    }

    /// The number of the previous value that an operator uses.
    fn slot(&mut self, operator: &Operator, name: &Name, part: Part, context: Context<'s>) -> Slot {
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

    /// A new column. The first one of a body is the first one of a vector, and the others of the
    /// body have room behind it.
    fn column(&mut self, info: Option<SlotInfo>) -> Slot {
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

    /// The column of an op of this type that can be in lanes: its slot if it has one, else one
    /// that no other op has.
    fn in_column(&mut self, slot: Slot, op: &Operator, optional: bool, state: State) -> Slot {
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

    /// The slot of a decimal with one operator; without operator, columns for both parts.
    fn decimal_slot(&mut self, operator: &Operator, name: &Name, context: Context<'s>) -> Slot {
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

    fn append(&mut self, ops: Vec<Op>) -> Body {
        let body = self.append_ops(ops, self.bodies.len() as u32);
        self.bodies.push(body);
        body
    }

    /// Ops as the body of this number; one that no body has if they are not executed in steps.
    fn append_ops(&mut self, ops: Vec<Op>, number: u32) -> Body {
        let start = self.program.ops.len() as u32;
        let bits = ops.iter().map(bits_of).sum();
        for (index, op) in ops.iter().enumerate() {
            self.program.fields[op.field().index()].op = start + index as u32;
        }
        self.program.ops.extend(ops);
        Body {
            start,
            end: self.program.ops.len() as u32,
            bits,
            number,
        }
    }

    fn append_children(&mut self, children: Vec<FieldId>) -> std::ops::Range<u32> {
        let start = self.program.children.len() as u32;
        self.program.children.extend(children);
        start..self.program.children.len() as u32
    }
}

/// The most presence bits that an op takes in the map of its body.
fn bits_of(op: &Op) -> u32 {
    let int = |op: &IntOp| u32::from(op.operator.takes_bit(op.optional));
    match op {
        Op::Int(op) => int(op),
        Op::Decimal(op) => u32::from(op.operator.takes_bit(op.optional)),
        Op::SplitDecimal {
            exponent, mantissa, ..
        } => int(exponent) + int(mantissa),
        Op::Text(op) => u32::from(op.operator.takes_bit(op.optional)),
        Op::Group { optional, .. } => u32::from(*optional),
        Op::Sequence { length, .. } => int(length),
        Op::Bits(op) => int(&op.whole),
        Op::TemplateRef { .. } | Op::Unresolved { .. } => 0,
    }
}

fn int_op(field: FieldId, ty: IntType, operator: &Operator, optional: bool, slot: Slot) -> IntOp {
    let initial = match operator.initial {
        Some(Initial::Int(value)) => Some(value as u64),
        _ => None,
    };
    IntOp {
        field,
        ty,
        operator: operator.kind,
        optional,
        slot,
        initial,
    }
}

fn s1(position: Position, message: String) -> TemplateError {
    TemplateError {
        code: ErrorCode::S1,
        line: position.line,
        column: position.column,
        message,
    }
}

/// A number for all that a record of this program depends on.
fn fingerprint(program: &Program) -> u64 {
    let mut all = Fingerprint(DefaultHasher::new());
    let written = write!(
        all,
        "{:?}{:?}{:?}{:?}",
        program.templates, program.fields, program.ops, program.texts
    );
    // Hashing takes whatever is written.
    written.map_or(1, |()| all.0.finish().max(1))
}

struct Fingerprint(DefaultHasher);

impl fmt::Write for Fingerprint {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}
