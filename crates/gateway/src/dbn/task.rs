//! What clients are yet to get.

use super::beginning::Join;
use super::replay::Replay;
use fanfare_market::dbn::live::LiveSchemas;

/// What a client is yet to get.
pub(super) enum Task {
    /// A subscription begins.
    Join(Join),
    /// A subscription begins in the past.
    Replay(Box<Replay>),
    /// Books of orders of which some were left out, once more.
    Again,
}

impl Task {
    /// The schema of the subscription that it is of.
    pub(super) const fn schema(&self) -> LiveSchemas {
        match self {
            Self::Join(join) => join.schema.alone(),
            Self::Replay(replay) => replay.schema(),
            Self::Again => LiveSchemas::NONE,
        }
    }
}

/// The schemas of which no record may be sent yet: their past is on its way.
pub(super) fn past<'a>(tasks: impl IntoIterator<Item = &'a Task>) -> LiveSchemas {
    let past = tasks.into_iter().filter_map(|task| match task {
        Task::Replay(replay) if replay.is_past() => Some(replay.schema()),
        _ => None,
    });
    past.fold(LiveSchemas::NONE, LiveSchemas::with)
}
