//! The types of a program's templates, and the conversion of each field.

use std::collections::HashMap;
use std::sync::Arc;

use fanfare_fast::Program;
use fanfare_fast::program::{Field, FieldId, FieldKind, TemplateProgram};
use fanfare_fast::value::{IntType, TextType};

use super::MappingError;
use crate::types::{Fault, Kind, MAX_DEPTH, Member, StructType, TypeError, identifier};

/// The options by which templates become types.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeOptions {
    /// The IDL module around all types.
    pub module: String,
    /// Whether decimals keep mantissa and exponent; otherwise they become the nearest double.
    pub exact_decimals: bool,
    /// Whether types have keys: [`Self::key`], or the value that a template is split by.
    pub keyed: bool,
    /// The name of the top-level field that is the key, in any case.
    pub key: String,
    /// The name of the field in a sequence's entries by which messages are split, in any case.
    pub split: Option<String>,
}

impl Default for TypeOptions {
    fn default() -> Self {
        Self {
            module: "Fanfare".to_owned(),
            exact_decimals: false,
            keyed: false,
            key: "SecurityID".to_owned(),
            split: Some("SecurityID".to_owned()),
        }
    }
}

/// The types of all templates of a program.
#[derive(Debug)]
pub struct Mapping {
    program: Arc<Program>,
    /// The types, by the index of the template; `None` for one without fields, such as Reset.
    templates: Vec<Option<TemplateType>>,
    /// The plans, by the number of the field.
    pub(super) plans: Vec<Plan>,
}

/// The type of one template.
#[derive(Debug, Clone)]
pub struct TemplateType {
    /// The index of the template in its program.
    pub index: u32,
    /// The name of the template.
    pub name: String,
    /// The type of its samples.
    pub sample: Arc<StructType>,
    /// Whether messages are split, so that [`Converted::key`](super::Converted::key) has the value
    /// of each sample.
    pub is_split: bool,
    pub(super) key: Put,
    pub(super) has_mask: bool,
}

/// The conversion of a field.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub(super) put: Put,
    /// The size of an integer or a double in bytes; 1 for every other value.
    pub(super) size: u8,
    /// The bits of an integer that fit into `size` bytes.
    pub(super) fit: u64,
    /// This field's bit in the mask of its structure; 0 when it is mandatory.
    pub(super) bit: u64,
    /// Whether the contents have a mask (groups and sequences).
    pub(super) has_mask: bool,
    /// Whether the message is split by this field of the entries.
    pub(super) is_key: bool,
    /// Whether the message is split along this sequence.
    pub(super) is_split: bool,
}

/// The way in which a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Put {
    Nothing,
    Int(IntType),
    Double,
    Exact,
    Text,
    Octets,
    Group,
    Sequence,
}

impl Put {
    /// Returns the size of a value that is stored as one word, in bytes; 0 for all others.
    pub(super) const fn size(self) -> u8 {
        match self {
            Self::Int(ty) => (ty.bits() / 8) as u8,
            Self::Double => 8,
            _ => 0,
        }
    }
}

impl TemplateType {
    /// Returns whether its samples have a key.
    pub fn is_keyed(&self) -> bool {
        self.sample.is_keyed()
    }

    /// Returns whether the field with this name, in any case, is the key of its samples.
    pub fn is_keyed_by(&self, field: &str) -> bool {
        // A member's name may end in more underscores than the field's.
        let plain = |name: &str| name.trim_end_matches('_').to_ascii_lowercase();
        let wanted = plain(&identifier(field));
        let mut members = self.sample.members.iter();
        members.any(|member| member.key && plain(&member.name) == wanted)
    }

    /// Returns the name of the topic's type without its module: the template's name, made a
    /// unique identifier.
    pub fn type_name(&self) -> &str {
        short(&self.sample.name)
    }
}

impl Mapping {
    /// Makes the types.
    ///
    /// # Errors
    /// The first template that cannot become a type, and the reason.
    pub fn new(program: Arc<Program>, options: &TypeOptions) -> Result<Self, MappingError> {
        let nothing = Plan {
            put: Put::Nothing,
            size: 1,
            fit: 0,
            bit: 0,
            has_mask: false,
            is_key: false,
            is_split: false,
        };
        let mut builder = Builder {
            program: &program,
            options,
            plans: vec![nothing; program.fields().len()],
            names: HashMap::new(),
        };
        builder.name(short(&options.module));
        if options.exact_decimals {
            builder.name("Decimal");
        }
        // Types of templates come before those of their parts.
        let templates = program.templates().iter();
        let named: Vec<_> = templates.map(|t| (t, builder.name(t.name()))).collect();
        let templates = named.iter().map(|(t, name)| builder.template(t, name));
        let templates = templates.collect::<Result<_, _>>()?;
        let plans = builder.plans;
        Ok(Self {
            program,
            templates,
            plans,
        })
    }

