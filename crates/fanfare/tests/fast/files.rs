//! Tests of generating, decoding and encoding, with files only.

use crate::common::{Folder, Running, fanfare, figures};
use crate::run::run;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

/// Generates `count` messages of a feed and returns the file.
fn generated(folder: &Folder, feed: &str, count: &str, more: &[&str]) -> String {
    let file = folder.file(&format!("{feed}.dat"));
    let args = ["generate", feed, "-n", count, "-o", &file];
    run(&[&args[..], more].concat()).succeeded();
    file
}

/// Decodes to lines and encodes those. Returns the resulting file.
fn there_and_back(folder: &Folder, templates: &str, file: &str, framing: &[&str]) -> Vec<u8> {
    let decode = ["decode", "-t", templates, "-f", file, "--format", "json"];
    let lines = run(&[&decode[..], framing].concat()).succeeded().out;
    let lines = folder.with("lines.jsonl", lines);
    let again = folder.file("again.dat");
    let encode = ["encode", "-t", templates, "-f", &lines, "-o", &again];
    run(&[&encode[..], framing].concat()).succeeded();
    folder.read("again.dat")
}

#[test]
fn complex_comes_back_byte_for_byte() {
    let folder = Folder::new("complex");
    let file = generated(&folder, "complex", "2000", &[]);
    let again = there_and_back(&folder, "builtin:complex", &file, &[]);
    assert!(again == folder.read("complex.dat"));
}

#[test]
fn simple_comes_back_byte_for_byte() {
    let folder = Folder::new("simple");
    let file = generated(&folder, "simple", "2000", &["--packet-size", "1"]);
    let again = there_and_back(&folder, "builtin:simple", &file, &[]);
    assert!(again == folder.read("simple.dat"));
    // Full packets decode to the same messages as single ones.
    let lines = folder.read("lines.jsonl");
    let packed = generated(&folder, "simple", "2000", &[]);
    assert!(folder.read("simple.dat").len() < again.len() / 2);
    let decode = ["decode", "-t", "builtin:simple", "-f", &packed];
    let said = run(&[&decode[..], &["--format", "json"]].concat()).succeeded();
    assert!(said.out.as_bytes() == lines);
}

#[test]
fn spectra_comes_back_byte_for_byte() {
    let folder = Folder::new("spectra");
    let none = ["--header", "none"];
    for more in [&["--trades", "10"][..], &["--snapshots"]] {
        // Framed like the exchange's recordings: one stream, whose Resets suffice.
        let more = [more, &none].concat();
        let file = generated(&folder, "spectra", "2000", &more);
        let again = there_and_back(&folder, "builtin:spectra", &file, &none);
        assert!(again == folder.read("spectra.dat"));
        let lines = folder.read("lines.jsonl");
        let other = generated(
            &folder,
            "spectra",
            "2000",
            &[&more[..], &["--seed", "2"]].concat(),
        );
        assert!(again != std::fs::read(other).unwrap());
        // One message per packet, with its Reset.
        let file = generated(&folder, "spectra", "2000", &more[..more.len() - 2]);
        let decode = ["decode", "-t", "builtin:spectra", "-f", &file];
        let said = run(&[&decode[..], &["--format", "json"]].concat()).succeeded();
        assert!(said.out.as_bytes() == lines);
    }
    let unfit = ["generate", "spectra", "-t", "builtin:simple", "-o", "-"];
    let said = run(&unfit);
    assert!(
        said.code == 1 && said.err.contains("do not fit"),
        "{}",
        said.err
    );
}

#[test]
fn fix_is_a_way_there_and_back() {
    let folder = Folder::new("fix");
    // Messages of simple have no MsgType(35): their template is the one with the same fields.
    for (feed, begin) in [
        ("complex", "8=FIX.4.4|9=95|35=R|"),
        ("simple", "8=FIX.4.4|9=79|100=11|"),
    ] {
        let file = generated(&folder, feed, "500", &["--packet-size", "1"]);
        let templates = format!("builtin:{feed}");
        let decode = ["decode", "-t", &templates, "-f", &file, "--format", "fix"];
        let said = run(&decode).succeeded();
        let first = said.out.lines().next().unwrap().replace('\x01', "|");
        assert!(first.starts_with(begin), "{first}");
        let lines = folder.with("lines.fix", said.out);
        let again = folder.file("again.dat");
        let encode = ["encode", "-t", &templates, "-f", &lines, "-o", &again];
        run(&[&encode[..], &["--format", "fix"]].concat()).succeeded();
        assert!(folder.read("again.dat") == folder.read(&format!("{feed}.dat")));
    }
}

