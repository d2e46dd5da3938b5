//! `impl Members`: each struct has a setter for each kind of value, which passes on the fields of a
//! struct inside it.

use std::fmt::Write as _;

use super::int;
use super::model::{Member, Model, Shape, Struct};

/// A kind of call: the method, its value, and the statement for a member.
struct Call {
    method: &'static str,
    /// The parameter after the field, with its type; empty if there is none.
    parameter: &'static str,
    argument: &'static str,
    /// The statement for a member of this kind, which follows the member's place.
    statement: fn(&Member) -> Option<String>,
}

const CALLS: [Call; 9] = [
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
        method: "text",
        parameter: ", value: &[u8]",
        argument: ", value",
        statement: |m| match m.shape {
            Shape::Text(_) if m.optional => Some(".insert().set(value)".to_owned()),
            Shape::Text(_) => Some(".set(value)".to_owned()),
            _ => None,
        },
    },
    Call {
        method: "absent",
        parameter: "",
        argument: "",
        statement: |m| m.optional.then(|| cleared(m)).flatten(),
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
        parameter: "",
        argument: "",
        statement: |m| sequence(m, "clear()"),
    },
    Call {
        method: "begin_entry",
        parameter: "",
        argument: "",
        statement: |m| sequence(m, "add();"),
    },
    Call {
        method: "swap_template",
        parameter: ", inner: &mut ::fanfare_fast::typed::Dynamic",
        argument: ", inner",
        statement: |m| match m.shape {
            Shape::Dynamic => Some(".swap(inner)".to_owned()),
            _ => None,
        },
    },
];

/// Returns the statement that makes an optional member absent, which follows the member's place.
pub(super) fn cleared(member: &Member) -> Option<String> {
    match member.shape {
        Shape::Int(_) | Shape::Decimal => Some(" = None".to_owned()),
        Shape::Constant | Shape::Dynamic => None,
        _ => Some(".clear()".to_owned()),
    }
}

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

fn sequence(member: &Member, call: &str) -> Option<String> {
    let Shape::Sequence(_) = member.shape else {
        return None;
    };
    let insert = if member.optional { ".insert()" } else { "" };
    Some(format!("{insert}.{call}"))
}

/// Returns whether a struct, or one inside it, has a member for the call.
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

/// Writes `impl Members` of a struct.
pub(super) fn structure(model: &Model<'_>, item: &Struct, out: &mut String) {
    let mut calls = CALLS.iter().filter(|call| takes(model, item, call));
    let Some(first) = calls.next() else {
        _ = writeln!(
            out,
            "impl ::fanfare_fast::typed::Members for {} {{}}\n",
            item.name
        );
        return;
    };
    out.push_str("#[allow(clippy::all, clippy::pedantic)]\n");
    _ = writeln!(
        out,
        "impl ::fanfare_fast::typed::Members for {} {{",
        item.name
    );
    setter(model, item, first, out);
    for call in calls {
        out.push('\n');
        setter(model, item, call, out);
    }
    out.push_str("}\n\n");
}

fn setter(model: &Model<'_>, item: &Struct, call: &Call, out: &mut String) {
    head(call, out);
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
    out.push_str("            _ => {}\n        }\n    }\n");
}

fn head(call: &Call, out: &mut String) {
    let Call {
        method, parameter, ..
    } = call;
    out.push_str("    #[inline]\n");
    _ = writeln!(
        out,
        "    fn {method}(&mut self, field: usize{parameter}) {{"
    );
    out.push_str("        match field {\n");
}

/// Writes the arm for the fields of a struct inside another.
fn pass_on(member: &Member, call: &Call, out: &mut String) {
    let (first, last, name) = (member.first + 1, member.last, &member.name);
    let Call {
        method, argument, ..
    } = call;
    let insert = if member.optional { ".insert()" } else { "" };
    let range = range(first, last);
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

fn range(first: usize, last: usize) -> String {
    match first == last {
        true => first.to_string(),
        false => format!("{first}..={last}"),
    }
}

/// Writes `impl Members for Messages`.
pub(super) fn messages(model: &Model<'_>, out: &mut String) {
    out.push_str("#[allow(clippy::all, clippy::pedantic)]\n");
    out.push_str("impl ::fanfare_fast::typed::Members for Messages {\n    #[inline]\n");
    out.push_str("    fn begin_message(&mut self, template: u32) {\n");
    out.push_str("        self.template = template;\n    }\n");
    for call in &CALLS {
        let templates = model.templates.iter().map(|index| &model.structs[*index]);
        let templates = templates.zip(&model.members);
        let mut templates = templates
            .filter(|(item, _)| takes(model, item, call))
            .peekable();
        if templates.peek().is_none() {
            continue;
        }
        out.push('\n');
        head(call, out);
        for (item, member) in templates {
            let first = item.members.iter().map(|m| m.first).min().unwrap_or(0);
            let last = item.members.iter().map(|m| m.last).max().unwrap_or(0);
            let range = range(first, last);
            let (method, argument) = (call.method, call.argument);
            _ = writeln!(
                out,
                "            {range} => self.{member}.{method}(field{argument}),"
            );
        }
        out.push_str("            _ => {}\n        }\n    }\n");
    }
    out.push_str("}\n\n");
}
