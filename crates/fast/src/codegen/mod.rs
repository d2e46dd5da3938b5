//! Typed Rust structs for a template set, with decode and encode: `fanfare fast codegen`, and
//! for build scripts:
//!
//! ```no_run
//! // build.rs
//! let xml = std::fs::read_to_string("templates.xml")?;
//! let code = fanfare_fast::codegen::generate(&xml)?;
//! std::fs::write(format!("{}/feed.rs", std::env::var("OUT_DIR")?), code)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The generated module links [`crate::typed`] and holds: a struct for each template, group and
//! sequence entry; `Messages`, the [`Feed`](crate::typed::Feed) that a
//! [`TypedDecoder`](crate::typed::TypedDecoder) fills; `Decoded`, which tells the template of
//! what was decoded, and can be encoded as it is. Mandatory constants are associated constants,
//! optional numbers are [`Option`]s, strings are [`crate::typed::Text`]s and
//! [`crate::typed::OptionalText`]s.
//!
//! Decoding and encoding are straight-line code: for each template, group and entry one function
//! that reads the fields in their order, each by one call of a [`Reader`](crate::typed::Reader)
//! with the constants of its op, and stores the value in its member; and one that writes them by a
//! [`Writer`](crate::typed::Writer). What is unusual is left to the op of the [`Program`], and told
//! of by the number of its field ([`Members`](crate::typed::Members)). Where a vector kernel
//! decodes all templates in lanes, structs are filled from rows of a [`crate::Record`] instead, and
//! encoded by way of such rows. [`crate::builtin::simple`], [`crate::builtin::complex`] and
//! [`crate::builtin::spectra`] are such modules.

mod calls;
mod encoder;
mod members;
mod model;
mod rows;
mod straight;
mod write;

use std::fmt::Write as _;

use crate::error::TemplateError;
use crate::program::Program;
use crate::value::IntType;
use fanfare_wire::names::snake;
use model::{Member, Model, Shape, Struct};

/// Returns the module for a template document. It stands alone: put it into a file of its own, or
/// `include!` it into a module.
///
/// # Errors
/// Those of [`Program::parse`].
pub fn generate(xml: &str) -> Result<String, TemplateError> {
    Ok(generate_from(&Program::parse(xml)?, xml))
}

/// Returns the module for a program, as [`generate`] returns it; `xml` is the document of the
/// program.
#[must_use]
pub fn generate_from(program: &Program, xml: &str) -> String {
    let model = Model::new(program);
    let mut out = String::from("// Made by `fanfare fast codegen`; do not edit.\n\n");
    for item in &model.structs {
        structure(&model, item, &mut out);
    }
    for (template, index) in model.templates.iter().enumerate() {
        write::typed(&model, &model.structs[*index], template, &mut out);
    }
    messages(&model, &mut out);
    decoded(&model, &mut out);
    if !model.templates.is_empty() {
        write::decoded(&model, &mut out);
    }
    feed(&model, xml, &mut out);
    members::messages(&model, &mut out);
    straight::write(&model, &mut out);
    encoder::write(&model, &mut out);
    rows::write(&model, &mut out);
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn structure(model: &Model<'_>, item: &Struct, out: &mut String) {
    let name = &item.name;
    _ = writeln!(out, "/// {}", item.doc);
    out.push_str("#[derive(Debug, Clone, Default, PartialEq)]\n");
    _ = writeln!(out, "pub struct {name} {{");
    for member in item.members.iter().filter(|m| m.shape != Shape::Constant) {
        _ = writeln!(out, "    /// {}", member.doc);
        _ = writeln!(out, "    pub {}: {},", member.name, type_of(model, member));
    }
    out.push_str("}\n\n");
    _ = writeln!(
        out,
        "#[allow(clippy::all, clippy::pedantic)]\nimpl {name} {{"
    );
    for member in item.members.iter().filter(|m| m.shape == Shape::Constant) {
        write::constant(model.program, member, out);
    }
    write::fields(model, item, out);
    out.push_str("}\n\n");
    members::structure(model, item, out);
}

fn type_of(model: &Model<'_>, member: &Member) -> String {
    let typed = |inner: String| match member.optional {
        true => format!("::fanfare_fast::typed::Optional<{inner}>"),
        false => inner,
    };
    let plain = |inner: &str| match member.optional {
        true => format!("Option<{inner}>"),
        false => inner.to_owned(),
    };
    match member.shape {
        Shape::Int(ty) => plain(int(ty)),
        Shape::Decimal => plain("::fanfare_fast::Decimal"),
        Shape::Text(_) if member.optional => "::fanfare_fast::typed::OptionalText".to_owned(),
        Shape::Text(_) => "::fanfare_fast::typed::Text".to_owned(),
        Shape::Group(index) => typed(model.structs[index].name.clone()),
        Shape::Sequence(index) => {
            let entry = &model.structs[index].name;
            typed(format!("::fanfare_fast::typed::Entries<{entry}>"))
        }
        Shape::Dynamic => "::fanfare_fast::typed::Dynamic".to_owned(),
        Shape::Constant => String::new(),
    }
}

const fn int(ty: IntType) -> &'static str {
    match ty {
        IntType::Int8 => "i8",
        IntType::UInt8 => "u8",
        IntType::Int16 => "i16",
        IntType::UInt16 => "u16",
        IntType::Int32 => "i32",
        IntType::UInt32 => "u32",
        IntType::Int64 => "i64",
        IntType::UInt64 => "u64",
    }
}

