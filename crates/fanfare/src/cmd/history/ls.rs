//! `fanfare history ls`: the segments of a log.

use super::Place;
use crate::print::say;
use anyhow::Result;
use fanfare_history::moment::utc;
use serde_json::json;
use std::process::ExitCode;

/// List the segments of a log: number of the first event, time before it, run of the plant, bytes,
/// whether it is compacted. Segments of which nothing can be read are left out.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// One JSON object on one line for each segment.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let segments = args.place.open()?.readable_segments()?;
    if !args.json {
        say!(
            "{:>8} {:>14} {:30} {:>4} {:>14}",
            "segment",
            "first event",
            "time in front of it",
            "run",
            "bytes"
        );
    }
    for segment in segments {
        let time = (segment.time != 0).then(|| utc(segment.time));
        if args.json {
            let object = json!({
                "segment": segment.ordinal,
                "first": segment.first,
                "time": time,
                "run": segment.run,
                "bytes": segment.bytes,
                "compacted": segment.is_compacted,
                "path": segment.path.to_string_lossy(),
            });
            say!("{object}");
            continue;
        }
        let mark = if segment.is_compacted {
            " compacted"
        } else {
            ""
        };
        say!(
            "{:8} {:14} {:30} {:4} {:14}{mark}",
            segment.ordinal,
            segment.first,
            time.as_deref().unwrap_or("-"),
            segment.run,
            segment.bytes
        );
    }
    Ok(ExitCode::SUCCESS)
}
