//! From the decoder's calls to the members: each struct has a setter for each kind of value,
//! which passes on what belongs to a struct inside it.

use std::fmt::Write as _;

use super::int;
use super::model::{Member, Model, Shape, Struct};
use super::names::snake;
use crate::value::TextType;

/// A kind of call: the visitor's method, its value, and what a member does with it.
struct Call {
    method: &'static str,
    /// The parameter behind the field, with its type; empty if there is none.
    parameter: &'static str,
    argument: &'static str,
    /// The statement for a member that the call is for, behind its place.
    statement: fn(&Member) -> Option<String>,
}

const CALLS: [Call; 11] = [
    Call {
        method: "unsigned",
        parameter: ", value: u64",
        argument: ", value",
        statement: |m| match m.shape {
            Shape::Int(ty) if !ty.is_signed() => Some(assign(m, &cast("u64", int(ty)))),
            _ => None,
        },
    },
    Call {
        method: "signed",
        parameter: ", value: i64",
        argument: ", value",
        statement: |m| match m.shape {
            Shape::Int(ty) if ty.is_signed() => Some(assign(m, &cast("i64", int(ty)))),
            _ => None,
        },
    },
    Call {
        method: "decimal",
        parameter: ", value: ::fanfare_fast::Decimal",
        argument: ", value",
        statement: |m| (m.shape == Shape::Decimal).then(|| assign(m, "value")),
    },
    Call {
        method: "ascii",
        parameter: ", value: &[u8]",
        argument: ", value",
        statement: |m| text(m, TextType::Ascii),
    },
    Call {
        method: "unicode",
        parameter: ", value: &[u8]",
        argument: ", value",
        statement: |m| text(m, TextType::Unicode),
    },
    Call {
        method: "bytes",
        parameter: ", value: &[u8]",
        argument: ", value",
        statement: |m| text(m, TextType::Bytes),
    },
    Call {
        method: "absent",
        parameter: "",
        argument: "",
        statement: |m| match m.shape {
            _ if !m.optional => None,
            Shape::Int(_) | Shape::Decimal => Some(" = None".to_owned()),
            Shape::Constant | Shape::Dynamic => None,
            _ => Some(".clear()".to_owned()),
        },
    },
    Call {
        method: "begin_group",
        parameter: "",
        argument: "",
        statement: |m| match m.shape {
            Shape::Group(_) if m.optional => Some(".insert();".to_owned()),
            _ => None,
        },
    },
    Call {
        method: "begin_sequence",
        parameter: ", _length: u32",
        argument: ", length",
        statement: |m| sequence(m, "clear()"),
    },
    Call {
        method: "begin_entry",
        parameter: ", _index: u32",
        argument: ", index",
        statement: |m| sequence(m, "add();"),
    },
    Call {
        method: "end_template",
        parameter: ", inner: &mut ::fanfare_fast::typed::Dynamic",
        argument: ", inner",
        statement: |m| match m.shape {
            Shape::Dynamic => Some(" = ::std::mem::take(inner)".to_owned()),
            _ => None,
        },
    },
];

fn assign(member: &Member, value: &str) -> String {
    match member.optional {
        true => format!(" = Some({value})"),
        false => format!(" = {value}"),
    }
}

fn cast(from: &str, to: &str) -> String {
    if from == to {
        return "value".to_owned();
    }
    format!("value as {to}")
}

fn text(member: &Member, ty: TextType) -> Option<String> {
    if member.shape != Shape::Text(ty) {
        return None;
    }
    let insert = if member.optional { ".insert()" } else { "" };
    Some(format!("{insert}.set(value)"))
}

fn sequence(member: &Member, call: &str) -> Option<String> {
    let Shape::Sequence(_) = member.shape else {
        return None;
    };
    let insert = if member.optional { ".insert()" } else { "" };
    Some(format!("{insert}.{call}"))
}

pub(super) fn has_dynamic(model: &Model<'_>) -> bool {
    let mut members = model.structs.iter().flat_map(|s| &s.members);
    members.any(|m| m.shape == Shape::Dynamic)
}

/// Whether a struct, or one inside it, has a member that the call is for.
fn takes(model: &Model<'_>, item: &Struct, call: &Call) -> bool {
    item.members.iter().any(|m| {
        (call.statement)(m).is_some() || inside(model, m).is_some_and(|s| takes(model, s, call))
    })
}

fn inside<'m>(model: &'m Model<'_>, member: &Member) -> Option<&'m Struct> {
    match member.shape {
        Shape::Group(index) | Shape::Sequence(index) => model.structs.get(index),
        _ => None,
    }
}

/// The setters of a struct.
pub(super) fn setters(model: &Model<'_>, item: &Struct, out: &mut String) {
    for call in CALLS.iter().filter(|call| takes(model, item, call)) {
        let Call {
            method, parameter, ..
        } = call;
        out.push_str("    #[inline(always)]\n");
        _ = writeln!(
            out,
            "    fn {method}(&mut self, field: usize{parameter}) {{"
        );
        out.push_str("        match field {\n");
        for member in &item.members {
            if let Some(statement) = (call.statement)(member) {
                let (first, name) = (member.first, &member.name);
                let statement = match statement.strip_suffix(';') {
                    Some(call) => format!("{{\n                self.{name}{call};\n            }}"),
                    None => format!("self.{name}{statement},"),
                };
                _ = writeln!(out, "            {first} => {statement}");
            }
            if inside(model, member).is_some_and(|s| takes(model, s, call)) {
                pass_on(member, call, out);
            }
        }
        out.push_str("            _ => {}\n        }\n    }\n\n");
    }
}

