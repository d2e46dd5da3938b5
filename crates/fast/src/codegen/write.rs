//! Code that passes the members to a visitor, and the rest of `impl Typed`.

use std::fmt::Write as _;

use super::int;
use super::model::{Member, Model, Shape, Struct};
use super::rows;
use crate::encode::is_word;
use crate::program::{FieldKind, Op, Program};
use crate::value::{IntType, TextType};

/// The width of a line in columns, where there is a choice.
const WIDTH: usize = 100;

/// Writes the associated constant of a mandatory constant field.
pub(super) fn constant(program: &Program, member: &Member, out: &mut String) {
    let name = member.name.to_uppercase();
    let (ty, value) = match program.op(member.id) {
        Op::Int(op) => {
            let bits = op.initial.unwrap_or(0);
            let value = match op.ty.is_signed() {
                true => (bits as i64).to_string(),
                false => bits.to_string(),
            };
            (int(op.ty).to_owned(), value)
        }
        Op::Decimal(op) => {
            let value = op.initial.unwrap_or_default();
            let (mantissa, exponent) = (value.mantissa, value.exponent);
            let value =
                format!("::fanfare_fast::Decimal {{ mantissa: {mantissa}, exponent: {exponent} }}");
            ("::fanfare_fast::Decimal".to_owned(), value)
        }
        Op::Text(op) => {
            let bytes = op.initial.map_or(&[][..], |text| program.text(text));
            (
                "&'static [u8]".to_owned(),
                format!("b\"{}\"", bytes.escape_ascii()),
            )
        }
        _ => return,
    };
    _ = writeln!(out, "    /// {}", member.doc);
    let line = format!("    pub const {name}: {ty} = {value};");
    if line.len() > WIDTH {
        _ = writeln!(out, "    pub const {name}: {ty} =\n        {value};\n");
    } else {
        _ = writeln!(out, "{line}\n");
    }
}

/// Writes `impl Typed` of a template's struct.
pub(super) fn typed(model: &Model<'_>, item: &Struct, template: usize, out: &mut String) {
    _ = writeln!(
        out,
        "impl ::fanfare_fast::typed::Typed for {} {{",
        item.name
    );
    out.push_str("    type Feed = Messages;\n\n");
    out.push_str("    fn write<V: ::fanfare_fast::Visitor>(\n        &self,\n");
    out.push_str("        program: &::fanfare_fast::Program,\n        visitor: &mut V,\n    ) {\n");
    _ = writeln!(
        out,
        "        visitor.begin_message(&program.templates()[{template}]);"
    );
    out.push_str("        self.write_fields(program, visitor);\n    }\n");
    straight(model, template, out);
    rows::typed(model, item, template, out);
    out.push_str("}\n\n");
}

/// Writes `impl Typed` of `Decoded`, which is one of the structs.
pub(super) fn decoded(model: &Model<'_>, out: &mut String) {
    let arms = |call: &str, out: &mut String| {
        out.push_str("        match self {\n");
        for index in &model.templates {
            let name = &model.structs[*index].name;
            _ = writeln!(out, "            Self::{name}(message) => message.{call},");
        }
        out.push_str("        }\n    }\n");
    };
    out.push_str("impl ::fanfare_fast::typed::Typed for Decoded<'_> {\n");
    out.push_str("    type Feed = Messages;\n\n");
    out.push_str("    fn write<V: ::fanfare_fast::Visitor>(\n        &self,\n");
    out.push_str("        program: &::fanfare_fast::Program,\n        visitor: &mut V,\n    ) {\n");
    arms("write(program, visitor)", out);
    template_head(out);
    arms("template()", out);
    straight_head(out);
    arms("straight(target, values, map)", out);
    if rows::any_filled(model) {
        rows::layout(model, out);
        out.push_str("    #[inline]\n");
        out.push_str(
            "    fn fill(&self, rows: &mut ::fanfare_fast::typed::RowsMut<'_>) -> bool {\n",
        );
        arms("fill(rows)", out);
    }
    out.push_str("}\n\n");
}

/// Writes the part of `impl Typed` of a template that encodes.
fn straight(model: &Model<'_>, template: usize, out: &mut String) {
    template_head(out);
    _ = writeln!(out, "        {template}\n    }}");
    straight_head(out);
    match is_word(model.program.templates()[template].body().bits) {
        true => {
            out.push_str("        let values = values.first_chunk_mut::<SLOTS>()?;\n");
            out.push_str("        ::fanfare_fast::typed::Encoded::encode(");
            out.push_str("self, target, values, map)\n    }\n");
        }
        false => {
            out.push_str("        // It has more presence bits than a word.\n");
            out.push_str("        _ = (target, values, map);\n        None\n    }\n");
        }
    }
}

