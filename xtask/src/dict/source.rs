//! Fetches the package that contains the FIX Repository. Cargo downloads and verifies it; the
//! checksum of the package is pinned here, so that another package is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::read;

const PACKAGE: &str = "truefix-dict";
const PACKAGE_VERSION: &str = "0.1.10";
const PACKAGE_SHA256: &str = "65cf6b998c3a949ea70b58b997075f18d84984c9cdd79a5e8f47f61b697250f4";

/// Vendors the package under target/ and returns the folder of the Repository in it.
pub(super) fn fetch(root: &Path) -> Result<PathBuf, String> {
    let work = root.join("target/dict-source");
    let vendored = work.join("vendor");
    let package = vendored.join(PACKAGE);
    if !package.exists() {
        vendor(&work, &vendored)?;
    }
    let checksums = read(&package.join(".cargo-checksum.json"))?;
    if !checksums.contains(&format!("\"package\":\"{PACKAGE_SHA256}\"")) {
        return Err(format!(
            "{PACKAGE} {PACKAGE_VERSION} is not the pinned package"
        ));
    }
    Ok(package.join("dict-src/fix-repository"))
}

/// Vendors the package into a folder, which has its name once it is whole.
fn vendor(work: &Path, whole: &Path) -> Result<(), String> {
    let manifest = format!(
        "[package]\nname = \"dict-source\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n\
         [dependencies]\n{PACKAGE} = \"={PACKAGE_VERSION}\"\n\n[workspace]\n"
    );
    let io = |e: std::io::Error| format!("{}: {e}", work.display());
    let part = work.join("part");
    for old in [part.as_path(), whole] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(io)?;
        }
    }
    fs::create_dir_all(work.join("src")).map_err(io)?;
    fs::write(work.join("Cargo.toml"), manifest).map_err(io)?;
    fs::write(work.join("src/lib.rs"), "").map_err(io)?;
    let status = Command::new("cargo")
        .args(["vendor", "--quiet"])
        .arg(&part)
        .current_dir(work)
        .stdout(std::process::Stdio::null())
        .status()
        .map_err(|e| format!("cargo vendor: {e}"))?;
    if !status.success() {
        return Err(format!("cargo vendor failed in {}", work.display()));
    }
    fs::rename(&part, whole).map_err(io)
}
