//! Malformed input leads to one clear sentence, the right code, and the right exit status.

use crate::common::Folder;
use crate::run::run;
use serde_json::Value;

const TEMPLATES: &str = r#"<templates>
    <template name="Tick" id="7"><uInt32 name="Price" id="44"><copy/></uInt32></template>
</templates>"#;

/// Two packets of one Tick each, after their u8 headers.
const PACKETS: [u8; 8] = [3, 0xe0, 0x87, 0xaa, 3, 0xe0, 0x87, 0xab];

/// Decodes bytes as JSON lines with u8 headers. Returns the exit status and the lines.
fn decode(folder: &Folder, bytes: &[u8], more: &[&str]) -> (i32, Vec<Value>) {
    let templates = folder.with("templates.xml", TEMPLATES);
    let file = folder.with("packets.dat", bytes);
    let args = [
        "decode", "-t", &templates, "-f", &file, "--header", "u8", "--format", "json",
    ];
    let said = run(&[&args[..], more].concat());
    (said.code, said.json_lines())
}

#[test]
fn a_cut_last_packet_is_an_error_at_its_offset() {
    let folder = Folder::new("cut");
    let (code, lines) = decode(&folder, &PACKETS, &[]);
    assert_eq!((code, lines.len()), (0, 2));
    for cut in 5..8 {
        let (code, lines) = decode(&folder, &PACKETS[..cut], &[]);
        assert_eq!((code, lines.len()), (1, 2));
        assert_eq!(lines[0]["fields"]["Price"], 42);
        assert_eq!(
            (&lines[1]["error"], &lines[1]["offset"]),
            (&"EOF".into(), &4.into())
        );
    }
}

#[test]
fn an_error_names_code_and_place_and_can_be_survived() {
    let folder = Folder::new("survive");
    // The first packet has an unknown template.
    let mut bytes = PACKETS;
    bytes[2] = 0x88;
    let (code, lines) = decode(&folder, &bytes, &[]);
    assert_eq!((code, lines.len()), (1, 1));
    assert_eq!(
        (&lines[0]["error"], &lines[0]["offset"]),
        (&"D9".into(), &2.into())
    );
    assert_eq!(lines[0]["message"], "unknown template identifier 8");
    let (code, lines) = decode(&folder, &bytes, &["--keep-going"]);
    assert_eq!((code, lines.len()), (1, 2));
    assert_eq!(lines[1]["fields"]["Price"], 43);
}

#[test]
fn a_packet_that_is_shorter_than_its_preamble_is_an_error_at_its_offset() {
    let folder = Folder::new("short-preamble");
    let templates = folder.with("templates.xml", TEMPLATES);
    let tick: &[u8] = &[0xe0, 0x87, 0xaa];
    for (preamble, first) in [
        ("seq32le", &[1, 0, 0, 0][..]),
        ("seq32be", &[0, 0, 0, 1]),
        ("cme", &[0, 0, 0, 1, 0]),
    ] {
        for (header, whole, short) in [
            ("u8", &[first.len() as u8 + 3][..], &[3][..]),
            ("u16be", &[0, first.len() as u8 + 3], &[0, 3]),
            ("u32le", &[first.len() as u8 + 3, 0, 0, 0], &[3, 0, 0, 0]),
            ("fast", &[0x80 | (first.len() as u8 + 3)], &[0x83]),
        ] {
            let front = [whole, first, tick, short].concat();
            let file = folder.with(
                "packets.dat",
                [&front, &first[..3], whole, first, tick].concat(),
            );
            let args = [
                "decode",
                "-t",
                &templates,
                "-f",
                &file,
                "--header",
                header,
                "--preamble",
                preamble,
                "--format",
                "json",
            ];
            let said = run(&args);
            let what = format!("{header} {preamble}: {}{}", said.out, said.err);
            assert_eq!(said.code, 1, "{what}");
            let error = said.out.lines().find(|line| line.contains("error"));
            let error: Value = serde_json::from_str(error.unwrap()).unwrap();
            assert_eq!(error["error"], "EOF", "{what}");
            assert_eq!(error["offset"], front.len(), "{what}");
            assert!(
                !run(&[&args[..], &["--keep-going"]].concat())
                    .err
                    .contains("panicked")
            );
        }
    }
}