/// Writes `CODE` of `impl Typed`, and the head of `template`.
fn template_head(out: &mut String) {
    out.push_str("\n    const CODE: u64 = CODE;\n\n");
    out.push_str("    #[inline]\n    fn template(&self) -> u32 {\n");
}

/// Writes the head of `straight` of `impl Typed`.
fn straight_head(out: &mut String) {
    out.push_str("\n    #[inline]\n    fn straight(\n        &self,\n");
    out.push_str("        target: &mut ::fanfare_fast::typed::Target<'_>,\n");
    out.push_str("        values: &mut [::fanfare_fast::typed::PreviousValue],\n");
    out.push_str("        map: u64,\n    ) -> Option<u64> {\n");
}

/// Writes the method of a struct that calls a visitor with each field.
pub(super) fn fields(model: &Model<'_>, item: &Struct, out: &mut String) {
    let none = item.members.is_empty();
    let (program, visitor) = if none {
        ("_", "_")
    } else {
        ("program", "visitor")
    };
    out.push_str("    fn write_fields<V: ::fanfare_fast::Visitor>(\n        &self,\n");
    _ = writeln!(out, "        {program}: &::fanfare_fast::Program,");
    _ = writeln!(out, "        {visitor}: &mut V,\n    ) {{");
    if !none {
        out.push_str("        #[allow(unused_imports)]\n");
        out.push_str("        use ::fanfare_fast::typed;\n");
        out.push_str("        let fields = program.fields();\n");
    }
    for member in &item.members {
        field(model, member, out);
    }
    out.push_str("    }\n");
}

/// Writes the statement that calls the visitor with a field.
pub(super) fn field(model: &Model<'_>, member: &Member, out: &mut String) {
    let place = format!("&fields[{}]", member.id.index());
    let value = format!("self.{}", member.name);
    let line = match (member.shape, member.optional) {
        (Shape::Constant, _) => {
            let value = format!("Self::{}", member.name.to_uppercase());
            scalar(model.program.field(member.id).kind(), &place, &value)
        }
        (Shape::Int(ty), true) => {
            let method = if ty.is_signed() { "signed" } else { "unsigned" };
            format!("typed::{method}(visitor, {place}, {value})")
        }
        (Shape::Decimal, true) => format!("typed::decimal(visitor, {place}, {value})"),
        (Shape::Text(_), true) => format!("typed::text(visitor, {place}, &{value})"),
        (Shape::Int(ty), false) => scalar(FieldKind::Int(ty), &place, &value),
        (Shape::Decimal, false) => scalar(FieldKind::Decimal, &place, &value),
        (Shape::Text(ty), false) => scalar(FieldKind::Text(ty), &place, &format!("&{value}")),
        (Shape::Dynamic, _) => format!("{value}.write(program, {place}, visitor)"),
        (Shape::Group(index) | Shape::Sequence(index), optional) => {
            let name = &model.structs[index].name;
            let function = match member.shape {
                Shape::Group(_) => "group",
                _ => "sequence",
            };
            let value = match optional {
                true => format!("{value}.get()"),
                false => format!("Some(&{value})"),
            };
            format!(
                "typed::{function}(\n            visitor,\n            {place},\n            \
                 {value},\n            |inner: &{name}, visitor| \
                 inner.write_fields(program, visitor),\n        )"
            )
        }
    };
    _ = writeln!(out, "        {line};");
}

fn scalar(kind: FieldKind, place: &str, value: &str) -> String {
    match kind {
        FieldKind::Int(IntType::UInt64) => format!("visitor.unsigned({place}, {value})"),
        FieldKind::Int(IntType::Int64) => format!("visitor.signed({place}, {value})"),
        FieldKind::Int(ty) if ty.is_signed() => {
            format!("visitor.signed({place}, i64::from({value}))")
        }
        FieldKind::Int(_) => format!("visitor.unsigned({place}, u64::from({value}))"),
        FieldKind::Decimal => format!("visitor.decimal({place}, {value})"),
        FieldKind::Text(TextType::Unicode) => format!("visitor.unicode({place}, {value})"),
        FieldKind::Text(TextType::Bytes) => format!("visitor.bytes({place}, {value})"),
        _ => format!("visitor.ascii({place}, {value})"),
    }
}
