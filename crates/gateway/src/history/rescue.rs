//! The events in the ring of a run that was killed, or whose disk was full.

use super::missing::Missing;
use super::writer::append;
use crate::market::ring::{self, Record};
use fanfare_engine::ring::Rescued;
use fanfare_history::{Claim, LogError, Writer};
use std::io;
use std::path::Path;

/// What was found of the run before.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Whether the ring of a run that has not ended in good order was there.
    pub(super) is_killed: bool,
    /// What the log lacks, in the words of a notice.
    pub(super) lacks: Option<String>,
}

/// Checks that the file of a ring does not have the events of another log, whose next start needs
/// them. Versions up to 0.3.0 do not record whose they are.
pub(super) fn check_owner(ring_file: &Path, writer: &Writer) -> Result<(), LogError> {
    let io_error = |error| LogError::Io {
        path: ring_file.to_owned(),
        error,
    };
    let owner = fanfare_engine::ring::owner(ring_file).map_err(io_error)?;
    if owner == 0 || owner == writer.id() {
        return Ok(());
    }
    let why = format!(
        "the ring has events of another log than {}: set `ring` of `[history]` to the file of this \
         one, or remove it if no log needs it",
        writer.folder().display()
    );
    Err(io_error(io::Error::other(why)))
}

/// Appends the events that the log in a folder lacks from the ring of the run before, and those
/// that are in neither of them as lost: no number is used again that an outlet may have sent.
///
/// The ring of the run before ends at the end of the log or behind it. A file that ends before it,
/// such as one that an earlier run has left, or that does not show where it ends, is not read: all
/// numbers of the claim count as used then. The same holds after a crash of the machine, as pages
/// of a file on a disk may be of different moments.
pub(super) fn rescue(
    folder: &Path,
    ring_file: &Path,
    writer: &mut Writer,
) -> Result<Found, LogError> {
    let io_error = |error| LogError::Io {
        path: ring_file.to_owned(),
        error,
    };
    check_owner(ring_file, writer)?;
    let left = Claim::left(folder)?;
    let has_crashed = left.as_ref().is_some_and(|left| !left.is_of_this_boot());
    let (next, why) = match has_crashed {
        true => (0, "the machine has crashed"),
        false => end_of(ring_file).map_err(io_error)?,
    };
    if next < writer.next() {
        let lacks = left.map_or(Ok(None), |left| pass_over(&left, why, writer))?;
        return Ok(Found {
            is_killed: false,
            lacks,
        });
    }
    let mut taker = Taker::new(writer);
    ring::rescue(ring_file, |record, continues| taker.take(record, continues)).map_err(io_error)?;
    let mut missing = taker.end()?;
    if next > writer.next() {
        missing.add(writer.next(), next - 1);
        writer.lost(writer.next(), next - 1)?;
    }
    writer.commit()?;
    let lacks = (!missing.is_none()).then(|| {
        format!(
            "lacks {missing} of the run before: the log could not be written, and the ring had no \
             room for more"
        )
    });
    let is_killed = left.is_some();
    // The ring is made anew. If that fails, the next start has nothing to look for.
    left.map_or(Ok(()), |left| left.settle(writer.next()))?;
    Ok(Found { is_killed, lacks })
}

/// Returns the number after the last event that was written to a ring's file, 0 if the file does
/// not show it, as one of an earlier version, and why the numbers from there on count as used where
/// the log goes beyond it.
fn end_of(ring_file: &Path) -> io::Result<(u64, &'static str)> {
    let mut end = 0;
    let (found, noted) = ring::rescue(ring_file, |record, _| {
        if let Record::Events([.., last], _) = record {
            end = ring::number(last).saturating_add(1);
        }
    })?;
    // A kill may have come between the last event and the note.
    let next = end.max(noted);
    let why = match next == 0 && found != Rescued::Nothing {
        true => {
            "the ring of the run before is of version 0.2.0 or earlier and does not show its end"
        }
        false => "the ring of the run before was lost",
    };
    Ok((next, why))
}

/// A log that takes rescued records up to the first error.
struct Taker<'a> {
    writer: &'a mut Writer,
    /// The events that are missing in front of others.
    missing: Missing,
    failed: Option<LogError>,
}

impl<'a> Taker<'a> {
    fn new(writer: &'a mut Writer) -> Self {
        Self {
            writer,
            missing: Missing::default(),
            failed: None,
        }
    }

    fn take(&mut self, record: Record<'_>, continues: bool) {
        if self.failed.is_none() {
            let taken = append(self.writer, record, continues, &mut self.missing);
            self.failed = taken.err();
        }
    }

    fn end(self) -> Result<Missing, LogError> {
        self.failed.map_or(Ok(self.missing), Err)
    }
}