#[test]
fn what_cannot_be_fix_is_an_error_and_bytes_can() {
    let folder = Folder::new("fix-bytes");
    let templates = folder.with(
        "t.xml",
        "<template name='T' id='1'><string name='Type' id='35'><constant value='B'/></string>\
         <byteVector name='Text' id='58'/></template>",
    );
    let lines = folder.with("lines.fix", b"35=B\x0158=\xff\xfe\x01\n35=B\x0158=\x01\r\n");
    let file = folder.file("feed.dat");
    let encode = ["encode", "-t", &templates, "-f", &lines, "-o", &file];
    run(&[&encode[..], &["--format", "fix"]].concat()).succeeded();
    let packet: &[u8] = &[5, 0, 0, 0, 0xc0, 0x81, 0x82, 0xff, 0xfe];
    assert_eq!(folder.read("feed.dat")[..9], *packet);
    // A value with a SOH byte.
    let packets = [&packet[..8], &[1], packet].concat();
    let file = folder.with("soh.dat", packets);
    let decode = ["decode", "-t", &templates, "-f", &file];
    let said = run(&[&decode[..], &["--format", "text"]].concat()).succeeded();
    assert_eq!(said.out.lines().count(), 2);
    let mut command = fanfare(&[&["fast"], &decode[..], &["--format", "fix"]].concat());
    let said = command.output().unwrap();
    assert_eq!(said.status.code(), Some(1));
    assert!(said.stdout.ends_with(b"\x0158=\xff\xfe\x0110=138\x01\n"));
    let err = String::from_utf8(said.stderr).unwrap();
    assert!(
        err.contains("cannot be FIX: the value of field 58"),
        "{err}"
    );
}

#[test]
fn dictionaries_that_live_on_come_back_too() {
    let folder = Folder::new("stream");
    for feed in ["simple", "complex"] {
        let templates = format!("builtin:{feed}");
        let file = generated(&folder, feed, "1000", &[]);
        let decode = ["decode", "-t", &templates, "-f", &file, "--format", "json"];
        let lines = folder.with("first.jsonl", run(&decode).succeeded().out);
        for framing in [
            &["--header", "none"][..],
            &["--header", "u16be", "--keep-dictionary"],
            &["--header", "fast"],
        ] {
            let stream = folder.file("stream.dat");
            let encode = ["encode", "-t", &templates, "-f", &lines, "-o", &stream];
            run(&[&encode[..], framing].concat()).succeeded();
            let again = there_and_back(&folder, &templates, &stream, framing);
            assert!(again == folder.read("stream.dat"), "{feed} {framing:?}");
            assert!(folder.read("lines.jsonl") == folder.read("first.jsonl"));
        }
    }
}

#[test]
fn packets_that_keep_their_dictionaries_begin_with_a_template_identifier() {
    let folder = Folder::new("keep");
    let file = generated(&folder, "complex", "300", &[]);
    let keep = ["--keep-dictionary"];
    let again = there_and_back(&folder, "builtin:complex", &file, &keep);
    assert!(again == folder.read("complex.dat"));
    let tick = "<template name='T' id='7'><uInt32 name='V'><copy/></uInt32></template>";
    let templates = folder.with("t.xml", tick);
    let lines = r#"{"template": "T", "id": 7, "fields": {"V": 1}}"#;
    let lines = folder.with("two.jsonl", [lines; 4].join("\n"));
    let out = folder.file("out.dat");
    for (more, bytes) in [
        (
            &[][..],
            &[4, 0xe0, 0x87, 0x81, 0x80, 4, 0xe0, 0x87, 0x81, 0x80][..],
        ),
        (&keep, &[4, 0xe0, 0x87, 0x81, 0x80, 3, 0xc0, 0x87, 0x80]),
        (&["--header", "none"], &[0xe0, 0x87, 0x81, 0x80, 0x80, 0x80]),
    ] {
        let args = [
            "encode",
            "-t",
            &templates,
            "-f",
            &lines,
            "-o",
            &out,
            "--packet-messages",
            "2",
        ];
        let header = if more.contains(&"none") {
            &[][..]
        } else {
            &["--header", "u8"]
        };
        run(&[&args[..], header, more].concat()).succeeded();
        assert_eq!(folder.read("out.dat"), bytes, "{more:?}");
    }
}

