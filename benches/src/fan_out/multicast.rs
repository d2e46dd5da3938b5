//! Fan-out by Cyclone DDS: one datagram for all readers, or for all of a network.

use super::CONSUMERS;
use super::clients::{ROUNDS, SECONDS, WINDOW};
use super::dialect::Dialect;
use crate::contest::Contestant;
use crate::dds_ends::{WATERMARKS, cyclone, found, package};
use crate::peers::{Found, Peers, Recipe, number};
use anyhow::Result;
use fanfare_peers::{Program, domain};
use std::path::Path;
use std::process::Command;

/// Instances of the domain that the readers are on, each with sockets of its own.
const NETWORKS: [(&str, usize, &str); 2] = [
    (
        "Cyclone DDS",
        1,
        "11.0.1 in C, listeners, batches; all readers on one socket",
    ),
    (
        "Cyclone DDS, multicast",
        20,
        "the same by multicast to 20 sockets, with 10 readers on each",
    ),
];

/// Returns the contestants, or why they are absent.
pub(super) fn contestants(peers: &Peers) -> Found<Vec<Contestant>> {
    let home = peers.file("");
    found("Cyclone DDS", both(&home))
}

fn both(home: &Path) -> Result<Vec<Contestant>> {
    let program = cyclone(home, &package(home, "ours")?, "cyclone_fan")?;
    // A sample has the bytes of the message that the others send, or some more.
    let mut message = Vec::new();
    Dialect::Plain.message(ROUNDS as u64, &mut message)?;
    let size = message.len().next_multiple_of(8).to_string();
    let configuration = format!("CYCLONEDDS_URI={}", configuration(domain()));
    let end = |processor: &str, words: &[&str]| {
        let mut command = Command::new("env");
        command.arg(&configuration);
        command.args(["taskset", "--cpu-list", processor]);
        command.arg(&program).args(words);
        Recipe::from(command)
    };
    let contestant = |(name, networks, how): (&'static str, usize, &str)| {
        let relay = end("0", &["relay", &size]);
        let [networks, readers, rounds] = [networks, CONSUMERS, ROUNDS].map(|n| n.to_string());
        let (window, seconds) = (WINDOW.to_string(), SECONDS.to_string());
        let words = [
            "fan", &size, &networks, &readers, &rounds, &window, &seconds,
        ];
        let fan = end("1", &words);
        Contestant::new(name, how, move || turn(&relay, &fan))
    };
    Ok(NETWORKS.map(contestant).into())
}

fn turn(relay: &Recipe, fan: &Recipe) -> Result<Vec<f64>> {
    let mut relay = Program::start(&mut relay.command())?;
    anyhow::ensure!(relay.line()? == "ready", "the relay is not ready");
    let mut fan = Program::start(&mut fan.command())?;
    let p50 = number(&mut fan, "p50")?;
    let p99 = number(&mut fan, "p99")?;
    let rate = number(&mut fan, "rate")?;
    fan.close();
    relay.close();
    Ok(vec![p50 / 1e3, p99 / 1e3, rate])
}

/// Multicast on loopback, which does not leave this host.
fn configuration(domain: u32) -> String {
    format!(
        "<CycloneDDS><Domain Id=\"any\"><General><Interfaces>\
         <NetworkInterface address=\"127.0.0.1\" multicast=\"true\"/></Interfaces>\
         <AllowMulticast>true</AllowMulticast><MulticastTimeToLive>0</MulticastTimeToLive>\
         <MaxMessageSize>65500B</MaxMessageSize></General>\
         <Discovery><ExternalDomainId>{domain}</ExternalDomainId>\
         <ParticipantIndex>none</ParticipantIndex></Discovery>\
         <Internal><Watermarks>{WATERMARKS}</Watermarks></Internal></Domain></CycloneDDS>"
    )
}
