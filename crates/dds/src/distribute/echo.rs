//! The publishing side's handling of echoes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::fast::TemplateType;

/// Receives the round trips of one topic, in nanoseconds, in a receive thread.
pub type RoundTrips = Box<dyn FnMut(u64) + Send>;

/// The handling of echoes.
pub(super) struct Echo<'a> {
    pub(super) round_trips: &'a mut dyn FnMut(&TemplateType) -> RoundTrips,
    pub(super) echoed: &'a Arc<AtomicU64>,
}

impl Echo<'_> {
    /// Returns the function that receives the source time of each echo of one topic.
    pub(super) fn of(&mut self, template: &TemplateType) -> impl FnMut(i64) + Send + use<> {
        let mut round_trip = (self.round_trips)(template);
        let echoed = Arc::clone(self.echoed);
        move |sent| {
            let now = now_nanos();
            // Counted first: the closure may wake a thread that waits for the count.
            echoed.fetch_add(1, Ordering::Release);
            round_trip(u64::try_from(now.saturating_sub(sent)).unwrap_or(0));
        }
    }
}

/// Returns the nanoseconds since 1970.
pub(super) fn now_nanos() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(i64::MAX)
}
