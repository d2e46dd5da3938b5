//! Numbers that are reserved on the disk before they are used, so that none is used twice.
//!
//! The file `numbers` has two slots, each in a page of its own: while one is written the other one
//! is complete. A slot is `FANFNUM`, 0; the CRC-32 of the rest (u32), 0 (u32); the count of writes
//! of the file (u64); the number below which all are reserved (u64); the boot of the machine (36
//! bytes of text).

use crate::error::LogError;
use crate::format::{u32_at, u64_at};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Numbers that are reserved at a time, and left when more are reserved.
const AHEAD: u64 = 1 << 23;
const LEAST: u64 = 1 << 22;

const MAGIC: [u8; 8] = *b"FANFNUM\0";
const PAGE: usize = 4096;
const SLOT: usize = 68;

/// Numbers that a run of the plant has reserved.
///
/// Outlets send events before the log has written them. After a kill the ring's file has those
/// events. After a crash of the machine it does not, and numbers that clients have seen must not be
/// used again. So a plant reserves numbers before the first event, and again long before they are
/// used up; a start after a crash continues above them.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    file: File,
    writes: u64,
    below: u64,
    boot: [u8; 36],
}

impl Claim {
    /// Returns the claim of a run that has not ended in good order; `None` if there is none.
    ///
    /// # Errors
    /// The file cannot be read, or is damaged.
    pub fn left(folder: &Path) -> Result<Option<Self>, LogError> {
        let path = folder.join("numbers");
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(LogError::io(&path)(error)),
        };
        if bytes.is_empty() {
            // The machine has crashed before the first claim, and so before the first event.
            return Ok(None);
        }
        let slots = bytes.chunks(PAGE).filter_map(slot);
        let Some((writes, below, boot)) = slots.max_by_key(|slot| slot.0) else {
            return Err(LogError::BadClaim(path));
        };
        let file = File::options().write(true).open(&path);
        Ok(Some(Self {
            file: file.map_err(LogError::io(&path))?,
            path,
            writes,
            below,
            boot,
        }))
    }

    /// Reserves numbers from `next` on, and returns when they are on the disk.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn make(folder: &Path, next: u64) -> Result<Self, LogError> {
        let path = folder.join("numbers");
        let mut claim = match Self::left(folder) {
            Ok(Some(left)) => left,
            // A damaged one was reported when the log was opened.
            Ok(None) | Err(LogError::BadClaim(_)) => {
                let file = crate::folder::options().truncate(false).open(&path);
                Self {
                    file: file.map_err(LogError::io(&path))?,
                    path,
                    writes: 0,
                    below: 0,
                    boot: [0; 36],
                }
            }
            Err(error) => return Err(error),
        };
        claim.boot = boot();
        claim.write(next)?;
        // The file's name must be on the disk, too.
        let folder_file = File::open(folder).and_then(|folder| folder.sync_all());
        folder_file.map_err(LogError::io(folder))?;
        Ok(claim)
    }

    /// Returns the number below which all may have been used.
    #[must_use]
    pub const fn below(&self) -> u64 {
        self.below
    }

    /// Returns whether the machine has not been restarted since the claim was made.
    #[must_use]
    pub fn is_of_this_boot(&self) -> bool {
        self.boot == boot()
    }

    /// Reserves more numbers if few are left at `next`. Waits for the disk, once in 4 million
    /// events.
    ///
    /// # Errors
    /// The file cannot be written: the next call tries again.
    pub fn extend(&mut self, next: u64) -> Result<(), LogError> {
        match self.below.saturating_sub(next) < LEAST {
            true => self.write(next),
            false => Ok(()),
        }
    }

    /// Releases the numbers from `next` on: the log has all events of the run. The next start finds
    /// nothing missing, unless the machine crashes and the log loses its end: then numbers go on at
    /// `next`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn settle(mut self, next: u64) -> Result<(), LogError> {
        self.put(next)
    }

    /// Releases the unused numbers: the run has ended in good order, and the log has all its
    /// events.
    ///
    /// # Errors
    /// The file cannot be removed.
    pub fn end(self) -> Result<(), LogError> {
        crate::folder::remove(&self.path)
    }

    fn write(&mut self, next: u64) -> Result<(), LogError> {
        self.put(next.saturating_add(AHEAD).max(self.below))
    }

    fn put(&mut self, below: u64) -> Result<(), LogError> {
        let writes = self.writes + 1;
        let mut bytes = Vec::with_capacity(SLOT);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[0; 8]);
        bytes.extend_from_slice(&writes.to_le_bytes());
        bytes.extend_from_slice(&below.to_le_bytes());
        bytes.extend_from_slice(&self.boot);
        let crc = crc32fast::hash(bytes.get(16..).unwrap_or(&[]));
        if let Some(place) = bytes.get_mut(8..12) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        let at = (writes % 2) * PAGE as u64;
        let written = self.file.write_all_at(&bytes, at);
        let synced = written.and_then(|()| self.file.sync_all());
        synced.map_err(LogError::io(&self.path))?;
        (self.writes, self.below) = (writes, below);
        Ok(())
    }
}

