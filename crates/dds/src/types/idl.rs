//! Types as IDL text, in the subset that Cyclone's idlc and Fast DDS's generator share.

use std::fmt::Write as _;

use super::names::is_identifier;
use super::{EnumType, Extensibility, Kind, StructType, UnionType};

/// Names that are valid in IDL, but not in C, C++, Python or Rust, or that a macro of C's library
/// defines: the compilers of IDL copy them into their output.
const ELSEWHERE: &str = " \
    False None True and as assert async await class def del elif except finally from \
    global is lambda nonlocal not or pass raise with yield return if else while for do \
    break continue import try in auto register static extern volatile inline restrict \
    signed int goto sizeof typeof asm alignas alignof and_eq bitand bitor bool catch \
    char8_t char16_t char32_t compl concept consteval constexpr constinit const_cast \
    co_await co_return co_yield decltype delete dynamic_cast explicit export friend \
    mutable namespace new noexcept not_eq nullptr operator or_eq protected \
    reinterpret_cast requires static_assert static_cast template this thread_local throw \
    typeid using virtual wchar_t xor xor_eq NULL EOF errno stdin stdout stderr offsetof \
    linux unix self Self super crate type fn match move mod mut ref use where impl let \
    loop pub trait unsafe dyn gen become box final macro override priv unsized ";

/// Returns a valid IDL identifier made from any name. Other characters become `_`, a leading digit
/// is prefixed with `f`, and a keyword, also one of the languages that IDL is compiled to, is
/// suffixed with `_`. All other identifiers stay unchanged.
pub fn identifier(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'f');
    }
    if !is_identifier(&out) || ELSEWHERE.split(' ').any(|word| word == out) {
        out.push('_');
    }
    out
}

/// Prints the types, preceded by their parts, each once.
pub(super) fn print(types: &[&StructType]) -> String {
    let mut printer = Printer {
        out: String::new(),
        scope: Vec::new(),
        done: Vec::new(),
    };
    for t in types {
        printer.structure(t, false);
    }
    printer.enter(&[]);
    printer.out
}

struct Printer {
    out: String,
    scope: Vec<String>,
    done: Vec<String>,
}

impl Printer {
    fn structure(&mut self, t: &StructType, nested: bool) {
        if !self.is_new(&t.name) {
            return;
        }
        for member in &t.members {
            self.parts(&member.kind);
        }
        let short = self.declare(&t.name);
        let pad = "  ".repeat(self.scope.len());
        let may_grow = annotation(t.extensibility);
        // The formatter of a String cannot fail.
        let _ = writeln!(
            self.out,
            "{pad}{may_grow}{}",
            if nested { " @nested" } else { "" }
        );
        let _ = writeln!(self.out, "{pad}struct {short} {{");
        for member in &t.members {
            let key = if member.key { "@key " } else { "" };
            let optional = if member.optional { "@optional " } else { "" };
            let (kind, dimensions) = spell(&member.kind, &self.scope);
            let name = &member.name;
            let _ = writeln!(self.out, "{pad}  {key}{optional}{kind} {name}{dimensions};");
        }
        let _ = writeln!(self.out, "{pad}}};");
    }

    fn enumeration(&mut self, t: &EnumType) {
        if !self.is_new(&t.name) {
            return;
        }
        let short = self.declare(&t.name);
        let pad = "  ".repeat(self.scope.len());
        let bound = match t.bit_bound {
            32 => String::new(),
            bits => format!("@bit_bound({bits}) "),
        };
        let _ = writeln!(self.out, "{pad}{bound}enum {short} {{");
        for (i, (name, value)) in t.literals.iter().enumerate() {
            let comma = if i + 1 < t.literals.len() { "," } else { "" };
            let _ = writeln!(self.out, "{pad}  @value({value}) {name}{comma}");
        }
        let _ = writeln!(self.out, "{pad}}};");
    }

    fn union(&mut self, t: &UnionType) {
        if !self.is_new(&t.name) {
            return;
        }
        self.parts(&t.discriminator.kind);
        for case in &t.cases {
            self.parts(&case.member.kind);
        }
        let short = self.declare(&t.name);
        let pad = "  ".repeat(self.scope.len());
        let may_grow = annotation(t.extensibility);
        let (by, _) = spell(&t.discriminator.kind, &self.scope);
        let _ = writeln!(
            self.out,
            "{pad}{may_grow}\n{pad}union {short} switch ({by}) {{"
        );
        for case in &t.cases {
            for label in &case.labels {
                let label = spell_label(&t.discriminator.kind, *label);
                let _ = writeln!(self.out, "{pad}  case {label}:");
            }
            if case.is_default {
                let _ = writeln!(self.out, "{pad}  default:");
            }
            let (kind, dimensions) = spell(&case.member.kind, &self.scope);
            let name = &case.member.name;
            let _ = writeln!(self.out, "{pad}    {kind} {name}{dimensions};");
        }
        let _ = writeln!(self.out, "{pad}}};");
    }

    /// Returns whether the type of this name is not printed yet, and marks it as printed.
    fn is_new(&mut self, name: &str) -> bool {
        let is_new = !self.done.iter().any(|done| done == name);
        if is_new {
            self.done.push(name.to_owned());
        }
        is_new
    }

