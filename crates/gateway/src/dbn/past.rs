//! The log as the past of the feeds that the plant has now.

use fanfare_engine::poll::Waker;
use fanfare_history::{At, Log, LogError, Run, SegmentInfo};
use std::path::PathBuf;

/// The state that the threads of replays share.
pub(super) struct Past {
    pub(super) folder: PathBuf,
    /// The run of the plant that writes the log.
    pub(super) run: Run,
    pub(super) waker: Waker,
}

impl Past {
    /// Returns the segment with which the past begins, if the plant had other feeds or books before
    /// it: in runs with these, numbers are those of other instruments.
    ///
    /// # Errors
    /// Returns an error if the log cannot be read.
    pub(super) fn begin<'a>(
        &self,
        log: &Log,
        segments: &'a [SegmentInfo],
    ) -> Result<Option<&'a SegmentInfo>, LogError> {
        let mut begin: Option<&SegmentInfo> = None;
        for of_run in segments.chunk_by(|a, b| a.run == b.run).rev() {
            let Some(own) = of_run.first() else {
                continue;
            };
            let has_events = begin.is_none_or(|later| own.first < later.first);
            let is_other = own.run < self.run.number && has_events;
            if is_other && log.as_of(At::Number(own.first))?.run.feeds != self.run.feeds {
                return Ok(begin);
            }
            begin = Some(own);
        }
        Ok(None)
    }
}
