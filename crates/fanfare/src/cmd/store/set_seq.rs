//! `fanfare store set-seq`: the numbers with which a session continues.

use super::stores::{Store, in_use, stores};
use crate::print::{note, say};
use anyhow::{Result, bail, ensure};
use clap::Args as ClapArgs;
use fanfare_engine::journal::{NumbersError, set_numbers};
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// The highest MsgSeqNum(34) that can be set: 18 digits.
const HIGHEST: u64 = 999_999_999_999_999_999;

/// Options of `fanfare store set-seq`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
#[command(group(clap::ArgGroup::new("numbers").required(true).multiple(true)
    .args(["sender", "target"])))]
pub(crate) struct Args {
    /// The store of a session, or a folder with one store.
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// MsgSeqNum(34) of the next message to the counterparty.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=HIGHEST))]
    sender: Option<u64>,
    /// MsgSeqNum(34) that is expected from the counterparty next.
    #[arg(long, value_name = "N",
          value_parser = clap::value_parser!(u64).range(1..=HIGHEST))]
    target: Option<u64>,
    /// One JSON object: {"session", "path", "before", "after"}, both with "sender" and "target".
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
A lower number of the sender discards the messages from it on: they cannot be resent any more. A \
higher number leaves a gap, which a resend fills with a gap fill. The counterparty must agree to \
the numbers before the next logon. A store in use is not changed: `fanfare store list` prints the \
process that uses it.";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let path = only_store(&args.folder)?;
    let name = Store::open(path.clone())?.name();
    let set = set_numbers(&path, args.sender, args.target).map_err(|error| match error {
        NumbersError::Open(error) => anyhow::Error::msg(in_use(&path, &error)),
        error => error.into(),
    })?;
    if !set.recovery.is_unremarkable() {
        note!("{name}: {}", set.recovery);
    }
    let (before, after) = (set.before, set.after);
    if args.json {
        let pair = |sender: u64, target: u64| json!({ "sender": sender, "target": target });
        say!(
            "{}",
            json!({
                "session": name,
                "path": path.to_string_lossy(),
                "before": pair(before.sender, before.target),
                "after": pair(after.sender, after.target),
            })
        );
        return Ok(ExitCode::SUCCESS);
    }
    say!("{name}");
    say!("  next out {} (was {})", after.sender, before.sender);
    say!("  next in {} (was {})", after.target, before.target);
    Ok(ExitCode::SUCCESS)
}

/// Returns the one store that a folder is, or holds; a store of received messages does not count.
fn only_store(folder: &PathBuf) -> Result<PathBuf> {
    let mut found = Vec::new();
    for path in stores(std::slice::from_ref(folder))? {
        if !Store::open(path.clone())?.is_received() {
            found.push(path);
        }
    }
    ensure!(
        found.len() <= 1,
        "{} has {} stores: name one of them",
        folder.display(),
        found.len()
    );
    match found.pop() {
        Some(path) => Ok(path),
        None => bail!("{} has no sequence numbers of a session", folder.display()),
    }
}
