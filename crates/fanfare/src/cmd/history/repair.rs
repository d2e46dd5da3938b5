//! `fanfare history repair`: repairs a damaged log.

use super::Place;
use crate::plural::counted;
use crate::print::say;
use anyhow::Result;
use fanfare_history::{Log, Mended, Repair};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Repair a damaged log, with the gateway stopped: rewrite damaged segments with every event that
/// can be read, fill in missing segments, remove checkpoints that are damaged or behind the last
/// event.
///
/// Damaged segments are kept beside the new ones, under names that end in .damaged. Events that
/// cannot be read stay missing, and readers report them. An intact log is left unchanged, and so is
/// one with a segment under the name of another one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let done = Log::repair(&args.place.folder)?;
    if args.json {
        let done: Vec<Value> = done.iter().map(object).collect();
        say!("{}", json!({ "mended": done }));
        return Ok(ExitCode::SUCCESS);
    }
    for repair in &done {
        let path = repair.path.display();
        match (repair.what, &repair.kept) {
            (Mended::Segment, Some(kept)) => {
                say!(
                    "{path}: written anew, the damaged file is {}",
                    kept.display()
                );
            }
            (Mended::Segment, None) => say!("{path}: written anew"),
            (Mended::Hole, _) => say!("{path}: was missing, and has no events"),
            (Mended::Checkpoint, _) => {
                say!("{path}: checkpoint removed, damaged or beyond the last event");
            }
        }
    }
    match done.len() as u64 {
        0 => say!("all in order: nothing to mend"),
        count => say!("{} mended", counted(count, "file")),
    }
    Ok(ExitCode::SUCCESS)
}

fn object(repair: &Repair) -> Value {
    json!({
        "path": repair.path.to_string_lossy(),
        "what": match repair.what {
            Mended::Segment => "segment",
            Mended::Hole => "missing segment",
            Mended::Checkpoint => "checkpoint",
        },
        "kept": repair.kept.as_ref().map(|kept| kept.to_string_lossy()),
    })
}
