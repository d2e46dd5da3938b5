//! Straight-line code that decodes: for each struct the fields in their order, each by one call
//! with the constants of its op, and the op itself for what is not usual.

use std::fmt::Write as _;

use super::calls::{Call, call, operator, reached, segments};
use super::members::cleared;
use super::model::{Member, Model, Struct};
use crate::program::{Body, IntOp, Op, Program, TemplateProgram};
use crate::template::OperatorKind;

/// The most fields that are checked together for being absent.
const LONGEST_RUN: usize = 8;

/// Writes the part of `impl Feed` that decodes.
pub(super) fn feed(model: &Model<'_>, out: &mut String) {
    let code = match is_straight(model.program) {
        true => "CODE",
        false => "0",
    };
    _ = writeln!(out, "\n    const CODE: u64 = {code};\n");
    out.push_str("    #[inline]\n    fn straight(\n        &mut self,\n        template: u32,\n");
    out.push_str("        stream: &mut ::fanfare_fast::typed::Stream<'_>,\n");
    out.push_str("        values: &mut [::fanfare_fast::typed::PreviousValue],\n");
    out.push_str("        at: usize,\n        map: u64,\n    ) -> Option<usize> {\n");
    out.push_str("        use ::fanfare_fast::typed::Segment;\n");
    out.push_str("        let values = values.first_chunk_mut::<SLOTS>()?;\n");
    out.push_str("        match template {\n");
    for (template, member) in model.members.iter().enumerate() {
        _ = writeln!(
            out,
            "            {template} => self.{member}.straight(stream, values, 0, at, map),"
        );
    }
    out.push_str("            _ => None,\n        }\n    }\n");
}

/// Returns whether the presence bits of each body have known places in a word. If a decimal is
/// absent, the bit of its mantissa is not taken, and the bits after it are moved down by one. No
/// bit must be lost by that, not even one too many, which is R8. A map has 56 bits at most, so
/// eight moves are safe.
fn is_straight(program: &Program) -> bool {
    let bodies = program.templates().iter().map(TemplateProgram::body);
    let inner = program.fields().iter().map(|field| program.op(field.id()));
    let inner = inner.filter_map(|op| match op {
        Op::Group { body, .. } | Op::Sequence { body, .. } => Some(*body),
        _ => None,
    });
    let moves = |op: &&Op| {
        let Op::SplitDecimal {
            exponent, mantissa, ..
        } = op
        else {
            return false;
        };
        exponent.optional && mantissa.operator.takes_bit(false)
    };
    let mut all = bodies.chain(inner);
    all.all(|body| program.ops(body).iter().filter(moves).count() <= 8)
}

/// Writes the constants of the module, and `impl Segment` of each struct.
pub(super) fn write(model: &Model<'_>, out: &mut String) {
    out.push_str("/// How many previous values there are.\n");
    _ = writeln!(out, "const SLOTS: usize = {};\n", model.program.columns());
    out.push_str("/// What the ops were when this code was generated.\n");
    _ = writeln!(out, "const CODE: u64 = {:#x};\n", model.program.code());
    for (item, body) in segments(model) {
        segment(model, item, body, out);
    }
}

fn segment(model: &Model<'_>, item: &Struct, body: Body, out: &mut String) {
    out.push_str("#[allow(clippy::all, clippy::pedantic)]\n");
    _ = writeln!(
        out,
        "impl ::fanfare_fast::typed::Segment<SLOTS> for {} {{",
        item.name
    );
    out.push_str("    #[inline(never)]\n    fn straight(\n        &mut self,\n");
    out.push_str("        stream: &mut ::fanfare_fast::typed::Stream<'_>,\n");
    out.push_str("        values: &mut [::fanfare_fast::typed::PreviousValue; SLOTS],\n");
    out.push_str("        map_at: usize,\n        at: usize,\n        map: u64,\n");
    out.push_str("    ) -> Option<usize> {\n");
    out.push_str("        #[allow(unused_imports)]\n");
    out.push_str("        use ::fanfare_fast::typed::{Operator, Reader};\n");
    _ = writeln!(
        out,
        "        #[allow(unused_mut)]\n        \
         let mut r = Reader::new(stream, values, (map_at, at, map), {})?;",
        body.end - body.start
    );
    let (mut members, unresolved) = reached(model.program, item, body);
    while let [member, behind @ ..] = members {
        let run = run(model.program, members);
        if run < 2 {
            field(model.program, member, 2, out);
            members = behind;
            continue;
        }
        let (all, behind) = members.split_at(run);
        absent(model.program, all, out);
        members = behind;
    }
    if let Some(number) = unresolved {
        // D8, always.
        _ = writeln!(out, "        r.by_op({number}, 0, self)?;");
    }
    let end = if body.bits == 0 {
        "end_without_map"
    } else {
        "end"
    };
    _ = writeln!(out, "        r.{end}()\n    }}\n}}\n");
}

