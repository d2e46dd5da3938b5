//! The files of a log. It has what clients and producers have sent, so new files have mode 0600,
//! and a new folder 0700.
//!
//! `0000000001.log` is a segment, `0000000001.logz` the same one compacted;
//! `00000000000000500000.view` is the checkpoint after event 500,000; `lock` is locked by the
//! writer; `next` becomes the next segment; `numbers` has the reserved numbers, and `id` what tells
//! the log from others. Files that end in `.new` are being made.

use crate::error::LogError;
use crate::format::SEGMENT_HEADER;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files of a log's folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The segments by ordinal, and whether they were compacted.
    pub(crate) segments: BTreeMap<u64, bool>,
    /// Checkpoints, by the numbers of their last events.
    pub(crate) views: Vec<u64>,
    /// Files that were not finished.
    pub(crate) unfinished: Vec<PathBuf>,
    /// Segments that exist compacted and uncompacted.
    pub(crate) left: Vec<u64>,
}

/// Makes the folder of a log, and those above it, if they do not exist.
pub(crate) fn make(folder: &Path) -> Result<(), LogError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(LogError::io(folder))
}

/// Returns options that write a file, and make it if it does not exist.
pub(crate) fn options() -> OpenOptions {
    let mut options = File::options();
    options.create(true).write(true).mode(0o600);
    options
}

/// Makes a file, or empties an existing one.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    options().truncate(true).open(path)
}

/// Lists the files of a log. Other files are ignored.
pub(crate) fn list(folder: &Path) -> Result<Listing, LogError> {
    let mut found = Listing::default();
    let io_error = || LogError::io(folder);
    for entry in fs::read_dir(folder).map_err(io_error())? {
        let path = entry.map_err(io_error())?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let Some((stem, end)) = name.and_then(|name| name.split_once('.')) else {
            continue;
        };
        let is_number = stem.bytes().all(|byte| byte.is_ascii_digit());
        let Some(number) = is_number.then(|| stem.parse().ok()).flatten() else {
            continue;
        };
        match (stem.len(), end) {
            (10, "log") => {
                let is_compacted = found.segments.entry(number).or_insert(false);
                found.left.extend(is_compacted.then_some(number));
            }
            (10, "logz") => {
                let before = found.segments.insert(number, true);
                found.left.extend(before.map(|_| number));
            }
            (20, "view") => found.views.push(number),
            (10, "log.new" | "logz.new") | (20, "view.new") => found.unfinished.push(path),
            _ => {}
        }
    }
    found.views.sort_unstable();
    Ok(found)
}

/// Returns whether a log has files of this name.
pub(crate) fn is_of_log(name: &str) -> bool {
    let name = name.strip_suffix(".new").unwrap_or(name);
    let is_number = |stem: &str| stem.bytes().all(|byte| byte.is_ascii_digit());
    match name.split_once('.') {
        Some((stem, "log" | "logz")) => stem.len() == 10 && is_number(stem),
        Some((stem, "view")) => stem.len() == 20 && is_number(stem),
        Some(_) => false,
        None => matches!(name, "lock" | "next" | "numbers" | "id"),
    }
}

/// Returns the file of a segment.
pub(crate) fn segment(folder: &Path, ordinal: u64, is_compacted: bool) -> PathBuf {
    let end = if is_compacted { "logz" } else { "log" };
    folder.join(format!("{ordinal:010}.{end}"))
}

/// Returns the name under which a repair keeps a damaged segment.
pub(crate) fn kept(path: &Path) -> PathBuf {
    let mut kept = path.as_os_str().to_owned();
    kept.push(".damaged");
    PathBuf::from(kept)
}

/// Returns whether a segment was repaired: 0.2.0 left no mark in it where its end was missing.
pub(crate) fn was_repaired(path: &Path) -> bool {
    ["log", "logz"]
        .iter()
        .any(|end| kept(&path.with_extension(end)).exists())
}

/// Returns the file of a checkpoint.
pub(crate) fn view(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:020}.view"))
}

/// Writes a file atomically.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), LogError> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let write = || {
        let mut file = create(&new)?;
        io::Write::write_all(&mut file, bytes)?;
        file.sync_data()?;
        fs::rename(&new, path)
    };
    write().map_err(|source| {
        // The first error is the one to return.
        let _ = fs::remove_file(&new);
        LogError::io(path)(source)
    })
}

/// Returns the file that becomes the next segment.
pub(crate) fn next(folder: &Path) -> PathBuf {
    folder.join("next")
}

/// Returns the number that tells a log from others, which is made if there is none: random, and not
/// 0. It is that of the folder's copies, too. The file has it as 16 digits.
pub(crate) fn id(folder: &Path) -> Result<u64, LogError> {
    let path = folder.join("id");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        // Its bytes are damaged.
        Err(error) if error.kind() == io::ErrorKind::InvalidData => String::new(),
        Err(error) => return Err(LogError::io(&path)(error)),
    };
    if let Ok(id @ 1..) = u64::from_str_radix(text.trim_end(), 16) {
        return Ok(id);
    }
    let id = RandomState::new().hash_one(&path).max(1);
    write_whole(&path, format!("{id:016x}\n").as_bytes())?;
    Ok(id)
}

/// Makes the file that becomes the next segment, if it does not exist.
pub(crate) fn make_next(folder: &Path) -> Result<(), LogError> {
    let path = next(folder);
    match path.exists() {
        true => Ok(()),
        false => write_whole(&path, &[]),
    }
}

/// Removes the last segment if it has no header: after a crash of the machine its name may be on
/// the disk without its contents. Returns the number of its bytes.
pub(crate) fn remove_unbegun(folder: &Path) -> Result<u64, LogError> {
    let segments = list(folder)?.segments;
    let Some((&ordinal, false)) = segments.last_key_value() else {
        return Ok(0);
    };
    let path = segment(folder, ordinal, false);
    let len = fs::metadata(&path).map_err(LogError::io(&path))?.len();
    if segments.len() == 1 || len >= SEGMENT_HEADER as u64 {
        return Ok(0);
    }
    remove(&path)?;
    Ok(len)
}

/// Removes a file; one that does not exist is no error.
pub(crate) fn remove(path: &Path) -> Result<(), LogError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(LogError::io(path)(error)),
        _ => Ok(()),
    }
}
