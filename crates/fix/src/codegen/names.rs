//! Names of a dictionary as names of types, variants and methods, and as words in comments.

use std::collections::{HashMap, HashSet};

use fanfare_wire::names::{Taken, pascal};

/// The types and traits that the generated module uses or defines itself. Those of every generator
/// are in [`fanfare_wire::names`].
const TYPES: [&str; 12] = [
    "Decimal",
    "ExactSizeIterator",
    "FieldError",
    "FieldSet",
    "FieldWriter",
    "FnMut",
    "Header",
    "Into",
    "IntoIterator",
    "Message",
    "Messages",
    "UtcTimestamp",
];

/// The suffixes of the types that are made for a message or entry.
const SUFFIXES: [&str; 4] = ["", "Fields", "Builder", "Start"];

/// The methods that every reader has.
const METHODS: [&str; 6] = ["build", "fields", "header", "of", "read", "required"];

/// The names of types that are taken.
pub(super) struct Types {
    taken: HashSet<String>,
    /// The names of which a taken name is a step.
    stepped: HashSet<String>,
    /// The number to try next for each name that was asked for.
    next: HashMap<String, u32>,
}

impl Types {
    pub(super) fn new() -> Self {
        Self {
            taken: TYPES.map(str::to_owned).into(),
            stepped: HashSet::new(),
            next: HashMap::new(),
        }
    }

    /// Returns a name for a type and those that are made for it: `name`, or `name` followed by the
    /// first number that makes all of them new.
    pub(super) fn unique(&mut self, name: &str) -> String {
        let name = pascal(name);
        let mut found = name.clone();
        let mut number = self.next.get(&name).copied().unwrap_or(2);
        while !self.is_free(&found) {
            found = format!("{name}{number}");
            // A number alone may make a step of another's builder: `XStep` becomes `XStepN2`.
            if self.is_step(&found) {
                found = format!("{name}N{number}");
            }
            number += 1;
        }
        self.next.insert(name, number);
        for own in family(&found) {
            self.stepped.extend(stepped(&own).map(str::to_owned));
            self.taken.insert(own);
        }
        found
    }

    fn is_free(&self, name: &str) -> bool {
        let is_taken = family(name).iter().any(|name| self.taken.contains(name));
        // `XStep1` is a step of the builder of X.
        !is_taken && !self.is_step(name) && !self.stepped.contains(name)
    }

    /// Returns whether a name is one that the builder of a taken name uses for a step.
    fn is_step(&self, name: &str) -> bool {
        stepped(name).is_some_and(|of| self.taken.contains(of))
    }
}

/// Returns the names of a type and of those that are made for it.
fn family(name: &str) -> [String; 4] {
    SUFFIXES.map(|suffix| format!("{name}{suffix}"))
}

/// Returns the name of which this name may be a step: `X` for `XStep1`.
fn stepped(name: &str) -> Option<&str> {
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit());
    bare.strip_suffix("Step")
}

/// Returns the names of methods that every reader has, as taken ones.
pub(super) fn methods() -> Taken {
    METHODS.into()
}

/// Returns the name without `No`: `PartyIDs` for `NoPartyIDs`.
pub(super) fn without_no(title: &str) -> &str {
    let bare = title.strip_prefix("No");
    bare.filter(|bare| bare.starts_with(|c: char| c.is_ascii_uppercase()))
        .unwrap_or(title)
}

/// Returns the name of a value as that of a variant: `BuyMinus` for `BUY_MINUS` and for `BuyMinus`.
pub(super) fn variant(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|word| {
        let is_shouted = word.len() > 1 && !word.contains(|c: char| c.is_ascii_lowercase());
        match word.split_at_checked(1) {
            Some((first, rest)) if is_shouted => format!("{first}{}", rest.to_ascii_lowercase()),
            _ => word.to_owned(),
        }
    });
    pascal(&words.collect::<Vec<_>>().join(" "))
}

/// Returns a dictionary's text for the prose of a comment, without line breaks, and without what
/// rustdoc takes for a link or an element.
pub(super) fn words(text: &str) -> String {
    let is_plain = |c: &char| c.is_alphanumeric() || " _-./+".contains(*c);
    text.chars().filter(is_plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_named_as_variants() {
        for (name, expected) in [
            ("BUY_MINUS", "BuyMinus"),
            ("BuyMinus", "BuyMinus"),
            ("NEW", "New"),
            ("1ST_DAY", "T1stDay"),
            ("None", "TNone"),
            ("self", "TSelf"),
            ("A/B (c)", "ABC"),
            ("", "T"),
        ] {
            assert_eq!(variant(name), expected);
        }
        assert_eq!(without_no("NoPartyIDs"), "PartyIDs");
        assert_eq!(without_no("Notes"), "Notes");
    }

    #[test]
    fn types_do_not_meet_those_of_others() {
        let mut types = Types::new();
        for (name, expected) in [
            ("Order", "Order"),
            ("OrderFields", "OrderFields2"),
            ("OrderStep1", "OrderStep1N2"),
            ("Order", "Order2"),
            ("header", "Header2"),
            ("OrderStep", "OrderStepN2"),
            ("OrderStep", "OrderStepN3"),
            // Traits that builders name without a path.
            ("Into", "Into2"),
            ("IntoIterator", "IntoIterator2"),
            ("ExactSizeIterator", "ExactSizeIterator2"),
            ("FnMut", "FnMut2"),
        ] {
            assert_eq!(types.unique(name), expected, "{name}");
        }
    }

    /// The numbers that are taken are not tried once more: thousands of messages may have one name.
    #[test]
    fn the_same_name_is_numbered_on() {
        let mut types = Types::new();
        assert_eq!(types.unique("M5"), "M5");
        let names: Vec<String> = (0..5_000).map(|_| types.unique("M")).collect();
        assert_eq!(names[..6], ["M", "M2", "M3", "M4", "M6", "M7"]);
        assert_eq!((&*names[4_999], types.next["M"]), ("M5001", 5_002));
    }

    #[test]
    fn comments_stay_in_their_line() {
        assert_eq!(words("Px\n}<b>[a] `x`"), "Pxba x");
    }
}
