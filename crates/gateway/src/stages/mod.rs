//! The latencies from the arrival of a message to each outlet, stage by stage.
//!
//! The first message of a turn of a source is measured. The thread of the source reads the clock at
//! the end of each of its stages, and writes the times of arrival and of writing before that
//! message in the ring, as a [`Mark`]. The reader of the ring computes from it how long the message
//! was in the ring, and from one more reading of the clock when it was done.
//!
//! ```text
//! arrival ─▶ decode ─▶ fix ─▶ event ─▶ ring ─▶ socket | dds | log
//! ╰───────────────────────── total ──────────────────────────────╯
//! ```

mod mark;
mod outlet;
mod source;
#[cfg(test)]
mod tests;
mod watch;

pub(crate) use mark::{MARKED, Mark, Pending};
pub(crate) use outlet::{End, OutletStages};
pub(crate) use source::SourceStages;
pub(crate) use watch::Stages;

use fanfare_engine::counters::{Counters, Histogram};

/// The prefix of the names of the histograms.
pub(crate) const STAGE: &str = "stage_";

/// The factory of the stages, which returns none if measuring is switched off.
#[derive(Clone, Copy)]
pub(crate) struct StagePlan<'a> {
    counters: &'a Counters,
    is_on: bool,
}

impl<'a> StagePlan<'a> {
    pub(crate) const fn new(counters: &'a Counters, is_on: bool) -> Self {
        Self { counters, is_on }
    }

    /// Returns the stages of a feed with this name.
    pub(crate) fn feed(&self, name: &str, has_market: bool) -> Option<SourceStages> {
        let of = format!("feed {name}");
        self.is_on
            .then(|| SourceStages::new_feed(*self, &of, has_market))
    }

    /// Returns the stages of a source whose arrival the kernel does not stamp.
    pub(crate) fn source(&self, of: &str) -> Option<SourceStages> {
        self.is_on.then(|| SourceStages::new_unstamped(*self, of))
    }

    /// Returns the stages of the reader of a ring.
    pub(crate) fn outlet(&self, of: &str, end: End) -> Option<OutletStages> {
        self.is_on.then(|| OutletStages::new(*self, of, end))
    }

    fn histogram(&self, of: &str, stage: &str, what: &str) -> Histogram {
        self.counters
            .add_histogram(of, format!("{STAGE}{stage}"), what)
    }
}