    /// Returns the program of the mapping.
    pub const fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the types in the order of the templates.
    pub fn types(&self) -> impl Iterator<Item = &TemplateType> {
        self.templates.iter().flatten()
    }

    /// Returns the type of the template with this index.
    pub fn by_index(&self, template: u32) -> Option<&TemplateType> {
        self.templates.get(template as usize)?.as_ref()
    }

    /// Returns the type of the first template with this name.
    pub fn by_name(&self, template: &str) -> Option<&TemplateType> {
        self.types().find(|t| t.name == template)
    }

    /// Returns all types as one IDL text.
    pub fn idl(&self) -> String {
        crate::types::idl(&self.structures())
    }

    /// Returns all types as Rust structures, for [`cdr_struct!`](crate::cdr_struct).
    ///
    /// # Errors
    /// Those of [`rust`](crate::types::rust()); types made of templates have nothing that it
    /// refuses.
    pub fn rust(&self) -> Result<String, TypeError> {
        crate::types::rust(&self.structures())
    }

    fn structures(&self) -> Vec<&StructType> {
        self.types().map(|t| &*t.sample).collect()
    }
}

struct Builder<'p> {
    program: &'p Program,
    options: &'p TypeOptions,
    plans: Vec<Plan>,
    /// The names of types in use, in lower case as IDL ignores case, and the number in the last
    /// name made from each.
    names: HashMap<String, u32>,
}

