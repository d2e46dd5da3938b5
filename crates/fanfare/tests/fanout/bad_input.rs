//! Errors are reported in one sentence that names the place.

use crate::common::{Folder, fails, nobody, run, told};
use std::net::TcpListener;

#[test]
fn wrong_usage_is_status_2() {
    for args in [
        &["fanout"][..],
        &["fanout", "sever"],
        &["fanout", "server", "--workers", "many"],
        &["fanout", "server", "--workers", "0"],
        &["fanout", "server", "--workers", "65"],
        &["fanout", "server", "--max-sessions", "0"],
        &["fanout", "consumers"],
        &["fanout", "report"],
        &["bench", "codec", "--kernel", "mmx"],
    ] {
        assert_eq!(run(args).code, 2, "{args:?}");
    }
}

#[test]
fn a_configuration_with_an_unknown_key_names_its_line() {
    let folder = Folder::new("unknown-key");
    let path = folder.with(
        "unknown.toml",
        b"workers = 1\n\n[limits]\nmesage_bytes = 5\n",
    );
    let told = fails(&["fanout", "server", "--config", &path]);
    assert!(
        told.contains("line 4") && told.contains("mesage_bytes"),
        "{told}"
    );
    let told = fails(&["fanout", "server", "--config", "/nowhere/at.toml"]);
    assert!(told.contains("/nowhere/at.toml"), "{told}");
    let path = folder.with("workers.toml", b"workers = 1000\n");
    let said = run(&["fanout", "server", "--config", &path]);
    assert_eq!(
        (said.code, said.out.as_str()),
        (1, ""),
        "nothing is launched"
    );
    assert!(
        said.err.contains("workers") && said.err.contains("between 1 and 64"),
        "{}",
        said.err
    );
}

#[test]
fn a_gateway_writes_no_file_that_it_reads() {
    let folder = Folder::new("own-input");
    let (path, users) = (folder.file("gateway.toml"), folder.with("users.toml", ""));
    let feed = "[feed]\ntemplates = \"builtin:spectra\"\nlines = [\"239.1.2.1:13014\"]\n\
                mapping = \"builtin:spectra\"\n";
    for text in [
        format!("capture = \"{path}\"\n"),
        format!("audit = \"{path}\"\n"),
        format!("[log]\nto = \"{path}\"\n"),
        format!("events = \"{path}\"\n{feed}"),
        format!("{feed}[history]\nfolder = \"log\"\nring = \"{path}\"\n"),
        format!("users = \"{users}\"\naudit = \"{users}\"\n"),
    ] {
        folder.with("gateway.toml", &text);
        let told = fails(&["gateway", "--check", &path]);
        assert!(told.contains("it is also the input"), "{text}: {told}");
    }
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let told = fails(&[
        "fanout",
        "server",
        "--producer-port",
        &port,
        "--consumer-port",
        "0",
    ]);
    assert!(told.contains(&port) && told.contains("in use"), "{told}");
}

#[test]
fn a_gateway_that_is_not_there_is_named() {
    let free = nobody().port().to_string();
    let told = fails(&["fanout", "consumers", "127.0.0.1", "2", "--port", &free]);
    assert!(told.contains(&free) && told.contains("refused"), "{told}");
    let told = fails(&["fanout", "producers", "no.such.host.invalid", "1", "1", "1"]);
    assert!(told.contains("no.such.host.invalid"), "{told}");
}

#[test]
fn numbers_out_of_range_are_wrong_usage() {
    for args in [
        &["fanout", "consumers", "127.0.0.1", "0"][..],
        &["fanout", "producers", "127.0.0.1", "1", "1", "0"],
        &["fanout", "producers", "127.0.0.1", "1", "1", "NaN"],
        &["fanout", "producers", "127.0.0.1", "1", "1", "1e300"],
        &["fanout", "baseline", "--consumers", "0"],
        &["bench", "fanout", "--consumers", "0"],
        &["bench", "fanout", "--workers", "0"],
        &["bench", "fanout", "--saturate", "--messages", "0"],
        &["bench", "feed", "--loss", "1"],
        &["bench", "latency", "--rounds", "0"],
    ] {
        told(args, 2);
    }
}

#[test]
fn subscriptions_that_cannot_be_are_wrong_usage() {
    let consumers = ["fanout", "consumers", "127.0.0.1", "1", "--port", "1"];
    for (args, why) in [
        (&["--depth", "3"][..], "--subscribe"),
        (&["--subscribe", "A,,B"], "1 to 128 printable"),
        (&["--subscribe", "A", "--depth", "65536"], "65536"),
        (&["--subscribe", "A", "--fix", "FIX.4.0"], "FIX.4.2 to"),
        (&["--subscribe", "A", "--entries", "00"], "MDEntryType"),
        (&["--subscribe", "A", "--interval", "0"], "1..=3600000"),
        (&["--subscribe", "A", "--contract", "never"], "conflated"),
        (&["--subscribe", "A", "--seconds", "0"], "above 0"),
        (&["--subscribe", "A", "--username", "u"], "--password-file"),
        (&["--subscribe", "A", "--from-start"], "--from-start"),
        (
            &["--subscribe", "A", "--by-order", "--depth", "2"],
            "--depth",
        ),
    ] {
        let said = told(&[&consumers, args].concat(), 2);
        assert!(said.contains(why), "{args:?}: {said}");
    }
    let file = [
        "--subscribe",
        "A",
        "--username",
        "u",
        "--password-file",
        "/nowhere",
    ];
    let told = fails(&[&consumers, &file[..]].concat());
    assert!(told.contains("/nowhere"), "{told}");
}

#[test]
fn a_template_that_is_no_fix_message_is_refused() {
    let folder = Folder::new("template");
    let path = folder.with("template.txt", b"to be or not to be\n");
    let told = fails(&[
        "fanout",
        "producers",
        "127.0.0.1",
        "1",
        "1",
        "1",
        "--template",
        &path,
    ]);
    assert!(told.contains("template.txt"), "{told}");
}

#[test]
fn a_capture_that_is_none_or_of_other_traffic_says_so() {
    let folder = Folder::new("captures");
    let refused = |name: &str, bytes: &[u8]| {
        let told = fails(&["fanout", "report", &folder.with(name, bytes)]);
        assert!(told.contains(name), "{told}");
        told
    };
    let told = refused("text.pcap", b"hello, this is text");
    assert!(told.contains("not a pcap"), "{told}");
    let mut empty = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    empty.extend([0; 8]);
    empty.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    refused("empty.pcap", &empty);
    refused("nothing.pcap", b"");
}
