//! The structs of a template set, before they are written.

use crate::program::{FieldId, FieldKind, Op, Program};
use crate::template::OperatorKind;
use crate::value::{IntType, TextType};
use fanfare_wire::names::{Taken, pascal, snake};
use fanfare_wire::text::Shown;

/// A struct: of a template, a group, or the entries of a sequence.
pub(super) struct Struct {
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) members: Vec<Member>,
}

/// A field of a struct.
pub(super) struct Member {
    pub(super) id: FieldId,
    pub(super) name: String,
    pub(super) doc: String,
    pub(super) optional: bool,
    pub(super) shape: Shape,
    /// The numbers of the fields inside it, itself included: `first..=last`.
    pub(super) first: usize,
    pub(super) last: usize,
}

/// The kind of a field. Groups and sequences have the index of their struct.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    Int(IntType),
    Decimal,
    Text(TextType),
    Group(usize),
    Sequence(usize),
    Dynamic,
    /// A mandatory constant, which is an associated constant and no member.
    Constant,
}

/// The structs of a template set. Those of templates, and the members of `Messages` with them, are
/// found by the index of the template.
pub(super) struct Model<'p> {
    pub(super) program: &'p Program,
    pub(super) structs: Vec<Struct>,
    pub(super) templates: Vec<usize>,
    pub(super) members: Vec<String>,
    /// The program's layout, kept because it takes time to compute.
    pub(super) layout: u64,
    taken: Taken,
}

/// The names that a struct must not have, because generated code uses them without a path.
const RESERVED: [&str; 4] = ["Decoded", "ExactSizeIterator", "Messages", "SLOTS"];

impl<'p> Model<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let mut model = Self {
            program,
            structs: Vec::new(),
            templates: Vec::new(),
            members: Vec::new(),
            layout: program.layout(),
            taken: Taken::from(RESERVED),
        };
        let mut members = Taken::from(["template"]);
        for template in program.templates() {
            let id = template
                .id()
                .map_or("no id".to_owned(), |id| id.to_string());
            let doc = format!("Template {} ({id}).", Shown(template.name()));
            let fields = program.template_fields(template);
            let index = model.define(pascal(template.name()), doc, fields);
            model.templates.push(index);
            let member = snake(&model.structs[index].name);
            model.members.push(members.unique(member));
        }
        model
    }

    fn define(&mut self, name: String, doc: String, ids: &[FieldId]) -> usize {
        let name = self.taken.unique(name);
        let index = self.structs.len();
        self.structs.push(Struct {
            name: name.clone(),
            doc,
            members: Vec::new(),
        });
        let mut taken = Taken::default();
        let members = ids.iter().map(|id| self.member(*id, &name, &mut taken));
        self.structs[index].members = members.collect();
        index
    }

    fn member(&mut self, id: FieldId, outer: &str, taken: &mut Taken) -> Member {
        let program = self.program;
        let field = program.field(id);
        let name = taken.unique(snake(field.name()));
        let tag = field
            .id_text()
            .map_or(String::new(), |tag| format!("({})", Shown(tag)));
        let shown = Shown(field.name());
        let (shape, ty) = match field.kind() {
            _ if is_constant(program, id) => (Shape::Constant, "constant"),
            FieldKind::Int(ty) => (Shape::Int(ty), ty.name()),
            FieldKind::Decimal => (Shape::Decimal, "decimal"),
            FieldKind::Text(ty) => (Shape::Text(ty), text_name(ty)),
            FieldKind::TemplateRef => (Shape::Dynamic, "dynamic templateRef"),
            FieldKind::Group | FieldKind::Sequence => {
                let inner = format!("{outer}{}", pascal(field.name()));
                let what = if field.is_sequence() {
                    "An entry"
                } else {
                    "The group"
                };
                let doc = format!("{what} of {shown}{tag}.");
                let index = self.define(inner, doc, program.children(id));
                if field.is_sequence() {
                    (Shape::Sequence(index), "sequence")
                } else {
                    (Shape::Group(index), "group")
                }
            }
        };
        Member {
            id,
            name,
            doc: format!("{shown}{tag}, {ty}."),
            optional: field.optional(),
            shape,
            first: id.index(),
            last: last_inside(program, id),
        }
    }
}

fn is_constant(program: &Program, id: FieldId) -> bool {
    let kind = match program.op(id) {
        Op::Int(op) => op.operator,
        Op::Decimal(op) => op.operator,
        Op::Text(op) => op.operator,
        _ => return false,
    };
    kind == OperatorKind::Constant && !program.field(id).optional()
}

const fn text_name(ty: TextType) -> &'static str {
    match ty {
        TextType::Ascii => "string",
        TextType::Unicode => "unicode string",
        TextType::Bytes => "byteVector",
    }
}

/// Returns the highest number of the fields inside a field, itself included.
fn last_inside(program: &Program, id: FieldId) -> usize {
    let inside = program
        .children(id)
        .iter()
        .map(|c| last_inside(program, *c));
    inside.max().unwrap_or(0).max(id.index())
}
