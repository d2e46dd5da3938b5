//! Code between the rows of a record and the members of structs. Each member has its lane, which is
//! known when the code is generated.

use std::fmt::Write as _;

use super::int;
use super::model::{Member, Model, Shape, Struct};
use crate::program::{Place, Program, Reading};
use crate::value::{EXPONENTS, IntType, TextType};

/// Returns whether messages of a template, which has this struct, are read from rows.
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

/// Returns the structs that are read from rows.
fn all<'m>(model: &'m Model<'_>) -> impl Iterator<Item = (usize, &'m Struct)> {
    let templates = model.templates.iter().map(|index| &model.structs[*index]);
    templates
        .enumerate()
        .filter(|(template, item)| model.program.has_rows(*template as u32) && is_read(model, item))
}

/// Writes the methods that read and fill rows.
pub(super) fn write(model: &Model<'_>, out: &mut String) {
    for (template, item) in all(model) {
        let fills = is_filled(model, item, template);
        for member in &item.members {
            if let Shape::Sequence(inner) = member.shape {
                structure(model, &model.structs[inner], fills, out);
            }
        }
        structure(model, item, fills, out);
    }
}

/// Writes the part of `impl Feed` that reads rows.
pub(super) fn feed(model: &Model<'_>, out: &mut String) {
    if all(model).next().is_none() {
        return;
    }
    layout(model, out);
    out.push_str("    #[inline(always)]\n    fn read(");
    out.push_str("&mut self, template: u32, row: ::fanfare_fast::RowRef<'_>) -> bool {\n");
    out.push_str("        self.template = template;\n        match template {\n");
    for (template, item) in all(model) {
        let member = &model.members[template];
        let head = format!("self.{member}.read(row)");
        let Some(sequence) = sequence(item) else {
            _ = writeln!(out, "            {template} => {head},");
            continue;
        };
        let place = format!("self.{member}.{}", sequence.name);
        _ = writeln!(out, "            {template} => {{\n                {head};");
        if sequence.optional {
            _ = writeln!(out, "                {place}.insert().clear();");
        }
        _ = writeln!(out, "                {place}.clear();\n            }}");
    }
    out.push_str("            _ => return false,\n        }\n        true\n    }\n");
    if all(model).any(|(_, item)| sequence(item).is_some()) {
        entries(model, out);
    }
}

fn sequence(item: &Struct) -> Option<&Member> {
    let mut members = item.members.iter();
    members.find(|member| matches!(member.shape, Shape::Sequence(_)))
}

/// Writes the method that reads the rows of entries.
fn entries(model: &Model<'_>, out: &mut String) {
    out.push_str("\n    #[inline(always)]\n    fn read_entries<'r>(\n        &mut self,\n");
    out.push_str("        rows: impl ExactSizeIterator<Item = ::fanfare_fast::RowRef<'r>>,\n");
    out.push_str("    ) {\n        match self.template {\n");
    for (template, item) in all(model) {
        let Some(sequence) = sequence(item) else {
            continue;
        };
        let insert = if sequence.optional { ".insert()" } else { "" };
        let place = format!("self.{}.{}{insert}", model.members[template], sequence.name);
        _ = writeln!(
            out,
            "            {template} => {{\n                \
             let entries = {place}.add_many(rows.len());\n                \
             for (entry, row) in entries.iter_mut().zip(rows) {{\n                    \
             entry.read(row);\n                }}\n            }}"
        );
    }
    out.push_str("            _ => {}\n        }\n    }\n");
}

/// Writes the methods of a struct.
fn structure(model: &Model<'_>, item: &Struct, fills: bool, out: &mut String) {
    _ = writeln!(
        out,
        "#[allow(clippy::all, clippy::pedantic)]\nimpl {} {{",
        item.name
    );
    read(model, item, out);
    if fills && !is_empty(model, item) {
        out.push_str("\n    #[inline(always)]\n");
        out.push_str("    fn fill_row(&self, row: &mut ::fanfare_fast::typed::RowMut<'_>) {\n");
        let calls = item
            .members
            .iter()
            .filter_map(|m| filling(model.program, m));
        for call in calls.filter(|call| !call.is_empty()) {
            _ = writeln!(out, "        {call};");
        }
        out.push_str("    }\n");
    }
    out.push_str("}\n\n");
}

