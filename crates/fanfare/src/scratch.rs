//! A folder for the files of one run, gone when it ends.

use std::io;
use std::path::{Path, PathBuf};

/// A fresh folder, usually among the system's temporary files; removed with all that is in it when
/// dropped.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// `what` is part of its name.
    pub(crate) fn new(what: &str) -> io::Result<Self> {
        Self::inside(&std::env::temp_dir(), what)
    }

    /// As `new`, in another folder, which has to be there.
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

    /// The path of a file in it.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed now is in the system's folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
