//! Why a journal cannot be opened.

use super::damage::Loss;
use super::layout::BadHeader;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a journal cannot be opened or read. Each names the file.
#[derive(Debug, Error)]
pub enum OpenError {
    /// Another process, or another session of this one, has it open.
    #[error("journal {} is in use by another process or session", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// It may not be written to: rights, or a file system mounted read-only.
    #[error("journal {} is read-only", path.display())]
    ReadOnly {
        /// The file or folder.
        path: PathBuf,
    },
    /// The disk has no room for a segment.
    #[error("no room on the disk for journal file {}", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
    },
    /// It was written by a session with another identity.
    #[error("journal file {} belongs to session {found}, not to {wanted}", path.display())]
    OtherSession {
        /// The file.
        path: PathBuf,
        /// The session that it belongs to.
        found: String,
        /// The session that wanted it.
        wanted: String,
    },
    /// Records are lost, which a kill of the process does not cause. A repair saves the intact
    /// ones; with [`Options::accept_loss`](super::Options::accept_loss) opening repairs the
    /// journal.
    #[error("{}", lost(.0))]
    Lost(Loss),
    /// A file that is no segment.
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
        /// Why the repair failed.
        why: String,
    },
    /// Written by a newer version of this program.
    #[error("journal file {} has version {version}, this program reads 1", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// The options make no journal.
    #[error("{0}")]
    Options(&'static str),
    /// Anything else the system says.
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
