//! Impossible requests are refused with one sentence, and malformed network input does not end a
//! plant.

use crate::common::{Folder, Running, done, fails, fanfare, groups, said, sending, told};
use crate::{domain, feed};

#[test]
fn what_cannot_work_is_said_in_one_sentence() {
    for (args, why) in [
        (
            &["subscribe", "simple", "--interface", "nosuch0"][..],
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
            &["idl", "-t", "builtin:complex", "--keyed", "--key", "Nope"],
            "no template has a field \"Nope\"",
        ),
        (
            &["idl", "-t", "builtin:complex", "--split", "Nope"],
            "an integer \"Nope\"",
        ),
    ] {
        let text = fails(&[&["dds"], args].concat());
        assert!(text.contains(why) && text.lines().count() == 1, "{text}");
    }
}

/// A subscriber to such templates waited for ever.
#[test]
fn files_that_cannot_work_are_named_with_the_place() {
    let folder = Folder::new("cannot-work");
    let templates = folder.with(
        "same.xml",
        "<templates><template name='Quote' id='1'><uInt32 name='MsgSeqNum'/></template>\
         <template name='DoneToken' id='2'><uInt64 name='samples'/></template></templates>",
    );
    let packets = folder.with("odd.dat", [2_u8, 0, 0, 0, 0xc0, 0xff]);
    let subscribe = ["dds", "subscribe", "simple", "--transport", "shm"];
    for (option, file, why) in [
        (
            "-t",
            templates.as_str(),
            "samples of template \"DoneToken\"",
        ),
        ("--check", packets.as_str(), "in the packet at byte "),
        ("--check", packets.as_str(), ": the message at byte 0: "),
    ] {
        let text = fails(&[&subscribe[..], &[option, file]].concat());
        assert!(text.contains(why) && text.lines().count() == 1, "{text}");
    }
}

