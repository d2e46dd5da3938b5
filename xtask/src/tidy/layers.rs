//! Checks that wire, fix, fast, feed and market are sans-I/O: no socket, file, thread or clock in
//! their sources.

use super::cycles::module;
use super::uses::uses;
use super::{File, Finding};

const SANS_IO: [&str; 5] = ["wire", "fix", "fast", "feed", "market"];
const OUTSIDE: [&[&str]; 11] = [
    &["std", "net"],
    &["std", "fs"],
    &["std", "thread"],
    &["std", "process"],
    &["std", "env"],
    &["unix", "net"],
    &["io", "stdin"],
    &["io", "stdout"],
    &["io", "stderr"],
    &["Instant", "now"],
    &["SystemTime"],
];

pub(crate) fn check(file: &File) -> Vec<Finding> {
    let sans_io = file.crate_name().is_some_and(|c| SANS_IO.contains(&c));
    if !sans_io || module(&file.path).is_none() {
        return Vec::new();
    }
    let uses = uses(&file.text);
    let exports = uses.exports.iter().map(|(_, path)| path);
    let mut found = Vec::new();
    for path in uses.paths.iter().chain(exports) {
        for outside in OUTSIDE {
            let mut parts = path.segments.windows(outside.len());
            if parts.any(|part| part == outside) {
                found.push(Finding::new(
                    &file.path,
                    path.line,
                    format!("`{}` in a sans-I/O crate", outside.join("::")),
                ));
            }
        }
    }
    // Under another name, what is outside would pass.
    for path in &uses.renamed {
        if path.segments.last().is_some_and(|last| is_front(last)) {
            found.push(Finding::new(
                &file.path,
                path.line,
                format!("`{}` under another name", path.segments.join("::")),
            ));
        }
    }
    found
}

/// Returns whether a longer path to what is outside begins with this name.
fn is_front(name: &str) -> bool {
    let mut longer = OUTSIDE.iter().filter(|outside| outside.len() > 1);
    longer.any(|outside| outside.first() == Some(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Returns the lines of the findings.
    fn found(path: &str, text: &str) -> Vec<usize> {
        let found = check(&File {
            path: PathBuf::from(path),
            text: text.to_owned(),
        });
        found.iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_socket_in_a_sans_io_crate_is_found() {
        let text = "use std::net::TcpStream;\n";
        assert_eq!(found("crates/fix/src/a.rs", text), [1]);
        assert!(found("crates/engine/src/a.rs", text).is_empty());
    }

    #[test]
    fn every_way_to_name_what_is_outside_is_found() {
        for text in [
            "\npub use std::fs;",
            "use std::{\nfs::File, sync::Arc};",
            "fn f() {\nstd::thread::spawn(g) }",
            "use std::time::Instant; fn f() {\nInstant::now() }",
            "use std::time::{Duration,\nSystemTime};",
            "\nuse std::os::unix::net::UnixStream;",
            "use std::io; fn f() {\nio::stdin() }",
            "fn f() {\nstd::io::stdout() }",
            "\nuse std::time::Instant as T; fn f() { T::now() }",
            "\npub use std::{io as i};",
        ] {
            assert_eq!(found("crates/fix/src/a.rs", text), [2], "{text}");
        }
        let both = "use std::{fs, net};";
        assert_eq!(found("crates/fix/src/a.rs", both), [1, 1]);
    }

    #[test]
    fn what_is_inside_may_have_another_name() {
        let text = "use std::io::{self, Write as _}; use std::fmt as f;";
        assert!(found("crates/fix/src/a.rs", text).is_empty());
    }

    #[test]
    fn what_stands_behind_tests_is_found() {
        let text = "#[cfg(test)]\nmod tests;\n\nfn f(s: std::net::TcpStream) {}\n";
        assert_eq!(found("crates/fix/src/a.rs", text), [4]);
    }

    #[test]
    fn tests_and_comments_are_free() {
        for text in [
            "// no std::fs here\n",
            "#[cfg(test)]\nmod t { use std::fs; }\n",
            "#[test]\nfn f() { std::env::var(\"A\") }\n",
        ] {
            assert!(found("crates/fix/src/a.rs", text).is_empty(), "{text}");
        }
        for path in ["crates/fix/src/a/tests.rs", "crates/fix/tests/a.rs"] {
            assert!(found(path, "use std::fs;\n").is_empty(), "{path}");
        }
    }
}
