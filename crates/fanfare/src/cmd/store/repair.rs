//! `fanfare store repair`: cuts off a torn end, or writes a new store of all intact messages.

use super::stores::{Store, fault, in_use, stores};
use crate::plural::counted;
use crate::print::{note, say};
use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::journal::{Outcome, RepairError, repair};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `fanfare store repair`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Stores, or folders of stores.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Only print what would be done.
    #[arg(long)]
    dry_run: bool,
    /// One JSON object on one line for each store: {"session", "path", "dry_run", "outcome"};
    /// outcome is in_order, cut (with "records_cut", and "first", a fault as in `verify`), rebuilt
    /// (with "records_kept", "records_lost", "files_unreadable", "next_sender", "backup") or failed
    /// (with "error").
    #[arg(long)]
    json: bool,
}

const HELP: &str = "\
An incomplete record at the end, which a kill of the process may leave, is cut off in place. After \
other damage, all intact records are written to a new store, which replaces the damaged one; the \
damaged store is kept beside it, with .damaged-N after its name. Used numbers stay used, as far as \
the store still has them. A store in use is not changed.";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for path in stores(&args.folders)? {
        let name = Store::open(path.clone())?.name();
        let outcome = repair(&path, args.dry_run).map_err(|error| sentence(&path, &error));
        if outcome.is_err() {
            code = ExitCode::FAILURE;
        }
        match &outcome {
            _ if args.json => say!("{}", object(&name, &path, &outcome, args.dry_run)),
            Ok(outcome) => tell(&name, outcome, args.dry_run),
            Err(why) => note!("fanfare: {why}"),
        }
    }
    Ok(code)
}

fn object(name: &str, path: &Path, outcome: &Result<Outcome, String>, dry_run: bool) -> Value {
    let mut object = json!({
        "session": name,
        "path": path.to_string_lossy(),
        "dry_run": dry_run,
    });
    let details = match outcome {
        Ok(Outcome::Sound) => json!({ "outcome": "in_order" }),
        Ok(Outcome::Cut { from, records }) => json!({
            "outcome": "cut",
            "records_cut": records,
            "first": fault(from),
        }),
        Ok(Outcome::Rebuilt {
            kept,
            lost,
            unreadable,
            next_sender,
            backup,
        }) => json!({
            "outcome": "rebuilt",
            "records_kept": kept,
            "records_lost": lost,
            "files_unreadable": unreadable,
            "next_sender": next_sender,
            "backup": backup.as_ref().map(|path| path.to_string_lossy()),
        }),
        Err(why) => json!({ "outcome": "failed", "error": why }),
    };
    if let (Value::Object(object), Value::Object(details)) = (&mut object, details) {
        object.extend(details);
    }
    object
}

fn sentence(path: &Path, error: &RepairError) -> String {
    match error {
        RepairError::Open(error) => in_use(path, error),
        _ => error.to_string(),
    }
}

fn tell(name: &str, outcome: &Outcome, dry_run: bool) {
    let would = if dry_run { "would be " } else { "" };
    match outcome {
        Outcome::Sound => say!("{name}: in order, nothing to do"),
        Outcome::Cut { from, records } => {
            let records = counted((*records).into(), "record");
            say!("{name}: {records} at the end {would}cut off, the first was:");
            say!("  {from} ({} bytes)", from.bytes);
        }
        Outcome::Rebuilt {
            kept,
            lost,
            unreadable,
            next_sender,
            backup,
        } => {
            say!(
                "{name}: {would}written anew: {} kept, {lost} lost",
                counted(*kept, "record")
            );
            say!("  the next MsgSeqNum is {next_sender}");
            if *unreadable > 0 {
                let files = counted(*unreadable as u64, "file");
                say!(
                    "  {files} gone or cut short, with unknown contents: compare the numbers with \
                     the counterparty's before the next logon"
                );
            }
            if let Some(backup) = backup {
                say!("  the damaged store is now {}", backup.display());
            }
        }
    }
}
