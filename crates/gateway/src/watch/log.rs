//! The log of market events, on disk and relative to the ring.

use super::Watch;
use super::error::NoBook;
use super::render;
use super::samples::{sample, value};
use fanfare_history::Log;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;

impl Watch {
    /// Returns the extent of the log, and its lag. Reads the headers of its files.
    ///
    /// # Errors
    /// Returns an error if there is no log, or a file cannot be read.
    pub(crate) fn log(&self) -> Result<Value, NoBook> {
        let own = self.0.log.as_ref();
        let own = own.ok_or(NoBook::Missing(
            "the gateway has no log: its configuration has no [history]",
        ))?;
        let sample = sample(&self.0.counters);
        let (events_rate, bytes_rate) = {
            let rates = self.0.samples();
            (rates.rate_of("log_written"), rates.rate_of("log_bytes"))
        };
        let log = Log::open(&own.folder)?;
        let (extent, segments) = (log.extent()?, log.readable_segments()?);
        let views = log.checkpoints()?;
        let count = |name: &str| value(&sample, "", name);
        let next = self
            .0
            .next
            .as_ref()
            .map(|next| next.load(Ordering::Relaxed));
        let committed = own.committed.load(Ordering::Relaxed);
        let from = log.first_time()?;
        Ok(json!({
            "folder": own.folder.display().to_string(),
            "run": extent.run,
            "first": extent.first,
            "next": extent.next,
            "from": from.and_then(render::time),
            "to": render::time(extent.to),
            "events": extent.next - extent.first,
            "bytes": segments.iter().map(|own| own.bytes).sum::<u64>(),
            "segments": segments.len(),
            "compacted": segments.iter().filter(|own| own.is_compacted).count(),
            "events_per_s": events_rate,
            "bytes_per_s": bytes_rate,
            "lag_events": next.map_or(0, |next| next.saturating_sub(committed)),
            "missed": count("log_missed"),
            "failures": count("log_failures"),
            "checkpoints": views.len(),
            "last_checkpoint": views.iter().max(),
            "followed": count("log_followed"),
        }))
    }
}
