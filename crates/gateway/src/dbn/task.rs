//! The pending tasks of clients.

use super::beginning::Join;
use super::replay::Replay;
use fanfare_market::InstrumentId;
use fanfare_market::dbn::live::LiveSchemas;
use std::collections::HashSet;

/// A pending task of a client.
pub(super) enum Task {
    /// A subscription starts.
    Join(Join),
    /// A subscription starts in the past.
    Replay(Box<Replay>),
    /// Books with dropped orders are sent again.
    Again,
}

impl Task {
    /// Returns the number of instruments that its subscription lists and that have not started.
    pub(super) fn instruments(&self) -> usize {
        match self {
            Self::Join(join) => join.targets.len(),
            Self::Replay(replay) => replay.join().targets.len(),
            Self::Again => 0,
        }
    }

    /// Removes instruments from the past of a subscription to a schema, and from those that it
    /// lists. Returns false if none is left.
    pub(super) fn leave_out(&mut self, schema: LiveSchemas, gone: &HashSet<InstrumentId>) -> bool {
        if !self.schema().meets(schema) {
            return true;
        }
        match self {
            Self::Join(join) => join.targets.leave_out(gone),
            Self::Replay(replay) => replay.leave_out(gone),
            Self::Again => true,
        }
    }

    /// Returns the schema of the subscription that it belongs to.
    pub(super) const fn schema(&self) -> LiveSchemas {
        match self {
            Self::Join(join) => join.schema.alone(),
            Self::Replay(replay) => replay.schema(),
            Self::Again => LiveSchemas::NONE,
        }
    }
}

/// Returns the schemas of which no record of a new instrument with this symbol may be sent yet: the
/// past of all instruments is being sent, or their start has more of it to send.
pub(super) fn awaited<'a>(
    tasks: impl IntoIterator<Item = &'a Task>,
    symbol: &[u8],
    instrument: InstrumentId,
) -> LiveSchemas {
    let awaited = tasks.into_iter().filter(|task| match task {
        Task::Replay(replay) => replay.is_past() && replay.is_of_all(),
        Task::Join(join) => join.shows(symbol, instrument),
        Task::Again => false,
    });
    awaited.fold(LiveSchemas::NONE, |all, task| all.with(task.schema()))
}
