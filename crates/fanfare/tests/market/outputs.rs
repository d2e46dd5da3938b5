//! Tests that no command writes over a file that it reads, and that errors name the output.

use super::{feed, text};
use crate::common::log::{events, write, write_raw};
use crate::common::{Folder, fails, fanfare, run};
use fanfare_instruments::pcap::{LinkType, Writer};
use std::fs;
use std::path::Path;
use std::process::Stdio;

/// Checks that a command refuses to write `output`, and leaves `input` as it is.
fn refuses(args: &[&str], input: &str, output: &str, why: &str) {
    let before = fs::read(input).unwrap();
    assert!(!before.is_empty(), "{input}");
    let told = fails(args);
    let expected = format!("fanfare: cannot write `{output}`: {why}\n");
    assert_eq!(told, expected, "{args:?}");
    assert!(fs::read(input).unwrap() == before, "{args:?}");
}

#[test]
fn events_do_not_replace_what_they_are_made_of() {
    let folder = Folder::new("same-events");
    let file = feed(&folder, "spectra", &[]);
    let file = text(&file);
    let dbn = folder.file("feed.dbn");
    let from_file = ["market", "events", "-t", "builtin:spectra", "-f", file];
    run(&[&from_file[..], &["--format", "dbn", "-o", &dbn]].concat()).succeeded();
    let mut pcap = Writer::new(Vec::new(), LinkType::RAW, 65_535).unwrap();
    pcap.packet(1, &[0x45], 1).unwrap();
    let pcap = folder.with("feed.pcap", pcap.into_inner());
    let fix = folder.with("fix.log", "8=FIX.4.4|9=5|35=0|10=161|\n");
    let table = folder.with("table.csv", "symbol,id,source\nALFA,1000,8\n");
    let mapping = folder.with("mapping.toml", "# none\n");
    let templates = "<template name='T' id='1'><uInt32 name='A'/></template>";
    let templates = folder.with("templates.xml", templates);
    let events = |more: &[&str], input: &str| {
        let link = folder.file("link");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(input, &link).unwrap();
        for output in [input, &link] {
            let args = [&["market", "events", "-o", output], more].concat();
            refuses(&args, input, output, "it is also the input");
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    };
    events(&from_file[2..], file);
    events(&["-t", "builtin:spectra", "--pcap", &pcap], &pcap);
    events(&["--fix", &fix], &fix);
    events(&["--dbn", &dbn], &dbn);
    events(&["--dbn", &dbn, "--instruments", &table], &table);
    // The mapping is refused for its contents, the templates for want of a mapping.
    for (more, input) in [
        (&["--fix", &fix, "--mapping", &mapping][..], &mapping),
        (&["-t", &templates, "-f", file], &templates),
    ] {
        let before = fs::read(input).unwrap();
        fails(&[&["market", "events", "-o", input], more].concat());
        assert_eq!(fs::read(input).unwrap(), before);
    }
    let before = fs::read(file).unwrap();
    let mut piped = fanfare(&[
        "market",
        "events",
        "-t",
        "builtin:spectra",
        "-f",
        "-",
        "-o",
        file,
    ]);
    piped.stdin(Stdio::from(fs::File::open(file).unwrap()));
    let said = crate::common::said(&mut piped);
    assert_eq!(said.code, 1, "{}", said.err);
    assert!(fs::read(file).unwrap() == before);
}

#[test]
fn a_full_disk_is_told_with_the_file() {
    let folder = Folder::new("full-events");
    let file = feed(&folder, "spectra", &[]);
    for format in ["json", "dbn"] {
        let options = ["-f", text(&file), "-o", "/dev/full", "--format", format];
        let told = fails(&[&["market", "events", "-t", "builtin:spectra"], &options[..]].concat());
        let why = "fanfare: cannot write `/dev/full`: No space left on device";
        assert!(told.starts_with(why), "{told}");
    }
}

#[test]
fn an_export_does_not_replace_a_file_of_its_log() {
    let folder = Folder::new("same-log");
    let [log, raw] = ["log", "raw"].map(|name| folder.file(name));
    write(Path::new(&log), &events(60));
    write_raw(Path::new(&raw));
    let link = folder.file("link");
    std::os::unix::fs::symlink(&log, &link).unwrap();
    let why = "it is a file of the log";
    for output in [&log, &link].map(|folder| format!("{folder}/0000000001.log")) {
        let args = ["history", "export", &log, "--format", "csv", "-o", &output];
        refuses(&args, &output, &output, why);
    }
    let output = format!("{raw}/0000000001.log");
    for more in [&[][..], &["--fix"]] {
        let args = [&["history", "raw", &raw, "-o", &output], more].concat();
        refuses(&args, &output, &output, why);
    }
    // The folder may have other files.
    let output = format!("{log}/events.csv");
    let args = ["history", "export", &log, "--format", "csv", "-o", &output];
    for _ in 0..2 {
        run(&args).succeeded();
    }
}

#[test]
fn a_page_or_a_capture_does_not_replace_what_is_read() {
    let folder = Folder::new("same-others");
    let config = folder.with("fanout.toml", "workers = 1\n");
    let why = "it is also the input";
    let server = [
        "fanout",
        "server",
        "--config",
        &config,
        "--capture",
        &config,
    ];
    refuses(&server, &config, &config, why);
    let own = folder.file("own.toml");
    let own = folder.with("own.toml", format!("capture = \"{own}\"\n"));
    refuses(&["gateway", &own], &own, &own, why);
    let orders = folder.with("orders.txt", "11=1|55=A|54=1|38=1|40=1\n");
    let run = ["throughput", "run", "--orders", &orders, "--svg", &orders];
    refuses(&run, &orders, &orders, why);
}
