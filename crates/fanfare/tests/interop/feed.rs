//! Tests a FAST feed through the gateway to QuickFIX, which validates by its own dictionaries, in
//! three versions at once: every message is accepted, and none rejected.

use crate::common::gateway::Gateway;
use crate::common::{Folder, done, groups};
use crate::engines::{Engine, Engines, Start, VERSIONS, Version};
use fanfare_engine::udp::{Sender, SenderConfig};
use fanfare_fast::{Decoder, Program};
use fanfare_feed::{Channel, ChannelConfig, Line};
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Packets in flight at a time, so that no buffer overflows.
const WINDOW: usize = 32;

/// A packet, and whether the consumers get a message for it.
type Packet = (Vec<u8>, bool);

#[test]
fn quickfix_takes_every_message_of_a_recorded_feed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/moex-spectra");
    let templates = folder.join("templates.xml");
    let Ok(xml) = fs::read_to_string(&templates) else {
        println!("skipped: there is no recording at {}", folder.display());
        return;
    };
    let program = Arc::new(Program::parse(&xml).unwrap());
    let mut packets = Vec::new();
    for file in ["increment_a.dat", "snapshot.dat"] {
        let decoder = Decoder::new(Arc::clone(&program));
        let mut channel = Channel::new(decoder, ChannelConfig::new(1)).unwrap();
        let bytes = fs::read(folder.join(file)).unwrap();
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (len, numbers) = channel.cut(Line::A, rest);
            // A Reset, and a message that is not SequenceReset.
            packets.push((rest[..len].to_vec(), numbers.next.is_none()));
            rest = &rest[len..];
        }
    }
    let Some(told) = take_all(templates.to_str().unwrap(), &packets) else {
        return;
    };
    // Eight messages have one entry each, of the type "empty book", which FIX.5.0 introduced: the
    // other two versions get a News(B) instead.
    for line in [
        "733 SequenceResets",
        "17415 empty messages",
        "50030 deliveries",
        "8 messages left out",
        "0 messages unfit",
        "16 values, 16 entries",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

#[test]
fn quickfix_takes_every_message_of_a_generated_feed() {
    let folder = Folder::new("interop-feed");
    let file = folder.file("complex.dat");
    let generate = ["fast", "generate", "complex", "-n", "500", "-o", &file];
    done(&mut crate::common::fanfare(&generate));
    let bytes = fs::read(&file).unwrap();
    let (mut rest, mut packets) = (&bytes[..], Vec::new());
    while let Some((len, behind)) = rest.split_first_chunk::<4>() {
        let (packet, behind) = behind.split_at(u32::from_le_bytes(*len) as usize);
        packets.push((packet.to_vec(), true));
        rest = behind;
    }
    // The last message ends the feed.
    packets.last_mut().unwrap().1 = false;
    let Some(told) = take_all("builtin:complex", &packets) else {
        return;
    };
    assert!(
        told.contains("0 messages unfit") && told.contains("1 end"),
        "{told}"
    );
}

/// Sends packets to a gateway with consumers of three versions. Returns the gateway's last output,
/// or `None` without QuickFIX.
fn take_all(templates: &str, packets: &[Packet]) -> Option<String> {
    let engines = Engines::find()?;
    let folder = Folder::new("interop-gateway");
    let [group, _] = groups();
    let config = format!(
        "[producers]\nport = 0\n[consumers]\nport = 0\n[feed]\ntemplates = \"{templates}\"\n\
         lines = [\"{group}\"]\n"
    );
    let config = folder.with("gateway.toml", config);
    let mut gateway = Gateway::start(&mut crate::common::fanfare(&["gateway", &config]));
    let address = format!("127.0.0.1:{}", gateway.consumers).parse().unwrap();
    let versions = ["42", "44", "50SP2"];
    let versions: Vec<Version> = VERSIONS
        .into_iter()
        .filter(|v| versions.contains(&v.short()))
        .collect();
    let mut consumers = Vec::new();
    for version in versions {
        let mut consumer = engines.initiator(Engine::QuickFix, version, address, Start::Forgetful);
        consumer.wait("a Logon", |line| line == "logon").unwrap();
        gateway.tells("logged on");
        consumers.push(consumer);
    }
    let mut sender = Sender::open(&SenderConfig::new(group.parse().unwrap())).unwrap();
    for window in packets.chunks(WINDOW) {
        let datagrams: Vec<&[u8]> = window.iter().map(|(bytes, _)| &bytes[..]).collect();
        assert_eq!(sender.send_batch(&datagrams).unwrap(), window.len());
        let wanted = window.iter().filter(|(_, is_told)| *is_told).count();
        for consumer in &mut consumers {
            for _ in 0..wanted {
                let is_data = |line: &str| {
                    assert!(
                        !line.starts_with("out ") || line.contains("|35=0|"),
                        "{line}"
                    );
                    line.starts_with("in ") && !line.contains("|35=0|")
                };
                let line = consumer.wait("a message of the feed", is_data).unwrap();
                assert!(
                    !line.contains("|35=3|") && !line.contains("|35=5|"),
                    "{line}"
                );
            }
        }
    }
    for consumer in &mut consumers {
        consumer.end();
    }
    let told = gateway.stop().out;
    assert!(told.contains("0 messages rejected"), "{told}");
    Some(told)
}
