//! The end of an edge.

use super::Edge;
use crate::event::Event;

impl Edge {
    /// Drops the changes that still wait, because the edge ends: see
    /// [`Market::finish`](crate::Market::finish). Must be called last.
    pub fn finish(&mut self, send: &mut impl FnMut(&Event)) {
        let instruments = u32::try_from(self.table.len()).unwrap_or(u32::MAX);
        self.course.market.finish(instruments, send);
    }
}