/// Writes a run of fields that take one byte each if they are absent. Before each field but the
/// last, the code checks whether that field and all after it are absent.
fn absent(program: &Program, run: &[Member], out: &mut String) {
    out.push_str("        'run: {\n");
    let mut rest = run;
    while let [member, behind @ ..] = rest {
        if !behind.is_empty() {
            _ = writeln!(out, "            if r.absent({}) {{", rest.len());
            for member in rest {
                let cleared = cleared(member).unwrap_or_default();
                _ = writeln!(out, "                self.{}{cleared};", member.name);
            }
            out.push_str("                break 'run;\n            }\n");
        }
        field(program, member, 3, out);
        rest = behind;
    }
    out.push_str("        }\n");
}

/// Returns the number of first members that take one byte each, NULL, if they are absent.
fn run(program: &Program, members: &[Member]) -> usize {
    let takes_null = |member: &&Member| match program.op(member.id) {
        Op::Int(op) => {
            op.optional && matches!(op.operator, OperatorKind::None | OperatorKind::Delta)
        }
        Op::Decimal(op) => op.optional && op.operator == OperatorKind::None,
        Op::Text(op) => op.optional && op.operator == OperatorKind::None,
        _ => false,
    };
    members
        .iter()
        .take(LONGEST_RUN)
        .take_while(takes_null)
        .count()
}

/// Writes the statements that read a field.
fn field(program: &Program, member: &Member, depth: usize, out: &mut String) {
    let indent = "    ".repeat(depth);
    let number = program.op_number(member.id);
    let op = program.op(member.id);
    if let Op::Group { optional, body, .. } = op {
        return group(member, number, (*optional, *body), &indent, out);
    }
    if let Op::Sequence { length, body, .. } = op {
        return sequence(member, number, (length, *body), &indent, out);
    }
    let call = match call(program, member, op) {
        Call::Nothing => return,
        Call::Op => return by_op(number, op, &indent, out),
        Call::Constant(len) => format!("constant({len})"),
        Call::Usual(method, constants) => {
            format!("{method}({constants}&mut self.{})", member.name)
        }
    };
    _ = writeln!(out, "{indent}if !r.{call} {{");
    _ = writeln!(out, "{indent}    r.op({number}, self)?;\n{indent}}}");
}

/// Writes the statement that executes an op in the general way.
fn by_op(number: u32, op: &Op, indent: &str, out: &mut String) {
    let bits = op.bits();
    _ = writeln!(out, "{indent}r.by_op({number}, {bits}, self)?;");
}

fn group(
    member: &Member,
    number: u32,
    (optional, body): (bool, Body),
    indent: &str,
    out: &mut String,
) {
    let (name, has_map) = (&member.name, body.bits != 0);
    if !optional {
        _ = writeln!(
            out,
            "{indent}r.group({number}, {has_map}, &mut self.{name})?;"
        );
        return;
    }
    _ = writeln!(out, "{indent}if r.bit() {{");
    _ = writeln!(
        out,
        "{indent}    r.group({number}, {has_map}, self.{name}.insert())?;"
    );
    _ = writeln!(
        out,
        "{indent}}} else {{\n{indent}    self.{name}.clear();\n{indent}}}"
    );
}

fn sequence(
    member: &Member,
    number: u32,
    (length, body): (&IntOp, Body),
    indent: &str,
    out: &mut String,
) {
    let (name, has_map) = (&member.name, body.bits != 0);
    let Some(operator) = operator(length) else {
        by_op(number, &Op::Int(*length), indent, out);
        return;
    };
    let (start, method) = match length.optional {
        true => ("None::<u32>", "maybe_entries"),
        false => ("0_u32", "entries"),
    };
    _ = writeln!(out, "{indent}let mut length = {start};");
    _ = writeln!(out, "{indent}if r.int({operator}, &mut length) {{");
    _ = writeln!(
        out,
        "{indent}    r.{method}({number}, {has_map}, length, &mut self.{name})?;"
    );
    _ = writeln!(
        out,
        "{indent}}} else {{\n{indent}    r.op({number}, self)?;\n{indent}}}"
    );
}
