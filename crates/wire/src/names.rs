//! Names of documents (templates, dictionaries) as names in Rust, for generators of code.

use std::collections::HashMap;

const KEYWORDS: [&str; 51] = [
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// The names of types, traits and variants that generated code uses in their usual meaning.
const PRELUDE: [&str; 15] = [
    "Box",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Err",
    "None",
    "Ok",
    "Option",
    "PartialEq",
    "Result",
    "Self",
    "Some",
    "String",
    "Vec",
];

/// Returns the name as that of a field or function: `md_entry_px` for `MDEntryPx`, `party_ids` for
/// `PartyIDs`.
pub fn snake(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::new();
    for (i, &c) in chars.iter().enumerate() {
        if !c.is_ascii_alphanumeric() {
            if !out.ends_with('_') {
                out.push('_');
            }
            continue;
        }
        let before = i.checked_sub(1).and_then(|i| chars.get(i));
        let after = chars.get(i + 1);
        let is_plural =
            after == Some(&'s') && chars.get(i + 2).is_none_or(|c| !c.is_ascii_lowercase());
        let starts = c.is_ascii_uppercase()
            && (before.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                || before.is_some_and(char::is_ascii_uppercase)
                    && after.is_some_and(char::is_ascii_lowercase)
                    && !is_plural);
        if starts && !out.ends_with('_') && !out.is_empty() {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    let out = out.trim_matches('_').to_owned();
    if out.is_empty() || out.starts_with(|c: char| c.is_ascii_digit()) {
        return format!("field_{out}");
    }
    if KEYWORDS.contains(&out.as_str()) {
        return format!("{out}_");
    }
    out
}

/// Returns the name as that of a type: `MarketData` for `market-data`. Capitals are unchanged.
pub fn pascal(name: &str) -> String {
    let mut out = String::new();
    for word in name.split(|c: char| !c.is_ascii_alphanumeric()) {
        let mut chars = word.chars();
        if let Some(first) = chars.next() {
            out.push(first.to_ascii_uppercase());
            out.extend(chars);
        }
    }
    let begins_with_digit = out.starts_with(|c: char| c.is_ascii_digit());
    if out.is_empty() || begins_with_digit || PRELUDE.contains(&out.as_str()) {
        return format!("T{out}");
    }
    out
}

/// The names that are taken, each with the next number to be tried after it.
#[derive(Debug, Default)]
pub struct Taken(HashMap<String, u32>);

impl Taken {
    /// Takes `name`, or `name` followed by the first number that makes it new, and returns it.
    pub fn unique(&mut self, name: String) -> String {
        let Some(&next) = self.0.get(&name) else {
            self.0.insert(name.clone(), 2);
            return name;
        };
        let mut number = next;
        let found = loop {
            let found = format!("{name}{number}");
            number += 1;
            if !self.0.contains_key(&found) {
                break found;
            }
        };
        self.0.insert(name, number);
        self.0.insert(found.clone(), 2);
        found
    }
}

impl<const N: usize> From<[&str; N]> for Taken {
    fn from(names: [&str; N]) -> Self {
        Self(names.map(|name| (name.to_owned(), 2)).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_are_snake_case() {
        for (name, expected) in [
            ("MDEntryPx", "md_entry_px"),
            ("NoMDEntries", "no_md_entries"),
            ("NoPartyIDs", "no_party_ids"),
            ("IDsOfAs", "ids_of_as"),
            ("ApplVerID", "appl_ver_id"),
            ("SequenceNumber", "sequence_number"),
            ("Px2Last", "px2_last"),
            ("type", "type_"),
            ("1st", "field_1st"),
            ("a-b.c", "a_b_c"),
            ("Ä", "field_"),
        ] {
            assert_eq!(snake(name), expected);
        }
    }

    #[test]
    fn names_of_types_are_pascal_case_and_unique() {
        assert_eq!(pascal("market-data"), "MarketData");
        assert_eq!(pascal("W-Snapshot"), "WSnapshot");
        assert_eq!(pascal("7up"), "T7up");
        assert_eq!(pascal("option"), "TOption");
        let mut taken = Taken::from(["A3"]);
        let names = ["A", "A", "A", "A2"].map(|name| taken.unique(name.to_owned()));
        assert_eq!(names, ["A", "A2", "A4", "A22"]);
    }
}