#[test]
fn sequence_numbers_that_jump_by_half_their_range_are_resets() {
    let folder = Folder::new("jump");
    let templates = folder.with("templates.xml", TEMPLATES);
    let packet = |number: u32| [&[7], &number.to_le_bytes()[..], &[0xe0, 0x87, 0xaa]].concat();
    let figures = |numbers: &[u32]| {
        let packets: Vec<_> = numbers.iter().flat_map(|n| packet(*n)).collect();
        let file = folder.with("packets.dat", packets);
        let args = ["decode", "-t", &templates, "-f", &file, "--header", "u8"];
        let said = run(&[&args[..], &["--preamble", "seq32le", "--json"]].concat());
        let f = said.succeeded().figures();
        ["messages", "resets", "missing", "refused"].map(|name| f[name].as_u64().unwrap())
    };
    let half = 1 << 31;
    assert_eq!(figures(&[1, 2, 2 + half, 3 + half, 3, 4]), [6, 2, 0, 0]);
    // An unconfirmed number is ignored, but counted.
    assert_eq!(figures(&[1, 2, 2 + half, 3, 4]), [4, 0, 0, 1]);
}

#[test]
fn what_would_take_too_much_is_refused_where_it_stands() {
    let folder = Folder::new("limits");
    let templates = folder.with(
        "t.xml",
        "<template name='T' id='1'><sequence name='S'><uInt32 name='V'><constant value='1'/>\
         </uInt32></sequence><byteVector name='B'/></template>",
    );
    let file = |name: &str, bytes: &[u8]| {
        let len = (bytes.len() as u32).to_le_bytes();
        folder.with(name, [&[2, 0, 0, 0, 0xc0, 0x81][..], &len, bytes].concat())
    };
    let four_billion = [0x0f, 0x7f, 0x7f, 0x7f, 0xff];
    let entries = file("entries.dat", &[&[0xc0, 0x81][..], &four_billion].concat());
    let text = file(
        "text.dat",
        &[&[0xc0, 0x81, 0x80][..], &four_billion].concat(),
    );
    let endless = file("endless.dat", &[&[0xc0, 0x81][..], &[1; 100_000]].concat());
    for (file, part) in [
        (
            entries,
            "LIMIT at byte 17 in template T, field S: limit exceeded: too many entries",
        ),
        (
            text,
            "LIMIT at byte 13 in template T, field B: limit exceeded: text too long",
        ),
        (endless, "D2 at byte 12 in template T, field S: "),
    ] {
        // The first packet is truncated: its error is reported, and the run continues.
        let said = run(&["decode", "-t", &templates, "-f", &file, "--keep-going"]);
        assert_eq!(said.code, 1);
        assert!(
            said.err.contains("EOF at byte 6 in template T, field S"),
            "{}",
            said.err
        );
        assert!(said.err.contains(part), "{part}: {}", said.err);
        let said = run(&["bench", "-t", &templates, "-f", &file]);
        assert_eq!(said.code, 1);
        assert!(
            said.err.contains("packet 1: EOF at byte 2 in template T"),
            "{}",
            said.err
        );
    }
}

#[test]
fn what_would_be_too_much_for_a_decoder_is_not_encoded() {
    let folder = Folder::new("encode-limits");
    let templates = folder.with(
        "t.xml",
        "<template name='T' id='1'><sequence name='S'><uInt8 name='V'/></sequence></template>",
    );
    let entries = vec!["{\"V\": 1}"; 70_000].join(",");
    let line = format!("{{\"id\": 1, \"fields\": {{\"S\": [{entries}]}}}}\n");
    let lines = folder.with("lines.jsonl", line);
    let out = folder.file("out.dat");
    let said = run(&["encode", "-t", &templates, "-f", &lines, "-o", &out]);
    let error: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &error["error"]), (1, &"LIMIT".into()));
    assert_eq!(
        (&error["template"], &error["field"]),
        (&"T".into(), &"S".into())
    );
    assert_eq!(error["message"], "limit exceeded: too many entries");
    assert!(folder.read("out.dat").is_empty());
}