/// The arm for the fields of a struct inside.
fn pass_on(member: &Member, call: &Call, out: &mut String) {
    let (first, last, name) = (member.first + 1, member.last, &member.name);
    let argument = match call.argument {
        ", length" => ", _length",
        ", index" => ", _index",
        argument => argument,
    };
    let method = call.method;
    let insert = if member.optional { ".insert()" } else { "" };
    let range = if first == last {
        first.to_string()
    } else {
        format!("{first}..={last}")
    };
    if let Shape::Group(_) = member.shape {
        let place = format!("self.{name}{insert}");
        _ = writeln!(
            out,
            "            {range} => {place}.{method}(field{argument}),"
        );
        return;
    }
    _ = writeln!(out, "            {range} => {{");
    _ = writeln!(
        out,
        "                if let Some(entry) = self.{name}{insert}.last_mut() {{"
    );
    _ = writeln!(out, "                    entry.{method}(field{argument});");
    out.push_str("                }\n            }\n");
}

/// `impl Visitor for Messages`.
pub(super) fn write(model: &Model<'_>, out: &mut String) {
    out.push_str("#[allow(clippy::all, clippy::pedantic)]\n");
    out.push_str("impl ::fanfare_fast::Visitor for Messages {\n    #[inline]\n");
    out.push_str(
        "    fn begin_message(&mut self, template: &::fanfare_fast::program::TemplateProgram) {\n",
    );
    out.push_str("        self.template = template.index();\n    }\n");
    let dynamic = has_dynamic(model);
    for call in CALLS.iter().filter(|call| call.method != "end_template") {
        let used = model
            .templates
            .iter()
            .any(|i| takes(model, &model.structs[*i], call));
        if used || dynamic {
            method(model, call, dynamic, out);
        }
    }
    if dynamic {
        write_dynamic(model, out);
    }
    out.push_str("}\n");
}

fn method(model: &Model<'_>, call: &Call, dynamic: bool, out: &mut String) {
    let name = call.method;
    let parameter = call.parameter.replace(", _", ", ");
    out.push_str("\n    #[inline]\n");
    _ = writeln!(
        out,
        "    fn {name}(&mut self, field: &::fanfare_fast::program::Field{parameter}) {{"
    );
    if dynamic {
        let argument = call.argument;
        out.push_str("        if self.depth > 0 {\n");
        _ = writeln!(
            out,
            "            return self.inner.0.{name}(field{argument});"
        );
        out.push_str("        }\n");
    }
    out.push_str("        let field = field.id().index();\n        match field {\n");
    arms(model, call, out);
    out.push_str("            _ => {}\n        }\n    }\n");
}

/// An arm for each template that takes the call.
fn arms(model: &Model<'_>, call: &Call, out: &mut String) {
    let templates = model.templates.iter().map(|index| &model.structs[*index]);
    for item in templates.filter(|item| takes(model, item, call)) {
        let first = item.members.iter().map(|m| m.first).min().unwrap_or(0);
        let last = item.members.iter().map(|m| m.last).max().unwrap_or(0);
        let range = if first == last {
            first.to_string()
        } else {
            format!("{first}..={last}")
        };
        let (member, method, argument) = (snake(&item.name), call.method, call.argument);
        _ = writeln!(
            out,
            "            {range} => self.{member}.{method}(field{argument}),"
        );
    }
}

/// What only template sets with dynamic references need.
fn write_dynamic(model: &Model<'_>, out: &mut String) {
    const FIELD: &str = "field: &::fanfare_fast::program::Field";
    for name in ["end_group", "end_entry", "end_sequence"] {
        _ = writeln!(out, "\n    fn {name}(&mut self, {FIELD}) {{");
        out.push_str("        if self.depth > 0 {\n");
        _ = writeln!(out, "            self.inner.0.{name}(field);");
        out.push_str("        }\n    }\n");
    }
    out.push_str("\n    fn begin_template(\n        &mut self,\n");
    _ = writeln!(out, "        {FIELD},");
    out.push_str("        template: &::fanfare_fast::program::TemplateProgram,\n    ) {\n");
    out.push_str("        self.depth += 1;\n        if self.depth == 1 {\n");
    out.push_str("            self.inner.0.begin_message(template);\n        } else {\n");
    out.push_str("            self.inner.0.begin_template(field, template);\n        }\n    }\n");
    _ = writeln!(out, "\n    fn end_template(&mut self, {FIELD}) {{");
    out.push_str("        self.depth -= 1;\n        if self.depth > 0 {\n");
    out.push_str("            return self.inner.0.end_template(field);\n        }\n");
    out.push_str("        let field = field.id().index();\n");
    out.push_str("        let inner = &mut self.inner;\n        match field {\n");
    if let Some(call) = CALLS.iter().find(|call| call.method == "end_template") {
        arms(model, call, out);
    }
    out.push_str("            _ => {}\n        }\n    }\n");
}
