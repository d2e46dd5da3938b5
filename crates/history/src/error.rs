//! Errors of a log.

use crate::format::VERSION;
use crate::moment::utc;
use std::io;
use std::path::{Path, PathBuf};

/// The reason why a log cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The system reports an error.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The folder has no segment.
    #[error("{} is not a log: it has no file NUMBER.log or NUMBER.logz", .0.display())]
    NoLog(PathBuf),
    /// Another process writes the log.
    #[error("{} is being written by another process", .0.display())]
    InUse(PathBuf),
    /// A file does not belong to a log.
    #[error("{}: not a segment of a log: {why}", path.display())]
    BadSegment {
        /// The file.
        path: PathBuf,
        /// The fault.
        why: &'static str,
    },
    /// A file is of a later version.
    #[error("{}: unsupported version {version} of the log, expected {VERSION}", path.display())]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A run of the plant was written by a later version.
    #[error("{}: unsupported run of the plant: {why}", path.display())]
    Run {
        /// The file.
        path: PathBuf,
        /// The part that is not supported.
        why: &'static str,
    },
    /// The file of the reserved numbers is damaged.
    #[error(
        "{}: it says which numbers of events may have been used, and is damaged. Clients may have \
         seen numbers above those of the log: remove it if that does not matter", .0.display()
    )]
    BadClaim(PathBuf),
    /// The thread that read ahead has ended, with an error that was returned before.
    #[error("the reader has ended after an error")]
    Ended,
    /// Retention has removed the requested events.
    #[error(
        "event {wanted} was removed by retention: the log begins with event {first} of {}",
        utc(*time)
    )]
    Gone {
        /// The requested number. If a time was requested, the number of the last removed event.
        wanted: u64,
        /// The first number of the log.
        first: u64,
        /// The time of the log at the first one, in nanoseconds since 1970-01-01 UTC.
        time: u64,
    },
    /// No event has this number yet.
    #[error("event {wanted} is not written yet: the next event is {next}")]
    NotYet {
        /// The number requested.
        wanted: u64,
        /// The number of the next event.
        next: u64,
    },
    /// The writer cannot use a setting.
    #[error("`history.{key}`: {why}")]
    Config {
        /// The setting.
        key: &'static str,
        /// The valid values.
        why: &'static str,
    },
}

impl LogError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { path, error }
    }

    /// Returns the error of a file with a run that cannot be read.
    pub(crate) fn run(path: &Path) -> impl FnOnce(&'static str) -> Self {
        let path = path.to_owned();
        move |why| Self::Run { path, why }
    }

    /// Returns whether the file does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Self::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }

    /// Returns whether a segment is missing, or nothing of it can be read: readers continue after
    /// it.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_missing() || matches!(self, Self::BadSegment { .. })
    }

    /// Returns whether the disk is full, or a quota is used up: writing may succeed later.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self, Self::Io { error, .. }
            if matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge))
    }
}