/// Returns the count of writes, the claim, and the boot; `None` if the slot is incomplete.
fn slot(bytes: &[u8]) -> Option<(u64, u64, [u8; 36])> {
    let bytes = bytes.get(..SLOT)?;
    let is_whole = bytes.starts_with(&MAGIC) && crc32fast::hash(&bytes[16..]) == u32_at(bytes, 8);
    let boot = bytes.get(32..)?.first_chunk()?;
    is_whole.then(|| (u64_at(bytes, 16), u64_at(bytes, 24), *boot))
}

/// Returns the boot of the machine; zeros if the system does not report it.
fn boot() -> [u8; 36] {
    let id = fs::read("/proc/sys/kernel/random/boot_id");
    let id = id.as_ref().ok().and_then(|id| id.first_chunk());
    id.copied().unwrap_or([0; 36])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Folder;

    #[test]
    fn a_claim_is_there_after_a_crash_and_goes_on_above() {
        let folder = Folder::new();
        assert!(Claim::left(&folder.0).unwrap().is_none());
        let mut claim = Claim::make(&folder.0, 5).unwrap();
        assert_eq!(claim.below(), 5 + AHEAD);
        claim.extend(6).unwrap();
        assert_eq!(claim.below(), 5 + AHEAD, "enough are left");
        claim.extend(6 + LEAST).unwrap();
        let below = 6 + LEAST + AHEAD;
        assert_eq!(claim.below(), below);
        drop(claim);
        let left = Claim::left(&folder.0).unwrap().unwrap();
        assert_eq!((left.below(), left.is_of_this_boot()), (below, true));
        let again = Claim::make(&folder.0, 7).unwrap();
        assert_eq!(again.below(), below, "a claim never shrinks");
        let left = || Claim::left(&folder.0).unwrap();
        left().unwrap().settle(9).unwrap();
        let settled = left().unwrap();
        assert_eq!((settled.below(), settled.is_of_this_boot()), (9, true));
        again.end().unwrap();
        assert!(left().is_none());
    }

    #[test]
    fn a_claim_that_was_half_written_is_the_one_before() {
        let folder = Folder::new();
        let mut claim = Claim::make(&folder.0, 1).unwrap();
        let before = claim.below();
        claim.extend(before).unwrap();
        let path = folder.0.join("numbers");
        let whole = fs::read(&path).unwrap();
        // The second write went to the first page.
        for at in 0..SLOT {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x10;
            fs::write(&path, &bytes).unwrap();
            let left = Claim::left(&folder.0).unwrap().unwrap();
            let is_unused = (12..16).contains(&at);
            let expected = if is_unused { claim.below() } else { before };
            assert_eq!(left.below(), expected, "byte {at}");
        }
        fs::write(&path, "").unwrap();
        assert!(Claim::left(&folder.0).unwrap().is_none());
        fs::write(&path, [0; 2 * PAGE]).unwrap();
        let error = Claim::left(&folder.0).unwrap_err().to_string();
        assert!(error.contains("numbers"), "{error}");
        // A start after the report continues with a claim of its own.
        let claim = Claim::make(&folder.0, 9).unwrap();
        assert_eq!(claim.below(), 9 + AHEAD);
    }
}
