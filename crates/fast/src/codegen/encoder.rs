//! Straight-line code that encodes: for each struct the fields in their order, each by one call
//! with the constants of its op.

use std::fmt::Write as _;

use super::calls::{Call, call, operator, reached, segments};
use super::model::{Member, Model, Shape, Struct};
use super::write;
use crate::encode::is_word;
use crate::program::{Body, IntOp, Op};

/// Writes `impl Encoded` of each struct.
pub(super) fn write(model: &Model<'_>, out: &mut String) {
    for (item, body) in segments(model) {
        if is_word(body.bits) {
            segment(model, item, body, out);
        }
    }
}

fn segment(model: &Model<'_>, item: &Struct, body: Body, out: &mut String) {
    out.push_str("#[allow(clippy::all, clippy::pedantic)]\n");
    _ = writeln!(
        out,
        "impl ::fanfare_fast::typed::Encoded<SLOTS> for {} {{",
        item.name
    );
    out.push_str("    #[inline(never)]\n    fn encode(\n        &self,\n");
    out.push_str("        target: &mut ::fanfare_fast::typed::Target<'_>,\n");
    out.push_str("        values: &mut [::fanfare_fast::typed::PreviousValue; SLOTS],\n");
    out.push_str("        map: u64,\n    ) -> Option<u64> {\n");
    out.push_str("        #[allow(unused_imports)]\n");
    out.push_str("        use ::fanfare_fast::typed::{self, Operator, Writer};\n");
    out.push_str("        #[allow(unused_mut)]\n");
    let ops = body.end - body.start;
    _ = writeln!(
        out,
        "        let mut w = Writer::new(target, values, map, {ops})?;"
    );
    let (members, unresolved) = reached(model.program, item, body);
    for member in members {
        field(model, member, out);
    }
    if let Some(number) = unresolved {
        // D8, always.
        _ = writeln!(out, "        w.field({number}, |_, _| {{}})?;");
    }
    out.push_str("        w.end()\n    }\n}\n\n");
}

/// Writes the statement that encodes a field.
fn field(model: &Model<'_>, member: &Member, out: &mut String) {
    let program = model.program;
    let (name, number, op) = (
        &member.name,
        program.op_number(member.id),
        program.op(member.id),
    );
    let by_op = |out: &mut String| {
        _ = writeln!(out, "        w.field({number}, |program, visitor| {{");
        out.push_str("            let fields = program.fields();\n    ");
        write::field(model, member, out);
        out.push_str("        })?;\n");
    };
    let call = match (op, call(program, member, op)) {
        (Op::Group { body, .. } | Op::Sequence { body, .. }, _) if !is_word(body.bits) => {
            return by_op(out);
        }
        (Op::Group { optional, body, .. }, _) => {
            let bits = body.bits;
            match optional {
                true => format!("maybe_group(self.{name}.get(), {number}, {bits})"),
                false => format!("group(&self.{name}, {number}, {bits})"),
            }
        }
        (Op::Sequence { length, body, .. }, _) => match sequence(member, length) {
            Some(call) => format!("{call}, {number}, {})", body.bits),
            None => return by_op(out),
        },
        (_, Call::Nothing | Call::Constant(_)) => return,
        (_, Call::Usual(method, constants)) => {
            format!("{method}({constants}&self.{name}, {number})")
        }
        (_, Call::Op) => match member.shape {
            Shape::Constant => return,
            Shape::Int(_) | Shape::Decimal | Shape::Text(_) => {
                format!("member(&self.{name}, {number})")
            }
            _ => return by_op(out),
        },
    };
    _ = writeln!(out, "        w.{call}?;");
}

fn sequence(member: &Member, length: &IntOp) -> Option<String> {
    let (operator, name) = (operator(length)?, &member.name);
    let (ty, entries) = match length.optional {
        true => ("Option<u32>", format!("self.{name}.get()")),
        false => ("u32", format!("Some(&self.{name})")),
    };
    Some(format!("entries::<{ty}, _>({operator}, {entries}"))
}