/// Writes the method that reads a row, and the one that reads its strings of more than one
/// character.
fn read(model: &Model<'_>, item: &Struct, out: &mut String) {
    const ROW: &str = "row: ::fanfare_fast::RowRef<'_>) {";
    let values = item.members.iter().filter_map(|member| {
        let value = value(model.program, member)?;
        (!value.is_empty()).then_some((&member.name, value))
    });
    let values: Vec<_> = values.collect();
    let texts: Vec<_> = item
        .members
        .iter()
        .filter_map(|member| text(model, member))
        .collect();
    let unused = if values.is_empty() && texts.is_empty() {
        "_"
    } else {
        ""
    };
    _ = writeln!(
        out,
        "    #[inline(always)]\n    fn read(&mut self, {unused}{ROW}"
    );
    for (name, value) in values {
        _ = writeln!(out, "        self.{name}{value};");
    }
    if texts.is_empty() {
        out.push_str("    }\n");
        return;
    }
    let lanes: Vec<_> = texts.iter().map(|(lane, _)| lane.to_string()).collect();
    _ = writeln!(
        out,
        "        if !row.are_short([{}]) {{\n            return self.read_texts(row);\n        }}",
        lanes.join(", ")
    );
    for (_, call) in &texts {
        _ = writeln!(out, "        {};", call.replace('#', "short"));
    }
    out.push_str("    }\n\n    #[inline(never)]\n");
    _ = writeln!(out, "    fn read_texts(&mut self, {ROW}");
    for (_, call) in &texts {
        _ = writeln!(out, "        {};", call.replace('#', "packed"));
    }
    out.push_str("    }\n");
}

/// Returns the lane of a string, and the call that reads it, with `#` in place of the way to read.
fn text(model: &Model<'_>, member: &Member) -> Option<(u8, String)> {
    let place = model.program.place(member.id)?;
    if member.shape != Shape::Text(TextType::Ascii) || place.reading != Reading::Ascii {
        return None;
    }
    let (name, lane) = (&member.name, place.lane);
    let is_present = match member.optional {
        true => format!("row.is_present({lane}), "),
        false => String::new(),
    };
    Some((
        lane,
        format!("self.{name}.set_#({is_present}row.value({lane}))"),
    ))
}

/// Writes the part of `impl Typed` of a template that fills rows, if its struct can.
pub(super) fn typed(model: &Model<'_>, item: &Struct, template: usize, out: &mut String) {
    if !is_filled(model, item, template) {
        return;
    }
    layout(model, out);
    out.push_str("    #[inline]\n");
    let row = if is_empty(model, item) { "_" } else { "row" };
    out.push_str("    fn fill(&self, rows: &mut ::fanfare_fast::typed::RowsMut<'_>) -> bool {\n");
    let head = match row {
        "_" => "|_| {}",
        _ => "|row| self.fill_row(row)",
    };
    _ = writeln!(out, "        rows.head({template}, {head});");
    for member in &item.members {
        let (Shape::Sequence(inner), Some(place)) = (member.shape, model.program.place(member.id))
        else {
            continue;
        };
        let entries = match member.optional {
            true => format!("self.{}.get()", member.name),
            false => format!("Some(&self.{})", member.name),
        };
        let inner = &model.structs[inner];
        let fill = match is_empty(model, inner) {
            true => format!("|_: &{}, _| {{}}", inner.name),
            false => "|entry, row| entry.fill_row(row)".to_owned(),
        };
        _ = writeln!(
            out,
            "        rows.entries({}, {entries}, {fill});",
            place.lane
        );
    }
    out.push_str("        true\n    }\n");
}

/// Returns whether any struct fills rows.
pub(super) fn any_filled(model: &Model<'_>) -> bool {
    all(model).any(|(template, item)| is_filled(model, item, template))
}

/// Writes `LAYOUT`, which both traits have.
pub(super) fn layout(model: &Model<'_>, out: &mut String) {
    let layout = model.layout;
    _ = writeln!(out, "\n    const LAYOUT: u64 = {layout:#x};\n");
}