#[test]
fn generating_is_repeatable_and_has_the_published_size() {
    let folder = Folder::new("repeatable");
    generated(&folder, "complex", "30000", &[]);
    let bytes = folder.read("complex.dat");
    // The mean is 66.5 bytes per message, as in the published file.
    let mean = (bytes.len() - 30_001 * 4) as f64 / 30_001.0;
    assert!((66.49..66.59).contains(&mean), "{mean}");
    generated(&folder, "complex", "30000", &[]);
    assert!(folder.read("complex.dat") == bytes);
}

#[test]
fn figures_tell_what_was_decoded() {
    let folder = Folder::new("figures");
    let file = generated(&folder, "complex", "500", &[]);
    let said = run(&["decode", "-t", "builtin:complex", "-f", &file, "--json"]).succeeded();
    let f = said.figures();
    assert_eq!((&f["messages"], &f["packets"]), (&501.into(), &501.into()));
    assert_eq!((&f["errors"], &f["gaps"]), (&0.into(), &0.into()));
    let empty = [
        "decode",
        "-t",
        "builtin:complex",
        "-f",
        &file,
        "--empty",
        "--json",
    ];
    let f = run(&empty).succeeded().figures();
    assert_eq!(f["messages"], 501);
    assert!(f["decode_ns"].as_f64().unwrap() > 0.0);
    let stream = generated(&folder, "spectra", "500", &["--header", "none"]);
    let spectra = ["decode", "-t", "builtin:spectra", "-f", &stream];
    let empty = ["--header", "none", "--empty", "--json"];
    let f = run(&[&spectra[..], &empty].concat()).succeeded().figures();
    assert!(f["decode_ns"].as_f64().unwrap() > 0.0, "{f}");
    // With --format the messages go to stdout and the figures to stderr.
    let both = ["--format", "fix", "--json", "-n", "2"];
    let decode = ["decode", "-t", "builtin:complex", "-f", &file];
    let said = run(&[&decode[..], &both].concat()).succeeded();
    assert_eq!(said.out.lines().count(), 2);
    assert!(said.out.contains("\x0134=1\x01"), "{}", said.out);
    assert_eq!(figures(&said.err)["messages"], 2);
}

#[test]
fn a_preamble_numbers_packets_and_shows_gaps() {
    let folder = Folder::new("preamble");
    for preamble in ["seq32le", "seq32be", "cme"] {
        let file = generated(&folder, "simple", "5000", &["--preamble", preamble]);
        let decode = ["decode", "-t", "builtin:simple", "-f", &file, "--json"];
        let with = [&decode[..], &["--preamble", preamble]].concat();
        let f = run(&with).succeeded().figures();
        assert_eq!((&f["messages"], &f["gaps"]), (&5001.into(), &0.into()));
        // The second packet is cut out.
        let bytes = folder.read("simple.dat");
        let length = |at: usize| {
            let header = bytes[at..at + 4].try_into().unwrap();
            4 + u32::from_le_bytes(header) as usize
        };
        let second = length(0)..length(0) + length(length(0));
        let cut = [&bytes[..second.start], &bytes[second.end..]].concat();
        folder.with("simple.dat", cut);
        let f = run(&with).succeeded().figures();
        assert_eq!((&f["missing"], &f["gaps"]), (&1.into(), &1.into()));
    }
}

