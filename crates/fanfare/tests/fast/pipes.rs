//! Tests of pipes, Ctrl-C, and files that are read and written at once.

use crate::common::{Folder, Running, fanfare, figure, figures};
use crate::run::run;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const LINE: &str = "{\"template\": \"Done\", \"fields\": {\"MessageType\": 99}}\n";

/// Starts a command of the group whose stdin is a pipe, in a group of its own.
fn piped(args: &[&str]) -> Running {
    let mut command = fanfare(&[&["fast"], args].concat());
    command.stdin(Stdio::piped()).process_group(0);
    Running::start(&mut command)
}

#[test]
fn a_stream_without_packets_is_shown_as_it_comes() {
    let folder = Folder::new("stream");
    let file = folder.file("stream.dat");
    let generate = ["generate", "simple", "-n", "3", "--header", "none"];
    run(&[&generate[..], &["-o", &file]].concat()).succeeded();
    let bytes = folder.read("stream.dat");
    for (command, what) in [("decode", "ExchangeId="), ("explain", "ExchangeId(")] {
        let args = [
            command,
            "-t",
            "builtin:simple",
            "-f",
            "-",
            "--header",
            "none",
        ];
        let mut running = piped(&args);
        let mut pipe = running.stdin();
        // A message and a half, then the rest: each message is shown before the next one is
        // written.
        let (first, rest) = bytes.split_at(bytes.len() / 2);
        pipe.write_all(first).unwrap();
        running.prints(what);
        pipe.write_all(rest).unwrap();
        running.prints("Done");
        drop(pipe);
        assert_eq!(running.end().code, 0, "{command}");
    }
}

#[test]
fn a_stream_without_packets_has_its_numbers_checked_as_it_comes() {
    let folder = Folder::new("numbered-stream");
    let xml = "<template name='T' id='1'><uInt32 name='MsgSeqNum' id='34'><increment/></uInt32>\
               </template>";
    let templates = folder.with("t.xml", xml);
    // More than a packet can have, without 500, 501 and 70,000.
    let numbers = (1..=100_000).filter(|number| ![500, 501, 70_000].contains(number));
    let line =
        |number| format!("{{\"template\": \"T\", \"fields\": {{\"MsgSeqNum\": {number}}}}}\n");
    let lines = folder.with("lines.jsonl", numbers.map(line).collect::<String>());
    let file = folder.file("stream.dat");
    let encode = ["encode", "-t", &templates, "-f", &lines, "-o", &file];
    run(&[&encode[..], &["--header", "none"]].concat()).succeeded();
    let decode = [
        "decode",
        "-t",
        &templates,
        "--header",
        "none",
        "--sequence",
        "34",
        "-f",
    ];
    let said = run(&[&decode[..], &[&*file]].concat()).succeeded();
    assert_eq!(said.out.lines().count(), 99_997);
    assert!(said.out.ends_with("T MsgSeqNum=100000\n"));
    for text in [
        "gap: 500 to 501 missing (2)",
        "gap: 70000 to 70000 missing (1)",
        "3 sequence numbers missing",
    ] {
        assert!(said.err.contains(text), "{text} in {}", said.err);
    }
    let mut running = piped(&[&decode[..], &["-"]].concat());
    let mut pipe = running.stdin();
    let bytes = folder.read("stream.dat");
    pipe.write_all(&bytes[..3]).unwrap();
    running.prints("MsgSeqNum=1");
    pipe.write_all(&bytes[3..5]).unwrap();
    drop(pipe);
    assert_eq!(running.end().code, 0);
}

