//! FIX messages that are parsed, validated, and read and built through types, on the same bytes.

mod crates;
mod messages;
mod typed;

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Found, Peers, Recipe, number, source};
use anyhow::{Result, anyhow, ensure};
use fanfare_fix::codec::Decoder;
use fanfare_fix::dict::{Dictionary, Switches, Version};
use fanfare_instruments::figures::median;
use fanfare_peers::{Program, python};
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Batches of a turn, and parses of a batch.
const BATCHES: usize = 101;
const PARSES: usize = 2000;

const SIMPLEFIX: &str = "1.0.17 of PyPI, checks nothing";

/// Decoders that cannot be had.
const ABSENT: [&str; 2] = [
    "hffix: a header that no package registry has",
    "fefix: its last version, of 2021, needs a PostgreSQL client (sqlx 0.5); rustyfix is its fork",
];

/// An order and a snapshot parsed, the order validated too, and the order read and built.
///
/// # Errors
/// A message cannot be made, or is not valid.
pub(crate) fn contests(peers: &Peers) -> Result<Vec<Contest>> {
    let (order, snapshot) = (messages::order()?, messages::snapshot()?);
    let mut contests = Vec::new();
    for (name, bytes) in [("order", &order), ("snapshot", &snapshot)] {
        let fields = bytes.iter().filter(|byte| **byte == 1).count();
        let size = format!("{} bytes, {fields} fields", bytes.len());
        let what = format!(
            "The same {name} ({size}) is parsed again and again from memory, its fields found, \
             its BodyLength(9) and CheckSum(10) checked; QuickFIX/Go checks the former only, \
             QuickFIX/J the latter, simplefix neither. QuickFIX C++ and /J, Philadelphia, hotfix \
             and simplefix copy each field, QuickFIX/Go and rustyfix put each into a map, the \
             others find where fields are."
        );
        contests.push(contest(peers, name, bytes, what, false)?);
    }
    let what = "The order is parsed and checked against the dictionary of FIX 4.4: fields that it \
                may have and must have, values, types. Philadelphia has no dictionary.";
    contests.push(contest(peers, "order", &order, what.to_owned(), true)?);
    contests.push(typed::contest(peers, &order)?);
    Ok(contests)
}

fn contest(
    peers: &Peers,
    name: &str,
    bytes: &[u8],
    what: String,
    validates: bool,
) -> Result<Contest> {
    let file = peers.file(&format!("{name}.fix"));
    std::fs::write(&file, bytes)?;
    let with = if validates { " and validated" } else { "" };
    let suffix = if validates { "_validate" } else { "" };
    let mut contest = Contest {
        id: format!("fix_parse_{name}{suffix}"),
        title: format!("FIX: {name}, parsed{with}"),
        what,
        source: "benches/src/parse.rs, benches/peers",
        figures: vec![Figure::lower("message", "ns")],
        contestants: vec![ours(bytes.to_vec(), validates)?],
        absent: Vec::new(),
    };
    let dictionary = peers.java.as_ref().map(|java| java.dictionary.clone());
    let checks = |command: &mut Command| {
        if let (true, Ok(dictionary)) = (validates, &dictionary) {
            command.arg(dictionary);
        }
    };
    let mut join = |name, how: &str, mut command: Command| {
        checks(command.arg("parse").arg(&file));
        contest.contestants.push(theirs(name, how, command));
    };
    match &peers.quickfix {
        Ok(_) if validates && dictionary.is_err() => {
            let absent = "QuickFIX C++: its dictionary comes with QuickFIX/J, which is absent";
            contest.absent.push(absent.to_owned());
        }
        Ok(program) => join(
            "QuickFIX C++",
            &format!("{}, -O2", peers.quickfix_version),
            Command::new(program),
        ),
        Err(absent) => contest.absent.push(absent.clone()),
    }
    // Its check by a dictionary is not public.
    if !validates {
        match &peers.go {
            Ok(program) => join("QuickFIX/Go", "0.9.7", Command::new(program)),
            Err(absent) => contest.absent.push(absent.clone()),
        }
    }
    match &peers.java {
        Ok(java) => {
            join("QuickFIX/J", "2.3.2, warmed up", java.quickfixj());
            if !validates {
                join("Philadelphia", "2.0.0, warmed up", java.philadelphia());
            }
        }
        Err(absent) => contest.absent.push(absent.clone()),
    }
    if !validates {
        match simplefix(peers, &file) {
            Ok(program) => contest
                .contestants
                .push(theirs("simplefix", SIMPLEFIX, program)),
            Err(absent) => contest.absent.push(absent),
        }
        contest.contestants.extend(crates::contestants(bytes)?);
        contest.absent.extend(ABSENT.map(str::to_owned));
    }
    Ok(contest)
}

fn simplefix(peers: &Peers, file: &Path) -> Found<Command> {
    let found = python(&peers.file("simplefix"), "simplefix==1.0.17", "simplefix");
    let python = found.map_err(|absent| format!("simplefix: {absent}"))?;
    let mut command = Command::new(python);
    command.arg(source("parse_simplefix.py")).arg(file);
    Ok(command)
}

fn ours(bytes: Vec<u8>, validates: bool) -> Result<Contestant> {
    let (mut decoder, dictionary) = (Decoder::new(), Dictionary::built_in(Version::Fix44));
    let switches = Switches::default();
    let message = decoder.decode(&bytes)?;
    let checked = dictionary.validate(&message, switches);
    checked.map_err(|fault| anyhow!("{fault}"))?;
    let name = "fanfare-fix, Decoder";
    Ok(Contestant::new("Fanfare", name, move || {
        timed(|| {
            let message = decoder.decode(black_box(&bytes))?;
            Ok(match validates {
                true => dictionary.validate(&message, switches).is_ok(),
                false => !message.msg_type().is_empty(),
            })
        })
    }))
}

/// The median of batches of parses in this process, or of what else is done to a message; `parse`
/// returns whether the message is fine.
fn timed(mut parse: impl FnMut() -> Result<bool>) -> Result<Vec<f64>> {
    let mut batches = Vec::new();
    for _ in 0..BATCHES {
        let begun = Instant::now();
        let mut fine = 0;
        for _ in 0..PARSES {
            fine += usize::from(black_box(parse()?));
        }
        ensure!(fine == PARSES, "a message was refused");
        batches.push(begun.elapsed().as_nanos() as f64 / PARSES as f64);
    }
    Ok(vec![median(batches)])
}

/// A program that prints the time of one parse.
fn theirs(name: &'static str, how: &str, command: Command) -> Contestant {
    let recipe = Recipe::from(command);
    Contestant::new(name, how, move || {
        let mut program = Program::start(&mut recipe.command())?;
        let took = number(&mut program, "parsed")?;
        program.close();
        Ok(vec![took])
    })
}