/// Returns whether messages of a template are encoded by way of rows that its struct fills.
fn is_filled(model: &Model<'_>, item: &Struct, template: usize) -> bool {
    let mut inner = item.members.iter().filter_map(|member| match member.shape {
        Shape::Sequence(inner) => Some(&model.structs[inner]),
        _ => None,
    });
    model.program.has_rows(template as u32)
        && is_read(model, item)
        && is_filled_row(model, item)
        && inner.all(|inner| is_filled_row(model, inner))
}

/// Returns whether an encoder takes the row that a struct fills: its values are within the limits,
/// and all mandatory values are present.
fn is_filled_row(model: &Model<'_>, item: &Struct) -> bool {
    let program = model.program;
    let plan = item.members.iter().find_map(|member| {
        let place = program.place(member.id)?;
        program.plan(&place)
    });
    let present = item
        .members
        .iter()
        .map(|member| match program.place(member.id) {
            Some(Place { lane, reading, .. }) if lane != Place::NO_LANE && !member.optional => {
                let lanes = 1 + u64::from(reading == Reading::Decimal) * 2;
                lanes << lane
            }
            _ => 0,
        });
    let present = present.fold(0, |all, lanes| all | lanes);
    let mut members = item.members.iter();
    plan.is_some_and(|plan| plan.may_hold(present))
        && members.all(|member| filling(program, member).is_some())
}

/// Returns whether a row of a struct has no values.
fn is_empty(model: &Model<'_>, item: &Struct) -> bool {
    let mut members = item.members.iter();
    members.all(|member| filling(model.program, member).is_none_or(|call| call.is_empty()))
}

/// Returns the call that puts a member into its row. The call is empty if none is needed. Returns
/// `None` if the call does not notice all values beyond the limits of the lane.
fn filling(program: &Program, member: &Member) -> Option<String> {
    if member.shape == Shape::Constant {
        return Some(String::new());
    }
    let place = program.place(member.id)?;
    let plan = program.plan(&place)?;
    let Place { lane, reading, .. } = place;
    let signed = (-1 << 30, (1 << 30) - 1);
    let exponents = (i64::from(*EXPONENTS.start()), i64::from(*EXPONENTS.end()));
    let (method, first, limits) = match (member.shape, reading) {
        (Shape::Sequence(_), Reading::Length) => return Some(String::new()),
        (Shape::Int(ty), Reading::Unsigned | Reading::Signed) => {
            let method = if ty.is_signed() { "signed" } else { "unsigned" };
            (method.to_owned(), format!("{lane}"), int_limits(ty))
        }
        (Shape::Decimal, Reading::Decimal)
            if plan.limits(usize::from(lane) + 1) == Some(signed) =>
        {
            ("decimal".to_owned(), format!("{lane}"), exponents)
        }
        (Shape::Decimal, Reading::Mantissa(exponent)) if !member.optional => (
            "decimal_of".to_owned(),
            format!("{lane}, {exponent}"),
            signed,
        ),
        (Shape::Text(TextType::Ascii), Reading::Ascii) => {
            ("text".to_owned(), format!("{lane}"), (0, (1 << 28) - 1))
        }
        _ => return None,
    };
    if plan.limits(lane.into()) != Some(limits) {
        return None;
    }
    let maybe = if member.optional { "maybe_" } else { "" };
    let place = match member.shape {
        Shape::Text(_) => format!("&self.{}", member.name),
        _ => format!("self.{}", member.name),
    };
    Some(format!("row.{maybe}{method}({first}, {place})"))
}

/// Returns the range of an integer's type that a lane holds.
fn int_limits(ty: IntType) -> (i64, i64) {
    let (least, greatest) = match ty.is_signed() {
        true => (-1 << 30, (1 << 30) - 1),
        false => (0, (1 << 31) - 1),
    };
    let (min, max) = (ty.min().max(least), ty.max().min(greatest));
    (min as i64, max as i64)
}

/// Returns the statement that reads a member from its row. The statement is empty if none is
/// needed. Returns `None` if the member is not in a row.
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
        // By itself.
        (Shape::Text(TextType::Ascii), Reading::Ascii) => return Some(String::new()),
        _ => return None,
    };
    Some(match member.optional {
        false => format!(" = {value}"),
        true => format!(" = row.is_present({lane}).then(|| {value})"),
    })
}
