//! Setting of the numbers of a session that does not run.

use super::error::OpenError;
use super::inspect::Snapshot;
use super::repair::options_of;
use super::{Journal, Recovery};
use fanfare_fix::session::{MessageStore, OurReset, StoreError};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The next MsgSeqNum(34) of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Numbers {
    /// The number of the next message to the counterparty.
    pub sender: u64,
    /// The number of the next message from the counterparty.
    pub target: u64,
}

/// The result of [`set_numbers`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumbersSet {
    /// The numbers before.
    pub before: Numbers,
    /// The numbers after.
    pub after: Numbers,
    /// The repairs made when the journal was opened.
    pub recovery: Recovery,
}

/// The reason why numbers were not set. The journal is unchanged, except that with [`Self::Store`]
/// one of two numbers may have been set.
#[derive(Debug, Error)]
pub enum NumbersError {
    /// The journal cannot be opened: it is in use, or damaged.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be written.
    #[error("cannot write journal {}: {}", .0.display(), .1)]
    Store(PathBuf, StoreError),
    /// No file of the journal can be read.
    #[error("no file of journal {} can be read", .0.display())]
    Nothing(PathBuf),
}

/// Sets the numbers of the journal in `folder`; `None` leaves a direction unchanged. The session
/// must not run: its lock is taken. A lower number of the sender drops the messages from it on, a
/// higher one leaves a gap that a resend fills with a gap fill. A reset that the counterparty has
/// not answered is not asked for again. Durability and sizes do not change.
///
/// # Errors
/// See [`NumbersError`].
pub fn set_numbers(
    folder: &Path,
    sender: Option<u64>,
    target: Option<u64>,
) -> Result<NumbersSet, NumbersError> {
    let snapshot = Snapshot::take(folder)?;
    let last = snapshot.segments().last();
    let last = last.ok_or_else(|| NumbersError::Nothing(folder.to_owned()))?;
    let options = options_of(&snapshot, &last);
    let (mut journal, recovery) = Journal::open(folder, &last.identity, options, last.created)?;
    let numbers = |journal: &Journal| Numbers {
        sender: journal.next_sender(),
        target: journal.next_target(),
    };
    let before = numbers(&journal);
    let set = match sender {
        Some(sender) => journal.set_next_sender(sender),
        None => Ok(()),
    };
    let set = set.and_then(|()| match target {
        Some(target) => journal.set_next_target(target),
        None => Ok(()),
    });
    let set = set.and_then(|()| match (sender, target) {
        (None, None) => Ok(()),
        _ => journal.set_our_reset(OurReset::None),
    });
    let after = numbers(&journal);
    set.and_then(|()| journal.close())
        .map_err(|error| NumbersError::Store(folder.to_owned(), error))?;
    Ok(NumbersSet {
        before,
        after,
        recovery,
    })
}
