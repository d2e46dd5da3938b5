//! Opening a journal, and what a kill left behind.

use super::error::OpenError;
use super::layout::{BadHeader, Header};
use super::prepare::{Helper, Recipe};
use super::segment::{Blank, Segment};
use super::transmit::Transmit;
use super::{Journal, Options, layout};
use fanfare_fix::session::SideBuffer;
use fanfare_wire::UtcTimestamp;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

/// Places for full segments that are made at the opening.
const MOST_PLACES: u32 = 1024;

/// What was found when a journal was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovery {
    /// Records that are there: messages of all kinds and skips.
    pub records: u64,
    /// Records at the end that were not whole and have been cut off. A kill of the process
    /// leaves at most one; a crash of the machine as many as were not on the disk.
    pub cut: u64,
    /// Records that had been on the disk and are gone: not the work of a kill. The file was cut
    /// short or damaged from outside.
    pub lost: u64,
}

impl Journal {
    /// Opens the journal in `folder`, or makes it, for the session named `identity`. Cuts off
    /// what a kill left half-written. `now` becomes the time of creation of a new journal.
    ///
    /// # Errors
    /// See [`OpenError`]. Nothing is changed then, but for files that were never in use.
    pub fn open(
        folder: &Path,
        identity: &str,
        options: Options,
        now: UtcTimestamp,
    ) -> Result<(Self, Recovery), OpenError> {
        options.check()?;
        if identity.len() > layout::MAX_IDENTITY {
            return Err(OpenError::Options(
                "the identity of the session is too long",
            ));
        }
        let recipe = Recipe {
            folder: folder.to_owned(),
            identity: identity.to_owned(),
            len: u64::from(options.segment_bytes),
            make: Blank::create,
        };
        let lock = lock(folder)?;
        let mut segments = load(folder, identity)?;
        let mut recovery = Recovery::default();
        check_all(&mut segments, &mut recovery)?;
        forget_before_reset(&mut segments)?;
        hide_taken_back(&mut segments);
        let mut current = match segments.pop_back() {
            Some(mut current) => {
                current.resume()?;
                current
            }
            None => first_segment(&recipe, &options, now)?,
        };
        current.set_durability(options.durability);
        let next_target = current.target().ok_or_else(|| OpenError::Corrupt {
            path: current.path.clone(),
            record: 0,
            what: "the number expected next is unreadable",
        })?;
        segments.iter_mut().for_each(|segment| segment.seal());
        // Beyond that it grows, by and by.
        segments.reserve(options.max_segments.min(MOST_PLACES) as usize);
        let mut journal = Self {
            folder: folder.to_owned(),
            _lock: lock,
            helper: Helper::new(recipe.clone()),
            recipe,
            ask_at: (0, 0),
            stalls: 0,
            division: options.division(),
            options,
            sealed: segments,
            current,
            next_target,
            transmit: Transmit::new(),
            side: SideBuffer::new(),
            retain_from: None,
            unsynced: 0,
            dirty: true,
            disk_full: false,
            failed: None,
        };
        journal.ask_for_next();
        Ok((journal, recovery))
    }
}

/// The folder under `base` for a session: its identity, with what a file name cannot hold
/// written as `%XX`.
#[must_use]
pub fn folder_for(base: &Path, identity: &str) -> PathBuf {
    let mut name = String::with_capacity(identity.len());
    for (i, byte) in identity.bytes().enumerate() {
        match byte {
            b'.' if i == 0 => name.push_str("%2E"),
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' | b'=' | b'+' => {
                name.push(char::from(byte));
            }
            // Writing to a String cannot fail.
            _ => drop(write!(name, "%{byte:02X}")),
        }
    }
    base.join(name)
}

pub(super) fn segment_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number:010}.journal"))
}

/// The segment files of a folder with their numbers, ascending.
pub(super) fn segment_files(folder: &Path) -> Result<Vec<(u64, PathBuf)>, OpenError> {
    let io_error = |source| OpenError::io(folder, source);
    let mut files = Vec::new();
    for file in std::fs::read_dir(folder).map_err(io_error)? {
        let path = file.map_err(io_error)?.path();
        let stem = path
            .extension()
            .is_some_and(|e| e == "journal")
            .then(|| path.file_stem());
        let number = stem.flatten().and_then(|stem| stem.to_str()?.parse().ok());
        files.extend(number.map(|number| (number, path)));
    }
    files.sort();
    Ok(files)
}

/// The lock of a folder, held until this is dropped.
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Closing alone would not do: a process that another thread has just forked, and that has
    /// not replaced itself yet, has the same file open.
    fn drop(&mut self) {
        // If it fails, the file is closed all the same.
        let _ = self.0.unlock();
    }
}