#[test]
fn a_garbled_feed_does_not_flood_the_terminal() {
    let folder = Folder::new("flood");
    let templates = folder.with("templates.xml", TEMPLATES);
    let file = folder.with("packets.dat", [1, 0x80].repeat(500));
    let args = [
        "decode",
        "-t",
        &templates,
        "-f",
        &file,
        "--header",
        "u8",
        "--keep-going",
    ];
    let said = run(&[&args[..], &["--json"]].concat());
    assert_eq!((said.code, &said.figures()["errors"]), (1, &500.into()));
    assert!(
        said.err.lines().count() < 60,
        "{}",
        said.err.lines().count()
    );
}

#[test]
fn a_packet_of_no_bytes_is_d12_and_the_next_one_is_decoded() {
    let folder = Folder::new("zero");
    let templates = folder.with("templates.xml", TEMPLATES);
    for (header, zero, three) in [
        ("u8", &[0][..], &[3][..]),
        ("u16be", &[0, 0], &[0, 3]),
        ("u32le", &[0; 4], &[3, 0, 0, 0]),
        ("fast", &[0x80], &[0, 0x83]),
    ] {
        let tick = [0xe0, 0x87, 0xaa];
        let file = folder.with("packets.dat", [three, &tick, zero, three, &tick].concat());
        let args = [
            "decode", "-t", &templates, "-f", &file, "--header", header, "--format", "json",
        ];
        let said = run(&args);
        assert_eq!((said.code, said.out.lines().count()), (1, 2), "{header}");
        let error: Value = serde_json::from_str(said.out.lines().last().unwrap()).unwrap();
        let offset = three.len() + tick.len();
        assert_eq!(error["error"], "D12");
        assert_eq!(error["offset"], offset, "{header}");
        let said = run(&[&args[..], &["--keep-going"]].concat());
        assert_eq!((said.code, said.out.lines().count()), (1, 3), "{header}");
        let more = ["--keep-going", "--sequence", "Price"];
        let said = run(&[&args[..], &more].concat());
        assert!(
            said.out.contains("D12") && said.out.contains("42"),
            "{}",
            said.out
        );
    }
}

#[test]
fn packets_behind_a_gap_are_left_out_where_they_build_on_others() {
    let folder = Folder::new("gap");
    let packet = |number: u8, body: &[u8]| {
        let len = 4 + body.len() as u8;
        [&[len, number, 0, 0, 0][..], body].concat()
    };
    // The second packet is missing, and the price of the last is behind a Reset.
    let bytes = [
        packet(1, &[0xe0, 0x87, 0xaa]),
        packet(3, &[0x80]),
        packet(4, &[0xc0, 0xf8, 0xe0, 0x87, 0xab]),
    ];
    let more = ["--keep-dictionary", "--preamble", "seq32le", "--keep-going"];
    let (code, lines) = decode(&folder, &bytes.concat(), &more);
    let prices = lines
        .iter()
        .filter_map(|line| line["fields"]["Price"].as_u64());
    let errors = lines.iter().filter_map(|line| line["error"].as_str());
    assert_eq!((code, prices.collect::<Vec<_>>()), (1, vec![42, 43]));
    assert_eq!(errors.collect::<Vec<_>>(), ["GAP"]);
}

