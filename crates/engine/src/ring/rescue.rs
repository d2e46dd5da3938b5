//! Rescue of the messages in a ring's file after a kill of its process.
//!
//! The file is a page, followed by the ring. The words of the page are: a mark, the capacity in
//! bytes, the start of the last whole message, its end, the position up to which one reader has
//! released, the end of the message that is being written, the writer's note, and the owner.

use super::lock::RingLock;
use super::{HEADER, PADDING, PAGE, record_size};
use crate::sys::map::Words;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const MARK: u64 = u64::from_le_bytes(*b"FANFRING");

/// Indices of the words of the first page.
const MARK_AT: usize = 0;
const CAPACITY: usize = 1;
const LATEST: usize = 2;
const TAIL: usize = 3;
const RELEASED: usize = 4;
const INTENT: usize = 5;
const NOTE: usize = 6;
const OWNER: usize = 7;

/// The file of a ring.
pub(super) struct Place(Words);

impl Place {
    /// Makes the file in place of the locked one.
    pub(super) fn create(lock: &mut RingLock, capacity: usize) -> io::Result<Self> {
        let words = lock.replace(|file| Words::of_new(file, PAGE + capacity))?;
        let place = Self(words);
        place.set(CAPACITY, capacity as u64);
        place.set(MARK_AT, MARK);
        Ok(place)
    }

    /// Returns the words of the ring.
    #[inline]
    pub(super) fn words(&self) -> &[AtomicU64] {
        self.0.get().get(PAGE / 8..).unwrap_or(&[])
    }

    fn set(&self, at: usize, value: u64) {
        if let Some(word) = self.0.get().get(at) {
            word.store(value, Ordering::Release);
        }
    }

    /// Notes that a message is about to be written, up to `intent`.
    #[inline]
    pub(super) fn begin(&self, intent: u64) {
        self.set(INTENT, intent);
    }

    /// Notes that a message is whole, from `latest` to `tail`.
    #[inline]
    pub(super) fn publish(&self, latest: u64, tail: u64) {
        // The end first: a kill in between leaves the message before to be found again, and this
        // one too.
        self.set(TAIL, tail);
        self.set(LATEST, latest);
    }

    /// Sets the writer's note.
    #[inline]
    pub(super) fn note(&self, note: u64) {
        self.set(NOTE, note);
    }

    /// Sets the owner.
    pub(super) fn own(&self, owner: u64) {
        self.set(OWNER, owner);
    }

    /// Returns the end of the last message that would be rescued.
    #[cfg(test)]
    pub(super) fn tail(&self) -> u64 {
        let word = self.0.get().get(TAIL);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    pub(super) fn release(&self, to: u64) {
        self.set(RELEASED, to);
    }
}

/// The contents of a ring's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rescued {
    /// The file does not exist, does not hold a ring, or holds no whole message, because the one
    /// that was being written has overwritten the last.
    Nothing,
    /// All messages that had not been released.
    All,
    /// The last message only: earlier ones were overwritten.
    Last,
}

