//! FIX messages that are parsed, and validated, on the same bytes.

use crate::contest::{Contest, Contestant, Figure};
use crate::peers::{Peers, Recipe, number};
use anyhow::{Result, anyhow, ensure};
use fanfare_fix::codec::{Decoder, Encoder};
use fanfare_fix::dict::{Dictionary, Switches, Version};
use fanfare_fix::tag;
use fanfare_instruments::figures::median;
use fanfare_peers::Program;
use fanfare_wire::Decimal;
use std::hint::black_box;
use std::process::Command;
use std::time::Instant;

/// Batches of a turn, and parses of a batch.
const BATCHES: usize = 101;
const PARSES: usize = 2000;

/// An order and a snapshot parsed, and the order validated too.
///
/// # Errors
/// A message cannot be made, or is not valid.
pub(crate) fn contests(peers: &Peers) -> Result<Vec<Contest>> {
    let (order, snapshot) = (order()?, snapshot()?);
    let mut contests = Vec::new();
    for (name, bytes) in [("order", &order), ("snapshot", &snapshot)] {
        let fields = bytes.iter().filter(|byte| **byte == 1).count();
        let size = format!("{} bytes, {fields} fields", bytes.len());
        let what = format!(
            "The same {name} ({size}) is parsed again and again from memory, its BodyLength(9) \
             and CheckSum(10) checked, its fields found. Philadelphia and Fanfare find where \
             fields are, QuickFIX copies each into a map."
        );
        contests.push(contest(peers, name, bytes, what, false)?);
    }
    let what = "The order is parsed and checked against the dictionary of FIX 4.4: fields that it \
                may have and must have, values, types. Philadelphia has no dictionary.";
    contests.push(contest(peers, "order", &order, what.to_owned(), true)?);
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
            "1.15.1 of Debian, -O2",
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
    Ok(contest)
}

fn ours(bytes: Vec<u8>, validates: bool) -> Result<Contestant> {
    let (mut decoder, dictionary) = (Decoder::new(), Dictionary::built_in(Version::Fix44));
    let switches = Switches::default();
    let message = decoder.decode(&bytes)?;
    let checked = dictionary.validate(&message, switches);
    checked.map_err(|fault| anyhow!("{fault}"))?;
    Ok(Contestant::new(
        "Fanfare",
        "fanfare-fix, Decoder",
        move || {
            let mut batches = Vec::new();
            for _ in 0..BATCHES {
                let begun = Instant::now();
                let mut fine = 0;
                for _ in 0..PARSES {
                    let message = decoder.decode(black_box(&bytes))?;
                    let is_fine = match validates {
                        true => dictionary.validate(&message, switches).is_ok(),
                        false => !message.msg_type().is_empty(),
                    };
                    fine += usize::from(black_box(is_fine));
                }
                ensure!(fine == PARSES, "a message was refused");
                batches.push(begun.elapsed().as_nanos() as f64 / PARSES as f64);
            }
            Ok(vec![median(batches)])
        },
    ))
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

/// A NewOrderSingle(D).
fn order() -> Result<Vec<u8>> {
    let mut buf = [0; 512];
    let mut order = header(&mut buf, b"D");
    order
        .str(tag::CL_ORD_ID, "ORDER0001234")
        .char(tag::HANDL_INST, b'1');
    order.str(tag::SYMBOL, "EURUSD").char(tag::SIDE, b'1');
    order.str(tag::TRANSACT_TIME, "20261120-12:34:56.123");
    order.u64(tag::ORDER_QTY, 100_000).char(tag::ORD_TYPE, b'2');
    order.decimal(tag::PRICE, Decimal::new(123_456, -5));
    order.char(tag::TIME_IN_FORCE, b'0');
    let range = order.finish()?;
    Ok(buf[range].to_vec())
}

/// A MarketDataSnapshotFullRefresh(W) of ten entries.
fn snapshot() -> Result<Vec<u8>> {
    let mut buf = [0; 2048];
    let mut snapshot = header(&mut buf, b"W");
    snapshot
        .str(tag::MD_REQ_ID, "REQUEST1")
        .str(tag::SYMBOL, "EURUSD");
    snapshot.u64(tag::NO_MD_ENTRIES, 10);
    for entry in 0..10 {
        let side = if entry < 5 { b'0' } else { b'1' };
        snapshot.char(tag::MD_ENTRY_TYPE, side);
        snapshot.decimal(tag::MD_ENTRY_PX, Decimal::new(123_450 + entry, -5));
        snapshot.u64(tag::MD_ENTRY_SIZE, 1_000_000 + 1000 * entry as u64);
    }
    let range = snapshot.finish()?;
    Ok(buf[range].to_vec())
}

fn header<'b>(buf: &'b mut [u8], msg_type: &[u8]) -> Encoder<'b> {
    let mut message = Encoder::new(buf, b"FIX.4.4", msg_type);
    message
        .str(tag::SENDER_COMP_ID, "BUYSIDE")
        .str(tag::TARGET_COMP_ID, "SELLSIDE");
    message.u64(tag::MSG_SEQ_NUM, 1234);
    message.str(tag::SENDING_TIME, "20261120-12:34:56.123");
    message
}
