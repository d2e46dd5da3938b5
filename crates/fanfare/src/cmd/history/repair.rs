//! `fanfare history repair`: a damaged log, mended.

use super::Place;
use crate::plural::counted;
use crate::print::say;
use anyhow::Result;
use fanfare_history::{Log, Mended, Repair};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Mend a damaged log, with the gateway stopped: write damaged segments anew with all that can be
/// read of them, fill in segments that are missing, remove damaged checkpoints.
///
/// Damaged segments are kept beside the new ones, under names that end in .damaged. Events that
/// cannot be read stay missing, and readers say so. A log that is in order is left as it is.
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
            (Mended::Checkpoint, _) => say!("{path}: damaged checkpoint removed"),
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
