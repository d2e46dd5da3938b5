//! Impossible requests are refused with one sentence, and malformed network input does not end a
//! plant.

use crate::common::{Running, done, fails, fanfare, groups, told};
use crate::{domain, feed};

#[test]
fn what_cannot_work_is_said_in_one_sentence() {
    for (args, why) in [
        (
            &["subscribe", "simple", "--domain", "8675309"][..],
            "8675309 is out of range",
        ),
        (
            &["subscribe", "simple", "--interface", "nosuch0"],
            "nosuch0",
        ),
        (
            &["ls", "--peer", "no such host"],
            "\"no such host\" cannot be resolved",
        ),
        (&["ls", "--peer", "0.0.0.0"], "is not the address of a host"),
        (
            &["ls", "--peer", "127.0.0.1:99999"],
            "must be between 1 and 65535",
        ),
        (
            &["idl", "-t", "builtin:none"],
            "builtin:simple, builtin:complex or builtin:spectra",
        ),
        (
            &["idl", "-t", "builtin:simple", "--keyed", "--key", "Nope"],
            "no template has a field \"Nope\"",
        ),
        (
            &["idl", "-t", "builtin:complex", "--split", "Nope"],
            "an integer \"Nope\"",
        ),
        (
            &["publish", "simple", "--multicast", "10.0.0.1:13014"],
            "10.0.0.1 is not a multicast group",
        ),
    ] {
        let text = fails(&[&["dds"], args].concat());
        assert!(text.contains(why) && text.lines().count() == 1, "{text}");
    }
    let many = ["dds", "publish", "complex", "-f", "x", "--securities"];
    for securities in ["0", "4000000000"] {
        told(&[&many[..], &[securities]].concat(), 2);
    }
    for of_multicast in ["--idle", "--backlog"] {
        told(
            &["dds", "publish", "simple", "-f", "x", of_multicast, "1"],
            2,
        );
    }
    for wait in ["--wait", "--patience", "--idle"] {
        let publish = ["dds", "publish", "simple", "--multicast", "239.1.2.1:13014"];
        let why = told(&[&publish[..], &[wait, "18446744073709551615"]].concat(), 2);
        assert!(why.contains("86400"), "{why}");
    }
    let no_window = ["--in-flight", "1", "--no-echo"];
    told(
        &[&["dds", "publish", "simple", "-f", "x"], &no_window[..]].concat(),
        2,
    );
    for of_several in [&["--publishers", "0"][..], &["--once", "--check", "x"]] {
        told(&[&["dds", "subscribe", "simple"], of_several].concat(), 2);
    }
}

/// The error of an interrupted command names what it was waiting for.
#[test]
fn a_command_that_is_interrupted_before_it_began_says_so() {
    let file = feed("simple", 400).into_os_string();
    let publish = ["publish", "simple", "-f", file.to_str().unwrap()];
    let waits = [
        (
            &publish[..],
            "waiting for a subscriber",
            "the first subscriber",
        ),
        (
            &["subscribe", "simple"],
            "Finished subscribing",
            "the first sample",
        ),
    ];
    for (args, waiting, before) in waits {
        let mut command = fanfare(&[&["dds"], args].concat());
        let mut running = Running::start(command.args(["--domain", &domain(17)]));
        running.tells(waiting);
        running.interrupt();
        let said = running.end();
        let why = format!("interrupted before {before}");
        assert!(said.code == 1 && said.err.contains(&why), "{}", said.err);
    }
}

#[test]
fn a_packet_that_is_no_message_does_not_end_a_live_publisher() {
    let [group, _] = groups();
    let publish = [
        "dds",
        "publish",
        "simple",
        "--no-echo",
        "--wait",
        "0",
        "--json",
    ];
    let mut publish = fanfare(&publish);
    publish.args(["--domain", &domain(15), "--multicast", &group]);
    let mut publisher = Running::start(&mut publish);
    publisher.tells("receiving");
    // The command keeps the packets on loopback.
    let noise = feed("simple", 400).with_file_name("dds-noise.dat");
    let mut packets = Vec::new();
    for bytes in [&[0xff; 40][..], &[0xc0, 0xff], &[0], &[0x80; 1400]] {
        packets.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        packets.extend_from_slice(bytes);
    }
    std::fs::write(&noise, packets).unwrap();
    let (address, port) = group.split_once(':').unwrap();
    for file in [noise, feed("simple", 400)] {
        let multicast = ["fast", "multicast", "-a", address, "-p", port, "-f"];
        done(fanfare(&multicast).arg(file));
    }
    publisher.tells("fanfare: a packet cannot be decoded");
    let figures = publisher.end().succeeded().out;
    assert!(
        figures.contains("\"messages\":400,\"samples\":400"),
        "{figures}"
    );
    assert!(!figures.contains("\"bad_packets\":0"), "{figures}");
}
