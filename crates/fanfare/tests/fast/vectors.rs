//! Runs the codec's vectors through the binary, and checks its output and exit status.

use crate::common::Folder;
use crate::run::run;
use crate::vectors_table::{Case, cases};
use serde_json::Value;
use std::path::Path;

fn all() -> Vec<Case> {
    cases(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../fast/tests/vectors"))
}

/// Returns the lines of messages, and the error in the format of a case, of which there is one at
/// most.
fn told(out: &str) -> (Vec<String>, Option<String>) {
    let (mut lines, mut told) = (Vec::new(), None);
    for line in out.lines() {
        let value: Value = serde_json::from_str(line).unwrap();
        let Some(code) = value["error"].as_str() else {
            lines.push(line.to_owned());
            continue;
        };
        assert_eq!(told, None, "{out}");
        assert!(value["message"].is_string() && value.get("template").is_some());
        let path = value["field"].as_str().unwrap_or_default();
        let text = format!("{code}@{} {path}", value["offset"]);
        told = Some(text.trim_end().to_owned());
    }
    (lines, told)
}

#[test]
fn decode_says_what_the_bytes_mean() {
    let folder = Folder::new("vectors-decode");
    for case in all().iter().filter(|case| case.decodes()) {
        let templates = folder.with("t.xml", case.document());
        let file = folder.with("stream.dat", &case.bytes);
        let said = run(&[
            "decode", "-t", &templates, "-f", &file, "--header", "none", "--format", "json",
        ]);
        let (lines, error) = told(&said.out);
        assert_eq!(lines, case.lines, "{}", case.name);
        case.check_error(error.as_deref(), &case.name);
        let code = i32::from(case.error.is_some());
        assert_eq!(said.code, code, "{}", case.name);
    }
}

#[test]
fn encode_writes_those_bytes() {
    let folder = Folder::new("vectors-encode");
    for case in all().iter().filter(|case| case.encodes()) {
        let templates = folder.with("t.xml", case.document());
        let lines = folder.with("lines.jsonl", case.lines.join("\n"));
        let out = folder.file("out.dat");
        let said = run(&[
            "encode", "-t", &templates, "-f", &lines, "-o", &out, "--header", "none",
        ]);
        let (none, error) = told(&said.out);
        assert!(none.is_empty(), "{}: {none:?}", case.name);
        case.check_error(error.as_deref(), &case.name);
        let code = i32::from(case.error.is_some());
        assert_eq!(said.code, code, "{}", case.name);
        assert_eq!(folder.read("out.dat"), case.bytes, "{}", case.name);
    }
}
