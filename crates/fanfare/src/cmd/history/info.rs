//! `fanfare history info`: a summary of a log.

use super::{Place, raw_entries};
use crate::plural::counted;
use crate::print::say;
use anyhow::Result;
use fanfare_history::moment::utc;
use fanfare_history::{FeedInfo, Run, Start};
use fanfare_market::book::BookKind;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Print the range of a log, its size on disk, and its feeds.
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
    let (extent, segments) = (log.extent()?, log.readable_segments()?);
    let first = log.first_time()?;
    let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
    let compacted = segments.iter().filter(|segment| segment.is_compacted);
    let compacted = compacted.count() as u64;
    let (checkpoints, events) = (log.checkpoints()?.len(), extent.next - extent.first);
    let now = log.reader(Start::Now)?;
    let (feeds, instruments) = (now.run().map(feeds), now.directory().len());
    if args.json {
        let object = json!({
            "folder": log.folder().to_string_lossy(),
            "events": events,
            "first": extent.first,
            "next": extent.next,
            "from": first.map(utc),
            "to": first.map(|_| utc(extent.to)),
            "segments": segments.len(),
            "compacted": compacted,
            "bytes": bytes,
            "checkpoints": checkpoints,
            "run": extent.run,
            "closed": extent.is_closed,
            "instruments": instruments,
            "feeds": feeds,
        });
        say!("{object}");
        return Ok(ExitCode::SUCCESS);
    }
    let what = match log.is_raw()? {
        true => raw_entries(events),
        false => counted(events, "event"),
    };
    match first {
        Some(first) => say!(
            "{what} from {} to {}, {} to {}",
            extent.first,
            extent.next - 1,
            utc(first),
            utc(extent.to)
        ),
        None => say!("no events; the next is {}", extent.next),
    }
    say!(
        "{} ({compacted} compacted), {bytes} bytes, {}",
        counted(segments.len() as u64, "segment"),
        counted(checkpoints as u64, "checkpoint")
    );
    let end = if extent.is_closed {
        "ended"
    } else {
        "not ended"
    };
    say!("run {} of the plant, {end}", extent.run);
    for feed in now.run().iter().flat_map(|run| &run.feeds) {
        let (name, depth) = (&feed.name, feed.book.levels());
        say!("feed {name:?}: books by {}, {depth} deep", kind(feed));
    }
    say!("{}", counted(instruments as u64, "instrument"));
    Ok(ExitCode::SUCCESS)
}

fn feeds(run: &Run) -> Vec<Value> {
    let feed = |feed: &FeedInfo| {
        let depth = feed.book.levels();
        json!({"name": feed.name, "book": kind(feed), "depth": depth, "first": feed.base})
    };
    run.feeds.iter().map(feed).collect()
}

fn kind(feed: &FeedInfo) -> &'static str {
    match feed.book.kind() {
        BookKind::Levels => "levels",
        BookKind::Prices => "prices",
        BookKind::Orders => "orders",
    }
}
