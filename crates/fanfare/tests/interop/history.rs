//! Tests that PyPI's duckdb, polars, pandas and databento read exports of a log.

use crate::common::log::{events, others, write};
use crate::common::{Folder, Running, done, fanfare, said};
use crate::engines::{frames, source};
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// Writes a file with the output of an export that Ctrl-C ended early.
fn interrupted(folder: &Folder, log: &Path, format: &str) {
    let mut command = fanfare(&["history", "export", "--format", format, "-o", "-"]);
    let (export, mut out) = Running::start_unread(command.arg(log));
    let mut bytes = vec![0; 100_000];
    out.read_exact(&mut bytes).unwrap();
    // The export is blocked on the pipe.
    export.interrupt();
    out.read_to_end(&mut bytes).unwrap();
    let said = export.end().succeeded();
    assert!(said.err.contains("ended by Ctrl-C"), "{}", said.err);
    folder.with(&format!("cut.{format}"), bytes);
}

#[test]
fn frames_read_what_cat_prints() {
    let Some(python) = frames() else {
        return;
    };
    let folder = Folder::new("interop-history");
    let log = folder.path().join("log");
    let mut messages = events(600);
    messages.push(others(&messages));
    write(&log, &messages);
    let log = log.to_str().unwrap().to_owned();
    let cat = done(&mut fanfare(&["history", "cat", &log, "--json"]));
    folder.with("cat", cat.out);
    let mut formats = vec!["csv", "dbn"];
    if cfg!(feature = "parquet") {
        formats.push("parquet");
    }
    for format in &formats {
        let to = folder.file(&format!("day.{format}"));
        let mut export = fanfare(&["history", "export", &log, "--format", format, "-o", &to]);
        let said = said(&mut export);
        // The log has a gap.
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.err.contains("5 events missing"), "{}", said.err);
    }
    // The log has several row groups.
    let log = folder.path().join("long");
    write(&log, &events(240_000));
    for format in &formats {
        interrupted(&folder, &log, format);
    }
    if cfg!(feature = "parquet") {
        let to = folder.file("long.parquet");
        let args = ["--format", "parquet", "-o", &to];
        done(fanfare(&["history", "export"]).arg(log).args(args));
    }
    let mut judge = Command::new(python);
    let out = judge
        .arg(source("frames.py"))
        .arg(folder.path())
        .arg(concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../docs/history.md"
        ))
        .output()
        .unwrap();
    assert!(
        out.status.success(),
        "{}",
        String::from_utf8_lossy(&out.stderr)
    );
}