#[test]
fn a_sequence_reset_ends_a_cycle() {
    let folder = Folder::new("cycles");
    let templates = folder.with(
        "templates.xml",
        "<templates><template name='Snapshot' id='1'><uInt32 name='MsgSeqNum' id='34'/></template>\
         <template name='SequenceReset' id='2'><uInt32 name='MsgSeqNum' id='34'/>\
         <uInt32 name='NewSeqNo' id='36'/></template></templates>",
    );
    let mut lines = String::new();
    for number in (0..10).flat_map(|_| 1..=5) {
        let (name, more) = match number {
            5 => ("SequenceReset", ", \"NewSeqNo\": 1"),
            _ => ("Snapshot", ""),
        };
        let fields = format!("{{\"MsgSeqNum\": {number}{more}}}");
        lines += &format!("{{\"template\": \"{name}\", \"fields\": {fields}}}\n");
    }
    let lines = folder.with("lines.jsonl", lines);
    let file = folder.file("cycles.dat");
    let encode = ["encode", "-t", &templates, "-f", &lines, "-o", &file];
    run(&encode).succeeded();
    for more in [&["-f", &*file][..], &["--sequence", "MsgSeqNum"]] {
        let decode = ["decode", "-t", &templates, "-f", &file, "--format", "json"];
        let said = run(&[&decode[..], more].concat()).succeeded();
        assert_eq!(said.out.lines().count(), 50, "{more:?}");
        assert!(!said.err.contains("sequence reset:"), "{}", said.err);
        assert!(
            said.err.contains("0 sequence numbers missing, 10 resets"),
            "{}",
            said.err
        );
    }
}

#[test]
fn recordings_of_two_lines_are_arbitrated() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    if !folder.join("increment_a.dat").exists() {
        println!("skipped: there is no recording at {}", folder.display());
        return;
    }
    let (t, a, b) = (
        at("templates.xml"),
        at("increment_a.dat"),
        at("increment_b.dat"),
    );
    let args = [
        "decode", "-t", &t, "-f", &a, "-f", &b, "--header", "none", "--json",
    ];
    let f = run(&args).succeeded().figures();
    let expected = [
        ("messages", 2 * 8_112),
        ("packets", 8_112),
        ("gaps", 0),
        ("line_a_packets", 8_101),
        ("line_b_packets", 8_088),
        ("duplicates", 8_077),
    ];
    for (name, value) in expected {
        assert_eq!(f[name], value, "{name}");
    }
    // Each cycle of the snapshot channel ends with a SequenceReset to 1.
    let snapshot = at("snapshot.dat");
    let args = ["decode", "-t", &t, "-f", &snapshot, "--header", "none"];
    for more in [&["--sequence", "34"], &["-f", &*snapshot]] {
        let f = run(&[&args[..], more, &["--json"]].concat());
        let f = f.succeeded().figures();
        for (name, value) in [("messages", 18_628), ("resets", 733), ("missing", 0)] {
            assert_eq!(f[name], value, "{name} with {more:?}");
        }
    }
    let own = Folder::new("moex");
    for name in ["increment_a.dat", "increment_b.dat", "snapshot.dat"] {
        let again = there_and_back(&own, &t, &at(name), &["--header", "none"]);
        assert!(again == std::fs::read(at(name)).unwrap(), "{name}");
    }
}

/// Templates whose second message depends on the first, and a stream of messages with these
/// numbers; 0 is a message without a number.
fn continuous(folder: &Folder, name: &str, numbers: impl Iterator<Item = u32>) -> [String; 2] {
    let xml = "<templates><template name='T' id='1'><uInt32 name='MsgSeqNum' id='34'><increment/>\
               </uInt32><string name='S'><copy/></string></template>\
               <template name='Beat' id='2'/></templates>";
    let line = |number| match number {
        0 => "{\"template\": \"Beat\", \"fields\": {}}\n".to_owned(),
        n => {
            let s = n / 100;
            format!("{{\"template\":\"T\",\"fields\":{{\"MsgSeqNum\":{n},\"S\":\"s{s}\"}}}}\n")
        }
    };
    let templates = folder.with("t.xml", xml);
    let lines = folder.with("lines.jsonl", numbers.map(line).collect::<String>());
    let file = folder.file(name);
    let args = ["encode", "-t", &templates, "-f", &lines, "-o", &file];
    run(&[&args[..], &["--header", "none"]].concat()).succeeded();
    [templates, file]
}

