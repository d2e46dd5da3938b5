//! Import of a file store of QuickFIX as a journal.

use super::error::OpenError;
use super::layout::EntryKind;
use super::quickfix::{QuickFixError, QuickFixStore};
use super::repair::beside;
use super::{Journal, Options};
use fanfare_fix::codec::mask_secrets;
use fanfare_fix::msg_type;
use fanfare_fix::session::{MessageStore, StoreError};
use fanfare_wire::UtcTimestamp;
use fanfare_wire::int::parse_u64;
use std::fs;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The end of a field.
const SOH: u8 = 1;

/// The result of [`import`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Imported {
    /// Messages that a resend can send again.
    pub messages: u64,
    /// Messages that are incomplete, or have another MsgSeqNum(34) than the index has: a resend of
    /// them becomes a gap fill.
    pub lost: u64,
    /// Messages from the next number on, left in the files when the number was lowered: they are
    /// not imported.
    pub set_back: u64,
    /// MsgSeqNum(34) of the next message.
    pub next_sender: u64,
    /// MsgSeqNum(34) expected next.
    pub next_target: u64,
}

/// The reason why nothing was imported.
#[derive(Debug, Error)]
pub enum ImportError {
    /// The file store cannot be read.
    #[error(transparent)]
    Source(#[from] QuickFixError),
    /// The journal exists already.
    #[error("journal {} exists already", .0.display())]
    Exists(PathBuf),
    /// The journal cannot be created.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The journal cannot be written.
    #[error("cannot write journal {}: {}", .0.display(), .1)]
    Store(PathBuf, StoreError),
}

/// Writes a file store to a new journal in `folder` for the session named `identity`, created at
/// `created`. Passwords are masked. The file store is not changed. The journal is written beside
/// `folder` and renamed when it is complete, so that a kill leaves no journal in `folder`.
///
/// # Errors
/// See [`ImportError`]; no journal exists then.
pub fn import(
    store: &mut QuickFixStore,
    folder: &Path,
    identity: &str,
    created: UtcTimestamp,
) -> Result<Imported, ImportError> {
    if fs::exists(folder).map_err(|source| OpenError::io(folder, source))? {
        return Err(ImportError::Exists(folder.to_owned()));
    }
    // With these options no message is dropped for newer ones.
    let options = Options {
        max_segments: u32::MAX,
        ..Options::default()
    };
    let copy = beside(folder, "importing");
    let filled = Journal::open(&copy, identity, options, created)
        .map_err(ImportError::from)
        .and_then(|(journal, _)| fill(journal, store, &copy));
    let placed = filled.and_then(|imported| {
        fs::rename(&copy, folder).map_err(|source| OpenError::io(folder, source))?;
        Ok(imported)
    });
    if placed.is_err() {
        // The incomplete journal is of no use, and the first error is the one to return.
        let _ = fs::remove_dir_all(&copy);
    }
    placed
}

fn fill(
    mut journal: Journal,
    store: &mut QuickFixStore,
    folder: &Path,
) -> Result<Imported, ImportError> {
    let failed = |error| ImportError::Store(folder.to_owned(), error);
    let (sender, target) = store.numbers();
    let all = store.messages();
    let (numbers, set_back): (Vec<u64>, Vec<u64>) = all.partition(|&seq| seq < sender);
    let (mut messages, mut lost) = (0, store.torn());
    let mut message = Vec::new();
    for seq in numbers {
        let is_whole = store.read(seq, &mut message)?;
        match kind(&message, seq).filter(|_| is_whole) {
            Some(kind) => {
                mask_secrets(&mut message);
                let stored = journal.set_next_sender(seq);
                let stored = stored.and_then(|()| journal.append_bytes(&message, kind, seq));
                stored.map_err(failed)?;
                messages += 1;
            }
            None => lost += 1,
        }
    }
    let set = journal.set_next_sender(sender);
    let set = set.and_then(|()| journal.set_next_target(target));
    set.and_then(|()| journal.close()).map_err(failed)?;
    Ok(Imported {
        messages,
        lost,
        set_back: set_back.len() as u64,
        next_sender: sender,
        next_target: target,
    })
}

/// Returns whether it is a message of the session or of the application; `None` for a message that
/// does not have this MsgSeqNum(34).
fn kind(message: &[u8], seq: u64) -> Option<EntryKind> {
    let mut fields = message.split(|&byte| byte == SOH);
    let mut value = |tag: &[u8]| fields.find_map(|field| field.strip_prefix(tag));
    if !message.starts_with(b"8=FIX") || message.last() != Some(&SOH) {
        return None;
    }
    let msg_type = value(b"35=")?;
    let number = parse_u64(value(b"34=")?)?;
    let kind = match msg_type::is_session(msg_type) {
        true => EntryKind::Admin,
        false => EntryKind::App,
    };
    (number == seq).then_some(kind)
}
