//! Traces of decoding, and listings of templates, as text for people.

use std::fmt::Write as _;

use crate::decode::Decoder;
use crate::dictionary::Previous;
use crate::error::CodecError;
use crate::program::{Field, FieldId, FieldKind, IntOp, Op, Program, Reset, Slot, TemplateProgram};
use crate::template::OperatorKind;
use crate::trace::Step;
use crate::value::{Decimal, TextType};
use crate::visitor::Visitor;

/// Most bytes that a line shows of a field.
const SHOWN: usize = 12;

/// Decodes the message at the front of `bytes` and tells how: one line for each presence map,
/// template identifier and field, with offset (plus `base`), bytes, operator, presence bit,
/// previous value and value. The result is that of [`Decoder::decode`]; where it is an error,
/// the text ends there.
pub fn explain(
    decoder: &mut Decoder,
    bytes: &[u8],
    base: usize,
    text: &mut String,
) -> Result<usize, CodecError> {
    let mut explainer = Explainer {
        text,
        base,
        depth: 0,
        open: false,
    };
    let result = decoder.decode(bytes, &mut explainer);
    explainer.close(String::new);
    result
}

struct Explainer<'t> {
    text: &'t mut String,
    base: usize,
    depth: usize,
    /// The line of a field waits for its value.
    open: bool,
}

impl Explainer<'_> {
    fn line(&mut self, offset: Option<usize>, bytes: &[u8], what: &str) {
        self.close(String::new);
        let mut shown = String::new();
        for byte in bytes.iter().take(SHOWN) {
            _ = write!(shown, "{byte:02x} ");
        }
        if bytes.len() > SHOWN {
            shown.push('…');
        }
        let offset = offset
            .map(|offset| (offset + self.base).to_string())
            .unwrap_or_default();
        let width = 3 * SHOWN + 1;
        let indent = 2 * self.depth;
        _ = write!(
            self.text,
            "{offset:>8}  {shown:<width$} {:indent$}{what}",
            ""
        );
        self.open = true;
    }

    /// Ends the line of a field with its value.
    fn close(&mut self, value: impl FnOnce() -> String) {
        if std::mem::take(&mut self.open) {
            self.text.push_str(&value());
            self.text.push('\n');
        }
    }

    fn value(&mut self, value: &str) {
        self.close(|| format!(" = {value}"));
    }

    fn field(&mut self, step: Step<'_>) {
        let Step::Field {
            field,
            part,
            operator,
            bit,
            previous,
            offset,
            bytes,
            integer,
        } = step
        else {
            return;
        };
        let mut what = name(field);
        if !part.is_empty() {
            _ = write!(what, " {part}");
        }
        _ = write!(what, ": {}", operator.name());
        if let Some(bit) = bit {
            _ = write!(what, ", bit {}", u8::from(bit));
        }
        if let Some(previous) = previous {
            what.push_str(", previous ");
            what.push_str(&previous_text(&previous));
        }
        self.line(Some(offset), bytes, &what);
        if !part.is_empty() {
            self.value(&integer.map_or("absent".to_owned(), |integer| integer.to_string()));
        }
    }
}

impl Visitor for Explainer<'_> {
    const TRACE: bool = true;

    fn step(&mut self, step: Step<'_>) {
        match step {
            Step::PresenceMap { offset, bytes } => {
                let mut what = "presence map".to_owned();
                for byte in bytes {
                    _ = write!(what, " {:07b}", byte & 0x7f);
                }
                self.line(Some(offset), bytes, &what);
            }
            Step::Template {
                offset,
                bytes,
                template,
            } => {
                let again = if bytes.is_empty() { " (as before)" } else { "" };
                let id = template.id().unwrap_or_default();
                let what = format!("template {id} {}{again}", template.name());
                self.line(Some(offset), bytes, &what);
            }
            Step::Field { .. } => self.field(step),
        }
    }

    fn unsigned(&mut self, _: &Field, value: u64) {
        self.value(&value.to_string());
    }

    fn signed(&mut self, _: &Field, value: i64) {
        self.value(&value.to_string());
    }

    fn decimal(&mut self, field: &Field, value: Decimal) {
        if !self.open {
            self.line(None, &[], &name(field));
        }
        self.value(&decimal(value));
    }

    fn ascii(&mut self, _: &Field, value: &[u8]) {
        self.value(&text(value, TextType::Ascii));
    }

    fn unicode(&mut self, _: &Field, value: &[u8]) {
        self.value(&text(value, TextType::Unicode));
    }

    fn bytes(&mut self, _: &Field, value: &[u8]) {
        self.value(&text(value, TextType::Bytes));
    }

    fn absent(&mut self, field: &Field) {
        if self.open {
            self.value("absent");
        } else if matches!(field.kind(), FieldKind::Group) {
            self.line(None, &[], &format!("{}: bit 0", name(field)));
            self.value("absent");
        }
    }

    fn begin_group(&mut self, field: &Field) {
        self.line(None, &[], &format!("group {}", name(field)));
        self.depth += 1;
    }

    fn end_group(&mut self, _: &Field) {
        self.depth -= 1;
    }

    fn begin_entry(&mut self, field: &Field, index: u32) {
        self.line(None, &[], &format!("{}[{index}]", field.name()));
        self.depth += 1;
    }

    fn end_entry(&mut self, _: &Field) {
        self.depth -= 1;
    }

    fn begin_template(&mut self, _: &Field, _: &TemplateProgram) {
        self.depth += 1;
    }

    fn end_template(&mut self, _: &Field) {
        self.depth -= 1;
    }
}