#[test]
fn continuous_streams_of_two_lines_are_arbitrated() {
    let folder = Folder::new("two-streams");
    // A message without a number is at the beginning, and after 300 and 400. Only the last number
    // is more than 65,536 beyond the one before.
    let all = || {
        [0].into_iter()
            .chain((1..=100_000).chain([200_000, 200_001]))
    };
    let with_beats = |lost: &'static [u32]| {
        let kept = all().filter(|number| !lost.contains(number));
        kept.flat_map(|number| {
            [number, 0]
                .into_iter()
                .take(if number % 300 == 299 { 2 } else { 1 })
        })
    };
    let [_, a] = continuous(
        &folder,
        "a.dat",
        with_beats(&[500, 501, 599, 70_000, 100_000]),
    );
    let [t, b] = continuous(
        &folder,
        "b.dat",
        with_beats(&[1, 501, 502, 80_000, 99_999, 100_000]),
    );
    // A leading Reset changes nothing, and is shown once.
    let reset = |file: &str| {
        let bytes = [&[0xc0, 0xf8][..], &folder.read(file)].concat();
        folder.with(file, bytes)
    };
    let decode = ["decode", "-t", &t, "--header", "none", "-f", &a, "-f", &b];
    for with_reset in [false, true] {
        if with_reset {
            reset("a.dat");
            reset("b.dat");
        }
        let said = run(&decode).succeeded();
        let mut numbers = said.out.lines().filter_map(|line| {
            let (number, s) = line.strip_prefix("T MsgSeqNum=")?.split_once(" S=\"s")?;
            let number: u32 = number.parse().unwrap();
            assert_eq!(s, format!("{}\"", number / 100), "{line}");
            Some(number)
        });
        let missing = [501, 100_000];
        let wanted = all().filter(|number| *number > 0 && !missing.contains(number));
        assert!(numbers.by_ref().eq(wanted));
        let beats = said.out.lines().filter(|line| line.starts_with("Beat"));
        assert_eq!(beats.count(), 1 + 100_000 / 300);
        assert_eq!(said.out.matches("Reset").count(), usize::from(with_reset));
        for text in [
            "gap: 501 to 501 missing (1)",
            "gap: 100000 to 199999 missing (100000)",
        ] {
            assert!(said.err.contains(text), "{text} in {}", said.err);
        }
    }
    let ten = run(&[&decode[..], &["-n", "10", "--json", "--format", "text"]].concat()).succeeded();
    assert_eq!(ten.out.lines().count(), 10);
}

#[test]
fn a_continuous_stream_that_breaks_leaves_the_other_line() {
    let folder = Folder::new("broken-stream");
    let [_, a] = continuous(&folder, "a.dat", 1..=1000);
    let [t, b] = continuous(&folder, "b.dat", (1..=2000).filter(|number| *number != 50));
    // Template 9 does not exist.
    let broken = [&folder.read("a.dat")[..500], &[0xc0, 0x89]].concat();
    folder.with("a.dat", broken);
    let decode = ["decode", "-t", &t, "--header", "none", "-f", &a, "-f", &b];
    let said = run(&decode);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("a.dat` is read no further"),
        "{}",
        said.err
    );
    assert!(said.out.lines().count() < 1000);
    let said = run(&[&decode[..], &["--keep-going"]].concat());
    assert_eq!((said.code, said.out.lines().count()), (1, 2000));
}

#[test]
fn garbage_between_resets_is_one_bad_packet() {
    let folder = Folder::new("garbage");
    let b = folder.file("b.dat");
    let generate = ["generate", "spectra", "-n", "40000", "--header", "none"];
    run(&[&generate[..], &["-o", &b]].concat()).succeeded();
    let whole = folder.read("b.dat");
    assert!(whole.len() > 3 << 19, "{}", whole.len());
    let is_reset = |pair: &[u8]| pair == [0xc0, 0xf8];
    let resets = whole.windows(2).enumerate();
    let resets: Vec<usize> = resets
        .filter_map(|(at, pair)| is_reset(pair).then_some(at))
        .collect();
    let decode = ["decode", "-t", "builtin:spectra", "--header", "none"];
    let expected = run(&[&decode[..], &["-f", &b, "-f", &b]].concat()).succeeded();
    // The other line has no packet 2000.
    let without = [&whole[..resets[2000]], &whole[resets[2001]..]].concat();
    folder.with("b.dat", without);
    // Template 9 does not exist.
    let garbage = [0xc0, 0x89, 0x01, 0x02, 0x83];
    for at in [resets[1], resets[1000], whole.len()] {
        let a = folder.with("a.dat", [&whole[..at], &garbage, &whole[at..]].concat());
        let decode = [&decode[..], &["-f", &a, "-f", &b]].concat();
        let said = run(&[&decode[..], &["--keep-going"]].concat());
        assert_eq!(said.code, 1, "{}", said.err);
        assert!(said.out == expected.out, "{at}: {}", said.err);
        let said = run(&[&decode[..], &["--keep-going", "--json"]].concat());
        let figures = said.figures();
        let counts = ["errors", "refused", "missing"].map(|name| figures[name].as_u64());
        assert_eq!(counts, [Some(1), Some(0), Some(0)], "{at}: {}", said.err);
        assert_eq!(run(&decode).code, 1);
    }
}

