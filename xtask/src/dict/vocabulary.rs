//! Writes the constants of crates/fix/src/vocabulary: tags, MsgTypes and listed values, from the
//! tables of crates/fix/dict-data.
//!
//! A name of any version has its constant. If two versions give two values the same name, the
//! newest keeps it, and the older value has its last version in its name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use fanfare_wire::names::snake;

use super::{TRANSPORT, read};

/// The tables in the order of their publication.
const ORDER: [&str; 9] = [
    "FIX.4.0",
    "FIX.4.1",
    "FIX.4.2",
    "FIX.4.3",
    "FIX.4.4",
    TRANSPORT,
    "FIX.5.0",
    "FIX.5.0SP1",
    "FIX.5.0SP2",
];

const HEAD: &str = "\
// Made by `cargo xtask dict` from the tables of crates/fix/dict-data; do not edit.
";

const MSG_TYPE: u32 = 35;

/// Returns the generated files by name.
pub(super) fn render(data: &Path) -> Result<Vec<(&'static str, String)>, String> {
    let mut words = Words::default();
    for (place, version) in ORDER.iter().enumerate() {
        let path = data.join(format!("{version}.txt"));
        for (i, line) in read(&path)?.lines().enumerate() {
            let understood = words.add(place, line);
            understood.ok_or_else(|| format!("{}:{}: {line}", path.display(), i + 1))?;
        }
    }
    Ok(vec![
        ("tag.generated", words.tags()),
        ("msg_type.generated", words.msg_types()),
        ("values.generated", words.values()),
    ])
}

/// The first and the last version with a definition, by their indexes in `ORDER`.
#[derive(Clone, Copy)]
struct Span {
    first: usize,
    last: usize,
}

impl Span {
    fn of(place: usize) -> Self {
        Self {
            first: place,
            last: place,
        }
    }

    /// Formats `since FIX.4.2`, `FIX.4.3 alone`, `FIX.4.0 to FIX.4.3`.
    fn text(self) -> String {
        let (first, last) = (ORDER[self.first], ORDER[self.last]);
        if self.last == ORDER.len() - 1 {
            format!("since {first}")
        } else if self.first == self.last {
            format!("{first} alone")
        } else {
            format!("{first} to {last}")
        }
    }
}

#[derive(Default)]
struct Field {
    /// Names in the order of their appearance.
    names: Vec<(String, Span)>,
    /// The newest data type.
    kind: String,
    /// Values by name, in the order of their appearance.
    values: Vec<Value>,
}

struct Value {
    name: String,
    value: String,
    span: Span,
}

/// The declarations of the tables.
#[derive(Default)]
struct Words {
    fields: BTreeMap<u32, Field>,
    /// Names of messages with their MsgTypes.
    messages: Vec<Value>,
}

impl Words {
    fn add(&mut self, place: usize, line: &str) -> Option<()> {
        let mut words = line.split(' ');
        match words.next()? {
            "F" => {
                let field = self.fields.entry(words.next()?.parse().ok()?).or_default();
                let name = words.next()?;
                match field.names.iter_mut().find(|(known, _)| known == name) {
                    Some((_, span)) => span.last = place,
                    None => field.names.push((name.to_owned(), Span::of(place))),
                }
                words
                    .next()?
                    .trim_end_matches('~')
                    .clone_into(&mut field.kind);
                for word in words {
                    let (value, name) = word.rsplit_once('=')?;
                    note(&mut field.values, name, value, place);
                }
            }
            "M" => {
                let msg_type = words.next()?;
                note(&mut self.messages, words.next()?, msg_type, place);
            }
            _ => {}
        }
        Some(())
    }

    fn tags(&self) -> String {
        let mut out = HEAD.to_owned();
        for (tag, field) in &self.fields {
            for (name, span) in &field.names {
                let constant = constant(name);
                let _ = write!(
                    out,
                    "\n/// {name}({tag}), {}.\npub const {constant}: u32 = {tag};\n",
                    span.text()
                );
            }
        }
        out
    }

    fn msg_types(&self) -> String {
        let mut out = HEAD.to_owned();
        for message in &self.messages {
            let Value { name, value, span } = message;
            let constant = constant(name);
            let _ = write!(
                out,
                "\n/// {name}({value}), {}.\npub const {constant}: &[u8] = b\"{value}\";\n",
                span.text()
            );
        }
        out
    }

    fn values(&self) -> String {
        let mut out = HEAD.to_owned();
        for (tag, field) in &self.fields {
            if field.values.is_empty() || *tag == MSG_TYPE {
                continue;
            }
            let Some(((name, _), older)) = field.names.split_last() else {
                continue;
            };
            let module = snake(name);
            let _ = write!(out, "\n/// Values of {name}({tag}).\npub mod {module} {{\n");
            field.constants(&mut out);
            out.push_str("}\n");
            for (old, _) in older.iter().filter(|(old, _)| snake(old) != module) {
                let alias = snake(old);
                let _ = write!(
                    out,
                    "\n/// Values of {name}({tag}), which was {old}.\n\
                     pub use {module} as {alias};\n"
                );
            }
        }
        out
    }
}

