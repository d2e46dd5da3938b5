//! The tree's rules (ARCHITECTURE.md, "Rules that a test checks"), each a function from the tracked
//! files to findings. A finding names file and line, so that an editor can jump there.

mod cycles;
mod docs;
mod layers;
mod manifests;
mod source;
mod text;
mod tokens;
mod uses;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// A violation of a rule.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    file: PathBuf,
    line: usize,
    what: String,
}

impl Finding {
    fn new(file: &Path, line: usize, what: impl Into<String>) -> Self {
        Self {
            file: file.to_path_buf(),
            line,
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file.display(), self.line, self.what)
    }
}

/// A tracked file with its text; the path is relative to the root, with `/`.
pub(crate) struct File {
    path: PathBuf,
    text: String,
}

impl File {
    fn is_rust(&self) -> bool {
        self.path.extension().is_some_and(|e| e == "rs")
    }

    /// Returns NAME for `crates/NAME/...`.
    fn crate_name(&self) -> Option<&str> {
        let mut parts = self.path.iter();
        if parts.next()? != "crates" {
            return None;
        }
        parts.next()?.to_str()
    }
}

pub(crate) fn run(root: &Path) -> ExitCode {
    let files = match tracked(root) {
        Ok(files) => files,
        Err(e) => {
            eprintln!("tidy: {e}");
            return ExitCode::FAILURE;
        }
    };
    let mut findings: Vec<Finding> = Vec::new();
    for file in &files {
        if file.is_rust() {
            findings.extend(source::check(file));
            findings.extend(docs::check(file));
            findings.extend(layers::check(file));
        }
        findings.extend(text::check(file));
    }
    findings.extend(manifests::check(&files));
    findings.extend(cycles::check(&files));
    for f in &findings {
        println!("{f}");
    }
    if findings.is_empty() {
        println!("tidy: {} files, no findings", files.len());
        ExitCode::SUCCESS
    } else {
        println!("tidy: {} findings", findings.len());
        ExitCode::FAILURE
    }
}

/// Returns every text file that git tracks or would track.
fn tracked(root: &Path) -> Result<Vec<File>, String> {
    let list = Command::new("git")
        .args([
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ])
        .current_dir(root)
        .output()
        .map_err(|e| format!("cannot run git: {e}"))?;
    if !list.status.success() {
        return Err(String::from_utf8_lossy(&list.stderr).trim().to_owned());
    }
    let names = String::from_utf8_lossy(&list.stdout).into_owned();
    let files = names.split('\0').filter(|n| !n.is_empty());
    Ok(files
        .filter_map(|name| {
            let text = std::fs::read_to_string(root.join(name)).ok()?;
            Some(File {
                path: PathBuf::from(name),
                text,
            })
        })
        .collect())
}
