//! The compiler of templates to a program. It inlines static references, numbers fields and
//! previous values, and counts presence bits.

mod ops;
mod slots;

use self::slots::Entry;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::hash::{DefaultHasher, Hasher as _};

use super::{
    Body, Field, FieldId, FieldKind, FlatIds, Op, Program, RESET_ID, Reset, Slot, TemplateProgram,
    lanes, place,
};
use crate::error::{ErrorCode, TemplateError};
use crate::template::limits::MAX_FIELDS;
use crate::template::{Block, Instruction, Kind, Name, Position, Template, TemplateSet};

/// The deepest nesting of groups, sequences and static references.
const MAX_NESTING: usize = 64;

pub(super) fn compile(set: &TemplateSet) -> Result<Program, TemplateError> {
    let mut compiler = Compiler::new(set);
    for (index, template) in set.templates.iter().enumerate() {
        compiler.template(index, template)?;
    }
    compiler.implied_reset();
    Ok(compiler.finish())
}

/// The position of the compiler.
#[derive(Clone, Copy)]
struct Context<'s> {
    /// The index of the template in which the instruction is written.
    written_in: usize,
    /// The current application type.
    app_type: Option<&'s Name>,
    /// The group or sequence around the instruction.
    parent: Option<FieldId>,
    depth: usize,
}

struct Compiler<'s> {
    set: &'s TemplateSet,
    by_name: HashMap<&'s Name, usize>,
    slots: HashMap<Entry, Slot>,
    text_slots: HashMap<Slot, u32>,
    /// The templates that are being expanded.
    expanding: Vec<usize>,
    /// The number of references expanded so far, and of bytes of initial values.
    references: usize,
    text_bytes: usize,
    bodies: Vec<Body>,
    /// The number of columns for which there must be space from the next new column on, which then
    /// begins a vector.
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
            spare_fields: Vec::new(),
            children: Vec::new(),
            ops: Vec::new(),
            fused: Vec::new(),
            parts: Vec::new(),
            texts: Vec::new(),
            slots: Vec::new(),
            column_states: Vec::new(),
            text_slots: 0,
            body_segments: Vec::new(),
            segments: Vec::new(),
            flats: Vec::new(),
            places: Vec::new(),
            only: None,
            fingerprint: 0,
            flat_templates: Vec::new(),
            flat_ids: FlatIds::default(),
        };
        let (slots, text_slots) = (HashMap::new(), HashMap::new());
        Self {
            set,
            by_name,
            slots,
            text_slots,
            expanding: Vec::new(),
            references: 0,
            text_bytes: 0,
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
            program: 0,
            name: template.name.clone(),
            id: template.id,
            reset,
            body,
            children,
            type_ref: template.type_ref.clone(),
        });
        Ok(())
    }

    /// Adds the Reset message, unless a template declares it.
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
            program: 0,
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
        let mut of_template = vec![false; self.bodies.len()];
        for template in &program.templates {
            of_template[template.body.number as usize] = true;
        }
        for (body, of_template) in self.bodies.iter().zip(of_template) {
            let segment = lanes::segment(program, *body, of_template);
            program.body_segments.push(segment);
        }
        Self::find_flat(program);
        super::fused::fuse(program);
        let own = fingerprint(program);
        program.fingerprint = own;
        for template in &mut program.templates {
            template.program = own;
        }
        let spare = program.fields.iter().take(1).cycle();
        program.spare_fields = spare.take(super::visit::MAX_FIELDS).cloned().collect();
        self.program
    }

    /// Finds the templates that are flat. If they have less than half of all fields, none counts as
    /// flat: the others would be slow, because the columns of a program in lanes fit no other fast
    /// executor.
    fn find_flat(program: &mut Program) {
        let mut flats: Vec<_> = program
            .templates
            .iter()
            .filter_map(|template| lanes::flat(program, template))
            .collect();
        let mut fields = vec![0_usize; program.templates.len()];
        for field in &program.fields {
            fields[field.template as usize] += 1;
        }
        let in_flats: usize = flats
            .iter()
            .map(|flat| fields[flat.template as usize])
            .sum();
        if 2 * in_flats < program.fields.len() {
            flats.clear();
        }
        program.flat_templates = vec![0; program.templates.len()];
        for (number, flat) in (1..).zip(&flats) {
            program.flat_templates[flat.template as usize] = number;
            let id = program.templates[flat.template as usize].id;
            // An identifier that is there twice is the last one's.
            if let Some(id) = id.filter(|id| program.by_id.get(id) == Some(&flat.template))
                && let Some(place) = program.flat_ids.0.get_mut(id as usize)
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
        self.references += 1;
        if self.references > MAX_FIELDS {
            let message = format!("more than {MAX_FIELDS} references, expanded");
            return Err(s1(at, message));
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

    /// Compiles the contents of a group or sequence.
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
            repeat: 0,
        });
        Ok(id)
    }

    fn append(&mut self, ops: Vec<Op>) -> Body {
        let body = self.append_ops(ops, self.bodies.len() as u32);
        self.bodies.push(body);
        body
    }

    /// Appends ops as the body of this number. Ops that are not executed in steps have a number
    /// that no body has.
    fn append_ops(&mut self, ops: Vec<Op>, number: u32) -> Body {
        let start = self.program.ops.len() as u32;
        let bits = ops.iter().map(Op::bits).sum();
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

    /// Appends the fields of a level.
    fn append_children(&mut self, children: Vec<FieldId>) -> std::ops::Range<u32> {
        self.number_repeats(&children);
        let start = self.program.children.len() as u32;
        self.program.children.extend(children);
        start..self.program.children.len() as u32
    }
}

impl Compiler<'_> {
    /// Numbers the fields of a level that have the name of an earlier one: see [`Field::member`].
    fn number_repeats(&mut self, level: &[FieldId]) {
        let fields = &self.program.fields;
        let names = level.iter().map(|id| fields[id.index()].name());
        let names: HashSet<&str> = names.collect();
        if names.len() == level.len() {
            return;
        }
        let (mut last, mut repeats) = (HashMap::new(), Vec::new());
        for &id in level {
            let name = fields[id.index()].name();
            let Some(number) = last.get_mut(name) else {
                last.insert(name, 1_u32);
                continue;
            };
            *number += 1;
            while names.contains(format!("{name}#{number}").as_str()) {
                *number += 1;
            }
            repeats.push((id, *number));
        }
        for (id, number) in repeats {
            self.program.fields[id.index()].repeat = number;
        }
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

/// Returns a number for everything that a record of this program depends on.
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
