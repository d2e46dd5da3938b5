//! How long what comes in takes to each outlet, stage by stage.
//!
//! What is measured is the first message of a turn of a source. The thread of the source reads the
//! clock at the end of each of its stages, and the times of arrival and of writing go through the
//! ring in front of that message, as a [`Mark`]. Who reads the ring knows from there how long the
//! message was in the ring, and from one more reading of the clock when it was through.
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

/// Front of the names of the histograms.
pub(crate) const STAGE: &str = "stage_";

/// Makes what measures, or nothing where it is switched off.
#[derive(Clone, Copy)]
pub(crate) struct StagePlan<'a> {
    counters: &'a Counters,
    is_on: bool,
}

impl<'a> StagePlan<'a> {
    pub(crate) const fn new(counters: &'a Counters, is_on: bool) -> Self {
        Self { counters, is_on }
    }

    /// For a feed with this name.
    pub(crate) fn feed(&self, name: &str, has_market: bool) -> Option<SourceStages> {
        let of = format!("feed {name}");
        self.is_on
            .then(|| SourceStages::new_feed(*self, &of, has_market))
    }

    /// For a source whose arrival the kernel does not stamp.
    pub(crate) fn source(&self, of: &str) -> Option<SourceStages> {
        self.is_on.then(|| SourceStages::new_unstamped(*self, of))
    }

    /// For who reads a ring.
    pub(crate) fn outlet(&self, of: &str, end: End) -> Option<OutletStages> {
        self.is_on.then(|| OutletStages::new(*self, of, end))
    }

    fn histogram(&self, of: &str, stage: &str, what: &str) -> Histogram {
        self.counters
            .add_histogram(of, format!("{STAGE}{stage}"), what)
    }
}
