//! The process that has a journal open, found without its lock.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Returns the process that has the journal in `folder` open; `None` if none has, or if the system
/// does not know it (another machine, a container). Takes no lock, so that a session which starts
/// at this very moment is not disturbed: only [`repair`](super::repair) and
/// [`Journal::open`](super::Journal::open) know for certain.
#[must_use]
pub fn holder(folder: &Path) -> Option<u32> {
    let lock = fs::metadata(folder.join("lock")).ok()?;
    let locks = fs::read_to_string("/proc/locks").ok()?;
    find(&locks, lock.dev(), lock.ino())
}

/// Most readings of the table of locks for one that exists. The kernel returns a long table in
/// parts, and skips entries if others are removed meanwhile.
const READINGS: usize = 10;

/// Returns whether a process of another user holds the lock. Earlier versions made the lock file
/// readable by all users, and a process that has it open can still lock it. A process whose user is
/// not known does not count.
pub(super) fn is_held_by_stranger(folder: &Path) -> bool {
    let Ok(owner) = fs::metadata(folder).map(|folder| folder.uid()) else {
        return false;
    };
    let of = |pid: u32| fs::metadata(format!("/proc/{pid}")).ok();
    let holder = (0..READINGS).find_map(|_| holder(folder));
    let user = holder.and_then(of).map(|process| process.uid());
    // Root may run a session in any user's folder.
    user.is_some_and(|user| user != owner && user != 0)
}

/// Replaces a lock file that a process of another user holds with a new one, and returns that,
/// locked. Returns `None` if another process does the same, or has done it. The folder, already
/// closed to other users, is locked meanwhile.
pub(super) fn replace(folder: &Path) -> io::Result<Option<File>> {
    let guard = File::open(folder)?;
    if guard.try_lock().is_err() || !is_held_by_stranger(folder) {
        return Ok(None);
    }
    let (new, path) = (folder.join("lock.new"), folder.join("lock"));
    let mut options = crate::private::file_options();
    let lock = options.write(true).create(true).truncate(true).open(&new)?;
    if lock.try_lock().is_err() {
        return Ok(None);
    }
    fs::rename(&new, &path)?;
    Ok(Some(lock))
}

/// Finds a lock in the table. Lines are `1: FLOCK  ADVISORY  WRITE PID MAJOR:MINOR:INODE 0 EOF`,
/// the numbers of the device in hexadecimal; a line with `->` is a process that waits.
fn find(locks: &str, device: u64, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            return None;
        }
        let (pid, file) = (words.nth(2)?, words.next()?);
        let mut parts = file.split(':');
        let major = u64::from_str_radix(parts.next()?, 16).ok()?;
        let minor = u64::from_str_radix(parts.next()?, 16).ok()?;
        let same = parts.next()?.parse() == Ok(inode)
            && major == u64::from(libc::major(device))
            && minor == u64::from(libc::minor(device));
        pid.parse().ok().filter(|_| same)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_holder_is_found_and_one_who_waits_is_none() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fe:00:55 0 EOF\n\
                     1: -> FLOCK  ADVISORY  WRITE 8 fe:00:55 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 9 fe:01:55 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 10 fe:00:55 0 EOF\nrubbish\n";
        let device = libc::makedev(0xfe, 0);
        assert_eq!(find(locks, device, 55), Some(10));
        assert_eq!(find(locks, device, 56), None);
    }
}
