//! Rules on every text file: no trailing white space in code, no path of a private machine.

use super::{File, Finding};

/// Written in two halves so that this file passes its own rule.
const PRIVATE: [&str; 3] = [
    concat!("/ro", "ot/"),
    concat!("/wo", "rk/"),
    concat!("/ho", "me/"),
];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_code = file
        .path
        .extension()
        .is_some_and(|e| ["rs", "toml", "md", "sh", "yml"].iter().any(|x| e == *x));
    for (i, line) in file.text.lines().enumerate() {
        if is_code && line.ends_with([' ', '\t']) {
            found.push(Finding::new(&file.path, i + 1, "trailing white space"));
        }
        for p in PRIVATE.iter().filter(|p| line.contains(**p)) {
            found.push(Finding::new(
                &file.path,
                i + 1,
                format!("path of one machine: {p}"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn machine_paths_and_trailing_space_are_found() {
        let text = format!("a \nsee {}x\n", concat!("/ro", "ot/"));
        let found = check(&File {
            path: PathBuf::from("a.md"),
            text,
        });
        assert_eq!(found.len(), 2);
    }
}