#[test]
fn a_packet_with_too_many_messages_is_told() {
    let folder = Folder::new("long-packet");
    let [t, file] = continuous(&folder, "a.dat", 1..=70_000);
    let bytes = folder.read("a.dat");
    let reset = [0xc0, 0xf8];
    // Two short packets, and bytes that are not a packet.
    let first = [&reset[..], &bytes[..8]].concat();
    folder.with("a.dat", [&first[..], &reset, &bytes].concat());
    let decode = [
        "decode", "-t", &t, "--header", "none", "-f", &file, "-f", &file,
    ];
    let said = run(&decode);
    assert_eq!(said.code, 1);
    let told = "LIMIT at byte 10: line A: left out: no sequence number, or more than 65,536";
    assert!(said.err.contains(told), "{}", said.err);
}

#[test]
fn fix_tags_of_no_template_are_told_once_and_counted() {
    let folder = Folder::new("fix-tags");
    let xml = "<template name='T' id='1'><string name='MsgType' id='35'><constant value='D'/>\
               </string><uInt32 name='A' id='34'/></template>";
    let templates = folder.with("t.xml", xml);
    let line = "8=FIX.4.4|9=5|35=D|34=7|5001=x|10=000|\n".replace('|', "\u{1}");
    let known = "35=D|34=8|\n".replace('|', "\u{1}");
    let lines = folder.with("lines.fix", format!("{known}{line}{line}"));
    let out = folder.file("out.dat");
    let args = [
        "encode", "-t", &templates, "-f", &lines, "-o", &out, "--format", "fix",
    ];
    let said = run(&args).succeeded();
    let told = "line 2: no template has tag 5001";
    assert_eq!(said.err.matches(told).count(), 1, "{}", said.err);
    assert_eq!(
        said.err.matches("no template has").count(),
        1,
        "{}",
        said.err
    );
    assert!(
        said.err.contains("2 fields of no template left out"),
        "{}",
        said.err
    );
    let f = run(&[&args[..], &["--json"]].concat())
        .succeeded()
        .figures();
    assert_eq!(
        (&f["messages"], &f["unknown_fields"]),
        (&3.into(), &2.into())
    );
}

#[test]
fn ctrl_c_ends_the_wait_for_more_of_a_pipe() {
    for framing in [
        &["--header", "u32le"][..],
        &["--header", "none"],
        &["--preamble", "seq32le"],
    ] {
        let args = ["decode", "-t", "builtin:simple", "-f", "-", "--json"];
        let mut command = fanfare(&[&["fast"], &args[..], framing].concat());
        let mut running = Running::start(command.stdin(Stdio::piped()));
        // Open until the end of this test, so that only the signal can end the run.
        let pipe = running.stdin();
        running.interrupt();
        let said = running.end().succeeded();
        assert_eq!(said.figures()["errors"], 0, "{framing:?}");
        drop(pipe);
    }
}

#[test]
fn what_a_pipe_brings_is_shown_before_it_waits_for_more() {
    let folder = Folder::new("pipe");
    let file = generated(&folder, "simple", "3", &[]);
    let mut command = fanfare(&["fast", "decode", "-t", "builtin:simple", "-f", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&std::fs::read(file).unwrap()).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for name in ["Quote", "New", "Change", "Done"] {
        assert!(lines.next().unwrap().unwrap().starts_with(name));
    }
    drop(pipe);
    assert!(child.wait().unwrap().success() && lines.next().is_none());
}