pub(super) fn lock(folder: &Path) -> Result<Lock, OpenError> {
    let io_error = |source| OpenError::io(folder, source);
    std::fs::create_dir_all(folder).map_err(io_error)?;
    let mut options = File::options();
    options.write(true).create(true).truncate(false);
    let lock = options.open(folder.join("lock")).map_err(io_error)?;
    match lock.try_lock() {
        Ok(()) => Ok(Lock(lock)),
        Err(TryLockError::WouldBlock) => Err(OpenError::InUse {
            path: folder.to_owned(),
        }),
        Err(TryLockError::Error(source)) => Err(io_error(source)),
    }
}

/// Maps all segments; removes the one that was prepared and never used.
#[allow(clippy::vec_box, reason = "see Journal")]
fn load(folder: &Path, identity: &str) -> Result<VecDeque<Box<Segment>>, OpenError> {
    let files = segment_files(folder)?;
    let mut segments: VecDeque<Box<Segment>> = VecDeque::with_capacity(files.len() + 1);
    for (i, (number, path)) in files.iter().enumerate() {
        let segment = match Segment::open(path, true)? {
            Ok(segment) => segment,
            Err(bad) => {
                let last = i + 1 == files.len();
                let blank = last && Segment::is_blank(path).map_err(|e| OpenError::io(path, e))?;
                if !blank || bad != BadHeader::Invalid {
                    return Err(bad_header(path, bad));
                }
                std::fs::remove_file(path).map_err(|source| OpenError::io(path, source))?;
                continue;
            }
        };
        let header = &segment.header;
        if header.identity != identity {
            let (found, wanted) = (header.identity.clone(), identity.to_owned());
            return Err(OpenError::OtherSession {
                path: path.clone(),
                found,
                wanted,
            });
        }
        let follows = segments
            .back()
            .is_none_or(|last| last.header.number + 1 == *number);
        if header.number != *number || !follows {
            return Err(corrupt(path, 0, "the segment before it is missing"));
        }
        segments.push_back(Box::new(segment));
    }
    Ok(segments)
}

pub(super) fn bad_header(path: &Path, bad: BadHeader) -> OpenError {
    match bad {
        BadHeader::Invalid => corrupt(path, 0, "its header is unreadable"),
        BadHeader::Version(version) => OpenError::Version {
            path: path.to_owned(),
            version,
        },
    }
}

/// Checks the entries of all segments. Only the end of the last one is cut. What a crash of the
/// machine kept from the disk is given up; any other hole is damage.
fn check_all(
    segments: &mut VecDeque<Box<Segment>>,
    recovery: &mut Recovery,
) -> Result<(), OpenError> {
    let claimed: Vec<u32> = segments
        .iter()
        .skip(1)
        .map(|s| s.header.previous_count)
        .collect();
    for (i, segment) in segments.iter_mut().enumerate() {
        let scan = segment.scan();
        let sealed = claimed.get(i);
        let expected = sealed.copied().unwrap_or(scan.used).max(scan.used);
        let gone = u64::from(expected - scan.valid);
        let lost = segment.synced().saturating_sub(u64::from(scan.valid));
        let hole = scan.more_behind || (sealed.is_some() && gone > 0);
        if hole && (lost > 0 || !segment.machine_went_down()) {
            return Err(corrupt(&segment.path, scan.valid, "its CRC does not match"));
        }
        recovery.records += u64::from(scan.valid);
        recovery.cut += gone;
        recovery.lost += lost;
        if gone > 0 && sealed.is_none() {
            segment.cut_tail();
        }
    }
    Ok(())
}

/// Removes the segments before the last reset: a kill came before that was done.
fn forget_before_reset(segments: &mut VecDeque<Box<Segment>>) -> Result<(), OpenError> {
    let Some(created) = segments.back().map(|last| last.header.created) else {
        return Ok(());
    };
    while let Some(old) = segments.front().filter(|old| old.header.created != created) {
        std::fs::remove_file(&old.path).map_err(|source| OpenError::io(&old.path, source))?;
        segments.pop_front();
    }
    Ok(())
}

/// Messages that a later segment begins below were taken back by a lower next number.
pub(super) fn hide_taken_back(segments: &mut VecDeque<Box<Segment>>) {
    let mut lowest = u64::MAX;
    for segment in segments.iter_mut().rev() {
        segment.visible_below = lowest;
        lowest = lowest.min(segment.header.first_sender);
    }
}

fn first_segment(
    recipe: &Recipe,
    options: &Options,
    now: UtcTimestamp,
) -> Result<Box<Segment>, OpenError> {
    let blank = recipe
        .blank(1)
        .map_err(|source| OpenError::io(&segment_path(&recipe.folder, 1), source))?;
    let (entries, data_len) = options.division();
    let header = Header {
        number: 1,
        created: now,
        first_sender: 1,
        entries,
        data_len,
        previous_count: 0,
        previous_crc: 0,
        identity: String::new(),
    };
    Ok(blank.activate(header, 1))
}

fn corrupt(path: &Path, record: u32, what: &'static str) -> OpenError {
    OpenError::Corrupt {
        path: path.to_owned(),
        record,
        what,
    }
}
