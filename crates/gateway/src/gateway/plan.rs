//! The parts of a gateway that its feeds, edges, files and DDS topics share at the start.

use crate::notice::Notices;
use crate::stages::StagePlan;
use fanfare_engine::counters::Counters;
use fanfare_engine::stop::Stop;

/// The settings and measures of a whole gateway, for the start of its feeds and DDS topics.
#[derive(Clone, Copy)]
pub(crate) struct Plan<'a> {
    /// This gateway's origin on DDS.
    pub(crate) origin: u64,
    /// The feeds that this gateway receives itself.
    pub(crate) channels: &'a [String],
    /// The longest message, in bytes.
    pub(crate) message_bytes: usize,
    pub(crate) counters: &'a Counters,
    pub(crate) notices: &'a Notices,
    pub(crate) stages: StagePlan<'a>,
    /// The flag that ends the gateway. Every wait ends soon after it is raised.
    pub(crate) stop: &'a Stop,
}

#[cfg(test)]
impl<'a> Plan<'a> {
    /// Returns the plan of a part that runs without a gateway.
    pub(crate) fn of_a_test(counters: &'a Counters, notices: &'a Notices, stop: &'a Stop) -> Self {
        Self {
            origin: 1,
            channels: &[],
            message_bytes: 1 << 16,
            counters,
            notices,
            stages: StagePlan::new(counters, false),
            stop,
        }
    }
}