/// `Messages`: a struct of each template.
fn messages(model: &Model<'_>, out: &mut String) {
    out.push_str("/// One message of each template, filled in turn.\n");
    out.push_str("#[derive(Debug, Clone)]\npub struct Messages {\n");
    out.push_str("    template: u32,\n");
    for index in &model.templates {
        let name = &model.structs[*index].name;
        _ = writeln!(out, "    {}: {name},", snake(name));
    }
    out.push_str("}\n\nimpl Default for Messages {\n    fn default() -> Self {\n");
    out.push_str("        Self {\n            template: u32::MAX,\n");
    for index in &model.templates {
        let name = &model.structs[*index].name;
        _ = writeln!(out, "            {}: {name}::default(),", snake(name));
    }
    out.push_str("        }\n    }\n}\n\n");
}

/// `Decoded`: which of them was decoded.
fn decoded(model: &Model<'_>, out: &mut String) {
    out.push_str("/// A decoded message, by its template.\n");
    out.push_str("#[derive(Debug, Clone, Copy, PartialEq)]\npub enum Decoded<'m> {\n");
    for index in &model.templates {
        let Struct { name, doc, .. } = &model.structs[*index];
        _ = writeln!(out, "    /// {doc}\n    {name}(&'m {name}),");
    }
    out.push_str("}\n\n");
}

fn feed(model: &Model<'_>, xml: &str, out: &mut String) {
    out.push_str("#[allow(clippy::all, clippy::pedantic)]\n");
    out.push_str("impl ::fanfare_fast::typed::Feed for Messages {\n");
    let hashes = "#".repeat(longest_hashes(xml) + 1);
    _ = writeln!(
        out,
        "    const TEMPLATES: &'static str = r{hashes}\"{xml}\"{hashes};\n"
    );
    out.push_str("    type Decoded<'m> = Decoded<'m>;\n\n    #[inline]\n");
    out.push_str("    fn decoded(&self) -> Option<Decoded<'_>> {\n");
    out.push_str("        Some(match self.template {\n");
    for (template, index) in model.templates.iter().enumerate() {
        let name = &model.structs[*index].name;
        let member = snake(name);
        _ = writeln!(
            out,
            "            {template} => Decoded::{name}(&self.{member}),"
        );
    }
    out.push_str("            _ => return None,\n        })\n    }\n");
    straight::feed(model, out);
    rows::feed(model, out);
    out.push_str("}\n\n");
}

/// Returns the longest run of `#` behind a quotation mark, for a raw string that holds the text.
fn longest_hashes(text: &str) -> usize {
    let behind = text.split('"').skip(1);
    let runs = behind.map(|rest| rest.bytes().take_while(|b| *b == b'#').count());
    runs.max().unwrap_or(0)
}