impl Field {
    fn constants(&self, out: &mut String) {
        let form = Form::of(&self.kind, &self.values);
        for (i, value) in self.values.iter().enumerate() {
            let name = constant(&value.name);
            let mut suffix = String::new();
            let rival = |other: &&Value| constant(&other.name) == name;
            let newest = self.values.iter().filter(rival).max_by_key(|v| v.span.last);
            if newest.is_some_and(|newest| newest.value != value.value) {
                let version = ORDER[value.span.last].replace('.', "");
                let _ = write!(suffix, "_{version}");
            }
            let earlier = self.values[..i].iter();
            if earlier.clone().any(|v| v.value == value.value && rival(&v)) {
                // Another version spells the same name differently.
                continue;
            }
            let meaning = &value.name;
            let (value, span) = (&value.value, value.span.text());
            let _ = write!(
                out,
                "    /// `{value}`: {meaning}, {span}.\n    pub const {name}{suffix}: {}\n",
                form.constant(value)
            );
        }
    }
}

/// The type of a field's constants.
enum Form {
    Char,
    Number,
    Flag,
    Text,
}

impl Form {
    fn of(kind: &str, values: &[Value]) -> Self {
        let all = |fits: fn(&str) -> bool| values.iter().all(|value| fits(&value.value));
        match kind {
            "BOOLEAN" => Self::Flag,
            "CHAR" | "MULTIPLECHARVALUE" if all(|value| value.len() == 1) => Self::Char,
            "INT" | "NUMINGROUP" | "LENGTH" if all(|value| value.parse::<u64>().is_ok()) => {
                Self::Number
            }
            _ => Self::Text,
        }
    }

    fn constant(&self, value: &str) -> String {
        match self {
            Self::Char => format!("u8 = b{:?};", value.chars().next().unwrap_or(' ')),
            Self::Number => format!("u64 = {};", value.parse().unwrap_or(0_u64)),
            Self::Flag => format!("bool = {};", value == "Y"),
            Self::Text => format!("&str = {value:?};"),
        }
    }
}

fn note(values: &mut Vec<Value>, name: &str, value: &str, place: usize) {
    let known = values
        .iter_mut()
        .find(|v| v.name == name && v.value == value);
    match known {
        Some(known) => known.span.last = place,
        None => values.push(Value {
            name: name.to_owned(),
            value: value.to_owned(),
            span: Span::of(place),
        }),
    }
}

/// Converts `MDEntryPx` to `MD_ENTRY_PX`.
fn constant(name: &str) -> String {
    match name {
        // The capitals belong to two words.
        "XMLnonFIX" => "XML_NON_FIX".to_owned(),
        _ => snake(name).to_ascii_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files in the tree are equal to the generator's output.
    #[test]
    fn the_constants_are_up_to_date() {
        let root = crate::root();
        let folder = root.join("crates/fix/src/vocabulary");
        for (file, text) in render(&root.join("crates/fix/dict-data")).unwrap() {
            let kept = read(&folder.join(file)).unwrap();
            assert!(kept == text, "{file}: run `cargo xtask dict`");
        }
    }

    #[test]
    fn names_of_all_versions_are_there_once() {
        let mut words = Words::default();
        for (place, line) in [
            (0, "F 54 Side CHAR 1=Buy"),
            (0, "F 327 HaltReason CHAR D=News"),
            (4, "F 327 HaltReasonChar CHAR D=News E=Flux"),
            (8, "F 327 HaltReason INT 0=News"),
            (8, "F 54 Side CHAR 1=Buy 2=Sell"),
            (0, "M D OrderSingle app 54!"),
            (4, "M D NewOrderSingle app 54!"),
        ] {
            words.add(place, line).unwrap();
        }
        let values = words.values();
        for line in [
            "/// `1`: Buy, since FIX.4.0.\n    pub const BUY: u8 = b'1';",
            "/// `2`: Sell, since FIX.5.0SP2.",
            "/// `D`: News, FIX.4.0 to FIX.4.4.\n    pub const NEWS_FIX44: &str = \"D\";",
            "pub const NEWS: &str = \"0\";",
        ] {
            assert!(values.contains(line), "{line}\n{values}");
        }
        assert!(
            words
                .tags()
                .contains("/// HaltReasonChar(327), FIX.4.4 alone.")
        );
        let types = words.msg_types();
        assert!(types.contains("pub const ORDER_SINGLE: &[u8] = b\"D\";"));
        assert!(types.contains("pub const NEW_ORDER_SINGLE: &[u8] = b\"D\";"));
        assert!(words.add(0, "F 54").is_none());
    }
}
