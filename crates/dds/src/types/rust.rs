//! Types as Rust text, for [`cdr_struct!`](crate::cdr_struct).

use std::fmt::Write as _;

use super::{Extensibility, Fault, Kind, StructType, TypeError};

/// Returns several types as invocations of [`cdr_struct!`](crate::cdr_struct), preceded by their
/// parts, each once. Modules are left out.
///
/// # Errors
/// The first member that the macro does not support: optional ones, arrays, enumerations,
/// characters; and structures that are not final.
pub fn rust(types: &[&StructType]) -> Result<String, TypeError> {
    let mut printer = Printer::default();
    for t in types {
        printer.structure(t)?;
    }
    Ok(printer.out)
}

#[derive(Default)]
struct Printer {
    out: String,
    done: Vec<String>,
}

impl Printer {
    fn structure(&mut self, t: &StructType) -> Result<(), TypeError> {
        if self.done.contains(&t.name) {
            return Ok(());
        }
        self.done.push(t.name.clone());
        let mut members = String::new();
        for member in &t.members {
            let kind = match member.optional || t.extensibility != Extensibility::Final {
                true => None,
                false => self.spell(&member.kind)?,
            };
            let Some(kind) = kind else {
                return Err(TypeError {
                    path: format!("{}.{}", t.name, member.name),
                    why: Fault::Unsupported("members like this in Rust"),
                });
            };
            let key = if member.key { "#[key] " } else { "" };
            // The formatter of a String cannot fail.
            let _ = writeln!(members, "        {key}{}: {kind},", member.name);
        }
        let gap = if self.out.is_empty() { "" } else { "\n" };
        let (name, full) = (short(&t.name), &t.name);
        let _ = write!(
            self.out,
            "{gap}fanfare_dds::cdr_struct! {{\n    #[derive(Debug, Clone, PartialEq)]\n    \
             #[allow(non_snake_case, non_camel_case_types)]\n    \
             pub struct {name}: \"{full}\" {{\n{members}    }}\n}}\n"
        );
        Ok(())
    }

    /// Returns the Rust type, after printing its parts.
    fn spell(&mut self, kind: &Kind) -> Result<Option<String>, TypeError> {
        let word = match kind {
            Kind::Bool => "bool",
            Kind::Byte => "u8",
            Kind::Int8 => "i8",
            Kind::Int16 => "i16",
            Kind::UInt16 => "u16",
            Kind::Int32 => "i32",
            Kind::UInt32 => "u32",
            Kind::Int64 => "i64",
            Kind::UInt64 => "u64",
            Kind::Float32 => "f32",
            Kind::Float64 => "f64",
            Kind::String(None) => "String",
            Kind::Struct(t) => {
                self.structure(t)?;
                short(&t.name)
            }
            Kind::Sequence(element, None) => {
                return Ok(self.spell(element)?.map(|t| format!("Vec<{t}>")));
            }
            _ => return Ok(None),
        };
        Ok(Some(word.to_owned()))
    }
}

fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_structure_is_made_of_comes_first_and_once() {
        let level = StructType::new("Md::Level").member("px", Kind::Float64);
        let t = StructType::new("Md::Book")
            .key("id", Kind::UInt32)
            .member("bids", Kind::sequence_of(level.clone()))
            .member("asks", Kind::sequence_of(level));
        let text = rust(&[&t]).unwrap();
        let (level, book) = (text.find("struct Level").unwrap(), text.find("struct Book"));
        assert!(Some(level) < book && text.matches("struct Level").count() == 1);
        assert!(
            text.contains("#[key] id: u32,\n        bids: Vec<Level>,"),
            "{text}"
        );
    }

    #[test]
    fn what_the_macro_cannot_say_is_refused() {
        let array = Kind::Array(Box::new(Kind::Byte), 4);
        let t = StructType::new("T").member("hash", array);
        assert!(rust(&[&t]).unwrap_err().to_string().contains("T.hash"));
    }
}