#[test]
fn numbers_of_messages_show_a_gap_where_packets_build_on_others() {
    let folder = Folder::new("numbers");
    let tick = "<template name='T' id='7'><uInt32 name='MsgSeqNum' id='34'/>\
                <uInt32 name='V'><delta/></uInt32></template>";
    let templates = folder.with("t.xml", tick);
    // The second message is missing, and the last one comes twice behind a Reset.
    let bytes = [
        &[4, 0xc0, 0x87, 0x81, 0x85][..],
        &[3, 0x80, 0x83, 0x81],
        &[6, 0xc0, 0xf8, 0xc0, 0x87, 0x84, 0x88],
        &[3, 0x80, 0x84, 0x81],
    ];
    let file = folder.with("packets.dat", bytes.concat());
    let args = [
        "decode", "-t", &templates, "-f", &file, "--header", "u8", "--format", "json",
    ];
    let keeps = ["--keep-dictionary", "--keep-going"];
    for (more, values, errors) in [
        (&[][..], &[5, 8][..], 2),
        (&["--sequence", "none"], &[5, 6, 8, 9], 0),
    ] {
        let said = run(&[&args[..], &keeps, more].concat());
        let lines = said.json_lines();
        let found = lines.iter().filter_map(|line| line["fields"]["V"].as_u64());
        assert_eq!(found.collect::<Vec<_>>(), values, "{more:?}");
        let gaps = lines.iter().filter(|line| line["error"] == "GAP");
        assert_eq!((gaps.count(), said.code), (errors, i32::from(errors > 0)));
    }
}

#[test]
fn template_errors_have_line_and_column_in_every_command() {
    let folder = Folder::new("static");
    let file = folder.with("packets.dat", PACKETS);
    let lines = folder.with("lines.jsonl", "");
    let out = folder.file("out.dat");
    let cases: [(&str, &[u8]); 6] = [
        ("S1", b"<uInt32/>"),
        ("S1", b"\xff"),
        ("S2", b"<uInt32 name='V'><tail/></uInt32>"),
        ("S3", b"<int8 name='V'><copy value='128'/></int8>"),
        ("S4", b"<int8 name='V'><constant/></int8>"),
        ("S5", b"<int8 name='V'><default/></int8>"),
    ];
    for (code, fields) in cases {
        let document = [b"<templates>\n<template name='T' id='1'>\n ", fields].concat();
        let document = [&document, &b"</template></templates>"[..]].concat();
        let templates = folder.with("t.xml", document);
        let column = match fields {
            [b'<', ..] if code != "S1" => 2 + fields.iter().position(|b| *b == b'>').unwrap() + 1,
            _ => 2,
        };
        let said = run(&["templates", &templates]);
        assert_eq!(said.code, 1);
        let place = format!("{code} at 3:{column}: ");
        assert!(said.err.contains(&place), "{place}: {}", said.err);
        let decode = ["decode", "-t", &templates, "-f", &file, "--format", "json"];
        let encode = ["encode", "-t", &templates, "-f", &lines, "-o", &out];
        for args in [&decode[..], &encode] {
            let said = run(args);
            let error: Value = serde_json::from_str(&said.out).unwrap();
            assert_eq!((said.code, &error["error"]), (1, &code.into()), "{args:?}");
            assert_eq!(
                (&error["line"], &error["column"]),
                (&3.into(), &column.into())
            );
        }
    }
}

#[test]
fn a_wrong_template_file_is_a_line_with_its_code() {
    let folder = Folder::new("templates");
    let templates = folder.with(
        "bad.xml",
        "<templates>\n<template name='T' id='1'><uInt32 name='A'><tail/></uInt32></template>\
         </templates>",
    );
    let file = folder.with("packets.dat", PACKETS);
    let said = run(&["decode", "-t", &templates, "-f", &file, "--format", "json"]);
    let error: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &error["error"]), (1, &"S2".into()));
    assert_eq!(error["line"], 2);
    let said = run(&["decode", "-t", &templates, "-f", &file]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("S2") && said.err.contains("bad.xml"),
        "{}",
        said.err
    );
}