impl Builder<'_> {
    /// Returns a unique name in the module for a type: as wanted, or with a number.
    fn name(&mut self, wanted: &str) -> String {
        let wanted = identifier(wanted);
        let mut number = *self.names.entry(wanted.to_ascii_lowercase()).or_default();
        let mut name = wanted.clone();
        while number > 0 && self.names.contains_key(&name.to_ascii_lowercase()) {
            number += 1;
            name = format!("{wanted}_{number}");
        }
        self.names.insert(name.to_ascii_lowercase(), 1);
        self.names
            .insert(wanted.to_ascii_lowercase(), number.max(1));
        format!("{}::{name}", self.options.module)
    }

    fn template(
        &mut self,
        t: &TemplateProgram,
        name: &str,
    ) -> Result<Option<TemplateType>, MappingError> {
        let fields = self.program.template_fields(t);
        if fields.is_empty() {
            return Ok(None);
        }
        self.typed(t, name, fields)
            .map(Some)
            .map_err(|why| MappingError {
                template: t.name().to_owned(),
                why,
            })
    }

    fn typed(
        &mut self,
        t: &TemplateProgram,
        name: &str,
        fields: &[FieldId],
    ) -> Result<TemplateType, TypeError> {
        let split = self.find_split(fields);
        let (mut sample, has_mask) = self.structure(name, t.name(), fields, 0, false)?;
        let mut key = Put::Nothing;
        if let Some((by, ty)) = split {
            key = Put::Int(ty);
            self.plans[by.index()].is_key = true;
            let name = member_name(&sample, self.program.field(by).name());
            let member = Member {
                name,
                kind: int_kind(ty),
                id: 0,
                key: self.options.keyed,
                optional: false,
            };
            sample.members.insert(0, member);
            number(&mut sample);
        } else if self.options.keyed {
            self.mark_key(&mut sample, fields);
        }
        sample.check()?;
        Ok(TemplateType {
            index: t.index(),
            name: t.name().to_owned(),
            sample: Arc::new(sample),
            is_split: split.is_some(),
            key,
            has_mask,
        })
    }

    /// Finds the field to split by, if the last field is a sequence whose entries have it. The
    /// sequence's plan is then marked for the split.
    fn find_split(&mut self, fields: &[FieldId]) -> Option<(FieldId, IntType)> {
        let wanted = self.options.split.as_deref()?;
        let sequence = *fields.last()?;
        if !self.program.field(sequence).is_sequence() {
            return None;
        }
        let found = self.program.children(sequence).iter().find_map(|f| {
            let field = self.program.field(*f);
            let FieldKind::Int(ty) = field.kind() else {
                return None;
            };
            let fits = field.name().eq_ignore_ascii_case(wanted) && !field.optional();
            fits.then_some((*f, ty))
        })?;
        self.plans[sequence.index()].is_split = true;
        Some(found)
    }

    fn mark_key(&self, sample: &mut StructType, fields: &[FieldId]) {
        // The mask, if there is one, precedes the members of the fields.
        let shift = sample.members.len() - fields.len();
        let wanted = |f: &&FieldId| {
            let field = self.program.field(**f);
            let fits = matches!(field.kind(), FieldKind::Int(_) | FieldKind::Text(_));
            field.name().eq_ignore_ascii_case(&self.options.key) && fits && !field.optional()
        };
        if let Some(at) = fields.iter().position(|f| wanted(&f))
            && let Some(member) = sample.members.get_mut(at + shift)
        {
            member.key = !matches!(member.kind, Kind::Sequence(..));
        }
    }

    /// Returns the structure of these fields, and whether it has a mask.
    fn structure(
        &mut self,
        name: &str,
        template: &str,
        fields: &[FieldId],
        depth: usize,
        always_mask: bool,
    ) -> Result<(StructType, bool), TypeError> {
        let fault = |why| {
            Err(TypeError {
                path: name.to_owned(),
                why,
            })
        };
        if depth >= MAX_DEPTH {
            return fault(Fault::TooDeep);
        }
        let mut t = StructType::new(name);
        let mut optional = 0_u32;
        for id in fields {
            let field = self.program.field(*id);
            let kind = self.kind(field, template, depth)?;
            if field.optional() {
                if optional == 64 {
                    return fault(Fault::Unsupported("more than 64 optional fields"));
                }
                self.plans[id.index()].bit = 1 << optional;
                optional += 1;
            }
            let name = member_name(&t, field.name());
            t = t.member(&name, kind);
        }
        let has_mask = always_mask || optional > 0;
        if has_mask {
            let name = member_name(&t, "present");
            let mask = StructType::new("").member(&name, Kind::UInt64).members;
            t.members.splice(0..0, mask);
            number(&mut t);
        }
        Ok((t, has_mask))
    }

    fn kind(&mut self, field: &Field, template: &str, depth: usize) -> Result<Kind, TypeError> {
        let at = field.id().index();
        let (put, kind) = match field.kind() {
            FieldKind::Int(ty) => (Put::Int(ty), int_kind(ty)),
            FieldKind::Decimal if self.options.exact_decimals => {
                let exact = StructType::new(&format!("{}::Decimal", self.options.module))
                    .member("mantissa", Kind::Int64)
                    .member("exponent", Kind::Int32);
                (Put::Exact, Kind::Struct(Arc::new(exact)))
            }
            FieldKind::Decimal => (Put::Double, Kind::Float64),
            FieldKind::Text(TextType::Bytes) => {
                (Put::Octets, Kind::Sequence(Box::new(Kind::Byte), None))
            }
            FieldKind::Text(_) => (Put::Text, Kind::String(None)),
            FieldKind::Group | FieldKind::Sequence => {
                let short = format!("{template}_{}", field.name());
                let name = self.name(&short);
                let children = self.program.children(field.id());
                let always = self.plans[at].is_split;
                let (inner, has_mask) =
                    self.structure(&name, &short, children, depth + 1, always)?;
                self.plans[at].has_mask = has_mask;
                let inner = Kind::Struct(Arc::new(inner));
                if field.is_sequence() {
                    (Put::Sequence, Kind::Sequence(Box::new(inner), None))
                } else {
                    (Put::Group, inner)
                }
            }
            FieldKind::TemplateRef => {
                return Err(TypeError {
                    path: format!("{template}.{}", field.name()),
                    why: Fault::Unsupported("dynamic template references"),
                });
            }
        };
        let plan = &mut self.plans[at];
        plan.put = put;
        plan.size = put.size().max(1);
        plan.fit = u64::MAX >> (64 - 8 * u32::from(plan.size));
        Ok(kind)
    }
}

/// Renumbers the members, after some were inserted in front.
fn number(t: &mut StructType) {
    for (id, member) in (0..).zip(&mut t.members) {
        member.id = id;
    }
}

/// Returns the last part of a name with modules.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Returns a name for one more member, which must also differ from the structure's name.
fn member_name(t: &StructType, wanted: &str) -> String {
    let mut name = identifier(wanted);
    let is = |other: &str, name: &str| other.eq_ignore_ascii_case(name);
    while is(short(&t.name), &name) || t.members.iter().any(|m| is(&m.name, &name)) {
        name.push('_');
    }
    name
}

const fn int_kind(ty: IntType) -> Kind {
    match ty {
        IntType::Int8 => Kind::Int8,
        IntType::UInt8 => Kind::Byte,
        IntType::Int16 => Kind::Int16,
        IntType::UInt16 => Kind::UInt16,
        IntType::Int32 => Kind::Int32,
        IntType::UInt32 => Kind::UInt32,
        IntType::Int64 => Kind::Int64,
        IntType::UInt64 => Kind::UInt64,
    }
}
