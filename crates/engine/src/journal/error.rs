//! Why a journal cannot be opened.

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
    /// Damage that is not the torn end that a kill leaves. A repair saves what is whole.
    #[error("journal file {} is damaged at record {record}: {what}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Number of the record in the file, from 0.
        record: u32,
        /// What is wrong.
        what: &'static str,
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
}