/// Returns whether a ring may take the place of a file: the file does not exist, is empty, holds a
/// ring, or begins with zeros, as a ring does whose process is killed while it makes it.
///
/// # Errors
/// The file cannot be read.
pub fn is_replaceable(path: &Path) -> io::Result<bool> {
    let mut mark = Vec::new();
    match std::fs::metadata(path) {
        Ok(file) if file.is_file() => {
            File::open(path)?.take(8).read_to_end(&mut mark)?;
        }
        Ok(_) => return Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(mark.is_empty() || mark == [0; 8] || mark == MARK.to_le_bytes())
}

/// Returns the [owner](super::Broadcast::own) of a ring's file: 0 if none was set, or if the file
/// does not exist or does not hold a ring.
///
/// # Errors
/// The file cannot be read.
pub fn owner(path: &Path) -> io::Result<u64> {
    let mut page = Vec::new();
    match File::open(path) {
        Ok(file) => file.take(PAGE as u64).read_to_end(&mut page)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    Ok(match word(&page, MARK_AT) {
        MARK => word(&page, OWNER),
        _ => 0,
    })
}

/// Returns a word of the first page, 0 if the file ends before it.
fn word(bytes: &[u8], at: usize) -> u64 {
    let word = bytes.get(8 * at..).and_then(|rest| rest.first_chunk());
    word.map_or(0, |word| u64::from_le_bytes(*word))
}

/// Calls `each` with the kind and the bytes of each message in a ring's file that was not released,
/// in order. Must be called before the ring is made again. Returns with what was found the last
/// [note](super::Broadcast::note) of the ring's writer, 0 if there is none.
///
/// # Errors
/// The file cannot be read.
pub fn rescue(path: &Path, mut each: impl FnMut(u32, &[u8])) -> io::Result<(Rescued, u64)> {
    const NOTHING: (Rescued, u64) = (Rescued::Nothing, 0);
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(NOTHING),
        Err(error) => return Err(error),
    };
    let word = |at| word(&bytes, at);
    let ring = bytes.get(PAGE..).unwrap_or(&[]);
    let capacity = word(CAPACITY);
    let is_ring = word(MARK_AT) == MARK && ring.len() as u64 == capacity;
    if !is_ring || !capacity.is_power_of_two() {
        return Ok(NOTHING);
    }
    let (latest, tail, released) = (word(LATEST), word(TAIL), word(RELEASED));
    let note = word(NOTE);
    // A message may have been begun after the tail, and have overwritten others. In a file of an
    // earlier version, which lacks the word, its length is not known.
    let intent = match word(INTENT) {
        0 => tail.saturating_add(capacity / 2),
        intent => intent.max(tail),
    };
    let intact = intent.saturating_sub(capacity)..=tail;
    let (found, mut at) = if intact.contains(&released) {
        (Rescued::All, released)
    } else if intact.contains(&latest) {
        (Rescued::Last, latest)
    } else {
        return Ok((Rescued::Nothing, note));
    };
    while at < tail {
        let start = (at & (capacity - 1)) as usize;
        let Some((header, rest)) = ring.get(start..).and_then(|r| r.split_at_checked(HEADER))
        else {
            break;
        };
        let (len, kind) = header.split_at(4);
        let number = |bytes: &[u8]| bytes.first_chunk().map_or(0, |b| u32::from_le_bytes(*b));
        let (len, kind) = (number(len) as usize, number(kind));
        let Some(message) = rest.get(..len) else {
            break;
        };
        if kind != PADDING {
            each(kind, message);
        }
        at = at.saturating_add(record_size(len));
    }
    Ok((found, note))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ring::{Broadcast, BroadcastReader, Policy};

    fn file(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("fanfare-rescue-{name}-{}", std::process::id()))
    }

    fn rescued(path: &Path) -> (Rescued, Vec<(u32, Vec<u8>)>) {
        let mut all = Vec::new();
        let found = rescue(path, |kind, bytes| all.push((kind, bytes.to_vec()))).unwrap();
        (found.0, all)
    }

    #[test]
    fn the_owner_of_a_ring_outlives_what_is_written() {
        let path = file("owner");
        assert_eq!(owner(&path).unwrap(), 0);
        std::fs::write(&path, [7; 64]).unwrap();
        assert_eq!(owner(&path).unwrap(), 0, "no ring");
        std::fs::remove_file(&path).unwrap();
        let mut ring = Broadcast::in_file(&path, 4096, 1).unwrap();
        assert_eq!(owner(&path).unwrap(), 0, "none was set");
        ring.own(5);
        for message in 0..1_000u32 {
            ring.push(message, &[1; 40]).unwrap();
            ring.note(u64::from(message));
        }
        drop(ring);
        assert_eq!(owner(&path).unwrap(), 5);
        assert_eq!(rescued(&path).0, Rescued::Last);
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn a_file_of_another_kind_is_not_replaceable() {
        let path = file("other");
        assert!(is_replaceable(&path).unwrap());
        for (contents, expected) in [
            (vec![], true),
            (vec![0; 64], true),
            (b"user = 1\n".to_vec(), false),
            (vec![0; 3], false),
        ] {
            std::fs::write(&path, &contents).unwrap();
            assert_eq!(is_replaceable(&path).unwrap(), expected, "{contents:?}");
        }
        drop(Broadcast::in_file(&path, 4096, 1).unwrap());
        assert!(is_replaceable(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        assert!(!is_replaceable(&std::env::temp_dir()).unwrap());
    }

    #[test]
    fn what_was_not_released_is_found_again() {
        let path = file("all");
        assert_eq!(rescued(&path).0, Rescued::Nothing);
        let mut ring = Broadcast::in_file(&path, 4096, 1).unwrap();
        let mut reader: BroadcastReader = ring.subscribe().unwrap();
        let mut rng = fastrand::Rng::with_seed(3);
        let (mut sent, mut released) = (Vec::new(), 0);
        for round in 0..2000u32 {
            let message: Vec<u8> = (0..rng.usize(..60)).map(|_| rng.u8(..)).collect();
            ring.push(round, &message).unwrap();
            sent.push((round, message));
            if rng.u8(..) < 60 {
                let mut read = 0;
                reader.read(rng.usize(..30), |_| read += 1);
                released += read;
                reader.release(reader.position());
            }
            if sent.len() - released > 15 {
                reader.read(usize::MAX, |_| released += 1);
                reader.release(reader.position());
            }
            let (found, all) = rescued(&path);
            assert_eq!(found, Rescued::All);
            assert!(all == sent[released..], "round {round}");
        }
        // For a reader that was overtaken, the last message shows the position of the ring.
        for round in 0..200 {
            ring.push(round, &[7; 50]).unwrap();
        }
        drop((ring, reader));
        assert_eq!(rescued(&path), (Rescued::Last, vec![(199, vec![7; 50])]));
        std::fs::write(&path, "no ring").unwrap();
        assert_eq!(rescued(&path).0, Rescued::Nothing);
        std::fs::remove_file(&path).unwrap();
    }

    /// Returns what is found after a kill during the last of these messages of zeros, of which a
    /// reader has released the first `released`.
    fn killed_in_last(lens: &[usize], released: usize) -> (Rescued, Vec<(u32, Vec<u8>)>) {
        let path = file("begun");
        let mut ring = Broadcast::in_file(&path, 4096, 1).unwrap();
        let mut reader = ring.subscribe().unwrap();
        let mut before = Vec::new();
        for (kind, &len) in (0..).zip(lens) {
            before = std::fs::read(&path).unwrap();
            ring.push(kind, &vec![0; len]).unwrap();
            if (kind as usize) < released {
                reader.read(1, |_| {});
                reader.release(reader.position());
            }
        }
        drop((ring, reader));
        let mut bytes = std::fs::read(&path).unwrap();
        let words = 8 * LATEST..8 * INTENT;
        bytes[words.clone()].copy_from_slice(&before[words]);
        std::fs::write(&path, bytes).unwrap();
        let found = rescued(&path);
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn no_message_is_taken_from_the_one_that_overwrote_it() {
        // The last message is preceded by padding, and takes most of the ring.
        let found = killed_in_last(&[0, 2032, 2032], 1);
        assert_eq!(found, (Rescued::Nothing, vec![]));
        let found = killed_in_last(&[1008, 1008, 1008, 2032], 0);
        assert_eq!(found, (Rescued::Last, vec![(2, vec![0; 1008])]));
        let (found, all) = killed_in_last(&[1008, 1008, 1008, 1008], 0);
        assert_eq!((found, all.len()), (Rescued::All, 3));
    }

    #[test]
    fn the_note_of_the_writer_outlives_every_message() {
        let path = file("note");
        let noted = || rescue(&path, |_, _| {}).unwrap();
        assert_eq!(noted(), (Rescued::Nothing, 0));
        let mut ring = Broadcast::in_file(&path, 4096, 1).unwrap();
        assert_eq!(noted(), (Rescued::All, 0), "no note yet");
        for round in 0..200 {
            ring.push(7, &[1; 100]).unwrap();
            ring.note(round);
        }
        assert_eq!(noted(), (Rescued::Last, 199));
        // A kill while the last message is overwritten.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8 * INTENT..8 * NOTE].copy_from_slice(&(1u64 << 40).to_le_bytes());
        std::fs::write(&path, bytes).unwrap();
        assert_eq!(noted(), (Rescued::Nothing, 199));
        std::fs::remove_file(&path).unwrap();
        // A ring in memory has none.
        Broadcast::new(4096, 1, Policy::Lap).note(5);
    }

    #[test]
    fn a_damaged_file_is_no_ring_or_some_messages() {
        let path = file("damaged");
        let mut ring = Broadcast::in_file(&path, 1024, 1).unwrap();
        for round in 0..9 {
            ring.push(round, &[1; 30]).unwrap();
        }
        let whole = std::fs::read(&path).unwrap();
        let mut rng = fastrand::Rng::with_seed(5);
        for _ in 0..2000 {
            let mut bytes = whole.clone();
            for _ in 0..rng.usize(1..4) {
                let at = if rng.bool() {
                    rng.usize(..40)
                } else {
                    rng.usize(..bytes.len())
                };
                bytes[at] = rng.u8(..);
            }
            std::fs::write(&path, &bytes).unwrap();
            let _ = rescued(&path);
        }
        std::fs::remove_file(&path).unwrap();
    }
}
