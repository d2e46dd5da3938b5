//! The journal of received messages.

use super::store::StoreKind;
use crate::journal::{Journal, OpenError, Recovery, folder_for};
use fanfare_fix::codec::mask_secrets;
use fanfare_fix::session::{AppMessage, Entry, Kind, MessageStore, SessionId, StoreError};
use fanfare_wire::UtcTimestamp;

/// The application messages of a counterparty, under their MsgSeqNum(34), in a journal of their
/// own, in the subfolder [`Kept::FOLDER`] of the session's folder. A message is stored before the
/// application sees it, so that a kill of the process loses none that the application saw. A
/// message that is received twice is stored once. Secrets, such as those of a UserRequest(BE), are
/// masked. A reset of the session's numbers empties this journal. Messages from a lower expected
/// number on are stored behind those that had these numbers before.
pub(super) struct Kept(Journal);

impl Kept {
    /// The name of the folder.
    pub(super) const FOLDER: &str = "received";

    /// Opens the journal if received messages are kept; `created` is the creation time of the
    /// session's store.
    pub(super) fn open(
        kind: &StoreKind,
        id: &SessionId,
        created: UtcTimestamp,
    ) -> Result<Option<(Self, Recovery)>, OpenError> {
        let StoreKind::BothWays(base, options) = kind else {
            return Ok(None);
        };
        let identity = id.store_name();
        let folder = folder_for(base, &identity).join(Self::FOLDER);
        let (journal, recovery) = Journal::open(&folder, &identity, *options, created)?;
        Ok(Some((Self(journal), recovery)))
    }

    /// Appends a message; `created` is the creation time of the session's store.
    ///
    /// # Errors
    /// The message is not stored, and must not reach the application.
    #[inline]
    pub(super) fn keep(
        &mut self,
        created: UtcTimestamp,
        message: &AppMessage<'_>,
    ) -> Result<(), StoreError> {
        let Self(journal) = self;
        if journal.created() != created {
            journal.reset(created)?;
        }
        // The application had it when the process was killed, or panicked over it.
        if message.poss_dup && message.seq + 1 == journal.next_sender() {
            return Ok(());
        }
        // The numbers between were gap fills, or the session's own messages. A lower number is one
        // of a session whose numbers were set, or were reset while this message was under way.
        journal.set_next_sender(message.seq)?;
        let bytes = message.message.bytes();
        let room = journal.reserve(bytes.len())?;
        let place = room.get_mut(..bytes.len()).ok_or(StoreError::TooLong)?;
        place.copy_from_slice(bytes);
        mask_secrets(place);
        let entry = Entry {
            kind: Kind::App,
            transmit: false,
        };
        journal.commit(0..bytes.len(), entry)?;
        journal.sync()
    }
}
