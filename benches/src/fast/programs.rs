//! Decoders in other languages, as programs: each decodes the packets of a file again and again,
//! and prints what a pass adds up to and how long it takes.

use super::Sum;
use crate::contest::{Contest, Contestant};
use crate::peers::{Found, Peers, Recipe, java_program, number, source};
use anyhow::{Result, ensure};
use fanfare_peers::{Absent, Program, jars, java};
use std::process::Command;

const OPENFAST: &str = "1.1.1 of Maven Central, messages as objects, warmed up";
const NO_GOFAST: &str = "goFAST: the Go module proxy refused the module in November 2026";

/// What the programs decode, and what it adds up to.
pub(super) struct Packets<'a> {
    pub(super) name: &'a str,
    pub(super) templates: &'a str,
    pub(super) packets: &'a [Vec<u8>],
    pub(super) sum: Sum,
}

/// Adds OpenFAST, or why it is absent.
///
/// # Errors
/// A file cannot be written.
pub(super) fn join(contest: &mut Contest, peers: &Peers, feed: &Packets<'_>) -> Result<()> {
    let packets = peers.file(&format!("fast-{}.packets", feed.name));
    std::fs::write(&packets, framed(feed.packets)?)?;
    let templates = peers.file(&format!("fast-{}.xml", feed.name));
    std::fs::write(&templates, feed.templates)?;
    match openfast(peers) {
        Ok(mut program) => {
            program.arg(&templates).arg(&packets);
            contest
                .contestants
                .push(contestant("OpenFAST", OPENFAST, program, feed.sum));
        }
        Err(absent) => contest.absent.push(absent),
    }
    contest.absent.push(NO_GOFAST.to_owned());
    Ok(())
}

/// Packets with their lengths in front: four bytes, little-endian.
fn framed(packets: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for packet in packets {
        bytes.extend(u32::try_from(packet.len())?.to_le_bytes());
        bytes.extend(packet);
    }
    Ok(bytes)
}

fn openfast(peers: &Peers) -> Found<Command> {
    let found = || -> Result<Command, Absent> {
        let jars = jars(&peers.file("openfast"), &source("openfast/pom.xml"))?;
        let file = source("openfast/OpenFast.java");
        let classes = java(&peers.file("openfast-classes"), &file, &jars)?;
        Ok(java_program(&jars, &classes, &[], "OpenFast"))
    };
    found().map_err(|absent| format!("OpenFAST: {absent}"))
}

/// A program whose sum must be `sum` in each turn.
fn contestant(name: &'static str, how: &str, program: Command, sum: Sum) -> Contestant {
    let recipe = Recipe::from(program);
    Contestant::new(name, how, move || {
        let mut program = Program::start(&mut recipe.command())?;
        let (found, wanted) = (
            program.line()?,
            format!("sum {} {}", sum.messages, sum.values),
        );
        ensure!(found == wanted, "{found:?} came, {wanted:?} was expected");
        let took = number(&mut program, "decoded")?;
        program.close();
        Ok(vec![took])
    })
}
