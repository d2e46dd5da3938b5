//! Tests of `fanfare fast` against a second codec, in Python in this folder: written from the
//! specification by an author who had not seen Fanfare's, slow and obvious. Random templates,
//! messages and damaged bytes come from seeds that are fixed here; `make oracle` continues with
//! further ones.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test"
)]

use std::path::Path;
use std::process::Command;

/// Checks this many documents from this seed on.
fn agrees(seed: u32, documents: u32) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/check.py");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("oracle-{seed}"));
    let mut python = Command::new("python3");
    python.arg("-B").arg(source);
    python.arg(env!("CARGO_BIN_EXE_fanfare")).arg(folder);
    python.args([seed.to_string(), documents.to_string()]);
    let out = python.output();
    let out = out.expect("python3, which scripts/setup.sh installs");
    let said = String::from_utf8_lossy(&out.stdout);
    let complained = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}{complained}");
    let counted = format!("documents={documents} ");
    assert!(said.starts_with(&counted), "{said}{complained}");
    assert!(said.ends_with(" different=0\n"), "{said}");
}

#[test]
fn two_readings_of_the_specification_agree() {
    agrees(100, 6);
}

#[test]
fn two_readings_of_the_specification_agree_again() {
    agrees(3000, 6);
}