    fn parts(&mut self, kind: &Kind) {
        match kind {
            Kind::Struct(inner) => self.structure(inner, true),
            Kind::Enum(inner) => self.enumeration(inner),
            Kind::Union(inner) => self.union(inner),
            Kind::Sequence(element, _) | Kind::Array(element, _) => self.parts(element),
            _ => {}
        }
    }

    /// Enters the scope of `name`, and returns its last part.
    fn declare(&mut self, name: &str) -> String {
        let mut parts: Vec<String> = name.split("::").map(str::to_owned).collect();
        let short = parts.pop().unwrap_or_default();
        self.enter(&parts);
        short
    }

    /// Closes and opens modules until the scope is `wanted`.
    fn enter(&mut self, wanted: &[String]) {
        let common = self
            .scope
            .iter()
            .zip(wanted)
            .take_while(|(a, b)| a == b)
            .count();
        while self.scope.len() > common {
            self.scope.pop();
            let _ = writeln!(self.out, "{}}};", "  ".repeat(self.scope.len()));
        }
        for module in &wanted[common..] {
            let _ = writeln!(
                self.out,
                "{}module {module} {{",
                "  ".repeat(self.scope.len())
            );
            self.scope.push(module.clone());
        }
    }
}

const fn annotation(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "@final",
        Extensibility::Appendable => "@appendable",
        Extensibility::Mutable => "@mutable",
    }
}

/// Formats a value of a discriminator in IDL.
fn spell_label(kind: &Kind, label: i32) -> String {
    let named = match kind {
        Kind::Enum(t) => t.literals.iter().find(|(_, value)| *value == label),
        _ => None,
    };
    match (kind, named, u8::try_from(label)) {
        (_, Some((name, _)), _) => name.clone(),
        (Kind::Bool, ..) => if label == 0 { "FALSE" } else { "TRUE" }.to_owned(),
        (Kind::Char, _, Ok(c)) if c.is_ascii_alphanumeric() => format!("'{}'", char::from(c)),
        (Kind::Char, _, Ok(c)) => format!("'\\x{c:02x}'"),
        _ => label.to_string(),
    }
}

/// Formats the type before the name, and the array dimensions after it.
fn spell(kind: &Kind, scope: &[String]) -> (String, String) {
    let word = match kind {
        Kind::Bool => "boolean",
        Kind::Byte => "octet",
        Kind::Int8 => "int8",
        Kind::UInt8 => "uint8",
        Kind::Int16 => "short",
        Kind::UInt16 => "unsigned short",
        Kind::Int32 => "long",
        Kind::UInt32 => "unsigned long",
        Kind::Int64 => "long long",
        Kind::UInt64 => "unsigned long long",
        Kind::Float32 => "float",
        Kind::Float64 => "double",
        Kind::Char => "char",
        Kind::WChar => "wchar",
        Kind::WString(None) => "wstring",
        Kind::WString(Some(bound)) => return (format!("wstring<{bound}>"), String::new()),
        Kind::String(None) => "string",
        Kind::String(Some(bound)) => return (format!("string<{bound}>"), String::new()),
        Kind::Enum(t) => return (relative(&t.name, scope), String::new()),
        // Its flags are not known.
        Kind::Bitmask(0..=8) => "uint8",
        Kind::Bitmask(9..=16) => "unsigned short",
        Kind::Bitmask(17..=32) => "unsigned long",
        Kind::Bitmask(_) => "unsigned long long",
        Kind::Struct(t) => return (relative(&t.name, scope), String::new()),
        Kind::Union(t) => return (relative(&t.name, scope), String::new()),
        Kind::Sequence(element, bound) => {
            let (inner, _) = spell(element, scope);
            let bound = bound.map(|n| format!(", {n}")).unwrap_or_default();
            return (format!("sequence<{inner}{bound}>"), String::new());
        }
        Kind::Array(element, n) => {
            let (inner, outer) = spell(element, scope);
            return (inner, format!("[{n}]{outer}"));
        }
    };
    (word.to_owned(), String::new())
}

/// Formats a scoped name inside `scope`. Fast DDS's generator does not accept a leading `::`.
fn relative(name: &str, scope: &[String]) -> String {
    let inside = format!("{}::", scope.join("::"));
    name.strip_prefix(&inside).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nested_types_come_first_inside_their_modules() {
        let entry = StructType::new("Md::Entry").member("px", Kind::Float64);
        let t = StructType::new("Md::Book")
            .key("id", Kind::UInt32)
            .member("entries", Kind::sequence_of(entry))
            .member("hash", Kind::Array(Box::new(Kind::Byte), 4));
        let expected = "\
module Md {
  @final @nested
  struct Entry {
    double px;
  };
  @final
  struct Book {
    @key unsigned long id;
    sequence<Entry> entries;
    octet hash[4];
  };
};
";
        assert_eq!(t.idl(), expected);
    }

    #[test]
    fn any_name_becomes_an_identifier_and_good_ones_stay() {
        assert_eq!(identifier("MDEntryPx"), "MDEntryPx");
        assert_eq!(identifier("Best Bid/Ask"), "Best_Bid_Ask");
        assert_eq!(identifier("52WeekHigh"), "f52WeekHigh");
        assert_eq!(identifier("Sequence"), "Sequence_");
        assert_eq!(identifier("_x"), "f_x");
        assert_eq!(identifier(""), "f");
    }
}