#[test]
fn packets_whose_numbers_are_checked_are_shown_as_they_come() {
    let folder = Folder::new("numbered");
    let file = folder.file("feed.dat");
    let preamble = ["--preamble", "seq32le"];
    let generate = ["generate", "simple", "-n", "3", "-p", "1", "-o", &file];
    run(&[&generate[..], &preamble].concat()).succeeded();
    let decode = ["decode", "-t", "builtin:simple", "-f", "-"];
    let mut running = piped(&[&decode[..], &preamble].concat());
    let mut pipe = running.stdin();
    pipe.write_all(&folder.read("feed.dat")).unwrap();
    running.prints("Quote");
    running.prints("Done");
    drop(pipe);
    assert_eq!(running.end().code, 0);
}

#[test]
fn what_is_encoded_of_a_pipe_goes_on_before_it_waits_for_more() {
    let mut command = fanfare(&[
        "fast",
        "encode",
        "-t",
        "builtin:simple",
        "-f",
        "-",
        "-o",
        "-",
    ]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    let mut out = child.stdout.take().unwrap();
    let mut packet = [0; 6];
    for _ in 0..2 {
        pipe.write_all(LINE.as_bytes()).unwrap();
        out.read_exact(&mut packet).unwrap();
        assert_eq!(packet, [2, 0, 0, 0, 0xc0, 0xe3]);
    }
    drop(pipe);
    assert!(child.wait().unwrap().success());
}

#[test]
fn ctrl_c_keeps_what_was_encoded() {
    let folder = Folder::new("encode-int");
    let out = folder.file("out.dat");
    let args = ["encode", "-t", "builtin:simple", "-f", "-", "-o", &out];
    let mut running = piped(&[&args[..], &["--packet-messages", "2", "--json"]].concat());
    let mut pipe = running.stdin();
    // Three lines and half a line: the second packet is not full, the half is ignored.
    pipe.write_all(LINE.repeat(3).as_bytes()).unwrap();
    pipe.write_all(b"{\"template\"").unwrap();
    while !std::fs::read(&out).is_ok_and(|bytes| !bytes.is_empty()) {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    running.interrupt();
    let said = running.end();
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(figures(&said.out)["messages"], 3);
    assert_eq!(folder.read("out.dat").len(), (4 + 3) + (4 + 2));
    drop(pipe);
}

#[test]
fn ctrl_c_ends_the_wait_for_the_writer_of_a_fifo() {
    let folder = Folder::new("fifo");
    let fifo = folder.file("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status();
    assert!(made.unwrap().success());
    let running = piped(&["decode", "-t", "builtin:simple", "-f", &fifo]);
    running.interrupt();
    running.end().succeeded();
}

#[test]
fn ctrl_c_ends_a_feed_without_its_end() {
    let folder = Folder::new("generate-int");
    let args = [
        "generate",
        "simple",
        "-n",
        "1000000000",
        "-o",
        "-",
        "--json",
    ];
    let mut command = fanfare(&[&["fast"], &args[..]].concat());
    let (running, mut out) = {
        command.process_group(0);
        Running::start_unread(&mut command)
    };
    let mut some = [0; 100_000];
    out.read_exact(&mut some).unwrap();
    running.interrupt();
    let mut rest = Vec::new();
    out.read_to_end(&mut rest).unwrap();
    let said = running.end();
    assert_eq!(said.code, 1);
    assert!(said.err.contains("interrupted"), "{}", said.err);
    // The existing part consists of whole packets.
    let file = folder.with("feed.dat", [&some[..], &rest].concat());
    run(&["decode", "-t", "builtin:simple", "-f", &file, "--json"]).succeeded();
}

#[test]
fn ctrl_c_ends_a_bench_with_what_was_measured() {
    let folder = Folder::new("bench-int");
    let file = folder.file("feed.dat");
    run(&["generate", "simple", "-n", "100", "-o", &file]).succeeded();
    let args = ["bench", "-t", "builtin:simple", "-f", &file, "--json"];
    let running = piped(&[&args[..], &["--passes", "4000000000"]].concat());
    std::thread::sleep(std::time::Duration::from_millis(300));
    running.interrupt();
    let said = running.end();
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("interrupted"), "{}", said.err);
    // On a slow machine, not even one pass may have finished.
    if !said.out.is_empty() {
        let object = said.json();
        assert_eq!(object["ok"], false);
        assert!(figure(&object, "passes") >= 1.0);
    }
}

#[test]
fn ctrl_c_ends_a_bench_of_events_with_what_was_measured() {
    let folder = Folder::new("bench-events-int");
    let file = folder.file("feed.dat");
    run(&["generate", "spectra", "-n", "20000", "-o", &file]).succeeded();
    let args = ["bench", "events", "-t", "builtin:spectra", "-f", &file];
    let long = [&args[..], &["--runs", "1000", "--json"]].concat();
    let running = Running::start(&mut fanfare(&long));
    running.interrupt();
    let said = running.end();
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(said.err.contains("interrupted"), "{}", said.err);
    assert!(said.out.is_empty() || said.json()["ok"] == false);
}

#[test]
fn what_is_read_is_not_written() {
    let folder = Folder::new("same");
    let lines = folder.with("lines.jsonl", LINE);
    let templates = folder.with(
        "templates.xml",
        "<template name='Done' id='1'><uInt32 name='MessageType'/></template>",
    );
    for args in [
        ["encode", "-t", "builtin:simple", "-f", &lines, "-o", &lines],
        ["encode", "-t", &templates, "-f", &lines, "-o", &templates],
    ] {
        let said = run(&args);
        assert_eq!(said.code, 1);
        assert!(said.err.contains("it is also the input"), "{}", said.err);
    }
    let said = run(&["codegen", "-t", &templates, "-o", &templates]);
    assert!(said.err.contains("it is also the input"), "{}", said.err);
    assert_eq!(folder.read("lines.jsonl"), LINE.as_bytes());
    assert!(folder.read("templates.xml").starts_with(b"<template"));
}

#[test]
fn templates_may_come_from_a_pipe() {
    let folder = Folder::new("piped-templates");
    let xml = "<template name='T' id='1'><uInt32 name='A'/></template>";
    let file = folder.with("feed.dat", [3, 0, 0, 0, 0xc0, 0x81, 0x85]);
    for command in ["decode", "bench", "explain"] {
        let more: &[&str] = if command == "bench" {
            &["--passes", "1"]
        } else {
            &[]
        };
        let args = [command, "-t", "/dev/stdin", "-f", &file];
        let mut running = piped(&[&args[..], more].concat());
        running.reads(xml);
        let said = running.end();
        assert_eq!(said.code, 0, "{command}: {}", said.err);
    }
}

#[test]
fn packets_are_filled_up_to_their_size() {
    let folder = Folder::new("packet-size");
    let file = folder.file("feed.dat");
    run(&["generate", "simple", "-n", "2000", "-o", &file]).succeeded();
    let decode = ["decode", "-t", "builtin:simple", "-f", &file];
    let lines = run(&[&decode[..], &["--format", "json"]].concat())
        .succeeded()
        .out;
    let lines = folder.with("lines.jsonl", lines);
    let out = folder.file("out.dat");
    let encode = ["encode", "-t", "builtin:simple", "-f", &lines, "-o", &out];
    // The encoder fills packets like the generator, byte for byte.
    run(&[&encode[..], &["--packet-size", "1024"]].concat()).succeeded();
    assert!(folder.read("out.dat") == folder.read("feed.dat"));
    let size = ["--packet-size", "60", "--header", "u8"];
    run(&[&encode[..], &size].concat()).succeeded();
    let bytes = folder.read("out.dat");
    let (mut at, mut longest) = (0, 0);
    while let Some(len) = bytes.get(at) {
        longest = longest.max(*len);
        at += 1 + usize::from(*len);
    }
    assert!((50..=60).contains(&longest), "{longest}");
    let said = run(&[&encode[..], &["--packet-size", "60", "--header", "none"]].concat());
    assert_eq!(said.code, 2);
}
