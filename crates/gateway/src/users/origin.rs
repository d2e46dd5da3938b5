//! The text from which users and lists were parsed, for errors that are found later.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The file of a text and the places of its lines, as far as they are known. All origins are equal,
/// because users do not change with their place.
#[derive(Clone, Default)]
pub(super) struct Origin {
    file: Option<Arc<Path>>,
    /// The positions of the line feeds, in bytes from the beginning of the text.
    ends: Option<Arc<[usize]>>,
}

impl Origin {
    /// Returns the origin of a text. Does not keep the text, which may contain passwords.
    pub(super) fn of(text: &str) -> Self {
        let feeds = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self {
            file: None,
            ends: Some(feeds.map(|(at, _)| at).collect()),
        }
    }

    /// Sets the file of the text.
    pub(super) fn in_file(&mut self, file: &Path) {
        self.file = Some(file.into());
    }

    /// Returns the file, if it is known.
    pub(super) fn file(&self) -> Option<PathBuf> {
        self.file.as_deref().map(Path::to_owned)
    }

    /// Returns the line, from 1, of a position in the text.
    pub(super) fn line(&self, at: usize) -> Option<usize> {
        let ends = self.ends.as_ref()?;
        Some(ends.partition_point(|end| *end < at) + 1)
    }
}

impl PartialEq for Origin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Origin").finish_non_exhaustive()
    }
}