/// Lists the templates with their fields: name and tag, type, presence, operator, initial value,
/// dictionary and key.
pub fn list(program: &Program, out: &mut String) {
    for template in program.templates() {
        _ = write!(out, "template {}", template.name());
        match template.id() {
            Some(id) => _ = write!(out, " id {id}"),
            None => out.push_str(" without id"),
        }
        if let Some(ty) = template.type_ref() {
            _ = write!(out, ", type {}", ty.local);
        }
        out.push_str(match template.reset() {
            Reset::None => "",
            Reset::Dictionaries => ", resets the dictionaries",
            Reset::All => ", resets the dictionaries and the identifier",
        });
        _ = writeln!(out, ", presence bits {}", template.body().bits);
        for &id in program.template_fields(template) {
            list_field(program, id, 1, out);
        }
        for op in program.ops(template.body()) {
            if let Op::Unresolved { field } = op {
                let name = program.field(*field).name();
                _ = writeln!(out, "  reference to unknown template {name} (D8)");
            }
        }
    }
}

fn list_field(program: &Program, id: FieldId, depth: usize, out: &mut String) {
    let field = program.field(id);
    let indent = 2 * depth;
    let presence = if field.optional() { "optional " } else { "" };
    _ = write!(
        out,
        "{:indent$}{}: {presence}{}",
        "",
        name(field),
        type_name(field.kind())
    );
    match program.op(id) {
        Op::Int(op) => list_int(program, "", op, out),
        Op::Decimal(op) => {
            let initial = op.initial.map(decimal);
            list_operator(program, "", op.operator, op.slot, initial, out);
        }
        Op::SplitDecimal {
            exponent, mantissa, ..
        } => {
            list_int(program, "exponent ", exponent, out);
            list_int(program, "mantissa ", mantissa, out);
        }
        Op::Text(op) => {
            let initial = op.initial.map(|initial| text(program.text(initial), op.ty));
            list_operator(program, "", op.operator, op.slot, initial, out);
        }
        Op::Sequence { length, .. } => list_int(program, "length ", length, out),
        Op::Group { .. } | Op::TemplateRef { .. } | Op::Unresolved { .. } => {}
    }
    out.push('\n');
    for &child in program.children(id) {
        list_field(program, child, depth + 1, out);
    }
}

fn list_int(program: &Program, part: &str, op: &IntOp, out: &mut String) {
    let initial = op.initial.map(|bits| op.ty.widen(bits).to_string());
    list_operator(program, part, op.operator, op.slot, initial, out);
}

fn list_operator(
    program: &Program,
    part: &str,
    operator: OperatorKind,
    slot: Slot,
    initial: Option<String>,
    out: &mut String,
) {
    _ = write!(out, ", {part}{}", operator.name());
    if let Some(initial) = initial {
        _ = write!(out, " {initial}");
    }
    if operator.uses_dictionary()
        && let Some(info) = program.slots().get(slot.index())
    {
        _ = write!(out, " [{} {}]", info.dictionary, info.key);
    }
}

fn name(field: &Field) -> String {
    match field.id_text() {
        Some(id) => format!("{}({id})", field.name()),
        None => field.name().to_owned(),
    }
}

fn type_name(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Int(ty) => ty.name(),
        FieldKind::Decimal => "decimal",
        FieldKind::Text(TextType::Ascii) => "string",
        FieldKind::Text(TextType::Unicode) => "unicode string",
        FieldKind::Text(TextType::Bytes) => "byteVector",
        FieldKind::Group => "group",
        FieldKind::Sequence => "sequence",
        FieldKind::TemplateRef => "dynamic template reference",
    }
}

fn decimal(value: Decimal) -> String {
    format!("{}e{}", value.mantissa, value.exponent)
}

fn text(value: &[u8], ty: TextType) -> String {
    match ty {
        TextType::Ascii | TextType::Unicode => format!("{:?}", String::from_utf8_lossy(value)),
        TextType::Bytes => value
            .iter()
            .fold(String::from("0x"), |hex, byte| format!("{hex}{byte:02x}")),
    }
}

fn previous_text(previous: &Previous) -> String {
    match previous {
        Previous::Undefined => "undefined".to_owned(),
        Previous::Empty => "empty".to_owned(),
        Previous::Int(value) => value.to_string(),
        Previous::Decimal(value) => decimal(*value),
        Previous::Text(value) => match std::str::from_utf8(value) {
            Ok(value) => format!("{value:?}"),
            Err(_) => text(value, TextType::Bytes),
        },
    }
}
