//! A file that appears when it is complete.

use crate::input::is_standard;
use crate::print::Stdout;
use anyhow::{Context, Result, bail};
use fanfare_history::Log;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The destination of an export: a file, which has another name until it is complete, or stdout.
pub(in crate::cmd::history) struct Output {
    to: Box<dyn Write + Send>,
    /// The temporary name, and the final name.
    names: Option<(PathBuf, PathBuf)>,
}

impl Output {
    /// Opens a file for a part of a log; refuses the files of the log itself.
    pub(in crate::cmd::history) fn open(path: &Path, log: &Log) -> Result<Self> {
        let cannot = || format!("cannot write `{}`", path.display());
        if !is_standard(path) && log.owns(path) {
            bail!("{}: it is a file of the log", cannot());
        }
        Self::create(path).with_context(cannot)
    }

    fn create(path: &Path) -> io::Result<Self> {
        if is_standard(path) {
            return Ok(Self {
                to: Box::new(Stdout),
                names: None,
            });
        }
        // A pipe or a device cannot be replaced by a file.
        if fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir()) {
            return Ok(Self {
                to: Box::new(File::options().write(true).open(path)?),
                names: None,
            });
        }
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        Ok(Self {
            to: Box::new(File::create(&part)?),
            names: Some((part, path.to_owned())),
        })
    }

    /// Renames the file to its final name.
    pub(in crate::cmd::history) fn commit(mut self) -> io::Result<()> {
        self.to.flush()?;
        match self.names.take() {
            None => Ok(()),
            Some((part, path)) => fs::rename(&part, path).inspect_err(|_| {
                let _ = fs::remove_file(&part);
            }),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.to.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// Removes an incomplete file.
impl Drop for Output {
    fn drop(&mut self) {
        if let Some((part, _)) = self.names.take() {
            let _ = fs::remove_file(part);
        }
    }
}
