//! Tests of `fanfare history export` with a log that the test writes.

use crate::common::log::{events, others, write};
use crate::common::{Folder, Running, Said, fails, fanfare, run, told};
use crate::history::{history, whole};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, Read};
use std::path::Path;

/// Exports a log. The exit status is 1 if something is missing, and then the file is whole, too.
pub(crate) fn export(log: &str, to: &str, args: &[&str]) -> Said {
    let said = run(&[&["history", "export", log, "-o", to], args].concat());
    let reasons = ["missing in the log", "values that DBN cannot hold"];
    let is_less = reasons.iter().any(|reason| said.err.contains(reason));
    assert_eq!(said.code, i32::from(is_less), "{}", said.err);
    said
}

#[test]
fn what_is_exported_is_what_cat_prints() {
    let folder = Folder::new("history-export");
    let log = whole(&folder);
    let to = folder.file("out");
    let cat = history(&["cat", &log, "--json"]);
    let said = export(&log, &to, &["--format", "json"]);
    assert_eq!(fs::read_to_string(&to).unwrap(), cat.out);
    assert!(
        said.err.contains("5 events missing in the log"),
        "{}",
        said.err
    );
    assert!(said.err.contains("82 events in "), "{}", said.err);
    export(&log, &to, &["--format", "csv"]);
    let csv = fs::read_to_string(&to).unwrap();
    let lines: Vec<_> = csv.lines().collect();
    assert_eq!(lines.len(), 1 + 82 + 1);
    let second = "3,1795435201000000000,1795435200999999000,1,1,BETA,1001,level,new,0,,100,2,,1";
    assert_eq!(lines[3], second.to_owned() + ",false,true,8,,");
    assert!(lines[76].starts_with("76,,,,,,,lost,") && lines[76].ends_with(",80,"));
    assert!(
        lines[77].ends_with(r#","{""tick"":""0.01""}""#),
        "{}",
        lines[77]
    );
    assert!(lines[80].contains(",statistic,,7,,-2.5,,"), "{}", lines[80]);
    let part = [
        "--format", "csv", "--symbol", "GAMMA", "--kind", "trade", "--from", "+30",
    ];
    export(&log, &to, &part);
    let wanted = [32, 44, 56].map(|second| format!(",{second},"));
    let part = fs::read_to_string(&to).unwrap();
    let trades: Vec<_> = part
        .lines()
        .skip(1)
        .filter(|line| !line.contains("lost"))
        .collect();
    assert_eq!(trades.len(), 3);
    assert!(
        trades
            .iter()
            .zip(&wanted)
            .all(|(line, id)| line.contains(id)),
        "{part}"
    );
    let stdout = export(&log, "-", &["--format", "json"]);
    assert_eq!(stdout.out, cat.out);
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "the log and the file"
    );
}

#[test]
fn what_an_export_cannot_have_is_a_failure() {
    let folder = Folder::new("history-less");
    let log = folder.file("log");
    let mut messages = events(60);
    // The price of DBN is a number of 64 bits, a size one of 32.
    messages[40][0].size = 1 << 40;
    write(Path::new(&log), &messages);
    let to = folder.file("out");
    let said = export(&log, &to, &["--format", "dbn"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.err.contains("values that DBN cannot hold"),
        "{}",
        said.err
    );
    assert!(folder.read("out").starts_with(b"DBN"));
    for more in [
        &["--format", "csv"][..],
        &["--format", "dbn", "--to", "+30"],
    ] {
        assert_eq!(export(&log, &to, more).code, 0);
    }
    messages.push(others(&messages));
    let log = folder.file("gap");
    write(Path::new(&log), &messages);
    let said = export(&log, &to, &["--format", "json"]);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(
        said.err.contains("5 events missing in the log"),
        "{}",
        said.err
    );
}

#[test]
fn an_export_leaves_a_whole_file_or_none() {
    let folder = Folder::new("history-full");
    let log = whole(&folder);
    let missing = folder.file("nowhere/out");
    let itself = folder.path().to_str().unwrap();
    for (args, why) in [
        (&["-o", "/dev/full", "--format", "csv"][..], "No space left"),
        (&["-o", &missing, "--format", "csv"], "No such file"),
        (&["-o", itself, "--format", "csv"], "is a directory"),
    ] {
        let said = fails(&[&["history", "export", &log], args].concat());
        assert!(said.contains(why), "{why}: {said}");
    }
    for (args, why) in [
        (
            &["-o", &missing, "--format", "csv", "--schema", "mbo"],
            "--schema needs",
        ),
        (
            &["-o", "-", "--format", "dbn", "--schema", "mbp-1,mbp-10"],
            "exclude each other",
        ),
    ] {
        let said = told(&[&["history", "export", &log], &args[..]].concat(), 2);
        assert!(said.contains(why), "{why}: {said}");
    }
    let mut formats = vec!["csv", "json", "dbn"];
    formats.extend(cfg!(feature = "parquet").then_some("parquet"));
    for format in formats {
        let args = ["export", &log, "-o", "/dev/full", "--format", format];
        let said = fails(&[&["history"], &args[..]].concat());
        assert!(
            said.contains("cannot write `/dev/full`"),
            "{format}: {said}"
        );
        assert!(said.contains("No space left"), "{format}: {said}");
    }
    let out = folder.with("out", "as it was");
    // A limit of the file's size is equivalent to a full disk.
    let mut limited = fanfare(&["history", "export", &log, "-o", &out, "--format", "json"]);
    let binary = limited.get_program().to_owned();
    let args: Vec<_> = limited.get_args().map(|arg| arg.to_owned()).collect();
    limited = crate::common::with_program(std::process::Command::new("sh"), &[]);
    limited
        .args(["-c", "ulimit -f 1; exec \"$@\"", "sh"])
        .arg(binary)
        .args(args);
    let said = crate::common::said(&mut limited);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("cannot write"), "{}", said.err);
    assert_eq!(folder.read("out"), b"as it was");
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "the log and the file"
    );
}

#[test]
fn ctrl_c_completes_an_export_with_what_was_written() {
    let folder = Folder::new("history-stop");
    let log = folder.file("log");
    write(Path::new(&log), &events(20_000));
    let args = ["history", "export", &log, "-o", "-", "--format", "json"];
    let (export, mut out) = Running::start_unread(&mut fanfare(&args));
    let mut text = String::new();
    out.read_line(&mut text).unwrap();
    // The export is blocked on the pipe, within the first events.
    export.interrupt();
    out.read_to_string(&mut text).unwrap();
    let said = export.end().succeeded();
    assert!(said.err.contains("ended by Ctrl-C"), "{}", said.err);
    let count = text.lines().count();
    assert!((1_000..25_000).contains(&count), "{count}");
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    assert_eq!(
        (&last["number"], text.ends_with('\n')),
        (&count.into(), true)
    );
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_program_without_parquet_says_so() {
    let folder = Folder::new("history-no-parquet");
    let log = whole(&folder);
    let args = ["history", "export", &log, "--format", "parquet", "-o"];
    let said = fails(&[&args[..], &[&folder.file("out")]].concat());
    assert!(said.contains("--features parquet"), "{said}");
}
