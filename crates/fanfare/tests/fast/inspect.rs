//! Tests of templates, explain and bench.

use crate::common::{Folder, fanfare, said};
use crate::run::run;

#[test]
fn templates_lists_fields_operators_and_dictionaries() {
    let said = run(&["templates", "builtin:complex"]).succeeded();
    assert!(said.out.starts_with("MarketData (1)"));
    let line = |name: &str| {
        let mut lines = said.out.lines();
        lines
            .find(|l| l.trim_start().starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(line("SecurityID ").contains("copy [\"1\": SecurityID]"));
    assert!(line("MDEntryPx").contains("exponent: default 0; mantissa: delta"));
    assert!(said.err.contains("4 templates, 41 fields"), "{}", said.err);
    let quiet = run(&["templates", "builtin:complex", "--check"]).succeeded();
    assert_eq!(quiet.out, "");
}

#[test]
fn templates_lists_constants_of_bytes_as_hex() {
    let folder = Folder::new("templates-hex");
    let xml = "<template name='T' id='1'><byteVector name='B'><constant value='00ff41'/>\
               </byteVector><string name='S'><constant value='A'/></string></template>";
    let said = run(&["templates", &folder.with("t.xml", xml)]).succeeded();
    for constant in ["constant 0x00ff41\n", "constant \"A\"\n"] {
        assert!(said.out.contains(constant), "{}", said.out);
    }
}

#[test]
fn templates_tells_what_cannot_be_used() {
    let folder = Folder::new("templates");
    let reference = "<template name='T' id='1'><templateRef name='Other'/></template>";
    let said = run(&["templates", &folder.with("t.xml", reference)]).succeeded();
    let line = "  templateRef Other: no such template, D8 when it is reached";
    assert!(said.out.contains(line), "{}", said.out);
    assert!(
        said.err.contains("templates that are not there: 1"),
        "{}",
        said.err
    );
    let bomb = "<?xml version='1.0'?>\n  <!DOCTYPE t [<!ENTITY a 'aa'><!ENTITY b '&a;&a;&a;'>]>\n\
                <template name='&b;' id='1'/>";
    let said = run(&["templates", &folder.with("t.xml", bomb)]);
    let text = "S1 at 2:3: a document type definition (DTD) is not allowed";
    assert!(said.code == 1 && said.err.contains(text), "{}", said.err);
}

#[test]
fn explain_shows_each_byte_with_its_meaning() {
    let folder = Folder::new("explain");
    let file = folder.file("complex.dat");
    run(&["generate", "complex", "-n", "10", "-o", &file]).succeeded();
    let explain = ["explain", "-t", "builtin:complex", "-f", &file];
    let said = run(&[&explain[..], &["--message", "2"]].concat()).succeeded();
    let has = |text: &str| assert!(said.out.contains(text), "{text} in:\n{}", said.out);
    has("message 2 at byte 22");
    has("  25  03 4b 9f                  SendingTime(52) uInt32 none = 58783");
    has("MDEntries(268).length sequence none = 2 entries");
    has("RptSeq(83) uInt32 increment, bit 0, previous 0 = 1");
    let beyond = run(&[&explain[..], &["--message", "12"]].concat());
    assert_eq!(beyond.code, 1);
    assert!(beyond.err.contains("only 11 messages"), "{}", beyond.err);
}

#[test]
fn explain_shows_an_absent_group_on_a_line_of_its_own() {
    let folder = Folder::new("explain-absent");
    let templates = folder.with(
        "templates.xml",
        "<template name='T' id='1'><uInt32 name='A'/>\
         <group name='G' presence='optional'><uInt32 name='B'/></group>\
         <bitGroup name='H' presence='optional'><uInt3 name='C'/><uInt4 name='D'/></bitGroup>\
         </template>",
    );
    let file = folder.with("packet.dat", [4, 0xc0, 0x81, 0x85, 0x80]);
    let said = run(&["explain", "-t", &templates, "-f", &file, "--header", "u8"]).succeeded();
    for end in [
        "  A uInt32 none = 5",
        "  group G = absent",
        "  H group none = absent",
    ] {
        let has = said.out.lines().any(|line| line.ends_with(end));
        assert!(has, "{end} in:\n{}", said.out);
    }
}

#[test]
fn explain_ends_at_the_error() {
    let folder = Folder::new("explain-error");
    let templates = folder.with(
        "templates.xml",
        "<template name='T' id='7'><uInt32 name='A'/><uInt32 name='B'/></template>",
    );
    let file = folder.with("packet.dat", [5, 0xc0, 0x87, 0x81, 0x00, 0x00]);
    let said = run(&["explain", "-t", &templates, "-f", &file, "--header", "u8"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("A uInt32 none = 1"), "{}", said.out);
    assert!(said.out.contains("in template T, field B"), "{}", said.out);
}

#[test]
fn explain_of_a_cut_packet_goes_as_far_as_the_bytes() {
    let folder = Folder::new("explain-cut");
    let templates = folder.with(
        "templates.xml",
        "<template name='T' id='7'><uInt32 name='A'/><uInt32 name='B'/></template>",
    );
    // Five of seven bytes are present: B of the second message is missing.
    let file = folder.with("packet.dat", [7, 0xc0, 0x87, 0x81, 0x82, 0x80, 0x83]);
    let explain = ["explain", "-t", &templates, "-f", &file, "--header", "u8"];
    let said = run(&explain);
    assert_eq!(said.code, 1);
    for text in [
        "A uInt32 none = 1",
        "B uInt32 none = 2",
        "message 2 at byte 5",
        "A uInt32 none = 3",
        "EOF at byte 7 in template T, field B",
        "EOF the packet is truncated: 7 of at least 8 bytes",
    ] {
        assert!(said.out.contains(text), "{text} in:\n{}", said.out);
    }
    let said = run(&[&explain[..], &["--message", "1"]].concat()).succeeded();
    assert!(said.out.contains("B uInt32 none = 2"), "{}", said.out);
}

#[test]
fn what_the_schema_does_not_have_is_an_error_or_listed() {
    let folder = Folder::new("schema");
    let xml = "<template name='T' id='1'>\n <uInt32 name='A' presense='optional'/></template>";
    let templates = folder.with("t.xml", xml);
    let file = folder.with("packet.dat", [3, 0xc0, 0x81, 0x82]);
    let framed = ["-f", &file, "--header", "u8"];
    let told = "S1 at 2:19: unknown attribute `presense` of <uInt32>";
    for command in ["templates", "decode", "explain", "bench", "codegen"] {
        let mut args = vec![command];
        args.extend((command != "templates").then_some("-t"));
        args.push(&templates);
        if ["decode", "explain", "bench"].contains(&command) {
            args.extend(framed);
        }
        args.extend((command == "bench").then_some("--passes=1"));
        let said = run(&args);
        assert_eq!(said.code, 1, "{command}");
        assert!(said.err.contains(told), "{command}: {}", said.err);
        assert!(said.err.contains("--lenient"), "{command}: {}", said.err);
        args.push("--lenient");
        let said = run(&args).succeeded();
        let listed = format!("left out: {told}");
        assert!(said.err.contains(&listed), "{command}: {}", said.err);
    }
}

#[test]
fn bench_measures_and_checks() {
    let folder = Folder::new("bench");
    for (feed, messages) in [("simple", 301), ("complex", 301), ("spectra", 602)] {
        let file = folder.file("feed.dat");
        run(&["generate", feed, "-n", "300", "-o", &file]).succeeded();
        let templates = format!("builtin:{feed}");
        let bench = [
            "bench", "-t", &templates, "-f", &file, "--json", "--passes", "2",
        ];
        let f = run(&bench).succeeded().figures();
        assert_eq!(
            (&f["messages"], &f["passes"]),
            (&messages.into(), &2.into())
        );
        let generated = ["generated_decode_ns", "generated_encode_ns"];
        for name in ["visitor_ns", "typed_ns", "encode_ns", "encode_message_ns"]
            .iter()
            .chain(&generated)
        {
            assert!(f[name].as_f64().unwrap() > 0.0, "{name}");
        }
    }
}

/// The binary has no structs of other templates.
#[test]
fn bench_says_where_there_are_no_structs() {
    let folder = Folder::new("bench-other");
    let file = folder.file("feed.dat");
    run(&["generate", "simple", "-n", "20", "-o", &file]).succeeded();
    let other = format!("{} ", fanfare_fast::builtin::SIMPLE);
    let templates = folder.with("other.xml", &other);
    let mut args = vec!["bench", "-t", &templates, "-f", &file, "--passes", "1"];
    let said = run(&args).succeeded();
    let says = |line: &str| line.starts_with("generated structs") && line.contains("only with");
    assert!(said.out.lines().any(says), "{}", said.out);
    args.push("--json");
    let f = run(&args).succeeded().figures();
    assert_eq!(f.get("generated_decode_ns"), None);
}

/// The structs of any templates are built in the user's cache, here without optimisation.
#[test]
fn bench_builds_structs() {
    let folder = Folder::new("bench-structs");
    let file = folder.file("feed.dat");
    run(&["generate", "spectra", "-n", "200", "-o", &file]).succeeded();
    let other = format!("{} ", fanfare_fast::builtin::SPECTRA);
    let templates = folder.with("other.xml", &other);
    let bench = |cargo: Option<&str>| {
        let args = "fast bench --structs --json --passes 2 -t".split(' ');
        let args: Vec<_> = args.chain([&templates[..], "-f", &file]).collect();
        let mut command = fanfare(&args);
        command
            .env("XDG_CACHE_HOME", folder.path())
            .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_RELEASE_LTO", "off")
            .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        if let Some(cargo) = cargo {
            command.env("CARGO", cargo);
        }
        said(&mut command)
    };
    let none = bench(Some("/no/such/cargo"));
    assert!(none.err.contains("--structs needs cargo"), "{}", none.err);
    for _ in 0..2 {
        let f = bench(None).succeeded().figures();
        for name in ["generated_decode_ns", "generated_encode_ns"] {
            assert!(f[name].as_f64().unwrap() > 0.0, "{name}");
        }
    }
}

#[test]
fn bench_measures_what_another_encoder_wrote() {
    let folder = Folder::new("bench-other");
    let xml = "<template name='T' id='1'><uInt32 name='V'><copy/></uInt32></template>";
    let templates = folder.with("t.xml", xml);
    // The second message sends a value that it could omit.
    let packet = [6, 0xe0, 0x81, 0x85, 0xe0, 0x81, 0x85];
    let file = folder.with("feed.dat", packet);
    let bench = [
        "bench", "-t", &templates, "-f", &file, "--header", "u8", "--passes", "1",
    ];
    let said = run(&bench).succeeded();
    assert!(
        said.err.contains("differ from the bytes in the file"),
        "{}",
        said.err
    );
}

#[test]
fn codegen_prints_a_module() {
    let said = run(&["codegen", "-t", "builtin:complex"]).succeeded();
    for part in [
        "pub struct MarketData {",
        "pub md_entry_px: ::fanfare_fast::Decimal,",
        "impl ::fanfare_fast::typed::Typed for QuoteRequest {",
    ] {
        assert!(said.out.contains(part), "{part}");
    }
    let folder = Folder::new("codegen");
    let bad = folder.with(
        "bad.xml",
        "<templates><template name='T' id='x'/></templates>",
    );
    let said = run(&["codegen", "-t", &bad]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
}

#[test]
fn what_cannot_be_printed_is_a_failure() {
    let folder = Folder::new("full");
    let file = folder.file("complex.dat");
    run(&["generate", "complex", "-n", "100", "-o", &file]).succeeded();
    for args in [
        &["fast", "templates", "builtin:simple"][..],
        &["dds", "idl", "-t", "builtin:simple"],
        &["fast", "codegen", "-t", "builtin:simple"],
        &["fast", "decode", "-t", "builtin:complex", "-f", &file],
        &["market", "events", "-t", "builtin:complex", "-f", &file],
    ] {
        let full = std::fs::File::options().write(true).open("/dev/full");
        let said = said(fanfare(args).stdout(full.unwrap()));
        let why = said.err.lines().last().unwrap_or_default();
        assert!(
            why.contains("to stdout: No space left"),
            "{args:?}: {said:?}"
        );
        assert_eq!(said.code, 1, "{said:?}");
    }
}
