//! Checks that wire, fix, fast, feed and market are sans-I/O: no socket, file, thread or clock in
//! their sources.

use super::{File, Finding};

const SANS_IO: [&str; 5] = ["wire", "fix", "fast", "feed", "market"];
const OUTSIDE: [&str; 7] = [
    "std::net",
    "std::fs",
    "std::thread",
    "std::process",
    "std::env",
    "Instant::now",
    "SystemTime",
];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    let sans_io = file.crate_name().is_some_and(|c| SANS_IO.contains(&c));
    let in_src = file.path.iter().nth(2).is_some_and(|p| p == "src");
    if !sans_io || !in_src {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (i, line) in file.text.lines().enumerate() {
        // Unit tests are at the end of a file and are exempt.
        if matches!(line.trim(), "#[cfg(test)]" | "#[test]") {
            break;
        }
        let code = line.split("//").next().unwrap_or("");
        for word in OUTSIDE.iter().filter(|w| code.contains(**w)) {
            found.push(Finding::new(
                &file.path,
                i + 1,
                format!("`{word}` in a sans-I/O crate"),
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn found(path: &str, text: &str) -> usize {
        check(&File {
            path: PathBuf::from(path),
            text: text.to_owned(),
        })
        .len()
    }

    #[test]
    fn a_socket_in_a_sans_io_crate_is_found() {
        assert_eq!(
            found("crates/fix/src/a.rs", "use std::net::TcpStream;\n"),
            1
        );
        assert_eq!(
            found("crates/engine/src/a.rs", "use std::net::TcpStream;\n"),
            0
        );
    }

    #[test]
    fn tests_and_comments_are_free() {
        assert_eq!(found("crates/fix/src/a.rs", "// no std::fs here\n"), 0);
        assert_eq!(
            found(
                "crates/fix/src/a.rs",
                "#[cfg(test)]\nmod t { use std::fs; }\n"
            ),
            0
        );
        assert_eq!(found("crates/fix/tests/a.rs", "use std::fs;\n"), 0);
    }
}