/// Skips all numbers that clients may have seen, for this reason. Returns what the log lacks, if
/// anything.
fn pass_over(left: &Claim, why: &str, writer: &mut Writer) -> Result<Option<String>, LogError> {
    if left.below() <= writer.next() {
        return Ok(None);
    }
    let (first, last) = (writer.next(), left.below() - 1);
    writer.lost(first, last)?;
    Ok(Some(format!(
        "lacks its end, as {why}: events {first} to {last} are missing as far as there were any, \
         and numbers go on behind them"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::market::ring::EventRing;
    use fanfare_engine::poll::Waker;
    use fanfare_engine::ring::RingLock;
    use fanfare_history::{Log, WriterConfig};
    use fanfare_market::Event;
    use fanfare_peers::Scratch;
    use std::fs;
    use std::ops::Range;

    /// More events than the smallest ring holds.
    const MANY: u64 = 10_000;

    /// The words of the first page of a ring's file, as bytes: the start of the last record, and
    /// the number of the next event.
    const LATEST: Range<usize> = 16..24;
    const NOTE: Range<usize> = 48..56;

    /// The length of that page.
    const PAGE: usize = 4096;

    /// A log whose writer has ended before its ring, with the claim of its run.
    struct Left {
        folder: Scratch,
        ring: EventRing,
    }

    impl Left {
        fn new(name: &str) -> Self {
            let folder = Scratch::new(name);
            let config = WriterConfig::default();
            let opened = Writer::open(&folder, config, Vec::new(), 1);
            drop(opened.unwrap());
            drop(Claim::make(&folder, 1).unwrap());
            let mut lock = RingLock::take(&folder.join("ring")).unwrap();
            let waker = Waker::detached().unwrap();
            let ring = EventRing::in_file(&mut lock, 1, 1, waker, 1).unwrap();
            Self { folder, ring }
        }

        fn put(&mut self, events: u64) {
            (0..events).for_each(|_| self.ring.put(&mut [Event::EMPTY]));
        }

        /// Returns what the next start finds, and the number of its first event.
        fn start(&self) -> (Found, u64) {
            let mut found = Found::default();
            let config = WriterConfig::default();
            let opened = Writer::open_with(&self.folder, config, Vec::new(), 2, |writer| {
                found = rescue(&self.folder, &self.folder.join("ring"), writer)?;
                Ok(())
            });
            let (writer, opened) = opened.unwrap();
            writer.close().unwrap();
            (found, opened.next)
        }

        /// Changes the bytes of the ring's file.
        fn change_ring(&self, change: impl FnOnce(&mut [u8])) {
            let path = self.folder.join("ring");
            let mut bytes = fs::read(&path).unwrap();
            change(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }

        /// Makes the claim that of an earlier boot of the machine.
        fn crash(&self) {
            let path = self.folder.join("numbers");
            let mut bytes = fs::read(&path).unwrap();
            // It was written once, to the second page.
            let slot = &mut bytes[PAGE..];
            slot[32..68].fill(b'0');
            let crc = crc32(&slot[16..68]);
            slot[8..12].copy_from_slice(&crc.to_le_bytes());
            fs::write(&path, bytes).unwrap();
            assert!(!self.claim().is_of_this_boot());
        }

        fn claim(&self) -> Claim {
            Claim::left(&self.folder).unwrap().unwrap()
        }

        /// Checks that the next start passes over all numbers of the claim, for this reason.
        fn passes_over(&self, first: u64, why: &str) {
            let below = self.claim().below();
            let (found, next) = self.start();
            assert!(!found.is_killed);
            let lacks = found.lacks.unwrap();
            let range = format!("events {first} to {} are missing", below - 1);
            assert!(lacks.contains(why) && lacks.contains(&range), "{lacks}");
            assert_eq!((next, self.missing()), (below, vec![(first, below - 1)]));
        }

        fn missing(&self) -> Vec<(u64, u64)> {
            let log = Log::open(&self.folder).unwrap();
            log.verify(|_, _| true).unwrap().missing
        }
    }

    fn assert_lacks(found: &Found, beginning: &str) {
        let lacks = found.lacks.as_deref().unwrap();
        assert!(lacks.starts_with(beginning), "{lacks}");
    }

    #[test]
    fn no_number_comes_twice_where_the_last_record_of_an_overtaken_ring_has_none() {
        let mut left = Left::new("rescue-last");
        left.put(MANY);
        left.ring.put_shown();
        let (found, next) = left.start();
        assert!(found.is_killed);
        assert_lacks(&found, "lacks events 1 to 10000 (10000) of");
        assert_eq!((next, left.missing()), (MANY + 1, vec![(1, MANY)]));
        // The second start finds nothing more.
        assert_eq!(left.start().1, MANY + 1);
    }

    #[test]
    fn the_last_events_of_an_overtaken_ring_are_kept_and_those_before_are_named() {
        let mut left = Left::new("rescue-events");
        left.put(MANY);
        let (found, next) = left.start();
        assert_lacks(&found, "lacks events 1 to 9999 (9999) of");
        assert_eq!((next, left.missing()), (MANY + 1, vec![(1, MANY - 1)]));
    }

    #[test]
    fn a_whole_ring_lacks_nothing() {
        let mut left = Left::new("rescue-all");
        left.put(9);
        left.ring.put_watermark(7);
        let (found, next) = left.start();
        assert!(found.is_killed && found.lacks.is_none(), "{found:?}");
        assert_eq!((next, left.missing()), (10, vec![]));
    }

    #[test]
    fn numbers_that_a_ring_of_an_earlier_version_does_not_show_are_passed_over() {
        let mut left = Left::new("rescue-former");
        left.put(MANY);
        left.ring.put_shown();
        // Earlier versions leave the word of the next number zero.
        left.change_ring(|bytes| bytes[NOTE].fill(0));
        left.passes_over(
            1,
            "as the ring of the run before is of version 0.2.0 or earlier",
        );
        assert!(left.start().1 > MANY);
    }

    #[test]
    fn a_ring_that_a_crash_of_the_machine_has_torn_is_not_read() {
        // The first page is newer than the others, which were not written yet.
        let mut left = Left::new("rescue-zeros");
        left.put(MANY);
        left.change_ring(|bytes| bytes[PAGE..].fill(0));
        left.crash();
        left.passes_over(1, "as the machine has crashed");
        // One is of an earlier lap: what is read there as the number of an event is none.
        let mut left = Left::new("rescue-lap");
        left.put(MANY);
        left.change_ring(|bytes| {
            let latest = u64::from_le_bytes(bytes[LATEST].try_into().unwrap()) as usize;
            let ring = &mut bytes[PAGE..];
            let at = latest % ring.len();
            ring[at + 16..at + 24].copy_from_slice(&(u64::MAX / 2).to_le_bytes());
        });
        left.crash();
        left.passes_over(1, "as the machine has crashed");
    }

    #[test]
    fn the_ring_of_another_log_is_refused_and_kept() {
        let mut left = Left::new("rescue-owner");
        left.put(9);
        let path = left.folder.join("ring");
        let start = |own: bool| {
            let config = WriterConfig::default();
            let opened = Writer::open_with(&left.folder, config, Vec::new(), 2, |writer| {
                left.ring.own(writer.id() ^ u64::from(!own));
                rescue(&left.folder, &path, writer).map(drop)
            });
            opened.map(|(_, opened)| opened.next)
        };
        let why = start(false).unwrap_err().to_string();
        assert!(why.contains("events of another log than"), "{why}");
        assert_eq!(
            fanfare_engine::ring::rescue(&path, |_, _| {}).unwrap().1,
            10
        );
        // It is not appended to the log, and the right one is.
        assert_eq!(start(true).unwrap(), 10);
    }

    #[test]
    fn the_ring_of_an_earlier_run_is_not_that_of_the_run_before() {
        let mut left = Left::new("rescue-other");
        left.put(5);
        assert_eq!(left.start().1, 6);
        // A run with another file, whose ring is not there now.
        let config = WriterConfig::default();
        let (mut writer, _) = Writer::open(&left.folder, config, Vec::new(), 3).unwrap();
        let events = [6, 7, 8].map(|number| {
            Event {
                number,
                ..Event::EMPTY
            }
            .to_bytes()
        });
        writer.events(&events).unwrap();
        writer.commit().unwrap();
        drop(writer);
        drop(Claim::make(&left.folder, 6).unwrap());
        left.passes_over(9, "as the ring of the run before was lost");
    }

    #[test]
    fn a_start_that_fails_behind_the_rescue_leaves_nothing_to_look_for() {
        let mut left = Left::new("rescue-twice");
        left.put(9);
        assert!(left.start().0.is_killed);
        // There was no room for the new ring.
        fs::remove_file(left.folder.join("ring")).unwrap();
        let (found, next) = left.start();
        assert!(found.lacks.is_none(), "{found:?}");
        assert_eq!((next, left.missing()), (10, vec![]));
    }

    #[test]
    fn what_a_log_lacks_between_its_events_is_named_without_a_claim_too() {
        let mut left = Left::new("rescue-unclaimed");
        left.put(MANY);
        left.claim().end().unwrap();
        let (found, next) = left.start();
        assert!(!found.is_killed);
        assert_lacks(&found, "lacks events 1 to 9999 (9999) of");
        assert_eq!((next, left.missing()), (MANY + 1, vec![(1, MANY - 1)]));
    }

    #[test]
    fn nothing_is_appended_behind_the_first_error() {
        let folder = Scratch::new("rescue-error");
        let config = WriterConfig::default();
        let (mut writer, _) = Writer::open(&folder, config, Vec::new(), 1).unwrap();
        let mut taker = Taker::new(&mut writer);
        // The segment of the run that is begun anew cannot be made, and then it could be.
        fs::remove_dir_all(&folder).unwrap();
        taker.take(Record::Restart(5), false);
        fs::create_dir(&*folder).unwrap();
        let event = Event {
            number: 1,
            ..Event::EMPTY
        }
        .to_bytes();
        taker.take(Record::Events(&[event], None), false);
        assert!(matches!(taker.end(), Err(LogError::Io { .. })));
        assert_eq!(writer.next(), 1);
    }

    /// Returns the CRC-32 that a slot of a claim has.
    fn crc32(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| match crc & 1 {
                1 => (crc >> 1) ^ 0xedb8_8320,
                _ => crc >> 1,
            })
        })
    }
}
