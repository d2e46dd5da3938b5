//! Checks that each crate takes lints and versions from the root, has a README, and depends only on
//! the crates below it.

use super::{File, Finding};
use std::path::{Path, PathBuf};

/// The crates of this workspace that each crate may use. A crate that is not listed here may not
/// exist.
const MAY_USE: [(&str, &[&str]); 16] = [
    ("peers", &["engine"]),
    ("generated", &["wire", "fast"]),
    ("wire", &[]),
    ("counting", &[]),
    ("fix", &["wire"]),
    ("fast", &["wire"]),
    ("feed", &["wire", "fast"]),
    ("market", &["wire", "fix", "fast", "feed"]),
    ("history", &["wire", "market"]),
    ("dds", &["wire", "fast"]),
    ("engine", &["wire", "fix", "fast", "feed"]),
    ("operator", &["wire", "fix", "engine"]),
    (
        "gateway",
        &[
            "wire", "engine", "fix", "fast", "feed", "market", "dds", "history", "operator",
        ],
    ),
    ("console", &["engine", "gateway", "operator"]),
    (
        "instruments",
        &[
            "wire", "engine", "fix", "fast", "feed", "market", "dds", "history", "gateway",
        ],
    ),
    (
        "fanfare",
        &[
            "wire",
            "fix",
            "fast",
            "feed",
            "market",
            "history",
            "dds",
            "engine",
            "operator",
            "gateway",
            "console",
            "instruments",
        ],
    ),
];

pub(crate) fn check(files: &[File]) -> Vec<Finding> {
    let manifests = files.iter().filter(|f| f.path.ends_with("Cargo.toml"));
    let mut found = Vec::new();
    for file in manifests {
        let Some(name) = file.crate_name() else {
            continue;
        };
        let readme = PathBuf::from("crates").join(name).join("README.md");
        if !files.iter().any(|f| f.path == readme) {
            found.push(Finding::new(&file.path, 1, "crate without a README.md"));
        }
        found.extend(check_one(&file.path, name, &file.text));
    }
    found
}

fn check_one(path: &Path, name: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    if !text.contains("[lints]\nworkspace = true") {
        found.push(Finding::new(
            path,
            1,
            "crate without `[lints] workspace = true`",
        ));
    }
    let Some((_, may)) = MAY_USE.iter().find(|(n, _)| *n == name) else {
        found.push(Finding::new(
            path,
            1,
            "crate missing from the table of layers",
        ));
        return found;
    };
    let mut section = "";
    for (i, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            section = line;
        }
        let Some(rest) = line.strip_prefix("fanfare-") else {
            continue;
        };
        let used = rest.split(['.', ' ', '=']).next().unwrap_or("");
        if is_built_from(section) && !may.contains(&used) {
            found.push(Finding::new(
                path,
                i + 1,
                format!("`{name}` may not use `{used}`"),
            ));
        }
    }
    found
}

/// Returns whether the crate is built from what the section names, on any platform.
fn is_built_from(section: &str) -> bool {
    section.ends_with("dependencies]") && !section.ends_with("dev-dependencies]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn an_arrow_against_the_layers_is_found() {
        let found = |section: &str, used: &str| {
            let text = format!("{section}\nfanfare-{used}.workspace = true\n{LINTS}");
            check_one(Path::new("crates/fix/Cargo.toml"), "fix", &text).len()
        };
        for section in [
            "[dependencies]",
            "[build-dependencies]",
            "[target.'cfg(unix)'.dependencies]",
        ] {
            assert_eq!(found(section, "engine"), 1, "{section}");
            assert_eq!(found(section, "wire"), 0, "{section}");
        }
        for section in [
            "[dev-dependencies]",
            "[target.'cfg(unix)'.dev-dependencies]",
        ] {
            assert_eq!(found(section, "engine"), 0, "{section}");
        }
    }

    #[test]
    fn a_crate_without_the_shared_lints_is_found() {
        assert_eq!(
            check_one(Path::new("crates/fix/Cargo.toml"), "fix", "[package]\n").len(),
            1
        );
    }
}