#[test]
fn a_line_that_is_no_message_is_an_error_of_encode() {
    let folder = Folder::new("lines");
    let templates = folder.with("templates.xml", TEMPLATES);
    folder.with(
        "lines.jsonl",
        "{\"template\": \"Tick\", \"fields\": {\"Price\": 1}}\n\
         {\"template\": \"Tick\", \"fields\": {\"Price\": 4294967296}}\n\
         nonsense\n\
         {\"template\": \"Tick\", \"fields\": {\"Price\": 2}}\n\
         \n\
         {\"template\": \"Tick\", \"fields\": {\"Prise\": 2}}\n",
    );
    let latin = folder.read("lines.jsonl");
    let lines = folder.with("lines.jsonl", [&latin[..], b"\"\xe9\"\r\n"].concat());
    let out = folder.file("out.dat");
    let args = [
        "encode",
        "-t",
        &templates,
        "-f",
        &lines,
        "-o",
        &out,
        "--keep-going",
    ];
    let said = run(&args);
    assert_eq!(said.code, 1);
    let codes = said.out.lines().map(|line| {
        let error: Value = serde_json::from_str(line).unwrap();
        (
            error["error"].as_str().unwrap().to_owned(),
            error["line"].as_u64().unwrap(),
        )
    });
    let codes: Vec<_> = codes.collect();
    let codes: Vec<_> = codes.iter().map(|(code, line)| (&**code, *line)).collect();
    assert_eq!(codes, [("R4", 2), ("INPUT", 3), ("INPUT", 6), ("INPUT", 7)]);
    let first: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    assert_eq!(first["offset"], 41, "where the number stands in its line");
    assert_eq!(folder.read("out.dat").len(), 2 * 7);
}

#[test]
fn errors_of_encode_stay_out_of_packets_and_figures() {
    let folder = Folder::new("lines-apart");
    let done = "{\"id\": 99, \"fields\": {}}\n";
    let lines = folder.with("lines.jsonl", format!("{done}nonsense\n{done}"));
    let encode = [
        "encode",
        "-t",
        "builtin:simple",
        "-f",
        &lines,
        "--keep-going",
    ];
    let said = run(&[&encode[..], &["-o", "-", "--header", "none"]].concat());
    assert!(
        said.code == 1 && !said.out.contains("INPUT"),
        "{}",
        said.out
    );
    assert!(said.err.contains("\"error\":\"INPUT\""), "{}", said.err);
    let out = folder.file("out.dat");
    let said = run(&[&encode[..], &["-o", &out, "--json"]].concat());
    assert_eq!((said.code, &said.figures()["errors"]), (1, &1.into()));
    assert_eq!(said.out.lines().count(), 1);
    assert!(said.err.contains("\"line\":2"), "{}", said.err);
}

#[test]
fn a_full_disk_is_not_an_error_of_the_lines() {
    let folder = Folder::new("encode-full");
    let lines = folder.with("lines.jsonl", "{\"template\": \"Done\", \"fields\": {}}\n");
    let said = run(&[
        "encode",
        "-t",
        "builtin:complex",
        "-f",
        &lines,
        "-o",
        "/dev/full",
    ]);
    assert_eq!(said.code, 1, "{}", said.out);
    let why = "fanfare: cannot write `/dev/full`: No space left on device";
    assert!(said.err.starts_with(why), "{}", said.err);
}

#[test]
fn fix_as_logs_show_it_is_no_message() {
    let folder = Folder::new("fix-bars");
    let lines = folder.with("lines.fix", "8=FIX.4.4|9=5|35=R|34=1|10=000|\n");
    let out = folder.file("out.dat");
    let args = ["encode", "-t", "builtin:complex", "--format", "fix"];
    let said = run(&[&args[..], &["-f", &lines, "-o", &out]].concat());
    assert_eq!(said.code, 1);
    assert!(
        said.out.contains("INPUT") && said.out.contains("SOH"),
        "{}",
        said.out
    );
    assert!(folder.read("out.dat").is_empty());
}