#[test]
fn options_that_contradict_each_other_are_wrong_usage() {
    let multicast = ["publish", "simple", "--multicast"];
    let unicast = [&multicast[..], &["10.0.0.1:13014"]].concat();
    let (group, again) = ("239.1.2.1:13014", "--multicast");
    let twice = [&multicast[..], &[group, again, group]].concat();
    for (args, why) in [
        (&unicast[..], "10.0.0.1 is not a multicast group"),
        (&twice[..], "both lines are 239.1.2.1:13014"),
        (&["ls", "--transport", "shm"], "publish and subscribe only"),
    ] {
        let text = told(&[&["dds"], args].concat(), 2);
        assert!(text.contains(why) && text.lines().count() == 1, "{text}");
    }
    let header = [&multicast[..], &["239.1.2.1:13014", "--header", "u8"]].concat();
    for (args, option) in [
        (&header[..], "--header"),
        (&["subscribe", "simple", "--header", "u8"], "--check"),
        (&["ping", "--tcp-port", "7"], "--tcp-port"),
        (
            &["idl", "-t", "builtin:simple", "--key", "OrderId"],
            "--keyed",
        ),
        (&["idl", "--fix", "-t", "builtin:simple"], "--fix"),
        (&["idl", "--fix", "--module", "Own"], "--module"),
        (&["idl"], "--templates"),
        (&["subscribe", "simple", "--ring", "1"], "--ring"),
    ] {
        let text = told(&[&["dds"], args].concat(), 2);
        assert!(text.contains(option), "{text}");
    }
    let many = ["dds", "publish", "complex", "-f", "x", "--securities"];
    for securities in ["0", "4000000000"] {
        told(&[&many[..], &[securities]].concat(), 2);
    }
    for (option, value, why) in [
        ("--domain", "233", "233 is not in 0..=232"),
        ("--lease", "99999999999", "is not in 100..=1800000"),
        ("--module", "a b", "not a valid name in IDL"),
        ("--module", "", "'--module <NAME>'"),
    ] {
        let text = told(&["dds", "subscribe", "simple", option, value], 2);
        assert!(text.contains(why) && text.contains(option), "{text}");
    }
    for of_multicast in [
        ["--idle", "1"],
        ["--backlog", "1"],
        ["--receive-interface", "127.0.0.1"],
    ] {
        let file = ["dds", "publish", "simple", "-f", "x"];
        told(&[&file[..], &of_multicast].concat(), 2);
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
    for file in [noise, feed("simple", 400)] {
        done(&mut sending(file, &group));
    }
    publisher.tells("fanfare: a packet cannot be decoded");
    let figures = publisher.end().succeeded().out;
    assert!(
        figures.contains("\"messages\":400,\"samples\":400"),
        "{figures}"
    );
    assert!(!figures.contains("\"bad_packets\":0"), "{figures}");
}

/// Returns a number as FAST encodes it, with a stop bit.
fn stop_bit(number: u32) -> Vec<u8> {
    let mut bytes = vec![number as u8 | 0x80];
    let mut rest = number >> 7;
    while rest > 0 {
        bytes.insert(0, rest as u8 & 0x7f);
        rest >>= 7;
    }
    bytes
}

#[test]
fn a_sample_that_is_too_long_does_not_end_a_live_publisher() {
    let folder = Folder::new("too-long");
    let number = "<uInt32 name='MsgSeqNum' id='34'/>";
    let member = |name: &str| format!("<int64 name='{name}'><constant value='1'/></int64>");
    let members = ["A", "B", "C"].map(member).concat();
    let templates = format!(
        "<templates><template name='Many' id='1'>{number}<sequence name='S'>{members}</sequence>\
         </template><template name='Done' id='2'>{number}</template></templates>"
    );
    let templates = folder.with("templates.xml", templates);
    // A sample may have 1 MiB, in a queue of 1 MiB half, and in a ring of 1 MiB a quarter of that.
    for (options, entries) in [
        (&["--backlog", "64"][..], 60_000),
        (&["--backlog", "1"], 30_000),
        (&["--transport", "shm", "--ring", "1"], 12_000),
    ] {
        let [group, _] = groups();
        let mut publish = fanfare(&["dds", "publish", "simple", "-t", &templates, "--json"]);
        publish.args(["--no-echo", "--wait", "0"]).args(options);
        publish.args(["--domain", &domain(37), "--multicast", &group]);
        let mut publisher = Running::start(&mut publish);
        publisher.tells("receiving");
        let packets = [
            [&[0xc0, 0x81][..], &stop_bit(1), &stop_bit(entries)].concat(),
            [&[0xc0, 0x81][..], &stop_bit(2), &stop_bit(1)].concat(),
            [&[0xc0, 0x82][..], &stop_bit(3)].concat(),
        ];
        let packets = packets.map(|packet| [&[packet.len() as u8][..], &packet].concat());
        let file = folder.with("packets.dat", packets.concat());
        done(sending(&file, &group).args(["--header", "u8"]));
        publisher.tells("fanfare: a sample is too long");
        let said = publisher.end();
        assert_eq!(said.code, 1, "{}", said.err);
        assert_eq!(said.json()["ok"], false, "{}", said.out);
        let figures = said.figures();
        for (name, wanted) in [("messages", 2), ("samples", 1), ("too_long", 1)] {
            assert_eq!(figures[name], wanted, "{name} in {figures}");
        }
    }
}

#[test]
fn a_lenient_publisher_takes_deviations_from_fast() {
    let folder = Folder::new("lenient-publisher");
    let number = "<uInt32 name='MsgSeqNum' id='34'/>";
    let templates = format!(
        "<templates><template name='One' id='1'>{number}</template>\
         <template name='Done' id='2'>{number}</template></templates>"
    );
    let templates = folder.with("templates.xml", templates);
    // The number 1 in two bytes, of which one would do: R6.
    let packets = [&[0xc0, 0x81, 0x00, 0x81][..], &[0xc0, 0x82, 0x82]];
    let packets = packets.map(|packet| [&[packet.len() as u8][..], packet].concat());
    let file = folder.with("packets.dat", packets.concat());
    let publish = |options: &[&str]| {
        let mut publish = fanfare(&["dds", "publish", "simple", "-t", &templates, "--json"]);
        publish.args(["--no-echo", "--wait", "0", "--header", "u8", "-f", &file]);
        said(publish.args(["--domain", &domain(38)]).args(options))
    };
    let strict = publish(&[]);
    assert_eq!(strict.code, 1, "{}", strict.err);
    assert!(strict.err.contains("R6"), "{}", strict.err);
    let lenient = publish(&["--lenient"]).succeeded().figures();
    assert_eq!(lenient["samples"], 1, "{lenient}");
}
