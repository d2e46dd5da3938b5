//! A folder for the files of one run, removed at its end.

use std::io;
use std::path::{Path, PathBuf};

/// A new folder, usually among the system's temporary files; removed with its contents on drop.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates a folder; `what` is part of its name.
    pub(crate) fn new(what: &str) -> io::Result<Self> {
        Self::inside(&std::env::temp_dir(), what)
    }

    /// Creates one in another folder, which must exist.
    pub(crate) fn inside(base: &Path, what: &str) -> io::Result<Self> {
        let process = std::process::id();
        for attempt in 0..1000 {
            let path = base.join(format!("fanfare-{what}-{process}-{attempt}"));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// Returns the path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // On an error the folder stays among the system's temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
