//! Errors of opening a journal.

use super::damage::Loss;
use super::layout::BadHeader;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The reason why a journal cannot be opened or read. Each names the file.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process, or another session of this one, has the journal open.
    #[error("journal {} is in use by another process or session", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The journal cannot be written to, for lack of rights or on a read-only file system.
    #[error("journal {} is read-only", path.display())]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
    },
    /// The disk has no space for a segment.
    #[error("the disk is full: cannot create journal file {}", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// The journal was written by a session with another identity.
    #[error("journal file {} belongs to session {found}, not to {wanted}", path.display())]
    OtherSession {
        /// The file.
        path: PathBuf,
        /// The session that it belongs to.
        found: String,
        /// The session that opens it.
        wanted: String,
    },
    /// Records are lost, which a kill of the process does not cause. A repair saves the intact
    /// ones; with [`Options::accept_loss`](super::Options::accept_loss) opening repairs the
    /// journal.
    #[error("{}", lost(.0))]
    Lost(Loss),
    /// A file is no segment.
    #[error("journal file {} is damaged: its header is unreadable", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// The damaged journal cannot be repaired, although its loss is accepted.
    #[error("journal {}: {why}", path.display())]
    Beyond {
        /// The folder.
        path: PathBuf,
        /// The reason why the repair failed.
        why: String,
    },
    /// The journal was written by a newer version of this program.
    #[error("journal file {} has version {version}, expected 1", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        version: u32,
    },
    /// The options are contradictory or out of range.
    #[error("{0}")]
    Options(&'static str),
    /// The system reports an error.
    #[error("journal {}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The application's [own store](crate::host::StoreKind::Own) cannot be opened.
    #[error("{0}")]
    Own(#[from] io::Error),
}

fn lost(loss: &Loss) -> String {
    let folder = loss.path.parent().unwrap_or(&loss.path).display();
    format!(
        "{loss}. A kill of the process does not do this. Compare the numbers with the \
         counterparty; then `fanfare store repair {folder}` saves what is whole, or --accept-loss \
         does so and starts"
    )
}

impl OpenError {
    pub(super) fn io(path: &Path, error: io::Error) -> Self {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::ReadOnly { path }
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::DiskFull { path },
            _ => Self::Io { path, error },
        }
    }

    pub(super) fn of_header(path: &Path, bad: BadHeader) -> Self {
        let path = path.to_owned();
        match bad {
            BadHeader::Invalid => Self::Unreadable { path },
            BadHeader::Version(version) => Self::Version { path, version },
        }
    }
}
