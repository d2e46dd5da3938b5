//! `fanfare fast templates`: checks a template file and lists its declarations.

use super::options::{TEMPLATES_HELP, TemplateReading, load};
use super::output::write_hex;
use crate::plural::counted;
use crate::print::{note, say};
use anyhow::Result;
use fanfare_fast::program::{Field, FieldId, FieldKind, IntOp, Op, Reset, Slot, TemplateProgram};
use fanfare_fast::template::OperatorKind;
use fanfare_fast::value::TextType;
use fanfare_fast::{Decimal, Program};
use std::process::ExitCode;

/// Check a template file and list its templates, fields, operators and dictionaries.
///
/// An error (S1 to S5) is reported with its line and column.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "TEMPLATES", help = TEMPLATES_HELP)]
    templates: String,
    /// Check only: list nothing.
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    reading: TemplateReading,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let program = load(&args.templates, args.reading.reading())?;
    let unresolved = unresolved(&program);
    if !args.check {
        let mut of_templates = unresolved
            .chunk_by(|a, b| a.template() == b.template())
            .peekable();
        for template in program.templates() {
            let is_own = |fields: &&[&Field]| fields[0].template() == template.index();
            let own = of_templates.next_if(is_own).unwrap_or_default();
            list(&program, template, own);
        }
    }
    let unresolved = unresolved.len();
    let verdict = match unresolved {
        0 => "no error".to_owned(),
        n => format!("static references to templates that are not there: {n}"),
    };
    note!(
        "{}: {}, {}, {}, {verdict}",
        args.templates,
        counted(program.templates().len() as u64, "template"),
        counted((program.fields().len() - unresolved) as u64, "field"),
        counted(program.previous_values() as u64, "previous value")
    );
    Ok(ExitCode::SUCCESS)
}

/// Returns the static references to templates that do not exist, in the order of the templates.
/// They are not fields of messages.
fn unresolved(program: &Program) -> Vec<&Field> {
    let is_unresolved = |field: &&Field| matches!(program.op(field.id()), Op::Unresolved { .. });
    program.fields().iter().filter(is_unresolved).collect()
}

fn list(program: &Program, template: &TemplateProgram, unresolved: &[&Field]) {
    let id = template
        .id()
        .map_or("no id".to_owned(), |id| id.to_string());
    let reset = match template.reset() {
        Reset::None => "",
        Reset::Dictionaries => ", clears the dictionaries first",
        Reset::All => {
            ", clears the dictionaries and the template identifier; every template set has it"
        }
    };
    let bits = bits(template.body().bits);
    say!(
        "{} ({id}): presence map of up to {bits}{reset}",
        template.name()
    );
    fields(program, program.template_fields(template), 1);
    for field in unresolved {
        let name = field.name();
        say!("  templateRef {name}: no such template, D8 when it is reached");
    }
    say!("");
}

fn fields(program: &Program, ids: &[FieldId], depth: usize) {
    for &id in ids {
        let field = program.field(id);
        let tag = field.id_text().unwrap_or("");
        let indented = format!("{:indent$}{}", "", field.name(), indent = 2 * depth);
        let kind = match (program.op(id), field.bits()) {
            (Op::Bits(_), _) => "bitGroup".to_owned(),
            (_, Some(count)) => bits(count),
            _ => kind(field.kind()).to_owned(),
        };
        let presence = if field.optional() { "optional" } else { "" };
        let line = format!(
            "{indented:<32} {tag:>6}  {kind:<10} {presence:<8}  {}",
            operator(program, program.op(id))
        );
        say!("{}", line.trim_end());
        fields(program, program.children(id), depth + 1);
    }
}

fn bits(count: u32) -> String {
    counted(count.into(), "bit")
}

pub(super) fn kind(kind: FieldKind) -> &'static str {
    match kind {
        FieldKind::Int(ty) => ty.name(),
        FieldKind::Decimal => "decimal",
        FieldKind::Text(TextType::Ascii) => "string",
        FieldKind::Text(TextType::Unicode) => "unicode",
        FieldKind::Text(TextType::Bytes) => "byteVector",
        FieldKind::Group => "group",
        FieldKind::Sequence => "sequence",
        FieldKind::TemplateRef => "templateRef",
    }
}

/// Formats the operator with its initial value and its place in the dictionaries.
fn operator(program: &Program, op: &Op) -> String {
    match op {
        Op::Int(op) => int(program, op),
        Op::Decimal(op) => {
            let initial = op.initial.map(|d| d.to_string());
            one(program, op.operator, initial, op.slot)
        }
        Op::SplitDecimal {
            exponent, mantissa, ..
        } => format!(
            "exponent: {}; mantissa: {}",
            int(program, exponent),
            int(program, mantissa)
        ),
        Op::Text(op) => {
            let initial = op.initial.map(|text| constant(op.ty, program.text(text)));
            one(program, op.operator, initial, op.slot)
        }
        Op::Sequence { length, body, .. } => {
            format!(
                "length: {}; entries: up to {}",
                int(program, length),
                bits(body.bits)
            )
        }
        Op::Bits(group) => {
            let whole = int(program, &group.whole);
            format!("{}; {whole}", bits(group.width))
        }
        Op::Group { body, .. } => format!("up to {}", bits(body.bits)),
        Op::TemplateRef { .. } => "dynamic".to_owned(),
        Op::Unresolved { .. } => "no such template: D8 when it is reached".to_owned(),
    }
}

fn int(program: &Program, op: &IntOp) -> String {
    let initial = op.initial.map(|bits| {
        if op.ty.is_signed() {
            (bits as i64).to_string()
        } else {
            bits.to_string()
        }
    });
    one(program, op.operator, initial, op.slot)
}

fn one(program: &Program, kind: OperatorKind, initial: Option<String>, slot: Slot) -> String {
    let mut text = kind.name().to_owned();
    if let Some(initial) = initial {
        text.push(' ');
        text.push_str(&initial);
    }
    if kind.uses_dictionary()
        && let Some(info) = program.slot(slot)
    {
        text.push_str(&format!(" [{}: {}]", info.dictionary, info.key));
    }
    text
}

/// Formats an initial value as messages are printed: a string in quotes, a byte vector as `0x00ff`.
fn constant(ty: TextType, bytes: &[u8]) -> String {
    match ty {
        TextType::Ascii | TextType::Unicode => format!("{:?}", String::from_utf8_lossy(bytes)),
        TextType::Bytes => {
            let mut out = String::new();
            write_hex(bytes, &mut out);
            out
        }
    }
}

/// Formats a decimal as in the stream.
pub(super) fn decimal(value: Decimal) -> String {
    format!("{} x 10^{} = {value}", value.mantissa, value.exponent)
}
