//! Reports of how far a load has come.

/// The reports of a total: one for each multiple of a step that it passes.
pub(super) struct Progress<'a> {
    /// The step; with 0, nothing is reported.
    step: u64,
    reported: u64,
    report: &'a mut dyn FnMut(u64),
}

impl<'a> Progress<'a> {
    pub(super) fn new(step: u64, report: &'a mut dyn FnMut(u64)) -> Self {
        Self {
            step,
            reported: 0,
            report,
        }
    }

    /// Reports every multiple that `total` has passed since the last report.
    pub(super) fn pass(&mut self, total: u64) {
        while self.step > 0 && self.reported + self.step <= total {
            self.reported += self.step;
            (self.report)(self.reported);
        }
    }
}
