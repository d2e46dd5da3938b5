//! Tests of stores on full and read-only disks, and of too few descriptors, which only a privileged
//! process can set up. Without the privileges the tests print that they are skipped.

use crate::common::{Folder, Said, figure, said, with_program};
use crate::start_acceptor;
use std::process::Command;

/// Returns whether this shell command works here: the rights, and the programs that it needs.
fn can(script: &str) -> bool {
    let output = Command::new("sh").args(["-c", script]).output();
    let works = output.is_ok_and(|output| output.status.success());
    if !works {
        fanfare_peers::skipped(&format_args!("no right to `{script}`"));
    }
    works
}

/// Runs `fanfare throughput initiator` after a shell command that prepares its environment.
fn initiator(setup: &str, port: &str, args: &[&str]) -> Said {
    let script = format!("{setup} exec \"$0\" \"$@\"");
    let front = ["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_fanfare")];
    let middle = ["throughput", "initiator", "127.0.0.1", port];
    let all = [&front[..], &middle, args].concat();
    said(&mut with_program(Command::new("unshare"), &all))
}

#[test]
fn a_disk_that_fills_up_ends_the_session_by_name_and_what_was_kept_is_whole() {
    if !can("unshare -m mount -t tmpfs none /mnt") {
        return;
    }
    let (acceptor, port) = start_acceptor(&["--messages", "20000", "--json"]);
    let folder = Folder::new("full");
    let place = folder.path().to_str().unwrap();
    // Space for two segments and a half.
    let setup = format!("mount -t tmpfs -o size=2560k none {place};");
    let output = initiator(
        &setup,
        &port,
        &["--segment", "1M", "--store", place, "--json"],
    );
    let told = &output.err;
    assert_eq!(output.code, 1, "{told}");
    assert!(told.contains("disk full"), "{told}");
    let received = acceptor.end().json();
    let sent = figure(&output.json(), "sent");
    assert!(sent > 5_000.0 && sent < 20_000.0, "{sent}");
    assert_eq!(
        figure(&received, "received"),
        sent,
        "what was kept was sent"
    );
    assert_eq!(figure(&received, "wrong"), 0.0);
}

#[test]
fn a_store_with_no_room_or_no_right_to_write_is_named() {
    if !can("unshare -m mount -t tmpfs none /mnt") {
        return;
    }
    let folder = Folder::new("no-right-to-write");
    let place = folder.path().to_str().unwrap();
    for (option, expected) in [("ro", "is read-only"), ("size=256k", "the disk is full")] {
        let setup = format!("mount -t tmpfs -o {option} none {place};");
        let output = initiator(&setup, "1", &["--store", place]);
        let told = output.err;
        assert_eq!(output.code, 1, "{told}");
        assert!(
            told.contains(expected) && told.contains(&format!("{place}/FIX")),
            "{told}"
        );
    }
}

#[test]
fn too_few_descriptors_are_told_with_the_number_needed() {
    let drop_right = "setpriv --bounding-set=-sys_resource --inh-caps=-sys_resource";
    let front = if can(&format!("{drop_right} true")) {
        drop_right
    } else {
        ""
    };
    let script = format!("ulimit -Sn 100; ulimit -Hn 100; exec {front} \"$0\" \"$@\"");
    let args = [
        "-c",
        &script,
        env!("CARGO_BIN_EXE_fanfare"),
        "throughput",
        "initiator",
    ];
    let args = [&args[..], &["127.0.0.1", "1", "--sessions", "200"]].concat();
    let output = said(&mut with_program(Command::new("sh"), &args));
    let told = &output.err;
    assert_eq!(output.code, 1, "{told}");
    assert!(
        told.contains("200 sessions need") && told.contains("the limit is 100"),
        "{told}"
    );
}