#[test]
fn nonsense_gets_one_sentence() {
    let folder = Folder::new("nonsense");
    let file = folder.with("packets.dat", PACKETS);
    for (line, code, word) in [
        ("decode -t /nowhere.xml -f FILE", 1, "/nowhere.xml"),
        ("decode -t builtin:odd -f FILE", 1, "builtin:odd"),
        (
            "decode -t builtin:simple -f /nowhere.dat",
            1,
            "/nowhere.dat",
        ),
        ("decode -t builtin:simple", 2, "--file"),
        ("decode -t builtin:simple --multicast x", 2, "ADDRESS:PORT"),
        ("decode -t builtin:simple -f FILE --header u64", 2, "u64"),
        ("decode -t builtin:simple -f FILE --sequence Odd", 1, "Odd"),
        ("decode -t builtin:simple -f FILE -n 0", 2, "'0'"),
        (
            "decode -t builtin:simple -f FILE --begin-string FIX=4",
            2,
            "printable ASCII",
        ),
        (
            "decode -t builtin:simple -f FILE --begin-string=",
            2,
            "the value is empty",
        ),
        (
            "encode -t builtin:simple -f FILE -o x --packet-size 0",
            2,
            "'0'",
        ),
        (
            "decode -t builtin:simple --multicast 224.1.2.3 --idle 0",
            2,
            "above 0",
        ),
        ("decode -t builtin:simple -f FILE --hold-back 0", 2, "'0'"),
        ("generate complex -o x --sequence-length 0", 2, "'0'"),
        ("generate spectra -o x --trades 101", 2, "101"),
        ("generate odd -o x", 2, "odd"),
        ("multicast -f FILE --loss-a 2", 2, "between 0 and 1"),
    ] {
        let args = line.split(' ').map(|word| match word {
            "FILE" => &file,
            word => word,
        });
        let said = run(&args.collect::<Vec<_>>());
        assert_eq!(said.code, code, "{line}: {}", said.err);
        assert!(said.err.contains(word), "{line}: {}", said.err);
        assert!(!said.err.contains("panicked"));
        assert!(code == 2 || said.err.lines().count() == 1, "{}", said.err);
    }
}

#[test]
fn options_that_contradict_each_other_are_wrong_usage() {
    let folder = Folder::new("contradictions");
    let file = folder.with("packets.dat", PACKETS);
    let packets = "--preamble needs packets";
    for (line, why) in [
        (
            "explain -t builtin:simple -f FILE --header none --preamble cme",
            packets,
        ),
        (
            "encode -t builtin:simple -f FILE -o x --header none --preamble cme",
            packets,
        ),
        ("generate simple -o x --header none --preamble cme", packets),
        (
            "decode -t builtin:simple -f FILE --empty --format text",
            "--empty writes no messages",
        ),
        (
            "decode -t builtin:simple -f FILE -f FILE --keep-dictionary",
            "--keep-dictionary needs one file",
        ),
        ("multicast -f FILE --loss-b 0.5", "--second is missing"),
        ("multicast -f FILE --header none", "has no packets to send"),
        (
            "multicast -f FILE -a 224.1.2.3 -p 7 --second 224.1.2.3:7",
            "both lines are 224.1.2.3:7",
        ),
        (
            "generate simple -o x --sequence-length 3",
            "--sequence-length is an option of complex, not of simple",
        ),
        (
            "generate complex -o x --trades 5",
            "--trades is an option of spectra, not of complex",
        ),
    ] {
        let args = line.split(' ').map(|word| match word {
            "FILE" => &file,
            word => word,
        });
        let said = run(&args.collect::<Vec<_>>());
        assert_eq!(said.code, 2, "{line}: {}", said.err);
        assert!(said.err.contains(why), "{line}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn packets_are_sent_only_where_they_can_arrive() {
    let folder = Folder::new("nowhere");
    let file = folder.with("packets.dat", PACKETS);
    let send = ["multicast", "-f", &file, "--header", "u8"];
    let said = run(&[&send[..], &["-p", "0"]].concat());
    assert!(
        said.code == 2 && said.err.contains("--port"),
        "{}",
        said.err
    );
    let said = run(&[&send[..], &["-a", "192.0.2.1"]].concat());
    assert!(
        said.code == 2 && said.err.contains("192.0.2.1"),
        "{}",
        said.err
    );
}
