//! The rule on words: the documentation of a public function begins with what it does, in the third
//! person, as the standard library's does.

use super::source::is_fn_start;
use super::{File, Finding};

/// Words that end as verbs do.
const OTHERS: [&str; 2] = ["This", "Its"];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    // The first line of the comment in front, with its number.
    let mut doc: Option<(usize, &str)> = None;
    let mut was_doc = false;
    for (number, line) in (1..).zip(file.text.lines()) {
        let line = line.trim();
        if let Some(text) = line.strip_prefix("///") {
            doc = doc.filter(|_| was_doc).or(Some((number, text.trim())));
            was_doc = true;
            continue;
        }
        was_doc = false;
        if line.starts_with("pub ")
            && is_fn_start(line)
            && let Some((number, text)) = doc
            && !begins_with_verb(text)
        {
            let what = "documentation of a function that does not begin as `Returns` does";
            found.push(Finding::new(&file.path, number, what));
        }
        // Attributes stand between a comment and its function.
        if line.is_empty() || line.ends_with(['{', '}', ';']) {
            doc = None;
        }
    }
    found
}

/// Returns whether a text begins with a capitalised verb in the third person. An empty line begins
/// nothing: a macro wrote the line before it.
fn begins_with_verb(text: &str) -> bool {
    let is_behind = |c: char| !c.is_alphanumeric() && c != '_';
    let word = text.split(is_behind).next().unwrap_or("");
    let is_verb = word.len() > 2
        && word.starts_with(|c: char| c.is_ascii_uppercase())
        && word[1..].bytes().all(|b| b.is_ascii_lowercase())
        && word.ends_with('s');
    text.is_empty() || (is_verb && !OTHERS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Returns the lines of the findings.
    fn found(text: &str) -> Vec<usize> {
        let found = check(&File {
            path: PathBuf::from("crates/a/src/x.rs"),
            text: text.to_owned(),
        });
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_noun_or_an_imperative_in_front_is_found() {
        for doc in [
            "The price.",
            "Return the price.",
            "returns it.",
            "This decodes.",
            "`Some` if it is.",
        ] {
            let text = format!("/// {doc}\n/// Returns more.\n#[inline]\npub const fn f() {{}}\n");
            assert_eq!(found(&text), [1], "{doc}");
        }
    }

    #[test]
    fn verbs_and_what_is_no_public_function_are_free() {
        for text in [
            "/// Returns it.\npub fn f() {}",
            "/// Decodes.\n#[allow(\n    x,\n    reason = \"y\"\n)]\npub unsafe fn f() {}",
            "/// The price.\npub(crate) fn f() {}",
            "/// The price.\npub price: i64,\n}\npub fn f() {}",
            "/// The price.\npub price: i64,\n/// Returns it.\npub fn f() {}",
            "#[doc = $doc]\n///\n/// # Errors\npub fn f() {}",
        ] {
            assert!(found(text).is_empty(), "{text}");
        }
    }
}
