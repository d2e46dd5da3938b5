//! Rules on Rust source: line width, function and file length, banned words, unsafe.

use super::{File, Finding};

const LINE_MAX: usize = 100;
const FN_LINES_MAX: usize = 70;
const FILE_LINES_MAX: usize = 800;
/// Written in two halves so that this file passes its own rule.
const BANNED: [&str; 5] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("FIX", "ME"),
    concat!("#[ign", "ore"),
    concat!("dbg", "!("),
];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        if line.chars().count() > LINE_MAX {
            found.push(Finding::new(
                &file.path,
                i + 1,
                format!("line over {LINE_MAX} columns"),
            ));
        }
        for word in BANNED {
            if line.contains(word) {
                found.push(Finding::new(
                    &file.path,
                    i + 1,
                    format!("left-over `{word}`"),
                ));
            }
        }
    }
    let lines = file.text.lines().count();
    if lines > FILE_LINES_MAX {
        found.push(Finding::new(
            &file.path,
            1,
            format!("{lines} lines, over {FILE_LINES_MAX}"),
        ));
    }
    found.extend(long_functions(file));
    found.extend(unsafe_use(file));
    found
}

/// Returns functions over the limit, from the signature to the brace that closes at its
/// indentation. It relies on rustfmt's layout, which `make test` checks first.
fn long_functions(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut open: Vec<(usize, usize)> = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        let indent = line.len() - line.trim_start().len();
        if is_fn_start(line.trim_start()) && !line.trim_end().ends_with(['}', ';']) {
            open.push((indent, i));
        } else if let Some(&(at, start)) = open.last()
            && indent == at
            && (line.trim() == "}" || line.trim_end().ends_with(';'))
        {
            open.pop();
            let n = i - start + 1;
            if n > FN_LINES_MAX {
                let what = format!("function of {n} lines, over {FN_LINES_MAX}");
                found.push(Finding::new(&file.path, start + 1, what));
            }
        }
    }
    found
}

/// Returns whether a line without its indentation begins a function.
pub(super) fn is_fn_start(line: &str) -> bool {
    let mut rest = line;
    for prefix in [
        "pub(crate) ",
        "pub(super) ",
        "pub ",
        "const ",
        "async ",
        "unsafe ",
    ] {
        rest = rest.strip_prefix(prefix).unwrap_or(rest);
    }
    let rest = rest.strip_prefix("extern \"C\" ").unwrap_or(rest);
    rest.starts_with("fn ")
}

/// Reports `unsafe` outside the places that ARCHITECTURE.md allows; elsewhere the crate's lints
/// forbid it.
fn unsafe_use(file: &File) -> Vec<Finding> {
    let path = file.path.to_string_lossy();
    let may_hold = path.starts_with("crates/wire/src")
        || path.starts_with("crates/engine/src/sys")
        || path.starts_with("crates/dds/src/sys")
        || path.starts_with("crates/instruments/src/raw_dds/sys")
        || path.starts_with("crates/counting/src");
    let is_root = path.ends_with("src/lib.rs") || path.ends_with("src/main.rs");
    let mut found = Vec::new();
    let denies = ["#![forbid(unsafe_code)]", "#![deny(unsafe_code)]"];
    let is_fuzz = path.starts_with("fuzz/");
    if is_root && !is_fuzz && !denies.iter().any(|d| file.text.contains(d)) {
        found.push(Finding::new(
            &file.path,
            1,
            "crate root neither forbids nor denies unsafe",
        ));
    }
    if may_hold {
        return found;
    }
    for (i, line) in file.text.lines().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        let opens = [
            concat!("unsafe", " {"),
            concat!("unsafe", " fn"),
            concat!("unsafe", " impl"),
        ];
        if opens.iter().any(|o| code.contains(o)) {
            found.push(Finding::new(
                &file.path,
                i + 1,
                "unsafe outside the permitted modules",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn file(path: &str, text: String) -> File {
        File {
            path: PathBuf::from(path),
            text,
        }
    }

    #[test]
    fn a_long_function_is_found_and_a_short_one_is_not() {
        let body = "    let x = 1;\n".repeat(69);
        let long = file("crates/a/src/x.rs", format!("fn f() {{\n{body}}}\n"));
        assert_eq!(check(&long).len(), 1);
        let short = file(
            "crates/a/src/x.rs",
            format!("fn f() {{\n{}}}\n", &body[15..]),
        );
        assert_eq!(check(&short), []);
    }

    #[test]
    fn a_method_in_an_impl_is_measured_by_its_own_indentation() {
        let body = "        let x = 1;\n".repeat(80);
        let text = format!("impl A {{\n    pub fn f(&self) {{\n{body}    }}\n}}\n");
        let found = check(&file("crates/a/src/x.rs", text));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].line, 2);
    }

    #[test]
    fn unsafe_is_found_outside_its_places_only() {
        let text = concat!("fn f() {\n    unsafe", " { g() }\n}\n").to_owned();
        assert_eq!(check(&file("crates/fix/src/x.rs", text.clone())).len(), 1);
        assert_eq!(check(&file("crates/engine/src/sys/x.rs", text)), []);
    }

    #[test]
    fn wide_lines_and_left_over_marks_are_found() {
        let text = format!("// {}\n// {}\n", "x".repeat(98), concat!("FIX", "ME"));
        assert_eq!(check(&file("crates/a/src/x.rs", text)).len(), 2);
    }
}
