//! `fanfare store repair`: a torn end cut off, or a new store of all that is whole.

use super::stores::{Store, stores};
use crate::print::{note, say};
use anyhow::Result;
use clap::Args as ClapArgs;
use fanfare_engine::journal::{OpenError, Outcome, RepairError, holder, repair};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Options of `fanfare store repair`.
#[derive(ClapArgs)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Stores, or folders of stores.
    #[arg(value_name = "DIR", required = true)]
    folders: Vec<PathBuf>,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
}

const HELP: &str = "\
Records at the end that are not whole are cut off in place. With other damage all records that are \
in order go to a new store, which takes the place of the damaged one; that stays beside it with \
.damaged-N behind its name. A store in use is left alone.";

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut code = ExitCode::SUCCESS;
    for path in stores(&args.folders)? {
        let name = Store::open(path.clone())?.name();
        match repair(&path, args.dry_run) {
            Ok(outcome) => tell(&name, &outcome, args.dry_run),
            Err(error) => {
                note!("fanfare: {}", sentence(&path, &error));
                code = ExitCode::FAILURE;
            }
        }
    }
    Ok(code)
}

fn sentence(path: &Path, error: &RepairError) -> String {
    match (error, holder(path)) {
        (RepairError::Open(OpenError::InUse { .. }), Some(pid)) => format!(
            "store {} is in use by process {pid}: stop that first",
            path.display()
        ),
        _ => error.to_string(),
    }
}

fn tell(name: &str, outcome: &Outcome, dry_run: bool) {
    let would = if dry_run { "would be " } else { "" };
    match outcome {
        Outcome::Sound => say!("{name}: in order, nothing to do"),
        Outcome::Cut { from, records } => {
            let plural = if *records == 1 { "" } else { "s" };
            say!("{name}: {records} record{plural} at the end {would}cut off, the first was:");
            say!("  {from} ({} bytes)", from.bytes);
        }
        Outcome::Rebuilt {
            kept,
            lost,
            unreadable,
            backup,
        } => {
            say!("{name}: {would}written anew: {kept} records kept, {lost} lost");
            if *unreadable > 0 {
                say!(
                    "  {unreadable} files cannot be read: compare the numbers with the \
                     counterparty before the next logon"
                );
            }
            if let Some(backup) = backup {
                say!("  the damaged store is now {}", backup.display());
            }
        }
    }
}
