//! From the rows of a record to the members: each in its lane, known when the code is generated.

use std::fmt::Write as _;

use super::int;
use super::model::{Member, Model, Shape, Struct};
use super::names::snake;
use crate::program::{Place, Program, Reading};
use crate::value::TextType;

/// Whether messages of a template are read from rows: its struct, by its index in the model.
pub(super) fn is_read(model: &Model<'_>, item: &Struct) -> bool {
    item.members.iter().all(|member| match member.shape {
        Shape::Sequence(inner) => {
            let is_length = |place: Place| place.reading == Reading::Length;
            let inner = &model.structs[inner].members;
            let mut values = inner.iter();
            model.program.place(member.id).is_some_and(is_length)
                && values.all(|m| value(model.program, m).is_some())
        }
        _ => value(model.program, member).is_some(),
    })
}

/// The structs that are read from rows.
fn all<'m>(model: &'m Model<'_>) -> impl Iterator<Item = (usize, &'m Struct)> {
    let templates = model.templates.iter().map(|index| &model.structs[*index]);
    templates
        .enumerate()
        .filter(|(template, item)| model.program.has_rows(*template as u32) && is_read(model, item))
}

/// The methods that read rows.
pub(super) fn write(model: &Model<'_>, out: &mut String) {
    for (_, item) in all(model) {
        for member in &item.members {
            if let Shape::Sequence(inner) = member.shape {
                structure(model, &model.structs[inner], out);
            }
        }
        structure(model, item, out);
    }
}

/// The part of `impl Feed` that reads rows.
pub(super) fn feed(model: &Model<'_>, out: &mut String) {
    if all(model).next().is_none() {
        return;
    }
    _ = writeln!(
        out,
        "\n    const LAYOUT: u64 = {:#x};\n",
        model.program.layout()
    );
    out.push_str("    #[inline]\n");
    out.push_str("    fn read(&mut self, rows: &::fanfare_fast::Rows<'_>) -> bool {\n");
    out.push_str("        self.template = rows.template_index();\n");
    out.push_str("        match self.template {\n");
    for (template, item) in all(model) {
        let member = snake(&item.name);
        let is_sequence = |m: &&Member| matches!(m.shape, Shape::Sequence(_));
        let sequence = item.members.iter().find(is_sequence);
        let head = format!("self.{member}.read(rows.head())");
        let Some(sequence) = sequence else {
            _ = writeln!(out, "            {template} => {head},");
            continue;
        };
        let place = format!("self.{member}.{}", sequence.name);
        let entries = match sequence.optional {
            true => format!("{place}.insert()"),
            false => format!("&mut {place}"),
        };
        _ = writeln!(
            out,
            "            {template} => {{\n                {head};\n                \
             {place}.clear();\n                if let Some(rows) = rows.entries() {{\n\
             \x20                   let entries = {entries};\n                    \
             entries.clear();\n                    for row in rows {{\n                        \
             entries.add().read(row);\n                    }}\n                }}\n            }}"
        );
    }
    out.push_str("            _ => return false,\n        }\n        true\n    }\n");
}

/// The method of a struct.
fn structure(model: &Model<'_>, item: &Struct, out: &mut String) {
    let values = item.members.iter().filter_map(|member| {
        let value = value(model.program, member)?;
        (!value.is_empty()).then_some((&member.name, value))
    });
    let values: Vec<_> = values.collect();
    let row = if values.is_empty() { "_" } else { "row" };
    _ = writeln!(
        out,
        "#[allow(clippy::all, clippy::pedantic)]\nimpl {} {{\n    #[inline(always)]\n    \
         fn read(&mut self, {row}: ::fanfare_fast::RowRef<'_>) {{",
        item.name
    );
    for (name, value) in values {
        _ = writeln!(out, "        self.{name}{value};");
    }
    out.push_str("    }\n}\n\n");
}

/// What is done with a member: empty for nothing, `None` if it is not in a row.
fn value(program: &Program, member: &Member) -> Option<String> {
    if member.shape == Shape::Constant {
        return Some(String::new());
    }
    let Place { lane, reading, .. } = program.place(member.id)?;
    let value = match (member.shape, reading) {
        (Shape::Sequence(_), Reading::Length) => return Some(String::new()),
        (Shape::Int(ty), Reading::Unsigned | Reading::Signed) => {
            format!("row.value({lane}) as {}", int(ty))
        }
        (Shape::Decimal, Reading::Decimal) => format!("row.decimal({lane})"),
        (Shape::Decimal, Reading::Mantissa(exponent)) => {
            format!("row.decimal_of({lane}, {exponent})")
        }
        (Shape::Text(TextType::Ascii), Reading::Ascii) if member.optional => {
            return Some(format!(".read(row.is_present({lane}), row.value({lane}))"));
        }
        (Shape::Text(TextType::Ascii), Reading::Ascii) => {
            return Some(format!(".set_packed(row.value({lane}))"));
        }
        _ => return None,
    };
    Some(match member.optional {
        false => format!(" = {value}"),
        true => format!(" = row.is_present({lane}).then(|| {value})"),
    })
}
