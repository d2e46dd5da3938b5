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
        if file.path == Path::new("Cargo.toml") {
            found.extend(other_names(&file.path, &file.text));
        }
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
    let used = dependencies(text).into_iter();
    for (line, _, used) in used.filter(|(_, _, used)| !may.contains(used)) {
        found.push(Finding::new(
            path,
            line,
            format!("`{name}` may not use `{used}`"),
        ));
    }
    found
}

/// Reports crates that the workspace has under another name, which would hide their use.
fn other_names(path: &Path, text: &str) -> Vec<Finding> {
    let renamed = dependencies(text).into_iter().filter(|(_, line, name)| {
        let own = format!("fanfare-{name} ");
        !line.starts_with(&own)
    });
    renamed
        .map(|(line, _, name)| Finding::new(path, line, format!("`{name}` under another name")))
        .collect()
}

/// Returns the crates of this workspace that a manifest is built from, with the number of the line
/// and the line. Every mention counts: a key, a header, or the `package` of another name.
fn dependencies(text: &str) -> Vec<(usize, &str, &str)> {
    let mut section = "";
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or("").trim();
        if line.starts_with('[') && line.ends_with(']') {
            section = line;
        }
        let key = line.split('=').next().unwrap_or("");
        if is_built_from(section) || is_built_from(key) {
            let mentions = line.split("fanfare-").skip(1);
            let is_behind = |c: char| !c.is_ascii_alphanumeric() && c != '-';
            let names = mentions.filter_map(|rest| rest.split(is_behind).next());
            found.extend(names.map(|name| (number, line, name)));
        }
    }
    found
}

/// Returns whether a crate is built from what a header or a key names, on any platform.
fn is_built_from(place: &str) -> bool {
    place.split('.').any(|part| {
        let bare = part.trim_matches(['[', ']', '"', '\'', ' ']);
        matches!(bare, "dependencies" | "build-dependencies")
    })
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
    fn every_way_to_name_a_crate_is_found() {
        for text in [
            "[dependencies.fanfare-engine]\nworkspace = true",
            "[target.'cfg(unix)'.dependencies.fanfare-engine]\nworkspace = true",
            "[dependencies]\ne = { package = \"fanfare-engine\", path = \"../engine\" }",
            "[dependencies.e]\npackage = \"fanfare-engine\"",
            "[ dependencies ] # of ours\n  \"fanfare-engine\" = { workspace = true }",
            "dependencies.fanfare-engine.workspace = true",
        ] {
            let text = format!("{text}\n{LINTS}");
            let found = check_one(Path::new("crates/fix/Cargo.toml"), "fix", &text);
            assert_eq!(found.len(), 1, "{text}");
        }
        let workspace = |line: &str| {
            let text = format!("[workspace.dependencies]\n{line}\n");
            other_names(Path::new("Cargo.toml"), &text).len()
        };
        assert_eq!(workspace("fanfare-fix = { path = \"crates/fix\" }"), 0);
        assert_eq!(workspace("f = { package = \"fanfare-fix\" }"), 1);
    }

    #[test]
    fn a_crate_without_the_shared_lints_is_found() {
        assert_eq!(
            check_one(Path::new("crates/fix/Cargo.toml"), "fix", "[package]\n").len(),
            1
        );
    }
}
