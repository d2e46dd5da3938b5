//! `fanfare history verify`: checks every byte of a log.

use super::{Place, raw_entries};
use crate::plural::counted;
use crate::print::{exit_code, note, say};
use crate::progress;
use anyhow::Result;
use fanfare_engine::stop::Stop;
use fanfare_history::{Damage, Verified};
use serde_json::json;
use std::process::ExitCode;

/// The most faults that are listed.
const MOST: usize = 50;

/// Read a whole log and check every CRC, every event's number, every checkpoint.
///
/// The exit status is 1 if the log is damaged. Events that the log never received are reported, and
/// are not damage.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<ExitCode> {
    let log = args.place.open()?;
    let stop = Stop::on_interrupt()?;
    let mut done = None;
    let found = log.verify(|read, total| {
        let before = done.unwrap_or_else(|| {
            progress::begin_bytes(total);
            0
        });
        progress::advance(read.saturating_sub(before));
        done = Some(read);
        !stop.is_raised()
    })?;
    progress::clear();
    if args.json {
        say!("{}", object(&found));
    } else {
        tell(&found);
    }
    if found.is_partial {
        note!("fanfare: ended before everything was read");
    }
    Ok(exit_code(found.is_whole() && !found.is_partial))
}

fn tell(found: &Verified) {
    let faults = found.damage.len() as u64 + u64::from(found.repeated > 0);
    let end = match faults {
        0 => "all in order".to_owned(),
        faults => format!("{}:", counted(faults, "fault")),
    };
    let what = match found.raw {
        0 => counted(found.events, "event"),
        raw => raw_entries(raw),
    };
    say!(
        "{what} in {}, {}, {}: {end}",
        counted(found.segments, "segment"),
        counted(found.bytes, "byte"),
        counted(found.checkpoints, "checkpoint")
    );
    for damage in found.damage.iter().take(MOST) {
        let Damage {
            path,
            at,
            bytes,
            what,
        } = damage;
        say!(
            "  {}, byte {at}, {}: {what}",
            path.display(),
            counted(*bytes, "byte")
        );
    }
    if let Some(more @ 1..) = found.damage.len().checked_sub(MOST) {
        say!("  and {more} more");
    }
    if found.repeated > 0 {
        let repeated = counted(found.repeated, "event");
        say!("  {repeated} with numbers not above those before");
    }
    for (first, last) in found.missing.iter().take(MOST) {
        say!("  events {first} to {last} are missing");
    }
    if let Some(more @ 1..) = found.missing.len().checked_sub(MOST) {
        say!("  and {more} more ranges are missing");
    }
}

fn object(found: &Verified) -> serde_json::Value {
    let damage = found.damage.iter().map(|damage| {
        json!({
            "path": damage.path.to_string_lossy(),
            "byte": damage.at,
            "bytes": damage.bytes,
            "what": damage.what,
        })
    });
    json!({
        "ok": found.is_whole() && !found.is_partial,
        "segments": found.segments,
        "bytes": found.bytes,
        "blocks": found.blocks,
        "events": found.events,
        "raw": found.raw,
        "instruments": found.instruments,
        "checkpoints": found.checkpoints,
        "repeated": found.repeated,
        "missing": found.missing,
        "damage": damage.collect::<Vec<_>>(),
        "partial": found.is_partial,
    })
}
