//! A file that appears when it is complete.

use crate::input::is_standard;
use crate::print::Stdout;
use anyhow::{Context, Result, bail};
use fanfare_history::Log;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
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
        // A link, which a superuser would replace by a file.
        if is_standard(path) || path == Path::new("/dev/stdout") {
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
        remove_left(path);
        let mut part = path.as_os_str().to_owned();
        part.push(format!(".{}.part", std::process::id()));
        let part = PathBuf::from(part);
        Ok(Self {
            to: Box::new(create_part(&part)?),
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

/// Creates an incomplete file, and locks it.
fn create_part(part: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    loop {
        let file = options.open(part)?;
        // Where files cannot be locked, none is removed either.
        let _ = file.lock();
        let own = file.metadata()?;
        // Another export may have removed the file before it was locked.
        let is_there = |found: fs::Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        if fs::metadata(part).is_ok_and(is_there) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

/// Removes the incomplete files that killed processes have left beside `path`. A process that still
/// writes holds a lock on its own.
fn remove_left(path: &Path) {
    let folder = path.parent().filter(|own| !own.as_os_str().is_empty());
    let entries = fs::read_dir(folder.unwrap_or(Path::new(".")));
    let (Some(name), Ok(entries)) = (path.file_name(), entries) else {
        return;
    };
    for entry in entries.flatten() {
        let is_left = is_part(name, &entry.file_name())
            && entry.file_type().is_ok_and(|kind| kind.is_file())
            && File::open(entry.path()).is_ok_and(|file| file.try_lock().is_ok());
        if is_left {
            // The next export tries again.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns whether `name` is the name of an incomplete file of an export to `own`.
fn is_part(own: &OsStr, name: &OsStr) -> bool {
    let rest = name.as_encoded_bytes().strip_prefix(own.as_encoded_bytes());
    let process = rest
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(b".part"));
    process.is_some_and(|id| !id.is_empty() && id.iter().all(u8::is_ascii_digit))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_link_to_stdout_is_not_replaced() {
        let output = Output::create(Path::new("/dev/stdout")).unwrap();
        assert!(output.names.is_none());
    }

    #[test]
    fn files_that_a_kill_has_left_are_removed_by_the_next_export() {
        let name = format!("fanfare-output-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        let names = [
            "day.csv.1.part",
            "day.csv.2.part",
            "day.csv.part",
            "day.csv.x.part",
            "other.csv.1.part",
        ];
        for name in names {
            fs::write(folder.join(name), "half").unwrap();
        }
        // Another process is writing.
        let other = File::open(folder.join("day.csv.2.part")).unwrap();
        other.try_lock().unwrap();
        let mut output = Output::create(&folder.join("day.csv")).unwrap();
        output.write_all(b"whole").unwrap();
        assert!(!folder.join(names[0]).exists());
        assert!(names[1..].iter().all(|name| folder.join(name).exists()));
        // Its own file is locked as well.
        remove_left(&folder.join("day.csv"));
        output.commit().unwrap();
        assert_eq!(fs::read(folder.join("day.csv")).unwrap(), b"whole");
        // Another export removes the file before it is locked.
        let part = folder.join("day.csv.3.part");
        fs::write(&part, "half").unwrap();
        let other = File::open(&part).unwrap();
        other.try_lock().unwrap();
        let own = part.clone();
        let made = std::thread::spawn(move || create_part(&own).unwrap());
        fs::remove_file(&part).unwrap();
        drop(other);
        made.join().unwrap().write_all(b"own").unwrap();
        assert_eq!(fs::read(&part).unwrap(), b"own");
        fs::remove_dir_all(&folder).unwrap();
    }
}
